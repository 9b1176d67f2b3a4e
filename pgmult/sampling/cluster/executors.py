"""Executors: where tasks are done.

To add one, write a class with `num_slots` and `run`: `run` has a task done in a process that can
read the run directory, and again in another when that process is lost. It is called from many
threads at a time. An executor whose processes stay should give the same `home` to the same process
each time, which then has the rows in memory; a process with several threads counts as one slot and
calls ``work(task, threads)``. Draws depend on neither.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pgmult.core.arguments import as_real, brief
from pgmult.sampling.cluster.tasks import Done, Task

_CUT = 20  # sweeps between two cuts, by default

ATTEMPTS = 10
"""How often a task is begun, if the workers that it was given to die or hang."""
PATIENCE = 300.0
"""Seconds that a worker may take longer than others did, before it is taken to hang."""


class WorkersLostError(ConnectionError):
    """A task whose every worker was lost."""


@runtime_checkable
class Executor(Protocol):
    """Runs tasks in other processes."""

    @property
    def num_slots(self) -> int:
        """How many tasks are done at a time."""

    def run(self, task: Task, home: int) -> Done:
        """``work(task)`` in another process, the one with this number, modulo `num_slots`.

        Raises
        ------
        WorkersLostError
            If that process, and those that it was tried in after it, died or hung.
        Exception
            Whatever the task raises.
        """

    def close(self) -> None:
        """Free its processes and connections; tasks under way fail."""


class Patient:
    """A base of executors whose workers may die or hang: another worker repeats their task.

    Parameters
    ----------
    patience : float
        Seconds beyond ten times the longest sweep so far, for each sweep that a task may have to
        make, after which a worker is taken to hang.
    """

    def __init__(self, patience: float):
        self._patience = as_real(patience, "patience", above=0.0)
        self._longest = 0.0

    def limit(self, task: Task) -> float:
        """Seconds after which a worker hangs."""
        return self._patience + 10.0 * self._longest * (1 + task.sweep - task.cut)

    def run(self, task: Task, home: int) -> Done:
        """The task by the worker of this number, or by those that replace it."""
        for _ in range(ATTEMPTS):
            answer = self._ask(task, home)
            if isinstance(answer, Done):
                self._longest = max(self._longest, answer.seconds)
                return answer
            if answer is not None:
                raise answer
        raise WorkersLostError(
            f"{ATTEMPTS} workers died or hung, one after the other, doing {task.words} (too little"
            " memory? Then take fewer of them, or more shards)"
        )

    def _ask(self, task: Task, home: int) -> Done | Exception | None:
        """A worker's answer; None if it died or hung before it gave one."""
        raise NotImplementedError


@dataclass(frozen=True)
class Cluster:
    """An executor, and how a chain uses it.

    Attributes
    ----------
    executor : Executor
    shards : int
        Tasks a sweep, at most.
    cut : int
        Sweeps between two times that rows are written to files.
    """

    executor: Executor
    shards: int
    cut: int


@contextmanager
def opened(
    cluster: object, shards: int | None, cut: int | None, cores: int
) -> Iterator[Cluster | None]:
    """What `cluster`, `shards` and `cut` of `pgmult.sample` mean; closed if it was made here."""
    if cluster is None:
        yield None
        return
    executor: Executor
    if isinstance(cluster, Executor):
        executor = cluster
    elif cluster == "local":
        from pgmult.sampling.cluster.processes import Processes

        executor = Processes(cores)
    else:  # loads asyncio, which nothing else does
        from pgmult.sampling.cluster.dask import DaskCluster

        executor = DaskCluster(cluster)
    try:
        yield Cluster(executor, shards or executor.num_slots, cut or _CUT)
    finally:
        if executor is not cluster:
            executor.close()


def check_cluster(cluster: object) -> None:
    """Refuse what is neither a cluster nor a string that names one."""
    distributed = sys.modules.get("distributed")
    is_client = distributed is not None and isinstance(cluster, distributed.Client)
    is_executor = isinstance(cluster, Executor) and not isinstance(cluster, type)
    is_named = isinstance(cluster, str) and (cluster == "local" or "://" in cluster)
    if cluster is not None and not (is_named or is_client or is_executor):
        raise (ValueError if isinstance(cluster, str) else TypeError)(
            "cluster must be 'local' (processes of this machine), the address of a Dask scheduler"
            f" such as 'tcp://10.0.0.1:8786', or a dask.distributed.Client, got {brief(cluster)}"
        )
