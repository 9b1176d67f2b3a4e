"""Hidden Markov chains with multinomial emissions: forward filter, backward sampler, smoother.

A row is a sequence. The filter keeps p(z_t | x_<=t), normalised at every step, and returns the
normalisers p(x_t | x_<t). Within a step likelihoods are weighed in logarithms where they could
underflow (rows of large counts), so what is lost of p(z_t | x_<=t) is below 1e-308; a transition
of probability p can make it matter again by a factor of 1 / p at most. Where probabilities of
transitions or of first states go below `SMALLEST`, callers ask for ``in_logs``: everything between
steps is in logarithms then, slower and without any loss.

"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import open_stream, uniform
from pgmult.compiled.vectors import copy
from pgmult.sequences.compiled.brackets import FOUND, START, look_next

SMALLEST = 1e-280
_SAFE_TOTAL = 1e-250
_Floats = NDArray[np.float64]


class HiddenChains(NamedTuple):
    """Observed sequences and the parameters of their hidden chains.

    `offsets` to `counts` are those of `pgmult.sequences.Sequences`. `emission` is
    ``(num_symbols, num_states)``, one contiguous row a symbol; where steps have their own,
    `symbols` are the numbers of its rows. `transition` is
    ``(num_cells, num_states, num_states)``: ``which[t]`` is the one that leads into step t.
    ``known[t]`` is the state of step t, or -1; it is empty where no state is known.
    """

    offsets: NDArray[np.int64]
    indptr: NDArray[np.int64]
    symbols: NDArray[np.int32]
    counts: NDArray[np.int32]
    initial: _Floats
    transition: _Floats
    log_transition: _Floats
    emission: _Floats
    log_emission: _Floats
    in_logs: bool
    which: NDArray[np.int64]
    known: NDArray[np.int64]


@jit(inline=True)
def _log(x):
    return math.log(x) if x > 0.0 else -math.inf


@jit(inline=True)
def _predict(filtered, row, chains, cell, predicted):
    """p(z_t | x_<t), or its logarithm, from the step before, which is a row of `filtered`."""
    num_states = predicted.size
    if not chains.in_logs:
        for j in range(num_states):
            predicted[j] = 0.0
        for i in range(num_states):
            share = filtered[row, i]
            for j in range(num_states):
                predicted[j] += share * chains.transition[cell, i, j]
        return
    for j in range(num_states):
        top = -math.inf
        for i in range(num_states):
            top = max(top, filtered[row, i] + chains.log_transition[cell, i, j])
        total = 0.0
        if top > -math.inf:
            for i in range(num_states):
                total += math.exp(filtered[row, i] + chains.log_transition[cell, i, j] - top)
        predicted[j] = top + _log(total)


@jit(within=True)
def _weigh_in_logs(t, chains, predicted, out):
    """Condition on a row of counts; its log probability. An impossible one changes nothing."""
    num_states, in_logs = predicted.size, chains.in_logs
    top = -math.inf
    for m in range(num_states):
        weight = predicted[m] if in_logs else _log(predicted[m])
        for entry in range(chains.indptr[t], chains.indptr[t + 1]):
            weight += chains.counts[entry] * chains.log_emission[chains.symbols[entry], m]
        out[m] = weight
        top = max(top, weight)
    if top == -math.inf:
        copy(predicted, out)
        return top
    total = 0.0
    for m in range(num_states):
        total += math.exp(out[m] - top)
    log_total = top + math.log(total)
    for m in range(num_states):
        out[m] = out[m] - log_total if in_logs else math.exp(out[m] - log_total)
    return log_total


@jit
def _filter(s, chains, filtered, log_predictive):
    """Filter sequence s into the rows of `filtered`, in turn; a few rows serve a long sequence."""
    in_logs, first = chains.in_logs, chains.offsets[s]
    num_rows, num_states = filtered.shape
    predicted = np.empty(num_states)
    row = num_rows - 1
    for t in range(first, chains.offsets[s + 1]):
        before, row = row, (row + 1 if row + 1 < num_rows else 0)
        if t > first:
            _predict(filtered, before, chains, chains.which[t], predicted)
        else:
            for m in range(num_states):
                predicted[m] = _log(chains.initial[m]) if in_logs else chains.initial[m]
        begin, end, total = chains.indptr[t], chains.indptr[t + 1], 0.0
        known = chains.known[t] if chains.known.size > 0 else -1
        if known >= 0:
            for m in range(num_states):
                if m != known:
                    predicted[m] = -math.inf if in_logs else 0.0
        elif begin == end:
            log_predictive[t] = 0.0
            copy(predicted, filtered[row])
            continue
        elif not in_logs and end == begin + 1 and chains.counts[begin] == 1:
            symbol = chains.symbols[begin]
            for m in range(num_states):
                weight = predicted[m] * chains.emission[symbol, m]
                filtered[row, m] = weight
                total += weight
        if total > _SAFE_TOTAL:
            log_predictive[t] = math.log(total)
            scale = 1.0 / total
            for m in range(num_states):
                filtered[row, m] *= scale
        else:
            log_predictive[t] = _weigh_in_logs(t, chains, predicted, filtered[row])
        if known >= 0:  # whatever its probability
            filtered[row, known] = 0.0 if in_logs else 1.0


@jit
def filter_sequences(worker, start, stop, chains, log_predictive):
    """Log p(x_t | x_<t) of every step, 0 where it is missing.

    A step that is impossible gives -inf and counts as missing for those after it.
    """
    filtered = np.empty((2, chains.initial.size))
    for s in range(start, stop):
        _filter(s, chains, filtered, log_predictive)


@jit
def _room(chains, start, stop):
    """Rows of states for all steps of the longest sequence, and one more."""
    longest, num_states = 0, chains.initial.size
    for s in range(start, stop):
        longest = max(longest, chains.offsets[s + 1] - chains.offsets[s])
    return np.empty((longest, num_states)), np.empty(num_states)


@jit
def filter_paths(worker, start, stop, chains, predicted, filtered):
    """predicted[t] = p(z_t | x before t), filtered[t] = p(z_t | x up to t)."""
    num_states, log_predictive = chains.initial.size, np.empty(chains.indptr.size - 1)
    for s in range(start, stop):
        first, last = chains.offsets[s], chains.offsets[s + 1]
        rows = filtered[first:last]
        _filter(s, chains, rows, log_predictive)
        predicted[first] = chains.initial
        for t in range(first + 1, last):
            _predict(rows, t - 1 - first, chains, chains.which[t], predicted[t])
        if chains.in_logs:
            for t in range(first, last):
                for m in range(num_states):
                    filtered[t, m] = math.exp(filtered[t, m])
                    if t > first:
                        predicted[t, m] = math.exp(predicted[t, m])


@jit(inline=True)
def _backward_weights(filtered, row, chains, cell, later, weights):
    """p(z_t | z_t+1 = later, x_<=t), up to a factor; all of it if `later` is -1. Their sum."""
    num_states = weights.size
    total = 0.0
    for i in range(num_states):
        weights[i] = filtered[row, i]
    if not chains.in_logs:
        for i in range(num_states):
            if later >= 0:
                weights[i] *= chains.transition[cell, i, later]
            total += weights[i]
        return total
    top = -math.inf
    for i in range(num_states):
        if later >= 0:
            weights[i] += chains.log_transition[cell, i, later]
        top = max(top, weights[i])
    if top == -math.inf:
        weights[:] = 0.0
        return 0.0
    for i in range(num_states):
        weights[i] = math.exp(weights[i] - top)
        total += weights[i]
    return total


@jit
def sample_paths(worker, start, stop, key, chains, log_predictive, states):
    """States ~ p(z | x): filter forward, sample backward; log p(x_t | x_<t) comes with it."""
    filtered, weights = _room(chains, start, stop)
    for s in range(start, stop):
        first, last = chains.offsets[s], chains.offsets[s + 1]
        _filter(s, chains, filtered[: last - first], log_predictive)
        state, later = open_stream(key, s), np.int64(-1)
        for t in range(last - 1, first - 1, -1):
            into = chains.which[min(t + 1, last - 1)]
            total = _backward_weights(filtered, t - first, chains, into, later, weights)
            u, state = uniform(state)
            later = _pick(weights, u * total)
            states[t] = later


@jit(inline=True)
def _pick(weights, left):
    """The state at which running sums of weights reach `left`."""
    chosen = 0
    for m in range(weights.size):
        if weights[m] > 0.0:
            chosen = m
            left -= weights[m]
            if left <= 0.0:
                break
    return chosen


@jit
def smooth_paths(worker, start, stop, chains, log_predictive, smoothed, pairs):
    """smoothed[t] = p(z_t | all x of the sequence), pairs[t] = p(z_t-1, z_t | all x) unless empty.

    Pairs of first steps stay as they are.
    """
    filtered, weights = _room(chains, start, stop)
    num_states = weights.size
    for s in range(start, stop):
        first, last = chains.offsets[s], chains.offsets[s + 1]
        _filter(s, chains, filtered[: last - first], log_predictive)
        end, none = last - 1 - first, np.int64(-1)
        total = _backward_weights(filtered, end, chains, np.int64(0), none, weights)
        for i in range(num_states):
            smoothed[last - 1, i] = weights[i] / total
        for t in range(last - 2, first - 1, -1):
            into = chains.which[t + 1]
            for i in range(num_states):
                smoothed[t, i] = 0.0
            for j in range(num_states):
                total = _backward_weights(filtered, t - first, chains, into, j, weights)
                scale = smoothed[t + 1, j] / total if total > 0.0 else 0.0
                for i in range(num_states):
                    smoothed[t, i] += scale * weights[i]
                    if pairs.size > 0:
                        pairs[t + 1, i, j] = scale * weights[i]


@jit(inline=True)
def _break(psi, order, row):
    """Probabilities of categories: stick k breaks for ``order[k]``, the last has the rest."""
    remaining = 1.0
    for k in range(psi.size):
        e = math.exp(-abs(psi[k]))
        larger = 1.0 / (1.0 + e)
        smaller = e * larger
        row[order[k]] = remaining * (larger if psi[k] >= 0.0 else smaller)
        remaining *= smaller if psi[k] >= 0.0 else larger
    row[order[psi.size]] = remaining


@jit
def break_sticks(worker, start, stop, psi, orders, chains):
    """Set the probabilities of chains by the sticks of cells; the least that leads to a state.

    Logarithms of transitions, which are needed next to never, stay as they are.
    `psi` and `orders` are those of first states, transitions and emissions: ``(num_cells or 1,
    num_rows, num_categories - 1)`` and ``(num_rows, num_categories)``. ``chains.emission`` has a
    row for each symbol of each cell.
    """
    first, moves, emits = psi
    num_states, num_symbols = chains.initial.size, emits.shape[2] + 1
    row, least = np.empty(max(num_states, num_symbols)), 1.0
    for cell in range(start, stop):
        if cell == 0:
            _break(first[0, 0], orders[0][0], chains.initial)
            least = chains.initial.min()
        for i in range(num_states):
            if cell < moves.shape[0]:
                _break(moves[cell, i], orders[1][i], row)
                for j in range(num_states):
                    least = min(least, row[j])
                    chains.transition[cell, i, j] = row[j]
            if cell < emits.shape[0]:
                _break(emits[cell, i], orders[2][i], row)
                for k in range(num_symbols):
                    chains.emission[cell * num_symbols + k, i] = row[k]
                    chains.log_emission[cell * num_symbols + k, i] = _log(row[k])
    return least


class ByRows(NamedTuple):
    """A matrix by its rows: row i has `values[k]` in `columns[k]`, starts[i] <= k < starts[i+1]."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: _Floats


