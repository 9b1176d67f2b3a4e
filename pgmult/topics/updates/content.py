r"""Words of topics by group of documents: a hierarchical Dirichlet, sampled by table counts.

With beta_k the words of topic k and n_gkv the tokens of word v that group g says of it::

    beta_k ~ Dir(eta),    phi_gk ~ Dir(c_k beta_k),    w ~ phi_gk

Integrating phi out leaves, of every cell, a rising product c beta (c beta + 1) ... of n_gkv factors
over one of c of n_gk factors. That is a sum over the tables m of a Chinese restaurant, and given
these beta is Dirichlet again (Teh, Jordan, Beal and Blei 2006, "Hierarchical Dirichlet processes",
section 5.2). So, exactly and in this order::

    log c_k   a slice, phi integrated out
    m_gkv     ~ CRT(n_gkv, c_k beta_kv)
    beta_k    ~ Dir(eta + sum_g m_gk)
    phi_gk    ~ Dir(c_k beta_k + n_gk)

A group that has written n tokens of topic k has weight n / (n + c_k) in its own words, and the
topic the rest. The concentrations of topics share a prior whose size is learned from them::

    rate  ~ Gamma(rate_shape, rate_rate),       c_k ~ Gamma(shape, rate)

With the default values the prior median of c_k is about 300, and its density falls as slowly as
c^-1.5: groups may differ a lot, or not at all.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_repeats
from pgmult.core.parameters import Checked, real
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.topics.compiled.content import FURTHEST, sample_tables, sample_varied
from pgmult.topics.updates.allocation import sample_topics

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

    def sample_rate(self, rng: np.random.Generator) -> float:
        """A rate from its prior."""
        return max(float(rng.gamma(self.rate_shape, 1.0 / self.rate_rate)), 1e-200)

    def sample(self, rng: np.random.Generator, rate: float, num_topics: int) -> FloatArray:
        """Concentrations from their prior, ``(num_topics,)``."""
        drawn = rng.gamma(self.shape, 1.0 / rate, size=num_topics)
        return np.asarray(np.clip(drawn, math.exp(-FURTHEST), math.exp(FURTHEST)))

    def rate_given(self, rng: np.random.Generator, concentration: FloatArray) -> float:
        """The rate given the concentrations."""
        shape = self.rate_shape + self.shape * len(concentration)
        return float(rng.gamma(shape, 1.0 / (self.rate_rate + concentration.sum())))


def vary(
    rng: np.random.Generator, topics: FloatArray, concentration: FloatArray, counts: IntArray
) -> FloatArray:
    """Words of each group given those of the topics and its counts.

    Parameters
    ----------
    topics : array, ``(num_topics, num_words)``
    concentration : array, ``(num_topics,)``
    counts : int64 array, ``(num_groups, num_topics, num_words)``
    """
    words, num_words = np.empty(counts.shape), topics.shape[1]
    over_rows(
        sample_varied, len(counts) * len(topics), new_key(rng), counts.reshape(-1, num_words),
        topics, concentration, words.reshape(-1, num_words), grain=1,
    )  # fmt: skip
    return words


def sample_content(
    rng: np.random.Generator,
    prior: ContentPrior,
    word_concentration: float,
    counts: IntArray,
    at: Any,
    hold: bool = False,
) -> dict[str, Any]:
    """One sweep over the words of topics and groups and over their concentrations.

    Parameters
    ----------
    counts : int64 array, ``(num_groups, num_topics, num_words)``
        Tokens as last allocated.
    at : StructuralTopicsState
        Its topics, without keywords, and the concentrations.
    hold : bool
        Leave concentrations and the rate as they are.

    Returns
    -------
    dict
        New values of the fields of the state.

    Notes
    -----
    O(groups K V) gamma variates, and as many uniforms as there are tokens.
    """
    concentration, rate = at.content_concentration.copy(), at.content_rate
    tables = np.zeros(at.topics.shape, dtype=np.int64)
    over_rows(
        sample_tables, len(tables), new_key(rng), counts, at.topics, prior.shape, float(rate), hold,
        concentration, tables, grain=1,
    )  # fmt: skip
    if not hold:
        rate = prior.rate_given(rng, concentration)
    topics = sample_topics(rng, word_concentration, tables)
    return {
        "topics": topics, "group_topics": vary(rng, topics, concentration, counts),
        "content_concentration": concentration, "content_rate": rate,
    }  # fmt: skip
