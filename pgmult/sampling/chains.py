"""Running chains in threads: how many at a time, until when, and what is shown of them."""

import math
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmult.compiled.ahead import compiling_ahead
from pgmult.core.arguments import as_flag
from pgmult.core.blas import one_blas_thread
from pgmult.core.machine import as_cores
from pgmult.core.typing import traits_of
from pgmult.sampling._progress import Progress
from pgmult.sampling.blocks import is_in_blocks
from pgmult.sampling.chain import Chain, Recorder, Rows, RowsHere, Variables
from pgmult.sampling.cluster.executors import Cluster
from pgmult.sampling.cluster.files import ChainFiles
from pgmult.sampling.cluster.rows import RowsElsewhere
from pgmult.sampling.goals import Goal, Watch
from pgmult.sampling.memory import Memory
from pgmult.sampling.plan import Plan
from pgmult.sampling.store import RunWriter, rectangle


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


class Chains:
    """All chains of a run, and the threads they run in."""

    def __init__(
        self, plan: Plan, goal: Goal | None, callback: Callback | None, cores: int | None,
        progressbar: bool, cluster: Cluster | None,
    ):  # fmt: skip
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable, got {callback!r}")
        self._plan, self._settings = plan, plan.settings
        self.watch = Watch(plan.model, plan.settings, goal)
        self._callback, self._cluster = callback, cluster
        self._cores = as_cores(cores)
        self._progressbar = as_flag(progressbar, "progressbar")
        seeds = np.random.SeedSequence(plan.settings.entropy).spawn(plan.settings.chains)
        variables = Variables(plan)
        self.chains = [Chain(i, plan, variables, seed) for i, seed in enumerate(seeds)]
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._active, self._stop_at = 0, plan.settings.sweeps
        self._errors: list[BaseException] = []
        self._abandoned = self.interrupted = False

    def go(self, keeps: RunWriter | Memory, store: str | None = None) -> dict[str, Any]:
        """Run the chains to their end or a goal, an error in one of them, or Ctrl-C.

        Returns
        -------
        dict
            What attributes are to say of a run whose goal decided its length.

        Raises
        ------
        KeyboardInterrupt
            With Ctrl-C before any draw was kept.
        """
        settings, goal, traits = self._settings, self.watch.goal, traits_of(self._plan.model)
        recorders = [keeps.chain(chain.number) for chain in self.chains]
        slots = self._cores if self._cluster is None else self._cluster.executor.num_slots
        running = min(slots, len(self.chains))
        seconds = math.inf if goal is None else goal.seconds
        self._seconds = seconds / math.ceil(len(self.chains) / running)  # that a chain may take
        total = settings.sweeps * len(self.chains)
        self._progress = Progress(total, self._done, enabled=self._progressbar, goal=goal)
        reached = False
        try:
            with ExitStack() as stack:
                stack.enter_context(compiling_ahead(traits.kernel_set, self._cores))
                if is_in_blocks(self._plan.model):
                    stack.enter_context(one_blas_thread())
                for look in [settings.draws] if goal is None else goal.looks(settings.draws):
                    self._stop_at = settings.tune + look * settings.thin
                    self._go(recorders, store, running)
                    reached = not self._stop.is_set() and self.watch.is_reached(
                        look, [chain.state for chain in self.chains], self._plan.data
                    )
                    if self._stop.is_set() or reached:
                        break
        finally:
            self._progress.close()
        if self._errors:
            raise self._errors[0]
        _, draws = rectangle(self.kept)
        if self.interrupted:
            if draws == 0:
                raise KeyboardInterrupt("interrupted before a draw was kept")
            goes_on = f"; pgmult.resume({store!r}) goes on" if store else ""
            drawn = f"{draws} of {settings.draws} draws a chain"
            warnings.warn(f"interrupted: {drawn}{goes_on}", stacklevel=3)
        if self.interrupted or goal is None:
            return {}
        most = max(self.kept)  # where time decides chains differ, and a store counts them all
        return {"draws": most, "until": goal.text, "ended": self.watch.ending(draws, reached)}

    @property
    def kept(self) -> list[int]:
        """How many draws each chain has kept."""
        return [chain.kept for chain in self.chains]

    @property
    def _done(self) -> int:
        return sum(chain.sweep for chain in self.chains)

    def _go(self, recorders: Sequence[Recorder], store: str | None, running: int) -> None:
        """Run the chains to the next look, or to their end."""
        queue = zip(self.chains, recorders, strict=True)
        threads = []
        for i in range(running):
            run, arguments = copy_context().run, (self._work, queue, store)
            name = f"pgmult-chain-{i}"
            threads.append(threading.Thread(None, run, name, arguments, daemon=True))
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

    def _watch(self, threads: Sequence[threading.Thread]) -> None:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.1)
                self._show()
        self._show()

    def _show(self) -> None:
        values = [c.log_likelihood for c in self.chains if not math.isnan(c.log_likelihood)]
        tuning = any(chain.sweep < self._settings.tune for chain in self.chains)
        doing = "stopping" if self.interrupted else "tuning" if tuning else "sampling"
        self._progress.show(self._done, values, doing, self.watch.worth)

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
                error.add_note(f"in chain {chain.number}, {chain.where}")
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

    def _run(self, chain: Chain, recorder: Recorder) -> None:
        chain.begin(recorder, self._rows(chain, recorder), self._share())
        failed = True
        try:
            while self._goes_on(chain):
                self._sweep(chain)
                if chain.rows.due(chain.recorder):
                    chain.commit()
            failed = False
        finally:
            try:
                is_whole = isinstance(chain.rows, RowsHere)  # elsewhere rows are as at their cut
                if not self._abandoned and (is_whole or not failed):
                    chain.commit()
            finally:
                chain.end()

    def _goes_on(self, chain: Chain) -> bool:
        """Whether a chain is to make another sweep; where time decides it makes one draw."""
        if chain.sweep >= self._stop_at or self._stop.is_set():
            return False
        return chain.kept == 0 or chain.clock < self._seconds

    def _sweep(self, chain: Chain) -> None:
        index, tune = chain.sweep, self._settings.tune
        values = chain.step()
        if values is not None:
            self.watch.add(chain.number, values)
        elif self._progress.watches:
            chain.look()
        if self._callback is not None:
            model, data = self._plan.model, self._plan.data
            sweep = Sweep(chain.number, index, index < tune, chain.state, model, data)
            with self._lock:
                self._callback(sweep)

    def _rows(self, chain: Chain, recorder: Recorder) -> Rows:
        """Where the rows of a chain are while it runs."""
        model, data, cluster = self._plan.model, self._plan.data, self._cluster
        files = None if recorder.place is None else ChainFiles(*recorder.place)
        if cluster is None:
            return RowsHere(model, data, files, self._share)
        assert files is not None  # a cluster has a store
        return RowsElsewhere(cluster, model, data, files, chain.number)

    def _share(self) -> int:
        """Threads for the rows of one chain, of those that run now."""
        return max(1, self._cores // max(1, self._active))
