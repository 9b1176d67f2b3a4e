"""Linear dynamics against the dense Gaussian at fifty digits, and the draws of their parameters."""

from dataclasses import replace

import numpy as np
import pytest
from oracle.dynamics import dense_moments, posterior_means
from scipy import linalg, stats

from pgmult import (
    DensePotential,
    MatrixNormalInverseWishart,
    MvNormal,
    NormalInverseWishart,
)
from pgmult.compiled.rows import row_threads
from pgmult.sequences.compiled import dynamics as compiled
from pgmult.sequences.priors import dynamics as module
from pgmult.sequences.priors.dynamics import LinearDynamics, input_drive
from pgmult.sequences.updates.dynamics import (
    dynamics_prior,
    first_sums,
    sample_dynamics,
    sample_initial,
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
MOMENT_TOLERANCE = {
    "sharp, of rank one": 1e-8,
    "sharp and nearly singular": 1e-8,
    "unstable and sharp": 1e-4,  # nor does it see states of size 1e4
}


def close(actual, expected, tol=1e-10):
    np.testing.assert_allclose(actual, expected, atol=tol * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize("case", HARD)
def test_normaliser_and_filter_are_those_of_the_dense_gaussian(rng, case):
    dynamics = random_dynamics(rng, **HARD[case])
    log_z, (means, covs) = dynamics.log_normalizer(), dynamics.filter()
    tol = MOMENT_TOLERANCE.get(case, 1e-10)
    for s, last in enumerate(dynamics.offsets[1:] - 1):
        expected_log_z, mean, cov = dense_moments(dynamics, s)
        assert log_z[s] == pytest.approx(expected_log_z, rel=1e-10)
        close(means[last], mean[-1], tol)
        close(covs[last], cov[-1, :, -1], tol)


def test_filtering_is_smoothing_of_what_has_been_seen(rng):
    dynamics = random_dynamics(rng, lengths=(6,))
    means, covs = dynamics.filter()
    for t in range(6):
        seen = slice(0, t + 1)
        potential = DensePotential(dynamics.potential.J[seen], dynamics.potential.h[seen])
        shorter = LinearDynamics(
            dynamics.transition, dynamics.noise_cov, dynamics.initial_mean, dynamics.initial_cov,
            np.array([0, t + 1]), dynamics.drive[seen], potential,
        )  # fmt: skip
        _, mean, cov = dense_moments(shorter, 0)
        close(means[t], mean[-1])
        close(covs[t], cov[-1, :, -1])


def test_density_is_that_of_the_dense_gaussian(rng):
    dynamics = random_dynamics(rng, lengths=(5, 3))
    x = rng.normal(size=dynamics.shape)
    actual = dynamics.log_density(x)
    for s in range(2):
        _, mean, cov = dense_moments(dynamics, s)
        dense = MvNormal(mean.ravel(), cov.reshape(mean.size, mean.size))
        mine = x[slice(*dynamics.offsets[s : s + 2])]
        assert actual[s] == pytest.approx(dense.log_density(mine.ravel()), rel=1e-9)


def test_sequences_are_independent(rng):
    dynamics = random_dynamics(rng, lengths=(4, 1, 6))
    log_z, draw = dynamics.log_normalizer(), dynamics.sample(np.random.default_rng(1))
    potential = dynamics.potential
    h = potential.h.copy()
    h[:4] += 1.0
    other = LinearDynamics(
        dynamics.transition, dynamics.noise_cov, dynamics.initial_mean, dynamics.initial_cov,
        dynamics.offsets, dynamics.drive, DensePotential(potential.J, h),
    )  # fmt: skip
    np.testing.assert_array_equal(other.log_normalizer()[1:], log_z[1:])
    np.testing.assert_array_equal(other.sample(np.random.default_rng(1))[4:], draw[4:])


def test_nothing_seen_is_the_prior(rng):
    dynamics = random_dynamics(rng)
    prior = LinearDynamics(
        dynamics.transition, dynamics.noise_cov, dynamics.initial_mean, dynamics.initial_cov,
        dynamics.offsets,
    )  # fmt: skip
    nothing = DensePotential(np.zeros((11, 3, 3)), np.zeros((11, 3)))
    np.testing.assert_array_equal(prior.log_normalizer(), 0.0)
    np.testing.assert_array_equal(prior.condition(nothing).log_normalizer(), 0.0)
    close(
        prior.sample_around(rng)[1][:2], [prior.initial_mean, prior.transition @ prior.initial_mean]
    )


def test_conditioning_adds_potentials(rng):
    dynamics = random_dynamics(rng)
    potential = dynamics.potential
    twice = dynamics.condition(potential).log_normalizer()
    together = LinearDynamics(
        dynamics.transition, dynamics.noise_cov, dynamics.initial_mean, dynamics.initial_cov,
        dynamics.offsets, dynamics.drive, DensePotential(2.0 * potential.J, 2.0 * potential.h),
    )  # fmt: skip
    np.testing.assert_allclose(twice, together.log_normalizer(), rtol=1e-13)


def test_a_long_chain_stays_positive_definite(rng):
    """A direction nobody sees, one that is hardly noisy, and ten thousand steps."""
    steps = 10_000
    A = np.diag([1.0, 0.999, 0.5, 1.0])
    J = np.zeros((steps, 4, 4))
    J[::7, 0, 0] = 1e6
    J[:, 1:3, 1:3] = 0.3
    dynamics = LinearDynamics(
        A, np.diag([1e-9, 1.0, 1e-4, 1e-9]), np.zeros(4), np.eye(4), np.array([0, steps]),
        potential=DensePotential(J, rng.normal(size=(steps, 4)) * (J.sum(axis=2) > 0)),
    )  # fmt: skip
    covs = dynamics.filter()[1]
    np.testing.assert_array_equal(covs, covs.swapaxes(1, 2))
    assert np.linalg.eigvalsh(covs).min() > 0.0
    assert np.isfinite(dynamics.sample(rng)).all()


# ------------------------------------------------------------------ draws


@pytest.fixture(params=["by blocks", "by short stretches", "by filter"])
def way(request, monkeypatch):
    """Each way of drawing, and stretches so short that chains of a few steps have many joints."""
    if request.param == "by short stretches":
        monkeypatch.setattr(module, "_MIN_STRETCH", 1)
        monkeypatch.setattr(module, "_MAX_STRETCH", 2)
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
def test_draws_have_the_law_of_the_dense_gaussian(rng, way, size):
    dynamics = random_dynamics(rng, lengths=(7,), size=size)
    _, mean, cov = dense_moments(dynamics, 0)
    require_law(many_copies(dynamics, 3000).sample(rng).reshape(3000, 7, size), mean, cov)


def test_draws_under_a_nearly_singular_covariance(rng):
    """Block elimination would lose all digits; the draws are right none the less."""
    dynamics = random_dynamics(rng, lengths=(6,), size=2, least_noise=1e-13)
    copies = many_copies(dynamics, 4000)
    assert copies._sample_by_blocks(np.array([1, 2], dtype=np.uint64)) is None
    _, mean, cov = dense_moments(dynamics, 0)
    draws = copies.sample(rng).reshape(4000, 6, 2)
    z = (draws.mean(axis=0) - mean) / np.sqrt(np.einsum("titi->ti", cov) / 4000)
    assert np.abs(z).max() < 5.0
    moments = np.einsum("sti,suj->tiuj", draws - mean, draws - mean) / 4000
    close(moments, cov, 5.0 / np.sqrt(4000))
    noise = draws[:, 1:] - draws[:, :-1] @ dynamics.transition.T - dynamics.drive[1:]
    least = np.linalg.eigh(dynamics.noise_cov)[1][:, 0]
    assert np.abs(noise @ least).max() < 1e-5  # six standard deviations are 2e-6


def test_threads_do_not_change_draws(rng, way):
    dynamics = random_dynamics(rng, lengths=(30, 7, 1, 12, 40, 3, 3, 9, 21, 2))
    alone = dynamics.sample(np.random.default_rng(3)), *dynamics.filter()
    for threads in (2, 3):
        with row_threads(threads, grain=1):
            together = dynamics.sample(np.random.default_rng(3)), *dynamics.filter()
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one, other)


def test_stretches_cover_every_step_once(rng):
    for lengths in ([1], [5], [1000], [40_000, 3], [1, 2, 3], rng.integers(1, 90, 100)):
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        cut = module._stretches(offsets)
        assert (cut.begins < cut.ends).all()
        np.testing.assert_array_equal(cut.begins[1:], cut.ends[:-1])
        np.testing.assert_array_equal(cut.begins[cut.parts[:-1]], offsets[:-1])
        np.testing.assert_array_equal(np.unique(cut.lanes), np.arange(len(cut.begins)))
        assert (np.diff((cut.ends - cut.begins)[cut.lanes]) <= 0).all()


def test_inputs_drive_all_but_first_steps(rng):
    inputs, weights = rng.normal(size=(5, 2)), rng.normal(size=(3, 2))
    drive = input_drive(inputs, weights, np.array([0, 2, 5]))
    expected = inputs @ weights.T
    expected[[0, 2]] = 0.0
    close(drive, expected, 1e-15)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transition": np.eye(3)}, r"transition must have shape \(2, 2\), got \(3, 3\)"),
        ({"transition": np.full((2, 2), np.nan)}, "transition must be finite"),
        ({"noise_cov": np.diag([1.0, 0.0])}, "noise_cov must be positive definite"),
        ({"noise_cov": np.eye(1)}, "noise_cov must be 2 x 2"),
        ({"initial_cov": np.array([[1.0, 0.5], [0.2, 1.0]])}, "initial_cov must be symmetric"),
        ({"initial_mean": np.zeros((2, 1))}, r"initial_mean must have shape \(D,\)"),
        ({"offsets": np.array([0, 2, 2, 4])}, "offsets must increase, but sequence 1 is 2:2"),
        ({"offsets": np.array([1, 4])}, "offsets must begin with 0, got 1"),
        ({"offsets": np.array([0.0, 4.0])}, "must be a vector of num_sequences"),
        ({"offsets": np.array([0])}, "must be a vector of num_sequences"),
        ({"drive": np.zeros((4, 3))}, r"drive must have shape \(4, 2\)"),
        ({"drive": np.full((4, 2), np.inf)}, "drive must be finite"),
    ],
)
def test_bad_dynamics_are_refused(change, message):
    arguments = {
        "transition": np.eye(2), "noise_cov": np.eye(2), "initial_mean": np.zeros(2),
        "initial_cov": np.eye(2), "offsets": np.array([0, 4]), **change,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        LinearDynamics(**arguments)


def set_at(array, place, value):
    changed = array.copy()
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("J_change", "h_change", "message"),
    [
        (((3, 0, 1), np.nan), None, "J and h must be finite, they are not at step 3"),
        (None, ((7, 2), np.inf), "J and h must be finite, they are not at step 7"),
        (((5, 0, 1), 9.0), None, "J must be symmetric, it is not at step 5"),
        (((2, 1, 1), -1.0), None, "it has a negative diagonal at step 2"),
    ],
)
def test_bad_potentials_are_refused(rng, J_change, h_change, message):
    dynamics = random_dynamics(rng, rank=3)
    J = set_at(dynamics.potential.J, *J_change) if J_change else dynamics.potential.J
    h = set_at(dynamics.potential.h, *h_change) if h_change else dynamics.potential.h
    with pytest.raises(ValueError, match=message):
        dynamics.condition(DensePotential(J, h))


