"""The slice around a Gaussian leaves every law as it is, however bad the Gaussian."""

import numpy as np
import pytest

from examples.papers.wang2013.around import slice_around
from pgmult import DiagonalPotential, MvNormal, StickBreaking
from pgmult.testing import conditional_ratio, rejects

BATCH = 20_000
MEAN = np.array([1.5, -1.0])
COV = np.array([[2.0, 0.9], [0.9, 1.0]])
PRECISION = np.linalg.inv(COV)
BAD = {  # far off, too narrow, too wide, and with another tilt
    "shifted": MvNormal(np.array([3.5, -0.5]), COV),
    "narrow": MvNormal(np.array([1.8, -1.0]), np.diag([0.7, 0.4])),
    "wide": MvNormal(MEAN, np.array([[9.0, -4.0], [-4.0, 9.0]])),
}


def log_target(x):
    return -0.5 * np.einsum("bi,ij,bj->b", x - MEAN, PRECISION, x - MEAN)


def check_invariance(base, dof, *, correct=True, follow=0.0, updates=2, broken=None):
    """Independent draws from the target are still that after updates: four moments of them."""
    rng = np.random.default_rng(0)
    x = rng.multivariate_normal(MEAN, COV, BATCH)
    for _ in range(updates):
        here = MvNormal(base.prior_mean + follow * (x - MEAN), base.prior_cov)
        around = here if broken is None else broken(here)

        def correction(x, active, here=here):
            return correct * (log_target(x) - here.log_density(x))

        x = slice_around(rng, x, around, correction, dof)
    z = np.linalg.solve(np.linalg.cholesky(COV), (x - MEAN).T)
    scores = [
        *z.mean(axis=1),
        *((z**2).mean(axis=1) - 1.0) / np.sqrt(2.0),
        *(z**3).mean(axis=1) / np.sqrt(15.0),
        *((z**4).mean(axis=1) - 3.0) / np.sqrt(96.0),
        (z[0] * z[1]).mean(),
    ]
    assert (np.abs(scores) < 4.5 / np.sqrt(BATCH)).all(), scores


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("dof", [None, 8.0, 1.0])
def test_any_base_leaves_the_target_as_it_is(name, dof):
    check_invariance(BAD[name], dof)


class Lopsided:
    """A base whose parts do not belong together."""

    def __init__(self, base, mean=0.0, stretch=1.0, inner=1.0):
        self.base, self.shift, self.stretch, self.weight = base, mean, stretch, inner

    def mean(self):
        return self.base.mean() + self.shift

    def sample(self, rng):
        mean = self.base.mean()
        return mean + self.stretch * (rng.multivariate_normal(0 * MEAN, self.base.cov(), BATCH))

    def inner(self, a, b):
        return self.weight * self.base.inner(a, b)


@pytest.mark.parametrize("dof", [None, 8.0])
@pytest.mark.parametrize(
    "mutant",
    [
        {"correct": False},
        {"correct": 0.5},
        {"follow": 0.5},
        {"broken": lambda base: Lopsided(base, mean=0.2)},
        {"broken": lambda base: Lopsided(base, stretch=1.2)},
    ],
    ids=["no correction", "not all of it", "base that follows", "mean", "draw too wide"],
)
def test_mutants_are_refused(mutant, dof):
    check_invariance(BAD["narrow"], dof, broken=Lopsided)
    rejects(check_invariance, BAD["narrow"], dof, **mutant)


def test_a_student_of_another_shape_is_refused():
    rejects(check_invariance, BAD["narrow"], 8.0, broken=lambda base: Lopsided(base, inner=1.3))


class FixedGamma:
    """A generator whose gamma variables are their means."""

    def __init__(self, rng):
        self.random, self.exponential = rng.random, rng.exponential
        self.multivariate_normal = rng.multivariate_normal

    def gamma(self, shape, size):
        return np.full(size, shape)


def test_a_scale_that_is_not_random_is_refused(monkeypatch):
    right = slice_around
    broken = lambda rng, *rest: right(FixedGamma(rng), *rest)  # noqa: E731
    monkeypatch.setitem(globals(), "slice_around", broken)
    rejects(check_invariance, BAD["wide"], 1.0, broken=Lopsided)


def test_the_prior_cancels():
    """Base times correction is the posterior, whatever the sites: for bad ones as for good."""
    rng = np.random.default_rng(1)
    link, counts = StickBreaking(), np.array([[3, 0, 40]])
    prior = MvNormal(np.zeros(2), COV)
    good = link.expected(np.zeros((1, 2)), np.ones((1, 2)), counts)
    bad = DiagonalPotential(np.array([[0.3, 5.0]]), np.array([[-2.0, 7.0]]))
    points = list(rng.normal(scale=2.0, size=(6, 1, 2)))
    for site in (good, bad):
        base = prior.condition(site)
        conditional_ratio(
            lambda psi: float(prior.log_density(psi)[0] + link.log_likelihood(psi, counts)[0]),
            lambda psi, base=base, site=site: float(
                base.log_density(psi)[0]
                + link.log_likelihood(psi, counts)[0]
                - np.sum(site.h * psi - 0.5 * site.J * psi * psi)
            ),
            points,
        )


def test_vectors_go_their_own_ways():
    """The correction of one vector changes nothing for the others, and shapes may be any."""
    rng = np.random.default_rng(2)
    x, sharp = rng.standard_normal((6, 3)), np.array([0.1, 1.0, 50.0, 1.0, 1e4, 0.0])
    base = MvNormal(np.zeros((6, 3)), np.eye(3))

    def update(sharp):
        return slice_around(
            np.random.default_rng(3), x, base, lambda x, active: -sharp * (x**2).sum(axis=1)
        )

    one, two = update(sharp), update(np.where(np.arange(6) == 2, 0.3, sharp))
    keep = np.arange(6) != 2
    np.testing.assert_array_equal(one[keep], two[keep])
    assert (one[2] != two[2]).any()


def test_bad_input():
    rng = np.random.default_rng(4)
    base = MvNormal(np.zeros((2, 1)), np.eye(1))
    nothing = lambda x, active: np.zeros(len(x))  # noqa: E731
    with pytest.raises(ValueError, match=r"of the shape of x, \(3, 1\), got \(2, 1\)"):
        slice_around(rng, np.zeros((3, 1)), base, nothing)
    with pytest.raises(FloatingPointError, match="got -inf of vector 1"):
        slice_around(rng, np.zeros((2, 1)), base, lambda x, active: np.array([0.0, -np.inf]))

    class Bare:
        mean, sample = base.mean, base.sample

    with pytest.raises(TypeError, match="give dof=None"):
        slice_around(rng, np.zeros((2, 1)), Bare(), nothing)
    assert slice_around(rng, np.zeros((2, 1)), Bare(), nothing, dof=None).shape == (2, 1)
