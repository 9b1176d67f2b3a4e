"""Only active sticks are drawn and added up, with the results of all of them."""

import numpy as np
import pytest
from oracle.dynamics import project
from oracle.sticks import dense_omega

from pgmult.core.potentials import DiagonalPotential
from pgmult.links import StickBreaking
from pgmult.sequences.active_sticks import ActiveSticks
from pgmult.sequences.data.sequences import as_sequences
from pgmult.sequences.models.lds import MultinomialLDS, uniform_sticks
from pgmult.sequences.updates.conjugate import sample_loading_var, sample_rows
from pgmult.testing import conditional_ratio

SIZE = 3  # coordinates of the state


def make(kind, num_symbols=9, num_steps=45, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "symbols":
        skewed = rng.geometric(0.3, num_steps).clip(max=num_symbols) - 1
        return as_sequences([np.where(rng.random(num_steps) < 0.1, -1, skewed)], num_symbols=9)
    shares = rng.dirichlet(np.full(num_symbols, 0.3), num_steps)
    counts = rng.poisson(4.0 * shares)
    counts[[3, 7]] = 0
    return as_sequences([counts[:20], counts[20:]])


@pytest.fixture(params=["symbols", "counts"])
def case(request):
    """Data, the active sticks, a design with two known columns, weights, the dense potential."""
    data, rng = make(request.param), np.random.default_rng(1)
    known = rng.standard_normal((data.num_steps, 2))
    design = np.c_[rng.standard_normal((data.num_steps, SIZE)), known, np.ones(data.num_steps)]
    weights = rng.standard_normal((data.num_symbols - 1, SIZE + 3))
    link = StickBreaking(order=data.order)
    potential = link.augment(np.random.default_rng(2), design @ weights.T, data.to_csr().toarray())
    return data, ActiveSticks.of(data), design, weights, potential


def test_depths_are_the_sticks_with_observations(case):
    data, active, *_ = case
    reaching = StickBreaking(order=data.order).totals(data.to_csr().toarray())
    np.testing.assert_array_equal(active.depths, (reaching > 0).sum(axis=1))
    assert active.depths.sum() == (reaching > 0).sum()


def test_omega_is_that_of_the_dense_link(case):
    _, active, design, weights, potential = case
    omega = active.augment(np.random.default_rng(2), design, weights)
    np.testing.assert_allclose(dense_omega(active, omega), potential.J, rtol=1e-12, atol=1e-14)


def test_memory_is_set_by_active_pairs():
    symbols = np.zeros(8000, dtype=np.int64)
    symbols[:8] = 4999
    active = ActiveSticks.of(as_sequences([symbols], num_symbols=5000))
    design = np.ones((8000, 1))
    omega = active.augment(np.random.default_rng(0), design, np.zeros((4999, 1)))
    assert omega.size < 2.2 * active.depths.sum() < 0.002 * 8000 * 4999


def test_potential_of_the_states(case):
    data, active, design, weights, potential = case
    omega = active.augment(np.random.default_rng(2), design, weights)
    found = active.potential(omega, design, weights, SIZE)
    base = design[:, SIZE:] @ weights[:, SIZE:].T
    shifted = DiagonalPotential(potential.J, potential.h - potential.J * base)
    expected = project(shifted, weights[:, :SIZE], np.zeros(len(weights)))
    np.testing.assert_allclose(found.J, expected.J, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.h, expected.h, rtol=1e-12, atol=1e-12)
    missing = data.totals == 0
    assert (found.J[missing] == 0).all()
    assert (found.h[missing] == 0).all()


def test_statistics_of_the_weights(case):
    _, active, design, weights, potential = case
    omega = active.augment(np.random.default_rng(2), design, weights)
    squares, linear = active.statistics(omega, design)
    dense = np.einsum("tk,ti,tj->kij", potential.J, design, design)
    lower = np.tril_indices(design.shape[1])
    np.testing.assert_allclose(squares, dense[:, lower[0], lower[1]], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(linear, potential.h.T @ design, rtol=1e-12, atol=1e-12)


def test_log_likelihood_of_each_step(case):
    data, active, design, weights, _ = case
    link = StickBreaking(order=data.order)
    expected = link.log_likelihood(design @ weights.T, data.to_csr().toarray())
    np.testing.assert_allclose(
        active.log_likelihood(design, weights), expected, rtol=1e-12, atol=1e-12
    )


def test_log_likelihood_far_out():
    data = as_sequences([np.array([[0] * 900 + [2]])])
    active, ones = ActiveSticks.of(data), np.ones((1, 1))
    for level in (-700.0, 0.0, 5.0, 700.0):
        psi = np.full((900, 1), level)
        expected = StickBreaking().log_likelihood(psi[:, 0], np.arange(901) // 900 * 2)
        order = ActiveSticks.of(as_sequences(data, order=np.arange(901)))
        found = order.log_likelihood(ones, psi)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert active.depths.tolist() == [1]


@pytest.mark.parametrize("num_steps", [1, 7, 8, 9, 17])
@pytest.mark.parametrize("num_symbols", [2, 3, 8])
def test_awkward_sizes(num_steps, num_symbols):
    rng = np.random.default_rng(num_steps)
    data = as_sequences([rng.integers(0, num_symbols, num_steps)], num_symbols=num_symbols)
    active, design = ActiveSticks.of(data), rng.standard_normal((num_steps, 2))
    weights = rng.standard_normal((num_symbols - 1, 2))
    omega = active.augment(np.random.default_rng(0), design, weights)
    dense = dense_omega(active, omega)
    assert (dense > 0).sum() == active.depths.sum()
    found = active.potential(omega, design, weights, 2)
    np.testing.assert_allclose(
        found.J, np.einsum("tk,ki,kj->tij", dense, weights, weights), atol=1e-12
    )
    squares, _ = active.statistics(omega, design)
    np.testing.assert_allclose(squares[:, 1], dense.T @ (design[:, 0] * design[:, 1]), atol=1e-12)


# ------------------------------------------------------------------ weights


def triangle(S):
    lower = np.tril_indices(S.shape[-1])
    return S[:, lower[0], lower[1]]


def test_rows_have_their_gaussian_law():
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((3, 5, 3))
    S, linear = np.einsum("kti,ktj->kij", roots, roots), rng.standard_normal((3, 3))
    precision, mean = rng.gamma(2.0, size=(3, 3)), rng.standard_normal((3, 3))
    many = 3000
    draws = np.array([sample_rows(rng, triangle(S), linear, precision, mean) for _ in range(many)])
    for k in range(3):
        cov = np.linalg.inv(S[k] + np.diag(precision[k]))
        expected = cov @ (linear[k] + precision[k] * mean[k])
        z = (draws[:, k].mean(axis=0) - expected) / np.sqrt(np.diag(cov) / many)
        assert np.abs(z).max() < 4.5
        np.testing.assert_allclose(np.cov(draws[:, k].T), cov, atol=0.1 * np.abs(cov).max())


def test_rows_without_a_finite_posterior_are_refused():
    bad = np.full((2, 1), np.nan)
    with pytest.raises(FloatingPointError, match="row 0"):
        sample_rows(np.random.default_rng(0), bad, bad, np.ones((2, 1)), np.zeros((2, 1)))


def test_loading_var_has_its_inverse_gamma_law():
    rng = np.random.default_rng(0)
    loadings = np.array([[1.0, 0.1], [2.0, 0.0], [0.0, 0.3]])
    draws = np.array([sample_loading_var(rng, loadings, 2.0, 0.5) for _ in range(20000)])
    squares = (loadings**2).sum(axis=0)
    expected = (0.5 + 0.5 * squares) / (2.0 + 1.5 - 1.0)
    sd = expected / np.sqrt(3.5 - 2.0)
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - expected), 4.5 * sd / np.sqrt(20000))
    conditional_ratio(
        lambda v: -1.5 * np.log(v) - 0.5 * squares[0] / v - 3.0 * np.log(v) - 0.5 / v,
        lambda v: -4.5 * np.log(v) - (0.5 + 0.5 * squares[0]) / v,
        [0.1, 0.5, 2.0],
    )


@pytest.mark.parametrize(("num_symbols", "concentration"), [(2, 1.0), (22, 0.3), (1000, 5.0)])
def test_sticks_of_exchangeable_symbols(num_symbols, concentration):
    mean, var = uniform_sticks(num_symbols, concentration)
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    share = 1.0 / (1.0 + np.exp(-mean[:, None] - np.sqrt(var)[:, None] * nodes))
    first = share @ weights / weights.sum()
    second = share**2 @ weights / weights.sum()
    b = concentration * np.arange(num_symbols - 1, 0, -1)
    total = concentration + b
    np.testing.assert_allclose(first, concentration / total, rtol=2e-3)
    spread = concentration * b / total**2 / (total + 1.0)
    np.testing.assert_allclose(second - first**2, spread, rtol=1e-2)


@pytest.mark.parametrize("concentration", [0.0, 0.01, np.inf, np.nan])
def test_concentrations_without_such_sticks(concentration):
    with pytest.raises(ValueError, match="concentration must be"):
        MultinomialLDS(1, concentration=concentration)
