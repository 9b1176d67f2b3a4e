"""Topic allocation: which topic each token of each document came from.

The token-to-topic assignments z are never stored for models that hold theta and the topics: the
counts of topics in documents and of words in topics are their sufficient statistics. Topics are
laid out word by word, ``(num_words, num_topics)``, so that one token reads contiguous memory.

Tokens of one word in one document are drawn one by one while they are few. A count above `MANY` is
split among the topics by binomials, each given those before: the same law, at a cost that grows
with the logarithm of the count.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.simd import (
    WIDTH,
    add,
    add_product,
    count_up_to,
    fetch,
    last,
    load,
    multiply,
    running_sums,
    splat,
    store,
    where_above,
)
from pgmult.compiled.streams import gamma, open_stream, uniform

from .content import log_rising

MANY = 1024
"""Tokens of one word in one document above which they are split, rather than drawn one by one."""

_PENDING = 512  # tokens whose words are counted together
_AHEAD = 6  # entries whose words are fetched before they are needed
_LINE = 16  # single-precision numbers in a cache line
_LEAF = 32  # trials that are tried one by one
_SMALLEST = np.float32(1e-30)  # below this a single-precision total is not trusted


class Entries(NamedTuple):
    """The words of documents; document d's entries are ``indptr[d]:indptr[d + 1]``."""

    indptr: NDArray[np.int64]
    words: NDArray[np.int32]
    counts: NDArray[np.int32]


class Shares(NamedTuple):
    """Proportions and topics that tokens are drawn from, in single and in double precision.

    The former are (num_documents, width) and (num_words, width), `width` the next multiple of 8
    from num_topics, zeros beyond num_topics. The latter, (num_documents, num_topics) and
    (num_topics, num_words), are for tokens whose probability is too small for single precision.
    """

    theta: NDArray[np.float32]
    by_word: NDArray[np.float32]
    exact_theta: NDArray[np.float64]
    exact_topics: NDArray[np.float64]


@jit
def write_columns(worker, start, stop, probs, out):
    """Columns of `probs` as rows in single precision, eight at a time: whole cache lines."""
    for first in range(start, stop, WIDTH):
        last = min(first + WIDTH, stop)
        for k in range(probs.shape[0]):
            for i in range(first, last):
                out[i, k] = np.float32(probs[k, i])


@jit(within=True)
def _weigh_exactly(d, w, theta, topics, weights):
    """theta[d] * topics[:, w] by the largest of them; whether there is a positive one."""
    largest = 0.0
    for k in range(theta.shape[1]):
        largest = max(largest, theta[d, k] * topics[k, w])
    if not largest > 0.0:
        return False
    for k in range(theta.shape[1]):
        weights[k] = theta[d, k] * topics[k, w] / largest
    return True


@jit(within=True)
def _pick_exactly(d, w, u, theta, topics, weights):
    """A topic by theta[d] * topics[:, w] in double precision, -1 if all are zero."""
    if not _weigh_exactly(d, w, theta, topics, weights):
        return -1
    total = 0.0
    for weight in weights:
        total += weight
    running, last = 0.0, 0
    for k in range(weights.shape[0]):
        running += weights[k]
        if weights[k] > 0.0:
            last = k
        if running > u * total:
            break
    return last


@jit
def binomial(n, p, state):
    """Successes in n trials of probability p, in O(log n): Ahrens and Dieter (1974), BB.

    The i-th smallest of n uniforms is Beta(i, n + 1 - i). Where it is below p, i of them are, and
    the others are uniform above it; else i - 1 of them are uniform below it, and all others too
    large.
    """
    successes = 0
    while n > _LEAF and 0.0 < p < 1.0:
        i = n // 2 + 1
        x, state = gamma(float(i), state)
        y, state = gamma(float(n + 1 - i), state)
        x /= x + y
        if x <= p:
            successes += i
            n -= i
            p = (p - x) / (1.0 - x)
        else:
            n = i - 1
            p /= x
    if p >= 1.0:
        return successes + n, state
    for _ in range(n):
        u, state = uniform(state)
        if u < p:
            successes += 1
    return successes, state


@jit
def split(n, weights, taken, state):
    """Draw `taken` from Multinomial(n, weights / sum of weights), by a binomial for each weight.

    Writes over `weights`, which must not all be zero.
    """
    num = weights.shape[0]
    for k in range(num - 2, -1, -1):
        weights[k] += weights[k + 1]  # each and all after it
    for k in range(num):
        taken[k] = 0
        after = weights[k + 1] if k + 1 < num else 0.0
        if n > 0 and weights[k] > after:
            share = (weights[k] - after) / weights[k]
            taken[k], state = binomial(n, share, state)
            n -= taken[k]
    return state


@jit
def _count(pending, num_pending, tally):
    """Add pending words to the tally: together, so that cache misses overlap."""
    for i in range(num_pending):
        tally[pending[i]] += 1


