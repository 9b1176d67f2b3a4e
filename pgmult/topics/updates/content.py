r"""Words of topics by group of documents: a hierarchical Dirichlet, sampled by table counts.

With beta_k the words of topic k and n_gkv the tokens of word v that group g says of it::

    beta_k ~ Dir(eta),    phi_gk ~ Dir(c_k beta_k),    w ~ phi_gk

Integrating phi out leaves, of every cell, a rising product c beta (c beta + 1) ... of n_gkv factors
over one of c of n_gk factors. That is a sum over the tables m of a Chinese restaurant, and given
these beta is Dirichlet again (Teh, Jordan, Beal and Blei 2006, "Hierarchical Dirichlet processes",
section 5.2). So, exactly and in this order::

    log c_k   a slice, phi integrated out
    m_gkv     ~ CRT(n_gkv, c_k beta_kv)
    eta       a slice given m, beta integrated out, where eta is learned
    beta_k    ~ Dir(eta + sum_g m_gk)
    phi_gk    ~ Dir(c_k beta_k + n_gk)

A group that has written n tokens of topic k has weight n / (n + c_k) in its own words, and the
topic the rest. The concentrations of topics share a prior whose size is learned from them::

    rate  ~ Gamma(rate_shape, rate_rate),       c_k ~ Gamma(shape, rate)

With the default values the prior median of c_k is about 300, and its density falls as slowly as
c^-1.5: groups may differ a lot, or not at all.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_repeats
from pgmult.core.parameters import Checked, real
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.core.validate import new_key
from pgmult.priors import Dirichlet
from pgmult.topics.compiled.content import FURTHEST, sample_tables, sample_varied
from pgmult.topics.priors.means import Fields
from pgmult.topics.starts.searches import Searched
from pgmult.topics.updates.allocation import kept_counts, mean_words, no_counts, sample_topics
from pgmult.topics.updates.keywords import Keywords
from pgmult.topics.updates.word_concentration import prior_concentration, sample_concentration
from pgmult.topics.updates.words import DirichletWords

if TYPE_CHECKING:
    from pgmult.topics.models.structural import StructuralTopicsState

Size = Annotated[float, real(above=0.0, minimum=1e-6, maximum=1e9)]


@dataclass(frozen=True, slots=True)
class ContentPrior(Checked):
    """Prior of the concentrations of words by group, and their values at the start of chains.

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

    shape: Size = 1.0
    rate_shape: Size = 0.5
    rate_rate: Size = 100.0
    start: Size = 30.0
    start_sweeps: Annotated[int, partial(as_repeats, minimum=0)] = 50

    def sample(self, rng: Generator, num_topics: int) -> tuple[FloatArray, float]:
        """Concentrations, ``(num_topics,)``, and their rate from the prior."""
        rate = max(float(rng.gamma(self.rate_shape, 1.0 / self.rate_rate)), 1e-200)
        drawn = rng.gamma(self.shape, 1.0 / rate, size=num_topics)
        return np.clip(drawn, math.exp(-FURTHEST), math.exp(FURTHEST)), rate


def vary(
    rng: Generator, topics: FloatArray, concentration: FloatArray, counts: IntArray
) -> FloatArray:
    """Words of each group given those of the topics and its counts.

    Parameters
    ----------
    topics : array, ``(num_topics, num_words)``
    concentration : array, ``(num_topics,)``
    counts : int64 array, ``(num_groups, num_topics, num_words)``
    """
    words = np.empty(counts.shape)
    rows, out = (of.reshape(-1, topics.shape[1]) for of in (counts, words))
    given = new_key(rng), rows, topics, concentration, out
    over_rows(sample_varied, len(rows), *given, grain=1)
    return words


