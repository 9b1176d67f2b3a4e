r"""Joint updates of hyperparameters whose density is dear to evaluate.

The density of hyperparameters with a Gaussian field integrated out costs a factorisation, as much
as a draw of the field itself, and its coordinates are strongly correlated: a longer range goes with
a larger variance. But a Gaussian with the density's own mode and curvature, found once, is near it:
`laplace` finds one. `sample_hyperparameters` is an elliptical slice update around it (Nishihara,
Murray and Adams 2014, "Parallel MCMC with generalized elliptical slice sampling", section 3.2): the
density is f(x) = t(x) f(x) / t(x), t a Student t with that location and shape, which is a scale
mixture of Gaussians::

    s | x   inverse gamma((dof + d) / 2, (dof + z'z) / 2),     x = mean + root z
    x | s   an elliptical slice update: prior N(mean, s root root'), likelihood f / t

All coordinates move at once, mostly in one or two tries. Any mean and root leave the law invariant,
as long as they do not depend on x; worse ones make more tries and shorter moves.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from pgmult.core.typing import BoolArray, FloatArray
from pgmult.sampling.moves import elliptical_slice

__all__ = ["Guess", "laplace", "sample_hyperparameters"]

_DOF = 8.0
_STEP = 0.2  # of the differences that find curvatures
_LEAST_CURVATURE = 0.05
_REACH = 5.0  # of the search for a mode around its start


class Guess(NamedTuple):
    """The Gaussian laws that independent rows of hyperparameters roughly have.

    Attributes
    ----------
    mean : array, ``(num_rows, num_coordinates)``
    root : array, ``(num_rows, num_coordinates, num_coordinates)``
        Lower triangular roots of the covariance matrices.
    """

    mean: FloatArray
    root: FloatArray


def laplace(log_density: Callable[[FloatArray, BoolArray], FloatArray], start: FloatArray) -> Guess:
    """Modes and inverse curvatures there; `log_density` as in `sample_hyperparameters`.

    Takes about 30 evaluations of a row's density for three coordinates.

    Parameters
    ----------
    log_density : callable
        Of logarithms of parameters: their natural scale is about 1.
    start : array, ``(num_rows, num_coordinates)``
    """
    num_rows, size = start.shape
    mean, root = start.copy(), np.empty((num_rows, size, size))
    for row in range(num_rows):
        only = np.arange(num_rows) == row

        at_start = float(log_density(start, only)[row])  # of 10^6 where counts are large

        def loss(
            point: FloatArray, only: BoolArray = only, row: int = row, at_start: float = at_start
        ) -> float:
            return at_start - float(log_density(np.where(only[:, None], point, start), only)[row])

        bounds = [(x - _REACH, x + _REACH) for x in start[row]]
        options = {"ftol": 1e-5, "eps": 1e-4}
        found = minimize(loss, start[row], method="L-BFGS-B", bounds=bounds, options=options)
        mean[row] = found.x
        values, vectors = np.linalg.eigh(_curvature(loss, found.x))
        cov = (vectors / np.maximum(np.abs(values), _LEAST_CURVATURE)) @ vectors.T
        root[row] = np.linalg.cholesky(cov)
    return Guess(mean, root)


def _curvature(loss: Callable[[FloatArray], float], point: FloatArray) -> FloatArray:
    """Second derivatives by differences."""
    steps = _STEP * np.eye(len(point))
    here = loss(point)
    ahead = np.array([loss(point + step) for step in steps])
    behind = np.array([loss(point - step) for step in steps])
    out = np.diag(ahead + behind - 2.0 * here)
    for i in range(len(point)):
        for j in range(i):
            both = loss(point + steps[i] + steps[j]) + loss(point - steps[i] - steps[j])
            alone = ahead[i] + behind[i] + ahead[j] + behind[j]
            out[i, j] = out[j, i] = 0.5 * (both - alone) + here
    return out / _STEP**2


def sample_hyperparameters(
    rng: np.random.Generator,
    log_density: Callable[[FloatArray, BoolArray], FloatArray],
    x: FloatArray,
    guess: Guess,
) -> FloatArray:
    """One joint update of all coordinates, of independent rows side by side.

    Parameters
    ----------
    rng : numpy.random.Generator
    log_density : callable
        ``log_density(x, active)``, the log densities ``(num_rows,)`` at ``x (num_rows,
        num_coordinates)`` up to constants; rows where `active` is False are not looked at.
    x : array, ``(num_rows, num_coordinates)``
        Where the density is positive. Not changed.
    guess : Guess
        Not a function of `x`.

    Raises
    ------
    FloatingPointError
        If the log density is not finite at `x`.
    """
    num_rows, size = x.shape
    z = np.asarray(np.linalg.solve(guess.root, (x - guess.mean)[..., None])[..., 0])
    shape = 0.5 * (_DOF + size)
    spread = 0.5 * (_DOF + np.sum(z**2, axis=1)) / rng.gamma(shape, size=num_rows)
    other = np.sqrt(spread)[:, None] * rng.standard_normal(z.shape)

    def point(z: FloatArray) -> FloatArray:
        return np.asarray(guess.mean + np.einsum("rij,rj->ri", guess.root, z))

    def log_ratio(z: FloatArray, active: BoolArray) -> FloatArray:
        squares = np.sum(z**2, axis=1)
        return np.asarray(log_density(point(z), active) + shape * np.log1p(squares / _DOF))

    return point(elliptical_slice(rng, log_ratio, z, other))
