"""Exact probabilities of tiny documents, theta integrated out: by enumeration and by quadrature."""

import itertools

import numpy as np
from scipy.special import gammaln

from pgmult import StickBreaking


def under_dirichlet(tokens, topics, alpha):
    """The sum over all assignments of topics to tokens; K**N terms."""
    num_topics, num_tokens = len(topics), len(tokens)
    total = 0.0
    for z in itertools.product(range(num_topics), repeat=num_tokens):
        counts = np.bincount(z, minlength=num_topics)
        log_prior = (gammaln(alpha + counts) - gammaln(alpha)).sum()
        log_prior += gammaln(alpha.sum()) - gammaln(alpha.sum() + num_tokens)
        total += np.exp(log_prior) * np.prod(topics[list(z), tokens])
    return total


def under_two_sticks(tokens, topics, mean, cov, nodes=60):
    """Gauss-Hermite quadrature over both sticks of three topics."""
    x, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = np.outer(weights, weights).ravel() / weights.sum() ** 2
    grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    theta = StickBreaking().probs(mean + grid @ np.linalg.cholesky(cov).T)
    return weights @ np.prod((theta @ topics)[:, tokens], axis=1)
