"""A linear dynamical system with Gaussian observations, made of the pieces, has the right law."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from oracle.dynamics import project

from pgmult import DiagonalPotential, MatrixNormalInverseWishart, NormalInverseWishart
from pgmult.sequences.priors.dynamics import LinearDynamics
from pgmult.sequences.updates.conjugate import (
    draw_dynamics,
    draw_initial,
    first_sums,
    transition_sums,
)
from pgmult.testing import check_geweke, check_model, mutant, rejects

pytestmark = pytest.mark.slow

LOADINGS = np.array([[1.0, -0.5], [0.3, 1.2]])
OFFSET = np.array([0.5, -1.0])
PRIOR = MatrixNormalInverseWishart(0.5 * np.eye(3, 2), np.eye(3), 4.0, 0.5 * np.eye(2))
INITIAL = NormalInverseWishart(np.array([1.0, -1.0]), 1.0, 5.0, np.eye(2))


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    y: np.ndarray  # (num_steps, 2)
    inputs: np.ndarray  # (num_steps, 1)
    offsets: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class SignalState:
    states: np.ndarray
    transition: np.ndarray
    input_weights: np.ndarray
    noise_cov: np.ndarray
    initial_mean: np.ndarray
    initial_cov: np.ndarray


@dataclass(frozen=True)
class GaussianSignals:
    """y_t ~ N(offset + loadings x_t, I); x by linear dynamics with inputs."""

    dims: ClassVar = {
        "states": ("step", "dim"),
        "transition": ("dim", "from"),
        "input_weights": ("dim", "input"),
        "noise_cov": ("dim", "from"),
        "initial_mean": ("dim",),
        "initial_cov": ("dim", "from"),
    }
    default_keep: ClassVar = ("transition",)
    label_dims: ClassVar = frozenset()

    def coords(self, data):
        return {}

    def prior(self, rng, data):
        return self.with_states(rng, self.prior_parameters(rng), data)

    def prior_parameters(self, rng):
        coefficients, noise_cov = PRIOR.sample(rng)
        mean, cov = INITIAL.sample(rng)
        A, W = coefficients[:2].T.copy(), coefficients[2:].T.copy()
        return SignalState(np.empty((0, 2)), A, W, noise_cov, mean, cov)

    def simulate(self, rng, state, data):
        noise = rng.standard_normal(data.y.shape)
        return replace(data, y=OFFSET + state.states @ LOADINGS.T + noise)

    def init(self, rng, data):
        return self.prior(rng, data)

    def step(self, rng, state, data):
        state = replace(state, states=self.draw_states(rng, state, data))
        return self.draw_parameters(rng, state, data)

    def law(self, state, data):
        return LinearDynamics(
            state.transition, state.noise_cov, state.initial_mean, state.initial_cov, data.offsets
        ).driven(data.inputs, state.input_weights)

    def with_states(self, rng, state, data):
        return replace(state, states=self.law(state, data).sample(rng))

    def draw_states(self, rng, state, data):
        seen = project(DiagonalPotential(np.ones(data.y.shape), data.y), LOADINGS, OFFSET)
        return replace(self.law(state, data), potential=seen).sample(rng)

    def draw_parameters(self, rng, state, data):
        about = np.concatenate([state.transition, state.input_weights], axis=1)
        later = transition_sums(state.states, data.offsets, data.inputs, about)
        A, W, Q = draw_dynamics(rng, PRIOR, later)
        first = first_sums(state.states, data.offsets, state.initial_mean)
        mean, cov = draw_initial(rng, INITIAL, first)
        return SignalState(state.states, A, W, Q, mean, cov)

    def log_likelihood(self, state, data):
        return -0.5 * float(((data.y - OFFSET - state.states @ LOADINGS.T) ** 2).sum())


FREE = GaussianSignals()
DATA = Signals(
    np.zeros((7, 2)),
    np.array([[1.0], [-1.0], [2.0], [0.5], [1.5], [-2.0], [1.0]]),
    np.array([0, 4, 5, 7]),
)


def innovations(state, data):
    """Of every step but the first ones, squared and with the step before."""
    later = [1, 2, 3, 6]
    x, before = state.states[later], state.states[[0, 1, 2, 5]]
    e = x - before @ state.transition.T - data.inputs[later] @ state.input_weights.T
    scaled = np.linalg.solve(state.noise_cov, e.T).T
    return np.array([np.sum(e * scaled), (before[:, 0] * scaled[:, 1]).sum(), scaled.sum()])


def first_states(state, data):
    gap = state.states[[0, 4, 5]] - state.initial_mean
    scaled = np.linalg.solve(state.initial_cov, gap.T).T
    return np.array([np.sum(gap * scaled), scaled.sum()])


STATISTICS = {
    **{
        name: lambda state, data, name=name: getattr(state, name)
        for name in ("states", "transition", "input_weights", "noise_cov", "initial_cov")
    },
    "innovations": innovations,
    "first states": first_states,
    "fit": FREE.log_likelihood,
}


def test_the_pieces_make_a_right_sampler():
    check_model(FREE, DATA, statistics=STATISTICS)


def without_first_states(self, rng, state, data):
    return replace(FREE.draw_parameters(rng, state, data), **dict(zip(
        ("initial_mean", "initial_cov"), INITIAL.sample(rng), strict=True,
    )))  # fmt: skip


def changed(**change):
    """Parameters drawn rightly, then changed."""

    def draw_parameters(self, rng, state, data):
        state = FREE.draw_parameters(rng, state, data)
        return replace(state, **{name: f(getattr(state, name)) for name, f in change.items()})

    return mutant(FREE, draw_parameters=draw_parameters)


def handed(offsets=None, inputs=None):
    """Parameters drawn from the right states with other offsets or inputs."""

    def draw_parameters(self, rng, state, data):
        data = replace(
            data,
            offsets=data.offsets if offsets is None else offsets,
            inputs=data.inputs if inputs is None else inputs,
        )
        return FREE.draw_parameters(rng, state, data)

    return mutant(FREE, draw_parameters=draw_parameters)


def states_under(change):
    """States drawn under another law than that of the model."""

    def draw_states(self, rng, state, data):
        seen = project(DiagonalPotential(np.ones(data.y.shape), data.y), LOADINGS, OFFSET)
        return change(self.law(state, data), seen, state, data).sample(rng)

    return mutant(FREE, draw_states=draw_states)


ONE_SEQUENCE = np.array([0, 7])
BROKEN = {
    "A transposed": changed(transition=np.transpose),
    "Q for its inverse": changed(noise_cov=np.linalg.inv),
    "first states forgotten": mutant(FREE, draw_parameters=without_first_states),
    "inputs forgotten": handed(inputs=np.zeros((7, 1))),
    "a transition from one sequence into the next": handed(offsets=ONE_SEQUENCE),
    "states: drive forgotten": states_under(
        lambda law, seen, state, data: replace(law, drive=None, potential=seen)
    ),
    "states: drive of first steps": states_under(
        lambda law, seen, state, data: replace(
            law, drive=data.inputs @ state.input_weights.T, potential=seen
        )
    ),
    "states: A transposed": states_under(
        lambda law, seen, state, data: replace(
            law, transition=state.transition.T.copy(), potential=seen
        )
    ),
    "states: all sequences in one": states_under(
        lambda law, seen, state, data: replace(law, offsets=ONE_SEQUENCE, potential=seen)
    ),
    "states: initial covariance too large": states_under(
        lambda law, seen, state, data: replace(
            law, initial_cov=4.0 * state.initial_cov, potential=seen
        )
    ),
    "states: half of every potential": states_under(
        lambda law, seen, state, data: replace(
            law, potential=replace(seen, J=seen.J / 2.0, h=seen.h / 2.0)
        )
    ),
    "states: offset forgotten": states_under(
        lambda law, seen, state, data: replace(law, potential=replace(seen, h=data.y @ LOADINGS))
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_geweke_refuses_broken_samplers(kind):
    rejects(check_geweke, BROKEN[kind], DATA, statistics=STATISTICS, replicates=400)