def test_bad_shapes_and_indefinite_potentials_are_refused(rng):
    dynamics = random_dynamics(rng, drive=False)
    J, h = dynamics.potential.J, dynamics.potential.h
    with pytest.raises(ValueError, match=r"J of shape \(11, 3, 3\)"):
        dynamics.condition(DensePotential(J[:5], h[:5]))
    indefinite = J.copy()
    indefinite[8] = np.ones((3, 3)) - 40.0 * (1.0 - np.eye(3))
    bad = dynamics.condition(DensePotential(indefinite, h))
    for method in (bad.log_normalizer, bad.filter, lambda: bad.sample(rng)):
        with pytest.raises(ValueError, match="step 8 has no Gaussian law"):
            method()
    with pytest.raises(ValueError, match=r"x must have shape \(11, 3\)"):
        dynamics.log_density(np.zeros((3, 3)))
    with pytest.raises(TypeError, match="rng must be a numpy"):
        dynamics.sample(7)


def test_exploding_chains_are_refused():
    dynamics = LinearDynamics(
        np.array([[1e200]]), np.eye(1), np.ones(1), np.eye(1), np.array([0, 4])
    )
    for method in (dynamics.log_normalizer, lambda: dynamics.sample(np.random.default_rng(0))):
        with pytest.raises(ValueError, match=r"step 1 has no Gaussian law.*has the chain exploded"):
            method()


