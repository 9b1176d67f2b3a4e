"""Samplers of counts, and of learned widths of priors, are right; broken ones are refused."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.priors import MvNormal
from pgmult.regression import (
    HalfT,
    Horseshoe,
    LogisticRegression,
    NegativeBinomialRegression,
    PoissonRegression,
    ScaledRegression,
    SoftmaxRegression,
    StickBreakingRegression,
    as_counted_rows,
    as_event_rows,
    as_labelled_rows,
)
from pgmult.regression.models import counts as module
from pgmult.regression.models import scaled
from pgmult.regression.models.scaled import _inverse_gamma
from pgmult.testing import check_geweke, check_model, mutant, rejects

pytestmark = pytest.mark.slow

X = np.array([[1.0, 0.5], [1.0, -1.2], [1.0, 2.0], [1.0, 0.0]])
EVENTS = as_event_rows(X, [1, 0, 3, 2], predictor_offset=[0.0, 0.3, -0.5, 1.0])
LABELS = as_labelled_rows(X, [1, 0, 1, 1], trials=[1, 2, 1, 3])
COUNTS = as_counted_rows(X, [[1, 0, 0], [0, 2, 1], [0, 0, 0], [1, 0, 2]])
PRIOR = MvNormal(np.array([0.2, -0.1]), np.diag([0.6, 0.4]))
ONE = np.array([False, True])  # columns with a learned width: not the intercept
POISSON = PoissonRegression(PRIOR)
NEGATIVE = NegativeBinomialRegression(PRIOR, (2.0, 0.5))
SCALED = ScaledRegression(LogisticRegression(PRIOR), HalfT(1.0, 5.0), ONE)


@pytest.mark.parametrize("model", [POISSON, NEGATIVE], ids=["poisson", "negative binomial"])
def test_regressions_of_counts(model):
    check_model(model, EVENTS, replicates=300 if model is POISSON else 150, sweeps=3)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (SCALED, LABELS),
        (ScaledRegression(LogisticRegression(PRIOR), Horseshoe()), LABELS),
        (ScaledRegression(StickBreakingRegression(PRIOR), Horseshoe(), ONE), COUNTS),
        (ScaledRegression(SoftmaxRegression(PRIOR), HalfT(), ONE), COUNTS),
        (ScaledRegression(POISSON, HalfT(0.5, 5.0), ONE), EVENTS),
    ],
    ids=["half-t", "horseshoe", "sticks", "softmax", "poisson"],
)
def test_learned_widths(model, data):
    check_geweke(model, data, replicates=300 if data is LABELS else 120, sweeps=3)


class Narrow(HalfT):
    """Squares counted twice."""

    def given(self, rng, squares, num_outputs, common, local):
        return HalfT.given(self, rng, 4.0 * squares, num_outputs, common, local)


class Stale(Horseshoe):
    """Local widths that forget the common one."""

    def given(self, rng, squares, num_outputs, common, local):
        c = _inverse_gamma(rng, 1.0, 1.0 + 1.0 / local)
        local = _inverse_gamma(rng, 0.5 * (1 + num_outputs), 1.0 / c + 0.5 * squares)
        return Horseshoe.given(self, rng, squares, num_outputs, common, local)[0], local


@pytest.fixture
def often(monkeypatch):
    """Stretches in every sweep, whatever the scales."""
    monkeypatch.setattr(scaled, "_STRETCHED", 1.0)


STRETCHED = ScaledRegression(LogisticRegression(PRIOR), Horseshoe(0.5))


def test_stretches_leave_the_posterior_as_it_is(often):
    check_geweke(SCALED, LABELS, replicates=300, sweeps=3)


@pytest.mark.parametrize("what", ["what the rows say", "common law", "local law"])
def test_broken_stretches_are_refused(what, monkeypatch):
    right, model = scaled.stretch, STRETCHED

    def broken(surrogate, weights, columns, num, law, common, local, key):
        if what == "common law":
            law = law._replace(scale=4.0 * law.scale)
        if what == "local law":
            local += 1.0
        common, gain = right(surrogate, weights, columns, num, law, common, local, key)
        if what == "local law":
            local -= 1.0
        return common, gain

    if what == "what the rows say":
        model = mutant(STRETCHED, log_likelihood=lambda self, state, data: 0.0)
    monkeypatch.setattr(scaled, "stretch", broken)
    rejects(check_geweke, model, LABELS, replicates=1000)


@pytest.mark.parametrize("scales", [Narrow(1.0, 5.0), Stale()], ids=["narrow", "stale"])
def test_broken_widths_are_refused(scales):
    model = ScaledRegression(LogisticRegression(PRIOR), scales)
    rejects(check_geweke, model, LABELS, replicates=1000)


@pytest.mark.parametrize("what", ["offset", "size", "prior"])
def test_broken_samplers_of_counts_are_refused(what):
    if what == "offset":

        def without(self, data):
            other = replace(data, known=np.zeros(4))
            return POISSON._near(data)[0], module._rows(other, np.inf)

        model = mutant(POISSON, _near=without)
    elif what == "size":
        model = mutant(
            NEGATIVE, step=lambda self, rng, s, data: NEGATIVE.step(
                rng, module.NegativeBinomialRegressionState(s.weights, 9.0 * s.size), data
            )
        )  # fmt: skip
    else:
        wrong = PoissonRegression(MvNormal(np.array([1.4, -0.1]), np.diag([0.6, 0.4])))
        model = mutant(POISSON, step=lambda self, rng, s, data: wrong.step(rng, s, data))
    rejects(check_geweke, model, EVENTS, replicates=150, sweeps=2)
