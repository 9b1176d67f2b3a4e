"""Transcript expression: its laws, its blocks, and what `pgmult.sample` makes of it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from examples.papers.hensman2012.collapsed import natural_cg, random_start
from examples.papers.hensman2012.compiled.expression import Reads, assign_rows, collapsed_sweeps
from examples.papers.hensman2012.expression import TranscriptExpression, as_alignments
from examples.papers.hensman2012.problems import ExpressionProblem
from pgmult import sample
from pgmult.core.validate import new_key

LIKELIHOOD = np.array([[0.5, 0.0, 0.1], [0.3, 0.6, 0.0], [0.2, 0.4, 0.9]])
ROWS, COLUMNS = np.nonzero(LIKELIHOOD)
NAMES = ["long", "short", "noise"]
DATA = as_alignments(
    ROWS, COLUMNS, np.log(LIKELIHOOD[ROWS, COLUMNS]), counts=[6, 0, 5], names=NAMES
)
SHARES = np.array([0.2, 0.5, 0.3])


@pytest.fixture
def several(rng):
    """Two hundred reads of twelve transcripts, the last of which fits none of them."""
    fits = rng.random((200, 12)) < 0.2
    fits[:, 11] = False
    fits[:, 0] |= ~fits.any(axis=1)
    read, transcript = np.nonzero(fits)
    return as_alignments(read, transcript, rng.normal(size=len(read)), num_transcripts=12)


def test_log_likelihood():
    state = replace(TranscriptExpression().prior(np.random.default_rng(0), DATA), shares=SHARES)
    expected = np.array([6, 0, 5]) @ np.log(LIKELIHOOD @ SHARES)
    assert TranscriptExpression().log_likelihood(state, DATA) == pytest.approx(expected, rel=1e-13)
    scaled = replace(DATA, log_likelihood=DATA.log_likelihood - 900.0)
    found = TranscriptExpression().log_likelihood(state, scaled)
    assert found == pytest.approx(expected - 9900.0, rel=1e-13)


def test_transcripts_have_their_names():
    assert list(TranscriptExpression().coords(DATA)["transcript"]) == NAMES


def test_simulated_reads(rng):
    state = replace(TranscriptExpression().prior(rng, DATA), shares=SHARES)
    many = TranscriptExpression().simulate(rng, state, replace(DATA, counts=DATA.counts * 10_000))
    assert many.num_reads == 110_000
    assert chisquare(many.counts, 110_000 * LIKELIHOOD @ SHARES).pvalue > 1e-4


def test_a_transcript_without_alignments_is_never_simulated(rng):
    data = replace(DATA, num_transcripts=4, names=None)
    state = replace(TranscriptExpression().prior(rng, data), shares=np.array([0.1, 0.1, 0.1, 0.7]))
    assert TranscriptExpression().simulate(rng, state, data).num_reads == 11


def table(counts):
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return Reads(DATA.indptr, DATA.transcripts, np.exp(DATA.log_likelihood), offsets, 3)


def test_reads_go_to_transcripts_by_shares_and_likelihood(rng):
    counts = np.array([40_000, 30_000, 0])
    assignments = np.empty(70_000, dtype=np.int64)
    assign_rows(0, 0, 3, new_key(rng), table(counts), SHARES, assignments)
    for row, part in ((0, assignments[:40_000]), (1, assignments[40_000:])):
        expected = LIKELIHOOD[row] * SHARES
        seen = np.bincount(part, minlength=3)
        fits = expected > 0.0
        assert np.all(seen[~fits] == 0)
        assert chisquare(seen[fits], len(part) * (expected / expected.sum())[fits]).pvalue > 1e-4


def test_a_read_goes_by_where_all_others_are(rng):
    """The first read of many: one sweep of it alone, again and again."""
    counts_of_rows = np.array([1, 0, 0])
    others, concentration = np.array([3, 8, 1]), 0.4
    seen = np.zeros(3)
    for _ in range(5_000):
        assignments, counts = np.array([2]), others + np.eye(3, dtype=int)[2]
        reads = table(counts_of_rows)
        collapsed_sweeps(new_key(rng), 1, reads, concentration, assignments, counts)
        np.testing.assert_array_equal(counts, others + np.eye(3, dtype=int)[assignments[0]])
        seen[assignments[0]] += 1
    expected = (others + concentration) * LIKELIHOOD[0]
    assert seen[1] == 0.0
    assert chisquare(seen[[0, 2]], 5_000 * (expected / expected.sum())[[0, 2]]).pvalue > 1e-4


def test_sample_and_search_agree(several):
    posterior = sample(
        TranscriptExpression(), several, draws=300, tune=20, chains=2, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    draws = posterior["shares"].reshape(-1, 12)
    problem = ExpressionProblem(several)
    mean, var = problem.shares_posterior(natural_cg(problem, random_start(problem, 0)))
    sd = draws.std(axis=0)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 0.5 * sd)
    assert np.all(np.sqrt(var) < 1.1 * sd)  # mean field knows too much
    assert draws[:, 11].mean() == pytest.approx(1.0 / 212.0, rel=0.15)  # no read fits it


def test_bad_input():
    with pytest.raises(ValueError, match="concentration must be above 0, got 0"):
        TranscriptExpression(0.0)
    with pytest.raises(TypeError, match="data must be a Alignments, got array"):
        sample(TranscriptExpression(), np.eye(3), draws=1, chains=1, progressbar=False)
