r"""Coordinate ascent for models with Gaussian variables that have no conjugate priors.

A model has Gaussian *nodes*, each of many independent rows, and a *rest*: conjugate factors and
point estimates. One iteration (Wang and Blei 2013, algorithm 1; appendix A for directed graphs)

1. takes each node in turn and fits its Gaussian N(m, S) to f, what the other factors leave of the
   log joint as a function of the node (their equation 8);
2. updates the rest in closed form, given the Gaussians.

Methods differ in where f is expanded. Laplace's takes m = argmax f and S = -Hess f(m)^-1; the
"previous mean" makes one Newton step from the mean before (Ahmed and Xing 2007); the delta method
maximises

    L(m, S) = f(m) + Tr(Hess f(m) S) / 2 + log det S / 2         (their equation 14)

Given m its best full S is -Hess f(m)^-1, and the best diagonal one has S_ii = -1 / Hess f(m)_ii. So
m climbs max_S L(m, S), with gradient grad f(m) + grad Tr(Hess f(m) S) / 2, S held fixed in the
trace (the envelope theorem), preconditioned by -Hess f(m)^-1. L has no maximum where f is not
concave: the climb begins at a mode, stays where -Hess f is positive definite, and makes steps of at
most one standard deviation of q.

f of a node is an object with ``value(theta, rows)``, ``gradient(theta, rows)`` and
``hessian(theta, rows)`` of thetas ``(num, n)`` that belong to the rows ``(num,)``.

>>> class PoissonRows:
...     counts = np.array([[3.0], [0.0]])
...     def value(self, theta, rows):
...         return (self.counts[rows] * theta - np.exp(theta) - 0.5 * theta**2).sum(axis=1)
...     def gradient(self, theta, rows):
...         return self.counts[rows] - np.exp(theta) - theta
...     def hessian(self, theta, rows):
...         return -np.exp(theta)[:, :, None] - 1.0
>>> q = fit_laplace(PoissonRows(), np.zeros((2, 1)))
>>> q.mean.round(3).tolist(), q.converged, round(q.objective, 3)
([[0.792], [-0.567]], True, 0.157)
>>> fit_delta(PoissonRows(), np.zeros((2, 1))).mean.round(3).tolist()
[[0.685], [-0.677]]
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from pgmult.variational.ascent import Climb, HasHistory

LOG_2PI = np.log(2.0 * np.pi)
LEAST_CURVATURE = 1e-8  # of an eigenvalue, relative to the largest
REACH = 0.02  # of differences for traces, in standard deviations


@dataclass(frozen=True, eq=False)
class GaussianRows:
    """Independent Gaussian factors q(theta_r) = N(mean_r, cov_r).

    `level` is f(mean) + log det(2 pi cov) / 2, and `is_proper` whether -Hess f was positive
    definite at the mean; where not, `cov` is made of the absolute values of its eigenvalues.
    """

    mean: np.ndarray
    cov: np.ndarray
    level: np.ndarray
    is_proper: np.ndarray
    row_converged: np.ndarray
    num_iterations: int = 0

    @property
    def objective(self):
        """The sum of all rows' levels."""
        return float(self.level.sum())

    @property
    def converged(self):
        """Whether every row has converged."""
        return bool(self.row_converged.all())

    def entropy(self):
        """-E_q log q of each row, ``(num_rows,)``."""
        n = self.mean.shape[1]
        return 0.5 * (np.linalg.slogdet(self.cov)[1] + n * (1.0 + LOG_2PI))


def inverses(precision):
    """Inverses ``(num, n, n)``, log determinants, and where the precision is positive definite.

    Where it is not, its eigenvalues count by their absolute values: a direction of ascent.
    """
    known = np.isfinite(precision).all(axis=(1, 2))
    values, vectors = np.linalg.eigh(np.where(known[:, None, None], precision, 0.0))
    is_definite = known & (values[:, 0] > 0.0)
    sizes = np.abs(values)
    least = np.maximum(LEAST_CURVATURE * sizes.max(axis=1, keepdims=True), 1e-300)
    sizes = np.where(is_definite[:, None], values, np.maximum(sizes, least))
    cov = (vectors / sizes[:, None]) @ np.swapaxes(vectors, 1, 2)
    return cov, np.log(sizes).sum(axis=1), is_definite


