"""Linear dynamics against the dense Gaussian at fifty digits, and the draws of their parameters."""

from dataclasses import replace

import numpy as np
import pytest
from oracle.dynamics import dense_moments, posterior_means
from scipy import linalg, stats

from pgmult import DensePotential, MatrixNormalInverseWishart, NormalInverseWishart
from pgmult.compiled.rows import row_threads
from pgmult.sequences.compiled import dynamics as compiled
from pgmult.sequences.priors import dynamics as module
from pgmult.sequences.priors.dynamics import LinearDynamics
from pgmult.sequences.updates.conjugate import (
    draw_dynamics,
    draw_initial,
    first_sums,
    transition_sums,
)
from pgmult.testing import conditional_ratio


@pytest.fixture
def rng():
    return np.random.default_rng(17)


def rotation(rng, size):
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


def random_dynamics(
    rng, lengths=(4, 1, 6), size=3, *, rank=None, sharpness=1.0, least_noise=0.3, growth=0.9,
    drive=True,
):  # fmt: skip
    """Dynamics and potentials of any rank; a third of the steps see nothing."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    steps = offsets[-1]
    axes = rotation(rng, size)
    noise_cov = (axes * np.geomspace(1.0, least_noise, size)) @ axes.T
    factor = rng.normal(size=(steps, size, rank or size)) * np.sqrt(sharpness)
    factor[rng.random(steps) < 0.33] = 0.0
    J = factor @ factor.swapaxes(1, 2)
    J = 0.5 * (J + J.swapaxes(1, 2))
    h = np.einsum("tij,tj->ti", J, rng.normal(size=(steps, size)))
    return LinearDynamics(
        growth * rotation(rng, size), 0.5 * (noise_cov + noise_cov.T), rng.normal(size=size),
        2.0 * np.eye(size) + 0.5, offsets, rng.normal(size=(steps, size)) if drive else None,
        DensePotential(J, h),
    )  # fmt: skip


HARD = {
    "one dimension": {"size": 1, "lengths": (1, 7)},
    "three": {},
    "without drive": {"drive": False},
    "rank one": {"rank": 1, "size": 4},
    "sharp": {"sharpness": 1e6, "size": 4},
    "sharp, of rank one": {"sharpness": 1e6, "size": 2, "rank": 1},
    "nearly singular noise": {"least_noise": 1e-12, "size": 4, "lengths": (5,)},
    "sharp and nearly singular": {"least_noise": 1e-10, "sharpness": 1e6, "rank": 2},
    "unstable": {"growth": 3.0, "rank": 1, "lengths": (12,)},
    "unstable and sharp": {"growth": 3.0, "rank": 1, "sharpness": 1e6, "lengths": (8,)},
    "twenty dimensions": {"size": 20, "lengths": (3,)},
    "dead directions": {"growth": 0.0},
}

# J is rounded at 1e-16 times its largest entry, 1e6, also in the directions that it does not see
MEAN_TOLERANCE = {
    "sharp, of rank one": 1e-8,
    "sharp and nearly singular": 1e-8,
    "unstable and sharp": 1e-4,  # nor does it see states of size 1e4
}


def close(actual, expected, tol=1e-10):
    np.testing.assert_allclose(actual, expected, atol=tol * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize("case", HARD)
def test_means_are_those_of_the_dense_gaussian(rng, case):
    dynamics = random_dynamics(rng, **HARD[case])
    _, means = dynamics.sample_around(rng)
    for s, ends in enumerate(zip(dynamics.offsets, dynamics.offsets[1:], strict=False)):
        _, mean, _ = dense_moments(dynamics, s)
        close(means[slice(*ends)], mean, MEAN_TOLERANCE.get(case, 1e-10))


@pytest.mark.slow
def test_the_filter_keeps_the_noise_of_exploding_states(rng):
    """States of 1e8 follow each other to the size of their noise: no digit of it is lost."""
    law = LinearDynamics(
        np.array([[4.0, 1.0], [0.0, 3.5]]), np.array([[1.0, 0.9], [0.9, 1.0]]), np.zeros(2),
        np.eye(2), np.array([0, 14]),
    )  # fmt: skip
    draws = np.array([law._sample_by_filter(np.array([s, 1], np.uint64))[0] for s in range(400)])
    assert np.abs(draws).max() > 1e7
    noise = draws[:, 1:] - draws[:, :-1] @ law.transition.T
    moments = np.einsum("sti,stj->ij", noise, noise) / noise[..., 0].size
    np.testing.assert_allclose(moments, law.noise_cov, atol=0.1)


def test_sequences_are_independent(rng):
    dynamics = random_dynamics(rng, lengths=(4, 1, 6))
    h = dynamics.potential.h.copy()
    h[:4] += 1.0
    other = replace(dynamics, potential=DensePotential(dynamics.potential.J, h))
    one, two = (law.sample(np.random.default_rng(1)) for law in (dynamics, other))
    np.testing.assert_array_equal(one[4:], two[4:])
    assert (one[:4] != two[:4]).all()


def test_conditioning_adds_potentials(rng):
    dynamics = random_dynamics(rng)
    J, h = dynamics.potential.J, dynamics.potential.h
    both = dynamics.potential + dynamics.potential
    twice = replace(dynamics, potential=both).sample_around(rng)[1]
    together = replace(dynamics, potential=DensePotential(2.0 * J, 2.0 * h))
    close(twice, posterior_means(together))
    prior = replace(dynamics, potential=None)
    nothing = replace(prior, potential=DensePotential(0.0 * J, 0.0 * h))
    close(nothing.sample_around(rng)[1], posterior_means(prior))


@pytest.mark.slow
def test_a_long_chain_has_finite_draws(rng):
    """A direction nobody sees, one that is hardly noisy, and thousands of steps."""
    steps = 4_000
    A = np.diag([1.0, 0.999, 0.5, 1.0])
    J = np.zeros((steps, 4, 4))
    J[::7, 0, 0] = 1e6
    J[:, 1:3, 1:3] = 0.3
    dynamics = LinearDynamics(
        A, np.diag([1e-9, 1.0, 1e-4, 1e-9]), np.zeros(4), np.eye(4), np.array([0, steps]),
        potential=DensePotential(J, rng.normal(size=(steps, 4)) * (J.sum(axis=2) > 0)),
    )  # fmt: skip
    assert np.isfinite(dynamics.sample(rng)).all()


# ------------------------------------------------------------------ draws


@pytest.fixture(params=["by blocks", "by filter"])
def way(request, monkeypatch):
    """Each way of drawing."""
    if request.param == "by filter":
        monkeypatch.setattr(module, "MAX_GROWTH", 0.0)
    return request.param


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_draws_move_exactly_with_the_mean(rng, way, size):
    """With J and the random numbers fixed, a draw is the mean plus something fixed."""
    dynamics = random_dynamics(rng, lengths=(9, 1, 2, 17, 3), size=size)
    potential = dynamics.potential
    J, h = potential.J, np.einsum("tij,tj->ti", potential.J, rng.normal(size=dynamics.shape))
    other = LinearDynamics(
        dynamics.transition, dynamics.noise_cov, rng.normal(size=size), dynamics.initial_cov,
        dynamics.offsets, rng.normal(size=dynamics.shape), DensePotential(J, h),
    )  # fmt: skip
    draw, mean = other.sample_around(np.random.default_rng(1))
    np.testing.assert_array_equal(draw, other.sample(np.random.default_rng(1)))
    close(mean, posterior_means(other))
    moved = draw - dynamics.sample(np.random.default_rng(1))
    close(moved, mean - posterior_means(dynamics))


def many_copies(dynamics, copies):
    J, h = dynamics.potential.J, dynamics.potential.h
    return LinearDynamics(
        dynamics.transition, dynamics.noise_cov, dynamics.initial_mean, dynamics.initial_cov,
        np.arange(copies + 1) * dynamics.shape[0], np.tile(dynamics.drive, (copies, 1)),
        DensePotential(np.tile(J, (copies, 1, 1)), np.tile(h, (copies, 1))),
    )  # fmt: skip


def require_law(draws, mean, cov):
    """Draws ``(copies, T, D)``: whitened, every coordinate is normal and none are correlated."""
    flat = draws.reshape(len(draws), -1) - mean.ravel()
    root = np.linalg.cholesky(cov.reshape(mean.size, mean.size))
    white = linalg.solve_triangular(root, flat.T, lower=True).T
    assert min(stats.kstest(column, "norm").pvalue for column in white.T) > 1e-5
    close(white.T @ white / len(draws), np.eye(mean.size), 5.0 / np.sqrt(len(draws)))


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(
    "way", ["by blocks", pytest.param("by filter", marks=pytest.mark.slow)], indirect=True
)
def test_draws_have_the_law_of_the_dense_gaussian(rng, way, size):
    dynamics, number = random_dynamics(rng, lengths=(7,), size=size), 3000
    if way == "by filter":  # a step at a time, in Python
        number = 1000
    _, mean, cov = dense_moments(dynamics, 0)
    require_law(many_copies(dynamics, number).sample(rng).reshape(number, 7, size), mean, cov)


@pytest.mark.slow
def test_draws_under_a_nearly_singular_covariance(rng):
    """Block elimination would lose all digits; the draws are right none the less."""
    dynamics = random_dynamics(rng, lengths=(6,), size=2, least_noise=1e-13)
    copies = many_copies(dynamics, 1500)
    key = np.array([1, 2], dtype=np.uint64)
    np.testing.assert_array_equal(copies._sampled(key, 0)[0], copies._sample_by_filter(key)[0])
    _, mean, cov = dense_moments(dynamics, 0)
    draws = copies.sample(rng).reshape(1500, 6, 2)
    z = (draws.mean(axis=0) - mean) / np.sqrt(np.einsum("titi->ti", cov) / 1500)
    assert np.abs(z).max() < 5.0
    moments = np.einsum("sti,suj->tiuj", draws - mean, draws - mean) / 1500
    close(moments, cov, 5.0 / np.sqrt(1500))
    noise = draws[:, 1:] - draws[:, :-1] @ dynamics.transition.T - dynamics.drive[1:]
    least = np.linalg.eigh(dynamics.noise_cov)[1][:, 0]
    assert np.abs(noise @ least).max() < 1e-5  # six standard deviations are 2e-6


def test_threads_do_not_change_draws(rng, way):
    dynamics = random_dynamics(rng, lengths=(30, 7, 1, 12, 40, 3, 3, 9, 21, 2))
    alone = dynamics.sample(np.random.default_rng(3))
    for threads in (2, 3):
        with row_threads(threads, grain=1):
            together = dynamics.sample(np.random.default_rng(3))
        np.testing.assert_array_equal(alone, together)


def test_inputs_drive_all_but_first_steps(rng):
    inputs, weights = rng.normal(size=(5, 2)), rng.normal(size=(3, 2))
    law = LinearDynamics(np.eye(3), np.eye(3), np.zeros(3), np.eye(3), np.array([0, 2, 5]))
    drive = law.driven(inputs, weights).drive
    expected = inputs @ weights.T
    expected[[0, 2]] = 0.0
    close(drive, expected, 1e-15)


# ------------------------------------------------------------------ what is refused


def test_indefinite_potentials_are_refused(rng):
    dynamics = random_dynamics(rng, drive=False)
    J = dynamics.potential.J.copy()
    J[8] = np.ones((3, 3)) - 40.0 * (1.0 - np.eye(3))
    bad = replace(dynamics, potential=DensePotential(J, dynamics.potential.h))
    with pytest.raises(FloatingPointError, match="step 8 has no Gaussian distribution"):
        bad.sample(rng)
    with pytest.raises(TypeError, match="rng must be a numpy"):
        dynamics.sample(7)


def test_exploding_chains_are_refused(rng):
    dynamics = LinearDynamics(
        np.array([[1e200]]), np.eye(1), np.ones(1), np.eye(1), np.array([0, 4])
    )
    with pytest.raises(FloatingPointError, match=r"step 1 has no .*has the chain exploded"):
        dynamics.sample(rng)


# ------------------------------------------------------------------ draws of the parameters

PRIOR = MatrixNormalInverseWishart(0.4 * np.eye(3, 2), np.eye(3), 4.0, 0.7 * np.eye(2))
OFFSETS = np.array([0, 5, 6, 9])


def states_and_inputs(rng):
    return rng.normal(size=(9, 2)), rng.normal(size=(9, 1))


def dynamics_block(states, inputs, about):
    """Log joint of (A, W, Q) with the states, and the posterior that `draw_dynamics` draws from.

    The joint comes from normal densities, the posterior from the compiled sums.
    """
    sums = transition_sums(states, OFFSETS, inputs, about)
    centre, precision, scale = np.empty((3, 2)), np.empty((3, 3)), PRIOR.scale.copy()
    compiled.regression_posterior(
        PRIOR.mean, PRIOR.row_precision, sums.coefficients, sums.zz, sums.ze, sums.ee, centre,
        precision, scale,
    )  # fmt: skip
    posterior = MatrixNormalInverseWishart(centre, precision, PRIOR.dof + sums.count, scale)

    def log_joint(point):
        A, W, Q = point
        total = PRIOR.log_density(np.concatenate([A, W], axis=1).T, Q)
        for t in set(range(9)) - set(OFFSETS.tolist()):
            mean = A @ states[t - 1] + W @ inputs[t]
            total += stats.multivariate_normal(mean, Q).logpdf(states[t])
        return total

    def log_conditional(point):
        A, W, Q = point
        return posterior.log_density(np.concatenate([A, W], axis=1).T, Q)

    return log_joint, log_conditional


def dynamics_points(rng):
    points = []
    for _ in range(5):
        coefficients, Q = PRIOR.sample(rng)
        points.append((coefficients[:2].T.copy(), coefficients[2:].T.copy(), Q))
    return points


def test_dynamics_given_states(rng):
    states, inputs = states_and_inputs(rng)
    for about in (np.zeros((2, 3)), rng.normal(size=(2, 3))):
        conditional_ratio(*dynamics_block(states, inputs, about), dynamics_points(rng))


def test_sums_of_blocks_add_up_and_move_with_the_states(rng):
    """The sums are those of all sequences, and of states that have been translated."""
    states, inputs = states_and_inputs(rng)
    about, delta = rng.normal(size=(2, 3)), np.array([3.0, -1.0])

    def sums(states, inputs, offsets):
        later = transition_sums(states, offsets, inputs, about)
        return later, first_sums(states, offsets, about[:, 2])

    whole = sums(states, inputs, OFFSETS)
    parts = [
        sums(states[:6], inputs[:6], OFFSETS[:3]), sums(states[6:], inputs[6:], OFFSETS[2:] - 6)
    ]  # fmt: skip
    assert (whole[0].count, whole[1].count) == (6, 3)
    moved, translated = sums(states + delta, inputs, OFFSETS)[0], whole[0].translated(delta)
    for name in ("zz", "ze", "ee"):
        close(getattr(moved, name), getattr(translated, name), 1e-12)
        for i in range(2):
            close(getattr(whole[i], name), sum(getattr(part[i], name) for part in parts), 1e-12)


def test_draws_are_split_as_they_were_stacked(rng):
    """Under a posterior that is a point, the draw is that point: nothing is transposed."""
    A, W = np.array([[0.5, 0.4], [-0.3, 0.2]]), np.array([[1.0], [-2.0]])
    states, inputs = np.zeros((400, 2)), rng.normal(size=(400, 1))
    for t in range(1, 400):
        noise = 1e-6 * rng.normal(size=2)
        states[t] = A @ states[t - 1] + W @ inputs[t] + noise
    weak = replace(PRIOR, row_precision=1e-6 * np.eye(3), scale=1e-12 * np.eye(2))
    sums = transition_sums(states, np.array([0, 400]), inputs, np.concatenate([A, W], axis=1))
    drawn = draw_dynamics(rng, weak, sums)
    close(drawn[0], A, 1e-5)
    close(drawn[1], W, 1e-5)


def test_initial_law_given_first_states(rng):
    states, _ = states_and_inputs(rng)
    prior = NormalInverseWishart(np.ones(2), 2.0, 5.0, np.eye(2))
    expected = prior.condition(states[[0, 5, 6]]).sample(np.random.default_rng(4))
    first = first_sums(states, OFFSETS, states[[0, 5, 6]].mean(axis=0))
    mean, cov = draw_initial(np.random.default_rng(4), prior, first)
    close(mean, expected[0], 1e-10)
    close(cov, expected[1], 1e-10)


def test_exploded_states_are_refused(rng):
    sums = transition_sums(np.full((9, 2), np.inf), OFFSETS, np.zeros((9, 1)), np.ones((2, 3)))
    with pytest.raises(FloatingPointError, match="have they exploded"):
        draw_dynamics(rng, PRIOR, sums)
