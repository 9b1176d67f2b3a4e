"""What is derived from probabilities: steps, ratios, slopes, raked populations."""

import csv

import numpy as np
import pytest
from scipy import stats

import pgmult
from pgmult import cli
from pgmult.formulas.design import make_design
from pgmult.regression import AdditiveRegression
from pgmult.regression.raking import rake

RNG = np.random.default_rng(4)
SIZE = 240
TABLE = {
    "x": np.exp(RNG.normal(0.0, 1.5, SIZE)),
    "b": RNG.integers(2, size=SIZE).astype(float),
    "sex": RNG.choice(["f", "m"], SIZE).tolist(),
    "g": RNG.choice(list("abcd"), SIZE).tolist(),
    "day": np.datetime64("2020-01-01") + RNG.integers(0, 300, SIZE),
}
ODDS = TABLE["x"] * np.exp(TABLE["b"])
VOTE = np.where(RNG.random(SIZE) < ODDS / (1.0 + ODDS), "yes", "no").tolist()


@pytest.fixture(scope="module")
def run():
    rows = pgmult.read(TABLE | {"vote": VOTE}).rows("vote ~ log(x) + b + sex + day + (1 | g)")
    with pytest.warns(pgmult.ConvergenceWarning):
        return pgmult.sample(
            AdditiveRegression(), rows, draws=20, tune=10, chains=2, random_seed=0,
            progressbar=False,
        )  # fmt: skip


def averaged(run, **columns):
    """Average probabilities with columns set in every row of the data, draw by draw."""
    table = {name: np.asarray(values) for name, values in (TABLE | columns).items()}
    return run.predict(table).draws.mean(axis=1)


def test_a_step_stays_where_the_data_are_and_keeps_its_width(run):
    """A step about the smallest numbers of a skewed column would end below 0, in no logarithm."""
    answer = run.comparisons("x")
    width = float(answer.labels["comparison"]["comparison"][0])
    x, (low, high) = TABLE["x"], (TABLE["x"].min(), TABLE["x"].max())
    assert width == float(f"{x.std():.2g}")
    below = np.clip(x - 0.5 * width, low, high - width)
    expected = averaged(run, x=below + width) - averaged(run, x=below)
    np.testing.assert_allclose(answer.draws[:, 0], expected, atol=1e-12)
    assert below.min() == low
    assert (x - 0.5 * width).min() < 0.0


def test_two_values_are_compared_with_each_other(run):
    answer = run.comparisons("b")
    assert answer.labels["comparison"]["comparison"] == ["1 less 0"]
    expected = averaged(run, b=np.ones(SIZE)) - averaged(run, b=np.zeros(SIZE))
    np.testing.assert_allclose(answer.draws[:, 0], expected, atol=1e-12)


def test_ratios_and_odds_ratios_are_those_of_average_probabilities(run):
    one, other = averaged(run, b=np.ones(SIZE)), averaged(run, b=np.zeros(SIZE))
    ratio = run.comparisons("b", measure="ratio")
    np.testing.assert_allclose(ratio.draws[:, 0], one / other, rtol=1e-10)
    odds = run.comparisons("b", measure="odds_ratio")
    expected = one / (1.0 - one) / (other / (1.0 - other))
    np.testing.assert_allclose(odds.draws[:, 0], expected, rtol=1e-10)
    assert "1 / 0" in str(odds)
    assert "median" in str(odds)
    with pytest.raises(ValueError, match="measure must be one of difference, ratio"):
        run.comparisons("b", measure="percent")


def test_derivatives_are_average_slopes(run):
    """Central differences agree; near the ends of the data the answer is one-sided."""
    answer = run.comparisons("x", measure="derivative")
    x, h = TABLE["x"], 1e-5
    expected = (averaged(run, x=x + h) - averaged(run, x=x - h)) / (2.0 * h)
    np.testing.assert_allclose(answer.draws[:, 0], expected, rtol=2e-2)
    every = run.comparisons(measure="derivative")
    assert every.labels["comparison"]["column"] == ["x", "b", "day"]
    days = averaged(run, day=TABLE["day"] + np.timedelta64(1, "D")) - averaged(
        run, day=TABLE["day"]
    )
    np.testing.assert_allclose(every.draws[:, 2], days, rtol=2e-2, atol=1e-6)
    with pytest.raises(ValueError, match=r"derivatives are of numbers and dates.*sex"):
        run.comparisons("sex", measure="derivative")


