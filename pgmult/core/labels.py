"""Labels: the exact values of a column whose cells say which, not how much.

A label is a text. That of a number is the number itself, every digit of it: 1, 1.0 and "1" are one
label, while two integers of 19 digits are two. So a table that comes back with the same column in
another form (integers that a missing value made floats of, numbers that a file holds as text) finds
the labels that were there: by the text, or else by the value. `find_labels` is the one way to look,
for fits, new rows, settings of effects and requests; it never takes an unknown label for a new one
unless that is asked for.

>>> known = labels_of([9007199254740993, 9007199254740992], "id")
>>> find_labels(known, ["9007199254740992", 9007199254740993], "id").tolist()
[1, 0]
>>> find_labels(["Ada", "Ben"], ["Adda"], "name")
Traceback (most recent call last):
ValueError: column 'name' must be one of Ada, Ben, got 'Adda' at row 0
"""

import datetime
import difflib
import json
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from os.path import commonprefix
from typing import Any

import numpy as np

from pgmult.core.arguments import brief
from pgmult.core.typing import Array, IntArray, StrArray

Known = Sequence[str] | StrArray
_DECIMAL = re.compile(r"-?(0|[1-9]\d*)(\.\d*)?")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_MIDNIGHT = re.compile(r"T00:00:00(\.0+)?$")
_PLAIN = "biufU"  # kinds of arrays whose equal cells have the same label
TOTAL = re.compile(r"(grand |sub)?totals?|all( .*)?|sum|overall|both( .*)?", re.IGNORECASE)
_SURELY = 20  # counts of a total, below which its being the sum may be chance
_FEW, _NEAREST = 6, 3  # labels named in an error
_MOST_COMPARED = 20_000  # labels that a wrong one is compared with
_FEWEST_DIGITS, _ALL_DIGITS = 6, 17


class Written(float):
    """A number of a file together with how it was written there: as labels 1E5 is not 100000."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> "Written":
        """The number that `text` writes."""
        number = super().__new__(cls, text)
        number.text = plain_label(text)
        return number

    def __reduce__(self) -> tuple[object, ...]:
        return Written, (self.text,)


def label_of(cell: Any) -> str:
    """A cell as a label, exactly.

    Raises
    ------
    TypeError
        If it is neither a number, a truth value, a string nor a date.

    Examples
    --------
    >>> label_of(2.0), label_of(np.int64(2)), label_of(0.1), label_of(Written("1E5"))
    ('2', '2', '0.1', '1E5')
    """
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, Written):
        return cell.text
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell))
    if isinstance(cell, Integral):
        return str(int(cell))
    if isinstance(cell, Real) or type(cell).__name__ == "Decimal":
        number = float(cell)
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(cell, datetime.date | np.datetime64):
        return _MIDNIGHT.sub("", str(cell).replace(" ", "T"))
    rows = " (frame.explode(column) makes a row of each)" if isinstance(cell, list) else ""
    wanted = "strings, numbers, truth values or dates"
    raise TypeError(f"labels must be {wanted}, got {brief(cell)}{rows}")


def labels_of(column: Iterable[object], name: str) -> StrArray:
    """A column as labels.

    Raises
    ------
    ValueError
        If one is missing, or holds the character of code 0, which arrays of strings drop.
    TypeError
        If a cell can be no label.
    """
    texts, codes = _texts(column, name)
    return texts if codes is None else texts[codes]


def _texts(column: Iterable[object], name: str) -> tuple[StrArray, IntArray | None]:
    """Labels of different cells and which of them each row has; of all rows where that is None."""
    cells, codes = column, None
    if isinstance(column, np.ndarray) and column.dtype.kind in _PLAIN and column.ndim == 1:
        cells, codes = np.unique(column, return_inverse=True)
    if isinstance(cells, np.ndarray) and cells.dtype.kind != "M":
        cells = cells.tolist()

    def where(place: int) -> str:
        return f"row {place if codes is None else int(np.argmax(codes == place))}"

    labels, about = [], f"column {name!r}"
    for place, cell in enumerate(cells):
        if is_missing(cell):
            raise ValueError(f"{about} must have a value in every row, got none at {where(place)}")
        try:
            labels.append(label_of(cell))
        except TypeError as error:
            raise TypeError(f"{about}, {where(place)}: {error}") from None
        if "\0" in labels[-1]:
            raise ValueError(f"{about}, {where(place)}: a label must not hold the character 0")
    return np.array(labels, dtype=np.str_), codes


def _coded(
    column: Iterable[object], name: str, order: Sequence[str] | None = None
) -> tuple[StrArray, IntArray]:
    """Different labels, those of an order first, and each row's number among them."""
    texts, codes = _texts(column, name)
    rank = {label: i for i, label in enumerate(order or ())}
    levels = sorted(set(texts.tolist()), key=lambda x: (rank.get(x, len(rank)), order_of(x)))
    place = {text: i for i, text in enumerate(levels)}
    code_of_row = np.array([place[text] for text in texts.tolist()], dtype=np.int64)
    return np.array(levels, dtype=np.str_), code_of_row if codes is None else code_of_row[codes]