# ------------------------------------------------------------------ draws of the parameters

PRIOR = dynamics_prior(2, 1, persistence=0.4, noise_var=0.7)
OFFSETS = np.array([0, 5, 6, 9])


def states_and_inputs(rng):
    return rng.normal(size=(9, 2)), rng.normal(size=(9, 1))


def dynamics_block(states, inputs, about):
    """Log joint of (A, W, Q) with the states, and the posterior that `sample_dynamics` draws from.

    The joint comes from `LinearDynamics`, the posterior from the compiled sums.
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
        drive = input_drive(inputs, W, OFFSETS)
        law = LinearDynamics(A, Q, np.zeros(2), np.eye(2), OFFSETS, drive)
        coefficients = np.concatenate([A, W], axis=1).T
        return law.log_density(states).sum() + PRIOR.log_density(coefficients, Q)

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
    moved = sums(states + delta, inputs, OFFSETS)
    e = delta - about[:, :2] @ delta
    shifted = (
        whole[0].shifted(np.array([3.0, -1.0, 0.0]), e), whole[1].shifted(np.zeros(0), delta)
    )  # fmt: skip
    for name in ("zz", "ze", "ee"):
        for i in range(2):
            close(getattr(whole[i], name), sum(getattr(part[i], name) for part in parts), 1e-12)
            close(getattr(moved[i], name), getattr(shifted[i], name), 1e-12)


def test_draws_are_split_as_they_were_stacked(rng):
    """Under a posterior that is a point, the draw is that point: nothing is transposed."""
    A, W = np.array([[0.5, 0.4], [-0.3, 0.2]]), np.array([[1.0], [-2.0]])
    states, inputs = np.zeros((400, 2)), rng.normal(size=(400, 1))
    for t in range(1, 400):
        noise = 1e-6 * rng.normal(size=2)
        states[t] = A @ states[t - 1] + W @ inputs[t] + noise
    weak = replace(dynamics_prior(2, 1, noise_var=1e-12), row_precision=1e-6 * np.eye(3))
    drawn = sample_dynamics(rng, weak, states, np.array([0, 400]), inputs)
    close(drawn[0], A, 1e-5)
    close(drawn[1], W, 1e-5)
    without = sample_dynamics(rng, dynamics_prior(2), states, np.array([0, 400]))
    assert without[1].shape == (2, 0)


def test_initial_law_given_first_states(rng):
    states, _ = states_and_inputs(rng)
    prior = NormalInverseWishart(np.ones(2), 2.0, 5.0, np.eye(2))
    again = prior.condition(states[[0, 5, 6]])
    mean, cov = sample_initial(np.random.default_rng(4), prior, states, OFFSETS)
    expected = again.sample(np.random.default_rng(4))
    close(mean, expected[0], 1e-10)
    close(cov, expected[1], 1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"states": np.zeros((8, 2))}, r"states must have shape \(9, 2\), got \(8, 2\)"),
        ({"inputs": np.zeros((8, 1))}, r"inputs must have shape \(9, num_inputs\)"),
        ({"inputs": np.zeros((9, 2))}, "the prior is of 3 covariates, but states and inputs are 4"),
        ({"inputs": None}, "the prior is of 3 covariates, but states and inputs are 2"),
    ],
)
def test_bad_states_are_refused(rng, change, message):
    arguments = {
        "states": np.zeros((9, 2)), "offsets": OFFSETS, "inputs": np.zeros((9, 1)), **change
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        sample_dynamics(rng, PRIOR, **arguments)


def test_exploded_states_are_refused(rng):
    states = np.full((9, 2), np.inf)
    with pytest.raises(FloatingPointError, match="have they exploded"):
        sample_dynamics(rng, PRIOR, states, OFFSETS, np.zeros((9, 1)))
    with pytest.raises(FloatingPointError, match="have they exploded"):
        sample_initial(rng, NormalInverseWishart.weak(np.zeros(2)), states, OFFSETS)


def test_bad_first_states_are_refused(rng):
    with pytest.raises(ValueError, match=r"states must have shape \(9, 2\)"):
        sample_initial(rng, NormalInverseWishart.weak(np.zeros(2)), np.zeros((4, 2)), OFFSETS)
    with pytest.raises(TypeError, match="state_dim must be an integer"):
        dynamics_prior(2.5)
    with pytest.raises(ValueError, match="num_inputs must be at least 0"):
        dynamics_prior(2, -1)
