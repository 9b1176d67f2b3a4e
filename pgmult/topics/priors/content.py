"""The prior of how far the words of groups stray from those of their topic.

A topic's words in a group are Dirichlet around its words anywhere, with concentration c: a group
that has written n tokens of the topic is believed n times in n + c. Topics' concentrations share a
prior whose size is learned from them::

    rate  ~ Gamma(rate_shape, rate_rate),       c_k ~ Gamma(shape, rate)

With the values below c_k is half the time above 300 and its density falls as slowly as c^-1.5: few
documents say nothing of groups, and many may say that they do not differ at all.
"""

import math
from dataclasses import dataclass

import numpy as np

from pgmult.core.arguments import as_real, as_repeats
from pgmult.core.typing import FloatArray
from pgmult.topics.compiled.content import FURTHEST

__all__ = ["ContentPrior"]


@dataclass(frozen=True, slots=True)
class ContentPrior:
    """Prior of the concentrations of words by group, and how chains begin with them.

    Attributes
    ----------
    shape : float
        Of the concentrations' gamma prior.
    rate_shape, rate_rate : float
        Of the gamma prior of its rate.
    start : float
        The concentration that chains begin at.
    start_sweeps : int
        Sweeps at that concentration before a chain begins. Where groups were not free to differ,
        topics of the search may be one group's alone; they join in these sweeps.
    """

    shape: float = 1.0
    rate_shape: float = 0.5
    rate_rate: float = 100.0
    start: float = 30.0
    start_sweeps: int = 50

    def __post_init__(self) -> None:
        for name in ("shape", "rate_shape", "rate_rate", "start"):
            value = as_real(getattr(self, name), name, above=0.0, minimum=1e-6, maximum=1e9)
            object.__setattr__(self, name, value)
        as_repeats(self.start_sweeps, "start_sweeps", minimum=0)

    def sample_rate(self, rng: np.random.Generator, num: int) -> FloatArray:
        """Rates from their prior."""
        return np.maximum(rng.gamma(self.rate_shape, 1.0 / self.rate_rate, size=num), 1e-200)

    def sample(self, rng: np.random.Generator, rate: FloatArray, num_topics: int) -> FloatArray:
        """Concentrations of each rate from their prior, ``(num_rates, num_topics)``."""
        drawn = rng.gamma(self.shape, 1.0 / rate[:, None], size=(len(rate), num_topics))
        return np.asarray(np.clip(drawn, math.exp(-FURTHEST), math.exp(FURTHEST)))

    def rate_given(self, rng: np.random.Generator, concentration: FloatArray) -> FloatArray:
        """Rates given the concentrations ``(num_rates, num_topics)``."""
        shape = self.rate_shape + self.shape * concentration.shape[1]
        return np.asarray(rng.gamma(shape, 1.0 / (self.rate_rate + concentration.sum(axis=1))))
