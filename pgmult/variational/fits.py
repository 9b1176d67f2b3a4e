r"""The Gaussian nearest to the posterior of a regression whose likelihood may be your own.

Weights w have a Gaussian prior and rows of data see them through linear predictors psi = X w::

    p(w, y) = N(w | m0, S0)  prod_n exp f_n(psi_n),        q(w) = N(w | m, S)

Under q, psi_n is Gaussian with mean m_n = x_n' m and variance v_n = x_n' S x_n. With F_n(m, v) the
expectation of f_n, or what stands in for it (`pgmult.variational.sites`), `fit_sites` maximises

    L(m, S) = sum_n F_n(m_n, v_n) - KL(q || prior)

At a maximum

    S^-1 = S0^-1 + X' diag(-2 dF/dv) X,        X' dF/dm = S0^-1 (m - m0),

so an iteration sets S by the first equation and moves m by S times the gradient, which for log
concave f is a direction of ascent; a step that would lower L is halved.

Reference: Wang and Blei (2013), Variational inference in nonconjugate models, sections 3 and 4.2.

>>> import numpy as np
>>> from pgmult.priors import MvNormal
>>> from pgmult.variational import LogisticSite
>>> x = np.column_stack([np.ones(6), np.arange(6.0)])
>>> site = LogisticSite(np.array([0.0, 0.0, 1.0, 0.0, 1.0, 1.0]), np.ones(6))
>>> fit_sites(x, site, MvNormal(np.zeros(2), np.eye(2))).mean.round(2)
array([[-0.61,  0.49]])
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core.arguments import as_kind, as_real
from pgmult.core.typing import BoolArray, FloatArray
from pgmult.core.validate import as_finite, as_positive_int
from pgmult.priors.gaussian import MvNormal
from pgmult.variational.ascent import invert, slack
from pgmult.variational.sites import Site

_LOG_2PI = math.log(2.0 * math.pi)
_ROUNDING = 1e-8  # of a derivative that must not be positive
_MOST_HALVINGS = 50


@dataclass(frozen=True, slots=True, eq=False)
class GaussianRows:
    """Independent Gaussian factors q(theta_r) = N(mean_r, cov_r): a `pgmult.variational.Fit`.

    Attributes
    ----------
    method : {"laplace", "delta", "diagonal_delta", "previous_mean"}
    mean : array, ``(num_rows, n)``
    cov : array, ``(num_rows, n, n)``
    level : array, ``(num_rows,)``
        f(mean) + log det(2 pi cov) / 2: the log of the integral of exp f, approximated.
    is_proper : bool array, ``(num_rows,)``
        Whether -Hess f was positive definite there. Where it was not, `cov` is made of the absolute
        values of its eigenvalues, and is unreliable.
    row_converged : bool array, ``(num_rows,)``
        Whether the last step was within the tolerance, where `is_proper`.
    num_iterations : int
        Of the slowest row.
    """

    method: str
    mean: FloatArray
    cov: FloatArray
    level: FloatArray
    is_proper: BoolArray
    row_converged: BoolArray
    num_iterations: int

    is_bound: ClassVar[bool] = False

    @property
    def objective(self) -> float:
        """The sum of all rows' levels."""
        return float(self.level.sum())

    @property
    def converged(self) -> bool:
        """Whether every row has converged."""
        return bool(self.row_converged.all())

    def entropy(self) -> FloatArray:
        """-E_q log q of each row, ``(num_rows,)``."""
        log_dets = np.linalg.slogdet(self.cov)[1]
        return np.asarray(0.5 * (log_dets + self.mean.shape[1] * (1.0 + _LOG_2PI)))


class _Point(NamedTuple):
    """L at one q, and the site's derivatives."""

    mean: FloatArray
    precision: FloatArray
    cov: FloatArray
    level: float
    d_mean: FloatArray
    d_var: FloatArray


