"""The distribution function of the Pólya-gamma law for arrays of any arguments, and fast.

Where x is small, the alternating series of the density integrated term by term; else the Laplace
transform inverted along the parabola w = v0 - v^2 + 2 i a v through the saddlepoint, where the
trapezoid rule converges geometrically (Weideman and Trefethen 2007, "Parabolic and hyperbolic
contours for computing the Bromwich integral"). Beside `tests.oracle.polya_gamma`, which is slow
and less general, and holds it to account.
"""

import numpy as np
from scipy.special import erfcx, log_ndtr

_LEAST_DROP = 42.0  # of the log integrand along the contour: exp(-42) is 6e-19
_SERIES_TERMS = np.arange(1.0, 16.0)
_SIGNS = (-1.0) ** _SERIES_TERMS


def cdf(x, b, c):
    """P(X <= x), X ~ PG(b, c), 0 <= b <= 1e9: shapes broadcast.

    The relative error below the mean is near 1e-12 for b of order 1; it grows like 1e-16 / b for
    small b and 1e-16 b for large b.
    """
    arrays = np.broadcast_arrays(*(np.asarray(array, dtype=float) for array in (x, b, np.abs(c))))
    flat = [array.reshape(-1) for array in arrays]
    result = np.empty(flat[0].size)
    with np.errstate(over="ignore", divide="ignore"):  # far out all is 0 or 1
        for start in range(0, result.size, 256):  # small enough for one matrix of contour nodes
            piece = slice(start, start + 256)
            result[piece] = _cdf(*(array[piece] for array in flat))
    return result.reshape(arrays[0].shape)


def _is_left(x, b):
    """Whether the alternating series has a_1 < 0.1: no cancellation, and few terms."""
    return 1.0 + b > 2.0 * x * np.log(10.0 * (b + 2.0))


def _cdf(x, b, c):
    result = np.where((b == 0.0) & (x >= 0.0), 1.0, 0.0)
    # with b exp(-c) of rounding's size the first term of the series is all of it
    left = (_is_left(x, b) | (b * np.exp(-c) < 1e-17)) & (x > 0.0) & (b > 0.0)
    if left.any():
        result[left] = _cdf_left(x[left], b[left], c[left])
    right = ~left & (x > 0.0) & (b > 0.0)
    if right.any():
        x, b, c = x[right], b[right], c[right]
        pole = 0.25 * c * c
        # clear of the pole by half a standard deviation's worth, about, or one half
        variance = b * np.minimum(1.0 / 24.0, 0.5 / np.maximum(c, 1.0) ** 3)
        clear = np.minimum(0.5 / np.sqrt(variance), 0.5)
        w = _saddlepoint(x, b)
        w = np.where(w < pole - clear, w, np.maximum(w, pole + clear))
        w, nodes, slope, step = _parabola(x, b, w, pole)
        along = w[:, None] - nodes * nodes + 2j * slope * nodes
        values = np.exp(_log_integrand(x, b, w, nodes)) * (slope + 1j * nodes)
        values /= along - pole[:, None]
        values[:, 0] *= 0.5
        height = _log_tilt(x, b, c) + 2.0 * x * w - b * _log_cosh_root(w[:, None] + 0j)[:, 0].real
        integral = 2.0 / np.pi * step * np.exp(height) * values.real.sum(axis=1)
        result[right] = np.clip(np.where(w > pole, integral, 1.0 + integral), 0.0, 1.0)
    return result


def _cdf_left(x, b, c):
    n, by_b, by_c = _SERIES_TERMS, b[:, None], c[:, None]
    first = _log_hitting(x, 0.5 * b, c)
    later = _log_hitting(x[:, None], n + 0.5 * by_b, by_c)
    # far below the mean all are -inf, and so is their ratio
    ratios = np.where(later > -np.inf, later - np.maximum(first, -1e300)[:, None], -np.inf)
    log_terms = _log_series_weights(b) + np.log(by_b) - n * by_c + ratios
    total = np.log1p(np.maximum((_SIGNS * np.exp(np.minimum(log_terms, 700.0))).sum(axis=1), -1.0))
    return np.exp(b * np.log1p(np.exp(-c)) + first + total)


