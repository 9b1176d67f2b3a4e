"""The Pólya-gamma law: its moments against slow references, its samplers against their bounds."""

import math
import os
import subprocess
import sys
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from scipy.special import ndtr

from pgmult import polya_gamma
from pgmult.compiled import polya_gamma as compiled
from pgmult.compiled import streams
from pgmult.compiled.jit import jit
from pgmult.compiled.rows import row_threads
from tests.oracle import polya_gamma as oracle
from tests.oracle.polya_gamma_contours import cdf

EDGE_B = [0.0, 1e-8, 0.5, 1.0, 1.0000001, 2.0, 2.7, 13.0, 170.0, 171.0, 1e4, 1e8]
EDGE_C = [0.0, 1e-12, 1.0, -1.0, 50.0, -50.0, 1e3, -1e3, 1e8, -1e8, 5e-324, -2e-310]
KEY = np.array([3, 5], dtype=np.uint64)
FEWER = 100 if config.DISABLE_JIT else 1  # draws, where they are not compiled


# The law


@pytest.mark.parametrize("b", [1e-8, 1.0, 2.7, 1e8])
@pytest.mark.parametrize("c", [0.0, 5e-324, 1e-9, 1e-4, 0.3, 1.4999, 1.5001, 4.0, 40.0, 1e3])
def test_mean_and_variance_match_fifty_digits(b, c):
    mean, variance = oracle.cumulants(b, c)[:2]
    for tilt in (c, -c):
        np.testing.assert_allclose(polya_gamma.mean(b, tilt), mean, rtol=2e-15)
        np.testing.assert_allclose(polya_gamma.var(b, tilt), variance, rtol=3e-15)


def test_moments_at_enormous_tilts():
    np.testing.assert_allclose(polya_gamma.mean(3.0, [1e8, 1e300]), [1.5e-8, 1.5e-300], rtol=1e-15)
    np.testing.assert_allclose(polya_gamma.var(3.0, [1e8, 1e100]), [1.5e-24, 1.5e-300], rtol=1e-15)


@pytest.mark.parametrize("b", [1e-3, 0.5, 1.0, 2.7, 8.0, 40.0, 300.0])
@pytest.mark.parametrize("c", [0.0, 1.0, 6.0, 40.0])
def test_distribution_function_by_contours(b, c):
    mean, variance = oracle.cumulants(b, c)[:2]
    x = mean + math.sqrt(variance) * np.array([-2.5, -1.0, -0.3, 0.0, 0.01, 1.0, 3.0, 6.0])
    x = x[x > 0.0]
    expected = (oracle.series_cdf if b < 4.0 else oracle.characteristic_cdf)(x, b, c)
    np.testing.assert_allclose(cdf(x, b, c), expected, rtol=0, atol=1e-12)


def test_the_two_reference_distribution_functions_agree():
    x = np.linspace(0.05, 3.0, 30)
    for b, c in [(0.5, 0.0), (1.0, 2.0), (3.7, 1.0)]:
        inverted = oracle.characteristic_cdf(x, b, c)
        np.testing.assert_allclose(inverted, oracle.series_cdf(x, b, c), rtol=0, atol=1e-12)


def test_distribution_function_outside_the_support():
    np.testing.assert_array_equal(cdf([-1.0, 0.0], 2.0, 1.0), [0.0, 0.0])
    np.testing.assert_array_equal(cdf([-1.0, 0.0, 1.0], 0.0, 1.0), [0.0, 1.0, 1.0])


def test_far_below_the_mean_of_a_large_shape_nothing_is():
    np.testing.assert_array_equal(cdf([0.3, 100.0], 1e5, 0.5), [0.0, 0.0])


