"""Topics of the tokens of documents alone, theta and the words of topics fixed.

A document's random numbers come from a stream that its words choose (`document_ids`), not its row:
equal documents get equal draws, which do not depend on the other documents.
"""

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import open_stream, uniform

from .tokens import MANY, dot, split

_SPREAD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)


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
def allocate_documents(worker, start, stop, key, ids, entries, by_word, theta, topic_counts):
    """Write each document's counts of topics, drawn given theta, to `topic_counts`.

    Parameters
    ----------
    ids : uint64 array, ``(num_documents,)``
        Equal ids have equal draws.
    """
    indptr, words, counts = entries
    num_topics = theta.shape[1]
    weights, taken = np.empty(num_topics), np.empty(num_topics, dtype=np.int64)
    for d in range(start, stop):
        state = open_stream(key, ids[d])
        topic_counts[d, :] = 0
        for entry in range(indptr[d], indptr[d + 1]):
            word_probs = by_word[words[entry]]
            total = dot(theta[d], word_probs)
            for k in range(num_topics):
                weights[k] = theta[d, k] * word_probs[k]
            if not total > 0.0:  # a word that no topic can tell from another says nothing of theta
                weights[:], total = theta[d], 1.0
            if counts[entry] > MANY:
                state = split(np.int64(counts[entry]), weights, taken, state)
                for k in range(num_topics):
                    topic_counts[d, k] += taken[k]
                continue
            for _ in range(counts[entry]):
                u, state = uniform(state)
                running, k = weights[0], 0
                while running < u * total and k < num_topics - 1:
                    k += 1
                    running += weights[k]
                topic_counts[d, k] += 1
