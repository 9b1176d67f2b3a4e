"""Files of SPSS, Stata, SAS and R, whose values and variables may have labels.

pyreadstat reads the first three, pyreadr the last. A variable most of whose values have labels
becomes a categorical in the order of the values; values that the file declares as missing have no
value. The label of a variable is its `Cells.title`.
"""

import re
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from pgmult.core.tables import Cells, Lazily, exact, exact_array, exact_columns, zone_of
from pgmult.datasets.files import FROM_R, errors_at, library, the_one

_READERS = {".zsav": "sav", ".xpt": "xport"}  # others are called after the suffix
_LETTERED = "abcdefghijklmnopqrstuvwxyz"  # missing values of Stata and SAS: .a, .b, ...
_NO_ANSWER = re.compile(
    r"\b(no (answer|response|data)|not (answered|stated|asked|applicable|available|ascertained)"
    r"|inapplicable|refus\w+|(don.?t|do not|doesn.?t) know|missing|unknown|n/?a|dk|nr)\b",
    re.IGNORECASE,
)


def labelled_columns(
    path: Path, form: str, no_value: frozenset[str], chosen: str | None = None,
    time_zone: str | None = None,
) -> Mapping[str, Cells]:  # fmt: skip
    """Read the columns of a file.

    Raises
    ------
    ImportError
        If the library that reads it is missing.
    ValueError
        If the file is damaged, or holds several tables and none is chosen.
    """
    if form in FROM_R:
        return _of_r(path, chosen, time_zone)
    no_value |= {""}
    reader = getattr(library("pyreadstat", path), f"read_{_READERS.get(form, form[1:])}")
    with errors_at(path, "cannot be read", Exception):  # each kind of file has errors of its own
        columns, about = reader(str(path), output_format="dict")
    titles, labels = about.column_names_to_labels, about.variable_value_labels

    def column(name: str) -> Cells:
        cells = list(columns[name])
        if about.readstat_variable_types.get(name) == "float":  # 5.1 and not 5.099999904632568
            cells = [float(str(np.float32(x))) for x in cells]
        made = _column(f"{name!r} of {path}", cells, labels.get(name, {}), no_value)
        is_ordered = made.order is not None and about.variable_measure.get(name) == "ordinal"
        return made._replace(title=titles.get(name) or "", is_ordered=is_ordered)

    return Lazily(columns, column)


def _column(
    name: str, values: list[object], labels: Mapping[Any, str], no_value: frozenset[str]
) -> Cells:
    """Cells of a variable: its labels where half of its values have one, else its values."""
    values = [None if x != x or (isinstance(x, str) and x in no_value) else x for x in values]
    values = [int(x) if isinstance(x, float) and x.is_integer() else x for x in values]
    codes = {x for x in values if x is not None}
    named = {value: label for value, label in labels.items() if value not in (*_LETTERED, "")}
    if not named or 2 * len(codes & named.keys()) < len(codes):
        values = [None if named.get(x) in no_value else x for x in values]
        _warn_of_no_answers(name, {x: named[x] for x in codes & named.keys()}, no_value)
        return exact(exact_array(values), name)
    ranked = sorted(codes | named.keys(), key=lambda x: (isinstance(x, str), x))
    words = {x: str(named.get(x, x)).strip() for x in ranked}
    repeated = {word for word in words.values() if [*words.values()].count(word) > 1}
    words = {x: f"{word} ({x:g})" if word in repeated else word for x, word in words.items()}
    labelled = [None if x is None or words[x] in no_value else words[x] for x in values]
    order = tuple(word for word in words.values() if word not in no_value)
    return Cells(exact_array(labelled), order)


def _warn_of_no_answers(name: str, labels: Mapping[Any, str], no_value: frozenset[str]) -> None:
    """Warn of numbers whose labels say that there is no answer, and that are read as values."""
    odd = [(x, y) for x, y in labels.items() if _NO_ANSWER.search(y) and y not in no_value]
    if odd:
        listed = ", ".join(f"{x} ({label!r})" for x, label in sorted(odd))
        words = " ".join(repr(label) for _, label in sorted(odd))
        read = "in its cells count as numbers, since the file does not declare them missing"
        advice = f"na_values= or --na-values {words} makes them so"
        warnings.warn(f"{name}: {listed} {read} ({advice})", stacklevel=2)


def _of_r(path: Path, chosen: str | None, time_zone: str | None) -> Mapping[str, Cells]:
    """Columns of the data frame in a file of R."""
    pyreadr = library("pyreadr", path)
    frames, reason = {}, "it holds no data frame"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is no data frame
            frames = pyreadr.read_r(str(path))
    except Exception as error:  # librdata has errors of its own
        reason = f"cannot be read ({error or type(error).__name__})"
    frames = {str(name): x for name, x in frames.items() if all(isinstance(c, str) for c in x)}
    if not frames:
        advice = "write.csv(as.data.frame(x), 'x.csv') writes other objects"
        raise ValueError(f"{path}: {reason}: files of R must hold a data frame ({advice})")
    frame = frames[the_one([*frames], chosen, path, "data frames")]
    times = {name: x for name, x in frame.items() if x.dtype.kind == "M"}
    if time_zone is not None:
        zone = zone_of(time_zone)
        times = {name: x.dt.tz_localize("UTC").dt.tz_convert(zone) for name, x in times.items()}
    elif times:
        read = f"times such as {next(iter(times))!r} are those of clocks in UTC"
        warnings.warn(f"{path}: {read} (pass time_zone= with their zone)", stacklevel=2)
    if _has_lost_labels(path):
        lost = "labels and declared missing values pyreadr does not read: they are numbers"
        warnings.warn(f"{path}: {lost} (haven::write_sav keeps these)", stacklevel=2)
    columns = exact_columns(frame.assign(**times), str(path), time_zone)
    return {name: _whole(cells) for name, cells in columns.items()}


def _has_lost_labels(path: Path) -> bool:
    """Whether a file of R names a class whose labels are not read."""
    start = path.read_bytes()
    for module, mark in (("gzip", b"\x1f\x8b"), ("bz2", b"BZh"), ("lzma", b"\xfd7zXZ")):
        if start.startswith(mark):
            start = import_module(module).decompress(start)
    return b"haven_labelled" in start


def _whole(cells: Cells) -> Cells:
    """Numbers without fractions as whole numbers, which R does not tell apart."""
    values = cells.values.tolist()
    if cells.values.dtype.kind != "f" or not all(x != x or x.is_integer() for x in values):
        return cells
    return cells._replace(values=exact_array([None if x != x else int(x) for x in values]))
