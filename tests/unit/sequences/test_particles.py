"""The pieces that particles are made of, against plain formulas."""

import numpy as np
import pytest

from pgmult import StickBreaking
from pgmult.compiled import vectors
from pgmult.sequences.compiled import likelihoods

pytestmark = pytest.mark.slow  # no other quick test compiles these kernels
DEPTH, SYMBOLS, SIZE = 3, 40, 7


def test_exponentials_are_right_to_the_last_places():
    a = np.concatenate([np.linspace(-699.0, 699.0, 401), [0.0, 1e-300, 0.5 * np.log(2.0)]])
    ours = np.array([vectors.exp_minus(x) for x in a])
    np.testing.assert_allclose(ours, np.exp(-a), rtol=1e-15)
    assert vectors.exp_minus(1e5) == vectors.exp_minus(700.0)
    assert vectors.exp_minus(-1e5) == vectors.exp_minus(-700.0)


@pytest.mark.parametrize("depth", [1, 3, 4, 6])
def test_combinations_of_rows(depth):
    rng = np.random.default_rng(0)
    z, row, out = rng.normal(size=(depth, SIZE)), rng.normal(size=depth), np.empty(SIZE)
    vectors.combine(row, 0.25, z, out)
    np.testing.assert_allclose(out, 0.25 + row @ z, rtol=1e-14)


def problem(kind):
    rng = np.random.default_rng(3)
    loadings, offset = 2.0 * rng.normal(size=(SYMBOLS - 1, DEPTH)), rng.normal(size=SYMBOLS - 1)
    counts = {
        "one symbol": np.eye(SYMBOLS)[5],
        "the first symbol": np.eye(SYMBOLS)[0],
        "the last symbol": np.eye(SYMBOLS)[-1],
        "many counts": rng.multinomial(500, rng.dirichlet(np.ones(SYMBOLS))),
    }[kind].astype(np.int64)
    return loadings, offset, counts, np.flatnonzero(counts)


KINDS = ["one symbol", "the first symbol", "the last symbol", "many counts"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1.0, 60.0], ids=["moderate", "extreme"])
def test_log_likelihoods_of_particles(kind, scale):
    loadings, offset, counts, positions = problem(kind)
    z = scale * np.random.default_rng(4).normal(size=(DEPTH, SIZE))
    out, work = np.empty(SIZE), np.empty((likelihoods.WORK_ROWS, SIZE))
    likelihoods.log_likelihoods(positions, counts[positions], loadings, offset, z, work, out)
    psi = (loadings @ z).T + offset
    expected = StickBreaking().log_likelihood(psi, np.tile(counts, (SIZE, 1)))
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-12)


def test_a_thousand_factors_do_not_overflow():
    """Products of 1 + exp(-|psi|) are taken apart before they reach 2**1024."""
    sticks = 2500
    out = np.empty(2)
    likelihoods.log_likelihoods(
        np.array([sticks]), np.array([1]), np.zeros((sticks, 1)), np.zeros(sticks),
        np.zeros((1, 2)), np.empty((likelihoods.WORK_ROWS, 2)), out,
    )  # fmt: skip
    np.testing.assert_allclose(out, -sticks * np.log(2.0), rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_expansions_are_the_links_own(kind):
    """Value, gradient and curvature in x are those in psi, carried through the loadings."""
    loadings, offset, counts, positions = problem(kind)
    x = np.array([0.3, -0.4, 0.8])
    gradient, curvature = np.empty(DEPTH), np.empty((DEPTH, DEPTH))
    columns = np.ascontiguousarray(loadings.T)
    value = likelihoods.expand(
        positions, counts[positions], columns, offset, x, gradient, curvature
    )
    psi, link = offset + loadings @ x, StickBreaking()
    potential = link.quadratic(psi, counts).dense()
    np.testing.assert_allclose(value, link.log_likelihood(psi, counts), rtol=1e-12)
    slope = potential.h - potential.J @ psi
    np.testing.assert_allclose(gradient, loadings.T @ slope, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(
        curvature, loadings.T @ potential.J @ loadings, rtol=1e-10, atol=1e-9
    )
