r"""Gaussian rows that are given by their precision: Gaussian Markov random fields.

Where coordinates are places, and each depends on its neighbours only given all others, the
precision Q is sparse and the covariance is not (Rue and Held 2005, Gaussian Markov Random Fields).
Row r is

    x_r  ~  N(x_r | mean_r, (strength_r Q)^-1) exp(-x_r' J_r x_r / 2 + h_r' x_r),

Gaussian again with precision strength_r Q + diag(J_r): as sparse as Q, and never inverted. Places
are renumbered so that neighbours have near numbers (reverse Cuthill and McKee), and the Cholesky
factor of a band matrix keeps its band.

>>> import numpy as np
>>> from scipy import sparse
>>> from pgmult import DiagonalPotential, GaussianMarkovField
>>> chain = sparse.diags_array([[2.0] * 3, [-1.0] * 2, [-1.0] * 2], offsets=[0, 1, -1])
>>> seen = DiagonalPotential(J=np.array([[4.0, 0.0, 0.0]]), h=np.array([[4.0, 0.0, 0.0]]))
>>> GaussianMarkovField(np.zeros(3), chain).condition(seen).mean().round(3)
array([[0.75, 0.5 , 0.25]])
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded, solve_banded
from scipy.sparse.csgraph import reverse_cuthill_mckee

from pgmult.core.arguments import as_kind
from pgmult.core.machine import refuse_unaffordable
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import ArrayLike, FloatArray, IntArray
from pgmult.core.validate import as_finite, as_generator, as_positive, as_positive_int


@dataclass(frozen=True, slots=True, eq=False)
class BandedPrecision:
    """A symmetric matrix whose coordinates are renumbered so that little but a band is not zero.

    Attributes
    ----------
    order : int64 array, ``(n,)``
        The coordinate that has each number.
    bands : array, ``(num_bands, n)``
        The upper triangle, diagonals as rows, the main one last, as LAPACK has it.
    """

    order: IntArray
    bands: FloatArray

    @classmethod
    def of(cls, matrix: Any) -> "BandedPrecision":
        """Renumber and pack a symmetric array or scipy.sparse array, ``(n, n)``."""
        dense = matrix if sparse.issparse(matrix) else as_finite(matrix, "prior_precision")
        if dense.ndim != 2 or dense.shape[0] == 0:
            raise ValueError(f"prior_precision must be a square matrix, got shape {dense.shape}")
        Q = sparse.csr_array(dense)
        if Q.shape[0] != Q.shape[1]:
            raise ValueError(f"prior_precision must be a square matrix, got shape {Q.shape}")
        Q = Q.astype(np.float64)
        as_finite(Q.data, "prior_precision")
        if abs(Q - Q.T).max() > 1e-8 * abs(Q).max():
            raise ValueError("prior_precision must be symmetric")
        order = reverse_cuthill_mckee(Q, symmetric_mode=True).astype(np.int64)
        upper = sparse.triu(Q[order][:, order]).tocoo()
        above = int((upper.col - upper.row).max(initial=0))
        bands = np.zeros((above + 1, len(order)))
        bands[above + upper.row - upper.col, upper.col] = upper.data
        return cls(order, bands)

    def apply(self, x: FloatArray) -> FloatArray:
        """Q x of every row, ``(..., n)``."""
        y, size, above = x[..., self.order], len(self.order), len(self.bands) - 1
        out = self.bands[above] * y
        for k in range(1, above + 1):
            diagonal = self.bands[above - k, k:]
            out[..., : size - k] += diagonal * y[..., k:]
            out[..., k:] += diagonal * y[..., : size - k]
        return np.asarray(out[..., np.argsort(self.order)])


@dataclass(frozen=True, slots=True, eq=False)
class GaussianMarkovField:
    """Gaussian rows sharing a precision up to a factor, times the potentials conditioned on.

    Attributes
    ----------
    prior_mean : array, ``(n,)`` or ``(num_rows, n)``
        Mean before conditioning, common to all rows or one per row.
    prior_precision : BandedPrecision
        Given as an array or a scipy.sparse array, ``(n, n)``, symmetric. It is singular for an
        intrinsic field, which has no draws and no density, but has a posterior if the potentials
        reach every connected part of the map.
    strength : float or array, ``(num_rows,)``
        What multiplies the precision, for all rows or one per row, > 0.
    potential : DiagonalPotential or None
        Product of everything conditioned on, with leading shape ``(num_rows,)`` or ``()``.

    Raises
    ------
    ValueError
        If the precision is not symmetric or shapes do not agree.

    Notes
    -----
    A row costs O(n b**2), where b is how far apart the numbers of neighbours are at most: about
    sqrt(n) on a map, and n with a dense precision.
    """

    prior_mean: FloatArray
    prior_precision: Any
    strength: ArrayLike = 1.0
    potential: DiagonalPotential | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior_mean", as_finite(self.prior_mean, "prior_mean"))
        object.__setattr__(self, "strength", as_positive(self.strength, "strength"))
        if not isinstance(self.prior_precision, BandedPrecision):
            object.__setattr__(self, "prior_precision", BandedPrecision.of(self.prior_precision))
        size = len(self.prior_precision.order)
        if self.potential is not None:
            as_kind(self.potential, "potential", DiagonalPotential)
        shapes = [self.prior_mean.shape, (*np.shape(self.strength), size)]
        shapes += [] if self.potential is None else [self.potential.h.shape]
        ranks = {len(shape) for shape in shapes}
        rows = {shape[0] for shape in shapes if len(shape) == 2}
        if not ranks <= {1, 2} or {shape[-1] for shape in shapes} != {size} or len(rows) > 1:
            raise ValueError(
                f"prior_mean and potential must have shape ({size},) or (rows, {size}) to go with"
                f" prior_precision, strength () or (rows,), got prior_mean {shapes[0]}, strength"
                f" {np.shape(self.strength)}"
                + (f" and a potential {shapes[2]}" if len(shapes) > 2 else "")
            )

    @property
    def size(self) -> int:
        """Number of coordinates, n."""
        return int(self.prior_mean.shape[-1])

    def condition(self, potential: DiagonalPotential) -> "GaussianMarkovField":
        """The posterior: this times `potential`, ``(n,)`` or ``(num_rows, n)``."""
        as_kind(potential, "potential", DiagonalPotential, "MvNormal takes dense ones, too")
        before = self.potential
        return replace(self, potential=potential if before is None else before + potential)

    def mean(self) -> FloatArray:
        """Means, ``(n,)`` or ``(num_rows, n)``."""
        if self.potential is None:
            return self.prior_mean
        return self._by_row(lambda root, mean, _: mean, np.zeros(self._shape))

    def sample(self, rng: np.random.Generator, num_rows: int | None = None) -> FloatArray:
        """One draw of every row, ``(n,)`` or ``(num_rows, n)``.

        Parameters
        ----------
        rng : numpy.random.Generator
        num_rows : int, optional
            How many rows to draw where neither mean, strength nor a potential says so.

        Raises
        ------
        ValueError
            If a row's precision is not positive definite.
        """
        shape = self._shape
        if num_rows is not None:
            if len(shape) == 2:
                raise ValueError("num_rows is set by mean, strength or potential; leave it out")
            shape = (as_positive_int(num_rows, "num_rows"), *shape)
            refuse_unaffordable(24.0 * num_rows * self.size, "num_rows", num_rows)

        def draw(root: FloatArray, mean: FloatArray, noise: FloatArray) -> FloatArray:
            return np.asarray(mean + solve_banded((0, len(root) - 1), root, noise))

        return self._by_row(draw, as_generator(rng).standard_normal(shape))

    def log_density(self, x: ArrayLike) -> FloatArray:
        """Normalised log density at x, ``(n,)`` or ``(num_rows, n)``; one value per row."""

        def density(root: FloatArray, mean: FloatArray, x: FloatArray) -> FloatArray:
            above = len(root) - 1
            white = np.zeros(len(x))
            for k in range(above + 1):  # the factor's diagonal k
                white[: len(x) - k] += root[above - k, k:] * (x - mean)[k:]
            log_det = 2.0 * np.log(root[above]).sum()
            return np.asarray(0.5 * (log_det - white @ white - len(x) * math.log(2.0 * math.pi)))

        x = as_finite(x, "x")
        if x.shape[-1:] != (self.size,) or x.ndim > 2 or self._shape[:-1] not in ((), x.shape[:-1]):
            raise ValueError(f"x must have shape {self._shape}, got {x.shape}")
        return self._by_row(density, np.broadcast_to(x, np.broadcast_shapes(x.shape, self._shape)))

    @property
    def _shape(self) -> tuple[int, ...]:
        """``(n,)`` or ``(num_rows, n)``."""
        seen = () if self.potential is None else self.potential.h.shape
        own = np.broadcast_shapes(self.prior_mean.shape, (*np.shape(self.strength), 1))
        return np.broadcast_shapes(own, seen)

    def _by_row(
        self, function: Callable[[FloatArray, FloatArray, FloatArray], FloatArray], x: FloatArray
    ) -> FloatArray:
        """``function(root, mean, x)`` of every row, its coordinates renumbered and back.

        `root` is the banded upper Cholesky factor of the row's precision, `mean` its mean.
        """
        order, bands = self.prior_precision.order, self.prior_precision.bands
        shape = np.atleast_2d(x).shape
        means = np.broadcast_to(self.prior_mean, shape)[:, order]
        strengths = np.broadcast_to(self.strength, shape[:1])
        zero = np.zeros(self.size)
        seen = DiagonalPotential(zero, zero) if self.potential is None else self.potential
        J, h = (np.broadcast_to(array, shape)[:, order] for array in (seen.J, seen.h))
        back = np.argsort(order)
        results = []
        for r, row in enumerate(np.atleast_2d(x)[:, order]):
            precision = strengths[r] * bands
            precision[-1] += J[r]
            root = _factor(precision)
            if root is None:
                raise ValueError(
                    f"row {r} has no Gaussian law: its precision is not positive definite (is a"
                    " piece of the map without observations?)"
                )
            pull = h[r] - J[r] * means[r]
            mean = means[r] + (cho_solve_banded((root, False), pull) if pull.any() else 0.0)
            result = function(root, mean, row)
            results.append(result[back] if result.ndim else result)
        return np.array(results).reshape(x.shape[:-1] + np.shape(results[0]))


def _factor(bands: FloatArray) -> FloatArray | None:
    """The upper Cholesky factor; None where there is none in floating point."""
    try:
        root = np.asarray(cholesky_banded(bands))
    except LinAlgError:
        return None
    return root if root[-1].min() ** 2 > 1e-13 * bands[-1].max() else None
