"""Expectations of log sum exp: derivatives, sides of bounds, and the exact one by other means."""

import mpmath
import numpy as np
import pytest
from scipy.special import expit, logsumexp, softmax

from examples.papers.regressions.bounds import DENSE_LOG_SUM_EXP, LOG_SUM_EXP, SOFTPLUS, tilted_by
from pgmult.compiled.rows import row_threads
from pgmult.testing import rejects

VARIANCES = [1e-8, 0.01, 1.0, 10.0, 100.0]


def moments(size, var, seed=0):
    rng = np.random.default_rng(seed)
    mean = rng.normal(scale=3.0, size=(12, size))
    mean[0], mean[1] = 0.0, np.linspace(-50.0, 50.0, size)
    return mean, var * rng.uniform(0.2, 1.8, size=mean.shape)


def dense(mean, var, seed=1):
    """Covariances of those variances with correlations."""
    rng = np.random.default_rng(seed)
    size = mean.shape[1]
    roots = np.eye(size) + 0.4 * rng.normal(size=(len(mean), size, size))
    cov = roots @ np.swapaxes(roots, 1, 2)
    sd = np.sqrt(var / np.diagonal(cov, axis1=1, axis2=2))
    return cov * sd[:, :, None] * sd[:, None, :]


def check_derivatives(expect, mean, spread, step):
    value, d_mean, d_spread = expect(mean, spread)
    assert np.isfinite(value).all()
    rng = np.random.default_rng(2)
    for _ in range(3):
        along = rng.normal(size=mean.shape)
        if spread.shape == mean.shape:
            other = rng.normal(size=mean.shape) * spread
        else:
            other = rng.normal(size=spread.shape)
            other = 0.1 * (other + np.swapaxes(other, -1, -2))
            sd = np.sqrt(np.diagonal(spread, axis1=-2, axis2=-1))
            other *= sd[..., :, None] * sd[..., None, :]
        rise = expect(mean + step * along, spread + step * other)[0]
        fall = expect(mean - step * along, spread - step * other)[0]
        axes = tuple(range(value.ndim, spread.ndim))
        promised = (d_mean * along).sum(axis=tuple(range(value.ndim, mean.ndim)))
        promised = promised + (d_spread * other).sum(axis=axes)
        np.testing.assert_allclose((rise - fall) / (2 * step), promised, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("var", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("name", sorted(LOG_SUM_EXP))
def test_derivatives(name, var):
    mean, v = moments(4, var)
    check_derivatives(LOG_SUM_EXP[name].expect, mean, v, 1e-5)


@pytest.mark.parametrize("name", sorted(SOFTPLUS))
def test_derivatives_of_the_binary_case(name):
    mean, v = moments(5, 2.0)
    check_derivatives(SOFTPLUS[name].expect, mean.ravel(), v.ravel(), 1e-5)


@pytest.mark.parametrize("name", sorted(DENSE_LOG_SUM_EXP))
def test_derivatives_with_correlations(name):
    mean, v = moments(4, 1.0)
    check_derivatives(DENSE_LOG_SUM_EXP[name].expect, mean, dense(mean, v), 1e-5)


def check_bounds(methods, mean, var):
    exact = LOG_SUM_EXP["quadrature"].expect(mean, var)[0]
    for method in methods:
        assert (method.expect(mean, var)[0] >= exact - 1e-8 * (1.0 + np.abs(exact))).all()


@pytest.mark.parametrize("size", [2, 3, 10, 100])
@pytest.mark.parametrize("var", VARIANCES)
def test_bounds_are_never_below(size, var):
    bounds = [
        method for name, method in LOG_SUM_EXP.items() if name != "quadrature" and method.is_bound
    ]
    check_bounds(bounds, *moments(size, var))


def test_an_expansion_is_no_bound():
    """What the check above is for: the delta method is on both sides."""
    assert not LOG_SUM_EXP["taylor"].is_bound
    rejects(check_bounds, [LOG_SUM_EXP["taylor"]], *moments(3, 10.0))


@pytest.mark.parametrize("name", sorted(SOFTPLUS))
def test_binary_bounds_are_never_below(name):
    mean, v = moments(6, 5.0)
    method = SOFTPLUS[name]
    exact = SOFTPLUS["quadrature"].expect(mean.ravel(), v.ravel())[0]
    gap = method.expect(mean.ravel(), v.ravel())[0] - exact
    assert method.is_bound == (name != "taylor")
    assert (gap >= -1e-9).all() or not method.is_bound


@pytest.mark.parametrize("name", sorted(DENSE_LOG_SUM_EXP))
def test_bounds_with_correlations(name):
    method = DENSE_LOG_SUM_EXP[name]
    mean, v = moments(4, 3.0)
    cov = dense(mean, v)
    rng = np.random.default_rng(4)
    x = mean + np.einsum("nij,snj->sni", np.linalg.cholesky(cov), rng.normal(size=(20_000, 12, 4)))
    draws = logsumexp(x, axis=-1)
    low = draws.mean(axis=0) - 4.5 * draws.std(axis=0) / np.sqrt(len(draws))
    assert (method.expect(mean, cov)[0] >= low).all() or not method.is_bound
    diagonal = v[:, :, None] * np.eye(4)
    np.testing.assert_allclose(
        method.expect(mean, diagonal)[0], LOG_SUM_EXP[name].expect(mean, v)[0], rtol=1e-9
    )


@pytest.mark.parametrize("var", [0.1, 10.0, 100.0])
def test_tilted_solves_its_equation(var):
    """Where fixed-point iterations diverge, too: Knowles and Minka (2011), equation 12."""
    mean, v = moments(6, var)
    a = tilted_by(mean, v)
    np.testing.assert_allclose(a, softmax(mean + 0.5 * (1.0 - 2.0 * a) * v, axis=-1), atol=1e-9)
    value = LOG_SUM_EXP["tilted"].expect(mean, v)[0]
    rng = np.random.default_rng(5)
    for _ in range(20):
        other = np.abs(a + 0.1 * rng.normal(size=a.shape))
        bound = 0.5 * (other**2 * v).sum(-1) + logsumexp(mean + 0.5 * (1 - 2 * other) * v, -1)
        assert (bound >= value - 1e-9).all()


@pytest.mark.parametrize("var", [1e4, 1e6])
def test_tilted_solves_its_equation_for_vague_weights(var):
    """Predictors of thousands: rounding of V a is 1e-16 of V, and as much that of its softmax."""
    mean, v = moments(6, var)
    mean = mean * np.sqrt(var)
    a = tilted_by(mean, v)
    np.testing.assert_allclose(
        a, softmax(mean + 0.5 * (1.0 - 2.0 * a) * v, axis=-1), atol=1e-13 * var
    )
    cov = dense(mean, v)
    _, p, d_cov = DENSE_LOG_SUM_EXP["tilted"].expect(mean, cov)
    gap = 2.0 * d_cov - (p[:, :, None] * np.eye(6) - p[:, :, None] * p[:, None, :])
    np.testing.assert_allclose(gap, 0.0, atol=1e-13 * var)  # (p - a)(p - a)'


def sums_beside_a_constant(mean, sd):
    """E of log(1 + e^x), of expit(x) and of its derivative, x ~ N(mean, sd^2), by a dense sum."""
    if sd == 0.0:
        return np.logaddexp(0.0, mean), expit(mean), expit(mean) * expit(-mean)
    step = min(0.1 * sd, 0.2)
    x = mean + step * np.arange(-np.ceil(11.0 * sd / step), np.ceil(11.0 * sd / step) + 1.0)
    weight = np.exp(-0.5 * ((x - mean) / sd) ** 2)
    weight /= weight.sum()
    return weight @ np.logaddexp(0.0, x), weight @ expit(x), weight @ (expit(x) * expit(-x))


STANDARD_DEVIATIONS = [0.0, 1e-6, 0.05, 0.12, 0.5, 0.7, 1.5, 3.9, 4.1, 9.9, 10.1, 40.0, 1e3]


def check_two(expect):
    """log(e^x + e^y) = x + log(1 + e^(y - x)): one dimension, whatever the variances."""
    for sd_x in STANDARD_DEVIATIONS:
        for sd_y in STANDARD_DEVIATIONS:
            mean, sd = np.array([0.3, 1.0]), np.array([sd_x, sd_y])
            value, share, spread = sums_beside_a_constant(0.7, np.hypot(sd_x, sd_y))
            found = expect(mean, sd**2)
            np.testing.assert_allclose(found[0], 0.3 + value, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(found[1], [1.0 - share, share], rtol=0, atol=2e-12)
            np.testing.assert_allclose(found[2], 0.5 * spread, rtol=0, atol=1e-11)


def check_one_beside_constants(expect):
    """Constants are one, their log sum exp: the narrow and the wide in one row."""
    constants = np.array([1.0, 0.0, 0.5, -40.0])
    total, p = logsumexp(constants), softmax(constants)
    for sd in STANDARD_DEVIATIONS:
        for m in (0.0, 3.0 * sd, -2.0 * sd):
            value, share, spread = sums_beside_a_constant(m - total, sd)
            square = share - spread  # E expit^2
            others = p * (1.0 - share) - p**2 * (1.0 - 2.0 * share + square)
            found = expect(np.array([m, *constants]), np.array([sd**2, 0.0, 0.0, 0.0, 0.0]))
            scale = 1e-12 * max(1.0, sd)
            np.testing.assert_allclose(found[0], total + value, rtol=1e-12, atol=scale)
            np.testing.assert_allclose(found[1][0], share, rtol=0, atol=2e-12)
            np.testing.assert_allclose(found[1][1:], p * (1.0 - share), rtol=0, atol=2e-12)
            np.testing.assert_allclose(2.0 * found[2], [spread, *others], rtol=0, atol=2e-11)


@pytest.mark.slow
def test_quadrature_beside_sums_in_one_dimension():
    expect = LOG_SUM_EXP["quadrature"].expect
    check_two(expect)
    check_one_beside_constants(expect)


def scaled(factor):
    """Quadrature with derivatives by variances that are a little wrong."""

    def expect(mean, var):
        value, d_mean, d_var = LOG_SUM_EXP["quadrature"].expect(mean, var)
        return value, d_mean, factor * d_var

    return expect


def raised(ratio):
    """Quadrature with small standard deviations raised to a share of the largest."""

    def expect(mean, var):
        largest = var.max(axis=-1, keepdims=True)
        return LOG_SUM_EXP["quadrature"].expect(mean, np.maximum(var, ratio**2 * largest))

    return expect


@pytest.mark.parametrize("expect", [LOG_SUM_EXP["taylor"].expect, scaled(1.0 + 1e-9), raised(1e-4)])
def test_sums_in_one_dimension_refuse_what_is_nearly_right(expect):
    rejects(check_two, expect)
    rejects(check_one_beside_constants, expect)


@pytest.mark.parametrize("sd", [[0.05, 0.6, 1.6], [0.09, 0.11, 0.6], [1.2, 1.2, 1.2]])
def test_quadrature_of_three_beside_a_sum_in_three_dimensions(sd):
    mean, sd = np.array([0.4, 0.0, -1.0]), np.array(sd)
    steps = np.minimum(0.5, 0.25 / sd)
    axes = [step * np.arange(-np.ceil(8.0 / step), np.ceil(8.0 / step) + 1.0) for step in steps]
    z = np.meshgrid(*axes, indexing="ij", sparse=True)
    weight = np.exp(-0.5 * (z[0] ** 2 + z[1] ** 2 + z[2] ** 2))
    weight /= weight.sum()
    terms = [np.exp(m + s * one) for m, s, one in zip(mean, sd, z, strict=True)]
    total = terms[0] + terms[1] + terms[2]
    value, share, spread = LOG_SUM_EXP["quadrature"].expect(mean, sd**2)
    np.testing.assert_allclose(value, (weight * np.log(total)).sum(), rtol=1e-12)
    for k, term in enumerate(terms):
        p = term / total
        np.testing.assert_allclose(share[k], (weight * p).sum(), rtol=1e-11)
        np.testing.assert_allclose(spread[k], 0.5 * (weight * p * (1.0 - p)).sum(), rtol=1e-10)


@pytest.mark.parametrize(("mean", "sd"), [(0.3, 0.25), (-2.0, 2.0), (5.0, 30.0)])
def test_quadrature_beside_thirty_digits(mean, sd):
    with mpmath.workdps(30):
        bend = [-9.0, 9.0]
        places = sorted([mean + sd * z for z in (-14, -5, -2, 0, 2, 5, 14)] + bend)
        exact = mpmath.quad(
            lambda x: mpmath.log1p(mpmath.exp(x)) * mpmath.npdf(x, mean, sd), places
        )
    value = LOG_SUM_EXP["quadrature"].expect(np.array([0.0, mean]), np.array([0.0, sd * sd]))[0]
    np.testing.assert_allclose(value, float(exact), rtol=1e-12)


def test_quadrature_of_one_and_of_none_that_vary():
    expect = LOG_SUM_EXP["quadrature"].expect
    mean, sd = np.array([0.0, 5.0, -1e3, 1e3]), np.array(STANDARD_DEVIATIONS)[:, None]
    alone = np.broadcast_to(mean, (len(sd), 4))[..., None]
    value, share, spread = expect(alone, np.broadcast_to(sd**2, (len(sd), 4))[..., None])
    np.testing.assert_allclose(value, alone[..., 0], rtol=1e-12, atol=3e-13)
    np.testing.assert_allclose(share, 1.0, rtol=1e-11)
    np.testing.assert_allclose(spread, 0.0, atol=2e-11)
    rng = np.random.default_rng(8)
    fixed = rng.normal(scale=10.0, size=(5, 7))
    fixed[0] = 1e3 * np.arange(-3.0, 4.0)
    for var in (0.0, 1e-16):
        value, share, spread = expect(fixed, np.full((5, 7), var))
        p = softmax(fixed, axis=-1)
        np.testing.assert_allclose(value, logsumexp(fixed, axis=-1), rtol=1e-12)
        np.testing.assert_allclose(share, p, atol=2e-12)
        np.testing.assert_allclose(spread, 0.5 * p * (1.0 - p), atol=1e-11)


@pytest.mark.parametrize("size", [2, 5, 100])
def test_quadrature_moves_with_its_means_and_knows_no_order(size):
    rng = np.random.default_rng(9)
    mean = rng.normal(scale=2.0, size=(4, size))
    sd = np.exp(rng.uniform(-4.0, 6.0, size=(4, size)))
    value, share, spread = LOG_SUM_EXP["quadrature"].expect(mean, sd**2)
    np.testing.assert_allclose(share.sum(axis=-1), 1.0, rtol=0, atol=1e-11)
    assert (share >= 0.0).all()
    order = rng.permutation(size)
    moved = LOG_SUM_EXP["quadrature"].expect(mean[:, order] + 700.0, sd[:, order] ** 2)
    np.testing.assert_allclose(moved[0], 700.0 + value, rtol=1e-12)
    np.testing.assert_allclose(moved[1], share[:, order], rtol=0, atol=1e-12)
    np.testing.assert_allclose(moved[2], spread[:, order], rtol=0, atol=1e-12)
    bottom, none = np.full((4, 1), -1e3), np.zeros((4, 1))
    more = LOG_SUM_EXP["quadrature"].expect(np.hstack([mean, bottom]), np.hstack([sd**2, none]))
    np.testing.assert_allclose(more[0], value, rtol=1e-12)
    np.testing.assert_allclose(more[1], np.hstack([share, none]), atol=1e-12)


def test_quadrature_on_any_number_of_threads():
    """And a row in company as alone."""
    rng = np.random.default_rng(10)
    mean = rng.normal(size=(11, 3))
    var = np.exp(rng.uniform(-6.0, 8.0, size=(11, 3)))
    expect = LOG_SUM_EXP["quadrature"].expect
    alone = [np.array(part) for part in zip(*map(expect, mean, var), strict=True)]
    for threads in (1, 2, 3):
        with row_threads(threads, grain=1):
            for part, reference in zip(expect(mean, var), alone, strict=True):
                np.testing.assert_array_equal(part, reference)
    assert expect(mean[:0], var[:0])[1].shape == (0, 3)


def test_quadrature_refuses_what_no_gaussian_has():
    expect = LOG_SUM_EXP["quadrature"].expect
    good = np.ones((2, 3))
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match=r"mean must be finite.* at row 1, column 2"):
            expect(np.where(np.arange(6).reshape(2, 3) == 5, bad, good), good)
    with pytest.raises(ValueError, match=r"var must be finite, got nan at row 0"):
        expect(good, good * np.nan)
    with pytest.raises(ValueError, match=r"var must be non-negative, got -1.0 at row 0"):
        expect(good, -good)


@pytest.mark.parametrize("smallest", [1e-4, 1.0])
@pytest.mark.parametrize("largest", [30.0, 1e3, 1e6])
def test_quadrature_of_wide_and_uneven_predictors(smallest, largest):
    rng = np.random.default_rng(7)
    mean = largest * rng.normal(size=(3, 4))
    sd = largest * np.array([smallest, 1.0, 0.5 * smallest, 0.7]) * np.ones((3, 1))
    value, share, spread = LOG_SUM_EXP["quadrature"].expect(mean, sd**2)
    x = mean + sd * rng.normal(size=(40_000, 3, 4))
    draws, probs = logsumexp(x, axis=-1), softmax(x, axis=-1)
    assert (np.abs(value - draws.mean(axis=0)) < 4.5 * draws.std(axis=0) / 200.0 + 1e-9).all()
    assert (np.abs(share - probs.mean(axis=0)) < 4.5 * probs.std(axis=0) / 200.0 + 1e-4).all()
    np.testing.assert_allclose(share.sum(axis=-1), 1.0, atol=1e-11)
    assert (spread >= -1e-12).all()
