"""One chain: its state and generator, sweep by sweep, and what is kept of them."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pgmult.compiled.rows import row_threads
from pgmult.core.sweeps import Sampler, sampler_of
from pgmult.core.typing import AnyArray, Array, Generator, Model, traits_of, variable
from pgmult.sampling.blocks import local_fields
from pgmult.sampling.cluster.files import ChainFiles, RowRange
from pgmult.sampling.cluster.rows import RowsElsewhere, rows_here
from pgmult.sampling.codec import contiguous
from pgmult.sampling.memory import ChainMemory
from pgmult.sampling.plan import Plan
from pgmult.sampling.store import LOG_LIKELIHOOD, ChainWriter, Counters, RunReader

_SHOW_SECONDS = 1.0  # how often a chain works out its log likelihood for the progress line


class Chain:
    """A chain of a run.

    Parameters
    ----------
    number : int
    plan : Plan
    variables : Variables
        Of all chains.
    seed : numpy.random.SeedSequence
        Of its generator.
    """

    def __init__(
        self, number: int, plan: Plan, variables: "Variables", seed: np.random.SeedSequence
    ):
        self.number, self._plan, self._values = number, plan, variables
        self.rng = np.random.Generator(np.random.Philox(seed))
        self.sweep, self.seconds = 0, 0.0
        self.state: Any = None
        self.log_likelihood = math.nan  # the latest that is known
        self._parts: tuple[RowRange, ...] = ()  # files of the rows, where the state lacks them
        self._generator: Mapping[str, object] = {}  # at `state`
        self._began = 0.0
        self._shown = -math.inf

    def restore(self, run: RunReader, counters: Counters) -> None:
        """Go on from its checkpoint in a run directory, if there is one."""
        checkpoint = run.checkpoint(self.number)
        if checkpoint is None:
            return
        self.state = checkpoint["state"]
        self._parts = tuple(RowRange(*entry) for entry in checkpoint["parts"])
        self.sweep, self.seconds = counters.sweep, counters.seconds
        self.rng.bit_generator.state = checkpoint["generator"]

    @property
    def kept(self) -> int:
        """How many draws it has kept."""
        return max(0, self.sweep - self._plan.settings.tune) // self._plan.settings.thin

    @property
    def where(self) -> str:
        """How far it is, for errors."""
        if self.state is None:
            return "at its start"
        kind = "tuning" if self.sweep < self._plan.settings.tune else "after tuning"
        return f"sweep {self.sweep} ({kind})"

    @property
    def clock(self) -> float:
        """Seconds since it began, or went on."""
        return time.perf_counter() - self._began

    def begin(self, recorder: "Recorder", rows: "Rows", threads: int) -> None:
        """Find where it starts, or go on, and write that down.

        Parameters
        ----------
        recorder : Recorder
            Where draws go.
        rows : Rows
            Where rows of the state are.
        threads : int
            To find a start with.
        """
        self._began = time.perf_counter()
        self.recorder, self.rows = recorder, rows
        plan = self._plan
        if self.state is None and plan.starts is not None:
            starts = plan.starts
            self.state = starts[self.number] if isinstance(starts, list) else starts
        elif self.state is None:
            with row_threads(threads):
                self.state, self._parts = rows.start(self.rng)
        self._reach(rows.begin(contiguous(self.state), self._parts, self.sweep), self.sweep)
        recorder.begin(self._values(*rows.values(plan.settings.keep)))
        self.commit()

    def step(self) -> dict[str, AnyArray] | None:
        """One sweep: what is kept of it, if it is a draw."""
        tune, thin = self._plan.settings.tune, self._plan.settings.thin
        state, sweep = self.rows.step(self.rng), self.sweep + 1
        values = None
        if sweep > tune and (sweep - tune) % thin == 0:
            due = self._plan.settings.due((sweep - tune) // thin)
            values = self._values(*self.rows.values(due))
            self.log_likelihood = float(values[LOG_LIKELIHOOD])
            self.recorder.append(values)
        self._reach(state, sweep)
        return values

    def _reach(self, state: object, sweep: int) -> None:
        """Be at the state after `sweep` sweeps, together with the generator's."""
        self.state, self.sweep = state, sweep
        self._generator = self.rng.bit_generator.state

    def look(self) -> None:
        """Work out the log likelihood for the progress line, now and then."""
        if time.monotonic() > self._shown + self.rows.show_seconds:
            self.log_likelihood, _ = self.rows.values(())
            self._shown = time.monotonic()

    def commit(self) -> None:
        """Write a checkpoint; files that only the one before needs are removed after it."""
        self.rows.save()
        self._parts = self.rows.parts
        clocks = {"sweep": self.sweep, "seconds": self.seconds + self.clock}
        where = {"state": self.state, "parts": [list(entry) for entry in self._parts]}
        self.recorder.commit({**clocks, "generator": self._generator, **where})
        self.rows.saved()

    def end(self) -> None:
        """Free what its rows took, and stop the clock."""
        self.rows.end()
        self.seconds += self.clock


