r"""E log sum exp of independent Gaussians, and its derivatives, as one integral a row.

With G of Gumbel's distribution, F_k(u) = P(x_k + G < u) = E exp(-e), e = exp(x_k - u), and P the
product of all F_k,

    E log sum_k exp x_k = E max_k (x_k + G_k) - 0.577... = a - 0.577... + int_a^inf [1 - P(u)] du

for any a below which P is zero. The derivatives by the means are int F_k' prod_{j != k} F_j du with
F_k' = E e exp(-e), and those by the variances half of the same with F_k'' = E e (1 - e) exp(-e).
Since |F_k(u + i y)| <= F_k(u - log cos y), the trapezoid rule errs by some exp(-pi^2 / step) only,
whatever the number of factors. P is zero up to m_k - 8 s_k, for any mean m_k and standard deviation
s_k, and F_k is one from m_k + 8 s_k on, or a little further. So at a distance d above the least a
only those F_k are not one that have s_k > d / 16, which are smooth: nodes u are evenly spaced as
long as that has to be, and from there ever wider apart, O(log s) in number.

At each u the F_k, F_k' and F_k'' of an x_k come from one of four sums, with t = u - m_k, s = s_k:

* where all e of weight are small: 1 - E e + E e^2 / 2 - E e^3 / 6;
* s < 0.1: Gauss and Hermite's nodes;
* s < 10: the trapezoid rule in x with the same step as in u, or a whole fraction of it. exp(-e) is
  needed at differences of nodes alone: sums over x are correlations of weights with vectors;
* s >= 10: Gram and Charlier's series. With c_n the coefficients of Gamma(1 - y) exp(-0.577... y),
  which are E (G - 0.577...)^n / n!, and He_n Hermite's polynomials at z = (t - 0.577...) / s,

      F(t) = Phi(z) - phi(z) sum_n c_n s^-n He_{n-1}(z).
"""

import math

import numpy as np
from scipy.special import zeta

from pgmult.compiled.jit import jit
from pgmult.compiled.simd import WIDTH, add_product, load, splat, store
from pgmult.compiled.vectors import exp_minus

_STEP = 0.32
_REACH = 8.0  # standard deviations
_START = -3.6  # exp(-exp(3.6)) is 1e-16
_TAIL = 31.0  # exp(-31) is 3e-14
_MOMENTS = 8.0  # at this much above twice the variance, E e^4 is exp(-32)
_NARROW, _WIDE = 0.1, 10.0
_BLOCK = 2 * WIDTH  # nodes u that go side by side in `_correlate`
_CHUNK = 256  # nodes u at a time, whole blocks
_MOST_NODES = 2 * math.ceil(_REACH * _WIDE / _STEP) + 1  # nodes x with the step of u
_SWITCH = 40.0  # evenly spaced nodes give way to others over some such number
_ORDERS = 32  # of Gram and Charlier's series

_nodes, _weights = np.polynomial.hermite_e.hermegauss(7)
_HERMITE_NODES, _HERMITE_WEIGHTS = _nodes, _weights / _weights.sum()


def _gumbel_coefficients(count):
    """Taylor coefficients of Gamma(1 - y) exp(-0.577... y) = exp sum_{n >= 2} zeta(n) y^n / n."""
    c = np.zeros(count)
    c[0] = 1.0
    for n in range(2, count):
        c[n] = sum(zeta(k) * c[n - k] for k in range(2, n + 1)) / n
    return c


_GUMBEL = _gumbel_coefficients(_ORDERS)


@jit(within=True)
def _correlate(weights, beyond, count, values, first, last, size, out):
    """Add sum_q ``weights[q] values[:, j + q]`` to ``out[:, j]`` for j < size, three rows at once.

    Values are (0, 0, 0) before column `first` and (1, 0, 0) from `last` on; ``beyond[q]`` is the
    sum of the weights from q on. `size` is a multiple of 16. All is in registers.
    """
    v0, v1, v2 = values[0], values[1], values[2]
    out0, out1, out2 = out[0], out[1], out[2]
    ones = splat(1.0)
    for j in range(0, size, _BLOCK):
        begin = min(max(first - j - _BLOCK + 1, 0), count)
        end = max(min(last - j, count), begin)
        rest = splat(beyond[end])
        a0 = add_product(load(out0, j), rest, ones)
        b0 = add_product(load(out0, j + WIDTH), rest, ones)
        a1, b1 = load(out1, j), load(out1, j + WIDTH)
        a2, b2 = load(out2, j), load(out2, j + WIDTH)
        for q in range(begin, end):
            weight = splat(weights[q])
            a0 = add_product(a0, weight, load(v0, j + q))
            b0 = add_product(b0, weight, load(v0, j + q + WIDTH))
            a1 = add_product(a1, weight, load(v1, j + q))
            b1 = add_product(b1, weight, load(v1, j + q + WIDTH))
            a2 = add_product(a2, weight, load(v2, j + q))
            b2 = add_product(b2, weight, load(v2, j + q + WIDTH))
        store(out0, j, a0)
        store(out0, j + WIDTH, b0)
        store(out1, j, a1)
        store(out1, j + WIDTH, b1)
        store(out2, j, a2)
        store(out2, j + WIDTH, b2)