def climb_rows(theta, level, evaluate, steps, active, tolerance, max_iterations, kept=()):
    """Move the active rows in place until their steps are short: which were, and iterations.

    ``steps(active)`` are the steps, their lengths in standard deviations, whether a short one means
    convergence, the rises that they promise, and the shares of them that are tried first.
    ``evaluate(theta, rows)`` are the levels and what is `kept` of where the rows are.
    """
    converged, iterations = np.zeros(len(theta), dtype=bool), 0
    while len(active) and iterations < max_iterations:
        iterations += 1
        step, length, is_sound, promise, share = steps(active)
        climb = Climb(level[active], promise=promise, share=share)
        for waiting in climb:
            rows = active[waiting]
            trial = theta[rows] + climb.share[waiting, None] * step[waiting]
            with np.errstate(all="ignore"):  # a step may leave the domain of f: it is refused
                value, *new = evaluate(trial, rows)
            good = climb.accept(value)
            for array, there in zip((theta, level, *kept), (trial, value, *new), strict=True):
                array[rows[good]] = there[good]
        small = length <= tolerance
        converged[active] = small & is_sound
        active = active[~(small | climb.stuck)]
    return converged, iterations


def newton(objectives, start, tolerance, max_iterations):
    """Newton's ascent of f: thetas, levels of f, which converged, and iterations."""
    every, theta = np.arange(len(start)), np.array(start, dtype=float)
    level = np.array(objectives.value(theta, every))
    if not np.isfinite(level).all():
        row = int(np.argmin(np.isfinite(level)))
        raise ValueError(f"f must be finite at the start, got {level[row]} for row {row}")

    def steps(active):
        gradient = objectives.gradient(theta[active], active)
        cov, _, is_definite = inverses(-objectives.hessian(theta[active], active))
        step = np.einsum("rij,rj->ri", cov, gradient)
        rise = np.einsum("ri,ri->r", gradient, step)
        return step, np.sqrt(np.maximum(rise, 0.0)), is_definite, rise, 1.0

    found = climb_rows(
        theta, level, lambda t, rows: (objectives.value(t, rows),), steps, every, tolerance,
        max_iterations,
    )  # fmt: skip
    return theta, level, *found


def fit_laplace(objectives, start, *, tolerance=1e-6, max_iterations=100):
    """Modes of f and the Gaussians of its curvature there, from a start ``(num_rows, n)``."""
    theta, level, converged, iterations = newton(objectives, start, tolerance, max_iterations)
    cov, log_dets, is_proper = inverses(-objectives.hessian(theta, np.arange(len(theta))))
    level = level + 0.5 * (theta.shape[1] * LOG_2PI - log_dets)
    return GaussianRows(theta, cov, level, is_proper, converged, iterations)


def expand(objectives, mean):
    """The curvature at the previous mean, and one Newton step from there."""
    cov, log_dets, is_proper = inverses(-objectives.hessian(mean, np.arange(len(mean))))
    theta, level, _, iterations = newton(objectives, mean, 0.0, 1)
    level = level + 0.5 * (theta.shape[1] * LOG_2PI - log_dets)
    return GaussianRows(theta, cov, level, is_proper, is_proper, iterations)


def fit_delta(objectives, start, *, diagonal=False, tolerance=1e-6, max_iterations=100):
    """Means and covariances that maximise the delta method's objective.

    A row whose mode has no proper curvature is returned as Laplace leaves it, not `is_proper`.
    """
    modes = fit_laplace(objectives, start, tolerance=max(tolerance, 1e-3))
    theta = modes.mean

    def profile(theta, rows):
        """max_S L up to a constant, S and the full inverse of -Hess f; nan where undefined."""
        precision = -objectives.hessian(theta, rows)
        inverse, log_dets, is_definite = inverses(precision)
        cov = inverse.copy()
        if diagonal:
            own = np.diagonal(precision, axis1=1, axis2=2)
            variances = np.where(is_definite[:, None], own, 1.0)
            cov, log_dets = np.eye(theta.shape[1]) / variances[:, :, None], np.log(variances).sum(1)
        value = objectives.value(theta, rows) - 0.5 * log_dets
        return np.where(is_definite, value, np.nan), cov, inverse

    level, cov, inverse = profile(theta, np.arange(len(theta)))
    is_proper = ~np.isnan(level)
    cov[~is_proper] = modes.cov[~is_proper]

    def steps(active):
        of_trace = trace_gradient(objectives, theta[active], cov[active], active)
        gradient = objectives.gradient(theta[active], active) + 0.5 * of_trace
        step = np.einsum("rij,rj->ri", inverse[active], gradient)
        length = np.sqrt(np.maximum(np.einsum("ri,ri->r", step, gradient), 0.0))
        return step, length, True, 0.0, np.minimum(1.0, 1.0 / np.maximum(length, 1e-300))

    converged, iterations = climb_rows(
        theta, level, profile, steps, np.flatnonzero(is_proper), tolerance, max_iterations,
        (cov, inverse),
    )  # fmt: skip
    level = np.where(is_proper, level + 0.5 * theta.shape[1] * LOG_2PI, modes.level)
    return GaussianRows(theta, cov, level, is_proper, converged, iterations)


