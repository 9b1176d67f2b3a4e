r"""Gaussian processes at a finite set of sites: many independent columns that share a covariance.

Column k of psi, at sites x_1, ..., x_n, times the potentials it was conditioned on::

    psi_k  ~  N(psi_k | prior_mean_k, K) exp(-psi_k' diag(J_k) psi_k / 2 + h_k' psi_k),

with K the covariance function at the sites. Nothing is ever inverted but I + J^1/2 K J^1/2, so K
may be singular (a smooth covariance at close sites is, to rounding), J may be 0 (a missing row),
and no jitter is added.

A `Field` is whatever has these verbs: `GaussianProcess` has them exactly, at O(n^3) a column, and
other structures have them for special covariances at less cost.

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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import ArrayLike, FloatArray
from pgmult.core.validate import as_finite, as_generator, as_nonnegative, new_key
from pgmult.fields.compiled.dense_fields import (
    column_log_normalizers,
    lower_root,
    mean_columns,
    predict_columns,
    sample_columns,
)
from pgmult.fields.covariances import Covariance
from pgmult.fields.inputs import as_inputs
from pgmult.fields.priors.field import FieldDraw, as_prior_mean

__all__ = ["Field", "GaussianProcess", "IndependentFields"]


class Field(Protocol):
    """A Gaussian law of ``num_columns`` independent functions at n sites.

    ``new_mean`` is the prior mean at new inputs: a number, ``(num_columns,)`` or
    ``(m, num_columns)``. Left out, it is each column's prior mean at the sites, which must then be
    the same at all of them.
    """

    def condition(self, potential: DiagonalPotential) -> "Field":
        """The posterior: this times a potential, ``(n, num_columns)``."""

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw at the sites, ``(n, num_columns)``."""

    def sample_with_trend(
        self, rng: np.random.Generator, features: FloatArray, centre: FloatArray, var: float
    ) -> tuple[FloatArray, FloatArray]:
        """A joint draw of the columns and of the coefficients of a trend added to them.

        The prior of the columns is this one plus ``features @ beta``, beta ~ N(centre, var I).
        Costs little more than `sample`.

        Parameters
        ----------
        rng : numpy.random.Generator
        features : array, ``(n, num_features)``
        centre : array, ``(num_features, num_columns)``
        var : float

        Returns
        -------
        columns : array, ``(n, num_columns)``
            The trend included.
        beta : array, ``(num_features, num_columns)``
        """

    def mean(self) -> FloatArray:
        """Means at the sites, ``(n, num_columns)``."""

    def log_normalizer(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``."""

    def log_normalizer_with_trend(
        self, features: FloatArray, centre: FloatArray, var: float
    ) -> FloatArray:
        """The same, ``(num_columns,)``, with the trend of `sample_with_trend` integrated out."""

    def predict(
        self, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances at new inputs, ``(m, num_columns)``; the sites integrated out."""

    def sample_at(
        self, rng: np.random.Generator, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> FloatArray:
        """One joint draw at new inputs, ``(m, num_columns)``; the sites integrated out."""

    def draw(
        self, rng: np.random.Generator, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> FieldDraw:
        """A joint draw at the sites and at new inputs, and `predict` at the latter."""


@dataclass(frozen=True, slots=True, eq=False)
class GaussianProcess:
    """Independent columns with one covariance function, exactly, by dense linear algebra.

    Attributes
    ----------
    covariance : Covariance
    inputs : array, ``(n, d)``
        The sites; one axis is taken for one column.
    prior_mean : float or array, ``(n,)`` or ``(n, num_columns)``
    potential : DiagonalPotential, ``(n, num_columns)``, or None
        Product of everything conditioned on.

    Raises
    ------
    ValueError
        If shapes do not agree, J is negative, or the covariance is not positive semi-definite.

    Notes
    -----
    A draw costs O(n**3) once, for the prior, and O(m**3) a column, m the sites with J > 0.
    """

    covariance: Covariance
    inputs: FloatArray
    prior_mean: ArrayLike = 0.0
    potential: DiagonalPotential | None = None

    def __post_init__(self) -> None:
        inputs = as_inputs(self.inputs)
        mean = as_prior_mean(self.prior_mean, len(inputs))
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "prior_mean", mean)

    @property
    def shape(self) -> tuple[int, int]:
        """Sites and columns."""
        columns = self._means.shape[1] if self.potential is None else self.potential.J.shape[1]
        return len(self.inputs), columns

    @property
    def _means(self) -> FloatArray:
        return np.asarray(self.prior_mean)

    def condition(self, potential: DiagonalPotential) -> "GaussianProcess":
        """The posterior: this times `potential`, ``(n, num_columns)``."""
        J, h = as_nonnegative(potential.J, "J"), as_finite(potential.h, "h")
        n, columns = self.shape
        fits = J.ndim == 2 and len(J) == n and J.shape == h.shape
        if not fits or (columns not in (1, J.shape[1])):
            expected = f"({n}, {columns if columns > 1 else 'columns'})"
            raise ValueError(
                f"the potential must have shape {expected}, got J {J.shape} and h {h.shape}"
            )
        seen = DiagonalPotential(J, h)
        return replace(self, potential=seen if self.potential is None else self.potential + seen)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw at the sites, ``(n, num_columns)``; columns run on all threads given."""
        n, columns = self.shape
        return self.sample_with_trend(rng, np.empty((n, 0)), np.empty((0, columns)), 1.0)[0]

    def sample_with_trend(
        self, rng: np.random.Generator, features: FloatArray, centre: FloatArray, var: float
    ) -> tuple[FloatArray, FloatArray]:
        """A joint draw of the columns and of the coefficients of a trend added to them.

        See `Field.sample_with_trend`. Costs no more than `sample`.
        """
        as_generator(rng)
        root = _root_of(self.covariance, self.inputs.tobytes(), self.inputs.shape)
        features = np.ascontiguousarray(features)
        trend_cov = np.ascontiguousarray(var * features.T)
        cov = self._cov()
        if features.shape[1]:
            cov = cov + np.einsum("if,fj->ij", features, trend_cov)
        mean, J, h, _ = self._columns(cov)
        beta, out = np.array(centre.T, order="C"), np.empty_like(J)
        if (free := self._free_tilt()) is not None:
            beta += np.einsum("cn,fn->cf", free, trend_cov)
            mean = mean - np.einsum("cn,fn,jf->cj", free, trend_cov, features)
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
        mean, J, h, _ = self._columns(cov)
        out = np.empty_like(J)
        over_rows(mean_columns, len(J), cov, cov, mean, J, h, mean, out, grain=1)
        return np.ascontiguousarray(out.T)

    def log_normalizer(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``."""
        n, columns = self.shape
        return self.log_normalizer_with_trend(np.empty((n, 0)), np.empty((0, columns)), 1.0)

    def log_normalizer_with_trend(
        self, features: FloatArray, centre: FloatArray, var: float
    ) -> FloatArray:
        """The same, ``(num_columns,)``, with the trend of `sample_with_trend` integrated out."""
        if self.potential is None:
            return np.zeros(self.shape[1])
        cov, around = self._cov(), self
        if features.shape[1]:
            cov = cov + var * np.einsum("if,jf->ij", features, features)
            level = self._means + np.einsum("nf,fc->nc", features, centre)
            around = replace(self, prior_mean=level)
        mean, J, h, tilt = around._columns(cov)
        out = np.empty(len(J))
        over_rows(column_log_normalizers, len(J), cov, mean, J, h, out, grain=1)
        return out + tilt

    def predict(
        self, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances at new inputs, ``(m, num_columns)`` each.

        The values at the sites are integrated out (Linderman, Johnson and Adams 2015, appendix B).

        Parameters
        ----------
        new_inputs : array, ``(m, d)``
        new_mean : float or array, ``(num_columns,)`` or ``(m, num_columns)``, optional
            The prior mean there; by default that of the sites, where all of them agree.
        """
        new = as_inputs(new_inputs, "new_inputs")
        cov, cross = self._cov(), self.covariance.cov(new, self.inputs)
        mean, J, h, _ = self._columns(cov)
        centre = self._new_mean(new_mean, len(new))
        if (free := self._free_tilt()) is not None:
            centre = centre + np.einsum("mn,cn->mc", cross, free)
        means, variances = np.empty((len(J), len(new))), np.empty((len(J), len(new)))
        over_rows(
            predict_columns, len(J), cov, cross, self.covariance.diagonal(new), mean, J, h,
            np.ascontiguousarray(np.broadcast_to(centre, means.T.shape).T), means, variances,
            grain=1,
        )  # fmt: skip
        return np.ascontiguousarray(means.T), np.ascontiguousarray(variances.T)

    def sample_at(
        self, rng: np.random.Generator, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> FloatArray:
        """One joint draw at new inputs, ``(m, num_columns)``; see `predict`."""
        return self._sample_wider(rng, new_inputs, new_mean)[len(self.inputs) :]

    def draw(
        self, rng: np.random.Generator, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> FieldDraw:
        """A joint draw at the sites and at new inputs, and `predict` at the latter."""
        n, values = len(self.inputs), self._sample_wider(rng, new_inputs, new_mean)
        return FieldDraw(values[:n], values[n:], *self.predict(new_inputs, new_mean))

    def _sample_wider(
        self, rng: np.random.Generator, new_inputs: ArrayLike, new_mean: ArrayLike | None
    ) -> FloatArray:
        new = as_inputs(new_inputs, "new_inputs")
        n, columns = self.shape
        centre = np.broadcast_to(self._new_mean(new_mean, len(new)), (len(new), columns))
        mean = np.broadcast_to(self._means, (n, columns))
        wider = GaussianProcess(
            self.covariance, np.concatenate([self.inputs, new]), np.concatenate([mean, centre])
        )
        if self.potential is not None:
            unseen = np.zeros((len(new), columns))
            J, h = (np.concatenate([a, unseen]) for a in (self.potential.J, self.potential.h))
            wider = wider.condition(DiagonalPotential(J, h))
        return wider.sample(rng)

    def _new_mean(self, new_mean: ArrayLike | None, num_new: int) -> FloatArray:
        columns = self.shape[1]
        if new_mean is None:
            means = self._means
            if len(means) == 0 or (means != means[0]).any():
                raise ValueError(
                    "prior_mean differs between sites, so it does not say what it is at new"
                    " inputs: pass new_mean"
                )
            return np.asarray(means[0])
        centre = as_finite(new_mean, "new_mean")
        try:
            np.broadcast_to(centre, (num_new, columns))
        except ValueError:
            raise ValueError(
                f"new_mean must be a number or have shape ({columns},) or ({num_new}, {columns}),"
                f" got {centre.shape}"
            ) from None
        return centre

    def _cov(self) -> FloatArray:
        return _cov_of(self.covariance, self.inputs.tobytes(), self.inputs.shape)

    def _columns(self, cov: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Means, J and h with a column in each row, h = 0 where J = 0, and log Z of what h was."""
        n, columns = self.shape
        mean = np.ascontiguousarray(self._means.T)
        if self.potential is None:
            empty = np.zeros((columns, n))
            return mean, empty, empty, np.zeros(columns)
        J, h = np.ascontiguousarray(self.potential.J.T), np.ascontiguousarray(self.potential.h.T)
        free = self._free_tilt()
        if free is None:
            return mean, J, h, np.zeros(columns)
        shift = np.einsum("nm,cm->cn", cov, free)  # exp(h'x) moves the mean by K h
        tilt = np.einsum("cn,cn->c", free, mean + 0.5 * shift)
        return mean + shift, J, h - free, tilt

    def _free_tilt(self) -> FloatArray | None:
        """The part of h where J = 0, ``(num_columns, n)``; no link emits one."""
        if self.potential is None:
            return None
        alone = (self.potential.J == 0.0) & (self.potential.h != 0.0)
        return np.where(alone, self.potential.h, 0.0).T.copy() if alone.any() else None


@lru_cache(maxsize=4)  # a sweep asks for the same matrices several times
def _cov_of(covariance: Covariance, inputs: bytes, shape: tuple[int, int]) -> FloatArray:
    return covariance.cov(np.frombuffer(inputs).reshape(shape))


@lru_cache(maxsize=4)
def _root_of(covariance: Covariance, inputs: bytes, shape: tuple[int, int]) -> FloatArray:
    return _root(_cov_of(covariance, inputs, shape), np.frombuffer(inputs).reshape(shape))


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
class IndependentFields:
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

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw at the sites, ``(n, num_columns)``."""
        return np.concatenate([field.sample(rng) for field in self.fields], axis=1)

    def sample_with_trend(
        self, rng: np.random.Generator, features: FloatArray, centre: FloatArray, var: float
    ) -> tuple[FloatArray, FloatArray]:
        """A joint draw of the columns and of a trend: see `Field.sample_with_trend`."""
        pairs = [
            field.sample_with_trend(rng, features, centre[:, [k]], var)
            for k, field in enumerate(self.fields)
        ]
        return (
            np.concatenate([columns for columns, _ in pairs], axis=1),
            np.concatenate([beta for _, beta in pairs], axis=1),
        )

    def mean(self) -> FloatArray:
        """Means at the sites, ``(n, num_columns)``."""
        return np.concatenate([field.mean() for field in self.fields], axis=1)

    def log_normalizer(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``."""
        return np.concatenate([field.log_normalizer() for field in self.fields])

    def log_normalizer_with_trend(
        self, features: FloatArray, centre: FloatArray, var: float
    ) -> FloatArray:
        """The same, ``(num_columns,)``, with the trend of `sample_with_trend` integrated out."""
        parts = [
            field.log_normalizer_with_trend(features, centre[:, [k]], var)
            for k, field in enumerate(self.fields)
        ]
        return np.concatenate(parts)

    def predict(
        self, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances at new inputs, ``(m, num_columns)`` each."""
        means = self._new_means(new_mean, len(as_inputs(new_inputs, "new_inputs")))
        pairs = [f.predict(new_inputs, m) for f, m in zip(self.fields, means, strict=True)]
        return (
            np.concatenate([mean for mean, _ in pairs], axis=1),
            np.concatenate([var for _, var in pairs], axis=1),
        )

    def sample_at(
        self, rng: np.random.Generator, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> FloatArray:
        """One joint draw at new inputs, ``(m, num_columns)``."""
        means = self._new_means(new_mean, len(as_inputs(new_inputs, "new_inputs")))
        draws = [f.sample_at(rng, new_inputs, m) for f, m in zip(self.fields, means, strict=True)]
        return np.concatenate(draws, axis=1)

    def draw(
        self, rng: np.random.Generator, new_inputs: ArrayLike, new_mean: ArrayLike | None = None
    ) -> FieldDraw:
        """A joint draw at the sites and at new inputs, and `predict` at the latter."""
        means = self._new_means(new_mean, len(as_inputs(new_inputs, "new_inputs")))
        draws = [f.draw(rng, new_inputs, m) for f, m in zip(self.fields, means, strict=True)]
        return FieldDraw(*(np.concatenate(parts, axis=1) for parts in zip(*draws, strict=True)))

    def _new_means(self, new_mean: ArrayLike | None, num_new: int) -> Sequence[FloatArray | None]:
        if new_mean is None:
            return [None] * len(self.fields)
        wide = np.broadcast_to(as_finite(new_mean, "new_mean"), (num_new, len(self.fields)))
        return [wide[:, [k]] for k in range(len(self.fields))]
