"""Data of an additive regression: outcomes in cells of equal covariates."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pgmult.core.typing import Array, FloatArray, Generator, IntArray, ObservedRows
from pgmult.formulas.design import Design
from pgmult.variational.sites import CountSite

MOST_EVENTS = 40.0
"""Log rate of simulated counts, at most."""

_EVENLY = 10_000
_MOST_RESPONDENTS = 100_000  # that are scored one by one


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
        "categories"; "dirichlet_multinomial" for counts that scatter, a row of the table each;
        "poisson" or "negative_binomial" for events.
    times : array, ``(num_rows,)``, or None
        How many rows of the table a row of events stands for.
    entries : int64 array, ``(num_entries, 2)``, or None
        In the order of the table's rows, each count that is not 0: its cell times K plus its
        category, and how many observations it is. It matches observations of runs with different
        cells. None of fractional weights.
    is_ordered : bool
        Whether the categories have an order, in which they stand.
    unit : str
        What reports call an observation, in the singular.
    """

    counts: NDArray[Any]
    design: Design
    order: IntArray
    categories: NDArray[np.str_]
    family: str = "categories"
    times: FloatArray | None = None
    entries: IntArray | None = None
    is_ordered: bool = False
    unit: str = "observation"

    def __repr__(self) -> str:
        what = self.categories[0] if self.is_events else f"{self.num_categories} categories"
        people = f"{self.respondents.sum():,.6g} {'rows' if self.is_events else 'outcomes'}"
        return f"AdditiveRows({people}, {self.num_rows:,} cells, {what}, {self.design.formula})"

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
        sizes = self.counts.sum(axis=1) if self.times is None else self.times
        return np.asarray(sizes, dtype=np.float64)

    @property
    def is_weighted(self) -> bool:
        """Whether observations have fractional weights.

        The posterior is exact, of a likelihood in which each row adds its share, and averages over
        observations are weighted. But weighted counts are no data that can be simulated, and nobody
        can be left out of them: `loo`, and `check` and `compare` without rows held out, are not
        for them.
        """
        return bool((self.counts % 1.0).any() or (self.respondents % 1.0).any())

    def refuse_weights(self, why: str) -> None:
        """Raise ValueError if observations have fractional weights."""
        if self.is_weighted:
            raise ValueError(f"rows must have whole weights {why}, got fractions")

    def each_of(self, column: Array) -> Array:
        """Repeat a column of the cells for each observation; for 10,000 in shares if weighted."""
        people = self.respondents
        if not self.is_weighted:
            return np.repeat(column, people.astype(np.int64))
        ends = np.cumsum(people)
        places = np.searchsorted(ends, (np.arange(_EVENLY) + 0.5) / _EVENLY * ends[-1])
        return np.asarray(column[places])

    @property
    def is_events(self) -> bool:
        """Whether a row is a number of events, rather than counts of categories."""
        return self.family in ("poisson", "negative_binomial")

    @property
    def scatters(self) -> bool:
        """Whether probabilities scatter between rows of equal covariates."""
        return self.family == "dirichlet_multinomial"

    @property
    def is_by_row(self) -> bool:
        """Whether rows are scored, and not single observations: they scatter or are events."""
        return self.scatters or self.is_events

    @property
    def scored(self) -> str:
        """What is scored, in the singular: an observation, or a row of the table."""
        return "row" if self.is_by_row else self.unit

    @property
    def is_sized(self) -> bool:
        """Whether rows have a size or concentration that is learned."""
        return self.scatters or self.family == "negative_binomial"

    def offsets(self, design: Design, link: str) -> FloatArray:
        """Offsets of scores at the rows of a design, ``(num_rows, num_scores)`` or one column.

        Parameters
        ----------
        design : Design
        link : str
            "softmax", "cumulative", "stick_breaking", "logistic" or "log".

        Raises
        ------
        ValueError
            If an offset does not say to which of several categories it belongs.
        """
        named, names = design.named_offsets, self.categories.tolist()
        total = np.zeros(len(design.matrix)) if design.offset is None else design.offset
        if design.offset is None and not named:
            return total[:, None]
        allowed = [] if link in ("log", "cumulative") else names
        for name in named:
            if name not in allowed:
                known = ", ".join(allowed) or "no category"
                raise ValueError(f"offset(x, category) must name {known}, got {name!r}")
        if link == "stick_breaking":
            raise ValueError("offsets of several categories need a softmax or cumulative link")
        if link == "softmax":
            if design.offset is not None:
                name = f'one of several categories, as offset(x, "{names[0]}")'
                raise ValueError(f"offset(x) must name {name}: added to all it changes nothing")
            return np.column_stack([named.get(name, total) for name in names])
        for name, values in named.items():  # log odds of the first stick's category
            total = total + (values if names.index(name) == self.order[0] else -values)
        return total[:, None]

    @property
    def quantity(self) -> str:
        """What the predictions are, in words."""
        return f"Mean {self.categories[0]}" if self.is_events else "Probabilities of categories"

    def observed(self) -> ObservedRows:
        """The observations, one per row; the cells, where observations are more than 100,000.

        Raises
        ------
        ValueError
            If the rows are events, or have fractional weights.
        """
        self.refuse_weights("to be scored one by one")
        if self.is_events:
            raise ValueError("rows must be of categories to be scored one by one, got events")
        if self.counts.sum() > _MOST_RESPONDENTS:
            return ObservedRows(("cell", "category"), self.counts, {})
        outcomes = np.concatenate([np.repeat(np.arange(len(row)), row) for row in self.counts])
        counts = (outcomes[:, None] == np.arange(self.num_categories)).astype(np.int64)
        cells = {"cells": (("respondent",), self.of_observed(np.arange(self.num_rows)))}
        return ObservedRows(("respondent", "category"), counts, cells)

    def of_observed(self, of_cells: Array) -> NDArray[Any]:
        """What the rows of `observed` have of something that cells have."""
        times = self.counts.sum(axis=1)
        return of_cells if times.sum() > _MOST_RESPONDENTS else np.repeat(of_cells, times, axis=0)

    def log_probability(self, probs: FloatArray, counts: NDArray[Any], size: float) -> FloatArray:
        """Log probability of the counts, or number of events, of each row.

        Parameters
        ----------
        probs, size : as in `made`
        counts : array, ``(num_rows, num_categories)``
        """
        if self.is_events:
            site = CountSite(counts[:, 0].astype(np.float64), size)
            return site.value(np.log(np.maximum(probs[:, 0], 1e-300)))
        orders = gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1)
        return np.asarray(orders + scattered(counts, probs, size))

    def simulated(self, rng: Generator, probs: FloatArray, size: float) -> "AdditiveRows":
        """New outcomes of the same totals; of events, a row for each of the table's.

        Parameters
        ----------
        rng, probs, size : as in `made`
        """
        if not self.is_events:
            counts = self.made(rng, probs, self.counts.sum(axis=1), size)
            return replace(self, counts=counts, entries=None)
        rows = np.repeat(np.arange(self.num_rows), np.asarray(self.times).astype(np.int64))
        single, design = np.ones(len(rows), dtype=np.int64), self.design.take(rows)
        counts, times = self.made(rng, probs[rows], single, size), single.astype(np.float64)
        return replace(self, counts=counts, design=design, times=times, entries=None)

    def made(self, rng: Generator, probs: FloatArray, totals: IntArray, size: float) -> IntArray:
        """Simulated counts of `totals` observations per row, or events in `totals` rows like it.

        Parameters
        ----------
        rng : numpy.random.Generator
        probs : array, ``(num_rows, num_categories)``
            Or mean numbers of events.
        totals : int array, ``(num_rows,)``
        size : float
            Size of a negative binomial, or concentration of counts that scatter; else infinite.
        """
        is_sized = not math.isinf(size)
        if self.scatters and is_sized:
            probs = rng.standard_gamma(np.maximum(size * probs, 1e-300)) + 1e-300
        if not self.is_events:
            return np.asarray(rng.multinomial(totals, probs / probs.sum(axis=1, keepdims=True)))
        rates = np.minimum(totals[:, None] * probs, math.exp(MOST_EVENTS))
        if is_sized:
            rates = rng.gamma(size * totals[:, None], np.minimum(probs, rates) / size)
        return rng.poisson(np.minimum(rates, math.exp(MOST_EVENTS)))


def scattered(counts: Array, probs: FloatArray, size: float) -> FloatArray:
    """Log likelihood of Dirichlet-multinomial rows, without multinomial coefficients.

    Parameters
    ----------
    counts, probs : arrays, ``(..., num_categories)``
    size : float
        Concentration.
    """
    alpha = np.maximum(size * probs, 1e-290)
    rising = (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=-1)
    return np.asarray(rising + gammaln(size) - gammaln(counts.sum(axis=-1) + size))
