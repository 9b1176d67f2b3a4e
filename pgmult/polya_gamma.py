r"""The Pólya-gamma distribution PG(b, c): draws, moments, density and distribution function.

PG(b, c), b >= 0, is the law whose Laplace transform is

    E exp(-t X) = cosh(c / 2)^b / cosh(sqrt((c^2 / 2 + t) / 2))^b

(Polson, Scott and Windle 2013). It turns logistic likelihoods into Gaussian ones: for
psi real and kappa = a - b / 2,

    exp(a psi) / (1 + exp(psi))^b = 2^-b exp(kappa psi) E exp(-X psi^2 / 2),   X ~ PG(b, 0),

and X given psi is PG(b, psi). b = 0 is a point mass at 0.

>>> import numpy as np
>>> draws = sample(np.random.default_rng(0), np.full(100_000, 3), 1.5)
>>> bool(abs(draws.mean() - mean(3, 1.5)) < 4 * np.sqrt(var(3, 1.5) / draws.size))
True

What is exact, and what is not
------------------------------
``method="auto"`` chooses by the table below, and so does every fused loop in this package. The
error is the largest difference between the distribution functions of PG(b, c) and of what is
drawn, found by inverting the difference of their characteristic functions. 10^7 draws show
differences above 4e-4.

==============================  ==================  =======  ===========================
where                           sampler             error    costs, ns a draw (2.6 GHz)
==============================  ==================  =======  ===========================
abs(c) < 4, b = 1, ..., 4       strips              exact    14-21
abs(c) < 4, b = 5, ..., 8       two of them         exact    26-34
abs(c) < 4, other b < 1         inverse Gaussian    exact    18-50
abs(c) < 4, other 1 < b < 2     both                exact    35-70
abs(c) < 4, other 2 < b < 8     three gamma terms   1.5e-6   40-45
else, b exp(-abs(c)) < 0.3      inverse Gaussian    exact    22-27
else, b < 7000                  two gamma terms     4e-7     32-36
else                            a shifted gamma     1.2e-6   20-28
==============================  ==================  =======  ===========================

"Exact" means up to rounding in double precision. The first three cumulants are always exact.

* *Strips*: the log-concave density of PG(b, c0) for a grid of tilts c0, covered by rectangles of
  equal area (Ahrens 1993), thinned by exp(-(c^2 - c0^2) x / 2); the density is the alternating
  series of Polson, Scott and Windle (2013), decided by a few terms as in Devroye (2009).
* *Inverse Gaussian*: the first term of that series, tilted, as the proposal. Accepts with
  probability (1 + exp(-|c|))^-b.
* *Gamma terms*: PG(b, c) = sum_k Gamma(b) / lambda_k, lambda_k = 2 pi^2 (k + 1/2)^2 + c^2 / 2; the
  leading terms as they are and one shifted gamma with the first three cumulants of the rest. The
  fourth cumulant is off by less than 2e-4 of the squared variance; 10^7 draws show 1.5e-3.

References
----------
Ahrens (1993), "Sampling from general distributions by suboptimal division of domains".
Barndorff-Nielsen (1991), "Modified signed log likelihood ratio".
Devroye (2009), "On exact simulation algorithms for some distributions related to Jacobi theta
functions".
Marsaglia and Tsang (2000), "A simple method for generating gamma variables".
Michael, Schucany and Haas (1976), "Generating random variates using transformations with multiple
roots".
Polson, Scott and Windle (2013), "Bayesian inference for logistic models using Pólya-gamma latent
variables".
Weideman and Trefethen (2007), "Parabolic and hyperbolic contours for computing the Bromwich
integral".
Windle, Polson and Scott (2014), "Sampling Pólya-gamma random variates: alternate and approximate
techniques".
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from pgmult.compiled import polya_gamma as _compiled
from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_choice
from pgmult.core.typing import ArrayLike, BoolArray, FloatArray
from pgmult.core.validate import as_finite, as_generator, as_nonnegative, new_key

__all__ = ["cdf", "cumulants", "kl", "laplace_transform", "logpdf", "mean", "sample", "var"]

_CHUNKS_A_CALL = 1024
_LARGEST_SUM = 1000.0  # methods whose cost is proportional to b stop there
_LEAST_SADDLE = 32.0  # distribution function within 2e-5
_MOST_SKEWNESS = 1.5e-3  # of a normal approximation: distribution function within 1e-4


def sample(
    rng: np.random.Generator,
    b: ArrayLike,
    c: ArrayLike,
    *,
    out: FloatArray | None = None,
    method: str = "auto",
) -> Any:
    """Draws from PG(b, c), one for each element of the broadcast arguments.

    The numbers depend on `rng`, on the arguments and on the method, not on the number of threads.

    Parameters
    ----------
    rng : numpy.random.Generator
    b : array or scalar
        Real numbers >= 0; 0 gives exactly 0.
    c : array or scalar
        Real numbers.
    out : float64 array, optional
        Where to put the draws; of the broadcast shape.
    method : str
        ``"auto"`` is right everywhere. The others refuse arguments outside their validity:

        * ``"devroye"``: integers b <= 1000. Exact, cost proportional to b.
        * ``"alternate"``: b <= 1000. Exact, cost proportional to b.
        * ``"gamma"``: b >= 2, and abs(c) < 4 or b exp(-abs(c)) >= 0.3. Error 1.5e-6 in the
          distribution function.
        * ``"saddle"``: b >= 32. Error 2e-5.
        * ``"normal"``: skewness below 0.0015, so b above 1.7 million. Error 1e-4.

    Returns
    -------
    float64 array of the broadcast shape; a float where all arguments are scalars.

    Raises
    ------
    ValueError
        For negative, nan or infinite arguments, shapes that do not broadcast, an unknown method,
        or arguments outside a method's validity.
    """
    as_generator(rng)
    as_choice(method, "method", ["auto", *_LIMITS])
    b_array, c_array = _broadcast(b, c)
    if out is not None:
        _check_out(out, b_array.shape)
    # kernels compile anew for arrays that may not be written to, as broadcast ones may not
    flat_b = np.require(b_array, requirements=["C", "W"]).reshape(-1)
    flat_c = np.require(c_array, requirements=["C", "W"]).reshape(-1)
    if method == "auto":
        draws = _fill(rng, flat_b, flat_c, _compiled.fill)
    else:
        _refuse(method, b_array, c_array, _LIMITS[method])
        index = _compiled.METHODS.index(method)
        draws = _fill(rng, flat_b, flat_c, _compiled.fill_by_name, index)
    if out is not None:
        out[...] = draws.reshape(b_array.shape)
        return out
    return draws.reshape(b_array.shape) if b_array.ndim else float(draws[0])


def _fill(
    rng: np.random.Generator, b: FloatArray, c: FloatArray, kernel: Callable[..., Any], *method: int
) -> FloatArray:
    """Draws by a compiled kernel, in calls short enough for an interrupt to come between."""
    key = new_key(rng)
    draws = np.empty(b.size)
    for first in range(0, -(-b.size // _compiled.CHUNK), _CHUNKS_A_CALL):
        piece = slice(first * _compiled.CHUNK, (first + _CHUNKS_A_CALL) * _compiled.CHUNK)
        arrays = b[piece], c[piece], draws[piece]
        num_chunks = -(-arrays[0].size // _compiled.CHUNK)
        over_rows(kernel, num_chunks, key, first, *arrays, *method, grain=4)
    return draws


def _broadcast(b: ArrayLike, c: ArrayLike) -> tuple[FloatArray, FloatArray]:
    b_array, c_array = as_nonnegative(b, "b"), as_finite(c, "c")
    try:
        shape = np.broadcast_shapes(b_array.shape, c_array.shape)
    except ValueError:
        raise ValueError(
            f"b and c must broadcast, got shapes {b_array.shape} and {c_array.shape}"
        ) from None
    return np.broadcast_to(b_array, shape), np.broadcast_to(c_array, shape)


def _check_out(out: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(out, np.ndarray) or out.dtype != np.float64:
        kind = out.dtype if isinstance(out, np.ndarray) else type(out).__name__
        raise TypeError(f"out must be a float64 array, got {kind}")
    if out.shape != shape:
        raise ValueError(f"out must have shape {shape}, got {out.shape}")
    if not out.flags.writeable:
        raise ValueError("out must be writable, got a read-only array (pass a copy)")


# Why a method refuses some b > 0 and c: a predicate and the reason

_Limit = tuple[Callable[[FloatArray, FloatArray], BoolArray], str]


def _refuse(method: str, b: FloatArray, c: FloatArray, limits: tuple[_Limit, ...]) -> None:
    for is_outside, reason in limits:
        bad = np.asarray(is_outside(b, c) & (b > 0.0))
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            place = f" at index {index if len(index) > 1 else index[0]}" if index else ""
            raise ValueError(
                f"method {method!r} refuses b = {b[index]:g}, c = {c[index]:g}{place}: {reason}"
                " (use method='auto')"
            )


def _is_too_skew(b: FloatArray, c: FloatArray) -> BoolArray:
    _, second, third, _ = cumulants(np.where(b > 0.0, b, 1.0), c)
    return np.asarray(third > _MOST_SKEWNESS * second**1.5)


def _has_no_lead(b: FloatArray, c: FloatArray) -> BoolArray:
    tilt = np.abs(c)
    is_thin = b * np.exp(-tilt) < _compiled.LEAST_REJECTION
    return np.asarray((tilt >= _compiled.LARGEST_TILT) & is_thin)


_IS_LARGE: _Limit = (lambda b, c: b > _LARGEST_SUM, "its cost is proportional to b, up to 1000")
_LIMITS: dict[str, tuple[_Limit, ...]] = {
    "devroye": ((lambda b, c: b != np.floor(b), "it needs an integer b"), _IS_LARGE),
    "alternate": (_IS_LARGE,),
    "gamma": (
        (lambda b, c: b < 2.0, "it is right to 1.5e-6 from b = 2 on only"),
        (_has_no_lead, "the first of the gamma terms do not lead there"),
    ),
    "saddle": ((lambda b, c: b < _LEAST_SADDLE, "it is right to 2e-5 from b = 32 on only"),),
    "normal": ((_is_too_skew, "PG(b, c) is too skew there to be called normal"),),
}


# Moments. With w = (c / 2)^2 and g(w) = log cosh sqrt(w), the cumulant generating function is
# b (g(w) - g(w - t / 2)), so cumulant j is -b (-1/2)^j times derivative j of g at w.

_SMALL_TILT = 1.5
_DERIVATIVES = [np.polynomial.polynomial.polyder(_compiled.LOG_COSH, j) for j in range(5)]


def _by_tilt(c: FloatArray, order: int, far: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """-(-1/2)^order times derivative `order` of g: by its Taylor series for small c, else `far`."""
    c = np.abs(c)
    is_small = c < _SMALL_TILT
    small = np.where(is_small, 0.5 * c, 0.0)
    series = np.polynomial.polynomial.polyval(small * small, _DERIVATIVES[order])
    large = far(np.where(is_small, 2.0, c))
    return np.asarray(np.where(is_small, -((-0.5) ** order) * series, large))


def _tanh_and_sech2(c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """tanh(c / 2) and sech(c / 2)^2, c > 0, without overflow."""
    e = np.exp(-c)
    return (1.0 - e) / (1.0 + e), 4.0 * e / (1.0 + e) ** 2


def _far_first(c: FloatArray) -> FloatArray:
    t, _ = _tanh_and_sech2(c)
    return 0.5 * t / c


def _far_second(c: FloatArray) -> FloatArray:
    t, s = _tanh_and_sech2(c)
    return 0.25 / c / c * (2.0 * t / c - s)


def _far_third(c: FloatArray) -> FloatArray:
    t, s = _tanh_and_sech2(c)
    return 0.25 / c / c / c * ((6.0 * t / c - 3.0 * s) / c - t * s)


def _far_fourth(c: FloatArray) -> FloatArray:
    t, s = _tanh_and_sech2(c)
    inner = ((120.0 * t / c - 60.0 * s) / c - 24.0 * t * s) / c + 2.0 * s * s - 4.0 * t * t * s
    return 0.0625 / c / c / c / c * inner


def mean(b: ArrayLike, c: ArrayLike) -> FloatArray:
    """E X = b tanh(c / 2) / (2 c), b / 4 at c = 0: shapes broadcast."""
    b_array, c_array = _broadcast(b, c)
    return b_array * _by_tilt(c_array, 1, _far_first)


def var(b: ArrayLike, c: ArrayLike) -> FloatArray:
    """Var X = b (sinh c - c) / (4 c^3 cosh(c / 2)^2), b / 24 at c = 0: shapes broadcast."""
    b_array, c_array = _broadcast(b, c)
    return b_array * _by_tilt(c_array, 2, _far_second)


def cumulants(b: ArrayLike, c: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The first four cumulants: mean, variance, third and fourth; shapes broadcast."""
    b_array, c_array = _broadcast(b, c)
    third = b_array * _by_tilt(c_array, 3, _far_third)
    fourth = b_array * _by_tilt(c_array, 4, _far_fourth)
    return mean(b_array, c_array), var(b_array, c_array), third, fourth


