"""Additive regressions by formula: data, probabilities of rows, shares of populations."""

import csv

import numpy as np
import pytest

import pgmult
from pgmult.cli import commands as cli
from pgmult.core.estimands import Estimand
from pgmult.latent.terms import log_sd
from pgmult.regression import AdditiveRegression
from pgmult.regression.models.sampler import AdditiveRegressionState
from pgmult.regression.reports import _what_matters
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


def test_shares_of_numbers_of_trials_are_counts():
    """R's ``glm(share ~ x, weights = n)`` takes them; shares of no whole number stay labels."""
    n, k = np.array([3, 40, 7, 11]), np.array([1, 13, 7, 0])
    table = {"y": k, "n": n, "share": np.round(k / n, 6), "x": [0.1, 0.7, 0.2, 0.5]}
    counts = rows_of("p(y, n) ~ x", table)
    for formula, weights in (("share ~ x", "n"), ("p(share, n) ~ x", None)):
        data = rows_of(formula, table, weights=weights)
        np.testing.assert_array_equal(data.counts, counts.counts)
        assert (data.family, str(data.design.formula)) == (counts.family, "p(share, n) ~ x")
    more = table | {"share": 0.99 * table["share"]}
    assert rows_of("share ~ x", more, weights="n").num_categories == 4


def test_permuted_rows_have_the_same_posterior(data):
    order = np.random.default_rng(1).permutation(len(TABLE["vote"]))
    other = rows_of(FORMULA, {k: [v[i] for i in order] for k, v in TABLE.items()})
    np.testing.assert_array_equal(other.counts, data.counts)
    np.testing.assert_allclose(other.design.matrix, data.design.matrix, atol=1e-12)


