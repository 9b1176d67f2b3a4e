"""Gaussian laws of many independent functions at n inputs, times a diagonal potential: methods.

`Field` lists the methods. A `Process` has one covariance function for all columns. The dense
`pgmult.fields.GaussianProcess` computes each of them by itself; a `StructuredField` derives them
all from one method, `_solve`.
"""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from pgmult.core.parameters import Checked
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import ArrayLike, FloatArray, IntArray
from pgmult.core.validate import as_finite, as_generator, as_nonnegative
from pgmult.fields.covariances import Covariance
from pgmult.fields.covariances.base import as_covariance
from pgmult.fields.inputs import as_inputs

__all__ = [
    "Asked",
    "DrawnTrend",
    "Field",
    "FieldDraw",
    "Process",
    "Solved",
    "StructuredField",
    "Trend",
    "check_columns",
    "features_at",
]

NOTHING = np.empty((0, 0))
NO_KEY = np.zeros(2, dtype=np.uint64)  # of streams that nothing is drawn from


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


class Field(Checked, ABC):
    """A Gaussian law of ``num_columns`` independent functions at n inputs.

    ``new_mean`` is the prior mean at new inputs: a number, ``(num_columns,)`` or
    ``(m, num_columns)``. Left out, it is each column's prior mean at the inputs, which must then be
    the same at all of them.
    """

    __slots__ = ()

    @abstractmethod
    def condition(self, potential: DiagonalPotential) -> "Field":
        """The posterior: this times `potential`, ``(n, num_columns)``, h = 0 where J = 0."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw at the inputs, ``(n, num_columns)``."""

    @abstractmethod
    def sample_with_trend(
        self, rng: np.random.Generator, trend: Trend
    ) -> tuple[FloatArray, FloatArray]:
        """A joint draw of the columns and of the coefficients of a trend added to them.

        Costs little more than `sample`.

        Returns
        -------
        columns : array, ``(n, num_columns)``
            The trend included.
        beta : array, ``(num_features, num_columns)``
        """

    @abstractmethod
    def mean(self) -> FloatArray:
        """Means at the inputs, ``(n, num_columns)``."""

    @abstractmethod
    def with_mean(self, mean: FloatArray) -> "Field":
        """The same with another prior mean at the inputs, ``(n, num_columns)``."""

    @property
    def whitens(self) -> bool:
        """Whether `whiten` and `colour` are at hand at these inputs."""
        return True

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
    def log_normalizer_with_trend(self, trend: Trend) -> FloatArray:
        """The same, ``(num_columns,)``, with a trend added and integrated out."""

    @abstractmethod
    def mean_with_trend(self, trend: Trend) -> tuple[FloatArray, FloatArray]:
        """Means of the columns, a trend included, and of its coefficients; as `sample_with_trend`.

        Costs as much as `log_normalizer_with_trend`.
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


@dataclass(frozen=True, slots=True, eq=False)
class Process(Field):
    """A field whose columns share a covariance function.

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

    def with_mean(self, mean: FloatArray) -> Self:
        """The same with another prior mean at the inputs, ``(n, num_columns)``."""
        return self._with(prior_mean=_as_prior_mean(mean, len(self.inputs)))

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


class DrawnTrend(NamedTuple):
    """A trend around 0 and coefficients drawn from it.

    Attributes
    ----------
    features : array, ``(n, num_features)``
    var : float
    coefficients : array, ``(num_columns, num_features)``
    """

    features: FloatArray
    var: float
    coefficients: FloatArray


class Asked(NamedTuple):
    """What a structure is asked for; a draw if there is a generator.

    A draw is joint with that of a trend, which it does not include.
    """

    new: FloatArray
    rng: np.random.Generator | None = None
    log_normalizers: bool = False
    means: bool = False
    variances: bool = False
    trend: DrawnTrend | None = None


class Solved(NamedTuple):
    """What a structure finds of the columns minus their prior means; empty where not asked for.

    ``means`` and ``draws`` are at the inputs and after them at the new inputs, ``(n + m,
    num_columns)``, ``vars`` at the new inputs, ``(m, num_columns)``, ``coefficients`` those of a
    trend, drawn along with the draws, ``(num_columns, num_features)``.
    """

    log_normalizers: FloatArray = NOTHING
    means: FloatArray = NOTHING
    draws: FloatArray = NOTHING
    vars: FloatArray = NOTHING
    coefficients: FloatArray = NOTHING


