"""Additive regressions: moves leave the joint law of parameters and data as it is."""

from dataclasses import replace

import numpy as np
import pytest
from gaussian_targets import rough

from pgmult.latent import approximation, moves
from pgmult.latent.categories import BetaBinomialSite, MultinomialRows
from pgmult.latent.moves import Point
from pgmult.priors import HalfT, Horseshoe, LogNormal, Normal
from pgmult.regression.models import blocks
from pgmult.regression.models import sampler as module
from pgmult.regression.models.additive import AdditiveRegression
from pgmult.regression.models.sampler import Around
from pgmult.regression.rows import rows_of
from pgmult.testing import check_geweke, rejects

pytestmark = pytest.mark.slow

NUM = 12
TOTALS = np.array([12, 1, 5, 1, 7, 2, 9, 3, 4, 1, 6, 8])
TABLE = {
    "a": TOTALS, "b": 0 * TOTALS, "c": 0 * TOTALS, "x1": TOTALS // 2,
    "x": np.linspace(-1.0, 1.0, NUM),
    "z": np.cos(np.arange(NUM)), "g": np.arange(NUM) % 4, "h": np.arange(NUM) // 4,
    "row": np.arange(NUM), "t": np.array([0.0, 1.0, 1.5, 4.0])[np.arange(NUM) % 4],
}  # fmt: skip
PLAIN = {"Intercept": Normal(0, 0.7), "fixed": Normal(0, 0.5)}
RING = {str(i): [str((i + 1) % 4)] for i in range(4)}
FEW = {"Intercept": Normal(0, 0.7), "x": Normal(0, 0.5), "(1 | g)": HalfT(30, 0.4)}
PLAINLY = {"family": "categories"}
CASES = {
    "crossed": ("c(a, b) ~ x + (1 | g) + (1 | h)", {"(1 | h)": HalfT(3, 0.5)}, {}, PLAINLY),
    "slopes and a walk": ("c(a, b) ~ x + (x | g) + rw(t)", {}, {}, PLAINLY),
    "map and process": (
        "c(a, b) ~ car(g, ring) + gp(x, k=6)",
        {"gp(x, k=6)": (HalfT(3, 0.5), LogNormal(1, 0.5))},
        {},
        PLAINLY | {"maps": {"ring": RING | {"island": []}}},
    ),
    "a level a row": ("c(a, b) ~ x + (1 | row)", {"(1 | row)": HalfT(3, 2.0)}, {}, PLAINLY),
    "sticks": ("c(a, x1, c) ~ x + (x | g)", {}, {"link": "stick_breaking"}, PLAINLY),
    "softmax": (
        "c(a, x1, c) ~ (1 | g)", {"(1 | g)": HalfT(5, 0.5), "Intercept": Normal(0, 1)}, {}, PLAINLY
    ),
    "learned scales": ("c(a, x1, c) ~ x + z + (1 | g)", {"fixed": HalfT(5, 0.5)}, {}, PLAINLY),
    "horseshoe": ("c(a, b) ~ x + z", {"fixed": Horseshoe(0.5)}, {}, PLAINLY),
    "ordered": ("c(a, x1, c) ~ x + (1 | g)", FEW, {}, {"ordered": True}),
    "beta-binomial": (
        "c(a, b) ~ x + (1 | g)", FEW | {"scatter": HalfT(10, 0.6)}, {}, {}
    ),
    "Dirichlet-multinomial": (
        "c(a, x1, c) ~ (1 | g)", {"(1 | g)": HalfT(30, 0.4), "Intercept": Normal(0, 0.7),
        "scatter": HalfT(10, 0.6)}, {}, {},
    ),
    "poisson": ("a ~ x + (1 | g)", FEW, {}, {"family": "poisson"}),
    "negative binomial": (
        "a ~ x + (1 | g)", FEW | {"size": LogNormal(2, 0.5)}, {}, {"family": "negative_binomial"}
    ),
}  # fmt: skip
DENSE = {
    "sticks": ("c(a, x1, c) ~ x + z", PLAIN, {"link": "stick_breaking"}, PLAINLY),
    "softmax": ("c(a, x1, c) ~ x + z", PLAIN, {}, PLAINLY),
    "ordered": ("c(a, x1, c) ~ x + z", PLAIN, {"specific": ["z"]}, {"ordered": True}),
    "Dirichlet-multinomial": (
        "c(a, x1, c) ~ x + z", PLAIN | {"scatter": HalfT(10, 0.6)}, {}, {}
    ),
    "poisson": ("a ~ x + z", PLAIN, {}, {"family": "poisson"}),
    "negative binomial": (
        "a ~ x + z", PLAIN | {"size": LogNormal(2, 0.5)}, {}, {"family": "negative_binomial"}
    ),
}  # fmt: skip


@pytest.fixture
def around(monkeypatch):
    """``around(case)``: a model and its data, its moves around a rough approximation.

    That is found at once, and mistakes show. Moves are those of approximations this far off.
    """

    def case_of(case, spread=0.2):
        monkeypatch.setattr(
            blocks, "approximate", lambda *of: replace(rough(*of), spread=float(spread))
        )
        formula, priors, options, more = CASES[case]
        return AdditiveRegression(priors=priors, **options), rows_of(formula, TABLE, **more)

    return case_of


@pytest.mark.parametrize("case", CASES)
def test_sweeps_leave_the_joint_law_as_it_is(case, around):
    check_geweke(*around(case), replicates=150, sweeps=3)


