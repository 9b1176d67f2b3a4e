"""Gaussian approximations of documents' eta in the logistic normal topic model, many at a time.

Documents sit in the lanes of one batch of Gaussian systems (see pgmult.compiled.simd). A lane whose
document is done takes the next one; what a document ends with depends on itself alone, not on its
neighbours in the batch and not on the split among threads.

With N tokens, prior N(centre, precision^-1) and shares rho on the simplex, every method climbs with

    H = precision + N (diag rho - rho rho'),

positive definite whatever rho is: rho is softmax(m) but for the bound, where it is
softmax(m + v / 2). See `pgmult.topics.fits.logistic_normal` for what is climbed.
"""

import math

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import _factor_lanes, _row, _solve_upper_lanes
from pgmult.compiled.simd import WIDTH, add_product, load, splat, store, subtract_product

from .variational_topics import _add_crossproducts, _invert_lanes

LAPLACE, DELTA, DIAGONAL_DELTA, BOUND = 0, 1, 2, 3

_MOST_HALVINGS = 40
_SUFFICIENT = 1e-4  # of the rise that the gradient promises (Armijo)
_SLACK = 1e-12  # of a value: what rounding may take from a rise
_LARGEST = 700.0  # exponent


@jit(reassociate=True)
def _dot(a, b):
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@jit
def _log_sum(x, var):
    """Logarithm of the sum of exp(x + var / 2)."""
    largest = -math.inf
    for k in range(x.shape[0]):
        largest = max(largest, x[k] + 0.5 * var[k])
    total = 0.0
    for k in range(x.shape[0]):
        total += math.exp(x[k] + 0.5 * var[k] - largest)
    return largest + math.log(total)


@jit
def _allocate_words(d, indptr, words, counts, by_word, mean, shares, taken, weights):
    """q(z) of one document: a token's topic probabilities are proportional to exp(m_k) by_word.

    They are shares[k] by_word[w, k] weights[entry] / count, with shares = exp(m - max m); `taken`
    are the expected tokens of each topic. Returns the sum over tokens of log sum_k exp(m_k)
    by_word[w, k], or nan if some word has probability 0 under every topic.
    """
    num_topics = mean.shape[0]
    shift = mean[0]
    for k in range(1, num_topics):
        shift = max(shift, mean[k])
    for k in range(num_topics):
        shares[k] = math.exp(mean[k] - shift)
        taken[k] = 0.0
    score = 0.0
    for entry in range(indptr[d], indptr[d + 1]):
        there = by_word[words[entry]]
        total = _dot(shares, there)
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
def _best_var(mean, count, precision, var):
    """The variances that maximise the bound given the means, in place; returns log zeta.

    Given zeta, 1 / v_k = precision_kk + N exp(m_k + v_k / 2) / zeta, by Newton in log v_k, where
    the equation is increasing and convex. Then zeta is the sum of exp(m_k + v_k / 2), by Newton in
    its logarithm; where that does not come nearer, by the plain step, which always ascends.
    """
    n = mean.shape[0]
    log_zeta = _log_sum(mean, var)
    previous = math.inf
    for _ in range(200):
        for k in range(n):
            u = math.log(var[k])
            for _ in range(100):
                v = math.exp(u)
                pull = count * math.exp(min(mean[k] - log_zeta + 0.5 * v, _LARGEST))
                excess = u + math.log(precision[k, k] + pull)
                u -= excess / (1.0 + 0.5 * v * pull / (precision[k, k] + pull))
                if abs(excess) < 1e-14 * (1.0 + abs(u)):
                    break
            var[k] = math.exp(u)
        total = _log_sum(mean, var)
        gap = total - log_zeta
        if abs(gap) < 1e-14 * (1.0 + abs(total)):
            return total
        slope = 1.0
        for k in range(n):
            rho = math.exp(mean[k] + 0.5 * var[k] - total)
            pull = 0.5 * count * math.exp(mean[k] + 0.5 * var[k] - log_zeta) * var[k] * var[k]
            slope -= rho * pull / (1.0 + pull)
        log_zeta += gap / slope if abs(gap) < previous else gap
        previous = abs(gap)
    return total


