"""Terms of formulas: the law of predictors that each gives, against the law written out.

An oracle of a term compares covariances of predictors; each has a mutant that it must refuse.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from gaussian_targets import rough
from scipy import linalg, sparse, special, stats
from scipy.special import softmax

import pgmult
from pgmult.formulas import design as designs
from pgmult.formulas import terms as formula_terms
from pgmult.formulas.maps import neighbours_of
from pgmult.latent import terms as laws
from pgmult.latent.predictors import latent_of
from pgmult.latent.terms import from_sd
from pgmult.priors import LKJ, HalfT, LogNormal, Normal
from pgmult.regression import AdditiveRegression
from pgmult.regression.models import blocks, sampler
from pgmult.regression.models.sampler import AdditiveRegressionState
from pgmult.regression.rows import rows_of
from pgmult.regression.scores import _rivals

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
NUM = 60
RNG = np.random.default_rng(4)
TABLE = {
    "y": RNG.choice(["a", "b", "c"], size=NUM),
    "n": RNG.poisson(2.0, size=NUM),
    "x": RNG.normal(50.0, 10.0, size=NUM).round(1),
    "z": RNG.normal(size=NUM).round(2),
    "g": RNG.choice([3, 1, 2, 10], size=NUM),
    "h": RNG.choice(["u", "v", "w"], size=NUM),
    "t": RNG.choice([2000, 2001, 2004, 2010], size=NUM),
    "area": RNG.choice(["p", "q", "r", "s"], size=NUM),
}
MAP = {"p": ["q"], "q": ["r"], "r": ["p", "u"], "s": []}
FORMULAS = [
    "y ~ x + (1 + x | g)", "y ~ (x || g) + (0 + h | g)", "y ~ z + (z | g/h)", "y ~ rw(t)",
    "y ~ gp(x)", "y ~ gp(x, z, k=5)", "y ~ car(area, map)", "y ~ 1",
    "y ~ s(x) + (1 | g:h) + offset(z)",
]  # fmt: skip


def rows(formula, table=TABLE, **more):
    return rows_of(formula, table, maps={"map": MAP}, **more)


def covariance(latent, x):
    """Of the predictors of all rows, the fixed effects left out, levels without data included."""
    total = 0.0
    parts = zip(latent.pieces, latent.family.hyperparameters, strict=True)
    for piece, own in list(parts)[1:]:
        A, Q = sparse.csr_array(piece.design).toarray(), piece.prior.precision(x[own])
        if sparse.issparse(Q):
            Q = Q.toarray()
        else:
            Q = np.diag(Q) if Q.ndim == 1 else linalg.block_diag(*Q)
        total = total + A @ np.linalg.solve(Q, A.T)
        if piece.fresh is not None:
            noise = np.eye(piece.fresh.shape[1])
            B = piece.fresh @ np.stack([piece.prior.spread(x[own], e) for e in noise], axis=1)
            total = total + B @ B.T
    return total


def latent_at(formula, table=TABLE, new=None, priors=None):
    """A formula's latent Gaussian, a row a row of the table."""
    design = designs.make_design(
        table, None, formula, every_term=True, maps={"map": MAP}, check=False
    )
    design = design if new is None else design.like(new, new_levels=True)
    return latent_of(design, priors)


def same_as(found, expected, **tolerances):
    np.testing.assert_allclose(found, expected, **({"rtol": 1e-9, "atol": 1e-9} | tolerances))


# --------------------------------------------------------------------------- the laws of terms


def slopes_are_those_of_their_columns():
    """Of an intercept and a slope in the column's own units, new levels independent."""
    new = {k: v for k, v in TABLE.items() if k != "g"} | {"g": np.asarray(TABLE["g"]) + 1}
    x = np.array([from_sd(0.5), from_sd(0.3), 0.4])
    for table in (TABLE, new):
        latent = latent_at("y ~ (x | g)", new=table)
        column, g = np.asarray(TABLE["x"]), np.asarray(table["g"])
        centred = (column - column.mean()) / column.std()
        cov = 0.5 * 0.3 * np.tanh(0.4)
        each = 0.25 + cov * (centred[:, None] + centred) + 0.09 * np.outer(centred, centred)
        same_as(covariance(latent, x), each * (g[:, None] == g))
    at_zero, of_slope = latent.sds(x)
    m, s = column.mean(), column.std()
    assert of_slope == pytest.approx(0.3 / s)
    assert at_zero == pytest.approx(np.sqrt(0.25 - 2 * cov * m / s + 0.09 * (m / s) ** 2))