def _log_cosh(c: FloatArray) -> FloatArray:
    """Log cosh(c / 2), to full relative precision near 0."""
    c = np.abs(c)
    return -_by_tilt(c, 0, lambda x: -(0.5 * x + np.log1p(np.exp(-x)) - np.log(2.0)))


def kl(b: ArrayLike, c: ArrayLike) -> FloatArray:
    """KL(PG(b, c) || PG(b, 0)) = b (log cosh(c / 2) - c tanh(c / 2) / 4) >= 0.

    What mean-field bounds pay for each augmented binomial; b c^4 / 192 near c = 0.
    """
    b_array, c_array = _broadcast(b, c)
    c_array = np.abs(c_array)
    is_small = c_array < _SMALL_TILT
    # g(w) - w g'(w): no cancellation term by term
    weights = _compiled.LOG_COSH * (1.0 - np.arange(_compiled.LOG_COSH.size))
    w = (0.5 * np.where(is_small, c_array, 0.0)) ** 2
    far = np.where(is_small, 2.0, c_array)
    t, _ = _tanh_and_sech2(far)
    large = 0.25 * far * (2.0 - t) + np.log1p(np.exp(-far)) - np.log(2.0)
    small = np.polynomial.polynomial.polyval(w, weights)
    return np.asarray(b_array * np.where(is_small, small, large))


