"""Mixed logit: moves leave the joint law of tastes and choices as it is; the trap is avoided."""

from dataclasses import replace

import numpy as np
import pytest

import pgmult
from pgmult.choice import MixedLogit, choices_of
from pgmult.choice import mixed_logit as module
from pgmult.choice.pilot import PARTS, Frame, sites_of
from pgmult.sampling.diagnostics import ess_bulk, r_hat
from pgmult.testing import check_geweke, mutant, rejects

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(5)
PEOPLE, OCCASIONS, ALTERNATIVES = 6, 3, 3
NUM = PEOPLE * OCCASIONS * ALTERNATIVES
TABLE = {
    "who": np.repeat(np.arange(PEOPLE), OCCASIONS * ALTERNATIVES),
    "case": np.repeat(np.arange(PEOPLE * OCCASIONS), ALTERNATIVES),
    "taken": np.arange(NUM) % ALTERNATIVES == 0,
    "worst": np.arange(NUM) % ALTERNATIVES == 1,
    "price": 3.0 * RNG.normal(size=NUM),
    "time": RNG.normal(size=NUM),
    "size": RNG.normal(size=NUM),
}
FULL = "taken ~ price + time + size + (price + time | who)"
CASES = {
    "full": {"formula": FULL},
    "diagonal": {"formula": FULL.replace("|", "||")},
    "one attribute": {"formula": "taken ~ price + (price | who)"},
    "signs": {"formula": FULL, "signs": {"price": -1}},
    "nobody": {"formula": "taken ~ price + time"},
    "best and worst": {"formula": "taken ~ price + time + (price | who)", "worst": "worst"},
}
MODEL = MixedLogit(mean_scale=1.0, sd_scale=0.7)


