"""Worker processes of this machine, without any other library.

A worker is a new interpreter, which reads tasks from its standard input and writes what came of
them to its standard output, one after the other; so scripts need no ``if __name__ ==
"__main__"``. One that dies or hangs is replaced, and its task given to the next.
"""

import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from multiprocessing.spawn import get_executable
from threading import Lock, Timer
from typing import Any

from pgmult.core.machine import as_cores
from pgmult.sampling.cluster.executors import PATIENCE, Patient, WorkersLostError
from pgmult.sampling.cluster.tasks import Done, Task, work

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


class Processes(Patient):
    """Tasks in processes of this machine.

    Parameters
    ----------
    workers : int, optional
        How many; as many as this process may use processors if left out.
    patience : float
        Seconds beyond what its sweeps should take, after which a worker is taken to hang, and
        killed.
    """

    def __init__(self, workers: int | None = None, *, patience: float = PATIENCE):
        super().__init__(patience)
        self._slots = [_Slot() for _ in range(as_cores(workers))]
        self.num_slots = len(self._slots)

    @property
    def pids(self) -> list[int]:
        """Process numbers of the workers that live."""
        processes = [slot.process for slot in self._slots]
        return [p.pid for p in processes if p is not None and p.poll() is None]

    def _ask(self, task: Task, home: int) -> Done | Exception | None:
        slot = self._slots[home % self.num_slots]
        with slot.lock:
            return slot.ask(task, self.limit(task))

    def close(self) -> None:
        """Kill the workers; all that they know is in files."""
        for slot in self._slots:
            slot.close()


class _Slot:
    """The place of one worker: its process, and a lock for whoever uses it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def ask(self, task: Task, limit: float) -> Done | Exception | None:
        """The worker's answer; None if it died, or was killed, before it gave one."""
        if self._closed:
            return WorkersLostError("the workers were closed")
        if self.process is None:
            self.process = _start()
        process: Any = self.process  # with pipes
        timer = Timer(limit, process.kill)
        timer.daemon = True
        timer.start()
        try:
            pickle.dump(task, process.stdin)
            process.stdin.flush()
            answer: Done | Exception = pickle.load(process.stdout)
            return answer
        except (EOFError, OSError, pickle.UnpicklingError):  # dead, perhaps while it answered
            self._bury()
            return None
        finally:
            timer.cancel()

    def _bury(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError, AttributeError):  # what was not sent
                    pipe.close()  # type: ignore[union-attr]
            process.wait()

    def close(self) -> None:
        self._closed = True
        if process := self.process:
            process.kill()  # a thread that waits for its answer goes on
        with self.lock:
            self._bury()


def _start() -> subprocess.Popen[bytes]:
    program = (
        f"import sys; sys.path[:] = {sys.path!r};"
        " from pgmult.sampling.cluster.processes import serve; serve()"
    )
    command, environment = [get_executable(), "-c", program], dict.fromkeys(_ONE_THREAD, "1")
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, env=os.environ | environment)


def serve() -> None:
    """Read tasks and write what came of them, until the driver is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver deals with Ctrl-C
    tasks = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the model prints must not come between the answers
    with suppress(EOFError, OSError):
        while True:
            task = pickle.load(tasks)
            try:
                answer: Done | Exception = work(task)
            except Exception as error:
                answer = _portable(error)
            pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
            answers.flush()


def _portable(error: Exception) -> Exception:
    """The error itself if it can be sent, or one that says the same."""
    with suppress(Exception):
        if isinstance(pickle.loads(pickle.dumps(error)), type(error)):
            return error
    portable = RuntimeError(f"{type(error).__name__}: {error}")
    for note in getattr(error, "__notes__", ()):
        portable.add_note(note)
    return portable
