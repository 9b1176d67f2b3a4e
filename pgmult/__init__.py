"""Bayesian inference for dependent multinomial data.

What most analyses need is offered here. Each kind of data has a subpackage (`pgmult.topics`,
`pgmult.sequences`, `pgmult.fields`, `pgmult.regression`, `pgmult.choice`), and so have
approximations (`pgmult.variational`), tests of samplers (`pgmult.testing`) and data sets
(`pgmult.datasets`). Names are loaded when first used: ``import pgmult`` imports neither numba nor
scipy and compiles nothing.
"""

from pgmult.core._version import __version__ as __version__
from pgmult.core.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
