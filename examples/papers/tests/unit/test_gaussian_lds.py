"""Linear dynamical systems of raw vectors: against the dense Gaussian, block by block."""

import numpy as np
import pytest
import scipy.stats
from oracle.dynamics import dense_moments as moments_of_law

from examples.papers.linderman2015.gaussian_lds import GaussianLDS, GaussianLDSState, filtered
from examples.papers.linderman2015.vectors import as_vector_sequences
from pgmult import DensePotential, MatrixNormalInverseWishart
from pgmult.sequences import as_sequences
from pgmult.sequences.priors.dynamics import LinearDynamics
from pgmult.testing import conditional_ratio, rejects

MODEL = GaussianLDS(state_dim=2)
VECTORS = [np.random.default_rng(0).normal(size=(length, 3)) for length in (4, 1, 3)]
VECTORS[0][1] = np.nan
DATA = as_vector_sequences(VECTORS)


def random_state(seed=0, n=3, scale=1.0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2, 2))
    return GaussianLDSState(
        transition=0.5 * rng.normal(size=(2, 2)),
        noise_cov=root @ root.T + 0.3 * np.eye(2),
        loadings=scale * rng.normal(size=(n, 2)),
        offset=scale * rng.normal(size=n),
        emission_var=scale**2 * rng.uniform(0.2, 2.0, size=n),
    )


def dense_moments(state, steps):
    """Mean and covariance of one sequence's vectors, step after step, from the definition."""
    A, Q, C = state.transition, state.noise_cov, state.loadings
    covs = [np.eye(2)]
    for _ in range(steps - 1):
        covs.append(A @ covs[-1] @ A.T + Q)
    n = len(C)
    joint = np.empty((steps * n, steps * n))
    for s in range(steps):
        for t in range(s, steps):
            block = C @ np.linalg.matrix_power(A, t - s) @ covs[s] @ C.T
            if s == t:
                block = block + np.diag(state.emission_var)
            joint[t * n : (t + 1) * n, s * n : (s + 1) * n] = block
            joint[s * n : (s + 1) * n, t * n : (t + 1) * n] = block.T
    return np.tile(state.offset, steps), joint


@pytest.mark.parametrize("seed", range(3))
def test_log_likelihood_against_the_dense_gaussian(seed):
    state = random_state(seed)
    total = 0.0
    for values in VECTORS:
        mean, cov = dense_moments(state, len(values))
        seen = ~np.isnan(values.ravel())
        law = scipy.stats.multivariate_normal(mean[seen], cov[np.ix_(seen, seen)])
        total += law.logpdf(values.ravel()[seen])
    assert MODEL.log_likelihood(state, DATA) == pytest.approx(total, rel=1e-10)


SYMBOLS = as_sequences([[0, 2, -1, 1, 2], [1, 0]], num_symbols=3)


def draw_of(state):
    return {name: getattr(state, name) for name in MODEL.predictive_variables}


def dense_forecasts(state, data):
    """E[y_t | y_<t] by conditioning the dense Gaussian."""
    vectors = as_vector_sequences(data)
    out = []
    for s in range(data.num_sequences):
        first, last = data.offsets[s], data.offsets[s + 1]
        mean, cov = dense_moments(state, last - first)
        for t in range(last - first):
            seen = np.flatnonzero(np.repeat(vectors.observed[first : first + t], 3))
            own = np.arange(3 * t, 3 * t + 3)
            surprise = vectors.values[first : first + t].ravel()[seen] - mean[seen]
            gain = cov[np.ix_(own, seen)] @ np.linalg.inv(cov[np.ix_(seen, seen)])
            out.append(mean[own] + gain @ surprise)
    return np.array(out)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("floor", [None, 0.02])
def test_forecasts_against_the_dense_gaussian(seed, floor):
    state = random_state(seed, scale=0.4)
    probs = np.maximum(dense_forecasts(state, SYMBOLS), 0.1 if floor is None else floor)
    probs /= probs.sum(axis=1, keepdims=True)
    seen = np.flatnonzero(SYMBOLS.totals)
    expected = np.zeros(SYMBOLS.num_steps)
    expected[seen] = np.log(probs[seen, SYMBOLS.symbols])
    model = GaussianLDS(state_dim=2, probability_floor=floor)
    np.testing.assert_allclose(
        model.log_predictive(draw_of(state), SYMBOLS), expected, rtol=1e-10, atol=1e-13
    )