def walks_are_as_long_as_their_times():
    """Var(difference) is sd^2 a unit of time, at times known and new, between and beyond."""
    new = {"t": np.array([2000, 2002, 2003, 2004, 2005, 2010, 2013, 1998, 1999, 2002])}
    latent = latent_at("~ rw(t)", new=new)
    found = covariance(latent, np.array([from_sd(0.7)]))
    gaps = np.abs(new["t"][:, None] - new["t"])
    known = np.array([2000, 2001, 2004, 2010])
    unit = np.mean(np.abs(known[:, None] - known)) / 2
    each = np.diagonal(found)
    same_as(each[:, None] + each - 2 * found, 0.49 * gaps / unit)


def processes_are_matern():
    """Covariances of Matérn 5/2 in the middle of the data, of one input and of two."""
    side = np.linspace(-1.0, 1.0, 9)
    grid = {"x": np.repeat(side, 9) * 40.0 + 7.0, "z": np.tile(side, 9) * 40.0 - 3.0}
    x = np.array([from_sd(0.8), np.log(0.4)])
    for formula in ("~ gp(x, k=40, c=2)", "~ gp(x, z, k=30, c=2)"):
        found = covariance(latent_at(formula, grid), x)
        inputs = [np.repeat(side, 9), np.tile(side, 9)][: 1 + ("z" in formula)]
        distance = np.sqrt(sum((one[:, None] - one) ** 2 for one in inputs)) * np.sqrt(5) / 0.4
        matern = 0.64 * (1 + distance + distance**2 / 3) * np.exp(-distance)
        same_as(found, matern, atol=0.02)


def areas_lean_on_their_neighbours():
    """Leroux's conditional means; variance 1 on average where nothing else counts."""
    latent = latent_at("~ car(area, map)", {"area": ["p", "q", "r", "s", "u"]})
    share = 1 / (1 + np.exp(-0.7))
    Q = np.linalg.inv(covariance(latent, np.array([from_sd(0.5), 0.7])))
    beside = np.zeros((5, 5))
    for i, j in ((0, 1), (1, 2), (0, 2), (2, 4)):
        beside[i, j] = beside[j, i] = 1.0
    laplacian = np.diag(beside.sum(axis=1)) - beside
    connected = laplacian[np.ix_([0, 1, 2, 4], [0, 1, 2, 4])]
    unit = np.trace(np.linalg.pinv(connected)) / 4
    expected = (share * unit * laplacian + (1 - share) * np.eye(5)) / 0.25
    expected[3, 3] = 1 / 0.25
    same_as(Q, expected)


ORACLES = [
    slopes_are_those_of_their_columns, walks_are_as_long_as_their_times, processes_are_matern,
    areas_lean_on_their_neighbours,
]  # fmt: skip


@pytest.mark.parametrize("oracle", ORACLES)
def test_predictors_have_the_law_of_their_term(oracle):
    oracle()


MUTANTS = {
    "slopes in other units": (
        formula_terms.Slopes, "unscale", lambda self, root: root, slopes_are_those_of_their_columns,
    ),
    "new levels without correlation": (
        laws.LevelEffects, "spread", lambda self, x, noise: 0.5 * noise,
        slopes_are_those_of_their_columns,
    ),
    "walks of steps": (
        formula_terms, "times_of", lambda labels, name: np.arange(float(len(labels))),
        walks_are_as_long_as_their_times,
    ),
    "new times apart from each other": (
        np.linalg, "cholesky", lambda cov: np.diag(np.sqrt(np.diagonal(cov))),
        walks_are_as_long_as_their_times,
    ),
    "processes of half the frequencies": (
        formula_terms.ProcessTerm, "frequencies",
        property(lambda self: np.linalg.norm(self.waves / self.reach, axis=1)),
        processes_are_matern,
    ),
    "maps of another scale": (
        np.linalg, "eigvalsh", lambda matrix: 2.0 * np.linalg.eigh(matrix)[0],
        areas_lean_on_their_neighbours,
    ),
}  # fmt: skip


