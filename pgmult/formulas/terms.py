"""Random terms of a formula: many rows of a regression that share a variance.

``(1 | author)`` gives every author an effect of its own; ``(1 | author) + (1 | paper)`` cross, and
``(1 + year | author)`` has a slope of each author, too. Effects of ``rw(t)`` walk along a time,
those of ``car(area, map)`` are like those of their neighbours. ``gp(x)`` and ``gp(x, y)`` are
Gaussian processes, by basis functions. And ``s(year)`` is a smooth curve: its straight line is an
ordinary covariate, its bends a term of `SplineTerm`. With rows z_d of a term and effects u,
``(size, n)``, a document's psi has z_d' u more in its mean.

The bends are those of the natural cubic spline with knots at quantiles of x. With b(x) the spline's
cardinal functions and b(x)' S b(x) the integral of its squared second derivative, the columns are
b(x)' U D^(-1/2) of the positive part of S = U D U', so that independent effects of equal variance
are a spline with that roughness penalty (Wood 2017, Generalized Additive Models, section 5.8).
What a straight line through the documents takes of them is taken out, and they are scaled to
length 1 at the average document: a term's variance is what it adds there.

>>> import numpy as np
>>> x = np.linspace(0.0, 1.0, 50)[:, None]
>>> term = SplineTerm.of(Inputs("s(x)", ("x",), x, variables=("x",)), knots=6)
>>> term.basis.shape, round(float(np.mean(np.sum(term.basis**2, axis=1))), 6)
((50, 4), 1.0)
>>> bool(np.allclose(term.rows(x, np.ones((50, 1))), term.basis))
True
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from pgmult.core.labels import Levels
from pgmult.core.typing import FloatArray, IntArray
from pgmult.formulas.functions import natural_spline

Forms = Sequence[Callable[[float], str]]
_FEWEST_KNOTS = 4
_NARROWEST = 0.3  # side of a box of several inputs, beside the longest


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """What the effects of a level are multiplied by: ``1 + x`` of ``(1 + x | g)``.

    Attributes
    ----------
    effects : str
        What stands left of the bar.
    names : str array, ``(width,)``
    values : array, ``(num_rows, width)``
        Scaled; centred, too, where the levels have intercepts, in this term or in one beside it, so
        that the origin of a column (2010 or 10) does not matter.
    centre, scale : arrays, ``(width,)``
    """

    effects: str
    names: NDArray[np.str_]
    values: FloatArray
    centre: FloatArray
    scale: FloatArray

    def unscale(self, root: FloatArray) -> FloatArray:
        """A root of the covariance of effects, as one of slopes in the columns' own units."""
        inverse = np.diag(1.0 / self.scale)
        if self.names[0] == "Intercept":
            inverse[0, 1:] = -self.centre[1:] / self.scale[1:]
        return inverse @ root


