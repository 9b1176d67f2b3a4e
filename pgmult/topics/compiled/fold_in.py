"""Gibbs sweeps over documents alone, the topics and the Gaussian of their sticks fixed.

A document's random numbers come from a stream that its words choose (`document_ids`), not its row:
equal documents get equal draws, which do not depend on the other documents.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import row_at, solve_lanes
from pgmult.compiled.polya_gamma import draw_integer
from pgmult.compiled.simd import WIDTH
from pgmult.compiled.sticks import probs_rows
from pgmult.compiled.streams import normal, open_stream, uniform

from .tokens import dot

_SPREAD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)


class Given(NamedTuple):
    """Globals of one posterior draw."""

    by_word: NDArray[np.float64]  # (num_words, num_topics): word probabilities
    precisions: NDArray[np.float64]  # (num_priors, n, n), of priors of psi
    which: NDArray[np.int64]  # (num_documents,): each document's of these, or one for all
    centre: NDArray[np.float64]  # (num_documents, n): means of psi, or one row for all
    order: NDArray[np.int64]  # (num_topics,): the topic of each stick


@jit
def document_ids(worker, start, stop, entries, out):
    """out[d] = a hash of document d's words and counts that ignores the order of its entries."""
    indptr, words, counts = entries
    for d in range(start, stop):
        total = np.uint64(0)
        for entry in range(indptr[d], indptr[d + 1]):
            bits = ((np.uint64(words[entry]) << _HALF) + np.uint64(counts[entry])) * _SPREAD
            bits = (bits ^ (bits >> _HALF)) * _MIX
            total += bits ^ (bits >> _HALF)
        out[d] = total


@jit
def _allocate_document(d, entries, by_word, theta, topic_counts, state):
    """Draw z of one document: its counts of topics. Returns the stream's state."""
    indptr, words, counts = entries
    num_topics = theta.shape[0]
    topic_counts[:] = 0
    for entry in range(indptr[d], indptr[d + 1]):
        there = by_word[words[entry]]
        total = dot(theta, there)
        for _ in range(counts[entry]):
            u, state = uniform(state)
            running, k = 0.0, 0
            if total > 0.0:
                running = theta[0] * there[0]
                while running < u * total and k < num_topics - 1:
                    k += 1
                    running += theta[k] * there[k]
            else:  # a word that no topic can tell from another says nothing of theta
                running = theta[0]
                while running < u and k < num_topics - 1:
                    k += 1
                    running += theta[k]
            topic_counts[k] += 1
    return state


@jit
def fold_in(worker, start, stop, key, ids, entries, given, sweeps, psi, theta):
    """`sweeps` Gibbs sweeps over z, omega and psi of each document, starting from `psi`.

    Parameters
    ----------
    ids : uint64, (num_documents,): each document's stream.
    given : Given: topics, and the prior of psi.
    psi : in and out, (num_documents, n).
    theta : out, (num_documents, num_topics): the topic proportions of `psi`.

    Returns 0, or 1 + a document without a proper Gaussian.
    """
    precisions, which, centre, order = given.precisions, given.which, given.centre, given.order
    n = precisions.shape[1]
    packed = np.empty(row_at(n + 1))
    x = np.empty(n * WIDTH)
    topic_counts = np.empty(n + 1, dtype=np.int64)
    states = np.empty((WIDTH, 4), dtype=np.uint64)
    for first in range(start, stop, WIDTH):
        width = min(WIDTH, stop - first)
        for lane in range(width):
            state = open_stream(key, ids[first + lane])
            states[lane, 0], states[lane, 1], states[lane, 2], states[lane, 3] = state
        probs_rows(worker, first, first + width, psi, order, theta)
        for _ in range(sweeps):
            for lane in range(WIDTH):
                d = min(first + lane, stop - 1)
                precision = precisions[which[min(d, which.size - 1)]]
                for i in range(n):
                    for j in range(i + 1):
                        packed[row_at(i) + j * WIDTH + lane] = precision[i, j]
                packed[row_at(n) + n * WIDTH + lane] = 1.0
                for k in range(n):
                    packed[row_at(n) + k * WIDTH + lane] = 0.0
            for lane in range(width):
                d = first + lane
                state = (states[lane, 0], states[lane, 1], states[lane, 2], states[lane, 3])
                state = _allocate_document(d, entries, given.by_word, theta[d], topic_counts, state)
                reaching, c = topic_counts.sum(), min(d, centre.shape[0] - 1)
                for k in range(n):
                    if reaching == 0:
                        break
                    count = topic_counts[order[k]]
                    omega, state = draw_integer(reaching, psi[d, k], state)
                    packed[row_at(k) + k * WIDTH + lane] += omega
                    packed[row_at(n) + k * WIDTH + lane] = (
                        count - 0.5 * reaching - omega * centre[c, k]
                    )
                    reaching -= count
                for k in range(n):
                    x[k * WIDTH + lane], state = normal(state)
                states[lane, 0], states[lane, 1], states[lane, 2], states[lane, 3] = state
            solve_lanes(packed, x, n)
            for lane in range(width):
                c = min(first + lane, centre.shape[0] - 1)
                for k in range(n):
                    psi[first + lane, k] = centre[c, k] + x[k * WIDTH + lane]
                    if not math.isfinite(psi[first + lane, k]):
                        return 1 + first + lane
            probs_rows(worker, first, first + width, psi, order, theta)
    return 0
