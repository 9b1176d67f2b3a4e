"""Running chains in parallel: threads, random generators, and which draws are stored where."""

import math
import os
import platform
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from contextvars import copy_context
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.ahead import compiling_ahead
from pgmult.compiled.rows import row_threads
from pgmult.core._version import __version__
from pgmult.core.arguments import as_flag
from pgmult.core.blas import one_blas_thread
from pgmult.core.machine import as_cores, available_memory
from pgmult.core.typing import Model, coords_of, traits_of, variable
from pgmult.sampling._progress import Progress
from pgmult.sampling.blocks import local_fields
from pgmult.sampling.cluster.executors import Cluster
from pgmult.sampling.cluster.files import ChainFiles, Part
from pgmult.sampling.cluster.rows import RowsElsewhere, rows_here
from pgmult.sampling.codec import contiguous
from pgmult.sampling.draws import Origin
from pgmult.sampling.goals import Goal, Trace, watched
from pgmult.sampling.posterior import Posterior, load
from pgmult.sampling.store import ChainWriter, Counters, Settings, rectangle

LOG_LIKELIHOOD = "log_likelihood"
_SHOW_SECONDS = 1.0  # how often a chain works out its log likelihood for the progress line


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a callback is given after each sweep.

    Attributes
    ----------
    chain, index : int
        Number of the chain, and of the sweep in it, both from 0.
    tuning : bool
        Whether the sweep is one of the first `tune`, whose draws are not kept.
    state, model, data : as the model has them
    """

    chain: int
    index: int
    tuning: bool
    state: Any
    model: Any
    data: Any


Callback = Callable[[Sweep], Any]


@dataclass(frozen=True)
class _Run:
    """What is sampled: all that draws and their descriptions depend on.

    `facts` is what the posterior's attributes say of where chains began.
    """

    model: Any
    data: Any
    settings: Settings
    starts: Any
    origin: Origin | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def attrs(self) -> dict[str, Any]:
        """What the posterior's attributes say."""
        settings = self.settings
        return {
            "model": repr(self.model),
            "random_seed": settings.entropy,
            "draws": settings.draws,
            "tune": settings.tune,
            "thin": settings.thin,
            "pgmult_version": __version__,
            "numpy_version": np.__version__,
            "python_version": platform.python_version(),
            **self.facts,
        }

    def meta(self) -> dict[str, Any]:
        """What is written in the run directory's ``meta.json``."""
        assert self.origin is not None
        return {
            "version": __version__,
            "chains": self.settings.chains,
            "dims": {name: list(self.model.dims[name]) for name in self.settings.keep},
            "sample_stats": [LOG_LIKELIHOOD],
            "label_dims": sorted(traits_of(self.model).label_dims),
            "settings": asdict(self.settings),
            "every": dict(self.settings.every),
            **self.origin.encoded(),
            "data_type": f"{type(self.data).__module__}:{type(self.data).__qualname__}",
            "attrs": self.attrs(),
        }


@dataclass
class _Chain:
    """The position of a chain in its run: what a checkpoint holds."""

    number: int
    rng: np.random.Generator
    state: Any = None
    parts: tuple[Part, ...] = ()  # files of the state's rows, where they are not in it
    sweep: int = 0
    seconds: float = 0.0
    generator: Mapping[str, Any] = field(default_factory=dict)
    log_likelihood: float = math.nan
    shown: float = -math.inf
    began: float = 0.0

    def restore(self, checkpoint: Mapping[str, Any], counters: Counters) -> None:
        _check_generator(checkpoint["generator"], self.rng.bit_generator.state)
        self.state = checkpoint["state"]
        self.parts = tuple(Part(*part) for part in checkpoint["parts"])
        self.sweep, self.seconds = counters.sweep, counters.seconds
        self.rng.bit_generator.state = checkpoint["generator"]

    def advance(self, state: Any, sweep: int) -> None:
        """Take the state after `sweep` sweeps, together with the generator's."""
        self.state, self.sweep = state, sweep
        self.generator = self.rng.bit_generator.state

    def checkpoint(self) -> dict[str, Any]:
        return {
            "sweep": self.sweep,
            "seconds": self.seconds + time.perf_counter() - self.began,
            "generator": self.generator,
            "state": self.state,
            "parts": [list(part) for part in self.parts],
        }


