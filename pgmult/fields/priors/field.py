"""Many independent Gaussian functions at n inputs, and what a diagonal potential makes of them.

`Field` is the prior, around 0; `FieldGaussian` the joint distribution of the columns around a trend
and of its coefficients, times a potential, as `pgmult.latent` moves them.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from pgmult.core.parameters import Checked
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import FloatArray, Generator
from pgmult.fields.covariances import Covariance
from pgmult.fields.inputs import as_inputs


class FieldDraw(NamedTuple):
    """One joint draw at new inputs, and the distribution there, the inputs integrated out.

    Attributes
    ----------
    values, mean, var : arrays, ``(m, num_columns)``
    """

    values: FloatArray
    mean: FloatArray
    var: FloatArray


class Trend(NamedTuple):
    """The mean of the columns: ``level + features @ beta``, beta ~ N(centre, var I).

    Attributes
    ----------
    level : array, ``(n, num_columns)``
    features : array, ``(n, num_features)``
    centre : array, ``(num_features, num_columns)``
    var : float
    """

    level: FloatArray
    features: FloatArray
    centre: FloatArray
    var: float

    @classmethod
    def known(cls, level: FloatArray) -> "Trend":
        """A mean that is not learned."""
        n, columns = level.shape
        return cls(level, np.empty((n, 0)), np.empty((0, columns)), 1.0)

    def of(self, columns: slice) -> "Trend":
        """Return the trend of some columns."""
        return self._replace(level=self.level[:, columns], centre=self.centre[:, columns])

    def at(self, beta: FloatArray) -> FloatArray:
        """Return the mean at given coefficients, ``(n, num_columns)``."""
        return np.asarray(self.level + np.einsum("nf,fc->nc", self.features, beta))

    def draw(self, rng: Generator) -> FloatArray:
        """Coefficients from their prior."""
        return np.asarray(self.centre + np.sqrt(self.var) * rng.standard_normal(self.centre.shape))


@dataclass(frozen=True, slots=True, eq=False)
class Field(Checked, ABC):
    """A Gaussian distribution of independent functions with mean 0 at n inputs.

    Attributes
    ----------
    covariance : Covariance
    inputs : array, ``(n, num_input_columns)``
        One axis is taken for one column.
    """

    covariance: Covariance
    inputs: Annotated[FloatArray, as_inputs]

    @abstractmethod
    def condition(self, potential: DiagonalPotential, trend: Trend) -> "FieldGaussian":
        """The posterior of the columns, around a trend, and of its coefficients.

        Square roots of J stand in the algorithms of structured fields, so h must be 0 where J is.
        """

    def sample(self, rng: Generator, num_columns: int) -> FloatArray:
        """One draw at the inputs, ``(n, num_columns)``."""
        return self.colour(rng.standard_normal((len(self.inputs), num_columns)))

    @abstractmethod
    def whiten(self, rng: Generator, values: FloatArray) -> FloatArray:
        """Standard normal noise from which the prior computes the values, ``(m, num_columns)``.

        Where the values do not determine the noise, as where the covariance is singular, it is
        drawn. Its shape and distribution are those of every covariance, so
        ``there.colour(here.whiten(rng, values))`` turns a draw of one prior into one of another.
        """

    @abstractmethod
    def colour(self, noise: FloatArray) -> FloatArray:
        """The values computed from the noise, ``(n, num_columns)``: the inverse of `whiten`."""

    def draw(
        self, rng: Generator, potential: DiagonalPotential, new: FloatArray, mean: FloatArray
    ) -> FieldDraw:
        """A joint draw at new inputs given a potential, and means and variances there.

        `mean` is the prior mean, ``(n + m, num_columns)``: at the inputs, then at the new ones.
        """
        n = len(self.inputs)
        J, h = np.zeros((2, *mean.shape))
        J[:n], h[:n] = potential.J, potential.h
        wider = type(self)(self.covariance, np.concatenate([self.inputs, new]))
        gaussian = wider.condition(DiagonalPotential(J, h), Trend.known(mean))
        values, mean, var = gaussian.sample(rng), gaussian.mean, gaussian.variances
        return FieldDraw(values[n:], mean[n:], var[n:])

    @property
    def _key(self) -> tuple[Covariance, bytes, tuple[int, int]]:
        """Key under which a covariance at the inputs is cached."""
        num_inputs, width = self.inputs.shape
        return self.covariance, self.inputs.tobytes(), (num_inputs, width)


class FieldGaussian(ABC):
    """The Gaussian of w: columns of a field around a trend, and below them its coefficients.

    Everything follows from the posterior covariance times a vector, by Matheron's rule: a draw is
    one of the prior with an error of each site, moved to the mean given what both leave
    unexplained. Arrays are ``(n + num_features, num_columns)``.

    Parameters
    ----------
    field : Field
    potential : DiagonalPotential, ``(n, num_columns)``
    trend : Trend
    """

    def __init__(self, field: Field, potential: DiagonalPotential, trend: Trend):
        self.field, self.trend, self.J, self.h = field, trend, potential.J, potential.h

    @abstractmethod
    def solve(self, g: FloatArray) -> FloatArray:
        """The posterior covariance times g, which is 0 where J is, and of the coefficients."""

    @property
    @abstractmethod
    def log_normalizers(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``.

        As a function of the covariance's parameters it is their likelihood given the potential,
        the field integrated out.
        """

    @cached_property
    def log_evidence(self) -> float:
        """Sum of `log_normalizers` over columns."""
        return float(self.log_normalizers.sum())

    @cached_property
    def mean(self) -> FloatArray:
        """Means of w."""
        return self._around(np.zeros_like(self.J), self.trend.centre, np.zeros_like(self.J))

    def sample(self, rng: Generator) -> FloatArray:
        """A draw of w."""
        errors = rng.standard_normal(self.J.shape)
        beta = self.trend.draw(rng)
        return self._around(self.field.sample(rng, self.J.shape[1]), beta, errors)

    @property
    @abstractmethod
    def variances(self) -> FloatArray:
        """Variances of the columns, ``(n, num_columns)``."""

    def white(self, rng: Generator, w: FloatArray) -> tuple[FloatArray, ...]:
        """A draw of the noise that `colour` makes w of, given w: of field, trend and errors.

        Given a draw of w, the field's own is any moved by as much as its draw of w is off, and
        likewise coefficients and errors.
        """
        n, num_columns = self.J.shape
        f, beta = self.field.sample(rng, num_columns), self.trend.draw(rng)
        errors = rng.standard_normal(self.J.shape)
        off, off_beta = np.split(w - self._around(f, beta, errors), [n])
        f = f + off - np.einsum("nf,fc->nc", self.trend.features, off_beta)
        return self.field.whiten(rng, f), beta + off_beta, errors - np.sqrt(self.J) * off

    def colour(self, noise: tuple[FloatArray, ...]) -> FloatArray:
        """The w that noise stands for, here as at any other hyperparameters."""
        of_field, beta, errors = noise
        return self._around(self.field.colour(of_field), beta, errors)

    @property
    def _centre(self) -> FloatArray:
        """Prior means of the columns."""
        return self.trend.at(self.trend.centre)

    def _around(self, f: FloatArray, beta: FloatArray, errors: FloatArray) -> FloatArray:
        """Mean of w around the trend and f, given the potential with errors."""
        at_inputs = f + self.trend.at(beta)
        pull = self.h - np.sqrt(self.J) * errors - self.J * at_inputs
        w = np.concatenate([at_inputs, beta])
        return np.asarray(w + self.solve(np.concatenate([pull, np.zeros_like(beta)])))
