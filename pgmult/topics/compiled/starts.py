r"""Scores of an allocation, token by token, and their changes when two topics are joined.

With the counts that leave token i out, its word has the probability and its topic the conditional

    p(w_i | z_-i) = sum_k (n_dk + alpha_k) / (N_d - 1 + A) (n_kw + eta) / (n_k + V eta),
    p_ik ∝ (n_dk + alpha_k) (n_kw + eta) / (n_k + V eta).

Joined topics have the sums of their counts and of their alpha (a Dirichlet's categories add up), so
the log joint changes by terms of documents and of words that hold both, and by one a topic.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import open_stream, uniform

_PASSES = 5  # over tokens that were not searched
_SHARED = 1e-3  # a topic with less than this share of a token is no candidate for it


@jit(reassociate=True)
def _sum(values):
    total = 0.0
    for k in range(values.shape[0]):
        total += values[k]
    return total


@jit
def join_in_tokens(entries, assignments, alpha, eta, tallies, out):
    """Add to out[a, b], a < b, what the entropies of tokens change by when topics are joined.

    Returns the sum over tokens of log p(w_i | z_-i) instead where `out` is empty.
    """
    indptr, words, counts = entries
    topic_counts, word_counts, totals = tallies
    num_words, num_topics = word_counts.shape
    smoothing, alpha_sum = eta * num_words, alpha.sum()
    scale = 1.0 / (totals + smoothing)
    weights = np.empty(num_topics)
    shared = np.empty(num_topics, dtype=np.int64)
    shares, terms = np.empty(num_topics), np.empty(num_topics)
    loo, i = 0.0, 0
    for d in range(indptr.shape[0] - 1):
        by_topic = topic_counts[d]
        length = by_topic.sum()
        for entry in range(indptr[d], indptr[d + 1]):
            by_word = word_counts[words[entry]]
            for k in range(num_topics):
                weights[k] = (by_topic[k] + alpha[k]) * (by_word[k] + eta) * scale[k]
            for _ in range(counts[entry]):
                k = assignments[i]
                i += 1
                before = weights[k]  # and with the token left out:
                weights[k] = (by_topic[k] - 1 + alpha[k]) * (by_word[k] - 1 + eta)
                weights[k] /= totals[k] - 1 + smoothing
                total = _sum(weights)
                if out.size == 0:
                    loo += math.log(total / (length - 1 + alpha_sum))
                    weights[k] = before
                    continue
                least = _SHARED * total
                size = 0
                for j in range(num_topics):
                    if weights[j] > least:
                        shared[size] = j
                        shares[size] = weights[j] / total
                        terms[size] = shares[size] * math.log(shares[size])
                        size += 1
                for b in range(1, size):
                    for a in range(b):
                        share = shares[a] + shares[b]
                        out[shared[a], shared[b]] += terms[a] + terms[b] - share * math.log(share)
                weights[k] = before
    return loo


@jit
def join_in_rows(counts, alpha, out):
    """Add to out[a, b], a < b, what rows that hold both topics add to the log joint when joined.

    log [Gamma(n_a + n_b + x) Gamma(x) / (Gamma(n_a + x) Gamma(n_b + x))], x = alpha[a, b], where n
    are the counts of a document, ``alpha`` the sums of two concentrations, or those of a word and
    its concentration.
    """
    num_topics = counts.shape[1]
    used = np.empty(num_topics, dtype=np.int64)
    for row in counts:
        size = 0
        for k in range(num_topics):
            if row[k] > 0:
                used[size] = k
                size += 1
        for j in range(1, size):
            b = used[j]
            for i in range(j):
                a = used[i]
                x = alpha[a, b]
                out[a, b] += (
                    math.lgamma(row[a] + row[b] + x) + math.lgamma(x)
                    - math.lgamma(row[a] + x) - math.lgamma(row[b] + x)
                )  # fmt: skip


@jit
def place_tokens(worker, start, stop, key, entries, first, alpha, by_word, assignments):
    """Draw topics of documents' tokens, the topics fixed and theta integrated out, in a few passes.

    Parameters
    ----------
    first : (num_documents,) number of each document's first token.
    by_word : (num_words, num_topics) word probabilities of topics.
    assignments : out, (num_tokens,)
    """
    indptr, words, counts = entries
    num_topics = by_word.shape[1]
    by_topic = np.empty(num_topics)
    running = np.empty(num_topics)
    for d in range(start, stop):
        state = open_stream(key, d)
        by_topic[:] = alpha
        for turn in range(_PASSES):
            i = first[d]
            for entry in range(indptr[d], indptr[d + 1]):
                w = words[entry]
                for _ in range(counts[entry]):
                    if turn > 0:
                        by_topic[assignments[i]] -= 1.0
                    total = 0.0
                    for k in range(num_topics):
                        total += by_topic[k] * by_word[w, k]
                        running[k] = total
                    u, state = uniform(state)
                    k = 0
                    while running[k] <= u * total and k < num_topics - 1:
                        k += 1
                    assignments[i] = k
                    by_topic[k] += 1.0
                    i += 1
