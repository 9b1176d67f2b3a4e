"""Gaussian laws of many independent functions at n inputs, times a diagonal potential: methods.

`Field` lists the methods, and `FieldLaw` those of the joint law of the columns and of the
coefficients of a trend, as `pgmult.latent` moves them. The dense `GaussianProcess`
has few factors to find for either; a `StructuredField` derives all from two methods: a draw of the
prior, and `_solve`.
"""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from pgmult.core.parameters import Checked
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import ArrayLike, FloatArray
from pgmult.core.validate import as_finite, as_generator, as_nonnegative
from pgmult.fields.covariances import Covariance
from pgmult.fields.covariances.base import as_covariance
from pgmult.fields.inputs import as_inputs

_DRAWS = 12  # that tell variances
NOTHING = np.empty((0, 0))


class FieldDraw(NamedTuple):
    """One joint draw at the inputs and at new ones, and the law at the new ones given no draw.

    Attributes
    ----------
    values : array, ``(n, num_columns)``
    new_values : array, ``(m, num_columns)``
        Drawn jointly with `values`.
    new_mean, new_var : arrays, ``(m, num_columns)``
        With the values at the inputs integrated out.
    """

    values: FloatArray
    new_values: FloatArray
    new_mean: FloatArray
    new_var: FloatArray


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
        """What given coefficients add, ``(n, num_columns)``."""
        return np.asarray(np.einsum("nf,fc->nc", self.features, beta))


