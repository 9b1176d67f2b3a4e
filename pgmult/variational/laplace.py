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

A model states its f as `RowObjectives`. `rows` says which of all thetas are asked for: those that
have converged drop out. This one is a Poisson regression of each row on nothing but itself:

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

Reference: Wang and Blei (2013), Variational inference in nonconjugate models, section 3.1.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from pgmult.compiled.newton import invert_rows, solve_rows
from pgmult.compiled.rows import over_rows
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_finite, as_positive_int

__all__ = ["GaussianRows", "HessianProducts", "RowObjectives", "dense_hessian", "expand"]
__all__ += ["fit_laplace"]

_GRAIN = 16  # systems that a thread takes at least
_MOST_HALVINGS = 50
_LEAST_CURVATURE = 1e-8  # of an eigenvalue, relative to the largest
_SUFFICIENT = 1e-4  # of the rise that the gradient promises (Armijo)
_SLACK = 1e-12  # of |f|: what rounding may take from a rise


class RowObjectives(Protocol):
    """f_r(theta_r) for independent rows r, twice differentiable.

    Every method takes thetas, ``(num, n)``, and which rows they are of, an int64 array ``(num,)``.
    A value may be -inf or nan where f is not defined. An object may also have
    ``trace_gradient(theta, cov, rows)``, the gradient of Tr(Hess f_r(theta_r) cov_r) with respect
    to theta_r, ``(num, n)``, for the delta method; otherwise that is found numerically.
    """

    def value(self, theta: FloatArray, rows: IntArray) -> FloatArray:
        """``(num,)``."""

    def gradient(self, theta: FloatArray, rows: IntArray) -> FloatArray:
        """``(num, n)``."""

    def hessian(self, theta: FloatArray, rows: IntArray) -> FloatArray:
        """``(num, n, n)``: see `dense_hessian` for a model that has products only."""


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
    """Independent Gaussian factors q(theta_r) = N(mean_r, cov_r).

    Attributes
    ----------
    mean : array, ``(num_rows, n)``
    cov : array, ``(num_rows, n, n)``
    is_proper : bool array, ``(num_rows,)``
        Whether -Hess f was positive definite there. Where it was not, `cov` is made of the absolute
        values of its eigenvalues, and says little.
    converged : bool array, ``(num_rows,)``
        Whether the last step was within the tolerance.
    num_iterations : int
        Of the slowest row.
    """

    mean: FloatArray
    cov: FloatArray
    is_proper: BoolArray
    converged: BoolArray
    num_iterations: int

    def entropy(self) -> FloatArray:
        """-E_q log q of each row, ``(num_rows,)``."""
        n = self.mean.shape[1]
        log_dets = np.linalg.slogdet(self.cov)[1]
        return np.asarray(0.5 * (log_dets + n * (1.0 + math.log(2.0 * math.pi))))


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

    Notes
    -----
    An iteration costs O(n**3) a row that has not converged, on all the threads of the enclosing
    context. f never falls, whatever its shape; with several modes the one found depends on `start`.
    """
    max_iterations = as_positive_int(max_iterations, "max_iterations")
    theta = _as_start(start)
    level = _finite_start(objectives, theta)
    active = np.arange(len(theta))
    converged = np.zeros(len(theta), dtype=bool)
    iteration = 0
    while len(active) and iteration < max_iterations:
        iteration += 1
        gradient = objectives.gradient(theta[active], active)
        step, is_definite = newton_steps(-objectives.hessian(theta[active], active), gradient)
        rise = np.einsum("rn,rn->r", gradient, step)
        stuck = _climb(objectives, theta, level, active, step, rise)
        small = np.sqrt(np.maximum(rise, 0.0)) <= tolerance
        converged[active] = small & is_definite
        active = active[~(small | stuck)]
    rows = np.arange(len(theta))
    cov, is_proper = curvature_cov(-objectives.hessian(theta, rows))
    return GaussianRows(theta, cov, is_proper, converged, iteration)


def expand(objectives: RowObjectives, mean: ArrayLike) -> GaussianRows:
    """The Gaussian of the second-order expansion of f at the previous mean (Ahmed and Xing 2007).

    Its covariance is the curvature at `mean`, and its mean one Newton step from there, halved until
    f does not fall.

    Parameters
    ----------
    objectives : RowObjectives
    mean : array, ``(num_rows, n)``
    """
    theta = _as_start(mean)
    rows = np.arange(len(theta))
    level = _finite_start(objectives, theta)
    gradient, precision = objectives.gradient(theta, rows), -objectives.hessian(theta, rows)
    step, is_definite = newton_steps(precision, gradient)
    _climb(objectives, theta, level, rows, step, np.einsum("rn,rn->r", gradient, step))
    return GaussianRows(theta, curvature_cov(precision)[0], is_definite, is_definite, 1)


def _as_start(start: ArrayLike) -> FloatArray:
    theta = as_finite(start, "start").copy()
    if theta.ndim != 2:
        raise ValueError(f"start must have shape (rows, n), got {theta.shape}")
    return theta


def _finite_start(objectives: RowObjectives, theta: FloatArray) -> FloatArray:
    level = np.array(objectives.value(theta, np.arange(len(theta))))
    if not np.isfinite(level).all():
        row = int(np.argmin(np.isfinite(level)))
        raise ValueError(f"f must be finite at the start, got {level[row]} for row {row}")
    return level


def _climb(
    objectives: RowObjectives,
    theta: FloatArray,
    level: FloatArray,
    active: IntArray,
    step: FloatArray,
    rise: FloatArray,
) -> BoolArray:
    """Move `theta` and `level` of the active rows by halved steps; whether a row could not move."""
    waiting = np.arange(len(active))
    scale = 1.0
    for _ in range(_MOST_HALVINGS):
        rows = active[waiting]
        trial = theta[rows] + scale * step[waiting]
        with np.errstate(all="ignore"):  # a step may leave the domain of f: it is refused
            value = objectives.value(trial, rows)
        least = level[rows] + _SUFFICIENT * scale * rise[waiting] - slack(level[rows])
        good = value >= least
        theta[rows[good]] = trial[good]
        level[rows[good]] = value[good]
        waiting = waiting[~good]
        if len(waiting) == 0:
            break
        scale *= 0.5
    stuck = np.zeros(len(active), dtype=bool)
    stuck[waiting] = True
    return stuck


def slack(level: FloatArray) -> FloatArray:
    """What rounding may take from a rise of f."""
    return np.asarray(_SLACK * (1.0 + np.abs(level)))


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


def curvature_cov(precision: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Inverses, and whether the precision is positive definite; where not, as `newton_steps`."""
    cov, _, is_definite = definite_inverses(precision)
    for r in np.flatnonzero(~is_definite):
        values, vectors = _absolute_eigenvalues(precision[r])
        cov[r] = (vectors / values) @ vectors.T
    return cov, is_definite


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
