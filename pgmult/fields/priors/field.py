"""Many independent Gaussian functions at n inputs, times a diagonal potential: methods.

`Field` lists the methods, and `FieldGaussian` those of the joint distribution of the columns and of
the coefficients of a trend, as `pgmult.latent` moves them.
"""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple, Self

import numpy as np

from pgmult.core.parameters import Checked
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import ArrayLike, FloatArray, Generator
from pgmult.fields.covariances import Covariance
from pgmult.fields.covariances.base import as_covariance
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
    """``features @ beta`` added to the columns, beta ~ N(centre, var I).

    Attributes
    ----------
    features : array, ``(n, num_features)``
    centre : array, ``(num_features, num_columns)``
    var : float
    """

    features: FloatArray
    centre: FloatArray
    var: float

    def at(self, beta: FloatArray) -> FloatArray:
        """Return the trend at given coefficients, ``(n, num_columns)``."""
        return np.asarray(np.einsum("nf,fc->nc", self.features, beta))


@dataclass(frozen=True, slots=True, eq=False)
class Field(Checked, ABC):
    """A Gaussian distribution of ``num_columns`` independent functions at n inputs.

    ``new_mean`` is the prior mean at new inputs: a number, ``(num_columns,)`` or
    ``(m, num_columns)``.

    Attributes
    ----------
    covariance : Covariance
    inputs : array, ``(n, num_input_columns)``
        One axis is taken for one column.
    prior_mean : float or array, ``(n,)`` or ``(n, num_columns)``
    potential : DiagonalPotential, ``(n, num_columns)``, or None
        Product of everything conditioned on.
    """

    covariance: Annotated[Covariance, as_covariance]
    inputs: Annotated[FloatArray, as_inputs]
    prior_mean: ArrayLike = 0.0
    potential: DiagonalPotential | None = None

    @abstractmethod
    def with_trend(self, trend: Trend) -> "FieldGaussian":
        """Return the distribution of the columns with a trend added, and of its coefficients."""

    def sample(self, rng: Generator) -> FloatArray:
        """One draw at the inputs, ``(n, num_columns)``."""
        if self.potential is not None:
            return self._alone().sample(rng)
        return self._drawn(rng.standard_normal(self.shape))

    def mean(self) -> FloatArray:
        """Means at the inputs, ``(n, num_columns)``."""
        return np.array(self._means) if self.potential is None else self._alone().mean

    @abstractmethod
    def whiten(self, rng: Generator, values: FloatArray) -> FloatArray:
        """Standard normal noise from which the prior computes the values, ``(m, num_columns)``.

        Potentials are ignored. Where the values do not determine the noise, as where the covariance
        is singular, it is drawn. Its shape and distribution are those of every covariance, so
        ``there.colour(here.whiten(rng, values))`` turns a draw of one prior into one of another.
        """

    @abstractmethod
    def colour(self, noise: FloatArray) -> FloatArray:
        """The values computed from the noise, ``(n, num_columns)``: the inverse of `whiten`."""

    def draw(self, rng: Generator, new_inputs: ArrayLike, new_mean: ArrayLike) -> FieldDraw:
        """A joint draw at new inputs, and means and variances there."""
        gaussian, n = self._widened(new_inputs, new_mean)._alone(), len(self.inputs)
        values, mean, var = gaussian.sample(rng), gaussian.mean, gaussian.variances
        return FieldDraw(values[n:], mean[n:], var[n:])

    def _drawn(self, noise: FloatArray) -> FloatArray:
        """A draw of the prior made of standard normal noise, not always as by `colour`."""
        return self.colour(noise)

    def _complete(self) -> None:
        n, mean = len(self.inputs), np.asarray(self.prior_mean, dtype=np.float64)
        self._set(prior_mean=mean.reshape(n, -1) if mean.ndim else np.full((n, 1), mean))

    def _with(self, **values: object) -> Self:
        """A copy with other fields, all of them checked already."""
        other = copy(self)
        other._set(**values)
        return other

    @property
    def shape(self) -> tuple[int, int]:
        """Inputs and columns."""
        columns = self._means if self.potential is None else self.potential.J
        return len(self.inputs), columns.shape[1]

    def condition(self, potential: DiagonalPotential) -> Self:
        """The posterior: this times `potential`, ``(n, num_columns)``.

        Square roots of J stand in the algorithms of structured fields, so h must be 0 where J is.
        """
        both = potential if self.potential is None else self.potential + potential
        return self._with(potential=both)

    @property
    def _key(self) -> tuple[Covariance, bytes, tuple[int, int]]:
        """Key under which a covariance at the inputs is cached."""
        num_inputs, width = self.inputs.shape
        return self.covariance, self.inputs.tobytes(), (num_inputs, width)

    @property
    def _means(self) -> FloatArray:
        return np.asarray(self.prior_mean)

    def _alone(self) -> "FieldGaussian":
        n, columns = self.shape
        return self.with_trend(Trend(np.empty((n, 0)), np.empty((0, columns)), 1.0))

    def _widened(self, new_inputs: ArrayLike, new_mean: ArrayLike) -> Self:
        """The field at the inputs and at new ones."""
        new = as_inputs(new_inputs, "new_inputs")
        shape = len(new), self.shape[1]
        means = np.broadcast_to(self._means, self.shape), np.broadcast_to(new_mean, shape)
        inputs = np.concatenate([self.inputs, new])
        wider = type(self)(self.covariance, inputs, np.concatenate(means))
        if self.potential is None:
            return wider
        both = (np.concatenate([x, np.zeros(shape)]) for x in (self.potential.J, self.potential.h))
        return wider.condition(DiagonalPotential(*both))


