"""Additive regressions by formula: data, probabilities of rows, shares of populations."""

import csv

import numpy as np
import pytest

import pgmult
from pgmult.cli import commands as cli
from pgmult.latent.terms import log_sd
from pgmult.regression import AdditiveRegression
from pgmult.regression.answers import log_scores
from pgmult.regression.rows import rows_of

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
FORMULA = "vote ~ age + sex + s(year) + (1 | region) + (1 | region:sex)"


def make(size=400):
    rng = np.random.default_rng(0)
    table = {
        "vote": rng.choice(["left", "right", "none"], p=[0.5, 0.3, 0.2], size=size),
        "age": rng.integers(2, 8, size=size) * 10.0,
        "sex": rng.choice(["f", "m"], size=size),
        "year": rng.integers(2000, 2008, size=size),
        "region": rng.choice([10, 20, 30, 40], size=size),
    }
    return {name: list(column) for name, column in table.items()}


TABLE = make()


@pytest.fixture(scope="module")
def data():
    return rows_of(FORMULA, TABLE)


@pytest.fixture(scope="module")
def run(data):
    return pgmult.sample(
        AdditiveRegression(), data, draws=60, tune=10, chains=2, random_seed=0, progressbar=False
    )


def test_rows_of_equal_covariates_are_one_cell(data):
    assert data.num_rows < len(TABLE["vote"])
    assert data.counts.sum() == len(TABLE["vote"])
    assert data.categories.tolist() == ["left", "none", "right"]
    assert data.categories[data.order].tolist() == ["left", "right", "none"]


def test_a_row_split_in_two_counts_and_weights_are_the_same_data(data):
    """Labels, a row a respondent; columns of counts; and a weight a row."""
    counts = {c: [int(v == c) for v in TABLE["vote"]] for c in data.categories}
    right = FORMULA.partition("~")[2]
    wide = rows_of(f"c(left, none, right) ~ {right}", TABLE | counts)
    half = {name: [*column, *column] for name, column in TABLE.items()} | {"n": [1, 0] * 400}
    weighted = rows_of(FORMULA, half, weights="n")
    np.testing.assert_array_equal(wide.counts, data.counts)
    np.testing.assert_allclose(wide.design.matrix, data.design.matrix)
    assert weighted.counts.sum() == data.counts.sum()


def test_permuted_rows_have_the_same_posterior(data):
    order = np.random.default_rng(1).permutation(len(TABLE["vote"]))
    other = rows_of(FORMULA, {k: [v[i] for i in order] for k, v in TABLE.items()})
    np.testing.assert_array_equal(other.counts, data.counts)
    np.testing.assert_allclose(other.design.matrix, data.design.matrix, atol=1e-12)


def test_probabilities_of_cells_are_those_of_the_state(run, data):
    found = run.predict()
    model = run.model
    for draw in (0, 77):
        state = model.state_of(run.stack("weights")[draw], run.stack("hyperparameters")[draw])
        np.testing.assert_allclose(found.draws[draw], model.probs(state, data))
    np.testing.assert_allclose(run["sds"], np.exp(log_sd(run["hyperparameters"])))
    alone = run.predict({name: column[:1] for name, column in TABLE.items() if name != "vote"})
    many = run.predict({name: column for name, column in TABLE.items() if name != "vote"})
    np.testing.assert_allclose(alone.draws[:, 0], many.draws[:, 0], rtol=1e-12)


def test_new_levels_are_drawn_once_for_all_their_rows(run):
    row = {"age": 30.0, "sex": "f", "year": 2003}
    new = {name: [value] * 3 for name, value in row.items()} | {"region": [10, 99, 99]}
    with pytest.raises(ValueError, match="column 'region' must be one of 10, 20, 30, 40, got '99'"):
        run.predict(new)
    found = run.predict(new, new_levels=True)
    np.testing.assert_allclose(found.draws[:, 1], found.draws[:, 2], rtol=1e-12)
    assert (found.sd[1] > found.sd[0]).all()


def test_labels_find_their_levels_as_numbers_or_as_text(run):
    row = {"age": [30.0], "sex": ["f"], "year": [2003]}
    known = run.predict(row | {"region": [20]})
    for same in ("20", 20.0, np.int64(20)):
        np.testing.assert_array_equal(run.predict(row | {"region": [same]}).draws, known.draws)


def test_shares_are_weighted_means_over_cells(run):
    census = {
        "age": [20.0, 30.0, 20.0], "sex": ["f", "m", "m"], "year": [2001, 2001, 2007],
        "region": [10, 10, 20], "people": [3, 1, 5],
    }  # fmt: skip
    rows = run.predict({k: v for k, v in census.items() if k != "people"}).draws
    by = run.poststratify(census, by="region", weight="people")
    np.testing.assert_allclose(by.draws[:, 0], 0.75 * rows[:, 0] + 0.25 * rows[:, 1])
    np.testing.assert_allclose(by.draws[:, 1], rows[:, 2])
    whole = run.poststratify(census, weight="people")
    np.testing.assert_allclose(whole.draws, (4 * by.draws[:, 0] + 5 * by.draws[:, 1]) / 9)
    assert whole.at(category="left").draws.shape == (120,)


