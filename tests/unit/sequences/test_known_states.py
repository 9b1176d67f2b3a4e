"""States of steps that are known: summed over all paths through them, refused, named, read."""

from itertools import pairwise, product

import numpy as np
import pytest

import pgmult
from pgmult.cli import main
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sequences import MarkovChain, MixedHMM, MultinomialHMM, MultinomialLDS, as_sequences

DATA = as_sequences([[0, 1, -1, 1, 0], [1, 0]]).with_known_states(
    ["s", None, "t", None, None, None, "s"]
)
MODEL = MultinomialHMM(3)
STATE = MODEL.prior(np.random.default_rng(0), DATA)
DRAW = {name: getattr(STATE, name) for name in MODEL.predictive_variables}


def paths(steps, observed, known):
    """Each path through steps, with its probability beside what was observed and known there."""
    found = {}
    for path in product(range(3), repeat=len(steps)):
        p = STATE.initial[path[0]]
        for now, then in pairwise(path):
            p *= STATE.transition[now, then]
        for t, z in zip(steps, path, strict=True):
            if t in observed and DATA.totals[t]:
                p *= STATE.emission[z, DATA.symbols[DATA.indptr[t]]]
            p *= t not in known or DATA.known[t] in (-1, z)
        found[path] = p
    return found


@pytest.mark.parametrize("in_logs", [False, True])
def test_all_passes_agree_with_all_paths(in_logs, monkeypatch):
    if in_logs:
        monkeypatch.setattr("pgmult.sequences.compiled.hmm.SMALLEST", np.inf)
    total, smoothed, log_p = 0.0, [], []
    for s in range(DATA.num_sequences):
        steps = range(*DATA.offsets[s : s + 2])
        joint = paths(steps, steps, steps)
        whole = sum(joint.values())
        total += np.log(whole)
        for place, t in enumerate(steps):
            smoothed.append(
                [sum(p for z, p in joint.items() if z[place] == m) / whole for m in range(3)]
            )
            until, before = range(steps.start, t + 1), range(steps.start, t)
            with_symbol = sum(paths(until, until, before).values())
            log_p.append(np.log(with_symbol / sum(paths(until, before, before).values())))
    assert MODEL.log_likelihood(STATE, DATA) == pytest.approx(total)
    np.testing.assert_allclose(MODEL.state_probs(STATE, DATA), smoothed, atol=1e-12)
    np.testing.assert_allclose(MODEL.log_predictive(DRAW, DATA), log_p, atol=1e-12)


def test_known_states_are_drawn_and_stay_with_their_steps():
    drawn = MODEL.sample_states(np.random.default_rng(1), STATE, DATA)
    is_known = DATA.known >= 0
    np.testing.assert_array_equal(drawn[is_known], DATA.known[is_known])
    assert DATA.take([1]).known.tolist() == DATA.rows(slice(1, 2)).known.tolist() == [-1, 0]
    assert DATA.take([1]).extended(2).known.tolist() == [-1, 0, -1, -1]
    assert DATA.split(1)[1].known.tolist() == [-1, 1, -1, -1, 0]


def test_known_states_name_the_states_of_all_chains():
    with pytest.warns(ConvergenceWarning):
        run = pgmult.sample(
            MODEL, DATA, draws=20, tune=10, chains=2, random_seed=0, progressbar=False
        )
    states = run.states()
    assert states.names == ["s", "t", "3"]
    assert states.used.all()
    steps = states.steps().columns
    assert [steps["state"][t] for t in (0, 2, 6)] == ["s", "t", "s"]
    assert steps["ps"][0] == steps["pt"][2] == pytest.approx(1.0)
    assert run.transitions().before == ["s", "t", "3"]
    assert np.isfinite(run.compare().levels).all()


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (["a"], "states must be 7, one a step"),
        ([None] * 7, "known at a step at least"),
        (list("abcdabc"), "num_states must be at least the known 4"),
    ],
)
def test_what_cannot_be_known(states, message):
    with pytest.raises(ValueError, match=message):
        MODEL.as_data(DATA.with_known_states(states))


def test_a_known_state_that_cannot_be_is_named():
    left_to_right = MultinomialHMM(2, allowed=[[True, True], [False, True]])
    data = as_sequences(["ABBA"]).with_known_states(["b", None, None, "a"])
    with pytest.raises(FloatingPointError, match="known state of step 4 cannot be there"):
        pgmult.sample(left_to_right, data, draws=4, tune=1, chains=1, progressbar=False)


@pytest.mark.parametrize("model", [MarkovChain(1), MultinomialLDS(1)])
def test_models_without_hidden_states_say_so(model):
    with pytest.raises(ValueError, match="no hidden states"):
        model.as_data(DATA)


@pytest.mark.slow
def test_inputs_and_known_states_from_a_table_to_a_page(tmp_path):
    rows = ["who,day,does,x,mood"]
    rng = np.random.default_rng(0)
    for who in "abcd":
        for day in range(12):
            mood = int(day > 5)
            does = "rf"[int(rng.random() < (0.2, 0.8)[mood])]
            known = "" if day % 3 else ("calm", "upset")[mood]
            rows.append(f"{who},{day},{does},{rng.normal():.3f},{known}")
    table, run = tmp_path / "table.csv", tmp_path / "run"
    table.write_text("\n".join(rows))
    fit = ["sequences", "fit", str(table), "--symbol", "does", "--sequence", "who", "--time", "day",
           "--known", "mood", "--draws", "20", "--tune", "10", "--chains", "2",
           "--quiet"]  # fmt: skip
    assert main([*fit, "--hold-out", "2", "--out", str(run)]) == 0
    data = pgmult.load(run).data
    assert data.state_names.tolist() == ["calm", "upset"]
    assert (data.known >= 0).sum() == 16
    states = tmp_path / "states.csv"
    assert main(["sequences", "states", str(run), "--steps", "--out", str(states)]) == 0
    assert states.read_text().splitlines()[1].split(",")[3] == "calm"
    assert main(["sequences", "predict", str(run), str(table)]) == 0
    assert main([*fit, "--inputs", "~ x", "--out", f"{run}2"]) == 0
    mixed = pgmult.load(f"{run}2")
    assert isinstance(mixed.model, MixedHMM)
    moods = mixed.model.state_probs(
        mixed.model.state_of(
            {name: mixed[name][0, 0] for name in mixed.model.predictive_variables}
        ),
        mixed.data,
    )
    is_known = mixed.data.known >= 0
    np.testing.assert_array_equal(moods[is_known].argmax(axis=1), mixed.data.known[is_known])
    assert main([*fit, "--model", "markov", "--out", f"{run}3"]) == 2
