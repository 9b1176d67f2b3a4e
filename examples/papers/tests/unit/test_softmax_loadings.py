"""Rows of softmax regressions against integrals over a grid, and what they may depend on."""

import numpy as np
import pytest
from scipy.special import log_softmax

from examples.papers.linderman2015 import softmax_loadings as module
from examples.papers.linderman2015.softmax_loadings import sample_softmax_rows
from pgmult.sequences import as_sequences
from pgmult.testing import rejects

pytestmark = pytest.mark.slow  # the updates are compiled for nothing else that is quick

PRECISION = np.array([0.7, 0.4])
Z = np.array([[1.0, 1.0], [-0.5, 1.0], [2.0, 1.0], [0.3, 1.0]])  # the third step is missing
COUNTS = np.array([[3, 0, 1], [0, 2, 0], [0, 0, 0], [5, 1, 0]])
SYMBOLS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0]])


def log_posterior(rows, counts):
    """Of rows ``(batch, 3, 2)``."""
    log_probs = log_softmax(np.einsum("tp,bkp->btk", Z, rows), axis=2)
    prior = -0.5 * np.einsum("bkp,p->b", rows**2, PRECISION)
    return np.einsum("btk,tk->b", log_probs, counts) + prior


def moments_by_importance(counts, draws=400_000):
    """Means and variances of what is identified, with prior draws for proposals."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(draws, 3, 2)) / np.sqrt(PRECISION)
    log_weight = log_posterior(rows, counts) + 0.5 * np.einsum("bkp,p->b", rows**2, PRECISION)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    values = rows.reshape(draws, 6)
    mean = weight @ values
    var = weight @ (values - mean) ** 2
    return mean, var, np.sqrt((weight**2) @ (values - mean) ** 2 / var)


def check_moments(counts, precision=PRECISION, design=Z, copies=None, sweeps=4000):
    mean, var, error = moments_by_importance(counts)
    data = as_sequences([counts if copies is None else copies])
    rng = np.random.default_rng(1)
    rows = np.zeros((3, 2))
    draws = np.empty((sweeps, 6))
    for sweep in range(sweeps):
        rows = sample_softmax_rows(rng, data, design, rows, precision)
        draws[sweep] = rows.ravel()
    draws = draws[50:]
    batches = (draws - mean) / np.sqrt(var)
    blocks = batches[: len(batches) // 50 * 50].reshape(50, -1, 6)
    for power, expected in ((1, 0.0), (2, 1.0)):
        block_means = (blocks**power).mean(axis=1)
        spread = np.sqrt(block_means.var(axis=0) / 50 + (2.0 * error) ** 2)
        scores = (block_means.mean(axis=0) - expected) / spread
        assert (np.abs(scores) < 4.5).all(), (power, scores.round(1))


@pytest.mark.parametrize("counts", [COUNTS, SYMBOLS], ids=["counts", "symbols"])
def test_rows_have_the_moments_of_their_posterior(counts):
    check_moments(counts)


@pytest.mark.parametrize(
    "changes",
    [
        {"precision": 2.0 * PRECISION},
        {"design": Z * [1.0, 0.5]},
        {"design": Z[::-1].copy()},
        {"copies": 2 * COUNTS},
        {"copies": COUNTS[:, [1, 0, 2]]},
    ],
    ids=["prior", "half an offset", "steps reversed", "counts twice", "symbols swapped"],
)
def test_another_posterior_is_refused(changes):
    rejects(check_moments, COUNTS, sweeps=2000, **changes)


def test_a_stuck_shift_is_refused(monkeypatch):
    """Without the exact draw along equal shifts of all rows, with a shift to zero instead."""
    right = module.sample_softmax_rows

    def broken(rng, data, regressors, rows, precision):
        new = right(rng, data, regressors, rows, precision)
        return new - new.mean(axis=0)

    monkeypatch.setitem(globals(), "sample_softmax_rows", broken)
    rejects(check_moments, COUNTS, sweeps=2000)


def test_many_rows_and_steps_go_through_blocks():
    """More rows than a block and more steps than lanes: sums before and after meet exactly.

    With a very sharp prior rows hardly move, so the level of one row relative to the others must
    come out as its own posterior, which is Gaussian to high precision.
    """
    rng = np.random.default_rng(2)
    K, T = 70, 300
    data = as_sequences([rng.integers(0, K, T)], num_symbols=K)
    design = np.column_stack([rng.normal(size=T), np.ones(T)])
    precision = np.full(2, 1e6)
    total = np.zeros((K, 2))
    rows = np.zeros((K, 2))
    for _ in range(400):
        rows = sample_softmax_rows(rng, data, design, rows, precision)
        total += rows
    counts = data.to_csr().toarray()
    slope = (counts - 1.0 / K).T @ design  # at rows near zero
    scores = (total / 400 - slope / precision) * np.sqrt(400 * precision)
    assert abs(scores.mean()) < 4.5 / np.sqrt(scores.size)
    assert np.abs(scores).max() < 4.5
    assert np.corrcoef((total / 400).ravel(), (slope / precision).ravel())[0, 1] > 0.02


def test_rows_so_far_apart_that_others_vanish():
    data = as_sequences([[0, 0, 0, 1]], num_symbols=3)
    rows = np.array([[0.0, 2000.0], [0.0, 0.0], [0.0, -2000.0]])
    new = sample_softmax_rows(np.random.default_rng(3), data, Z, rows, np.array([1.0, 1.0]))
    assert np.isfinite(new).all()
    assert np.abs(new[:, 1]).max() < 1000.0


def test_states_that_explode_are_an_error():
    data = as_sequences([[0, 1, 1, 2]])
    with pytest.raises(FloatingPointError, match="weights of symbol 0"):
        sample_softmax_rows(
            np.random.default_rng(4), data, Z * [np.inf, 1.0], np.zeros((3, 2)), PRECISION
        )
