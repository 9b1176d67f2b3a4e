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


@jit(within=True)
def _allocate_document(d, entries, by_word, theta, topic_counts, state):
    """Draw z of one document: its counts of topics."""
    indptr, words, counts = entries
    num_topics = theta.shape[0]
    topic_counts[:] = 0
    weights, taken = np.empty(num_topics), np.empty(num_topics, dtype=np.int64)
    for entry in range(indptr[d], indptr[d + 1]):
        word_probs = by_word[words[entry]]
        total = dot(theta, word_probs)
        if counts[entry] > MANY:
            for k in range(num_topics):
                weights[k] = theta[k] * word_probs[k] if total > 0.0 else theta[k]
            state = split(np.int64(counts[entry]), weights, taken, state)
            for k in range(num_topics):
                topic_counts[k] += taken[k]
            continue
        for _ in range(counts[entry]):
            u, state = uniform(state)
            running, k = 0.0, 0
            if total > 0.0:
                running = theta[0] * word_probs[0]
                while running < u * total and k < num_topics - 1:
                    k += 1
                    running += theta[k] * word_probs[k]
            else:  # a word that no topic can tell from another says nothing of theta
                running = theta[0]
                while running < u and k < num_topics - 1:
                    k += 1
                    running += theta[k]
            topic_counts[k] += 1


@jit
def allocate_documents(worker, start, stop, key, ids, entries, by_word, theta, topic_counts):
    """Write each document's counts of topics, drawn given theta, to `topic_counts`.

    Parameters
    ----------
    ids : uint64, (num_documents,): each document's stream.
    by_word : (num_words, num_topics): word probabilities.
    """
    for d in range(start, stop):
        _allocate_document(d, entries, by_word, theta[d], topic_counts[d], open_stream(key, ids[d]))
    return 0