@dataclass(frozen=True, slots=True, eq=False)
class Field(Checked, ABC):
    """A Gaussian law of ``num_columns`` independent functions at n inputs.

    ``new_mean`` is the prior mean at new inputs: a number, ``(num_columns,)`` or
    ``(m, num_columns)``. Left out, it is each column's prior mean at the inputs, which must then be
    the same at all of them.

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
    def law(self, trend: Trend) -> "FieldLaw":
        """That of the columns with a trend added, and of its coefficients."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw at the inputs, ``(n, num_columns)``."""

    @abstractmethod
    def mean(self) -> FloatArray:
        """Means at the inputs, ``(n, num_columns)``."""

    @abstractmethod
    def whiten(self, rng: np.random.Generator, values: FloatArray) -> FloatArray:
        """Standard normal noise from which the prior computes the values, ``(m, num_columns)``.

        Potentials are ignored. Where the values do not determine the noise, as where the covariance
        is singular, it is drawn. The noise has the same shape and law for every covariance, so
        ``there.colour(here.whiten(rng, values))`` turns a draw of one prior into one of another.
        """

    @abstractmethod
    def colour(self, noise: FloatArray) -> FloatArray:
        """The values computed from the noise, ``(n, num_columns)``: the inverse of `whiten`."""

    @abstractmethod
    def log_normalizer(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``.

        As a function of the covariance's parameters it is their likelihood given the potential,
        the field integrated out.
        """

    @abstractmethod
    def predict(
        self, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances at new inputs, ``(m, num_columns)``; the inputs integrated out."""

    @abstractmethod
    def draw(
        self, rng: np.random.Generator, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> FieldDraw:
        """A joint draw at the inputs and at new ones, and `predict` at the latter."""

    def _complete(self) -> None:
        if 0 in self.inputs.shape:
            raise ValueError(f"inputs must have rows and columns, got shape {self.inputs.shape}")
        self._set(prior_mean=_as_prior_mean(self.prior_mean, len(self.inputs)))

    def _with(self, **values: Any) -> Self:
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
        """The posterior: this times `potential`, ``(n, num_columns)``, h = 0 where J = 0."""
        return self._with(potential=_combined(self.potential, potential, self._means))

    @property
    def _means(self) -> FloatArray:
        return np.asarray(self.prior_mean)

    def _new(
        self, new_inputs: ArrayLike, new_mean: ArrayLike | None
    ) -> tuple[FloatArray, FloatArray]:
        """New inputs and the prior mean there, ``(m, num_columns)``."""
        new = as_inputs(new_inputs, "new_inputs")
        if new.shape[1] != self.inputs.shape[1]:
            raise ValueError(
                f"new_inputs must have {self.inputs.shape[1]} columns, got {new.shape[1]}"
            )
        return new, _as_new_mean(new_mean, self._means, len(new), self.shape[1])


class FieldLaw(ABC):
    """The law of w: columns of a field with a trend added, and below them its coefficients.

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
        seen = field.potential or DiagonalPotential(nothing, nothing)
        self.J, self.h = seen.J, seen.h
        self._prior = field._with(potential=None, prior_mean=np.zeros_like(self.J))

    @abstractmethod
    def solve(self, g: FloatArray) -> FloatArray:
        """The posterior covariance times g, which is 0 where J is, and of the coefficients."""

    @property
    @abstractmethod
    def log_normalizers(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``."""

    @cached_property
    def log_evidence(self) -> float:
        """That of all columns."""
        return float(self.log_normalizers.sum())

    @cached_property
    def mean(self) -> FloatArray:
        """Means of w."""
        centre = self.trend.centre
        return self._around(self._level, centre, np.zeros_like(self.J))

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """A draw of w."""
        errors = rng.standard_normal(self.J.shape)
        beta = self._drawn_coefficients(rng)
        return self._around(self.field._means + self._prior.sample(rng), beta, errors)

    def variances(self, rng: np.random.Generator) -> FloatArray:
        """Of the columns, ``(n, num_columns)``, from a few draws."""
        draws = ((self.sample(rng) - self.mean)[: len(self.J)] for _ in range(_DRAWS))
        return np.asarray(np.mean([draw**2 for draw in draws], axis=0))

    def white(self, rng: np.random.Generator, w: FloatArray) -> tuple[FloatArray, ...]:
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

    def _drawn_coefficients(self, rng: np.random.Generator) -> FloatArray:
        centre = self.trend.centre
        return np.asarray(centre + np.sqrt(self.trend.var) * rng.standard_normal(centre.shape))

    def _around(self, f: FloatArray, beta: FloatArray, errors: FloatArray) -> FloatArray:
        """Mean of w around f and coefficients, given the potential with errors."""
        w = np.concatenate([f + self.trend.at(beta), beta])
        g = np.zeros_like(w)
        n = len(self.J)
        g[:n] = self.h - np.sqrt(self.J) * errors - self.J * w[:n]
        return np.asarray(w + self.solve(g))


class Asked(NamedTuple):
    """What a structure is asked for.

    Attributes
    ----------
    tilts : array, ``(num_tilts, n, num_columns)``
        Values of h for the centred columns, with the J of the potential.
    new : array, ``(m, num_input_columns)``
    log_normalizers : bool
        For the first tilt.
    variances : bool
        At the new inputs.
    """

    tilts: FloatArray
    new: FloatArray
    log_normalizers: bool = False
    variances: bool = False


class Solved(NamedTuple):
    """What a structure finds of the centred columns; empty where not asked for.

    Attributes
    ----------
    means : array, ``(num_tilts, n + m, num_columns)``
        At the inputs and after them at the new inputs.
    log_normalizers : array, ``(num_columns,)``
    vars : array, ``(m, num_columns)``
    """

    means: FloatArray
    log_normalizers: FloatArray = NOTHING
    vars: FloatArray = NOTHING


class StructuredField(Field):
    """All methods of a field, derived from two: `_draw_prior` and `_solve`.

    A draw is one of the prior, moved to the mean given what it leaves unexplained (Matheron's rule:
    Papandreou and Yuille 2010; Durbin and Koopman 2002).
    """

    __slots__ = ()

    @abstractmethod
    def _draw_prior(self, rng: np.random.Generator, new: FloatArray) -> FloatArray:
        """The centred columns as they are a priori, at the inputs and after them at new ones."""

    @abstractmethod
    def _solve(self, asked: Asked) -> Solved:
        """What is asked for."""

    def _ask(self, tilts: list[FloatArray], new: FloatArray | None = None, **asked: Any) -> Solved:
        return self._solve(Asked(np.array(tilts), self.inputs[:0] if new is None else new, **asked))

    def log_normalizer(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``."""
        if self.potential is None:
            return np.zeros(self.shape[1])
        J, h = self.potential.J, self.potential.h
        shift = np.sum(self._means * (h - 0.5 * J * self._means), axis=0)
        return np.asarray(shift + self._ask([self._tilt()], log_normalizers=True).log_normalizers)

    def law(self, trend: Trend) -> FieldLaw:
        """That of the columns with a trend added, and of its coefficients."""
        return StructuredLaw(self, trend)

    def mean(self) -> FloatArray:
        """Means at the inputs, ``(n, num_columns)``."""
        return np.asarray(self._means + self._ask([self._tilt()]).means[0])

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw at the inputs, ``(n, num_columns)``."""
        drawn = self._draw_prior(as_generator(rng), self.inputs[:0])
        if self.potential is not None:
            drawn = drawn + self._ask([self._left_by(rng, drawn)]).means[0]
        return np.asarray(self._means + drawn)

    def predict(
        self, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances at new inputs, ``(m, num_columns)``; the inputs integrated out."""
        new, centre = self._new(new_inputs, new_mean)
        solved = self._ask([self._tilt()], new, variances=True)
        return centre + solved.means[0, len(self.inputs) :], solved.vars

    def draw(
        self, rng: np.random.Generator, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> FieldDraw:
        """A joint draw at the inputs and at new ones, and `predict` at the latter."""
        new, centre = self._new(new_inputs, new_mean)
        drawn, n = self._draw_prior(as_generator(rng), new), len(self.inputs)
        tilts = [self._left_by(rng, drawn[:n]), self._tilt()]
        (moves, means), _, variances = self._ask(tilts, new, variances=True)
        drawn = drawn + moves
        return FieldDraw(self._means + drawn[:n], centre + drawn[n:], centre + means[n:], variances)

    def _left_by(self, rng: np.random.Generator, drawn: FloatArray) -> FloatArray:
        """H less what a draw of the prior explains of it, with an error of each site."""
        J = self._precisions()
        return self._tilt() - J * drawn - np.sqrt(J) * rng.standard_normal(J.shape)

    def _precisions(self) -> FloatArray:
        return np.zeros(self.shape) if self.potential is None else self.potential.J

    def _tilt(self) -> FloatArray:
        """H of the centred columns, ``(n, num_columns)``."""
        if self.potential is None:
            return np.zeros(self.shape)
        return self.potential.h - self.potential.J * self._means


class StructuredLaw(FieldLaw):
    """By solving for the columns alone, also for each feature: w is linear in the coefficients."""

    field: StructuredField

    @property
    def log_normalizers(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``."""
        return self._found[0]

    @cached_property
    def mean(self) -> FloatArray:
        """Means of w."""
        return self._found[1]

    def solve(self, g: FloatArray) -> FloatArray:
        """The posterior covariance times g."""
        tilt = g[: len(self.J)]
        moved = self.field._ask([tilt]).means[0]
        return self._with_shift(moved, np.zeros_like(self.trend.centre), tilt)[0]

    @cached_property
    def _found(self) -> tuple[FloatArray, FloatArray]:
        """Log normalizers and means.

        The log normalizer is quadratic in the coefficients, with the slope features'(h - J mean).
        """
        level = self._level + self.trend.at(self.trend.centre)
        w, gain = self._with_shift(level + self._solved.means[0], self.trend.centre, self.h)
        plain = np.sum(level * (self.h - 0.5 * self.J * level), axis=0)
        return plain + self._solved.log_normalizers + gain, w

    @cached_property
    def _solved(self) -> Solved:
        """Means and log normalizers by the potential's h, and means by J times each feature."""
        level = self._level + self.trend.at(self.trend.centre)
        features = [self.J * feature[:, None] for feature in self.trend.features.T]
        return self.field._ask([self.h - self.J * level, *features], log_normalizers=True)

    @cached_property
    def _along(self) -> tuple[FloatArray, FloatArray]:
        """How means move with each coefficient, and the precision of the coefficients."""
        features, var = self.trend.features, self.trend.var
        moves = features.T[..., None] - self._solved.means[1:]
        precision = np.einsum("nf,gnc->cfg", features, self.J * moves)
        precision = 0.5 * (precision + precision.transpose(0, 2, 1))
        return moves, precision + np.eye(features.shape[1]) / var

    def _with_shift(
        self, psi: FloatArray, centre: FloatArray, h: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """W, from means where the coefficients are at their centre, and what that adds to log Z."""
        if not len(centre):
            return psi, np.zeros(psi.shape[1])
        moves, precision = self._along
        slope = np.einsum("nf,nc->cf", self.trend.features, h - self.J * psi)
        shift = np.linalg.solve(precision, slope[..., None])[..., 0]
        gain = 0.5 * np.sum(slope * shift, axis=1)
        gain -= 0.5 * np.linalg.slogdet(self.trend.var * precision)[1]
        return np.concatenate([psi + np.einsum("fnc,cf->nc", moves, shift), centre + shift.T]), gain


def check_columns(statuses: list[int]) -> None:
    """Refuse if a piece of compiled work returned 1 + the column in which it failed."""
    failed = [status - 1 for status in statuses if status]
    if failed:
        raise ValueError(
            f"column {min(failed)} has no Gaussian posterior: are its J and h, or the covariance,"
            " too large for floating-point numbers?"
        )


def _as_prior_mean(value: ArrayLike, num_inputs: int) -> FloatArray:
    """A prior mean ``(num_inputs, 1 or num_columns)``, from that, ``(num_inputs,)`` or a number."""
    mean = as_finite(value, "prior_mean")
    if mean.ndim == 0:
        return np.full((num_inputs, 1), float(mean))
    if mean.ndim == 1:
        mean = mean[:, None]
    if mean.ndim != 2 or len(mean) != num_inputs:
        raise ValueError(
            f"prior_mean must be a number or have shape ({num_inputs},) or"
            f" ({num_inputs}, columns), got {np.shape(value)}"
        )
    return mean


def _as_new_mean(
    value: ArrayLike | None, prior_mean: FloatArray, num_new: int, num_columns: int
) -> FloatArray:
    """The prior mean at new inputs, ``(num_new, num_columns)``.

    `value` is a number, ``(num_columns,)`` or ``(num_new, num_columns)``; None is the prior mean
    of the inputs, where all of them agree.
    """
    if value is None:
        if len(prior_mean) == 0 or (prior_mean != prior_mean[0]).any():
            raise ValueError(
                "prior_mean differs between inputs, so it does not say what it is at new inputs:"
                " pass new_mean"
            )
        value = prior_mean[0]
    mean = as_finite(value, "new_mean")
    try:
        return np.broadcast_to(mean, (num_new, num_columns))
    except ValueError:
        raise ValueError(
            f"new_mean must be a number or have shape ({num_columns},) or"
            f" ({num_new}, {num_columns}), got {mean.shape}"
        ) from None


def _combined(
    seen: DiagonalPotential | None, new: DiagonalPotential, prior_mean: FloatArray
) -> DiagonalPotential:
    """The product of the potential so far and a new one, ``(n, num_columns)``.

    Square roots of J stand in the algorithms of structured fields, so h must be 0 where J is.
    """
    J, h = as_nonnegative(new.J, "J"), as_finite(new.h, "h")
    n, columns = prior_mean.shape
    columns = columns if columns > 1 or seen is None else seen.J.shape[1]
    expected = f"({n}, {columns if columns > 1 else 'columns'})"
    if J.shape != h.shape or J.ndim != 2 or len(J) != n or columns not in (1, J.shape[1]):
        raise ValueError(
            f"the potential must have shape {expected}, got J {J.shape} and h {h.shape}"
        )
    bad = (J == 0.0) & (h != 0.0)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"h must be 0 where J is 0, got {h[row, column]} at row {row}, column {column}"
            " (a link's potential is, where there is no count)"
        )
    potential = DiagonalPotential(J, h)
    return potential if seen is None else seen + potential
