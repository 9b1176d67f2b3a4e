"""Covariance functions of Gaussian processes: families, combinations, spheres, hyperparameters.

Every family is a correlation (1 at distance 0); a number in front is the variance, so that the
parameters of a product are identified. Families act on the columns named by ``active`` and are
combined by ``+`` and ``*``.

>>> import numpy as np
>>> covariance = 2.0 * Matern(1.5, length_scale=10.0, active=[0]) + White(0.1)
>>> covariance.cov(np.array([[0.0], [10.0]])).round(3)
array([[2.1  , 0.967],
       [0.967, 2.1  ]])
>>> covariance.param_names
('Constant.var', 'Matern.length_scale', 'White.var')

Which one? Real data are usually rougher than smooth covariances allow. Start with

* time: ``Matern(1.5)``, or ``Matern(0.5)`` for quantities that are decided anew every year. Use
  ``Matern(2.5)`` and `SquaredExponential` only for what is known to be smooth: from rough data they
  learn short length scales, and their intervals are then too narrow between and beyond the data.
* places: ``Matern(0.5)`` or ``Matern(1.5)`` of the coordinates (`GreatCircle` for large maps).
* effects of single places: ``+ Constant(1.0) * White(active=places)`` for a level of each, or
  ``Matern(1.5, active=[time]) * White(active=places)`` for a path of each. Without one, intervals
  at places without data are as narrow as those of their neighbours.
* effects of single rows: ``MultinomialGP(..., overdispersion=0.05)``, learned by default where
  counts are large. Without it, variation that all counts of a row share is taken for signal.

Then hold out what you want to predict, a cell, a place or the last years, and use
`FieldPredictions.calibration`. An example with twelve girls' names at full counts, twelve states
and fifty years: the percentage of hidden counts inside 95 % intervals
(``tests/benchmarks/gaussian_processes.py coverage``)::

                                          cells        states       the last years
    2.0 * Matern(2.5, time) * SE(places)  91.1 ± 0.9   75.2 ± 1.7   91.1 ± 1.5
    2.0 * Matern(1.5, time) * Matern(0.5) 91.9 ± 1.0   92.8 ± 0.7   92.4 ± 1.5
    ... + White(0.05)                     93.3 ± 0.8   93.6 ± 0.7   92.2 ± 1.5

Parameters are positive and are sampled on the log scale. The default prior of each is log-normal,
with the value given as its median and a standard deviation of 1 on the log scale.
"""

from pgmult.fields.covariances.base import Constant, Covariance, Product, Sum
from pgmult.fields.covariances.families import Matern, Periodic, SquaredExponential, White
from pgmult.fields.covariances.sphere import GreatCircle
from pgmult.priors.distributions import LogNormal

__all__ = [
    "Constant", "Covariance", "GreatCircle", "LogNormal", "Matern", "Periodic", "Product",
    "SquaredExponential", "Sum", "White",
]  # fmt: skip
