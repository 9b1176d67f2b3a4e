"""Results of a posterior: draws with named axes, their summaries, tables and figures.

An `Estimand` is made of draws, of whatever shape, with names for the axes and labels along them.
It has means, standard deviations and intervals; it prints itself, and is a table in a notebook and
a data frame; entries are found by their labels and can be subtracted, draw by draw. A label is a
value: a number, a date or a text, and is never looked up by how it is printed.

>>> import numpy as np
>>> draws = np.random.default_rng(0).dirichlet([5.0, 3.0, 2.0], size=(1000, 2))
>>> shares = Estimand(
...     draws, ("year", "name"), {"year": [1999, 2000], "name": ["Ada", "Ben", "Cy"]},
...     caption="Shares of names.",
... )
>>> print(shares.at(year=2000))
Shares of names. year 2000. Posterior mean, sd and 90 % interval.
<BLANKLINE>
name   mean     sd  90 %
Ada   0.503  0.148  [0.263, 0.757]
Ben   0.303  0.138  [0.103, 0.546]
Cy    0.194  0.120  [0.040, 0.426]
>>> gap = shares.difference("year", 2000, 1999)
>>> gap.mean.shape, gap.labels
((3,), {'name': ['Ada', 'Ben', 'Cy']})
>>> bool(np.all(gap.mean == -shares.difference("year", 1999, 2000).mean))
True
>>> list(gap.tidy().columns)
['term', 'contrast', 'name', 'estimate', 'std_error', 'conf_low', 'conf_high']
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import islice
from typing import Annotated, Any

import numpy as np

from pgmult.core.answers import Answer
from pgmult.core.arguments import as_probability, brief
from pgmult.core.figures.base import Figure
from pgmult.core.figures.forest import Forest
from pgmult.core.figures.lines import Line, Lines, date_ticks
from pgmult.core.labels import find_labels, labels_of, value_texts, which_of
from pgmult.core.parameters import Checked, measure
from pgmult.core.tabled import Column, Table, digits_of, interval, number, probability_text
from pgmult.core.tables import as_years
from pgmult.core.typing import AnyArray, Array, ArrayLike, FloatArray

Labels = Sequence[Any] | AnyArray | Mapping[str, Sequence[Any] | AnyArray]

_ROUNDING = 1e-12  # relative difference up to which draws are all equal
_MOST_LINES = 6  # of a figure, unless some are asked for


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Estimand(Answer, Checked):
    """Posterior draws of an array with names for its axes and labels along them.

    Attributes
    ----------
    draws : array, ``(num_draws, ...)``
        One axis for each name in `axes` after the first. An entry is nan where a draw has no value
        for it; summaries of the entry leave such draws out.
    axes : tuple of str
    labels : mapping from the name of an axis to its labels
        A sequence of values; or, where several columns identify the entries of an axis, a mapping
        from name to sequence. An axis without labels is numbered.
    probability : float
        Of the central intervals that tables and figures show.
    caption : str
        What it is, in a sentence.
    is_difference : bool
        Whether its sign matters: tables then show the probability to be above 0.
    is_ratio : bool
        Whether it may have no mean, as what is divided by may be 0: tables and figures then show
        medians, and no standard deviations.
    term, contrast : str
        What is compared: a column, and which of its values, such as "2000 - 1999".
    """

    draws: Annotated[FloatArray, lambda value, _: np.asarray(value, dtype=np.float64)]
    axes: tuple[str, ...]
    labels: Mapping[str, Labels]
    _: KW_ONLY
    probability: Annotated[float, as_probability] = 0.9
    caption: str = ""
    is_difference: bool = False
    is_ratio: bool = False
    term: str = ""
    contrast: str = ""

    def _complete(self) -> None:
        measure("draws", self.draws.shape, ("draw", *self.axes), {})
        for axis, size in zip(self.axes, self.draws.shape[1:], strict=True):
            for name, values in self.columns_of(axis).items():
                if len(values) != size:
                    got = f"to go with draws, got {len(values)}"
                    raise ValueError(f"labels of {name!r} must be {size} {got}")

    @property
    def mean(self) -> FloatArray:
        """Means."""
        return _over_draws("mean", self.draws)

    @property
    def sd(self) -> FloatArray:
        """Standard deviations."""
        return _over_draws("std", self.draws)

    def quantile(self, at: float | Sequence[float]) -> FloatArray:
        """Quantiles, with those that `at` lists along the first axis, if it is a list."""
        return _over_draws("quantile", self.draws, at)

    def interval(self, probability: float | None = None) -> FloatArray:
        """Lower and upper ends of central intervals, along the first axis."""
        level = self.probability if probability is None else probability
        tail = 0.5 * (1.0 - as_probability(level, "probability"))
        return self.quantile([tail, 1.0 - tail])

    @property
    def lower(self) -> FloatArray:
        """Lower ends of the intervals."""
        return np.asarray(self.interval()[0])

    @property
    def upper(self) -> FloatArray:
        """Upper ends of the intervals."""
        return np.asarray(self.interval()[1])

    def p_above(self, value: float = 0.0) -> FloatArray:
        """Posterior probabilities of being above a value."""
        return _over_draws("mean", np.where(np.isnan(self.draws), np.nan, self.draws > value))

    def columns_of(self, axis: str) -> Mapping[str, Sequence[object] | Array]:
        """The columns that label an axis."""
        labels = self.labels.get(axis)
        if labels is None:
            return {axis: range(self.draws.shape[1 + self.axes.index(axis)])}
        return labels if isinstance(labels, Mapping) else {axis: labels}

    def axis_of(self, column: str) -> tuple[int, str]:
        """The place and the name of the axis that a column labels."""
        for place, axis in enumerate(self.axes):
            if column in self.columns_of(axis):
                return place, axis
        columns = [name for axis in self.axes for name in self.columns_of(axis)]
        raise ValueError(f"column must be one of {', '.join(columns)}, got {brief(column)}")

    def cells(self) -> dict[str, list[Any]]:
        """The label of every entry in every column, entries in the order of `draws`."""
        shape = self.draws.shape[1:]
        places = np.unravel_index(np.arange(math.prod(shape)), shape) if shape else ()
        columns: dict[str, list[Any]] = {}
        for axis, place in zip(self.axes, places, strict=True):
            columns |= {name: _taken(of, place) for name, of in self.columns_of(axis).items()}
        return columns

    def at(self, **labels: object) -> "Estimand":
        """The same at one label of some columns; an axis with one entry left is dropped.

        Raises
        ------
        ValueError
            If there is no such column or label; the nearest ones are named.
        """
        chosen = self._with(self.draws, self.axes, self.labels, self.caption)
        for column, label in labels.items():
            chosen = chosen._where(column, label)
        return chosen

    def difference(self, column: str, one: object, other: object) -> "Estimand":
        """How much larger it is at one label of a column than at another, draw by draw.

        Raises
        ------
        ValueError
            If there is no such column or label, or other columns have other labels there.
        """
        first, second = self.at(**{column: one}), self.at(**{column: other})
        if first.cells() != second.cells():
            both = f"{column} {brief(one)} and at {brief(other)}"
            raise ValueError(f"entries at {both} must have the same labels in all other columns")
        caption = f"{self.caption} {column} {one} less {column} {other}."
        return replace(
            first._with(first.draws - second.draws, first.axes, first.labels, caption.strip()),
            is_difference=True, term=column, contrast=" - ".join(value_texts([one, other])),
        )  # fmt: skip

    def _with(
        self, draws: FloatArray, axes: tuple[str, ...], labels: Any, caption: str
    ) -> "Estimand":
        """Other draws of the same kind; of a kind of estimand, a plain one."""
        return Estimand(
            draws, axes, labels, caption=caption, probability=self.probability,
            is_difference=self.is_difference, term=self.term, contrast=self.contrast,
        )  # fmt: skip

    def _where(self, column: str, label: object) -> "Estimand":
        place, axis = self.axis_of(column)
        columns = self.columns_of(axis)
        rows = np.flatnonzero(which_of(columns[column], [label], column) == 0)
        draws, labels = np.take(self.draws, rows, axis=place + 1), dict(self.labels)
        axes, said = self.axes, f"{column} {value_texts([label])[0]}"
        others = {name: _taken(values, rows) for name, values in columns.items() if name != column}
        if len(rows) == 1:
            draws, axes = np.squeeze(draws, axis=place + 1), axes[:place] + axes[place + 1 :]
            labels.pop(axis, None)
            said = ", ".join([said, *(f"{name} {values[0]}" for name, values in others.items())])
        else:
            labels[axis] = others or {column: _taken(columns[column], rows)}
        return self._with(draws, axes, labels, f"{self.caption} {said}.".strip())

    def table(self) -> Table:
        """Labels, mean (or median), sd and interval of every entry, a row each.

        Intervals of what all draws agree on are printed as "fixed".
        """
        middle, centre = self._centre
        low, high = (end.ravel() for end in self.interval())
        least, most = self.draws.min(axis=0).ravel(), self.draws.max(axis=0).ravel()
        is_fixed = (most - least <= _ROUNDING * abs(most)) & (len(self.draws) > 1)
        forms = [number(digits_of(width)) for width in np.where(is_fixed, 0.0, high - low).tolist()]
        rows = zip(is_fixed, forms, low, high, strict=True)
        shown = ["fixed" if fixed else interval(a, b, form) for fixed, form, a, b in rows]
        centres = {middle: centre} | ({} if self.is_ratio else {"sd": self.sd})
        columns = [Column(name, of, name, value_texts(of)) for name, of in self.cells().items()]
        for name, values in centres.items():
            texts = [form(x) for form, x in zip(forms, values.ravel(), strict=True)]
            columns.append(Column(name, values.ravel(), name, texts))
        level = f"{100.0 * self.probability:g} %"
        columns += [Column("lower", low), Column("upper", high, level, shown)]
        if self.is_difference:
            columns.append(Column("p_positive", self.p_above().ravel(), "P(>0)", probability_text))
        return Table(self._said, columns)

    @property
    def _centre(self) -> tuple[str, FloatArray]:
        """Return the point estimate beside an interval, and its name."""
        return ("median", self.quantile(0.5)) if self.is_ratio else ("mean", self.mean)

    @property
    def _said(self) -> str:
        words, level = "median" if self.is_ratio else "mean, sd", f"{100.0 * self.probability:g} %"
        return f"{self.caption} Posterior {words} and {level} interval.".strip()

    def tidy(self) -> Table:
        """One row per entry, in the columns of marginaleffects and broom.

        ``term`` and ``contrast`` where something is compared, the labels, then ``estimate`` (the
        posterior mean), ``std_error`` (its standard deviation), ``conf_low``, ``conf_high`` (ends
        of the central interval). Shares are from 0 to 1. Of ratios the estimate is the median, and
        the error nan.
        """
        cells, size = self.cells(), self.mean.size
        term = cells.pop("column", [self.term] * size)
        contrast = cells.pop("comparison", [self.contrast] * size)
        compared = {"term": term, "contrast": contrast} if any(contrast) else {}
        error = np.full(self.mean.shape, np.nan) if self.is_ratio else self.sd
        names = ("estimate", "std_error", "conf_low", "conf_high")
        values = (self._centre[1], error, *self.interval())
        labels = [Column(n, of, n, value_texts(of)) for n, of in (compared | cells).items()]
        numbers = [Column(n, x.ravel(), n, number(4)) for n, x in zip(names, values, strict=True)]
        return Table(self._said, [*labels, *numbers])

    def figure(self, *arguments: Any, **options: Any) -> Figure:
        """The figure that shows it best: `curves` where there are numbers or dates, or `points`."""
        named = [values for axis in self.axes for values in self.columns_of(axis).values()]
        if arguments or options or (len(self.axes) < 3 and any(map(are_numbers, named))):
            return self.curves(*arguments, **options)
        return self.points()

    def points(self) -> Forest:
        """Means, or medians, and intervals: those along the last axis beside each other."""
        (middle, mean), (lower, upper) = self._centre, self.interval()
        last = self.draws.shape[-1] if len(self.axes) > 1 else 1
        cells = [value_texts(values) for values in self.cells().values()]
        columns = len(self.columns_of(self.axes[-1])) if len(self.axes) > 1 else 0
        first = len(cells) - columns
        ends = islice(_joined(cells[first:]), last) if columns else []
        return Forest(
            labels=_joined(cells[:first])[::last],
            mean=mean.reshape(-1, last).T, lower=lower.reshape(-1, last).T,
            upper=upper.reshape(-1, last).T, legend=dict(enumerate(ends)),
            legend_title=self.axes[-1] if columns else "",
            line=0.0 if self.is_difference else None, name=", ".join(self.axes[:-1] or self.axes),
            caption=self.caption, x_label=f"{middle} and {100.0 * self.probability:g} % interval",
        )  # fmt: skip

    def curves(
        self, along: str | None = None, *, only: Sequence[object] | None = None,
        observed: tuple[object, ArrayLike] | None = None,
    ) -> Lines:  # fmt: skip
        """Means and intervals along a column of numbers or dates.

        Parameters
        ----------
        along : str, optional
            The column; by default the first that has numbers or dates. Where several entries have
            the same number, choose among them by `at` first.
        only : sequence, optional
            Labels along the other axis, of which to draw lines; by default those of largest mean.
        observed : pair of arrays, ``(n,)`` and ``(n, num_labels)``, optional
            Places in the column and what was observed there, drawn as points; rows of nan are
            shaded.

        Raises
        ------
        ValueError
            If there is no such column or label, or more than two axes.
        """
        columns = {name: axis for axis in self.axes for name in self.columns_of(axis)}
        if along is None:
            along = next((c for c, a in columns.items() if are_numbers(self.columns_of(a)[c])), "")
        place, axis = self.axis_of(along)
        x = places_of(self.columns_of(axis)[along])
        if len(np.unique(x)) < len(x) or len(self.axes) > 2:
            raise ValueError(f"each line must have one entry at each {along} (see .at(...))")
        order, others = np.argsort(x, kind="stable"), [a for a in self.axes if a != axis]
        (name, labels), *_ = (self.columns_of(others[0]) if others else {"": ["mean"]}).items()
        numbers = np.moveaxis(np.array([self.mean, *self.interval()]), place + 1, 1)
        mean, lower, upper = numbers.reshape(3, len(x), -1)[:, order]
        chosen = np.argsort(-mean.mean(axis=0), kind="stable")[:_MOST_LINES]
        if only is not None:
            chosen = find_labels(labels_of(labels, name), only, name)
        none: tuple[Any, Any] = ([None] * len(labels), [])
        points, gaps = none if observed is None else _points_and_gaps(x, *observed)
        texts = value_texts(list(labels))
        has_dates = np.asarray(self.columns_of(axis)[along]).dtype.kind == "M"
        lines = [
            Line(texts[k], k, x[order], mean[:, k], [(lower[:, k], upper[:, k])], points[k])
            for k in chosen.tolist()
        ]
        return Lines(
            lines, label=self.caption or f"means along {along}", x_label=along,
            y_label="posterior mean", band=f"{100.0 * self.probability:g} % interval", gaps=gaps,
            ticks=date_ticks(float(x.min()), float(x.max())) if has_dates else None,
            from_zero=bool(lower.min() >= 0.0),
        )  # fmt: skip


def are_numbers(values: Sequence[object] | Array) -> bool:
    """Whether labels are numbers or dates."""
    return np.asarray(values).dtype.kind in "iufM"


def _points_and_gaps(
    x: FloatArray, places: object, shares: object
) -> tuple[list[tuple[FloatArray, FloatArray]], list[tuple[float, float]]]:
    """What was observed for each line, and the stretches of x where nothing was."""
    where, observed = places_of(places), np.asarray(shares, dtype=np.float64)
    is_observed = ~np.isnan(observed).any(axis=1)
    apart = np.diff(np.unique(np.concatenate([x, where])))
    half = 0.5 * float(np.median(apart)) if len(apart) else 0.5
    gaps = [(at - half, at + half) for at in np.unique(where[~is_observed]).tolist()]
    return [(where[is_observed], column[is_observed]) for column in observed.T], gaps


def _joined(cells: Sequence[Sequence[str]]) -> list[str]:
    """The texts of each row."""
    return [", ".join(row) for row in zip(*cells, strict=True)]


def places_of(values: object) -> FloatArray:
    """Numbers as they are, and dates as years."""
    array = np.asarray(values)
    return as_years(array) if array.dtype.kind == "M" else array.astype(np.float64)


def _over_draws(statistic: str, draws: FloatArray, *arguments: ArrayLike) -> FloatArray:
    """A statistic of draws, without those that are nan; nan where no draw says anything."""
    function = getattr(np, f"nan{statistic}" if np.isnan(draws).any() else statistic)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(function(draws, *arguments, axis=0))


def _taken(values: Sequence[object] | Array, rows: Array) -> list[object]:
    """Values of some rows, none of them changed."""
    return [values[row] for row in rows]
