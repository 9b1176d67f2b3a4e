"""Fields against truths that are no Gaussian processes of sticks."""

import numpy as np
import pytest

import pgmult
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Matern


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")  # short on purpose
def test_intervals_cover_shares_of_a_softmax_whose_counts_scatter():
    """Softmax curves with a peak in time, and a Dirichlet effect of each cell: 90 % intervals.

    The shares behind the counts, those of the cells, are what a row's interval speaks of.
    """
    t = np.repeat(np.arange(20.0), 2)
    inputs = np.stack([t, np.tile([0.0, 1.0], 20)], axis=1)
    inside = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        peak = 1.5 * np.exp(-0.5 * np.square((t - rng.uniform(5, 15)) / 2.0))
        eta = np.stack([peak, 0.4 * inputs[:, 1] + 0.03 * t, 0.5 - 0.02 * t], axis=1)
        smooth = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
        shares = np.array([rng.dirichlet(60.0 * p) for p in smooth])
        counts = np.array([rng.multinomial(100, p) for p in shares])
        new = [[20.0, 0.0], [20.0, 1.0]]
        covariance = 1.0 * Matern(1.5, 7.0, active=[0]) * Matern(0.5, 1.0, active=[1])
        run = pgmult.sample(
            MultinomialGP(covariance, overdispersion=0.05), as_field(inputs, counts, new),
            draws=100, tune=25, chains=2, cores=1, random_seed=seed, progressbar=False,
        )  # fmt: skip
        answer = run.predict(inputs="seen")
        lower, upper = answer.interval(0.9)
        inside.append(((lower <= shares) & (shares <= upper)).mean())
    assert 0.84 <= np.mean(inside) <= 0.95, inside