def order_of(label: str) -> tuple[bool, float, str]:
    """What sorts labels: numbers by their value, then all others by their text.

    >>> sorted(["10", "b", "2", "a", "1.5"], key=order_of)
    ['1.5', '2', '10', 'a', 'b']
    """
    is_text = not _NUMBER.fullmatch(label)
    return is_text, 0.0 if is_text else float(label), label


def numbered(labels: StrArray, key: Callable[[str], Any] = order_of) -> tuple[StrArray, IntArray]:
    """The different labels in the order of a key, and each row's number among them."""
    levels, codes = np.unique(labels, return_inverse=True)
    texts = levels.tolist()
    order = np.array(sorted(range(len(texts)), key=lambda i: key(texts[i])), dtype=np.int64)
    return levels[order], np.argsort(order)[codes.reshape(-1)]


def _combined(parts: Sequence[IntArray]) -> IntArray:
    """One number for each combination of numbers that occurs."""
    codes = parts[0]
    for numbers in parts[1:]:
        codes = np.unique(codes * (numbers.max(initial=0) + 1) + numbers, return_inverse=True)[1]
    return codes


def is_missing(cell: object) -> bool:
    """Whether a cell holds no value: None, not a number, or what pandas has for these."""
    if isinstance(cell, str):
        return False
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, Real | np.datetime64) and bool(cell != cell)


def find_labels(
    known: Known, given: Iterable[Any], name: str, *, what: str = "column",
    new_levels: bool | None = None,
) -> IntArray:  # fmt: skip
    """Where each of the given cells stands among the known labels.

    Parameters
    ----------
    known : sequence of str, ``(num_known,)``
    given : sequence
        Cells of any kind: see `label_of`.
    name : str
        The column, for errors.
    what : str
        What to call it in errors: "column", or an argument.
    new_levels : bool, optional
        Whether -1 stands for labels that are not known. They are refused if it is False, with a
        hint that they can be allowed, and if it is left out, without.

    Returns
    -------
    int64 array, ``(len(given),)``

    Raises
    ------
    ValueError
        If a cell is missing or no known label, with the nearest ones.
    """
    texts, codes = _coded(given, name)
    place = {str(label): i for i, label in enumerate(known)}
    unknown = [text for text in texts.tolist() if text not in place]
    if unknown:
        by_value: dict[str, int] = {}  # of values that one label alone has
        for i, value in enumerate(map(plain_label, map(str, known))):
            by_value[value] = -1 if value in by_value else i
        place |= {text: by_value.get(plain_label(text), -1) for text in unknown}
    places = np.array([place[text] for text in texts.tolist()], dtype=np.int64)
    if not new_levels and (places < 0).any():
        row = int(np.argmax(places[codes] < 0))
        text, few = str(texts[codes[row]]), len(known) <= _FEW
        near = _twins([text], known) if few else _nearest(text, known)
        hints = [f"nearest: {', '.join(map(repr, near))}"] if near else []
        if (count := int((places < 0).sum())) > 1:
            hints.append(f"{count:,} of {len(places):,} labels are not known")
        hints += ["new_levels=True takes it for a new one"] if new_levels is False else []
        wanted = f"be one of {', '.join(known)}" if few else "hold labels that are known"
        hint = f" ({'; '.join(hints)})" if hints else ""
        raise ValueError(f"{what} {name!r} must {wanted}, got {text!r} at row {row}{hint}")
    return places[codes]


