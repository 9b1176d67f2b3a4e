"""Where chains start: searches over allocations of tokens to topics, what they found, its worth."""

from pgmult.core.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