def test_forecasts_in_blocks(monkeypatch):
    rng = np.random.default_rng(1)
    data = as_sequences([rng.multinomial(3, [0.2, 0.3, 0.5], size=20)])
    whole = MODEL.log_predictive(draw_of(random_state()), data)
    monkeypatch.setattr("examples.papers.linderman2015.gaussian_lds._BLOCK", 7)
    np.testing.assert_array_equal(MODEL.log_predictive(draw_of(random_state()), data), whole)


# ------------------------------------------------------------------ the emission's block


def log_emission_prior(model, point):
    loadings, offset, var = point
    law = scipy.stats.invgamma(model.emission_shape, scale=model.emission_scale)
    total = law.logpdf(var).sum()
    total += scipy.stats.norm(0.0, np.sqrt(var / model.offset_precision)).logpdf(offset).sum()
    spread = np.sqrt(var / model.loadings_precision)[:, None]
    return total + scipy.stats.norm(0.0, spread).logpdf(loadings).sum()


def emission_block(states, values, shape_gain=1.0, precision=None):
    """Log joint of the emission's parameters and vectors, and a hand-written conditional."""
    model = GaussianLDS(2, loadings_precision=0.7, offset_precision=0.2, emission_scale=0.5)
    x = np.column_stack([np.ones(len(states)), states])
    prior = np.diag([0.2, 0.7, 0.7]) if precision is None else precision
    law_precision = prior + x.T @ x
    mean = np.linalg.solve(law_precision, x.T @ values)
    scale = 0.5 + 0.5 * ((values**2).sum(0) - np.einsum("pn,pq,qn->n", mean, law_precision, mean))
    shape = model.emission_shape + 0.5 * shape_gain * len(states)

    def log_joint(point):
        loadings, offset, var = point
        law = scipy.stats.norm(offset + states @ loadings.T, np.sqrt(var))
        return log_emission_prior(model, point) + law.logpdf(values).sum()

    def log_conditional(point):
        loadings, offset, var = point
        total = scipy.stats.invgamma(shape, scale=scale).logpdf(var).sum()
        for k, row in enumerate(np.column_stack([offset, loadings])):
            cov = var[k] * np.linalg.inv(law_precision)
            total += scipy.stats.multivariate_normal(mean[:, k], cov).logpdf(row)
        return total

    return model, log_joint, log_conditional, (mean, law_precision, shape, scale)


def emission_points():
    states = [random_state(seed) for seed in range(6)]
    return [(s.loadings, s.offset, s.emission_var) for s in states]


EMISSION_DATA = (
    np.random.default_rng(2).normal(size=(9, 2)),
    np.random.default_rng(3).normal(size=(9, 3)) + 1.0,
)


def test_emission_given_states():
    _, log_joint, log_conditional, _ = emission_block(*EMISSION_DATA)
    conditional_ratio(log_joint, log_conditional, emission_points())


@pytest.mark.parametrize("change", [{"shape_gain": 2.0}, {"precision": np.eye(3)}])
def test_conditional_ratio_refuses_other_emissions(change):
    _, log_joint, log_conditional, _ = emission_block(*EMISSION_DATA, **change)
    rejects(conditional_ratio, log_joint, log_conditional, emission_points())


def test_draws_of_the_emission_have_that_law():
    states, values = EMISSION_DATA
    model, _, _, (mean, precision, shape, scale) = emission_block(states, values)
    rng = np.random.default_rng(4)
    draws = [model._sample_emission(rng, values, states) for _ in range(4000)]
    var = np.array([draw[2] for draw in draws])
    rows = np.array([np.column_stack([draw[1], draw[0]]) for draw in draws])
    for k in range(3):
        law = scipy.stats.invgamma(shape, scale=scale[k])
        assert scipy.stats.kstest(var[:, k], law.cdf).pvalue > 1e-4
        standard = (rows[:, k] - mean[:, k]) @ np.linalg.cholesky(precision)
        standard /= np.sqrt(var[:, [k]])
        for p in range(3):
            assert scipy.stats.kstest(standard[:, p], "norm").pvalue > 1e-4
        np.testing.assert_allclose(np.cov(standard.T), np.eye(3), atol=0.1)