def trace_gradient(objectives, theta, cov, rows):
    """The gradient of Tr(Hess f(theta) cov) by differences of gradients, ``(num, n)``.

    With cov = L L', the trace is the sum over columns l of L of the second derivative of f along l,
    so its gradient is that of the gradient: a five-point difference of steps 0.02 l, right to
    some 1e-8 where f changes on the scale of l.
    """
    roots = np.linalg.cholesky(cov)
    total = -30.0 * theta.shape[1] * objectives.gradient(theta, rows)
    for column in range(theta.shape[1]):
        step = REACH * roots[:, :, column]
        for size, weight in ((1.0, 16.0), (2.0, -1.0)):
            for sign in (size, -size):
                total += weight * objectives.gradient(theta + sign * step, rows)
    return total / (12.0 * REACH**2)


FITS = {
    "laplace": fit_laplace,
    "delta": fit_delta,
    "diagonal_delta": partial(fit_delta, diagonal=True),
    "previous_mean": expand,
}


@dataclass(frozen=True, eq=False)
class NonconjugateFit(HasHistory):
    """Gaussians of the nodes, the rest, and of each iteration the approximate bound and change."""

    gaussians: dict
    rest: object
    history: np.ndarray
    change: np.ndarray
    converged: bool


def fit_nonconjugate(model, start, rest, *, method="laplace", tolerance=1e-4, max_iterations=200):
    """Coordinate ascent over the Gaussian nodes and the rest of a model.

    Parameters
    ----------
    model : object
        With three methods: ``objectives(node, gaussians, rest)``, f of one node;
        ``update_rest(gaussians, rest)``; and ``log_joint(gaussians, rest)``, E_q log p(data, nodes,
        rest) - E_q log q(rest).
    start : mapping from node to array ``(num_rows, n)``
        Means to start from; the order of the nodes is that of their updates. A node whose f needs
        another node's Gaussian comes after it or takes what an expansion at the start gives.
    rest : object
        To start from.
    method : {"laplace", "delta", "diagonal_delta", "previous_mean"}
    tolerance : float
        Ends when no node's means change by more than this (root mean square over rows and
        coordinates, in standard deviations of q). The objective is approximate and may fall.
    max_iterations : int
    """
    gaussians = {}
    for node, mean in start.items():  # of which no spread is known yet
        (rows, n), known = mean.shape, np.ones(len(mean), dtype=bool)
        gaussians[node] = GaussianRows(mean, np.zeros((rows, n, n)), np.zeros(rows), known, known)
    for node, q in gaussians.items():
        here = expand(model.objectives(node, gaussians, rest), q.mean)
        gaussians[node] = replace(here, mean=q.mean)
    history, changes = [], []
    while True:
        change = 0.0
        for node, q in gaussians.items():
            new = FITS[method](model.objectives(node, gaussians, rest), q.mean)
            variances = np.diagonal(new.cov, axis1=1, axis2=2)
            change = max(change, float(np.sqrt(np.mean((new.mean - q.mean) ** 2 / variances))))
            gaussians = gaussians | {node: new}
        rest = model.update_rest(gaussians, rest)
        entropy = sum(float(q.entropy().sum()) for q in gaussians.values())
        history.append(model.log_joint(gaussians, rest) + entropy)
        changes.append(change)
        if change <= tolerance or len(changes) == max_iterations:
            return NonconjugateFit(
                gaussians, rest, np.array(history), np.array(changes), change <= tolerance
            )
