"""Hidden Markov models: against all paths, in logarithms and out of them, block by block."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp, xlogy

from pgmult import Dirichlet
from pgmult.sequences import MarkovChain, MultinomialHMM, as_sequences, in_channels
from pgmult.sequences.compiled import hmm as compiled
from pgmult.sequences.compiled.hmm import log_rising
from pgmult.sequences.models import hmm as module
from pgmult.sequences.models.hmm import HMMState
from pgmult.testing import conditional_ratio, rejects

# Symbols, a missing step, rows of counts; two sequences of different lengths.
DATA = as_sequences(
    [
        np.array([[1, 0, 0, 0], [0, 0, 0, 0], [0, 2, 3, 0], [0, 0, 0, 1], [0, 1, 0, 0]]),
        np.array([[0, 0, 1, 0], [4, 0, 0, 1]]),
    ]
)
MODEL = MultinomialHMM(num_states=3)


def random_state(seed=0, num_states=3, num_symbols=4):
    rng = np.random.default_rng(seed)
    return HMMState(
        rng.dirichlet(np.ones(num_states)),
        rng.dirichlet(np.ones(num_states), size=num_states),
        rng.dirichlet(np.ones(num_symbols), size=num_states),
        0.7, 0.4, 0.3,
    )  # fmt: skip


def path_log_probs(state, data, s, length=None):
    """All paths of a sequence's first steps, and log p(path, observations)."""
    first = data.offsets[s]
    last = data.offsets[s + 1] if length is None else first + length
    counts = data.to_csr().toarray()[first:last]
    paths = list(itertools.product(range(len(state.initial)), repeat=last - first))
    with np.errstate(divide="ignore"):
        initial, transition = np.log(state.initial), np.log(state.transition)
    logs = []
    for path in paths:
        log_p = initial[path[0]] + sum(transition[i, j] for i, j in itertools.pairwise(path))
        log_p += sum(xlogy(c, state.emission[z]).sum() for c, z in zip(counts, path, strict=True))
        logs.append(log_p)
    return np.array(paths), np.array(logs)


def path_oracle(state, data):
    """log p(x_t | x_<t), p(z_t | x) and p(z_last | x), by summing over paths."""
    predictive, smoothed, final = [], [], []
    for s in range(data.num_sequences):
        totals = [0.0]
        for length in range(1, data.lengths[s] + 1):
            paths, logs = path_log_probs(state, data, s, length)
            totals.append(logsumexp(logs))
        predictive += list(np.diff(totals))
        weights = np.exp(logs - totals[-1])
        probs = [
            [weights[paths[:, t] == m].sum() for m in range(len(state.initial))]
            for t in range(paths.shape[1])
        ]
        smoothed += probs
        final.append(probs[-1])
    return np.array(predictive), np.array(smoothed), np.array(final)


def draw_of(state):
    return {"initial": state.initial, "transition": state.transition, "emission": state.emission}


@pytest.fixture(params=["probabilities", "logarithms"])
def arithmetic(request, monkeypatch):
    if request.param == "logarithms":
        monkeypatch.setattr(compiled, "SMALLEST", np.inf)
    return request.param


# ------------------------------------------------------------------ the compiled passes


@pytest.mark.parametrize("seed", range(3))
def test_all_passes_agree_with_all_paths(seed, arithmetic):
    state = random_state(seed)
    predictive, smoothed, final = path_oracle(state, DATA)
    assert MODEL.chains(state, DATA).in_logs == (arithmetic == "logarithms")
    np.testing.assert_allclose(
        MODEL.log_predictive(draw_of(state), DATA), predictive, rtol=1e-11, atol=1e-13
    )
    np.testing.assert_allclose(MODEL.state_probs(state, DATA), smoothed, atol=1e-12)
    np.testing.assert_allclose(
        MODEL.state_probs(state, DATA)[DATA.offsets[1:] - 1], final, atol=1e-12
    )
    assert MODEL.log_likelihood(state, DATA) == pytest.approx(predictive.sum(), rel=1e-12)


def test_sampled_paths_have_their_exact_law(arithmetic):
    state, rng = random_state(4, num_states=2), np.random.default_rng(0)
    paths, logs = path_log_probs(state, DATA, 0)
    expected = np.exp(logs - logsumexp(logs))
    repeats = 4000
    codes = 2 ** np.arange(5)[::-1]
    drawn = np.array([MODEL.sample_states(rng, state, DATA)[:5] @ codes for _ in range(repeats)])
    observed = np.bincount(drawn, minlength=32)
    assert [tuple(path) for path in paths] == list(itertools.product(range(2), repeat=5))
    chi_square = np.sum((observed - repeats * expected) ** 2 / (repeats * expected))
    assert chi_square < 70.0  # 31 degrees of freedom: p = 1e-4


