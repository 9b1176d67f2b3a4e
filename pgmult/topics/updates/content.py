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
"""

from collections.abc import Sequence

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.topics.compiled.content import sample_tables, sample_varied
from pgmult.topics.priors.content import ContentPrior
from pgmult.topics.updates.words import sample_topics

__all__ = ["sample_content", "vary"]


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
    topics: FloatArray,
    branches: FloatArray,
    concentration: FloatArray,
    rate: FloatArray,
    hold: bool = False,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """One sweep over the words of topics, branches and groups and over their concentrations.

    Parameters
    ----------
    counts : int64 array, ``(num_groups, num_topics, num_words)``
        Tokens as last allocated.
    parents : sequence of int64 arrays
        Of the tree: see `pgmult.topics.data.groups.ContentGroups`.
    topics : array, ``(num_topics, num_words)``
    branches : array, ``(num_branches, num_topics, num_words)``
        Inner branches, factor after factor.
    concentration : array, ``(num_factors, num_topics)``
    rate : array, ``(num_factors,)``
    hold : bool
        Leave concentrations and rates as they are.

    Returns
    -------
    topics, branches, groups, concentration, rate

    Notes
    -----
    O(nodes K V) gamma variates, and as many uniforms as there are tokens.
    """
    num_topics, num_words = topics.shape
    concentration = concentration.copy()
    inner = np.cumsum([0, *(len(level) for level in parents[:-1])])
    levels = [topics[None]] + [
        branches[inner[i] : inner[i + 1]] for i in range(len(parents) - 1)
    ]  # what each factor varies around
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
    return words[0][0], np.concatenate([branches[:0], *words[1:-1]]), words[-1], concentration, rate
