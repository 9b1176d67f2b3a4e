"""Fields by the name of their structure."""

import logging

import numpy as np
import pytest
from numba.core import config
from oracle.gaussian_field import assert_drawn_from

from pgmult.compiled.rows import row_threads
from pgmult.core.potentials import DiagonalPotential
from pgmult.fields.covariances import Matern, SquaredExponential, White
from pgmult.fields.priors import structures as choices
from pgmult.fields.priors.dense import GaussianProcess
from pgmult.fields.priors.field import Trend
from pgmult.fields.priors.state_space import StateSpaceProcess
from pgmult.fields.priors.structures import make_field

FEWER = 100 if config.DISABLE_JIT else 1  # draws, where they are not compiled

SERIES = np.arange(600.0)[::-1, None]
MARKOV = 1.3 * Matern(1.5, 9.0) + White(0.2)


@pytest.mark.parametrize(
    ("structure", "kind"), [("dense", GaussianProcess), ("state_space", StateSpaceProcess)]
)
def test_all_structures_compute_the_same(structure, kind):
    rng = np.random.default_rng(0)
    inputs, new = SERIES[:70], SERIES[68:75]
    J = rng.gamma(1.0, size=(70, 2))
    h = rng.standard_normal((70, 2))
    potential, mean = DiagonalPotential(J, h), np.full((77, 2), 0.2)
    field, dense = (make_field(s, MARKOV, inputs) for s in (structure, "dense"))
    assert isinstance(field, kind)
    one, other = (f.condition(potential, Trend.known(mean[:70])) for f in (field, dense))
    assert one.mean.shape == other.mean.shape == (70, 2)
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-8)
    np.testing.assert_allclose(one.log_normalizers, other.log_normalizers, atol=1e-8)
    draws = []
    for threads in (1, 2):
        with row_threads(threads):
            draws.append(field.draw(np.random.default_rng(1), potential, new, mean))
    for one, two in zip(*draws, strict=True):
        np.testing.assert_array_equal(one, two)
    expected = dense.draw(np.random.default_rng(1), potential, new, mean)
    np.testing.assert_allclose(draws[0].mean, expected.mean, atol=1e-8)
    np.testing.assert_allclose(draws[0].var, expected.var, atol=1e-8)


@pytest.mark.parametrize(
    ("covariance", "inputs", "kind", "words"),
    [
        (SquaredExponential(), SERIES[:50], GaussianProcess, "'dense': 50 inputs are few"),
        (MARKOV, SERIES, StateSpaceProcess, "'state_space': it is exact"),
        (
            SquaredExponential(),
            SERIES,
            GaussianProcess,
            "'dense': state_space: the covariance must be Matern and White",
        ),
    ],
)
def test_auto_takes_what_is_exact_and_says_so(covariance, inputs, kind, words, caplog):
    choices._log_choice.cache_clear()
    with caplog.at_level(logging.INFO, logger="pgmult"):
        field = make_field("auto", covariance, inputs)
    assert isinstance(field, kind)
    assert "structure='auto' took" in caplog.text
    assert words in caplog.text


def test_auto_refuses_what_is_large_and_has_no_state_space():
    with pytest.raises(ValueError, match=r"no structure fits 5001 inputs .*name structure='dense'"):
        make_field("auto", SquaredExponential(), np.random.default_rng(0).random((5001, 2)))


FEW = SERIES[[0, 1, 2, 20, 23, 45, 100, 101, 205]]  # irregular
FEATURES = np.column_stack([np.ones(len(FEW)), 0.01 * FEW[:, 0]])
CENTRE, TREND_VAR = np.array([[0.5], [-1.0]]), 0.6
structures = pytest.mark.parametrize("structure", ["dense", "state_space"])


def law_with_trend(J, h, prior_mean):
    """Mean and covariance of the columns and of the coefficients, by the assembled Gaussian."""
    n = len(FEW)
    both = np.concatenate([FEATURES, np.eye(2)])
    cov = TREND_VAR * both @ both.T
    cov[:n, :n] += MARKOV.cov(FEW)
    mean = (both @ CENTRE)[:, 0]
    mean[:n] += prior_mean
    J, h = (np.append(a, [0.0, 0.0]) for a in (J, h))
    posterior = np.linalg.solve(np.eye(n + 2) + cov * J, cov)
    return mean + posterior @ (h - J * mean), posterior


