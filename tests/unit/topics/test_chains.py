"""Scalar chains against the assembled dense Gaussian, the drifting mean, and slice sampling."""

import numpy as np
import pytest
from oracle.scalar_chains import log_density, log_normalizer
from scipy import stats

from pgmult import DiagonalPotential, MvNormal, NormalInverseWishart
from pgmult.sampling.moves import slice_sample
from pgmult.testing import conditional_ratio, rejects
from pgmult.topics.compiled import chains as compiled
from pgmult.topics.compiled.chains import Counts
from pgmult.topics.priors.chains import ScalarChains
from pgmult.topics.priors.walk import TimedRows, mean_walk


def random_chains(rng, *, num_rows=3, num_times=6, num_chains=4, persistence=1.0):
    """Chains and a potential in which a third of the times see nothing."""
    shape = num_rows, num_times, num_chains
    seen = rng.random(shape) < 0.67
    potential = DiagonalPotential(rng.gamma(0.5, 4.0, shape) * seen, rng.normal(size=shape) * seen)
    prior = ScalarChains(
        rng.normal(size=num_chains), rng.gamma(1.0, 2.0, num_rows), rng.gamma(1.0, 0.5, num_rows),
        num_times, persistence,
    )  # fmt: skip
    return prior, potential


def dense(chains, r, i):
    """The prior of one chain, ``(num_times,)``, from its covariance."""
    a, T = chains.persistence, chains.num_times
    transfer = np.linalg.inv(np.eye(T) - a * np.eye(T, k=-1))
    noise = np.full(T, chains.innovation_var[r])
    noise[0] = chains.initial_var[r]
    cov = transfer @ np.diag(noise) @ transfer.T
    return MvNormal(np.full(T, chains.centre[i]), 0.5 * (cov + cov.T))