@pytest.fixture
def no_map_known():
    laws._scaled_laplacian.cache_clear()
    yield
    laws._scaled_laplacian.cache_clear()


@pytest.mark.usefixtures("no_map_known")
@pytest.mark.parametrize("mutant", MUTANTS)
def test_broken_laws_are_refused(mutant, monkeypatch):
    where, name, broken, oracle = MUTANTS[mutant]
    monkeypatch.setattr(where, name, broken)
    if name == "times_of":
        monkeypatch.setattr(designs, name, broken)
    with pytest.raises(AssertionError):
        oracle()


# --------------------------------------------------------------------------- links


def brute(name, scores):
    """Probabilities by what a link says, score by score."""
    if name == "softmax":
        return softmax(scores, axis=1)
    above = np.column_stack([np.ones(len(scores)), special.expit(scores), np.zeros(len(scores))])
    return above[:, :-1] - above[:, 1:]


@pytest.mark.parametrize("options", ["softmax", "cumulative", "specific", "scatter"])
def test_blocks_have_the_likelihood_of_their_link(options, monkeypatch):
    """And its slopes, up to a constant; weights of blocks and scores say the same."""
    monkeypatch.setattr(blocks, "approximate", rough)
    more, specific, formula = {}, (), "y ~ x + z + (z | g)"
    if options in ("cumulative", "specific"):
        more, specific = {"ordered": ["b", "c", "a"]}, ("z",) * (options == "specific")
    if options == "scatter":
        formula = "c(n, m, k) ~ x + (z | g)"
    table = TABLE | {"m": np.arange(NUM) % 5, "k": np.arange(NUM) % 3}
    model, data = AdditiveRegression(specific=specific), rows(formula, table, **more)
    name = model.link_name(data)
    assert name == ("cumulative" if more else "softmax")
    sampler, rng = model.sampler(data), np.random.default_rng(3)
    (block,) = sampler.blocks
    apart, state = [], model.prior(rng, data)
    for _ in range(3):
        state = model.prior(rng, data)
        (w,) = sampler.structure.flat(state.weights)
        same_as(sampler.structure.weights([w]), state.weights)
        probs = model.probs(state, data)
        same_as(probs, brute(name, model.predictors(state, data)))
        lines, size = block.rows, model.sizes(state.hyperparameters[None], data)[0]
        if options == "scatter":
            lines = replace(lines, size=size)
            law = [
                stats.dirichlet_multinomial(size * p, n)
                for p, n in zip(probs, data.counts.sum(axis=1), strict=True)
                if n
            ]
            some = data.counts[data.counts.sum(axis=1) > 0]
            fit = sum(one.logpmf(y) for one, y in zip(law, some, strict=True))
            fit -= special.gammaln(some.sum(axis=1) + 1).sum() - special.gammaln(some + 1).sum()
        else:
            fit = np.sum(data.counts * np.log(probs))
        same_as(model.log_likelihood(state, data), fit, rtol=1e-8)
        psi = block.family.predictor(w)
        apart.append(fit - lines.total(psi))
    same_as(apart, apart[0], rtol=1e-7)
    flat, slope = psi.ravel(), np.ravel(lines.slope(psi))
    at = np.arange(0, flat.size, 7)
    steps = 1e-5 * np.eye(flat.size)[at]
    ends = [[lines.total((flat + sign * e).reshape(psi.shape)) for e in steps] for sign in (1, -1)]
    same_as(slope[at], (np.array(ends[0]) - ends[1]) / 2e-5, atol=2e-5)


def test_no_category_of_a_softmax_is_special():
    """Whatever they are called, the approximate posterior is the same."""
    shares = []
    for order in ("abc", "bca"):
        names = dict(zip("abc", order, strict=True))
        table = TABLE | {"y": [names[y] for y in TABLE["y"]]}
        data = rows("y ~ x + (1 | g)", table)
        model = AdditiveRegression()
        block = model.sampler(data).blocks[0]
        law = block.family.at(block.base.guess.mean, block.base.absorbed)
        at = AdditiveRegressionState(model.sampler(data).structure.weights([law.mean]), None)
        probs = model.probs(at, data)
        shares.append(probs[:, [data.categories.tolist().index(names[c]) for c in "abc"]])
    same_as(shares[1], shares[0], rtol=1e-2)


