"""The samplers of the sequence baselines are right, and the harness refuses them when broken."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.sequences import MultinomialHMM, as_sequences, in_channels
from pgmult.sequences.compiled import hmm as compiled
from pgmult.sequences.models import hmm as hmm_module
from pgmult.sequences.scores.rivals import bare
from pgmult.testing import check_geweke, check_model, check_sbc, mutant, rejects

pytestmark = pytest.mark.slow

# Two sequences; a symbol, rows of counts and a missing step.
SEQUENCES = as_sequences(
    [
        np.array([[1, 0, 0], [0, 2, 4], [0, 0, 0], [3, 0, 0], [0, 1, 0], [2, 2, 0]]),
        np.array([[0, 2, 0], [0, 0, 1], [5, 0, 0]]),
    ]
)
KNOWN = SEQUENCES.with_known_states(["a", None, "b", None, None, "a", None, "b", None])
SHORT = as_sequences([np.array([[6, 0, 0], [0, 4, 1]])] * 8 + [np.array([[0, 5, 0]])] * 4)
HMM = MultinomialHMM(
    num_states=2, transition_concentration=None, emission_concentration=None, stickiness=None,
    concentration_shape=3.0, concentration_rate=3.0, stickiness_shape=3.0, stickiness_rate=1.0,
    start_tries=1, start_sweeps=0,
)  # fmt: skip
GIVEN = replace(
    HMM, num_states=3, transition_concentration=0.4, emission_concentration=0.4, stickiness=0.8
)

LEFT_TO_RIGHT = replace(HMM, num_states=3, allowed=np.triu(np.ones((3, 3), dtype=bool)))


def transposed(state):
    columns = state.transition.T
    return replace(state, transition=columns / columns.sum(axis=1, keepdims=True))


def direction(state, data):
    """Whether the transitions suit the data better than their transposes."""
    return HMM.log_likelihood(state, data) - HMM.log_likelihood(transposed(state), data)


def bond(state, data):
    """Whether the transitions suit the data better than independent steps."""
    alone = np.tile(state.transition.mean(axis=0), (len(state.initial), 1))
    return HMM.log_likelihood(state, data) - HMM.log_likelihood(
        replace(state, transition=alone), data
    )


def mean_symbol(state, data):
    return (data.to_csr().toarray().mean(axis=0) * state.emission).sum()


def share_of_staying(state, data):
    return np.trace(state.transition)


STATISTICS = {
    **{
        name: lambda state, data, name=name: getattr(state, name)
        for name in HMM.dims
        if name in HMM.default_keep and name != "effective_states"
    },
    "log_likelihood": HMM.log_likelihood,
    "last state": lambda state, data: HMM.filtered_state_probs(state, data)[1][
        data.offsets[1:] - 1
    ],
    "direction": direction,
    "bond": bond,
    "mean symbol": mean_symbol,
    "share of staying": share_of_staying,
}


@pytest.mark.parametrize(
    "model",
    [HMM, GIVEN, LEFT_TO_RIGHT],
    ids=["all learned", "concentrations given", "left to right"],
)
def test_hidden_markov_models(model):
    check_model(model, SEQUENCES, statistics=STATISTICS, replicates=400)


def test_several_channels():
    both = in_channels({"a": [[0, 2, -1, 1, 0], [1, 1]], "b": [[1, -1, -1, 0, 1], [0, 1]]})
    check_model(HMM, both, statistics=STATISTICS, replicates=400)


def test_states_that_are_known_at_some_steps():
    check_model(HMM, KNOWN, statistics=STATISTICS, replicates=400)


def states_of_others(self, rng, state, data):
    """States drawn as if none were known."""
    return HMM.sample_states(rng, state, bare(data))


def test_sweeps_that_forget_known_states_are_refused():
    broken = mutant(HMM, sample_states=states_of_others)
    rejects(check_geweke, broken, KNOWN, statistics=STATISTICS, replicates=400)


def test_hidden_markov_models_in_logarithms(monkeypatch):
    monkeypatch.setattr(compiled, "SMALLEST", np.inf)
    check_geweke(HMM, SEQUENCES, statistics=STATISTICS, replicates=300)


def test_hidden_markov_models_reach_the_posterior():
    identified = {"log_likelihood": GIVEN.log_likelihood, "mean symbol": mean_symbol}
    check_sbc(GIVEN, SEQUENCES, identified, tune=20, thin=3, replicates=60)


# ------------------------------------------------------------------ broken hidden Markov models


def test_concentrations_that_do_not_know_what_is_allowed_are_refused(monkeypatch):
    """Rows are drawn of what is allowed, concentrations learned as if every transition were."""
    right = hmm_module.sample_concentrations
    monkeypatch.setattr(
        hmm_module, "sample_concentrations",
        lambda rng, model, state, counts: right(rng, replace(model, allowed=None), state, counts),
    )  # fmt: skip
    rejects(check_geweke, LEFT_TO_RIGHT, SEQUENCES, statistics=STATISTICS, replicates=400)


def changed_counts(change):
    return mutant(GIVEN, _count=lambda self, states, data: change(GIVEN._count(states, data)))


def leak(self, states, data):
    """A transition counted from the end of one sequence to the start of the next."""
    whole = replace(data, offsets=data.offsets[[0, -1]])
    return GIVEN._count(states, whole)._replace(initial=GIVEN._count(states, data).initial)


def with_state(change):
    """States drawn given other parameters."""

    def sample_states(self, rng, state, data):
        return GIVEN.sample_states(rng, change(state), data)

    return mutant(GIVEN, sample_states=sample_states)


def filter_alone(self, rng, state, data):
    """Every state from its filtered law, not given the one after it."""
    states = GIVEN.sample_states(rng, state, data)
    for s in range(data.num_sequences):
        for t in range(1, data.lengths[s]):
            past = data.take([s]).split(t)[0]
            weights = GIVEN.filtered_state_probs(state, past)[1][-1]
            states[data.offsets[s] + t - 1] = rng.choice(3, p=weights)
    return states


def stale_states(self, rng, state, data):
    """States drawn before the data were: of the same parameters, given other observations."""
    return GIVEN.sample_states(rng, state, GIVEN.simulate(rng, state, data))


BROKEN_HMMS = {
    "counts of transitions transposed": changed_counts(
        lambda c: c._replace(transition=c.transition.T)
    ),
    "first states forgotten": changed_counts(lambda c: c._replace(initial=0.0 * c.initial)),
    "emissions forgotten": changed_counts(
        lambda c: c._replace(emissions=[0.0 * own for own in c.emissions])
    ),
    "a leak between sequences": mutant(GIVEN, _count=leak),
    "transition transposed in the filter": with_state(transposed),
    "states that ignore their neighbours": with_state(
        lambda state: replace(state, transition=np.tile(state.initial, (3, 1)))
    ),
    "states that ignore the observations": with_state(
        lambda state: replace(state, emission=np.tile(state.emission.mean(axis=0), (3, 1)))
    ),
    "states from the filter alone": mutant(GIVEN, sample_states=filter_alone),
    "stale states": mutant(GIVEN, sample_states=stale_states),
}


@pytest.mark.parametrize("kind", BROKEN_HMMS)
def test_geweke_refuses_broken_hidden_markov_models(kind):
    short = ("first states forgotten", "a leak between sequences")
    data = SHORT if kind in short else SEQUENCES
    replicates = 1500 if "transposed in the filter" in kind else 500  # hard to see
    rejects(check_geweke, BROKEN_HMMS[kind], data, statistics=STATISTICS, replicates=replicates)


def step_with(draw_rows):
    """A sweep whose last block is `draw_rows(rng, counts, alpha, kappa, eta)`."""

    def step(self, rng, state, data):
        counts = HMM._count(HMM.sample_states(rng, state, data), data)
        concentrations = hmm_module.sample_concentrations(rng, HMM, state, counts)
        alpha, kappa, eta = concentrations
        return replace(
            draw_rows(rng, counts, *concentrations),
            transition_concentration=alpha, stickiness=kappa, emission_concentration=eta,
        )  # fmt: skip

    return mutant(HMM, step=step)


BROKEN_CONCENTRATIONS = {
    "sticky mass twice": step_with(
        lambda rng, counts, alpha, kappa, eta: HMM._draw_rows(rng, counts, alpha, 2 * kappa, eta)
    ),
    "sticky mass forgotten": step_with(
        lambda rng, counts, alpha, kappa, eta: HMM._draw_rows(rng, counts, alpha, 0.0, eta)
    ),
}


@pytest.mark.parametrize("kind", BROKEN_CONCENTRATIONS)
def test_geweke_refuses_broken_concentrations(kind):
    broken = BROKEN_CONCENTRATIONS[kind]
    rejects(check_geweke, broken, SEQUENCES, statistics=STATISTICS, replicates=1000)


def test_geweke_refuses_slices_without_the_jacobian(monkeypatch):
    right = hmm_module.slice_log
    monkeypatch.setattr(
        hmm_module,
        "slice_log",
        lambda rng, log_p, value, shape, rate: right(rng, log_p, value, shape - 1.0, rate),
    )
    rejects(check_geweke, HMM, SEQUENCES, statistics=STATISTICS, replicates=1000)
