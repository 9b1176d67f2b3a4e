r"""Families of covariance functions, on the columns named by ``active``.

With r^2 = sum_d (x_d - y_d)^2 / length_scale^2 (Rasmussen and Williams 2006, chapter 4)::

    SquaredExponential   exp(-r^2 / 2)
    Matern 1/2           exp(-r)
    Matern 3/2           (1 + sqrt(3) r) exp(-sqrt(3) r)
    Matern 5/2           (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)
    Periodic             exp(-2 sum_d sin^2(pi (x_d - y_d) / period) / length_scale^2)
    Constant             var
    White                var where x = y, 0 elsewhere

A length scale serves all active columns; for one a column multiply families of a column each.
``priors`` maps a parameter's name to its prior and ``fixed`` names
parameters that are not free; like ``active`` they are given by name.
"""

from dataclasses import dataclass

import numpy as np

from pgmult.core.parameters import Positive
from pgmult.core.typing import FloatArray
from pgmult.fields.covariances.base import ColumnFamily


class Stationary(ColumnFamily):
    """A function k(r^2) of the scaled squared distance alone."""

    length_scale: float

    def profile(self, r2: FloatArray) -> FloatArray:
        """The correlation at r^2."""
        raise NotImplementedError

    def _cov(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        apart = self._apart(X, Y)  # no cancellation between columns
        return self.profile(np.asarray(sum(np.square(x / self.length_scale) for x in apart)))


@dataclass(frozen=True, eq=False)
class SquaredExponential(Stationary):
    """Infinitely smooth: exp(-r^2 / 2)."""

    length_scale: Positive = 1.0

    def profile(self, r2: FloatArray) -> FloatArray:
        """The correlation at r^2."""
        return np.exp(-0.5 * r2)


@dataclass(frozen=True, eq=False)
class Matern(Stationary):
    """nu - 1/2 times differentiable, nu = 0.5, 1.5 or 2.5."""

    nu: float
    length_scale: Positive = 1.0

    def _complete(self) -> None:
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {self.nu} (else SquaredExponential)")

    def profile(self, r2: FloatArray) -> FloatArray:
        """The correlation at r^2."""
        r = np.sqrt(2.0 * self.nu * r2)
        decay = np.exp(-r)
        if self.nu == 0.5:
            return np.asarray(decay)
        return np.asarray((1.0 + r + (r * r / 3.0 if self.nu == 2.5 else 0.0)) * decay)


@dataclass(frozen=True, eq=False)
class Periodic(ColumnFamily):
    """Repeats itself along each column, after one period in all of them."""

    period: Positive = 1.0
    length_scale: Positive = 1.0

    def _cov(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        sines = (np.sin(np.pi * x / self.period) for x in self._apart(X, Y))
        return np.asarray(np.exp(-2.0 * sum(np.square(sine / self.length_scale) for sine in sines)))


@dataclass(frozen=True, eq=False)
class White(ColumnFamily):
    """An independent effect of every distinct input; on some columns, of every distinct value.

    It is a function of the inputs: observations at equal inputs share their effect, whether they
    stand in the training or in the new inputs.
    """

    var: Positive = 1.0

    def _cov(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        same = np.logical_and.reduce([x == 0.0 for x in self._apart(X, Y)])
        return np.where(same, self.var, 0.0)

    def _diagonal(self, X: FloatArray) -> FloatArray:
        return np.full(len(self._select(X)), self.var)
