"""One line on the terminal: how far the chains are, how fast, and how the log likelihood runs."""

import shutil
import sys
import time
from collections.abc import Sequence

__all__ = ["Progress"]


class Progress:
    """A line that rewrites itself; nothing at all where the error stream is no terminal."""

    def __init__(self, total: int, start: int = 0, *, enabled: bool = True):
        closed = sys.stderr is None or sys.stderr.closed
        self.enabled = enabled and not closed and sys.stderr.isatty()
        self._total = total
        self._start = start
        self._began = time.perf_counter()
        self._width = 0

    def show(self, done: int, log_likelihoods: Sequence[float], doing: str) -> None:
        """Write the line anew: sweeps of all chains together, latest value of each chain."""
        if not self.enabled:
            return
        seconds = time.perf_counter() - self._began
        speed = (done - self._start) / seconds if seconds > 0 else 0.0
        parts = [f"{doing} {done:,}/{self._total:,} sweeps"]
        if speed > 0:
            parts.append(f"{speed:.3g} sweeps/s" if speed < 1000 else f"{speed:,.0f} sweeps/s")
            parts.append(f"{_clock((self._total - done) / speed)} left")
        if log_likelihoods:
            values = " ".join(f"{value:.7g}" for value in log_likelihoods)
            parts.append(f"log likelihood {values}")
        self._write("  ".join(parts))

    def close(self) -> None:
        """Leave the line standing and go to the next."""
        if self.enabled and self._width:
            sys.stderr.write("\n")
            sys.stderr.flush()

    def _write(self, line: str) -> None:
        line = line[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)


def _clock(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
