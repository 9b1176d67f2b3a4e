"""Settings of covariates: which rows of a design an effect is averaged over.

A setting fixes the values of some columns. The other columns are taken from the documents, from
typical values or from another table. The levels of random terms that a setting does not name are
those of the same rows, or new levels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pgmult.core.arguments import as_choice, as_flag, brief, under_name
from pgmult.core.labels import tell_new_labels, value_texts
from pgmult.core.tables import Cells
from pgmult.core.typing import FloatArray, IntArray
from pgmult.formulas.columns import Columns, as_mapping
from pgmult.formulas.design import Design
from pgmult.formulas.terms import GroupTerm, Term
from pgmult.topics.data.corpus import StructuredCorpus

FEW = 6
"""So many different values are taken, or listed, one by one."""

_GRID = 25  # values of a number along which a curve goes


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Settings, and the rows that are averaged over at each of them.

    Attributes
    ----------
    settings : mapping from a column's name to its value in each setting
    variable : str or None
        The column that is varied; None where settings were given as a table.
    design : Design
        Of one row for each setting and averaged row, settings first.
    weights : array, ``(num_rows,)``
        Of the averaged rows.
    about : str
        What is averaged over what, in a sentence.
    """

    settings: dict[str, list[Any]]
    variable: str | None
    design: Design
    weights: FloatArray
    about: str


def lay_out(
    data: StructuredCorpus,
    variable: Any,
    *,
    at: Any,
    by: str | None,
    average: Any,
    scope: str,
    new_levels: bool,
    num_rows: int,
    rng: np.random.Generator,
) -> Layout:
    """Settings as `pgmult.topics.effects` takes them, of at most about `num_rows` rows each."""
    as_choice(scope, "scope", ("population", "documents"))
    new_levels = as_flag(new_levels, "new_levels")
    settings, variable, held = _settings(data, variable, at, by)
    taken = {*settings, *held}
    if not isinstance(average, str):
        others = _elsewhere(data, average, taken, scope, num_rows, rng, new_levels)
    elif as_choice(average, "average", ("observed", "typical")) == "typical":
        others = _typical(data, taken, scope)
    else:
        others = _observed(data, taken, scope, num_rows, rng)
    design = _design_at(data, settings, held, others, new_levels)
    return Layout(settings, variable, design, others.weights, _sentence(data, held, others, scope))


def as_column(name: Any, argument: str, columns: Sequence[str]) -> None:
    """Refuse a name that is not one of the columns."""
    if not isinstance(name, str) or name not in columns:
        raise ValueError(
            f"{argument} must be a column that prevalence depends on, one of"
            f" {', '.join(columns) or 'none'}, got {brief(name)}"
        )


def _settings(
    data: StructuredCorpus, variable: Any, at: Any, by: str | None
) -> tuple[dict[str, list[Any]], str | None, dict[str, Any]]:
    """Columns that vary between settings, the variable's name, and columns that are held."""
    columns = _column_names(data)
    if at is not None and not isinstance(at, Mapping):
        raise TypeError(f"at must be a mapping from columns to values, got {brief(at)}")
    held = {} if at is None else {str(name): value for name, value in at.items()}
    for name in held:
        as_column(name, "at", columns)
    if by is not None:
        as_column(by, "by", columns)
    if not isinstance(variable, str):
        if by is not None:
            raise ValueError(f"by must be left out where settings are a table, got {by!r}")
        settings = _as_settings(variable, columns)
        both = [name for name in held if name in settings]
        if both:
            raise ValueError(f"at must be of other columns than the settings, got {both[0]!r}")
        return settings, None, _singles(held)
    as_column(variable, "variable", columns)
    if by == variable:
        raise ValueError(f"by must be another column than variable, got {by!r} for both")
    values = _values(data, variable, held.pop(variable, None))
    if by is None:
        return {variable: values}, variable, _singles(held)
    groups = _values(data, by, held.pop(by, None), few=True)
    settings = {
        by: [group for group in groups for _ in values],
        variable: [value for _ in groups for value in values],
    }
    return settings, variable, _singles(held)