@jit
def _level(method, count, score, mean, precision, centre, var, rho, pull):
    """What is climbed but for log determinants; also rho and pull = precision (m - centre)."""
    n = mean.shape[0]
    log_zeta = _best_var(mean, count, precision, var) if method == BOUND else _log_sum(mean, var)
    quadratic = 0.0
    for k in range(n):
        pull[k] = 0.0
    for i in range(n):
        deviation = mean[i] - centre[i]
        for k in range(n):
            pull[k] += precision[i, k] * deviation
    value = score - count * log_zeta
    for k in range(n):
        rho[k] = math.exp(mean[k] + 0.5 * var[k] - log_zeta)
        quadratic += pull[k] * (mean[k] - centre[k])
        if method == BOUND:
            value += 0.5 * (math.log(var[k]) - precision[k, k] * var[k])
        elif method == DIAGONAL_DELTA:
            value -= 0.5 * math.log(precision[k, k] + count * rho[k] * (1.0 - rho[k]))
    return value - 0.5 * quadratic


@jit
def _load_curvatures(precision, rho, scaled, packed):
    """H of each lane, packed; `rho` and `scaled` = N rho are rows of lanes."""
    for i in range(precision.shape[0]):
        row, left = _row(i), load(scaled, i * WIDTH)
        for j in range(i + 1):
            x = subtract_product(splat(precision[i, j]), left, load(rho, j * WIDTH))
            store(packed, row + j * WIDTH, x)
        x = add_product(load(packed, row + i * WIDTH), left, splat(1.0))
        store(packed, row + i * WIDTH, x)


@jit
def _product_lanes(a, x, y, n):
    """Write A' A x into y, A a packed lower triangle of lanes; y must not be x."""
    for k in range(n):
        store(y, k * WIDTH, splat(0.0))
    for i in range(n):
        row, total = _row(i), splat(0.0)
        for k in range(0, (i + 1) * WIDTH, WIDTH):
            total = add_product(total, load(a, row + k), load(x, k))
        for k in range(0, (i + 1) * WIDTH, WIDTH):
            store(y, k, add_product(load(y, k), load(a, row + k), total))


@jit
def _squares_lanes(a, y, n):
    """Write the diagonal of A' A into y."""
    for k in range(n):
        store(y, k * WIDTH, splat(0.0))
    for i in range(n):
        row = _row(i)
        for k in range(0, (i + 1) * WIDTH, WIDTH):
            x = load(a, row + k)
            store(y, k, add_product(load(y, k), x, x))


@jit
def _add_trace_gradient(count, rho, variances, products, gradient):
    """Add half the gradient of -N Tr((diag rho - rho rho') S) with respect to m, S held fixed.

    `variances` are the diagonal of S and `products` S rho.
    """
    n = rho.shape[0]
    mean_variance = _dot(rho, variances)
    quadratic = _dot(rho, products)
    for k in range(n):
        inner = mean_variance - variances[k] + 2.0 * (products[k] - quadratic)
        gradient[k] += 0.5 * count * rho[k] * inner


