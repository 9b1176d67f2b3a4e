"""Rows of fractional weights: each adds its share of the likelihood, and answers are exact."""

import numpy as np
import pytest

import pgmult
from pgmult.formulas.design import table_of
from pgmult.priors import Normal
from pgmult.regression.models.additive import AdditiveRegression
from pgmult.regression.rows import rows_of

RNG = np.random.default_rng(3)
SIZE = 150
TABLE = {
    "vote": RNG.choice(["left", "none", "right"], SIZE, p=[0.5, 0.2, 0.3]).tolist(),
    "visits": RNG.poisson(1.5, SIZE),
    "x": np.round(RNG.standard_normal(SIZE), 1),
    "g": RNG.choice(list("abcde"), SIZE).tolist(),
}
LINKS = ["stick_breaking", "softmax", "cumulative"]
FEW = {"draws": 20, "tune": 5, "chains": 1, "random_seed": 0, "progressbar": False}
QUIET = pytest.mark.filterwarnings("ignore::pgmult.sampling.diagnostics.ConvergenceWarning")


def stacked(table, *weights):
    """The table once for each column of weights."""
    rows = {name: np.concatenate([np.asarray(c)] * len(weights)) for name, c in table.items()}
    return rows | {"w": np.concatenate(weights)}


@QUIET
@pytest.mark.parametrize("link", LINKS)
def test_two_halves_are_a_row(link):
    """The draws are the same, but for rounding in the means of the columns."""
    whole = rows_of("vote ~ x + (1 | g)", TABLE)
    halves = stacked(TABLE, np.full(SIZE, 0.5), np.full(SIZE, 0.5))
    cut = rows_of("vote ~ x + (1 | g)", halves, weights="w")
    assert cut.counts.dtype == np.float64
    assert not cut.is_weighted  # nothing but whole respondents, after all
    np.testing.assert_array_equal(cut.counts, whole.counts)
    model = AdditiveRegression(link=link)
    runs = [pgmult.sample(model, data, **FEW) for data in (whole, cut)]
    np.testing.assert_allclose(runs[0]["weights"], runs[1]["weights"], atol=1e-6)


@QUIET
@pytest.mark.parametrize("family", ["poisson", "negative_binomial"])
def test_two_halves_of_events_are_a_row(family):
    halves = stacked(TABLE, np.full(SIZE, 0.25), np.full(SIZE, 0.75))
    whole = rows_of("visits ~ x + (1 | g)", TABLE, family=family)
    cut = rows_of("visits ~ x + (1 | g)", halves, weights="w", family=family)
    np.testing.assert_array_equal(cut.respondents, whole.respondents)
    runs = [pgmult.sample(AdditiveRegression(), data, **FEW) for data in (whole, cut)]
    np.testing.assert_allclose(runs[0]["weights"], runs[1]["weights"], atol=1e-6)


@QUIET
@pytest.mark.parametrize("link", LINKS)
def test_the_log_likelihood_is_that_of_the_rows_by_their_weights(link):
    weight = RNG.random(SIZE)
    data = rows_of("vote ~ x + (1 | g)", TABLE | {"w": weight}, weights="w")
    assert data.is_weighted
    model = AdditiveRegression(link=link)
    for seed in range(3):
        state = model.prior(np.random.default_rng(seed), data)
        probs = model.probs(state, data)
        cells = {(x, g): i for i, (x, g) in enumerate(zip(*_told(data), strict=True))}
        order = data.categories.tolist()
        expected = sum(
            w * np.log(probs[cells[x, g], order.index(vote)])
            for w, x, g, vote in zip(weight, TABLE["x"], TABLE["g"], TABLE["vote"], strict=True)
        )
        assert model.log_likelihood(state, data) == pytest.approx(expected, rel=1e-10)


