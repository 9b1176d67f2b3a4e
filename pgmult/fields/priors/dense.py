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
>>> field.condition(seen, Trend.known(np.zeros((3, 1)))).mean.round(3)
array([[0.8  ],
       [0.706],
       [0.485]])
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import solve_triangular

from pgmult.compiled.rows import over_rows
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import FloatArray, Generator
from pgmult.fields.compiled import dense_fields
from pgmult.fields.covariances import Covariance
from pgmult.fields.priors.field import Field, FieldGaussian, Trend

_MOST_KEPT = 10**7  # numbers in the factors of all columns, 80 MB; else they are found anew
_TINY = 1e-13  # of the largest variance: what is below is rounding


@dataclass(frozen=True, slots=True, eq=False)
class GaussianProcess(Field):
    """Independent columns with one covariance function, exactly, by dense linear algebra.

    Attributes
    ----------
    covariance, inputs
        As in every `pgmult.fields.priors.field.Field`.

    Raises
    ------
    ValueError
        If the covariance is not positive semi-definite.

    Notes
    -----
    A draw costs O(n**3) once, for the prior, and O(m**3) per column, m the sites with J > 0.
    """

    def condition(self, potential: DiagonalPotential, trend: Trend) -> "DenseGaussian":
        """The posterior of the columns, around a trend, and of its coefficients."""
        return DenseGaussian(self, potential, trend)

    def sample(self, rng: Generator, num_columns: int) -> FloatArray:
        """A draw by a triangular root; columns run on all threads given."""
        noise = rng.standard_normal((len(self.inputs), num_columns))
        out, units = np.empty_like(noise), -(-len(noise) // 4)
        over_rows(dense_fields.multiply_lower, units, _root_of(*self._key), noise, out, grain=8)
        return out

    def whiten(self, rng: Generator, values: FloatArray) -> FloatArray:
        """The noise behind the values, by a triangular root, or a symmetric one if singular.

        O(n**3) once.
        """
        root = _root_of(*self._key)
        if root[-1, -1] > 0.0:
            return np.asarray(solve_triangular(root, values, lower=True))
        directions, scales = _symmetric_root_of(*self._key)
        fresh = rng.standard_normal(values.shape)
        determined = _along(directions, 1.0 / scales, values)
        return determined + fresh - _along(directions, np.ones_like(scales), fresh)

    def colour(self, noise: FloatArray) -> FloatArray:
        """The values made of standard normal noise, ``(n, num_columns)``."""
        root = _root_of(*self._key)
        if root[-1, -1] > 0.0:
            return np.asarray(np.einsum("ij,jc->ic", root, noise))
        return _along(*_symmetric_root_of(*self._key), noise)


class DenseGaussian(FieldGaussian):
    """`FieldGaussian` by one factor of a matrix a column, computed once."""

    def __init__(self, field: GaussianProcess, potential: DiagonalPotential, trend: Trend):
        super().__init__(field, potential, trend)
        cov, features = _cov_of(*field._key), trend.features
        if features.shape[1]:
            cov = cov + trend.var * np.einsum("if,jf->ij", features, features)
        self._prior_cov = cov
        observed = np.flatnonzero(self.J.any(axis=1))
        self._seen = slice(None) if len(observed) == len(cov) else observed
        self._roots = np.sqrt(np.ascontiguousarray(self.J[self._seen].T))
        self._cov = np.ascontiguousarray(cov[self._seen][:, self._seen])
        columns, size = self._roots.shape
        room = columns if columns * size**2 <= _MOST_KEPT else 0
        self._factors = np.empty((room, size, size))
        self._log_dets = np.empty(columns)
        self._run(dense_fields.factor_columns, self._log_dets, self._factors)
        across = np.concatenate([cov, trend.var * features.T])
        self._across = np.ascontiguousarray(across[:, self._seen])

    def solve(self, g: FloatArray) -> FloatArray:
        """The posterior covariance times g."""
        out = np.empty((len(self._roots), len(self._across)))
        pull = np.ascontiguousarray(g[: len(self.J)][self._seen].T)
        self._run(dense_fields.solve_columns, self._factors, self._across, pull, out)
        return np.ascontiguousarray(out.T)

    @cached_property
    def log_normalizers(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``."""
        level = self._centre
        total = level * (self.h - 0.5 * self.J * level)
        total = total + 0.5 * (self.h - self.J * level) * (self.mean[: len(level)] - level)
        return np.asarray(total.sum(axis=0) - 0.5 * self._log_dets)

    @property
    def variances(self) -> FloatArray:
        """Variances of the columns, ``(n, num_columns)``."""
        explained = np.empty(self.J.shape[::-1])
        across = self._across[: len(self.J)]
        self._run(dense_fields.explain_columns, self._factors, across, explained)
        return np.asarray(np.maximum(np.diagonal(self._prior_cov)[:, None] - explained.T, 0.0))

    def _run(self, kernel: Callable[..., object], *arguments: object) -> None:
        over_rows(kernel, len(self._roots), self._cov, self._roots, *arguments, grain=1)


def _along(directions: FloatArray, scales: FloatArray, x: FloatArray) -> FloatArray:
    """V diag(scales) V' x."""
    return np.asarray(((directions * scales) @ directions.T) @ x)


@lru_cache(maxsize=4)  # a sweep asks for the same matrices several times
def _cov_of(covariance: Covariance, inputs: bytes, shape: tuple[int, int]) -> FloatArray:
    return covariance.cov(np.frombuffer(inputs).reshape(shape))


@lru_cache(maxsize=4)
def _root_of(covariance: Covariance, inputs: bytes, shape: tuple[int, int]) -> FloatArray:
    """A lower triangular root of the covariance, which may be singular."""
    root, row = dense_fields.lower_root(_cov_of(covariance, inputs, shape))
    if row >= 0:
        where = f"at input {row}, {np.frombuffer(inputs).reshape(shape)[row]}, beyond rounding"
        hint = "no jitter is added; is it a distance that the family is not valid for?"
        raise ValueError(f"the covariance is not positive semi-definite: it fails {where} ({hint})")
    return np.asarray(root)


@lru_cache(maxsize=4)
def _symmetric_root_of(
    covariance: Covariance, inputs: bytes, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """V and s of K^1/2 = V diag(s) V', with the orthonormal directions V that carry variance.

    Values of N(0, K) say of their noise what it is along V; across, it is anything. Unlike V, K^1/2
    is a continuous function of K. O(n**3).
    """
    values, vectors = np.linalg.eigh(_cov_of(covariance, inputs, shape))
    positive = values > _TINY * values[-1]
    return np.ascontiguousarray(vectors[:, positive]), np.sqrt(values[positive])
