"""Distributions over assignments, a row each, for collapsed variational inference.

Row n has the candidates e = indptr[n], ..., indptr[n+1] - 1, with logits and probabilities

    r_e = exp(logit_e) / sum over the row.
"""

import math

from pgmult.compiled.jit import jit
from pgmult.compiled.vectors import exp_minus

_BLOCK = 64  # rows: passes over their entries stay in the cache


@jit
def normalize_rows(worker, start, stop, indptr, logits, probs, entropy):
    """Logits less their row's log-sum-exp, in place; probabilities; entropy of each row."""
    for begin in range(start, stop, _BLOCK):
        end = min(stop, begin + _BLOCK)
        block = slice(indptr[begin], indptr[end])
        for n in range(begin, end):
            row = logits[indptr[n] : indptr[n + 1]]
            top = row[0]
            for logit in row:
                top = logit if logit > top else top
            for i in range(row.size):
                row[i] -= top
        here, there = logits[block], probs[block]
        for i in range(here.size):  # in vectors
            there[i] = exp_minus(-here[i])
        for n in range(begin, end):
            row, shares = logits[indptr[n] : indptr[n + 1]], probs[indptr[n] : indptr[n + 1]]
            total, weighted = 0.0, 0.0
            for i in range(row.size):
                total += shares[i]
                weighted += shares[i] * row[i]
            shift, scale = math.log(total), 1.0 / total
            entropy[n] = shift - weighted * scale
            for i in range(row.size):
                row[i] -= shift
                shares[i] *= scale


@jit
def covariances_rows(worker, start, stop, indptr, probs, a, b, out):
    """out[n] = Cov(a, b) under row n's probabilities: one term of the Fisher inner product."""
    for n in range(start, stop):
        first, last = indptr[n], indptr[n + 1]
        mean_a, mean_b = 0.0, 0.0
        for e in range(first, last):
            mean_a += probs[e] * a[e]
            mean_b += probs[e] * b[e]
        total = 0.0
        for e in range(first, last):
            total += probs[e] * (a[e] - mean_a) * (b[e] - mean_b)
        out[n] = total


@jit
def add_up_groups(worker, start, stop, indptr, entries, counts, probs, out):
    """out[g] = sum of counts[e] probs[e] over the entries e of each group g, topics apart."""
    num_topics = probs.shape[1]
    for g in range(start, stop):
        for k in range(num_topics):
            out[g, k] = 0.0
        for i in range(indptr[g], indptr[g + 1]):
            e = entries[i]
            for k in range(num_topics):
                out[g, k] += counts[e] * probs[e, k]


@jit
def add_pairs(worker, start, stop, documents, words, by_document, by_word, out):
    """out[e] = by_document[document of e] + by_word[word of e], topics apart."""
    for e in range(start, stop):
        d, w = documents[e], words[e]
        for k in range(out.shape[1]):
            out[e, k] = by_document[d, k] + by_word[w, k]
