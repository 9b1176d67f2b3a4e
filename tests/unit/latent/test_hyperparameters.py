"""Joint updates of hyperparameters: the law they keep, the Gaussian they go around."""

import numpy as np
import pytest

from pgmult.latent.hyperparameters import Leaning, laplace, sample_hyperparameters
from pgmult.testing import rejects

SCALES = np.array([0.3, 1.0])
PRECISION = np.diag(SCALES**-2.0) + 0.5 * np.eye(2)[::-1]
CENTRE = np.array([1.0, -2.0])


def log_gaussian(x):
    return float(-0.5 * (x - CENTRE) @ PRECISION @ (x - CENTRE))


def test_laplace_finds_a_gaussian():
    found = laplace(log_gaussian, np.zeros(2))
    np.testing.assert_allclose(found.mean, CENTRE, atol=1e-2)
    np.testing.assert_allclose(found.root @ found.root.T, np.linalg.inv(PRECISION), rtol=1e-4)
    assert (found.lean == 0.0).all()
    assert np.isfinite(laplace(lambda x: 0.0, np.ones(3)).root).all()


def check_law_stays(log_density, near):
    """Chains that begin with the law."""
    rng, cov = np.random.default_rng(6), np.linalg.inv(PRECISION)
    draws = []
    for start in CENTRE + rng.standard_normal((60, 2)) @ np.linalg.cholesky(cov).T:
        x = start
        for _ in range(60):
            x = sample_hyperparameters(rng, log_density, x, near)
            draws.append(x - CENTRE)
    sd = np.sqrt(np.diagonal(cov))
    assert np.abs(np.mean(draws, axis=0) / sd).max() < 0.12
    got = np.cov(np.transpose(draws))
    np.testing.assert_allclose(got / np.outer(sd, sd), cov / np.outer(sd, sd), atol=0.15)


NEAR = {
    "right": laplace(log_gaussian, np.zeros(2)),
    "beside": Leaning(CENTRE + 0.4 * SCALES, 0.7 * np.diag(SCALES), np.zeros(2)),
    "wide": Leaning(CENTRE, 2.0 * np.diag(SCALES), np.zeros(2)),
}


@pytest.mark.parametrize("kind", NEAR)
def test_joint_updates_keep_the_law_whatever_they_go_around(kind):
    check_law_stays(log_gaussian, NEAR[kind])


@pytest.mark.parametrize("kind", NEAR)
def test_joint_updates_that_take_it_for_a_prior_are_refused(kind):
    near = NEAR[kind]

    def doubled(x):
        z = np.linalg.solve(near.root, x - near.mean)
        return log_gaussian(x) - 5.0 * np.log1p(z @ z / 8.0)

    rejects(check_law_stays, doubled, near)


def test_joint_updates_need_a_density_that_is_finite():
    with pytest.raises(FloatingPointError, match="finite at the start"):
        sample_hyperparameters(np.random.default_rng(0), lambda x: -np.inf, CENTRE, NEAR["right"])
