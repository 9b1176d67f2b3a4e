"""Has the chain mixed, and how many independent draws is it worth?

The diagnostics of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), "Rank-normalization,
folding, and localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis
16(2). Every chain is cut into halves; draws are replaced by normal scores of their pooled ranks,
so that nothing needs a finite variance:

* `r_hat` compares the variance between and within half chains, of the draws and of their
  distances from the median (the larger of the two); it tends to 1 from above;
* `ess_bulk` is the effective sample size of the normal scores, by Geyer's initial monotone
  sequence of autocovariances pooled over half chains;
* `ess_tail` is the smaller effective sample size of the indicators of the 5 % and 95 % quantiles.

All of these take draws ``(chain, draw, ...)`` and work entry by entry, vectorised, in bounded
memory.

>>> import numpy as np
>>> draws = np.random.default_rng(0).normal(size=(4, 1000, 2))
>>> r_hat(draws).round(2), ess_bulk(draws).shape
(array([1., 1.]), (2,))
"""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from pgmult.core.typing import ArrayLike, BoolArray, FloatArray, IntArray

MIN_DRAWS = 4
"""Draws a chain must have for any of these numbers to be defined."""

R_HAT_LIMIT = 1.01
"""R-hat of a single quantity, above which to look closer."""

_BY_CHANCE = 12.0  # over the effective draws: how far chance lifts the worst R-hat of many
_BATCH = 2**20  # draws worked on at once: 8 MB an intermediate array


class ConvergenceWarning(UserWarning):
    """Some kept values have a large R-hat or a small effective sample size."""


def r_hat(draws: ArrayLike) -> FloatArray:
    """Rank-normalised split R-hat.

    Parameters
    ----------
    draws : array, ``(chain, draw, ...)``
        At least `MIN_DRAWS` draws a chain; one chain is enough (its halves are compared).

    Returns
    -------
    array, ``(...)``
        nan where the draws hold a nan or never change; inf where chains stand still apart.
    """
    return _by_entry(_r_hat, draws)


def is_near(r_hat: ArrayLike, ess: ArrayLike) -> BoolArray:
    """Whether R-hat is at most 1.01, or above it by no more than chance lifts the worst of many.

    Eight half chains worth `ess` independent draws together have means that differ by chance:
    F / ess * 8 more variance than draws within them, F on seven degrees of freedom, which is below
    4 in all but 1 in 4,000 entries; so R-hat is below 1 + 12 / ess. Above 1.1 it is never near.

    Parameters
    ----------
    r_hat, ess : arrays, ``(...)``
    """
    lifted = np.minimum(R_HAT_LIMIT + _BY_CHANCE / np.asarray(ess), 1.1)
    return np.asarray(np.asarray(r_hat) <= lifted)


def ess_bulk(draws: ArrayLike) -> FloatArray:
    """Effective sample size of all chains together, for the bulk; arguments as `r_hat`."""
    return _by_entry(lambda x: _ess(_normal_scores(_halves(x))), draws)


def ess_tail(draws: ArrayLike) -> FloatArray:
    """The smaller effective sample size of the 5 % and 95 % quantiles; arguments as `r_hat`."""
    return _by_entry(_ess_tail, draws)


def mcse_mean(draws: ArrayLike) -> FloatArray:
    """Monte Carlo standard error of the mean; arguments as `r_hat`."""
    return _by_entry(lambda x: x.std(axis=(1, 2), ddof=1) / np.sqrt(_ess(_halves(x))), draws)