class StructuredField(Process):
    """All methods of a field, derived from one, `_solve`."""

    __slots__ = ()

    @abstractmethod
    def _solve(self, asked: Asked) -> Solved:
        """What is asked for, of the centred columns."""

    def _ask(self, new: FloatArray | None = None, **asked: Any) -> Solved:
        return self._solve(Asked(self.inputs[:0] if new is None else new, **asked))

    def log_normalizer(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``."""
        if self.potential is None:
            return np.zeros(self.shape[1])
        J, h = self.potential.J, self.potential.h
        shift = np.sum(self._means * (h - 0.5 * J * self._means), axis=0)
        return np.asarray(shift + self._ask(log_normalizers=True).log_normalizers)

    def log_normalizer_with_trend(self, trend: Trend) -> FloatArray:
        """The same, ``(num_columns,)``, with a trend added and integrated out.

        Solves once more for each feature: the log normalizer is quadratic in the coefficients, with
        the slope features'(h - J mean).
        """
        centre, var = trend.centre, trend.var
        around = self._with(prior_mean=self._means + trend.at(centre))
        if self.potential is None or not len(centre):
            return around.log_normalizer()
        J, h, level = self.potential.J, self.potential.h, around._means
        solved = around._ask(log_normalizers=True, means=True)
        out = solved.log_normalizers + np.sum(level * (h - 0.5 * J * level), axis=0)
        precision, slope = around._slope_along(trend, level + solved.means)
        shift = np.linalg.solve(precision, slope[..., None])[..., 0]
        out += 0.5 * np.sum(slope * shift, axis=1)
        return np.asarray(out - 0.5 * np.linalg.slogdet(var * precision)[1])

    def mean_with_trend(self, trend: Trend) -> tuple[FloatArray, FloatArray]:
        """Means of the columns, a trend included, and of its coefficients."""
        centre = trend.centre
        around = self._with(prior_mean=self._means + trend.at(centre))
        mean = around.mean()
        if self.potential is None or not len(centre):
            return mean, np.array(centre)
        precision, slope = around._slope_along(trend, mean)
        shift = np.asarray(np.linalg.solve(precision, slope[..., None])[..., 0].T, dtype=np.float64)
        return around._with(prior_mean=around._means + trend.at(shift)).mean(), centre + shift

    def _slope_along(self, trend: Trend, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Precision of the coefficients around these means, and the slope at the centre."""
        assert self.potential is not None
        features, J, h = trend.features, self.potential.J, self.potential.h
        slope = np.einsum("nf,nc->cf", features, h - J * mean)
        precision = np.empty((*slope.shape, features.shape[1]))
        for f in range(features.shape[1]):
            moved = self._with(prior_mean=self._means + features[:, [f]])
            precision[:, :, f] = np.einsum("nf,nc->cf", features, J * (moved.mean() - mean))
        precision = 0.5 * (precision + precision.transpose(0, 2, 1))
        return precision + np.eye(features.shape[1]) / trend.var, slope

    def mean(self) -> FloatArray:
        """Means at the inputs, ``(n, num_columns)``."""
        return np.asarray(self._means + self._ask(means=True).means)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw at the inputs, ``(n, num_columns)``."""
        return np.asarray(self._means + self._ask(rng=as_generator(rng)).draws)

    def sample_with_trend(
        self, rng: np.random.Generator, trend: Trend
    ) -> tuple[FloatArray, FloatArray]:
        """A joint draw of the columns and of the coefficients of a trend added to them."""
        features, centre, var = trend
        noise = as_generator(rng).standard_normal(centre.T.shape)
        drawn = DrawnTrend(np.ascontiguousarray(features), var, np.sqrt(var) * noise)
        level = self._means + trend.at(centre)
        solved = self._with(prior_mean=level)._ask(rng=rng, trend=drawn)
        moved = np.einsum("nf,cf->nc", features, solved.coefficients)
        return level + moved + solved.draws, np.asarray(centre + solved.coefficients.T)

    def predict(
        self, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances at new inputs, ``(m, num_columns)``; the inputs integrated out."""
        new, centre = self._new(new_inputs, new_mean)
        solved = self._ask(new, means=True, variances=True)
        return centre + solved.means[len(self.inputs) :], solved.vars

    def draw(
        self, rng: np.random.Generator, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> FieldDraw:
        """A joint draw at the inputs and at new ones, and `predict` at the latter."""
        new, centre = self._new(new_inputs, new_mean)
        solved = self._ask(new, rng=as_generator(rng), means=True, variances=True)
        n = len(self.inputs)
        return FieldDraw(
            self._means + solved.draws[:n],
            centre + solved.draws[n:],
            centre + solved.means[n:],
            solved.vars,
        )

    def _centred(self) -> tuple[FloatArray, FloatArray]:
        """J and h of the centred columns, ``(n, num_columns)``."""
        if self.potential is None:
            return np.zeros(self.shape), np.zeros(self.shape)
        return self.potential.J, self.potential.h - self.potential.J * self._means


def features_at(cells: IntArray, num_cells: int, trend: DrawnTrend | None) -> FloatArray:
    """Features by cell, ``(num_features, num_cells)``, 0 where no input is.

    `cells` are those of the inputs; inputs in one cell must have the same features.
    """
    if trend is None:
        return np.zeros((0, num_cells))
    out = np.zeros((trend.features.shape[1], num_cells))
    out[:, cells] = trend.features.T
    if (out[:, cells] != trend.features.T).any():
        raise ValueError("the features of a trend must agree where inputs are equal")
    return out


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
