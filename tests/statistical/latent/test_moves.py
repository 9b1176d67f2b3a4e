"""Moves by themselves around Gaussians that are far from the posterior, against sums over a grid.

Joint tests have little power where corrections are small; here they are large on purpose.
"""

import inspect
from functools import cache, partial

import numpy as np
import pytest

from pgmult.latent import moves
from pgmult.latent.additive import Additive
from pgmult.latent.approximation import Approximation
from pgmult.latent.hyperparameters import Leaning
from pgmult.latent.moves import Point, Target
from pgmult.latent.terms import LevelEffects, sd_at
from pgmult.sampling.diagnostics import ess_bulk
from pgmult.testing import rejects
from pgmult.variational.sites import CountSite, LogisticSite

pytestmark = pytest.mark.slow

# one effect of unknown standard deviation, seen by six rows: two numbers, x and w
FAMILY = Additive((LevelEffects(1),), np.ones((6, 1)), offset=np.linspace(-0.5, 0.5, 6))
ROWS = {
    "binomial": LogisticSite(np.array([3.0, 1, 2, 3, 0, 4]), np.array([3.0, 2, 2, 5, 1, 4])),
    "poisson": CountSite(np.array([3.0, 1, 2, 3, 0, 4])),
    "negative binomial": CountSite(np.array([3.0, 1, 2, 3, 0, 4]), size=1.5),
}
START = np.array([1.5])


def around(J, h, law):
    """Sites that are wrong: too narrow or too wide, and in another place."""
    sites = np.full(6, J), np.full(6, h)
    return Approximation(*sites, FAMILY.absorb(*sites), law, np.nan)


BASES = {
    "too narrow": around(1.5, 2.5, Leaning(np.array([2.2]), np.array([[0.7]]), np.array([0.5]))),
    "too wide": around(0.02, -0.05, Leaning(np.array([1.0]), np.array([[1.5]]), np.array([-0.8]))),
}


def log_joint(rows, x, w):
    """Of points x and w, up to a constant."""
    prior = np.array([FAMILY.log_prior(np.array([each])) for each in x])
    sd = np.array([sd_at(each) for each in x])
    likelihood = np.array([rows.total(FAMILY.predictor(np.array([each]))) for each in w])
    return prior[:, None] - np.log(sd)[:, None] - 0.5 * (w / sd[:, None]) ** 2 + likelihood


@cache
def expectations(rows, fixed):
    """Of functions of x and w given rows of this name, x the start where that is `fixed`."""
    x = START if fixed else np.linspace(0.002, 9.0, 1500)
    w = np.linspace(-8.0, 12.0, 3001)
    weights = log_joint(ROWS[rows], x, w)
    weights = np.exp(weights - weights.max())
    grid = functions(np.repeat(x, len(w)), np.tile(w, len(x)))
    return grid @ weights.ravel() / weights.sum()


def functions(x, w):
    return np.array([w, w * w, np.exp(-np.abs(w)), np.tanh(x - 1.5), x, (x - 1.5) * w])


def check(sweep, base, rows, fixed, draws):
    """A chain of `sweep` has the expectations of the posterior."""
    rng, found = np.random.default_rng(0), BASES[base]
    target = Target(FAMILY, ROWS[rows], found)
    point = Point.of(START, np.array([0.5]), target)
    kept = np.empty((draws, 2))
    for i in range(draws):
        point = sweep(rng, point, target)
        kept[i] = point.x[0], point.w[0]
    expected = expectations(rows, fixed)
    for f, (values, mean) in enumerate(zip(functions(*kept.T), expected, strict=True)):
        if values.std() > 1e-9:
            error = values.std() / np.sqrt(min(ess_bulk(values[None]), draws))
            assert abs(values.mean() - mean) < 4.5 * error, (f, values.mean(), mean, error)


def both(first):
    """A move that does not reach everything by itself, and a swing."""

    def sweep(rng, point, target):
        return moves.swing(rng, first(rng, point, target), target)

    return sweep


SWEEPS = {  # whether x is fixed, and draws: where they are dear, mutants show by far fewer
    "swing": (moves.swing, True, 12_000),
    "leap": (moves.leap, False, 12_000),
    "reflect": (moves.reflect, False, 12_000),
    "reflect and carry": (both(partial(moves.reflect, is_carried=True)), False, 6_000),
    "carry": (both(moves.carry), False, 6_000),
    "interweave": (both(moves.interweave), False, 6_000),
}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", SWEEPS)
def test_moves_around_a_bad_base_leave_the_posterior_as_it_is(name, rows, base):
    sweep, fixed, draws = SWEEPS[name]
    check(sweep, base, rows, fixed, draws)


MUTANTS = {
    "a swing without correction": ("swing", "gain = gain + base.correction(rows, psi)", "pass"),
    "a swing whose kicks cost nothing": ("swing", "length * np.sum(", "0.0 * np.sum("),
    "a swing whose first kick is whole": ("swing", "(0, kicks)", "(kicks,)"),
    "leaps whose law has no density": ("_weighed", "density - float(", "density - 0.0 * float("),
    "leaps without evidence": ("_weighed", "at.gaussian.log_evidence", "0.0"),
    "a reflection of shorter arms": ("reflect", "else REFLECTED", "else (-0.2, 0.8)"),
    "weights that are carried too far": ("reflect", "(1.0, 0.0) if", "(1.0, 1.0) if"),
    "a carry that refuses all that is worse": ("carry", "gain > -rng.exponential()", "gain > 0.0"),
    "effects that are not counted": ("_given_weights", "count * math.log(inverse)", "0.0 * count"),
    "slices without a prior": ("_sliced", "prior + gain(new)", "gain(new)"),
}


# At 4,000 draws the others are 8 standard errors away or more, of 4.5 that are refused.
SUBTLE = "a swing without correction", "leaps whose law has no density"


@pytest.mark.parametrize("mutant", MUTANTS)
def test_broken_moves_are_refused(mutant, monkeypatch):
    name, old, new = MUTANTS[mutant]
    source = inspect.getsource(getattr(moves, name))
    assert source.count(old) == 1
    place = dict(vars(moves))
    exec(source.replace(old, new), place)
    broken = place[name]
    monkeypatch.setattr(moves, name, broken)
    inner = {"_weighed": "reflect", "_given_weights": "interweave", "_sliced": "interweave"}
    kind = inner.get(name, name)
    sweep, fixed = (broken, True) if kind == "swing" else (broken, False)
    if name in inner:
        sweep = getattr(moves, kind)
    if "carried" in mutant:
        sweep = partial(sweep, is_carried=True)
    if kind in ("carry", "interweave") or "carried" in mutant:
        sweep = both(sweep)
    base = "too wide" if "density" in mutant else "too narrow"
    rejects(check, sweep, base, "binomial", fixed, 12_000 if mutant in SUBTLE else 4_000)