@jit
def set_product(worker, start, stop, matrix, dense, out):
    """The product of a matrix by rows and a dense one, row by row."""
    for row in range(start, stop):
        for j in range(out.shape[1]):
            out[row, j] = 0.0
        for k in range(matrix.starts[row], matrix.starts[row + 1]):
            factor, column = matrix.values[k], matrix.columns[k]
            for j in range(out.shape[1]):
                out[row, j] += factor * dense[column, j]


@jit
def add_up_counts(chains, cells, smoothed, pairs, counts):
    """Add how often the categories of rows of probabilities occurred, in expectation.

    `counts` are those of first states, transitions and emissions, the latter by cell where there is
    more than one: see `break_sticks`.
    """
    first, moved, emitted = counts
    num_states, num_symbols = first.shape[2], emitted.shape[2]
    for start in chains.offsets[:-1]:
        for m in range(num_states):
            first[0, 0, m] += smoothed[start, m]
    for t in range(smoothed.shape[0]):
        into = cells[t] if moved.shape[0] > 1 else 0
        cell = cells[t] if emitted.shape[0] > 1 else 0
        for i in range(num_states):
            for j in range(num_states):
                moved[into, i, j] += pairs[t, i, j]
        for entry in range(chains.indptr[t], chains.indptr[t + 1]):
            symbol = chains.symbols[entry] % num_symbols
            for i in range(num_states):
                emitted[cell, i, symbol] += chains.counts[entry] * smoothed[t, i]


