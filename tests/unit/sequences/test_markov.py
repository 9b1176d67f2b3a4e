"""Markov chains with missing steps: every answer against a sum over all completions."""

from itertools import product

import numpy as np
import pytest

import pgmult
from pgmult.sequences import MarkovChain, as_sequences
from pgmult.sequences.models.markov import ChainSampler, MarkovChainState, steps_of

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")

GAPS = [[0, -1, 1, 2, -1, -1, 0, 1], [-1, -1, 2, 0, 0, -1], [1, 2, 0, -1, 1, -1], [2, 1], [-1, -1]]


def chain(order, data, seed=0):
    """A model and rows of its prior."""
    model = MarkovChain(order, strength_shape=3.0, strength_rate=1.0)
    return model, {"rows": model.prior(np.random.default_rng(seed), data).rows}


def completions(model, rows, symbols, number):
    """All completions of a sequence with their probabilities: by definition, step after step."""
    longest = rows[-((number + 1) ** model.order) :]
    for path in product(*([k] if k >= 0 else range(number) for k in symbols)):
        before, p = [number] * model.order, 1.0
        for symbol in path:
            context = 0
            for k in before:
                context = context * (number + 1) + k
            p *= longest[context, symbol]
            before = [*before[1:], symbol]
        yield path, p, longest[int("".join(map(str, before)), number + 1)]


@pytest.mark.parametrize("order", [1, 2, 3])
class TestAgainstAllCompletions:
    def test_log_likelihood(self, order):
        data = as_sequences(GAPS, num_symbols=3)
        model, draw = chain(order, data)
        exact = sum(
            np.log(sum(p for _, p, _ in completions(model, draw["rows"], one, 3))) for one in GAPS
        )
        state = MarkovChainState(draw["rows"], np.ones(order))
        assert model.log_likelihood(state, data) == pytest.approx(exact, abs=1e-10)

    def test_one_step_ahead(self, order):
        data = as_sequences(GAPS, num_symbols=3)
        model, draw = chain(order, data)
        filtered = model.step_probs(draw, data, filtered=True)
        log_p = model.log_predictive(draw, data)
        for s, one in enumerate(GAPS):
            for t in range(len(one)):
                exact = np.zeros(3)
                for path, p, _ in completions(model, draw["rows"], [*one[:t], -1], 3):
                    exact[path[-1]] += p
                exact /= exact.sum()
                step = data.offsets[s] + t
                np.testing.assert_allclose(filtered[step], exact, atol=1e-12)
                wanted = np.log(exact[one[t]]) if one[t] >= 0 else 0.0
                assert log_p[step] == pytest.approx(wanted, abs=1e-10)

    def test_missing_symbols_given_all_others(self, order):
        data = as_sequences(GAPS, num_symbols=3)
        model, draw = chain(order, data)
        smoothed = model.step_probs(draw, data)
        np.testing.assert_allclose(smoothed.sum(axis=1), 1.0)
        for s, one in enumerate(GAPS):
            exact = np.zeros((len(one), 3))
            for path, p, _ in completions(model, draw["rows"], one, 3):
                exact[np.arange(len(one)), path] += p
            exact /= exact.sum(axis=1, keepdims=True)
            missing = np.array(one) < 0
            steps = slice(data.offsets[s], data.offsets[s + 1])
            np.testing.assert_allclose(smoothed[steps][missing], exact[missing], atol=1e-12)

    def test_steps_ahead(self, order):
        data = as_sequences(GAPS, num_symbols=3)
        model, draw = chain(order, data)
        chances = np.random.default_rng(0).random((len(GAPS), 2, 4))
        ahead, _ = model.ahead(chances, draw, data, 3)
        for s, one in enumerate(GAPS):
            for h in range(3):
                exact = np.zeros(3)
                for path, p, _ in completions(model, draw["rows"], [*one, *[-1] * (h + 1)], 3):
                    exact[path[-1]] += p
                np.testing.assert_allclose(ahead[s, h], exact / exact.sum(), atol=1e-12)

    def test_drawn_symbols(self, order):
        data = as_sequences(GAPS[:3], num_symbols=3)
        model, draw = chain(order, data)
        sampler, rng = ChainSampler(model, data), np.random.default_rng(3)
        state = MarkovChainState(draw["rows"], np.ones(order))
        drawn = np.array([sampler.filled(rng, state) for _ in range(4000)])
        observed = steps_of(data, order).main
        assert (drawn[:, observed < 3] == observed[observed < 3]).all()
        for s, one in enumerate(GAPS[:3]):
            length = max(t for t, k in enumerate(one) if k >= 0) + 1
            steps = slice(data.offsets[s], data.offsets[s] + length)
            exact = {}
            for path, p, _ in completions(model, draw["rows"], one[:length], 3):
                exact[path] = p
            total = sum(exact.values())
            counted = dict.fromkeys(exact, 0)
            for path in drawn[:, steps].tolist():
                counted[tuple(path)] += 1
            for path, p in exact.items():
                p /= total
                error = np.sqrt(p * (1 - p) / len(drawn))
                assert abs(counted[path] / len(drawn) - p) < 5 * error + 1e-9


