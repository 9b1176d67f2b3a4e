"""The sampler of stick-breaking regressions is right, and the harness refuses broken ones."""

from dataclasses import replace

import numpy as np
import pytest

from examples.papers.regressions import linear as module
from examples.papers.regressions import updates
from examples.papers.regressions.data import CountedRows, as_counted_rows
from examples.papers.regressions.multinomial import StickBreakingRegression
from pgmult.priors import MvNormal
from pgmult.testing import check_geweke, check_model, mutant, rejects

pytestmark = pytest.mark.slow

X = np.array([[1.0, 0.5], [1.0, -1.2], [1.0, 2.0], [1.0, 0.0], [1.0, -0.3]])
COUNTS = np.array([[1, 0, 0], [0, 2, 1], [0, 0, 0], [1, 0, 2], [0, 4, 0]])
DATA = as_counted_rows(X, COUNTS, order=[1, 2, 0])
MODEL = StickBreakingRegression(MvNormal(np.array([0.4, -0.3]), np.diag([1.0, 0.7])), (4.0, 3.0))
FIXED = StickBreakingRegression(MvNormal(np.array([0.4, -0.3]), np.diag([1.0, 0.7])))


def moving(monkeypatch, by):
    """All sticks move in one of the two ways, whatever the rule says."""
    monkeypatch.setattr(updates, "_easy", lambda data, base: np.full(len(base), by == "gibbs"))


@pytest.mark.parametrize("by", ["gibbs", "slices"])
@pytest.mark.parametrize("model", [MODEL, FIXED])
def test_stick_breaking_regressions(monkeypatch, model, by):
    moving(monkeypatch, by)
    check_model(replace(model), DATA)


def of_wrong_order(rng, weights, mean, precision, sticks, bases, **options):
    other = CountedRows(X, CURRENT[0].counts, np.array([0, 1, 2]))
    return RIGHT(rng, weights, mean, precision, other.sticks, by_gibbs(bases))


def by_gibbs(bases):
    """Gibbs steps of both sticks, and nothing else."""
    return replace(bases, gibbs=np.ones(2, dtype=np.bool_), slices=None)


RIGHT, CURRENT = module.move_weights, [DATA]


@pytest.mark.parametrize(
    "what", ["order", "mean forgotten", "scale squared", "all totals", "scale without its weights"]
)
def test_broken_samplers_are_refused(what, monkeypatch):
    moving(monkeypatch, "slices")
    model = MODEL
    if what == "order":

        def step(self, rng, state, data):
            CURRENT[0] = data
            return type(MODEL).step(self, rng, state, data)

        monkeypatch.setattr(module, "move_weights", of_wrong_order)
        model = mutant(MODEL, step=step)
    elif what == "mean forgotten":
        monkeypatch.setattr(
            module,
            "move_weights",
            lambda rng, w, mean, P, s, *b, **o: RIGHT(rng, w, 0.0 * mean, P, s, *b, **o),
        )
    elif what == "scale squared":
        monkeypatch.setattr(
            module,
            "move_weights",
            lambda rng, w, mean, P, s, *b, **o: RIGHT(rng, w, mean, 4.0 * P, s, *b, **o),
        )
    elif what == "all totals":

        def of_all(rng, w, mean, P, sticks, bases, **options):
            totals = COUNTS.sum(axis=1).astype(float)[sticks.given]
            return RIGHT(rng, w, mean, P, replace_trials(sticks, totals), by_gibbs(bases))

        monkeypatch.setattr(module, "move_weights", of_all)
    else:
        model = mutant(MODEL, scale_given=lambda self, weights, data: self.scale_prior)
    rejects(check_geweke, model, DATA, replicates=2000)


def replace_trials(sticks, trials):
    """The same sticks, as if all of a row's counts reached each."""
    return replace(sticks, trials=trials)