@jit
def simulate_paths(worker, start, stop, key, offsets, initial, transition, which, states):
    """States ~ p(z): first states and transitions alone."""
    for s in range(start, stop):
        state = open_stream(key, s)
        for t in range(offsets[s], offsets[s + 1]):
            u, state = uniform(state)
            probs = initial if t == offsets[s] else transition[which[t], states[t - 1]]
            states[t] = _pick(probs, u)


@jit
def log_rising(x, times, added, slopes, bases):
    """sum_i times_i log Gamma(c_i + added_i) / Gamma(c_i), c_i = slopes_i exp(x) + bases_i.

    What Dirichlet rows give to the likelihood of a concentration exp(x) once they are integrated
    out; terms with ``added_i = 0`` vanish.
    """
    number, total = math.exp(x), 0.0
    for i in range(times.size):
        if added[i] > 0.0:
            c = slopes[i] * number + bases[i]
            total += times[i] * (math.lgamma(c + added[i]) - math.lgamma(c))
    return total


@jit
def slice_log(key, x, drop, shape, rate, terms):
    """One slice update of x, exp(x) ~ Gamma(shape, rate) times exp `log_rising` (Neal 2003).

    The level is `drop`, an exponential variate, below the density at x.
    """
    u, state = uniform(open_stream(key, np.int64(0)))
    at, level = (START, x, x, x - u, x - u + 1.0), 0.0
    while at[0] != FOUND:
        density = shape * at[2] - rate * math.exp(at[2]) + log_rising(at[2], *terms)
        if at[0] == START:
            level = density - drop
        at, state = look_next(at, density > level, 1.0, state)
    return at[2]


@jit
def likeliest_paths(worker, start, stop, chains, states):
    """Fill `states` with the most probable path of each sequence (Viterbi 1967)."""
    num_states = chains.initial.size
    best, following = np.empty(num_states), np.empty(num_states)
    for s in range(start, stop):
        first, last = chains.offsets[s], chains.offsets[s + 1]
        came_from = np.empty((last - first, num_states), np.int64)
        for t in range(first, last):
            for j in range(num_states):
                if t == first:
                    following[j] = _log(chains.initial[j])
                    continue
                following[j], came_from[t - first, j] = -math.inf, 0
                for i in range(num_states):
                    score = best[i] + chains.log_transition[chains.which[t], i, j]
                    if score > following[j]:
                        following[j], came_from[t - first, j] = score, i
            for j in range(num_states):
                best[j] = following[j]
                for entry in range(chains.indptr[t], chains.indptr[t + 1]):
                    row = chains.symbols[entry]
                    best[j] += chains.counts[entry] * chains.log_emission[row, j]
        states[last - 1] = np.argmax(best)
        for t in range(last - 1, first, -1):
            states[t - 1] = came_from[t - first, states[t]]