def report_new_labels(
    known: Known, given: Iterable[object], name: str, table: str, *, argument: str | None = None,
    asked: bool = False,
) -> None:  # fmt: skip
    """Say how many labels of a grouping column of new rows are not in the data, in one warning.

    Labels of which none is in the data are refused: a survey's "01" is no census' "1".

    Parameters
    ----------
    known : sequence of str, ``(num_known,)``
    given : sequence
        The column's cells in the new rows.
    name, table : str
        The column and the argument that has it, for messages.
    argument : str, optional
        What to write for labels that may all be new. Without, they may be, and nothing is said,
        unless one of them is a known one that is written otherwise: the same number, or the same
        but for capitals and blanks.
    asked : bool
        Whether it was written: nothing is refused, and only labels that are known ones written
        otherwise are reported.

    Raises
    ------
    ValueError
        If none of the labels is known.

    Examples
    --------
    >>> report_new_labels(["01", "02"], [1], "state", "census", argument="new_levels=True")
    Traceback (most recent call last):
    ValueError: 1 of 1 labels of 'state' in census is not in the data: '1' (nearest there: '01';\
 new_levels=True takes it for a new one)
    """
    texts = _coded(given, name)[0].tolist()
    places = find_labels(known, texts, name, new_levels=True).tolist()
    new = [text for text, place in zip(texts, places, strict=True) if place < 0]
    twins, none_is_known = _twins(new, known), len(new) == len(texts)
    if not new or (not twins and (asked or (none_is_known and argument is None))):
        return
    near = twins or list(dict.fromkeys(one for text in new[:_FEW] for one in _nearest(text, known)))
    hints = [f"nearest there: {_listed(near)}"] if near else []
    refused = none_is_known and not asked
    if refused and argument:
        hints.append(f"{argument} takes {'them for new ones' if new[1:] else 'it for a new one'}")
    labels = f"{len(new):,} of {len(texts):,} labels of {name!r} in {table}"
    message = f"{labels} {'are' if new[1:] else 'is'} not in the data: {_listed(new)}"
    message += f" ({'; '.join(hints)})" if hints else ""
    if refused:
        raise ValueError(message)
    warnings.warn(message, stacklevel=3)


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(map(repr, labels[:_FEW])) + (", ..." if len(labels) > _FEW else "")


def which_of(cells: Iterable[object], values: Sequence[object], name: str) -> IntArray:
    """Find which of some values each cell of a column is, -1 for none: see `find_labels`."""
    texts = labels_of(cells, name).tolist()
    labels = list(dict.fromkeys(texts))
    place = {labels[at]: i for i, at in enumerate(find_labels(labels, list(values), name))}
    return np.array([place.get(text, -1) for text in texts], dtype=np.int64)


def plain_label(text: str) -> str:
    """One text for all ways to write a number without an exponent: 1.50 and 1.5, -0 and 0.

    >>> plain_label("1.50"), plain_label("2.0"), plain_label("007"), plain_label("1E5")
    ('1.5', '2', '007', '1E5')
    """
    if not _DECIMAL.fullmatch(text):
        return text
    integer, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    number = f"{integer}.{fraction}" if fraction else integer
    return "0" if number == "-0" else number


def _as_meant(label: str) -> float | str:
    """What labels share that differ in zeros, capitals, blanks or accents' encoding alone."""
    plain = "".join(unicodedata.normalize("NFKC", label).casefold().split())
    return float(plain) if _NUMBER.fullmatch(plain) else plain


def _twins(unknown: Sequence[str], known: Known) -> list[str]:
    """The known labels that some of the unknown ones are, written otherwise."""
    if not len(unknown):
        return []
    meant = {_as_meant(str(label)): str(label) for label in known[::-1]}
    return [meant[key] for key in dict.fromkeys(map(_as_meant, unknown)) if key in meant]


def _nearest(text: str, known: Known) -> list[str]:
    """The known labels that are most like one that is not."""
    if twins := _twins([text], known):
        return twins
    labels = [str(label) for label in known[:_MOST_COMPARED]]
    numbers = [float(label) for label in labels if _DECIMAL.fullmatch(label)]
    if len(numbers) == len(labels) and _DECIMAL.fullmatch(text):
        order = np.argsort(np.abs(np.array(numbers) - float(text)), kind="stable")
        return [labels[i] for i in order[:_NEAREST]]
    looks = {as_looked_at(label): label for label in reversed(labels)}
    return [looks[x] for x in difflib.get_close_matches(as_looked_at(text), looks, _NEAREST)]