def _by_entry(statistic: Callable[[FloatArray], FloatArray], draws: ArrayLike) -> FloatArray:
    """Apply ``(entries, chain, draw) -> (entries,)`` to ``(chain, draw, ...)``, in batches."""
    array = np.asarray(draws)
    if array.ndim < 2 or array.shape[0] < 1 or array.shape[1] < MIN_DRAWS:
        wanted = f"(chain, draw, ...) with at least {MIN_DRAWS} draws a chain"
        raise ValueError(f"draws must be {wanted}, got shape {array.shape}")
    columns = np.moveaxis(array.reshape(*array.shape[:2], -1), 2, 0)
    result = np.empty(len(columns))
    batch = max(1, _BATCH // (array.shape[0] * array.shape[1]))
    with np.errstate(all="ignore"):
        for start in range(0, len(columns), batch):
            entries = np.ascontiguousarray(columns[start : start + batch], dtype=np.float64)
            is_whole = ~np.isnan(entries).any(axis=(1, 2))
            result[start : start + batch] = np.where(is_whole, statistic(entries), np.nan)
    return result.reshape(array.shape[2:])


def _halves(x: FloatArray) -> FloatArray:
    """Each chain as two; the middle draw of an odd number is left out."""
    half = x.shape[2] // 2
    return np.concatenate([x[:, :, :half], x[:, :, -half:]], axis=1)


def _normal_scores(x: FloatArray) -> FloatArray:
    """Normal quantiles of the ranks within each entry; ties share their mean rank."""
    flat = x.reshape(len(x), -1)
    size = flat.shape[1]

    def first_of_equals(ordered: FloatArray) -> IntArray:
        is_new = np.insert(ordered[:, 1:] != ordered[:, :-1], 0, True, axis=1)
        return np.asarray(np.maximum.accumulate(np.where(is_new, np.arange(size), 0), axis=1))

    order = np.argsort(flat, axis=1, kind="stable")
    ordered = np.take_along_axis(flat, order, axis=1)
    first, last = first_of_equals(ordered), first_of_equals(ordered[:, ::-1])[:, ::-1]
    ranks = np.empty(flat.shape)
    np.put_along_axis(ranks, order, 0.5 * (first + size - 1 - last) + 1.0, axis=1)
    scores: FloatArray = ndtri((ranks - 0.375) / (size + 0.25))
    return scores.reshape(x.shape)


def _r_hat(x: FloatArray) -> FloatArray:
    halves = _halves(x)
    median = np.median(halves.reshape(len(halves), -1), axis=1)[:, None, None]
    bulk, tail = (_plain_r_hat(_normal_scores(y)) for y in (halves, np.abs(halves - median)))
    return np.where(np.ptp(halves, axis=(1, 2)) > 0.0, np.fmax(bulk, tail), np.nan)


def _plain_r_hat(x: FloatArray) -> FloatArray:
    length = x.shape[2]
    between = length * x.mean(axis=2).var(axis=1, ddof=1)
    within = x.var(axis=2, ddof=1).mean(axis=1)
    ratio: FloatArray = np.sqrt((between / within + length - 1) / length)
    return ratio


def _ess_tail(x: FloatArray) -> FloatArray:
    low, high = np.quantile(x, [0.05, 0.95], axis=(1, 2))
    sizes = [_ess(_halves((x <= q[:, None, None]).astype(np.float64))) for q in (low, high)]
    return np.minimum(*sizes)


def _autocovariance(x: FloatArray) -> FloatArray:
    length = x.shape[2]
    padded = 1 << (2 * length - 1).bit_length()
    transform = np.fft.rfft(x - x.mean(axis=2, keepdims=True), n=padded, axis=2)
    power = transform.real**2 + transform.imag**2
    covariance: FloatArray = np.fft.irfft(power, n=padded, axis=2)[:, :, :length] / length
    return covariance


def _ess(x: FloatArray) -> FloatArray:
    """Effective sample size of ``(entries, chain, draw)``, by Geyer's initial monotone sequence.

    With rho_t the autocorrelations and P_k = rho_2k + rho_2k+1, the sum over pairs stops at the
    first K whose pair is not positive, pairs are made to decrease, and rho_2K is added once.
    """
    _, chains, length = x.shape
    total = chains * length
    covariance = _autocovariance(x).mean(axis=1)
    within = covariance[:, 0] * length / (length - 1.0)
    pooled = covariance[:, 0] + (x.mean(axis=2).var(axis=1, ddof=1) if chains > 1 else 0.0)
    last = max(0, -(-(length - 4) // 2))
    rho = 1.0 - (within[:, None] - covariance[:, : 2 * last + 2]) / pooled[:, None]
    rho[:, 0] = 1.0
    even = rho[:, ::2]
    pairs = even + rho[:, 1::2]
    stops = ~(pairs > 0.0)
    stops[:, last] = True
    stop = np.argmax(stops, axis=1)[:, None]
    decreasing = np.minimum.accumulate(pairs, axis=1)
    summed = np.where(np.arange(last + 1) < stop, decreasing, 0.0).sum(axis=1)
    even_stop, pair_stop = (np.take_along_axis(y, stop, axis=1)[:, 0] for y in (even, pairs))
    extra = np.where((even_stop > 0.0) | (pair_stop >= 0.0), even_stop, 0.0)
    tau = np.maximum(-1.0 + 2.0 * summed + extra, 1.0 / np.log10(total))
    is_constant = np.ptp(x, axis=(1, 2)) < np.finfo(np.float64).resolution
    return np.asarray(np.where(is_constant, float(total), total / tau))
