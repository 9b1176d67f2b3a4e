"""Table counts and concentrations of words that vary by group around a topic.

A topic's groups, its concentration and its tables are one stream and one thread's work.
"""

import math

import numpy as np

from pgmult.compiled.dirichlet import row_room, sample_row
from pgmult.compiled.jit import jit
from pgmult.compiled.streams import exponential, open_stream, uniform

_FEW = 12  # up to so many factors of a rising product are multiplied
_SMALLEST, _DUE = 1e-100, 1e-150
_LARGE = 1000.0  # from here on Stirling's series is exact to double precision
FURTHEST = 25.0  # of |log c|: there groups have nothing, or all, in common


@jit
def log_rising(a, n):
    """Log of a (a + 1) ... (a + n - 1), for many factors."""
    if a < _LARGE:
        return math.lgamma(a + n) - math.lgamma(a)
    series = (1.0 / (a + n) - 1.0 / a) / 12.0
    return (a - 0.5) * math.log1p(n / a) + n * (math.log(a + n) - 1.0) + series


@jit
def _log_density(x, prior, cells):
    """Log density of x = log c: its gamma prior and the counts, group probabilities integrated out.

    Cells with one token give a factor c each, `ones` of them; others stand in shares and times.
    """
    (shape, rate), (singles, totals, shares, times) = prior, cells
    if not abs(x) < FURTHEST:
        return -math.inf
    c = math.exp(x)
    value = (shape + singles) * x - rate * c
    for total in totals:
        if total > 0:
            value -= log_rising(c, total)
    product = 1.0  # of factors whose logarithm is due: one serves many cells
    for i in range(shares.shape[0]):
        a, n = max(c * shares[i], _SMALLEST), times[i]
        if n > _FEW:
            value += log_rising(a, n)
            continue
        for j in range(n):
            product *= a + j
        if not _DUE < product < 1.0 / _DUE:
            value += math.log(product)
            product = 1.0
    return value + math.log(product)


@jit
def sample_tables(worker, start, stop, key, counts, topics, prior, hold, concentration, tables):
    """Move each topic's concentration by a slice, then draw its tables.

    Parameters
    ----------
    counts : int64, (num_groups, num_topics, num_words)
    topics : (num_topics, num_words)
    prior : shape and rate of the gamma prior of a concentration.
    hold : bool: leave concentrations as they are.
    concentration : in and out, (num_topics,)
    tables : out, (num_topics, num_words), added to: CRT(n, c p) of each cell.
    """
    num_groups, _, num_words = counts.shape
    shares = np.empty(num_groups * num_words)
    times = np.empty(num_groups * num_words, dtype=np.int64)
    places = np.empty(num_groups * num_words, dtype=np.int64)  # of their tables
    totals = np.empty(num_groups, dtype=np.int64)
    for k in range(start, stop):
        state = open_stream(key, k)
        size, singles = 0, 0
        for g in range(num_groups):
            totals[g] = 0
            for v in range(num_words):
                n = counts[g, k, v]
                if n == 0:
                    continue
                totals[g] += n
                tables[k, v] += 1  # the first token sits down at a table of its own
                if n == 1:
                    singles += 1
                else:
                    shares[size], times[size] = topics[k, v], n
                    places[size] = v
                    size += 1
        if not hold:
            x = math.log(concentration[k])
            cells = singles, totals, shares[:size], times[:size]
            e, state = exponential(state)
            level = _log_density(x, prior, cells) - e
            u, state = uniform(state)
            left = x - u
            right = left + 1.0
            while _log_density(left, prior, cells) > level:
                left -= 1.0
            while _log_density(right, prior, cells) > level:
                right += 1.0
            while True:
                u, state = uniform(state)
                new = left + (right - left) * u
                if _log_density(new, prior, cells) > level:
                    break
                if new < x:
                    left = new
                else:
                    right = new
            concentration[k] = math.exp(new)
        for cell in range(size):
            a, more = concentration[k] * shares[cell], 0
            for i in range(1, times[cell]):
                u, state = uniform(state)
                more += u * (a + i) < a
            tables[k, places[cell]] += more


@jit
def sample_varied(worker, start, stop, key, counts, topics, concentration, words):
    """words[row] ~ Dirichlet(c_k topics[k] + counts[row]), a row for each group and topic."""
    num_words, num_topics = words.shape[1], concentration.size
    room, shapes = row_room(num_words), np.empty(num_words)
    for row in range(start, stop):
        k = row % num_topics
        for v in range(num_words):
            shapes[v] = concentration[k] * topics[k, v] + counts[row, v]
        sample_row(open_stream(key, row), shapes, room, words[row])
