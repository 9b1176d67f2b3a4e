"""Starts of chains: searches over allocations of tokens to topics, and how far to trust them."""

from pgmult.core.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