@dataclass(frozen=True, slots=True, eq=False)
class GroupTerm:
    """Effects of every level of a grouping: independent, along a time or over a map.

    Attributes
    ----------
    name : str
    known : Levels
        The levels: labels of a column, or combinations of those of several.
    codes : int64 array, ``(num_rows,)``
        Each row's level; -1 - j for the j-th that the term does not know.
    slopes : Slopes or None
        None if the only effect of a level is an intercept.
    times : array, ``(num_levels,)``, or None
        Of ``rw(t)``: when the levels are, in order.
    neighbours : int64 array, ``(num_pairs, 2)``, or None
        Of ``car(area, map)``.
    new : str array, ``(num_new, num_columns)``
        Labels of levels that are not known.
    """

    name: str
    known: Levels
    codes: IntArray
    slopes: Slopes | None = None
    times: FloatArray | None = None
    neighbours: IntArray | None = None
    new: NDArray[np.str_] = field(default_factory=lambda: np.empty((0, 1), dtype=np.str_))

    @property
    def kind(self) -> str:
        """What sort of term it is."""
        if self.times is not None:
            return "walk"
        if self.neighbours is not None:
            return "map"
        return "group" if self.slopes is None else "slopes"

    @property
    def title(self) -> str:
        """The term as a formula writes it."""
        return self.name if self.kind in ("walk", "map") else f"({self.name})"

    variables = property(attrgetter("known.columns"))  # whose combinations are the levels

    @property
    def width(self) -> int:
        """Effects of a level."""
        return 1 if self.slopes is None else len(self.slopes.names)

    @property
    def levels(self) -> NDArray[np.str_]:
        """The effects in words, ``(size,)``: levels, with what their slopes are of."""
        if self.slopes is None:
            return self.known.names
        return np.array([f"{x},{of}" for x in self.known.names for of in self.slopes.names])

    @property
    def size(self) -> int:
        """How many effects it has."""
        return len(self.known) * self.width

    @property
    def design(self) -> Any:
        """Its rows: one level's number each, and what its effects are multiplied by."""
        if self.slopes is None:
            return self.codes
        return np.column_stack([self.codes, self.slopes.values])

    def unseen(self) -> FloatArray:
        """1 for rows whose level is unknown, else 0: their share of the term's variance."""
        return (self.codes < 0).astype(np.float64)

    def take(self, rows: IntArray | slice) -> "GroupTerm":
        """The term of some rows."""
        slopes = self.slopes and replace(self.slopes, values=self.slopes.values[rows])
        return replace(self, codes=self.codes[rows], slopes=slopes)

    def mean(self, effects: FloatArray) -> FloatArray:
        """What its effects ``(size, n)`` add to each row, ``(num_rows, n)``."""
        codes = np.maximum(self.codes, 0)
        return np.asarray(np.where((self.codes >= 0)[:, None], effects[codes], 0.0))


def times_of(labels: Sequence[str], name: str) -> FloatArray:
    """Numbers, or dates as days.

    Raises
    ------
    ValueError
        If a label is neither.
    """
    times = []
    for label in labels:
        with suppress(ValueError):
            times.append(float(label))
            continue
        try:
            times.append(np.datetime64(label, "us").astype(np.int64) / 86_400e6)
        except ValueError:
            must = f"{name} runs over numbers or dates (1999-12-31)"
            raise ValueError(f"{must}, got {label!r}") from None
    if not np.isfinite(times).all():
        raise ValueError(f"{name} runs over finite numbers, got {times}")
    return np.array(times)


@dataclass(frozen=True, slots=True, eq=False)
class BasisTerm:
    """A term whose rows are functions of columns, which are known everywhere.

    Attributes
    ----------
    name : str
    variables : tuple of str
        The columns that it runs over.
    levels : array of strings, ``(size,)``
        Its effects.
    basis : array, ``(num_rows, size)``
    expressions : tuple of str
        What it runs over.
    factors : tuple of str
        What it is multiplied by; () for nothing.
    """

    name: str
    variables: tuple[str, ...]
    levels: NDArray[np.str_]
    basis: FloatArray
    expressions: tuple[str, ...]
    factors: tuple[str, ...]

    title = property(attrgetter("name"))  # as a formula writes it
    design = property(attrgetter("basis"))

    @property
    def size(self) -> int:
        """How many effects it has."""
        return len(self.levels)

    def unseen(self) -> FloatArray:
        """Zeros: it is known everywhere."""
        return np.zeros(len(self.basis))

    def take(self, rows: IntArray | slice) -> Self:
        """The term of some rows."""
        return replace(self, basis=np.ascontiguousarray(self.basis[rows]))

    def mean(self, effects: FloatArray) -> FloatArray:
        """What its effects ``(size, n)`` add to each row, ``(num_rows, n)``."""
        return np.asarray(np.einsum("da,an->dn", self.basis, effects))


