"""A model of one's own: how neighbouring areas share out their votes.

Counts of K categories in areas of a map: y_a ~ Multinomial(N_a, stick-breaking(psi_a)). The psi of
each stick is a proper conditional autoregression, a Gaussian Markov random field with as few
entries in its precision as the map has borders::

    psi_k ~ N(level_k, Q^-1),  Q = D - 0.95 A,  A the neighbours and D their numbers
    level_k ~ N(0, 4)

Given the Pólya-gamma variables that the link draws, all areas' psi are Gaussian at once, and the
level is Gaussian given psi: every block is drawn exactly. `check_model` finds out if one is not.

    python examples/own_model.py
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

import pgmult


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """Data: plain arrays."""

    counts: np.ndarray  # (num_areas, num_categories)


@dataclass(frozen=True, slots=True, eq=False)
class VotesState:
    """A point of the chain: plain arrays, too."""

    psi: np.ndarray  # (num_categories - 1, num_areas)
    level: np.ndarray  # (num_categories - 1,)


@dataclass(frozen=True, slots=True, eq=False)
class MultinomialCAR:
    """The model, with the law of its field around a level of 0."""

    field: pgmult.GaussianMarkovField

    dims: ClassVar = {"probs": ("area", "category"), "level": ("stick",)}

    def link(self, data):
        return pgmult.StickBreaking()

    def around(self, level):
        return replace(self.field, prior_mean=np.tile(level[:, None], self.field.size))

    def prior(self, rng, data):
        level = rng.normal(0.0, 2.0, size=data.counts.shape[1] - 1)
        return VotesState(self.around(level).sample(rng), level)

    def simulate(self, rng, state, data):
        return Votes(self.link(data).simulate(rng, state.psi.T, data.counts.sum(axis=1)))

    def init(self, rng, data):
        zeros = np.zeros((data.counts.shape[1] - 1, len(data.counts)))
        return self.step(rng, VotesState(zeros, zeros[:, 0]), data)

    def step(self, rng, state, data):
        seen = self.link(data).augment(rng, state.psi.T, data.counts)
        by_stick = pgmult.DiagonalPotential(seen.J.T, seen.h.T)
        psi = self.around(state.level).condition(by_stick).sample(rng)
        pull = self.field.prior_precision.apply(np.ones(self.field.size))
        known = 1.0 / 4.0 + pull.sum()
        noise = rng.standard_normal(len(psi)) / np.sqrt(known)
        return VotesState(psi, psi @ pull / known + noise)

    def log_likelihood(self, state, data):
        return float(self.link(data).log_likelihood(state.psi.T, data.counts).sum())

    def probs(self, state, data):
        return self.link(data).probs(state.psi.T)


def lattice(rows, columns, strength=1.0):
    """The field on a map of square areas, each with up to four neighbours."""
    number = np.arange(rows * columns).reshape(rows, columns)
    beside, below = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    near = np.zeros((rows * columns, rows * columns))
    for one, other in (beside, below):
        near[one, other] = near[other, one] = 1.0
    precision = strength * (np.diag(near.sum(axis=0)) - 0.95 * near)
    return pgmult.GaussianMarkovField(np.zeros(len(near)), sparse.csr_array(precision))


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    model, voters = MultinomialCAR(lattice(10, 15)), rng.integers(0, 40, size=150)
    blank = Votes(np.outer(voters, [1, 0, 0]))
    truth = model.prior(rng, blank)
    data = model.simulate(rng, truth, blank)
    posterior = pgmult.sample(model, data, draws=800, tune=200, chains=2, random_seed=1)

    probs, fitted = model.probs(truth, data), posterior["probs"].mean(axis=(0, 1))
    alone = (data.counts + 1.0 / 3.0) / (voters[:, None] + 1.0)
    low, high = np.quantile(posterior["probs"], [0.05, 0.95], axis=(0, 1))
    off, off_alone = (100.0 * np.abs(guess - probs).mean() for guess in (fitted, alone))
    inside = np.mean((low < probs) & (probs < high))
    print(
        f"An area's shares of the vote are {off:.1f} points off on average, and {off_alone:.1f} if"
        f" neighbours are not asked;\n{100 * inside:.0f} % of true shares are in their 90 %"
        " intervals."
    )
    tiny = Votes(np.array([[2, 1, 0], [0, 0, 0], [1, 0, 3], [0, 2, 0]]))
    print(pgmult.testing.check_model(MultinomialCAR(lattice(2, 2)), tiny))
