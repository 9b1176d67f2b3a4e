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

*Interweave*, one hyperparameter after another: given the weights, and each standard deviation with
the weights that it multiplies stretched along, by the likelihood itself (Yu and Meng 2011,
"To center or not to center": either way is slow where the other is fast).

*Leap*: hyperparameters from a Student t about the approximation's and weights from the Gaussian
given them, accepted together.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray
from pgmult.latent.additive import Additive, Conditioned
from pgmult.latent.approximation import Approximation, RowsLikelihood
from pgmult.latent.terms import Term, log_sd
from pgmult.sampling.moves import slice_sample

__all__ = ["Point", "interweave", "leap", "swing"]

_DOF = 6.0  # of a leap's Student t
_WIDER = 1.1
_WIDTH = 0.5  # of the first interval of slices


class Point(NamedTuple):
    """Hyperparameters, ``(num_hyperparameters,)``, and weights, ``(num_weights,)``."""

    x: FloatArray
    w: FloatArray


def swing(
    rng: np.random.Generator,
    w: FloatArray,
    law: Conditioned,
    family: Additive,
    rows: RowsLikelihood,
    found: Approximation,
    kicks: int = 3,
) -> FloatArray:
    """One Hamiltonian path of the weights about their Gaussian law; the old weights if refused."""
    step = 0.5 * math.pi / kicks * rng.uniform(0.8, 1.2)
    cos, sin = math.cos(step), math.sin(step)
    z, v = w - law.mean, law.sample(rng) - law.mean
    psi = family.predictor(w)
    gain = -found.correction(rows, psi)
    for i in range(kicks + 1):
        length = step * (0.5 if i in (0, kicks) else 1.0)
        g = family.pull(found.gradient(rows, psi))
        kicked = law.solve(g)
        gain -= length * float(v @ g + 0.5 * length * (g @ kicked))
        v = v + length * kicked
        if i < kicks:
            z, v = z * cos + v * sin, v * cos - z * sin
            psi = family.predictor(law.mean + z)
    gain += found.correction(rows, psi)
    return law.mean + z if gain > -rng.exponential() else w


def leap(
    rng: np.random.Generator,
    point: Point,
    family: Additive,
    rows: RowsLikelihood,
    found: Approximation,
) -> Point:
    """A new point that does not depend on the old one, or the old one."""
    guess = found.guess
    size = len(point.x)
    root = _WIDER * guess.root[0]

    def log_weight(x: FloatArray, z: FloatArray, law: Conditioned, w: FloatArray) -> float:
        """Target over proposal, up to a constant."""
        heavy = 0.5 * (_DOF + size) * math.log1p(float(z @ z) / _DOF)
        correction = found.correction(rows, family.predictor(w))
        return family.log_prior(x) + law.log_evidence + heavy + correction

    z = rng.standard_normal(size) * math.sqrt(_DOF / rng.chisquare(_DOF))
    x = guess.mean[0] + root @ z
    if not np.isfinite(family.log_prior(x)):
        return point
    try:
        law = family.at(x, found.seen)
    except np.linalg.LinAlgError:
        return point
    w = law.sample(rng)
    old_z = np.linalg.solve(root, point.x - guess.mean[0])
    old = log_weight(point.x, old_z, family.at(point.x, found.seen), point.w)
    return Point(x, w) if log_weight(x, z, law, w) - old > -rng.exponential() else point


def interweave(
    rng: np.random.Generator, point: Point, family: Additive, rows: RowsLikelihood
) -> Point:
    """Every hyperparameter given the weights, then every standard deviation with its weights."""
    x, w = point.x.copy(), point.w.copy()
    psi = family.predictor(w)
    parts = zip(family.terms, family.hyperparameters, family.weights, strict=True)
    for term, own, weights in parts:
        for i in range(term.num_hyperparameters):
            x[own] = _given_weights(rng, term, x[own], w[weights], i)
        for i in range(term.num_sds):
            part = np.zeros_like(w)
            scaled = weights.start + np.arange(term.size)[term.scaled_by(i)]
            part[scaled] = w[scaled]
            moved = family.design @ part
            new, ratio = _stretched(rng, term, x[own], i, psi - moved, moved, rows)
            x[own], w[scaled], psi = new, ratio * w[scaled], psi + (ratio - 1.0) * moved
    return Point(x, w)


def _given_weights(
    rng: np.random.Generator, term: Term, x: FloatArray, w: FloatArray, i: int
) -> FloatArray:
    """One hyperparameter of a term by its prior and the law of the weights."""

    def log_density(value: FloatArray, active: BoolArray) -> FloatArray:
        new = x.copy()
        new[i] = value[0]
        prior = term.log_prior(new)
        if not np.isfinite(prior):
            return np.array([-np.inf])
        return np.array([prior + 0.5 * term.log_det(new) - 0.5 * _square(term.precision(new), w)])

    out = x.copy()
    out[i] = slice_sample(rng, log_density, x[[i]], _WIDTH)[0]
    return out


def _stretched(
    rng: np.random.Generator,
    term: Term,
    x: FloatArray,
    i: int,
    rest: FloatArray,
    part: FloatArray,
    rows: RowsLikelihood,
) -> tuple[FloatArray, float]:
    """A standard deviation, and by how much the weights that it multiplies grow with it."""
    here = float(log_sd(x[i]))

    def log_density(value: FloatArray, active: BoolArray) -> FloatArray:
        new = x.copy()
        new[i] = value[0]
        prior = term.log_prior(new)
        if not np.isfinite(prior):
            return np.array([-np.inf])
        ratio = math.exp(float(log_sd(value[0])) - here)
        return np.array([prior + np.sum(rows.value(rest + ratio * part))])

    out = x.copy()
    out[i] = slice_sample(rng, log_density, x[[i]], _WIDTH)[0]
    return out, math.exp(float(log_sd(out[i])) - here)


def _square(precision: Any, w: FloatArray) -> float:
    """W' precision w."""
    if isinstance(precision, np.ndarray) and precision.ndim == 1:
        return float(precision @ (w * w))
    if isinstance(precision, np.ndarray):
        rows = w.reshape(len(precision), -1)
        return float(np.einsum("gi,gij,gj->", rows, precision, rows))
    return float(w @ (precision @ w))
