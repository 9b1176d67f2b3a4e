"""The sampler of softmax regressions is right, and the harness refuses broken ones."""

from dataclasses import replace

import numpy as np
import pytest

from examples.papers.regressions import multinomial as module
from examples.papers.regressions.data import as_counted_rows
from examples.papers.regressions.linear import Around, WeightsState
from examples.papers.regressions.multinomial import SoftmaxRegression
from pgmult.priors import MvNormal
from pgmult.testing import check_geweke, conditional_ratio, rejects

pytestmark = pytest.mark.slow

X = np.array([[1.0, 0.5], [1.0, -1.2], [1.0, 2.0], [1.0, 0.0]])
COUNTS = np.array([[1, 0, 0], [0, 2, 1], [0, 0, 0], [1, 0, 2]])
DATA = as_counted_rows(X, COUNTS)
MODEL = SoftmaxRegression(MvNormal(np.array([0.4, -0.3]), np.diag([1.0, 0.7])))


@pytest.fixture
def bad_base(monkeypatch):
    """A base that is off and too narrow: a good one would hide a missing correction."""
    right = Around.of

    def of(fit, prior):
        around = right(fit, prior)
        bad = replace(around, gram=2.0 * around.gram, shift=around.shift + 1.0)
        return bad.with_prior(np.diagonal(prior.prior_cov))

    monkeypatch.setattr(Around, "of", of)


def test_softmax_regressions():
    check_geweke(MODEL, DATA, replicates=300)


def test_a_bad_base_does_no_harm(bad_base):
    check_geweke(SoftmaxRegression(MODEL.weights_prior), DATA, replicates=150)


def check_density():
    """Base and correction together are the posterior; slopes are those of the correction."""
    around, rows = MODEL._near(DATA)

    def log_joint(weights):
        prior = MODEL.weights_prior.log_density(weights).sum()
        return prior + MODEL.log_likelihood(WeightsState(weights), DATA)

    def log_conditional(weights):
        gap = around.root.T @ (weights.ravel() - around.mean)
        return around.correction(rows, weights.ravel()) - 0.5 * gap @ gap

    points = list(np.random.default_rng(0).standard_normal((6, 3, 2)))
    conditional_ratio(log_joint, log_conditional, points)
    at, steps = points[0].ravel(), 1e-5 * np.eye(6)
    found = [around.correction(rows, at + s) - around.correction(rows, at - s) for s in steps]
    np.testing.assert_allclose(around.gradient(rows, at), np.array(found) / 2e-5, atol=1e-6)


def test_base_and_correction_are_the_posterior():
    check_density()


@pytest.mark.parametrize("what", ["no correction", "prior mean forgotten", "half the counts"])
def test_broken_corrections_are_refused(what, monkeypatch):
    around, pull, totals = module._near(DATA, MODEL)
    if what == "no correction":
        monkeypatch.setattr(Around, "correction", lambda self, rows, w: 0.0)
    elif what == "prior mean forgotten":
        pulled = np.tile(MODEL.weights_prior.precision() @ MODEL.weights_prior.prior_mean, 3)
        broken = replace(around, shift=around.shift + pulled), pull, totals
        monkeypatch.setattr(module, "_near", lambda data, model: broken)
    else:
        half = around, 0.5 * pull, totals
        monkeypatch.setattr(module, "_near", lambda data, model: half)
    rejects(check_density)
