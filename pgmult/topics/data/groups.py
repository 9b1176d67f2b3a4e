"""Groups of documents whose words differ within a topic: content covariates.

A column of labels makes a group of each label; several columns make one of each combination.

>>> columns = {"party": ["D", "R", "D", "R"], "house": ["lower", "lower", "upper", "lower"]}
>>> groups = content_groups("~ party:house", columns, 4)
>>> [str(label) for label in groups.labels], groups.codes.tolist()
(['D:lower', 'D:upper', 'R:lower'], [0, 2, 1, 2])
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    known : Levels
        Each group's labels in the columns that make groups.
    codes : int64 array, ``(num_documents,)``
        Each document's group.
    """

    known: Levels
    codes: IntArray

    @property
    def num_groups(self) -> int:
        """Groups, G."""
        return len(self.known)

    @property
    def name(self) -> str:
        """The columns that make groups, such as ``party:house``."""
        return ":".join(self.known.columns)

    @property
    def labels(self) -> NDArray[np.str_]:
        """Names of the groups, ``(num_groups,)``."""
        return np.array([joined_labels(row) for row in self.known.labels.tolist()], dtype=np.str_)

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


def content_groups(content: object, columns: Mapping[str, object], num_rows: int) -> ContentGroups:
    """Groups from ``"~ party"``, or from ``"~ party:house"`` for all combinations.

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
    factors = [factor for term in formula.terms for factor in term]
    named = list(dict.fromkeys(str(one.name) for one in factors if isinstance(one, Name)))
    if not formula.intercept or len(named) < len(factors) or len(formula.terms) != 1:
        wanted = "a column of labels, '~ party', or several for all combinations, '~ party:house'"
        raise ValueError(f"content must name {wanted}, got {content!r}")
    for name in named:
        if name not in columns:
            had = ", ".join(columns)
            raise ValueError(f"content must name columns, got {name!r}; columns: {had}")
    cells = [cells_of_rows(columns, name, num_rows) for name in named]
    parts = [labels_of(labels_only(n, c), n).tolist() for n, c in zip(named, cells, strict=True)]
    rows = list(zip(*parts, strict=True))
    values = sorted(set(rows), key=lambda row: (joined_labels(row), row))
    if len(values) < 2:
        raise ValueError(f"content must have at least two groups of documents, got {len(values)}")
    place = {row: g for g, row in enumerate(values)}
    codes = np.array([place[row] for row in rows], dtype=np.int64)
    return ContentGroups(Levels(tuple(named), np.array(values, dtype=np.str_)), codes)