def _log_series_weights(b):
    """Log (b)_n / (n! b) for n = 1, 2, ...: a row for each b. Terms of odd n are subtracted."""
    factors = np.log((_SERIES_TERMS[1:] - 1.0 + b[:, None]) / _SERIES_TERMS[1:])
    return np.hstack([np.zeros((len(b), 1)), np.cumsum(factors, axis=1)])


def _log_hitting(x, level, c):
    """Log P(Brownian motion with drift c has reached `level` by time x): an inverse Gaussian."""
    root = np.sqrt(x)
    ahead = (c * x - level) / root
    reflected = np.log(0.5 * erfcx((level + c * x) / (np.sqrt(2.0) * root))) - 0.5 * ahead * ahead
    return np.logaddexp(log_ndtr(ahead), reflected)


def _log_tilt(x, b, c):
    """Log of cosh(c / 2)^b exp(-c^2 x / 2), the density's factor that depends on c."""
    c = np.maximum(c, 1e-300)
    near = np.log1p(2.0 * np.sinh(0.25 * np.minimum(c, 4.0)) ** 2)
    log_cosh = np.where(c < 4.0, near, 0.5 * c + np.log1p(np.exp(-c)) - np.log(2.0))
    return c * (b * (log_cosh / c) - 0.5 * c * x)


def _saddlepoint(x, b):
    """The w > -pi^2 / 4 where b tanh(sqrt(w)) / (4 sqrt(w)) = x, about: any w nearby would do."""
    target = 4.0 * x / b
    is_left = target < 1.0
    low = np.zeros(x.shape)
    high = np.where(is_left, 1.0 / np.where(is_left, target, 1.0), 0.5 * np.pi)
    for _ in range(40):
        y = 0.5 * (low + high)
        above = np.where(is_left, np.tanh(y) > target * y, np.tan(y) < target * y)
        low, high = np.where(above, y, low), np.where(above, high, y)
    return np.maximum(np.where(is_left, low * low, -low * low), 0.01 - 0.25 * np.pi**2)


def _log_cosh_root(w):
    """Log cosh sqrt(w) for complex w, continuous along a contour around the negative axis."""
    root = np.sqrt(w)
    return root + np.log1p(np.exp(-2.0 * root)) - np.log(2.0)


def _log_integrand(x, b, w, nodes):
    """Log of exp(2 x w) / cosh(sqrt(w))^b along the parabola, relative to its vertex."""
    slope = _slope(w)
    shift = -nodes * nodes + 2j * slope * nodes
    vertex = w[:, None] + 0j
    change = _log_cosh_root(vertex + shift) - _log_cosh_root(vertex)
    return 2.0 * x[:, None] * shift - b[:, None] * change


def _slope(w):
    """a: the integrand is analytic for |Im v| < a, and a little further."""
    return 0.9 * np.sqrt(w + 0.25 * np.pi**2)[:, None]


def _parabola(x, b, w, pole):
    """Vertex, nodes v >= 0 (a row for each element), slope a and step of the trapezoid rule."""
    slope = _slope(w)
    end = np.sqrt(0.5 * _LEAST_DROP / x)[:, None]
    for _ in range(40):
        drop = _log_integrand(x, b, w, end).real
        if (drop < -_LEAST_DROP).all():
            break
        end = np.where(drop < -_LEAST_DROP, end, 1.3 * end)
    fractions = np.linspace(0.0, 1.0, 257)[1:]
    matters = _log_integrand(x, b, w, end * fractions).real > -_LEAST_DROP
    last = np.where(matters, fractions, 0.0).max(axis=1, keepdims=True)
    end = end * np.maximum(last + fractions[0], 2.0 * fractions[0])
    width = np.minimum(0.8 * slope, 0.5 * np.abs(w - pole)[:, None] / slope)
    count = int(np.clip((end * 38.0 / (2.0 * np.pi * width)).max(), 64.0, 8192.0))
    nodes = end * np.linspace(0.0, 1.0, count + 1)
    return w, nodes, slope, (end / count)[:, 0]