@jit
def _fill(log_e, powers, start, stop, values):
    """exp(-e), e exp(-e) and e (1 - e) exp(-e) for e = exp(log_e) powers, from start to stop."""
    first_e = math.exp(log_e)
    part = powers[start:stop]
    # rows before parts of them, so that the compiler knows their numbers to stand side by side
    v0, v1, v2 = values[0][start:stop], values[1][start:stop], values[2][start:stop]
    for i in range(part.size):
        e = first_e * part[i]
        v0[i] = exp_minus(e)
        v1[i] = e * v0[i]
        v2[i] = (1.0 - e) * v1[i]


@jit(within=True)
def _by_hermite(t, s, size, powers, values, out):
    """F, F' and F'' at t, t + step, ... for a small standard deviation s."""
    out[:, :size] = 0.0
    for q in range(_HERMITE_NODES.size):
        _fill(s * _HERMITE_NODES[q] - t, powers, 0, size, values)
        weight = _HERMITE_WEIGHTS[q]
        for d in range(3):
            total, value = out[d], values[d]
            for j in range(size):
                total[j] += weight * value[j]


@jit(within=True)
def _by_trapezoids(t, s, step, size, powers, taps, values, out):
    """F, F' and F'' at t, t + step, ...; nodes x of one remainder modulo the step at a time."""
    # normal weights ask for 0.8 s, and exp(-e), which has frequencies of its own, for less
    finest = _STEP if s > 2.0 * _STEP else min(0.5 * _STEP, 0.8 * s)
    parts = math.ceil(step / finest - 1e-9)
    half = math.ceil(_REACH * s / step)
    count = 2 * half + 1
    weights, beyond = taps[0], taps[1]
    out[:, :size] = 0.0
    total = 0.0
    for part in range(parts):
        top = (half + part / parts) * step
        for q in range(count):
            z = (top - q * step) / s
            weights[q] = exp_minus(0.5 * z * z)
        beyond[count] = 0.0
        for q in range(count - 1, -1, -1):
            beyond[q] = beyond[q + 1] + weights[q]
        total += beyond[0]
        first = max(math.floor((top - t + _START) / step), 0)
        last = min(math.ceil((top - t + _TAIL) / step), size + count - 1)
        _fill(top - t, powers, max(first - _BLOCK, 0), max(last, 0) + _BLOCK, values)
        _correlate(weights, beyond, count, values, first, last, size, out)
    scale = 1.0 / total
    for d in range(3):
        sums = out[d]
        for j in range(size):
            sums[j] *= scale


@jit(within=True)
def _by_moments(nodes, mean, s, start, size, out):
    """F, F' and F'' from node `start` on by the first three moments of e."""
    spread = math.exp(s * s)
    half, sixth = spread / 2.0, spread * spread * spread / 6.0
    top = mean + 0.5 * s * s
    part = nodes[start:size]
    below, first, second = out[0][start:size], out[1][start:size], out[2][start:size]
    for j in range(part.size):
        e = exp_minus(part[j] - top)
        e2, e3 = half * e * e, sixth * e * e * e
        below[j] = 1.0 - e + e2 - e3
        first[j] = e - 2.0 * e2 + 3.0 * e3
        second[j] = e - 4.0 * e2 + 9.0 * e3


@jit(within=True)
def _by_gram_charlier(nodes, mean, s, size, values, out):
    """F, F' and F'' at any nodes, for a large standard deviation s."""
    below, first, second = out[0], out[1], out[2]
    z, now, before = values[0], values[1], values[2]
    inverse = 1.0 / s
    for j in range(size):
        z[j] = (nodes[j] - mean - np.euler_gamma) * inverse
        before[j], now[j] = 0.0, 1.0  # He_n / s^n
        below[j], first[j], second[j] = 0.0, 0.0, 0.0
    square = inverse * inverse
    least = 1.0
    for n in range(_ORDERS):
        least *= math.sqrt(max(n, 1)) * inverse
        c, back = _GUMBEL[n], n * square
        for j in range(size):
            after = z[j] * inverse * now[j] - back * before[j]
            below[j] += c * before[j]
            first[j] += c * now[j]
            second[j] += c * after
            before[j], now[j] = now[j], after
        if least < 1e-17:
            break
    for j in range(size):
        density = exp_minus(0.5 * z[j] * z[j]) * (inverse / math.sqrt(2.0 * math.pi))
        below[j] *= -density
        first[j] *= density
        second[j] *= density
    for j in range(size):
        below[j] += 0.5 * math.erfc(-z[j] * math.sqrt(0.5))


