"""The command line: ``pgmult``, or ``python -m pgmult``."""

from pgmult.core.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
