"""The command line: ``pgmult``, or ``python -m pgmult``."""

from pgmult.cli.commands import main

__all__ = ["main"]