def _singles(held: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in held.items():
        if np.ndim(value):
            raise ValueError(
                f"at must hold one value of {name!r}, got {brief(value)} (name it in variable or by"
                " to compare several)"
            )
    return dict(held)


def _as_settings(table: Any, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Settings given as a table: those of its columns that prevalence depends on."""
    given = _table(table, "variable", columns)
    known = {name: column for name, column in given.items() if name in columns}
    size = _size(given, "variable")
    if not known or not size:
        raise ValueError(
            f"variable must be settings of {', '.join(columns) or 'no column'}, got columns"
            f" {', '.join(given) or 'none'}"
        )
    return {
        name: column if isinstance(column, list) else [column] * size
        for name, column in known.items()
    }


def _table(table: Any, argument: str, columns: Sequence[str]) -> dict[str, Any]:
    """Columns by name: lists of exact cells, or single values that serve all rows."""
    if not (isinstance(table, Mapping | np.ndarray | list | tuple) or hasattr(table, "columns")):
        raise TypeError(
            f"{argument} must be the name of a column, or a mapping, data frame or matrix of"
            f" {', '.join(columns) or 'no column'}, got {brief(table)}"
        )
    with under_name(argument, of="covariates"):
        given = as_mapping(table, columns)
    plain = ((name, c.values if isinstance(c, Cells) else c) for name, c in given.items())
    return {name: np.asarray(c).tolist() if np.ndim(c) else c for name, c in plain}


def _size(columns: Mapping[str, Any], argument: str) -> int:
    """How many rows columns have; single values serve all."""
    sizes = {len(column) for column in columns.values() if isinstance(column, list)}
    if len(sizes) > 1:
        raise ValueError(f"{argument} must have columns of one length, got {sorted(sizes)}")
    return sizes.pop() if sizes else 1


def _values(data: StructuredCorpus, name: str, given: Any, few: bool = False) -> list[Any]:
    """The values of a column to compare: those given, its labels, or numbers over its range."""
    if given is not None:
        values = list(np.atleast_1d(given)) if not isinstance(given, str) else [given]
        if not values:
            raise ValueError(f"at must hold at least one value of {name!r}, got none")
        return [value.item() if isinstance(value, np.generic) else value for value in values]
    known = data.design.columns
    if name not in known.names:
        return _levels_of_term(data, name)
    j = known.names.tolist().index(name)
    if known.num_levels[j]:
        return known.levels_of(j)
    numbers_there = np.unique(known.values[:, j])
    if len(numbers_there) > (3 if few else FEW):
        numbers_there = (
            np.quantile(known.values[:, j], [0.1, 0.5, 0.9], method="lower") if few
            else np.linspace(numbers_there[0], numbers_there[-1], _GRID)
        )  # fmt: skip
    if known.origin_of(j) is not None:  # dates that are there
        near = np.abs(known.values[:, j] - numbers_there[:, None]).argmin(axis=1)
        return list(known.cells(j, np.unique(known.values[near, j])).tolist())
    return [_plain(x) for x in numbers_there]


def _levels_of_term(data: StructuredCorpus, name: str) -> list[Any]:
    """Labels of a column that only random terms have."""
    for term in data.design.terms:
        if term.variables == (name,):
            return [str(level) for level in term.levels]
    raise ValueError(f"at must hold the values of {name!r} to compare, as a list")


def _plain(x: float) -> float | int:
    return int(x) if float(x).is_integer() else float(x)


# --------------------------------------------------------------------------- what is averaged over


@dataclass(frozen=True, slots=True, eq=False)
class _Others:
    """Rows of the columns that no setting fixes.

    Attributes
    ----------
    columns : mapping from name to column of ``num_rows`` values
    codes : list of int arrays, ``(num_rows,)``, or None
        Of each random term its levels, -1 for a new one; None for those that the settings name.
    weights : array, ``(num_rows,)``
    about : str
        What they are, in words.
    """

    columns: Mapping[str, list[Any]]
    codes: list[IntArray | None]
    weights: FloatArray
    about: str


def _observed(
    data: StructuredCorpus, taken: set[str], scope: str, count: int, rng: np.random.Generator
) -> _Others:
    """The documents' own: all different rows, or many of them by their frequency."""
    known, terms = data.design.columns, data.design.terms
    left = [j for j, name in enumerate(known.names) if str(name) not in taken]
    own = [_own_codes(term, taken, scope) for term in terms]
    there = [codes for codes in own if codes is not None and _is_known(codes)]
    if not left and not there:
        return _Others({}, [_new(codes, 1) for codes in own], np.ones(1), "")
    rows = np.column_stack([known.values[:, left], *there])
    _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
    chosen, weights = _spread_rows(rng, counts, count)
    documents = first[chosen]
    columns = {str(known.names[j]): _cells(known, j, documents) for j in left}
    codes = [None if codes is None else codes[documents] for codes in own]
    names = [*columns, *(_whose(t) for t, c in zip(terms, own, strict=True) if _is_known(c))]
    about = f"{_joined(names)} as in the {data.num_documents:,} documents"
    return _Others(columns, codes, weights, about)


def _typical(data: StructuredCorpus, taken: set[str], scope: str) -> _Others:
    """Means of numbers, and the most frequent labels."""
    known, terms = data.design.columns, data.design.terms
    columns: dict[str, list[Any]] = {}
    words = []
    for j, name in enumerate(known.names.tolist()):
        if name not in taken:
            levels = known.levels_of(j)
            values = known.values[:, j]
            value: Any = levels[_most_frequent(values)] if levels else float(values.mean())
            if known.origin_of(j) is not None:
                nearest = np.abs(values - values.mean()).argmin()
                value = known.cells(j, [values[nearest]]).tolist()[0]
            columns[name] = [value]
            words.append(f"{name} {value_texts([value])[0]}{'' if levels else ' (its mean)'}")
    codes: list[IntArray | None] = []
    for term in terms:
        own = _own_codes(term, taken, scope)
        if own is not None and _is_known(own):
            level = _most_frequent(own[own >= 0])
            words.append(f"{_whose(term)} {term.levels[level]}")
            own = np.full(1, level)
        codes.append(_new(own, 1) if own is None or not _is_known(own) else own)
    return _Others(columns, codes, np.ones(1), ", ".join(words))


def _elsewhere(
    data: StructuredCorpus,
    table: Any,
    taken: set[str],
    scope: str,
    count: int,
    rng: np.random.Generator,
    new_levels: bool,
) -> _Others:
    """The rows of another table, of new documents say."""
    design = data.design
    names = [str(name) for name in design.columns.names]
    given = _table(table, "average", names)
    used = {n: c for n, c in given.items() if n not in taken and n in _column_names(data)}
    whole = scope == "documents" and not new_levels  # groups are the documents' own
    needed = _column_names(data) if whole else names
    absent = [name for name in needed if name not in taken and name not in used]
    if absent:
        hint = "" if absent[0] in names else " (new_levels=True takes it for a new one everywhere)"
        raise ValueError(
            f"average must have a column {absent[0]!r}, got {', '.join(given) or 'none'}{hint}"
        )
    size = _size(used, "average")
    if not size:
        raise ValueError("average must have at least one row, got none")
    chosen, weights = _spread_rows(rng, np.ones(size), count)
    columns = {
        name: [column[i] for i in chosen] if isinstance(column, list) else [column] * len(chosen)
        for name, column in used.items()
    }
    codes: list[IntArray | None] = []
    for term in design.terms:
        own = _own_codes(term, taken, scope)
        if own is not None:
            is_told = _is_known(own) and all(name in columns for name in term.variables)
            own = _new(own, len(chosen))
            if is_told and isinstance(term, GroupTerm):
                own = term.known.find([columns[name] for name in term.variables], new_levels)
        codes.append(own)
    about = f"{_joined(list(columns))} as in the {size:,} rows of another table" if columns else ""
    columns = {name: column for name, column in columns.items() if name in names}
    return _Others(columns, codes, weights, about)


def _own_codes(term: Term, taken: set[str], scope: str) -> IntArray | None:
    """Each document's level of a random term; -1 for a new one; None if settings name it."""
    if not isinstance(term, GroupTerm) or taken.issuperset(term.variables):
        return None
    if scope == "population" or not taken.isdisjoint(term.variables):
        return np.full(len(term.codes), -1)
    return np.asarray(term.codes)


def _new(codes: IntArray | None, size: int) -> IntArray | None:
    return None if codes is None else np.full(size, -1)


def _is_known(codes: IntArray | None) -> bool:
    return codes is not None and bool((codes >= 0).any())


def _whose(term: Term) -> str:
    return ":".join(term.variables)


def _joined(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _most_frequent(codes: FloatArray | IntArray) -> int:
    return int(np.bincount(codes.astype(np.int64)).argmax())


def _cells(known: Columns, column: int, rows: IntArray) -> list[Any]:
    """Numbers, or labels spelt out."""
    return list(known.cells(column, known.values[rows, column]).tolist())


def _spread_rows(
    rng: np.random.Generator, counts: FloatArray | IntArray, count: int
) -> tuple[IntArray, FloatArray]:
    """All rows and their weights; if they are more than `count`, so many of equal weight."""
    most = max(1, count)
    if len(counts) <= most:
        return np.arange(len(counts)), np.asarray(counts, dtype=np.float64)
    ends = np.cumsum(counts)
    places = (np.arange(most) + rng.random()) * (ends[-1] / most)
    return np.searchsorted(ends, places, side="right"), np.ones(most)


def _column_names(data: StructuredCorpus) -> list[str]:
    """Every column that prevalence depends on, those of random terms among them."""
    grouping = [name for term in data.design.terms for name in term.variables]
    return list(dict.fromkeys([*map(str, data.design.columns.names), *grouping]))


def _design_at(
    data: StructuredCorpus, settings: Mapping[str, list[Any]], held: Mapping[str, Any],
    others: _Others, new_levels: bool,
) -> Design:  # fmt: skip
    """The design of one row for each setting and row of the others, settings first."""
    size, num_rows = len(next(iter(settings.values()))), len(others.weights)
    table: dict[str, Any] = {
        name: [value for value in values for _ in range(num_rows)]
        for name, values in settings.items()
    }
    table |= {name: [value] * (size * num_rows) for name, value in held.items()}
    table |= {name: values * size for name, values in others.columns.items()}
    absent = [name for name in _column_names(data) if name not in table]
    table |= {name: [""] * (size * num_rows) for name in absent}  # of terms whose codes are known
    _check_levels(data, table, others, new_levels)
    design = data.design.like(table, new_levels=True, num_rows=size * num_rows)
    terms = tuple(
        replace(term, codes=np.tile(codes, size))
        if isinstance(term, GroupTerm) and codes is not None
        else term
        for term, codes in zip(design.terms, others.codes, strict=True)
    )
    return replace(design, terms=terms)


def _check_levels(
    data: StructuredCorpus, table: Mapping[str, Any], others: _Others, new_levels: bool
) -> None:
    """Refuse a setting of grouping columns that no document has, unless new ones are asked for."""
    for term, codes in zip(data.design.terms, others.codes, strict=True):
        if codes is None and isinstance(term, GroupTerm):
            term.known.find([table[name] for name in term.variables], new_levels)
            for name, known in zip(term.variables, term.known.labels.T, strict=True):
                tell_new_labels(known, table[name], name, "the settings", asked=True)


def _sentence(data: StructuredCorpus, held: Mapping[str, Any], others: _Others, scope: str) -> str:
    """What was averaged over what, and of whom that speaks."""
    terms = zip(data.design.terms, others.codes, strict=True)
    whose = [_whose(term) for term, codes in terms if codes is not None and not _is_known(codes)]
    new = f" by a new {_joined(whose)}" if whose else ""
    at = ", ".join(f"{name} {value_texts([value])[0]}" for name, value in held.items())
    parts = [f"at {at}"] if held else []
    parts += [others.about] if others.about else []
    of = "the population" if scope == "population" else "documents such as these"
    return (
        f"Expected shares of topics in {of}: in a new document{new}"
        f"{''.join(f'; {part}' for part in parts)}."
    )
