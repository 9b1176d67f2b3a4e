"""Designs, which map means and covariances of weights to those of rows' predictors.

>>> import numpy as np
>>> design = Rows(np.array([[1.0, 0.0], [1.0, 2.0]]))
>>> design.project(np.array([[0.5, 1.0]])), design.project_cov(np.eye(2)[None])
(array([0.5, 2.5]), array([1., 5.]))
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_counts, as_finite

_ROWS = 4096  # of a sparse table that are dense at a time


@runtime_checkable
class Design(Protocol):
    """How predictors depend on vectors of weights: one per group, or one per class.

    `Rows` is the design of scalar predictors. Predictors of several dimensions have other designs,
    whose means, variances and derivatives have the shapes that they and their sites agree on.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Number of vectors of weights, and of weights in each."""

    def project(self, mean: FloatArray) -> Any:
        """Means of the predictors for means of the weights, ``(num_vectors, num_weights)``."""

    def project_cov(self, cov: FloatArray) -> Any:
        """Variances of the predictors, for ``(num_vectors, num_weights, num_weights)``."""

    def pull(self, d_mean: Any) -> FloatArray:
        """X' d_mean, the gradient with respect to the weights, ``(num_vectors, num_weights)``."""

    def gram(self, d_var: Any) -> FloatArray:
        """X' diag(-2 d_var) X of each vector."""

    def total(self, values: Any) -> FloatArray:
        """Sums over rows: one for each vector, or a single one where rows see all vectors."""


@runtime_checkable
class Centred(Protocol):
    """A design whose rows see only how vectors of weights differ, not what they have in common."""

    def centre(self, mean: FloatArray, prior_mean: FloatArray) -> FloatArray:
        """The same differences; what the vectors have in common is where the prior wants it."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The design of scalar predictors psi_n = x_n' w_g, rows n of group g.

    Attributes
    ----------
    covariates : array or sparse array, ``(num_rows, num_weights)``
        Of a sparse one no dense copy is ever made, but for a few thousand rows at a time.
    offsets : int64 array, ``(num_groups + 1,)``, optional
        Group g is the rows ``offsets[g]:offsets[g + 1]``; one group of all rows if left out.
    known : array, ``(num_rows,)``, optional
        Added to the predictors.
    """

    covariates: Any
    offsets: IntArray | None = None
    known: FloatArray | None = None
    _blocks: list[Any] = field(init=False)
    _slices: list[slice] = field(init=False)

    def __post_init__(self) -> None:
        x = as_matrix(self.covariates, "covariates")
        num_rows = x.shape[0]
        bounds = [0, num_rows] if self.offsets is None else _as_bounds(self.offsets, num_rows)
        slices = [slice(a, b) for a, b in pairwise(bounds)]
        known = np.zeros(num_rows) if self.known is None else as_finite(self.known, "known")
        if known.shape != (num_rows,):
            raise ValueError(f"known must have shape ({num_rows},), got {known.shape}")
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "covariates", x)
        object.__setattr__(self, "_slices", slices)
        object.__setattr__(self, "_blocks", [x[rows] for rows in slices])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of groups, and of weights in each."""
        return len(self._blocks), self.covariates.shape[1]

    def project(self, mean: FloatArray) -> FloatArray:
        """Means of the predictors, ``(num_rows,)``."""
        pairs = zip(self._blocks, mean, strict=True)
        return np.asarray(np.concatenate([x @ w for x, w in pairs]) + self.known)

    def project_cov(self, cov: FloatArray) -> FloatArray:
        """Variances of the predictors, ``(num_rows,)``."""
        pairs = zip(self._blocks, cov, strict=True)
        return np.concatenate([_row_squares(x, s) for x, s in pairs])

    def pull(self, d_mean: FloatArray) -> FloatArray:
        """X' d_mean of each group, ``(num_groups, num_weights)``."""
        pairs = zip(self._blocks, self._slices, strict=True)
        return np.array([x.T @ d_mean[rows] for x, rows in pairs])

    def gram(self, d_var: FloatArray) -> FloatArray:
        """X' diag(-2 d_var) X of each group, O(num_rows num_weights**2)."""
        roots = np.sqrt(-2.0 * d_var)
        pairs = zip(self._blocks, self._slices, strict=True)
        return np.array([_gram(x, roots[rows]) for x, rows in pairs])

    def total(self, values: FloatArray) -> FloatArray:
        """Sum over the rows of each group, ``(num_groups,)``."""
        return np.array([values[rows].sum() for rows in self._slices])


def _as_bounds(offsets: Any, num_rows: int) -> list[int]:
    bounds = np.asarray(as_counts(offsets, "offsets"))
    if bounds.ndim != 1 or len(bounds) < 2 or (np.diff(bounds) < 0).any():
        raise ValueError(f"offsets must be a row of places that do not fall, got {bounds.shape}")
    if bounds[0] != 0 or bounds[-1] != num_rows:
        raise ValueError(f"offsets must go from 0 to {num_rows}, got {bounds[0]} to {bounds[-1]}")
    return [int(place) for place in bounds]


def as_matrix(value: Any, name: str) -> Any:
    """Finite numbers ``(rows, columns)``: a float64 array, or a sparse one in rows."""
    if not sparse.issparse(value):
        x = as_finite(value, name)
        if x.ndim != 2:
            raise ValueError(f"{name} must have shape (rows, covariates), got {x.shape}")
        return x
    if value.ndim != 2 or value.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a sparse table of numbers, got dtype {value.dtype}")
    rows = sparse.csr_array(value, dtype=np.float64)
    as_finite(rows.data, name)
    return rows


def _row_squares(x: Any, cov: FloatArray) -> FloatArray:
    """x_n' cov x_n of every row, dense or sparse."""
    if not sparse.issparse(x):
        return np.asarray(np.einsum("nd,nd->n", x @ cov, x))
    parts = [np.zeros(0)]
    for first in range(0, x.shape[0], _ROWS):
        some = x[first : first + _ROWS]
        parts.append(np.asarray(some.multiply(some @ cov).sum(axis=1)).ravel())
    return np.concatenate(parts)


def _gram(x: Any, roots: FloatArray) -> FloatArray:
    if not sparse.issparse(x):
        scaled = roots[:, None] * x
        return np.asarray(scaled.T @ scaled)
    scaled = sparse.diags_array(roots) @ x
    return np.asarray((scaled.T @ scaled).toarray())
