"""Components of a mixture of Gaussians: the moments of their shares of data, and distances."""

from typing import Any, NamedTuple

import numpy as np

from pgmult.compiled.jit import jit


class Laws(NamedTuple):
    """Means, strengths and scales of a normal-inverse-Wishart law, or of one a component."""

    mean: Any
    strength: Any
    scale: Any


@jit
def weigh_components(worker, start, stop, x, shares, prior, out):
    """The normal-inverse-Wishart posterior of components given their shares of each row."""
    prior_mean, prior_strength, prior_scale = prior
    mean, strength, scale = out
    num_rows, depth = x.shape
    deviation = np.empty(depth)
    for k in range(start, stop):
        strength[k] = prior_strength
        mean[k] = 0.0
        for n in range(num_rows):
            strength[k] += shares[n, k]
            for i in range(depth):
                mean[k, i] += shares[n, k] * (x[n, i] - prior_mean[i])
        for i in range(depth):
            mean[k, i] = prior_mean[i] + mean[k, i] / strength[k]
        scale[k] = prior_scale
        for n in range(-1, num_rows):
            weight = prior_strength if n < 0 else shares[n, k]
            for i in range(depth):
                deviation[i] = (prior_mean[i] if n < 0 else x[n, i]) - mean[k, i]
            for i in range(depth):
                for j in range(i + 1):
                    scale[k, i, j] += weight * deviation[i] * deviation[j]
        for i in range(depth):
            for j in range(i):
                scale[k, j, i] = scale[k, i, j]


@jit
def add_distances(worker, start, stop, x, mean, root, factor, logits):
    """logits[n, k] += factor[k] * |root_k^-1 (x_n - mean_k)|**2, with lower triangular roots."""
    depth = x.shape[1]
    white = np.empty(depth)
    for n in range(start, stop):
        for k in range(mean.shape[0]):
            total = 0.0
            for i in range(depth):
                value = x[n, i] - mean[k, i]
                for j in range(i):
                    value -= root[k, i, j] * white[j]
                white[i] = value / root[k, i, i]
                total += white[i] * white[i]
            logits[n, k] += factor[k] * total
