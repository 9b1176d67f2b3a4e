r"""Log probabilities of observations under a forecaster, unit by unit, and how two of them differ.

A *unit* is what goes together and counts once for an error: a row of counts, a document, a block of
steps. `leave_one_out` finds, from draws given all observations, how probable each is given all the
others (Gelfand, Dey and Chang 1992): with w_s = 1 / p(x_i | draw s),

    p(x_i | x_-i) = sum_s w_s p(x_i | draw s) / sum_s w_s,

the largest weights smoothed by a generalised Pareto distribution (Vehtari, Simpson, Gelman, Yao and
Gabry 2024, "Pareto smoothed importance sampling"), whose shape k shows whether they are reliable.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> mean = rng.normal(0.0, 0.1, size=(2, 500))  # of 100 observations of variance 1
>>> log_p = -0.5 * (rng.normal(size=5) - mean[..., None]) ** 2
>>> loo = leave_one_out(log_p)
>>> loo.log_p.shape, loo.by_chain.shape, bool((loo.k < 0.7).all())
((5,), (2, 5), True)
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from pgmult.core.typing import FloatArray, IntArray

LARGE_K = 0.7
"""The Pareto shape beyond which importance weights say little."""
_NOTHING = 1e-3  # nats: less than a thousandth of a probability is no difference
_BLOCK = 1 << 21  # logarithms that are sorted at a time


@dataclass(frozen=True, slots=True)
class Gain:
    """A paired difference of scores.

    Attributes
    ----------
    mean : float
        Nats an observation.
    error : float
        Its standard error.
    """

    mean: float
    error: float

    @property
    def sign(self) -> int:
        """1 if better, -1 if worse, 0 within twice the error, or where it is next to nothing."""
        if abs(self.mean) <= max(2.0 * self.error, _NOTHING):
            return 0
        return 1 if self.mean > 0.0 else -1

    @property
    def is_ahead(self) -> bool:
        """Whether it is better by more than its error."""
        return self.mean > max(self.error, _NOTHING)

    @property
    def word(self) -> str:
        """Such as "better than"."""
        return {1: "better than", 0: "as well as", -1: "worse than"}[self.sign]

    @property
    def verdict(self) -> str:
        """Such as "better"; "level" where it is not even ahead by its error."""
        if self.sign == 0 and self.is_ahead:
            return "better, not clearly"
        return {1: "better", 0: "level", -1: "worse"}[self.sign]

    def __str__(self) -> str:
        digits = 3 if abs(self.mean) >= 0.01 else 4
        return f"{self.mean:+.{digits}f} ± {self.error:.{digits}f}"


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """Log probabilities of observations under one forecaster.

    Attributes
    ----------
    by_unit : array, ``(num_units,)``
        Sums over each unit's observations.
    totals : int array, ``(num_units,)``
        Observations of each unit.
    by_chain : array, ``(num_chains, num_units)``, optional
        The same by the draws of each chain alone; no rows for what has no chains.
    large_k : float
        Share of the observations whose importance weights say little.
    """

    by_unit: FloatArray
    totals: IntArray
    by_chain: FloatArray | None = None
    large_k: float = 0.0

    @classmethod
    def of_draws(
        cls, log_p: FloatArray, totals: IntArray, *, unit: IntArray | None = None,
        left_out: bool = True,
    ) -> "Score":  # fmt: skip
        """Score draws, which predict each observation given all others, or as they are.

        Parameters
        ----------
        log_p : array, ``(num_chains, num_draws, num_entries)``
            As `leave_one_out` takes it, an entry what is left out at a time.
        totals : int array, ``(num_entries,)``
            Observations that an entry counts for.
        unit : int array, ``(num_entries,)``, optional
            Of each entry; by default entries are units.
        left_out : bool
            Whether the draws have seen the observations.
        """
        unit = np.arange(len(totals)) if unit is None else unit
        if left_out:
            left = leave_one_out(log_p)
            pooled, alone = left.log_p, left.by_chain
            large = float(np.mean(left.k > LARGE_K))
        else:
            alone = logsumexp(log_p, axis=1) - np.log(log_p.shape[1])
            pooled, large = logsumexp(alone, axis=0) - np.log(len(alone)), 0.0
        sums = np.array([np.bincount(unit, values) for values in (pooled, *alone)])
        return cls(sums[0], np.bincount(unit, totals).astype(np.int64), sums[1:], large)

    @property
    def mean(self) -> float:
        """Nats an observation."""
        return float(self.by_unit.sum() / self.totals.sum())

    @property
    def chain_error(self) -> float:
        """How far other chains would have moved the score, a standard error; 0 with one chain."""
        if self.by_chain is None or len(self.by_chain) < 2:
            return 0.0
        means = self.by_chain.sum(axis=1) / self.totals.sum()
        return float(np.std(means, ddof=1) / np.sqrt(len(means)))

    def gain_over(self, reference: "Score") -> Gain:
        """How much better it is, paired by unit; the error is over units and over chains.

        Raises
        ------
        ValueError
            If the other score is of other observations.
        """
        if not np.array_equal(self.totals, reference.totals):
            got = [f"{x.sum():,} in {len(x):,} units" for x in (self.totals, reference.totals)]
            raise ValueError(f"scores must be of the same observations, got {' and '.join(got)}")
        mean, error = mean_by_token(self.by_unit - reference.by_unit, self.totals)
        if np.count_nonzero(self.totals) < 2:
            error = np.inf  # one unit says nothing of others
        return Gain(mean, float(np.hypot(error, np.hypot(self.chain_error, reference.chain_error))))


def mean_by_token(by_document: FloatArray, totals: IntArray) -> tuple[float, float]:
    """Sums over tokens, by document, as a mean by token and its standard error over documents.

    Of differences of two models' sums it is the mean gain a token. A document of probability 0
    makes them -inf and nan.
    """
    level = float(by_document.sum() / totals.sum())
    scored = totals > 0
    with np.errstate(invalid="ignore"):
        residuals = by_document[scored] - level * totals[scored]
    count = max(2, int(scored.sum()))
    return level, float(np.sqrt(np.sum(residuals**2) * count / (count - 1)) / totals.sum())


# --------------------------------------------------------------------------- leave-one-out


class LeftOut(NamedTuple):
    """Log probabilities of observations given all others.

    Attributes
    ----------
    log_p : array, ``(num_observations,)``
        With `predicted`, ``(num_observations, num_predicted)``.
    by_chain : array, ``(num_chains, *log_p.shape)``
        By the draws of each chain alone.
    k : array, ``(num_observations,)``
        Shape of the tail of the weights; above `LARGE_K` they say little. nan of fewer than 25
        draws, whose weights are not smoothed.
    """

    log_p: FloatArray
    by_chain: FloatArray
    k: FloatArray


def leave_one_out(log_p: FloatArray, predicted: FloatArray | None = None) -> LeftOut:
    """How probable each observation is given all others, by importance sampling.

    Parameters
    ----------
    log_p : array, ``(num_chains, num_draws, num_observations)``
        Log probability of each observation given each draw; observations are independent given a
        draw, or each given those before it.
    predicted : array, ``(num_chains, num_draws, num_observations, num_predicted)``, optional
        Log probabilities of other things given each draw, which are wanted given all observations
        but that one.
    """
    chains, draws, size = log_p.shape
    shape = () if predicted is None else predicted.shape[3:]
    estimates, k = np.empty((size, *shape)), np.empty(size)
    by_chain = np.empty((chains, size, *shape))
    block = max(1, _BLOCK // (chains * draws * int(np.prod(shape))))
    for first in range(0, size, block):
        columns = slice(first, first + block)
        flat = log_p[:, :, columns].reshape(chains * draws, -1)
        weights, k[columns] = _smoothed(-flat)
        if predicted is None:
            estimates[columns] = logsumexp(weights + flat, axis=0) - logsumexp(weights, axis=0)
            by_chain[:, columns] = np.log(draws) - logsumexp(-log_p[:, :, columns], axis=1)
            continue
        values = predicted[:, :, columns]
        weights -= logsumexp(weights, axis=0)
        estimates[columns] = logsumexp(
            weights[..., None] + values.reshape(len(flat), -1, *shape), axis=0
        )
        alone = -log_p[:, :, columns]
        alone = alone - logsumexp(alone, axis=1, keepdims=True)
        by_chain[:, columns] = logsumexp(alone[..., None] + values, axis=1)
    return LeftOut(estimates, by_chain, k)


def _smoothed(log_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Replace the largest weights by quantiles of a fitted Pareto distribution; return its k."""
    weights = log_weights - log_weights.max(axis=0)
    number = len(weights)
    tail = int(np.ceil(min(0.2 * number, 3.0 * np.sqrt(number))))
    if tail < 5:
        return weights, np.full(weights.shape[1], np.nan)
    order = np.argsort(weights, axis=0)
    largest = order[-tail:]
    cutoff = np.take_along_axis(weights, order[-tail - 1][None], axis=0)
    excess = np.exp(np.take_along_axis(weights, largest, axis=0)) - np.exp(cutoff)
    flat = excess[-1] - excess[0] <= 1e-12  # nothing to smooth
    k, sigma = _pareto_fit(np.where(flat, np.arange(1.0, tail + 1.0)[:, None], excess))
    at = (np.arange(tail) + 0.5)[:, None] / tail
    steep = np.where(np.abs(k) < 1e-8, 1e-8, k)
    quantiles = sigma * np.expm1(-steep * np.log1p(-at)) / steep
    smooth = np.minimum(np.log(quantiles + np.exp(cutoff)), 0.0)
    smooth = np.where(flat, np.take_along_axis(weights, largest, axis=0), smooth)
    np.put_along_axis(weights, largest, smooth, axis=0)
    return weights, np.where(flat, 0.0, k)


def _pareto_fit(excess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fit generalised Pareto distributions to ascending columns (Zhang and Stephens 2009).

    The shape is drawn towards 1/2 with the weight of ten observations.
    """
    number = len(excess)
    size = 30 + int(np.sqrt(number))
    grid = 1.0 - np.sqrt(size / (np.arange(1.0, size + 1.0) - 0.5))
    quartile = np.maximum(excess[int(number / 4 + 0.5) - 1], 1e-300)
    theta = grid[:, None] / (3.0 * quartile) + 1.0 / excess[-1]
    shapes = np.array([np.log1p(-one * excess).mean(axis=0) for one in theta])
    profile = number * (np.log(-theta / shapes) - shapes - 1.0)
    weights = np.exp(profile - logsumexp(profile, axis=0))
    best = (weights * theta).sum(axis=0)
    shape = np.log1p(-best * excess).mean(axis=0)
    return (number * shape + 5.0) / (number + 10.0), -shape / best