def test_counts_of_a_step_are_weighed_by_all_contexts():
    table = np.array([[1, 0, 0], [0, 0, 0], [0, 2, 3], [2, 1, 0]])
    data = as_sequences([table])
    model, draw = chain(1, data)
    start, *after = draw["rows"][[4, 1, 2, 3]]
    rows = np.array(after)
    logs = np.log(rows) @ table[2]
    exact = np.log(start[0]) + np.log(rows[0] @ np.exp(logs)) + np.log(rows[2]) @ table[3]
    state = MarkovChainState(draw["rows"], np.ones(1))
    assert model.log_likelihood(state, data) == pytest.approx(exact, abs=1e-10)


def test_people_who_were_lost_do_not_begin_anew():
    """Sixty careers; nobody leaves retirement, and the last years of some were not recorded."""
    rng = np.random.default_rng(1)
    careers = []
    for _ in range(60):
        school, work = 3 + rng.integers(4), 8 + rng.integers(6)
        career = ["school"] * school + ["work"] * work + ["retired"] * (24 - school - work)
        careers.append([*career[:-3], *[None] * 3] if rng.random() < 0.4 else career)
    run = pgmult.sample(
        MarkovChain(1), as_sequences(careers), draws=300, tune=50, chains=2, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    ahead = run.forecast(1).mean[:, 0]
    labels = run.coords["symbol"].tolist()
    assert ahead[:, labels.index("retired")].min() > 0.97
    assert ahead[:, labels.index("school")].max() < 0.01


def test_waves_at_irregular_years_give_powers_of_the_matrix():
    """Years 0, 2, 4 and 7: a matrix whose powers are known has roots in which states alternate."""
    rng = np.random.default_rng(2)
    matrix = np.array([[0.85, 0.1, 0.05], [0.2, 0.6, 0.2], [0.0, 0.0, 1.0]])
    people = np.empty((400, 8), dtype=np.int64)
    people[:, 0] = rng.choice(2, 400, p=[0.8, 0.2])
    for t in range(1, 8):
        u = rng.random(400)[:, None]
        people[:, t] = (u > matrix[people[:, t - 1]].cumsum(axis=1)).sum(axis=1)
    people[:, [1, 3, 5, 6]] = -1
    run = pgmult.sample(
        MarkovChain(1), as_sequences([*people], num_symbols=3), draws=300, tune=100, chains=2,
        random_seed=0, progressbar=False,
    )  # fmt: skip
    rows = run.stack("rows")[:, 1:4]
    np.testing.assert_allclose(rows.mean(axis=0), matrix, atol=0.06)
    assert (abs(rows.mean(axis=0) - matrix) < 4 * rows.std(axis=0) + 0.01).all()


def test_a_gap_that_is_too_long_is_refused():
    symbols = np.full(600_000, -1)
    symbols[[0, -1]] = 0, 9
    with pytest.raises(ValueError, match="shorter gaps for order 2"):
        MarkovChain(2).as_data([symbols])


NOBODY_RETURNS = np.array([[1, 1, 1], [1, 1, 1], [0, 0, 1]])


def test_transitions_that_are_not_allowed():
    data = as_sequences(["WIWD", "WWID", "WDDD"] * 10, alphabet="WID")
    run = pgmult.sample(
        MarkovChain(2, allowed=NOBODY_RETURNS), data, draws=50, tune=10, chains=2, random_seed=0,
        progressbar=False, keep=["rows"],
    )  # fmt: skip
    probs = run.model.transition_probs(
        {"rows": run.stack("rows").reshape(-1, *run["rows"].shape[2:])}
    )
    after_dead = probs.reshape(-1, 3, 3, 3)[:, :, 2]
    assert after_dead[..., :2].max() == 0.0
    assert probs.reshape(-1, 3, 3, 3)[:, :, 0].min() > 0.0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[0, 2, 1]], "1 comes after 2 at step 3 of sequence 1"),
        ([[0, 0], [2, -1, -1, 0]], "0 comes after 2 at step 4 of sequence 2"),
        ([[2] + [-1] * 12 + [0, 1]], "0 comes after 2 at step 14 of sequence 1"),
        ([[0, 3]], "allowed must have 4 rows, got 3"),
    ],
)
def test_what_was_observed_must_be_allowed(data, message):
    with pytest.raises(ValueError, match=message):
        MarkovChain(1, allowed=NOBODY_RETURNS).as_data(data)


def test_symbols_that_alternate_may_do_so_across_gaps_of_any_length():
    model = MarkovChain(1, allowed=np.array([[0, 1], [1, 0]]))
    model.as_data(as_sequences([[0, 1, 0, -1, -1, -1, -1, 1]], num_symbols=2))
    with pytest.raises(ValueError, match="0 comes after 0 at step 8 of sequence 1"):
        model.as_data(as_sequences([[0, 1, 0, -1, -1, -1, -1, 0]], num_symbols=2))


def test_checks_see_visits_of_a_fixed_length():
    """Visits of three steps each, which a chain of order 1 takes for geometric ones."""
    rng = np.random.default_rng(0)
    visits = np.cumsum(rng.integers(1, 3, (6, 15)), axis=1) % 3  # each of another symbol
    fixed = ["".join(3 * "ABC"[k] for k in row) for row in visits]
    alike = ["".join(rng.choice(list("ABC"), 45)) for _ in range(6)]
    low = {}
    for name, texts in {"fixed": fixed, "alike": alike}.items():
        run = pgmult.sample(
            MarkovChain(1), as_sequences(texts, alphabet="ABC"), draws=100, tune=20, chains=2,
            random_seed=0, progressbar=False,
        )  # fmt: skip
        p = run.check().p_values
        low[name] = np.minimum(p, 1.0 - p).min()
    assert low["fixed"] < 0.02 < low["alike"]
