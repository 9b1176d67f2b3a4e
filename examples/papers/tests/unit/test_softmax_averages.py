"""Averages of softmaxes over points, against the same sums in numpy and in other ways."""

import numpy as np
import pytest
from scipy.special import softmax

from examples.papers.regressions.bounds import LOG_SUM_EXP
from examples.papers.regressions.compiled.softmax_averages import average_rows
from examples.papers.regressions.multinomial_fits import _dense_average
from pgmult.compiled.rows import over_rows, row_threads


def case(size, scale, rows=7, seed=0):
    rng = np.random.default_rng(seed)
    mean = scale * rng.normal(size=(rows, size))
    roots = scale * rng.normal(size=(rows, size, size))
    return mean, roots, rng.normal(size=(3, size, 20))


def averages(mean, roots, points):
    out = np.empty((len(mean), mean.shape[1] + 1))
    over_rows(average_rows, len(mean), mean, roots, points, out, grain=1)
    return out


@pytest.mark.parametrize("size", [1, 2, 5, 11])
@pytest.mark.parametrize("scale", [0.0, 1.0, 300.0])
def test_sums(size, scale):
    mean, roots, points = case(size, scale)
    flat = points.swapaxes(1, 2).reshape(-1, size)
    x = mean[:, None] + np.einsum("nij,sj->nsi", roots, np.concatenate([flat, -flat]))
    full = np.concatenate([np.zeros((*x.shape[:2], 1)), x], axis=2)
    expected = softmax(full, axis=2).mean(axis=1)
    found = averages(mean, roots, points)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_threads_do_not_matter():
    data = case(4, 1.0, rows=40)
    with row_threads(1):
        reference = averages(*data)
    for threads in (2, 3):
        with row_threads(threads):
            np.testing.assert_array_equal(averages(*data), reference)


@pytest.mark.parametrize(("sd", "error"), [(0.1, 1e-4), (1.0, 1e-4), (20.0, 3e-3)])
@pytest.mark.parametrize("size", [3, 8])
def test_independent_gaussians_beside_one_integral(size, sd, error):
    mean = np.random.default_rng(1).normal(size=(20, size))
    exact = LOG_SUM_EXP["quadrature"].expect(mean, np.full(mean.shape, sd**2))[1]
    found = _dense_average(mean, np.tile(sd**2 * np.eye(size), (20, 1, 1)))
    np.testing.assert_allclose(found, exact, atol=error)
