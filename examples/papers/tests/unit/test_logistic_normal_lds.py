"""`LogisticNormalLDS`: its likelihood and state space, starts, threads, bad input."""

from dataclasses import replace

import numpy as np
import pytest
from oracle.grid_states import GridStates, make_data, make_draw
from same_draws import check_threads_do_not_matter
from scipy.stats import multinomial

import pgmult
from examples.papers.linderman2015.compiled import softmax_likelihoods as likelihoods
from examples.papers.linderman2015.logistic_normal_lds import LogisticNormalLDS
from pgmult.links import LogisticNormal
from pgmult.priors import NormalInverseWishart
from pgmult.sequences import as_sequences

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


def test_predictions_are_those_of_the_grid():
    draw, data = make_draw("softmax"), make_data(3)
    exact = GridStates(draw, data).log_predictive
    parameters = {name: getattr(draw, name) for name in MODEL.predictive_variables}
    copies = as_sequences([data.to_csr().toarray()[:6]] * 30)
    found = LogisticNormalLDS(1).log_predictive(parameters, copies).reshape(30, 6)
    np.testing.assert_allclose(found.mean(axis=0), exact[:6], atol=0.02)


KINDS = [np.eye(40)[5], np.eye(40)[-1], np.random.default_rng(1).multinomial(500, np.ones(40) / 40)]


@pytest.mark.slow
@pytest.mark.parametrize("counts", KINDS)
def test_likelihoods_and_expansions_are_the_links_own(counts):
    rng, link, counts = np.random.default_rng(3), LogisticNormal(), counts.astype(np.int64)
    loadings, offset, seen = (
        2.0 * rng.normal(size=(40, 3)),
        rng.normal(size=40),
        counts.nonzero()[0],
    )
    z, out = 60.0 * rng.normal(size=(3, 7)), np.empty(7)
    work = np.empty((likelihoods.WORK_ROWS, 7))
    likelihoods.log_likelihoods(seen, counts[seen], loadings, offset, z, work, out)
    expected = link.log_probs((loadings @ z).T + offset) @ counts
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-12)
    x, gradient, curvature = np.array([0.3, -0.4, 0.8]), np.empty(3), np.empty((3, 3))
    columns = loadings.T.copy()
    value = likelihoods.expand(seen, counts[seen], columns, offset, x, gradient, curvature)
    psi = offset + loadings @ x
    potential = link.quadratic(psi, counts)
    np.testing.assert_allclose(value, link.log_likelihood(psi, counts), rtol=1e-12)
    slope = loadings.T @ (potential.h - potential.J @ psi)
    np.testing.assert_allclose(gradient, slope, rtol=1e-10, atol=1e-9)
    expected = loadings.T @ potential.J @ loadings
    np.testing.assert_allclose(curvature, expected, rtol=1e-10, atol=1e-9)


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