@jit(within=True)
def _distribution(nodes, mean, s, step, size, powers, taps, values, out):
    """F, F' and F'' of one class, at nodes that are `step` apart where F is not yet one."""
    if s >= _WIDE:
        _by_gram_charlier(nodes, mean, s, size, values, out)
        return
    moments_from, end = 2.0 * s * s + _MOMENTS, 0.5 * s * s + _TAIL
    t = nodes[0] - mean
    blocks = math.ceil((min(moments_from, end) - t) / (step * _BLOCK))
    start = min(max(blocks, 0) * _BLOCK, size)
    if start > 0 and s < _NARROW:
        _by_hermite(t, s, start, powers, values, out)
    elif start > 0:
        _by_trapezoids(t, s, step, start, powers, taps, values, out)
    if moments_from < end:
        _by_moments(nodes, mean, s, start, size, out)
    else:
        out[0, start:size], out[1:, start:size] = 1.0, 0.0


@jit(reassociate=True)
def _add_products(sums, widths, size, before, others, d_mean, d_var):
    """Add up the integrands at `size` nodes of these widths; returns that of 1 - P."""
    num_classes = sums.shape[0]
    for j in range(size):
        others[j] = 1.0
    for k in range(num_classes):
        below, so_far = sums[k, 0], before[k]
        for j in range(size):
            so_far[j] = others[j]
            others[j] *= below[j]
    total = 0.0
    for j in range(size):
        total += widths[j] * (1.0 - others[j])
        others[j] = widths[j]
    for k in range(num_classes - 1, -1, -1):
        below, first, second, so_far = sums[k, 0], sums[k, 1], sums[k, 2], before[k]
        slope, bend = 0.0, 0.0
        for j in range(size):
            product = others[j] * so_far[j]
            slope += first[j] * product
            bend += second[j] * product
            others[j] *= below[j]
        d_mean[k] += slope
        d_var[k] += bend
    return total


@jit(inline=True)
def _place(i, num_even, growth):
    """Node i in steps, and its width: the first `num_even` are 0, 1, 2, ..."""
    x = i - num_even
    if x <= 0:
        return np.float64(i), 1.0
    switch = math.exp(-_SWITCH / x)
    further = math.exp(x / growth)
    excess = growth * (further - 1.0) - x
    width = switch * (further - 1.0 + excess * _SWITCH / (x * x))
    return i + switch * excess, 1.0 + width


@jit
def expect_rows(worker, start, stop, mean, sd, value, d_mean, d_var):
    """E log sum exp of N(mean, sd^2), and its derivatives by means and by variances.

    Rows of `mean`, `sd`, `d_mean` and `d_var` are ``(num_classes,)``.
    """
    num_classes = mean.shape[1]
    sums = np.empty((num_classes, 3, _CHUNK))
    before, others = np.empty((num_classes, _CHUNK)), np.empty(_CHUNK)
    nodes, widths = np.empty(_CHUNK), np.empty(_CHUNK)
    taps = np.empty((2, _MOST_NODES + 1))
    values = np.empty((3, _CHUNK + _MOST_NODES + _BLOCK))
    powers = np.empty(values.shape[1])
    of_powers = 0.0
    sharpness = 1.0 + 0.15 * math.log(num_classes)  # of a product of many Gaussians'
    growth = 2.0 * _REACH / _STEP * sharpness
    tail = _TAIL + math.log(num_classes)
    for n in range(start, stop):
        m, s = mean[n], sd[n]
        low, high, least = -math.inf, -math.inf, math.inf
        for k in range(num_classes):
            low = max(low, m[k] - _REACH * s[k] + _START)
        for k in range(num_classes):
            top = m[k] + min(0.5 * s[k], _REACH) * s[k] + tail
            high = max(high, top)
            if top > low:  # others are certainly not the largest
                least = min(least, s[k])
        step = _STEP * max(math.floor(least / sharpness), 1)
        if step != of_powers and least < _WIDE:
            of_powers = step
            for i in range(powers.size):
                powers[i] = exp_minus(step * i)
        evenly = min(high - low, 2.0 * _REACH * max(least, _WIDE) + tail - _START)
        num_even = _BLOCK * math.ceil(evenly / (step * _BLOCK))
        d_mean[n], d_var[n] = 0.0, 0.0
        total = 0.0
        i = 0
        while step * _place(i, num_even, growth)[0] < high - low:
            size = min(_CHUNK, num_even - i) if i < num_even else 4 * _BLOCK
            for j in range(size):
                place, width = _place(i + j, num_even, growth)
                nodes[j], widths[j] = low + step * place, step * width
            for k in range(num_classes):
                _distribution(nodes, m[k], s[k], step, size, powers, taps, values, sums[k])
            total += _add_products(sums, widths, size, before, others, d_mean[n], d_var[n])
            i += size
        value[n] = low - 0.5 * step - np.euler_gamma + total
        for k in range(num_classes):
            d_mean[n, k] = max(d_mean[n, k], 0.0)
            d_var[n, k] *= 0.5