@pytest.mark.parametrize("c", [0.0, 0.5, 10.0, 60.0])
@pytest.mark.parametrize("b", [1e3, 1e5, 1e8, 0.9e9])
def test_large_shapes_against_edgeworths_series(b, c):
    first, second, third, fourth = oracle.cumulants(b, c)
    z = np.linspace(-6.0, 6.0, 25)
    skewness, excess = third / second**1.5, fourth / second**2
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    H3, H5 = z**3 - 3.0 * z, z**5 - 10.0 * z**3 + 15.0 * z
    terms = skewness / 6.0 * (z * z - 1.0) + excess / 24.0 * H3 + skewness**2 / 72.0 * H5
    x = first + math.sqrt(second) * z
    error = 1e-12 + 3.0 * skewness**3 + 1e-15 * min(b * (1.0 + c), 1e9)
    error += 1e-16 * first / math.sqrt(second)  # that x is rounded
    np.testing.assert_allclose(cdf(x, b, c), ndtr(z) - density * terms, atol=error)


def test_finite_arguments_give_numbers():
    b = [0.0, 1e-300, 1e-10, 0.5, 1.0, 10.0, 1e3, 1e5, 1e8, 1e9]
    c = [0.0, 1e-300, 1e-5, 1.4999, 1.5, 10.0, 700.0, 1e5, 1e12, 1e100, 1e300]
    x = [-1.0, 0.0, 1e-300, 1e-20, 1e-5, 0.3, 1.0, 100.0, 1e8, 1e15, 1e100, 1e300]
    b, c, x = (array.ravel() for array in np.meshgrid(b, c, x))
    for near in (x, polya_gamma.mean(b, c), 1.001 * polya_gamma.mean(b, c)):
        below = cdf(near, b, c)
        assert ((below >= 0.0) & (below <= 1.0)).all()
        assert (below[near > 1e9 + 10.0 * b] == 1.0).all()


@pytest.mark.parametrize("moment", [polya_gamma.mean, polya_gamma.var])
def test_moments_of_finite_arguments_are_numbers(moment):
    b = np.array([[0.0], [1e-300], [1e-10], [0.5], [10.0], [1e5], [1e10], [1e100], [1e300]])
    c = [0.0, 1e-300, 1e-5, 1.4999, 1.5, 10.0, 700.0, 1e5, 1e12, 1e100, 1e300]
    assert np.isfinite(moment(b, c)).all()


# What the samplers rest on


def remainder_factor(x, b):
    """R(x; b) in mpmath."""
    total, binomial = mpmath.mpf(1), mpmath.mpf(1)
    for n in range(1, 1000):
        binomial *= (b + n - 1) / mpmath.mpf(n)
        term = binomial * (2 * n + b) / b * mpmath.exp(-n * (n + b) / (2 * x))
        total += (-1) ** n * term
        if n > 4 * x and term < mpmath.mpf(10) ** -45:
            return total
    raise AssertionError("the series did not converge")


def test_the_inverse_gaussian_proposal_dominates():
    """R <= 1 falls in x, rises in b below 1, and stays below the leading exponential of b = 1."""
    with mpmath.workdps(50):
        slack = mpmath.mpf(10) ** -40
        grid = [mpmath.mpf(10) ** (mpmath.mpf(i) / 10) for i in range(-15, 10)]
        above = [mpmath.mpf(1)] * len(grid)
        for b in (8.0, 3.0, 1.0, 0.999, 0.9, 0.5, 0.1, 1e-3, 1e-8):
            values = [remainder_factor(x, mpmath.mpf(b)) for x in grid]
            assert all(later <= earlier + slack for earlier, later in pairwise(values))
            if b <= 1.0:
                assert all(v <= a + slack for v, a in zip(values, above, strict=True))
                above = values
            assert max(values) <= 1
            if b == 1.0:
                for x, value in zip(grid, values, strict=True):
                    bound = (2 * mpmath.pi * x) ** 1.5 * mpmath.exp(
                        1 / (8 * x) - mpmath.pi**2 * x / 2
                    )
                    assert value <= bound + slack


@pytest.mark.parametrize("b", [0.01, 0.7, 1.0, 4.0, 60.0])
def test_the_series_decides_as_the_full_sum_does(b):
    rng = np.random.default_rng(1)
    for x in b * np.array([0.02, 0.1, 0.2, 0.3]) + 0.05:
        exact = float(remainder_factor(mpmath.mpf(x), mpmath.mpf(b)))
        uniforms = [*rng.uniform(size=20), exact - 1e-10, exact + 1e-10]
        for u in uniforms:
            assert compiled._below_series(float(u), b, float(x)) == (u <= exact)


