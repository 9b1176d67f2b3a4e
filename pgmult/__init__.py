"""Bayesian inference for dependent multinomial data.

What every job needs stands here; the rest in a room for each kind of data (`pgmult.topics`,
`pgmult.sequences`, `pgmult.fields`, `pgmult.regression`, `pgmult.mixtures`) and of work
(`pgmult.variational`, `pgmult.testing`, `pgmult.datasets`). Names are loaded when first used:
``import pgmult`` imports neither numba nor scipy and compiles nothing.
"""

from pgmult.core._version import __version__ as __version__
from pgmult.core.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