@pytest.fixture
def dense(monkeypatch):
    """``dense(case, spread)``: a model without groups, its data, as far from a Gaussian as told."""

    def case_of(case, spread):
        monkeypatch.setattr(
            blocks, "approximate", lambda *of: replace(rough(*of), spread=float(spread))
        )
        formula, priors, options, more = DENSE[case]
        return AdditiveRegression(priors=priors, **options), rows_of(formula, TABLE, **more)

    return case_of


@pytest.mark.parametrize("spread", [0.0, 5.0])
@pytest.mark.parametrize("case", DENSE)
def test_dense_sweeps_leave_the_joint_law_as_it_is(case, spread, dense):
    check_geweke(*dense(case, spread), replicates=150, sweeps=3)


def never_refused(self, rng, w, *more):
    """A draw from the Gaussian, whatever the likelihood says."""
    return self.sample(rng)


@pytest.mark.parametrize(("name", "spread"), [("swung", 5.0), ("reflected", 0.0)])
def test_broken_dense_moves_are_refused(name, spread, dense, monkeypatch):
    model, data = dense("sticks", spread)
    monkeypatch.setattr(Around, name, never_refused)
    rejects(check_geweke, model, data, replicates=600, sweeps=3)


def test_sweeps_where_leaps_are_too_far_leave_it_too(around, monkeypatch):
    """Hyperparameters carry weights along, or are interwoven, and paths turn half a circle."""
    check_geweke(*around("slopes and a walk", spread=5.0), replicates=200, sweeps=3)


@pytest.fixture
def widened(monkeypatch):
    """A softmax and its data, each of whose approximations is widened, with moves of far ones."""
    monkeypatch.setattr(approximation, "FAR", -1.0)
    monkeypatch.setattr(module, "FAR", -1.0)
    monkeypatch.setattr(module, "_MIDDLE", -1.0)
    priors = {"(1 | g)": HalfT(30, 2.0), "Intercept": Normal(0, 2)}  # categories are often absent
    return AdditiveRegression(priors=priors, kicks=1), rows_of(*FEW_ROWS, **PLAINLY)


FEW_ROWS = "c(a, x1, c) ~ (1 | g)", {name: values[:8] for name, values in TABLE.items()}


def test_sweeps_around_a_widened_gaussian_leave_the_joint_law_as_it_is(widened):
    check_geweke(*widened, replicates=60, sweeps=3)


def test_a_density_that_is_not_widened_is_refused(widened, monkeypatch):
    """Weights move around the wide Gaussian, and are weighed by the narrow one."""

    def half_widened(family, rows, sites, *more):
        wide = approximation.approximate(family, rows, sites, *more)
        with monkeypatch.context() as patch:
            patch.setattr(type(sites), "wide", lambda self, family, gaussian, sites: sites)
            narrow = approximation.approximate(family, rows, sites, *more)
        return replace(narrow, absorbed=wide.absorbed, guess=wide.guess)

    monkeypatch.setattr(blocks, "approximate", half_widened)
    rejects(check_geweke, *widened, replicates=200, sweeps=3)


def unmoved(total, psi, *_):
    """The likelihood as if no weight grew with its standard deviation."""
    return total(psi)


def leaping(rng, point, target, is_carried=False):
    """Weights from the approximation, whatever the likelihood says."""
    return Point.of(point.x, point.gaussian.sample(rng), target)


MUTANTS = {
    "paths of half a circle that are always accepted": (
        module,
        "swing",
        lambda rng, point, target, kicks, angle: leaping(rng, point, target),
        "a level a row",
    ),
    "a leap that is always accepted": (module, "reflect", leaping, "a level a row"),
    "weights stretched whatever the likelihood": (moves, "_along", unmoved, "a level a row"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_broken_moves_are_refused(mutant, around, monkeypatch):
    where, name, broken, case = MUTANTS[mutant]
    model, data = around(case, spread=5.0 if name == "swing" else 0.2)
    monkeypatch.setattr(where, name, broken)
    monkeypatch.setattr(module, "_CARRIED", 0.1)  # so that nearly all paths are interwoven
    rejects(check_geweke, model, data, replicates=600, sweeps=3)


LIKELIHOODS = {  # of rows, with a mistake in each
    "Dirichlet-multinomial rows that scatter too little": (
        "Dirichlet-multinomial", MultinomialRows,
        lambda self, psi: TOTAL_OF_DIRICHLET(replace(self, size=8.0 * self.size), psi),
    ),
    "beta-binomial rows that scatter too little": (
        "beta-binomial", BetaBinomialSite,
        lambda self, psi: TOTAL_OF_BETA(replace(self, size=8.0 * self.size), psi),
    ),
    "ordered rows without the gaps between scores": (
        "ordered", blocks.CumulativeSite,
        lambda self, psi: float(self.logistic.total(psi[: len(self.logistic.trials)])),
    ),
}  # fmt: skip
TOTAL_OF_DIRICHLET, TOTAL_OF_BETA = MultinomialRows.total, BetaBinomialSite.total


@pytest.mark.parametrize("mutant", LIKELIHOODS)
def test_broken_likelihoods_of_rows_are_refused(mutant, around, monkeypatch):
    case, rows, broken = LIKELIHOODS[mutant]
    model, data = around(case)
    monkeypatch.setattr(rows, "total", broken)
    rejects(check_geweke, model, data, replicates=600, sweeps=3)
