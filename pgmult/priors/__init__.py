"""Priors that are conjugate to what the links emit: each has a method ``condition``."""

from pgmult.priors.dirichlet import Dirichlet
from pgmult.priors.gaussian import MvNormal, NormalInverseWishart
from pgmult.priors.laws import LKJ, HalfT, Horseshoe, LogNormal, Normal
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart
from pgmult.priors.scales import HalfTScales

__all__ = [
    "LKJ",
    "Dirichlet",
    "HalfT",
    "HalfTScales",
    "Horseshoe",
    "LogNormal",
    "MatrixNormalInverseWishart",
    "MvNormal",
    "Normal",
    "NormalInverseWishart",
]
