r"""Expectations of log sum exp and of log(1 + exp) under Gaussians: bounds, expansions, quadrature.

The normaliser of a softmax has no closed mean. For x ~ N(mean, diag(var)) these stand in for
E log sum_k exp x_k, each with its derivatives with respect to the means and the variances (Knowles
and Minka 2011, section 5; p is a softmax, of the argument that is named):

==========  =========================================================================  ==========
name        stands in for E log sum exp x                                              is
==========  =========================================================================  ==========
log         log sum exp(m + v / 2)                                  (Jensen)           a bound
tilted      min over a: sum a^2 v / 2 + log sum exp(m + (1 - 2a) v / 2)                a bound
quadratic   min over a and t: a + sum E[Jaakkola-Jordan's of x - a at t]  (Bouchard)   a bound
bohning     log sum exp m + (1 - 1/K) sum v / 4                                        a bound
adaptive    the least of tilted, quadratic and bohning                                 a bound
taylor      log sum exp m + sum v p (1 - p) / 2, p at m             (delta method)     no bound
quadrature  the expectation itself, to some 12 digits                                  exact
==========  =========================================================================  ==========

Bounds are from above, so what they give of E log p(y | x) is from below. "Tilted" has its least a
where a = softmax(m + (1 - 2a) v / 2); iterating that diverges for large variances, but it is also
where sum a^2 v / 2 - sum a (m + v / 2) + sum a log a is least on the simplex: a convex problem in
which Newton's steps cost O(K). With a = 0 it is "log". The
quadratic bound is Bouchard's (2007): log sum exp x <= a + sum log(1 + exp(x - a)) and then

    log(1 + exp y) <= (y - t) / 2 + tanh(t / 2) / (4 t) (y^2 - t^2) + log(1 + exp t),

(the paper's equation 8 lacks a half), best at t^2 = E y^2. What is left is one convex problem in
one number a, solved by Newton's method kept within a bracket.

Quadrature rests on Gumbel's distribution: log sum exp x = E max_k (x_k + G_k) - 0.577..., so that

    E log sum exp x = c - 0.577... + int [Phi(u - c) - prod_k F_k(u)] du

with F_k(u) = P(x_k + G < u) = E exp(-exp(x_k - u)), for any c: one integral, by the trapezoid rule,
compiled in `compiled/log_sum_exp.py`. Its derivatives with respect to m are E softmax(x),
probabilities averaged over q. Errors of the value are some 1e-12 of the largest standard deviation
or of 1, and those of derivatives are below 1e-11, whatever the means and variances: from 0, and
differing as they like.

log(1 + exp x) is the log sum exp of (0, x) where 0 has no variance, except for the quadratic bound,
where Jaakkola and Jordan's alone is tighter. `LOG_SUM_EXP`, `SOFTPLUS` and `DENSE_LOG_SUM_EXP`, for
x of any covariance, have all of them by name.

References: Knowles and Minka (2011), Non-conjugate variational message passing for multinomial and
binary regression; Bouchard (2007), Efficient bounds for the softmax function; Böhning (1992),
Multinomial logistic regression algorithm; Saul and Jordan (1999), A mean field learning algorithm
for unsupervised neural networks (the tilted bound of the binary case).

>>> import numpy as np
>>> mean, var = np.array([1.0, 0.0, -1.0]), np.ones(3)
>>> for name, method in LOG_SUM_EXP.items():
...     print(f"{name:10} {method.expect(mean, var)[0]:.4f} {method.is_bound}")
log        1.9076 True
tilted     1.6716 True
quadratic  2.4521 True
bohning    1.9076 True
taylor     1.6523 False
adaptive   1.6716 True
quadrature 1.6375 True
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from examples.papers.regressions.compiled.log_sum_exp import expect_rows
from examples.papers.regressions.sites import half_tanh, jaakkola_jordan
from pgmult.compiled.rows import over_rows
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_finite, as_nonnegative
from pgmult.links.logistic import logistic_expectations
from pgmult.variational.sites import Expectation

_MOST_STEPS = 200
_MOST_HALVINGS = 30


@dataclass(frozen=True, slots=True)
class Approximation:
    """An approximation of an expectation under Gaussians.

    Attributes
    ----------
    name : str
    expect : callable
        ``expect(mean, var)``: the value, and its derivatives with respect to `mean` and `var`.
        For log sum exp, shapes ``(..., K)`` give values ``(...)``; for log(1 + exp), shapes are all
        the same; where any covariance will do, `var` is ``(..., K, K)`` and so is its derivative.
    is_bound : bool
        Whether the value is never below the expectation.
    """

    name: str
    expect: Callable[[FloatArray, FloatArray], Expectation]
    is_bound: bool


def _by_name(*approximations: Approximation) -> dict[str, Approximation]:
    return {each.name: each for each in approximations}


# --------------------------------------------------------------------------- independent Gaussians


def _log(mean: FloatArray, var: FloatArray) -> Expectation:
    raised = mean + 0.5 * var
    p = softmax(raised, axis=-1)
    return np.asarray(logsumexp(raised, axis=-1)), p, 0.5 * p


def tilted_by(mean: FloatArray, var: FloatArray) -> FloatArray:
    """The a at which the tilted bound is least, ``(..., K)``: a = softmax(m + (1 - 2a) v / 2)."""
    shape = mean.shape
    m, v = mean.reshape(-1, shape[-1]), var.reshape(-1, shape[-1])

    def pull(a: FloatArray, rows: Any) -> FloatArray:
        return np.asarray(v[rows] * a)

    def solve(a: FloatArray, slope: FloatArray, rows: Any) -> tuple[FloatArray, FloatArray]:
        share = a / (1.0 + a * v[rows])
        return slope * share, share

    return _least_tilt(m, v, pull, solve).reshape(shape)


def _least_tilt(
    m: FloatArray,
    v: FloatArray,
    pull: Callable[[FloatArray, Any], FloatArray],
    solve: Callable[[FloatArray, FloatArray, Any], tuple[FloatArray, FloatArray]],
) -> FloatArray:
    """The a = softmax(m + v / 2 - V a) of every row, for covariances V with diagonals v.

    It is where a' V a / 2 - a' (m + v / 2) + sum a log a is least on the simplex: Newton's method,
    with steps that keep its sum, halved until they descend. ``pull(a, rows)`` is V a, and
    ``solve(a, slope, rows)`` are (V + diag(1 / a))^-1 times `slope` and times ones.
    """
    raised = m + 0.5 * v

    def height(a: FloatArray, rows: Any) -> FloatArray:
        terms = a * (0.5 * pull(a, rows) - raised[rows] + np.log(a))
        return np.asarray(terms.sum(axis=-1))

    # right where v is 0, and for two classes to first order in m
    a = np.maximum(softmax(m / (1.0 + 0.25 * v.max(axis=-1, keepdims=True)), axis=-1), 1e-30)
    a /= a.sum(axis=-1, keepdims=True)
    active = np.arange(len(m))
    rounding = 1e-14 * (1.0 + np.abs(m).max(axis=-1) + v.max(axis=-1))
    for _ in range(_MOST_STEPS):
        here = a[active]
        slope = raised[active] - pull(here, active) - np.log(here) - 1.0
        direct, ones = solve(here, slope, active)
        move = direct - ones * (direct.sum(axis=-1) / ones.sum(axis=-1))[:, None]
        size = np.ones(len(active))
        most = height(here, active) + rounding[active]
        rise = (slope * move).sum(axis=-1)
        waiting = np.arange(len(active))
        for _ in range(_MOST_HALVINGS):
            trial = _moved(here[waiting], size[waiting, None] * move[waiting])
            good = height(trial, active[waiting]) <= most[waiting] - 1e-4 * (size * rise)[waiting]
            a[active[waiting[good]]] = trial[good]
            waiting = waiting[~good]
            if len(waiting) == 0:
                break
            size[waiting] *= 0.5
        # steps shrink quadratically: after one of 1e-9 the next is rounding, and so is all that
        # is left where large variances hide what a step gains
        far = ((np.abs(move).max(axis=-1) > 1e-9) | (size < 1.0)) & (rise > rounding[active])
        far[waiting] = False
        active = active[far]
        if len(active) == 0:
            break
    return np.asarray(a)


def _moved(a: FloatArray, step: FloatArray) -> FloatArray:
    """To first order a + step, positive and of sum 1: entries that fall move in logarithms."""
    shrunk = a * np.exp(np.minimum(step, 0.0) / a)
    moved = np.maximum(np.where(step > 0.0, a + step, shrunk), 1e-300)
    return np.asarray(moved / moved.sum(axis=-1, keepdims=True))


def _tilted(mean: FloatArray, var: FloatArray) -> Expectation:
    a = tilted_by(mean, var)
    raised = mean + (0.5 - a) * var
    p = softmax(raised, axis=-1)
    value = 0.5 * (a * a * var).sum(axis=-1) + logsumexp(raised, axis=-1)
    return np.asarray(value), p, 0.5 * (p * (1.0 - p) + (p - a) ** 2)


def _quadratic(mean: FloatArray, var: FloatArray) -> Expectation:
    size = mean.shape[-1]
    low = mean.min(axis=-1, keepdims=True) - 1e-9
    top = mean.max(axis=-1, keepdims=True)
    reach = 1.0 + math.log(size) + np.sqrt(var.max(axis=-1, keepdims=True))

    def at(a: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """t, tanh(t / 2) / (2 t), and the derivative of the bound with respect to a."""
        t = np.sqrt((mean - a) ** 2 + var)
        omega = half_tanh(t)
        slope = 1.0 - 0.5 * size - (omega * (mean - a)).sum(axis=-1, keepdims=True)
        return t, omega, slope

    high = top + reach
    for _ in range(60):
        short = at(high)[2] < 0.0
        if not short.any():
            break
        reach = np.where(short, 2.0 * reach, reach)
        high = top + reach
    a = np.clip(logsumexp(mean, axis=-1, keepdims=True), low, high)
    for _ in range(_MOST_STEPS):
        t, omega, slope = at(a)
        low, high = np.where(slope < 0.0, a, low), np.where(slope < 0.0, high, a)
        near = (mean - a) ** 2 / np.maximum(t * t, 1e-300)
        curvature = (1.0 - near) * omega + near * (0.25 - (omega * t) ** 2)
        with np.errstate(divide="ignore", invalid="ignore"):  # a flat place: bisected instead
            trial = a - slope / curvature.sum(axis=-1, keepdims=True)
        trial = np.where((trial > low) & (trial < high), trial, 0.5 * (low + high))
        done = np.abs(trial - a) <= 1e-8 * (1.0 + np.abs(a))  # and the next would be 1e-16
        a = trial
        if done.all():
            break
    t, omega, _ = at(a)
    y = mean - a
    value = a[..., 0] + (0.5 * (y + t) + np.log1p(np.exp(-t))).sum(axis=-1)
    return value, 0.5 + omega * y, 0.5 * omega


def _bohning(mean: FloatArray, var: FloatArray) -> Expectation:
    rate = 0.25 * (1.0 - 1.0 / mean.shape[-1])
    value = logsumexp(mean, axis=-1) + rate * var.sum(axis=-1)
    return np.asarray(value), softmax(mean, axis=-1), np.full(mean.shape, rate)


def _taylor(mean: FloatArray, var: FloatArray) -> Expectation:
    p = softmax(mean, axis=-1)
    curvature = p * (1.0 - p)
    value = logsumexp(mean, axis=-1) + 0.5 * (curvature * var).sum(axis=-1)
    skew = var * (1.0 - 2.0 * p)
    d_mean = p + 0.5 * p * (skew - (p * skew).sum(axis=-1, keepdims=True))
    return np.asarray(value), d_mean, 0.5 * curvature


def _least(*bounds: Callable[[FloatArray, FloatArray], Expectation]) -> Any:
    """The least of several bounds, by itself for every element of the value."""

    def expect(mean: FloatArray, var: FloatArray) -> Expectation:
        best, d_mean, d_var = bounds[0](mean, var)
        for bound in bounds[1:]:
            value, other_d_mean, other_d_var = bound(mean, var)
            better = value < best
            best = np.where(better, value, best)
            d_mean = np.where(_expand(better, d_mean), other_d_mean, d_mean)
            d_var = np.where(_expand(better, d_var), other_d_var, d_var)
        return best, d_mean, d_var

    return expect


def _expand(condition: Any, like: FloatArray) -> Any:
    return condition.reshape(condition.shape + (1,) * (like.ndim - condition.ndim))


# --------------------------------------------------------------------------- quadrature


def _quadrature(mean: FloatArray, var: FloatArray) -> Expectation:
    shape = mean.shape
    m, v = as_finite(mean, "mean"), as_nonnegative(var, "var")
    m, s = m.reshape(-1, shape[-1]), np.sqrt(v).reshape(-1, shape[-1])
    value, d_mean, d_var = np.empty(len(m)), np.empty_like(m), np.empty_like(m)
    over_rows(expect_rows, len(m), m, s, value, d_mean, d_var, grain=16)
    return value.reshape(shape[:-1]), d_mean.reshape(shape), d_var.reshape(shape)


_adaptive = _least(_tilted, _quadratic, _bohning)

LOG_SUM_EXP = _by_name(
    Approximation("log", _log, True),
    Approximation("tilted", _tilted, True),
    Approximation("quadratic", _quadratic, True),
    Approximation("bohning", _bohning, True),
    Approximation("taylor", _taylor, False),
    Approximation("adaptive", _adaptive, True),
    Approximation("quadrature", _quadrature, True),
)


# --------------------------------------------------------------------------- log(1 + exp x)


def _beside_zero(method: Callable[[FloatArray, FloatArray], Expectation]) -> Any:
    """The same for log(e^0 + e^x)."""

    def expect(mean: FloatArray, var: FloatArray) -> Expectation:
        zero = np.zeros_like(mean)
        value, d_mean, d_var = method(np.stack([zero, mean], -1), np.stack([zero, var], -1))
        return value, d_mean[..., 1], d_var[..., 1]

    return expect


def _logistic_quadrature(mean: FloatArray, var: FloatArray) -> Expectation:
    value, share, spread = logistic_expectations(mean, var)
    return value, share, 0.5 * spread


SOFTPLUS = _by_name(
    Approximation("log", _beside_zero(_log), True),
    Approximation("tilted", _beside_zero(_tilted), True),
    Approximation("quadratic", jaakkola_jordan, True),
    Approximation("bohning", _beside_zero(_bohning), True),
    Approximation("taylor", _beside_zero(_taylor), False),
    Approximation("adaptive", _least(_beside_zero(_tilted), jaakkola_jordan), True),
    Approximation("quadrature", _logistic_quadrature, True),
)


# --------------------------------------------------------------------------- any covariance


def _curvature(p: FloatArray) -> FloatArray:
    """The Hessian of log sum exp, diag(p) - p p'."""
    return np.asarray(p[..., None] * (np.eye(p.shape[-1]) - p[..., None, :]))


