"""The density of dynamics and weights given omega, its gradient, and the states drawn with it."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.sequences.active_sticks import ActiveSticks
from pgmult.sequences.compiled import collapsed as compiled
from pgmult.sequences.data.sequences import as_sequences
from pgmult.sequences.models.lds import MultinomialLDS
from pgmult.sequences.updates.collapsed import Collapsed, sample_collapsed
from pgmult.testing import conditional_ratio, rejects

SYMBOLS = as_sequences([[0, 2, -1, 1, 0], [1, 1, 3, 0], [2]])
COUNTS = as_sequences(
    [
        np.array([[1, 2, 0, 0], [0, 0, 0, 0], [3, 0, 1, 1], [0, 1, 0, 2], [1, 0, 0, 0]]),
        np.array([[0, 1, 0, 2], [0, 0, 0, 4], [2, 2, 0, 0], [0, 1, 1, 0]]),
    ],
    inputs=np.random.default_rng(9).standard_normal((9, 2)),
)
MODELS = {
    "symbols": (MultinomialLDS(2), SYMBOLS),
    "counts": (MultinomialLDS(2), COUNTS),
    "emissions": (MultinomialLDS(1, inputs="emissions"), COUNTS),
    "dynamics": (MultinomialLDS(3, inputs="dynamics"), COUNTS),
}


class Case:
    """A state of a model, omega there, and the density of what a path moves."""

    def __init__(self, model, data):
        rng = np.random.default_rng(3)
        self.model, self.data, self.state = model, data, model.prior(rng, data)
        self.active = ActiveSticks.of(data)
        design, self.weights = model._design(self.state.states, data), model._weights(self.state)
        self.omega = self.active.augment(rng, design, self.weights)
        self.known, inputs = design[:, model.state_dim :], model._driving(data)
        self.dynamics = self.state.transition
        if inputs is not None:
            self.dynamics = np.concatenate([self.dynamics, self.state.input_weights], axis=1)
        self.prior = model._dynamics(data)
        self.moments = model._weight_moments(self.weights.shape, self.state.loading_var, data)
        self.density = Collapsed(
            self.active, self.omega, data.offsets, self.known, inputs, self.state.noise_cov,
            (self.state.initial_mean, self.state.initial_cov), self.prior, *self.moments,
        )  # fmt: skip

    def at(self, dynamics, weights):
        """The log density, and its gradient."""
        by_dynamics, by_weights = np.empty(dynamics.shape), np.empty(weights.shape)
        return (
            self.density.log_density(dynamics, weights, by_dynamics, by_weights), by_dynamics,
            by_weights,
        )  # fmt: skip

    def law(self, dynamics, weights):
        """The states given omega, by `LinearDynamics`."""
        D = self.model.state_dim
        seen = self.active.potential(
            self.omega, np.c_[np.zeros((len(self.known), D)), self.known], weights, D
        )
        return self.model._law_of(
            self.data, dynamics[:, :D].copy(), dynamics[:, D:].copy(), self.state.noise_cov,
            self.state.initial_mean, self.state.initial_cov, seen,
        )  # fmt: skip

    def joint(self, dynamics, weights):
        """The same density, assembled from parts that do not know of it."""
        D = self.model.state_dim
        total = self.law(dynamics, weights).log_normalizer().sum()
        base = self.known @ weights[:, D:].T
        counts = self.data.to_csr().toarray()[:, self.data.order]
        reaching = counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, :-1]
        total += ((counts[:, :-1] - 0.5 * reaching) * base).sum()
        total -= 0.5 * (self.active.dense(self.omega) * base**2).sum()
        mean, var = self.moments
        total -= 0.5 * ((weights - mean) ** 2 / var).sum()
        return total + self.prior.log_density(dynamics.T, self.state.noise_cov)

    def point(self, rng):
        noise = rng.standard_normal(self.dynamics.shape), rng.standard_normal(self.weights.shape)
        return self.dynamics + 0.3 * noise[0], self.weights + noise[1]


@pytest.fixture(params=MODELS)
def case(request):
    return Case(*MODELS[request.param])


def test_density_with_the_states_integrated_out(case):
    rng = np.random.default_rng(5)
    points = [case.point(rng) for _ in range(5)]
    conditional_ratio(lambda p: case.joint(*p), lambda p: case.at(*p)[0], points)
    noisier = Case(case.model, case.data)
    noisier.density.precision = 0.9 * noisier.density.precision
    rejects(conditional_ratio, lambda p: case.joint(*p), lambda p: noisier.at(*p)[0], points)


def test_gradients_by_finite_differences(case):
    point = case.point(np.random.default_rng(6))
    gradients = case.at(*point)[1:]
    step = 1e-5
    for place, gradient in enumerate(gradients):
        for entry in np.ndindex(gradient.shape):
            ends = []
            for sign in (1.0, -1.0):
                moved = [x.copy() for x in point]
                moved[place][entry] += sign * step
                ends.append(case.at(*moved)[0])
            slope = (ends[0] - ends[1]) / (2.0 * step)
            assert abs(slope - gradient[entry]) < 1e-6 * (1.0 + abs(slope))


def test_states_drawn_with_the_factors_have_their_law(case):
    dynamics, weights = case.point(np.random.default_rng(7))
    case.at(dynamics, weights)
    means, covs, cross = case.law(dynamics, weights).smooth()
    density, shape = case.density, case.density.means.shape
    np.testing.assert_allclose(density.means, means, atol=1e-10)
    np.testing.assert_allclose(density.covs, covs, atol=1e-10)

    def drawn(noise):
        x = noise.copy()
        compiled.draw_states(
            density.offsets, dynamics, density.precision, density.roots, density.means, x
        )
        return x

    np.testing.assert_allclose(drawn(np.zeros(shape)), means, atol=1e-10)
    units = np.eye(means.size).reshape(-1, *shape)
    columns = np.array([(drawn(unit) - means).ravel() for unit in units]).T
    dense = (columns @ columns.T).reshape(*shape, *shape)
    for t in range(shape[0]):
        np.testing.assert_allclose(dense[t, :, t], covs[t], atol=1e-9)
        if t not in case.data.offsets:
            np.testing.assert_allclose(dense[t, :, t - 1], cross[t], atol=1e-9)


def test_a_path_can_be_walked_back(case, monkeypatch):
    """Tiny steps are accepted; steps far too long are not, and then nothing has moved."""
    module = "pgmult.sequences.updates.collapsed"
    monkeypatch.setattr(f"{module}._STEP_SIZE", 1e-3)
    found = sample_collapsed(np.random.default_rng(8), case.density, case.dynamics, case.weights)
    assert found.chance > 0.999
    assert 0.0 < np.abs(found.weights - case.weights).max() < 0.1
    monkeypatch.setattr(f"{module}._STEP_SIZE", 1e3)
    found = sample_collapsed(np.random.default_rng(8), case.density, case.dynamics, case.weights)
    assert found.chance < 1e-6
    np.testing.assert_array_equal(found.weights, case.weights)
    np.testing.assert_array_equal(found.dynamics, case.dynamics)


def test_a_nearly_singular_noise_leaves_the_states_to_the_square_root_filter():
    case = Case(*MODELS["symbols"])
    direction = np.array([1.0, 1.0])
    thin = np.outer(direction, direction) + 1e-13 * np.eye(2)
    density = Collapsed(
        case.active, case.omega, case.data.offsets, case.known, None, thin,
        (case.state.initial_mean, case.state.initial_cov), case.prior, *case.moments,
    )  # fmt: skip
    found = sample_collapsed(np.random.default_rng(0), density, case.dynamics, case.weights)
    assert found.states is None
    state = replace(case.state, noise_cov=thin)
    moved = case.model.step(np.random.default_rng(0), state, case.data)
    assert np.isfinite(moved.states).all()
