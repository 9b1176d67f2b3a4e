r"""Exact moves of weights and hyperparameters, around a Gaussian that is near their posterior.

The target is p(x) N(w | x) exp(sum of the rows' log likelihoods), the approximation replaces the
likelihood by a potential, and what it lacks is the correction C(w). Every move leaves the target as
it is, whatever the approximation, as long as that depends on nothing that moves.

*Swing*, weights given hyperparameters: Hamiltonian steps that turn exactly about the Gaussian and
are kicked by the gradient of C (split Hamiltonian Monte Carlo: Shahbaba et al. 2014; Beskos et al.
2011). With w ~ N(m, P^-1) exp C(w) draw v ~ N(0, P^-1), z = w - m. Each of L + 1 kicks, the first
and last of half length, is v += s P^-1 grad C, and each of the L turns between them is

    (z, v) <- (z cos e + v sin e, v cos e - z sin e),     e = pi / (2 L) times U(0.8, 1.2),

so that a path is about a quarter of a turn: an independent draw where C = 0. A kick changes the
kinetic energy by s v'g + s^2 g'P^-1 g / 2, so P itself is not needed.

*Turn*, weights given hyperparameters: an elliptical slice (Murray, Adams and MacKay 2010) about the
Gaussian. It takes one draw and no solve, and where the spread of each column is small it moves as
far as a swing.

*Interweave*, one hyperparameter after another: given the weights, and each standard deviation with
the weights that it multiplies stretched along, by the likelihood itself (Yu and Meng 2011,
"To center or not to center": either way is slow where the other is fast).

*Leap*: hyperparameters from roughly their distribution and weights from the Gaussian given
them, accepted together.

*Reflect*: a leap from the old point. On an ellipse of that distribution through the point
it goes to an angle that is always the same, of cosine -1/3 (Neal 1999). Where nearly all is
accepted, draws come out negatively correlated: means are worth twice as many independent draws,
variances four fifths. Where leaps of all weights are too far, hyperparameters alone are reflected,
and carry the weights along as the same standard normal numbers.

*Carry*: the same with hyperparameters moved by a slice of their density given the potential. For
Gaussians whose distribution of leaps may be rough.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray, Generator
from pgmult.latent.additive import Additive
from pgmult.latent.approximation import Approximation, collapsed
from pgmult.latent.hyperparameters import REFLECTED, sample_hyperparameters
from pgmult.latent.terms import Term, sd_at
from pgmult.sampling.moves import elliptical_slice

_WIDTH = 0.5  # of the first interval of slices
_TRIES = 100  # of a leap, until hyperparameters are what they may be


class Target(NamedTuple):
    """What moves leave as it is: predictors, the likelihood of rows, and a Gaussian near both.

    Attributes
    ----------
    family : Additive, or another family of Gaussians
    rows : RowsLikelihood
    base : Approximation
    """

    family: Any
    rows: Any
    base: Approximation


class Point(NamedTuple):
    """Where a chain is, with what was computed there.

    Attributes
    ----------
    x : array, ``(num_hyperparameters,)``
    w : array, ``(num_weights,)`` or ``(num_weights, num_columns)``
        Columns are independent given x.
    gaussian : Conditioned, or that of another family
        Of the weights at x, given the approximation's potential.
    psi : array, ``(num_rows,)`` or ``(num_rows, num_columns)``
        Predictors.
    """

    x: FloatArray
    w: FloatArray
    gaussian: Any
    psi: FloatArray

    @classmethod
    def of(cls, x: FloatArray, w: FloatArray, target: Target) -> "Point":
        """The point with these hyperparameters and weights."""
        gaussian = target.family.at(x, target.base.absorbed)
        return cls(x, w, gaussian, target.family.predictor(w))


def swing(
    rng: Generator, point: Point, target: Target, kicks: int = 3, angle: float = 0.5 * math.pi
) -> Point:
    """One Hamiltonian path of the weights about their Gaussian; old columns where refused."""
    (family, rows, base), gaussian = target, point.gaussian
    step = angle / kicks * rng.uniform(0.8, 1.2)
    cos, sin = math.cos(step), math.sin(step)
    z, v, psi = point.w - gaussian.mean, gaussian.sample(rng) - gaussian.mean, point.psi
    gain = -base.correction(rows, psi)
    for i in range(kicks + 1):
        length = step * (0.5 if i in (0, kicks) else 1.0)
        g = family.pull(base.gradient(rows, psi))
        kicked = gaussian.solve(g)
        gain = gain - length * np.sum(g * (v + 0.5 * length * kicked), axis=0)
        v = v + length * kicked
        if i < kicks:
            z, v = z * cos + v * sin, v * cos - z * sin
            psi = family.predictor(gaussian.mean + z)
    gain = gain + base.correction(rows, psi)
    accepted = gain > -rng.exponential(size=np.shape(gain))
    w = np.where(accepted, gaussian.mean + z, point.w)
    return point._replace(w=w, psi=np.where(accepted, psi, point.psi))


def turn(rng: Generator, point: Point, target: Target) -> Point:
    """An elliptical slice of each column of the weights."""
    family, rows, base = target

    def in_place(columns: FloatArray) -> FloatArray:
        return columns.T.reshape(point.w.shape)

    def correction(columns: FloatArray, active: BoolArray) -> FloatArray:
        return np.reshape(base.correction(rows, family.predictor(in_place(columns))), -1)

    arrays = point.w, point.gaussian.sample(rng), point.gaussian.mean
    w = in_place(elliptical_slice(rng, correction, *(np.atleast_2d(x.T) for x in arrays)))
    return point._replace(w=w, psi=family.predictor(w))


def leap(rng: Generator, point: Point, target: Target) -> Point:
    """A new point that does not depend on the old one, or the old one."""
    for _ in range(_TRIES):  # a density cut off at the prior's bounds is the same up to a constant
        x = target.base.guess.sample(rng)
        if np.isfinite(target.family.log_prior(x)):
            return _weighed(rng, point, x, target, lambda gaussian: gaussian.sample(rng))
    return point


def reflect(rng: Generator, point: Point, target: Target, is_carried: bool = False) -> Point:
    """A point mostly on the other side of what a leap draws from, or the old one.

    Weights that are carried stay the same standard normal numbers.
    """
    x = target.base.guess.reflected(rng, point.x)
    if not np.isfinite(target.family.log_prior(x)):
        return point
    cos, sin = (1.0, 0.0) if is_carried else REFLECTED

    def across(gaussian: Any) -> Any:
        noise = point.gaussian.white(rng, point.w)
        return gaussian.colour(cos * noise + sin * rng.standard_normal(noise.shape))

    return _weighed(rng, point, x, target, across)


def _weighed(
    rng: Generator,
    point: Point,
    x: FloatArray,
    target: Target,
    weights: Callable[[Any], FloatArray],
) -> Point:
    """A point at x or the old one, by their densities over those of the distribution of leaps."""
    family, rows, base = target
    try:
        gaussian = family.at(x, base.absorbed)
    except np.linalg.LinAlgError:
        return point
    w = weights(gaussian)
    new = Point(x, w, gaussian, family.predictor(w))

    def log_weight(at: Point) -> float:
        correction = float(np.sum(base.correction(rows, at.psi)))
        density = family.log_prior(at.x) + at.gaussian.log_evidence + correction
        return float(density - float(base.guess.log_density(at.x)))

    return new if log_weight(new) - log_weight(point) > -rng.exponential() else point


def carry(rng: Generator, point: Point, target: Target) -> Point:
    """Hyperparameters by the approximation's density, weights along with them, or the old point."""
    family, rows, base = target
    density = partial(collapsed, family, base.absorbed)
    x = sample_hyperparameters(rng, density, point.x, base.guess)
    gaussian = family.at(x, base.absorbed)
    w = gaussian.colour(point.gaussian.white(rng, point.w))
    new = Point(x, w, gaussian, family.predictor(w))
    gain = np.sum(base.correction(rows, new.psi) - base.correction(rows, point.psi))
    return new if gain > -rng.exponential() else point


