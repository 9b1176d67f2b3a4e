"""Priors that are conjugate to what the links emit: each has a method ``condition``."""

from pgmult.priors.dirichlet import Dirichlet
from pgmult.priors.distributions import LKJ, HalfT, Horseshoe, LogNormal, Normal
from pgmult.priors.gaussian import MvNormal, NormalInverseWishart
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart

__all__ = [
    "LKJ", "Dirichlet", "HalfT", "Horseshoe", "LogNormal", "MatrixNormalInverseWishart",
    "MvNormal", "Normal", "NormalInverseWishart",
]  # fmt: skip
