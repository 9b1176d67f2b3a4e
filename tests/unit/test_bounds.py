"""Expectations of log sum exp: derivatives, sides of bounds, and the exact one by other means."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from pgmult.inference.bounds import DENSE_LOG_SUM_EXP, LOG_SUM_EXP, SOFTPLUS, tilted_by
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


def check_bounds(method, mean, var):
    exact = LOG_SUM_EXP["quadrature"].expect(mean, var)[0]
    assert (method.expect(mean, var)[0] >= exact - 1e-8 * (1.0 + np.abs(exact))).all()


@pytest.mark.parametrize("size", [2, 3, 10, 100])
@pytest.mark.parametrize("var", VARIANCES)
def test_bounds_are_never_below(size, var):
    mean, v = moments(size, var)
    for name, method in LOG_SUM_EXP.items():
        if name != "quadrature" and method.is_bound:
            check_bounds(method, mean, v)


def test_an_expansion_is_no_bound():
    """What the check above is for: the delta method is on both sides."""
    assert not LOG_SUM_EXP["taylor"].is_bound
    rejects(check_bounds, LOG_SUM_EXP["taylor"], *moments(3, 10.0))


@pytest.mark.parametrize("var", VARIANCES)
def test_quadrature_beside_simulation(var):
    mean, v = moments(5, var)
    rng = np.random.default_rng(3)
    x = mean + np.sqrt(v) * rng.normal(size=(20_000, *mean.shape))
    draws = logsumexp(x, axis=-1)
    value, share, _ = LOG_SUM_EXP["quadrature"].expect(mean, v)
    error = draws.std(axis=0) / np.sqrt(len(draws)) + 1e-9
    assert (np.abs(draws.mean(axis=0) - value) < 4.5 * error).all()
    np.testing.assert_allclose(softmax(x, axis=-1).mean(axis=0), share, atol=0.02)
    np.testing.assert_allclose(share.sum(axis=-1), 1.0, atol=1e-9)


@pytest.mark.parametrize("var", VARIANCES)
def test_quadrature_of_two_beside_one_dimension(var):
    """log(e^0 + e^x), by Gauss and Hermite with many nodes where the integrand is tame."""
    mean = np.linspace(-6.0, 6.0, 7)
    value = SOFTPLUS["quadrature"].expect(mean, np.full(7, var))[0]
    u = np.linspace(-12.0, 12.0, 40_001)
    weight = np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi) * (u[1] - u[0])
    exact = np.logaddexp(0.0, mean[:, None] + np.sqrt(var) * u) @ weight
    np.testing.assert_allclose(value, exact, rtol=1e-9)
    pair = np.stack([np.zeros(7), mean], axis=1)
    both = LOG_SUM_EXP["quadrature"].expect(pair, np.stack([np.zeros(7), np.full(7, var)], axis=1))
    np.testing.assert_allclose(both[0], exact, rtol=1e-8)


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
    np.testing.assert_allclose(share.sum(axis=-1), 1.0, atol=1e-9)
    assert (spread >= -1e-12).all()


def test_errors_at_the_paper_s_setting():
    """Knowles and Minka (2011), figure 2 at K = 10, v = 1: log10 of relative errors."""
    rng = np.random.default_rng(6)
    mean, var = rng.uniform(size=(200, 10)), np.ones((200, 10))
    exact = LOG_SUM_EXP["quadrature"].expect(mean, var)[0]
    errors = {
        name: np.log10(np.mean(np.abs(method.expect(mean, var)[0] - exact) / exact))
        for name, method in LOG_SUM_EXP.items()
        if name != "quadrature"
    }
    assert errors["taylor"] < errors["tilted"] + 0.5 < errors["log"]
    assert errors["tilted"] < errors["log"] < errors["quadratic"]