def _marginal(method: Callable[[FloatArray, FloatArray], Expectation]) -> Any:
    """A bound that looks at variances only, whatever the correlations."""

    def expect(mean: FloatArray, cov: FloatArray) -> Expectation:
        value, d_mean, d_var = method(mean, np.diagonal(cov, axis1=-2, axis2=-1))
        return value, d_mean, d_var[..., None] * np.eye(mean.shape[-1])

    return expect


def _dense_tilted(mean: FloatArray, cov: FloatArray) -> Expectation:
    shape = mean.shape
    # the bound sees differences only, and what all classes share may be large: rounding drowns them
    eye = np.eye(shape[-1])
    contrast = eye - 1.0 / shape[-1]
    level = mean.mean(axis=-1, keepdims=True)
    m = (mean - level).reshape(-1, shape[-1])
    V = contrast @ cov.reshape(-1, shape[-1], shape[-1]) @ contrast
    V = 0.5 * (V + V.swapaxes(1, 2))

    def pull(a: FloatArray, rows: Any) -> FloatArray:
        return np.asarray(np.einsum("nij,nj->ni", V[rows], a))

    def solve(a: FloatArray, slope: FloatArray, rows: Any) -> tuple[FloatArray, FloatArray]:
        right = np.stack([a * slope, a], axis=2)
        both = np.linalg.solve(eye + a[:, :, None] * V[rows], right)
        return both[:, :, 0], both[:, :, 1]

    v = np.diagonal(V, axis1=1, axis2=2)
    a = _least_tilt(m, v, pull, solve)
    pulled = pull(a, slice(None))
    raised = m + 0.5 * v - pulled
    p = softmax(raised, axis=-1)
    value = level.ravel() + 0.5 * (a * pulled).sum(axis=-1) + logsumexp(raised, axis=-1)
    gap = p - a
    d_cov = 0.5 * (_curvature(p) + gap[:, :, None] * gap[:, None, :])
    return value.reshape(shape[:-1]), p.reshape(shape), d_cov.reshape(cov.shape)