def test_numbers_in_order_are_found_however_they_are_written():
    table = {"y": [2, 10, 1, 2], "x": [0.0, 1.0, 2.0, 3.0]}
    expected = rows_of("y ~ x", table, ordered=[1, 2, 10])
    same = rows_of("y ~ x", table, ordered=["1.0", "2.0", "10"])
    assert same.categories.tolist() == expected.categories.tolist() == ["1", "2", "10"]
    np.testing.assert_array_equal(same.counts, expected.counts)
    with pytest.raises(ValueError, match="list each category once"):
        rows_of("y ~ x", table, ordered=["1", "1.0", "2", "10"])


def mean_effects(formula, table, **more):
    """Weights at the mean of the approximation, in the units of the columns."""
    data, model = rows(formula, table, **more), AdditiveRegression()
    sampler = model.sampler(data)
    flat = [b.family.at(b.base.guess.mean, b.base.absorbed).mean for b in sampler.blocks]
    weights = sampler.structure.weights(flat)[:, : len(data.design.names)] / data.design.scale
    return weights[:, data.design.names != "Intercept"]


def test_the_same_question_otherwise_has_the_same_answer():
    """Success and failure exchanged, categories turned round, other units, rows split."""
    won = np.arange(NUM) % 5
    table = TABLE | {"won": won, "lost": 6 - won, "all": [6] * NUM, "minus": -TABLE["z"]}
    table |= {"cents": 100.0 * np.asarray(TABLE["x"]) - 7.0}
    one = mean_effects("p(won, all) ~ x + offset(z)", table)
    same_as(mean_effects("p(lost, all) ~ x + offset(minus)", table), -one, rtol=1e-6)
    same_as(100.0 * mean_effects("p(won, all) ~ cents + offset(z)", table), one, rtol=1e-6)
    levels = {"a": "c", "b": "b", "c": "a"}
    turned = table | {"y": [levels[y] for y in TABLE["y"]]}
    one = mean_effects("y ~ x + z", table, ordered=True)
    same_as(mean_effects("y ~ x + z", turned, ordered=True), -one, rtol=1e-5)
    same_as(mean_effects("y ~ cents + z", table, ordered=True) * [100.0, 1.0], one, rtol=1e-5)
    half = {name: np.repeat(column, 2) for name, column in table.items()} | {"w": [1, 0] * NUM}
    same_as(mean_effects("y ~ x + z", half, ordered=True, weights="w"), one, rtol=1e-6)
    split = mean_effects("c(won, lost) ~ x", half, weights="w")
    same_as(split, mean_effects("c(won, lost) ~ x", table), rtol=1e-6)


def test_two_categories_have_the_log_odds_of_the_second_and_offsets_are_on_them():
    table = TABLE | {
        "won": [3] * NUM,
        "all": [4] * NUM,
        "two": [["no", "yes"][i % 2] for i in range(NUM)],
    }
    for formula, first in (
        ("p(won, all) ~ x + offset(z)", "success"),
        ("two ~ x + offset(z)", "yes"),
    ):
        data, model = rows(formula, table), AdditiveRegression()
        state = model.prior(np.random.default_rng(0), data)
        state = AdditiveRegressionState(0.0 * state.weights, state.hyperparameters)
        probs = model.probs(state, data)[:, data.categories.tolist().index(first)]
        same_as(np.log(probs / (1 - probs)), data.design.offset)
    named = rows('y ~ x + offset(z, "b") + offset(x, "c")')
    state = AdditiveRegression().prior(np.random.default_rng(0), named)
    scores = AdditiveRegression().predictors(
        AdditiveRegressionState(0 * state.weights, None), named
    )
    same_as(scores[:, 0], 0.0)
    same_as(
        np.sort(scores[:, 2]),
        np.sort(np.unique(np.column_stack([TABLE["x"], TABLE["z"]]), axis=0)[:, 0]),
    )


# --------------------------------------------------------------------------- what must not matter