def data(case="full"):
    return choices_of(table=TABLE, occasion="case", **CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_sweeps_leave_the_joint_law_as_it_is(case):
    check_geweke(MODEL, data(case), replicates=400, sweeps=3)


def around_sites(self, rng, state, rows):
    """Tastes at the end of a path around sites, whatever the likelihood says."""
    frame = Frame.of(rows)
    white = rng.standard_normal(frame.tastes_inside(state).shape)
    population = frame.inside(state.mean, state.cov, state.coefficients)
    return self.carried(None, state, white, rows, *population)


def without_volume(self, rng, state, white, rows, *population):
    """The density of tastes, not of their white noise."""
    state, white, sums = MixedLogit.carried(self, rng, state, white, rows, *population)
    root, J = population[-1], np.moveaxis(sites_of(rows, state.tuning.base).J, -1, 0)
    volume = 0.5 * np.linalg.slogdet(np.eye(len(root)) + root.T @ J @ root)[1].sum()
    return state, white, sums._replace(rounded=(sums.rounded[0] + volume, *sums.rounded[1:]))


def left_behind(self, rng, state, white, rows, *population):
    """Tastes that a path of the population does not carry along."""
    return state, white, MixedLogit.carried(self, rng, state, white, rows, *population)[2]


def short_where_liked(self, rng, state):
    """Short paths for those whose tastes lie above the mean, not for a tenth by chance."""
    lengths = 0.2 * np.pi * rng.uniform(0.8, 1.2, size=len(state.tastes))
    return np.where(state.tastes[:, 0] > state.mean[0], 0.05 * lengths, lengths)


def in_parts(number, self, rng, state, sums, rows, ask):
    """A path in so many parts, which the state does not remember."""
    other = replace(state, tuning=replace(state.tuning, parts=number))
    moved = MixedLogit.shared_step(self, rng, other, sums, rows, ask)
    return replace(moved, tuning=state.tuning)


def few_parts_where_liked(self, rng, state, sums, rows, ask):
    """Paths of the population in fewer parts where the mean of tastes is above 0."""
    return in_parts(1 if state.mean[0] > 0.0 else 6, self, rng, state, sums, rows, ask)


def finer_where_refused(self, rng, state, sums, rows, ask):
    """Paths in more parts where the usual ones were refused, not for a tenth by chance."""
    for parts in (1, 1, 4):
        moved = in_parts(parts, self, rng, state, sums, rows, ask)
        if not np.array_equal(moved.mean, state.mean):
            break
    return moved


def of_other_coordinates(root, sd_scale, diagonal):
    """The density of the root's own entries: without the Jacobian."""
    value, slope = LOG_PRIOR(root, sd_scale, diagonal)
    power, own = np.arange(len(root)), np.diagonal(root)
    return value - power @ np.log(np.abs(own)), slope - np.diag(power / own)


LOG_PRIOR = module._log_prior_root


@pytest.mark.parametrize(
    "change",
    [
        {"local_step": around_sites}, {"carried": without_volume}, {"carried": left_behind},
        {"shared_step": few_parts_where_liked},
    ],
    ids=["always accepted", "without volume", "left behind", "parts by tastes"],
)  # fmt: skip
def test_broken_moves_are_refused(change):
    rejects(check_geweke, mutant(MODEL, **change), data(), replicates=400, sweeps=3)


def as_best(self, rng, state, rows):
    """Choices of the worst by utilities of the sign of those of the best."""
    return replace(
        rows, taken=MixedLogit.simulate(self, rng, state, replace(
            rows, x=rows.x * rows.side[:, None])).taken
    )  # fmt: skip


def test_worst_choices_of_the_wrong_sign_are_refused():
    broken = mutant(MODEL, simulate=as_best)
    rejects(check_geweke, broken, data("best and worst"), replicates=400, sweeps=3)


@pytest.mark.parametrize(
    ("change", "replicates", "sweeps"),
    [({"lengths": short_where_liked}, 200, 6), ({"shared_step": finer_where_refused}, 300, 3)],
    ids=["lengths by tastes", "finer where refused"],
)
def test_paths_that_depend_on_where_they_are_are_refused(change, replicates, sweeps):
    """What lengths by tastes do wrong builds up: six sweeps say it with p = 5e-14, three hardly."""
    broken = mutant(MODEL, **change)
    rejects(check_geweke, broken, data("one attribute"), replicates=replicates, sweeps=sweeps)


def test_a_path_without_the_jacobian_of_the_root_is_refused(monkeypatch):
    monkeypatch.setattr(module, "_log_prior_root", of_other_coordinates)
    rejects(check_geweke, MODEL, data(), replicates=400, sweeps=3)


def simulated(people, occasions, sd, seed=0, alternatives=4, size=3):
    rng = np.random.default_rng(seed)
    tastes = np.resize([1.0, -1.0, 0.5], size) + sd * rng.normal(size=(people, size))
    x = rng.normal(size=(people, occasions, alternatives, size))
    u = np.einsum("ntak,nk->nta", x, tastes) + rng.gumbel(size=x.shape[:3])
    taken = np.arange(alternatives) == u.argmax(axis=2)[..., None]
    number = people * occasions
    names = "abcdef"[:size]
    table = {name: x[..., k].ravel() for k, name in enumerate(names)} | {
        "taken": taken.ravel(),
        "who": np.repeat(np.arange(people), occasions * alternatives),
        "case": np.repeat(np.arange(number), alternatives),
    }
    total = " + ".join(names)
    return choices_of(f"taken ~ {total} + ({total} | who)", table, occasion="case")


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.parametrize(
    ("people", "occasions", "sd"), [(1000, 1, 0.05), (500, 5, 0.7), (60, 40, 1.0)]
)
def test_few_choices_or_like_tastes_mislead_no_chain(people, occasions, sd):
    """What chains say holds the truth, and they agree with each other."""
    run = pgmult.sample(
        MixedLogit(), simulated(people, occasions, sd), draws=600, tune=200, chains=2,
        random_seed=1, progressbar=False,
    )  # fmt: skip
    found = np.hstack([run.stack("mean"), run.stack("sds")])
    away = found.mean(axis=0) - [1.0, -1.0, 0.5, sd, sd, sd]
    assert away @ np.linalg.solve(np.cov(found.T), away) < 25.0  # .9997 of chi2 with 6 degrees
    halves = np.asarray(run["sds"]).mean(axis=1)
    assert (np.abs(halves[0] - halves[1]) < 1.2 * found[:, 3:].std(axis=0)).all()


def test_few_people_with_wide_tastes_get_paths_in_more_parts():
    """So many that most are accepted, where the usual number gets less than half."""
    rows, model, rng = simulated(20, 6, 8.0, size=6), MixedLogit(), np.random.default_rng(0)
    shares = {}
    start = model.init(rng, rows)
    assert start.tuning.parts > PARTS
    for parts in (PARTS, start.tuning.parts):
        state, moved = replace(start, tuning=replace(start.tuning, parts=parts)), []
        for _ in range(300):
            old, state = state, model.step(rng, state, rows)
            moved.append(not np.array_equal(state.mean, old.mean))
        shares[parts] = np.mean(moved)
    assert shares[start.tuning.parts] > 0.6
    assert shares[PARTS] < 0.5


def of_one_attribute(rng, people, always):
    """Choices of two by their price; the first people always take what is cheaper."""
    price, other = rng.normal(size=(2, people, 6, 2))
    tastes = np.where(np.arange(people) < always, -60.0, rng.normal(-1.0, 0.8, size=people))
    u = tastes[:, None, None] * price + 0.3 * other + rng.gumbel(size=price.shape)
    return {
        "who": np.repeat(np.arange(people), 12), "case": np.repeat(np.arange(people * 6), 2),
        "price": price.ravel(), "other": other.ravel(),
        "taken": (np.arange(2) == u.argmax(axis=2)[..., None]).ravel(),
    }  # fmt: skip


def expected_tastes(run, who):
    """Means of some people's tastes given each draw of the population, by quadrature."""
    rows, out = run.data, []
    mean, sd, b = run.stack("mean")[:, 0], run.stack("sds")[:, 0], run.stack("coefficients")[:, 0]
    x, other = (rows.x[:, k].reshape(-1, 6, 2) for k in (rows.random[0], rows.fixed[0]))
    taken = rows.taken.reshape(-1, 6, 2)
    z = np.linspace(-10.0, 10.0, 401)
    for m, s, c in zip(mean, sd, b, strict=True):
        u = (m + s * z)[:, None, None, None] * x[who] + c * other[who]
        log_p = np.sum(
            taken[who] * (u - np.logaddexp.reduce(u, axis=3, keepdims=True)), axis=(2, 3)
        )
        weight = np.exp(log_p - log_p.max(axis=0) - 0.5 * z[:, None] ** 2)
        out.append(m + s * (z @ weight) / weight.sum(axis=0))
    return np.array(out)


def test_people_whose_choices_bound_one_side_are_bound_by_the_population():
    """Tastes of those who always take what is cheaper: finite, and what quadrature says."""
    table = of_one_attribute(np.random.default_rng(3), people=60, always=4)
    rows = choices_of("taken ~ price + other + (price | who)", table, occasion="case")
    run = pgmult.sample(
        MixedLogit(), rows, draws=800, tune=100, chains=2, random_seed=1, progressbar=False
    )
    who = np.arange(4)
    tastes, expected = np.asarray(run["tastes"])[:, :, who, 0], expected_tastes(run, who)
    away = tastes - expected.reshape(tastes.shape)
    error = away.std(axis=(0, 1)) / np.sqrt(ess_bulk(away))
    assert np.isfinite(tastes).all()
    assert ess_bulk(tastes).min() > 200
    assert (np.abs(away.mean(axis=(0, 1))) < 4.0 * error).all()


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:price predicts every choice")
def test_where_everybody_takes_what_is_cheaper_the_prior_sets_the_bound():
    """The likelihood has no maximum; chains agree on how far the prior lets the mean go.

    With 240 differences of prices its log is about -111 / |mean| where tastes are alike, so that it
    balances the prior's slope, mean / 25, at -14.
    """
    table = of_one_attribute(np.random.default_rng(4), people=40, always=40)
    rows = choices_of("taken ~ price + other + (price | who)", table, occasion="case")
    run = pgmult.sample(
        MixedLogit(), rows, draws=1000, tune=100, chains=2, random_seed=1, progressbar=False
    )
    mean = np.asarray(run["mean"])[..., 0] * rows.scale[rows.random[0]]
    assert np.isfinite(mean).all()
    assert -18.0 < mean.mean() < -10.0
    assert r_hat(mean) < 1.1