def test_strips_cover_the_density():
    """Rectangles of equal area above the density, chords below it, the tail below its bound."""
    table, shapes = compiled._STRIP_TABLE.astype(float), compiled._SHAPE_TABLE
    row = 0
    for n in range(1, compiled.LARGEST_STRIP + 1):
        for _ in range(compiled._TILTS * n):
            tilt, area, rate = shapes[row]
            inner, outer, slack, slope = table[row, :-1].T
            height = area / np.abs(outer - inner)
            for u in (0.0, 0.3, 0.7, 1.0):
                x = np.maximum(inner + u * (outer - inner), 1e-12)
                ratio = compiled._log_kernel(float(n), tilt, x) - np.log(height)
                assert (ratio <= 1e-9).all()
                assert (ratio >= -(slack + u * slope) - 1e-9)[outer > 0.0].all()
            edges = np.sort(np.concatenate([inner, outer]))
            assert edges[0] == 0.0
            assert edges[-1] == table[row, -1, 0]
            # no gap and no overlap: but for the ends and the mode, edges are shared by two
            left, right = np.minimum(inner, outer), np.maximum(inner, outer)
            np.testing.assert_array_equal(np.sort(left)[1:], np.sort(right)[:-1])
            beyond = edges[-1] + np.linspace(0.0, 1.0, 50)
            bound = np.log(area * rate) - rate * (beyond - edges[-1])
            assert (compiled._log_kernel(float(n), tilt, beyond) <= bound + 1e-9).all()
            row += 1
    assert row == len(table)


def test_gamma_squeeze_is_below_the_acceptance_probability():
    x = np.linspace(-6.0, 12.0, 20_001)
    for d in [5 / 3, 2.0, 3.9, 4.0, 4.0001, 5.0, 8.0, 50.0, 1e4]:
        squeeze = 1.0 - (0.02 / d if d > 4.0 else 0.0331) * x**4
        root = np.maximum(1.0 + x / math.sqrt(9.0 * d), 1e-300)
        log_accept = 0.5 * x**2 + d * (1.0 - root**3 + 3.0 * np.log(root))
        assert (squeeze <= np.exp(np.minimum(log_accept, 0.0)) + 1e-10).all()


def gamma_terms(b, c):
    """Rates of the leading terms, and the shifted gamma, as the compiled sampler takes them."""
    if b >= compiled.LAST_TWO_TERMS:
        first, second, third = compiled._cumulants(c)
        scale = 0.5 * third / second
        shape = second / scale**2
        return np.empty(0), b * shape, scale, b * (first - shape * scale)
    fit = int(b < compiled.LAST_THREE_TERMS)
    z = 2.0 * (c / compiled._WIDEST) ** 2 - 1.0
    shape, scale, shift = (
        np.polynomial.polynomial.polyval(z, row) for row in compiled._REMAINDERS[fit]
    )
    rates = 0.5 * ((math.pi * (2.0 * np.arange(2 + fit) + 1.0)) ** 2 + c * c)
    return rates, b * shape, scale, b * shift


GAMMA_ERRORS = [
    (2.01, 1.5e-6),
    (3.3, 4e-7),
    (7.99, 4e-8),
    (8.01, 4e-7),
    (50.0, 4e-7),
    (1000.0, 4e-7),
    (6999.0, 4e-7),
    (7000.0, 1.2e-6),
    (1e5, 1.2e-6),
    (1e8, 1.2e-6),
]


