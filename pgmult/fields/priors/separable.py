r"""Gaussian fields on a table of inputs: a product covariance, and an effect of every cell.

Inputs are cells (t, s) of a table: combinations of rows t, say times, and columns s, say places.
With a covariance of each and an independent effect of every cell, in the bases of eigenvectors,
K_rows = U diag(l) U' and K_columns = V diag(m) V',

    cov  =  v K_rows (x) K_columns + effect I  =  (U (x) V) diag(v l_i m_j + effect) (U (x) V)'

is diagonal: densities, draws and predictions cost products of small matrices, and hyperparameters
two eigenvalue problems, O(rows^3 + columns^3) (Saatci 2011, "Scalable inference for structured
Gaussian process models", section 5.1). Cells that are missing among the inputs are inputs without
counts.

>>> import numpy as np
>>> from pgmult.fields.covariances import Matern, White
>>> covariance = 2.0 * Matern(1.5, 3.0, active=[0]) * Matern(0.5, active=[1]) + White(0.1)
>>> table = CellTable.of(covariance, np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]]))
>>> table.shape, table.sites[-1]
((2, 2), array([0., 2.]))
>>> gaussian = TableGaussian.of(table, covariance)
>>> rotated = gaussian.rotate(np.array([[1.0, 2.0], [0.0, 1.0]]))
>>> float(gaussian.log_density(rotated).round(3))
-2.223
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.fields.covariances import Constant, Covariance, Product, Sum, White
from pgmult.fields.covariances.base import columns_of
from pgmult.fields.inputs import find_rows

_SPARSEST = 10  # cells of a table for each input, of which there may be
_FEW = 1000  # in any case


class Factors(NamedTuple):
    """A product and an effect of every input.

    Attributes
    ----------
    variance, effect : float
        In front of the product, and of the effects.
    parts : tuple of Covariance
        The other factors of the product.
    """

    variance: float
    effect: float
    parts: tuple[Covariance, ...]

    @classmethod
    def of(cls, covariance: Covariance, num_columns: int) -> "Factors":
        """Split a sum of a product and effects; refuse anything else."""
        terms = [_flat(term, Product) for term in _flat(covariance, Sum)]
        effects = [factors for factors in terms if _is_effect(factors, num_columns)]
        products = [factors for factors in terms if factors not in effects]
        if not effects:
            hint = "add White(0.05), or overdispersion"
            raise ValueError(f"the covariance has no independent effect of every input: {hint}")
        if len(products) != 1:
            raise ValueError(f"the covariance must be one product and effects, got {len(products)}")
        others = tuple(factor for factor in products[0] if not isinstance(factor, Constant))
        return cls(_var(products[0]), sum(map(_var, effects)), others)


def has_effects(covariance: Covariance, num_columns: int) -> bool:
    """Whether some term of a sum is an independent effect of every input."""
    return any(_is_effect(_flat(term, Product), num_columns) for term in _flat(covariance, Sum))


def _flat(covariance: Covariance, kind: type[Sum] | type[Product]) -> list[Covariance]:
    """Parts of sums of sums, or of products of products."""
    if not isinstance(covariance, kind):
        return [covariance]
    return [leaf for term in covariance.parts for leaf in _flat(term, kind)]


def _is_effect(factors: list[Covariance], num_columns: int) -> bool:
    columns = frozenset().union(*(columns_of(factor, num_columns) for factor in factors))
    constant = all(isinstance(factor, Constant | White) for factor in factors)
    return constant and len(columns) == num_columns


def _var(factors: list[Covariance]) -> float:
    """The product of the variances among factors."""
    return float(np.prod([f.var for f in factors if isinstance(f, Constant | White)]))


@dataclass(frozen=True, slots=True, eq=False)
class CellTable:
    """Inputs as cells of a table.

    Attributes
    ----------
    row_inputs : frozenset of int
        The columns of the inputs that make rows; the others make columns.
    rows, columns : arrays, ``(num_rows, num_inputs)`` and ``(num_columns, num_inputs)``
        Distinct values, 0 in the inputs of the other.
    sites : array, ``(num_rows * num_columns, num_inputs)``
        The inputs, and after them the missing cells.
    cells : int array, ``(num_rows * num_columns,)``
        The site in each cell, one row of cells after the other.
    """

    row_inputs: frozenset[int]
    rows: FloatArray
    columns: FloatArray
    sites: FloatArray
    cells: IntArray

    @classmethod
    def of(cls, covariance: Covariance, inputs: FloatArray) -> "CellTable":
        """The smallest table that holds distinct inputs and on which the covariance is a product.

        Raises
        ------
        ValueError
            If there is none.
        """
        factors = Factors.of(covariance, inputs.shape[1])
        groups = _groups(factors.parts, inputs.shape[1])
        if len(groups) == 1:
            raise ValueError("the covariance is no product of functions of different inputs")
        halves = (
            frozenset().union(*chosen)
            for size in range(1, len(groups) // 2 + 1)
            for chosen in combinations(groups, size)
        )
        shapes = {
            half: [len(np.unique(part, axis=0)) for part in _split(inputs, half)] for half in halves
        }
        row_inputs = min(shapes, key=lambda half: (math.prod(shapes[half]), sum(shapes[half])))
        num_rows, num_columns = shapes[row_inputs]
        if num_rows * num_columns > max(_SPARSEST * len(inputs), _FEW):
            shape = f"{num_rows} times {num_columns}"
            raise ValueError(f"{len(inputs)} inputs are too few of the cells of a table, {shape}")
        halves_of_inputs = _split(inputs, row_inputs)
        (rows, row_of), (columns, column_of) = (find_rows(x[:0], x) for x in halves_of_inputs)
        site_of = np.full(num_rows * num_columns, -1)
        site_of[row_of * num_columns + column_of] = np.arange(len(inputs))
        missing = np.flatnonzero(site_of < 0)
        site_of[missing] = len(inputs) + np.arange(len(missing))
        row, column = np.divmod(missing, num_columns)
        sites = np.concatenate([inputs, rows[row] + columns[column]])
        return cls(row_inputs, rows, columns, sites, site_of)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), len(self.columns)

    def arranged(self, values: FloatArray) -> FloatArray:
        """Values at the sites, ``(num_sites, n)``, by cells: ``(n, num_rows, num_columns)``."""
        return np.ascontiguousarray(values[self.cells].T).reshape(-1, *self.shape)

    def at_sites(self, values: FloatArray) -> FloatArray:
        """Values by cells at the sites: the inverse of `arranged`."""
        out = np.empty((len(self.sites), len(values)))
        out[self.cells] = values.reshape(len(values), -1).T
        return out

    def found(self, new: FloatArray) -> tuple["CellTable", IntArray, IntArray]:
        """The table and around it new inputs, and the row and column of each of these.

        Rows and columns of this table come first.
        """
        in_rows, in_columns = _split(new, self.row_inputs)
        rows, row_of = find_rows(self.rows, in_rows)
        columns, column_of = find_rows(self.columns, in_columns)
        nowhere = np.empty(0, dtype=np.int64)
        return CellTable(self.row_inputs, rows, columns, new[:0], nowhere), row_of, column_of


def _groups(factors: tuple[Covariance, ...], num_columns: int) -> list[frozenset[int]]:
    """Columns of inputs that factors look at together, and every other column by itself."""
    groups = [frozenset([column]) for column in range(num_columns)]
    for factor in factors:
        looked_at = columns_of(factor, num_columns)
        joined = frozenset().union(*(group for group in groups if group & looked_at))
        groups = [group for group in groups if not group & looked_at] + [joined] * bool(joined)
    return groups


def _split(inputs: FloatArray, row_inputs: frozenset[int]) -> tuple[FloatArray, FloatArray]:
    """The inputs that make rows and those that make columns, with zeros in place of the others."""
    is_row = np.isin(np.arange(inputs.shape[1]), [*row_inputs])
    return np.where(is_row, inputs, 0.0), np.where(is_row, 0.0, inputs)


@dataclass(frozen=True, eq=False)
class Eigenbases:
    """Eigenvalues and eigenvectors of covariances of rows and of columns, of one or many tables.

    Values are ``(..., num_rows, num_columns)``.
    """

    row_values: FloatArray
    row_vectors: FloatArray
    column_values: FloatArray
    column_vectors: FloatArray

    def rotate(self, values: FloatArray) -> FloatArray:
        """Values along the eigenvectors."""
        return np.asarray(self.row_vectors.swapaxes(-1, -2) @ values @ self.column_vectors)

    def back(self, rotated: FloatArray) -> FloatArray:
        """The inverse of `rotate`."""
        return np.asarray(self.row_vectors @ rotated @ self.column_vectors.swapaxes(-1, -2))


@dataclass(frozen=True, eq=False)
class TableGaussian(Eigenbases):
    """The Gaussian of values in the cells of a table around their mean, and what follows from it.

    Attributes
    ----------
    table : CellTable
    factors : Factors
    row_cov, column_cov : arrays
        Covariances of rows and of columns.
    """

    table: CellTable
    factors: Factors
    row_cov: FloatArray
    column_cov: FloatArray

    @classmethod
    def of(cls, table: CellTable, covariance: Covariance) -> "TableGaussian":
        """Solve the two eigenvalue problems."""
        factors = Factors.of(covariance, table.rows.shape[1])
        rows, columns = covs = _covs(factors, table)
        return cls(*np.linalg.eigh(rows), *np.linalg.eigh(columns), table, factors, *covs)

    @cached_property
    def smooth(self) -> FloatArray:
        """Variances of the product along the eigenvectors, ``(num_rows, num_columns)``."""
        values = (np.maximum(side, 0.0) for side in (self.row_values, self.column_values))
        return self.factors.variance * np.outer(*values)

    @cached_property
    def vars(self) -> FloatArray:
        """Variances along the eigenvectors, those of the effects included."""
        return self.smooth + self.factors.effect

    def log_density(self, rotated: FloatArray) -> FloatArray:
        """Return the log density of rotated values, up to a constant."""
        squares = np.sum(rotated * rotated / self.vars, axis=(-2, -1))
        return np.asarray(-0.5 * (squares + np.log(self.vars).sum()))

    def others(self, rotated: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each cell given all others, ``(..., num_rows, num_columns)``."""
        precision = self.row_vectors**2 @ (1.0 / self.vars) @ self.column_vectors.T**2
        return self.back(rotated) - self.back(rotated / self.vars) / precision, 1.0 / precision

    def elsewhere(self, new: FloatArray, rotated: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means ``(m, n)`` and variances ``(m,)`` at new inputs, given values in all cells."""
        variance, effect, parts = self.factors
        row_cov, column_cov = _covs(self.factors, self.table, new)
        rows, columns = self.row_vectors.T @ row_cov, self.column_vectors.T @ column_cov
        prior = variance * np.prod([factor.diagonal(new) for factor in parts], axis=0)
        weighed = variance * (rotated / self.vars) @ columns
        explained = np.sum(rows**2 * ((1.0 / self.vars) @ columns**2), axis=0)
        left = np.maximum(prior - variance**2 * explained, 0.0)
        return np.einsum("im,nim->mn", rows, weighed), left + effect

    def draw_elsewhere(self, rng: Generator, new: FloatArray, rotated: FloatArray) -> FloatArray:
        """A joint draw at new inputs given rotated values in all cells, ``(m, n)``.

        It is one of the prior, moved by what it leaves unexplained (Matheron's rule); at cells of
        the table it is the value there.
        """
        wide, row, column = self.table.found(new)
        factors, (num_rows, num_columns) = self.factors, self.table.shape
        row_cov, column_cov = _covs(factors, wide)
        noise = rng.standard_normal((len(rotated), *wide.shape))
        effects = np.sqrt(factors.effect) * rng.standard_normal(noise.shape)
        drawn = np.sqrt(factors.variance) * (_root(row_cov) @ noise @ _root(column_cov).T)
        inside = np.s_[:, :num_rows, :num_columns]
        values = self.back(rotated)
        left = self.rotate(values - drawn[inside] - effects[inside])
        weights = factors.variance * self.back(left / self.vars)
        drawn += row_cov[:, :num_rows] @ weights @ column_cov[:num_columns]
        drawn += effects
        drawn[inside] = values
        return np.ascontiguousarray(drawn[:, row, column].T)


def _covs(
    factors: Factors, table: CellTable, new: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Covariances of rows and of columns of a table, with each other or with new inputs."""
    covs = []
    for points, of_rows in ((table.rows, True), (table.columns, False)):
        cov = np.ones((len(points), len(points if new is None else new)))
        for factor in factors.parts:
            if (columns_of(factor, points.shape[1]) <= table.row_inputs) == of_rows:
                cov *= factor.cov(points, new)
        covs.append(cov)
    return covs[0], covs[1]


def _root(cov: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(cov)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
