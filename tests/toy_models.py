"""Two models whose posteriors can be written down, to test the tests with."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import gammaln, logsumexp


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    y: np.ndarray  # (num_rows,)
    offset: np.ndarray  # (num_rows,)


@dataclass(frozen=True, slots=True, eq=False)
class NormalState:
    mean: float
    variance: float


@dataclass(frozen=True)
class NormalModel:
    """y_i ~ N(offset_i + mean, variance), mean ~ N(0, prior_variance), variance ~ InvGamma."""

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "mean": (),
        "variance": (),
        "residual": ("row",),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("mean", "variance")

    prior_variance: float = 4.0
    shape: float = 2.0
    rate: float = 1.0

    def coords(self, data):
        return {"row": [f"row {i}" for i in range(len(data.y))]}

    def prior(self, rng, data):
        mean = np.sqrt(self.prior_variance) * rng.standard_normal()
        return NormalState(float(mean), float(self.rate / rng.standard_gamma(self.shape)))

    def simulate(self, rng, state, data):
        noise = np.sqrt(state.variance) * rng.standard_normal(len(data.offset))
        return Numbers(data.offset + state.mean + noise, data.offset)

    def init(self, rng, data):
        return NormalState(0.0, 1.0)

    def step(self, rng, state, data):
        precision, h = self.mean_posterior(state.variance, data)
        mean = float(h / precision + rng.standard_normal() / np.sqrt(precision))
        shape, rate = self.variance_posterior(mean, data)
        return NormalState(mean, float(rate / rng.standard_gamma(shape)))

    def mean_posterior(self, variance, data):
        precision = 1.0 / self.prior_variance + len(data.y) / variance
        return precision, (data.y - data.offset).sum() / variance

    def variance_posterior(self, mean, data):
        squares = ((data.y - data.offset - mean) ** 2).sum()
        return self.shape + 0.5 * len(data.y), self.rate + 0.5 * squares

    def residual(self, state, data):
        return data.y - data.offset - state.mean

    def log_likelihood(self, state, data):
        squares = (self.residual(state, data) ** 2).sum()
        return float(-0.5 * (len(data.y) * np.log(state.variance) + squares / state.variance))


def log_inverse_gamma(x, shape, rate):
    return shape * np.log(rate) - gammaln(shape) - (shape + 1.0) * np.log(x) - rate / x


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    counts: np.ndarray  # (num_rows, num_categories)

    @property
    def totals(self):
        return self.counts.sum(axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class MixtureState:
    weights: np.ndarray  # (num_components,)
    probs: np.ndarray  # (num_components, num_categories)
    component: np.ndarray  # (num_rows,)


@dataclass(frozen=True)
class MixtureModel:
    """Each row multinomial with the probabilities of its component; Dirichlet priors."""

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "weights": ("component",),
        "probs": ("component", "category"),
        "component": ("row",),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("weights", "probs")
    label_dims: ClassVar[frozenset[str]] = frozenset({"component"})

    num_components: int = 2
    concentration: float = 0.7

    def coords(self, data):
        return {}

    def prior(self, rng, data):
        weights = rng.dirichlet(np.full(self.num_components, 1.0))
        alpha = np.full(data.counts.shape[1], self.concentration)
        probs = rng.dirichlet(alpha, size=self.num_components)
        component = rng.choice(self.num_components, size=len(data.counts), p=weights)
        return MixtureState(weights, probs, component)

    def simulate(self, rng, state, data):
        return Table(rng.multinomial(data.totals, state.probs[state.component]))

    def init(self, rng, data):
        return self.prior(rng, data)

    def log_odds(self, state, data):
        tiny = np.finfo(np.float64).tiny  # a Dirichlet draw may underflow
        return np.log(state.weights) + data.counts @ np.log(state.probs + tiny).T

    def step(self, rng, state, data):
        log_odds = self.log_odds(state, data)
        gumbel = rng.gumbel(size=log_odds.shape)
        component = np.argmax(log_odds + gumbel, axis=1)
        member = component[:, None] == np.arange(self.num_components)
        weights = rng.dirichlet(1.0 + member.sum(axis=0))
        probs = np.array(
            [rng.dirichlet(row) for row in self.concentration + member.T @ data.counts]
        )
        return replace(state, weights=weights, probs=probs, component=component)

    def log_likelihood(self, state, data):
        rows = np.arange(len(data.counts))
        log_odds = self.log_odds(state, data) - np.log(state.weights)
        return float(log_odds[rows, state.component].sum())

    def marginal_log_likelihood(self, state, data):
        return float(logsumexp(self.log_odds(state, data), axis=1).sum())
