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

`Leaning` is a Student t that may be skewed, as laws of standard deviations and length scales are:
four in five of its draws are accepted where a plain Student t's are one in two. `lean` finds the
one with a density's moments.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaincinv, ndtri

from pgmult.core.typing import BoolArray, FloatArray
from pgmult.sampling.moves import elliptical_slice

__all__ = ["Guess", "Leaning", "laplace", "lean", "matched", "sample_hyperparameters"]

_DOF = 8.0
_STEP = 0.2  # of the differences that find curvatures
_LEAST_CURVATURE = 0.05
_ROUNDS = 3  # of a search for moments, each of
_POINTS = 16  # a coordinate
_WIDER = 1.1  # than points tell: a guess too wide does less harm than one too narrow
_REACH = 5.0  # of the search for a mode around its start
_ROOM = 1.05  # of a leaning law, that much wider than points tell
_LEAST_KNOWN = 2.0  # effective points a coordinate that count as much as what was believed
_LEAN_POINTS = 32  # a coordinate and round, and as many again
_LEAN_ROUNDS = 4
_MOST_SKEWED = 1.2
_LEANS = np.linspace(-2.0, 2.0, 401)
# e standard normal and r = sqrt(1 + e^2) - E sqrt(1 + e^2): that mean, E r^2, E e^2 r, E r^3
_ROOT, _ROOT_2 = 1.35453080648131, 0.16524629429308
_ROOT_E, _ROOT_3 = 0.56489084724566, 0.11722845469196


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


def matched(log_density: Callable[[FloatArray, BoolArray], FloatArray], guess: Guess) -> Guess:
    """A guess with the means and covariances of the density itself, by importance sampling.

    A mode is far from the mean where a density is skewed, as those of variances and length scales
    are that the data say little of. Takes 48 evaluations a coordinate, at points that fill
    space evenly; where their weights are too uneven to tell moments, much of `guess` stays.

    Parameters
    ----------
    log_density : callable
        As in `sample_hyperparameters`.
    guess : Guess
    """
    size, everywhere = guess.mean.shape[1], np.ones(len(guess.mean), dtype=np.bool_)
    every = _student_points(_ROUNDS * _POINTS * size, size)
    for z in np.split(every, _ROUNDS):
        flat = 0.5 * (_DOF + size) * np.log1p(np.sum(z * z, axis=1) / _DOF)
        points = guess.mean + np.einsum("rij,nj->nri", guess.root, z)
        weights = np.array([log_density(point, everywhere) for point in points]) + flat[:, None]
        weights = np.exp(weights - weights.max(axis=0))
        weights /= weights.sum(axis=0)
        mean = np.einsum("nr,nri->ri", weights, points)
        away = points - mean
        cov = np.einsum("nr,nri,nrj->rij", weights, away, away)
        known = (0.5 / np.sum(weights**2, axis=0) / size)[:, None]  # effective points a coordinate
        before = guess.root @ guess.root.transpose(0, 2, 1)
        root = np.linalg.cholesky((known[..., None] * cov + before) / (known[..., None] + 1.0))
        guess = Guess((known * mean + guess.mean) / (known + 1.0), root)
    return guess._replace(root=_WIDER * guess.root)


