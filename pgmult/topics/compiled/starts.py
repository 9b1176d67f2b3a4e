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
def join_in_documents(topic_counts, alpha, out):
    """Add to out[a, b], a < b, what documents that hold both add to the log joint when joined.

    That is log R(n_a + n_b) - log R(n_a) - log R(n_b) for R(n) = Gamma(n + x) / Gamma(x) and
    x = alpha_a + alpha_b; `join_margins` has the rest.
    """
    num_topics = alpha.shape[0]
    used = np.empty(num_topics, dtype=np.int64)
    for d in range(topic_counts.shape[0]):
        size = 0
        for k in range(num_topics):
            if topic_counts[d, k] > 0:
                used[size] = k
                size += 1
        for j in range(1, size):
            b = used[j]
            for i in range(j):
                a = used[i]
                x = alpha[a] + alpha[b]
                both = topic_counts[d, a] + topic_counts[d, b]
                out[a, b] += (
                    math.lgamma(both + x) + math.lgamma(x)
                    - math.lgamma(topic_counts[d, a] + x) - math.lgamma(topic_counts[d, b] + x)
                )  # fmt: skip


@jit
def join_margins(starts, values, times, alpha, out):
    """Add to out[a, b] the change of a topic's own terms, alpha_a becoming alpha_a + alpha_b.

    Topic k is in ``times[j]`` documents with ``values[j]`` tokens, j from ``starts[k]`` on.
    """
    num_topics = alpha.shape[0]
    for b in range(1, num_topics):
        for a in range(b):
            x = alpha[a] + alpha[b]
            for k in (a, b):
                y = alpha[k]
                constant = math.lgamma(y) - math.lgamma(x)
                change = 0.0
                for j in range(starts[k], starts[k + 1]):
                    risen = math.lgamma(values[j] + x) - math.lgamma(values[j] + y)
                    change += times[j] * (risen + constant)
                out[a, b] += change


@jit
def join_in_words(word_counts, totals, eta, out):
    """Add to out[a, b], a < b, what the words add to the log joint when topics are joined."""
    num_words, num_topics = word_counts.shape
    smoothing = eta * num_words
    none = math.lgamma(eta)
    used = np.empty(num_topics, dtype=np.int64)
    log_gammas = np.empty(num_topics)
    for w in range(num_words):
        size = 0
        for k in range(num_topics):
            if word_counts[w, k] > 0:
                used[size] = k
                log_gammas[size] = math.lgamma(word_counts[w, k] + eta)
                size += 1
        for j in range(1, size):
            for i in range(j):
                a, b = used[i], used[j]
                both = word_counts[w, a] + word_counts[w, b]
                out[a, b] += math.lgamma(both + eta) + none - log_gammas[i] - log_gammas[j]
    for b in range(1, num_topics):
        for a in range(b):
            out[a, b] += (
                math.lgamma(totals[a] + smoothing) + math.lgamma(totals[b] + smoothing)
                - math.lgamma(totals[a] + totals[b] + smoothing) - math.lgamma(smoothing)
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