@pytest.mark.parametrize(("b", "bound"), GAMMA_ERRORS)
def test_gamma_terms_are_as_near_as_documented(b, bound):
    """The largest difference of the distribution functions, and the first four cumulants."""
    frequencies = np.arange(2**13) + 0.5
    points = np.arange(2**14)
    widest = max(compiled.LARGEST_TILT, math.log(b / compiled.LEAST_REJECTION))
    for c in np.linspace(0.0, widest, 9):
        rates, shape, scale, shift = gamma_terms(b, c)
        exact = oracle.cumulants(b, c)
        drawn = [
            math.factorial(j - 1) * (b * (rates**-j).sum() + shape * scale**j) for j in (1, 2, 3, 4)
        ]
        drawn[0] += shift
        sd = math.sqrt(exact[1])
        assert abs(drawn[0] - exact[0]) < 1e-8 * sd
        np.testing.assert_allclose(drawn[1:3], exact[1:3], rtol=1e-10)
        assert abs(drawn[3] - exact[3]) < 2e-4 * sd**4  # 10**7 draws show 1.5e-3
        # in units of the standard deviation, a period of 60
        t = 2.0 * np.pi / (60.0 * sd) * frequencies
        log_phi = b * (
            oracle.log_cosh(0.5 * c + 0j) - oracle.log_cosh(np.sqrt(0.25 * c * c - 0.5j * t))
        )
        log_drawn = 1j * t * shift - shape * np.log1p(-1j * scale * t)
        for rate in rates:
            log_drawn -= b * np.log1p(-1j * t / rate)
        centred = np.exp(log_phi - 1j * t * exact[0]) - np.exp(log_drawn - 1j * t * exact[0])
        waves = np.exp(-1j * np.pi * points / points.size)
        difference = np.imag(np.fft.fft(centred / (np.pi * frequencies), points.size) * waves)
        assert np.abs(difference).max() < bound


# Draws


CELLS = [(0.05, 1.0), (0.9, 0.0), (1.0, 0.0), (1.0, 3.9), (1.6, 1.0), (2.0, 1.1), (3.0, 2.0)]
CELLS += [(2.3, 0.5), (4.0, 0.7), (7.0, 1.7), (6.5, 3.0), (12.0, 0.2), (3.0, 5.0), (900.0, 6.0)]
CELLS += [(40.0, 60.0), (2e4, 2.0)]


def assert_draws(draws, b, c):
    z_mean, z_var, p_value = oracle.discrepancies(draws, b, c)
    assert abs(z_mean) < 4.5
    assert abs(z_var) < 6.0  # heavier tails than a normal's for small b
    assert p_value > 1e-5


