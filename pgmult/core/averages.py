r"""Averages of predicted probabilities over rows of a table: one function for all families.

A family supplies `Rows`: a table, and the probabilities of its rows, draw by draw, also where
columns were set to other values. `average` does everything else, in each draw s:

    mean over rows r of a group, weighted by w_r, of  p_s(category | row r, some columns set).

Rows are as they were observed, or some columns are set to each of several values (`set`); they are
averaged all together or in groups (`by`), over those of certain values alone (`where`), and with
weights. `differences` compares settings of a column. Both return an `Estimand`, which has tables,
figures and intervals.

>>> import numpy as np
>>> def predicted(table):  # two draws
...     old = (np.asarray(table["age"]) > 40)[:, None]
...     return (np.where(old, [p, 1 - p], [0.5, 0.5]) for p in (0.7, 0.9))
>>> rows = Rows({"age": [30, 50, 60], "place": ["NY", "NY", "TX"]}, predicted, {"vote": ["a", "b"]})
>>> average(over=rows, by="place").mean.round(2).tolist()
[[0.65, 0.35], [0.8, 0.2]]
>>> at = average(over=rows, set={"age": [30, 50]})
>>> at.axes, at.difference("age", 50, 30).mean.round(2).tolist()
(('age', 'vote'), [0.3, -0.3])
>>> pairs = [Pair("age", "+20", lambda age: age + 20, lambda age: age)]
>>> differences(pairs, over=rows).mean.round(2).tolist()
[[0.1, -0.1]]
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import product
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from pgmult.core.arguments import as_choice, as_list, as_mapping, as_strings, brief, under_name
from pgmult.core.estimands import Estimand, Labels
from pgmult.core.labels import Levels, find_labels, labels_of, numbered, value_texts, which_of
from pgmult.core.typing import BoolArray, FloatArray
from pgmult.core.validate import as_nonnegative

Table = Mapping[str, Any]
Change = Callable[[Any], Any]
_VALUES = str | Real | np.generic | date


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of a table and what a run predicts for them: what a family gives to `average`.

    Attributes
    ----------
    table : mapping from a column to its cells, ``(num_rows,)``
    probabilities : callable
        ``probabilities(table)`` yields the probabilities of the rows, ``(num_rows, K)``, draw by
        draw. It is called with `table` itself, or with one in which columns were set.
    labels : mapping
        The name of the last axis, such as ``"category"``, with its labels.
    weights : array, ``(num_rows,)``, optional
        How much each row counts; all alike by default.
    orders : callable, optional
        ``orders(column)`` returns the order of a column's labels, or None for the sorted one.
    """

    table: Table
    probabilities: Callable[[Table], Iterable[FloatArray]]
    labels: Mapping[str, Labels]
    weights: FloatArray | None = None
    orders: Callable[[str], Sequence[str] | None] = lambda column: None

    def __len__(self) -> int:
        return len(next(iter(self.table.values()))) if self.weights is None else len(self.weights)

    def mapped(
        self, function: Callable[[FloatArray], FloatArray], labels: Mapping[str, Labels]
    ) -> "Rows":
        """Return rows of a function of the probabilities, such as log odds."""
        made = self.probabilities
        return replace(self, probabilities=lambda x: map(function, made(x)), labels=labels)

    def spread(self, count: int) -> "Rows":
        """Return at most `count` rows, evenly spread over the weights."""
        ends = np.cumsum(np.ones(len(self)) if self.weights is None else self.weights)
        places = np.searchsorted(ends, (np.arange(count) + 0.5) / count * ends[-1])
        rows, times = np.unique(places, return_counts=True)
        table = {name: np.asarray(cells)[rows] for name, cells in self.table.items()}
        return replace(self, table=table, weights=times.astype(np.float64))

    def mean(self) -> FloatArray:
        """Return the posterior mean probabilities of the rows, ``(num_rows, K)``."""
        total, count = np.zeros(()), 0
        for probs in self.probabilities(self.table):
            total, count = total + probs, count + 1
        return np.asarray(total / count)


class Pair(NamedTuple):
    """Two settings of a column that are compared.

    Attributes
    ----------
    column, name : str
        The column, and the difference in words, such as "2000 less 1990".
    one, other : label, number, date or callable
        A value for all rows; or a function of the column's cells that returns new ones.
    """

    column: str
    name: str
    one: Any
    other: Any


