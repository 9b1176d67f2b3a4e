r"""Delta method variational inference for a Gaussian variable without a conjugate prior.

With f as in `pgmult.variational.laplace` and q(theta) = N(m, S), the expansion of f around the mean
of q itself gives the objective

    L(m, S) = f(m) + Tr(Hess f(m) S) / 2 + log det S / 2         (Wang and Blei 2013, equation 14)

Given m the best full S is -Hess f(m)^-1, and the best diagonal one has S_ii = -1 / Hess f(m)_ii. So
L is profiled: S follows m at every step, and m climbs

    max_S L(m, S),    with gradient    grad f(m) + grad Tr(Hess f(m) S) / 2,

S held fixed in the trace (the envelope theorem). Preconditioned by -Hess f(m)^-1 that takes a few
steps, where turns between m and S take dozens.

L has no maximum where f is not concave: S grows without end as -Hess f loses its positive
definiteness. So the climb begins at a mode, stays where -Hess f is positive definite, and makes
steps of at most one standard deviation of q; a row whose mode has none is returned as Laplace
leaves it, ``is_proper`` false.

>>> import numpy as np
>>> class PoissonRows:
...     counts = np.array([[3.0], [0.0]])
...     def value(self, theta, rows):
...         return (self.counts[rows] * theta - np.exp(theta) - 0.5 * theta**2).sum(axis=1)
...     def gradient(self, theta, rows):
...         return self.counts[rows] - np.exp(theta) - theta
...     def hessian(self, theta, rows):
...         return -np.exp(theta)[:, :, None] - 1.0
>>> fit_delta(PoissonRows(), np.zeros((2, 1))).mean.round(3)
array([[ 0.685],
       [-0.677]])
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core.arguments import as_flag, as_real
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.variational.ascent import Climb
from pgmult.variational.derivatives import RowObjectives, bends, refuse_unless_equal, some_rows
from pgmult.variational.laplace import GaussianRows, as_start, definite_inverses, newton_ascent

__all__ = ["delta_ascent", "fit_delta", "numerical_trace_gradient"]

_LONGEST_STEP = 1.0  # in standard deviations of q
_REACH = 0.02  # of the finite differences, in standard deviations


def numerical_trace_gradient(
    objectives: RowObjectives, theta: FloatArray, cov: FloatArray, rows: IntArray
) -> FloatArray:
    """The gradient of Tr(Hess f(theta) cov) by differences of gradients, ``(num, n)``.

    With cov = L L', the trace is the sum over columns l of L of the second derivative of f along l,
    so its gradient is that of the gradient: a five-point difference of steps 0.02 l, right to
    some 1e-8 where f changes on the scale of l. Costs 4 n + 1 gradients.
    """
    roots = np.linalg.cholesky(cov)
    centre = objectives.gradient(theta, rows)
    total = np.zeros_like(theta)
    for column in range(theta.shape[1]):
        step = _REACH * roots[:, :, column]
        near = objectives.gradient(theta + step, rows) + objectives.gradient(theta - step, rows)
        far = objectives.gradient(theta + 2.0 * step, rows)
        far = far + objectives.gradient(theta - 2.0 * step, rows)
        total += 16.0 * near - far - 30.0 * centre
    return total / (12.0 * _REACH**2)


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
        Its ``trace_gradient``, if it has one, is used.
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
        As `pgmult.variational.fit_laplace`; and if ``trace_gradient`` is not what finite
        differences say.
    """
    as_real(tolerance, "tolerance", minimum=0.0)
    as_positive_int(max_iterations, "max_iterations")
    as_flag(diagonal, "diagonal")
    theta = as_start(objectives, start)
    check_trace_gradient(objectives, theta)
    return delta_ascent(
        objectives, theta, diagonal=diagonal, tolerance=tolerance, max_iterations=max_iterations
    )