def _told(data):
    table = table_of(data.design)
    return table["x"].tolist(), table["g"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("outcome", ["vote", "visits"])
def test_a_weighted_posterior_is_that_of_quadrature(outcome):
    """One coefficient b ~ N(0, 1): moments of exp(sum_n w_n log p(y_n | b x_n)) N(b; 0, 1)."""
    rng = np.random.default_rng(2)
    x, w = rng.uniform(0.5, 2.0, 12), rng.uniform(0.1, 1.2, 12)
    w *= 0.9 / w.mean()
    y = rng.integers(0, 2, 12) if outcome == "vote" else rng.poisson(1.0, 12)
    cells = {0: "no", 1: "yes"}
    told = [cells[one] for one in y.tolist()] if outcome == "vote" else y
    options = {} if outcome == "vote" else {"family": "poisson"}
    data = rows_of("y ~ 0 + x", {"y": told, "x": x, "w": w}, weights="w", **options)
    model = AdditiveRegression(priors={"x": Normal(0.0, 1.0)})
    run = pgmult.sample(
        model, data, draws=4000, tune=50, chains=2, random_seed=1, progressbar=False
    )
    scale = data.design.scale[0]
    b = run["weights"].reshape(2, -1) / scale
    grid = np.linspace(-6.0, 6.0, 20_001)
    psi = grid[:, None] * x
    each = y * psi - (np.logaddexp(0.0, psi) if outcome == "vote" else np.exp(psi))
    log_p = each @ w - 0.5 * grid**2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ grid
    sd = np.sqrt(p @ (grid - mean) ** 2)
    ess = 1500  # at least: paths around a near approximation
    assert abs(b.mean() - mean) < 4 * sd / np.sqrt(ess)
    assert b.std() == pytest.approx(sd, rel=4 / np.sqrt(2 * ess))
    unweighted = np.exp((each.sum(axis=1) - 0.5 * grid**2) - (each.sum(axis=1)).max())
    unweighted /= unweighted.sum()
    away = np.sqrt(unweighted @ (grid - unweighted @ grid) ** 2)
    assert away < 0.98 * sd  # which the test would tell apart


@pytest.fixture(scope="module")
def run():
    data = rows_of("vote ~ s(x) + (1 | g)", TABLE | {"w": RNG.random(SIZE)}, weights="w")
    return pgmult.sample(
        AdditiveRegression(method="approximate"), data, draws=20, tune=0, chains=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip


def test_averages_are_weighted_and_reports_say_so(run, tmp_path):
    data = run.data
    share = data.respondents / data.respondents.sum()
    cells = run.predict().draws
    means = run.predict(at={}).draws
    np.testing.assert_allclose(means, np.einsum("n,dnk->dk", share, cells))
    told = str(run.report(tmp_path / "page.html"))
    assert f"Observations of a weight of {data.respondents.sum():g}" in told
    assert "as many independent observations as the weights add up to" in " ".join(told.split())
    for answer in (
        run.effects("x"), run.comparisons(), run.groups(), run.variance_shares(),
        run.check(TABLE), run.compare(held_out=TABLE),
    ):  # fmt: skip
        assert str(answer)


def test_what_needs_single_respondents_is_refused(run):
    rng = np.random.default_rng(0)
    state = run.model.init(rng, run.data)
    for ask, said in (
        (run.loo, "predicted from each other"), (run.compare, "held_out"), (run.check, "held_out"),
        (lambda: run.compare(run), "predicted from each other"),
        (lambda: run.model.simulate(rng, state, run.data), "to be simulated"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            ask()


def test_arviz_is_not_given_a_likelihood_row_by_row(run):
    pytest.importorskip("arviz")
    with pytest.raises(ValueError, match="one by one"):
        run.to_arviz(run.data)


WRONG = {
    "negative": (-0.5, "must be non-negative, got -0.5 at"),
    "infinite": (np.inf, "weights must be finite|must be finite"),
    "missing": (np.nan, "missing value at row 0"),
    "a text": ("much", "weights must"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_weights_that_are_none_are_refused(case):
    one, said = WRONG[case]
    weights = [one, *([0.5] * (SIZE - 1))]
    with pytest.raises((TypeError, ValueError), match=said):
        rows_of("vote ~ x", TABLE | {"w": weights}, weights="w")


def test_weights_beyond_the_rows_are_told():
    weights = 1000.0 * RNG.random(SIZE)
    with pytest.warns(UserWarning, match=r"weights add up to [67].* in 150 rows: intervals are"):
        rows_of("vote ~ x", TABLE | {"w": weights}, weights="w")
    whole = rows_of("vote ~ x", TABLE | {"w": np.full(SIZE, 3.0)}, weights="w")
    assert whole.counts.dtype == np.int64