class Inputs(NamedTuple):
    """What a curve or a process runs over at the first rows, and what multiplies it.

    Attributes
    ----------
    name : str
        The term.
    expressions : tuple of str
    values : array, ``(num_rows, num_inputs)``
    factors : tuple of str
    multipliers : array, ``(num_rows, num_multipliers)``
    labels : tuple of str
        Names of the multipliers, as parts of names of effects.
    variables : tuple of str
        Columns in all of these.
    """

    name: str
    expressions: tuple[str, ...]
    values: FloatArray
    factors: tuple[str, ...] = ()
    multipliers: FloatArray | float = 1.0
    labels: tuple[str, ...] = ("",)
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ProcessTerm(BasisTerm):
    """A Gaussian process over one input or several, by sine functions on a box.

    Coordinates are scaled by one number, half the longest range, so that distance means the same
    in every direction. The functions vanish on the box's sides: `bound` times as far out as the
    data (Solin and Sarkka 2020; Riutort-Mayol et al. 2022, section 2).

    Attributes
    ----------
    name : str
    variables : tuple of str
        Columns.
    levels : str array, ``(size,)``
        Numbers of the functions.
    basis, expressions, factors
        As in `BasisTerm`; there are no factors.
    centre : array, ``(num_inputs,)``
    unit : float
        Half the longest range, in the inputs' units.
    reach : array, ``(num_inputs,)``
        Half the sides of the box, in units of `unit`.
    waves : int array, ``(size, num_inputs)``
        Half waves of each function.
    """

    centre: FloatArray
    unit: float
    reach: FloatArray
    waves: IntArray
    kind: ClassVar[str] = "process"

    @classmethod
    def of(cls, over: Inputs, count: int, bound: float) -> "ProcessTerm":
        """A Gaussian process over inputs.

        Parameters
        ----------
        over : Inputs
        count : int
            Functions along the longest side.
        bound : float
            How far out the box ends, 1 being the data's own range.

        Raises
        ------
        ValueError
            If an input is constant.
        """
        inputs, names = over.values, over.expressions
        low, high = inputs.min(axis=0), inputs.max(axis=0)
        if not (high > low).all():
            constant = names[int(np.argmin(high > low))]
            raise ValueError(f"{over.name} needs different values of {constant}")
        centre, half = (low + high) / 2.0, (high - low) / 2.0
        unit = float(half.max())
        reach = bound * np.maximum(half / unit, _NARROWEST)
        frequencies = [np.arange(1, math.ceil(count * side / bound) + 1) for side in reach]
        waves = np.stack(np.meshgrid(*frequencies, indexing="ij"), axis=-1).reshape(-1, len(reach))
        # of several inputs those that are not finer than the finest along the longest side
        waves = waves[np.linalg.norm(waves / reach * bound, axis=1) <= max(count, 2)]
        levels, none = np.array([str(i) for i in range(len(waves))]), np.empty((0, 0))
        box = centre, unit, reach, waves
        term = cls(over.name, over.variables, levels, none, names, over.factors, *box)
        return replace(term, basis=term.rows(inputs, over.multipliers))

    @property
    def frequencies(self) -> FloatArray:
        """Frequency of each function, in radians per `unit`, ``(size,)``."""
        return np.asarray(np.linalg.norm(np.pi * self.waves / (2.0 * self.reach), axis=1))

    def rows(self, inputs: FloatArray, multipliers: object, forms: Forms = ()) -> FloatArray:
        """The functions at inputs, ``(num_rows, num_inputs)``; `forms` write inputs in errors.

        Raises
        ------
        ValueError
            If an input is outside the box.
        """
        at = (inputs - self.centre) / self.unit
        outside = np.abs(at) > self.reach
        if outside.any():
            row, j = (int(i) for i in np.argwhere(outside)[0])
            low, high = self.centre[j] + self.unit * self.reach[j] * np.array([-1.0, 1.0])
            text = forms[j] if forms else "{:g}".format
            known = f"known for {self.expressions[j]} from {text(low)} to {text(high)}"
            got = f"{text(inputs[row, j])} at row {row} (c=3 makes it known further out)"
            raise ValueError(f"{self.name} is {known}, got {got}")
        parts = np.sin(np.pi * self.waves * ((at + self.reach) / (2.0 * self.reach))[:, None])
        return np.asarray(np.prod(parts / np.sqrt(self.reach), axis=2))


