"""Gaussian Markov random fields against dense algebra."""

import numpy as np
import pytest
from scipy import sparse, stats

from pgmult import DensePotential, DiagonalPotential, GaussianMarkovField, MvNormal
from pgmult.priors.markov_field import BandedPrecision


def lattice(rows, columns, dependence=0.9):
    """Precision of a proper conditional autoregression on a lattice of places."""
    line = [sparse.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1]) for n in (rows, columns)]
    near = sparse.kron(line[0], sparse.eye_array(columns)) + sparse.kron(
        sparse.eye_array(rows), line[1]
    )
    return sparse.diags_array(near.sum(axis=1)) - dependence * near


def shuffled(matrix, rng):
    """The same map, its places numbered at random."""
    order = rng.permutation(matrix.shape[0])
    return sparse.csr_array(matrix)[order][:, order]


def potential(rng, rows, n):
    J = np.where(rng.random((rows, n)) < 0.5, rng.gamma(1.0, size=(rows, n)), 0.0)
    return DiagonalPotential(J, np.where(J > 0.0, rng.normal(size=(rows, n)), 0.0))


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


@pytest.mark.parametrize("is_sparse", [True, False])
def test_means_and_densities_agree_with_dense_algebra(rng, is_sparse):
    Q = shuffled(lattice(4, 5), rng)
    Q = Q if is_sparse else Q.toarray() + 0.1  # a dense one has no zeros
    strength, mean, seen = rng.gamma(2.0, size=3), rng.normal(size=(3, 20)), potential(rng, 3, 20)
    prior = GaussianMarkovField(mean, Q, strength)
    posterior = prior.condition(seen)
    x = rng.normal(size=(3, 20))
    for r in range(3):
        oracle = MvNormal(mean[r], np.linalg.inv(strength[r] * dense(Q)))
        np.testing.assert_allclose(prior.log_density(x)[r], oracle.log_density(x[r]), atol=1e-10)
        oracle = oracle.condition(DiagonalPotential(seen.J[r], seen.h[r]))
        np.testing.assert_allclose(posterior.mean()[r], oracle.mean(), atol=1e-10)
        np.testing.assert_allclose(
            posterior.log_density(x)[r], oracle.log_density(x[r]), atol=1e-10
        )
    np.testing.assert_array_equal(prior.mean(), mean)


def test_draws_are_a_linear_map_of_noise_with_the_posterior_covariance(rng):
    """Column by column: no statistics needed."""
    Q = shuffled(lattice(3, 4), rng)
    posterior = GaussianMarkovField(rng.normal(size=12), Q, 2.5).condition(
        DiagonalPotential(rng.gamma(1.0, size=12), rng.normal(size=12))
    )

    class Unit(np.random.Generator):
        """Gives a column of the identity for noise."""

        def __init__(self, column):
            super().__init__(np.random.PCG64(0))
            self.column = column

        def standard_normal(self, shape):
            return np.broadcast_to(np.eye(12)[self.column], shape)

    root = np.array([posterior.sample(Unit(k)) - posterior.mean() for k in range(12)]).T
    precision = 2.5 * Q.toarray() + np.diag(posterior.potential.J)
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(precision), atol=1e-10)
    assert np.abs(root @ root.T - precision).max() > 1.0  # what the wrong one of the two would be


def test_draws_have_the_right_law(rng):
    posterior = GaussianMarkovField(np.ones(4), lattice(2, 2)).condition(potential(rng, 1, 4))
    draws = np.array([posterior.sample(rng)[0] for _ in range(4000)])
    precision = lattice(2, 2).toarray() + np.diag(posterior.potential.J[0])
    white = (draws - posterior.mean()) @ np.linalg.cholesky(precision)
    for column in white.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4


def test_conditioning_again_adds(rng):
    prior = GaussianMarkovField(np.zeros(6), lattice(2, 3))
    one, two = potential(rng, 2, 6), potential(rng, 2, 6)
    np.testing.assert_allclose(
        prior.condition(one).condition(two).mean(), prior.condition(one + two).mean(), atol=1e-12
    )


def test_an_intrinsic_field_has_a_posterior_where_it_is_observed(rng):
    Q = lattice(3, 3, dependence=1.0)
    intrinsic = GaussianMarkovField(np.full(9, 7.0), Q)
    with pytest.raises(ValueError, match="row 0 has no Gaussian law"):
        intrinsic.sample(rng)
    J, h = np.zeros(9), np.zeros(9)
    J[4], h[4] = 2.0, 6.0
    # one observation of an intrinsic field says what the level is everywhere
    np.testing.assert_allclose(intrinsic.condition(DiagonalPotential(J, h)).mean(), 3.0)
    islands = sparse.block_diag([Q, Q], format="csr")
    seen = DiagonalPotential(np.append(J, 0.0 * J), np.append(h, 0.0 * h))
    with pytest.raises(ValueError, match="piece of the map without observations"):
        GaussianMarkovField(np.zeros(18), islands).condition(seen).mean()


def test_shapes(rng):
    Q = lattice(2, 3)
    assert GaussianMarkovField(np.zeros(6), Q).sample(rng).shape == (6,)
    assert GaussianMarkovField(np.zeros(6), Q).sample(rng, 4).shape == (4, 6)
    assert GaussianMarkovField(np.zeros(6), Q, np.ones(3)).sample(rng).shape == (3, 6)
    assert GaussianMarkovField(np.zeros(6), Q).log_density(np.zeros((5, 6))).shape == (5,)
    assert GaussianMarkovField(np.zeros(6), Q).log_density(np.zeros(6)).shape == ()


def test_a_precision_applies_to_rows(rng):
    Q, x = shuffled(lattice(4, 5), rng), rng.normal(size=(3, 20))
    np.testing.assert_allclose(BandedPrecision.of(Q).apply(x), x @ Q.toarray(), atol=1e-12)


def test_a_long_line_stays_a_band():
    line = lattice(1, 5000)
    field = GaussianMarkovField(np.zeros(5000), shuffled(line, np.random.default_rng(0)))
    assert len(field.prior_precision.bands) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(2), np.ones((2, 3))), "must be a square matrix, got shape \\(2, 3\\)"),
        ((np.zeros(2), [[1.0, 0.5], [0.0, 1.0]]), "must be symmetric"),
        ((np.zeros(2), [[1.0, np.nan], [np.nan, 1.0]]), "prior_precision must be finite"),
        ((np.zeros(3), np.eye(2)), "mean and potential must have shape \\(2,\\)"),
        ((np.zeros((4, 2)), np.eye(2), np.ones(3)), "strength \\(3,\\)"),
        ((np.zeros(2), np.eye(2), 0.0), "strength must be positive"),
    ],
)
def test_bad_fields_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        GaussianMarkovField(*arguments)


def test_bad_calls_are_refused(rng):
    field = GaussianMarkovField(np.zeros((3, 2)), np.eye(2))
    with pytest.raises(ValueError, match="a potential \\(4, 2\\)"):
        field.condition(DiagonalPotential(np.ones((4, 2)), np.ones((4, 2))))
    with pytest.raises(TypeError, match="must be a DiagonalPotential, got DensePotential"):
        field.condition(DensePotential(np.eye(2), np.zeros(2)))
    with pytest.raises(ValueError, match="leave it out"):
        field.sample(rng, 3)
    J = np.array([[0.0, 0.0], [-2.0, 0.0], [0.0, 0.0]])
    improper = field.condition(DiagonalPotential(J, 0.0 * J))
    with pytest.raises(ValueError, match="row 1 has no Gaussian law"):
        improper.sample(rng)
