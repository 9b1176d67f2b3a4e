"""The softmax by quadrature, and bounds of it where rounding hides what a step gains."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from examples.papers.regressions import bounds
from examples.papers.regressions.bounds import LOG_SUM_EXP
from examples.papers.regressions.data import as_counted_rows
from examples.papers.regressions.multinomial_fits import (
    _dense_average,
    _dense_quadrature,
    fit_softmax_regression,
)

RNG = np.random.default_rng(2)
X = RNG.standard_normal((250, 6))
Y = (X @ [2.0, -1.0, 0.0, 0.0, 0.0, 0.0] + RNG.logistic(size=250) > 0.0).astype(int)
THREE = (X[:, :2] @ [[0.0, 2.0, -1.0], [1.0, 0.0, -2.0]] + RNG.gumbel(size=(250, 3))).argmax(axis=1)


@pytest.mark.parametrize("size", [2, 3, 6])
def test_quadrature_of_independent_gaussians_is_one_integral(size):
    rng = np.random.default_rng(size)
    mean, var = rng.normal(size=(20, size)), rng.uniform(0.1, 2.0, size=(20, size))
    exact, probs, curvature = LOG_SUM_EXP["quadrature"].expect(mean, var)
    found = _dense_quadrature(mean, var[:, :, None] * np.eye(size))
    np.testing.assert_allclose(found[0], exact, atol=1e-2)
    np.testing.assert_allclose(found[1], probs, atol=4e-3)
    np.testing.assert_allclose(np.diagonal(found[2], axis1=1, axis2=2), curvature, atol=4e-3)
    fine = _dense_quadrature(mean, var[:, :, None] * np.eye(size), 13)
    np.testing.assert_allclose(fine[0], exact, atol=1e-3)


def test_quadrature_of_correlated_gaussians_is_an_average_over_draws():
    root = RNG.normal(size=(4, 4, 4))
    mean, cov = RNG.normal(size=(4, 4)), root @ root.swapaxes(1, 2)
    value, probs, curvature = _dense_quadrature(mean, cov)
    noise = RNG.standard_normal((100_000, 4))
    for n in range(4):
        x = mean[n] + noise @ root[n].T
        p = softmax(x, axis=1)
        assert value[n] == pytest.approx(logsumexp(x, axis=1).mean(), abs=0.03)
        np.testing.assert_allclose(probs[n], p.mean(axis=0), atol=0.006)
        expected = 0.5 * (np.diag(p.mean(axis=0)) - p.T @ p / len(p))
        np.testing.assert_allclose(curvature[n], expected, atol=0.004)
    np.testing.assert_allclose(probs, _dense_average(mean, cov), atol=4e-3)


def test_the_best_gaussian_has_the_best_bound():
    data = as_counted_rows(np.column_stack([X[:, :2], np.ones(250)]), THREE)
    fits = [
        fit_softmax_regression(data, method=method, covariance=covariance)
        for method, covariance in (
            ("quadrature", "full"),
            ("tilted", "full"),
            ("quadrature", "class"),
        )
    ]
    assert all(fit.converged for fit in fits)
    assert fits[0].objective > max(fits[1].objective, fits[2].objective)
    two = as_counted_rows(X, Y)
    exact = [
        fit_softmax_regression(two, method=m, covariance="full") for m in ("quadrature", "tilted")
    ]
    assert exact[0].objective > exact[1].objective


def test_the_tilt_search_ends_where_variances_hide_what_a_step_gains(monkeypatch):
    trials = []
    moved = bounds._moved
    monkeypatch.setattr(bounds, "_moved", lambda a, step: trials.append(1) or moved(a, step))
    m, root = RNG.standard_normal((200, 3)), RNG.standard_normal((200, 3, 3))
    bounds.DENSE_LOG_SUM_EXP["tilted"].expect(m, root @ root.swapaxes(1, 2) + 1e12)
    assert len(trials) < 20


def test_the_dense_tilted_bound_sees_differences_only():
    """What all classes share may be huge: rounding must not drown the rest."""
    m, root = RNG.standard_normal((20, 3)), RNG.standard_normal((20, 3, 3))
    cov = root @ root.swapaxes(1, 2)
    value, p, d_cov = bounds.DENSE_LOG_SUM_EXP["tilted"].expect(m, cov)
    shared = bounds.DENSE_LOG_SUM_EXP["tilted"].expect(m + 7.0, cov + 1e8)
    np.testing.assert_allclose(shared[0], value + 7.0, atol=1e-6)
    np.testing.assert_allclose(shared[1], p, atol=1e-6)
    np.testing.assert_allclose(shared[2], d_cov, atol=1e-6)
    assert np.abs(p - softmax(m, axis=1)).max() > 0.01
