"""The paper's score of sequences, against formulas."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from examples.papers.linderman2015.gaussian_lds import GaussianLDS
from examples.papers.linderman2015.logistic_normal_lds import LogisticNormalLDS
from pgmult import Posterior, StickBreaking
from pgmult.core.typing import coords_of
from pgmult.sampling import Origin
from pgmult.sequences import MultinomialHMM, MultinomialLDS, as_sequences
from pgmult.sequences.scores.one_step import joined

K = 3
TRAIN = as_sequences([[0, 1, -1, 2], [1, 1]], num_symbols=K)
TEST = as_sequences([[2, 0, -1], [0, 2, 2, 1]], num_symbols=K)
STATE_SPACES = [MultinomialLDS(1), LogisticNormalLDS(1)]


@pytest.fixture
def legacy(paper_scripts):
    return paper_scripts("linderman2015")["legacy"]


def posterior_of(model, draws, data=TRAIN):
    own = model.as_data(data)
    return Posterior(
        draws, dims=model.dims, coords=coords_of(model, own), origin=Origin.of(model, own)
    )


def state_space_posterior(model, loadings=1.0, data=TRAIN):
    rows = K - isinstance(model, MultinomialLDS)
    rng = np.random.default_rng(3)
    spread = np.broadcast_to(np.eye(1), (1, 4, 1, 1))
    draws = {
        "transition": 0.8 * spread, "noise_cov": 0.5 * spread,
        "initial_mean": np.zeros((1, 4, 1)), "initial_cov": spread,
        "loadings": loadings * rng.normal(size=(1, 4, rows, 1)),
        "offset": rng.normal(size=(1, 4, rows)),
        "last_states": rng.normal(size=(1, 4, data.num_sequences, 1)),
    }  # fmt: skip
    if isinstance(model, MultinomialLDS):
        draws["noise_sd"] = np.zeros((1, 4, 0))
        draws["input_weights"] = np.zeros((1, 4, 1, 0))
        draws["emission_weights"] = np.zeros((1, 4, rows, 0))
    return posterior_of(model, draws, data)


@pytest.mark.slow
def test_hidden_markov_models_are_scored_jointly(legacy):
    rng, model = np.random.default_rng(2), MultinomialHMM(2)
    posterior = posterior_of(
        model,
        {
            "initial": rng.dirichlet(np.ones(2), size=(2, 3)),
            "transition": rng.dirichlet(np.ones(2), size=(2, 3, 2)),
            "emission": rng.dirichlet(np.ones(K), size=(2, 3, 2)),
        },
    )
    got = legacy.legacy_score(posterior, TRAIN, TEST)
    whole, tested = joined(TRAIN, TEST)
    totals = [
        model.log_predictive({k: v[c, i] for k, v in posterior.items()}, whole)[tested].sum()
        for c in range(2) for i in range(3)
    ]  # fmt: skip
    expected = logsumexp(totals) - np.log(6.0)
    shares = np.bincount(TRAIN.symbols, minlength=K) / len(TRAIN.symbols)
    baseline = np.log(shares)[TEST.symbols].sum()  # none is 0
    assert got.log_probability == pytest.approx(expected)
    assert got.baseline == pytest.approx(baseline)
    assert got.score == pytest.approx((expected - baseline) / 6)


def test_the_baseline_pays_for_unseen_symbols(legacy):
    train = as_sequences([[0, 0]], num_symbols=K)
    test = as_sequences([[0, 2]], num_symbols=K)
    posterior = state_space_posterior(MultinomialLDS(1), data=train)
    got = legacy.legacy_score(posterior, train, test)
    assert got.baseline == pytest.approx(np.log(1e-8), rel=1e-6)


@pytest.mark.parametrize("model", STATE_SPACES)
def test_state_spaces_without_loadings(legacy, model):
    posterior = state_space_posterior(model, loadings=0.0)
    got = legacy.legacy_score(posterior, TRAIN, TEST, num_simulations=3)
    log_probs = model.link(TRAIN).log_probs(posterior["offset"][0])
    totals = log_probs[:, TEST.symbols].sum(axis=1)
    assert got.log_probability == pytest.approx(logsumexp(totals) - np.log(4.0))
    assert isinstance(model.link(TRAIN), StickBreaking) == isinstance(model, MultinomialLDS)


def test_simulations_go_on_from_the_last_state(legacy):
    """One step ahead they estimate an integral over the next state."""
    posterior = state_space_posterior(LogisticNormalLDS(1))
    test = as_sequences([[2], [0]], num_symbols=K)
    got = legacy.legacy_score(posterior, TRAIN, test, num_simulations=1000)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    totals = []
    for i in range(4):
        joint = 0.0
        for last, symbol in zip(posterior["last_states"][0, i], (2, 0), strict=True):
            x = 0.8 * last + np.sqrt(0.5) * nodes
            psi = posterior["offset"][0, i] + x[:, None] * posterior["loadings"][0, i].T
            probs = np.exp(log_softmax(psi, axis=1))[:, symbol]
            joint += np.log(weights @ probs / weights.sum())
        totals.append(joint)
    assert got.log_probability == pytest.approx(logsumexp(totals) - np.log(4.0), abs=0.05)


@pytest.mark.slow
def test_raw_vectors_are_scored_by_shares_of_simulations(legacy):
    rng, model = np.random.default_rng(4), GaussianLDS(1)
    posterior = posterior_of(
        model,
        {
            "transition": 0.5 * np.ones((1, 2, 1, 1)), "noise_cov": np.ones((1, 2, 1, 1)),
            "loadings": rng.normal(size=(1, 2, K, 1)), "offset": rng.normal(size=(1, 2, K)),
            "emission_var": np.ones((1, 2, K)),
        },
    )  # fmt: skip
    got = legacy.legacy_score(posterior, TRAIN, TEST, num_simulations=200)
    assert "largest" in got.method
    assert -20.0 < got.log_probability < -3.0
    draw = {name: posterior[name][0, 0] for name in model.predictive_variables}
    probs = np.exp(legacy.shares_of_the_largest(rng, model, draw, TRAIN, TEST, 10))
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    np.testing.assert_allclose(10 * probs, np.rint(10 * probs), atol=1e-5)