def laplace_transform(t: ArrayLike, b: ArrayLike, c: ArrayLike) -> FloatArray:
    """E exp(-t X) = (cosh(c / 2) / cosh(sqrt(c^2 + 2 t) / 2))^b, t >= 0: shapes broadcast."""
    t_array = as_nonnegative(t, "t")
    b_array, c_array = _broadcast(b, c)
    near = np.abs(c_array)
    far = np.hypot(near, np.sqrt(2.0 * t_array))
    # (near - far) / 2 without cancellation
    slope = np.divide(-t_array, far + near, out=np.zeros(far.shape), where=far > 0.0)
    rest = np.log1p(np.exp(-near)) - np.log1p(np.exp(-far))
    return np.asarray(np.exp(b_array * (slope + rest)))


# Density and distribution function. Where x is small, the alternating series of the density; else
# the Laplace transform inverted along the parabola w = v0 - v^2 + 2 i a v through the saddlepoint,
# where the trapezoid rule converges geometrically (Weideman and Trefethen 2007).

_LEAST_DROP = 42.0  # of the log integrand along the contour: exp(-42) is 6e-19
_HUGE = 1e9  # from here on rounding of the contour's height is worse than Edgeworth's series
_SERIES_TERMS = np.arange(1.0, 16.0)
_SIGNS = (-1.0) ** _SERIES_TERMS


