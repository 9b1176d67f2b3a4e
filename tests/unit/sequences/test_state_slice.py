"""Slices of whole paths of states around a Gaussian: exact around any, and near to the law."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pgmult.core.potentials import DensePotential
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sequences.active_sticks import ActiveSticks
from pgmult.sequences.data.sequences import as_sequences
from pgmult.sequences.models.lds import MultinomialLDS
from pgmult.sequences.updates.state_slice import (
    Around,
    paths_are_slow,
    slice_states,
    stick_rates,
)

SYMBOLS = as_sequences([[0, 2, -1, 1, 0], [1, 1, 3, 0]])
COUNTS = as_sequences([np.array([[1, 2, 0, 0], [0, 0, 0, 0], [3, 0, 1, 1]])])
RARE = as_sequences([np.array([[990, 6, 4], [995, 3, 2], [1000, 0, 0]])])


@pytest.mark.slow
def test_sites_are_expectations():
    """One step, one state: J and h by quadrature, at moments that the guess leads to."""
    data = as_sequences([np.array([[30, 2, 1]])])
    model = MultinomialLDS(1)
    state = model.prior(np.random.default_rng(1), data)
    guess, found = (around(model, state, data, rounds) for rounds in (0, 1))
    law = model._law(state, data, DensePotential(guess.base.J, guess.base.h))
    mean, cov, _ = law.smooth()
    x = mean[0, 0] + np.sqrt(cov[0, 0, 0]) * np.linspace(-8.0, 8.0, 4001)
    density = stats.norm.pdf(x, mean[0, 0], np.sqrt(cov[0, 0, 0]))
    weight = density / density.sum()
    J = h = 0.0
    counts = np.array([30.0, 2.0, 1.0])[data.order]
    for k in range(2):
        c, N = state.loadings[k, 0], counts[k:].sum()
        share = 1.0 / (1.0 + np.exp(-state.offset[k] - c * x))
        precision = N * (weight * share * (1.0 - share)).sum()
        J += precision * c * c
        h += c * (counts[k] - N * (weight * share).sum() + precision * c * mean[0, 0])
    np.testing.assert_allclose([found.base.J[0, 0, 0], found.base.h[0, 0]], [J, h], rtol=1e-3)


def around(model, state, data, rounds):
    return Around(
        ActiveSticks.of(data), data.offsets, np.ones((data.num_steps, 1)), None, state.transition,
        state.noise_cov, (state.initial_mean, state.initial_cov), model._weights(state), rounds,
    )  # fmt: skip


def one_step(base_of):
    """P-value of 4,000 draws of the law of one state being so still, after five slices."""
    data = as_sequences([np.array([[300, 2, 1]])] * 4000)
    model = MultinomialLDS(1)
    state = replace(
        model.prior(np.random.default_rng(1), data), loadings=np.array([[1.0], [0.5]]),
        offset=np.array([4.0, 0.3]), initial_mean=np.array([0.4]), initial_cov=np.array([[2.0]]),
    )  # fmt: skip
    grid = np.linspace(-8.0, 8.0, 8001)
    psi = state.offset[:, None] + state.loadings * grid
    fit = 300 * psi[0] + 2 * psi[1] - 303 * np.logaddexp(0, psi[0]) - 3 * np.logaddexp(0, psi[1])
    weight = np.exp(fit - fit.max()) * stats.norm.pdf(grid, 0.4, np.sqrt(2.0))
    cdf = np.cumsum(weight) / weight.sum()
    rng = np.random.default_rng(2)
    start = np.interp(rng.random((4000, 1)), cdf, grid)
    x, base = start, base_of(model, state, data)
    for _ in range(5):
        x = slice_states(rng, base, x)
    assert abs(np.corrcoef(x[:, 0], start[:, 0])[0, 1]) < 0.9
    return stats.kstest(x[:, 0], lambda value: np.interp(value, grid, cdf)).pvalue


def good(model, state, data):
    return around(model, state, data, 1)


def far(model, state, data):
    """Half as wide as it should be, and a standard deviation off."""
    base = good(model, state, data)
    sd = np.sqrt(1.0 / (base.base.J[0, 0, 0] + 0.5))
    return moved(base, 4.0 * base.base.J + 1.5, sd)


def moved(base, J, shift):
    """Around another Gaussian of the same prior, N(0.4, 2)."""
    mean = base.base.centre + shift
    h = (J[..., 0] + 0.5) * mean - 0.5 * 0.4
    base.base = base.base._replace(J=J, h=h, centre=mean)
    base.roots = np.sqrt(J + 0.5)
    return base


def uncorrected(model, state, data):
    """The potential forgotten: the likelihood counts twice."""
    base = good(model, state, data)
    J, h = np.zeros_like(base.base.J), np.zeros_like(base.base.h)
    base.base = base.base._replace(J=J, h=h)
    return base


@pytest.mark.slow
@pytest.mark.parametrize("base", [good, far])
def test_any_base_leaves_the_law_as_it_is(base):
    assert one_step(base) > 1e-3


@pytest.mark.slow
def test_without_its_correction_a_slice_is_refused():
    assert one_step(uncorrected) < 1e-6


@pytest.mark.slow
def test_no_base_leaves_the_states_where_they_are():
    model, data = MultinomialLDS(2, update="both"), SYMBOLS
    state = model.prior(np.random.default_rng(0), data)
    thin = np.ones((2, 2)) + 1e-13 * np.eye(2)
    base = model._around(replace(state, noise_cov=thin), data)
    assert not base.found
    assert slice_states(np.random.default_rng(0), base, state.states) is state.states


def test_rare_symbols_among_many_are_what_slices_are_for():
    assert paths_are_slow(RARE)
    np.testing.assert_array_less(MultinomialLDS(1).augmentation_rates(RARE)[0], 0.15)
    assert not any(paths_are_slow(data) for data in (COUNTS, SYMBOLS))
    never = as_sequences([[0, 1, 0]], num_symbols=5)
    assert stick_rates(never).shape == (4,)
    assert not paths_are_slow(never)


@pytest.mark.slow
def test_auto_is_one_of_the_two():
    rng_of = np.random.default_rng
    for data, same in ((RARE, "both"), (COUNTS, "gibbs")):
        model = MultinomialLDS(1)
        state = model.prior(rng_of(0), data)
        steps = {
            update: replace(model, update=update).step(rng_of(1), state, data).states
            for update in ("auto", "gibbs", "both")
        }
        np.testing.assert_array_equal(steps["auto"], steps[same])
        assert not np.array_equal(steps["gibbs"], steps["both"])


def test_gibbs_alone_says_what_it_would_not_move():
    model = MultinomialLDS(1, update="gibbs")
    with pytest.warns(ConvergenceWarning, match=r"all but symbol 0: 5 in 10,000, about 0.0"):
        model.init(np.random.default_rng(0), as_sequences([np.array([[1999, 1, 0]] * 5)]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.init(np.random.default_rng(0), COUNTS)
        replace(model, update="auto").init(np.random.default_rng(0), RARE)