def test_probabilities_of_cells_are_those_of_the_state(run, data):
    found = run.predict()
    model = run.model
    for draw in (0, 77):
        state = AdditiveRegressionState(
            run.stack("weights")[draw], run.stack("hyperparameters")[draw]
        )
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
    for label in ("20", 20.0, np.int64(20)):
        np.testing.assert_array_equal(run.predict(row | {"region": [label]}).draws, known.draws)


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
    "nothing": (lambda: rows_of("vote ~ 0", TABLE), "it must have a column or an intercept"),
    "twice, no intercept": (
        lambda: rows_of("vote ~ 0 + age + I(2 * age)", TABLE),
        "'I\\(2 \\* age\\)' is a linear combination of age",
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
        lambda: rows_of(FORMULA, TABLE, ordered=["left", "none", "far right"]),
        "ordered must list every category, it lacks right",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_rows_are_refused_in_a_sentence(what):
    call, words = BAD[what]
    with pytest.raises(ValueError, match=words):
        call()


PLAIN = {  # formulas without groups and curves
    "vote ~ age": {},
    "vote ~ 0 + age": {},
    "vote ~ sex + age - 1": {},
    "vote ~ age * sex + C(region)": {},
    "won ~ age + sex": {},
    "p(wins, games) ~ age + offset(log(games))": {},
    "c(wins, lost) ~ sex": {},
    "visits ~ age": {"family": "poisson"},
    "visits ~ age + sex": {"family": "negative_binomial"},
}


@pytest.fixture(scope="module")
def plain_table():
    rng = np.random.default_rng(1)
    wins = rng.integers(0, 4, size=400)
    return TABLE | {
        "won": rng.integers(0, 2, size=400), "wins": wins, "lost": 4 - wins,
        "games": np.full(400, 4), "visits": rng.poisson(1.5, size=400),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:the census has nobody:UserWarning")
@pytest.mark.parametrize("formula", PLAIN)
def test_formulas_without_groups_answer_every_question(formula, plain_table):
    data = pgmult.read(plain_table).rows(formula, **PLAIN[formula])
    found = pgmult.sample(
        AdditiveRegression(), data, draws=20, tune=5, chains=2, random_seed=0, progressbar=False
    )
    column = "age" if "age" in formula else "sex"
    new = {name: values[:5] for name, values in plain_table.items()}
    assert found.predict(new).draws.shape == (40, 5, data.num_categories)
    assert found.effects(column).draws.shape[0] == 40
    assert found.comparisons().axes == ("comparison", "category")
    shares = found.poststratify(new | {"people": np.ones(5)}, weight="people")
    np.testing.assert_allclose(shares.draws, found.predict(new).draws.mean(axis=1))
    for answer in (
        found.check(), found.check(plain_table, by=column), found.compare(),
        found.compare(held_out=plain_table), found.loo(), found.report(),
    ):  # fmt: skip
        assert str(answer)


def test_b_splines_are_compared_within_the_data():
    found = pgmult.sample(
        AdditiveRegression(method="approximate"), rows_of("vote ~ bs(year, df=4) + sex", TABLE),
        draws=20, tune=0, chains=1, random_seed=0, progressbar=False,
    )  # fmt: skip
    told = found.comparisons().labels["comparison"]
    assert list(told["column"]) == ["sex", "year", "year"]
    assert str(found.report())


def test_without_an_intercept_the_predictor_is_0_at_0():
    data = rows_of("vote ~ 0 + age", TABLE)
    np.testing.assert_array_equal(data.design.centre, [0.0])
    np.testing.assert_allclose(np.mean(np.square(TABLE["age"])), data.design.scale**2)
    np.testing.assert_allclose(
        data.design.matrix[:, 0] * data.design.scale, sorted(set(TABLE["age"]))
    )


def test_a_formula_and_a_table_are_data_of_the_model(plain_table):
    options = {"draws": 3, "tune": 0, "chains": 1, "random_seed": 0, "progressbar": False}
    one = pgmult.sample(AdditiveRegression(), ("vote ~ age", plain_table), **options)
    other = pgmult.sample(AdditiveRegression(), rows_of("vote ~ age", plain_table), **options)
    np.testing.assert_array_equal(one["weights"], other["weights"])
    with pytest.raises(TypeError, match=r"table\.rows\(formula\), or a tuple .*, got dict"):
        pgmult.sample(AdditiveRegression(), plain_table, **options)


def test_bad_censuses_are_refused_in_a_sentence(run):
    census = {"age": [20.0], "sex": ["f"], "year": [2001], "region": [10], "n": [0]}
    with pytest.raises(ValueError, match="n must be positive in each part, got 0 in '10'"):
        run.poststratify(census, by="region", weight="n")
    with pytest.raises(ValueError, match="weight must be one of age, sex"):
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
    found = run.loo()
    assert found.counts.sum() == data.counts.sum()
    fitted = np.log(run.predict().mean[found.cells, found.outcomes])
    np.testing.assert_allclose(found.fitted, fitted)
    assert (found.log_p < fitted).all()
    assert found.num_parameters > 1.0
    assert "effective parameters" in str(found)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto:UserWarning")
def test_scores_are_those_of_arviz(run, data):
    arviz = pytest.importorskip("arviz")
    made = run.to_arviz(data)
    found, known = run.loo(max_draws=120), arviz.loo(made, pointwise=True)
    elpd = known.elpd_loo if hasattr(known, "elpd_loo") else known.elpd  # before and since 1.0
    assert found.elpd == pytest.approx(float(elpd), abs=0.05)
    assert found.error == pytest.approx(float(known.se), rel=2e-3)
    assert made.posterior_predictive["counts"].shape == (2, 60, 400, 3)


def test_a_model_beats_the_obvious_where_there_is_something_to_find():
    signal = {**TABLE, "vote": [("left", "right")[s == "f"] for s in TABLE["sex"]]}
    signal["vote"][:40] = ["none"] * 40
    runs = [
        pgmult.sample(
            AdditiveRegression(method="approximate"), rows_of(formula, signal), draws=60, tune=0,
            chains=2, random_seed=0, progressbar=False,
        )
        for formula in ("vote ~ sex + s(year) + (1 | region)", "vote ~ age + (1 | region)")
    ]  # fmt: skip
    told = runs[0].compare()
    assert told.names == ("this model", "overall shares", "shares by sex", "shares by region")
    assert told.gains[1].sign == 1
    assert told.gains[2].sign < 1  # which is all that there is
    assert runs[1].compare().gains[1].sign < 1
    gain = (runs[0].loo().elpd - runs[1].loo().elpd) / 400
    both = runs[0].compare(runs[1], names=("one", "two"))
    assert both.sentences[0].startswith(
        f"One predicts an observation better than two: {gain:+.3f} ± "
    )
    held = runs[0].compare(runs[1], signal)
    assert "predicts an observation better than" in held.sentences[0]
    assert runs[0].compare(held_out=signal | {"region": [99] * 400}).gains[1].sign == 1
    with pytest.raises(ValueError, match="other must be a run of the same rows"):
        runs[0].compare(
            pgmult.sample(
                AdditiveRegression(method="approximate"),
                rows_of("vote ~ age + (1 | region)", {k: v[::-1] for k, v in signal.items()}),
                draws=5, tune=0, chains=1, random_seed=0, progressbar=False,
            )
        )  # fmt: skip


def test_predictions_are_averages_at_settings(run):
    rows = {k: v for k, v in TABLE.items() if k != "vote"}
    found = run.predict(at={"sex": ["f", "m"], "age": 30}, by="region")
    assert found.axes == ("sex", "region", "category")
    there = run.predict({**rows, "sex": ["m"] * 400, "age": [30] * 400}).draws
    region = np.array(TABLE["region"]) == 20
    np.testing.assert_allclose(
        found.at(sex="m", region="20").draws, there[:, region].mean(axis=1), rtol=1e-9
    )
    both = run.predict(by=["sex", "region"])
    assert both.labels["sex:region"]["region"].tolist() == ["10", "20", "30", "40"] * 2
    everything = run.predict(rows, by="sex")
    np.testing.assert_allclose(everything.draws, run.predict(by="sex").draws, rtol=1e-9)


def test_comparisons_are_differences_of_effects(run):
    found = run.comparisons("sex", by="region")
    parts = run.effects("sex", by="region")
    np.testing.assert_allclose(
        found.draws[:, 0], parts.difference("sex", "m", "f").draws, atol=1e-12
    )
    assert list(found.table().columns)[-1] == "p_positive"
    np.testing.assert_allclose(found.draws.sum(axis=-1), 0.0, atol=1e-12)
    every = run.comparisons()
    assert every.labels["comparison"]["comparison"][0].startswith("+")
    assert every.labels["comparison"]["column"] == ["age", "sex", "year"]
    values = run.comparisons("age", [20, 40, 60])
    assert values.labels["comparison"]["comparison"] == ["40 less 20", "60 less 20"]
    step = run.comparisons("age", step=2.0)
    rows, age = {k: v for k, v in TABLE.items() if k != "vote"}, np.array(TABLE["age"])
    lower = np.clip(age - 1.0, age.min(), age.max() - 2.0)
    up, down = (run.predict({**rows, "age": lower + by}).draws.mean(axis=1) for by in (2.0, 0.0))
    np.testing.assert_allclose(step.draws[:, 0], up - down, atol=1e-12)


def test_contrasts_are_differences_of_log_odds(run):
    found = run.contrasts("sex", reference="none")
    assert found.labels["category"].tolist() == ["left", "right"]
    rows = {k: v for k, v in TABLE.items() if k != "vote"}
    odds = [
        np.log(run.predict({**rows, "sex": [sex] * 400}).draws[:, :, [0, 2]])
        - np.log(run.predict({**rows, "sex": [sex] * 400}).draws[:, :, [1]])
        for sex in "fm"
    ]
    np.testing.assert_allclose(found.draws[:, 0], (odds[1] - odds[0]).mean(axis=1), atol=1e-9)
    again = run.contrasts("sex", reference="left").at(category="none")
    np.testing.assert_allclose(again.draws, -found.at(category="left").draws, atol=1e-9)


def test_effects_of_groups_are_differences_from_their_mean_in_order(run):
    found = run.groups("region:sex")
    np.testing.assert_allclose(found.draws.mean(axis=1), 0.0, atol=1e-12)
    widest = np.ptp(found.mean, axis=0).argmax()
    assert (np.diff(found.mean[:, widest]) <= 0.0).all()
    assert run.groups().axes == ("region", "category")
    with pytest.raises(ValueError, match="column must be one of region, region:sex, got 'age'"):
        run.groups("age")


def test_a_formula_without_columns_explains_nothing_and_says_nothing_of_it():
    model = AdditiveRegression(method="approximate")
    data = rows_of("y ~ 1", {"y": ["a", "b", "c"]}, ordered=["a", "b", "c"])
    run = pgmult.sample(model, data, draws=40, chains=1, progressbar=False, random_seed=0)
    assert "explain" not in str(run.report(comparison=False))


def test_shares_of_variance_add_up(run):
    found = run.variance_shares()
    terms = ["age", "sex", "s(year)", "(1 | region)", "(1 | region:sex)", "not explained"]
    assert found.labels["term"] == terms
    np.testing.assert_allclose(found.draws.sum(axis=1), 1.0)
    probs = run.predict(max_draws=1).draws[0]
    share = run.data.counts.sum(axis=1) / 400
    mean = share @ probs
    between = share @ ((probs - mean) ** 2).sum(axis=1)
    one = run.variance_shares(max_draws=1).draws[0, -1]
    assert one == pytest.approx(1.0 - between / np.sum(mean * (1.0 - mean)))


def test_checks_see_what_a_model_leaves_out():
    """Voters of two sexes in two regions who swap sides."""
    rng = np.random.default_rng(3)
    sex, region = rng.choice(["f", "m"], size=600), rng.choice(["a", "b"], size=600)
    left = (sex == "f") == (region == "a")
    vote = np.where(rng.random(600) < np.where(left, 0.7, 0.3), "left", "right")
    table = {"vote": vote, "sex": sex, "region": region}
    run = pgmult.sample(
        AdditiveRegression(method="approximate"), rows_of("vote ~ sex + (1 | region)", table),
        draws=100, tune=0, chains=2, random_seed=0, progressbar=False,
    )  # fmt: skip
    found = run.check()
    p = dict(zip(found.statistics, found.p_values, strict=True))
    assert p["distance by sex and region"] < 0.01
    assert p["distance by sex"] > 0.05
    assert "by sex and region differ more than the model predicts: add sex:region" in found.verdict
    new = {name: column[::-1] for name, column in table.items()} | {"sex": ["f"] * 600}
    told = run.check(new)
    assert "calibration of left" in told.statistics
    by = run.check(by="sex")
    assert by.statistics[0] == "share of left where sex is f"
    assert by.observed[0, 0] == pytest.approx(np.mean(vote[sex == "f"] == "left"))


def test_an_approximation_is_near_and_says_what_it_is(run, data):
    model = AdditiveRegression(method="approximate")
    draws = pgmult.sample(
        model, data, draws=300, tune=0, chains=1, random_seed=0, progressbar=False
    )
    gap = np.abs(draws.predict(by="sex").mean - run.predict(by="sex").mean)
    assert (gap < run.predict(by="sex").sd).all()
    assert draws.report().verdict[-1].startswith("The draws are from an approximation, which")
    with pytest.raises(ValueError, match="method must be one of sampling, approximate, got"):
        AdditiveRegression(method="laplace")


def test_a_curve_that_rises_and_falls_makes_a_difference():
    """Its ends are alike, and a step up changes nothing on average."""
    rise = np.array([0.2, 0.4, 0.6, 0.4, 0.2])
    noise = 0.02 * np.random.default_rng(0).normal(size=(400, 1))
    draws = np.stack([rise + noise, *2 * [0.5 * (1.0 - rise - noise)]], axis=2)
    ages = [20.0, 30.0, 40.5, 50.0, 60.0]
    labels = {"age": ages, "category": ["for", "against", "unsure"]}
    curve = Estimand(draws, ("age", "category"), labels)
    (told,) = _what_matters([curve], False)
    assert "age makes the largest difference: at 40.5 rather than" in told
    assert "for is 40 [40, 40] percentage points more frequent" in told
    years = {"year": [2000.0, 2003.0, 2006.0, 2009.0, 2011.0], "category": labels["category"]}
    curve = Estimand(draws, ("year", "category"), years)
    assert "at 2006 rather than 20" in _what_matters([curve], False)[0]


def test_the_report_says_what_was_found_and_keeps_text_text(tmp_path):
    hostile = "a<script>alert(1)</script>"
    table = TABLE | {"region": [hostile if r == 10 else r for r in TABLE["region"]]}
    draws = pgmult.sample(
        AdditiveRegression(), rows_of("vote ~ age + (1 | region)", table), draws=20, tune=5,
        chains=2, random_seed=0, progressbar=False,
    )  # fmt: skip
    told = draws.report(tmp_path / "page.html", title=hostile)
    assert any(one.startswith("400 observations in ") for one in told.verdict)
    assert any(line.startswith("By region, ") for line in told.verdict)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "a&lt;script&gt;" in page


@pytest.mark.filterwarnings("always::UserWarning")
def test_the_command_line_goes_from_a_survey_to_shares(tmp_path, capsys):
    write(tmp_path / "survey.csv", TABLE)
    write(
        tmp_path / "census.csv",
        {"sex": ["f", "m"], "age": [20, 30], "region": [10, 50], "people": [3, 4]},
    )
    formula = "vote ~ sex + age + (1 | region)"
    run = str(tmp_path / "run")
    few = ["--draws", "10", "--tune", "5", "--chains", "2", "--quiet"]
    out = tmp_path / "run"
    fit = ["regression", "fit", str(tmp_path / "survey.csv"), formula, "--out", str(out), *few]
    assert cli.main(fit) == 0
    assert (out / "report.html").exists()
    assert "400 observations" in capsys.readouterr().out
    census = [str(tmp_path / "census.csv"), "--by", "region", "--weight", "people"]
    assert cli.main(["regression", "poststratify", str(out), *census]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[0] == "region,category,mean,sd,lower,upper"
    assert "1 of 2 labels of 'region' in census is not in the data: '50'" in told.err
    assert cli.main(["regression", "poststratify", str(out), *census, "--new-levels"]) == 0
    assert not capsys.readouterr().err
    assert cli.main(["regression", "effects", str(out), "sex", "--difference", "f", "m"]) == 0
    capsys.readouterr()
    assert cli.main(["regression", "effects", str(out), "age", "--difference", "20", "4e1"]) == 0
    assert "age 20 less age 40" in capsys.readouterr().out
    for words in (
        ["comparisons", run, "--out", str(tmp_path / "found.csv")],
        ["contrasts", run, "sex", "--reference", "left", "--json"],
        ["groups", run], ["variance-shares", run], ["loo", run],
        ["check", run, "--by", "sex"], ["compare", run], ["compare", run, run],
        ["predict", run, "--by", "region", "--at", "sex=f,m"],
        ["effects", run, "age", "--values", "20", "30", "--by", "sex", "--figure", f"{out}.svg"],
    ):  # fmt: skip
        assert cli.main(["regression", *words]) == 0, words
        assert capsys.readouterr().out or "found.csv" in words[-1]
    again = ["regression", "fit", str(tmp_path / "survey.csv"), "vote ~ sex", "--out", f"{out}2"]
    assert cli.main([*again, *few, "--method", "approximate"]) == 0  # without groups, too
    assert "The draws are from an approximation" in capsys.readouterr().out


def write(path, columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


@pytest.mark.parametrize("formula", ["year + rw(year)", "s(year) + (1 | year)"])
def test_numbers_of_groupings_are_compared_where_the_data_are(formula):
    years = np.random.default_rng(0).integers(1990, 2010, 200)
    data = rows_of(f"vote ~ {formula}", {"vote": ["a", "b"] * 100, "year": years})
    found = pgmult.sample(
        AdditiveRegression(method="approximate"), data, draws=8, tune=0, chains=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    assert found.comparisons().axes == ("comparison", "category")
    assert "By year, everything else unchanged" in str(found.report())


def test_straight_lines_of_curves_are_of_their_terms():
    """A trend that is all straight, in all groups alike, is s(x)'s and not its product's."""
    rng = np.random.default_rng(0)
    x, kind = np.tile(np.arange(20), 40), rng.choice(["a", "b", "c"], 800)
    vote = np.where(rng.random(800) < 1.0 / (1.0 + np.exp(0.3 * (x - 10))), "left", "right")
    run = pgmult.sample(
        AdditiveRegression(method="approximate"),
        rows_of("vote ~ kind * s(x)", {"vote": vote, "x": x, "kind": kind}),
        draws=50, tune=0, chains=2, random_seed=0, progressbar=False,
    )  # fmt: skip
    shares = run.variance_shares()
    terms = dict(zip(shares.labels["term"], shares.mean, strict=True))
    assert list(terms) == ["kind", "s(x)", "kind:s(x)", "not explained"]
    assert terms["s(x)"] > 10.0 * terms["kind:s(x)"]
    assert (shares.draws >= 0.0).all()


def test_files_call_rows_by_their_lines(tmp_path):
    """A cell of two lines moves what follows it."""
    file = tmp_path / "votes.csv"
    file.write_text('vote,x,note\nleft,1,"two\nlines"\n\nright,2,\nleft,5,\nright,,\nleft,4,\n')
    table = pgmult.read(file)
    assert table.lines.tolist() == [2, 5, 6, 7, 8]
    assert table[[0, 3]].lines.tolist() == [2, 7]
    with pytest.raises(ValueError, match=r"missing value in line 7 of .*votes\.csv"):
        table.rows("vote ~ x")
    run = pgmult.sample(
        AdditiveRegression(method="approximate"), table[[0, 1, 2, 4]].rows("vote ~ C(x)"),
        draws=5, tune=0, chains=1, random_seed=0, progressbar=False,
    )  # fmt: skip
    answer = run.predict(table[[1, 4]])
    assert answer.axes == ("line", "category")
    assert list(answer.labels["line"]) == [5, 8]
    assert run.predict({"x": ["1", "2"]}).axes == ("row", "category")


def test_offsets_that_are_no_logs_are_refused():
    """Days of exposure are no log of a mean, whose factor would be exp(150)."""
    table = {"cases": [1, 3, 0, 2], "days": [20.0, 150.0, 80.0, 40.0], "arm": list("abab")}
    with pytest.raises(ValueError, match=r"150 is a factor exp\(150\).*offset\(log\(x\)\)"):
        rows_of("cases ~ arm + offset(days)", table, family="poisson")
    rows_of("cases ~ arm + offset(log(days))", table, family="poisson")
