r"""Gaussian processes at a finite set of sites: many independent columns that share a covariance.

Column k of psi, at sites x_1, ..., x_n, times the potentials it was conditioned on::

    psi_k  ~  N(psi_k | prior_mean_k, K) exp(-psi_k' diag(J_k) psi_k / 2 + h_k' psi_k),

with K the covariance function at the sites. Nothing is ever inverted but I + J^1/2 K J^1/2, so K
may be singular (a smooth covariance at close sites is, to rounding), J may be 0 (a missing row),
and no jitter is added.

>>> import numpy as np
>>> from pgmult.core.potentials import DiagonalPotential
>>> from pgmult.fields.covariances import SquaredExponential
>>> field = GaussianProcess(SquaredExponential(2.0), np.arange(3.0))
>>> seen = DiagonalPotential(J=np.array([[4.0], [0.0], [0.0]]), h=np.array([[4.0], [0.0], [0.0]]))
>>> field.condition(seen).mean().round(3)
array([[0.8  ],
       [0.706],
       [0.485]])
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from pgmult.compiled.rows import over_rows
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import ArrayLike, FloatArray
from pgmult.core.validate import as_finite, as_generator, new_key
from pgmult.fields.compiled.dense_fields import (
    column_log_normalizers,
    lower_root,
    mean_columns,
    predict_columns,
    sample_columns,
)
from pgmult.fields.covariances import Covariance
from pgmult.fields.inputs import as_inputs
from pgmult.fields.priors.field import Field, FieldDraw, Process, Trend
from pgmult.fields.priors.roots import SymmetricRoot, colour, whiten

__all__ = ["GaussianProcess", "IndependentFields"]


@dataclass(frozen=True, slots=True, eq=False)
class GaussianProcess(Process):
    """Independent columns with one covariance function, exactly, by dense linear algebra.

    Attributes
    ----------
    covariance, inputs, prior_mean, potential
        As in every `pgmult.fields.priors.field.Process`.

    Raises
    ------
    ValueError
        If shapes do not agree, J is negative, or the covariance is not positive semi-definite.

    Notes
    -----
    A draw costs O(n**3) once, for the prior, and O(m**3) a column, m the sites with J > 0.
    """

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw at the sites, ``(n, num_columns)``; columns run on all threads given."""
        return self.sample_with_trend(rng, self._no_trend())[0]

    def sample_with_trend(
        self, rng: np.random.Generator, trend: Trend
    ) -> tuple[FloatArray, FloatArray]:
        """A joint draw of the columns and of a trend, for the price of `sample`."""
        as_generator(rng)
        features, centre, var = trend
        root = _root_of(self.covariance, self.inputs.tobytes(), self.inputs.shape)
        features = np.ascontiguousarray(features)
        trend_cov = np.ascontiguousarray(var * features.T)
        cov = self._cov()
        if features.shape[1]:
            cov = cov + np.einsum("if,fj->ij", features, trend_cov)
        mean, J, h = self._columns()
        beta, out = np.array(centre.T, order="C"), np.empty_like(J)
        over_rows(
            sample_columns, len(J), cov, root, mean, features, np.sqrt(var), J, h, new_key(rng),
            trend_cov, beta, out, grain=1,
        )  # fmt: skip
        return np.ascontiguousarray(out.T), np.ascontiguousarray(beta.T)

    def mean(self) -> FloatArray:
        """Means at the sites, ``(n, num_columns)``."""
        if self.potential is None:
            return np.array(self._means)
        cov = self._cov()
        mean, J, h = self._columns()
        out = np.empty_like(J)
        over_rows(mean_columns, len(J), cov, cov, mean, J, h, mean, out, grain=1)
        return np.ascontiguousarray(out.T)

    def whiten(self, rng: np.random.Generator, values: FloatArray) -> FloatArray:
        """Noise of the values, by a triangular root or, of a singular covariance, a symmetric one.

        O(n**3) once.
        """
        centred, (root, symmetric) = values - self._means, self._roots()
        if symmetric is None:
            return np.asarray(solve_triangular(root, centred, lower=True))
        return whiten([symmetric], centred, as_generator(rng).standard_normal(centred.shape))

    def colour(self, noise: FloatArray) -> FloatArray:
        """The values that noise makes, ``(n, num_columns)``."""
        root, symmetric = self._roots()
        if symmetric is None:
            return np.asarray(self._means + np.einsum("ij,jc->ic", root, noise))
        return self._means + colour([symmetric], noise)

    def _roots(self) -> tuple[FloatArray, SymmetricRoot | None]:
        key = self.covariance, self.inputs.tobytes(), self.inputs.shape
        root = _root_of(*key)
        return root, None if root[-1, -1] > 0.0 else _symmetric_root_of(*key)

    def log_normalizer(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``."""
        return self.log_normalizer_with_trend(self._no_trend())

    def log_normalizer_with_trend(self, trend: Trend) -> FloatArray:
        """The same, ``(num_columns,)``, with a trend added and integrated out."""
        if self.potential is None:
            return np.zeros(self.shape[1])
        cov, (mean, J, h) = self._columns_with(trend)
        out = np.empty(len(J))
        over_rows(column_log_normalizers, len(J), cov, mean, J, h, out, grain=1)
        return out

    def mean_with_trend(self, trend: Trend) -> tuple[FloatArray, FloatArray]:
        """Means of the columns, a trend included, and of its coefficients."""
        cov, (prior, J, h) = self._columns_with(trend)
        out = np.array(np.broadcast_to(prior, J.shape))
        over_rows(mean_columns, len(J), cov, cov, prior, J, h, prior, out, grain=1)
        beta = trend.centre + trend.var * np.einsum("nf,cn->fc", trend.features, h - J * out)
        return np.ascontiguousarray(out.T), beta

    def predict(
        self, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances at new inputs, ``(m, num_columns)`` each.

        The values at the sites are integrated out (Linderman, Johnson and Adams 2015, appendix B).
        """
        new, centre = self._new(new_inputs, new_mean)
        cov, cross = self._cov(), self.covariance.cov(new, self.inputs)
        mean, J, h = self._columns()
        means, variances = np.empty((len(J), len(new))), np.empty((len(J), len(new)))
        over_rows(
            predict_columns, len(J), cov, cross, self.covariance.diagonal(new), mean, J, h,
            np.ascontiguousarray(centre.T), means, variances, grain=1,
        )  # fmt: skip
        return np.ascontiguousarray(means.T), np.ascontiguousarray(variances.T)

    def draw(
        self, rng: np.random.Generator, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> FieldDraw:
        """A joint draw at the sites and at new inputs, and `predict` at the latter."""
        new, centre = self._new(new_inputs, new_mean)
        n, columns = self.shape
        mean = np.broadcast_to(self._means, (n, columns))
        wider = GaussianProcess(
            self.covariance, np.concatenate([self.inputs, new]), np.concatenate([mean, centre])
        )
        if self.potential is not None:
            unseen = np.zeros((len(new), columns))
            J, h = (np.concatenate([a, unseen]) for a in (self.potential.J, self.potential.h))
            wider = wider.condition(DiagonalPotential(J, h))
        values = wider.sample(rng)
        return FieldDraw(values[:n], values[n:], *self.predict(new_inputs, new_mean))

    def _no_trend(self) -> Trend:
        n, columns = self.shape
        return Trend(np.empty((n, 0)), np.empty((0, columns)), 1.0)

    def _cov(self) -> FloatArray:
        return _cov_of(self.covariance, self.inputs.tobytes(), self.inputs.shape)

    def _columns_with(
        self, trend: Trend
    ) -> tuple[FloatArray, tuple[FloatArray, FloatArray, FloatArray]]:
        """The covariance with a trend's added, and `_columns` around its centre."""
        features = trend.features
        if not features.shape[1]:
            return self._cov(), self._columns()
        cov = self._cov() + trend.var * np.einsum("if,jf->ij", features, features)
        return cov, self._with(prior_mean=self._means + trend.at(trend.centre))._columns()

    def _columns(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Means, J and h with a column in each row."""
        if self.potential is None:
            empty = np.zeros(self.shape[::-1])
            return np.ascontiguousarray(self._means.T), empty, empty
        parts = (self._means, self.potential.J, self.potential.h)
        mean, J, h = (np.ascontiguousarray(part.T) for part in parts)
        return mean, J, h


@lru_cache(maxsize=4)  # a sweep asks for the same matrices several times
def _cov_of(covariance: Covariance, inputs: bytes, shape: tuple[int, int]) -> FloatArray:
    return covariance.cov(np.frombuffer(inputs).reshape(shape))


@lru_cache(maxsize=4)
def _root_of(covariance: Covariance, inputs: bytes, shape: tuple[int, int]) -> FloatArray:
    return _root(_cov_of(covariance, inputs, shape), np.frombuffer(inputs).reshape(shape))


@lru_cache(maxsize=4)
def _symmetric_root_of(
    covariance: Covariance, inputs: bytes, shape: tuple[int, int]
) -> SymmetricRoot:
    return SymmetricRoot.of(_cov_of(covariance, inputs, shape))


def _root(cov: FloatArray, inputs: FloatArray) -> FloatArray:
    """A lower triangular root of the covariance, which may be singular."""
    root, row = lower_root(cov)
    if row >= 0:
        raise ValueError(
            f"the covariance is not positive semi-definite: it fails at input {row},"
            f" {inputs[row]}, by more than rounding (1e-8 of the largest variance is tolerated and"
            " no jitter is added; is it a distance that the family is not valid for?)"
        )
    return np.asarray(root)


@dataclass(frozen=True, slots=True, eq=False)
class IndependentFields(Field):
    """Fields of one column each, side by side: columns with covariances of their own.

    Attributes
    ----------
    fields : sequence of Field
        One a column, at the same sites.
    """

    fields: Sequence[Field]

    def condition(self, potential: DiagonalPotential) -> "IndependentFields":
        """The posterior: this times `potential`, ``(n, num_columns)``."""
        if potential.J.shape[-1] != len(self.fields):
            raise ValueError(
                f"the potential must have {len(self.fields)} columns, got {potential.J.shape}"
            )
        columns = (
            DiagonalPotential(potential.J[:, [k]], potential.h[:, [k]])
            for k in range(len(self.fields))
        )
        return IndependentFields(
            [f.condition(column) for f, column in zip(self.fields, columns, strict=True)]
        )

    def _each(self, ask: Callable[[Field, int], Any]) -> Any:
        """What each field says, side by side: an array, or several."""
        said = [ask(field, k) for k, field in enumerate(self.fields)]
        if not isinstance(said[0], tuple):
            return np.concatenate(said, axis=-1)
        return tuple(np.concatenate(parts, axis=-1) for parts in zip(*said, strict=True))

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw at the sites, ``(n, num_columns)``."""
        return np.asarray(self._each(lambda f, k: f.sample(rng)))

    def sample_with_trend(
        self, rng: np.random.Generator, trend: Trend
    ) -> tuple[FloatArray, FloatArray]:
        """A joint draw of the columns and of a trend added to them."""
        columns, beta = self._each(lambda f, k: f.sample_with_trend(rng, _column(trend, k)))
        return columns, beta

    def mean(self) -> FloatArray:
        """Means at the sites, ``(n, num_columns)``."""
        return np.asarray(self._each(lambda f, k: f.mean()))

    def with_mean(self, mean: FloatArray) -> "IndependentFields":
        """The same with another prior mean at the sites, ``(n, num_columns)``."""
        return IndependentFields([f.with_mean(mean[:, [k]]) for k, f in enumerate(self.fields)])

    @property
    def whitens(self) -> bool:
        """Whether all fields do."""
        return all(field.whitens for field in self.fields)

    def whiten(self, rng: np.random.Generator, values: FloatArray) -> FloatArray:
        """The noise of each column."""
        return np.asarray(self._each(lambda f, k: f.whiten(rng, values[:, [k]])))

    def colour(self, noise: FloatArray) -> FloatArray:
        """The values that noise makes, ``(n, num_columns)``."""
        return np.asarray(self._each(lambda f, k: f.colour(noise[:, [k]])))

    def log_normalizer(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``."""
        return np.asarray(self._each(lambda f, k: f.log_normalizer()))

    def log_normalizer_with_trend(self, trend: Trend) -> FloatArray:
        """The same, ``(num_columns,)``, with a trend added and integrated out."""
        return np.asarray(self._each(lambda f, k: f.log_normalizer_with_trend(_column(trend, k))))

    def mean_with_trend(self, trend: Trend) -> tuple[FloatArray, FloatArray]:
        """Means of the columns, a trend included, and of its coefficients."""
        mean, beta = self._each(lambda f, k: f.mean_with_trend(_column(trend, k)))
        return mean, beta

    def predict(
        self, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances at new inputs, ``(m, num_columns)`` each."""
        means = self._new_means(new_mean, len(as_inputs(new_inputs, "new_inputs")))
        mean, var = self._each(lambda f, k: f.predict(new_inputs, means[k]))
        return mean, var

    def draw(
        self, rng: np.random.Generator, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> FieldDraw:
        """A joint draw at the sites and at new inputs, and `predict` at the latter."""
        means = self._new_means(new_mean, len(as_inputs(new_inputs, "new_inputs")))
        return FieldDraw(*self._each(lambda f, k: f.draw(rng, new_inputs, means[k])))

    def _new_means(self, new_mean: ArrayLike | None, num_new: int) -> Sequence[FloatArray | None]:
        if new_mean is None:
            return [None] * len(self.fields)
        wide = np.broadcast_to(as_finite(new_mean, "new_mean"), (num_new, len(self.fields)))
        return [wide[:, [k]] for k in range(len(self.fields))]


def _column(trend: Trend, k: int) -> Trend:
    return trend._replace(centre=trend.centre[:, [k]])