class RowsHere:
    """All of the state in this process."""

    parts: tuple[RowRange, ...] = ()
    show_seconds = _SHOW_SECONDS

    def __init__(
        self, model: Model[Any, Any], data: Any, files: ChainFiles | None,
        threads: Callable[[], int],
    ):  # fmt: skip
        self._model, self._data, self._files, self._threads = model, data, files, threads
        self._left_over = False

    @cached_property
    def _sampler(self) -> Sampler[Any]:
        return sampler_of(self._model, self._data)

    def start(self, rng: Generator) -> tuple[Any, tuple[RowRange, ...]]:
        """Return the state where the chain starts, all of it."""
        return self._sampler.init(rng), ()

    def begin(self, state: Any, parts: tuple[RowRange, ...], sweep: int) -> Any:
        """The whole state, of which workers may have left rows in files."""
        if parts:
            assert self._files is not None
            state = rows_here(self._files, state, local_fields(self._model, state), sweep, parts)
        self._left_over, self._state = bool(parts), state
        return state

    def step(self, rng: Generator) -> Any:
        """One sweep: the state after it."""
        with row_threads(self._threads()):
            self._state = contiguous(self._sampler.step(rng, self._state))
        return self._state

    def values(self, names: Sequence[str]) -> tuple[float, dict[str, Any]]:
        """The log likelihood, and variables."""
        model, state, data = self._model, self._state, self._data
        with row_threads(self._threads()):
            values = {name: variable(model, state, data, name) for name in names}
            return float(model.log_likelihood(state, data)), values

    def due(self, recorder: "Recorder") -> bool:
        """Is it time to commit?"""
        return recorder.due()

    def save(self) -> None:
        """Nothing to do: the state is whole."""

    def saved(self) -> None:
        """Remove files of rows that workers left, which are in the state now."""
        if self._left_over and self._files is not None:  # of a run that went on here
            self._files.drop_all_but(math.inf, ())
            self._left_over = False

    def end(self) -> None:
        """Nothing to do."""


Rows = RowsHere | RowsElsewhere
"""Where the rows of a chain's state are, and who moves them."""
Recorder = ChainWriter | ChainMemory
"""Where one chain's draws go."""


class Variables:
    """Holds what is kept of states to one shape and dtype, in all chains."""

    def __init__(self, plan: Plan):
        self._model, self._coords = plan.model, plan.coords
        self._single = traits_of(plan.model).single_precision | plan.settings.every.keys()
        self._kinds: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}

    def __call__(self, log_likelihood: float, found: Mapping[str, object]) -> dict[str, Array]:
        """What is kept of a state, checked."""
        values = {name: self._checked(name, np.asarray(value)) for name, value in found.items()}
        values[LOG_LIKELIHOOD] = np.asarray(log_likelihood, dtype=np.float64)
        return values

    def _checked(self, name: str, value: Array) -> Array:
        if name not in self._kinds:
            self._check_axes(name, value)
        if name in self._single and value.dtype == np.float64:
            value = value.astype(np.float32)
        shape, dtype = self._kinds.setdefault(name, (value.shape, value.dtype))
        if value.shape != shape or not np.can_cast(value.dtype, dtype, "safe"):
            got = f"{value.dtype} {value.shape}"
            raise ValueError(f"{name} must be {dtype} {shape} in every draw, got {got}")
        return value.astype(dtype, copy=False)

    def _check_axes(self, name: str, value: Array) -> None:
        axes = tuple(self._model.dims[name])
        if value.ndim != len(axes):
            wanted = f"the axes {axes} that model.dims names"
            raise ValueError(f"{name} must have {wanted}, got shape {value.shape}")
        if value.dtype.kind not in "biufc":
            raise TypeError(f"{name} must be an array of numbers, got dtype {value.dtype}")
        for axis, size in zip(axes, value.shape, strict=True):
            labels = self._coords.get(axis)
            if labels is not None and len(labels) != size:
                wanted = f"{len(labels)} entries along {axis!r}, as model.coords has"
                raise ValueError(f"{name} must have {wanted}, got {size}")
