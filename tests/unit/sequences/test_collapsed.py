"""The density of dynamics and weights given omega, its gradient, and the states drawn with it."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.sampling.blocks import Sums, finished
from pgmult.sequences.active_sticks import ActiveSticks
from pgmult.sequences.compiled import collapsed as compiled
from pgmult.sequences.data.sequences import as_sequences
from pgmult.sequences.models.lds import MultinomialLDS
from pgmult.sequences.updates.collapsed import Augmented, Collapsed, Drawn, walk_collapsed
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
    """A state of a model, omega there, and the density of what a path moves.

    Sequences are in blocks of `size`; by default there is one.
    """

    def __init__(self, model, data, size=None, noise_cov=None):
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
        self.moments = model._weight_moments(
            self.weights.shape, self.state.loading_var, self.state.hyperparameters, data
        )
        self.noise_cov = self.state.noise_cov if noise_cov is None else noise_cov
        dense, self.blocks = self.active.dense(self.omega), []
        for first in range(0, data.num_sequences, size or data.num_sequences):
            part = data.rows(slice(first, first + (size or data.num_sequences)))
            steps = slice(*data.offsets[[first, first + part.num_sequences]])
            active = ActiveSticks.of(part)
            held = Augmented(
                np.random.default_rng(first), active, laid_out(active, dense[steps]), part.offsets,
                design[steps], model._driving(part), self.noise_cov,
                (self.state.initial_mean, self.state.initial_cov), only=size is None,
            )  # fmt: skip
            self.blocks.append(held)
        self.density = Collapsed(self.noise_cov, self.prior, *self.moments, data.whole)

    def sums(self, dynamics, weights):
        """What all blocks say."""
        parts = [held.evaluate(dynamics, weights).rounded for held in self.blocks]
        return Sums((), tuple(np.sum(values, axis=0) for values in zip(*parts, strict=True)))

    def at(self, dynamics, weights):
        """The log density, and its gradient."""
        by_dynamics, by_weights = np.empty(dynamics.shape), np.empty(weights.shape)
        return (
            self.density.log_density(
                self.sums(dynamics, weights), dynamics, weights, by_dynamics, by_weights
            ),
            by_dynamics, by_weights,
        )  # fmt: skip

    def walk(self, rng):
        """A path from where the state is."""
        sums = self.sums(self.dynamics, self.weights)
        walk = walk_collapsed(rng, self.density, sums, self.dynamics, self.weights, "evaluate")
        return finished(walk, lambda number, ask: self.sums(*ask.arrays))

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


def laid_out(active, dense):
    """Omega as the active pairs of some steps have it."""
    omega = np.zeros(8 * int(active.starts[-1]))
    for g, start in enumerate(active.starts[:-1]):
        steps = active.order[8 * g : 8 * g + 8]
        for k in range(active.depths[steps[0]]):
            place = 8 * (start + k)
            omega[place : place + len(steps)] = dense[steps, k]
    return omega


@pytest.fixture(params=MODELS)
def case(request):
    return Case(*MODELS[request.param])


def test_density_with_the_states_integrated_out(case):
    rng = np.random.default_rng(5)
    points = [case.point(rng) for _ in range(5)]
    conditional_ratio(lambda p: case.joint(*p), lambda p: case.at(*p)[0], points)
    noisier = Case(case.model, case.data)
    noisier.blocks[0].noise_cov = noisier.blocks[0].noise_cov / 0.9
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


def test_blocks_add_up(case):
    """The density and its slopes are those of all sequences; states go by either's factors."""
    dynamics, weights = case.point(np.random.default_rng(9))
    apart = Case(case.model, case.data, size=1)
    assert len(apart.blocks) == case.data.num_sequences > 1
    for one, other in zip(case.at(dynamics, weights), apart.at(dynamics, weights), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    apart.blocks.pop()
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(
            case.at(dynamics, weights)[0], apart.at(dynamics, weights)[0], rtol=1e-9
        )


def test_factors_that_were_not_kept_are_made_again(case):
    """Bit for bit: so it does not matter which evaluations a block remembers."""
    first, second = [case.point(np.random.default_rng(seed)) for seed in (10, 11)]
    draws = []
    for keep, visited in ((True, (first, second, first)), (True, (second,)), (False, ())):
        held = Case(case.model, case.data).blocks[0]
        held.keep = held._only = keep
        for point in visited:
            held.evaluate(*point)
        draws.append(held.sample_states(*first))
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_array_equal(draws[0], draws[2])


def test_states_drawn_with_the_factors_have_their_law(case):
    dynamics, weights = case.point(np.random.default_rng(7))
    held = case.blocks[0]
    held.evaluate(dynamics, weights)
    means, covs, cross = case.law(dynamics, weights).smooth()
    _, roots, found = held._factors[-1]
    shape = found.shape
    np.testing.assert_allclose(found, means, atol=1e-10)
    np.testing.assert_allclose(held._work.covs, covs, atol=1e-10)

    def drawn(noise):
        x = noise.copy()
        compiled.draw_states(held.offsets, dynamics, held._work.chain.precision, roots, found, x)
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
    found = case.walk(np.random.default_rng(8))
    assert found.chance > 0.999
    assert 0.0 < np.abs(found.weights - case.weights).max() < 0.1
    monkeypatch.setattr(f"{module}._STEP_SIZE", 1e3)
    found = case.walk(np.random.default_rng(8))
    assert found.chance < 1e-6
    np.testing.assert_array_equal(found.weights, case.weights)
    np.testing.assert_array_equal(found.dynamics, case.dynamics)


def test_a_nearly_singular_noise_leaves_the_states_to_the_square_root_filter():
    direction = np.array([1.0, 1.0])
    thin = np.outer(direction, direction) + 1e-13 * np.eye(2)
    case = Case(*MODELS["symbols"], noise_cov=thin)
    assert case.blocks[0].sample_states(case.dynamics, case.weights) is None
    found = case.walk(np.random.default_rng(0))
    assert found == Drawn(case.dynamics, case.weights, 0.0)
    state = replace(case.state, noise_cov=thin)
    moved = case.model.step(np.random.default_rng(0), state, case.data)
    assert np.isfinite(moved.states).all()