def test_a_wide_step_that_is_asked_for_goes_beyond_the_data(run):
    answer = run.comparisons("b", step=2.0)
    expected = averaged(run, b=TABLE["b"] + 1.0) - averaged(run, b=TABLE["b"] - 1.0)
    np.testing.assert_allclose(answer.draws[:, 0], expected, atol=1e-12)


def test_people_of_cells_may_be_an_expression(run):
    census = {name: values[:40] for name, values in TABLE.items()} | {"n": np.arange(1, 41)}
    people = census | {"people": np.round(census["n"] * 0.4)}
    expected = run.poststratify(people, weight="people").draws
    found = run.poststratify(census, weight="round(n * 0.4)").draws
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="weight must have a column 'm'"):
        run.poststratify(census, weight="round(m * 0.4)")


def test_several_columns_divide_a_population(run):
    census = {name: values[:40] for name, values in TABLE.items()} | {"n": np.arange(1, 41)}
    by = run.poststratify(census, by=["sex", "b"], weight="n")
    rows = run.predict({name: values for name, values in census.items() if name != "n"}).draws
    weights = np.where((np.array(census["sex"]) == "m") & (census["b"] == 1.0), census["n"], 0)
    expected = np.einsum("dri,r->di", rows, weights) / weights.sum()
    np.testing.assert_allclose(by.at(sex="m", b=1.0).draws, expected, atol=1e-12)


def test_raked_respondents_have_the_margins(run):
    margins = {"sex": {"f": 30, "m": 70}, "g": {"a": 10, "b": 20, "c": 30, "d": 40}}
    weights = rake(TABLE, np.ones(SIZE), margins)
    for column, people in margins.items():
        for label, number in people.items():
            of_label = weights[np.array(TABLE[column]) == label].sum()
            assert of_label == pytest.approx(number, rel=1e-7)
    raked = run.poststratify(margins=margins)
    by_hand = run.poststratify(TABLE | {"w": weights}, weight="w")
    np.testing.assert_allclose(raked.draws, by_hand.draws, atol=1e-10)


@pytest.mark.parametrize(
    ("margins", "said"),
    [
        ({}, "must name a column, got none"),
        ({"age": {"old": 1}}, "must name columns of the data, got 'age'"),
        ({"sex": {"f": 1}}, "margins of 'sex'.*must be one of f, got 'm'"),
        ({"sex": {"f": 1, "m": 1, "x": 1}}, "'x', and the data have no observations of it"),
        ({"sex": {"f": -1, "m": 2}}, "must be numbers of people, 0 or more"),
    ],
    ids=["none", "column", "label", "nobody", "negative"],
)
def test_bad_margins_are_refused(margins, said):
    with pytest.raises(ValueError, match=said):
        rake(TABLE, np.ones(SIZE), margins)


def test_margins_that_contradict_each_other_are_refused():
    table = {"a": ["x", "y"], "b": ["x", "y"]}
    with pytest.raises(ValueError, match="contradict each other"):
        rake(table, np.ones(2), {"a": {"x": 1, "y": 3}, "b": {"x": 3, "y": 1}})


def test_a_census_that_lacks_a_label_of_the_data_says_so(run):
    women = {n: np.asarray(v)[np.array(TABLE["sex"]) == "f"] for n, v in TABLE.items()}
    women["n"] = np.ones(len(women["sex"]))
    with pytest.warns(UserWarning, match="the census has nobody with sex m"):
        run.poststratify(women, weight="n")
    with pytest.raises(TypeError, match="weight must name the column of the census"):
        run.poststratify(women)
    with pytest.raises(TypeError, match="census must be a table where there are no margins"):
        run.poststratify()


@pytest.mark.parametrize("slopes", ["(1 + x || g)", "(1 | g) + (0 + x | g)", "(1 + x | g)"])
def test_the_origin_of_a_slope_does_not_matter_beside_an_intercept(slopes):
    """Years from 2010 on or from 10 on: the same columns inside."""
    near = make_design(TABLE, SIZE, f"x + {slopes}", every_term=True)
    far = make_design(TABLE | {"x": TABLE["x"] + 2000.0}, SIZE, f"x + {slopes}", every_term=True)
    for one, other in zip(near.terms, far.terms, strict=True):
        if one.slopes is not None:
            np.testing.assert_allclose(one.slopes.values, other.slopes.values, atol=1e-9)
    alone = make_design(TABLE, SIZE, "x + (0 + x | g)", every_term=True)
    np.testing.assert_allclose(alone.terms[0].slopes.values[:, 0] * TABLE["x"].std(), TABLE["x"])