@pytest.mark.parametrize(
    ("formula", "link"),
    [
        *((formula.replace(" + offset(z)", ""), "stick_breaking") for formula in FORMULAS),
        ("y ~ (x | g) + rw(t)", "softmax"),
        ('y ~ s(x) + (1 | t:g:h) + offset(z, "b")', "softmax"),  # an arrow
        ("y ~ s(x) + (x | g) + rw(t) + offset(z)", "cumulative"),
    ],
)
def test_rows_alone_and_new_levels_are_predicted_as_in_company(formula, link, monkeypatch):
    monkeypatch.setattr(blocks, "approximate", rough)
    run = pgmult.sample(
        AdditiveRegression(link=link), rows(formula), draws=4, tune=1, chains=1,
        random_seed=0, progressbar=False,
    )  # fmt: skip
    whole = run.predict(TABLE)
    for row in (0, 11):
        alone = run.predict({name: column[row : row + 1] for name, column in TABLE.items()})
        same_as(alone.draws[:, 0], whole.draws[:, row])
    state = AdditiveRegressionState(run.stack("weights")[2], run.stack("hyperparameters")[2])
    same_as(run.predict().draws[2], run.model.probs(state, run.data))
    new = TABLE | {"g": np.asarray(TABLE["g"]) + 7, "t": np.asarray(TABLE["t"]) + 1}
    latent = run.model.latent(run.data, run.data.design.like(new, new_levels=True))
    drawn = latent.draw(np.random.default_rng(0), state.weights, state.hyperparameters)
    assert drawn.shape == (NUM, 3 if link == "softmax" else 2)
    same_as(run.predict(new, new_levels=True).draws.sum(axis=2), 1.0)


@pytest.mark.parametrize("formula", FORMULAS)
def test_permuted_rows_and_renamed_levels_have_the_same_law(formula):
    order = np.random.default_rng(0).permutation(NUM)
    names = {3: "x3", 1: "w1", 2: "a2", 10: "10"}
    other = {name: np.asarray(column)[order] for name, column in TABLE.items()}
    other["g"] = [names[g] for g in other["g"].tolist()]
    # other units of what a term runs over
    other |= {"t": 3.0 * (other["t"] - 1990), "x": 0.1 * other["x"] - 2.0}
    if "z, k" in formula:  # of a plane, of all its inputs alike
        other["z"] = 0.1 * other["z"]
    one, two = latent_at(formula), latent_at(formula, other)
    x = one.family.start() + np.random.default_rng(1).uniform(
        0.0, 0.3, one.family.num_hyperparameters
    )
    expected = covariance(one, x) * np.ones((NUM, NUM))
    same_as(covariance(two, x) * np.ones((NUM, NUM)), expected[np.ix_(order, order)], atol=1e-7)


def test_rows_split_in_two_are_the_same_data():
    half = {name: np.repeat(column, 2) for name, column in TABLE.items()} | {"w": [1, 0] * NUM}
    for formula in ("y ~ (x | g) + rw(t)", "n ~ gp(x) + car(area, map)"):
        more = {} if formula[0] == "y" else {"family": "negative_binomial"}
        one, two = rows(formula, **more), rows(formula, half, weights="w", **more)
        np.testing.assert_array_equal(one.counts, two.counts)
        same_as(two.respondents, one.respondents)
        same_as(two.design.matrix, one.design.matrix)
    assert one.respondents.sum() == NUM


# --------------------------------------------------------------------------- events


def test_events_have_the_likelihood_of_their_family(monkeypatch):
    monkeypatch.setattr(blocks, "approximate", rough)
    for family in ("poisson", "negative_binomial"):
        data = rows("n ~ x + (1 | g) + offset(z)", family=family)
        model = AdditiveRegression()
        state = model.init(np.random.default_rng(0), data)
        mean = model.probs(state, data)[:, 0]
        law = stats.poisson(mean)
        if family == "negative_binomial":
            size = np.exp(state.hyperparameters[0, -1])
            law = stats.nbinom(size, size / (size + mean))
        expected = data.respondents @ law.logpmf(data.counts[:, 0])
        assert model.log_likelihood(state, data) == pytest.approx(expected)


def law_of_events(mean, size):
    return stats.poisson(mean) if np.isinf(size).all() else stats.nbinom(size, size / (size + mean))