def test_zero_probabilities_need_logarithms():
    """State 1 is 1e-477 times as likely as state 0 until the last row; nothing leads back to it."""
    state = HMMState(
        np.array([0.5, 0.5]), np.eye(2), np.array([[0.9, 0.1], [0.1, 0.9]]), 1.0, 0.0, 1.0
    )
    data = as_sequences([np.array([[500, 0], [0, 1000]])])
    assert MODEL.chains(state, data).in_logs
    predictive, _, _ = path_oracle(state, data)
    np.testing.assert_allclose(MODEL.log_predictive(draw_of(state), data), predictive, rtol=1e-12)
    np.testing.assert_allclose(MODEL.state_probs(state, data), [[0.0, 1.0]] * 2, atol=1e-12)
    assert MODEL.sample_states(np.random.default_rng(0), state, data).tolist() == [1, 1]


def test_large_counts_do_not_underflow():
    state = random_state(1)
    rng = np.random.default_rng(1)
    data = as_sequences([rng.multinomial(1_000_000, state.emission[[0, 2, 1, 0]])])
    predictive, smoothed, _ = path_oracle(state, data)
    np.testing.assert_allclose(MODEL.log_predictive(draw_of(state), data), predictive, rtol=1e-12)
    np.testing.assert_allclose(MODEL.state_probs(state, data), smoothed, atol=1e-9)


def test_long_sequences_stay_normalised(arithmetic):
    state = random_state(2)
    rng = np.random.default_rng(2)
    data = as_sequences([rng.integers(4, size=20_000)], num_symbols=4)
    smoothed = MODEL.state_probs(state, data)
    np.testing.assert_allclose(smoothed.sum(axis=1), 1.0, atol=1e-9)
    short = data.split(5)[0]
    first = MODEL.log_predictive(draw_of(state), data)[:5]
    np.testing.assert_allclose(first, path_oracle(state, short)[0], rtol=1e-11, atol=1e-13)


def test_an_impossible_step_is_minus_infinity_and_then_missing(arithmetic):
    state = replace(random_state(3), emission=np.array([[0.5, 0.5, 0.0, 0.0]] * 3))
    data = as_sequences([[0, 2, 1, 3]], num_symbols=4)
    got = MODEL.log_predictive(draw_of(state), data)
    np.testing.assert_allclose(got, [np.log(0.5), -np.inf, np.log(0.5), -np.inf], rtol=1e-12)
    with pytest.raises(FloatingPointError, match="step 2 are impossible"):
        MODEL.sample_states(np.random.default_rng(0), state, data)


def test_predictions_sum_to_one_over_the_next_symbol():
    state = random_state(5)
    futures = [as_sequences([[0, 3, -1, k]], num_symbols=4) for k in range(4)]
    logs = [MODEL.log_predictive(draw_of(state), data)[-1] for data in futures]
    assert np.exp(logs).sum() == pytest.approx(1.0, rel=1e-12)


# ------------------------------------------------------------------ the blocks

STATES = np.array([0, 2, 2, 1, 1, 0, 1])


def naive_counts(data, states):
    first, pairs = np.zeros(3), np.zeros((3, 3))
    emitted = np.zeros((3, data.num_symbols))
    table = data.to_csr().toarray()
    for s in range(data.num_sequences):
        steps = range(data.offsets[s], data.offsets[s + 1])
        first[states[steps[0]]] += 1
        for t in steps:
            emitted[states[t]] += table[t]
            if t > steps[0]:
                pairs[states[t - 1], states[t]] += 1
    return first, pairs, emitted


def test_counts():
    counts = MODEL._count(STATES, DATA)
    found = counts.initial, counts.transition, *counts.emissions
    for got, expected in zip(found, naive_counts(DATA, STATES), strict=True):
        np.testing.assert_array_equal(got, expected)


def log_joint(state, data, states):
    """Log p(rows, states, observations | concentrations)."""
    first, pairs, emitted = naive_counts(data, states)
    own = state.transition_concentration + state.stickiness * np.eye(3)
    return float(
        Dirichlet(np.ones(3)).log_density(state.initial)
        + Dirichlet(own).log_density(state.transition).sum()
        + Dirichlet(state.emission_concentration).log_density(state.emission).sum()
        + xlogy(first, state.initial).sum()
        + xlogy(pairs, state.transition).sum()
        + xlogy(emitted, state.emission).sum()
    )


