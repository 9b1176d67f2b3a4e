"""Averages over rows that have the same value of a column: what families answer ``effects`` by.

>>> rows = {"year": [1990, 1990, 2000], "place": ["NY", "TX", "NY"]}
>>> cells = Averages.of(rows, "year")
>>> cells.axes["year"], cells.means(np.array([[0.2], [0.4], [0.9]])).ravel().tolist()
([np.int64(1990), np.int64(2000)], [0.30000000000000004, 0.9])
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_choice, as_list, as_mapping, under_name
from pgmult.core.estimands import Estimand
from pgmult.core.labels import find_labels, labels_of, numbered, which_of
from pgmult.core.typing import FloatArray, IntArray


class Averages(NamedTuple):
    """Which rows are averaged into which cell.

    Attributes
    ----------
    axes : mapping from a column to its values
    rows : int64 array, ``(num_used,)``
        Those that are in a cell.
    cell : int64 array, ``(num_used,)``
    """

    axes: dict[str, list[Any]]
    rows: IntArray
    cell: IntArray

    @classmethod
    def of(
        cls,
        table: Mapping[str, Any],
        column: str,
        values: Sequence[Any] | None = None,
        *,
        at: Mapping[str, Any] | None = None,
        by: str | None = None,
    ) -> "Averages":
        """Cells of the values of a column, and of those of a second one.

        Parameters
        ----------
        table : mapping from a column to its cells, ``(num_rows,)``
        column : str
        values : sequence, optional
            Of the column; all that occur if left out.
        at : mapping from a column to a value, or to several, optional
            Only rows that have these.
        by : str, optional
            The second column.

        Raises
        ------
        ValueError
            If there is no such column or value, or no row has it.
        """
        as_choice(column, "column", list(table))
        fixed = as_mapping(at, "at")
        chosen = np.ones(len(table[column]), dtype=np.bool_)
        for name, held in fixed.items():
            as_choice(name, "at", list(table))
            given = list(held) if isinstance(held, list | tuple | np.ndarray) else [held]
            with under_name("at", of=f"column {name!r}"):
                chosen &= which_of(table[name], given, name) >= 0
        if not chosen.any():
            raise ValueError(f"at must leave a row of the data, {dict(fixed)!r} leaves none")
        axes = {column: _values(table[column], chosen, values, column)}
        if by is not None:
            by = as_choice(by, "by", [name for name in table if name != column])
            axes[by] = _values(table[by], chosen, None, by)
        places = [which_of(table[name], known, name) for name, known in axes.items()]
        rows = np.flatnonzero(chosen & np.logical_and.reduce([place >= 0 for place in places]))
        sizes = tuple(map(len, axes.values()))
        cell = np.ravel_multi_index([place[rows] for place in places], sizes)
        number = np.bincount(cell, minlength=int(np.prod(sizes)))
        if (number == 0).any():
            empty = np.unravel_index(int(np.argmin(number)), sizes)
            names = zip(
                axes, (v[i] for v, i in zip(axes.values(), empty, strict=True)), strict=True
            )
            told = ", ".join(f"{name} {value}" for name, value in names)
            raise ValueError(f"each combination must have been observed, none was of {told}")
        return cls(axes, rows, cell)

    def means(self, values: FloatArray) -> FloatArray:
        """Means of what each row has, ``(num_rows, K)``, in each cell, ``(..., K)``."""
        sizes = tuple(map(len, self.axes.values()))
        number = np.bincount(self.cell, minlength=int(np.prod(sizes)))
        sums = [np.bincount(self.cell, column, len(number)) for column in values[self.rows].T]
        return np.asarray((np.array(sums) / number).T.reshape(*sizes, -1))

    def estimand(
        self, draws: Iterable[FloatArray], of: Mapping[str, Any], what: str, probability: float
    ) -> Estimand:
        """Means of what each row has, draw by draw; `of` names its last axis, with its labels."""
        return Estimand(
            np.array([self.means(draw) for draw in draws]), (*self.axes, *of), {**self.axes, **of},
            caption=f"Mean probabilities of the {what} by {' and '.join(self.axes)}.",
            probability=probability,
        )  # fmt: skip


def _values(
    cells: Any, chosen: NDArray[np.bool_], given: Sequence[Any] | None, name: str
) -> list[Any]:
    """The values asked for, as the column has them."""
    known = np.unique(np.asarray(cells)[chosen])
    if known.dtype.kind == "U":
        known = numbered(known)[0]
    if given is None:
        return list(known)
    asked = as_list(given, "values", "values of the column")
    if not asked:
        raise ValueError("values must hold a value of the column, got none")
    with under_name("values", of=f"column {name!r}"):
        return [known[place] for place in find_labels(labels_of(known, name), asked, name)]
