"""Transitions and what follows from them, against simulation and against what inputs say."""

import numpy as np
import pytest

import pgmult
from pgmult.sequences import MarkovChain, MixedHMM, MixedMarkovChain, MultinomialHMM, as_sequences
from pgmult.sequences.transitions import Transitions

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")

ILL = ["WWWIIWW", "WWIIDDD", "WIIWWWI", "WWWWWWW", "IIIDDDD", "WWIWWWI"] * 5


def sampled(model, data, draws=40):
    return pgmult.sample(
        model, data, draws=draws, tune=20, chains=2, random_seed=0, progressbar=False
    )


@pytest.fixture(scope="module")
def run():
    return sampled(MarkovChain(1), as_sequences(ILL, alphabet="WID"))


def test_the_matrix_is_that_of_the_draws(run):
    found = run.transitions()
    np.testing.assert_allclose(found.draws, run.stack("rows")[:, 1:4])
    assert [*found.estimand.labels["from"]] == ["W", "I", "D"]
    row = {k: v[0] for k, v in found.table().columns.items() if k in ("from", "to", "mean")}
    assert (row["from"], row["to"]) == ("W", "W")
    assert found.sentence(0).startswith("Of those in W at a step, 0.")
    assert found.figure().values.shape == (3, 3)
    assert "0.00 [" in str(found.section().rows)


@pytest.mark.slow
def test_what_follows_is_what_simulation_finds(run):
    found, rng = run.transitions(), np.random.default_rng(0)
    matrix, horizon, size = found.draws[3], 6, 25_000
    for start in range(3):
        state, paths = np.full(size, start), []
        for _ in range(1000):
            u = rng.random(size)[:, None]
            state = (u > matrix[state].cumsum(axis=1)).sum(axis=1).clip(max=2)
            paths.append(state.astype(np.int8))
        path = np.array(paths)
        shares = np.array([(path[:horizon] == j).mean(axis=1) for j in range(3)]).T
        np.testing.assert_allclose(found.occupancy(horizon).draws[3, start, 1:], shares, atol=0.015)
        np.testing.assert_allclose(
            found.time_in(horizon).draws[3, start], shares.sum(axis=0), atol=0.03
        )
        reached = [(path[:horizon] == j).any(axis=0).mean() for j in range(3)]
        np.testing.assert_allclose(found.reach(horizon).draws[3, start], reached, atol=0.012)
        ever = [(path == j).any(axis=0).mean() for j in range(3)]
        np.testing.assert_allclose(found.reach().draws[3, start], ever, atol=0.012)
        if start < 2:
            lasts = 1 + (path != start).argmax(axis=0)
            assert found.durations().draws[3, start] == pytest.approx(lasts.mean(), rel=0.03)


def test_what_nobody_leaves_is_reached_and_the_others_never():
    model = MarkovChain(1, allowed=np.array([[1, 1, 1], [1, 1, 1], [0, 0, 1]]))
    ever = sampled(model, as_sequences(["WIWD", "WWID"], alphabet="WID")).transitions().reach()
    np.testing.assert_allclose(ever.draws[:, :, 2], 1.0, atol=1e-6)  # from each, in the end
    np.testing.assert_array_equal(ever.draws[:, 2, :2], 0.0)
    assert ever.draws[:, 0, 1].max() < 1.0
    assert "ever" in ever.caption


def test_what_is_ruled_out_or_certain_has_no_interval():
    model = MarkovChain(1, allowed=np.array([[1, 1, 1], [1, 1, 1], [0, 0, 1]]))
    moves = sampled(model, as_sequences(["WIWD", "WWID"], alphabet="WID")).transitions()
    rows = [line.split() for line in str(moves.table()).splitlines() if line.startswith("D ")]
    assert [row[-1] for row in rows] == ["fixed"] * 3
    lasts = moves.durations()
    assert list(lasts.labels["in"]) == ["W", "I"]
    assert lasts.caption.endswith("Nobody leaves D.")
    assert moves.section().rows[-1] == ("D", "0.00", "0.00", "1.00")


