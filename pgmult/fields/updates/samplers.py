"""Samplers of `MultinomialGP`: sweeps around a Gaussian approximation, or on a table of inputs.

`sampler` chooses: where the inputs are cells of a table and the covariance is a product, sweeps
are those of `pgmult.fields.updates.table_sticks`. Elsewhere the likelihood as a function of psi is
nearly Gaussian, whatever the counts; that Gaussian is computed once for the data
(`pgmult.latent.approximation`), and the exact moves of a sweep use it (`pgmult.latent.moves`)::

1. theta, beta, psi | x        in some of the sweeps: a leap to a point that does not depend on the
                               old one, theta as it is distributed under the approximation, psi and
                               beta given theta; or, where that is hardly ever accepted, a move of
                               theta that carries psi and beta along
2. beta, psi | theta, x        where there was no leap: each stick turns about the approximation,
                               all sites and coefficients at once; by swings where that is rough

Sticks that share hyperparameters move together: all of them, or each alone.
"""

import numpy as np

from pgmult.core.sweeps import Sampler
from pgmult.core.typing import FloatArray, Generator
from pgmult.fields.data import CountField
from pgmult.fields.models.multinomial_gp import MultinomialGP, MultinomialGPState
from pgmult.fields.priors.sticks import Sticks, TableSticks
from pgmult.fields.updates import table_sticks
from pgmult.latent.approximation import approximate, hyperparameters_near
from pgmult.latent.moves import Point, Target, carry, leap, swing, turn
from pgmult.variational.sites import LogisticSite

_FAR = 1.0  # spread from which on leaps are taken less often than not
_SPREAD = 0.5  # of a stick, from which on turns are short


def sampler(model: MultinomialGP, data: CountField) -> Sampler[MultinomialGPState]:
    """Choose the sampler of a model for a data set."""
    sticks = model.table_sticks(data)
    if sticks is None:
        return ApproximationSampler(model, data)
    return TableSampler(sticks, model.fixed(data))


class ApproximationSampler:
    """Sweeps around Gaussian approximations, which start at draws from these.

    Parameters
    ----------
    model : MultinomialGP
    data : CountField

    Attributes
    ----------
    targets : list of Target
        One for each of `MultinomialGP.columns`: its family, likelihood and approximation.
    """

    def __init__(self, model: MultinomialGP, data: CountField):
        self._columns, self._num_sites = model.columns(data), data.num_sites
        self._rate, self._fixed = model.hyperparameter_rate, model.fixed(data)
        self.targets: list[Target] = []
        for group in model.groups(data):
            family = Sticks(model.structure, data.sites, group)
            rows = LogisticSite(*group.counts[:, family.counted])
            self.targets.append(Target(family, rows, approximate(family, rows)))

    def init(self, rng: Generator) -> MultinomialGPState:
        """Draw from the approximations."""
        points = []
        for target in self.targets:
            x = hyperparameters_near(rng, target.family, target.base.guess)
            w = target.family.at(x, target.base.absorbed).sample(rng)
            points.append(Point.of(x, w, target))
        return self._state(points)

    def step(self, rng: Generator, state: MultinomialGPState) -> MultinomialGPState:
        """Sweep over all sticks."""
        w = np.concatenate([state.psi, state.beta])
        logs = np.log(state.hyperparameters)[:, : None if self._fixed is None else 0]
        moves_theta = self._fixed is None and rng.random() < self._rate
        points = []
        for columns, target, x in zip(self._columns, self.targets, logs, strict=True):
            near, point = target.base, Point.of(x, w[:, columns], target)
            if moves_theta:
                point = (leap if near.spread <= _FAR else carry)(rng, point, target)
            if not moves_theta or near.spread > _FAR:
                short = near.spread > _SPREAD * point.w.shape[1]
                point = (swing if short else turn)(rng, point, target)
            points.append(point)
        return self._state(points)

    def _state(self, points: list[Point]) -> MultinomialGPState:
        w = np.concatenate([point.w for point in points], axis=1)
        theta = np.exp([point.x for point in points]) if self._fixed is None else self._fixed
        return MultinomialGPState(w[: self._num_sites], w[self._num_sites :], theta)


class TableSampler:
    """Sweeps on a table of inputs, which start near the posterior.

    Parameters
    ----------
    sticks : list of TableSticks
        One for each of `MultinomialGP.columns`.
    fixed : array, ``(num_covariances, num_hyperparameters)``, or None
        The hyperparameters, unless they are sampled.

    Attributes
    ----------
    references : list of `pgmult.fields.updates.table_sticks.Reference`
        The Gaussians that moves go around, from pilot runs that depend on the data alone.
    """

    def __init__(self, sticks: list[TableSticks], fixed: FloatArray | None):
        self._sticks, self._fixed = sticks, fixed
        self.references = [table_sticks.pilot(group) for group in sticks]

    def init(self, rng: Generator) -> MultinomialGPState:
        """Draw a state near the posterior."""
        pairs = zip(self._sticks, self.references, strict=True)
        draws = [table_sticks.init(rng, group, reference) for group, reference in pairs]
        return MultinomialGPState.of_tables(self._sticks, draws, self._fixed)

    def step(self, rng: Generator, state: MultinomialGPState) -> MultinomialGPState:
        """Sweep over all sticks."""
        moves = zip(self._sticks, state.on_tables(self._sticks), self.references, strict=True)
        draws = [table_sticks.sweep(rng, *arguments)[0] for arguments in moves]
        return MultinomialGPState.of_tables(self._sticks, draws, self._fixed)
