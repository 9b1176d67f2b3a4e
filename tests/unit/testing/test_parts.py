"""Checks of links and priors: ours pass, broken ones are refused."""

from dataclasses import dataclass

import numpy as np
import pytest
from link_and_prior_checks import check_link, check_prior

from pgmult import DensePotential, DiagonalPotential, LogisticNormal, MvNormal, StickBreaking
from pgmult.testing import mutant, rejects

STICKS = StickBreaking()


@pytest.mark.parametrize(
    ("link", "num_categories"),
    [
        (STICKS, 2),
        (STICKS, 5),
        (StickBreaking([2, 0, 3, 1]), 4),
        (LogisticNormal(), 2),
        (LogisticNormal(), 4),
    ],
)
def test_our_links_pass(link, num_categories):
    check_link(link, num_categories)


def scaled(method, J=1.0, h=1.0):
    def changed(self, *arguments):
        potential = getattr(STICKS, method)(*arguments)
        return DiagonalPotential(J * potential.J, h * potential.h)

    return changed


def all_observations_at_every_stick(self, rng, psi, counts):
    """N for N_k."""
    taken, total = counts[..., :-1], counts.sum(axis=-1, keepdims=True)
    right = STICKS.augment(rng, psi, counts)
    return DiagonalPotential(right.J, taken - 0.5 * total + 0.0 * right.h)


def stale(self, rng, psi, counts):
    """Omega of another psi."""
    return STICKS.augment(rng, np.roll(psi, 1, axis=-1), counts)


def mean_for_draw(self, rng, psi, counts):
    return STICKS.expected(psi, np.zeros_like(psi), counts)


def a_little_where_nothing_is(self, psi, counts):
    potential = STICKS.quadratic(psi, counts)
    return DiagonalPotential(potential.J + 1e-9, potential.h)


BROKEN_LINKS = {
    "probs must sum to 1": {"probs": lambda self, psi: 1.001 * STICKS.probs(psi)},
    "inverse must undo probs": {"inverse": lambda self, pi: -STICKS.inverse(pi)},
    "counts times log probs": {
        "log_likelihood": lambda self, psi, counts: -STICKS.log_likelihood(psi, counts)
    },
    "simulate must keep the totals": {
        "simulate": lambda self, rng, psi, totals: STICKS.simulate(rng, psi, totals + 1)
    },
    "simulate must draw from probs": {
        "simulate": lambda self, rng, psi, totals: STICKS.simulate(rng, 1.1 * psi, totals)
    },
    "quadratic must have J = h = 0": {"quadratic": a_little_where_nothing_is},
    "quadratic must have the slope": {"quadratic": scaled("quadratic", h=-1.0)},
    "expected must have the slope": {"expected": scaled("expected", h=-1.0)},
    "augment must have the gradient": {"augment": scaled("augment", h=-1.0)},
    "augment must have the Hessian": {"augment": mean_for_draw},
}


@pytest.mark.parametrize("message", BROKEN_LINKS)
def test_broken_links_are_refused(message):
    assert message in rejects(check_link, mutant(STICKS, **BROKEN_LINKS[message]), 4)


@pytest.mark.parametrize(
    "augment", [all_observations_at_every_stick, stale, scaled("augment", J=1.05)]
)
def test_wrong_augmentations_are_refused(augment):
    assert "augment must have" in rejects(check_link, mutant(STICKS, augment=augment), 4)


def test_an_expansion_that_is_no_bound_is_not_expected():
    def expected(self, mean, var, counts):
        return STICKS.quadratic(mean, counts)

    assert "bound from below" in rejects(check_link, mutant(STICKS, expected=expected), 4)


# ------------------------------------------------------------------ priors

COV = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
GAUSSIAN = MvNormal(np.array([1.0, 0.0, -1.0]), COV)


@pytest.mark.parametrize(
    "prior",
    [
        GAUSSIAN,
        MvNormal(np.array([[1.0, 0.0, -1.0], [0.0, 0.0, 0.0]]), COV),
        GAUSSIAN.condition(DiagonalPotential(np.ones(3), np.zeros(3))),
    ],
)
def test_our_priors_pass(prior):
    check_prior(prior, replicates=2000)


def test_a_dense_potential_passes():
    check_prior(GAUSSIAN, potential=DensePotential(COV, np.ones(3)), replicates=2000)


@dataclass(frozen=True)
class Changed:
    """A Gaussian with one method replaced."""

    inner: MvNormal
    changes: dict

    def sample(self, rng):
        return self.changes.get("sample", MvNormal.sample)(self.inner, rng)

    def condition(self, potential):
        condition = self.changes.get("condition", MvNormal.condition)
        return Changed(condition(self.inner, potential), self.changes)

    def log_density(self, x):
        return self.changes.get("log_density", MvNormal.log_density)(self.inner, x)


def wrong_sign(prior, potential):
    return prior.condition(DiagonalPotential(potential.J, -potential.h))


def variance_for_precision(prior, potential):
    J = np.divide(1.0, potential.J, where=potential.J > 0.0, out=np.zeros(3))
    return prior.condition(DiagonalPotential(J, potential.h))


def draws_by_the_precision(prior, rng):
    return prior.mean() + np.linalg.cholesky(prior.precision()) @ rng.standard_normal(3)


def draws_too_narrow(prior, rng):
    return prior.mean() + 0.9 * (prior.sample(rng) - prior.mean())


def draws_without_tails(prior, rng):
    noise = rng.choice([-1.0, 1.0], size=3)
    return prior.mean() + np.linalg.cholesky(prior.cov()) @ noise


def draws_that_forget_the_potential(prior, rng):
    return MvNormal(prior.prior_mean, prior.prior_cov).sample(rng)


BROKEN_PRIORS = [
    ({"condition": wrong_sign}, "must be constant over the block"),
    ({"condition": variance_for_precision}, "must be constant over the block"),
    ({"sample": draws_by_the_precision}, "sample of a prior must draw"),
    ({"sample": draws_too_narrow}, "sample of a prior must draw"),
    ({"sample": draws_without_tails}, "sample of a prior must draw"),
    ({"sample": draws_that_forget_the_potential}, "sample of a conditioned prior must draw"),
    ({"sample": lambda prior, rng: np.random.default_rng().normal(size=3)}, "on rng alone"),
]


def test_the_prior_that_the_broken_ones_change_is_right():
    check_prior(Changed(GAUSSIAN, {}), replicates=2000)


@pytest.mark.parametrize(("changes", "message"), BROKEN_PRIORS)
def test_broken_priors_are_refused(changes, message):
    assert message in rejects(check_prior, Changed(GAUSSIAN, changes), replicates=2000)


def test_a_posterior_of_another_kind_is_refused():
    broken = mutant(GAUSSIAN)  # its condition returns an MvNormal
    assert "condition must return a BrokenMvNormal" in rejects(check_prior, broken)