def joined_labels(parts: Sequence[str]) -> str:
    """A combination of labels in words; a part that holds a colon is put in quotes.

    >>> joined_labels(("a", "b:c")), joined_labels(("a:b", "c"))
    ('a:"b:c"', '"a:b":c')
    """
    if len(parts) == 1:
        return str(parts[0])
    pairs = zip(map(str, parts), [":" in text or text[:1] == '"' for text in parts], strict=True)
    return ":".join(json.dumps(x, ensure_ascii=False) if quotes else x for x, quotes in pairs)


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The different labels of a column, or the different combinations of those of several.

    Attributes
    ----------
    columns : tuple of str
    labels : str array, ``(num_levels, num_columns)``
        Each level's label in every column.
    """

    columns: tuple[str, ...]
    labels: StrArray

    @classmethod
    def of(
        cls, columns: Mapping[str, Any], orders: Mapping[str, Sequence[str] | None] | None = None
    ) -> "tuple[Levels, IntArray]":
        """The levels of columns by name, sorted, and each row's number among them.

        Parameters
        ----------
        columns : mapping from a name to cells, ``(num_rows,)``
        orders : mapping from a name to labels, optional
            The order of a column's labels, such as that of a categorical: `order_of` says that of
            others.
        """
        parts = [_coded(cells, name, (orders or {}).get(name)) for name, cells in columns.items()]
        combined = _combined([codes for _, codes in parts])  # in the order of the parts
        first = np.unique(combined, return_index=True)[1]
        labels = np.column_stack([texts[codes[first]] for texts, codes in parts])
        return cls(tuple(columns), labels), combined

    @property
    def names(self) -> StrArray:
        """Each level in words, ``(num_levels,)``."""
        return np.array([joined_labels(row) for row in self.labels.tolist()], dtype=np.str_)

    def __len__(self) -> int:
        return len(self.labels)

    def find(self, columns: Sequence[Any], new_levels: bool | None = None) -> IntArray:
        """The level of each row of other columns, -1 for a new one: see `find_labels`.

        Raises
        ------
        ValueError
            If a label, or a combination of them, is not known and `new_levels` is not True.
        """
        parts = []
        for j, (name, cells) in enumerate(zip(self.columns, columns, strict=True)):
            levels, numbers = np.unique(self.labels[:, j], return_inverse=True)
            places = find_labels(levels, cells, name, new_levels=new_levels)
            parts.append(np.concatenate([numbers, places]) + 1)
        combined = _combined(parts)
        place = np.full(combined.max(initial=0) + 1, -1, dtype=np.int64)
        place[combined[: len(self)]] = np.arange(len(self))
        codes = place[combined[len(self) :]]
        if not new_levels and (codes < 0).any():
            row = int(np.argmin(codes))
            got = joined_labels([label_of(list(cells)[row]) for cells in columns])
            hint = "" if new_levels is None else " (new_levels=True takes it for a new one)"
            name = ":".join(self.columns)
            raise ValueError(
                f"columns {name} must hold known combinations, got {got} at row {row}{hint}"
            )
        return codes


def begin_alike(labels: Sequence[str]) -> str:
    """The letters with which all labels begin."""
    return commonprefix(labels)  # noqa: RUF071 - letters are meant


def value_texts(values: Sequence[Any]) -> list[str]:
    """Values of a column as they are shown: numbers with as many digits as distinguish them.

    >>> value_texts([0.5, 1 / 3]), value_texts([20200101.0, 20200103.0]), value_texts(["a", 1])
    (['0.5', '0.333333'], ['20200101', '20200103'], ['a', '1'])
    >>> value_texts([1.00000001, 1.00000002])
    ['1.00000001', '1.00000002']
    """
    keys = [label_of(value) for value in values]
    fractions = [isinstance(x, float | np.floating) and not float(x).is_integer() for x in values]
    cells = list(zip(values, keys, fractions, strict=True))
    for digits in range(_FEWEST_DIGITS, _ALL_DIGITS):
        texts = [f"{float(x):.{digits}g}" if fraction else key for x, key, fraction in cells]
        if len(set(texts)) == len(set(keys)):
            return texts
    return keys


def as_looked_at(label: str) -> str:
    """A label in lower case, without accents and with single blanks.

    Labels that agree in this look the same.

    >>> as_looked_at("Côte  d'Ivoire")
    "cote d'ivoire"
    """
    if not label.isascii():
        letters = unicodedata.normalize("NFKD", label)
        label = "".join(c for c in letters if not unicodedata.combining(c))
    return " ".join(label.casefold().split())


def total_of(
    counts: Array, labels: Sequence[str], present: Array, rows_at_least: int = 1
) -> int | None:
    """The category that is the sum of all others wherever it has a row, if one of three or more is.

    Parameters
    ----------
    counts : array, ``(n, K)``
    labels : sequence of str
    present : bool array, ``(n, K)``
        Where a category has a row.
    rows_at_least : int
        Rows of a category that is not called a total.
    """
    sums = counts.sum(axis=1)
    for k, label in enumerate(labels if len(labels) > 2 else ()):
        rows, of_label = present[:, k], counts[:, k]
        is_sure = rows.sum() >= rows_at_least and of_label.sum() >= _SURELY
        is_candidate = is_sure or (rows.any() and TOTAL.fullmatch(label.strip()))
        if is_candidate and np.array_equal(2 * of_label[rows], sums[rows]):
            return k
    return None


def warn_of_look_alikes(labels: Iterable[str], what: str) -> None:
    """Warn of different labels that look the same, once.

    >>> warn_of_look_alikes(["Ada", "Ben"], "column 'name'")
    """
    first, pairs = dict[str, str](), list[tuple[str, str]]()
    for label in map(str, labels):
        if (known := first.setdefault(as_looked_at(label), label)) != label:
            pairs.append((known, label))
    if pairs:
        one, other = pairs[0]
        more = f", and {len(pairs) - 1:,} more so" if len(pairs) > 1 else ""
        hint = f"{more} (write them alike if they are the same)"
        both = f"{one!r} and {other!r}, which differ in capitals or blanks alone"
        warnings.warn(f"{what} has {both}{hint}", stacklevel=3)
