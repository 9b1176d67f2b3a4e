"""Tables of named columns: read from any data frame, and handed back as one.

Frames of pandas, polars, pyarrow and others go through narwhals; labelled arrays of xarray and
plain mappings from name to column do not need it.

>>> as_columns({"name": ["Ada", "Ben"], "births": [3, 5]}, "table")["births"]
array([3, 5])
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import brief
from pgmult.core.typing import FloatArray

__all__ = [
    "as_columns",
    "as_dates",
    "as_frame",
    "as_labels",
    "as_looked_at",
    "as_years",
    "chosen_columns",
    "date_text",
    "warn_of_look_alikes",
]

_FEW = 8  # columns named in an error
_YEAR = np.timedelta64(1, "Y")


@runtime_checkable
class _LabelledArray(Protocol):
    """What xarray's arrays and data sets have, and data frames have not."""

    dims: Any

    def to_dataframe(self) -> Any: ...


def as_columns(table: Any, name: str) -> dict[str, NDArray[Any]]:
    """The columns of a table, as arrays of one axis and one length.

    Parameters
    ----------
    table : data frame, labelled array, or mapping from name to column
    name : str
        What to call it in errors.

    Raises
    ------
    TypeError
        If it is nothing of the kind.
    ValueError
        If columns are of different lengths, or names repeat.
    ImportError
        If it is a data frame and narwhals is missing.
    """
    if isinstance(table, _LabelledArray):
        if getattr(table, "name", "") is None:
            raise ValueError(f"{name} must have a name, of what it counts: table.rename('count')")
        table = table.to_dataframe().reset_index()
    if not isinstance(table, Mapping):
        table = _through_narwhals(table, name)
    for key, column in table.items():
        if np.ma.is_masked(column):
            raise ValueError(f"{name} must not have masked values, got some in column {key!r}")
    columns = {str(key): np.asarray(column) for key, column in table.items()}
    if not columns:
        raise ValueError(f"{name} must have columns, got none")
    sizes = {column.shape for column in columns.values()}
    if len(sizes) > 1 or any(len(size) != 1 for size in sizes):
        shapes = {key: column.shape for key, column in columns.items()}
        raise ValueError(f"columns of {name} must have one axis and one length, got {shapes}")
    return columns


def _through_narwhals(table: Any, name: str) -> dict[str, NDArray[Any]]:
    kinds = "a data frame or a mapping from name to column"
    if isinstance(table, np.ndarray | list | tuple | str | bytes | int | float | type | None):
        raise TypeError(f"{name} must be {kinds}, got {brief(table)}")
    try:
        import narwhals.stable.v1 as narwhals
    except ImportError:
        raise ImportError(
            f"{name} needs narwhals, to be read whichever package it comes from: pip install"
            " 'pgmult[tables]' (or pass a mapping from name to column)"
        ) from None
    try:
        frame = narwhals.from_native(table, eager_only=True)
    except Exception as error:
        raise TypeError(f"{name} must be {kinds}, got {brief(table)}") from error
    return {str(key): frame[key].to_numpy() for key in frame.columns}


def chosen_columns(
    columns: Mapping[str, NDArray[Any]], chosen: Sequence[str], table: str, argument: str
) -> dict[str, NDArray[Any]]:
    """Some columns of a table, which must be there and must not repeat.

    Raises
    ------
    ValueError
        That names the `argument` which chose them and the columns that there are.
    """
    for place, column in enumerate(chosen):
        if not isinstance(column, str):
            raise TypeError(f"{argument} must name a column, got {brief(column)}")
        if column not in columns:
            there = ", ".join(map(repr, list(columns)[:_FEW]))
            more = "" if len(columns) <= _FEW else f" and {len(columns) - _FEW} more"
            raise ValueError(
                f"{argument} must name columns of {table}, got {column!r} (it has {there}{more})"
            )
        if column in chosen[:place]:
            raise ValueError(f"{argument} must be different columns, got {column!r} twice")
    return {column: columns[column] for column in chosen}


def as_labels(column: NDArray[Any], name: str) -> NDArray[np.str_]:
    """A column of labels as strings.

    Raises
    ------
    ValueError
        If one is missing.
    """
    missing = np.array([item is None or item != item for item in column.tolist()], dtype=np.bool_)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"column {name!r} must have a value in every row, got none at row {row}")
    return np.array([str(item) for item in column.tolist()], dtype=np.str_)


def as_looked_at(label: str) -> str:
    """A label without what one overlooks: capitals, and blanks around and between words."""
    return " ".join(label.casefold().split())


def warn_of_look_alikes(labels: Iterable[str], what: str) -> None:
    """Warn of different labels that look the same, once.

    >>> warn_of_look_alikes(["Ada", "Ben"], "column 'name'")
    """
    seen: dict[str, str] = {}
    pairs = [
        (seen[key], label)
        for label in map(str, labels)
        if seen.setdefault(key := as_looked_at(label), label) != label
    ]
    if pairs:
        one, other = pairs[0]
        more = f", and {len(pairs) - 1:,} more so" if len(pairs) > 1 else ""
        warnings.warn(
            f"{what} has {one!r} and {other!r}, which differ in capitals or blanks alone{more}:"
            " they are different to the model (write them alike if they are the same)",
            stacklevel=3,
        )


def as_years(dates: NDArray[Any]) -> FloatArray:
    """Dates as years: the start of 1999 is 1999.0, the middle of its July about 1999.54.

    Parameters
    ----------
    dates : datetime64 array, ``(n,)``

    Raises
    ------
    ValueError
        If one is not a time.
    """
    if np.isnat(dates).any():
        raise ValueError(f"dates must be there, got NaT at row {int(np.argmax(np.isnat(dates)))}")
    years = dates.astype("datetime64[Y]")
    starts, ends = (y.astype("datetime64[us]") for y in (years, years + _YEAR))
    into = (dates.astype("datetime64[us]") - starts) / (ends - starts)
    return np.asarray(1970.0 + years.astype(np.int64) + into, dtype=np.float64)


def as_dates(years: FloatArray) -> NDArray[np.datetime64]:
    """The dates that `as_years` made years of, to the second."""
    whole = np.floor(years)
    starts = (whole.astype(np.int64) - 1970).astype("datetime64[Y]")
    first, last = (y.astype("datetime64[s]").astype(np.int64) for y in (starts, starts + _YEAR))
    seconds = first + np.rint((years - whole) * (last - first)).astype(np.int64)
    return seconds.astype("datetime64[s]")


def date_text(date: np.datetime64) -> str:
    """A date as tables and figures have it: no midnight, and no day where years begin.

    >>> date_text(np.datetime64("2024-03-01T00:00:00")), date_text(np.datetime64("2024-01-01", "Y"))
    ('2024-03-01', '2024')
    """
    return str(date).removesuffix("T00:00:00")


def as_frame(columns: Mapping[str, NDArray[Any]]) -> Any:
    """A pandas data frame.

    Raises
    ------
    ImportError
        If pandas is missing.
    """
    try:
        import pandas
    except ImportError:
        raise ImportError("data frames need pandas: pip install 'pgmult[tables]'") from None
    return pandas.DataFrame(dict(columns))
