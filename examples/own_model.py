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

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded, solve_banded

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
    """The model, given which areas of the map have a border in common; each has at least one."""

    borders: np.ndarray  # (num_borders, 2): numbers of two areas, the smaller one first

    dims: ClassVar = {"probs": ("area", "category"), "level": ("stick",)}

    def link(self, data):
        return pgmult.StickBreaking()

    def precision(self, num_areas):
        """Q's diagonals, from the outermost above the main one to the main one itself."""
        one, other = self.borders.T
        bands = np.zeros((1 + (other - one).max(), num_areas))
        bands[-1] = np.bincount(self.borders.ravel(), minlength=num_areas)
        bands[one - other - 1, other] = -0.95
        return bands

    def sample_field(self, rng, mean, J, h):
        """Each row from N(mean, Q^-1) exp(-J x^2 / 2 + h x), by the factor of a band matrix."""
        psi = np.empty(J.shape)
        for k in range(len(J)):
            bands = self.precision(J.shape[1])
            pull = h[k] - J[k] * mean[k]
            bands[-1] += J[k]
            root = cholesky_banded(bands)
            noise = solve_banded((0, len(root) - 1), root, rng.standard_normal(len(pull)))
            psi[k] = mean[k] + cho_solve_banded((root, False), pull) + noise
        return psi

    def prior(self, rng, data):
        num_areas, num_categories = data.counts.shape
        level = rng.normal(0.0, 2.0, size=num_categories - 1)
        unseen = np.zeros((num_categories - 1, num_areas))
        return VotesState(self.sample_field(rng, level, unseen, unseen), level)

    def simulate(self, rng, state, data):
        return Votes(self.link(data).simulate(rng, state.psi.T, data.counts.sum(axis=1)))

    def init(self, rng, data):
        zeros = np.zeros((data.counts.shape[1] - 1, len(data.counts)))
        return self.step(rng, VotesState(zeros, zeros[:, 0]), data)

    def step(self, rng, state, data):
        seen = self.link(data).augment(rng, state.psi.T, data.counts)
        psi = self.sample_field(rng, state.level, seen.J.T, seen.h.T)
        pull = 0.05 * self.precision(len(data.counts))[-1]  # the sums of the rows of Q
        known = 1.0 / 4.0 + pull.sum()
        noise = rng.standard_normal(len(psi)) / np.sqrt(known)
        return VotesState(psi, psi @ pull / known + noise)

    def log_likelihood(self, state, data):
        return float(self.link(data).log_likelihood(state.psi.T, data.counts).sum())

    def probs(self, state, data):
        return self.link(data).probs(state.psi.T)


def lattice(rows, columns):
    """The borders of square areas, each with up to four neighbours."""
    number = np.arange(rows * columns).reshape(rows, columns)
    beside, below = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    return np.concatenate([np.stack(pair, axis=-1).reshape(-1, 2) for pair in (beside, below)])


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
