"""The error stream: a line that is written over in a terminal, one line after another elsewhere."""

import shutil
import sys


class StatusLine:
    """Messages while something runs.

    Attributes
    ----------
    is_open : bool
        Whether there is an error stream at all.
    is_terminal : bool
        Whether it is one where a line can be written over.
    """

    def __init__(self) -> None:
        self.is_open = sys.stderr is not None and not sys.stderr.closed
        self.is_terminal = self.is_open and sys.stderr.isatty()
        self._width = 0

    def show(self, line: str) -> None:
        """Write it over the last one in a terminal, as much of it as fits; else below."""
        if self.is_terminal:
            line = line[: shutil.get_terminal_size().columns - 1]
            sys.stderr.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def keep(self, sentence: str) -> None:
        """Write a line that stays."""
        start = "\r" if self.is_terminal else ""
        sys.stderr.write(f"{start}{sentence.ljust(self._width)}\n")
        sys.stderr.flush()

    def finish(self) -> None:
        """Leave the line standing and go to the next."""
        if self._width:
            sys.stderr.write("\n")
            sys.stderr.flush()
