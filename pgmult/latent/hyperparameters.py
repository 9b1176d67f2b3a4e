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

All coordinates move at once, mostly in one or two tries. Any mean and root leave f invariant,
as long as they do not depend on x; worse ones make more tries and shorter moves.

`Leaning` is a Student t that may be skewed, as priors of standard deviations and length scales are:
four in five of its draws are accepted where a plain Student t's are one in two. `lean` finds the
one with a density's moments.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaincinv, ndtri

from pgmult.core.typing import BoolArray, FloatArray, Generator
from pgmult.sampling.moves import elliptical_slice

Density = Callable[[FloatArray], float]
Slopes = Callable[[FloatArray], FloatArray] | None
REFLECTED = -1.0 / 3.0, math.sqrt(8.0) / 3.0  # cosine and sine of the angle of reflected moves
_DOF = 8.0
_STEP = 0.2  # of the differences that find curvatures
_LEAST_CURVATURE = 0.05
_REACH = 5.0  # of the search for a mode around its start
_ROOM = 1.05  # factor by which a leaning distribution is wider than the points suggest
_LEAST_KNOWN = 2.0  # effective points a coordinate that count as much as what was believed
LEAN_POINTS = 32
"""Points of `lean` for each coordinate and round, and as many again."""

_LEAN_MOST = 8  # coordinates that more points are taken for
_LEAN_ROUNDS = 3
_MOST_SKEWED = 1.2
_LEANS = np.linspace(-2.0, 2.0, 401)
# e standard normal and r = sqrt(1 + e^2) - E sqrt(1 + e^2): that mean, E r^2, E e^2 r, E r^3
_ROOT, _ROOT_2 = 1.35453080648131, 0.16524629429308
_ROOT_E, _ROOT_3 = 0.56489084724566, 0.11722845469196


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

    def sample(self, rng: Generator) -> FloatArray:
        """A draw."""
        e = rng.standard_normal(len(self.mean)) * math.sqrt(_DOF / rng.chisquare(_DOF))
        return self.at(e)

    def at(self, e: FloatArray) -> FloatArray:
        """What numbers e, ``(..., num_coordinates)``, stand for."""
        centre, scale = self._moments
        z = (np.sinh(np.arcsinh(e) + self.lean) - centre) / scale
        return np.asarray(self.mean + z @ self.root.T)

    def reflected(self, rng: Generator, x: FloatArray) -> FloatArray:
        """Where x is a draw, another, mostly on the other side: `REFLECTED` on an ellipse of e."""
        e, _ = self._student(x)
        spread = 0.5 * (_DOF + e @ e) / rng.gamma(0.5 * (_DOF + len(e)))
        cos, sin = REFLECTED
        return self.at(cos * e + sin * math.sqrt(spread) * rng.standard_normal(len(e)))

    def _student(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The numbers e that stand for points, and the same before they lean."""
        centre, scale = self._moments
        leant = centre + scale * ((x - self.mean) @ self._inverse.T)
        return np.sinh(np.arcsinh(leant) - self.lean), leant

    def log_density(self, x: FloatArray) -> FloatArray:
        """The log density at points ``(..., num_coordinates)``, up to a constant."""
        e, leant = self._student(x)
        squares = e * e
        slopes = 0.5 * np.log((1.0 + squares) / (1.0 + leant * leant)).sum(axis=-1)
        far = np.log1p(squares.sum(axis=-1) / _DOF)
        return np.asarray(slopes - 0.5 * (_DOF + len(self.mean)) * far)


def _moments(lean: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, sd and skewness of sinh(arcsinh e + lean), e standard normal."""
    a, b = np.cosh(lean), np.sinh(lean)
    sd = np.sqrt(a * a + b * b * _ROOT_2)
    return _ROOT * b, sd, (3.0 * a * a * b * _ROOT_E + b**3 * _ROOT_3) / sd**3


def laplace(log_density: Density, start: FloatArray, slopes: Slopes = None) -> Leaning:
    """The Gaussian with the mode of a density and the inverse of its curvature there.

    Takes about 30 evaluations for three coordinates, and their square without slopes.

    Parameters
    ----------
    log_density : callable
        Of logarithms of parameters: their natural scale is about 1.
    start : array, ``(num_coordinates,)``
    slopes : callable, optional
        First derivatives of the log density.
    """
    at_start = log_density(start)  # of 10^6 where counts are large

    def loss(x: FloatArray) -> float:
        return at_start - log_density(x)

    bounds, options = [(x - _REACH, x + _REACH) for x in start], {"ftol": 1e-5, "eps": 1e-4}
    jac = slopes and (lambda x: -slopes(x))
    mode = minimize(loss, start, jac=jac, method="L-BFGS-B", bounds=bounds, options=options)
    values, vectors = np.linalg.eigh(_curvature(loss, mode.x, slopes))
    cov = (vectors / np.maximum(np.abs(values), _LEAST_CURVATURE)) @ vectors.T
    return Leaning(mode.x, np.linalg.cholesky(cov), np.zeros(len(start)))


def lean(
    log_density: Density, mean: FloatArray, root: FloatArray, num_points: int = LEAN_POINTS
) -> Leaning:
    """Return the `Leaning` with the moments of a density, by importance sampling from a rough one.

    Takes some 100 evaluations a coordinate, at points that fill space evenly; where their weights
    are too uneven to estimate moments, the previous moments keep most of the weight.

    Parameters
    ----------
    log_density : callable
        Up to a constant; -inf where x cannot be.
    mean : array, ``(num_coordinates,)``
    root : array, ``(num_coordinates, num_coordinates)``
    num_points : int
    """
    size = len(mean)
    proposal = Leaning(mean, root, np.zeros(size))
    count = _LEAN_ROUNDS * num_points * (min(size, _LEAN_MOST) + 1)
    for e in np.split(_student_points(count, size), _LEAN_ROUNDS):
        points = proposal.at(e)
        log_weights = np.array([log_density(x) for x in points]) - proposal.log_density(points)
        if not np.isfinite(log_weights.max()):  # all where x cannot be
            continue
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        effective = 1.0 / np.sum(weights**2) / size
        share = effective / (effective + _LEAST_KNOWN)
        centre = weights @ points
        away = points - centre
        cov = share * np.einsum("n,ni,nj->ij", weights, away, away)
        cov += (1.0 - share) * proposal.root @ proposal.root.T
        root = np.linalg.cholesky(cov)
        skew = share * (weights @ np.linalg.solve(root, away.T).T ** 3)
        skew = np.clip(skew, -_MOST_SKEWED, _MOST_SKEWED)
        leans = np.interp(skew, _moments(_LEANS)[2], _LEANS)
        proposal = Leaning(share * centre + (1.0 - share) * proposal.mean, root, leans)
    return Leaning(proposal.mean, _ROOM * proposal.root, proposal.lean)


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


def _curvature(loss: Density, point: FloatArray, slopes: Slopes) -> FloatArray:
    """Second derivatives by differences."""
    steps = _STEP * np.eye(len(point))
    if slopes is not None:
        changes = np.array([slopes(point - step) - slopes(point + step) for step in steps])
        return np.asarray(0.25 * (changes + changes.T) / _STEP)
    centre = loss(point)
    ahead, behind = (np.array([loss(point + by * step) for step in steps]) for by in (1.0, -1.0))
    out = np.diag(ahead + behind - 2.0 * centre)
    for i in range(len(point)):
        for j in range(i):
            both = loss(point + steps[i] + steps[j]) + loss(point - steps[i] - steps[j])
            alone = ahead[i] + behind[i] + ahead[j] + behind[j]
            out[i, j] = out[j, i] = 0.5 * (both - alone) + centre
    return out / _STEP**2


def sample_hyperparameters(
    rng: Generator, log_density: Density, x: FloatArray, near: Leaning
) -> FloatArray:
    """One joint update of all coordinates.

    Parameters
    ----------
    rng : numpy.random.Generator
    log_density : callable
        Up to a constant.
    x : array, ``(num_coordinates,)``
        Where the density is positive. Not changed.
    near : Leaning
        Whose mean and root to go around; not a function of `x`.

    Raises
    ------
    FloatingPointError
        If the log density is not finite at `x`.
    """
    z = np.asarray(np.linalg.solve(near.root, x - near.mean), dtype=np.float64)
    shape = 0.5 * (_DOF + len(x))
    spread = 0.5 * (_DOF + z @ z) / rng.gamma(shape)
    other = np.asarray(math.sqrt(spread) * rng.standard_normal((1, len(x))))

    def log_ratio(z: FloatArray, active: BoolArray) -> FloatArray:
        heavy = shape * math.log1p(float(z[0] @ z[0]) / _DOF)
        return np.array([log_density(near.mean + near.root @ z[0]) + heavy])

    (z,) = elliptical_slice(rng, log_ratio, z[None], other)
    return np.asarray(near.mean + near.root @ z)