@jit
def allocate(worker, start, stop, key, entries, shares, topic_counts, word_counts):
    """Draw the topic of every token of a piece's documents given theta and the topics.

    Products go eight topics at a time, and leave eight running sums. A token's topic is found by
    counting the sums that its threshold passes: first among the eight totals, then down one sum.
    There is no branch to mispredict, which would cost as much as all the rest.

    Parameters
    ----------
    topic_counts : out, (num_documents, num_topics), added to.
    word_counts : out, (num_workers, num_words, num_topics), added to.

    Returns 0, or 1 + the first document that holds a word of probability 0 under all its topics.
    """
    indptr, words, counts = entries
    exact_theta, exact_topics = shares.exact_theta, shares.exact_topics
    num_topics, size = exact_theta.shape[1], shares.theta.shape[1]
    pending, num_pending = np.empty(_PENDING, dtype=np.int64), 0
    tally = word_counts[worker].reshape(-1)
    theta, by_word = shares.theta.reshape(-1), shares.by_word.reshape(-1)
    running = np.empty(size, dtype=np.float32)
    before = np.zeros(WIDTH + 1, dtype=np.float32)  # the eight totals, summed up to each
    passed = np.zeros(WIDTH, dtype=np.float32)
    none, eight = splat(np.float32(0.0)), splat(np.float32(WIDTH))
    weights, taken = np.empty(num_topics), np.empty(num_topics, dtype=np.int64)
    for d in range(start, stop):
        state = open_stream(key, d)
        row_start = d * size
        for entry in range(indptr[d], indptr[d + 1]):
            w = words[entry]
            if counts[entry] > MANY:
                if not _weigh_exactly(d, w, exact_theta, exact_topics, weights):
                    return 1 + d
                state = split(np.int64(counts[entry]), weights, taken, state)
                for k in range(num_topics):
                    topic_counts[d, k] += taken[k]
                    tally[w * num_topics + k] += taken[k]
                continue
            ahead = words[min(entry + _AHEAD, words.shape[0] - 1)] * size
            for j in range(0, size, _LINE):
                fetch(by_word, ahead + j)
            word_start = w * size
            sums = multiply(load(theta, row_start), load(by_word, word_start))
            store(running, 0, sums)
            for j in range(WIDTH, size, WIDTH):
                sums = add_product(sums, load(theta, row_start + j), load(by_word, word_start + j))
                store(running, j, sums)
            sums = running_sums(sums)
            total = last(sums)
            store(before, 1, sums)
            for _ in range(counts[entry]):
                u, state = uniform(state)
                threshold = np.float32(u) * total
                lane = min(count_up_to(sums, splat(threshold)), WIDTH - 1)
                limit = splat(threshold - before[lane])
                below = splat(np.float32(0.0))
                for j in range(0, size - WIDTH, WIDTH):
                    below = add(below, where_above(load(running, j), limit, none, eight))
                store(passed, 0, below)
                k = lane + np.int64(passed[lane])
                # rounding may end on a topic that is not possible, single precision on none
                possible = theta[row_start + k] * by_word[word_start + k] > np.float32(0.0)
                if not (total > _SMALLEST and possible):
                    k = _pick_exactly(d, w, u, exact_theta, exact_topics, weights)
                    if k < 0:
                        return 1 + d
                topic_counts[d, k] += 1
                if num_pending == _PENDING:
                    _count(pending, num_pending, tally)
                    num_pending = 0
                pending[num_pending] = w * num_topics + k
                num_pending += 1
    _count(pending, num_pending, tally)
    return 0


@jit(reassociate=True)
def dot(a, b):
    """Sum of products; other rounding than `pgmult.compiled.vectors.dot`."""
    total = a[0] * b[0]
    for k in range(1, a.shape[0]):
        total += a[k] * b[k]
    return total


@jit
def entry_probs(worker, start, stop, indptr, words, theta, by_word, out):
    """Write the probability of each entry's word in its document, (theta @ topics)[d, w]."""
    for d in range(start, stop):
        for entry in range(indptr[d], indptr[d + 1]):
            out[entry] = dot(theta[d], by_word[words[entry]])


@jit(within=True)
def _next_table(i, n, a, u):
    """One more than the first of i, ..., n - 1 that is 1, by its distribution function at u.

    None is where the Gamma(x + a) / Gamma(x) have risen by less than -log u; then it is n + 1.
    """
    start, rise = log_rising(float(i), a), -math.log(u) if u > 0.0 else math.inf
    if log_rising(float(n), a) - start < rise:
        return n + 1
    low, high = i, n
    while high - low > 1:
        middle = (low + high) // 2
        if log_rising(float(middle), a) - start < rise:
            low = middle
        else:
            high = middle
    return high


@jit
def sample_tables(worker, start, stop, key, topic_counts, alpha, tables):
    """Add each document's Chinese-restaurant table counts CRT(n_dk, alpha_k) to tables[worker].

    CRT(n, a) is a sum of independent Bernoulli(a / (a + i)), i = 0, ..., n - 1 (Antoniak 1974).
    From `MANY` on the next i that is 1 is drawn, rather than all between: see `_next_table`.
    """
    for d in range(start, stop):
        state = open_stream(key, d)
        for k in range(alpha.shape[0]):
            n = topic_counts[d, k]
            if n > 0:
                tables[worker, k] += 1
            for i in range(1, min(n, MANY)):
                u, state = uniform(state)
                if u * (alpha[k] + i) < alpha[k]:
                    tables[worker, k] += 1
            i = MANY
            while i < n:
                u, state = uniform(state)
                i = _next_table(i, n, alpha[k], u)
                if i <= n:
                    tables[worker, k] += 1
