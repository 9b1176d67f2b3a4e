"""The correlated topic model under the softmax: its row kernel, its state and its errors.

The joint-distribution and calibration tests of the sampler stand in tests/statistical.
"""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from pgmult import (
    LogisticNormal,
    MvNormal,
    polya_gamma,
)
from pgmult.compiled.streams import open_stream
from pgmult.core.validate import new_key
from pgmult.testing import conditional_ratio, rejects
from pgmult.topics import LogisticNormalTopics
from pgmult.topics.compiled import softmax
from pgmult.topics.compiled.softmax import sample_rows

ALL = np.iinfo(np.int64).max
MEAN = np.array([0.3, -0.5, 0.1, 0.8])
COV = np.array(
    [[1.5, 0.6, -0.3, 0.2], [0.6, 1.0, 0.1, 0.4], [-0.3, 0.1, 2.0, -0.5], [0.2, 0.4, -0.5, 1.2]]
)


def conditional_moments(psi, k, mean=MEAN, cov=COV):
    """Prior mean and variance of coordinate k given the others, from the covariance."""
    others = np.delete(np.arange(len(mean)), k)
    weights = np.linalg.solve(cov[np.ix_(others, others)], cov[others, k])
    return mean[k] + (psi[..., others] - mean[others]) @ weights, cov[k, k] - weights @ cov[
        others, k
    ]


def reference_sweep(rng, psi, counts):
    """The sweep of `sample_rows`, coordinate by coordinate on all rows, from the public parts."""
    psi = psi.copy()
    for k in range(psi.shape[1]):
        potential = LogisticNormal().augment_coordinate(rng, psi, counts, k)
        prior_mean, prior_var = conditional_moments(psi, k)
        precision = 1.0 / prior_var + potential.J
        mean = (prior_mean / prior_var + potential.h) / precision
        psi[:, k] = mean + rng.standard_normal(len(psi)) / np.sqrt(precision)
    ones = np.ones(psi.shape[1])
    weights = np.linalg.solve(COV, ones)
    shift_mean = (MEAN - psi) @ weights / weights.sum()
    shift = shift_mean + rng.standard_normal(len(psi)) / np.sqrt(weights.sum())
    return psi + shift[:, None]


def kernel_sweep(rng, psi, counts, *, trials=ALL, cov=COV):
    out = np.empty_like(psi)
    status = sample_rows(0, 0, len(psi), new_key(rng), counts, MEAN, cov, trials, psi, out)
    return status, out


@pytest.mark.parametrize(
    ("start", "counts"),
    [
        ([0.0, 0.5, -1.0, 0.2], [3, 0, 7, 1]),
        ([2.0, -2.0, 0.0, 1.0], [0, 40, 0, 2]),
        ([0.0, 0.0, 0.0, 0.0], [0, 0, 0, 0]),
        ([0.0, 900.0, -900.0, 5.0], [1, 2, 0, 1]),  # sums of exponentials over- and underflow
        ([0.0, -900.0, -800.0, -850.0], [2, 2, 0, 1]),
    ],
)
def test_a_sweep_has_the_law_of_an_independent_one(rng, start, counts):
    copies = 20_000
    psi, rows = np.tile(start, (copies, 1)), np.tile(counts, (copies, 1))
    status, kernel = kernel_sweep(rng, psi, rows)
    reference = reference_sweep(rng, psi, rows)
    assert status == 0
    for weights in [*np.eye(4), np.ones(4), np.array([1.0, -1.0, 0.5, -0.5])]:
        assert stats.ks_2samp(kernel @ weights, reference @ weights).pvalue > 1e-4
    cross = [np.cov(draws.T) for draws in (kernel, reference)]
    np.testing.assert_allclose(*cross, atol=0.1 * np.abs(cross[1]).max())


