"""Forecasts, filtered, smoothed and imputed probabilities, against laws known exactly."""

import numpy as np
import pytest

from pgmult.sampling.posterior import Posterior
from pgmult.sequences.data.sequences import as_sequences
from pgmult.sequences.forecasts import filter_sequences, forecast, impute, smooth

TWO = as_sequences([[0, 0, 1, -1, 0, 0], [1, 1, -1]], num_symbols=2, order=[0, 1])
LEVELS = (0.1, 0.5, 0.9)


def posterior_of(data, draws=4, *, link="sticks", **changes):
    """One set of parameters, repeated: a state of one coordinate."""
    size = data.num_symbols - (link == "sticks")
    values = {
        "transition": [[0.8]],
        "noise_cov": [[0.5]],
        "initial_mean": [0.3],
        "initial_cov": [[1.0]],
        "loadings": 1.5 * np.ones((size, 1)),
        "offset": np.linspace(-0.5, 0.5, size) if size > 1 else np.array([0.2]),
        "input_weights": np.zeros((1, data.num_inputs)),
        "emission_weights": np.zeros((size, data.num_inputs)),
        "last_states": np.zeros((data.num_sequences, 1)),
    } | changes
    return Posterior(
        {name: np.tile(np.asarray(v, float), (2, draws // 2, *(1,) * np.ndim(v)))
         for name, v in values.items()}
    )  # fmt: skip


def sigma(x):
    return 1.0 / (1.0 + np.exp(-x))


def exact(data, grid):
    """Filtered and smoothed E sigma(psi) of `posterior_of`'s model by quadrature on a grid."""

    def normal(x, mean, var):
        return np.exp(-0.5 * (x - mean) ** 2 / var) / np.sqrt(2.0 * np.pi * var)

    move = normal(grid[:, None], 0.8 * grid[None, :], 0.5)  # to, from
    share = sigma(0.2 + 1.5 * grid)
    filtered, smoothed = np.empty(data.num_steps), np.empty(data.num_steps)
    counts = data.to_csr().toarray()
    likelihood = share ** counts[:, :1] * (1.0 - share) ** counts[:, 1:]
    for s in range(data.num_sequences):
        steps = range(data.offsets[s], data.offsets[s + 1])
        forward, law = {}, normal(grid, 0.3, 1.0)
        for t in steps:
            law = law * likelihood[t]
            law /= law.sum()
            forward[t], filtered[t] = law, law @ share
            law = move @ law
        backward = np.ones(len(grid))
        for t in reversed(steps):
            both = forward[t] * backward
            smoothed[t] = both @ share / both.sum()
            backward = move.T @ (likelihood[t] * backward)
            backward /= backward.max()
    return filtered, smoothed


GRID = np.linspace(-7.0, 7.0, 281)


def test_filtered_probabilities_are_those_of_a_grid():
    found = filter_sequences(
        posterior_of(TWO, 2000), TWO, levels=LEVELS, max_draws=2000, num_particles=50
    )
    expected, _ = exact(TWO, GRID)
    np.testing.assert_allclose(found.mean[:, 0], expected, atol=0.025)
    np.testing.assert_allclose(found.mean.sum(axis=1), 1.0)
    assert found.quantiles.shape == (3, TWO.num_steps, 2)
    assert (np.diff(found.quantiles, axis=0) >= 0).all()


def test_smoothed_probabilities_are_those_of_a_grid():
    found = smooth(posterior_of(TWO, 600), TWO, max_draws=600, warm_up=12, sweeps=1)
    _, expected = exact(TWO, GRID)
    np.testing.assert_allclose(found.mean[:, 0], expected, atol=0.04)
    np.testing.assert_allclose(found.levels, [0.05, 0.5, 0.95])


def test_smoothing_starts_where_the_filter_is():
    data = as_sequences([np.tile([990, 10], (6, 1))], order=[0, 1])
    found = smooth(posterior_of(data, 20), data, max_draws=20, warm_up=1, sweeps=1)
    np.testing.assert_allclose(found.mean[:, 0], 0.99, atol=0.006)  # from 0 it would be at 0.93


def test_imputed_symbols_have_the_smoothed_probabilities():
    _, expected = exact(TWO, GRID)
    found = impute(posterior_of(TWO, 600), TWO, max_draws=600, warm_up=12, sweeps=1)
    np.testing.assert_array_equal(found.steps, [3, 8])
    np.testing.assert_allclose(found.mean[:, 0], expected[[3, 8]], atol=0.04)
    assert found.simulated.shape == (600, 2)
    share = (found.simulated == 0).mean(axis=0)
    np.testing.assert_allclose(share, expected[[3, 8]], atol=4.5 * 0.5 / np.sqrt(600))


def test_forecasts_follow_the_dynamics():
    u = np.zeros((TWO.num_steps, 1))
    data = as_sequences(TWO, inputs=u)
    last = np.array([[1.0], [-2.0]])
    posterior = posterior_of(
        data, 4000, last_states=last, input_weights=[[0.7]], emission_weights=[[-0.4]]
    )
    ahead = np.array([[[1.0], [0.0]], [[0.0], [2.0]]])
    found = forecast(posterior, data, 2, inputs=ahead, levels=LEVELS, max_draws=4000)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    for s in range(2):
        mean, var = last[s, 0], 0.0
        for t in range(2):
            mean, var = 0.8 * mean + 0.7 * ahead[s, t, 0], 0.64 * var + 0.5
            psi = 0.2 + 1.5 * (mean + np.sqrt(var) * nodes) - 0.4 * ahead[s, t, 0]
            expected = sigma(psi) @ weights / weights.sum()
            assert abs(found.mean[s, t, 0] - expected) < 0.025
            assert abs((found.simulated[:, s, t] == 0).mean() - expected) < 0.04
            middle = sigma(0.2 + 1.5 * mean - 0.4 * ahead[s, t, 0])
            assert abs(found.quantiles[1, s, t, 0] - middle) < 0.03


def test_new_sequences_are_filtered_first():
    new = as_sequences([[0] * 12], num_symbols=2, order=[0, 1])
    found = forecast(posterior_of(TWO, 1000), new, 1, new=True, max_draws=1000, num_particles=50)
    longer, _ = exact(new.extended(1), GRID)
    assert abs(found.mean[0, 0, 0] - longer[-1]) < 0.03


def test_softmax_posteriors():
    posterior = posterior_of(TWO, 4, link="softmax", loadings=[[1.0], [-1.0]], offset=[0.0, 1.0])
    assert forecast(posterior, TWO, 3).mean.shape == (2, 3, 2)
    np.testing.assert_allclose(filter_sequences(posterior, TWO).mean.sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="stick-breaking link"):
        smooth(posterior, TWO)


def test_one_seed_one_answer():
    posterior = posterior_of(TWO, 8)
    one, two = (forecast(posterior, TWO, 2, random_seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.simulated, two.simulated)
    np.testing.assert_array_equal(one.mean, two.mean)


def test_bad_questions():
    posterior = posterior_of(TWO)
    with pytest.raises(ValueError, match="steps must be at least 1"):
        forecast(posterior, TWO, 0)
    with pytest.raises(ValueError, match="levels must be numbers from 0 to 1"):
        forecast(posterior, TWO, 1, levels=[5, 95])
    with pytest.raises(ValueError, match="no inputs"):
        forecast(posterior, TWO, 1, inputs=np.zeros((2, 1, 1)))
    with pytest.raises(ValueError, match="of 2 sequences, the data of 1"):
        forecast(posterior, TWO.take([0]), 1)
    with pytest.raises(ValueError, match="different alphabets"):
        smooth(posterior, as_sequences([[0, 1, 2, 3]]))
    with pytest.raises(ValueError, match="nothing to impute"):
        impute(posterior, as_sequences([[0, 1]]))
    without = Posterior({"offset": posterior["offset"]})
    with pytest.raises(ValueError, match="lacks transition, noise_cov"):
        filter_sequences(without, TWO)


def test_sticks_in_another_order_are_refused():
    posterior = posterior_of(TWO)
    named = Posterior(
        {name: posterior[name] for name in posterior},
        dims={"offset": ["stick"]}, coords={"stick": [0]},
    )  # fmt: skip
    forecast(named, TWO, 1)
    with pytest.raises(ValueError, match="sticks of the posterior break for"):
        forecast(named, as_sequences(TWO, order=[1, 0]), 1)