def log_rows(state, counts):
    """Log of the density that `_draw_rows` draws from."""
    own = state.transition_concentration + state.stickiness * np.eye(3)
    return float(
        Dirichlet(np.ones(3) + counts.initial).log_density(state.initial)
        + Dirichlet(own + counts.transition).log_density(state.transition).sum()
        + Dirichlet(state.emission_concentration + counts.emissions[0])
        .log_density(state.emission)
        .sum()
    )


ROWS = [random_state(seed) for seed in range(6)]


def test_rows_given_states():
    counts = MODEL._count(STATES, DATA)
    conditional_ratio(
        lambda state: log_joint(state, DATA, STATES), lambda state: log_rows(state, counts), ROWS
    )


@pytest.mark.parametrize("kind", ["transposed", "leak", "no emissions"])
def test_conditional_ratio_refuses_wrong_counts(kind):
    counts = MODEL._count(STATES, DATA)
    leak = np.zeros((3, 3))
    leak[STATES[4], STATES[5]] = 1.0
    wrong = {
        "transposed": counts._replace(transition=counts.transition.T),
        "leak": counts._replace(transition=counts.transition + leak),
        "no emissions": counts._replace(emissions=[0.0 * counts.emissions[0]]),
    }[kind]
    rejects(
        conditional_ratio,
        lambda state: log_joint(state, DATA, STATES), lambda state: log_rows(state, wrong), ROWS,
    )  # fmt: skip


def test_concentrations_given_states_with_rows_integrated_out():
    """log p(states, x | conc) = log p(rows, states, x | conc) - log p(rows | states, x, conc)."""
    counts = MODEL._count(STATES, DATA)
    points = [(0.2, 0.0, 0.1), (1.0, 3.0, 0.5), (5.0, 0.5, 2.0), (0.01, 10.0, 0.01)]
    rows = ROWS[0]

    def at(point):
        alpha, kappa, eta = point
        return replace(
            rows, transition_concentration=alpha, stickiness=kappa, emission_concentration=eta
        )

    def collapsed(point):
        return log_joint(at(point), DATA, STATES) - log_rows(at(point), counts)

    def used(point):
        alpha, kappa, eta = point
        entry, stays = np.ones((3, 3)), np.eye(3)
        terms = module._row_terms(counts.transition, entry, kappa * stays)
        transitions = log_rising(np.log(alpha), *terms)
        if kappa > 0.0:  # the same function of the other one
            terms = module._row_terms(counts.transition, stays, alpha * entry)
            again = log_rising(np.log(kappa), *terms)
            np.testing.assert_allclose(again, transitions, rtol=1e-10)
        return transitions + log_rising(np.log(eta), *module._emission_terms(counts.emissions))

    conditional_ratio(collapsed, used, points)
    rejects(
        conditional_ratio, collapsed,
        lambda point: used((point[0], 2.0 * point[1], point[2])), points,
    )  # fmt: skip


# ------------------------------------------------------------------ the model


def test_names_of_symbols_and_sequences():
    data = as_sequences(["abca", "cab"], names=["one", "two"])
    coords = MODEL.coords(data)
    assert list(coords["symbol"]) == ["a", "b", "c"]
    assert list(coords["sequence"]) == ["one", "two"]
    assert MODEL.coords(DATA) == {}


def test_every_other_short_chain_begins_with_states_that_last(monkeypatch):
    begun = []

    def unmoved(self, rng, state, data):
        begun.append((state.stickiness, np.diagonal(state.transition).mean()))
        return state

    monkeypatch.setattr(MultinomialHMM, "step", unmoved)
    model = MultinomialHMM(8, stickiness=None, start_tries=4, start_sweeps=1)
    model.init(np.random.default_rng(0), DATA)
    kappa, stays = np.transpose(begun[:4])
    assert kappa.tolist() == [20.0, 1.0, 20.0, 1.0]
    assert (stays[::2] > 0.5).all()
    assert (stays[1::2] < 0.5).all()
    begun.clear()
    replace(model, stickiness=0.5).init(np.random.default_rng(0), DATA)
    assert {kappa for kappa, _ in begun} == {0.5}


def test_effective_states_of_one_state_in_use():
    state = replace(
        random_state(), initial=np.array([1.0, 0.0, 0.0]), transition=np.eye(3)[[0, 0, 0]]
    )
    assert MODEL.effective_states(state, DATA) == pytest.approx(1.0)


def test_bad_data():
    with pytest.raises(ValueError, match="takes no inputs"):
        MODEL.as_data(as_sequences([[0, 1]], inputs=np.zeros((2, 1))))
    with pytest.raises(ValueError, match="emit 4 symbols, the data have 5"):
        MODEL.log_predictive(draw_of(random_state()), as_sequences([[0, 4]]))


