"""Reports and checks of sequences, and counts simulated ahead."""

import numpy as np
import pytest

import pgmult
from pgmult.sequences import (
    MarkovChain,
    MixedMarkovChain,
    MultinomialLDS,
    as_sequences,
    check,
    forecast,
    impute,
    predict,
    report,
)
from pgmult.sequences.answers import NextChange
from pgmult.sequences.reports import grouped, pairs_in_data

PERIOD = 12


def books(rng, num_steps=96, totals=1):
    """Sequences with a season; one step in twelve is missing."""
    angle = 2 * np.pi * np.arange(num_steps) / PERIOD
    scores = np.column_stack([2 * np.sin(angle), -2 * np.sin(angle), np.zeros(num_steps)])
    probs = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    counts = rng.multinomial(totals, probs, size=(3, num_steps)).reshape(3, num_steps, 3)
    counts[:, 11::12] = 0
    return as_sequences(list(counts), alphabet=list("abc"), names=["x", "y", "z"]), probs


@pytest.fixture(scope="module")
def sampled():
    data, probs = books(np.random.default_rng(0))
    before, after = data.split(-PERIOD)
    model = MultinomialLDS(state_dim=2)
    posterior = pgmult.sample(
        model, before, draws=80, tune=120, chains=2, random_seed=1, progressbar=False,
        keep=[*model.default_keep, "states"],
    )  # fmt: skip
    return posterior, before, after, probs


pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")


@pytest.mark.slow
def test_report_finds_the_season_and_scores_what_was_held_out(sampled):
    posterior, _, later, _ = sampled
    found = report(posterior, held_out=later)
    said = " ".join(found.verdict)
    assert "They swing with a period of 1" in said
    assert "The model predicts a step better than" in said
    page = found.html()
    assert "no data" in page
    assert "the last that was seen" in page


@pytest.mark.slow
def test_states_of_the_chain_smooth_as_smoothing_does(sampled):
    posterior, data, _, _ = sampled
    kept, again = predict(posterior), predict(posterior, data, max_draws=60)
    assert np.abs(kept.mean - again.mean).mean() < 0.03
    assert kept.quantiles.shape == again.quantiles.shape
    np.testing.assert_allclose(kept.mean.sum(axis=1), 1.0)


def test_counts_ahead_have_their_totals_and_means(sampled):
    posterior, *_ = sampled
    ahead = forecast(posterior, 4, totals=[5, 0, 7, 9], max_draws=50, random_seed=2)
    assert ahead.counts.shape == (50, 3, 4, 3)
    assert (ahead.counts.sum(axis=-1) == [5, 0, 7, 9]).all()
    shares = ahead.counts.sum(axis=0)[:, 2] / (50 * 7)
    assert np.abs(shares - ahead.mean[:, 2]).max() < 0.12
    assert ahead.simulated.shape == (50, 3, 4)
    assert forecast(posterior, 4).counts is None
    with pytest.raises(ValueError, match="totals must be one number or of shape"):
        forecast(posterior, 4, totals=[1, 2])


def test_one_path_is_what_it_was(sampled):
    posterior, *_ = sampled
    with_counts = forecast(posterior, 3, totals=4, random_seed=5)
    plain = forecast(posterior, 3, random_seed=5)
    np.testing.assert_array_equal(with_counts.mean, plain.mean)


@pytest.mark.slow  # compiles the particle filter
def test_missing_steps_as_counts(sampled):
    posterior, data, _, _ = sampled
    found = impute(posterior, data, totals=6, max_draws=10)
    missing = np.count_nonzero(data.totals == 0)
    assert found.counts.shape == (10, missing, 3)
    assert (found.counts.sum(axis=-1) == 6).all()
    assert found.simulated.shape == (10, missing)


def test_check_passes_what_fits_and_refuses_what_does_not(sampled):
    posterior, *_ = sampled
    assert "agree with the data in" in check(posterior).verdict
    rng = np.random.default_rng(4)
    doubled = as_sequences(["".join(c + c for c in rng.choice(list("abc"), size=60))] * 3)
    model = MultinomialLDS(state_dim=1)
    flat = pgmult.sample(
        model, doubled, draws=30, tune=30, chains=1, random_seed=1, progressbar=False,
        keep=[*model.default_keep, "states"],
    )  # fmt: skip
    found = check(flat)
    assert found.p_values[0] < 0.03
    assert "repeat the one before them more often" in found.verdict


def test_notebooks_show_tables(sampled):
    posterior, *_ = sampled
    assert "steps ahead" in forecast(posterior, 2)._repr_html_()
    assert "<td>x</td>" in predict(posterior)._repr_html_()
    assert "ess_bulk" in posterior.summary("last_probs")._repr_html_()
    assert "variable" in posterior._repr_html_()


def test_a_page_of_a_panel_begins_with_the_population():
    data = as_sequences(["ABAB", "BABA", "AABB"] * 5, names=[f"p{i}" for i in range(15)])
    run = pgmult.sample(
        MarkovChain(1), data, draws=20, tune=20, chains=1, random_seed=1, progressbar=False
    )
    found = run.report(comparison=False)
    titles = [section.title for section in found.sections]
    assert titles[:2] == ["Transitions", "Visits, and where they lead in 12 steps"]
    assert titles[2:4] == ["Shares step by step", "Sequences that stand out"]
    assert any(line.startswith("Of those in A at a step, 0.") for line in found.verdict)
    rows = {row[0]: row for row in pairs_in_data(data).rows}
    assert rows["A"][1:] == ("25", "0.20", "0.80")
    assert found.sections[2].rows[0][:2] == ("1", "15")
    (coming,) = (section for section in found.sections if section.title == "What comes next")
    changes = [
        float(row[2])
        for row in next(s for s in found.sections if s.title == "The next change of symbol").rows
    ]
    assert changes == sorted(changes, reverse=True)
    assert len(coming.rows) > 0


