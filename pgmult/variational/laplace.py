r"""Laplace variational inference for a Gaussian variable without a conjugate prior.

In Wang and Blei's class of models a variable theta has a Gaussian factor q(theta) = N(m, S), and
all that the other factors leave of the log joint is a function of theta,

    f(theta) = log p(theta) + E_q[log p(z | theta)] + ...        (their equation 8)

The best q(theta) is proportional to exp f. Laplace's approximation takes its mode and curvature,

    m = argmax f,    S = -Hess f(m)^-1                           (their equation 10)

`fit_laplace` finds the modes of many independent thetas at once (a theta a document, say), by
Newton's method, made safe: where -Hess f is not positive definite its eigenvalues are replaced by
their absolute values, so every step ascends, and a step that does not raise f enough is halved.
`expand` is the one-step variant of Ahmed and Xing (2007): the expansion at the previous mean.

The library's models have solvers of their own; these, and `pgmult.variational.fit_delta`, are for
yours. State f as `RowObjectives`, where `rows` says which of all thetas are asked for: those that
have converged drop out. Here counts of each row are Poisson, and the log of their rate is normal:

>>> import numpy as np
>>> class PoissonRows:
...     counts = np.array([[3.0], [0.0]])
...     def value(self, theta, rows):
...         return (self.counts[rows] * theta - np.exp(theta) - 0.5 * theta**2).sum(axis=1)
...     def gradient(self, theta, rows):
...         return self.counts[rows] - np.exp(theta) - theta
...     def hessian(self, theta, rows):
...         return -np.exp(theta)[:, :, None] - 1.0
>>> q = fit_laplace(PoissonRows(), np.zeros((2, 1)))
>>> q.mean.round(3), q.cov.round(3).ravel()
(array([[ 0.792],
       [-0.567]]), array([0.312, 0.638]))
>>> q.converged, round(q.objective, 3)
(True, 0.157)

Derivatives are easily got wrong, so they are compared with finite differences at the start:

>>> class ForgottenPrior(PoissonRows):
...     def gradient(self, theta, rows):
...         return self.counts[rows] - np.exp(theta)
>>> fit_laplace(ForgottenPrior(), np.full((2, 1), 0.5))  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
ValueError: ...gradient...: entry 0 of row 0 is 1.35128, and finite differences give 0.851279

Reference: Wang and Blei (2013), Variational inference in nonconjugate models, section 3.1.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from pgmult.compiled.newton import invert_rows, solve_rows
from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_kind, as_real
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_finite, as_positive_int
from pgmult.variational.ascent import Climb
from pgmult.variational.derivatives import RowObjectives, check_derivatives

__all__ = ["GaussianRows", "HessianProducts", "as_start", "dense_hessian", "expand", "fit_laplace"]
__all__ += ["newton_ascent"]

_GRAIN = 16  # systems that a thread takes at least
_LEAST_CURVATURE = 1e-8  # of an eigenvalue, relative to the largest
_LOG_2PI = math.log(2.0 * math.pi)


class HessianProducts(Protocol):
    """What `dense_hessian` needs."""

    def hessian_product(self, theta: FloatArray, vectors: FloatArray, rows: IntArray) -> FloatArray:
        """Hess f_r(theta_r) vectors_r, ``(num, n)``."""


def dense_hessian(products: HessianProducts, theta: FloatArray, rows: IntArray) -> FloatArray:
    """Hessians, ``(num, n, n)``, from n products with unit vectors."""
    columns = []
    for axis in range(theta.shape[1]):
        vectors = np.zeros_like(theta)
        vectors[:, axis] = 1.0
        columns.append(products.hessian_product(theta, vectors, rows))
    hessian = np.stack(columns, axis=2)
    return np.asarray(0.5 * (hessian + np.swapaxes(hessian, 1, 2)))


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
        values of its eigenvalues, and says little.
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
        """Whether every row has."""
        return bool(self.row_converged.all())

    def entropy(self) -> FloatArray:
        """-E_q log q of each row, ``(num_rows,)``."""
        n = self.mean.shape[1]
        log_dets = np.linalg.slogdet(self.cov)[1]
        return np.asarray(0.5 * (log_dets + n * (1.0 + _LOG_2PI)))


def fit_laplace(
    objectives: RowObjectives,
    start: ArrayLike,
    *,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
) -> GaussianRows:
    """Modes of f and the Gaussians of its curvature there.

    Parameters
    ----------
    objectives : RowObjectives
    start : array, ``(num_rows, n)``
        Where to start from; f must be finite there.
    tolerance : float
        A row has converged when a Newton step moves it by no more than this, in standard
        deviations of q (Mahalanobis).
    max_iterations : int

    Returns
    -------
    GaussianRows

    Raises
    ------
    ValueError
        If an answer of `objectives` has another shape than it should, if a gradient or a Hessian is
        not what finite differences of a few rows say at the start, or if f is not finite there.

    Notes
    -----
    An iteration costs O(n**3) a row that has not converged, on all the threads of the enclosing
    context. f never falls, whatever its shape; with several modes the one found depends on `start`.
    """
    as_real(tolerance, "tolerance", minimum=0.0)
    as_positive_int(max_iterations, "max_iterations")
    theta = as_start(objectives, start)
    return newton_ascent(objectives, theta, tolerance=tolerance, max_iterations=max_iterations)


def newton_ascent(
    objectives: RowObjectives,
    start: FloatArray,
    *,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
) -> GaussianRows:
    """`fit_laplace` of objectives and a start that have been seen to be right."""
    theta = start.copy()
    level = _finite_start(objectives, theta)
    active = np.arange(len(theta))
    converged = np.zeros(len(theta), dtype=bool)
    iteration = 0
    while len(active) and iteration < max_iterations:
        iteration += 1
        gradient = objectives.gradient(theta[active], active)
        step, is_definite = newton_steps(-objectives.hessian(theta[active], active), gradient)
        rise = np.einsum("rn,rn->r", gradient, step)
        stuck = _step(objectives, theta, level, active, step, rise)
        small = np.sqrt(np.maximum(rise, 0.0)) <= tolerance
        converged[active] = small & is_definite
        active = active[~(small | stuck)]
    rows = np.arange(len(theta))
    cov, log_dets, is_proper = curvature_cov(-objectives.hessian(theta, rows))
    level = level + 0.5 * (theta.shape[1] * _LOG_2PI - log_dets)
    return GaussianRows("laplace", theta, cov, level, is_proper, converged, iteration)


def expand(objectives: RowObjectives, mean: FloatArray) -> GaussianRows:
    """The Gaussian of the second-order expansion of f at the previous mean (Ahmed and Xing 2007).

    Its covariance is the curvature at `mean`, and its mean one Newton step from there, halved until
    f does not fall.

    Parameters
    ----------
    objectives : RowObjectives
    mean : array, ``(num_rows, n)``
    """
    theta = mean.copy()
    rows = np.arange(len(theta))
    level = _finite_start(objectives, theta)
    gradient, precision = objectives.gradient(theta, rows), -objectives.hessian(theta, rows)
    step, is_definite = newton_steps(precision, gradient)
    _step(objectives, theta, level, rows, step, np.einsum("rn,rn->r", gradient, step))
    cov, log_dets, _ = curvature_cov(precision)
    level = level + 0.5 * (theta.shape[1] * _LOG_2PI - log_dets)
    return GaussianRows("previous_mean", theta, cov, level, is_definite, is_definite, 1)


def as_start(objectives: RowObjectives, start: ArrayLike) -> FloatArray:
    """A user's start, ``(num_rows, n)``, of objectives whose derivatives are right there."""
    as_kind(objectives, "objectives", RowObjectives)
    theta = as_finite(start, "start").copy()
    if theta.ndim != 2:
        raise ValueError(f"start must have shape (rows, n), got {theta.shape}")
    _finite_start(objectives, theta)
    check_derivatives(objectives, theta)
    return theta