@dataclass(frozen=True, slots=True, eq=False)
class SplineTerm(BasisTerm):
    """The bends of a smooth curve, or of one for each of several groups.

    Attributes
    ----------
    name : str
    variables : tuple of str
        The column that the curve runs over, and those that it is multiplied by.
    levels : str array, ``(size,)``
        Numbers of the basis functions, with what multiplies them.
    basis, expressions, factors
        As in `BasisTerm`; there is one expression.
    knots : array, ``(num_knots,)``
    bends : array, ``(num_knots, num_knots - 2)``
        The penalised functions, as values at the knots.
    line : array, ``(2, num_knots - 2)``
        Level and slope of the straight line that is taken out of each of them.
    """

    knots: FloatArray
    bends: FloatArray
    line: FloatArray
    kind: ClassVar[str] = "spline"

    @classmethod
    def of(cls, over: Inputs, knots: int) -> "SplineTerm":
        """The bends of a curve over one input, times each of its multipliers.

        Raises
        ------
        ValueError
            If x has fewer than four different values.
        """
        name, (expression,), x = over.name, over.expressions, over.values
        distinct = np.unique(x)
        if len(distinct) < _FEWEST_KNOTS:
            hint = f"write {expression} for a straight line, C({expression}) for a level each"
            got = f"{len(distinct)} ({hint})"
            raise ValueError(f"{name} needs {_FEWEST_KNOTS} different values at least, got {got}")
        places = np.quantile(distinct, np.linspace(0.0, 1.0, min(knots, len(distinct))))
        cardinal = CubicSpline(places, np.eye(len(places)), bc_type="natural")
        curvature, gaps = cardinal(places, 2), np.diff(places)
        left, right = curvature[:-1], curvature[1:]  # second derivatives are straight in between
        roughness = sum(np.einsum("i,ia,ib->ab", gaps / 3.0, end, end) for end in (left, right))
        cross = np.einsum("i,ia,ib->ab", gaps / 6.0, left, right)
        scale, vectors = np.linalg.eigh(roughness + cross + cross.T)
        bends = vectors[:, 2:] / np.sqrt(scale[2:])  # the other two are the straight lines
        num = bends.shape[1]
        levels = np.array([f"{label}{i}" for label in over.labels for i in range(num)])
        curves, none = (places, bends, np.zeros((2, num))), np.empty((0, 0))
        plain = cls(name, over.variables, levels, none, over.expressions, over.factors, *curves)
        straight = np.column_stack([np.ones(len(x)), x])
        line = np.linalg.lstsq(straight, plain.rows(x, 1.0), rcond=None)[0].astype(np.float64)
        term = replace(plain, line=line)
        length = np.sqrt(np.mean(np.sum(term.rows(x, over.multipliers) ** 2, axis=1)))
        if not length > 0.0:
            raise ValueError(f"{name} is 0 in every row (leave it out)")
        term = replace(term, bends=bends / length, line=line / length)
        return replace(term, basis=term.rows(x, over.multipliers))

    def rows(
        self, inputs: FloatArray, multipliers: FloatArray | float, forms: Forms = ()
    ) -> FloatArray:
        """Rows at inputs, times each column of `multipliers`, ``(num_rows, num_multipliers)``.

        Beyond the first and last knot the curve goes on straight.
        """
        curves = natural_spline(self.knots, self.bends, inputs[:, 0])
        curves -= self.line[0] + inputs * self.line[1]
        columns = np.zeros((len(inputs), 1)) + multipliers
        return np.concatenate([curves * m[:, None] for m in columns.T], axis=1)


Term = GroupTerm | SplineTerm | ProcessTerm
