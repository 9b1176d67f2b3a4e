"""The sampler of raw vectors' dynamics is right, and the harness refuses it when it is broken."""

from dataclasses import replace

import numpy as np
import pytest

from examples.papers.linderman2015 import gaussian_lds as lds_module
from examples.papers.linderman2015.dynamics import sample_dynamics
from examples.papers.linderman2015.gaussian_lds import GaussianLDS
from examples.papers.linderman2015.vectors import as_vector_sequences
from pgmult.sequences.priors.dynamics import LinearDynamics
from pgmult.testing import check_geweke, check_model, mutant, rejects

pytestmark = pytest.mark.slow

VECTORS = [np.zeros((10, 2)), np.zeros((6, 2))]
VECTORS[0][[2, 6, 7]] = np.nan
VECTORS = as_vector_sequences(VECTORS)
LDS = GaussianLDS(
    1, loadings_precision=0.5, offset_precision=1.0, emission_shape=4.0, emission_scale=2.0
)


def lagged(state, data):
    """Products of successive vectors, weighed by what the parameters expect of them."""
    return np.sum(data.values[1:] * data.values[:-1]) * state.transition[0, 0]


LDS_STATISTICS = {
    **{
        name: lambda state, data, name=name: getattr(state, name)
        for name in LDS.predictive_variables
    },
    "log_likelihood": LDS.log_likelihood,
    "lagged": lagged,
    "level": lambda state, data: data.values.mean(axis=0) * state.offset,
    "loadings product": lambda state, data: state.loadings[0] * state.loadings[1],
}


@pytest.mark.parametrize("state_dim", [1, 2])
def test_gaussian_lds(state_dim):
    model = replace(LDS, state_dim=state_dim, dynamics=None)
    statistics = None if state_dim == 2 else LDS_STATISTICS
    check_model(model, VECTORS, statistics=statistics, replicates=300)


def with_posterior(change):
    """States drawn given something else."""

    def step(self, rng, state, data):
        states = lds_module.law_of_states(*change(state, data)).sample(rng)
        return LDS._sample_parameters(rng, states, data)

    return mutant(LDS, step=step)


def changed_emission(change):
    def sample(self, rng, values, states):
        return change(LDS._sample_emission(rng, values, states), rng, values, states)

    return mutant(LDS, _sample_emission=sample)


def one_sequence(self, rng, states, data):
    """The dynamics learn from the step between two sequences."""
    A, Q = sample_dynamics(rng, self._mniw, states, data.offsets[[0, -1]])
    return replace(LDS._sample_parameters(rng, states, data), transition=A, noise_cov=Q)


def missing_as_zero(self, rng, states, data):
    return LDS._sample_parameters(rng, states, replace(data, observed=np.ones(16, dtype=bool)))


BROKEN_LDS = {
    "the offset forgotten in h": with_posterior(
        lambda state, data: (replace(state, offset=0.0 * state.offset), data)
    ),
    "variance for precision": with_posterior(
        lambda state, data: (replace(state, emission_var=1.0 / state.emission_var), data)
    ),
    "noise twice": with_posterior(
        lambda state, data: (replace(state, noise_cov=4.0 * state.noise_cov), data)
    ),
    "a leak between states": with_posterior(
        lambda state, data: (state, replace(data, offsets=data.offsets[[0, -1]]))
    ),
    "a leak between sequences": mutant(LDS, _sample_parameters=one_sequence),
    "missing steps seen as zeros": mutant(LDS, _sample_parameters=missing_as_zero),
    "emissions from their prior": changed_emission(
        lambda new, rng, values, states: LDS._sample_emission(rng, values[:0], states[:0])
    ),
    "half of the steps": mutant(
        LDS,
        _sample_emission=lambda self, rng, values, states: LDS._sample_emission(
            rng, values[::2], states[::2]
        ),
    ),
    "the variance from its prior": changed_emission(
        lambda new, rng, values, states: (
            *new[:2], LDS._sample_emission(rng, values[:0], states[:0])[2]
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN_LDS)
def test_geweke_refuses_broken_gaussian_lds(kind):
    rejects(check_geweke, BROKEN_LDS[kind], VECTORS, statistics=LDS_STATISTICS, replicates=400)


def test_geweke_refuses_another_start(monkeypatch):
    """The sampler thinks that first states have the variance of the innovations."""
    right = lds_module.law_of_states

    def posterior(state, data):
        law = right(state, data)
        assert isinstance(law, LinearDynamics)
        return replace(law, initial_cov=100.0 * law.initial_cov)

    monkeypatch.setattr(lds_module, "law_of_states", posterior)
    statistics = {k: v for k, v in LDS_STATISTICS.items() if k != "log_likelihood"}
    rejects(check_geweke, LDS, VECTORS, statistics=statistics, replicates=300)