def test_rare_transitions_are_made_in_the_end():
    """Chances are neither negative nor lost where probabilities differ by 130 orders."""
    p = 1e-130
    matrix = np.array([
        [1.0 - 3 * p, p, 2 * p, 0.0, 0.0], [0.2, 0.8 - 1e-13, 0.0, 1e-13, 0.0],
        [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0], [1e-9, 0.0, 0.0, 1e-12, 1.0 - 1e-9],
    ])  # fmt: skip
    moves = Transitions(
        matrix[None, None, None],
        np.ones((1, 1, 1, 5)),
        [*"abcde"],
        [*"abcde"],
        "",
        (),
        "state",
        0.9,
    )
    ever = moves.reach().draws[0]
    back = 0.2 / (0.2 + 1e-13)  # from b to a, if it is not caught in d
    lost = 1e-13 / (0.2 + 1e-13)
    to_c, to_d = (2 / 3) / (1 - back / 3), (lost / 3) / (1 - back / 3)
    np.testing.assert_allclose(ever[0, [2, 3]], [to_c, to_d], rtol=1e-6)
    np.testing.assert_allclose(
        ever[1, [0, 2, 3]], [back, back * to_c, lost + back * to_d], rtol=1e-6
    )
    np.testing.assert_allclose(ever[1, 1], 0.8 + 0.2 / 3)
    np.testing.assert_allclose(ever[4, 3], (1e-3 + ever[0, 3]) / (1 + 1e-3), rtol=1e-6)
    np.testing.assert_array_equal(ever[2], [0.0, 0.0, 1.0, 0.0, 0.0])
    assert ever.min() == 0.0
    assert ever.max() <= 1.0 + 1e-12


def test_longer_contexts_have_rows_of_their_own():
    run = sampled(MarkovChain(2), as_sequences(ILL, alphabet="WID"))
    found = run.transitions()
    assert found.draws.shape[1:] == (9, 3)
    assert found.before[:4] == ["W W", "W I", "W D", "I W"]
    np.testing.assert_allclose(found.draws.sum(axis=2), 1.0)
    number = {k: n for n, k in enumerate("WID")}
    rows = run.stack("rows")[:, -16:]
    assert np.array_equal(found.draws[:, 3], rows[:, number["I"] * 4 + number["W"]])
    with pytest.raises(ValueError, match="order 1"):
        found.durations()


def test_hidden_states_are_matched():
    run = sampled(MultinomialHMM(2), as_sequences(["AABAAABA" * 3 + "CCBCCBCCC" * 3] * 2))
    found, told = run.transitions(), run.states()
    np.testing.assert_allclose(found.mean, told.transitions.mean, atol=0.02)
    np.testing.assert_allclose(
        np.median(found.durations().draws, axis=0), told.durations.mean, rtol=0.2
    )
    assert told.draws.shape == (len(told.draws), len(told.table()))


# --------------------------------------------------------------------------- inputs

LEAVES = {"f": 0.5, "m": 0.02}


@pytest.fixture(scope="module")
def by_sex():
    """Two sexes, who leave the first of two states with .5 and .02."""
    rng = np.random.default_rng(0)
    table = {"id": [], "t": [], "sex": [], "does": []}
    visits = {"f": [], "m": []}
    for who in range(80):
        sex, state = "fm"[who % 2], rng.integers(2)
        path = []
        for t in range(60):
            leaves = LEAVES[sex] if state == 0 else 0.3
            state = 1 - state if rng.random() < leaves else state
            path.append(state)
            for name, value in zip(table, (who, t, sex, "ab"[state]), strict=True):
                table[name].append(value)
        changes = np.flatnonzero(np.diff(path)) + 1
        for run in np.split(path, changes)[1:-1]:
            if run[0] == 0:
                visits[sex].append(len(run))
    data = pgmult.read(table).sequences("does", sequence="id", time="t", inputs="~ sex")
    run = sampled(MixedHMM(2, emission_concentration=0.01), data, draws=60)
    return run, visits


@pytest.mark.slow
def test_durations_are_of_visits(by_sex):
    run, _ = by_sex
    states = run.states()
    first = int(states.emissions.mean[:, 0].argmax())
    durations = run.transitions(by="sex").durations()
    place = [*durations.labels["in"]].index(str(first + 1))
    assert durations.mean[:, place] == pytest.approx([2.0, 50.0], rel=0.35)
    leave = [LEAVES["f"], LEAVES["m"]]
    inside = states.probs[:, first] > 0.5
    steps = [np.repeat(np.arange(80) % 2 == k, 60)[inside].sum() for k in (0, 1)]
    exact = sum(steps) / (steps[0] * leave[0] + steps[1] * leave[1])
    assert states.durations.mean[first] == pytest.approx(exact, rel=0.2)
    low, high = states.durations.lower[first], states.durations.upper[first]
    assert low < exact < high