@dataclass(frozen=True, slots=True, eq=False)
class WordsByGroup(DirichletWords):
    """Topics that groups of documents vary, with keywords or without.

    Attributes
    ----------
    content : ContentPrior
    hold : bool
        Leave concentrations and the rate as they are.
    """

    content: ContentPrior
    hold: bool = False

    def table(self, state: Any) -> FloatArray:
        """Word probabilities over pairs of group and word, ``(num_topics, ...)``."""
        return np.ascontiguousarray(state.group_topics.swapaxes(0, 1)).reshape(self.num_topics, -1)

    def drawn(self, draw: Mapping[str, FloatArray]) -> FloatArray | None:
        """Topics of a draw by group, ``(num_groups, num_topics, num_words)``."""
        return draw.get("group_topics")

    def prior(self, rng: Generator, data: Any) -> Fields:
        """The fields of this part, drawn from the prior."""
        keywords = Keywords.of(self.keywords, data)
        none = np.zeros((data.content.num_groups, self.num_topics, data.num_words), dtype=np.int64)
        eta = prior_concentration(rng, self.concentration)
        topics = Dirichlet(eta).sample(rng, none.shape[1:])
        concentration, rate = self.content.sample(rng, self.num_topics)
        groups = vary(rng, topics, concentration, none)
        of_words = topics, no_counts(*none.shape), *keywords.prior(rng)
        return self._by_group(concentration, rate, eta, keywords, groups, *of_words)

    def start(self, rng: Generator, at: Searched, data: Any) -> Fields:
        """Fields that a chain starts from: groups that are alike."""
        topics, keywords = at.drawn_topics(rng), Keywords.of(self.keywords, data)
        groups = np.repeat(topics[None], data.content.num_groups, 0)
        concentration = np.full(self.num_topics, self.content.start)
        rate = self.content.shape / self.content.start
        of_words = topics, no_counts(*groups.shape), *keywords.start()
        return self._by_group(concentration, rate, at.eta, keywords, groups, *of_words)

    def given(self, rng: Generator, state: Any, word_counts: IntArray, data: Any) -> Fields:
        """New values of the fields, keywords first, given the topics of the tokens.

        O(groups K V) gamma variates, and as many uniforms as there are tokens.
        """
        keywords = Keywords.of(self.keywords, data)
        by_word = word_counts.T.reshape(data.content.num_groups, data.num_words, self.num_topics)
        by_group = np.ascontiguousarray(by_word.swapaxes(1, 2))
        counts, shares, words = keywords.sample(rng, by_group, state.group_topics, state)
        concentration, rate = state.content_concentration.copy(), state.content_rate
        above, prior = self._above(state), (self.content.shape, float(rate))
        tables = np.zeros(above.shape, dtype=np.int64)
        given = new_key(rng), counts, above, prior, self.hold, concentration, tables
        over_rows(sample_tables, len(tables), *given, grain=1)
        if not self.hold:
            shape = self.content.rate_shape + self.content.shape * self.num_topics
            rate = float(rng.gamma(shape, 1.0 / (self.content.rate_rate + concentration.sum())))
        eta = sample_concentration(rng, self.concentration, state.word_concentration, tables)
        topics = sample_topics(rng, eta, tables)
        groups = vary(rng, topics, concentration, counts)
        of_words = topics, kept_counts(counts), shares, words
        return self._by_group(concentration, rate, eta, keywords, groups, *of_words)

    def mean(self, state: Any, data: Any) -> FloatArray:
        """Mean words of topics by group, given the topics that groups vary around."""
        around = state.content_concentration[:, None] * self._above(state)
        mean = mean_words(state.group_topics, state.word_counts, around)
        if mean is not state.group_topics:
            keywords = Keywords.of(self.keywords, data)
            mean = keywords.mixed(mean, state.keyword_shares, state.keyword_words)
        return np.ascontiguousarray(mean.swapaxes(0, 1)).reshape(self.num_topics, -1)

    def _above(self, state: "StructuralTopicsState") -> FloatArray:
        """Topics without keywords, which groups vary around."""
        return np.asarray(state.plain_topics if self.keywords else state.topics)

    def _by_group(
        self, concentration: FloatArray, rate: float, eta: float, keywords: Keywords,
        groups: FloatArray, topics: FloatArray, *others: Any,
    ) -> Fields:  # fmt: skip
        """The fields, keywords mixed into topics and groups that have none yet.

        What else `_mixed` takes comes last.
        """
        fields = self._mixed(eta, keywords, topics, *others)
        plain = {"plain_topics": topics} if self.keywords else {}
        return fields | plain | {
            "group_topics": keywords.mixed(groups, *others[1:]),
            "content_concentration": concentration, "content_rate": rate,
        }  # fmt: skip
