"""Words of topics that drift over time: their chains, variances and base, as a part of a model.

Density and moves: `pgmult.topics.models.dynamic`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmult.core.typing import BoolArray, FloatArray, Generator, IntArray
from pgmult.links import StickBreaking
from pgmult.sampling.moves import slice_sample
from pgmult.topics.compiled.chains import Counts
from pgmult.topics.data.timed import TimedCorpus
from pgmult.topics.priors.chains import ScalarChains
from pgmult.topics.priors.means import Fields
from pgmult.topics.priors.walk import log_inverse_gamma
from pgmult.topics.starts.searches import Searched

_SLICE_WIDTH = 0.15  # of log variances


@dataclass(frozen=True, slots=True, eq=False)
class DriftingWords:
    """Topics whose words are stick-breaking transforms of chains over time.

    Attributes
    ----------
    num_topics : int
    persistence : float
        Of chains.
    base_var : float
        Prior variance of each word stick's base.
    initial, drift : (float, float)
        Shape and scale of the inverse-gamma priors of each topic's variances.
    """

    num_topics: int
    persistence: float
    base_var: float
    initial: tuple[float, float]
    drift: tuple[float, float]

    def table(self, state: Any) -> FloatArray:
        """Word probabilities over pairs of time and word, ``(num_topics, ...)``."""
        return np.asarray(state.topics.reshape(self.num_topics, -1))

    def drawn(self, draw: Mapping[str, FloatArray]) -> FloatArray | None:
        """Topics of a draw by time, ``(num_times, num_topics, num_words)``."""
        return draw["topics"].swapaxes(0, 1) if "topics" in draw else None

    def link(self, data: TimedCorpus) -> StickBreaking:
        """The link from eta to the words of a topic, frequent words first."""
        return StickBreaking(order=data.order)

    def prior(self, rng: Generator, data: TimedCorpus) -> Fields:
        """Base, variances and eta from their priors."""
        centre = _uniform_sticks(data.num_words)
        base = centre + np.sqrt(self.base_var) * rng.standard_normal(len(centre))
        (shape, scale), (drift_shape, drift_scale) = self.initial, self.drift
        initial_var = scale / rng.gamma(shape, size=self.num_topics)
        drift_var = drift_scale / rng.gamma(drift_shape, size=self.num_topics)
        times = data.num_times, self.persistence
        eta = ScalarChains(base, initial_var, drift_var, *times).sample(rng)
        return self._fields(data, base, initial_var, drift_var, eta)

    def start(self, rng: Generator, at: Searched, data: TimedCorpus) -> Fields:
        """Words that are the same at all times."""
        level = StickBreaking().inverse(at.topics()[:, data.order])
        base = level.mean(axis=0)
        initial_var = self.initial[1] + np.mean((level - base) ** 2, axis=1)
        drift_var = np.full(self.num_topics, self.drift[1] / self.drift[0])
        eta = np.repeat(level[:, None], data.num_times, axis=1)
        return self._fields(data, base, initial_var, drift_var, eta)

    def given(self, rng: Generator, state: Any, word_counts: IntArray, data: TimedCorpus) -> Fields:
        """Eta and variances given the tokens' topics, then their base."""
        counts = word_counts.reshape(state.topics.shape)
        initial_var, drift_var, eta = self.sample_chains(rng, state, counts, data)
        mean, var = self.base_given(eta, initial_var, drift_var)
        base = mean + np.sqrt(var) * rng.standard_normal(mean.shape)
        return self._fields(data, base, initial_var, drift_var, eta)

    def mean(self, state: Any, data: TimedCorpus) -> FloatArray:
        """The topics as drawn: the tokens' topics do not give their mean."""
        return self.table(state)

    def sample_chains(
        self, rng: Generator, state: Any, word_counts: IntArray, data: TimedCorpus
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Variances at the start and of steps, and eta, given the tokens' topics."""
        both = word_counts[..., data.order[:-1]], self.link(data).totals(word_counts)
        counts = Counts(*(of.astype(np.float64, order="C") for of in both))
        variances, times = (state.initial_var, state.drift_var), (data.num_times, self.persistence)
        chains = ScalarChains(state.base, *variances, *times)
        eta = chains.slice(rng, state.eta, counts)
        name, prior = "innovation_var", self.drift
        if rng.random() < 0.5:
            name, prior = "initial_var", self.initial
        conditioned = chains.condition(chains.surrogate(rng, eta, counts))
        noise = conditioned.noise_of(eta)

        def log_density(log_var: FloatArray, active: BoolArray) -> FloatArray:
            moved = conditioned.with_vars(**{name: np.exp(log_var)})
            return log_inverse_gamma(log_var, *prior) + moved.log_place(noise, counts, active)

        log_var = slice_sample(rng, log_density, np.log(getattr(chains, name)), _SLICE_WIDTH)
        moved = conditioned.with_vars(**{name: np.exp(log_var)})
        return moved.initial_var, moved.innovation_var, moved.place(noise)

    def base_given(
        self, eta: FloatArray, initial_var: FloatArray, drift_var: FloatArray
    ) -> tuple[FloatArray, float]:
        """Means of base and their common variance."""
        pull = 1.0 - self.persistence  # of base on eta_t given eta_{t-1}
        num_steps = eta.shape[1] - 1
        innovation = eta[:, 1:] - self.persistence * eta[:, :-1]
        sizes = 1.0 / initial_var + pull**2 * num_steps / drift_var
        precision = np.sum(sizes) + 1.0 / self.base_var
        linear = _uniform_sticks(eta.shape[2] + 1) / self.base_var
        linear = linear + (1.0 / initial_var) @ eta[:, 0]
        linear = linear + (pull / drift_var) @ innovation.sum(axis=1)
        return linear / precision, float(1.0 / precision)

    def _fields(self, data: TimedCorpus, *values: FloatArray) -> Fields:
        """The fields of topics and their words: base, variances and eta, and what follows."""
        fields = dict(zip(("base", "initial_var", "drift_var", "eta"), values, strict=True))
        return fields | {"topics": self.link(data).probs(fields["eta"])}


def _uniform_sticks(size: int) -> FloatArray:
    """The sticks of `size` equally probable categories."""
    return StickBreaking().inverse(np.full(size, 1.0 / size))