def coordinate_block(k, shift=0.0):
    """Log joint of psi_k and omega given the rest, and the log density that psi_k is drawn from."""
    rng = np.random.default_rng(4)
    psi, counts = np.array([0.4, -1.0, 0.7, 0.1]), np.array([3, 0, 2, 1])
    potential = LogisticNormal().augment_coordinate(rng, psi, counts, k)
    prior_mean, prior_var = conditional_moments(psi, k)
    zeta = np.log(np.exp(np.delete(psi, k)).sum())

    def log_joint(value):
        point = psi.copy()
        point[k] = value
        tilt = value - zeta
        # PG(omega | N, tilt) / PG(omega | N, 0) = cosh(tilt / 2)**N exp(-omega tilt**2 / 2)
        log_omega = counts.sum() * np.log(np.cosh(tilt / 2.0)) - potential.J * tilt**2 / 2.0
        likelihood = LogisticNormal().log_likelihood(point, counts)
        return MvNormal(MEAN, COV).log_density(point) + likelihood + log_omega

    precision = 1.0 / prior_var + potential.J
    mean = (prior_mean / prior_var + potential.h + shift) / precision
    return log_joint, lambda value: -0.5 * precision * (value - mean) ** 2


@pytest.mark.parametrize("k", range(4))
def test_conditional_of_a_coordinate(k):
    points = np.linspace(-2.0, 3.0, 6)
    conditional_ratio(*coordinate_block(k), points)
    rejects(conditional_ratio, *coordinate_block(k, shift=0.1), points)


def test_sum_of_other_exponentials_is_right_where_it_overflows():
    psi = np.array([0.0, 2000.0, -2000.0, 1.0])
    for k in range(4):
        others = np.delete(psi, k)
        expected = others.max() + np.log(np.exp(others - others.max()).sum())
        assert softmax._log_sum_of_others(psi, k) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("tilt", [0.0, 1e-5, -0.7, 6.0])
def test_fewer_trials_keep_the_mean_and_the_variance(rng, tilt):
    """... of PG(60, tilt), but not its shape."""
    total, copies = 60, 10_000

    def draws(trials):
        key, omegas = new_key(rng), np.empty(copies)
        for i in range(copies):
            state = tuple(np.uint64(word) for word in open_stream(key, i))
            omegas[i], _ = softmax._draw_omega(total, tilt, trials, state)
        return omegas

    few = draws(5)
    mean, var = polya_gamma.mean(total, tilt), polya_gamma.var(total, tilt)
    assert abs(few.mean() - mean) < 4.5 * np.sqrt(var / copies)
    assert abs(few.var() / var - 1.0) < 0.15
    assert stats.ks_2samp(few, draws(ALL)).pvalue < 1e-4


def test_trials_matter_for_longer_documents_only(rng, corpus):
    """With as many trials as the longest document has tokens nothing is approximated."""
    longest = int(corpus.totals.max())

    def draw(trials):
        model = LogisticNormalTopics(3, approximate_trials=trials, start_sweeps=1)
        rng = np.random.default_rng(0)
        return model.step(rng, model.init(rng, corpus), corpus).psi

    exact = draw(None)
    np.testing.assert_array_equal(draw(longest), exact)
    changed = (draw(longest - 5) != exact).any(axis=1)
    np.testing.assert_array_equal(changed, corpus.totals > longest - 5)


def test_singular_covariance_is_refused(rng, corpus):
    model = LogisticNormalTopics(3)
    state = dataclasses.replace(model.init(rng, corpus), Sigma=np.ones((3, 3)))
    with pytest.raises(FloatingPointError, match="Sigma is singular"):
        model.step(rng, state, corpus)


def test_kernel_reports_what_it_cannot_draw(rng):
    psi, counts = np.zeros((3, 4)), np.ones((3, 4), dtype=np.int64)
    assert kernel_sweep(rng, psi, counts, cov=np.ones((4, 4)))[0] == -1
    psi[1] = np.nan
    assert kernel_sweep(rng, psi, counts)[0] == 2
