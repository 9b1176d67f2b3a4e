"""Settings of covariates: which rows of a design an effect is averaged over.

A setting fixes the values of some columns. The other columns are taken from the documents. The
levels of random terms that a setting does not name are those of the same documents, or new levels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pgmult.core.arguments import as_choice, brief
from pgmult.core.labels import tell_new_labels, value_texts
from pgmult.core.typing import FloatArray, IntArray
from pgmult.formulas.design import Design
from pgmult.formulas.terms import GroupTerm, Term
from pgmult.topics.data.corpus import StructuredCorpus

_FEW = 6  # different values that are taken one by one
_GRID = 25  # values of a number along which a curve goes


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Settings, and the rows that are averaged over at each of them.

    Attributes
    ----------
    values : mapping from a column's name to the values that it takes, one or two columns
    design : Design
        Of one row for each setting and averaged row, settings first.
    weights : array, ``(num_rows,)``
        Of the averaged rows.
    about : str
        What is averaged over what, in a sentence.
    """

    values: dict[str, list[Any]]
    design: Design
    weights: FloatArray
    about: str


def lay_out(
    data: StructuredCorpus,
    variable: str,
    *,
    at: Any,
    by: str | None,
    scope: str,
    num_rows: int,
    rng: np.random.Generator,
) -> Layout:
    """Settings as `pgmult.topics.effects` takes them, of at most about `num_rows` rows each."""
    as_choice(scope, "scope", ("population", "documents"))
    values, held = _settings(data, variable, at, by)
    known, terms = data.design.columns, data.design.terms
    left = [j for j, name in enumerate(known.names) if str(name) not in {*values, *held}]
    codes = [_levels_in(term, {*values, *held}, scope) for term in terms]
    there = [levels for levels in codes if levels is not None]
    rows = np.column_stack([np.zeros(data.num_documents), known.values[:, left], *there])
    _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
    chosen, weights = _spread_rows(rng, counts, num_rows)
    documents = first[chosen]
    sizes = [len(of) for of in values.values()]
    table: dict[str, Any] = {}
    for place, (name, of) in enumerate(values.items()):
        repeats = int(np.prod(sizes[place + 1 :])) * len(documents)
        table[name] = [v for v in of for _ in range(repeats)] * int(np.prod(sizes[:place]))
    settings = int(np.prod(sizes))
    table |= {name: [value] * (settings * len(documents)) for name, value in held.items()}
    for j in left:
        cells = known.cells(j, known.values[documents, j]).tolist()
        table[str(known.names[j])] = list(cells) * settings
    for name in _column_names(data):  # of terms whose levels are known
        table.setdefault(name, [""] * (settings * len(documents)))
    for term, levels in zip(terms, codes, strict=True):
        if levels is None and isinstance(term, GroupTerm):
            term.known.find([table[name] for name in term.variables])
            for name, labels in zip(term.variables, term.known.labels.T, strict=True):
                tell_new_labels(labels, table[name], name, "the settings", asked=True)
    design = data.design.like(table, new_levels=True, num_rows=settings * len(documents))
    placed = tuple(
        replace(term, codes=np.tile(levels[documents], settings))
        if isinstance(term, GroupTerm) and levels is not None
        else term
        for term, levels in zip(design.terms, codes, strict=True)
    )
    about = _sentence(data, held, [str(known.names[j]) for j in left], codes, scope)
    return Layout(values, replace(design, terms=placed), weights, about)


def _settings(
    data: StructuredCorpus, variable: str, at: Any, by: str | None
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Values of the columns that vary between settings, and columns that are held."""
    columns = _column_names(data)
    if at is not None and not isinstance(at, Mapping):
        raise TypeError(f"at must be a mapping from columns to values, got {brief(at)}")
    held = {} if at is None else {str(name): value for name, value in at.items()}
    asked = [(name, "at") for name in held] + [(variable, "variable")]
    for name, argument in [*asked, *([] if by is None else [(by, "by")])]:
        if not isinstance(name, str) or name not in columns:
            raise ValueError(
                f"{argument} must be a column that prevalence depends on, one of"
                f" {', '.join(columns) or 'none'}, got {brief(name)}"
            )
    if by == variable:
        raise ValueError(f"by must be another column than variable, got {by!r} for both")
    values = {variable: _values(data, variable, held.pop(variable, None))}
    if by is not None:
        values = {by: _values(data, by, held.pop(by, None), few=True), **values}
    for name, value in held.items():
        if np.ndim(value):
            raise ValueError(
                f"at must hold one value of {name!r}, got {brief(value)} (name it in variable or by"
                " to compare several)"
            )
    return values, held


def _values(data: StructuredCorpus, name: str, given: Any, few: bool = False) -> list[Any]:
    """The values of a column to compare: those given, its labels, or numbers over its range."""
    if given is not None:
        values = list(np.atleast_1d(given)) if not isinstance(given, str) else [given]
        if not values:
            raise ValueError(f"at must hold at least one value of {name!r}, got none")
        return [value.item() if isinstance(value, np.generic) else value for value in values]
    known = data.design.columns
    if name not in known.names:
        for term in data.design.terms:
            if term.variables == (name,):
                return [str(level) for level in term.levels]
        raise ValueError(f"at must hold the values of {name!r} to compare, as a list")
    j = known.names.tolist().index(name)
    if known.num_levels[j]:
        return known.levels_of(j)
    numbers_there = np.unique(known.values[:, j])
    if len(numbers_there) > (3 if few else _FEW):
        numbers_there = (
            np.quantile(known.values[:, j], [0.1, 0.5, 0.9], method="lower") if few
            else np.linspace(numbers_there[0], numbers_there[-1], _GRID)
        )  # fmt: skip
    if known.origin_of(j) is not None:  # dates that are there
        near = np.abs(known.values[:, j] - numbers_there[:, None]).argmin(axis=1)
        return list(known.cells(j, np.unique(known.values[near, j])).tolist())
    return [int(x) if float(x).is_integer() else float(x) for x in numbers_there]


def _levels_in(term: Term, taken: set[str], scope: str) -> IntArray | None:
    """Each document's level of a random term; -1 for a new one; None if settings name it."""
    if not isinstance(term, GroupTerm) or taken.issuperset(term.variables):
        return None
    if scope == "population" or not taken.isdisjoint(term.variables):
        return np.full(len(term.codes), -1)
    return np.asarray(term.codes)


def _spread_rows(
    rng: np.random.Generator, counts: IntArray, count: int
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


def _joined(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _sentence(
    data: StructuredCorpus, held: Mapping[str, Any], left: Sequence[str],
    codes: Sequence[IntArray | None], scope: str,
) -> str:  # fmt: skip
    """What was averaged over what, and of whom that speaks."""
    pairs = [
        (":".join(term.variables), levels)
        for term, levels in zip(data.design.terms, codes, strict=True)
        if levels is not None
    ]
    new = [name for name, levels in pairs if (levels < 0).all()]
    seen = [*left, *(name for name, levels in pairs if not (levels < 0).all())]
    at = ", ".join(f"{name} {value_texts([value])[0]}" for name, value in held.items())
    parts = [f"; at {at}"] if held else []
    parts += [f"; {_joined(seen)} as in the {data.num_documents:,} documents"] if seen else []
    of = "the population" if scope == "population" else "documents such as these"
    who = f" by a new {_joined(new)}" if new else ""
    return f"Expected shares of topics in {of}: in a new document{who}{''.join(parts)}."