@jit
def infer_eta(
    worker, start, stop, method, indptr, words, counts, totals, by_word, precision, centre,
    tolerance, max_steps, mean, var, shares, taken, weights, scores, steps, is_done,
):  # fmt: skip
    """Climb from `mean` to the approximation of each document, q(z) kept at its best.

    A step is H^-1 gradient, halved until the level rises enough. The climb ends when a step is no
    longer than `tolerance` in standard deviations, or after `max_steps`.

    Parameters
    ----------
    by_word : (num_words, num_topics), word probabilities of topics.
    mean, var : in and out, (num_documents, num_topics). `var` is read and written by the bound
        alone; for the other methods it must be zero.
    shares, taken : out, (num_documents, num_topics), and weights, (num_entries,): see
        `_allocate_words`, whose value goes to scores, (num_documents,).
    steps, is_done : out, (num_documents,): points tried, and whether the last step was short.

    Returns 0, or 1 + a document that holds a word of probability 0 under every topic, or for
    which H is singular to working precision.
    """
    n = centre.shape[0]
    packed = np.empty(_row(n + 1))
    rho, scaled = np.zeros(n * WIDTH), np.zeros(n * WIDTH)
    x, products = np.zeros(n * WIDTH), np.zeros(n * WIDTH)
    squares, row = np.zeros(n * WIDTH), np.empty(n * WIDTH)
    document = np.full(WIDTH, -1)
    trial, step = np.empty((WIDTH, n)), np.empty((WIDTH, n))
    trial_var, kept_var = np.zeros((WIDTH, n)), np.zeros((WIDTH, n))
    gradient, spread, sent = np.empty((WIDTH, n)), np.empty(n), np.empty(n)
    here_rho, here_pull = np.empty(n), np.empty(n)
    level, value = np.empty(WIDTH), np.empty(WIDTH)
    score, scale, promise = np.empty(WIDTH), np.empty(WIDTH), np.empty(WIDTH)
    halvings = np.zeros(WIDTH, dtype=np.int64)
    upcoming, busy = start, 0
    while True:
        for lane in range(WIDTH):
            if document[lane] < 0 and upcoming < stop:
                d = upcoming
                upcoming += 1
                busy += 1
                document[lane] = d
                steps[d] = 0
                is_done[d] = False
                level[lane] = -math.inf
                scale[lane], promise[lane], halvings[lane] = 1.0, 0.0, 0
                for k in range(n):
                    trial[lane, k] = mean[d, k]
                    trial_var[lane, k] = var[d, k]
        if busy == 0:
            return 0
        for lane in range(WIDTH):
            d = document[lane]
            if d < 0:  # an idle lane factors the prior
                for k in range(n):
                    rho[k * WIDTH + lane] = 0.0
                    scaled[k * WIDTH + lane] = 0.0
                continue
            score[lane] = _allocate_words(
                d, indptr, words, counts, by_word, trial[lane], shares[d], taken[d], weights
            )
            if math.isnan(score[lane]):
                return 1 + d
            value[lane] = _level(
                method, totals[d], score[lane], trial[lane], precision, centre, trial_var[lane],
                here_rho, here_pull,
            )  # fmt: skip
            for k in range(n):
                rho[k * WIDTH + lane] = here_rho[k]
                scaled[k * WIDTH + lane] = totals[d] * here_rho[k]
                gradient[lane, k] = taken[d, k] - totals[d] * here_rho[k] - here_pull[k]
                if method == DIAGONAL_DELTA:
                    share = here_rho[k]
                    spread[k] = 1.0 / (precision[k, k] + totals[d] * share * (1.0 - share))
                    sent[k] = spread[k] * share
            if method == DIAGONAL_DELTA:
                _add_trace_gradient(totals[d], here_rho, spread, sent, gradient[lane])
        _load_curvatures(precision, rho, scaled, packed)
        if method == DELTA:
            _factor_lanes(packed, n)
            for lane in range(WIDTH):
                if document[lane] >= 0:
                    for k in range(n):  # the diagonal of the factor is stored as its reciprocal
                        value[lane] += math.log(packed[_row(k) + k * WIDTH + lane])
            _invert_lanes(packed, n, row)
            _product_lanes(packed, rho, products, n)
            _squares_lanes(packed, squares, n)
            for lane in range(WIDTH):
                d = document[lane]
                if d < 0:
                    continue
                for k in range(n):
                    here_rho[k] = rho[k * WIDTH + lane]
                    spread[k] = squares[k * WIDTH + lane]
                    sent[k] = products[k * WIDTH + lane]
                _add_trace_gradient(totals[d], here_rho, spread, sent, gradient[lane])
                for k in range(n):
                    x[k * WIDTH + lane] = gradient[lane, k]
            _product_lanes(packed, x, products, n)
            for k in range(n):
                store(x, k * WIDTH, load(products, k * WIDTH))
        else:
            for lane in range(WIDTH):
                for k in range(n):
                    known = gradient[lane, k] if document[lane] >= 0 else 0.0
                    packed[_row(n) + k * WIDTH + lane] = known
                packed[_row(n) + n * WIDTH + lane] = 1.0
            _factor_lanes(packed, n + 1)
            for k in range(n):
                store(x, k * WIDTH, load(packed, _row(n) + k * WIDTH))
            _solve_upper_lanes(packed, x, n)
        for lane in range(WIDTH):
            d = document[lane]
            if d < 0:
                continue
            steps[d] += 1
            least = level[lane] + _SUFFICIENT * scale[lane] * promise[lane]
            good = value[lane] >= least - _SLACK * (1.0 + abs(value[lane]))
            if good:
                rise = 0.0
                for k in range(n):
                    mean[d, k] = trial[lane, k]
                    kept_var[lane, k] = trial_var[lane, k]
                    step[lane, k] = x[k * WIDTH + lane]
                    rise += step[lane, k] * gradient[lane, k]
                if not math.isfinite(rise):
                    return 1 + d
                level[lane], promise[lane] = value[lane], rise
                scale[lane], halvings[lane] = 1.0, 0
                scores[d] = score[lane]
                is_done[d] = rise <= tolerance * tolerance
                if is_done[d] or steps[d] >= max_steps:
                    for k in range(n):
                        var[d, k] = kept_var[lane, k]
                    document[lane] = -1
                    busy -= 1
                    continue
            else:
                scale[lane] *= 0.5
                halvings[lane] += 1
                if level[lane] == -math.inf:
                    return 1 + d
                if halvings[lane] > _MOST_HALVINGS or steps[d] >= max_steps:
                    scores[d] = _allocate_words(
                        d, indptr, words, counts, by_word, mean[d], shares[d], taken[d], weights
                    )
                    for k in range(n):
                        var[d, k] = kept_var[lane, k]
                    document[lane] = -1
                    busy -= 1
                    continue
            for k in range(n):
                trial[lane, k] = mean[d, k] + scale[lane] * step[lane, k]
                trial_var[lane, k] = kept_var[lane, k]


