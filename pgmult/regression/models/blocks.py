r"""The blocks of weights of an additive regression that are sampled together, and their rows.

*Sticks* are independent given the data: each is a block, a binomial regression of the rows that
reach it. A *softmax* is one block: with K orthonormal Helmert contrasts H, scores are H psi, and
the K - 1 predictors psi have copies of the same prior. A prior that is the same for each category
loses nothing by this, since the mean of a row's scores is not in the likelihood.

A *cumulative* link is one block as well. Category k has probability

    sigma(s_k) - sigma(s_{k+1}) = sigma(s_k) sigma(-s_{k+1}) (1 - exp(s_{k+1} - s_k)),

so the likelihood is that of logistic rows, one for each score, and of the gaps between scores:
log(1 - exp(-gap)) for each count between them. All are concave in linear predictors (Pratt 1981).
Scores share their effects but for the intercept, and for columns that are asked for.

Counts that scatter are Dirichlet-multinomial, or beta-binomial where there are two categories.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax

from pgmult.core.typing import BoolArray, FloatArray, Generator
from pgmult.latent import categories
from pgmult.latent.additive import Additive
from pgmult.latent.approximation import Sites, approximate, hyperparameters_near
from pgmult.latent.categories import BetaBinomialSite, helmert
from pgmult.latent.hyperparameters import LEAN_POINTS
from pgmult.latent.moves import Target
from pgmult.latent.predictors import Latent, Priors, coefficient_scales
from pgmult.latent.several import BlockSites, Several
from pgmult.latent.terms import Fixed
from pgmult.regression.data import MOST_EVENTS, AdditiveRows
from pgmult.variational.sites import CountSite, Expectation, LogisticSite

_MANY_WEIGHTS = 300  # from which on a search takes fewer points for hyperparameters
_FEW_POINTS = 12
_LEAST_GAP = 0.02  # at which the curvature of a gap is found
_PULL = 1.0  # counts of the overall shares that are added to each row's, a category
_TRIES = 1000  # of a draw of scores from their prior until they are in order


class Block(Target):
    """Weights that are sampled together: their predictors, rows and approximation."""

    __slots__ = ()

    @classmethod
    def of(cls, family: Additive, rows: Any, sites: Sites | None = None) -> "Block":
        """Find the approximation, by `sites` where they are not those of one predictor."""
        is_costly = isinstance(family, Several) and family.num_weights >= _MANY_WEIGHTS
        points = _FEW_POINTS if is_costly else LEAN_POINTS
        return cls(family, rows, approximate(family, rows, sites, points))

    def sample(self, rng: Generator) -> tuple[FloatArray, FloatArray]:
        """Draw hyperparameters and weights from the approximation, where data are possible."""
        for _ in range(_TRIES):
            x = hyperparameters_near(rng, self.family, self.base.guess)
            w = self.family.at(x, self.base.absorbed).sample(rng)
            if np.isfinite(self.rows.total(self.family.predictor(w))):
                break
        size = getattr(self.rows, "size", math.inf)
        return (x if math.isinf(size) else np.append(x, math.log(size))), w


@dataclass(frozen=True, slots=True, eq=False)
class ScoreBlocks:
    """A block for each score: sticks, or rates of events.

    Attributes
    ----------
    data : AdditiveRows
    family : Additive
        Predictors of all rows.
    """

    data: AdditiveRows
    family: Additive

    @classmethod
    def of(cls, data: AdditiveRows, latent: Latent) -> "ScoreBlocks":
        """Make the predictors of all rows."""
        return cls(data, Additive(latent.family.terms, latent.family.design, latent.offset[:, 0]))

    def blocks(self, size: float = math.inf) -> list[Block]:
        """The block of each stick, or of all events."""
        data = self.data
        if data.is_events:
            counts = data.counts[:, 0].astype(np.float64)
            return [Block.of(self.family, CountSite(counts, size, data.times))]
        counts = data.counts[:, data.order].astype(np.float64)
        reaching = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
        blocks = []
        for stick in range(data.num_sticks):
            rows = np.flatnonzero(reaching[:, stick])
            pair = counts[rows, stick], reaching[rows, stick]
            site = LogisticSite(*pair) if math.isinf(size) else BetaBinomialSite(*pair, size)
            blocks.append(Block.of(self.family.take(rows), site))
        return blocks

    def flat(self, weights: FloatArray) -> list[FloatArray]:
        """Weights of each block."""
        return list(weights)

    def weights(self, flat: Sequence[FloatArray]) -> FloatArray:
        """Weights of all scores."""
        return np.array(flat)

    def prior(self, rng: Generator) -> list[tuple[FloatArray, FloatArray]]:
        """Hyperparameters and weights of each block from the prior."""
        return [self.family.sample(rng) for _ in range(self.data.num_sticks)]


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """One block of contrasts of the scores of a softmax.

    Attributes
    ----------
    data : AdditiveRows
    family : Several
        Predictors of all rows.
    contrasts : array, ``(K, K - 1)``
    """

    data: AdditiveRows
    family: Several
    contrasts: FloatArray

    @classmethod
    def of(cls, data: AdditiveRows, latent: Latent) -> "Contrasts":
        """Make the block of all rows."""
        contrasts, base, num = helmert(data.num_categories), latent.family, data.num_categories
        offset = (latent.offset + np.zeros(num)) @ contrasts
        return cls(data, Several(base.terms, base.design, num - 1, offset), contrasts)

    def blocks(self, size: float = math.inf) -> list[Block]:
        """The block of the rows with counts."""
        counts = self.data.counts.astype(np.float64)
        rows = np.flatnonzero(counts.sum(axis=1))
        counts = counts[rows]
        likelihood = categories.MultinomialRows(counts, size)
        if math.isinf(size):
            shares = (counts.sum(axis=0) + 0.5) / (counts.sum() + 0.5 * counts.shape[1])
            near = counts + _PULL * shares * counts.shape[1]
        else:
            near = np.tile(categories.pooled_shares(counts, size), (len(counts), 1))
        near = np.log(near / near.sum(axis=1, keepdims=True))
        family = self.family if len(rows) == len(self.data.counts) else self.family.take(rows)
        return [Block.of(family, likelihood, BlockSites(likelihood, near @ self.contrasts))]

    def flat(self, weights: FloatArray) -> list[FloatArray]:
        """Weights of each block."""
        return [np.ravel(weights.T @ self.contrasts)]

    def weights(self, flat: Sequence[FloatArray]) -> FloatArray:
        """Weights of all scores, which add up to 0."""
        (w,) = flat
        return np.ascontiguousarray(self.contrasts @ w.reshape(-1, self.contrasts.shape[1]).T)

    def prior(self, rng: Generator) -> list[tuple[FloatArray, FloatArray]]:
        """Hyperparameters and weights of each block from the prior."""
        return [self.family.sample(rng)]


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeSite:
    """Logistic rows followed by gaps, each with the log likelihood count log(1 - exp(-gap)).

    Attributes
    ----------
    logistic : LogisticSite
    counts : array, ``(num_gaps,)``
    """

    logistic: LogisticSite
    counts: FloatArray

    def _split(self, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        num = len(self.logistic.trials)
        return psi[:num], psi[num:]

    def _gaps(self, gap: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.counts * np.log(-np.expm1(-np.maximum(gap, 0.0)))
        return np.where(gap > 0.0, np.where(self.counts > 0.0, value, 0.0), -np.inf)

    def value(self, psi: FloatArray) -> FloatArray:
        """Log likelihood of each row."""
        psi, gap = self._split(psi)
        return np.append(self.logistic.value(psi), np.maximum(self._gaps(gap), -1e8))

    def total(self, psi: FloatArray) -> float:
        """Log likelihood of all rows."""
        psi, gap = self._split(psi)
        return float(self.logistic.total(psi) + self._gaps(gap).sum())

    def slope(self, psi: FloatArray) -> FloatArray:
        """First derivative of each row's log likelihood."""
        psi, gap = self._split(psi)
        return np.append(self.logistic.slope(psi), self.counts / np.expm1(np.maximum(gap, 1e-3)))

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """Expected values and derivatives, those of gaps at their means."""
        (psi, at), (spread, _) = self._split(mean), self._split(var)
        gap = np.maximum(at, _LEAST_GAP)
        slope = self.counts / np.expm1(gap)
        half = -0.5 * slope / -np.expm1(-gap)
        slope = slope - 2.0 * half * (gap - at)  # of the parabola at the gap
        value, first, second = self.logistic.expect(psi, spread)
        pairs = (value, self._gaps(gap)), (first, slope), (second, half)
        return tuple(map(np.concatenate, pairs))  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """One block of all scores of a cumulative link, each the log odds of a category or higher.

    Attributes
    ----------
    data : AdditiveRows
    family : Additive
        Predictors of all rows and scores, score after score, and of gaps; its last weights are
        those that differ between scores, scores of a column side by side.
    is_specific : bool array, ``(num_weights,)``
        Which weights of a score differ between scores.
    site : CumulativeSite
    start : array
        Predictors at the shares of all rows.
    """

    data: AdditiveRows
    family: Additive
    is_specific: BoolArray
    site: CumulativeSite
    start: FloatArray

    @classmethod
    def of(
        cls, data: AdditiveRows, latent: Latent, columns: BoolArray, priors: Priors
    ) -> "Ordered":
        """Make the block, with effects of each score of some columns of the design.

        Parameters
        ----------
        data : AdditiveRows
        latent : Latent
            Terms without those columns.
        columns : bool array, ``(num_columns,)``
        priors : mapping from term to distribution
        """
        num, rows = data.num_sticks, data.num_rows
        own = data.design.matrix[:, columns]
        scales = (np.zeros(len(columns)) + coefficient_scales(data.design, priors))[columns]
        units = np.eye(num)
        shared = sparse.vstack([latent.family.design] * num)
        apart = sparse.vstack([sparse.csr_array(np.kron(own, unit)) for unit in units])
        gaps, counts = np.unique(own, axis=0, return_inverse=True)
        totals = np.zeros((len(gaps), num - 1))
        np.add.at(totals, counts.reshape(-1), data.counts[:, 1:-1].astype(np.float64))
        steps = units[:-1] - units[1:]
        ahead = sparse.vstack([sparse.csr_array(np.kron(gaps, step)) for step in steps])
        none = sparse.csr_array((ahead.shape[0], shared.shape[1]))
        design = sparse.vstack([sparse.hstack([shared, apart]), sparse.hstack([none, ahead])])
        terms = [*latent.family.terms, Fixed(len(scales) * num, np.repeat(scales, num))]
        offset = (latent.offset + np.zeros(num)).T.ravel()
        offset = np.append(offset, np.zeros(ahead.shape[0]))
        y, lower = data.counts[:, 1:].T.ravel(), data.counts[:, :-1].T.ravel()
        logistic = LogisticSite(y.astype(np.float64), (y + lower).astype(np.float64))
        shares = data.counts.sum(axis=0) + 0.5
        above = np.cumsum(shares[::-1])[::-1][1:] / shares.sum()
        scores = np.log(above / (1.0 - above))
        start = np.append(np.repeat(scores, rows), np.repeat(-np.diff(scores), len(gaps)))
        is_specific = np.append(columns, np.zeros(latent.family.num_weights - sum(~columns), bool))
        family = Additive(terms, design, offset)
        return cls(data, family, is_specific, CumulativeSite(logistic, totals.T.ravel()), start)

    def blocks(self, size: float = math.inf) -> list[Block]:
        """The block of all scores."""
        return [Block.of(self.family, self.site, Sites(self.site, self.start))]

    def flat(self, weights: FloatArray) -> list[FloatArray]:
        """Weights of each block."""
        shared, apart = weights[0, ~self.is_specific], weights[:, self.is_specific]
        return [np.append(shared, apart.T.ravel())]

    def weights(self, flat: Sequence[FloatArray]) -> FloatArray:
        """Weights of all scores."""
        (w,) = flat
        num = self.data.num_sticks
        out = np.empty((num, len(self.is_specific)))
        size = int((~self.is_specific).sum())
        out[:, ~self.is_specific] = w[:size]
        out[:, self.is_specific] = w[size:].reshape(-1, num).T
        return out

    def prior(self, rng: Generator) -> list[tuple[FloatArray, FloatArray]]:
        """Hyperparameters and weights from the prior, scores of all rows in order."""
        num, gaps = self.data.num_sticks, len(self.site.counts)
        if int(self.is_specific.sum()) == 1:
            x, w = self.family.sample(rng)
            w[-num:] = np.sort(w[-num:])[::-1]
            return [(x, w)]
        for _ in range(_TRIES):
            x, w = self.family.sample(rng)
            if not gaps or (self.family.predictor(w)[-gaps:] > 0.0).all():
                return [(x, w)]
        raise ValueError("scores cannot be drawn in order: give fewer columns effects of their own")


