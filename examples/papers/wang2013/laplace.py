r"""Gaussian factors of variables without conjugate priors: Laplace's method and the delta method.

In Wang and Blei's class of models a variable theta has a Gaussian factor q(theta) = N(m, S), and
all that the other factors leave of the log joint is a function of theta,

    f(theta) = log p(theta) + E_q[log p(z | theta)] + ...        (their equation 8)

The best q(theta) is proportional to exp f. Laplace's approximation takes its mode and curvature,

    m = argmax f,    S = -Hess f(m)^-1                           (their equation 10)

`fit_laplace` finds the modes of many independent thetas at once (one theta per document, say), by
Newton's method, made safe: where -Hess f is not positive definite its eigenvalues are replaced by
their absolute values, so every step ascends, and a step that does not raise f enough is halved.
`expand` is the one-step variant of Ahmed and Xing (2007): the expansion at the previous mean.

The delta method expands f around the mean of q itself, which gives the objective

    L(m, S) = f(m) + Tr(Hess f(m) S) / 2 + log det S / 2         (their equation 14)

Given m the best full S is -Hess f(m)^-1, and the best diagonal one has S_ii = -1 / Hess f(m)_ii. So
`fit_delta` profiles L: S follows m at every step, and m climbs

    max_S L(m, S),    with gradient    grad f(m) + grad Tr(Hess f(m) S) / 2,

S held fixed in the trace (the envelope theorem). Preconditioned by -Hess f(m)^-1 that takes a few
steps, where turns between m and S take dozens. L has no maximum where f is not concave: S grows
without end as -Hess f loses its positive definiteness. So the climb begins at a mode, stays where
-Hess f is positive definite, and makes steps of at most one standard deviation of q; a row whose
mode has none is returned as Laplace leaves it, ``is_proper`` false.

The library's models have solvers of their own; these are for yours. State f as `RowObjectives`,
where `rows` says which of all thetas are asked for: those that have converged drop out. Here counts
of each row are Poisson, and the log of their rate is normal:

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
>>> fit_delta(PoissonRows(), np.zeros((2, 1))).mean.round(3)
array([[ 0.685],
       [-0.677]])

Derivatives are easily got wrong, so they are compared with finite differences at the start:

>>> class ForgottenPrior(PoissonRows):
...     def gradient(self, theta, rows):
...         return self.counts[rows] - np.exp(theta)
>>> fit_laplace(ForgottenPrior(), np.full((2, 1), 0.5))  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
ValueError: ...gradient...: entry 0 of row 0 is 1.35128, and finite differences give 0.851279

Reference: Wang and Blei (2013), Variational inference in nonconjugate models, sections 3.1 and 3.2.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from examples.papers.climb import Climb
from examples.papers.wang2013.derivatives import RowObjectives, check_derivatives, trace_gradient
from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import cholesky, inverse_from_root
from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_flag, as_kind, as_real
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_finite, as_positive_int
from pgmult.variational import GaussianRows

_GRAIN = 16  # systems that a thread takes at least
_LEAST_CURVATURE = 1e-8  # of an eigenvalue, relative to the largest
_LONGEST_STEP = 1.0  # of the delta method, in standard deviations of q
_LOG_2PI = math.log(2.0 * math.pi)


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
    An iteration costs O(n**3) per row that has not converged, on all the threads of the enclosing
    context. f never falls, whatever its shape; with several modes the one found depends on `start`.
    """
    as_real(tolerance, "tolerance", minimum=0.0)
    as_positive_int(max_iterations, "max_iterations")
    theta = _as_start(objectives, start)
    return newton_ascent(objectives, theta, tolerance=tolerance, max_iterations=max_iterations)


def fit_delta(
    objectives: RowObjectives,
    start: ArrayLike,
    *,
    diagonal: bool = False,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
) -> GaussianRows:
    """Means and covariances that maximise the delta method's objective.

    Parameters
    ----------
    objectives : RowObjectives
    start : array, ``(num_rows, n)``
        Where Newton's method starts towards the modes; f must be finite there.
    diagonal : bool
        Whether covariances are diagonal.
    tolerance : float
        A row has converged when a step moves it by no more than this, in standard deviations.
    max_iterations : int
        Of the climb from the mode.

    Returns
    -------
    GaussianRows

    Raises
    ------
    ValueError
        As `fit_laplace`.
    """
    as_real(tolerance, "tolerance", minimum=0.0)
    as_positive_int(max_iterations, "max_iterations")
    as_flag(diagonal, "diagonal")
    theta = _as_start(objectives, start)
    return delta_ascent(
        objectives, theta, diagonal=diagonal, tolerance=tolerance, max_iterations=max_iterations
    )