class _Chains:
    """All chains of a run, and the threads they run in."""

    def __init__(
        self,
        run: _Run,
        callback: Callback | None,
        cores: int | None,
        progressbar: bool,
        cluster: Cluster | None = None,
    ):
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable, got {callback!r}")
        self.model, self.data, self.settings = run.model, run.data, run.settings
        self.run, self.coords = run, coords_of(run.model, run.data)
        self._cluster = cluster
        self._callback = callback
        self._cores = as_cores(cores)
        self._progressbar = as_flag(progressbar, "progressbar")
        single = traits_of(run.model).single_precision | run.settings.every.keys()
        self._variables = _Variables(run.model, self.coords, single)
        seeds = np.random.SeedSequence(run.settings.entropy).spawn(run.settings.chains)
        self.chains = [
            _Chain(i, np.random.Generator(np.random.Philox(seed))) for i, seed in enumerate(seeds)
        ]
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._active = 0
        self._size = 0  # bytes of the draws to keep, once a chain has begun
        self._abandoned = False
        self._goal: Goal | None = None
        self._reached = False
        self._stop_at = run.settings.sweeps
        self._seconds = math.inf  # that a chain may take
        self._traces = self._new_traces()
        self._score = Trace(LOG_LIKELIHOOD, run.settings.chains, labelled=False)
        self._errors: list[BaseException] = []
        self.interrupted = False

    def go(
        self, recorders: Sequence["_Recorder"], store: str | None = None, goal: Goal | None = None
    ) -> None:
        """Run the chains to their end or a goal, an error in one of them, or Ctrl-C."""
        slots = self._cores if self._cluster is None else self._cluster.executor.num_slots
        running = min(slots, len(self.chains))
        done = sum(chain.sweep for chain in self.chains)
        total = self.settings.sweeps * len(self.chains)
        self._goal = None if goal is None else goal.of(traits_of(self.model), len(self.chains))
        seconds = math.inf if goal is None else goal.seconds
        self._seconds = seconds / math.ceil(len(self.chains) / running)
        self._progress = Progress(
            total, done, self._in_words(store), enabled=self._progressbar, goal=self._goal
        )
        draws = self.settings.draws
        try:
            with ExitStack() as stack:
                stack.enter_context(compiling_ahead(traits_of(self.model).kernel_set, self._cores))
                if getattr(self.model, "in_blocks", False):
                    stack.enter_context(one_blas_thread())
                for look in [draws] if goal is None else goal.looks(draws):
                    self._stop_at = self.settings.tune + look * self.settings.thin
                    self._go(recorders, store, running)
                    if self.interrupted or self._errors:
                        break
                    self._reached = self._is_reached(look)
                    if self._reached:
                        break
        finally:
            self._progress.close()
        if self._errors:
            raise self._errors[0]

    def _go(self, recorders: Sequence["_Recorder"], store: str | None, running: int) -> None:
        """Run the chains to the next look, or to their end."""
        queue = zip(self.chains, recorders, strict=True)
        threads = [
            threading.Thread(
                target=copy_context().run,
                args=(self._work, queue, store),
                name=f"pgmult-chain-{i}",
                daemon=True,
            )
            for i in range(running)
        ]
        try:
            for thread in threads:
                thread.start()
            self._watch(threads)
        except KeyboardInterrupt:
            self.interrupted = True
            self._stop.set()
            try:
                self._watch(threads)  # for the sweeps under way
            except KeyboardInterrupt:
                self._abandoned = True
                raise

    def _new_traces(self) -> list[Trace]:
        """Traces of what reports tell first, of what is kept."""
        names = [n for n in self.settings.keep if n not in self.settings.every]
        kept = {name: tuple(self.model.dims[name]) for name in names}
        arbitrary, chains = traits_of(self.model).label_dims, self.settings.chains
        return [
            Trace(name, chains, labelled=not arbitrary.isdisjoint(kept[name]))
            for name in watched(self.model, kept)
        ]

    def _is_reached(self, draws: int) -> bool:
        """Whether so many draws of each chain are what was asked for."""
        if self._goal is None or not self._goal.is_of_draws:
            return False
        if self._goal.asks_for_level:
            return self._score.is_level(draws)
        if not self._worth(draws) >= self._goal.worth:
            return False
        return not self._goal.settles or self._score.agrees(draws)

    def remember(self, name: str, chain: int, draws: Iterable[NDArray[Any]]) -> None:
        """Draws of something watched that a chain made before."""
        trace = next(trace for trace in self._watched if trace.name == name)
        for draw in draws:
            trace.add(chain, draw)

    @property
    def _watched(self) -> list[Trace]:
        return [*self._traces, self._score]

    @property
    def watched(self) -> list[str]:
        """What is watched."""
        return [trace.name for trace in self._watched]

    def settled(self, kept: Sequence[int]) -> dict[str, Any]:
        """What ``meta.json`` and attributes are to say of a run whose goal decided its length."""
        if self._goal is None or self.interrupted:
            return {}
        _, draws = rectangle(list(kept))
        if self._goal.is_of_draws and not self._reached:
            worth = self._worth()
            said = "" if math.isnan(worth) else f", are worth {worth:.0f} independent ones"
            warnings.warn(
                f"until={self._goal.text!r} was not reached: {draws} draws a chain, the most"
                f" that draws= allows{said}",
                stacklevel=4,
            )
        most = max(kept)  # where time decides chains differ, and a store counts them all
        told = {"until": self._goal.text, "ended": self._ended(draws)}
        self.settings = replace(self.settings, draws=most)
        self.run = replace(self.run, settings=self.settings, facts={**self.run.facts, **told})
        return {"settings": asdict(self.settings), "attrs": {"draws": most, **told}}

    def _ended(self, draws: int) -> str:
        """Why a run ended that its goal was to end, in words."""
        assert self._goal is not None
        if not self._goal.is_of_draws:
            return f"by the time, {self._goal.text}"
        if not self._reached:
            return f"at the most draws that it was allowed, short of its goal ({self._goal.text})"
        at_most = f" ({self.settings.draws:,} draws a chain at most)"
        if self._goal.asks_for_level:
            return f"as soon as the log likelihood of each chain was level{at_most}"
        return (
            f"as soon as what is told first was worth {self._goal.worth:,.0f} independent"
            f" draws{at_most}"
        )

    def _in_words(self, store: str | None) -> str:
        settings = self.settings
        every = f", every {settings.thin} sweeps" if settings.thin > 1 else ""
        return (
            f"{type(self.model).__name__}: {settings.chains} x {settings.draws:,} draws{every},"
            f" after {settings.tune:,} sweeps of tuning"
            + ("" if store is None else f", written to {store}")
        )

    def _watch(self, threads: Sequence[threading.Thread]) -> None:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.1)
                self._show()
        self._show()

    def _show(self) -> None:
        done = sum(chain.sweep for chain in self.chains)
        values = [c.log_likelihood for c in self.chains if not math.isnan(c.log_likelihood)]
        tuning = any(chain.sweep < self.settings.tune for chain in self.chains)
        doing = "stopping" if self.interrupted else "tuning" if tuning else "sampling"
        self._progress.show(done, values, doing, self._size, self._worth)

    def _worth(self, draws: int | None = None) -> float:
        """Independent draws that the first, or all so far, are worth; nan if nobody knows."""
        return min((trace.worth(draws) for trace in self._traces), default=math.nan)

    def _work(self, queue: Any, store: str | None) -> None:
        """One thread: chain after chain, until none is left."""
        while not self._stop.is_set():
            with self._lock:
                chain, recorder = next(queue, (None, None))
                if chain is None or recorder is None:
                    return
                self._active += 1
            try:
                self._run(chain, recorder)
            except KeyboardInterrupt:
                self.interrupted = True
                self._stop.set()
            except BaseException as error:
                error.add_note(f"in chain {chain.number}, {self._place(chain)}")
                if store is not None:
                    error.add_note(
                        f"pgmult.load({store!r}) reads the draws that were stored before,"
                        " pgmult.resume goes on with them"
                    )
                self._errors.append(error)
                self._stop.set()
            finally:
                with self._lock:
                    self._active -= 1

    def _run(self, chain: _Chain, recorder: "_Recorder") -> None:
        chain.began = time.perf_counter()
        rows = self._rows(chain, recorder)
        if chain.state is None:
            with row_threads(self._share()):
                chain.state, chain.parts = self._start(chain, rows)
        chain.advance(rows.begin(contiguous(chain.state), chain.parts, chain.sweep), chain.sweep)
        values = self._variables(*rows.values(self.settings.keep))
        self._size = self.settings.chains * sum(
            value.nbytes * (self.settings.draws // self.settings.every.get(name, 1))
            for name, value in values.items()
        )
        recorder.begin(values)
        self._commit(chain, recorder, rows)
        try:
            while self._goes_on(chain):
                self._sweep(chain, recorder, rows)
                if rows.due(recorder):
                    self._commit(chain, recorder, rows)
        except BaseException:
            if not self._abandoned and isinstance(rows, _RowsHere):  # others were at their cut
                self._commit(chain, recorder, rows)
            raise
        else:
            if not self._abandoned:
                self._commit(chain, recorder, rows)
        finally:
            rows.end()
            chain.seconds += time.perf_counter() - chain.began

    def _goes_on(self, chain: _Chain) -> bool:
        """Whether a chain is to make another sweep; where time decides it makes one draw."""
        if chain.sweep >= self._stop_at or self._stop.is_set():
            return False
        if chain.sweep < self.settings.tune + self.settings.thin:
            return True
        return time.perf_counter() - chain.began < self._seconds

    def _rows(self, chain: _Chain, recorder: "_Recorder") -> "_Rows":
        """Where the rows of a chain are while it runs."""
        files = None if recorder.place is None else ChainFiles(*recorder.place)
        if self._cluster is None:
            return _RowsHere(self.model, self.data, files, self._share)
        assert files is not None  # a cluster has a store
        executor, shards, cut = self._cluster.executor, self._cluster.shards, self._cluster.cut
        return RowsElsewhere(executor, self.model, self.data, files, chain.number, shards, cut)

    def _commit(self, chain: _Chain, recorder: "_Recorder", rows: "_Rows") -> None:
        """Write a checkpoint; files that only the one before needs are removed after it."""
        rows.save()
        chain.parts = rows.parts
        recorder.commit(chain.checkpoint())
        rows.saved()

    def _sweep(self, chain: _Chain, recorder: "_Recorder", rows: "_Rows") -> None:
        tune, thin = self.settings.tune, self.settings.thin
        index = chain.sweep
        state = contiguous(rows.step(chain.rng))
        if index >= tune and (index + 1 - tune) % thin == 0:
            due = self.settings.due((index + 1 - tune) // thin)
            values = self._variables(*rows.values(due))
            chain.log_likelihood = float(values[LOG_LIKELIHOOD])
            recorder.append(values)
            for trace in self._watched:
                trace.add(chain.number, values[trace.name])
        elif self._progress.watches and time.monotonic() > chain.shown + rows.show_seconds:
            chain.log_likelihood, _ = rows.values(())
            chain.shown = time.monotonic()
        chain.advance(state, index + 1)
        if self._callback is not None:
            sweep = Sweep(chain.number, index, index < tune, state, self.model, self.data)
            with self._lock:
                self._callback(sweep)

    def _place(self, chain: _Chain) -> str:
        if chain.state is None:
            return "at its start"
        kind = "tuning" if chain.sweep < self.settings.tune else "after tuning"
        return f"sweep {chain.sweep} ({kind})"

    def _share(self) -> int:
        """Threads for the rows of one chain, of those that run now."""
        return max(1, self._cores // max(1, self._active))

    def _start(self, chain: _Chain, rows: "_Rows") -> tuple[Any, tuple[Part, ...]]:
        """A state, and the files of its rows if these are not in it."""
        given = self.run.starts
        if given is not None:
            return given[chain.number] if isinstance(given, list) else given, ()
        begun = rows.start(chain.rng)
        return (self.model.init(chain.rng, self.data), ()) if begun is None else begun

    def end(self, num_draws: int, store: str | None) -> None:
        """After Ctrl-C: a warning, or the interrupt itself if there is nothing to return."""
        if not self.interrupted:
            return
        if num_draws == 0:
            raise KeyboardInterrupt("interrupted before a draw was kept")
        goes_on = f"; pgmult.resume({store!r}) goes on" if store else ""
        warnings.warn(
            f"interrupted: {num_draws} of {self.settings.draws} draws a chain{goes_on}",
            stacklevel=3,
        )

    def load(self, store: str | os.PathLike[str]) -> Posterior:
        """The draws on disk."""
        with warnings.catch_warnings() if self.interrupted else nullcontext():
            if self.interrupted:
                warnings.simplefilter("ignore")
            posterior = load(store, model=self.model)
        self.end(posterior.num_draws, str(store))
        return posterior


class _RowsHere:
    """All of the state in this process."""

    parts: tuple[Part, ...] = ()
    show_seconds = _SHOW_SECONDS

    def __init__(
        self,
        model: Model[Any, Any],
        data: Any,
        files: ChainFiles | None,
        threads: Callable[[], int],
    ):
        self._model, self._data, self._files, self._threads = model, data, files, threads
        self._left_over = False

    def start(self, rng: np.random.Generator) -> None:
        """Nothing: ``init`` makes all of the state."""

    def begin(self, state: Any, parts: tuple[Part, ...], sweep: int) -> Any:
        if parts:
            assert self._files is not None
            state = rows_here(self._files, state, local_fields(self._model, state), sweep, parts)
            self._left_over = True
        self._state = state
        return state

    def step(self, rng: np.random.Generator) -> Any:
        with row_threads(self._threads()):
            self._state = contiguous(self._model.step(rng, self._state, self._data))
        return self._state

    def values(self, names: Sequence[str]) -> tuple[float, dict[str, Any]]:
        model, state, data = self._model, self._state, self._data
        with row_threads(self._threads()):
            values = {name: variable(model, state, data, name) for name in names}
            return float(model.log_likelihood(state, data)), values

    def due(self, recorder: "_Recorder") -> bool:
        """Is it time to commit?"""
        return recorder.due()

    def save(self) -> None:
        """Nothing to do: the state is whole."""

    def saved(self) -> None:
        if self._left_over and self._files is not None:  # of a run that went on here
            self._files.drop_all_but(math.inf, ())
            self._left_over = False

    def end(self) -> None:
        """Nothing to do."""


_Rows = _RowsHere | RowsElsewhere
"""Where the rows of a chain's state are, and who moves them."""


class _Variables:
    """Evaluates what is kept of a state, and holds it to one shape and dtype."""

    def __init__(
        self,
        model: Model[Any, Any],
        coords: Mapping[str, NDArray[Any]],
        single: Collection[str],
    ):
        self._model, self._coords, self._single = model, coords, single
        self._kinds: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}

    def __call__(self, log_likelihood: float, found: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        values = {name: self._checked(name, np.asarray(value)) for name, value in found.items()}
        values[LOG_LIKELIHOOD] = np.asarray(log_likelihood, dtype=np.float64)
        return values

    def _checked(self, name: str, value: NDArray[Any]) -> NDArray[Any]:
        if name not in self._kinds:
            self._check_axes(name, value)
        if name in self._single and value.dtype == np.float64:
            value = value.astype(np.float32)
        shape, dtype = self._kinds.setdefault(name, (value.shape, value.dtype))
        if value.shape != shape or not np.can_cast(value.dtype, dtype, "safe"):
            raise ValueError(
                f"{name} must keep one shape and dtype from draw to draw; it was {dtype} {shape},"
                f" now it is {value.dtype} {value.shape}"
            )
        return value.astype(dtype, copy=False)

    def _check_axes(self, name: str, value: NDArray[Any]) -> None:
        axes = self._model.dims[name]
        if value.ndim != len(axes):
            raise ValueError(
                f"{name} must have the axes {tuple(axes)} that model.dims names, got shape"
                f" {value.shape}"
            )
        if value.dtype.kind not in "biufc":
            raise TypeError(f"{name} must be an array of numbers, got dtype {value.dtype}")
        for axis, size in zip(axes, value.shape, strict=True):
            if axis in self._coords and len(self._coords[axis]) != size:
                raise ValueError(
                    f"{name} has {size} entries along {axis!r}, model.coords has"
                    f" {len(self._coords[axis])} labels"
                )


class _Memory:
    """Draws in memory, ``(chain, draw, ...)``."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self._lock = threading.Lock()
        self.arrays: dict[str, NDArray[Any]] = {}
        self.kept = [0] * settings.chains

    def allocate(self, values: Mapping[str, NDArray[Any]]) -> None:
        """Make room for all draws, given one of each variable."""
        lengths = {
            name: (self.settings.chains, self.settings.draws // self.settings.every.get(name, 1))
            for name in values
        }
        with self._lock:
            if not self.arrays:
                _check_memory(
                    {name: v.nbytes * math.prod(lengths[name]) for name, v in values.items()}
                )
                self.arrays = {
                    name: np.empty((*lengths[name], *value.shape), value.dtype)
                    for name, value in values.items()
                }

    def posterior(self, made: _Chains) -> Posterior:
        """The posterior of the most draws that form an array, as many of each of its chains."""
        made.settled(self.kept)
        chains, num_draws = rectangle(self.kept)
        made.end(num_draws, None)
        whole = chains == list(range(len(chains)))
        chosen: Any = slice(len(chains)) if whole else chains  # a slice copies nothing
        every = self.settings.every
        arrays = {
            name: array[chosen, : num_draws // every.get(name, 1)]
            for name, array in self.arrays.items()
        }
        stats = {LOG_LIKELIHOOD: arrays.pop(LOG_LIKELIHOOD)}
        return Posterior(
            arrays,
            dims={name: made.model.dims[name] for name in arrays},
            coords={"chain": np.array(chains), **made.coords},
            sample_stats=stats,
            attrs=made.run.attrs() | {"seconds": [made.chains[i].seconds for i in chains]},
            label_dims=traits_of(made.model).label_dims,
            origin=made.run.origin,
            every=every,
        )


class _MemoryChain:
    """One chain's share of the draws in memory."""

    def __init__(self, memory: _Memory, number: int):
        self.memory = memory
        self._number = number
        self.waiting = 0
        self.place = None

    def begin(self, values: Mapping[str, NDArray[Any]]) -> None:
        self.memory.allocate(values)

    def append(self, values: Mapping[str, NDArray[Any]]) -> None:
        memory, chain = self.memory, self._number
        every = memory.settings.every
        for name, value in values.items():
            memory.arrays[name][chain, memory.kept[chain] // every.get(name, 1)] = value
        memory.kept[chain] += 1

    def due(self) -> bool:
        return False

    def commit(self, checkpoint: Mapping[str, Any]) -> None:
        """Nothing to do: the draws are where they belong."""


_Recorder = ChainWriter | _MemoryChain
"""Where one chain's draws go."""


def _check_generator(state: Any, fresh: Mapping[str, Any]) -> None:
    """Refuse a Philox state that the chain's generator, of its own key, cannot come to."""
    pairs = [(state["buffer"], fresh["buffer"])]
    pairs += [(state["state"][name], value) for name, value in fresh["state"].items()]
    limits = {"buffer_pos": len(fresh["buffer"]), "has_uint32": 1, "uinteger": 2**32 - 1}
    if not (
        state["bit_generator"] == fresh["bit_generator"]
        and all(found.dtype == like.dtype and found.shape == like.shape for found, like in pairs)
        and np.array_equal(state["state"]["key"], fresh["state"]["key"])
        and all(type(state[n]) is int and 0 <= state[n] <= limits[n] for n in limits)
    ):
        raise ValueError("its generator is not that of this chain and seed")


def _check_memory(sizes: Mapping[str, int]) -> None:
    needed, available = sum(sizes.values()), available_memory()
    if needed > available:
        largest = max(sizes, key=lambda name: sizes[name])
        raise MemoryError(
            f"the draws to keep take {needed / 1e9:.3g} GB, {largest} alone"
            f" {sizes[largest] / 1e9:.3g} GB, and {available / 1e9:.3g} GB of memory are available"
            " (keep fewer variables with keep=, fewer draws with thin=, or write them to disk with"
            " store=)"
        )


def _check_decodable(
    meta: Mapping[str, Any], store: str | os.PathLike[str], modules: set[str]
) -> None:
    """Refuse early, and say what to pass, when a class is neither of pgmult nor of `modules`."""
    for what, kind in (("model", meta["model"]["$class"]), ("data", meta["data_type"])):
        module = kind.partition(":")[0]
        if module.partition(".")[0] != "pgmult" and module not in modules:
            raise ValueError(
                f"the {what} of {store} is a {kind}, not of pgmult: pass model= and data="
            )
