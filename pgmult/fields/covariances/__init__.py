"""Covariance functions of Gaussian processes: families, combinations, spheres, hyperparameters.

Every family is a correlation (1 at distance 0); a number in front is the variance, so that no two
parameters of a product say the same thing. Families act on the columns named by ``active`` and are
combined by ``+`` and ``*``.

>>> import numpy as np
>>> covariance = 2.0 * Matern(1.5, length_scale=10.0, active=[0]) + White(0.1)
>>> covariance.cov(np.array([[0.0], [10.0]])).round(3)
array([[2.1  , 0.967],
       [0.967, 2.1  ]])
>>> covariance.param_names
('Constant.var', 'Matern.length_scale', 'White.var')

Parameters are positive, and are moved by their logarithms, each with a prior: unless told
otherwise log-normal, its median the value given, a standard deviation of 1 on the log scale.
"""

from pgmult.fields.covariances.base import Constant, Covariance, Product, Sum
from pgmult.fields.covariances.conversion import from_sklearn
from pgmult.fields.covariances.families import (
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
    White,
)
from pgmult.fields.covariances.hyperpriors import HalfNormal, LogNormal
from pgmult.fields.covariances.sphere import Chordal, GreatCircle

__all__ = [
    "Chordal",
    "Constant",
    "Covariance",
    "GreatCircle",
    "HalfNormal",
    "Linear",
    "LogNormal",
    "Matern",
    "Periodic",
    "Product",
    "RationalQuadratic",
    "SquaredExponential",
    "Sum",
    "White",
    "from_sklearn",
]
