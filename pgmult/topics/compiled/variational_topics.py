"""Mean-field updates of topic models' documents, many documents at a time.

Documents sit in the lanes of one batch of Gaussian systems (see pgmult.compiled.simd). A
lane whose document has converged takes the next one, so lanes stay busy although documents need
different numbers of steps. What a document ends with depends on nothing but itself: not on its
neighbours in the batch, and not on the split among threads.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import factor_lanes, row_at, solve_lanes
from pgmult.compiled.simd import WIDTH, add_product, load, multiply, splat, store

from .tokens import dot

FloatArray, IntArray = NDArray[np.float64], NDArray[np.int64]


class Given(NamedTuple):
    """Globals that documents are inferred from."""

    by_word: FloatArray  # (num_words, num_topics): exp(E log topics[k, w] - word_shift[w])
    word_shift: FloatArray  # (num_words,)
    precision: FloatArray  # E Sigma^-1, (n, n)
    centre: FloatArray  # E mu, (n,)


class Found(NamedTuple):
    """q of documents; `mean` and `var` are where to start, too."""

    mean: FloatArray  # (num_documents, n): moments of psi
    var: FloatArray
    J: FloatArray  # (num_documents, n): q(psi) is the prior times this potential
    h: FloatArray
    theta: FloatArray  # (num_documents, num_topics)
    taken: FloatArray  # expected tokens of each topic
    weights: FloatArray  # (num_entries,): see `_allocate_expected`
    scores: FloatArray  # (num_documents,): the bound's terms, constants of q(mu, Sigma) left out
    steps: IntArray  # (num_documents,)


@jit
def invert_lanes(a, n, row):
    """Factors as `factor_lanes` leaves them become their inverses, in place.

    Tiles of four columns stay in registers; `row` is room for one row.
    """
    for i in range(n):
        row_place = row_at(i)
        last = multiply(load(a, row_place + i * WIDTH), splat(-1.0))
        for k in range(0, i * WIDTH, WIDTH):
            store(row, k, multiply(load(a, row_place + k), last))
        j = 0
        while j + 4 <= i:
            first, second = load(row, j * WIDTH), load(row, (j + 1) * WIDTH)
            third = load(row, (j + 2) * WIDTH)
            at = j * WIDTH
            here0, here1, here2 = row_at(j) + at, row_at(j + 1) + at, row_at(j + 2) + at
            x0 = multiply(first, load(a, here0))
            x0 = add_product(x0, second, load(a, here1))
            x0 = add_product(x0, third, load(a, here2))
            x1 = multiply(second, load(a, here1 + WIDTH))
            x1 = add_product(x1, third, load(a, here2 + WIDTH))
            x2 = multiply(third, load(a, here2 + 2 * WIDTH))
            x3 = splat(0.0)
            for k in range(j + 3, i):
                entry_place, scale = row_at(k) + j * WIDTH, load(row, k * WIDTH)
                x0 = add_product(x0, scale, load(a, entry_place))
                x1 = add_product(x1, scale, load(a, entry_place + WIDTH))
                x2 = add_product(x2, scale, load(a, entry_place + 2 * WIDTH))
                x3 = add_product(x3, scale, load(a, entry_place + 3 * WIDTH))
            store(a, row_place + j * WIDTH, x0)
            store(a, row_place + (j + 1) * WIDTH, x1)
            store(a, row_place + (j + 2) * WIDTH, x2)
            store(a, row_place + (j + 3) * WIDTH, x3)
            j += 4
        while j < i:
            x = splat(0.0)
            for k in range(j, i):
                x = add_product(x, load(row, k * WIDTH), load(a, row_at(k) + j * WIDTH))
            store(a, row_place + j * WIDTH, x)
            j += 1


@jit
def squares_lanes(a, y, n):
    """Write the diagonal of A' A into y."""
    for k in range(n):
        store(y, k * WIDTH, splat(0.0))
    for i in range(n):
        row = row_at(i)
        for k in range(0, (i + 1) * WIDTH, WIDTH):
            x = load(a, row + k)
            store(y, k, add_product(load(y, k), x, x))


@jit
def _load_precision(precision, packed):
    """The lower triangle of one matrix into all lanes."""
    for i in range(precision.shape[0]):
        row = row_at(i)
        for j in range(i + 1):
            store(packed, row + j * WIDTH, splat(precision[i, j]))


