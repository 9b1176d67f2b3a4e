"""Data of topic models: validated arrays with their labels."""

from pgmult.core.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
