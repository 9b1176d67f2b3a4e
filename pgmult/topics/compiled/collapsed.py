r"""Collapsed Gibbs sweeps for latent Dirichlet allocation in time O(topics of the document).

Griffiths and Steyvers (2004): with counts that leave token i out,

    p(z_i = k | rest) ∝ (n_dk + alpha_k) (n_kw + eta) c_k,      c_k = 1 / (n_k + V eta).

The part with n_dk has as many terms as the document has topics, a dozen of hundreds, and is summed
at every token. The part with alpha_k has all K, but its total for a word hardly changes from token
to token: with bounds C_k >= c_k that are moved seldom,

    prior_w = sum_k alpha_k (n_kw + eta) C_k

changes by alpha_k C_k when n_kw changes by one. So a topic is drawn from the two parts with C_k
for c_k in the second, where it is then accepted with probability c_k / C_k, or all is drawn again:
rejection, hence exact. The split is that of Yao, Mimno and McCallum (2009), whose second part costs
a term for every topic of the word.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import open_stream, uniform

_SLACK = 0.1  # a bound is moved once n_k + V eta has changed by this share of itself


class Tallies(NamedTuple):
    """Tokens of topics, by document and by word, and in all.

    (num_documents, num_topics), (num_words, num_topics) and (num_topics,).
    """

    topic_counts: NDArray[np.int64]
    word_counts: NDArray[Any]
    totals: NDArray[Any]


class _Bounds(NamedTuple):
    """Bounds C_k of c_k, and between which totals of a topic they hold; the sums prior_w."""

    bounds: NDArray[np.float64]
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    prior: NDArray[np.float64]


@jit
def count_topics(entries, assignments, topic_counts, word_counts):
    """Add the tokens of every document and of every word to the counts of their topics.

    Returns 0, or 1 + the first token whose topic is none of those that are counted.
    """
    indptr, words, counts = entries
    i = 0
    for d in range(indptr.shape[0] - 1):
        for entry in range(indptr[d], indptr[d + 1]):
            w = words[entry]
            for _ in range(counts[entry]):
                k = assignments[i]
                if k < 0 or k >= topic_counts.shape[1]:
                    return 1 + i
                topic_counts[d, k] += 1
                word_counts[w, k] += 1
                i += 1
    return 0


@jit
def _set_bound(k, smoothing, totals, at):
    """A bound of c_k for totals of topic k from `lowest` to `highest`."""
    smoothed_total = totals[k] + smoothing
    at.lowest[k] = smoothed_total * (1.0 - _SLACK) - smoothing
    at.highest[k] = smoothed_total * (1.0 + _SLACK) - smoothing
    at.bounds[k] = 1.0 / (at.lowest[k] + smoothing)


@jit
def _move_bound(k, smoothing, eta, alpha, tallies, at):
    """Set another bound of c_k and update the sums prior_w of all words."""
    before = at.bounds[k]
    _set_bound(k, smoothing, tallies.totals, at)
    change = alpha[k] * (at.bounds[k] - before)
    for w in range(at.prior.shape[0]):
        at.prior[w] += change * (tallies.word_counts[w, k] + eta)


@jit(within=True)
def _rank_used(row_counts, used):
    """Write the topics that a document has into `used`, often used ones first; how many."""
    num_used = 0
    for k in range(row_counts.shape[0]):
        if row_counts[k] > 0:
            j = num_used
            while j > 0 and row_counts[used[j - 1]] < row_counts[k]:
                used[j] = used[j - 1]
                j -= 1
            used[j] = k
            num_used += 1
    return num_used


@jit
def collapsed_sweep(key, entries, assignments, alpha, eta, tallies):
    """Draw every token's topic given all others, in place, document by document.

    `assignments`, (num_tokens,), and `tallies`, those of the assignments, are read and written.
    """
    indptr, words, counts = entries
    topic_counts, word_counts, totals = tallies
    num_words, num_topics = word_counts.shape
    smoothing = eta * num_words
    scale = np.empty(num_topics)  # c_k
    bounds, lowest, highest = np.empty(num_topics), np.empty(num_topics), np.empty(num_topics)
    prior = np.zeros(num_words)
    at = _Bounds(bounds, lowest, highest, prior)
    for k in range(num_topics):
        scale[k] = 1.0 / (totals[k] + smoothing)
        _set_bound(k, smoothing, totals, at)
    for w in range(num_words):
        for k in range(num_topics):
            prior[w] += alpha[k] * bounds[k] * (word_counts[w, k] + eta)

    used = np.empty(num_topics, dtype=np.int64)  # the document's topics, often used ones first
    place = np.empty(num_topics, dtype=np.int64)  # where they stand in `used`
    weights = np.empty(num_topics)  # n_dk c_k
    running = np.empty(num_topics)
    i = 0
    for d in range(indptr.shape[0] - 1):
        state = open_stream(key, d)
        by_topic = topic_counts[d]
        num_used = _rank_used(by_topic, used)
        for j in range(num_used):
            place[used[j]] = j
            weights[j] = by_topic[used[j]] * scale[used[j]]
        for entry in range(indptr[d], indptr[d + 1]):
            w = words[entry]
            by_word = word_counts[w]
            for _ in range(counts[entry]):
                k = assignments[i]
                by_word[k] -= 1
                totals[k] -= 1
                scale[k] = 1.0 / (totals[k] + smoothing)
                prior[w] -= alpha[k] * bounds[k]
                by_topic[k] -= 1
                j = place[k]
                if by_topic[k] > 0:
                    weights[j] = by_topic[k] * scale[k]
                else:
                    num_used -= 1
                    used[j] = used[num_used]
                    weights[j] = weights[num_used]
                    place[used[j]] = j
                if totals[k] < lowest[k]:
                    _move_bound(k, smoothing, eta, alpha, tallies, at)
                total = 0.0
                for j in range(num_used):
                    total += weights[j] * (by_word[used[j]] + eta)
                    running[j] = total
                while True:
                    u, state = uniform(state)
                    threshold = u * (total + prior[w])
                    if threshold < total:
                        j = 0
                        while running[j] <= threshold:
                            j += 1
                        k = used[j]
                        break
                    threshold -= total
                    k = 0
                    sofar = alpha[0] * bounds[0] * (by_word[0] + eta)
                    while sofar <= threshold and k < num_topics - 1:
                        k += 1
                        sofar += alpha[k] * bounds[k] * (by_word[k] + eta)
                    u, state = uniform(state)
                    if not u * bounds[k] > scale[k]:
                        break
                assignments[i] = k
                i += 1
                by_topic[k] += 1
                by_word[k] += 1
                totals[k] += 1
                scale[k] = 1.0 / (totals[k] + smoothing)
                prior[w] += alpha[k] * bounds[k]
                if by_topic[k] == 1:
                    used[num_used] = k
                    place[k] = num_used
                    num_used += 1
                weights[place[k]] = by_topic[k] * scale[k]
                if totals[k] > highest[k]:
                    _move_bound(k, smoothing, eta, alpha, tallies, at)