@pytest.mark.slow
def test_chains_start_in_the_best_mode():
    """Four kinds of sequences, which states can share in many wrong ways."""
    rng = np.random.default_rng(0)
    kinds = np.repeat(np.eye(4), 2, axis=1) * 0.4 + 0.025
    data = as_sequences(
        [rng.choice(8, size=12, p=kinds[k] / kinds[k].sum()) for k in rng.integers(4, size=150)]
    )
    model = MultinomialHMM(4, stickiness=None)
    fits = []
    for seed in range(8):
        stream = np.random.default_rng(seed)
        state = model.init(stream, data)
        fits.append(np.mean([model.log_likelihood(state, data) for _ in range(3)]))
    assert np.sum(np.array(fits) > max(fits) - 25.0) >= 7


def test_transitions_that_are_not_allowed_have_probability_0():
    allowed = np.array([[True, True, False], [False, True, True], [False, False, True]])
    model = MultinomialHMM(3, stickiness=None, allowed=allowed, start_tries=4)
    data = as_sequences(["AAABBBCC", "AABBCCCC", "ABBBBBCC"] * 4)
    rng = np.random.default_rng(0)
    state = model.init(rng, data)
    for _ in range(20):
        state = model.step(rng, state, data)
        assert (state.transition[~allowed] == 0.0).all()
        np.testing.assert_allclose(state.transition.sum(axis=1), 1.0)
    assert np.isfinite(model.log_likelihood(state, data))


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        (np.eye(2, dtype=bool), "allowed must have 3 rows, got 2"),
        (np.triu(np.ones((3, 3), dtype=bool), 1), "none after 2"),
        (np.ones((3, 3)), "array of True and False"),
    ],
)
def test_what_allowed_may_be(allowed, message):
    with pytest.raises(ValueError, match=message):
        MultinomialHMM(3, allowed=allowed)


BOTH = in_channels({"job": [[0, 1, -1, 2], [1, -1]], "place": [[0, -1, -1, 1], [1, 0]]})


def test_channels_are_independent_given_the_state():
    """Beside sums over paths; what is missing in one channel is missing there alone."""
    rng = np.random.default_rng(3)
    state = random_state(num_symbols=3)
    places = rng.dirichlet(np.ones(2), size=3)
    state = replace(state, emission=np.concatenate([state.emission, places], axis=1))
    jobs, where, total = [[0, 1, -1, 2], [1, -1]], [[0, -1, -1, 1], [1, 0]], 0.0
    for job, place in zip(jobs, where, strict=True):
        chance = 0.0
        for path in itertools.product(range(3), repeat=len(job)):
            p = state.initial[path[0]]
            for i, j in itertools.pairwise(path):
                p *= state.transition[i, j]
            for z, a, b in zip(path, job, place, strict=True):
                p *= 1.0 if a < 0 else state.emission[z, a]
                p *= 1.0 if b < 0 else places[z, b]
            chance += p
        total += np.log(chance)
    assert MODEL.log_likelihood(state, BOTH) == pytest.approx(total, rel=1e-10)


def test_each_channel_has_probabilities_of_its_symbols():
    model, rng = MultinomialHMM(2, stickiness=None), np.random.default_rng(0)
    state = model.step(rng, model.init(rng, BOTH), BOTH)
    draw = {name: getattr(state, name) for name in model.predictive_variables}
    for values in (state.emission, model.step_probs(draw, BOTH)):
        np.testing.assert_allclose(values[:, :3].sum(axis=1), 1.0)
        np.testing.assert_allclose(values[:, 3:].sum(axis=1), 1.0)
    new = model.simulate(rng, state, BOTH)
    counts, old = new.to_csr().toarray(), BOTH.to_csr().toarray()
    for part in BOTH.channel_slices:
        np.testing.assert_array_equal(counts[:, part].sum(axis=1), old[:, part].sum(axis=1))
    probs, symbols = model.ahead(rng.random((2, 2, 4)), draw, BOTH, 3)
    np.testing.assert_allclose(probs[..., :3].sum(axis=2), 1.0)
    assert symbols.max() < 3


def test_what_takes_no_channels_says_so():
    with pytest.raises(ValueError, match="a Markov chain takes one channel, the sequences have 2"):
        MarkovChain().as_data(BOTH)
    with pytest.raises(ValueError, match="'b' differs from the first"):
        in_channels({"a": ["AB"], "b": ["ABC"]})
    with pytest.raises(ValueError, match="two or more, got 1"):
        in_channels({"a": ["AB"]})