def average(
    *, over: Rows, set: Mapping[str, object] | None = None,  # noqa: A002
    by: str | Sequence[str] | Mapping[str, Sequence[object] | None] | None = None,
    where: Mapping[str, object] | None = None, weight: str | None = None, caption: str = "",
    probability: float = 0.9,
) -> Estimand:  # fmt: skip
    """Average the probabilities of rows, draw by draw.

    Parameters
    ----------
    over : Rows
    set : mapping from a column to a value, or to several, optional
        Columns to set to these values in all rows. Each column with several values is an axis of
        the result.
    by : str, sequence of str or mapping, optional
        Columns that group the rows. The groups of a column, or of a sequence of columns the
        combinations that occur, are one axis; a mapping from columns to their values, or to None
        for all values, gives an axis for each column.
    where : mapping from a column to a value, or to several, optional
        Rows to use: those with these values.
    weight : str, optional
        Column of the table that says how much a row counts.
    caption : str
    probability : float
        Probability of the intervals.

    Raises
    ------
    ValueError
        If there is no such column or value, or a group has no rows.
    """
    groups = _Groups.of(over, by, where, weight)
    lists, labels = _settings(over, set, groups.columns)
    values = [
        [groups.means(probs) for probs in over.probabilities(_changed(over, over.table, setting))]
        for setting in (dict(zip(lists, cells, strict=True)) for cells in product(*lists.values()))
    ]
    draws = np.array(values).swapaxes(0, 1)
    draws = draws.reshape(len(draws), *map(len, labels.values()), *draws.shape[2:])
    named = {**labels, **groups.axes, **over.labels}
    return Estimand(draws, (*named,), named, caption=caption, probability=probability)


def differences(
    pairs: Sequence[Pair], *, over: Rows, set: Mapping[str, object] | None = None,  # noqa: A002
    by: str | Sequence[str] | None = None, weight: str | None = None, caption: str = "",
    probability: float = 0.9,
    contrast: Callable[[FloatArray, FloatArray], FloatArray] = np.subtract,
) -> Estimand:  # fmt: skip
    """Compare averages at two settings of a column, draw by draw, for each of some pairs.

    Parameters
    ----------
    pairs : sequence of Pair
    over, by, weight, caption, probability
        The same as in `average`.
    set : mapping from a column to a value, optional
        Columns to set in all rows.
    contrast : callable
        Function of the averages at one setting and at the other; their difference by default.

    Returns
    -------
    Estimand
        Axes comparison (labelled by column and comparison), that of `by`, and the last of the rows.
    """
    groups = _Groups.of(over, by, None, weight)
    lists, several = _settings(over, set, groups.columns)
    if several:
        column = next(iter(several))
        raise ValueError(f"at must have one value of {column!r}, got several (see by=)")
    fixed = _changed(over, over.table, {column: values[0] for column, values in lists.items()})
    averages: dict[tuple[str, object], FloatArray] = {}
    for column, value in dict.fromkeys((p.column, x) for p in pairs for x in (p.one, p.other)):
        words = f"column {column!r}"
        with under_name(f"values of {words}", of=words):
            probs = over.probabilities(_changed(over, fixed, {column: value}))
            averages[column, value] = np.array([groups.means(p) for p in probs])
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = [contrast(averages[p.column, p.one], averages[p.column, p.other]) for p in pairs]
    compared = {"column": [p.column for p in pairs], "comparison": [p.name for p in pairs]}
    named = {"comparison": compared, **groups.axes, **over.labels}
    return Estimand(
        np.stack(gaps, axis=1), (*named,), named, caption=caption, probability=probability,
        is_difference=True,
    )  # fmt: skip


def crossed(
    table: Iterable[str], column: str, values: Sequence[object] | None, by: str | None
) -> dict[str, Sequence[Any] | None]:
    """The groups of the values of a column, and of each value of a second one."""
    groups = {as_choice(column, "column", list(table)): values}
    if by is not None:
        groups[as_choice(by, "by", [name for name in table if name != column])] = None
    return groups


def in_words(settings: Mapping[str, object] | None) -> str:
    """Columns that are set to one value, as the end of a caption: ", age 40"."""
    one = {c: v for c, v in (settings or {}).items() if isinstance(v, _VALUES)}
    return "".join(f", {column} {value_texts([value])[0]}" for column, value in one.items())


def _settings(
    rows: Rows, settings: Mapping[str, object] | None, grouping: Sequence[str]
) -> tuple[dict[str, list[object]], dict[str, list[object]]]:
    """The values of each column that is set, and those of columns with several."""
    lists: dict[str, list[Any]] = {}
    values = as_mapping(settings, "at")
    for column, value in values.items():
        as_choice(column, "column of at", rows.table)
        if column in grouping:
            raise ValueError(f"at must not set {column!r}, which by= divides the rows by")
        name = f"at[{column!r}]"
        lists[column] = [value] if isinstance(value, _VALUES) else as_list(value, name, "values")
        if not lists[column]:
            raise ValueError(f"{name} must hold a value, got none")
        for cell in lists[column]:
            if not isinstance(cell, _VALUES):
                raise TypeError(f"{name} must be numbers, dates or labels, got {brief(cell)}")
    return lists, {c: x for c, x in lists.items() if not isinstance(values[c], _VALUES)}


