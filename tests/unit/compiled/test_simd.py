"""Lanes against numpy, lane by lane."""

import numpy as np
import pytest

from pgmult.compiled import simd
from pgmult.compiled.jit import jit


@jit
def functions(x, y, exponentials, changes, sums, counts, single):
    for i in range(0, x.size, simd.WIDTH):
        a, b = simd.load(x, i), simd.load(y, i)
        simd.store(exponentials, i, simd.exp_negative(simd.minus_absolute(a)))
        simd.store(changes, i, simd.softplus_change(a, b))
        simd.store(sums, i, simd.running_sums(a))
        simd.store(single, i, simd.narrow(a))
        simd.store(y, i, simd.widen(simd.load(single, i)))
        counts[i] = simd.count_up_to(a, b)
        counts[i + 1] = simd.last(a) == x[i + simd.WIDTH - 1]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 200.0])
def test_functions_of_lanes(scale):
    x, y = scale * np.random.default_rng(0).standard_normal((2, 800))
    y[::5] = x[::5]
    exponentials, changes, sums, counts = np.zeros((4, 800))
    single, widened = np.zeros(800, dtype=np.float32), y.copy()
    functions(x, widened, exponentials, changes, sums, counts, single)
    np.testing.assert_array_equal(single, x.astype(np.float32))
    np.testing.assert_array_equal(widened, single.astype(np.float64))
    np.testing.assert_allclose(exponentials, np.exp(-np.minimum(np.abs(x), 700.0)), rtol=5e-16)
    expected = np.logaddexp(0.0, y) - np.logaddexp(0.0, x)
    np.testing.assert_allclose(changes, expected, rtol=2e-13, atol=4e-16 * (1.0 + scale))
    eights = x.reshape(-1, simd.WIDTH)
    np.testing.assert_allclose(sums, eights.cumsum(axis=1).ravel(), atol=1e-13 * scale)
    np.testing.assert_array_equal(counts[:: simd.WIDTH], (x <= y).reshape(-1, 8).sum(axis=1))
    assert (counts[1 :: simd.WIDTH] == 1.0).all()
