"""The report on a run of topics: its contents, and its layout on a page."""

from pgmult.core.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
