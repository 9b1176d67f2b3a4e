"""Priors of the scales of a covariance: their marginals, their conditionals, and mutants."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pgmult import MatrixNormalInverseWishart, NormalInverseWishart
from pgmult.priors import HalfTScales
from pgmult.priors.gaussian import inverse_wishart_log_density
from pgmult.testing import conditional_ratio, mutant, rejects

NIW = NormalInverseWishart(
    mean=np.array([1.0, -0.5, 0.0]), strength=2.0, dof=6.0, scale=np.diag([2.0, 0.5, 1.0]) + 0.2
)
SIGMA = np.array([[1.5, 0.4, -0.2], [0.4, 0.7, 0.1], [-0.2, 0.1, 2.0]])
HALF_T = HalfTScales(3.0, 1.7)


def test_standard_deviations_are_half_t_and_correlations_uniform(rng):
    scales, draws = HalfTScales(2.0, 1.3), 4000
    covs = np.array([scales.sample(rng, NIW).sample(rng)[1] for _ in range(draws)])
    sd = np.sqrt(np.einsum("dkk->dk", covs))
    for k in range(3):
        assert stats.kstest(sd[:, k], lambda x: 2 * stats.t.cdf(x / 1.3, 2) - 1).pvalue > 1e-4
    for j, k in ((0, 1), (1, 2)):
        correlation = covs[:, j, k] / (sd[:, j] * sd[:, k])
        assert stats.kstest(correlation, stats.uniform(-1, 2).cdf).pvalue > 1e-4


class Recorder:
    """In place of a generator: remembers the gamma variates that were asked for."""

    def gamma(self, shape, scale, size=None):
        self.law = stats.gamma(shape, scale=scale)
        return self.law.rvs(size=size, random_state=9)


def gamma_block(scales, prior_of):
    """Log joint of Sigma and the auxiliary scales, and the log density that `given` draws from."""
    recorder = Recorder()
    scales.given(recorder, SIGMA, NIW)

    def log_joint(auxiliary):
        conjugate, prior = prior_of(auxiliary)
        return inverse_wishart_log_density(SIGMA, conjugate.dof, conjugate.scale) + prior

    return log_joint, lambda auxiliary: np.sum(recorder.law.logpdf(auxiliary))


def half_t(b):
    conjugate = replace(NIW, dof=5.0, scale=6.0 * np.diag(b))  # dof 3, three coordinates
    return conjugate, stats.gamma.logpdf(b, 0.5, scale=1.7**2).sum()


POINTS = list(np.random.default_rng(3).gamma(2.0, size=(6, 3)))


def test_scales_given_a_covariance():
    conditional_ratio(*gamma_block(HALF_T, half_t), POINTS)


BROKEN = {
    "covariance for precision": lambda scales: mutant(
        scales, given=lambda self, rng, Sigma, prior: scales.given(rng, np.linalg.inv(Sigma), prior)
    ),
    "a coordinate less": lambda scales: mutant(
        scales,
        given=lambda self, rng, Sigma, prior: scales.given(
            rng, Sigma[1:, 1:], replace(prior, mean=prior.mean[1:], scale=prior.scale[1:, 1:])
        ),
    ),
    "another prior": lambda scales: replace(scales, scale=1.0),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_conditionals_are_refused(kind):
    prior_of, points = half_t, POINTS
    if kind == "a coordinate less":
        points = [b[0] for b in points]  # any shape: the densities no longer agree
        prior_of = lambda b: half_t(np.full(3, b))  # noqa: E731
    rejects(conditional_ratio, *gamma_block(BROKEN[kind](HALF_T), prior_of), points)


def test_what_given_returns_is_the_conjugate_prior_of_its_draw(rng):
    """And any conjugate prior keeps all but degrees of freedom and scale."""
    recorder = Recorder()
    found = HALF_T.given(recorder, SIGMA, NIW)
    b = recorder.law.rvs(size=3, random_state=9)
    np.testing.assert_allclose(found.scale, half_t(b)[0].scale)
    assert found.dof == half_t(b)[0].dof
    regression = MatrixNormalInverseWishart(np.ones((2, 3)), 2.0 * np.eye(2), 6.0, NIW.scale)
    for conjugate in (HALF_T.given(rng, SIGMA, regression), HALF_T.sample(rng, regression)):
        assert isinstance(conjugate, MatrixNormalInverseWishart)
        np.testing.assert_array_equal(conjugate.mean, regression.mean)
        np.testing.assert_array_equal(conjugate.row_precision, regression.row_precision)


def test_a_weak_prior_may_be_worth_more_rows():
    firm = NormalInverseWishart.weak(np.zeros(3), 3.0, rows=50)
    assert firm.dof == 53.0
    np.testing.assert_allclose(firm.scale / (firm.dof - 4.0), 3.0 * np.eye(3))
    with pytest.raises(ValueError, match="rows must be above 1, got 1"):
        NormalInverseWishart.weak(np.zeros(3), rows=1)


def test_scales_must_be_positive():
    for value, error in ((0.0, ValueError), (np.inf, ValueError), ("1", TypeError)):
        for name in HalfTScales.__dataclass_fields__:
            with pytest.raises(error, match=name):
                HalfTScales(**{name: value})
