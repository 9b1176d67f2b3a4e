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

In a tree the tables of groups are the tokens of the branch above, and go up to the root one factor
at a time, each with its concentrations; then words come down again.

A group that has written n tokens of topic k has weight n / (n + c_k) in its own words, and the
topic the rest. The concentrations of topics share a prior whose size is learned from them::

    rate  ~ Gamma(rate_shape, rate_rate),       c_k ~ Gamma(shape, rate)

With the default values the prior median of c_k is about 300, and its density falls as slowly as
c^-1.5: groups may differ a lot, or not at all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
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


def vary(
    rng: np.random.Generator,
    above: FloatArray,
    parents: IntArray,
    concentration: FloatArray,
    counts: IntArray | None = None,
) -> FloatArray:
    """Words of each node given those of the nodes above and, where there are any, its counts.

    Parameters
    ----------
    above : array, ``(nodes above, num_topics, num_words)``
    parents : int64 array, ``(nodes,)``
    concentration : array, ``(num_topics,)``
    counts : int64 array, ``(nodes, num_topics, num_words)``, optional
    """
    num_topics, num_words = above.shape[1:]
    if counts is None:
        counts = np.zeros((len(parents), num_topics, num_words), dtype=np.int64)
    words = np.empty(counts.shape)
    over_rows(
        sample_varied, len(parents) * num_topics, new_key(rng), counts.reshape(-1, num_words),
        parents, above.reshape(-1, num_words), concentration, words.reshape(-1, num_words), grain=1,
    )  # fmt: skip
    return words


def sample_content(
    rng: np.random.Generator,
    prior: ContentPrior,
    word_concentration: float,
    counts: IntArray,
    parents: Sequence[IntArray],
    at: Any,
    hold: bool = False,
) -> dict[str, FloatArray]:
    """One sweep over the words of topics, branches and groups and over their concentrations.

    Parameters
    ----------
    counts : int64 array, ``(num_groups, num_topics, num_words)``
        Tokens as last allocated.
    parents : sequence of int64 arrays
        Of the tree: see `pgmult.topics.data.groups.ContentGroups`.
    at : StructuralTopicsState
        Its topics, without keywords; ``branch_topics``, factor after factor; the concentrations.
    hold : bool
        Leave concentrations and rates as they are.

    Returns
    -------
    dict
        New values of the fields of the state.

    Notes
    -----
    O(nodes K V) gamma variates, and as many uniforms as there are tokens.
    """
    num_topics, num_words = at.topics.shape
    concentration, rate = at.content_concentration.copy(), at.content_rate
    inner = np.cumsum([0, *(len(level) for level in parents[:-1])])
    branches = [at.branch_topics[a:b] for a, b in pairwise(inner)]
    levels = [at.topics[None], *branches]  # what each factor varies around
    seen = [counts]
    for depth in range(len(parents) - 1, -1, -1):
        above = levels[depth]
        tables = np.zeros((len(above) * num_topics, num_words), dtype=np.int64)
        over_rows(
            sample_tables, num_topics, new_key(rng), seen[0].reshape(-1, num_words),
            parents[depth], above.reshape(-1, num_words), prior.shape, float(rate[depth]), hold,
            concentration[depth], tables, grain=1,
        )  # fmt: skip
        seen.insert(0, tables.reshape(len(above), num_topics, num_words))
    if not hold:
        rate = prior.rate_given(rng, concentration)
    words = [sample_topics(rng, word_concentration, seen[0][0])[None]]
    for depth, level in enumerate(parents):
        words.append(vary(rng, words[-1], level, concentration[depth], seen[depth + 1]))
    return {
        "topics": words[0][0], "group_topics": words[-1],
        "branch_topics": np.concatenate([at.branch_topics[:0], *words[1:-1]]),
        "content_concentration": concentration, "content_rate": rate,
    }  # fmt: skip