@pytest.mark.parametrize("family", ["poisson", "negative_binomial"])
def test_scores_and_checks_of_events(family, monkeypatch):
    monkeypatch.setattr(blocks, "approximate", rough)
    table = TABLE | {"w": np.arange(NUM) % 3}
    data = rows("n ~ x + (1 | g) + offset(z)", table, weights="w", family=family)
    settings = {"draws": 10, "tune": 0, "chains": 2, "random_seed": 0, "progressbar": False}
    run = pgmult.sample(AdditiveRegression(method="approximate"), data, **settings)
    found, rates = run.loo(), run.predict().draws[:, :, 0]
    sizes = run.model.sizes(run.stack("hyperparameters"), data)
    assert bool(np.isinf(sizes).all()) == (family == "poisson")
    log_p = law_of_events(rates, sizes[:, None]).logpmf(data.counts[:, 0])
    np.testing.assert_array_equal(found.cells, np.arange(data.num_rows))
    np.testing.assert_allclose(found.fitted, special.logsumexp(log_p, axis=0) - np.log(len(log_p)))
    assert found.counts.sum() == np.sum(table["w"])
    # a table of those respondents that were told: the same rows, held out
    each = {name: np.repeat(column, table["w"]) for name, column in TABLE.items()}
    told = run.compare(held_out=each)
    assert told.levels[0] == pytest.approx(found.counts @ found.fitted / found.counts.sum())
    assert run.compare().names[:2] == ("this model", "the overall mean")
    assert "as well as the second: +0.0000" in str(run.compare(run))
    checked, y = run.check(), np.repeat(data.counts[:, 0], data.respondents.astype(int))
    assert checked.statistics[:3] == ("mean n", "variance over mean", "share of 0")
    np.testing.assert_allclose(checked.observed[0, :2], [y.mean(), y.var() / y.mean()])
    assert (np.quantile(checked.draws[:, 0], [0, 1]) > 0.0).all()
    by = run.check(by="g")
    at = np.repeat(np.asarray(designs.table_of(data.design)["g"]), data.respondents.astype(int))
    known = {f"mean n where g is {g}": y[at == g].mean() for g in np.unique(at)}
    assert dict(zip(by.statistics, by.observed[0], strict=True)) == pytest.approx(known)
    assert "Means by g" in str(run.report())


def test_means_of_the_others_are_the_rivals_of_events():
    table = {"n": [2, 0, 5], "g": ["a", "a", "b"], "z": [0.0, 1.0, 0.5]}
    data = rows("n ~ 1 + offset(z) + (1 | g)", table, family="poisson")
    found = _rivals(data, None)
    exposed = np.exp(table["z"])
    usual, mean = 7.0 / exposed.sum(), exposed.mean()
    for name, others in (
        ("the overall mean", [(1, 2), (0, 2), (0, 1)]),
        ("means by g", [(1,), (0,), ()]),
    ):
        expected = [
            stats.poisson(
                exposed[i] * (sum(table["n"][j] for j in own) + usual * mean)
                / (sum(exposed[j] for j in own) + mean)
            ).logpmf(table["n"][i])
            for i, own in enumerate(others)
        ]  # fmt: skip
        assert sorted(found[name].by_unit) == pytest.approx(sorted(expected))


@pytest.mark.parametrize("is_broken", [False, True])
def test_the_size_of_a_negative_binomial_has_its_law(is_broken, monkeypatch):
    """Draws given predictors, by their mean, against the density on a grid."""
    rng = np.random.default_rng(2)
    psi = rng.normal(1.0, 0.5, size=80)
    y = rng.poisson(rng.gamma(1.5, np.exp(psi) / 1.5)).astype(float)
    prior, grid = sampler.SizePrior(LogNormal(3.0, 2.0), 0.05, 1e4), np.linspace(-3.0, 6.0, 2000)
    sizes = np.exp(grid)[:, None]
    logs = stats.nbinom(sizes, sizes / (sizes + np.exp(psi))).logpmf(y).sum(axis=1)
    logs += stats.norm(np.log(3.0), 2.0).logpdf(grid)
    weights = np.exp(logs - logs.max())
    mean = np.average(grid, weights=weights)
    sd = np.sqrt(np.average((grid - mean) ** 2, weights=weights))
    if is_broken:  # without the normaliser of the counts, which depends on the size
        monkeypatch.setattr(
            sampler.CountSite, "value", lambda site, psi: np.array([site.total(psi)])
        )
    draws, at = [], np.array([0.0])
    for _ in range(400):
        at = sampler.sized(rng, at, psi, sampler.CountSite(y), prior)
        draws.append(at[0])
    away = abs(np.mean(draws[50:]) - mean) / sd
    assert (away > 1.0) if is_broken else (away < 0.25)


# --------------------------------------------------------------------------- maps, priors, errors


