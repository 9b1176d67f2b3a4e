"""Bayesian inference for dependent multinomial data.

The public names are loaded when first used: ``import pgmult`` imports neither numba nor scipy and
compiles nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "Corpus": "pgmult.corpus",
    "CorrelatedTopics": "pgmult.models.topics",
    "DensePotential": "pgmult.potentials",
    "DiagonalPotential": "pgmult.potentials",
    "Dirichlet": "pgmult.priors",
    "DocumentCompletion": "pgmult.heldout",
    "LDA": "pgmult.models.lda",
    "LogisticNormal": "pgmult.links",
    "MvNormal": "pgmult.priors",
    "NormalInverseWishart": "pgmult.priors",
    "StickBreaking": "pgmult.links",
    "as_corpus": "pgmult.corpus",
    "split_tokens": "pgmult.corpus",
}

if TYPE_CHECKING:
    from pgmult.corpus import Corpus, as_corpus, split_tokens
    from pgmult.heldout import DocumentCompletion
    from pgmult.links import LogisticNormal, StickBreaking
    from pgmult.models.lda import LDA
    from pgmult.models.topics import CorrelatedTopics
    from pgmult.potentials import DensePotential, DiagonalPotential
    from pgmult.priors import Dirichlet, MvNormal, NormalInverseWishart

__all__ = [
    "LDA",
    "Corpus",
    "CorrelatedTopics",
    "DensePotential",
    "DiagonalPotential",
    "Dirichlet",
    "DocumentCompletion",
    "LogisticNormal",
    "MvNormal",
    "NormalInverseWishart",
    "StickBreaking",
    "__version__",
    "as_corpus",
    "split_tokens",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'pgmult' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