@pytest.mark.slow
def test_groups_and_settings(by_sex):
    run, _ = by_sex
    by, at = run.transitions(by="sex"), run.transitions(at={"sex": ["f", "m"]})
    np.testing.assert_allclose(by.draws, at.draws, atol=1e-9)  # sex is all that acts
    gap = by.difference("f", "m")
    assert gap.draws.shape[1:] == (2, 2)
    np.testing.assert_allclose(gap.draws, by.draws[:, 0] - by.draws[:, 1])
    alone = run.transitions(at={"sex": "m"})
    np.testing.assert_allclose(alone.draws, by.draws[:, 1], atol=1e-9)
    with pytest.raises(ValueError, match="at must be"):
        run.transitions(at={"age": 3})
    assert len(by.section().rows) == 4


def test_inputs_that_a_run_does_not_have(run):
    with pytest.raises(ValueError, match="by must name an input of the run"):
        run.transitions(by="sex")


# --------------------------------------------------------------------------- filtered


@pytest.mark.parametrize("model", [MarkovChain(1), MultinomialHMM(2)], ids=["chain", "hidden"])
def test_filtered_predictions_do_not_look_ahead(model):
    run = sampled(model, as_sequences(["ABABBABAABAB" * 2, "BBABABBABA"]))
    new = as_sequences([["A", "B", None, None, "A", "B", "B"]], alphabet="AB")
    filtered = run.predict(new, filtered=True)
    for t in range(1, 7):
        ahead = run.forecast(1, new.split(t)[0]).mean[0, 0]
        np.testing.assert_allclose(filtered.mean[t], ahead, atol=1e-9)
    assert "those before it" in filtered.caption
    assert "all observations" in run.predict(new).caption
    assert not np.allclose(run.predict(new).mean, filtered.mean)


@pytest.mark.slow
def test_filtered_predictions_by_particles():
    from pgmult.sequences import MultinomialLDS

    run = sampled(MultinomialLDS(1), as_sequences(["AABBAABB" * 4]))
    new = as_sequences(["AABBAB"], alphabet="AB")
    filtered = run.predict(new, filtered=True, max_draws=40)
    ahead = [run.forecast(1, new.split(t)[0], max_draws=40).mean[0, 0] for t in range(1, 6)]
    np.testing.assert_allclose(filtered.mean[1:], ahead, atol=0.03)
    assert filtered.mean.shape == (6, 2)
    long = as_sequences(["AB" * 200], alphabet="AB")
    with pytest.raises(ValueError, match="filtered=True takes at most"):
        run.predict(long, filtered=True)


def test_filtered_states():
    run = sampled(MultinomialHMM(2), as_sequences(["AABAAABA" * 3 + "CCBCCBCCC" * 3] * 2))
    new = as_sequences(["ABBAC"], alphabet="ABC")
    found = run.states(new, filtered=True)
    for t in range(1, 5):
        begun = run.states(new.split(t)[0]).probs[-1]
        np.testing.assert_allclose(found.probs[t - 1], begun, atol=1e-9)
    assert found.steps().caption.endswith("given the steps up to it.")


# --------------------------------------------------------------------------- lost or ended


def test_a_symbol_that_only_ends_sequences_has_no_row_of_data():
    found = sampled(
        MarkovChain(1), as_sequences(["abcce", "abde", "acce", "abbdbcde"])
    ).transitions()
    assert found.without_data == ["e"]
    assert "No step was observed after e: rows from the prior" in found.table().caption
    assert "after e" in found.section().note
    assert sampled(MarkovChain(1), as_sequences(["abab"])).transitions().without_data == []


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_a_page_says_which_symbols_lack_steps_after_them_and_which_nobody_leaves():
    data = as_sequences(["ABA", "BAC", "ABBC", "ABDDD", "BDDDD"] * 4)
    run = pgmult.sample(
        MarkovChain(1), data, draws=40, tune=10, chains=2, random_seed=0, progressbar=False
    )
    assert "after C: the data do not say" in run.transitions().sentence(2)
    assert run.transitions().sentence(3).startswith("Of those in D at a step, ")
    page = " ".join(str(run.report(comparison=False)).split())
    assert "In the data nobody leaves D: if nobody can, rule it out (--only-observed" in page
    assert "C no data " in page


def test_shares_of_states_end_with_the_observations():
    """A table with a column for each time pads sequences that are shorter than others."""
    texts = ["AABAAABA" * 3 + "CCBCCBCCC" * 3, "AABAAABAC"]
    padded = [list(texts[0]), [*texts[1], *[None] * (len(texts[0]) - len(texts[1]))]]
    one, other = (sampled(MultinomialHMM(2), as_sequences(t)).states() for t in (texts, padded))
    shares = (np.sort(answer.shares.mean) for answer in (one, other))
    np.testing.assert_allclose(*shares, atol=0.03)


