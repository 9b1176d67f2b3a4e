"""Topic allocation: which topic each token of each document came from.

The token-to-topic assignments z are never stored for models that hold theta and the topics: the
counts of topics in documents and of words in topics are their sufficient statistics. Topics are
laid out word by word, ``(num_words, num_topics)``, so that one token reads contiguous memory.
"""

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import open_stream, uniform

_SMALLEST = np.float32(1e-30)  # below this a single-precision total is not trusted


@jit
def _search_order(used, order):
    """Fill `order` with the topics a document used before, most used first, then all others."""
    num_topics = used.shape[0]
    filled = 0
    for k in range(num_topics):
        if used[k] > 0:
            i = filled
            while i > 0 and used[order[i - 1]] < used[k]:
                order[i] = order[i - 1]
                i -= 1
            order[i] = k
            filled += 1
    for k in range(num_topics):
        if used[k] <= 0:
            order[filled] = k
            filled += 1


@jit(reassociate=True)
def _dot(a, b):
    total = a[0] * b[0]
    for k in range(1, a.shape[0]):
        total += a[k] * b[k]
    return total


@jit
def _pick(w, threshold, tried, by_word, order):
    """The first topic in `order` at which the running sum of theta * by_word passes `threshold`.

    `tried` is the document's theta in that order. Documents use few topics, so the first four
    steps are taken without a branch (a misprediction costs as much as all four).
    """
    first = tried[0] * by_word[w, order[0]]
    second = first + tried[1] * by_word[w, order[1]]
    third = second + tried[2] * by_word[w, order[2]]
    running = third + tried[3] * by_word[w, order[3]]
    if running > threshold:
        return order[
            np.int64(first <= threshold)
            + np.int64(second <= threshold)
            + np.int64(third <= threshold)
        ]
    j = 4
    while j < order.shape[0]:
        running += tried[j] * by_word[w, order[j]]
        if running > threshold:
            return order[j]
        j += 1
    # rounding left the sum short of the total: the last topic that is possible at all
    j -= 1
    while j > 0 and not tried[j] * by_word[w, order[j]] > 0.0:
        j -= 1
    return order[j]


@jit
def _pick_exactly(d, w, u, theta, topics):
    """A topic by theta[d] * topics[:, w] in double precision, -1 if all are zero."""
    largest = 0.0
    for k in range(theta.shape[1]):
        largest = max(largest, theta[d, k] * topics[k, w])
    if not largest > 0.0:
        return -1
    total = 0.0
    for k in range(theta.shape[1]):
        total += theta[d, k] * topics[k, w] / largest
    running, last = 0.0, 0
    for k in range(theta.shape[1]):
        weight = theta[d, k] * topics[k, w] / largest
        running += weight
        if weight > 0.0:
            last = k
        if running > u * total:
            break
    return last


@jit
def allocate(
    worker, start, stop, key, indptr, words, counts, used, theta, by_word, exact_theta,
    exact_topics, topic_counts, word_counts,
):  # fmt: skip
    """Draw the topic of every token of a piece's documents given theta and the topics.

    Parameters
    ----------
    used : (num_documents, num_topics) topic counts of the previous sweep; they only set the order
        in which topics are tried.
    theta, by_word : float32, (num_documents, num_topics) and (num_words, num_topics).
    exact_theta, exact_topics : float64, (num_documents, num_topics) and (num_topics, num_words),
        for tokens whose probability is too small for single precision.
    topic_counts : out, (num_documents, num_topics), added to.
    word_counts : out, (num_workers, num_words, num_topics), added to.

    Returns 0, or 1 + the first document that holds a word of probability 0 under all its topics.
    """
    num_topics = theta.shape[1]
    order = np.zeros(max(4, num_topics), dtype=np.int64)
    tried = np.zeros(max(4, num_topics), dtype=np.float32)
    for d in range(start, stop):
        state = open_stream(key, d)
        _search_order(used[d], order)
        for j in range(num_topics):
            tried[j] = theta[d, order[j]]
        for entry in range(indptr[d], indptr[d + 1]):
            w = words[entry]
            total = _dot(theta[d], by_word[w])
            for _ in range(counts[entry]):
                u, state = uniform(state)
                if total > _SMALLEST:
                    k = _pick(w, np.float32(u) * total, tried, by_word, order)
                else:
                    k = _pick_exactly(d, w, u, exact_theta, exact_topics)
                    if k < 0:
                        return 1 + d
                topic_counts[d, k] += 1
                word_counts[worker, w, k] += 1
    return 0


@jit
def entry_probs(worker, start, stop, indptr, words, theta, by_word, out):
    """Write the probability of each entry's word in its document, (theta @ topics)[d, w]."""
    for d in range(start, stop):
        for entry in range(indptr[d], indptr[d + 1]):
            out[entry] = _dot(theta[d], by_word[words[entry]])


@jit
def sample_tables(worker, start, stop, key, topic_counts, alpha, tables):
    """Add each document's Chinese-restaurant table counts CRT(n_dk, alpha_k) to tables[worker].

    CRT(n, a) is a sum of independent Bernoulli(a / (a + i)), i = 0, ..., n - 1 (Antoniak 1974).
    """
    for d in range(start, stop):
        state = open_stream(key, d)
        for k in range(alpha.shape[0]):
            n = topic_counts[d, k]
            if n > 0:
                tables[worker, k] += 1
            for i in range(1, n):
                u, state = uniform(state)
                if u * (alpha[k] + i) < alpha[k]:
                    tables[worker, k] += 1
