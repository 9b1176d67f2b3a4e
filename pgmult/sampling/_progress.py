"""How far the chains are: a line that rewrites itself, in terminals and notebooks; a line a minute
elsewhere.

Where compiled code is being made that is said once.
"""

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from pgmult.compiled.ahead import compilations
from pgmult.core.terminal import StatusLine
from pgmult.sampling.goals import Goal

_LOG_SECONDS = 60.0  # between lines where nothing can be rewritten
_WINDOW = 20.0  # seconds of which the speed is
_PATIENCE = 3.0  # seconds of compiling in silence where every line stays
_WEIGH_SECONDS = 2.0  # between two times that effective draws are counted


class Progress:
    """Progress of a run on the error stream, or in the output of a notebook's cell.

    Parameters
    ----------
    total, start : int
        Sweeps of all chains together, and how many were made before.
    enabled : bool
    goal : Goal, optional
        What may end the run before all sweeps are made.
    """

    def __init__(
        self, total: int, start: int = 0, *, enabled: bool = True, goal: Goal | None = None
    ):
        line, shows = StatusLine(), enabled and in_notebook()
        self._line: StatusLine | _Display = _Display() if shows else line
        self._log = not shows and line.is_open and not line.is_terminal
        self.enabled = enabled and (shows or line.is_open)
        self.watches = self.enabled and not self._log  # a line that shows log likelihoods
        self._total = total
        self._began = self._said = time.monotonic()
        self._speeds: deque[tuple[float, int]] = deque([(self._began, start)])
        self._goal = goal
        self._worth, self._weighed = math.nan, self._began
        self._compiled = compilations().done if self.enabled else 0
        self._said_compiling = False

    def show(
        self, done: int, log_likelihoods: Sequence[float], doing: str,
        worth: Callable[[], float] | None = None,
    ) -> None:  # fmt: skip
        """Tell how far it is.

        Parameters
        ----------
        done : int
            Sweeps of all chains together.
        log_likelihoods : sequence of float
            The latest of each chain.
        doing : str
        worth : callable, optional
            How many independent draws those so far are worth; nan if that is not known.
        """
        if not self.enabled:
            return
        now, counter = time.monotonic(), compilations()
        compiles = counter.running > 0
        if compiles or not done:  # starts, and sweeps that compile, say nothing about the others
            self._speeds = deque([(now, done)])
        is_first = self._log and not self._said_compiling
        if compiles and is_first and now > self._began + _PATIENCE:
            self._line.keep("compiling, once: the machine code is kept for next time")
            self._said_compiling = True
        while len(self._speeds) > 1 and self._speeds[1][0] < now - _WINDOW:
            self._speeds.popleft()
        then, before = self._speeds[0]
        speed = (done - before) / (now - then) if now > then else 0.0
        if self._speeds[-1][1] != done:
            self._speeds.append((now, done))
        left = (self._total - done) / speed if speed > 0.0 else 0.0
        if self._goal is not None:
            left = min(left, max(0.0, self._began + self._goal.seconds - now))
        if self._log and now < self._said + _LOG_SECONDS:
            return
        self._said = now
        parts = [f"{doing} {done:,}/{self._total:,} sweeps"]
        if compiles:
            made = counter.done - self._compiled
            parts.append(f"compiling, once ({made} functions so far; kept for next time)")
        elif speed > 0.0:
            parts.append(f"{speed:.3g} sweeps/s" if speed < 1000 else f"{speed:,.0f} sweeps/s")
            most = "at most " if self._goal is not None and self._goal.is_of_draws else ""
            parts.append(f"{most}{_clock(left)} left")
        if worth is not None and now > self._weighed + _WEIGH_SECONDS:
            self._worth, self._weighed = worth(), time.monotonic()
        if not math.isnan(self._worth):
            goal = math.inf if self._goal is None else self._goal.worth
            of = f" of {goal:.0f}" if math.isfinite(goal) else ""
            parts.append(f"worth {self._worth:.0f}{of} independent draws")
        if log_likelihoods:
            values = " ".join(f"{value:.7g}" for value in log_likelihoods)
            parts.append(f"log likelihood {values}")
        self._line.show("  ".join(parts))

    def close(self) -> None:
        """Leave the line standing and go to the next."""
        if self.enabled:
            self._line.finish()


class _Display:
    """One output of a notebook's cell that is updated, half a second apart."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._kept = ""
        self._shown = 0.0
        self._waiting = ""

    def keep(self, sentence: str) -> None:
        self._kept += sentence + "\n"

    def finish(self) -> None:
        """Show the last line, if it came too soon."""
        if self._waiting:
            self._shown = 0.0
            self.show(self._waiting)

    def show(self, line: str) -> None:
        self._waiting = line
        if time.monotonic() < self._shown + 0.5:
            return
        self._shown, self._waiting = time.monotonic(), ""
        display: Any = sys.modules["IPython"].display.display

        bundle = {"text/plain": self._kept + line}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this, which shows what is displayed in the cell."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _clock(seconds: float) -> str:
    rounded = round(seconds)
    hours, minutes = rounded // 3600, rounded // 60 % 60
    return f"{hours}:{minutes:02}:{rounded % 60:02}" if hours else f"{minutes}:{rounded % 60:02}"
