r"""The Pólya-gamma distribution PG(b, c): draws, mean and variance.

PG(b, c), b >= 0, is the distribution whose Laplace transform is

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
The sampler is chosen by the table below, and so it is in every fused loop in this package. The
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
Devroye (2009), "On exact simulation algorithms for some distributions related to Jacobi theta
functions".
Marsaglia and Tsang (2000), "A simple method for generating gamma variables".
Michael, Schucany and Haas (1976), "Generating random variates using transformations with multiple
roots".
Polson, Scott and Windle (2013), "Bayesian inference for logistic models using Pólya-gamma latent
variables".
Windle, Polson and Scott (2014), "Sampling Pólya-gamma random variates: alternate and approximate
techniques".
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pgmult.compiled import polya_gamma as _compiled
from pgmult.compiled.rows import over_rows
from pgmult.core.typing import ArrayLike, FloatArray, Generator
from pgmult.core.validate import as_finite, as_generator, as_nonnegative, common_shape, new_key

__all__ = ["mean", "sample", "var"]

_CHUNKS_A_CALL = 1024


def sample(rng: Generator, b: ArrayLike, c: ArrayLike) -> Any:
    """Draws from PG(b, c), one for each element of the broadcast arguments.

    The numbers depend on `rng` and on the arguments, not on the number of threads.

    Parameters
    ----------
    rng : numpy.random.Generator
    b : array or scalar
        Real numbers >= 0; 0 gives exactly 0.
    c : array or scalar
        Real numbers.

    Returns
    -------
    float64 array of the broadcast shape; a float where all arguments are scalars.

    Raises
    ------
    ValueError
        For negative, nan or infinite arguments, or shapes that do not broadcast.
    """
    as_generator(rng)
    b_array, c_array = _broadcast(b, c)
    # kernels compile anew for arrays that may not be written to, as broadcast ones may not
    flat_b = np.require(b_array, requirements=["C", "W"]).reshape(-1)
    flat_c = np.require(c_array, requirements=["C", "W"]).reshape(-1)
    key = new_key(rng)
    draws = np.empty(flat_b.size)
    # in calls short enough for an interrupt to come between
    for first in range(0, -(-draws.size // _compiled.CHUNK), _CHUNKS_A_CALL):
        piece = slice(first * _compiled.CHUNK, (first + _CHUNKS_A_CALL) * _compiled.CHUNK)
        arrays = flat_b[piece], flat_c[piece], draws[piece]
        num_chunks = -(-arrays[0].size // _compiled.CHUNK)
        over_rows(_compiled.fill, num_chunks, key, first, *arrays, grain=4)
    return draws.reshape(b_array.shape) if b_array.ndim else float(draws[0])


def _broadcast(b: ArrayLike, c: ArrayLike) -> tuple[FloatArray, FloatArray]:
    b_array, c_array = as_nonnegative(b, "b"), as_finite(c, "c")
    shape = common_shape(b=b_array.shape, c=c_array.shape)
    return np.broadcast_to(b_array, shape), np.broadcast_to(c_array, shape)


# Moments. With w = (c / 2)^2 and g(w) = log cosh sqrt(w), the cumulant generating function is
# b (g(w) - g(w - t / 2)), so cumulant j is -b (-1/2)^j times derivative j of g at w.

_SMALL_TILT = 1.5
_DERIVATIVES = [np.polynomial.polynomial.polyder(_compiled.LOG_COSH, j) for j in range(3)]


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


def mean(b: ArrayLike, c: ArrayLike) -> FloatArray:
    """E X = b tanh(c / 2) / (2 c), b / 4 at c = 0: shapes broadcast."""
    b_array, c_array = _broadcast(b, c)
    return b_array * _by_tilt(c_array, 1, _far_first)


def var(b: ArrayLike, c: ArrayLike) -> FloatArray:
    """Var X = b (sinh c - c) / (4 c^3 cosh(c / 2)^2), b / 24 at c = 0: shapes broadcast."""
    b_array, c_array = _broadcast(b, c)
    return b_array * _by_tilt(c_array, 2, _far_second)