class FieldGaussian(ABC):
    """The Gaussian of w: columns of a field with a trend added, and below them its coefficients.

    Everything follows from the posterior covariance times a vector, by Matheron's rule: a draw is
    one of the prior with an error of each site, moved to the mean given what both leave
    unexplained. Arrays are ``(n + num_features, num_columns)``.

    Parameters
    ----------
    field : Field
        Its potential included.
    trend : Trend
    """

    def __init__(self, field: Field, trend: Trend):
        self.field, self.trend = field, trend
        nothing = np.zeros(field.shape)
        potential = field.potential or DiagonalPotential(nothing, nothing)
        self.J, self.h = potential.J, potential.h
        self._prior = field._with(potential=None, prior_mean=np.zeros_like(self.J))

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
        return self._around(self._level, self.trend.centre, np.zeros_like(self.J))

    def sample(self, rng: Generator) -> FloatArray:
        """A draw of w."""
        errors = rng.standard_normal(self.J.shape)
        beta = self._drawn_coefficients(rng)
        return self._around(self.field._means + self._prior.sample(rng), beta, errors)

    @property
    @abstractmethod
    def variances(self) -> FloatArray:
        """Variances of the columns, ``(n, num_columns)``."""

    def white(self, rng: Generator, w: FloatArray) -> tuple[FloatArray, ...]:
        """A draw of the noise that `colour` makes w of, given w: of field, trend and errors.

        Given a draw of w, the field's own is any moved by as much as its draw of w is off, and
        likewise coefficients and errors.
        """
        n, features = self.J.shape[0], self.trend.features
        f, beta = self._prior.sample(rng), self._drawn_coefficients(rng)
        errors = rng.standard_normal(self.J.shape)
        off, off_beta = np.split(w - self._around(self.field._means + f, beta, errors), [n])
        f = f + off - np.einsum("nf,fc->nc", features, off_beta)
        return self._prior.whiten(rng, f), beta + off_beta, errors - np.sqrt(self.J) * off

    def colour(self, noise: tuple[FloatArray, ...]) -> FloatArray:
        """The w that noise stands for, here as at any other hyperparameters."""
        of_field, beta, errors = noise
        return self._around(self.field._means + self._prior.colour(of_field), beta, errors)

    @property
    def _level(self) -> FloatArray:
        return np.broadcast_to(self.field._means, self.J.shape)

    @property
    def _centre(self) -> FloatArray:
        """Prior means of the columns."""
        return self._level + self.trend.at(self.trend.centre)

    def _drawn_coefficients(self, rng: Generator) -> FloatArray:
        centre = self.trend.centre
        return np.asarray(centre + np.sqrt(self.trend.var) * rng.standard_normal(centre.shape))

    def _around(self, f: FloatArray, beta: FloatArray, errors: FloatArray) -> FloatArray:
        """Mean of w around f and coefficients, given the potential with errors."""
        at_inputs = f + self.trend.at(beta)
        pull = self.h - np.sqrt(self.J) * errors - self.J * at_inputs
        w = np.concatenate([at_inputs, beta])
        return np.asarray(w + self.solve(np.concatenate([pull, np.zeros_like(beta)])))