def test_maps_of_all_forms_are_one():
    expected = (["p", "q", "r", "s", "u"], [[0, 1], [0, 2], [1, 2], [2, 4]])
    table = {"one": ["q", "p", "r", "s", "r", "q"], "two": ["p", "r", "u", "", "q", "r"]}
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]], dtype=float)
    places = {"p": (0, 0), "q": (1, 0), "r": (1, 1), "u": (2, 1), "s": (5, 5)}
    features = [
        {
            "type": "Feature", "properties": {"area": name},
            "geometry": {"type": "Polygon", "coordinates": [(square + at).tolist()]},
        }
        for name, at in places.items()
    ]  # fmt: skip
    polygons = {"type": "FeatureCollection", "features": features}
    for given in (MAP, table):
        areas, pairs = neighbours_of(given, "area")
        assert (areas.tolist(), pairs.tolist()) == expected
    areas, pairs = neighbours_of(polygons, "area")  # p and r only meet in a corner
    assert pairs.tolist() == [[0, 1], [1, 2], [2, 4]]
    assert neighbours_of(json.loads(json.dumps(polygons)), "area")[0].tolist() == areas.tolist()
    assert neighbours_of({"p": ["q"], "q": ["r"]}, "area")[0].tolist() == ["p", "q", "r"]
    # names as numbers, or as text
    assert neighbours_of({1: [2.0], "3": []}, "area")[0].tolist() == ["1", "2", "3"]


def test_priors_are_set_by_term_and_told_in_the_columns_units():
    sd = float(np.asarray(TABLE["x"]).std())
    data = rows("y ~ x + (x | g) + gp(x)")
    default = {(a, b): c for a, b, c in AdditiveRegression().prior_table(data)}
    assert default["x", "coefficient"] == str(Normal(0, 2.5 / sd))
    assert default["(1 + x | g)", "sd of x"] == str(HalfT(3, 1 / sd))
    assert default["(1 + x | g)", "correlations"] == "LKJ(2)"
    priors = {
        "fixed": Normal(0, 0.3), "(x | g)": (HalfT(5, 0.2), LKJ(4)), "gp(x)": LogNormal(8.0, 0.5),
    }  # fmt: skip
    model = AdditiveRegression(priors=priors)
    told = {(a, b): c for a, b, c in model.prior_table(data)}
    assert told["x", "coefficient"] == "Normal(0, 0.3)"
    assert told["Intercept", "coefficient"] == "Normal(0, 2.5)"
    assert told["(1 + x | g)", "sd of x"] == "HalfT(5, 0.2)"
    assert told["gp(x)", "length scale"] == "LogNormal(8, 0.5)"
    fixed, slopes, process = model.latent(data).family.terms
    same_as(fixed.scale, [2.5, 0.3 * sd])
    same_as(slopes.scale, [0.2, 0.2 * sd])
    unit = (max(TABLE["x"]) - min(TABLE["x"])) / 2
    assert (slopes.dof, slopes.eta, process.length_sd) == (5, 4, 0.5)
    assert process.length == pytest.approx(8.0 / unit)


