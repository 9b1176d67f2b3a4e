"""Integrals over an intercept of each individual, and draws of it."""

from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import kstest

import pgmult
from pgmult.latent.terms import sd_at
from pgmult.sequences import MixedMarkovChain
from pgmult.sequences.compiled.intercepts import draw_groups, log_integrals
from pgmult.sequences.models.hmm import log_predictive_of

FIXED, TAKEN, REACHED = np.array([0.5, -1.0]), np.array([1.0, 0.0]), np.array([1.0, 3.0])


def log_density(z, sd):
    psi = FIXED + sd * np.asarray(z)[..., None]
    return -0.5 * np.asarray(z) ** 2 + np.sum(TAKEN * psi - REACHED * np.logaddexp(0.0, psi), -1)


def integrals(sd, fixed, taken, reached, offsets):
    out = np.empty(len(offsets) - 1)
    log_integrals(sd, fixed, taken, reached, np.array(offsets), out)
    return out


@pytest.mark.parametrize("sd", [0.01, 0.7, 5.0, 40.0])
def test_integrals_are_those_of_an_adaptive_rule(sd):
    (integral,) = integrals(sd, FIXED, TAKEN, REACHED, [0, 2])
    ends = np.linspace(-10.0, 10.0, 401)
    exact = sum(quad(lambda z: np.exp(log_density(z, sd)), a, b)[0] for a, b in pairwise(ends))
    assert integral == pytest.approx(np.log(exact), abs=1e-7)


def test_a_group_without_rows_says_nothing():
    one, none = integrals(1.5, FIXED, TAKEN, REACHED, [0, 2, 2])
    assert none == pytest.approx(0.5 * np.log(2.0 * np.pi))
    assert one == integrals(1.5, FIXED, TAKEN, REACHED, [0, 2])[0]


@pytest.mark.parametrize(("fixed", "taken"), [(523.0, 0.0), (-523.0, 2.0)])
def test_modes_that_newton_steps_jump_over(fixed, taken):
    rows = np.array([fixed]), np.array([taken]), np.array([2.0])
    assert np.isfinite(integrals(89.0, *rows, [0, 1])).all()


def test_draws_have_the_density():
    out, sd, ends = np.empty(20_000), 2.0, np.array([0, 2])
    which, key = np.zeros(len(out), np.int64), np.array([1, 2], np.uint64)
    draw_groups(key, sd, FIXED, TAKEN, REACHED, ends, which, out)
    grid = np.linspace(-9.0, 9.0, 20_001)
    share = np.cumsum(np.exp(log_density(grid, sd)))
    assert kstest(np.interp(out, grid, share / share[-1]), "uniform").pvalue > 0.001


class TestWaysToFillMissingSymbolsIn:
    TABLE: ClassVar = {
        "who": list("aaaabbbbcccc"), "t": list(range(4)) * 3, "x": [0, 1] * 6,
        "is": ["A", None, "B", "A", "B", "A", None, None, None, "C", None, "A"],
    }  # fmt: skip

    @pytest.fixture
    def sampler(self):
        table = pgmult.read(self.TABLE)
        data = table.sequences("is", sequence="who", time="t", inputs="~ x + (1 | who)")
        return MixedMarkovChain(3).sampler(MixedMarkovChain(3).as_data(data))

    def test_symbols_after_the_last_observation_stay_open(self, sampler):
        assert np.diff(sampler._ways.offsets).tolist() == [3, 1, 9]

    def test_log_likelihood_is_that_of_simulated_intercepts(self, sampler):
        """Sums over ways of integrals, beside a filter's likelihood averaged over intercepts."""
        model, data, rng = sampler.model, sampler.data, np.random.default_rng(0)
        terms, sd = sampler._terms, 0.8
        w = rng.normal(0.0, 0.7, (6, 5))
        x = np.full((6, 1), brentq(lambda x: sd_at(x) - sd, 0.0, 10.0))
        initial = np.array([0.5, 0.3, 0.2])
        every = sampler._ways.log_first(initial) + sampler._integrals(x, w).sum(axis=0)
        exact = sampler._ways.log_sums(every) - 3 * 6 * 0.5 * np.log(2.0 * np.pi)
        levels, likelihoods = sampler._sticks[0]._levels, []
        for _ in range(4_000):
            w[:, levels] = rng.normal(0.0, sd, (6, 3))
            every_w = np.zeros((6, sampler._inputs.latent.family.num_weights))
            every_w[:, terms.w] = w
            state = model.state_at(initial, every_w, np.zeros((6, 1)) + x, data)
            log_p = log_predictive_of(model.chains(state, data))
            likelihoods.append(np.exp(np.add.reduceat(log_p, data.offsets[:-1])))
        mean, error = np.mean(likelihoods, axis=0), np.std(likelihoods, axis=0) / np.sqrt(4_000)
        assert exact == pytest.approx(np.log(mean).sum(), abs=4.0 * np.sum(error / mean))
