r"""Additive regression of categories: fixed effects, pooled groups, smooth curves, areas.

Rows have counts y_n of K categories and a predictor for each stick that is a sum over terms
(`pgmult.latent.terms`)::

    w_k | x_k  ~ N(0, Q(x_k)^-1)                   terms' weights, k = 1..K - 1 sticks
    x_k        ~ half-t standard deviations, LKJ(2) correlations, normal log length scales
    psi_nk     = (A w_k)_n + offset_n
    y_n        ~ Multinomial(N_n, stick-breaking(psi_n))

Given the data the sticks are independent, and each is a binomial regression with a latent Gaussian.
`pgmult.latent` finds an approximation of its posterior before the chain starts, and uses it in
exact moves of weights and hyperparameters. What a stick's coefficient means depends on the sticks
before it, so interpret probabilities instead.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> table = {
...     "vote": rng.choice(["left", "right", "none"], p=[0.5, 0.3, 0.2], size=90),
...     "age": rng.integers(18, 80, size=90),
...     "region": [f"region {i % 10}" for i in range(90)],
... }
>>> data = pgmult.read(table).rows("vote ~ age + (1 | region)")
>>> posterior = pgmult.sample(
...     AdditiveRegression(), data, draws=1000, chains=1, random_seed=0, progressbar=False
... )
>>> posterior["sds"].shape, posterior["weights"].shape
((1, 1000, 2, 1), (1, 1000, 2, 12))
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partialmethod
from itertools import zip_longest
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax, softmax

from pgmult.core.blas import one_blas_thread
from pgmult.core.family import Family
from pgmult.core.memory import once_a_data_set, part_of
from pgmult.core.parameters import Checked, axes_of, whole
from pgmult.core.typing import BoolArray, FloatArray, IntArray, ObservedRows
from pgmult.formulas.design import Design
from pgmult.latent.additive import Additive
from pgmult.latent.approximation import Approximation, approximate, hyperparameters_near
from pgmult.latent.elsewhere import AsWeights, RowsElsewhere, Summed, answer
from pgmult.latent.moves import Point, carry, interweave, reflect, swing
from pgmult.latent.predictors import (
    Joint,
    Latent,
    as_priors,
    check_priors,
    latent_of,
    mapping,
    prior_rows,
)
from pgmult.links import StickBreaking
from pgmult.priors import LogNormal
from pgmult.regression.family import REGRESSION
from pgmult.regression.models.dense import Dense, is_dense, softmax_likelihood
from pgmult.sampling import blocks
from pgmult.sampling.blocks import BLOCK_ROWS, Asks, Sums, SweepsInBlocks, as_block_rows
from pgmult.sampling.moves import slice_sample
from pgmult.variational.sites import CountSite, LogisticSite

_NEAR = 0.15  # spread up to which reflected leaps alone nearly do, and they are cheap
_FAR = 2.0  # spread from which on leaps are hardly ever taken
_WOVEN_NEAR, _SWUNG_NEAR = 0.2, 0.5  # of the sweeps, all where it is farther
_SAME = 0.05  # spread up to which one kick is enough
_MORE_KICKS = 2
_SIZE = LogNormal(3.0, 2.0)  # of a negative binomial
_SIZES = (0.05, 1e4)
_MOST_RESPONDENTS = 100_000  # that are told one by one
_SHIFT_DRAWS = 100
_EVENLY = 10_000
_LINEARISED = 3  # times that rows of a softmax are seen anew
_LEAST_SHARE = 1e-4
_MOST_EVENTS = 40.0  # log rate of simulated counts


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """The link of counts of events: their mean is exp psi."""

    def probs(self, psi: FloatArray) -> FloatArray:
        """Mean counts."""
        return np.asarray(np.exp(psi))


@dataclass(frozen=True, slots=True, eq=False)
class Softmax:
    """The link of scores of every category, ``order[j]`` the j-th: ``(num_rows, K)``."""

    order: IntArray

    def probs(self, scores: FloatArray) -> FloatArray:
        """Of the categories."""
        out = np.empty_like(scores)
        out[..., self.order] = softmax(scores, axis=-1)
        return out


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class AdditiveRows:
    """Outcomes in cells of equal covariates: ``pgmult.read(table).rows(formula)``.

    Attributes
    ----------
    counts : int64 array, ``(num_rows, num_categories)``
        Of the categories, float64 if they are sums of fractional weights; or events,
        ``(num_rows, 1)``.
    design : Design
        Fixed effects, random terms and the offset of each cell.
    order : int64 array, ``(num_categories,)``
        Stick j breaks for category ``order[j]``, and the last category takes the rest.
    categories : str array, ``(num_categories,)``
    family : str
        "categories"; "poisson" or "negative_binomial" for events.
    times : array, ``(num_rows,)``, or None
        How many rows of the table a row of events stands for.
    shares : array, ``(num_categories,)``, or None
        Shares of the categories in the table, at which effects of categories are evaluated.
    entries : int64 array, ``(num_entries, 2)``, or None
        In the order of the table's rows, each count that is not 0: its cell times K plus its
        category, and how many respondents it is. It matches respondents between runs with different
        cells. None of fractional weights.
    """

    counts: NDArray[Any]
    design: Design
    order: IntArray
    categories: NDArray[np.str_]
    family: str = "categories"
    times: FloatArray | None = None
    shares: FloatArray | None = None
    entries: IntArray | None = None

    @property
    def num_rows(self) -> int:
        """Cells, those without counts included."""
        return len(self.counts)

    @property
    def num_categories(self) -> int:
        """Number of categories, K; 1 for events."""
        return int(self.counts.shape[1])

    @property
    def num_sticks(self) -> int:
        """Predictors of a row."""
        return max(self.num_categories - 1, 1)

    @property
    def respondents(self) -> FloatArray:
        """How many observations each row stands for, ``(num_rows,)``."""
        own = self.counts.sum(axis=1) if self.times is None else self.times
        return np.asarray(own, dtype=np.float64)

    @property
    def is_weighted(self) -> bool:
        """Whether respondents have fractional weights.

        The posterior is exact, of a likelihood in which each row adds its share, and averages over
        respondents are weighted. But weighted counts are no data that can be simulated, and nobody
        can be left out of them: `loo`, and `check` and `compare` without rows held out, are not
        for them.
        """
        return bool((self.counts % 1.0).any() or (self.respondents % 1.0).any())

    def refuse_weights(self, why: str) -> None:
        """Raise ValueError if respondents have fractional weights."""
        if self.is_weighted:
            raise ValueError(f"rows must have whole weights {why}, got fractions")

    def each_of(self, column: NDArray[Any]) -> NDArray[Any]:
        """What the respondents have of a column of the cells; of weighted ones 10,000 in shares."""
        people = self.respondents
        if not self.is_weighted:
            return np.repeat(column, people.astype(np.int64))
        ends = np.cumsum(people)
        places = np.searchsorted(ends, (np.arange(_EVENLY) + 0.5) / _EVENLY * ends[-1])
        return np.asarray(column[places])

    @property
    def is_events(self) -> bool:
        """Whether a row is a number of events, rather than counts of categories."""
        return self.family != "categories"

    @property
    def quantity(self) -> str:
        """What the predictions are, in words."""
        return f"Mean {self.categories[0]}" if self.is_events else "Probabilities of categories"

    def rows(self, part: slice) -> "AdditiveRows":
        """Neighbouring cells; the same slice returns the same object."""
        if not range(self.num_rows)[part]:  # and what a driver needs of all cells
            return _NoRows.of(self._of_cells(range(0)), self)
        return part_of(self, part, self.num_rows, self._of_cells)

    def _of_cells(self, which: range) -> "AdditiveRows":
        here = slice(which.start, which.stop)
        times = None if self.times is None else self.times[here]
        counts, design = self.counts[here], self.design.take(here)
        return replace(self, counts=counts, design=design, times=times, entries=None)

    def made(
        self, rng: np.random.Generator, probs: FloatArray, totals: IntArray, size: float
    ) -> IntArray:
        """Simulated counts of `totals` respondents per row, or events in `totals` rows like it.

        Parameters
        ----------
        rng : numpy.random.Generator
        probs : array, ``(num_rows, num_categories)``
            Or mean numbers of events.
        totals : int array, ``(num_rows,)``
        size : float
            Of a negative binomial; infinite of other outcomes.
        """
        if not self.is_events:
            return np.asarray(rng.multinomial(totals, probs / probs.sum(axis=1, keepdims=True)))
        rates = np.minimum(totals[:, None] * probs, math.exp(_MOST_EVENTS))
        if not math.isinf(size):
            rates = rng.gamma(size * totals[:, None], np.minimum(probs, rates) / size)
        return rng.poisson(np.minimum(rates, math.exp(_MOST_EVENTS)))


@dataclass(frozen=True, slots=True, eq=False)
class _NoRows(AdditiveRows):
    """No cells, and those whose approximation a sweep goes around."""

    whole: AdditiveRows | None = None

    @classmethod
    def of(cls, none: AdditiveRows, whole: AdditiveRows) -> "_NoRows":
        return cls(**{f.name: getattr(none, f.name) for f in fields(none)}, whole=whole)


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveRegressionState:
    """One point of the chain.

    Attributes
    ----------
    weights : array
        Of the sticks, in their order.
    hyperparameters : array
        Coordinates of all terms' hyperparameters: see `pgmult.latent.terms`.
    """

    weights: Annotated[FloatArray, "stick", "weight"]
    hyperparameters: Annotated[FloatArray, "stick", "hyperparameter"]


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveRegression(SweepsInBlocks, Checked):
    """Outcomes whose predictors are sums of terms, sampled around an approximation.

    Parameters
    ----------
    effects : str
        What terms act on. "sticks": each stick has effects of its own, the fastest. "categories":
        each category has, with the same prior, so that the order of sticks hardly matters.
        "correlated": sticks, with correlations within the levels of a grouping. "softmax":
        categories, with the softmax as the link, which has no order.
    priors : mapping from term to law, optional
        Terms as the formula writes them, ``"(1 + x | g)"``, names of columns of the design, or
        "fixed" for all of these but the intercept. Laws are those of `pgmult.priors`, in the units
        of the table's columns: `Normal` of coefficients, `HalfT` of standard deviations, `LKJ` of
        correlations, `LogNormal` of the length scale of a process or, as "size", of that of
        negative binomial counts; several of them as a tuple. "fixed" may be `HalfT`, with one
        learned standard deviation of all effects of a column's standard deviation, or `Horseshoe`,
        with one for each.
    kicks : int
        Gradient kicks on each Hamiltonian path of the weights; more where the approximation is far
        from the posterior, one or two where it is near.
    method : {"sampling", "approximate"}
        Whether to sample the posterior, or to draw independently from its approximation: without
        tuning, and as accurate as the spread in `approximations` says.
    block_rows : int
        Cells of a block: see `pgmult.sampling.blocks`. It changes the draws, not their
        distribution, and only those of data of more than one block, which a cluster can share.

    Notes
    -----
    A sweep costs some ten solves with the factor of a stick's precision, and two factorisations,
    for each stick: O(G d**3 + G d r**2 + r**3) with G levels of the largest grouping, d effects of
    each and r other weights, or that of a sparse factor where r is above 1,500. If sticks share
    effects they are one problem: d and r are multiplied by the number of categories.
    """

    effects: Literal["sticks", "categories", "correlated", "softmax"] = "sticks"
    priors: Annotated[Mapping[str, Any], as_priors] = field(default_factory=dict)
    kicks: Annotated[int, whole()] = 3
    method: Literal["sampling", "approximate"] = "sampling"
    block_rows: Annotated[int, as_block_rows] = 32 * BLOCK_ROWS

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(AdditiveRegressionState) | {
        "sds": ("stick", "sd"),
        "probs": ("row", "category"),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("weights", "hyperparameters", "sds")
    row_dim: ClassVar[str] = "row"
    family: ClassVar[Family] = REGRESSION

    @property
    def in_blocks(self) -> bool:
        """Whether a sweep asks cells for sums alone."""
        return self.effects != "softmax" and self.method == "sampling"

    @property
    def draws_anew(self) -> bool:
        """Whether draws are independent draws from the approximation."""
        return self.method == "approximate"

    def as_data(self, data: Any) -> AdditiveRows:
        """Rows, or what they are read from: ``(formula, table)``."""
        from pgmult.regression.rows import rows_of

        if isinstance(data, AdditiveRows):
            return data
        if isinstance(data, tuple) and len(data) == 2:
            return rows_of(*data)
        raise TypeError(
            "data must be table.rows(formula), or a tuple (formula, table), got"
            f" {type(data).__name__}"
        )

    def coords(self, data: AdditiveRows) -> Mapping[str, NDArray[Any]]:
        """Labels of categories, sticks, weights and standard deviations."""
        latent = _everywhere(data, self)
        sticks = data.categories[data.order[: data.num_sticks]]
        return {
            "category": data.categories,
            "stick": sticks if latent.num_sticks == 1 else np.array(["every stick"]),
            "weight": latent.names,
            "sd": latent.sd_names,
        }

    def link(self, data: AdditiveRows) -> "StickBreaking | Softmax | Rates":
        """The link from psi to probabilities, its sticks in the order of the data."""
        rows = self.as_data(data)
        if rows.is_events:
            return Rates()
        return (Softmax if self.effects == "softmax" else StickBreaking)(rows.order)

    def latent(self, data: AdditiveRows, design: Design | None = None) -> Latent:
        """The latent Gaussian at the data's rows, or at those of another design.

        ``design`` is one of ``data.design.like(table, new_levels=True)``. `Latent.draw` gives the
        predictors of its rows at a draw's weights and hyperparameters.
        """
        if design is None:
            return _everywhere(data, self)
        return latent_of(design, self.priors, _joint(data, self.effects))

    def prior_table(self, data: AdditiveRows) -> list[tuple[str, str, str]]:
        """Every prior: its term, the parameter and the law, in the units of the columns."""
        told = prior_rows(data.design, self.priors)
        if data.family == "negative_binomial":
            told.append(("outcome", "size", str(self.priors.get("size", _SIZE))))
        return told

    def order_shift(self, data: AdditiveRows) -> float:
        """How far probabilities move if sticks break in reverse order, in posterior sds.

        The root of the mean square over cells and categories, by the approximations of both orders;
        0 for a softmax, which has no order.
        """
        if self.effects == "softmax":
            return 0.0
        found = []
        for each in (data, replace(data, order=data.order[::-1].copy())):
            rng = np.random.default_rng(0)
            draws = [self.probs(self.init(rng, each), each) for _ in range(_SHIFT_DRAWS)]
            found.append((np.mean(draws, axis=0), np.var(draws, axis=0)))
        (mean, var), (other_mean, other_var) = found
        squares = (mean - other_mean) ** 2 / (0.5 * (var + other_var) + 1e-12)
        return math.sqrt(max(float(np.mean(squares)) - 2.0 / _SHIFT_DRAWS, 0.0))

    def approximations(self, data: AdditiveRows) -> tuple[Approximation, ...]:
        """The Gaussian approximation of each stick's posterior, and how close it is."""
        return tuple(found for _, _, found in _blocks(data, self))

    def prior(self, rng: np.random.Generator, data: AdditiveRows) -> AdditiveRegressionState:
        """Hyperparameters and weights from the prior."""
        latent = _everywhere(data, self)
        num = data.num_sticks if self.effects == "sticks" else 1
        drawn = [latent.family.sample(rng) for _ in range(num)]
        if data.family == "negative_binomial":
            law = self.priors.get("size", _SIZE)
            size = law.median * math.exp(law.sd * rng.standard_normal())
            drawn = [(np.append(x, math.log(np.clip(size, *_SIZES))), w) for x, w in drawn]
        x, w = (np.array(parts) for parts in zip(*drawn, strict=True))
        return AdditiveRegressionState(w, x)

    def simulate(
        self, rng: np.random.Generator, state: AdditiveRegressionState, data: AdditiveRows
    ) -> AdditiveRows:
        """New counts of the same totals, with the sticks in the same order."""
        data.refuse_weights("to be simulated")
        psi = self.predictors(state, data)
        if not data.is_events:
            totals = data.counts.sum(axis=1)
            if self.effects == "softmax":
                counts = rng.multinomial(totals, Softmax(data.order).probs(psi))
            else:
                counts = StickBreaking(data.order).simulate(rng, psi, totals)
            return replace(data, counts=counts, entries=None)
        times = np.asarray(data.times)
        rows = np.repeat(np.arange(len(times)), times.astype(np.int64))
        rates = np.exp(np.minimum(psi[rows], _MOST_EVENTS))
        ones = np.ones(len(rows), dtype=np.int64)
        (size,) = self.sizes(state.hyperparameters[None], data).tolist()
        counts = data.made(rng, rates, ones, size)
        return replace(
            data,
            counts=counts,
            design=data.design.take(rows),
            times=ones.astype(np.float64),
            entries=None,
        )

    def init(self, rng: np.random.Generator, data: AdditiveRows) -> AdditiveRegressionState:
        """A draw from the approximation."""
        points = []
        for family, rows, found in _blocks(data, self):
            x = hyperparameters_near(rng, family, found.guess)
            w = family.at(x, found.seen).sample(rng)
            if isinstance(rows, CountSite) and not math.isinf(rows.size):
                x = np.append(x, math.log(rows.size))
            points.append((x, w))
        return _state_of(points)

    def step(
        self, rng: np.random.Generator, state: AdditiveRegressionState, data: AdditiveRows
    ) -> AdditiveRegressionState:
        """One sweep over all sticks, or a draw from the approximation."""
        if self.method == "approximate":
            return self.init(rng, data)
        with one_blas_thread():
            if self._has_blocks(data):
                return blocks.step(self, rng, state, data)  # type: ignore[no-any-return]
            return self._swept(rng, state, _blocks(data, self), _dense(data, self))

    def _swept(
        self, rng: np.random.Generator, state: AdditiveRegressionState, parts: "Sequence[_Block]",
        dense: Sequence[Dense] = (),
    ) -> AdditiveRegressionState:  # fmt: skip
        """One sweep, of all sticks in turn."""
        points = []
        pairs = zip_longest(state.hyperparameters, state.weights, parts, dense)
        for x, w, (family, rows, found), block in pairs:
            own = x[: family.num_hyperparameters]
            if len(own) < len(x):
                law = self.priors.get("size", _SIZE)
                x = np.append(own, _sized(rng, x[-1:], family.predictor(w), rows, law))
                rows = replace(rows, size=math.exp(float(x[-1])))
            if block is None:
                point = Point.of(own, w, family, found)
                own, w = self._moved(rng, point, family, rows, found)
            else:
                w = block.moved(rng, w, block.likelihood(rows), self.kicks)
            points.append((np.append(own, x[len(own) :]), w))
        return _state_of(points)

    def _has_blocks(self, data: AdditiveRows) -> bool:
        """Whether there are cells for more than one block."""
        return self.in_blocks and 2 * data.num_rows >= 3 * self.block_rows

    def check_blocks(self, data: AdditiveRows) -> None:
        """Refuse data that a cluster cannot share.

        Raises
        ------
        ValueError
            If their cells are no more than one block.
        """
        if not self._has_blocks(data):
            raise ValueError(
                f"data must have at least {-(-3 * self.block_rows // 2):,} cells of equal"
                f" covariates for a cluster to share them, got {data.num_rows:,} (one process is as"
                " fast; smaller blocks of cells are block_rows=)"
            )

    def local_step(
        self, rng: np.random.Generator, state: AdditiveRegressionState, data: AdditiveRows
    ) -> tuple[AdditiveRegressionState, None, Sums]:
        """The log likelihoods of a block where the sweep starts, of each set of weights."""
        (size,) = self.sizes(state.hyperparameters[None], data)
        found = [
            self.totals(None, state, None, data, np.array(k), size, w)[2].rounded[0]
            for k, w in enumerate(state.weights)
        ]
        return state, None, Sums((), (np.array(found),))

    def shared_step(
        self, rng: np.random.Generator, state: AdditiveRegressionState, sums: Sums,
        data: AdditiveRows, ask: Asks,
    ) -> AdditiveRegressionState:  # fmt: skip
        """The sweep itself, of weights that blocks tell the likelihood of."""
        whole = (isinstance(data, _NoRows) and data.whole) or data
        (size,) = self.sizes(state.hyperparameters[None], data).tolist()
        parts = []
        for k, (family, found) in enumerate(_summed(whole, self)):
            rows = RowsElsewhere(ask, k, size)
            rows.remember(state.weights[k], sums.rounded[0][k])
            parts.append(_Block(family, rows, found))
        return self._swept(rng, state, parts)

    def totals(
        self, rng: None, state: AdditiveRegressionState, held: None, data: AdditiveRows,
        which: IntArray, size: FloatArray, w: FloatArray, method: str = "totals",
    ) -> tuple[AdditiveRegressionState, None, Sums]:  # fmt: skip
        """The log likelihood of a block's cells at weights: see `RowsElsewhere`."""
        family, rows = _seen(data, self)[int(which)]
        if not math.isinf(size):
            rows = replace(rows, size=float(size))
        return state, None, answer(method, family, rows, w)

    slopes = partialmethod(totals, method="slopes")
    values = partialmethod(totals, method="values")

    def _moved(
        self, rng: np.random.Generator, point: Point, family: Additive, rows: Any,
        found: Approximation,
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """Leaps where the approximation is near, paths and slices the more the farther it is."""
        near, far = found.spread < _NEAR, found.spread > _FAR
        if not near or rng.random() < _WOVEN_NEAR:
            point = interweave(rng, point, family, rows, found)
        point = (carry if far else reflect)(rng, point, family, rows, found)
        if not near or rng.random() < _SWUNG_NEAR:
            kicks = 1 + (found.spread > _SAME)
            if not near:
                kicks = self.kicks * (_MORE_KICKS if far else 1)
            point = swing(rng, point, family, rows, found, kicks)
        return point.x, point.w

    def state_of(self, weights: FloatArray, hyperparameters: FloatArray) -> AdditiveRegressionState:
        """The state with these numbers, as a draw keeps them."""
        return AdditiveRegressionState(weights, hyperparameters)

    def log_likelihood(self, state: AdditiveRegressionState, data: AdditiveRows) -> float:
        """Log probability of the counts, without multinomial coefficients."""
        if self._has_blocks(data):
            return blocks.log_likelihood(self, state, data)
        return float(self.local_summary(state, data).rounded[0])

    def local_summary(self, state: AdditiveRegressionState, data: AdditiveRows) -> Sums:
        """The log probability of the counts of a block."""
        return Sums((), (np.array(self._log_likelihood(state, data)),))

    def _log_likelihood(self, state: AdditiveRegressionState, data: AdditiveRows) -> float:
        psi = self.predictors(state, data)
        if self.effects == "softmax":
            return float(np.sum(data.counts[:, data.order] * log_softmax(psi, axis=1)))
        if not data.is_events:
            return float(StickBreaking(data.order).log_likelihood(psi, data.counts).sum())
        (size,) = self.sizes(state.hyperparameters[None], data).tolist()
        site = CountSite(data.counts[:, 0].astype(np.float64), size, data.times)
        return float(site.value(psi[:, 0]).sum())

    def sizes(self, hyperparameters: FloatArray, data: AdditiveRows) -> FloatArray:
        """Sizes of negative binomial counts in several draws; infinite for other outcomes."""
        if data.family != "negative_binomial":
            return np.full(len(hyperparameters), math.inf)
        return np.exp(hyperparameters[:, 0, -1])

    def predictors(self, state: AdditiveRegressionState, data: AdditiveRows) -> FloatArray:
        """Predictors of rows and sticks, ``(num_rows, num_sticks)``; or categories, "softmax"."""
        latent = _everywhere(data, self)
        psi = np.concatenate([latent.family.predictor(w) for w in state.weights])
        return psi.reshape(len(state.weights) * latent.num_sticks, -1).T.copy()

    def probs(self, state: AdditiveRegressionState, data: AdditiveRows) -> FloatArray:
        """Probabilities of all rows and categories; mean numbers of events."""
        return self.link(data).probs(self.predictors(state, data))

    def observed_rows(self, data: AdditiveRows) -> ObservedRows:
        """The respondents, one per row; the cells, where respondents are more than 100,000.

        Raises
        ------
        ValueError
            If the rows are events, or have fractional weights.
        """
        data.refuse_weights("to be told one by one")
        if data.is_events:
            raise ValueError("rows must be of categories to be told one by one, got events")
        if data.counts.sum() > _MOST_RESPONDENTS:
            return ObservedRows(("cell", "category"), data.counts, {})
        cells = _cells_of_respondents(data)
        each = np.concatenate([np.repeat(np.arange(len(row)), row) for row in data.counts])
        counts = (each[:, None] == np.arange(data.num_categories)).astype(np.int64)
        return ObservedRows(("respondent", "category"), counts, {"cells": (("respondent",), cells)})

    def row_probs(self, draw: Mapping[str, NDArray[Any]], data: AdditiveRows) -> FloatArray:
        """Probabilities of the observed rows, given a draw of weights.

        Raises
        ------
        ValueError
            If the weights were not kept.
        """
        if "weights" not in draw:
            raise ValueError("weights must be kept to tell the probabilities of rows")
        weights = draw["weights"]
        probs = self.probs(self.state_of(weights, weights[:, :0]), data)
        if data.counts.sum() > _MOST_RESPONDENTS:
            return probs
        return np.asarray(probs[_cells_of_respondents(data)])

    def sds(self, state: AdditiveRegressionState, data: AdditiveRows) -> FloatArray:
        """Standard deviations of all terms that have one; of slopes, in their columns' units."""
        latent = _everywhere(data, self)
        return np.array([latent.sds(x) for x in state.hyperparameters])


def _cells_of_respondents(data: AdditiveRows) -> IntArray:
    return np.repeat(np.arange(data.num_rows), data.counts.sum(axis=1))


def _state_of(points: Sequence[tuple[FloatArray, FloatArray]]) -> AdditiveRegressionState:
    x, w = (np.array(parts) for parts in zip(*points, strict=True))
    return AdditiveRegressionState(w, x)


def _sized(
    rng: np.random.Generator, log_size: FloatArray, psi: FloatArray, rows: CountSite, law: LogNormal
) -> FloatArray:
    """The log size of a negative binomial, given the predictors."""

    def log_density(at: FloatArray, active: BoolArray) -> FloatArray:
        size = math.exp(float(at[0]))
        if not _SIZES[0] < size < _SIZES[1]:
            return np.array([-np.inf])
        value = float(replace(rows, size=size).value(psi).sum())
        return np.asarray(value + law.log_density(at))

    return slice_sample(rng, log_density, log_size)


# --------------------------------------------------------------------------- found once


class _Block(NamedTuple):
    """Sticks that are sampled together: their predictors, rows and approximation."""

    family: Additive
    rows: Any
    found: Approximation


@once_a_data_set
def _everywhere(data: AdditiveRows, model: AdditiveRegression) -> Latent:
    """Terms and design of all rows."""
    is_sized = data.family == "negative_binomial"
    priors = {k: v for k, v in model.priors.items() if not is_sized or k != "size"}
    check_priors(data.design, priors, learns_scales=True)
    return latent_of(data.design, model.priors, _joint(data, model.effects))


def _joint(data: AdditiveRows, effects: str) -> Joint | None:
    """How sticks see effects that they share."""
    if effects == "sticks":
        return None
    if data.is_events:
        raise ValueError(f"effects must be 'sticks' for events, got {effects!r}")
    num, names = data.num_sticks, tuple(data.categories[data.order].tolist())
    if effects == "correlated":
        return Joint(effects, names[:-1], np.eye(num), np.zeros(num))
    if effects == "softmax":
        if data.design.offset is not None:
            raise ValueError("offset(...) adds to all categories alike, which changes no softmax")
        return Joint("categories", names, np.eye(num + 1), np.zeros(num + 1))
    assert data.shares is not None
    equal = StickBreaking().inverse(np.full(num + 1, 1.0 / (num + 1)))
    return Joint(effects, names, mapping(data.shares[data.order]), equal)


@once_a_data_set
def _blocks(data: AdditiveRows, model: AdditiveRegression) -> list[_Block]:
    """Of each stick, or all, the rows that reach it and the approximation of its posterior."""
    with one_blas_thread():
        latent = _everywhere(data, model)
        if data.is_events:
            return [_events(data, *_seen(data, model)[0])]
        if model.effects == "softmax":
            return [_softmax(data, latent)]
        return [
            _Block(family, site, approximate(family, site)) for family, site in _seen(data, model)
        ]


@once_a_data_set
def _dense(data: AdditiveRows, model: AdditiveRegression) -> list[Dense]:
    """What dense sweeps of each stick, or all, go around; none where they are not dense."""
    parts = _blocks(data, model)
    if not all(is_dense(family) for family, _, _ in parts):
        return []
    if model.effects == "softmax":
        rows = softmax_likelihood(data.design.matrix, data.counts.astype(np.float64), data.order)
        return [Dense.of(family, found, rows) for family, _, found in parts]
    return [Dense.of(family, found) for family, _, found in parts]


@once_a_data_set
def _seen(data: AdditiveRows, model: AdditiveRegression) -> list[tuple[Additive, Any]]:
    """Of each stick, or all, the rows that reach it and their likelihood."""
    latent = _everywhere(data, model)
    if data.is_events:
        site = CountSite(data.counts[:, 0].astype(np.float64), weights=data.times)
        return [(latent.family, site)]
    taken = data.counts[:, data.order].astype(np.float64)
    reaching = np.cumsum(taken[:, ::-1], axis=1)[:, ::-1]
    found = []
    for sticks in np.arange(data.num_sticks).reshape(-1, latent.num_sticks):
        y, trials = taken[:, sticks].T.ravel(), reaching[:, sticks].T.ravel()
        rows = np.flatnonzero(trials)
        found.append((latent.family.take(rows), LogisticSite(y[rows], trials[rows])))
    return found


@once_a_data_set
def _summed(data: AdditiveRows, model: AdditiveRegression) -> list[tuple[AsWeights, Summed]]:
    """The approximations as quadratics of the weights."""
    return [
        (AsWeights(family), Summed.of(family, found)) for family, _, found in _blocks(data, model)
    ]


def _events(data: AdditiveRows, family: Additive, site: CountSite) -> _Block:
    """Rows of events; the size of a negative binomial is roughly that of the best predictors."""
    found = approximate(family, site)
    if data.family == "poisson":
        return _Block(family, site, found)
    for _ in range(2):
        at = family.at(found.guess.mean, found.seen).mean
        rates = np.exp(np.minimum(family.predictor(at), _MOST_EVENTS))
        site = replace(site, size=rough_size(site.counts, rates, np.asarray(site.weights)))
        found = approximate(family, site)
    return _Block(family, site, found)


def rough_size(counts: FloatArray, rates: FloatArray, times: FloatArray) -> float:
    """Of negative binomials of known means: their variance beyond a Poisson's is mean^2 / size."""
    beyond, squares = float(times @ ((counts - rates) ** 2 - rates)), float(times @ rates**2)
    return float(np.clip(squares / max(beyond, 1e-2 * squares), 0.2, 100.0))


@dataclass(frozen=True, slots=True, eq=False)
class _SoftmaxRows:
    """The likelihood of a softmax, as a function of predictors that are linear in its scores.

    Attributes
    ----------
    counts : array, ``(num_rows, K)``
    back : array, ``(num_rows, K, K - 1)``
        From predictors less their offsets to scores, up to a constant that does not matter.
    offset : array, ``((K - 1) num_rows,)``
    """

    counts: FloatArray
    back: FloatArray
    offset: FloatArray

    def _scores(self, psi: FloatArray) -> FloatArray:
        phi = (psi - self.offset).reshape(self.back.shape[2], -1)
        return np.asarray(np.einsum("nks,sn->nk", self.back, phi))

    def total(self, psi: FloatArray) -> float:
        """Log likelihood of all rows, up to a constant."""
        return float(np.sum(self.counts * log_softmax(self._scores(psi), axis=1)))

    def slope(self, psi: FloatArray) -> FloatArray:
        """Its derivatives."""
        expected = self.counts.sum(axis=1, keepdims=True) * softmax(self._scores(psi), axis=1)
        return np.ravel(np.einsum("nk,nks->sn", self.counts - expected, self.back))


def _softmax(data: AdditiveRows, latent: Latent) -> _Block:
    """Rows of a softmax, by what sticks are of its scores near the probabilities of each row.

    There sticks are orthogonal, with binomial likelihoods: their sites, on predictors linear in
    the scores eta, psi = M(p) (eta - eta_hat) + psi(p), have the softmax's own curvature.
    """
    assert data.shares is not None
    taken = data.counts[:, data.order].astype(np.float64)
    reaching = np.cumsum(taken[:, ::-1], axis=1)[:, ::-1][:, :-1]
    site = LogisticSite(taken[:, :-1].T.ravel(), reaching.T.ravel())
    num = data.num_rows
    every = range(data.num_categories)
    designs = [latent.family.design[k * num : (k + 1) * num] for k in every]
    probs = np.tile(data.shares[data.order], (num, 1))
    for _ in range(_LINEARISED):
        M = np.array([mapping(p) for p in probs])
        offset = StickBreaking().inverse(probs) - np.einsum("nsk,nk->ns", M, np.log(probs))
        parts = [
            sum(sparse.diags_array(m) @ each for m, each in zip(row, designs, strict=True))
            for row in M.transpose(1, 2, 0)
        ]
        family = Additive(latent.family.terms, sparse.vstack(parts), offset.T.ravel())
        found = approximate(family, site)
        eta = latent.family.predictor(family.at(found.guess.mean, found.seen).mean)
        near = softmax(eta.reshape(-1, num).T, axis=1) + _LEAST_SHARE
        probs = near / near.sum(axis=1, keepdims=True)
    rows: Any = _SoftmaxRows(taken, np.linalg.pinv(M), family.offset)
    rng = np.random.default_rng(0)
    law = family.at(found.guess.mean, found.seen)
    left = [found.correction(rows, family.predictor(law.sample(rng))) for _ in range(40)]
    return _Block(family, rows, replace(found, spread=float(np.var(left))))