@jit
def _log_theta_bound(mean, var, out):
    """out[k] <= E log theta for Gaussian sticks with these means and variances.

    log sigma(x) >= x / 2 - log 2 cosh(xi / 2) - (x^2 - xi^2) tanh(xi / 2) / (4 xi), Jaakkola and
    Jordan (2000), whose last term has expectation 0 at the best xi, sqrt(E x^2).
    """
    tail = 0.0
    for k in range(mean.shape[0]):
        xi = math.sqrt(mean[k] * mean[k] + var[k])
        both = 0.5 * xi + math.log1p(math.exp(-xi))
        out[k] = tail + 0.5 * mean[k] - both
        tail -= 0.5 * mean[k] + both
    out[mean.shape[0]] = tail


@jit
def _allocate_expected(d, entries, fixed, local):
    """q(z) of one document given q(psi): expected tokens of each topic, `taken`.

    Token probabilities are theta[k] by_word[w, k] weights[entry] / count, with theta[k] =
    exp(bound of E log theta_k) up to a factor. Returns that factor's logarithm, or nan if some
    word has probability 0 under every topic.
    """
    indptr, words, counts = entries
    theta, taken = local.theta[d], local.taken[d]
    _log_theta_bound(local.mean[d], local.var[d], theta)
    num_topics = theta.shape[0]
    shift = theta[0]
    for k in range(1, num_topics):
        shift = max(shift, theta[k])
    for k in range(num_topics):
        theta[k] = math.exp(theta[k] - shift)
        taken[k] = 0.0
    for entry in range(indptr[d], indptr[d + 1]):
        word_probs = fixed.by_word[words[entry]]
        total = dot(theta, word_probs)
        if not total > 0.0:
            return math.nan
        weight = counts[entry] / total
        local.weights[entry] = weight
        for k in range(num_topics):
            taken[k] += weight * word_probs[k]
    for k in range(num_topics):
        taken[k] *= theta[k]
    return shift


@jit(within=True)
def _load_systems(document, fixed, local, packed):
    """J and h of each lane's document given q(z), and the Gaussian system that they make."""
    n = fixed.precision.shape[0]
    _load_precision(fixed.precision, packed)
    for lane in range(WIDTH):
        d = document[lane]
        if d < 0:
            continue
        mean, var, J, h = local.mean[d], local.var[d], local.J[d], local.h[d]
        reaching = 0.0
        for k in range(n, -1, -1):
            count = local.taken[d, k]
            reaching += count
            if k < n:
                xi = math.sqrt(mean[k] * mean[k] + var[k])
                slope = 0.25 if xi < 1e-4 else math.tanh(0.5 * xi) / (2.0 * xi)
                J[k] = reaching * slope
                h[k] = count - 0.5 * reaching
                packed[row_at(k) + k * WIDTH + lane] += J[k]
                packed[row_at(n) + k * WIDTH + lane] = h[k] - J[k] * fixed.centre[k]
        packed[row_at(n) + n * WIDTH + lane] = 1.0


@jit(within=True)
def _score(d, lane, shift, entries, fixed, local, packed):
    """The bound's terms in one document, whose factors stand in a lane of `packed`."""
    indptr, words, counts = entries
    mean, var, J, h = local.mean[d], local.var[d], local.J[d], local.h[d]
    score = 0.0
    for entry in range(indptr[d], indptr[d + 1]):
        count = counts[entry]
        level = math.log(count / local.weights[entry]) + shift
        score += count * (level + fixed.word_shift[words[entry]])
    for k in range(mean.shape[0]):  # precision (mean - centre) is h - J mean: normal equations
        score -= 0.5 * (mean[k] - fixed.centre[k]) * (h[k] - J[k] * mean[k])
        score += 0.5 * J[k] * var[k]
        score += math.log(packed[row_at(k) + k * WIDTH + lane])
    return score


@jit
def infer_documents(worker, start, stop, entries, fixed, tolerance, max_steps, local):
    """Coordinate ascent in q(psi_d) and q(z_d) of each document, the globals fixed.

    A step is q(psi) given the expected counts and xi, then xi, then q(z). It ends when a step
    moves less than `tolerance` of the document's tokens between topics, or after `max_steps`.

    Returns 0, or 1 + a document that holds a word of probability 0 under every topic or whose
    Gaussian is not proper.
    """
    n = fixed.precision.shape[0]
    packed, x = np.empty(row_at(n + 1)), np.zeros(n * WIDTH)
    squares, row = np.empty(n * WIDTH), np.empty(n * WIDTH)
    document, before = np.full(WIDTH, -1), np.empty(n + 1)
    upcoming = start
    while True:
        for lane in range(WIDTH):
            if document[lane] < 0 and upcoming < stop:
                document[lane] = upcoming
                local.steps[upcoming] = 0
                upcoming += 1
                if math.isnan(_allocate_expected(upcoming - 1, entries, fixed, local)):
                    return upcoming
        if document.max() < 0:
            return 0
        _load_systems(document, fixed, local, packed)
        x[:] = 0.0
        solve_lanes(packed, x, n)
        invert_lanes(packed, n, row)
        squares_lanes(packed, squares, n)
        for lane in range(WIDTH):
            d = document[lane]
            if d < 0:
                continue
            for k in range(n):
                local.mean[d, k] = fixed.centre[k] + x[k * WIDTH + lane]
                local.var[d, k] = squares[k * WIDTH + lane]
            before[:] = local.taken[d]
            shift = _allocate_expected(d, entries, fixed, local)
            if not math.isfinite(shift):
                return 1 + d
            moved, tokens = 0.0, 0.0
            for k in range(n + 1):
                moved += 0.5 * abs(local.taken[d, k] - before[k])
                tokens += local.taken[d, k]
            local.steps[d] += 1
            if moved > tolerance * tokens and local.steps[d] < max_steps:
                continue
            local.scores[d] = _score(d, lane, shift, entries, fixed, local, packed)
            document[lane] = -1