def weighted_panel():
    """Two groups of people who move differently; the second stands for three times as many."""
    rng, rows = np.random.default_rng(3), []
    for person in range(40):
        moves, state = person % 2, 0
        for year in range(8):
            rows.append((f"p{person:02}", year, "AB"[state], "fm"[moves], 1.0 + 2.0 * moves))
            state ^= int(rng.random() < (0.1, 0.6)[moves])
    names = ("id", "year", "state", "sex", "people")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def test_sequences_count_by_their_weights():
    table = weighted_panel()

    def answers(weight):
        data = pgmult.read(table).sequences(
            "state", sequence="id", time="year", inputs="~ sex", weight=weight
        )
        run = pgmult.sample(
            MixedMarkovChain(2), data, draws=40, tune=10, chains=1, random_seed=1,
            progressbar=False,
        )  # fmt: skip
        return run.transitions(), run.transitions(by="sex"), run.effects("step"), run.predict()

    alike, weighted = answers(None), answers("people")
    assert np.array_equal(alike[1].mean, weighted[1].mean)  # within a group, and the same chain
    leaves = [1.0 - moves.mean[0, 0] for moves in (alike[0], weighted[0])]
    assert leaves[1] > leaves[0]
    assert "Sequences count by their weights." in weighted[0].estimand.caption
    assert "weights" not in alike[0].estimand.caption
    probs, times = weighted[3].mean.reshape(40, 8, 2), np.tile([1.0, 3.0], 20)
    assert np.allclose(weighted[2].mean, np.average(probs, axis=0, weights=times), atol=1e-9)
    with pytest.raises(ValueError, match=r"column 'people' must be the same in all rows of a seq"):
        pgmult.read(table | {"people": list(range(320))}).sequences(
            "state", sequence="id", time="year", weight="people"
        )
    with pytest.raises(ValueError, match="column 'people' must have positive weights, got 0"):
        pgmult.read(table | {"people": [0] * 320}).sequences(
            "state", sequence="id", time="year", weight="people"
        )


class TestInputsAndTransitionsThatAreRuledOut:
    ALLOWED = np.array([[True, True, False], [True, True, True], [False, False, True]])

    @pytest.fixture
    def data(self):
        rng, rows = np.random.default_rng(1), []
        for person in range(30):
            symbol = 0
            for t in range(8):
                rows.append((f"p{person}", t, person % 2, "abc"[symbol] if t != 3 else None))
                symbol = int(rng.choice(3, p=[[0.6, 0.4, 0.0], [0.3, 0.4, 0.3], [0, 0, 1]][symbol]))
        columns = dict(
            zip(("who", "t", "x", "is"), map(list, zip(*rows, strict=True)), strict=True)
        )
        table = pgmult.read(columns)
        return table.sequences("is", sequence="who", time="t", inputs="~ x + (1 | who)")

    def test_shares_of_the_others_are_equal_where_weights_are_0(self, data):
        model = MixedMarkovChain(4, allowed=np.array(
            [[1, 1, 0, 1], [1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]], dtype=bool
        ))  # fmt: skip
        table = {"is": list("abcd"), "x": [0.0, 1.0, 2.0, 3.0]}
        steps = pgmult.read(table).sequences("is", inputs="~ x")
        state = model.state_at(np.full(4, 0.25), np.zeros((12, 2)), np.empty((12, 0)), steps)
        exact = [[0.5, 0.25, 0, 0.25], [1 / 6, 0.5, 1 / 6, 1 / 6], [0, 0, 0.5, 0.5], [0, 0, 0, 1]]
        np.testing.assert_allclose(state.transition, exact, atol=1e-12)

    @pytest.mark.slow
    def test_posterior(self, data):
        model = MixedMarkovChain(3, allowed=self.ALLOWED)
        run = pgmult.sample(
            model, data, draws=150, tune=50, chains=2, random_seed=0, progressbar=False,
        )  # fmt: skip
        moves = run.transitions()
        assert (moves.draws[:, ~self.ALLOWED] == 0.0).all()
        exact = [[0.6, 0.4, 0.0], [0.3, 0.4, 0.3], [0, 0, 1]]
        np.testing.assert_allclose(moves.mean, exact, atol=0.15)
        assert moves.reach().mean[2, 0] == 0.0
        said = str(run.report(comparison=False))
        assert "Transitions by x" in said
        assert "In the long run" not in said, "all are in c then"

    def test_data_that_contradict_are_refused(self, data):
        allowed = self.ALLOWED.copy()
        allowed[0, 1] = False
        with pytest.raises(ValueError, match="allowed must have all that was observed: b comes"):
            MixedMarkovChain(3, allowed=allowed).as_data(data)