def newton_ascent(
    objectives: RowObjectives,
    start: FloatArray,
    *,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
) -> GaussianRows:
    """`fit_laplace` of objectives and a start that have been seen to be right."""
    climb = _newton(objectives, start, tolerance, max_iterations)
    cov, log_dets, is_proper = _inverses(_precision(objectives, climb.theta))
    return _gaussians("laplace", climb, cov, log_dets, is_proper)


def expand(objectives: RowObjectives, mean: FloatArray) -> GaussianRows:
    """The Gaussian of the second-order expansion of f at the previous mean (Ahmed and Xing 2007).

    Its covariance is the curvature at `mean`, and its mean one Newton step from there, halved until
    f does not fall.

    Parameters
    ----------
    objectives : RowObjectives
    mean : array, ``(num_rows, n)``
    """
    cov, log_dets, is_definite = _inverses(_precision(objectives, mean))
    climb = _newton(objectives, mean, 0.0, 1)
    climb.converged = is_definite
    return _gaussians("previous_mean", climb, cov, log_dets, is_definite)


def delta_ascent(
    objectives: RowObjectives,
    start: FloatArray,
    *,
    diagonal: bool = False,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
) -> GaussianRows:
    """`fit_delta` of objectives and a start that have been seen to be right."""
    modes = newton_ascent(objectives, start, tolerance=max(tolerance, 1e-3))

    def profile(theta: FloatArray, rows: IntArray) -> tuple[FloatArray, ...]:
        """max_S L up to a constant, S and the full inverse of -Hess f; nan where undefined."""
        precision = -objectives.hessian(theta, rows)
        inverse, log_dets, is_definite = _inverses(precision)
        cov = inverse.copy()
        if diagonal:
            precisions = np.diagonal(precision, axis1=1, axis2=2)
            variances = np.where(is_definite[:, None], precisions, 1.0)
            cov, log_dets = np.eye(theta.shape[1]) / variances[:, :, None], np.log(variances).sum(1)
        value = objectives.value(theta, rows) - 0.5 * log_dets
        return np.where(is_definite, value, np.nan), cov, inverse

    level, cov, inverse = profile(modes.mean, np.arange(len(start)))
    is_proper = ~np.isnan(level)
    cov[~is_proper] = modes.cov[~is_proper]
    climb = _RowClimb(modes.mean, level, profile, (cov, inverse))

    def steps(active: IntArray) -> tuple[Any, ...]:
        current = climb.theta[active]
        of_trace = trace_gradient(objectives, current, cov[active], active)
        gradient = objectives.gradient(current, active) + 0.5 * of_trace
        step = np.einsum("rij,rj->ri", inverse[active], gradient)
        length = np.sqrt(np.maximum(np.einsum("ri,ri->r", step, gradient), 0.0))
        return step, length, True, 0.0, np.minimum(1.0, _LONGEST_STEP / np.maximum(length, 1e-300))

    climb.ascend(steps, np.flatnonzero(is_proper), tolerance, max_iterations)
    level = np.where(is_proper, level + 0.5 * start.shape[1] * _LOG_2PI, modes.level)
    return GaussianRows(
        "diagonal_delta" if diagonal else "delta", climb.theta, cov, level, is_proper,
        climb.converged, climb.num_iterations,
    )  # fmt: skip


