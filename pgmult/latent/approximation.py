"""The Gaussian near the posterior of a latent Gaussian model: what exact moves go around.

Sites (J, h) stand in for the likelihood of the rows. They start from the expected curvatures of the
likelihood at the means and variances that the sites themselves lead to: the nearest Gaussian in the
sense of KL(q || posterior) (Opper and Archambeau 2009). Hyperparameters then get the mode of their
density given the sites, and the sites go on to those whose marginals have the moments that the
likelihood in the place of a site would give (Minka 2001, expectation propagation), which are wide
enough where rows have few counts. At the end the moments of the hyperparameters' density are found.

What is left of the likelihood is the *correction*, sum log p(y | psi) - (h psi - J psi^2 / 2). Its
variance under the approximation, the *spread*, says how good that is: below 0.2 it can hardly be
distinguished from the posterior, above 5 moves around it become short.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from pgmult.core.typing import FloatArray, Generator
from pgmult.latent.hyperparameters import LEAN_POINTS, Leaning, laplace, lean
from pgmult.variational.sites import Expectation

Potentials = tuple[FloatArray, FloatArray]
"""J and h of all rows."""

FAR = 2.0
"""Spread from which on leaps are hardly ever taken."""

_STEP = 0.7  # of the way to moments that match
_NODES = np.linspace(-7.0, 7.0, 36)  # in standard deviations
_SPREAD_DRAWS = 40
_TOO_FAR = 1e15  # in the place of corrections that are infinite
_LEAST_J = 1e-10
_TRIES = 100  # of a draw of hyperparameters until they are what they may be
_STILL = 0.2  # square of a step of means, in standard deviations of the potential
_PULL = 0.25  # precision of the normal that holds the first predictors near those of all rows


class RowsLikelihood(Protocol):
    """A site of `pgmult.variational.sites` that also returns the log likelihood itself."""

    def value(self, psi: FloatArray) -> FloatArray:
        """Log likelihood of each row."""

    def total(self, psi: FloatArray) -> Any:
        """Their sum over rows, up to a constant: a number, or one per column."""

    def slope(self, psi: FloatArray) -> FloatArray:
        """First derivatives of the values."""

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """Expectations F of the value, and their derivatives dF/dm, dF/dv."""


@dataclass(frozen=True, slots=True, eq=False)
class Approximation:
    """A Gaussian near the posterior of weights and hyperparameters, from the data alone.

    Attributes
    ----------
    J, h : array, ``(num_rows,)`` or ``(num_rows, num_columns)``
        The potential in the likelihood's place.
    absorbed : object
        The potential as a function of the weights: `Family.absorb`.
    guess : Leaning
        A distribution near that of the hyperparameters.
    spread : float
        Variance of the correction, all columns together.
    """

    J: FloatArray
    h: FloatArray
    absorbed: Any
    guess: Leaning
    spread: float

    def slope(self, psi: FloatArray) -> FloatArray:
        """The gradient of the log potential, h - J psi."""
        return np.asarray(self.h - self.J * psi)

    def correction(self, rows: RowsLikelihood, psi: FloatArray) -> Any:
        """Log likelihood less the potential, summed over rows: one number, or one per column."""
        return rows.total(psi) - np.sum(psi * (self.h - 0.5 * self.J * psi), axis=0)

    def gradient(self, rows: RowsLikelihood, psi: FloatArray) -> FloatArray:
        """The gradient of the correction with respect to each predictor."""
        return np.asarray(rows.slope(psi) - self.slope(psi))


def collapsed(family: Any, absorbed: object, x: FloatArray) -> float:
    """Log density of hyperparameters, weights integrated out, given an absorbed potential."""
    prior = family.log_prior(x)
    if not np.isfinite(prior):
        return -math.inf
    try:
        return float(prior + family.at(x, absorbed).log_evidence)
    except np.linalg.LinAlgError:
        return -math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """Potentials of rows with one predictor each: how they are found for a likelihood.

    Attributes
    ----------
    rows : RowsLikelihood
    start : array, optional
        Predictors about which the first potentials are found.
    rounds : int
        Steps towards potentials that do not change, before hyperparameters have their mode.
    kind : type
        Class of the approximation.
    """

    rows: Any
    start: FloatArray | None = None

    rounds: ClassVar[int] = 8
    kind: ClassVar[type[Approximation]] = Approximation

    def most(self, family: Any) -> int:
        """Steps at most, after that, until means stay; none: moments of one predictor match."""
        return 0

    def first(self, family: Any) -> Potentials:
        """J and h to begin with, if need be at predictors between each row's and all rows'."""
        if self.start is not None:
            return _expected(self.rows, self.start, np.zeros_like(self.start))
        nothing, centre = np.zeros(family.shape), np.zeros(family.shape[1:])
        for _ in range(30):
            _, slope, half = self.rows.expect(nothing + centre, nothing)
            step = slope.sum(axis=0) / np.maximum(-2.0 * half.sum(axis=0) + 1e-3, 1e-3)
            centre = centre + np.clip(step, -1.0, 1.0)
        psi = nothing + centre
        for _ in range(10):
            _, slope, half = self.rows.expect(psi, nothing)
            step = (slope - _PULL * (psi - centre)) / (-2.0 * half + _PULL)
            psi = psi + np.clip(step, -1.0, 1.0)
        return _expected(self.rows, psi, nothing)

    def expected(self, family: Any, gaussian: Any, rng: Generator) -> Potentials:
        """J and h from slopes and curvatures that are expected under a distribution of weights."""
        mean, var = family.predictor(gaussian.mean), family.variances(gaussian, rng)
        return _expected(self.rows, mean, var)

    def matching(self, family: Any, gaussian: Any, sites: Potentials, rng: Generator) -> Potentials:
        """J and h most of the way to those with which predictors have the right moments."""
        J, h = sites
        mean, var = family.predictor(gaussian.mean), family.variances(gaussian, rng)
        var = np.maximum(var, 1e-200)
        sd = np.sqrt(var)
        log_density = np.empty((len(_NODES), *mean.shape))
        for i, node in enumerate(_NODES):
            psi = mean + sd * node
            log_density[i] = self.rows.value(psi) - psi * (h - 0.5 * J * psi) - 0.5 * node * node
        weights = np.exp(log_density - log_density.max(axis=0))
        weights /= weights.sum(axis=0)
        centre = np.tensordot(_NODES, weights, 1)
        precision = 1.0 / np.maximum(np.tensordot(_NODES**2, weights, 1) - centre**2, 1e-12)
        more_J = _STEP * (precision - 1.0) / var
        more_h = _STEP * (precision * centre / sd + (precision - 1.0) / var * mean)
        proper = np.isfinite(more_J + more_h) & (J + more_J > 0.0)
        return np.where(proper, J + more_J, J), np.where(proper, h + more_h, h)

    def wide(self, family: Any, gaussian: Any, sites: Potentials) -> Potentials:
        """J and h with which predictors vary as much as in the posterior: these, if they do so."""
        return sites


def approximate(
    family: Any, rows: Any, sites: Sites | None = None, points: int = LEAN_POINTS
) -> Approximation:
    """Return the approximation; where variances need draws, these are the same each time.

    Parameters
    ----------
    family : Additive, or another family of Gaussians
    rows : RowsLikelihood
        The likelihood, or one of another kind with `sites` of this kind.
    sites : Sites, optional
    points : int
        Points for moments of the hyperparameters: see `lean`.
    """
    rng = np.random.default_rng(0)
    sites = sites or Sites(rows)
    x, (J, h) = family.start(), sites.first(family)
    for i in range(sites.rounds):
        gaussian = family.at(x, family.absorb(J, h))
        new_J, new_h = sites.expected(family, gaussian, rng)
        step = 1.0 if i < 2 else _STEP
        J, h = J + step * (new_J - J), h + step * (new_h - h)
    guess = Leaning(x, np.eye(len(x)), np.zeros(len(x)))
    for _ in range(2 if len(x) else 1):
        if len(x):
            guess = _mode(family, family.absorb(J, h), guess.mean)
            x = guess.mean
        for _ in range(sites.rounds // 2):
            gaussian = family.at(x, family.absorb(J, h))
            J, h = sites.matching(family, gaussian, (J, h), rng)
    for _ in range(sites.most(family)):
        before = family.predictor(gaussian.mean)
        gaussian = family.at(x, family.absorb(J, h))
        away, base = family.predictor(gaussian.mean) - before, sites.kind(J, h, None, guess, 0.0)
        if np.sum(away * (base.slope(before) - base.slope(before + away))) < _STILL:
            break
        J, h = sites.matching(family, gaussian, (J, h), rng)
    base = sites.kind(J, h, family.absorb(J, h), guess, 0.0)
    if _spread(base, family, rows, [x] * _SPREAD_DRAWS) > FAR:
        J, h = sites.wide(family, family.at(x, base.absorbed), (J, h))
        base = sites.kind(J, h, family.absorb(J, h), guess, 0.0)
        guess = _mode(family, base.absorbed, x) if len(x) else guess
    if len(x):
        density = partial(collapsed, family, base.absorbed)
        guess = lean(density, guess.mean, guess.root, points)
    base = replace(base, guess=guess)
    near = [hyperparameters_near(rng, family, guess) for _ in range(_SPREAD_DRAWS)]
    return replace(base, spread=_spread(base, family, rows, near))


def _spread(base: Approximation, family: Any, rows: Any, near: Any) -> float:
    """The variance of the correction in draws at hyperparameters."""
    rng = np.random.default_rng(0)
    draws = (family.predictor(family.at(x, base.absorbed).sample(rng)) for x in near)
    drawn = [base.correction(rows, psi) for psi in draws]
    return float(np.sum(np.var(np.maximum(drawn, -_TOO_FAR), axis=0)))


def hyperparameters_near(rng: Generator, family: Any, guess: Leaning) -> FloatArray:
    """A draw from the guess without its long tails that the prior allows, or else its mean."""
    for _ in range(_TRIES):
        x = guess.at(rng.standard_normal(len(guess.mean)))
        if np.isfinite(family.log_prior(x)):
            return x
    return guess.mean


def _mode(family: Any, absorbed: object, start: FloatArray) -> Leaning:
    """Mode and curvature, found where reflected standard deviations are the same."""
    sds = family.is_sd()

    def reflected(x: FloatArray) -> FloatArray:
        return np.where(sds, np.maximum(np.abs(x), 1e-6), x)

    def slopes(x: FloatArray) -> FloatArray:
        signs = np.where(sds & (x < 0.0), -1.0, 1.0)
        return np.asarray(family.slopes(reflected(x), absorbed) * signs)

    known = None if family.slopes(start, absorbed) is None else slopes
    guess = laplace(lambda x: collapsed(family, absorbed, reflected(x)), start, known)
    return replace(guess, mean=reflected(guess.mean))


def _expected(rows: RowsLikelihood, mean: FloatArray, var: FloatArray) -> Potentials:
    """The site of every row from expected slopes and curvatures."""
    _, slope, half = rows.expect(mean, var)
    J = np.maximum(-2.0 * half, _LEAST_J)
    return J, slope + J * mean
