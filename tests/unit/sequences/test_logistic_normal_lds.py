"""The face of `LogisticNormalLDS`: data, coordinates, likelihood, threads, bad input."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multinomial

import pgmult
from pgmult.priors import MatrixNormalInverseWishart, NormalInverseWishart
from pgmult.sequences import LogisticNormalLDS, as_sequences
from pgmult.sequences.scores.particle_filter import particle_log_predictive

MODEL = LogisticNormalLDS(state_dim=2, num_particles=4)


def make_data(inputs=0):
    rng = np.random.default_rng(0)
    counts = rng.multinomial(3, [0.5, 0.3, 0.2], size=9)
    counts[4] = 0
    u = rng.normal(size=(9, inputs)) if inputs else None
    return as_sequences([counts[:5], counts[5:]], inputs=u)


@pytest.mark.parametrize("inputs", [0, 2])
def test_log_likelihood_is_the_multinomials(inputs):
    data = make_data(inputs)
    state = MODEL.prior(np.random.default_rng(1), data)
    u = np.zeros((9, 0)) if data.inputs is None else data.inputs
    psi = state.states @ state.loadings.T + u @ state.emission_weights.T + state.offset
    probs = np.exp(psi) / np.exp(psi).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(MODEL.probs(state, data), probs)
    counts = data.to_csr().toarray()
    coefficients = multinomial.logpmf(counts, data.totals, np.full(3, 1.0 / 3.0))
    coefficients += data.totals * np.log(3.0)
    expected = (multinomial.logpmf(counts, data.totals, probs) - coefficients).sum()
    np.testing.assert_allclose(MODEL.log_likelihood(state, data), expected)


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [0, 2])
def test_the_state_space_is_the_models(inputs):
    """States simulated from the prior and those of the particle filter have one law: first steps.

    With one sequence of a single step p(counts) is an average over prior states.
    """
    data = make_data(inputs)
    one = data.split(1)[0]
    state = MODEL.prior(np.random.default_rng(2), one)
    parameters = {name: getattr(state, name) for name in MODEL.predictive_variables}
    draw = MODEL.state_space(parameters, MODEL.link(one))
    log_p = particle_log_predictive(np.random.default_rng(3), [draw], one, 20_000)[0]
    rng = np.random.default_rng(4)
    x = rng.multivariate_normal(state.initial_mean, state.initial_cov, size=20_000)
    for s in range(2):
        copies = replace(state, states=np.tile(x[:, None], (1, 2, 1)).reshape(-1, 2))
        psi = copies.states[::2] @ state.loadings.T + state.offset
        if inputs:
            psi += state.emission_weights @ one.inputs[s]
        log_probs = MODEL.link(one).log_probs(psi) @ one.to_csr().toarray()[s]
        np.testing.assert_allclose(log_p[s], np.log(np.exp(log_probs).mean()), atol=0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.sampling.diagnostics.ConvergenceWarning")
def test_sampling():
    data = as_sequences(["ABBACABA", "CABB"], names=["one", "two"])
    posterior = pgmult.sample(
        MODEL, data, draws=6, tune=4, chains=2, random_seed=1, progressbar=False,
        keep=["probs", "moved", "last_states", "mean_probs", "eigenvalue_moduli"],
    )  # fmt: skip
    np.testing.assert_allclose(posterior["probs"].sum(axis=-1), 1.0)
    assert posterior["last_states"].shape == (2, 6, 2, 2)
    assert (np.diff(posterior["eigenvalue_moduli"], axis=-1) <= 0.0).all()
    assert 0.3 < posterior["moved"].mean() <= 1.0


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


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"state_dim": 0}, ValueError, "state_dim must be at least 1"),
        ({"num_particles": 1}, ValueError, "num_particles must be at least 2"),
        ({"offset_var": -1.0}, ValueError, "offset_var must be positive"),
        ({"loading_scale": np.nan}, ValueError, "loading_scale must be finite"),
        ({"start": NormalInverseWishart.weak(np.zeros(3))}, ValueError, "start must have 2"),
        (
            {"dynamics": MatrixNormalInverseWishart(np.zeros((3, 3)), np.eye(3), 5.0, np.eye(3))},
            ValueError,
            "dynamics must be of 2 dimensions",
        ),
    ],
)
def test_bad_hyperparameters(options, error, message):
    with pytest.raises(error, match=message):
        replace(MODEL, **options)


def test_dynamics_must_have_a_row_an_input():
    prior = MatrixNormalInverseWishart(np.zeros((2, 2)), np.eye(2), 5.0, np.eye(2))
    model = replace(MODEL, dynamics=prior)
    assert model.as_data(make_data()).num_symbols == 3
    with pytest.raises(ValueError, match="2 states and 1 inputs, got 2"):
        model.as_data(make_data(1))