def interweave(rng: Generator, point: Point, target: Target) -> Point:
    """Every hyperparameter given the weights, then every standard deviation with its weights."""
    x, w = interwoven(rng, target.family, point.x, point.w, point.psi, target.rows.total)
    return Point.of(x, w, target)


def interwoven(
    rng: Generator, family: Additive, x: FloatArray, w: FloatArray, psi: FloatArray,
    total: Callable[[FloatArray], float],
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Hyperparameters and weights so moved; `total` is the log likelihood of predictors."""
    x, w = x.copy(), w.copy()
    for term, at, weights in family.parts:
        for i in range(term.num_hyperparameters):
            x[at] = _given_weights(rng, term, x[at], w[weights], i)
        for i in range(term.num_sds):
            column = np.zeros_like(w)
            scaled = weights.start + np.arange(term.size)[term.scaled_by(i)]
            column[scaled] = w[scaled]
            step = family.times(column)
            x[at], ratio = _stretched(rng, term, x[at], i, partial(_along, total, psi, step))
            w[scaled], psi = ratio * w[scaled], psi + (ratio - 1.0) * step
    return x, w


def given_weights(rng: Generator, family: Additive, x: FloatArray, w: FloatArray) -> FloatArray:
    """All hyperparameters by their prior and the density of the weights."""
    x = x.copy()
    for term, at, weights in family.parts:
        for i in range(term.num_hyperparameters):
            x[at] = _given_weights(rng, term, x[at], w[weights], i)
    return x


def _given_weights(rng: Generator, term: Term, x: FloatArray, w: FloatArray, i: int) -> FloatArray:
    """One hyperparameter of a term by its prior and the density of the weights."""
    if i >= term.num_sds:

        def density(new: FloatArray) -> float:
            return 0.5 * (term.log_det(new) - _product(term.precision(new), w, w))

        return _sliced(rng, term, x, i, density)
    # a standard deviation multiplied by r is as the weights divided by r
    precision, scaled, at = term.precision(x), np.zeros_like(w), term.scaled_by(i)
    scaled[at] = w[at]
    count, current = len(w[at]), sd_at(float(x[i]))
    linear, square = (_product(precision, scaled, v) for v in (w - scaled, scaled))

    def gain(new: FloatArray) -> float:
        inverse = current / sd_at(float(new[i]))
        return count * math.log(inverse) - inverse * (linear + 0.5 * inverse * square)

    return _sliced(rng, term, x, i, gain)


def _along(total: Callable[[FloatArray], float], psi: FloatArray, step: Any, ratio: float) -> float:
    """Log likelihood where a term's predictors are so many times as large."""
    return total(psi + (ratio - 1.0) * step)


def _stretched(
    rng: Generator, term: Term, x: FloatArray, i: int, gain: Callable[[float], float]
) -> tuple[FloatArray, float]:
    """A standard deviation, and by how much the weights that it multiplies grow with it."""
    current = sd_at(float(x[i]))
    out = _sliced(rng, term, x, i, lambda new: gain(sd_at(float(new[i])) / current))
    return out, sd_at(float(out[i])) / current


def _sliced(
    rng: Generator, term: Term, x: FloatArray, i: int, gain: Callable[[FloatArray], float]
) -> FloatArray:
    """One hyperparameter by a slice of its prior times the exponential of a gain (Neal 2003)."""
    new = x.copy()

    def log_density(value: float) -> float:
        new[i] = value
        prior = term.log_prior(new)
        return prior + gain(new) if math.isfinite(prior) else -math.inf

    current = float(x[i])
    level = log_density(current) - rng.exponential()
    left = current - _WIDTH * rng.random()
    right = left + _WIDTH
    while log_density(left) > level:
        left -= _WIDTH
    while log_density(right) > level:
        right += _WIDTH
    while True:
        value = left + (right - left) * rng.random()
        if log_density(value) > level or value == current:
            return new
        if value < current:
            left = value
        else:
            right = value


def _product(precision: Any, v: FloatArray, w: FloatArray) -> float:
    """V' precision w."""
    if not isinstance(precision, np.ndarray):
        return float(v @ (precision @ w))
    if precision.ndim == 1:
        return float(v @ (precision * w))
    shape = len(precision), -1
    return float(np.einsum("gi,gij,gj->", v.reshape(shape), precision, w.reshape(shape)))
