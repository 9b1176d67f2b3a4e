"""Additive regressions: moves leave the joint law of parameters and data as it is."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from pgmult.latent import moves
from pgmult.latent.additive import Additive
from pgmult.latent.approximation import rough
from pgmult.latent.moves import Point
from pgmult.latent.sparse import SparseMatrix
from pgmult.latent.terms import Basis, Fixed, Levels, Scaled
from pgmult.regression.models import additive as module
from pgmult.regression.models.additive import AdditiveRegression
from pgmult.regression.rows import rows_of
from pgmult.testing import check_geweke, rejects

pytestmark = pytest.mark.slow

NUM = 12
X = np.linspace(-1.0, 1.0, NUM)
CODES = np.arange(NUM) % 4
TOTALS = np.array([12, 1, 5, 1, 7, 2, 9, 3, 4, 1, 6, 8])
TABLE = {"a": TOTALS, "b": 0 * TOTALS, "x": X, "g": CODES}
DATA = rows_of("c(a, b) ~ x + (1 | g)", TABLE, order=["a", "b"])
SLOPES = np.column_stack([np.ones(NUM), X])


def indicators(codes, columns=None):
    """Design of (1 | g), or with columns of a level side by side."""
    columns = np.ones((NUM, 1)) if columns is None else columns
    each = (codes[:, None] == np.arange(codes.max() + 1))[:, :, None] * columns[:, None, :]
    return each.reshape(NUM, -1)


def chain():
    """Neighbours on a line."""
    beside = np.eye(NUM, k=1) + np.eye(NUM, k=-1)
    K = np.diag(beside.sum(axis=1)) - 0.9 * beside
    return Scaled(SparseMatrix.of(sparse.csr_array(K)), float(np.linalg.slogdet(K)[1]))


def family(*parts):
    """An intercept, a slope and more terms with their designs."""
    terms, designs = zip((Fixed(2, scale=1.0), SLOPES), *parts, strict=True)
    return Additive(terms, np.hstack(designs))


CASES = {
    "crossed": family(
        (Levels(4), indicators(CODES)), (Levels(3, scale=0.5), indicators(np.arange(NUM) // 4))
    ),
    "slopes": family((Levels(4, width=2), indicators(CODES, SLOPES))),
    "area": family((chain(), np.eye(NUM))),
    "process": family(
        (Basis(0.5 + np.arange(6.0), scale=0.5), np.sin(np.outer(X, 1 + np.arange(6))))
    ),
    "a level a row": family((Levels(NUM, scale=2.0), np.eye(NUM))),
}


@pytest.fixture
def around(monkeypatch):
    """``around(case)``: the model with these terms, its moves around a rough approximation.

    That is found at once, and mistakes show.
    """

    def model(case):
        monkeypatch.setattr(module, "approximate", rough)
        monkeypatch.setattr(module, "latent_of", lambda design: CASES[case])
        return AdditiveRegression()

    return model


@pytest.mark.parametrize("case", CASES)
def test_sweeps_leave_the_joint_law_as_it_is(case, around):
    check_geweke(around(case), replace(DATA), replicates=200, sweeps=3)


def stretched_twice(rng, term, x, i, rest, part, rows):
    """Weights grow by the square of what their standard deviation does."""
    new, ratio = STRETCHED(rng, term, x, i, rest, part, rows)
    return new, ratio**2


def leaping(rng, point, family, rows, found):
    """Weights from the approximation, whatever the likelihood says."""
    return Point.of(point.x, point.law.sample(rng), family, found)


STRETCHED = moves._stretched
MUTANTS = {
    "a swing that is always accepted": (
        module,
        "swing",
        lambda rng, point, *more: leaping(rng, point, *more[:3]),
        "a level a row",
    ),
    "a leap that is always accepted": (module, "leap", leaping, "a level a row"),
    "weights stretched twice": (moves, "_stretched", stretched_twice, "a level a row"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_broken_moves_are_refused(mutant, around, monkeypatch):
    where, name, broken, case = MUTANTS[mutant]
    model = around(case)
    monkeypatch.setattr(where, name, broken)
    rejects(check_geweke, model, replace(DATA), replicates=1000, sweeps=3)
