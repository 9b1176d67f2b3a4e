"""Keyed streams: bits against numpy and a plain implementation, variates against their laws."""

import math

import numpy as np
import pytest
from numba import config
from scipy import stats
from scipy.special import digamma, polygamma

from pgmult.compiled import streams
from pgmult.compiled.jit import jit

KEY = np.array([0x0123456789ABCDEF, 0xFEDCBA9876543210], dtype=np.uint64)
FEWER = 100 if config.DISABLE_JIT else 1  # draws, where they are not compiled
SIZE = 400_000 // FEWER


@pytest.mark.parametrize("row", [1, 2, 3, 1000, 2**40, 2**63 - 1])
def test_a_stream_opens_with_the_bits_of_numpys_philox(row):
    # numpy increments its counter before the first block
    expected = np.random.Philox(key=KEY, counter=row - 1).random_raw(4)
    np.testing.assert_array_equal(streams.open_stream(KEY, row), expected)


def test_row_zero_is_the_zero_counter():
    wrapped = np.random.Philox(key=KEY, counter=2**256 - 1).random_raw(4)
    np.testing.assert_array_equal(streams.open_stream(KEY, 0), wrapped)


def plain_xoshiro(words, count):
    """xoshiro256++ in Python integers."""
    mask = 2**64 - 1

    def rotate(x, k):
        return ((x << k) | (x >> (64 - k))) & mask

    s, out = [int(w) for w in words], []
    for _ in range(count):
        out.append((rotate((s[0] + s[3]) & mask, 23) + s[0]) & mask)
        t = (s[1] << 17) & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
    return out


@jit
def fill_words(key, row, out):
    state = streams.open_stream(key, row)
    for i in range(out.size):
        out[i], state = streams.next_uint64(state)


def test_words_are_those_of_xoshiro():
    words = np.empty(1000, dtype=np.uint64)
    fill_words(KEY, 7, words)
    assert words.tolist() == plain_xoshiro(streams.open_stream(KEY, 7), words.size)


def test_neighbouring_rows_and_keys_are_unrelated():
    @jit
    def first_normals(key, out):
        for row in range(out.size):
            out[row], _ = streams.normal(streams.open_stream(key, row))

    x, y = np.empty(SIZE // 4), np.empty(SIZE // 4)
    first_normals(KEY, x)
    first_normals(KEY + np.array([1, 0], dtype=np.uint64), y)
    assert stats.kstest(x, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 4.5 / math.sqrt(x.size)
    assert abs(np.corrcoef(x, y)[0, 1]) < 4.5 / math.sqrt(x.size)


@jit
def fill_uniform(key, out):
    state = streams.open_stream(key, 0)
    for i in range(out.size):
        out[i], state = streams.uniform(state)


@jit
def fill_normal(key, out):
    state = streams.open_stream(key, 0)
    for i in range(out.size):
        out[i], state = streams.normal(state)


@jit
def fill_exponential(key, out):
    state = streams.open_stream(key, 0)
    for i in range(out.size):
        out[i], state = streams.exponential(state)


@jit
def fill_gamma(key, shape, out):
    state = streams.open_stream(key, 0)
    for i in range(out.size):
        out[i], state = streams.gamma(shape, state)


@jit
def fill_log_gamma(key, shape, out):
    state = streams.open_stream(key, 0)
    for i in range(out.size):
        out[i], state = streams.log_gamma(shape, state)


def draws(fill, *arguments, size=SIZE):
    out = np.empty(size)
    fill(KEY, *arguments, out)
    return out


def assert_law(x, law):
    """Kolmogorov-Smirnov over the body and over each tail, and four moments."""
    size = x.size
    assert stats.kstest(x, law.cdf).pvalue > 1e-4
    mean, variance, skewness, excess = (float(m) for m in law.stats(moments="mvsk"))
    assert abs(x.mean() - mean) < 4.5 * math.sqrt(variance / size)
    squares = (x - mean) ** 2
    error = variance * math.sqrt((excess + 2.0) / size)
    assert abs(squares.mean() - variance) < 4.5 * error
    for level in (1e-2, 1e-3, 1e-4):
        for tail in (x < law.ppf(level), x > law.isf(level)):
            assert abs(tail.sum() - size * level) < 4.5 * math.sqrt(size * level) + 1.0
    assert np.isfinite(skewness)


def test_uniform():
    x = draws(fill_uniform)
    assert_law(x, stats.uniform())
    assert x.min() > 0.0
    assert x.max() < 1.0


@pytest.mark.parametrize(
    ("fill", "law", "tail_start"),
    [(fill_normal, stats.norm(), 3.6541528853610088), (fill_exponential, stats.expon(), 7.697)],
)
def test_ziggurats_and_their_tails(fill, law, tail_start):
    x = draws(fill)
    assert_law(x, law)
    many = draws(fill, size=6_000_000 // FEWER)
    tail = np.abs(many[np.abs(many) > tail_start])
    share = law.sf(tail_start) * (2.0 if law.a < 0.0 else 1.0)
    assert abs(tail.size - many.size * share) < 4.5 * math.sqrt(many.size * share)
    beyond = stats.kstest(tail, lambda t: 1.0 - law.sf(t) / law.sf(tail_start))
    assert beyond.pvalue > 1e-4
    # the strips are many and narrow: a fine histogram sees each edge
    cells = 2000 // FEWER
    quantiles = law.ppf(np.arange(1, cells) / cells)
    counts = np.bincount(np.searchsorted(quantiles, many), minlength=cells)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_normal_is_symmetric():
    x = draws(fill_normal)
    assert abs((x > 0.0).mean() - 0.5) < 4.5 * 0.5 / math.sqrt(x.size)
    assert stats.kstest(np.abs(x[x > 0.0]), stats.halfnorm.cdf).pvalue > 1e-4
    assert stats.kstest(np.abs(x[x < 0.0]), stats.halfnorm.cdf).pvalue > 1e-4


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 1.5, 50.0, 1e6])
def test_gamma(shape):
    assert_law(draws(fill_gamma, shape), stats.gamma(shape))


@pytest.mark.parametrize("shape", [1e-6, 0.05, 1.0, 50.0])
def test_log_gamma(shape):
    x = draws(fill_log_gamma, shape)
    assert np.isfinite(x).all()
    error = math.sqrt(polygamma(1, shape) / x.size)
    assert abs(x.mean() - digamma(shape)) < 4.5 * error
    law = stats.loggamma(shape)
    if shape >= 0.05:  # scipy's own distribution function is a nan below
        assert stats.kstest(x, law.cdf).pvalue > 1e-4
    else:  # -log(variate) * shape is nearly a unit exponential
        assert stats.kstest(-x * shape, "expon").pvalue > 1e-4
