"""The sampler of softmax regressions is right, and the harness refuses broken ones."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.priors import MvNormal
from pgmult.regression import SoftmaxRegression, as_counted_rows
from pgmult.regression.models import multinomial as module
from pgmult.regression.models.linear import Around, WeightsState
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
        return replace(
            around, centre=around.centre + 0.8, root=1.5 * around.root, inverse=around.inverse / 1.5
        )

    monkeypatch.setattr(Around, "of", of)


def test_softmax_regressions():
    check_geweke(MODEL, DATA, replicates=300)


def test_a_bad_base_does_no_harm(bad_base):
    check_geweke(SoftmaxRegression(MODEL.weights_prior), DATA, replicates=150)


def check_density():
    """Base and correction together are the posterior."""
    around, level = MODEL._near(DATA)
    everywhere = np.ones(1, dtype=bool)

    def log_joint(weights):
        state = WeightsState(weights)
        prior = MODEL.weights_prior.log_density(weights).sum()
        return prior + MODEL.log_likelihood(state, DATA)

    def log_conditional(weights):
        x = weights.reshape(1, -1)
        gap = x - around.centre
        return around.correction(level, x, everywhere)[0] - 0.5 * around.inner(gap, gap)[0]

    points = list(np.random.default_rng(0).standard_normal((6, 3, 2)))
    conditional_ratio(log_joint, log_conditional, points)


def test_base_and_correction_are_the_posterior():
    check_density()


@pytest.mark.parametrize("what", ["no correction", "prior mean forgotten", "half the counts"])
def test_broken_corrections_are_refused(what, monkeypatch):
    right, (around, pull, totals) = Around.correction, module._near(DATA, MODEL)

    def broken(self, log_likelihood, x, active):
        if what == "no correction":
            return np.zeros(1)
        mean, precision = self.prior
        pulled = np.einsum("kd,de,e->", x.reshape(-1, len(mean)), precision, mean)
        return right(self, log_likelihood, x, active) - pulled

    if what == "half the counts":
        half = around, 0.5 * pull, totals
        monkeypatch.setattr(module, "_near", lambda data, model: half)
    else:
        monkeypatch.setattr(Around, "correction", broken)
    rejects(check_density)