Structure = ScoreBlocks | Contrasts | Ordered
"""How weights of scores, ``(num_scores, num_weights)``, fall into blocks."""


def rough_concentration(counts: FloatArray, probs: FloatArray, num_fitted: int) -> float:
    """Moment estimate of the concentration phi of Dirichlet-multinomial rows of known means.

    Pearson's statistic, by its degrees of freedom, is the dispersion (N + phi) / (1 + phi).
    """
    totals = counts.sum(axis=1)
    rows = totals > 1.0
    counts, probs, totals = counts[rows], probs[rows], totals[rows]
    num = counts.shape[1] - 1
    expected = totals[:, None] * probs + 1e-8
    excess = np.sum((counts - expected) ** 2 / expected, axis=1) - num
    # each row: E excess = num (N - 1) / (1 + phi), less what fitting takes
    taken = max(1.0 - num_fitted / max(len(counts), 1), 0.25)
    ratio = excess.sum() / taken / max(num * float(np.sum(totals - 1.0)), 1e-8)
    return float(np.clip(1.0 / max(ratio, 1e-9) - 1.0, 0.05, 1e4))


def rough_size(counts: FloatArray, rates: FloatArray, times: FloatArray) -> float:
    """The size of negative binomials of known means: their excess variance is mean^2 / size."""
    beyond, squares = float(times @ ((counts - rates) ** 2 - rates)), float(times @ rates**2)
    return float(np.clip(squares / max(beyond, 1e-2 * squares), 0.2, 100.0))


def solved(data: AdditiveRows, structure: Structure) -> list[Block]:
    """The blocks with their approximations, of a rough size where rows have one."""
    if not data.is_sized:
        return structure.blocks()
    size = math.inf
    if data.scatters:
        counts = data.counts[data.counts.sum(axis=1) > 0.0].astype(np.float64)
        shares = np.tile(counts.sum(axis=0) / counts.sum(), (len(counts), 1))
        size = rough_concentration(counts, shares, 1)
    for _ in range(2):
        (block,) = structure.blocks(size)
        gaussian = block.family.at(block.base.guess.mean, block.base.absorbed)
        psi = block.family.predictor(gaussian.mean)
        if not data.scatters:
            rates = np.exp(np.minimum(psi, MOST_EVENTS))
            size = rough_size(block.rows.counts, rates, np.asarray(block.rows.weights))
            continue
        if isinstance(block.rows, BetaBinomialSite):
            shares = expit(np.column_stack([psi, -psi]))[:, np.argsort(data.order)]
        else:
            shares = softmax(psi @ helmert(counts.shape[1]).T, axis=1)
        size = rough_concentration(counts, shares, data.design.matrix.shape[1])
    return structure.blocks(size)