@dataclass(slots=True, eq=False)
class _RowClimb:
    """Rows that climb, each until its steps are short."""

    theta: FloatArray
    level: FloatArray
    evaluate: Callable[[FloatArray, IntArray], tuple[FloatArray, ...]]  # a level, and what is kept
    kept: Sequence[FloatArray] = ()
    converged: Any = None
    num_iterations: int = 0

    def ascend(
        self,
        steps: Callable[[IntArray], tuple[Any, ...]],
        active: IntArray,
        tolerance: float,
        max_iterations: int,
    ) -> None:
        """Move the active rows, in place.

        Steps come with their lengths in standard deviations, whether a short one means convergence,
        the rises that they promise and the shares of them to try first.
        """
        self.converged = np.zeros(len(self.theta), dtype=bool)
        while len(active) and self.num_iterations < max_iterations:
            self.num_iterations += 1
            step, length, is_sound, promise, share = steps(active)
            climb = Climb(self.level[active], promise=promise, share=share)
            for waiting in climb:
                rows = active[waiting]
                trial = self.theta[rows] + climb.share[waiting, None] * step[waiting]
                with np.errstate(all="ignore"):  # a step may leave the domain of f: it is refused
                    value, *carried = self.evaluate(trial, rows)
                good = climb.accept(value)
                for array, new in zip(
                    (self.theta, self.level, *self.kept), (trial, value, *carried), strict=True
                ):
                    array[rows[good]] = new[good]
            small = length <= tolerance
            self.converged[active] = small & is_sound
            active = active[~(small | climb.stuck)]


def _newton(
    objectives: RowObjectives, start: FloatArray, tolerance: float, max_iterations: int
) -> _RowClimb:
    """Rows that have climbed f itself by Newton's steps."""
    level = _finite_start(objectives, start)
    climb = _RowClimb(start.copy(), level, lambda t, rows: (objectives.value(t, rows),))

    def steps(active: IntArray) -> tuple[Any, ...]:
        current = climb.theta[active]
        gradient = objectives.gradient(current, active)
        cov, _, is_definite = _inverses(-objectives.hessian(current, active))
        step = np.einsum("rij,rj->ri", cov, gradient)
        rise = np.einsum("ri,ri->r", gradient, step)
        return step, np.sqrt(np.maximum(rise, 0.0)), is_definite, rise, 1.0

    climb.ascend(steps, np.arange(len(start)), tolerance, max_iterations)
    return climb


def _gaussians(
    method: str, climb: _RowClimb, cov: FloatArray, log_dets: FloatArray, is_proper: BoolArray
) -> GaussianRows:
    """Gaussians where the rows are, with these covariances, of which minus `log_dets` are known."""
    level = climb.level + 0.5 * (climb.theta.shape[1] * _LOG_2PI - log_dets)
    return GaussianRows(
        method, climb.theta, cov, level, is_proper, climb.converged, climb.num_iterations
    )


def _as_start(objectives: RowObjectives, start: ArrayLike) -> FloatArray:
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


def _precision(objectives: RowObjectives, theta: FloatArray) -> FloatArray:
    return -objectives.hessian(theta, np.arange(len(theta)))


@jit
def _invert_rows(worker, start, stop, matrices, inverses, log_dets, is_definite):
    """Inverses and log determinants of the matrices that are positive definite."""
    for r in range(start, stop):
        root = matrices[r].copy()
        is_definite[r] = cholesky(root) == 0
        if is_definite[r]:
            log_dets[r] = 0.0
            for i in range(root.shape[0]):
                log_dets[r] += 2.0 * math.log(root[i, i])
            inverses[r] = inverse_from_root(root)


def _inverses(precision: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Inverses and log determinants of precisions, and which are positive definite.

    Where one is not, its eigenvalues count by their absolute values: a direction of ascent.
    """
    precision = np.ascontiguousarray(precision)
    cov, log_dets = np.zeros_like(precision), np.zeros(len(precision))
    is_definite = np.empty(len(precision), dtype=np.bool_)
    over_rows(_invert_rows, len(precision), precision, cov, log_dets, is_definite, grain=_GRAIN)
    for r in np.flatnonzero(~is_definite & np.isfinite(precision).all(axis=(1, 2))):
        values, vectors = np.linalg.eigh(precision[r])
        values = np.abs(values)
        values = np.maximum(values, max(_LEAST_CURVATURE * values.max(initial=0.0), 1e-300))
        cov[r], log_dets[r] = (vectors / values) @ vectors.T, np.log(values).sum()
    return cov, log_dets, is_definite
