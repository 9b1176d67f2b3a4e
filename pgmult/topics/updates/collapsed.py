"""Collapsed Gibbs sweeps over topic assignments, theta and the topics integrated out.

Griffiths and Steyvers (2004), "Finding scientific topics". Latent Dirichlet allocation is sampled
with these sweeps; the correlated topic model starts from a few of them.

Dirichlet concentrations that have gamma priors are drawn given counts. A Dirichlet integrated out
of multinomial counts n_1..n_K of total N leaves

    Gamma(A) / Gamma(A + N) prod_k Gamma(n_k + a_k) / Gamma(a_k),    A = sum_k a_k.

Both kinds of factor are sums or integrals of exponentials and powers (Newman et al. 2009,
"Distributed algorithms for topic models", appendix; Escobar and West 1995; Antoniak 1974)::

    Gamma(n + a) / Gamma(a)  is a sum over t of a**t,       t ~ CRT(n, a), table counts
    Gamma(A) / Gamma(A + N)  is an integral of b**A,        b ~ Beta(A, N)

so given t and b a gamma prior stays gamma: exp(-rate a) a**(shape - 1) meets a**t b**a.

>>> import numpy as np
>>> counts = np.array([[9, 0, 1], [7, 1, 0]])
>>> rng = np.random.default_rng(0)
>>> sample_concentrations(rng, np.ones(3), counts, shape=1.0, rate=1.0).shape
(3,)
"""

import copy
from dataclasses import dataclass

import numpy as np

from pgmult.compiled.rows import num_workers, over_rows
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.core.validate import new_key
from pgmult.topics.compiled import collapsed
from pgmult.topics.compiled.tokens import sample_tables
from pgmult.topics.data.corpus import Corpus, refuse_many_tokens

_BYTES = 24  # of a token: its topic, the sweep before and a copy that is kept


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """Every token's topic and the counts that follow from it.

    Attributes
    ----------
    assignments : int64 array, ``(num_tokens,)``
        Topic of each token; tokens stand in the order of the corpus's entries. Empty where only
        the counts were kept.
    topic_counts : int64 array, ``(num_documents, num_topics)``
    word_counts : int64 array, ``(num_words, num_topics)``
    """

    assignments: IntArray
    topic_counts: IntArray
    word_counts: IntArray


def count_topics(corpus: Corpus, assignments: IntArray, num_topics: int) -> Allocation:
    """The counts of given assignments.

    Raises
    ------
    ValueError
        If there is not one assignment a token, or one is not from 0 to `num_topics` - 1.
    """
    if assignments.shape != (corpus.num_tokens,):
        every = f"one topic for each of the {corpus.num_tokens} tokens"
        raise ValueError(f"assignments must have {every}, got shape {assignments.shape}")
    topic_counts = np.zeros((corpus.num_documents, num_topics), dtype=np.int64)
    word_counts = np.zeros((corpus.num_words, num_topics), dtype=np.int64)
    status = collapsed.count_topics(corpus.entries, assignments, topic_counts, word_counts)
    if status:
        got = f"{assignments[status - 1]} at position {status - 1}"
        raise ValueError(f"assignments must be topics from 0 to {num_topics - 1}, got {got}")
    return Allocation(assignments, topic_counts, word_counts)


def random_allocation(rng: Generator, corpus: Corpus, num_topics: int) -> Allocation:
    """Topics drawn uniformly, token by token.

    Raises
    ------
    MemoryError
        If there are more tokens than there is memory for.
    """
    hint = "CorrelatedTopics and other models that hold topics keep counts"
    refuse_many_tokens(corpus.num_tokens, _BYTES, "LDA keeps a topic for each", hint)
    assignments = rng.integers(num_topics, size=corpus.num_tokens)
    return count_topics(corpus, assignments, num_topics)


def sweep(
    rng: Generator, corpus: Corpus, allocation: Allocation, alpha: FloatArray, eta: float
) -> Allocation:
    """Draw every token's topic anew, given all others.

    Parameters
    ----------
    alpha : array, ``(num_topics,)``
        Dirichlet concentration of topics in documents.
    eta : float
        Dirichlet concentration of words in topics.

    Notes
    -----
    A sweep costs O(tokens * topics of a document + num_words * num_topics).
    """
    at = copy.deepcopy(allocation)
    tallies = collapsed.Tallies(at.topic_counts, at.word_counts, at.word_counts.sum(axis=0))
    collapsed.collapsed_sweep(new_key(rng), corpus.entries, at.assignments, alpha, eta, tallies)
    return at


def sample_concentrations(
    rng: Generator, alpha: FloatArray, counts: IntArray, shape: float, rate: float
) -> FloatArray:
    """Each category's own concentration, all rows of counts sharing them.

    Parameters
    ----------
    alpha : array, ``(num_categories,)``
        The concentrations of the sweep before.
    counts : int64 array, ``(num_rows, num_categories)``
        Multinomial counts, their Dirichlet probabilities integrated out.
    shape, rate : float
        Gamma prior of every concentration.
    """
    alpha_sum, totals = float(alpha.sum()), counts.sum(axis=1)
    totals = totals[totals > 0]
    log_gamma = np.log(rng.gamma(alpha_sum + 1.0, size=len(totals)))  # however small alpha is
    log_first = log_gamma - rng.exponential(size=len(totals)) / alpha_sum
    log_beta = float(np.sum(log_first - np.logaddexp(log_first, np.log(rng.gamma(totals)))))
    tables = np.zeros((num_workers(len(counts)), counts.shape[1]), dtype=np.int64)
    over_rows(sample_tables, len(counts), new_key(rng), counts, alpha, tables)
    return np.asarray(rng.gamma(shape + tables.sum(axis=0)) / (rate - log_beta))
