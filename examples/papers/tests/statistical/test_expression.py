"""The sampler of transcript expression is right, and the harness refuses it when it is broken."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln

from examples.papers.hensman2012 import expression
from examples.papers.hensman2012.expression import TranscriptExpression, as_alignments
from pgmult.priors import Dirichlet
from pgmult.testing import check_geweke, check_model, check_sbc, mutant, rejects

pytestmark = pytest.mark.slow

# p(read | transcript): four reads are all there can be, and one of them was not seen.
LIKELIHOOD = np.array(
    [[0.5, 0.0, 0.0, 0.0], [0.3, 0.6, 0.0, 0.0], [0.0, 0.4, 0.3, 0.0], [0.2, 0.0, 0.7, 1.0]]
)
ROWS, COLUMNS = np.nonzero(LIKELIHOOD)
DATA = as_alignments(ROWS, COLUMNS, np.log(LIKELIHOOD[ROWS, COLUMNS]), counts=[2, 5, 0, 4])
MODEL = TranscriptExpression(concentration=0.7)


def test_expression():
    check_model(MODEL, DATA)


def test_expression_reaches_the_posterior():
    check_sbc(MODEL, DATA, ["shares"], tune=10, thin=3, replicates=300)


def reads_forgotten(self, rng, state, data):
    return MODEL.step(rng, state, replace(data, counts=np.minimum(data.counts, 1)))


def likelihood_forgotten(self, rng, state, data):
    equal = np.zeros_like(data.log_likelihood)
    return MODEL.step(rng, state, replace(data, log_likelihood=equal))


def another_concentration(self, rng, state, data):
    return TranscriptExpression(1.4).step(rng, state, data)


BROKEN = {
    "reads forgotten": reads_forgotten,
    "likelihood forgotten": likelihood_forgotten,
    "another concentration": another_concentration,
}


@pytest.mark.parametrize("kind", BROKEN)
def test_geweke_refuses_broken_expression(kind):
    rejects(check_geweke, mutant(MODEL, step=BROKEN[kind]), DATA, replicates=1000)


OTHER_CONCENTRATIONS = {"own read counted": 1.7, "prior left out": 1e-3}


@pytest.mark.parametrize("kind", OTHER_CONCENTRATIONS)
def test_geweke_refuses_broken_sweeps_over_reads(kind, monkeypatch):
    right = expression.collapsed_sweeps

    def sweeps(*arguments):
        before, after = arguments[:3], arguments[4:]
        right(*before, OTHER_CONCENTRATIONS[kind], *after)

    monkeypatch.setattr(expression, "collapsed_sweeps", sweeps)
    rejects(check_geweke, MODEL, DATA, replicates=1000)


def test_either_draw_of_assignments_would_do(monkeypatch):
    monkeypatch.setattr(expression, "collapsed_sweeps", lambda *arguments: None)
    check_geweke(MODEL, DATA)


def test_exact_posterior_of_a_handful_of_reads():
    """Means and variances of shares against the sum over all assignments."""
    data = replace(DATA, counts=np.array([1, 2, 1, 2]))
    reads = np.repeat(np.arange(4), data.counts)
    choices = np.array(np.meshgrid(*[np.flatnonzero(LIKELIHOOD[r]) for r in reads]))
    choices = choices.reshape(len(reads), -1).T
    counts = np.stack([np.bincount(z, minlength=4) for z in choices])
    alpha = MODEL.concentration
    log_weight = gammaln(alpha + counts).sum(axis=1) + np.log(LIKELIHOOD[reads, choices]).sum(1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    posterior = Dirichlet(alpha).condition(counts).mean()
    mean = weight @ posterior
    second = weight @ (posterior * (alpha + counts + 1.0) / (4 * alpha + len(reads) + 1.0))

    rng = np.random.default_rng(3)
    state, draws = MODEL.init(rng, data), []
    for _ in range(20_000):
        state = MODEL.step(rng, state, data)
        draws.append(state.shares)
    draws = np.array(draws)
    for power, expected in ((1, mean), (2, second)):
        blocks = (draws**power).reshape(100, 200, 4).mean(axis=1)
        error = blocks.std(axis=0, ddof=1) / 10.0
        assert np.all(np.abs(blocks.mean(axis=0) - expected) < 4.5 * error)