def conditioned_field(structure, J, h):
    """Around a trend."""
    trend = Trend(np.full(J.shape, 0.3), FEATURES, np.tile(CENTRE, J.shape[1]), TREND_VAR)
    return make_field(structure, MARKOV, FEW).condition(DiagonalPotential(J, h), trend)


def draw_with_trend(structure, J, h, seed=0):
    """Values and coefficients below each other; a column for each of J."""
    return conditioned_field(structure, J, h).sample(np.random.default_rng(seed))


@structures
def test_log_normalizers_with_a_trend_are_of_the_assembled_gaussian(structure):
    rng = np.random.default_rng(3)
    J, h = rng.gamma(1.0, size=(9, 2)), rng.standard_normal((9, 2))
    J[4], h[4] = 0.0, 0.0
    gaussian = conditioned_field(structure, J, h)
    got = gaussian.log_normalizers
    cov = MARKOV.cov(FEW) + TREND_VAR * FEATURES @ FEATURES.T
    mean = 0.3 + (FEATURES @ CENTRE)[:, 0]
    for c in range(2):
        system = np.eye(9) + cov * J[:, c]
        left = h[:, c] - J[:, c] * mean
        expected = mean @ (h[:, c] - 0.5 * J[:, c] * mean)
        expected += 0.5 * left @ np.linalg.solve(system, cov @ left)
        expected -= 0.5 * np.linalg.slogdet(system)[1]
        np.testing.assert_allclose(got[c], expected, atol=1e-8)
    assert gaussian.log_evidence == pytest.approx(got.sum())


@structures
def test_means_and_solves_with_a_trend_are_of_the_assembled_gaussian(structure):
    rng = np.random.default_rng(4)
    J, h, g = rng.gamma(1.0, size=(9, 2)), *rng.standard_normal((2, 9, 2))
    J[4], h[4], g[4] = 0.0, 0.0, 0.0
    gaussian = conditioned_field(structure, J, h)
    solved = gaussian.solve(np.concatenate([g, np.zeros((2, 2))]))
    for c in range(2):
        mean, cov = law_with_trend(J[:, c], h[:, c], 0.3)
        np.testing.assert_allclose(gaussian.mean[:, c], mean, atol=1e-8)
        np.testing.assert_allclose(solved[:, c], cov[:, :9] @ g[:, c], atol=1e-8)
        np.testing.assert_allclose(gaussian.variances[:, c], np.diagonal(cov)[:9], atol=1e-8)


@structures
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_a_trend_moves_with_the_data_exactly(structure, scale):
    """With equal noise, draws differ by as much as the posterior means do."""
    rng = np.random.default_rng(1)
    J = scale * rng.gamma(1.0, size=(9, 2))
    J[4], J[:, 1] = 0.0, J[:, 1] * (np.arange(9) < 5)
    one, two = (np.where(J > 0.0, np.sqrt(J) * rng.standard_normal(J.shape), 0.0) for _ in "12")
    got = draw_with_trend(structure, J, one) - draw_with_trend(structure, J, two)
    for c in range(2):
        means = [law_with_trend(J[:, c], h[:, c], 0.3)[0] for h in (one, two)]
        np.testing.assert_allclose(got[:, c], means[0] - means[1], atol=1e-8)


@pytest.mark.parametrize("structure", ["dense", "state_space"])
def test_draws_with_a_trend_have_the_dense_law(structure):
    rng = np.random.default_rng(2)
    J, h = rng.gamma(1.0, size=9), rng.standard_normal(9)
    many = (np.repeat(a[:, None], 8000 // FEWER, axis=1) for a in (J, h))
    draws = draw_with_trend(structure, *many)
    assert_drawn_from(draws.T, *law_with_trend(J, h, 0.3))
    less = 0.8 if FEWER == 1 else 0.0
    with pytest.raises(AssertionError):
        assert_drawn_from(draws.T, *law_with_trend(less * J, h, 0.3))