def fit_sites(
    x: ArrayLike,
    site: Site,
    prior: MvNormal,
    *,
    offset: ArrayLike | None = None,
    start: ArrayLike | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 500,
) -> GaussianRows:
    """Maximise L over the mean and covariance of the weights.

    Parameters
    ----------
    x : array, ``(num_rows, num_weights)``
    site : Site
    prior : MvNormal
        Of the weights.
    offset : array, ``(num_rows,)``, optional
        Added to the predictors.
    start : array, ``(num_weights,)``, optional
        The mean to start from; the prior's if left out.
    tolerance : float
        Ends when an iteration moves the mean by no more than this, in posterior standard deviations
        (Mahalanobis), and L by no more than its square for each weight.
    max_iterations : int

    Returns
    -------
    GaussianRows
        Of one row. Its level is L: a lower bound of the log evidence where F is an expectation or
        a bound of one.

    Raises
    ------
    ValueError
        If shapes do not go together, or the site is not finite under the prior or rises with a
        variance.

    Notes
    -----
    An iteration costs O(num_rows num_weights**2 + num_weights**3).
    """
    matrix, size = as_finite(x, "x"), as_kind(prior, "prior", MvNormal).size
    as_kind(site, "site", Site)
    as_real(tolerance, "tolerance", minimum=0.0)
    as_positive_int(max_iterations, "max_iterations")
    mean0, precision0 = prior.prior_mean, prior.precision()
    if matrix.ndim != 2 or matrix.shape[1:] != mean0.shape or prior.potential is not None:
        expected = f"of the weights of x, {matrix.shape}, without a potential"
        raise ValueError(f"prior must be {expected}, got one of shape {mean0.shape}")
    offsets = _as_row(offset, "offset", np.zeros(len(matrix)))
    log_det0 = float(np.linalg.slogdet(precision0)[1])

    def at(mean: FloatArray, precision: FloatArray) -> _Point:
        cov, log_det = invert(precision)
        psi, var = matrix @ mean + offsets, np.einsum("nd,nd->n", matrix @ cov, matrix)
        value, d_mean, d_var = site.expect(psi, var)
        gap = mean - mean0
        entropy = log_det0 - log_det + size - np.sum(precision0 * cov)
        level = float(value.sum() - 0.5 * gap @ precision0 @ gap + 0.5 * entropy)
        return _Point(mean, precision, cov, level, d_mean, d_var)

    def climb(q: _Point, share: float, way: ArrayLike, turn: ArrayLike) -> tuple[_Point, float]:
        """Take a share of a step, halved until L does not fall; q itself if it always does."""
        for _ in range(_MOST_HALVINGS):
            new = at(q.mean + np.multiply(share, way), q.precision + np.multiply(share, turn))
            if new.level >= q.level - slack(q.level):
                return new, share
            share *= 0.5
        return q, share

    try:
        current = at(_as_row(start, "start", mean0), precision0)
    except (ValueError, IndexError) as error:
        raise ValueError(f"site must be of the {len(matrix)} rows of x, got {error}") from error
    if current.d_mean.shape != offsets.shape or current.d_var.shape != offsets.shape:
        raise ValueError(f"site must have derivatives {offsets.shape}, got {current.d_mean.shape}")
    if not math.isfinite(current.level):
        raise ValueError(f"site must have finite values under the prior, got {current.level}")
    share, iteration, converged = 1.0, 0, False
    while iteration < max_iterations and not converged:
        iteration += 1
        before = current
        if (current.d_var > _ROUNDING).any():
            raise ValueError(f"site must not rise with a variance, got {current.d_var.max():.3g}")
        turn = precision0 - 2.0 * matrix.T @ (current.d_var[:, None] * matrix) - current.precision
        current, share = climb(current, min(1.0, 2.0 * share), 0.0, turn)
        gradient = matrix.T @ current.d_mean - precision0 @ (current.mean - mean0)
        step = current.cov @ gradient
        length = math.sqrt(max(float(step @ gradient), 0.0))
        current, _ = climb(current, 1.0, step, 0.0)
        still = max(tolerance * tolerance * size, float(slack(current.level)))
        converged = length <= tolerance and abs(current.level - before.level) <= still
    q = current.mean[None], current.cov[None], np.array([current.level])
    return GaussianRows("sites", *q, np.array([True]), np.array([converged]), iteration)


def _as_row(value: ArrayLike | None, name: str, default: FloatArray) -> FloatArray:
    """Numbers of the shape of the default, which they are if there are none."""
    row = default if value is None else as_finite(value, name)
    if row.shape != default.shape:
        raise ValueError(f"{name} must have shape {default.shape}, got {row.shape}")
    return row