BAD = {
    "order without terms": (
        lambda: rows_of("vote ~ age", TABLE, order=["left", "none", "right"]),
        "order must be left out where formula has no grouping or curve",
    ),
    "no tilde": (lambda: rows_of("age + (1 | sex)", TABLE), "formula must be 'y ~ columns'"),
    "unknown outcome": (
        lambda: rows_of("party ~ s(age)", TABLE),
        "must name a column of the table, got 'party'",
    ),
    "one label": (
        lambda: rows_of(FORMULA, TABLE | {"vote": ["left"] * 400}),
        "must hold two labels or more, got 'left' alone",
    ),
    "weights": (
        lambda: rows_of(FORMULA, TABLE, weights="n"),
        "weights must name a column of the table",
    ),
    "order": (
        lambda: rows_of(FORMULA, TABLE, order=["left", "none", "far right"]),
        "argument 'order' must be one of left, none, right, got 'far right'",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_rows_are_refused_in_a_sentence(what):
    call, words = BAD[what]
    with pytest.raises(ValueError, match=words):
        call()


def test_bad_censuses_are_refused_in_a_sentence(run):
    census = {"age": [20.0], "sex": ["f"], "year": [2001], "region": [10], "n": [0]}
    with pytest.raises(ValueError, match="n must be positive in each part, got 0 in '10'"):
        run.poststratify(census, by="region", weight="n")
    with pytest.raises(ValueError, match=r"weight must name a column of census \(age, sex"):
        run.poststratify(census, weight="people")


def test_effects_are_averages_over_respondents(run, data):
    found = run.effects("sex")
    probs = run.predict({**{k: v for k, v in TABLE.items() if k != "vote"}, "sex": ["f"] * 400})
    np.testing.assert_allclose(found.draws[:, 0], probs.draws.mean(axis=1), rtol=1e-9)
    gap = found.difference("sex", "f", "m")
    np.testing.assert_array_equal(gap.draws, -found.difference("sex", "m", "f").draws)
    assert run.effects("age", [20, 30.0]).labels["age"] == [20, 30.0]
    with pytest.raises(ValueError, match="column must be one of age, sex, year, region, got"):
        run.effects("vote")


def test_scores_of_respondents_are_below_those_that_were_fitted(run, data):
    scores = log_scores(run)
    fitted = np.log(run.predict().mean)
    assert (scores < fitted).all()
    assert np.sum(data.counts * (fitted - scores)) > 1.0


def test_runs_are_compared_on_rows_that_they_have_not_seen(run, data):
    signal = {**TABLE, "vote": [("left", "right")[s == "f"] for s in TABLE["sex"]]}
    told = run.compare(run, signal)
    assert "like the second: +0.0000 ± 0.0000 nats" in told.verdict[0]
    rows = rows_of("vote ~ sex + (1 | region)", signal | {"vote": [*signal["vote"][:-1], "none"]})
    right = pgmult.sample(
        AdditiveRegression(), rows, draws=40, tune=10, chains=1, random_seed=0, progressbar=False
    )
    assert "better than the second" in right.compare(run, signal).verdict[0]


def test_the_report_says_what_was_found_and_keeps_text_text(tmp_path):
    hostile = "a<script>alert(1)</script>"
    table = TABLE | {"region": [hostile if r == 10 else r for r in TABLE["region"]]}
    draws = pgmult.sample(
        AdditiveRegression(), rows_of("vote ~ age + (1 | region)", table), draws=20, tune=5,
        chains=2, random_seed=0, progressbar=False,
    )  # fmt: skip
    told = draws.report(tmp_path / "page.html", title=hostile)
    assert told.verdict[0].startswith("400 respondents in ")
    assert any(line.startswith("By region, ") for line in told.verdict)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "a&lt;script&gt;" in page


def test_the_command_line_goes_from_a_survey_to_shares(tmp_path, capsys):
    write(tmp_path / "survey.csv", TABLE)
    write(
        tmp_path / "census.csv",
        {"sex": ["f", "m"], "age": [20, 30], "region": [10, 50], "people": [3, 4]},
    )
    formula = "vote ~ sex + age + (1 | region)"
    few = ["--draws", "10", "--tune", "5", "--chains", "2", "--quiet"]
    out = tmp_path / "run"
    fit = ["regression", "fit", str(tmp_path / "survey.csv"), formula, "--out", str(out), *few]
    assert cli.main(fit) == 0
    assert (out / "report.html").exists()
    assert "400 respondents" in capsys.readouterr().out
    census = [str(tmp_path / "census.csv"), "--by", "region", "--weight", "people"]
    assert cli.main(["regression", "poststratify", str(out), *census]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "region,category,mean,sd,lower,upper"
    assert cli.main(["regression", "effects", str(out), "sex", "--difference", "f", "m"]) == 0
    capsys.readouterr()
    assert cli.main(["regression", "effects", str(out), "age", "--difference", "20", "4e1"]) == 0
    assert "age 20 less age 40" in capsys.readouterr().out
    again = ["regression", "fit", str(tmp_path / "survey.csv"), "vote ~ sex", "--out", f"{out}2"]
    assert cli.main([*again, *few]) == 2
    assert "formula must have a grouping or a curve" in capsys.readouterr().err


def write(path, columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
