"""Markov chains of symbols, some steps of which are missing: filter, draw, smooth and look ahead.

The context of a step is the symbols of the last L steps: a number below ``(K + 1)**L`` whose digits
are these symbols, K for steps before the beginning. A step without observations has a symbol
nonetheless, which is summed out: its context's distribution goes on by the transition matrix. The
context of a step is *unsure* where one of the L steps before it is missing.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import open_stream, uniform


class ContextSteps(NamedTuple):
    """Observed sequences, as compiled functions take them.

    Attributes
    ----------
    offsets, indptr, symbols, counts : arrays
        Those of `pgmult.sequences.Sequences`.
    main : int array, ``(num_steps,)``
        The most frequent symbol of each step, K where it is missing.
    contexts : int array, ``(num_steps,)``
        The context of each step that is sure.
    unsure : bool array, ``(num_steps,)``
    """

    offsets: NDArray[np.int64]
    indptr: NDArray[np.int64]
    symbols: NDArray[np.int32]
    counts: NDArray[np.int32]
    main: NDArray[np.int64]
    contexts: NDArray[np.int64]
    unsure: NDArray[np.bool_]


@jit
def _follow(dist, rows, symbol, after):
    """Set the distribution of the context after a step with a symbol, or with a missing one."""
    size, num_symbols = rows.shape
    after[:] = 0.0
    for c in range(size):
        if dist[c] > 0.0:
            shifted = c * (num_symbols + 1) % size
            if symbol < num_symbols:
                after[shifted + symbol] += dist[c]
                continue
            for k in range(num_symbols):
                after[shifted + k] += dist[c] * rows[c, k]


@jit
def _weigh(begin, end, steps, rows, dist, weighed):
    """Set the distribution of a context given the observations after it; return their log prob."""
    top = -math.inf
    for c in range(dist.size):
        weighed[c] = -math.inf
        if dist[c] > 0.0:
            weight = math.log(dist[c])
            for entry in range(begin, end):
                weight += steps.counts[entry] * math.log(rows[c, steps.symbols[entry]])
            weighed[c] = weight
            top = max(top, weight)
    total = 0.0
    for c in range(dist.size):
        weighed[c] = math.exp(weighed[c] - top)
        total += weighed[c]
    for c in range(dist.size):
        weighed[c] /= total
    return top + math.log(total)


@jit
def _filter(first, stop, steps, rows, predicted, weighed, final, log_predictive):
    """Filter the unsure contexts of a sequence: before each step, and given its observations too.

    `predicted` and `weighed` have a row for each unsure step, in turn; `final` is the context
    after the last step.
    """
    size, row = rows.shape[0], -1
    dist = np.zeros(size)
    for t in range(first, stop):
        begin, end = steps.indptr[t], steps.indptr[t + 1]
        goes_on = t + 1 == stop or steps.unsure[t + 1]
        if steps.unsure[t]:
            row += 1
            if end > begin:
                log_predictive[t] = _weigh(begin, end, steps, rows, predicted[row], weighed[row])
            else:
                weighed[row] = predicted[row]
            dist[:] = weighed[row]
        elif goes_on:
            dist[:] = 0.0
            dist[steps.contexts[t]] = 1.0
        if goes_on:
            _follow(dist, rows, steps.main[t], final if t + 1 == stop else predicted[row + 1])


@jit
def _room(start, stop, steps, size):
    """Room for distributions of contexts, before and given each unsure step of a sequence."""
    most = 0
    for s in range(start, stop):
        most = max(most, steps.unsure[steps.offsets[s] : steps.offsets[s + 1]].sum())
    return np.empty((most, size)), np.empty((most, size)), np.empty(size)


@jit
def filter_contexts(worker, start, stop, steps, rows, log_predictive, final):
    """Sum missing symbols out of one-step-ahead predictions.

    Sets, at unsure steps that have observations, `log_predictive`, and ``final[s]``, the context
    after each sequence, unless it has no rows.
    """
    predicted, weighed, after = _room(start, stop, steps, rows.shape[0])
    for s in range(start, stop):
        first, last = steps.offsets[s], steps.offsets[s + 1]
        _filter(first, last, steps, rows, predicted, weighed, after, log_predictive)
        if final.shape[0] > 0:
            final[s] = after


@jit
def fill_symbols(worker, start, stop, key, steps, rows, log_predictive, filled):
    """Draw the missing symbols before the last observation of each sequence given all of it.

    Filter forward, sample backward; `filled` has the observed symbols already.
    """
    size, num_symbols = rows.shape
    predicted, weighed, after = _room(start, stop, steps, size)
    oldest = size // (num_symbols + 1)
    for s in range(start, stop):
        first, last = steps.offsets[s], steps.offsets[s + 1]
        while last > first and steps.main[last - 1] == num_symbols:
            last -= 1
        row = steps.unsure[first:last].sum()
        if row == 0:
            continue
        _filter(first, last, steps, rows, predicted, weighed, after, log_predictive)
        stream, later = open_stream(key, s), np.int64(-1)
        for t in range(last - 1, first - 1, -1):
            symbol = steps.main[t]
            if symbol == num_symbols:
                symbol = later % (num_symbols + 1)
                filled[t] = symbol
            if not steps.unsure[t]:
                later = steps.contexts[t]
                continue
            row -= 1
            dist = weighed[row]
            if later >= 0 and t + 1 < last and steps.unsure[t + 1]:
                after[:] = 0.0
                for o in range(num_symbols + 1):
                    c = o * oldest + later // (num_symbols + 1)
                    after[c] = dist[c]
                    if steps.main[t] == num_symbols:
                        after[c] *= rows[c, symbol]
            else:
                after[:] = dist
            u, stream = uniform(stream)
            left, later = u * after.sum(), np.int64(0)
            for c in range(size):
                if after[c] > 0.0:
                    later = c
                    left -= after[c]
                    if left <= 0.0:
                        break


@jit
def smooth_symbols(worker, start, stop, steps, rows, filtered, log_predictive, probs):
    """Set probabilities of symbols given all of their sequence, at missing and unsure steps.

    They are those of the symbol itself where it is missing, and of another one in its place, given
    what came before, where it was observed. If `filtered`, they are given the steps before alone.
    """
    size, num_symbols = rows.shape
    predicted, weighed, dist = _room(start, stop, steps, size)
    ratio, joint = np.empty(size), 0.0
    for s in range(start, stop):
        first, last = steps.offsets[s], steps.offsets[s + 1]
        _filter(first, last, steps, rows, predicted, weighed, dist, log_predictive)
        row = steps.unsure[first:last].sum()
        ratio[:] = 1.0  # p(context after step t | all) / p(context after step t | up to t)
        for t in range(last - 1, first - 1, -1):
            missing = steps.main[t] == num_symbols
            if not steps.unsure[t]:
                if missing:
                    c = steps.contexts[t]
                    for k in range(num_symbols):
                        probs[t, k] = rows[c, k] * ratio[c * (num_symbols + 1) % size + k]
                ratio[:] = 1.0
                continue
            row -= 1
            probs[t], given = 0.0, predicted[row] if filtered else weighed[row]
            for c in range(size):
                dist[c] = 0.0
                if given[c] == 0.0:
                    continue
                shifted = c * (num_symbols + 1) % size
                if not missing:
                    dist[c] = given[c] * ratio[shifted + steps.main[t]]
                for k in range(num_symbols):
                    if missing:
                        joint = given[c] * rows[c, k] * ratio[shifted + k]
                        dist[c] += joint
                        probs[t, k] += joint
                    else:
                        probs[t, k] += dist[c] * rows[c, k]
            for c in range(0 if filtered else size):
                before = predicted[row, c]
                ratio[c] = dist[c] / before if before > 0.0 else 0.0


@jit
def look_ahead(worker, start, stop, dists, rows, probs):
    """Probabilities of the steps after contexts with distributions ``dists``, row by row."""
    dist, after = np.empty(rows.shape[0]), np.empty(rows.shape[0])
    for i in range(start, stop):
        dist[:] = dists[i]
        for t in range(probs.shape[1]):
            probs[i, t] = 0.0
            for c in range(dist.size):
                if dist[c] > 0.0:
                    for k in range(rows.shape[1]):
                        probs[i, t, k] += dist[c] * rows[c, k]
            _follow(dist, rows, rows.shape[1], after)
            dist[:] = after
