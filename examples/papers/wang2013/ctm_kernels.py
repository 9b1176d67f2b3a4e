"""Gaussian approximations of documents' eta in the logistic normal topic model, many at a time.

Documents sit in the lanes of one batch of Gaussian systems (see pgmult.compiled.simd). A lane whose
document is done takes the next one; what a document ends with depends on itself alone, not on its
neighbours in the batch and not on the split among threads.

With N tokens, prior N(centre, precision^-1) and rho = softmax(m), documents climb with

    H = precision + N (diag rho - rho rho'),

which is positive definite. See `examples.papers.wang2013.variational_ctm` for what is climbed.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import factor_lanes, row_at, solve_lanes
from pgmult.compiled.simd import WIDTH, add_product, load, splat, store, subtract_product
from pgmult.compiled.vectors import dot
from pgmult.topics.compiled.tokens import Entries
from pgmult.topics.compiled.variational_topics import (
    add_covariances,
    invert_lanes,
    squares_lanes,
    write_sum,
)

FloatArray, IntArray, BoolArray = NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]

_MOST_HALVINGS = 40
_SUFFICIENT = 1e-4  # of the rise that the gradient promises (Armijo)
_SLACK = 1e-12  # of a value: what rounding may take from a rise


@jit
def _log_sum(x):
    """Logarithm of the sum of exp(x)."""
    largest = -math.inf
    for k in range(x.shape[0]):
        largest = max(largest, x[k])
    total = 0.0
    for k in range(x.shape[0]):
        total += math.exp(x[k] - largest)
    return largest + math.log(total)


class Tokens(NamedTuple):
    """The words of all documents, and the probabilities that topics give them."""

    entries: Entries
    totals: FloatArray  # (num_documents,)
    by_word: FloatArray  # (num_words, num_topics)


class Prior(NamedTuple):
    """The Gaussian prior of eta."""

    precision: FloatArray  # (n, n)
    centre: FloatArray  # (n,)


class Found(NamedTuple):
    """Results of all documents."""

    mean: FloatArray  # (num_documents, num_topics): where to start, and the result
    var: FloatArray
    shares: FloatArray  # (num_documents, num_topics): see `_allocate_words`
    taken: FloatArray
    weights: FloatArray  # (num_entries,)
    scores: FloatArray  # (num_documents,)
    steps: IntArray  # points tried
    is_done: BoolArray  # whether the last step was short


@jit
def _allocate_words(d, tokens, mean, found):
    """q(z) of one document: a token's topic probabilities are proportional to exp(m_k) by_word.

    They are shares[k] by_word[w, k] weights[entry] / count, with shares = exp(m - max m); `taken`
    are the expected tokens of each topic. Returns the sum over tokens of log sum_k exp(m_k)
    by_word[w, k], or nan if some word has probability 0 under every topic.
    """
    num_topics = mean.shape[0]
    indptr, words, counts = tokens.entries
    by_word = tokens.by_word
    shares, taken, weights = found.shares[d], found.taken[d], found.weights
    shift = mean[0]
    for k in range(1, num_topics):
        shift = max(shift, mean[k])
    for k in range(num_topics):
        shares[k] = math.exp(mean[k] - shift)
        taken[k] = 0.0
    score = 0.0
    for entry in range(indptr[d], indptr[d + 1]):
        there = by_word[words[entry]]
        total = dot(shares, there)
        if not total > 0.0:
            return math.nan
        score += counts[entry] * (math.log(total) + shift)
        weight = counts[entry] / total
        weights[entry] = weight
        for k in range(num_topics):
            taken[k] += weight * there[k]
    for k in range(num_topics):
        taken[k] *= shares[k]
    return score


@jit
def _level(count, score, mean, prior, rho, pull):
    """The objective without log determinants; also rho and pull = precision (m - centre)."""
    n, (precision, centre) = mean.shape[0], prior
    log_zeta, quadratic = _log_sum(mean), 0.0
    for k in range(n):
        pull[k] = 0.0
    for i in range(n):
        deviation = mean[i] - centre[i]
        for k in range(n):
            pull[k] += precision[i, k] * deviation
    for k in range(n):
        rho[k] = math.exp(mean[k] - log_zeta)
        quadratic += pull[k] * (mean[k] - centre[k])
    return score - count * log_zeta - 0.5 * quadratic


@jit
def _load_curvatures(precision, rho, scaled, packed):
    """H of each lane, packed; `rho` and `scaled` = N rho are rows of lanes."""
    for i in range(precision.shape[0]):
        row, left = row_at(i), load(scaled, i * WIDTH)
        for j in range(i + 1):
            x = subtract_product(splat(precision[i, j]), left, load(rho, j * WIDTH))
            store(packed, row + j * WIDTH, x)
        x = add_product(load(packed, row + i * WIDTH), left, splat(1.0))
        store(packed, row + i * WIDTH, x)


class _Lanes(NamedTuple):
    """A document on its way in each lane. Rows are lanes, or numbers of all lanes lie together."""

    document: IntArray  # -1 where a lane is idle
    trial: FloatArray  # (WIDTH, n): the point that is tried
    gradient: FloatArray  # (WIDTH, n), at the trial
    step: FloatArray  # (WIDTH, n), from the last good point
    value: FloatArray  # (WIDTH,), at the trial
    score: FloatArray
    level: FloatArray  # (WIDTH,), at the last good point
    promise: FloatArray  # of a whole step
    scale: FloatArray  # the share of it that is tried
    halvings: IntArray
    rho: FloatArray  # (n WIDTH,), of the trial
    scaled: FloatArray  # N rho
    x: FloatArray  # (n WIDTH,): the next step
    packed: FloatArray  # room for H, and a row more
    here_rho: FloatArray  # (n,): room for one lane's
    here_pull: FloatArray


@jit(within=True)
def _idle_lanes(n):
    return _Lanes(
        np.full(WIDTH, -1), np.empty((WIDTH, n)), np.empty((WIDTH, n)), np.empty((WIDTH, n)),
        np.empty(WIDTH), np.empty(WIDTH), np.empty(WIDTH), np.empty(WIDTH), np.empty(WIDTH),
        np.zeros(WIDTH, dtype=np.int64),
        np.zeros(n * WIDTH), np.zeros(n * WIDTH), np.zeros(n * WIDTH), np.empty(row_at(n + 1)),
        np.empty(n), np.empty(n),
    )  # fmt: skip


@jit(within=True)
def _take_documents(lanes, upcoming, stop, found):
    """Idle lanes take the next documents; returns which comes after them."""
    for lane in range(WIDTH):
        if lanes.document[lane] < 0 and upcoming < stop:
            lanes.document[lane] = upcoming
            found.steps[upcoming], found.is_done[upcoming] = 0, False
            lanes.level[lane] = -math.inf
            lanes.scale[lane], lanes.promise[lane], lanes.halvings[lane] = 1.0, 0.0, 0
            lanes.trial[lane] = found.mean[upcoming]
            upcoming += 1
    return upcoming


@jit(within=True)
def _evaluate(lanes, tokens, prior, found):
    """The level of each trial, its gradient, and rho.

    Returns 0, or 1 + a document that holds a word of probability 0 under every topic.
    """
    n = prior.centre.shape[0]
    rho, pull, all_rho, scaled = lanes.here_rho, lanes.here_pull, lanes.rho, lanes.scaled
    for lane in range(WIDTH):
        d = lanes.document[lane]
        if d < 0:  # an idle lane factors the prior
            for k in range(n):
                all_rho[k * WIDTH + lane], scaled[k * WIDTH + lane] = 0.0, 0.0
            continue
        lanes.score[lane] = _allocate_words(d, tokens, lanes.trial[lane], found)
        if math.isnan(lanes.score[lane]):
            return 1 + d
        total, taken, gradient = tokens.totals[d], found.taken[d], lanes.gradient[lane]
        lanes.value[lane] = _level(total, lanes.score[lane], lanes.trial[lane], prior, rho, pull)
        for k in range(n):
            all_rho[k * WIDTH + lane] = rho[k]
            scaled[k * WIDTH + lane] = total * rho[k]
            gradient[k] = taken[k] - total * rho[k] - pull[k]
    return 0


@jit(within=True)
def _solve_steps(lanes, precision):
    """X = H^-1 gradient: a triangular factor of H, bordered by the gradient."""
    n = precision.shape[0]
    packed, x = lanes.packed, lanes.x
    _load_curvatures(precision, lanes.rho, lanes.scaled, packed)
    for lane in range(WIDTH):
        is_busy, gradient = lanes.document[lane] >= 0, lanes.gradient[lane]
        for k in range(n):
            packed[row_at(n) + k * WIDTH + lane] = gradient[k] if is_busy else 0.0
        packed[row_at(n) + n * WIDTH + lane] = 1.0
    x[:] = 0.0
    solve_lanes(packed, x, n)


@jit(within=True)
def _settle(lanes, tolerance, max_steps, tokens, found):
    """Accept trials that raise the level enough, halve the other steps, and free finished lanes.

    Returns 0, or 1 + a document for which H is singular to working precision.
    """
    mean, x = found.mean, lanes.x
    n = mean.shape[1]
    for lane in range(WIDTH):
        d = lanes.document[lane]
        if d < 0:
            continue
        found.steps[d] += 1
        here, trial, gradient = mean[d], lanes.trial[lane], lanes.gradient[lane]
        step, value = lanes.step[lane], lanes.value[lane]
        least = lanes.level[lane] + _SUFFICIENT * lanes.scale[lane] * lanes.promise[lane]
        if value >= least - _SLACK * (1.0 + abs(value)):
            rise = 0.0
            for k in range(n):
                here[k] = trial[k]
                step[k] = x[k * WIDTH + lane]
                rise += step[k] * gradient[k]
            if not math.isfinite(rise):
                return 1 + d
            lanes.level[lane], lanes.promise[lane] = value, rise
            lanes.scale[lane], lanes.halvings[lane] = 1.0, 0
            found.scores[d] = lanes.score[lane]
            found.is_done[d] = rise <= tolerance * tolerance
            ends = found.is_done[d] or found.steps[d] >= max_steps
        else:
            lanes.scale[lane] *= 0.5
            lanes.halvings[lane] += 1
            if lanes.level[lane] == -math.inf:
                return 1 + d
            ends = lanes.halvings[lane] > _MOST_HALVINGS or found.steps[d] >= max_steps
            if ends:  # words were last allocated by the trial
                found.scores[d] = _allocate_words(d, tokens, mean[d], found)
        if ends:
            lanes.document[lane] = -1
            continue
        scale = lanes.scale[lane]
        for k in range(n):
            trial[k] = here[k] + scale * step[k]
    return 0


@jit
def infer_eta(worker, start, stop, tokens, prior, tolerance, max_steps, found):
    """Climb from `found.mean` to the approximation of each document, q(z) kept at its best.

    A step is H^-1 gradient, halved until the level rises enough. The climb ends when a step is no
    longer than `tolerance` in standard deviations, or after `max_steps`.

    Returns 0, or 1 + a document that holds a word of probability 0 under every topic, or for
    which H is singular to working precision.
    """
    lanes, upcoming = _idle_lanes(prior.centre.shape[0]), start
    while True:
        upcoming = _take_documents(lanes, upcoming, stop, found)
        if lanes.document.max() < 0:
            return 0
        failed = _evaluate(lanes, tokens, prior, found)
        if failed:
            return failed
        _solve_steps(lanes, prior.precision)
        failed = _settle(lanes, tolerance, max_steps, tokens, found)
        if failed:
            return failed


@jit
def _rho_of_lanes(first, width, totals, mean, rho, scaled):
    """Write softmax(mean) of documents, and N times it, into lanes; idle lanes get zeros."""
    n = mean.shape[1]
    for k in range(n * WIDTH):
        rho[k], scaled[k] = 0.0, 0.0
    for lane in range(width):
        d = first + lane
        log_zeta = _log_sum(mean[d])
        for k in range(n):
            share = math.exp(mean[d, k] - log_zeta)
            rho[k * WIDTH + lane] = share
            scaled[k * WIDTH + lane] = totals[d] * share


@jit(within=True)
def _half_log_det(precision):
    """Half the log determinant of a positive definite matrix."""
    root, total = precision.copy(), 0.0
    for i in range(root.shape[0]):
        for j in range(i + 1):
            rest = root[i, j]
            for k in range(j):
                rest -= root[i, k] * root[j, k]
            root[i, j] = rest / root[j, j] if i > j else math.sqrt(rest)
        total += math.log(root[i, i])
    return total


@jit
def sum_moments(worker, start, stop, totals, prior, found, cov_sums, levels):
    """Variances, levels and summed covariances of documents, by equal pieces of documents.

    cov_sums[p], (n, n), lower triangles, is the sum over the p-th piece. The pieces do not depend
    on the split, so neither does their sum. `levels` are what is climbed, all constants of eta in,
    so that they sum to the objective.
    """
    mean, var, precision = found.mean, found.var, prior.precision
    num_documents, n = mean.shape
    pieces = cov_sums.shape[0]
    packed, summed = np.empty(row_at(n)), np.empty(row_at(n))
    rho, scaled = np.zeros(n * WIDTH), np.zeros(n * WIDTH)
    squares, row = np.empty(n * WIDTH), np.empty(n * WIDTH)
    here_rho, here_pull = np.empty(n), np.empty(n)
    half_log_det = _half_log_det(precision)
    for piece in range(start, stop):
        summed[:] = 0.0
        end = num_documents * (piece + 1) // pieces
        for first in range(num_documents * piece // pieces, end, WIDTH):
            width = min(WIDTH, end - first)
            _rho_of_lanes(first, width, totals, mean, rho, scaled)
            _load_curvatures(precision, rho, scaled, packed)
            factor_lanes(packed, n)
            for lane in range(width):
                d = first + lane
                levels[d] = half_log_det + _level(
                    totals[d], found.scores[d], mean[d], prior, here_rho, here_pull
                )
                for k in range(n):  # the diagonal of the factor is stored as its reciprocal
                    levels[d] += math.log(packed[row_at(k) + k * WIDTH + lane])
            invert_lanes(packed, n, row)
            squares_lanes(packed, squares, n)
            for lane in range(width):
                for k in range(n):
                    var[first + lane, k] = squares[k * WIDTH + lane]
            add_covariances(packed, n, width, summed)
        write_sum(summed, cov_sums[piece])
