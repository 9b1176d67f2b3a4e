"""Rows of counts through sticks: the data, the conditionals, what is refused."""

import numpy as np
import pytest

from examples.papers.regressions.data import as_counted_rows
from examples.papers.regressions.multinomial import StickBreakingRegression
from examples.papers.regressions.multinomial_fits import fit_stick_breaking_regression
from pgmult.links import StickBreaking
from pgmult.priors import MvNormal
from pgmult.testing import conditional_ratio

RNG = np.random.default_rng(0)
X = np.column_stack([np.ones(8), RNG.normal(size=8)])
COUNTS = np.array([RNG.multinomial(n, [0.2, 0.5, 0.3]) for n in (0, 1, 2, 5, 1, 3, 1, 2)])
DATA = as_counted_rows(X, COUNTS)
MODEL = StickBreakingRegression(MvNormal(np.array([0.3, -0.2]), np.diag([1.0, 2.0])), (3.0, 2.0))


def test_sticks_break_for_frequent_categories_first():
    assert DATA.order.tolist() == np.argsort(-COUNTS.sum(axis=0), kind="stable").tolist()
    taken = COUNTS[:, DATA.order]
    sticks = DATA.sticks
    assert sticks.trials.sum() == taken.sum() + taken[:, 1:].sum()
    assert sticks.successes.sum() == taken[:, :-1].sum()
    labels = as_counted_rows(X, [2, 0, 1, 1, 1, 0, 1, 1], order="given")
    assert labels.order.tolist() == [0, 1, 2]
    assert labels.counts.sum() == 8


def test_the_likelihood_is_that_of_the_link():
    state = MODEL.prior(np.random.default_rng(1), DATA)
    psi = X @ state.weights.T
    expected = StickBreaking(DATA.order).log_likelihood(psi, COUNTS).sum()
    np.testing.assert_allclose(MODEL.log_likelihood(state, DATA), expected, rtol=1e-12)
    np.testing.assert_allclose(MODEL.probs(state, DATA).sum(axis=1), 1.0, rtol=1e-12)


def test_the_conditional_of_the_scale():
    rng = np.random.default_rng(2)
    weights = MODEL.prior(rng, DATA).weights
    shape, scale = MODEL.scale_given(weights, DATA)

    def log_joint(tau):
        prior = MvNormal(MODEL.weights_prior.prior_mean, tau * MODEL.weights_prior.prior_cov)
        return prior.log_density(weights).sum() - 4.0 * np.log(tau) - 2.0 / tau

    def log_conditional(tau):
        return -(shape + 1.0) * np.log(tau) - scale / tau

    conditional_ratio(log_joint, log_conditional, [0.3, 1.0, 2.5, 7.0])


def test_mean_field_is_near_the_chain():
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(150), rng.normal(size=150)])
    counts = np.array([rng.multinomial(2, p) for p in rng.dirichlet([4.0, 3.0, 3.0], 150)])
    data, model = as_counted_rows(x, counts), StickBreakingRegression()
    state, draws = model.init(rng, data), []
    for _ in range(1500):
        state = model.step(rng, state, data)
        draws.append(state.weights)
    mean, sd = np.mean(draws[100:], axis=0), np.std(draws[100:], axis=0)
    fit = fit_stick_breaking_regression(data)
    assert fit.is_bound
    np.testing.assert_allclose(fit.mean, mean, atol=0.25 * sd.max())
    np.testing.assert_allclose(np.sqrt(np.diagonal(fit.cov, axis1=1, axis2=2)), sd, rtol=0.2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((X, COUNTS[:5]), "outcomes must have shape"),
        ((X, -COUNTS), "non-negative"),
        ((X * np.nan, COUNTS), "finite"),
        ((X, COUNTS + 0.5), "integers"),
    ],
)
def test_bad_rows(arguments, words):
    with pytest.raises(ValueError, match=words):
        as_counted_rows(*arguments)


def test_bad_models():
    with pytest.raises(ValueError, match="scale_prior must be"):
        StickBreakingRegression(scale_prior=(1.0, -1.0))
    with pytest.raises(ValueError, match="weights_prior must be of 2 weights"):
        StickBreakingRegression(MvNormal(np.zeros(3), np.eye(3))).prior_of(DATA)
    with pytest.raises(TypeError, match="must be a CountedRows"):
        StickBreakingRegression().as_data(COUNTS)