# ------------------------------------------------------------------ data, starts and errors


def test_vectors_of_symbols_and_counts():
    data = as_sequences([np.array([[1, 0, 3], [0, 0, 0], [0, 2, 0]])])
    vectors = as_vector_sequences(data)
    np.testing.assert_array_equal(vectors.values, [[0.25, 0, 0.75], [0, 0, 0], [0, 1, 0]])
    assert vectors.observed.tolist() == [True, False, True]
    assert as_vector_sequences(vectors) is vectors
    named = as_vector_sequences(as_sequences(["abc"]))
    assert MODEL.coords(named)["symbol"].tolist() == ["a", "b", "c"]
    assert MODEL.coords(vectors) == {}


@pytest.mark.parametrize("state_dim", [1, 5])  # more factors than coordinates, too
def test_starts(state_dim):
    model = GaussianLDS(state_dim)
    rng = np.random.default_rng(0)
    state = model.step(rng, model.init(rng, DATA), DATA)
    assert np.isfinite(model.log_likelihood(state, DATA))
    assert (np.diff(model.eigenvalue_moduli(state, DATA)) <= 0.0).all()
    assert model.state_means(state, DATA).shape == (8, state_dim)


def test_bad_input():
    with pytest.raises(ValueError, match="state_dim must be at least 1"):
        GaussianLDS(0)
    with pytest.raises(ValueError, match="emission_scale must be positive"):
        GaussianLDS(2, emission_scale=0.0)
    prior = MatrixNormalInverseWishart(np.zeros((3, 3)), np.eye(3), 5.0, np.eye(3))
    with pytest.raises(ValueError, match=r"dynamics must be of 2 x 2 transitions"):
        GaussianLDS(2, dynamics=prior)
    with pytest.raises(ValueError, match="takes no inputs"):
        MODEL.as_data(as_sequences([[0, 1]], inputs=np.zeros((2, 1))))
    with pytest.raises(ValueError, match=r"one a sequence, got shapes \[\(2, 3\), \(2, 2\)\]"):
        as_vector_sequences([np.zeros((2, 3)), np.zeros((2, 2))])
    with pytest.raises(ValueError, match="data must be finite, got nan at row 0, column 1"):
        as_vector_sequences([np.array([[0.0, np.nan]])])


@pytest.mark.parametrize(
    ("sharpness", "least_noise", "growth"),
    [(1.0, 0.3, 0.9), (1e6, 0.3, 0.9), (1.0, 1e-12, 0.9), (1e3, 1e-6, 3.0)],
)
def test_the_filter_is_that_of_the_dense_gaussian(sharpness, least_noise, growth):
    """Of potentials of rank one, at the last step of each sequence."""
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(10, 3)) * np.sqrt(sharpness)
    J = factor[:, :, None] * factor[:, None]
    h = np.einsum("tij,tj->ti", J, rng.normal(size=(10, 3)))
    law = LinearDynamics(
        growth * np.linalg.qr(rng.normal(size=(3, 3)))[0],
        np.diag([1.0, 0.5, least_noise]),
        np.ones(3),
        np.eye(3) + 0.5,
        np.array([0, 4, 10]),
        rng.normal(size=(10, 3)),
        DensePotential(J, h),
    )
    found = filtered(law)
    for s, last in enumerate((3, 9)):
        log_z, mean, cov = moments_of_law(law, s)
        assert found.log_normalizers[s] == pytest.approx(log_z, rel=1e-8)
        np.testing.assert_allclose(found.means[last], mean[-1], rtol=1e-5)
        np.testing.assert_allclose(found.covs[last], cov[-1, :, -1], atol=1e-7)
