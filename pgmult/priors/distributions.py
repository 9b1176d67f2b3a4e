"""Distributions of single parameters, for priors: ``priors={"(1 | state)": HalfT(3, 0.5)}``.

>>> print(HalfT(3, 0.5), Normal(0, 2.5), LKJ(2), LogNormal(10, 0.5))
HalfT(3, 0.5) Normal(0, 2.5) LKJ(2) LogNormal(10, 0.5)
"""

import math
from dataclasses import astuple, dataclass

import numpy as np

from pgmult.core.parameters import Checked, Positive
from pgmult.core.typing import FloatArray, Generator

_LOG_2PI = math.log(2.0 * math.pi)


class _Distribution(Checked):
    __slots__ = ()

    def __str__(self) -> str:
        numbers = ", ".join(f"{number:.3g}" for number in astuple(self))  # type: ignore[call-overload]
        return f"{type(self).__name__}({numbers})"


@dataclass(frozen=True, slots=True)
class Normal(_Distribution):
    """A normal distribution of coefficients.

    Attributes
    ----------
    mean, sd : float
    """

    mean: float = 0.0
    sd: Positive = 2.5


@dataclass(frozen=True, slots=True)
class HalfT(_Distribution):
    """A distribution of standard deviations: the scale times |t|, t a Student t variable.

    Attributes
    ----------
    dof, scale : float
    """

    dof: Positive = 3.0
    scale: Positive = 1.0


@dataclass(frozen=True, slots=True)
class Horseshoe(_Distribution):
    """A distribution of coefficients, of which most are nearly 0 and some are not.

    They are N(0, s^2 l_j^2) with half-Cauchy s and l_j (Carvalho, Polson and Scott 2010).

    Attributes
    ----------
    scale : float
        Parameters of the distribution of s.
    """

    scale: Positive = 1.0


@dataclass(frozen=True, slots=True)
class LKJ(_Distribution):
    """A distribution of correlation matrices (Lewandowski et al. 2009).

    Its density is proportional to |R|^(eta - 1).

    Attributes
    ----------
    eta : float
        1 is uniform; more, nearer to independence.
    """

    eta: Positive = 2.0


@dataclass(frozen=True, slots=True)
class LogNormal(_Distribution):
    """log x is normal around log(median): x is within a factor exp(2 sd) in 95 of 100.

    Of length scales, and of other positive parameters.

    Attributes
    ----------
    median : float
    sd : float
        Of the logarithm.
    """

    median: Positive = 1.0
    sd: Positive = 1.0

    def log_density(self, log_x: FloatArray) -> FloatArray:
        """Normalised log density of log x (not of x), elementwise."""
        z = (log_x - math.log(self.median)) / self.sd
        return np.asarray(-0.5 * (z * z + _LOG_2PI) - math.log(self.sd))

    def sample(self, rng: Generator, shape: tuple[int, ...]) -> FloatArray:
        """Draws of log x."""
        return math.log(self.median) + self.sd * rng.standard_normal(shape)
