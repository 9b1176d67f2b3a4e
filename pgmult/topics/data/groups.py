"""Groups of documents whose words differ within a topic: content covariates.

One factor makes one group a label. Several factors make a tree: documents of one first label form
a branch, which parts by the second label, and so on down to the groups, the leaves. What a leaf
says of a topic is then a variation on what its branch says.

>>> columns = {"party": ["D", "R", "D", "R"], "house": ["lower", "lower", "upper", "lower"]}
>>> groups = content_groups("~ party + house", columns, 4)
>>> [str(label) for label in groups.labels], groups.codes.tolist()
(['D / lower', 'D / upper', 'R / lower'], [0, 2, 1, 2])
>>> [parents.tolist() for parents in groups.parents]
[[0, 0], [0, 0, 1]]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import brief, under_name
from pgmult.core.labels import Levels, joined_labels, labels_of
from pgmult.core.typing import IntArray
from pgmult.formulas.columns import cells_of_rows, labels_only
from pgmult.formulas.language import Name, parse


@dataclass(frozen=True, slots=True, eq=False)
class ContentGroups:
    """Groups of documents, each with its own words of the topics.

    Attributes
    ----------
    names : tuple of str
        The factors, from the root of the tree to its leaves.
    known : Levels
        Each group's labels in the columns of all factors.
    widths : tuple of int
        How many columns each factor has: those of ``party:house`` are two.
    codes : int64 array, ``(num_documents,)``
        Each document's group.
    parents : tuple of int64 arrays
        For every factor, the branch of the factor before that each of its branches parts from; the
        last are the groups, and the first part from the root, 0.
    """

    names: tuple[str, ...]
    known: Levels
    widths: tuple[int, ...]
    codes: IntArray
    parents: tuple[IntArray, ...]

    @property
    def num_groups(self) -> int:
        """Leaves of the tree, G."""
        return len(self.known)

    @property
    def num_branches(self) -> int:
        """Inner branches, the root left out: 0 for one factor."""
        return sum(len(parents) for parents in self.parents[:-1])

    @property
    def values(self) -> NDArray[np.str_]:
        """Each group's label by every factor, ``(num_groups, num_factors)``."""
        return np.array(_by_factor(self.known.labels.tolist(), self.widths), dtype=np.str_)

    @property
    def labels(self) -> NDArray[np.str_]:
        """Names of the groups, ``(num_groups,)``."""
        return np.array([" / ".join(row) for row in self.values], dtype=np.str_)

    @property
    def branch_labels(self) -> NDArray[np.str_]:
        """Names of the inner branches, factor after factor, ``(num_branches,)``."""
        labels: list[str] = []
        for depth in range(1, len(self.names)):
            labels += list(dict.fromkeys(" / ".join(row[:depth]) for row in self.values))
        return np.array(labels, dtype=np.str_)

    def take(self, rows: IntArray | slice) -> "ContentGroups":
        """The groups of some documents; all groups stay."""
        return replace(self, codes=self.codes[rows])

    def of(self, columns: Mapping[str, Any], num_rows: int) -> "ContentGroups":
        """The same groups, for other documents.

        Raises
        ------
        ValueError
            If a column is missing or a combination of labels is none of the groups.
        """
        cells = [cells_of_rows(columns, name, num_rows).values for name in self.known.columns]
        return replace(self, codes=self.known.find(cells))


def content_groups(content: Any, columns: Mapping[str, Any], num_rows: int) -> ContentGroups:
    """Groups from ``"~ party"``, ``"~ party + house"`` (a tree) or ``"~ party:house"`` (crossed).

    Parameters
    ----------
    content : str
    columns : mapping from names to columns of labels
    num_rows : int
        Documents.
    """
    if not isinstance(content, str):
        raise TypeError(f"content must be a formula such as '~ party', got {brief(content)}")
    with under_name("content", of="formula"):
        formula = parse(content, by_degree=False)
    factors = [[str(one.name) for one in term if isinstance(one, Name)] for term in formula.terms]
    named = [name for factor in factors for name in factor]
    plain = formula.intercept and len(named) == sum(map(len, formula.terms)) == len(set(named))
    if not plain or not named:
        raise ValueError(
            f"content must name columns of labels, '~ party', '~ party + house' for a tree or"
            f" '~ party:house' for all combinations, got {content!r}"
        )
    for name in named:
        if name not in columns:
            raise ValueError(
                f"content must name columns, got {name!r}; columns: {', '.join(columns)}"
            )
    cells = [cells_of_rows(columns, name, num_rows) for name in named]
    parts = [labels_of(labels_only(n, c), n).tolist() for n, c in zip(named, cells, strict=True)]
    widths = tuple(map(len, factors))
    rows = list(zip(*parts, strict=True))
    values = sorted(set(rows), key=lambda row: (_by_factor([row], widths)[0], row))
    if len(values) < 2:
        raise ValueError(f"content must have at least two groups of documents, got {len(values)}")
    place = {row: g for g, row in enumerate(values)}
    codes = np.array([place[row] for row in rows], dtype=np.int64)
    parents, above = [], {(): 0}
    ends = list(accumulate(widths))
    for start, end in zip([0, *ends], ends, strict=False):
        here = list(dict.fromkeys(row[:end] for row in values))
        parents.append(np.array([above[row[:start]] for row in here], dtype=np.int64))
        above = {row: i for i, row in enumerate(here)}
    names = tuple(":".join(factor) for factor in factors)
    known = Levels(tuple(named), np.array(values, dtype=np.str_))
    return ContentGroups(names, known, widths, codes, tuple(parents))


def _by_factor(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> list[list[str]]:
    """The labels of each factor's columns in words."""
    bounds = list(pairwise(accumulate(widths, initial=0)))
    return [[joined_labels(row[a:b]) for a, b in bounds] for row in rows]
