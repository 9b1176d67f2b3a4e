"""Random terms of a formula: many rows of a regression that share a variance.

``(1 | author)`` gives every author an effect of its own; ``(1 | author) + (1 | paper)`` cross. And
``s(year)`` is a smooth curve: its straight line is an ordinary covariate, its bends a term of
`SplineTerm`. With rows z_d of a term and effects u, ``(size, n)``, a document's psi has z_d' u more
in its mean.

The bends are those of the natural cubic spline with knots at quantiles of x. With b(x) the spline's
cardinal functions and b(x)' S b(x) the integral of its squared second derivative, the columns are
b(x)' U D^(-1/2) of the positive part of S = U D U', so that independent effects of equal variance
are a spline with that roughness penalty (Wood 2017, Generalized Additive Models, section 5.8).
What a straight line through the documents takes of them is taken out, and they are scaled to
length 1 at the average document: a term's variance is what it adds there.

>>> import numpy as np
>>> term = spline_term("s(x)", "x", ("x",), np.linspace(0.0, 1.0, 50), np.ones((50, 1)), knots=6)
>>> term.basis.shape, round(float(np.mean(np.sum(term.basis**2, axis=1))), 6)
((50, 4), 1.0)
>>> bool(np.allclose(term.rows(np.linspace(0.0, 1.0, 50), np.ones((50, 1))), term.basis))
True
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from pgmult.core.labels import Levels
from pgmult.core.typing import FloatArray, IntArray
from pgmult.formulas.functions import natural_spline

__all__ = ["GroupTerm", "SplineTerm", "Term", "are_free", "spline_term"]

_FEWEST_KNOTS = 4
KNOTS = 10


@dataclass(frozen=True, slots=True, eq=False)
class GroupTerm:
    """An effect of its own for every level of a grouping.

    Attributes
    ----------
    name : str
    known : Levels
        The levels: labels of a column, or combinations of those of several.
    codes : int64 array, ``(num_rows,)``
        Each row's level; -1 for one that the term does not know.
    """

    name: str
    known: Levels
    codes: IntArray

    @property
    def kind(self) -> str:
        """What sort of term it is."""
        return "group"

    @property
    def title(self) -> str:
        """The term as a formula writes it."""
        return f"({self.name})"

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns whose combinations are the levels."""
        return self.known.columns

    @property
    def levels(self) -> NDArray[np.str_]:
        """The levels in words, ``(size,)``."""
        return self.known.names

    @property
    def size(self) -> int:
        """How many effects it has."""
        return len(self.known)

    @property
    def design(self) -> IntArray:
        """Its rows: one level's number each."""
        return self.codes

    def unseen(self) -> FloatArray:
        """1 for rows whose level is unknown, else 0: their share of the term's variance."""
        return (self.codes < 0).astype(np.float64)

    def take(self, rows: IntArray | slice) -> "GroupTerm":
        """The term of some rows."""
        return replace(self, codes=self.codes[rows])

    def mean(self, effects: FloatArray) -> FloatArray:
        """What its effects ``(size, n)`` add to each row, ``(num_rows, n)``."""
        known = np.maximum(self.codes, 0)
        return np.asarray(np.where((self.codes >= 0)[:, None], effects[known], 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class SplineTerm:
    """The bends of a smooth curve, or of one for each of several groups.

    Attributes
    ----------
    name : str
    variables : tuple of str
        The column that the curve runs over, and those that it is multiplied by.
    levels : str array, ``(size,)``
        Numbers of the basis functions, with what multiplies them.
    basis : array, ``(num_documents, size)``
    expression : str
        What the curve runs over.
    factors : tuple of str
        What it is multiplied by; () for one curve.
    knots : array, ``(num_knots,)``
    bends : array, ``(num_knots, num_knots - 2)``
        The penalised functions, as values at the knots.
    line : array, ``(2, num_knots - 2)``
        Level and slope of the straight line that is taken out of each of them.
    """

    name: str
    variables: tuple[str, ...]
    levels: NDArray[np.str_]
    basis: FloatArray
    expression: str
    factors: tuple[str, ...]
    knots: FloatArray
    bends: FloatArray
    line: FloatArray

    @property
    def kind(self) -> str:
        """What sort of term it is."""
        return "spline"

    @property
    def title(self) -> str:
        """The term as a formula writes it."""
        return self.name

    @property
    def size(self) -> int:
        """How many effects it has."""
        return len(self.levels)

    @property
    def design(self) -> FloatArray:
        """Its rows, ``(num_documents, size)``."""
        return self.basis

    def unseen(self) -> FloatArray:
        """Zeros: a curve is known everywhere."""
        return np.zeros(len(self.basis))

    def take(self, rows: IntArray | slice) -> "SplineTerm":
        """The term of some documents."""
        return replace(self, basis=np.ascontiguousarray(self.basis[rows]))

    def mean(self, effects: FloatArray) -> FloatArray:
        """What its effects ``(size, n)`` add to each document, ``(num_documents, n)``."""
        return np.asarray(np.einsum("da,an->dn", self.basis, effects))

    def rows(self, x: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Rows at values x, times each column of `multipliers`, ``(num_rows, num_multipliers)``.

        Beyond the first and last knot the curve goes on straight.
        """
        curves = natural_spline(self.knots, self.bends, x)
        curves -= self.line[0] + x[:, None] * self.line[1]
        return np.concatenate([curves * m[:, None] for m in multipliers.T], axis=1)


Term = GroupTerm | SplineTerm


def are_free(terms: Sequence[Term], covariances: FloatArray) -> list[bool]:
    """Which terms' effects have a covariance of their own: groupings, if there are any."""
    return [len(covariances) > 0 and term.kind == "group" for term in terms]


def spline_term(
    name: str,
    expression: str,
    variables: Sequence[str],
    x: FloatArray,
    multipliers: FloatArray,
    multiplier_names: Sequence[str] = ("",),
    factors: Sequence[str] = (),
    knots: int = KNOTS,
) -> SplineTerm:
    """The bends of a curve over x, ``(num_documents,)``, times each of `multipliers`.

    Raises
    ------
    ValueError
        If x has fewer than four different values.
    """
    distinct = np.unique(x)
    if len(distinct) < _FEWEST_KNOTS:
        raise ValueError(
            f"{name} needs {_FEWEST_KNOTS} different values at least, got {len(distinct)}"
            f" (write {expression} for a straight line, C({expression}) for a level each)"
        )
    places = np.quantile(distinct, np.linspace(0.0, 1.0, min(knots, len(distinct))))
    cardinal = CubicSpline(places, np.eye(len(places)), bc_type="natural")
    curvature, gaps = cardinal(places, 2), np.diff(places)
    left, right = curvature[:-1], curvature[1:]  # second derivatives are straight in between
    roughness = np.einsum("i,ia,ib->ab", gaps / 3.0, left, left)
    roughness += np.einsum("i,ia,ib->ab", gaps / 3.0, right, right)
    cross = np.einsum("i,ia,ib->ab", gaps / 6.0, left, right)
    scale, vectors = np.linalg.eigh(roughness + cross + cross.T)
    bends = vectors[:, 2:] / np.sqrt(scale[2:])  # the other two are the straight lines
    plain = SplineTerm(
        name, tuple(variables), np.array([], dtype=np.str_), np.empty((0, 0)), expression,
        tuple(factors), places, bends, np.zeros((2, bends.shape[1])),
    )  # fmt: skip
    curves = plain.rows(x, np.ones((len(x), 1)))
    straight = np.column_stack([np.ones(len(x)), x])
    line = np.asarray(np.linalg.lstsq(straight, curves, rcond=None)[0], dtype=np.float64)
    term = replace(plain, line=line)
    length = np.sqrt(np.mean(np.sum(term.rows(x, multipliers) ** 2, axis=1)))
    if not length > 0.0:
        raise ValueError(f"{name} is 0 in every document (leave it out)")
    term = replace(term, bends=bends / length, line=line / length)
    levels = [f"{of}{i}" for of in multiplier_names for i in range(bends.shape[1])]
    return replace(term, levels=np.array(levels, dtype=np.str_), basis=term.rows(x, multipliers))