def _changed(rows: Rows, table: Table, settings: Mapping[str, object]) -> Table:
    """The table with columns set to values, or to what a function makes of the rows' own."""
    cells = {
        column: value(np.asarray(rows.table[column])) if callable(value) else [value] * len(rows)
        for column, value in settings.items()
    }
    return {**table, **cells} if cells else table


class _Groups(NamedTuple):
    """Groups of rows, and the weight of each row in its group.

    Attributes
    ----------
    columns : tuple of str
        Columns that group the rows.
    axes : mapping from an axis to its labels
    shares : sparse array, ``(num_groups, num_rows)``
        Rows of it sum to 1.
    """

    columns: tuple[str, ...]
    axes: dict[str, Any]
    shares: sparse.csr_array

    @classmethod
    def of(cls, rows: Rows, by: Any, where: Mapping[str, Any] | None, weight: str | None) -> Self:
        """Groups of rows with the same values of columns: arguments of `average`."""
        table = rows.table
        weights = np.ones(len(rows)) if rows.weights is None else rows.weights
        if weight is not None:
            cells = table[as_choice(weight, "weight", table)]
            weights = as_nonnegative(cells, f"column {weight!r}")
        used = _matching(rows, where)
        axes: dict[str, Any] = {}
        codes, sizes = np.zeros(len(rows), dtype=np.int64), tuple[int, ...]()
        columns = tuple(by or ()) if isinstance(by, Mapping) else _as_columns(by)
        if isinstance(by, Mapping) and by:
            for c, asked in by.items():
                axes[as_choice(c, "column", list(table))] = _values(table[c], used, asked, c)
            places = [which_of(table[c], values, c) for c, values in axes.items()]
            used = used & np.logical_and.reduce([place >= 0 for place in places])
            sizes = tuple(map(len, axes.values()))
            codes = np.ravel_multi_index([np.maximum(place, 0) for place in places], sizes)
        elif columns:
            by_name = {name: table[as_choice(name, "by", table)] for name in columns}
            levels, codes = Levels.of(by_name, {name: rows.orders(name) for name in columns})
            labels = dict(zip(columns, levels.labels.T, strict=True))
            axes[":".join(columns)] = labels if len(labels) > 1 else levels.labels[:, 0]
            sizes = (len(levels),)
        total = np.bincount(codes[used], weights[used], minlength=int(np.prod(sizes)))
        if not (total > 0.0).all():
            place = np.unravel_index(int(np.argmin(total)), sizes)
            raise ValueError(_empty(axes, place, weight))
        chosen = np.flatnonzero(used)
        group = codes[chosen]
        cells = (weights[chosen] / total[group], (group, chosen))
        return cls(columns, axes, sparse.csr_array(cells, shape=(len(total), len(rows))))

    def means(self, probs: FloatArray) -> FloatArray:
        """Means of what each row has, ``(num_rows, K)``, in each group, ``(..., K)``."""
        labels = (next(iter(x.values())) if isinstance(x, dict) else x for x in self.axes.values())
        return np.asarray(self.shares @ probs).reshape(*map(len, labels), probs.shape[-1])


def _as_columns(by: object) -> tuple[str, ...]:
    """Columns that are named as one string, as several or not at all."""
    return () if by is None else (by,) if isinstance(by, str) else tuple(as_strings(by, "by"))


def _matching(rows: Rows, where: Mapping[str, object] | None) -> BoolArray:
    """Rows that have certain values of columns."""
    matching = np.ones(len(rows), dtype=np.bool_)
    for name, value in as_mapping(where, "at").items():
        as_choice(name, "at", list(rows.table))
        values = list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
        with under_name("at", of=f"column {name!r}"):
            matching &= which_of(rows.table[name], values, name) >= 0
    if not matching.any():
        raise ValueError(f"at must leave a row of the data, {dict(where or {})!r} leaves none")
    return matching


def _empty(axes: Mapping[str, Any], place: Sequence[Any], weight: str | None) -> str:
    """Say which group has no rows, or no weight."""
    cells = [
        (name, of[i])
        for (axis, x), i in zip(axes.items(), place, strict=True)
        for name, of in (x if isinstance(x, dict) else {axis: x}).items()
    ]
    if weight is None:
        listed = ", ".join(f"{name} {label}" for name, label in cells)
        return f"each combination must have been observed, none was of {listed}"
    where = f" in {', '.join(str(label) for _, label in cells)!r}" if cells else ""
    return f"{weight} must be positive in each part, got 0{where}"


def _values(
    cells: object, chosen: BoolArray, asked: Sequence[object] | None, name: str
) -> list[object]:
    """The values asked for, as the column has them."""
    present = np.unique(np.asarray(cells)[chosen])
    if present.dtype.kind == "U":
        present = numbered(present)[0]
    if asked is None:
        return list(present)
    values = as_list(asked, "values", "values of the column")
    if not values:
        raise ValueError("values must hold a value of the column, got none")
    with under_name("values", of=f"column {name!r}"):
        return [present[place] for place in find_labels(labels_of(present, name), values, name)]