REFUSED = {
    "an area without a place": (
        lambda: rows("y ~ car(h, map)"), r"map .map. of car\(h, map\) must have every area of .*h",
    ),
    "no map": (
        lambda: rows_of("y ~ car(area, land)", TABLE), "needs a map 'land', got none",
    ),
    "an area beside itself": (
        lambda: neighbours_of({"a": ["a"]}, "area"), "must not have an area beside itself, got 'a'",
    ),
    "a process outside its box": (
        lambda: rows("y ~ gp(x)").design.like(TABLE | {"x": [500.0] * NUM}),
        r"gp\(x\) is known for x from .* got 500 at row 0",
    ),
    "a walk over words": (lambda: rows("y ~ rw(h)"), "runs over numbers or dates .*, got 'u'"),
    "several times": (lambda: rows("y ~ rw(t, x)"), r"rw\(time\) takes 1 name"),
    "no effects": (lambda: rows("y ~ (0 | g)"), r"\(0 \| g\) has no effects"),
    "options of a process": (lambda: rows("y ~ gp(x, k=1)"), "processes are written"),
    "a term within a term": (lambda: rows("y ~ (s(x) | g)"), "must be a term of its own"),
    "a prior of nothing": (
        lambda: AdditiveRegression(priors={"(1 | h)": HalfT()}).latent(rows("y ~ (1 | g)")),
        r"priors has '\(1 \| h\)', but the model has fixed, Intercept, \(1 \| g\)",
    ),
    "a prior of another kind": (
        lambda: AdditiveRegression(priors={"(1 | g)": Normal()}).latent(rows("y ~ (1 | g)")),
        r"the prior of \(1 \| g\) is a HalfT, got Normal",
    ),
    "a prior with a mean": (
        lambda: AdditiveRegression(priors={"fixed": Normal(1, 1)}), "must be 0, got 1",
    ),
    "events of categories": (
        lambda: rows("c(n, t) ~ 1", family="poisson"), "events are one column of counts",
    ),
    "numbers as labels": (
        lambda: rows("x ~ (1 | g)"), "x holds .* different numbers: say family=",
    ),
    "shares of one outcome": (
        lambda: rows_of("y ~ 1", {"y": np.linspace(0.1, 0.9, 30)}), r"write p\(successes, trials",
    ),
    "a family": (lambda: rows("n ~ 1", family="gamma"), "family must be"),
    "events and categories": (
        lambda: AdditiveRegression(link="softmax").latent(rows("n ~ 1", family="poisson")),
        "link must be left out for events",
    ),
    "an offset of all categories": (
        lambda: AdditiveRegression().latent(rows("y ~ x + offset(z)")),
        r"must name one of several categories, as offset\(x, \"a\"\)",
    ),
    "an offset of nothing": (
        lambda: AdditiveRegression().latent(rows('y ~ x + offset(z, "d")')), "must name a, b, c",
    ),
    "a list without a category": (
        lambda: rows("y ~ x", ordered=["a", "b"]), "must list every category, it lacks c",
    ),
    "scores without a start": (
        lambda: AdditiveRegression().prior(RNG, rows("y ~ x - 1", ordered=True)),
        "need an intercept",
    ),
    "effects of scores that are one": (
        lambda: AdditiveRegression(specific=["x"]).prior(RNG, rows("y ~ x")), "cumulative link",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_in_a_sentence(what):
    call, words = REFUSED[what]
    with pytest.raises(ValueError, match=words):
        call()


def test_a_map_without_an_island_is_named():
    beside = {"from": ["CA", "OR"], "to": ["OR", "WA"]}
    table = {"y": list("abab"), "state": ["CA", "Hawaii", "OR", "Alaska"]}
    said = (
        r"the map 'states' of car\(state, states\) must have every area of column 'state', it lacks"
        r" 'Alaska', 'Hawaii' \(a row 'Alaska' whose second cell is empty"
    )
    with pytest.raises(ValueError, match=said):
        rows_of("y ~ car(state, states)", table, maps={"states": beside})
    whole = {"from": [*beside["from"], "Alaska", "Hawaii"], "to": [*beside["to"], "", ""]}
    data = rows_of("y ~ car(state, states)", table, maps={"states": whole})
    with pytest.raises(ValueError, match=r"the map 'states' of .* lacks 'Guam'"):
        data.design.like({"state": ["Guam"]})
    with pytest.raises(ValueError, match="the map 'states' must have two neighbours at least"):
        rows_of("y ~ car(state, states)", table, maps={"states": {"a": [], "b": []}})


def test_a_category_that_is_the_sum_of_the_others_is_refused():
    """A table of counts often has a row, or a column, of totals."""
    counts = {"yes": [30, 41, 52], "no": [20, 31, 9], "total": [50, 72, 61], "x": [1.0, 2.0, 3.0]}
    with pytest.raises(ValueError, match="'total' is the sum of the other categories: leave it"):
        rows_of("c(yes, no, total) ~ x", counts)
    with pytest.raises(ValueError, match=r"write p\(yes, total\)"):
        rows_of("c(yes, total) ~ x", counts)
    answers = ("yes", "no", "total")
    long = {
        "answer": [*answers] * 3, "n": [counts[a][i] for i in range(3) for a in answers],
        "x": np.repeat(counts["x"], 3),
    }  # fmt: skip
    with pytest.raises(ValueError, match="categories: take its rows out"):
        rows_of("answer ~ x", long, weights="n")
    assert len(rows_of("c(yes, no) ~ x", counts).categories) == 2