@jit
def _rho_of_lanes(first, width, totals, mean, rho, scaled):
    """Write softmax(mean) of documents, and N times it, into lanes; idle lanes get zeros."""
    n = mean.shape[1]
    nothing = np.zeros(n)
    for k in range(n * WIDTH):
        rho[k], scaled[k] = 0.0, 0.0
    for lane in range(width):
        d = first + lane
        log_zeta = _log_sum(mean[d], nothing)
        for k in range(n):
            share = math.exp(mean[d, k] - log_zeta)
            rho[k * WIDTH + lane] = share
            scaled[k * WIDTH + lane] = totals[d] * share


@jit
def sum_moments(
    worker, start, stop, method, is_full, totals, scores, precision, centre, mean, var,
    cov_sums, levels,
):  # fmt: skip
    """Variances, levels and summed covariances of documents, by equal pieces of documents.

    cov_sums[p], (n, n), lower triangles, is the sum over the p-th piece. The pieces do not depend
    on the split, so neither does their sum. `levels` are what each method climbs, all constants of
    eta in, so that they sum to the objective.

    Returns 0, or 1 + a document for which H is singular to working precision.
    """
    num_documents, n = mean.shape
    pieces = cov_sums.shape[0]
    packed, summed = np.empty(_row(n)), np.empty(_row(n))
    rho, scaled = np.zeros(n * WIDTH), np.zeros(n * WIDTH)
    squares, row = np.empty(n * WIDTH), np.empty(n * WIDTH)
    here_rho, here_pull, known_var = np.empty(n), np.empty(n), np.zeros(n)
    root = precision.copy()
    half_log_det = 0.0
    for i in range(n):
        for j in range(i + 1):
            total = root[i, j]
            for k in range(j):
                total -= root[i, k] * root[j, k]
            root[i, j] = total / root[j, j] if i > j else math.sqrt(total)
        half_log_det += math.log(root[i, i])
    for piece in range(start, stop):
        summed[:] = 0.0
        cov_sums[piece] = 0.0
        end = num_documents * (piece + 1) // pieces
        for first in range(num_documents * piece // pieces, end, WIDTH):
            width = min(WIDTH, end - first)
            for lane in range(width):
                d = first + lane
                if method == BOUND:
                    for k in range(n):
                        known_var[k] = var[d, k]
                levels[d] = half_log_det + _level(
                    method, totals[d], scores[d], mean[d], precision, centre, known_var,
                    here_rho, here_pull,
                )  # fmt: skip
                if method == BOUND:
                    levels[d] += 0.5 * n
                elif not is_full:
                    for k in range(n):
                        var[d, k] = 1.0 / (
                            precision[k, k] + totals[d] * here_rho[k] * (1.0 - here_rho[k])
                        )
                        if method == LAPLACE:
                            levels[d] += 0.5 * math.log(var[d, k])
                if not is_full:
                    for k in range(n):
                        cov_sums[piece, k, k] += var[d, k]
            if not is_full:
                continue
            _rho_of_lanes(first, width, totals, mean, rho, scaled)
            _load_curvatures(precision, rho, scaled, packed)
            _factor_lanes(packed, n)
            for lane in range(width):
                for k in range(n):
                    levels[first + lane] += math.log(packed[_row(k) + k * WIDTH + lane])
            _invert_lanes(packed, n, row)
            _squares_lanes(packed, squares, n)
            for lane in range(width):
                d = first + lane
                for k in range(n):
                    var[d, k] = squares[k * WIDTH + lane]
            for lane in range(width, WIDTH):
                packed[lane::WIDTH] = 0.0
            for i in range(n):
                _add_crossproducts(packed, i, n, summed)
        if is_full:
            for i in range(n):
                for j in range(i + 1):
                    at = _row(i) + j * WIDTH
                    cov_sums[piece, i, j] = summed[at : at + WIDTH].sum()
    return 0


@jit
def _add_softmax(psi, weight, out):
    """Add weight softmax(psi) to out; psi is overwritten."""
    largest = psi[0]
    for k in range(1, psi.shape[0]):
        largest = max(largest, psi[k])
    total = 0.0
    for k in range(psi.shape[0]):
        psi[k] = math.exp(psi[k] - largest)
        total += psi[k]
    for k in range(psi.shape[0]):
        out[k] += weight * psi[k] / total


@jit
def mean_softmax(worker, start, stop, is_full, totals, precision, mean, var, noise, out):
    """out[d] = average of softmax over eta = mean_d +- S_d^1/2 noise_s.

    S_d is H^-1 where `is_full`, and the diagonal of `var` where not.
    """
    num_points, n = noise.shape
    packed = np.empty(_row(n))
    rho, scaled = np.zeros(n * WIDTH), np.zeros(n * WIDTH)
    x, psi = np.empty(n * WIDTH), np.empty(n)
    weight = 0.5 / num_points
    for first in range(start, stop, WIDTH):
        width = min(WIDTH, stop - first)
        if is_full:
            _rho_of_lanes(first, width, totals, mean, rho, scaled)
            _load_curvatures(precision, rho, scaled, packed)
            _factor_lanes(packed, n)
        out[first : first + width] = 0.0
        for point in range(num_points):
            for k in range(n):
                store(x, k * WIDTH, splat(noise[point, k]))
            if is_full:
                _solve_upper_lanes(packed, x, n)
            else:
                for lane in range(width):
                    for k in range(n):
                        x[k * WIDTH + lane] *= math.sqrt(var[first + lane, k])
            for lane in range(width):
                d = first + lane
                for k in range(n):
                    psi[k] = mean[d, k] + x[k * WIDTH + lane]
                _add_softmax(psi, weight, out[d])
                for k in range(n):
                    psi[k] = mean[d, k] - x[k * WIDTH + lane]
                _add_softmax(psi, weight, out[d])
