"""Unbiased estimates of p(words of a document | topics, prior of theta), by annealing.

Words come relative to a background distribution m: ``relative[w, k] = topics[k, w] / m[w]``, and so
do the results: log (p(words) / prod m). Two priors of theta: Gaussian sticks, whose Gibbs steps run
for eight runs at a time, and the Dirichlet.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import row_at, solve_lanes
from pgmult.compiled.polya_gamma import draw_integer
from pgmult.compiled.simd import WIDTH, splat, store
from pgmult.compiled.sticks import probs_rows
from pgmult.compiled.streams import log_gamma, normal, open_stream, uniform

from .tokens import dot


@jit
def _pick_topic(theta, there, threshold):
    """The first topic at which the running sum of theta * there passes `threshold`."""
    last = theta.shape[0] - 1
    k, running = 0, theta[0] * there[0]
    while running <= threshold and k < last:
        k += 1
        running += theta[k] * there[k]
    return k


class Sticks(NamedTuple):
    """The Gaussian prior of a document's sticks."""

    precision: NDArray[np.float64]  # (n, n)
    root: NDArray[np.float64]  # the Cholesky factor of the covariance
    centre: NDArray[np.float64]  # (n,)


@jit
def _draw_sticks(topic_counts, prior, psi, state):
    """Pólya-gamma variables and then the sticks of runs, `WIDTH` of them at a time.

    One Gibbs step on `psi`, given the counts of topics and the prior. Returns the stream's state; a
    psi that is not finite means that the precision is not positive definite.
    """
    precision, centre = prior.precision, prior.centre
    n = centre.shape[0]
    packed, x = np.empty(row_at(n + 1)), np.empty(n * WIDTH)
    for first in range(0, psi.shape[0], WIDTH):
        width = min(WIDTH, psi.shape[0] - first)
        for i in range(n):
            for j in range(i + 1):
                store(packed, row_at(i) + j * WIDTH, splat(precision[i, j]))
            store(packed, row_at(n) + i * WIDTH, splat(0.0))
        store(packed, row_at(n) + n * WIDTH, splat(1.0))
        for lane in range(width):
            r = first + lane
            reaching = topic_counts[r].sum()
            for k in range(n):
                if reaching == 0:
                    break
                omega, state = draw_integer(reaching, psi[r, k], state)
                packed[row_at(k) + k * WIDTH + lane] += omega
                pull = topic_counts[r, k] - 0.5 * reaching - omega * centre[k]
                packed[row_at(n) + k * WIDTH + lane] = pull
                reaching -= topic_counts[r, k]
        for k in range(n):
            for lane in range(width):
                x[k * WIDTH + lane], state = normal(state)
        solve_lanes(packed, x, n)
        for lane in range(width):
            for k in range(n):
                psi[first + lane, k] = centre[k] + x[k * WIDTH + lane]
    return state


@jit
def _sticks_of_prior(prior, psi, state):
    """Fill rows of `psi` from their prior."""
    root, centre = prior.root, prior.centre
    n = centre.shape[0]
    noise = np.empty(n)
    for r in range(psi.shape[0]):
        for k in range(n):
            noise[k], state = normal(state)
            psi[r, k] = centre[k]
            for j in range(k + 1):
                psi[r, k] += root[k, j] * noise[j]
    return state


@jit
def _draw_theta(alpha, topic_counts, theta, state):
    """Draw theta from Dirichlet(alpha + topic_counts), in log space: alpha may be tiny."""
    largest = -math.inf
    for k in range(alpha.shape[0]):
        theta[k], state = log_gamma(alpha[k] + topic_counts[k], state)
        largest = max(largest, theta[k])
    total = 0.0
    for k in range(alpha.shape[0]):
        theta[k] = math.exp(theta[k] - largest)
        total += theta[k]
    for k in range(alpha.shape[0]):
        theta[k] /= total
    return state


@jit
def _anneal_weight(entries, d, dots, here, there):
    """Log of the ratio of the likelihoods with shares `there` and `here` of words from topics."""
    indptr, _, counts = entries
    total = 0.0
    for entry in range(indptr[d], indptr[d + 1]):
        dot = dots[entry - indptr[d]]
        after = 1.0 - there + there * dot
        if not after > 0.0:
            return -math.inf
        total += counts[entry] * math.log(after / (1.0 - here + here * dot))
    return total


@jit
def _allocate_share(entries, relative, d, theta, dots, share, topic_counts, state):
    """Draw which tokens come from topics at all, and the topics of those: their counts."""
    indptr, words, counts = entries
    topic_counts[:] = 0
    for entry in range(indptr[d], indptr[d + 1]):
        dot = dots[entry - indptr[d]]
        scale = (1.0 - share + share * dot) / share
        for _ in range(counts[entry]):
            u, state = uniform(state)
            if u * scale < dot:
                topic_counts[_pick_topic(theta, relative[words[entry]], u * scale)] += 1
    return state


@jit
def _fill_dots(entries, relative, d, theta, dots):
    """Probability under theta of each entry's word, relative to the background."""
    indptr, words, _ = entries
    for entry in range(indptr[d], indptr[d + 1]):
        dots[entry - indptr[d]] = dot(theta, relative[words[entry]])


@jit
def anneal_sticks(worker, start, stop, key, entries, relative, prior, shares, out):
    """Annealed importance sampling under Gaussian sticks.

    Parameters
    ----------
    relative : (num_words, num_topics)
    prior : Sticks
    shares : increasing from 0 to 1: the tokens' probability to come from topics.
    out : (num_documents, runs): log weights, one an independent run.

    Returns 0, or 1 + a document whose sticks are not finite.
    """
    n = prior.centre.shape[0]
    runs = out.shape[1]
    order = np.arange(n + 1)
    psi, theta = np.empty((runs, n)), np.empty((runs, n + 1))
    topic_counts = np.zeros((runs, n + 1), dtype=np.int64)
    for d in range(start, stop):
        state = open_stream(key, d)
        dots = np.empty(entries.indptr[d + 1] - entries.indptr[d])
        state = _sticks_of_prior(prior, psi, state)
        out[d] = 0.0
        for s in range(1, shares.shape[0]):
            probs_rows(worker, 0, runs, psi, order, theta)
            for r in range(runs):
                _fill_dots(entries, relative, d, theta[r], dots)
                out[d, r] += _anneal_weight(entries, d, dots, shares[s - 1], shares[s])
                state = _allocate_share(
                    entries, relative, d, theta[r], dots, shares[s], topic_counts[r], state
                )
            if s == shares.shape[0] - 1:
                break
            state = _draw_sticks(topic_counts, prior, psi, state)
            if not np.isfinite(psi).all():
                return 1 + d
    return 0


@jit
def anneal_dirichlet(worker, start, stop, key, entries, relative, alpha, shares, out):
    """As `anneal_sticks`, under theta ~ Dirichlet(alpha)."""
    theta = np.empty(alpha.shape[0])
    topic_counts = np.zeros(alpha.shape[0], dtype=np.int64)
    for d in range(start, stop):
        state = open_stream(key, d)
        dots = np.empty(entries.indptr[d + 1] - entries.indptr[d])
        for r in range(out.shape[1]):
            out[d, r] = 0.0
            topic_counts[:] = 0
            for s in range(1, shares.shape[0]):
                state = _draw_theta(alpha, topic_counts, theta, state)
                _fill_dots(entries, relative, d, theta, dots)
                out[d, r] += _anneal_weight(entries, d, dots, shares[s - 1], shares[s])
                state = _allocate_share(
                    entries, relative, d, theta, dots, shares[s], topic_counts, state
                )
    return 0
