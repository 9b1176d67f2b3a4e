"""Tasks on a Dask cluster: Slurm, Kubernetes and clouds through Dask's own tools.

Dask carries tasks of a few hundred bytes out and sums back. It holds no data and no history: tasks
do not depend on each other, and a future is released as soon as its result is here.

A worker does one task of a chain in each sweep, with all its threads, so that the scheduler has as
many tasks as there are workers, however many threads these have. A task is pinned to the worker
that has its rows in memory, and the scheduler cannot move it while that worker lives. When the
worker dies, its rows go to another one.

Sums come directly from the worker if the driver can reach it, and through the scheduler if not.
"""

import asyncio
import sys
import time
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from itertools import count
from threading import Lock
from typing import Any

from pgmult.core.lazy import optional
from pgmult.sampling.cluster.executors import PATIENCE, Patient, WorkersLostError
from pgmult.sampling.cluster.tasks import Done, Task, work

_LOOK = 2.0  # seconds after which a worker that has not answered is looked for
_REPLACED = 10.0  # seconds in which a worker's nanny may start it anew
_CONNECT = 30.0  # seconds to wait for a scheduler
_FIRST = 60.0  # seconds to wait for a first worker
_REACH = 3.0  # seconds in which a worker that can be reached from here answers


class DaskCluster(Patient):
    """Tasks on the workers of a Dask cluster, each with all threads of its worker.

    Parameters
    ----------
    client : dask.distributed.Client or str
        Or the address of a scheduler, ``"tcp://..."``.
    patience : float
        Seconds beyond what its sweeps should take, after which a worker is taken to hang, and
        started anew.
    """

    def __init__(self, client: Any, *, patience: float = PATIENCE):
        super().__init__(patience)
        distributed = optional("distributed", "a Dask cluster needs dask", "dask")
        self._own = isinstance(client, str)
        try:
            self._client = distributed.Client(client, timeout=_CONNECT) if self._own else client
        except OSError as error:
            raise ConnectionError(f"no Dask scheduler answers at {client}: {error}") from None
        self._lock = Lock()
        self._hung: set[str] = set()
        self._numbers = count()  # a name that was taken is never taken again
        try:
            self._client.wait_for_workers(1, timeout=_FIRST)
        except TimeoutError:
            self.close()
            raise TimeoutError(f"the Dask cluster has no workers, {_FIRST:.0f} s on") from None
        self._threads = self._alive()
        self._homes = list(self._threads)
        self.num_slots = len(self._homes)  # workers
        self._direct = self._reaches(self._homes[0])

    def _ask(self, task: Task, home: int) -> Done | None:
        with self._lock:
            address = self._homes[home % len(self._homes)]
        future = self._client.submit(
            work, task, self._threads[address], key=f"{task.name}-{next(self._numbers)}",
            workers=[address], allow_other_workers=False, pure=False,
        )  # fmt: skip
        try:
            done = self._answer(future, address, self.limit(task))
        finally:
            future.release()
        if done is None:
            self._move(address)
        return done

    def close(self) -> None:
        """Close the connection, if it was made here."""
        if self._own:
            self._client.close()

    def _alive(self) -> dict[str, int]:
        """Threads of the workers that live."""
        return {n: t for n, t in self._client.nthreads().items() if n not in self._hung}

    def _reaches(self, address: str) -> bool:
        """Does a worker answer from here, and not only by way of the scheduler?"""

        async def ask() -> None:
            await asyncio.wait_for(self._client.rpc(address).identity(), _REACH)

        try:
            self._soon(ask()).result()
        except (OSError, TimeoutError):
            return False
        return True

    def _soon(self, doing: Coroutine[Any, Any, Any]) -> Future[Any]:
        """The future of a coroutine that runs in the client's thread."""
        return asyncio.run_coroutine_threadsafe(doing, self._client.loop.asyncio_loop)

    def _answer(self, future: Any, address: str, limit: float) -> Done | None:
        """Wait for a result, or an error of the task's own; None if its worker is lost."""
        distributed: Any = sys.modules["distributed"]

        async def gather() -> Done | None:
            try:
                done: Done = await self._client.gather(
                    future, direct=self._direct, asynchronous=True
                )
                return done
            except (distributed.CancelledError, distributed.KilledWorker):
                return None

        waiting: Future[Done | None] = self._soon(gather())
        until = time.monotonic() + limit
        while (left := until - time.monotonic()) > 0.0:
            try:
                return waiting.result(min(_LOOK, left))
            except CancelledError:  # the client is closed
                return None
            except TimeoutError:
                if waiting.done():  # it was not here that time ran out
                    return waiting.result()
            if address not in self._alive():  # perhaps with a result that was not fetched
                waiting.cancel()
                return None
        waiting.cancel()
        self._hung.add(address)
        future.cancel(force=True)
        self._client.restart_workers([address], timeout=_REPLACED, raise_for_error=False)
        return None

    def _move(self, address: str) -> None:
        """Give the homes of a worker that is lost to those that have the fewest."""
        until = time.monotonic() + _REPLACED
        while len(self._alive()) < self.num_slots and time.monotonic() < until:
            time.sleep(0.2)  # for the one that its nanny starts
        with self._lock:
            alive = self._alive()
            if not alive:
                raise WorkersLostError("the Dask cluster has lost all its workers")
            for i, name in enumerate(self._homes):
                if name == address and name not in alive:
                    load = {n: self._homes.count(n) / threads for n, threads in alive.items()}
                    self._homes[i] = min(load, key=lambda n: load[n])
                    self._threads |= alive