@dataclass(frozen=True, slots=True, eq=False)
class Leaning:
    r"""x = mean + root z, where e is Student t and each z_i leans by that of Jones and Pewsey::

        z_i = (sinh(arcsinh e_i + lean_i) - m_i) / s_i,      m_i, s_i: mean 0, sd 1 for normal e

    Jones and Pewsey (2009), "Sinh-arcsinh distributions"; the tails are a Student t's.

    Attributes
    ----------
    mean, lean : arrays, ``(num_coordinates,)``
    root : array, ``(num_coordinates, num_coordinates)``
    """

    mean: FloatArray
    root: FloatArray
    lean: FloatArray
    _inverse: FloatArray = field(init=False)
    _moments: tuple[FloatArray, FloatArray] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_inverse", np.linalg.inv(self.root))
        object.__setattr__(self, "_moments", _moments(self.lean)[:2])

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """A draw."""
        e = rng.standard_normal(len(self.mean)) * math.sqrt(_DOF / rng.chisquare(_DOF))
        return self.at(e)

    def at(self, e: FloatArray) -> FloatArray:
        """What numbers e, ``(..., num_coordinates)``, stand for."""
        centre, scale = self._moments
        z = (np.sinh(np.arcsinh(e) + self.lean) - centre) / scale
        return np.asarray(self.mean + z @ self.root.T)

    def log_density(self, x: FloatArray) -> FloatArray:
        """At points ``(..., num_coordinates)``, up to a constant."""
        centre, scale = self._moments
        leant = centre + scale * ((x - self.mean) @ self._inverse.T)
        e = np.sinh(np.arcsinh(leant) - self.lean)
        squares = e * e
        slopes = 0.5 * np.log((1.0 + squares) / (1.0 + leant * leant)).sum(axis=-1)
        far = np.log1p(squares.sum(axis=-1) / _DOF)
        return np.asarray(slopes - 0.5 * (_DOF + len(self.mean)) * far)


def _moments(lean: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, sd and skewness of sinh(arcsinh e + lean), e standard normal."""
    a, b = np.cosh(lean), np.sinh(lean)
    sd = np.sqrt(a * a + b * b * _ROOT_2)
    return _ROOT * b, sd, (3.0 * a * a * b * _ROOT_E + b**3 * _ROOT_3) / sd**3


def lean(log_density: Callable[[FloatArray], float], mean: FloatArray, root: FloatArray) -> Leaning:
    """The law with the moments of a density, by importance sampling from a rough mean and root.

    Takes some 130 evaluations a coordinate, at points that fill space evenly; where their weights
    are too uneven to tell moments, much of what was known before stays.

    Parameters
    ----------
    log_density : callable
        Up to a constant; -inf where x cannot be.
    mean : array, ``(num_coordinates,)``
    root : array, ``(num_coordinates, num_coordinates)``
    """
    size = len(mean)
    law = Leaning(mean, root, np.zeros(size))
    for e in np.split(
        _student_points(_LEAN_ROUNDS * _LEAN_POINTS * (size + 1), size), _LEAN_ROUNDS
    ):
        points = law.at(e)
        log_weights = np.array([log_density(x) for x in points]) - law.log_density(points)
        if not np.isfinite(log_weights.max()):  # all where x cannot be
            continue
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        known = 1.0 / np.sum(weights**2) / size
        share = known / (known + _LEAST_KNOWN)
        centre = weights @ points
        away = points - centre
        cov = share * np.einsum("n,ni,nj->ij", weights, away, away)
        cov += (1.0 - share) * law.root @ law.root.T
        root = np.linalg.cholesky(cov)
        skew = share * (weights @ np.linalg.solve(root, away.T).T ** 3)
        skew = np.clip(skew, -_MOST_SKEWED, _MOST_SKEWED)
        leans = np.interp(skew, _moments(_LEANS)[2], _LEANS)
        law = Leaning(share * centre + (1.0 - share) * law.mean, root, leans)
    return Leaning(law.mean, _ROOM * law.root, law.lean)


def _student_points(count: int, size: int) -> FloatArray:
    """Points spread like draws of a standard Student t, ``(count, size)``, but more evenly.

    By multiples of powers of the root of x**(size + 2) = x + 1, modulo 1 (Roberts 2018, "The
    unreasonable effectiveness of quasirandom sequences"): one for each coordinate and the scale.
    """
    base = 1.5
    for _ in range(40):
        base = (1.0 + base) ** (1.0 / (size + 2.0))
    steps = base ** -np.arange(1.0, size + 2.0)
    cube = (0.5 + np.outer(np.arange(1.0, count + 1.0), steps)) % 1.0
    scale = np.sqrt(0.5 * _DOF / gammaincinv(0.5 * _DOF, cube[:, [-1]]))
    return np.asarray(scale * ndtri(cube[:, :-1]))


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