def _is_left(x: FloatArray, b: FloatArray) -> BoolArray:
    """Whether the alternating series has a_1 < 0.1: no cancellation, and few terms."""
    return np.asarray(1.0 + b > 2.0 * x * np.log(10.0 * (b + 2.0)))


def logpdf(x: ArrayLike, b: ArrayLike, c: ArrayLike) -> FloatArray:
    """Log density of PG(b, c) at x: shapes broadcast; -inf for x <= 0.

    The relative error of the density is near 1e-12 for b of order 1; it grows like 1e-16 / b for
    small b and 1e-16 b up to b = 1e9; from there on it is below 1e-8, and 1e-4 of the logarithm far
    out. b = 0 has no density: -inf everywhere but at 0, where inf.
    """
    return _elementwise(x, b, c, _logpdf)


def cdf(x: ArrayLike, b: ArrayLike, c: ArrayLike) -> FloatArray:
    """P(X <= x), X ~ PG(b, c): shapes broadcast. Error as in `logpdf`, relative below the mean."""
    return _elementwise(x, b, c, _cdf)


def _elementwise(
    x: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    function: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
) -> FloatArray:
    """`function` on flat pieces small enough for one matrix of contour nodes."""
    x_array, (b_array, c_array) = as_finite(x, "x"), _broadcast(b, c)
    arrays = np.broadcast_arrays(x_array, b_array, np.abs(c_array))
    flat = [array.reshape(-1) for array in arrays]
    result = np.empty(flat[0].size)
    with np.errstate(over="ignore", divide="ignore"):  # far out all is 0, 1 or -inf
        for start in range(0, result.size, 256):
            piece = slice(start, start + 256)
            result[piece] = function(*(array[piece] for array in flat))
    return result.reshape(arrays[0].shape)