@jit
def expected_word_counts(worker, start, stop, by_words, weights, theta, by_word, out):
    """out[w, k] = expected tokens of word w in topic k, summed over documents in their order.

    `by_words` is the corpus by words: where each begins, and its documents and entries there.
    """
    word_indptr, documents, entries = by_words
    num_topics = theta.shape[1]
    for w in range(start, stop):
        for k in range(num_topics):
            out[w, k] = 0.0
        for i in range(word_indptr[w], word_indptr[w + 1]):
            d, weight = documents[i], weights[entries[i]]
            for k in range(num_topics):
                out[w, k] += weight * theta[d, k]
        for k in range(num_topics):
            out[w, k] *= by_word[w, k]


@jit(within=True)
def _add_crossproducts(a, i, n, summed):
    """Add row i of A'A, A lower triangular, to `summed`, lane by lane."""
    row = row_at(i)
    j = 0
    while j + 4 <= i + 1:
        x0, x1 = load(summed, row + j * WIDTH), load(summed, row + (j + 1) * WIDTH)
        x2, x3 = load(summed, row + (j + 2) * WIDTH), load(summed, row + (j + 3) * WIDTH)
        for r in range(i, n):
            other_row = row_at(r)
            y = load(a, other_row + i * WIDTH)
            x0 = add_product(x0, y, load(a, other_row + j * WIDTH))
            x1 = add_product(x1, y, load(a, other_row + (j + 1) * WIDTH))
            x2 = add_product(x2, y, load(a, other_row + (j + 2) * WIDTH))
            x3 = add_product(x3, y, load(a, other_row + (j + 3) * WIDTH))
        store(summed, row + j * WIDTH, x0)
        store(summed, row + (j + 1) * WIDTH, x1)
        store(summed, row + (j + 2) * WIDTH, x2)
        store(summed, row + (j + 3) * WIDTH, x3)
        j += 4
    while j <= i:
        x = load(summed, row + j * WIDTH)
        for r in range(i, n):
            x = add_product(x, load(a, row_at(r) + i * WIDTH), load(a, row_at(r) + j * WIDTH))
        store(summed, row + j * WIDTH, x)
        j += 1


@jit
def add_covariances(packed, n, width, summed):
    """Add the covariances of the first lanes, whose inverse factors these are, lane by lane."""
    for lane in range(width, WIDTH):
        packed[lane::WIDTH] = 0.0
    for i in range(n):
        _add_crossproducts(packed, i, n, summed)


@jit
def write_sum(summed, out):
    """The sum over lanes, a lower triangle, into a matrix."""
    n = out.shape[0]
    for i in range(n):
        for j in range(i + 1):
            at = row_at(i) + j * WIDTH
            out[i, j] = summed[at : at + WIDTH].sum()
        out[i, i + 1 :] = 0.0


@jit
def sum_covariances(worker, start, stop, precision, J, totals):
    """totals[p] = sum of (precision + diag(J_d))^-1 over the p-th of equal pieces of documents.

    Lower triangles. The pieces do not depend on the split, so neither does their sum.
    """
    num_documents, n = J.shape
    pieces = totals.shape[0]
    packed, summed, row = np.empty(row_at(n)), np.empty(row_at(n)), np.empty(n * WIDTH)
    for piece in range(start, stop):
        summed[:] = 0.0
        end = num_documents * (piece + 1) // pieces
        for first in range(num_documents * piece // pieces, end, WIDTH):
            width = min(WIDTH, end - first)
            _load_precision(precision, packed)
            for lane in range(width):
                for i in range(n):
                    packed[row_at(i) + i * WIDTH + lane] += J[first + lane, i]
            factor_lanes(packed, n)
            invert_lanes(packed, n, row)
            add_covariances(packed, n, width, summed)
        write_sum(summed, totals[piece])