def check_trace_gradient(
    objectives: RowObjectives, theta: FloatArray, name: str = "objectives"
) -> None:
    """Refuse a ``trace_gradient`` that is not that of the trace, at a few rows."""
    trace_gradient: Any = getattr(objectives, "trace_gradient", None)
    if trace_gradient is None:
        return
    rows = some_rows(len(theta))
    here = theta[rows]
    sd = np.maximum(bends(objectives.hessian(here, rows)), 1e-3 * np.abs(here))
    cov = np.eye(theta.shape[1]) * (sd**2)[:, :, None]
    answer = np.asarray(trace_gradient(here, cov, rows))
    if answer.shape != here.shape:
        raise ValueError(
            f"{name}.trace_gradient must return an array of shape {here.shape} for {len(rows)} rows"
            f" of {theta.shape[1]} numbers, got {answer.shape}"
        )
    with np.errstate(all="ignore"):  # beyond the domain of f
        wide, narrow = (
            numerical_trace_gradient(objectives, here, size * cov, rows) / size
            for size in (1.0, 0.01)
        )
        rounding = 1e-8 * np.abs(objectives.gradient(here, rows)).max(axis=1, keepdims=True)
        doubt = 10.0 * np.abs(wide - narrow) + rounding
    refuse_unless_equal(answer, narrow, doubt, rows, f"{name}.trace_gradient", "Tr(hessian cov)")


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
    trace_gradient: Any = getattr(objectives, "trace_gradient", None)
    theta = modes.mean
    level, preconditioner, cov, is_proper = _profile(
        objectives, theta, np.arange(len(theta)), diagonal
    )
    cov[~is_proper] = modes.cov[~is_proper]
    converged = np.zeros(len(theta), dtype=bool)
    active = np.flatnonzero(is_proper)
    iteration = 0
    while len(active) and iteration < max_iterations:
        iteration += 1
        here, spread = theta[active], cov[active]
        if trace_gradient is None:
            of_trace = numerical_trace_gradient(objectives, here, spread, active)
        else:
            of_trace = trace_gradient(here, spread, active)
        gradient = objectives.gradient(here, active) + 0.5 * of_trace
        step = np.einsum("rij,rj->ri", preconditioner[active], gradient)
        length = np.sqrt(np.maximum(np.einsum("ri,ri->r", step, gradient), 0.0))
        longest = np.minimum(1.0, _LONGEST_STEP / np.maximum(length, 1e-300))
        climb = Climb(level[active], share=longest)
        for waiting in climb:
            rows = active[waiting]
            trial = theta[rows] + climb.share[waiting, None] * step[waiting]
            with np.errstate(all="ignore"):  # a step may leave the domain of f: it is refused
                value, conditioner, covs, defined = _profile(objectives, trial, rows, diagonal)
            good = climb.accept(np.where(defined, value, np.nan))
            moved = rows[good]
            theta[moved], level[moved], cov[moved] = trial[good], value[good], covs[good]
            preconditioner[moved] = conditioner[good]
        converged[active] = length <= tolerance
        active = active[~(converged[active] | climb.stuck)]
    level = np.where(is_proper, level + 0.5 * theta.shape[1] * math.log(2.0 * math.pi), modes.level)
    method = "diagonal_delta" if diagonal else "delta"
    return GaussianRows(method, theta, cov, level, is_proper, converged, iteration)


def _profile(
    objectives: RowObjectives, theta: FloatArray, rows: IntArray, diagonal: bool
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """max_S L up to a constant, the full inverse of -Hess f, S, and where they are defined."""
    precision = -objectives.hessian(theta, rows)
    inverse, log_dets, is_definite = definite_inverses(precision)
    value = objectives.value(theta, rows)
    if not diagonal:
        return value - 0.5 * log_dets, inverse, inverse.copy(), is_definite
    variances = np.where(is_definite[:, None], np.diagonal(precision, axis1=1, axis2=2), 1.0)
    cov = np.eye(theta.shape[1]) / variances[:, :, None]
    return value - 0.5 * np.log(variances).sum(axis=1), inverse, cov, is_definite