def test_a_page_of_many_steps_holds_fewer_draws_at_once(monkeypatch):
    data = as_sequences(["ABAB", "BABA", "AABB"] * 5)
    run = pgmult.sample(
        MarkovChain(1), data, draws=80, tune=20, chains=1, random_seed=1, progressbar=False
    )
    kept = []
    foretold = pgmult.sequences.reports.forecast

    def forecast(*arguments, **options):
        kept.append(len(foretold(*arguments, **options).simulated))
        return foretold(*arguments, **options)

    monkeypatch.setattr("pgmult.sequences.reports.forecast", forecast)
    cells = (60 + 15 * 4) * 2  # of one draw: steps that were seen and those ahead, two symbols each
    for held, draws in ((10**9, 80), (70 * cells, 70), (3 * cells, 50)):
        monkeypatch.setattr("pgmult.sequences.reports._MOST_HELD", held)
        run.report(comparison=False, steps=4)
        assert kept[0] == draws
        kept.clear()


def of_panel():
    """Thirty sequences of which one has a gap and another goes against all others."""
    texts = ["AAAABB"] * 14 + ["ABBBBB"] * 14 + ["BABABA", "AAA---BBB"]
    arm = np.repeat(["x", "y"], [14, 16])
    table = {"id": [], "step": [], "does": [], "arm": [], "age": []}
    for i, text in enumerate(texts):
        for t, symbol in enumerate(text):
            row = (f"p{i}", t, None if symbol == "-" else symbol, arm[i], float(i))
            for column, cell in zip(table.values(), row, strict=True):
                column.append(cell)
    return pgmult.read(table)


def test_sequences_that_stand_out_come_first():
    data = of_panel().sequences("does", sequence="id", time="step")
    run = pgmult.sample(
        MarkovChain(1), data, draws=20, tune=20, chains=1, random_seed=1, progressbar=False
    )
    report = run.report(comparison=False, steps=2)
    apart = report.sections[3]
    assert apart.title == "Sequences that stand out"
    found = {row[0]: row[1:] for row in apart.rows}
    assert {name: gap for name, (*_, gap) in found.items() if gap != "0"} == {"p29": "3"}
    assert min(found, key=lambda name: float(found[name][2])) == "p28"
    assert "long gap" in found["p29"][0]
    assert "predicted worst" in found["p28"][0]
    (coming,) = (section for section in report.sections if section.title == "What comes next")
    assert len(coming.rows) == data.num_sequences  # those that a page does not show are on demand
    (seen,) = (section for section in report.sections if section.title == "Observed symbols")
    assert [name for name in seen.figures[0].names if name] == ["B", "A"]


def test_a_chain_with_inputs_has_transitions_at_their_values():
    data = of_panel().sequences("does", sequence="id", time="step", inputs="~ arm + age + (1 | id)")
    run = pgmult.sample(
        MixedMarkovChain(data.num_symbols), data, draws=20, tune=5, chains=1, random_seed=1,
        progressbar=False,
    )  # fmt: skip
    report = run.report(comparison=False)
    sections = {section.title: section for section in report.sections}
    assert "number of states in use" not in "".join(sections["Diagnostics"].sentences)
    by_arm = run.transitions(by="arm", max_draws=200)
    rows = {row[:2]: row[2:] for row in sections["Transitions by arm"].rows}
    for arm, matrix in zip(by_arm.values, by_arm.mean, strict=True):
        for name, probs in zip(by_arm.before, matrix, strict=True):
            assert [cell.split()[0] for cell in rows[str(arm), name]] == [f"{p:.2f}" for p in probs]
    assert "Transitions by age" in sections
    assert "What follows what" not in sections
    assert "Hidden states" not in sections  # they are the symbols
    observed, smoothed = data.totals > 0, run.predict().mean
    filtered = run.predict(filtered=True).mean  # symbols that were observed are predicted, too
    np.testing.assert_allclose(smoothed[observed], filtered[observed])
    assert not np.allclose(smoothed[~observed], filtered[~observed])


def test_sequences_are_grouped_by_their_states():
    data = as_sequences(["AAAB", "BBBA", "BBBB", "AAAA"])
    order, groups = grouped(data, None)
    assert order.tolist() == [3, 0, 2, 1]
    assert groups == ["A", "B", "B", "A"]
    order, groups = grouped(data, np.repeat([1, 0, 0, 1], 4))
    assert order.tolist() == [1, 2, 0, 3]
    assert groups[0] == "state 2"


def test_the_chance_of_a_change_at_the_next_step_is_that_of_the_forecast():
    data = of_panel().sequences("does", sequence="id", time="step")
    run = pgmult.sample(
        MarkovChain(1), data, draws=10, tune=10, chains=1, random_seed=1, progressbar=False
    )
    ahead = run.forecast(4)
    found = ahead.next_change()
    stays = ahead.mean[np.arange(data.num_sequences), 0, found.present]
    np.testing.assert_allclose(found.lasts[:, 0], 1.0 - stays)
    np.testing.assert_allclose(found.lasts.sum(axis=1), 1.0)
    none_stays = NextChange.of(
        1 - np.zeros((5, 1, 2), np.int64), as_sequences(["BA"]), np.array([[0.2, 0.8]])
    )
    np.testing.assert_allclose(none_stays.lasts, [[0.8, 0.2, 0.0]])