@pytest.mark.parametrize("persistence", [1.0, 0.7, 0.0])
@pytest.mark.parametrize("num_times", [1, 2, 6, 9])
def test_normaliser_and_density_are_those_of_the_dense_gaussian(rng, persistence, num_times):
    num_chains = compiled.LANES + 3 if num_times == 6 else 4
    prior, potential = random_chains(
        rng, num_times=num_times, num_chains=num_chains, persistence=persistence
    )
    posterior = prior.condition(potential)
    x = rng.normal(size=prior.shape)
    expected, density = np.zeros((2, 3))
    for r in range(3):
        for i in range(num_chains):
            one = DiagonalPotential(potential.J[r, :, i], potential.h[r, :, i])
            chain = dense(prior, r, i).condition(one)
            expected[r] += chain.log_normalizer()
            density[r] += chain.log_density(x[r, :, i])
    np.testing.assert_allclose(log_normalizer(posterior), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(log_density(posterior, x), density, rtol=1e-10, atol=1e-10)


def test_normaliser_survives_sharp_potentials():
    """A thousand times of precision 1e8 each: products of variances would overflow."""
    J = np.full((1, 1000, 1), 1e8)
    prior = ScalarChains(np.zeros(1), np.array([1e6]), np.array([1e6]), 1000, persistence=0.0)
    posterior = prior.condition(DiagonalPotential(J, np.zeros_like(J)))
    assert log_normalizer(posterior)[0] == pytest.approx(-500.0 * np.log1p(1e14), rel=1e-12)


@pytest.mark.parametrize("persistence", [1.0, 0.6])
def test_draws_have_the_moments_of_the_dense_gaussian(rng, persistence):
    copies, prior = 20_000, random_chains(rng, num_rows=1, num_chains=1, persistence=persistence)
    prior, potential = prior
    many = ScalarChains(
        prior.centre, np.repeat(prior.initial_var, copies), np.repeat(prior.innovation_var, copies),
        prior.num_times, persistence,
    )  # fmt: skip
    one = DiagonalPotential(potential.J[0, :, 0], potential.h[0, :, 0])
    repeated = DiagonalPotential(
        np.tile(potential.J, (copies, 1, 1)), np.tile(potential.h, (copies, 1, 1))
    )
    for chains, law in (
        (many, dense(prior, 0, 0)),
        (many.condition(repeated), dense(prior, 0, 0).condition(one)),
    ):
        x = chains.sample(rng)[:, :, 0]
        white = (x - law.mean()) @ np.linalg.inv(np.linalg.cholesky(law.cov())).T
        assert min(stats.kstest(white[:, t], "norm").pvalue for t in range(6)) > 1e-5
        np.testing.assert_allclose(white.T @ white / copies, np.eye(6), atol=4.5 / np.sqrt(copies))


@pytest.mark.parametrize("num_times", [1, 6])
def test_noise_and_place_undo_each_other(rng, num_times):
    prior, potential = random_chains(rng, num_times=num_times, num_chains=compiled.LANES + 3)
    posterior, x = prior.condition(potential), rng.normal(size=prior.shape)
    np.testing.assert_allclose(posterior.place(posterior.noise_of(x)), x, atol=1e-10)


COUNTS = pytest.mark.parametrize(
    ("centre", "reaching"),
    [(0.5, [5, 0, 3]), (-7.0, [4000, 3000, 5000]), (-3.0, [0, 200, 0]), (6.0, [900, 20, 900])],
    ids=["balanced", "rare", "one time", "common"],
)


def drift_of_slices(centre, reaching, change=lambda taken, reaching: (taken, reaching)):
    """How far slices move averages of chains and counts from their joint law, in errors."""
    rng, copies = np.random.default_rng(3), 4000
    chains = ScalarChains(np.full(copies, centre), np.array([2.0]), np.array([0.5]), 3, 0.8)
    x = chains.sample(rng)
    tokens = np.broadcast_to(np.array(reaching)[:, None], x.shape[1:])[None]
    taken = rng.binomial(tokens, 1.0 / (1.0 + np.exp(-x)))
    counts = Counts(*(np.ascontiguousarray(n, dtype=float) for n in change(taken, tokens)))
    after = x
    for _ in range(3):
        after = chains.slice(rng, after, counts)

    def statistics(x):
        steps = np.diff(x - centre, axis=1)[0]
        some = [x[0], x[0] ** 2, x[0] * taken[0] / max(reaching), steps**2, steps * taken[0, 1:]]
        return np.concatenate(some)

    change_of = statistics(after) - statistics(x)
    error = change_of.std(axis=1) / np.sqrt(copies)
    return np.abs(change_of.mean(axis=1) / np.where(error > 0.0, error, 1.0)).max()


@pytest.mark.slow
@COUNTS
def test_slices_leave_chains_and_counts_as_they_are(centre, reaching):
    assert drift_of_slices(centre, reaching) < 4.5


@pytest.mark.slow
@COUNTS
def test_slices_of_other_counts_do_not(centre, reaching):
    def one_more(taken, reaching):  # of what is rarer
        return taken + (reaching > 0) * (centre < 1.0), reaching + (reaching > 0)

    assert drift_of_slices(centre, reaching, one_more) > 4.5


@pytest.mark.slow
def test_chains_reach_their_law(rng):
    """From far away, a single time: what a grid says."""
    copies, centre, var, taken, reaching = 4000, -3.0, 4.0, 1, 3000
    chains = ScalarChains(np.full(copies, centre), np.array([var]), np.ones(1), 1)
    x = np.full((1, 1, copies), 8.0)
    counts = Counts(np.full(x.shape, 1.0 * taken), np.full(x.shape, 1.0 * reaching))
    for _ in range(25):
        x = chains.slice(rng, x, counts)
    grid = np.linspace(-30.0, 20.0, 50_001)
    log_density = taken * grid - reaching * np.logaddexp(0.0, grid) - (grid - centre) ** 2 / 2 / var
    cdf = np.cumsum(np.exp(log_density - log_density.max()))
    law = stats.kstest(x[0, 0], lambda at: np.interp(at, grid, cdf / cdf[-1]))
    assert law.pvalue > 1e-5


def test_bad_potentials_are_refused(rng):
    prior, potential = random_chains(rng)
    with pytest.raises(ValueError, match=r"must have shape \(3, 6, 4\)"):
        prior.condition(DiagonalPotential(potential.J[:2], potential.h[:2]))
    with pytest.raises(ValueError, match="J must be non-negative"):
        prior.condition(DiagonalPotential(-potential.J, potential.h))


# ------------------------------------------------------------------ the mean that drifts

NIW = NormalInverseWishart(np.array([0.5, -1.0]), 1.5, 5.0, np.array([[1.0, 0.4], [0.4, 2.0]]))


def timed_rows(rng):
    """Eleven rows at five times; nothing at the second and the last."""
    times = np.array([0, 0, 2, 2, 2, 2, 3, 3, 3, 0, 2])
    return rng.normal(size=(11, 2)) + 0.3 * times[:, None], times


def drift_block(rows, times, drift_var=0.3, *, strength=1.0):
    """Log joint of means and Sigma with the rows, and the posterior that `step` draws from."""
    prior = mean_walk(NIW, drift_var, 5)
    posterior = TimedRows.of(rows, times, 5).posterior(prior)
    step_var = strength * drift_var

    def log_joint(point):
        means, Sigma = point
        steps = MvNormal(np.zeros(2), step_var * Sigma).log_density(np.diff(means, axis=0))
        likelihood = MvNormal(means[times], Sigma).log_density(rows)
        return NIW.log_density(means[0], Sigma) + steps.sum() + likelihood.sum()

    return log_joint, lambda point: posterior.log_density(*point)


def drift_points(rng):
    prior = mean_walk(NIW, 0.5, 5)
    return [prior.sample(rng) for _ in range(6)]


def test_means_and_Sigma_given_rows(rng):
    rows, times = timed_rows(rng)
    conditional_ratio(*drift_block(rows, times), drift_points(rng))
    rejects(conditional_ratio, *drift_block(rows, times, strength=2.0), drift_points(rng))


def test_evidence_of_rows_is_joint_over_posterior(rng):
    rows, times = timed_rows(rng)
    constants = []
    for drift_var in (0.01, 0.3, 20.0):
        log_joint, log_posterior = drift_block(rows, times, drift_var)
        evidence = TimedRows.of(rows, times, 5).log_evidence(NIW, drift_var)
        for point in drift_points(rng):
            constants.append(log_joint(point) - log_posterior(point) - evidence)
    np.testing.assert_allclose(constants, constants[0], rtol=1e-9)


# ------------------------------------------------------------------ slices


def log_gammas(shape):
    """Log densities of logarithms of gamma variables."""
    return lambda x, active: np.where(active, shape * x - np.exp(np.minimum(x, 700.0)), np.nan)


@pytest.mark.parametrize("width", [0.05, 1.0, 30.0])
def test_slices_leave_their_law_invariant(rng, width):
    shape = np.repeat([0.7, 3.0, 40.0], 6000)
    start = np.log(rng.gamma(shape))
    x = slice_sample(rng, log_gammas(shape), start, width)
    assert (x != start).all()
    for a in (0.7, 3.0, 40.0):
        assert stats.kstest(np.exp(x[shape == a]), stats.gamma(a).cdf).pvalue > 1e-5


def test_slices_reach_their_law(rng):
    shape = np.full(6000, 3.0)
    x = np.full(6000, -8.0)
    for _ in range(25):
        x = slice_sample(rng, log_gammas(shape), x, 1.0)
    assert stats.kstest(np.exp(x), stats.gamma(3.0).cdf).pvalue > 1e-5


def test_a_slice_must_start_where_there_is_density(rng):
    with pytest.raises(FloatingPointError, match="must be finite at the start"):
        slice_sample(rng, lambda x, active: np.full(2, -np.inf), np.zeros(2))