@pytest.mark.parametrize(("b", "c"), CELLS)
def test_draws_follow_the_law(b, c):
    rng = np.random.default_rng([7, int(1000 * b), int(10 * c)])
    assert_draws(polya_gamma.sample(rng, np.full(200_000 // FEWER, b), -c), b, c)


def test_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(2)
    size = 50_001 // FEWER
    b, c = rng.integers(0, 30, size=size).astype(float), rng.normal(scale=4.0, size=size)
    b[::7] += 0.3

    def draws(threads):
        with row_threads(threads, grain=1):
            return polya_gamma.sample(np.random.default_rng(3), b, c)

    for threads in (2, 3):
        np.testing.assert_array_equal(draws(threads), draws(1))


def test_a_draw_does_not_depend_on_how_many_follow(monkeypatch):
    def draws(size):
        return polya_gamma.sample(np.random.default_rng(4), np.full(size, 3.0), 1.0)

    whole = draws(5000)
    np.testing.assert_array_equal(draws(1000), whole[:1000])
    monkeypatch.setattr(polya_gamma, "_CHUNKS_A_CALL", 3)
    np.testing.assert_array_equal(draws(5000), whole)
    assert np.unique(whole).size == whole.size  # no stream twice


def test_shapes():
    rng = np.random.default_rng(5)
    assert isinstance(polya_gamma.sample(rng, 2, 1.0), float)
    assert polya_gamma.sample(rng, [1, 2, 3], [[0.0], [1.0]]).shape == (2, 3)
    assert polya_gamma.sample(rng, np.ones((0, 3)), 1.0).shape == (0, 3)
    assert polya_gamma.mean([1, 2], [[0.0], [1.0]]).shape == (2, 2)


@pytest.mark.parametrize(
    ("b", "c", "message"),
    [
        ([1.0, -2.0], 0.0, r"b must be non-negative, got -2\.0 at position 1"),
        ([[1.0, np.nan]], 0.0, r"b must be finite, got nan at row 0, column 1"),
        ([np.inf], 0.0, r"b must be finite, got inf at position 0"),
        (1.0, [0.0, np.nan], r"c must be finite, got nan at position 1"),
        (1.0, -np.inf, "c must be finite, got -inf"),
        ([1.0, 2.0], [1.0, 2.0, 3.0], "must match or broadcast"),
    ],
)
def test_bad_arguments_are_named(b, c, message):
    with pytest.raises(ValueError, match=message):
        polya_gamma.sample(np.random.default_rng(0), b, c)
    with pytest.raises(ValueError, match=message):
        polya_gamma.mean(b, c)


def test_the_generator_must_be_one():
    with pytest.raises(TypeError, match=r"numpy\.random\.Generator"):
        polya_gamma.sample(0, 1.0, 1.0)


@jit
def draw_all(key, b, c, out):
    state = streams.open_stream(key, 0)
    for i in range(out.size):
        out[i], state = compiled.draw(b[i], c[i], state)


@jit
def draw_counts(key, n, c, out):
    state = streams.open_stream(key, 0)
    for i in range(out.size):
        out[i], state = compiled.draw_integer(n[i], c[i], state)


def test_compiled_draws_of_what_no_caller_should_pass():
    b = np.array([np.nan, -1.0, np.inf, 1.0, 0.0, 0.0, 5.0, 0.5, -0.0])
    c = np.array([1.0, 1.0, 1.0, np.nan, 1.0, np.nan, np.inf, -np.inf, 1e308])
    out = np.empty(b.size)
    draw_all(KEY, b, c, out)
    np.testing.assert_array_equal(out, [np.nan] * 4 + [0.0, np.nan, 0.0, 0.0, 0.0])


def test_counts_are_drawn_as_floats_are():
    n = np.arange(5000) % 40
    c = np.linspace(-9.0, 9.0, n.size)
    counts, floats = np.empty(n.size), np.empty(n.size)
    draw_counts(KEY, n, c, counts)
    draw_all(KEY, n.astype(float), c, floats)
    np.testing.assert_array_equal(counts, floats)
    assert (counts[n == 0] == 0.0).all()


shapes = st.sampled_from(EDGE_B) | st.floats(0.0, 1e9) | st.floats(0.0, 20.0)
tilts = st.sampled_from(EDGE_C) | st.floats(-1e9, 1e9) | st.floats(-12.0, 12.0)


@settings(max_examples=400, deadline=None)
@given(b=shapes, c=tilts, seed=st.integers(0, 2**32 - 1))
def test_every_draw_is_within_the_law(b, c, seed):
    draws = polya_gamma.sample(np.random.default_rng(seed), np.full(20, b), c)
    if b == 0.0:
        assert (draws == 0.0).all()
        return
    assert np.isfinite(draws).all()
    assert (draws >= 0.0).all()
    if b >= 1e-100:
        below = cdf(draws, b, c)
        assert (below > 1e-11).all()
        assert (below < 1.0 - 1e-11).all()


@settings(max_examples=100, deadline=None)
@given(b=st.floats(0.0, 1.7e308), c=st.floats(allow_nan=False, allow_infinity=False))
def test_no_arguments_whatever_break_a_draw(b, c):
    out = np.empty(3)
    draw_all(KEY, np.full(3, b), np.full(3, c), out)
    assert (out >= 0.0).all()


SMOKE = """
import warnings
import numpy as np
warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
from pgmult import polya_gamma
b = np.array([0.0, 0.3, 1.0, 1.7, 2.0, 2.5, 4.0, 7.0, 9.5, 30.0, 800.0, 1e5] * 4)
c = np.repeat([0.0, 1.3, -3.9, 30.0], 12)
print(" ".join(repr(float(x)) for x in polya_gamma.sample(np.random.default_rng(1), b, c)))
"""


@pytest.mark.slow
def test_without_compilation_the_draws_are_the_same():
    def draws(**environment):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", SMOKE],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return np.array(done.stdout.split(), dtype=float)

    np.testing.assert_allclose(draws(NUMBA_DISABLE_JIT="1"), draws(), rtol=1e-9)
