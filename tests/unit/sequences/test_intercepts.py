"""Integrals over an intercept of each individual, and draws of it."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from pgmult.sequences.compiled.intercepts import draw_groups, log_integrals

FIXED, TAKEN, REACHED = np.array([0.5, -1.0]), np.array([1.0, 0.0]), np.array([1.0, 3.0])


def log_density(z, sd):
    psi = FIXED + sd * np.asarray(z)[..., None]
    return -0.5 * np.asarray(z) ** 2 + np.sum(TAKEN * psi - REACHED * np.logaddexp(0.0, psi), -1)


@pytest.mark.parametrize("sd", [0.01, 0.7, 5.0, 40.0])
def test_integrals_are_those_of_an_adaptive_rule(sd):
    found = log_integrals(sd, FIXED, TAKEN, REACHED, np.array([0, 2]), np.ones(1))
    ends = np.linspace(-10.0, 10.0, 401)
    exact = sum(quad(lambda z: np.exp(log_density(z, sd)), a, b)[0] for a, b in pairwise(ends))
    assert found == pytest.approx(np.log(exact), abs=1e-7)


def test_groups_add_up_and_one_without_rows_says_nothing():
    one = log_integrals(1.5, FIXED, TAKEN, REACHED, np.array([0, 2]), np.ones(1))
    several = log_integrals(1.5, FIXED, TAKEN, REACHED, np.array([0, 2, 2]), np.array([3.0, 2.0]))
    assert several == pytest.approx(3.0 * one + np.log(2.0 * np.pi))


@pytest.mark.parametrize(("fixed", "taken"), [(523.0, 0.0), (-523.0, 2.0)])
def test_modes_that_newton_steps_jump_over(fixed, taken):
    rows = np.array([fixed]), np.array([taken]), np.array([2.0])
    assert np.isfinite(log_integrals(89.0, *rows, np.array([0, 1]), np.ones(1)))


def test_draws_have_the_density():
    out, sd, ends = np.empty(20_000), 2.0, np.array([0, 2])
    which, key = np.zeros(len(out), np.int64), np.array([1, 2], np.uint64)
    draw_groups(key, sd, FIXED, TAKEN, REACHED, ends, which, out)
    grid = np.linspace(-9.0, 9.0, 20_001)
    share = np.cumsum(np.exp(log_density(grid, sd)))
    assert kstest(np.interp(out, grid, share / share[-1]), "uniform").pvalue > 0.001
