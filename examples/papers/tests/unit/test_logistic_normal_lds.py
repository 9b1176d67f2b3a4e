"""`LogisticNormalLDS`: its likelihood and state space, starts, threads, bad input."""

from dataclasses import replace

import numpy as np
import pytest
from same_draws import check_threads_do_not_matter
from scipy.stats import multinomial

import pgmult
from examples.papers.linderman2015.logistic_normal_lds import LogisticNormalLDS
from pgmult.priors import NormalInverseWishart
from pgmult.sequences import as_sequences
from pgmult.sequences.scores.particle_filter import particle_log_predictive

MODEL = LogisticNormalLDS(state_dim=2, num_particles=4)
COUNTS = np.random.default_rng(0).multinomial(3, [0.5, 0.3, 0.2], size=9)
COUNTS[4] = 0
DATA = as_sequences([COUNTS[:5], COUNTS[5:]])


def test_log_likelihood_is_the_multinomials():
    state = MODEL.prior(np.random.default_rng(1), DATA)
    psi = state.states @ state.loadings.T + state.offset
    probs = np.exp(psi) / np.exp(psi).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(MODEL.probs(state, DATA), probs)
    coefficients = multinomial.logpmf(COUNTS, DATA.totals, np.full(3, 1.0 / 3.0))
    coefficients += DATA.totals * np.log(3.0)
    expected = (multinomial.logpmf(COUNTS, DATA.totals, probs) - coefficients).sum()
    np.testing.assert_allclose(MODEL.log_likelihood(state, DATA), expected)


@pytest.mark.slow
def test_the_state_space_is_the_models():
    """p(counts) of first steps is an average over prior states."""
    one = DATA.split(1)[0]
    state = MODEL.prior(np.random.default_rng(2), one)
    parameters = {name: getattr(state, name) for name in MODEL.predictive_variables}
    draw = MODEL.state_space(parameters, MODEL.link())
    log_p = particle_log_predictive(np.random.default_rng(3), [draw], one, 20_000)[0]
    rng = np.random.default_rng(4)
    x = rng.multivariate_normal(state.initial_mean, state.initial_cov, size=20_000)
    log_probs = MODEL.link().log_probs(x @ state.loadings.T + state.offset)
    expected = np.log(np.exp(log_probs @ one.to_csr().toarray().T).mean(axis=0))
    np.testing.assert_allclose(log_p, expected, atol=0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.sampling.diagnostics.ConvergenceWarning")
def test_sampling():
    data = as_sequences(["ABBACABA", "CABB"], names=["one", "two"])
    posterior = pgmult.sample(
        MODEL, data, draws=6, tune=4, chains=2, random_seed=1, progressbar=False,
        keep=["probs", "moved", "last_states", "eigenvalue_moduli"],
    )  # fmt: skip
    np.testing.assert_allclose(posterior["probs"].sum(axis=-1), 1.0)
    assert posterior["last_states"].shape == (2, 6, 2, 2)
    assert (np.diff(posterior["eigenvalue_moduli"], axis=-1) <= 0.0).all()
    assert 0.3 < posterior["moved"].mean() <= 1.0
    check_threads_do_not_matter(MODEL, data)


@pytest.mark.slow
def test_a_chain_leaves_a_start_without_structure():
    """The loadings move from the first sweep: nothing is stuck at the start."""
    rng = np.random.default_rng(5)
    data = as_sequences([rng.integers(0, 4, 60)])
    state = MODEL.init(rng, data)
    new = MODEL.step(rng, state, data)
    for name in ("states", "loadings", "offset", "transition", "noise_cov"):
        moved = getattr(new, name) != getattr(state, name)
        assert moved.mean() > (0.3 if name == "states" else 0.999)


def test_bad_input():
    with pytest.raises(ValueError, match="num_particles must be at least 2"):
        replace(MODEL, num_particles=1)
    with pytest.raises(ValueError, match="start must have 2"):
        replace(MODEL, start=NormalInverseWishart.weak(np.zeros(3)))
    with pytest.raises(ValueError, match="takes no inputs"):
        MODEL.as_data(as_sequences(DATA, inputs=np.ones((9, 1))))
