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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.typing import IntArray

__all__ = ["ContentGroups", "content_groups"]


@dataclass(frozen=True, slots=True, eq=False)
class ContentGroups:
    """Which documents vary a topic's words together.

    Attributes
    ----------
    names : tuple of str
        The factors, from the root of the tree to its leaves.
    values : str array, ``(num_groups, num_factors)``
        Each group's label by every factor.
    codes : int64 array, ``(num_documents,)``
        Each document's group.
    parents : tuple of int64 arrays
        For every factor, the branch of the factor before that each of its branches parts from; the
        last are the groups, and the first part from the root, 0.
    """

    names: tuple[str, ...]
    values: NDArray[np.str_]
    codes: IntArray
    parents: tuple[IntArray, ...]

    @property
    def num_groups(self) -> int:
        """Leaves of the tree, G."""
        return len(self.values)

    @property
    def num_branches(self) -> int:
        """Inner branches, the root left out: 0 for one factor."""
        return sum(len(parents) for parents in self.parents[:-1])

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
        labels = [_labels(name, columns, num_rows, self.names) for name in self.names]
        known = {tuple(row): g for g, row in enumerate(self.values.tolist())}
        codes = np.empty(num_rows, dtype=np.int64)
        for row, found in enumerate(zip(*labels, strict=True)):
            if found not in known:
                raise ValueError(
                    f"content must be one of {', '.join(self.labels)}, got"
                    f" {' / '.join(found)!r} at row {row}"
                )
            codes[row] = known[found]
        return replace(self, codes=codes)


def content_groups(
    content: Any,
    columns: Mapping[str, Any],
    num_rows: int,
    read: Callable[[str, Any], Sequence[str]] | None = None,
) -> ContentGroups:
    """Groups from ``"~ party"``, ``"~ party + house"`` (a tree) or ``"~ party:house"`` (crossed).

    Parameters
    ----------
    content : str
    columns : mapping from names to columns of labels
    num_rows : int
        Documents.
    read : callable, optional
        Checks and spells out the labels of one column.
    """
    if not isinstance(content, str):
        raise TypeError(f"content must be a formula such as '~ party', got {content!r:.60}")
    text = content.strip().removeprefix("~").strip()
    names = tuple(part.strip() for part in text.split("+"))
    strange = [name for name in names if not name or set(name) & set("()*~|^/-")]
    if strange or len(set(names)) < len(names):
        raise ValueError(
            f"content must name columns of labels, '~ party', '~ party + house' for a tree or"
            f" '~ party:house' for all combinations, got {content!r}"
        )
    labels = [_labels(name, columns, num_rows, names, read) for name in names]
    values = sorted(set(zip(*labels, strict=True)))
    if len(values) < 2:
        raise ValueError(f"content must have at least two groups of documents, got {len(values)}")
    place = {row: g for g, row in enumerate(values)}
    codes = np.array([place[row] for row in zip(*labels, strict=True)], dtype=np.int64)
    parents, above = [], {(): 0}
    for depth in range(1, len(names) + 1):
        here = list(dict.fromkeys(row[:depth] for row in values))
        parents.append(np.array([above[row[:-1]] for row in here], dtype=np.int64))
        above = {row: i for i, row in enumerate(here)}
    return ContentGroups(names, np.array(values, dtype=np.str_), codes, tuple(parents))


def _labels(
    name: str,
    columns: Mapping[str, Any],
    num_rows: int,
    names: Sequence[str],
    read: Callable[[str, Any], Sequence[str]] | None = None,
) -> list[str]:
    """Labels of a factor, those of its columns joined."""
    parts = []
    for column in (part.strip().strip("`") for part in name.split(":")):
        if column not in columns:
            raise ValueError(
                f"content must name columns, got {column!r}; columns: {', '.join(columns)}"
            )
        given = columns[column]
        if np.ndim(given) == 0:
            given = [given] * num_rows
        labels = [str(x) for x in (given if read is None else read(column, given))]
        if len(labels) != num_rows:
            raise ValueError(
                f"column {column!r} must have one label for each of the {num_rows} documents,"
                f" got {len(labels)}"
            )
        parts.append(labels)
    return [":".join(row) for row in zip(*parts, strict=True)]
