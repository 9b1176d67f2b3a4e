"""Is machine code being made right now? What a progress line tells while nothing else moves."""

import threading
from functools import cache
from typing import Any

from numba.core import event

__all__ = ["Compilations", "compilations"]


class Compilations(event.Listener):
    """Counts compilations of this process; what comes from the cache on disk is none.

    Attributes
    ----------
    running, done : int
        Under way, a function that another one needs within it; and ended.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.running = self.done = 0

    def on_start(self, event: Any) -> None:
        """A compilation begins."""
        with self._lock:
            self.running += 1

    def on_end(self, event: Any) -> None:
        """A compilation ends."""
        with self._lock:
            self.running -= 1
            self.done += 1


@cache
def compilations() -> Compilations:
    """The counter of this process, from the first call on."""
    counter = Compilations()
    event.register("numba:compile", counter)
    return counter