def _log_tilt(x: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """Log of cosh(c / 2)^b exp(-c^2 x / 2), the density's factor that depends on c."""
    c = np.maximum(c, 1e-300)
    return c * (b * (_log_cosh(c) / c) - 0.5 * c * x)


def _logpdf(x: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    result = np.where((b == 0.0) & (x == 0.0), np.inf, -np.inf)
    left = _is_left(x, b) & (x > 0.0) & (b > 0.0)
    if left.any():
        result[left] = _logpdf_left(x[left], b[left], c[left])
    huge = ~left & (x > 0.0) & (b > _HUGE)
    if huge.any():
        result[huge] = _logpdf_huge(x[huge], b[huge], c[huge])
    right = ~(left | huge) & (x > 0.0) & (b > 0.0)
    if right.any():
        x, b, c = x[right], b[right], c[right]
        w, nodes, slope, step = _parabola(x, b, _saddlepoint(x, b), np.inf)
        values = np.exp(_log_integrand(x, b, w, nodes)) * (slope + 1j * nodes)
        values[:, 0] *= 0.5
        height = 2.0 * x * w - b * _log_cosh_root(w[:, None] + 0j)[:, 0].real
        integral = np.maximum(4.0 / np.pi * step * values.real.sum(axis=1), 1e-300)
        result[right] = _log_tilt(x, b, c) + height + np.log(integral)
    return result


def _log_series_weights(b: FloatArray) -> FloatArray:
    """Log (b)_n / (n! b) for n = 1, 2, ...: a row for each b. Terms of odd n are subtracted."""
    factors = np.log((_SERIES_TERMS[1:] - 1.0 + b[:, None]) / _SERIES_TERMS[1:])
    return np.hstack([np.zeros((len(b), 1)), np.cumsum(factors, axis=1)])


def _logpdf_left(x: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    n, by_x, by_b = _SERIES_TERMS, x[:, None], b[:, None]
    log_terms = _log_series_weights(b) + np.log(2.0 * n + by_b) - n * (n + by_b) / (2.0 * by_x)
    terms = _SIGNS * np.exp(log_terms)
    # the exponent of the tilted first term is a square: nothing cancels
    gaussian = -0.125 * ((b - 2.0 * c * x) / np.sqrt(x)) ** 2 + b * np.log1p(np.exp(-c))
    scale = np.log(b) - 0.5 * np.log(8.0 * np.pi) - 1.5 * np.log(x)
    return np.asarray(gaussian + scale + np.log1p(terms.sum(axis=1)))


def _cdf(x: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    result = np.where((b == 0.0) & (x >= 0.0), 1.0, 0.0)
    # with b exp(-c) of rounding's size the first term of the series is all of it
    left = (_is_left(x, b) | (b * np.exp(-c) < 1e-17)) & (x > 0.0) & (b > 0.0)
    if left.any():
        result[left] = _cdf_left(x[left], b[left], c[left])
    huge = ~left & (x > 0.0) & (b > _HUGE)
    if huge.any():
        result[huge] = _cdf_huge(x[huge], b[huge], c[huge])
    right = ~(left | huge) & (x > 0.0) & (b > 0.0)
    if right.any():
        x, b, c = x[right], b[right], c[right]
        pole = 0.25 * c * c
        # clear of the pole by half a standard deviation's worth, or one half
        clear = np.minimum(0.5 / np.sqrt(var(b, c)), 0.5)
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


def _cdf_left(x: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    n, by_b, by_c = _SERIES_TERMS, b[:, None], c[:, None]
    first = _log_hitting(x, 0.5 * b, c)
    later = _log_hitting(x[:, None], n + 0.5 * by_b, by_c)
    # far below the mean all are -inf, and so is their ratio
    ratios = np.where(later > -np.inf, later - np.maximum(first, -1e300)[:, None], -np.inf)
    log_terms = _log_series_weights(b) + np.log(by_b) - n * by_c + ratios
    total = np.log1p(np.maximum((_SIGNS * np.exp(np.minimum(log_terms, 700.0))).sum(axis=1), -1.0))
    return np.asarray(np.exp(b * np.log1p(np.exp(-c)) + first + total))


def _cdf_huge(x: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    z, skewness, _ = _standardised(x, b, c)
    z = np.clip(z, -40.0, 40.0)
    return np.asarray(ndtr(z - skewness * (z * z - 1.0) / 6.0))


def _logpdf_huge(x: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    z, skewness, scale = _standardised(x, b, c)
    near = np.abs(z) < np.minimum(0.01 / np.maximum(skewness, 1e-100), 1e100)
    z = np.where(near, z, 0.0)
    w = _saddlepoint(x, b)
    far = _log_tilt(x, b, c) + 2.0 * x * w - b * _log_cosh_root(w + 0j).real
    log_ratio = np.where(near, skewness * (z * z - 3.0) * z / 6.0 - 0.5 * z * z, far)
    return np.asarray(log_ratio - np.log(np.sqrt(2.0 * np.pi) * scale))


def _standardised(
    x: FloatArray, b: FloatArray, c: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How many standard deviations x is from the mean; the skewness; the standard deviation."""
    first, second, third, _ = cumulants(np.ones_like(b), c)
    second = np.maximum(second, 1e-200)
    scale = np.sqrt(b) * np.sqrt(second)
    return (x - b * first) / scale, third / second**1.5 / np.sqrt(b), scale


def _log_hitting(x: FloatArray, level: FloatArray, c: FloatArray) -> FloatArray:
    """Log P(Brownian motion with drift c has reached `level` by time x): an inverse Gaussian."""
    root = np.sqrt(x)
    ahead = (c * x - level) / root
    reflected = np.log(0.5 * erfcx((level + c * x) / (np.sqrt(2.0) * root))) - 0.5 * ahead * ahead
    return np.asarray(np.logaddexp(log_ndtr(ahead), reflected))


def _saddlepoint(x: FloatArray, b: FloatArray) -> FloatArray:
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


def _log_cosh_root(w: Any) -> Any:
    """Log cosh sqrt(w) for complex w, continuous along a contour around the negative axis."""
    root = np.sqrt(w)
    return root + np.log1p(np.exp(-2.0 * root)) - np.log(2.0)


def _log_integrand(x: FloatArray, b: FloatArray, w: FloatArray, nodes: FloatArray) -> Any:
    """Log of exp(2 x w) / cosh(sqrt(w))^b along the parabola, relative to its vertex."""
    slope = _slope(w)
    shift = -nodes * nodes + 2j * slope * nodes
    vertex = w[:, None] + 0j
    change = _log_cosh_root(vertex + shift) - _log_cosh_root(vertex)
    return 2.0 * x[:, None] * shift - b[:, None] * change


def _slope(w: FloatArray) -> FloatArray:
    """a: the integrand is analytic for |Im v| < a, and a little further."""
    return 0.9 * np.sqrt(w + 0.25 * np.pi**2)[:, None]


def _parabola(
    x: FloatArray, b: FloatArray, w: FloatArray, pole: Any
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
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
