"""Gaussian rows whose mean is linear in covariates, and the conjugate prior of such a regression.

Rows y_d, ``(n,)``, have covariates x_d, ``(p,)``::

    Sigma          ~  IW(scale, dof)
    B | Sigma      ~  MN(mean, row_precision^-1, Sigma)        p x n coefficients
    y_d | B, Sigma ~  N(B' x_d, Sigma)

The matrix normal says that the columns of B have covariance row_precision^-1 and its rows Sigma: a
prior precision of 1 is worth one row with that covariate at 1. With one constant covariate this is
the normal-inverse-Wishart (Rowe 2003, Multivariate Bayesian Statistics, chapter 8).

>>> import numpy as np
>>> x = np.column_stack([np.ones(49), np.arange(49.0)])
>>> prior = MatrixNormalInverseWishart.weak(np.zeros((2, 1)), x)
>>> prior.condition(3.0 * x[:, [1]] - 1.0, x).mean.round(2)
array([[-0.98],
       [ 2.94]])
"""

import math
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike

from pgmult.compiled.linalg import invert_lower, scatter
from pgmult.core.arguments import as_real
from pgmult.core.parameters import Checked
from pgmult.core.typing import FloatArray, Generator
from pgmult.core.validate import as_finite, as_spd
from pgmult.priors.gaussian import log_inverse_wishart, lower_cholesky, sample_inverse_wishart


def linear_means(covariates: FloatArray, coefficients: FloatArray) -> FloatArray:
    """``covariates @ coefficients``, ``(num_rows, n)``, with the same bits for any BLAS."""
    return np.asarray(np.einsum("rp,pn->rn", covariates, coefficients))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MatrixNormalInverseWishart(Checked):
    """The conjugate prior of a multivariate linear regression.

    Attributes
    ----------
    mean : array, ``(p, n)``
        Of the coefficients: one row per covariate, one column per coordinate of what is explained.
    row_precision : array, ``(p, p)``
        Symmetric positive definite; relative to Sigma.
    dof : float
        Degrees of freedom, > n - 1: below that there is no such distribution.
    scale : array, ``(n, n)``
        Symmetric positive definite; E[Sigma] = scale / (dof - n - 1).

    Raises
    ------
    ValueError
        If the prior would be improper or shapes do not agree.
    """

    mean: Annotated[FloatArray, as_finite, "covariate", "dim"]
    row_precision: Annotated[FloatArray, as_spd, "covariate", "covariate"]
    dof: float
    scale: Annotated[FloatArray, as_spd, "dim", "dim"]

    def _complete(self) -> None:
        as_real(self.dof, "dof", above=len(self.scale) - 1)  # else the prior is improper

    @classmethod
    def weak(cls, mean: ArrayLike, covariates: ArrayLike, var: float = 1.0) -> Self:
        """A proper prior worth little data: one average row, and E[Sigma] = var I from dof n + 2.

        The row precision is X'X / num_rows for the covariates X, ``(num_rows, p)``, of the rows to
        come (Kass and Wasserman 1995, the unit information prior). So it is the same prior of what
        the regression predicts whatever the units, origins or coding of the covariates.
        """
        centre, x = as_finite(mean, "mean"), as_finite(covariates, "covariates")
        if centre.ndim != 2 or x.ndim != 2 or x.shape[1] != len(centre) or len(x) == 0:
            expected = "mean must have shape (p, n) and covariates (rows, p)"
            raise ValueError(f"{expected}, got {centre.shape} and {x.shape}")
        n = centre.shape[1]
        gram = as_spd(scatter(x, np.zeros(len(centre))) / len(x), "the Gram matrix of covariates")
        return cls(centre, gram, n + 2.0, as_real(var, "var", minimum=1e-300) * np.eye(n))

    def condition(self, rows: ArrayLike, covariates: ArrayLike) -> "MatrixNormalInverseWishart":
        """The posterior given rows ``(num_rows, n)`` and their covariates ``(num_rows, p)``.

        Costs O(num_rows (p + n)**2).
        """
        y, x = as_finite(rows, "rows"), as_finite(covariates, "covariates")
        p, n = self.mean.shape
        if y.ndim != 2 or y.shape[1] != n:
            raise ValueError(f"rows must have shape (rows, {n}), got {y.shape}")
        if x.shape != (len(y), p):
            expected = f"shape ({len(y)}, {p}) to go with the rows"
            raise ValueError(f"covariates must have {expected}, got {x.shape}")
        if len(y) == 0:
            return self
        surprise, zeros = y - linear_means(x, self.mean), np.zeros(n)
        row_precision = self.row_precision + scatter(x, np.zeros(p))
        half = invert_lower(lower_cholesky(row_precision))
        pull = linear_means(half, np.einsum("rp,rn->pn", x, surprise))
        shift = np.einsum("qp,qn->pn", half, pull)
        moved = np.einsum("pq,pn->qn", lower_cholesky(self.row_precision), shift)
        scale = self.scale + scatter(surprise - linear_means(x, shift), zeros)
        scale = scale + scatter(moved, zeros)
        return type(self)(self.mean + shift, row_precision, self.dof + len(y), scale)

    def sample(self, rng: Generator) -> tuple[FloatArray, FloatArray]:
        """One draw: coefficients B, ``(p, n)``, and Sigma, ``(n, n)``."""
        cov = sample_inverse_wishart(rng, self.scale, self.dof)
        noise = np.einsum("pj,ij->pi", rng.standard_normal(self.mean.shape), lower_cholesky(cov))
        half = invert_lower(lower_cholesky(self.row_precision))
        return self.mean + np.einsum("qp,qn->pn", half, noise), cov

    def log_density(self, coefficients: ArrayLike, Sigma: ArrayLike) -> float:
        """Normalised log density at B, ``(p, n)``, and Sigma, ``(n, n)``."""
        p, n = self.mean.shape
        cov = as_spd(Sigma, "Sigma", n)
        B = as_finite(coefficients, "coefficients")
        if B.shape != (p, n):
            raise ValueError(f"coefficients must have shape ({p}, {n}), got {B.shape}")
        deviation = B - self.mean
        quadratic = np.trace(np.linalg.solve(cov, deviation.T @ self.row_precision @ deviation))
        log_dets = n * np.linalg.slogdet(self.row_precision)[1] - p * np.linalg.slogdet(cov)[1]
        matrix_normal = 0.5 * (log_dets - quadratic - p * n * math.log(2.0 * math.pi))
        return log_inverse_wishart(cov, self.dof, self.scale) + float(matrix_normal)