def test_a_cyclic_spline_closes_after_its_period():
    """Months from 1 to 12 close after December, whether they are numbers or of dates."""
    dates = np.datetime64("2021-01-15") + np.arange(0, 365, 5)
    month = dates.astype("datetime64[M]").astype(int) % 12 + 1
    table = {"date": dates, "month": month.astype(float), "x": month + 0.5}
    of_dates = make_design(table, len(dates), "cc(month(date), df=4)")
    of_numbers = make_design(table, len(dates), "cc(month, df=4)")
    np.testing.assert_allclose(of_dates.matrix, of_numbers.matrix)
    asked = make_design(table, len(dates), "cc(x, df=4, period=12)", standardize=False)
    knots = asked.states["cc(x, df=4, period=12)"]["knots"]
    assert (knots[0], knots[-1]) == (1.5, 13.5)
    around = asked.rows({"x": [2.0, 14.0]})
    np.testing.assert_allclose(around[0], around[1])
    with pytest.raises(ValueError, match="positive period or an upper bound"):
        make_design(table, len(dates), "cc(x, df=4, period=-1)")


def test_ordered_categories_are_answered_in_their_order():
    """Answers for k or higher and mean scores are sums over probabilities, draw by draw."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=200)
    places = np.digitize(x + rng.logistic(size=200), [-1.0, 0.5])
    answer = np.array(["low", "mid", "high"])[places].tolist()
    rows = pgmult.read({"answer": answer, "x": x}).rows(
        "answer ~ x", ordered=["low", "mid", "high"]
    )
    with pytest.warns(pgmult.ConvergenceWarning):
        run = pgmult.sample(
            AdditiveRegression(), rows, draws=20, tune=10, chains=2, random_seed=0,
            progressbar=False,
        )  # fmt: skip
    probs = run.effects("x", [-1.0, 1.0]).draws
    higher = run.effects("x", [-1.0, 1.0], outcome="at_least")
    assert higher.labels["category"] == ["mid or higher", "high or higher"]
    np.testing.assert_allclose(higher.draws[..., 0], probs[..., 1] + probs[..., 2])
    np.testing.assert_allclose(higher.draws[..., 1], probs[..., 2])
    score = run.comparisons("x", [-1.0, 1.0], outcome="score")
    expected = (probs[:, 1] - probs[:, 0]) @ [1.0, 2.0, 3.0]
    np.testing.assert_allclose(score.draws[:, 0, 0], expected, atol=1e-12)
    odds = run.comparisons("x", [-1.0, 1.0], outcome="at_least", measure="odds_ratio")
    one, other = higher.draws[:, 1], higher.draws[:, 0]
    np.testing.assert_allclose(odds.draws[:, 0], one / (1 - one) / (other / (1 - other)))
    with pytest.raises(ValueError, match="which have no odds"):
        run.comparisons("x", outcome="score", measure="odds_ratio")


def approximately(rows):
    return pgmult.sample(
        AdditiveRegression(method="approximate"), rows, draws=50, chains=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip


def test_scores_are_the_numbers_that_categories_are():
    """Nobody has answered 3: the mean is that of 1, 2, 4 and 5."""
    rng = np.random.default_rng(8)
    table = {"rating": rng.choice([1, 2, 4, 5], size=120), "x": rng.normal(size=120)}
    with pytest.warns(UserWarning, match="no row has 3: left out of the ordered categories"):
        rows = pgmult.read(table).rows("rating ~ x", ordered=[1, 2, 3, 4, 5])
    run = approximately(rows)
    assert run.effects("x", [0.0]).labels["category"].tolist() == ["1", "2", "4", "5"]
    probs = run.effects("x", [0.0]).draws[:, 0]
    score = run.effects("x", [0.0], outcome="score").draws[:, 0, 0]
    np.testing.assert_allclose(score, probs @ [1.0, 2.0, 4.0, 5.0])


def test_combinations_of_labels_without_rows_have_the_effects_of_their_prior():
    """Nested or crossed: what no row tells apart is uncertain, and the others are as they were."""
    rng = np.random.default_rng(9)
    cell = rng.integers(3, size=300)
    table = {"a": np.array(["p", "q", "q"])[cell], "b": np.array(["s", "s", "t"])[cell]}
    table["y"] = np.where(rng.random(300) < np.array([0.2, 0.5, 0.8])[cell], "yes", "no")
    for formula in ("y ~ a * b", "y ~ a / b"):
        with pytest.warns(UserWarning, match="some combinations of labels have no rows"):
            rows = pgmult.read(table).rows(formula)
        run = approximately(rows)
        cells = run.predict({"a": ["p", "q", "q", "p"], "b": ["s", "s", "t", "t"]})
        np.testing.assert_allclose(cells.mean[:3, 1], [0.2, 0.5, 0.8], atol=0.1)
        assert cells.sd[3, 1] > 3.0 * cells.sd[:3, 1].max()


def test_cells_of_the_data_are_labelled_by_their_columns(run):
    cells = run.predict()
    columns = cells.columns_of("row")
    assert set(columns) == {"x", "b", "sex", "day", "g"}
    one = {name: [np.asarray(values)[5]] for name, values in columns.items()}
    np.testing.assert_allclose(run.predict(one).draws[:, 0], cells.draws[:, 5])


def test_categories_without_an_order_have_no_score(run):
    with pytest.raises(ValueError, match="outcome must be 'categories' where these have no order"):
        run.effects("sex", outcome="score")


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_margins_and_repeated_columns_at_the_command_line(tmp_path, capsys):
    """An option that is given twice adds a column; margins come as a small table each."""
    with (tmp_path / "survey.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["vote", "sex", "g"])
        writer.writerows(zip(VOTE, TABLE["sex"], TABLE["g"], strict=True))
    (tmp_path / "sex.csv").write_text("sex,people\nf,30\nm,70\n")
    out, few = str(tmp_path / "run"), ["--draws", "10", "--tune", "5", "--chains", "1", "--quiet"]
    survey = str(tmp_path / "survey.csv")
    assert cli.main(["regression", "fit", survey, "vote ~ sex + g", "--out", out, *few]) == 0
    capsys.readouterr()
    asked = ["regression", "poststratify", out, "--margins", str(tmp_path / "sex.csv")]
    assert cli.main([*asked, "--by", "sex", "--by", "g", "--json"]) == 0
    text = capsys.readouterr().out
    assert '"sex"' in text
    assert '"g"' in text
    assert cli.main([*asked[:3], "--margins", survey]) == 2
    assert "must be tables of two columns" in capsys.readouterr().err


def test_a_rare_value_is_compared_with_the_other(run):
    """One in a hundred: quantiles of the column are all the same."""
    rare = np.zeros(SIZE)
    rare[:3] = 1.0
    rows = pgmult.read({"vote": VOTE, "rare": rare}).rows("vote ~ rare")
    with pytest.warns(pgmult.ConvergenceWarning):
        one = pgmult.sample(
            AdditiveRegression(), rows, draws=5, tune=5, chains=1, random_seed=0, progressbar=False
        )
    assert one.comparisons().labels["comparison"]["comparison"] == ["1 less 0"]


def opinions(seed, slopes):
    """500 answers on a scale of four, with a slope of x at each cut, and groups without effect."""
    rng = np.random.default_rng(seed)
    x, g = rng.standard_normal(500), rng.choice(list("ab"), 500)
    scores = np.array([1.0, -0.2, -1.2]) + np.outer(x, slopes)
    above = np.minimum.accumulate(1.0 / (1.0 + np.exp(-scores)), axis=1)
    answers = (rng.random(500)[:, None] < above).sum(axis=1)
    return {"x": x.tolist(), "g": g.tolist(), "answer": answers.astype(str).tolist()}


@pytest.mark.parametrize(
    ("slopes", "specific", "is_odd"),
    [([0.8, 0.8, 0.8], (), False), ([0.4, 0.8, 1.2], (), True), ([0.4, 0.8, 1.2], ("x",), False)],
)
def test_checks_see_whether_odds_are_proportional(slopes, specific, is_odd):
    model, odd = AdditiveRegression(method="approximate", specific=specific), []
    for seed in range(3):
        table = pgmult.read(opinions(seed, slopes))
        rows = table.rows("answer ~ x + g", ordered=list("0123"), unit="answer")
        run = pgmult.sample(
            model, rows, draws=100, tune=0, chains=1, random_seed=0, progressbar=False
        )
        checked = run.check()
        names = [name for name in checked.statistics if name.startswith("proportional")]
        assert names == [f"proportional odds of {n}" for n in ("x", "g[T.b]")][bool(specific) :]
        odd.append("specific='x'" in checked.verdict)
    assert sum(odd) >= 2 if is_odd else sum(odd) <= 1, odd
    assert "500 answers in" in str(run.report())


def test_rows_that_scatter_are_scored_and_compared_as_rows():
    rng = np.random.default_rng(0)
    arm, n = np.repeat(["a", "b"], 30), np.full(60, 20)
    k = rng.binomial(n, rng.beta(*np.where(arm == "a", [[1.5], [5.0]], [[5.0], [1.5]])))
    table = pgmult.read({"arm": arm, "k": k, "n": n})
    runs = [
        pgmult.sample(
            AdditiveRegression(method="approximate"), table.rows(formula, family=family), draws=50,
            tune=0, chains=2, random_seed=0, progressbar=False,
        )
        for formula, family in (
            ("p(k, n) ~ arm", None), ("p(k, n) ~ 1", None), ("p(k, n) ~ arm", "categories"),
        )
    ]  # fmt: skip
    run, score = runs[0], runs[0].loo()
    assert score.counts.tolist() == [1] * 60
    shares = run.predict(table).draws[:, :, 0]
    size = run.model.sizes(run.stack("hyperparameters"), run.data)[:, None]
    log_p = stats.betabinom(n, size * shares, size * (1.0 - shares)).logpmf(k)
    np.testing.assert_allclose(score.fitted, np.log(np.exp(log_p).mean(axis=0)))
    assert "60 rows. Each row is predicted" in str(score)
    assert run.compare(runs[1]).gains[1].sign > 0
    assert run.compare(runs[1]).draws.shape == (60, 2)
    by_arm = run.compare()
    assert by_arm.names == ("this model", "overall shares", "shares by arm")
    assert by_arm.gains[1].sign > 0
    assert abs(by_arm.gains[2].mean) < 0.1
    with pytest.raises(ValueError, match="give both the same family"):
        run.compare(runs[2])
    assert "scatter of rows" in run.check().statistics
    held_out = run.compare(held_out=table)
    assert held_out.levels[0] == pytest.approx(score.fitted.mean())


@pytest.mark.parametrize(
    ("formula", "specific"), [("y ~ 1", ()), ("y ~ (1 | g)", ()), ("y ~ x + (1 | g)", ("x",))]
)
def test_ordered_categories_may_share_no_coefficient(formula, specific):
    """The order is that of a data frame's categories."""
    pandas = pytest.importorskip("pandas")
    labels = pandas.Categorical(list("baccab") * 20, categories=["b", "a", "c"], ordered=True)
    x, g = np.linspace(-1.0, 1.0, 120), list("pqrs") * 30
    rows = pgmult.read(pandas.DataFrame({"y": labels, "x": x, "g": g})).rows(formula)
    assert rows.is_ordered
    model = AdditiveRegression(method="approximate", specific=specific)
    run = pgmult.sample(model, rows, draws=20, tune=0, chains=1, random_seed=0, progressbar=False)
    shares = run.predict()
    assert list(shares.labels["category"]) == ["b", "a", "c"]
    np.testing.assert_allclose(shares.mean.mean(axis=0), 1.0 / 3.0, atol=0.15)
    assert not any("odds" in name for name in run.check().statistics)


def test_categories_that_a_value_lacks_are_compared_all_the_same():
    answers, x = list("123") * 20 + list("345") * 20, ["no"] * 60 + ["yes"] * 60
    rows = pgmult.read({"y": answers, "x": x}).rows("y ~ x", ordered=list("12345"))
    run = pgmult.sample(
        AdditiveRegression(method="approximate"), rows, draws=50, tune=0, chains=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    gaps = run.comparisons("x")
    assert list(gaps.labels["category"]) == list("12345")
    np.testing.assert_allclose(gaps.draws.sum(axis=-1), 0.0, atol=1e-12)
    assert (np.sign(gaps.mean[0, [0, 1, 3, 4]]) == [-1, -1, 1, 1]).all()