def _dense_bohning(mean: FloatArray, cov: FloatArray) -> Expectation:
    size = mean.shape[-1]
    half_curvature = 0.25 * (np.eye(size) - 1.0 / size)
    value = logsumexp(mean, axis=-1) + np.einsum("ij,...ij->...", half_curvature, cov)
    return value, softmax(mean, axis=-1), np.broadcast_to(half_curvature, cov.shape)


def _dense_taylor(mean: FloatArray, cov: FloatArray) -> Expectation:
    p = softmax(mean, axis=-1)
    curvature = _curvature(p)
    value = logsumexp(mean, axis=-1) + 0.5 * np.einsum("...ij,...ij->...", curvature, cov)
    pulled = np.einsum("...ij,...j->...i", cov, p)
    skew = np.diagonal(cov, axis1=-2, axis2=-1) - 2.0 * pulled
    d_mean = p + 0.5 * p * (skew - (p * skew).sum(axis=-1, keepdims=True))
    return value, d_mean, 0.5 * curvature


DENSE_LOG_SUM_EXP = _by_name(
    Approximation("log", _marginal(_log), True),
    Approximation("tilted", _dense_tilted, True),
    Approximation("quadratic", _marginal(_quadratic), True),
    Approximation("bohning", _dense_bohning, True),
    Approximation("taylor", _dense_taylor, False),
    Approximation("adaptive", _least(_dense_tilted, _marginal(_quadratic), _dense_bohning), True),
)