def _finite_start(objectives: RowObjectives, theta: FloatArray) -> FloatArray:
    level = np.array(objectives.value(theta, np.arange(len(theta))))
    if not np.isfinite(level).all():
        row = int(np.argmin(np.isfinite(level)))
        raise ValueError(f"f must be finite at the start, got {level[row]} for row {row}")
    return level


def _step(
    objectives: RowObjectives,
    theta: FloatArray,
    level: FloatArray,
    active: IntArray,
    step: FloatArray,
    rise: FloatArray,
) -> BoolArray:
    """Move `theta` and `level` of the active rows, in place; whether a row could not move."""
    climb = Climb(level[active], promise=rise)
    for waiting in climb:
        rows = active[waiting]
        trial = theta[rows] + climb.share[waiting, None] * step[waiting]
        with np.errstate(all="ignore"):  # a step may leave the domain of f: it is refused
            value = objectives.value(trial, rows)
        good = climb.accept(value)
        theta[rows[good]] = trial[good]
        level[rows[good]] = value[good]
    return climb.stuck


def newton_steps(precision: FloatArray, gradient: FloatArray) -> tuple[FloatArray, BoolArray]:
    """precision^-1 gradient, and whether the precision is positive definite.

    Where it is not, its eigenvalues count by their absolute values: a direction of ascent.
    """
    precision, gradient = np.ascontiguousarray(precision), np.ascontiguousarray(gradient)
    steps = np.empty_like(gradient)
    is_definite = np.empty(len(gradient), dtype=np.bool_)
    over_rows(solve_rows, len(gradient), precision, gradient, steps, is_definite, grain=_GRAIN)
    for r in np.flatnonzero(~is_definite):
        values, vectors = _absolute_eigenvalues(precision[r])
        steps[r] = vectors @ (vectors.T @ gradient[r] / values)
    return steps, is_definite


def curvature_cov(precision: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """As `definite_inverses`, and where a precision is not definite as `newton_steps` takes it."""
    cov, log_dets, is_definite = definite_inverses(precision)
    for r in np.flatnonzero(~is_definite):
        values, vectors = _absolute_eigenvalues(precision[r])
        cov[r] = (vectors / values) @ vectors.T
        log_dets[r] = np.log(values).sum()
    return cov, log_dets, is_definite


def definite_inverses(precision: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Inverses and log determinants where the precision is positive definite, and where it is."""
    precision = np.ascontiguousarray(precision)
    cov, log_dets = np.zeros_like(precision), np.zeros(len(precision))
    is_definite = np.empty(len(precision), dtype=np.bool_)
    over_rows(invert_rows, len(precision), precision, cov, log_dets, is_definite, grain=_GRAIN)
    return cov, log_dets, is_definite


def _absolute_eigenvalues(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, vectors = np.linalg.eigh(matrix)
    values = np.abs(values)
    return np.maximum(values, max(_LEAST_CURVATURE * values[-1:].max(), 1e-300)), vectors
