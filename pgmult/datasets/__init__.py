"""Corpora and counts from files, texts, public sources and installed documentation."""

from pgmult.core.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
