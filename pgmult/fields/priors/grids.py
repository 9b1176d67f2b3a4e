"""Gaussian fields on grids whose covariance is a product over the axes.

The columns of the inputs fall into groups, the axes, so that every factor of the covariance looks
at one group only: ``Matern(1.5, active=[0]) * SquaredExponential(active=[1, 2])`` has two. On the
grid of all combinations of the axes' points the covariance is a Kronecker product, and a draw takes
a few dozen multiplications by each axis' matrix. Inputs may miss points of the grid and repeat
them; new inputs extend the axes.

Means, and draws with them, solve linear systems by conjugate gradients, to `tolerance` *in
posterior standard deviations*: the default of 1e-10 is far below any Monte Carlo error. Log
normalisers and variances factor each column's precision in the r leading eigenvectors of the
covariance, all but a 1e-12th of the prior variance: that costs O(n r^2 + r^3) per column and is
quick where the covariance is smooth.

>>> import numpy as np
>>> from pgmult.core.potentials import DiagonalPotential
>>> from pgmult.fields.covariances import SquaredExponential
>>> covariance = SquaredExponential(active=[0]) * SquaredExponential(2.0, active=[1])
>>> inputs = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
>>> field = GridProcess(covariance, inputs).condition(
...     DiagonalPotential(J=np.array([[1.0], [0.0], [2.0]]), h=np.array([[1.0], [0.0], [1.0]]))
... )
>>> field.mean().round(3).T
array([[0.546, 0.505, 0.414]])
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from pgmult.compiled.rows import over_rows
from pgmult.core.parameters import Positive
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_generator
from pgmult.fields.compiled.elimination import semidefinite_root
from pgmult.fields.compiled.grids import Found, Plan, padded, solve_columns
from pgmult.fields.compiled.low_rank import Found as FoundByRank
from pgmult.fields.compiled.low_rank import factor_columns
from pgmult.fields.covariances import Covariance, Product
from pgmult.fields.covariances.base import columns_of
from pgmult.fields.inputs import find_rows
from pgmult.fields.priors.field import NOTHING, Asked, Solved, StructuredField, check_columns
from pgmult.fields.priors.roots import SymmetricRoot, colour, whiten

_TINY = 1e-15  # of an axis' largest variance: what is below is rounding
_ALIKE = math.log(4.0)  # of sums of J along an axis, in logarithms
_LEFT_OUT = 1e-12  # of the prior variance, where a precision is factored
_MOST_WHITENED = 5000  # inputs that leave points of the grid out: a matrix of 200 MB
_MOST_FACTORED = 6000  # coordinates: a factor of 300 MB


class _Axis(NamedTuple):
    """A group of columns, the factors that look at them, and the points of the grid."""

    columns: list[int]
    factors: list[Covariance]
    points: FloatArray  # (num_points, num_input_columns), zero in other columns

    def cov(self) -> FloatArray:
        """Covariance of the points."""
        shape = (len(self.points), len(self.points))
        return reduce(np.multiply, (f.cov(self.points) for f in self.factors), np.ones(shape))


@dataclass(frozen=True, slots=True, eq=False)
class GridProcess(StructuredField):
    """Independent columns of a Gaussian field on a grid, times their potential.

    Attributes
    ----------
    covariance : Covariance
        A product with factors that look at different columns: see the module.
    inputs, prior_mean, potential
        As in every `pgmult.fields.priors.field.Field`.
    tolerance : float
        Root mean square error of a draw or mean, in posterior standard deviations.
    max_iterations : int
        Of conjugate gradients; an error is raised if they do not suffice.

    Raises
    ------
    ValueError
        If the covariance has no two axes, or shapes do not agree.
    """

    tolerance: Positive = 1e-10
    max_iterations: int = 1000
    _axes: tuple[_Axis, ...] = field(init=False, repr=False)
    _at: IntArray = field(init=False, repr=False)

    def _complete(self) -> None:
        inputs = self.inputs
        axes = tuple(
            _Axis(columns, factors, np.empty((0, inputs.shape[1])))
            for columns, factors in _groups(self.covariance, inputs.shape[1])
        )
        axes, at = _extended(axes, inputs)
        self._set(_axes=axes, _at=at)

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """Points of each axis."""
        return tuple(len(axis.points) for axis in self._axes)

    @property
    def whitens(self) -> bool:
        """Whether values can be whitened: inputs are all points of the grid, or few."""
        return self._is_whole or len(self.inputs) <= _MOST_WHITENED

    @property
    def _is_whole(self) -> bool:
        return len(self.inputs) == math.prod(self.grid_shape) == len(np.unique(self._cells))

    @property
    def _cells(self) -> IntArray:
        """The point of each input."""
        return np.asarray(np.ravel_multi_index(tuple(self._at.T), self.grid_shape))

    def whiten(self, rng: np.random.Generator, values: FloatArray) -> FloatArray:
        """The noise behind the values, by a root per axis, or of all inputs if they miss points."""
        roots, place = self._roots()
        centred = np.empty_like(values)
        centred[place] = values - self._means
        return whiten(roots, centred, as_generator(rng).standard_normal(values.shape))

    def colour(self, noise: FloatArray) -> FloatArray:
        """The values made of standard normal noise, ``(n, num_columns)``."""
        roots, place = self._roots()
        return np.ascontiguousarray(self._means + colour(roots, noise)[place])

    def _roots(self) -> tuple[Sequence[SymmetricRoot], IntArray]:
        """Roots whose Kronecker product is the field's, and each input's place there."""
        if self._is_whole:
            return [SymmetricRoot.of(axis.cov()) for axis in self._axes], self._cells
        return [SymmetricRoot.of(self.covariance.cov(self.inputs))], np.arange(len(self.inputs))

    def _draw_prior(self, rng: np.random.Generator, new: FloatArray) -> FloatArray:
        axes, at = _extended(self._axes, np.concatenate([self.inputs, new]))
        sizes = tuple(len(axis.points) for axis in axes)
        noise = rng.standard_normal((math.prod(sizes), self.shape[1]))
        drawn = colour([SymmetricRoot.of(axis.cov()) for axis in axes], noise)
        return np.asarray(drawn[np.ravel_multi_index(tuple(at.T), sizes)])

    def _solve(self, asked: Asked) -> Solved:
        log_z, new_vars = NOTHING, NOTHING
        if asked.log_normalizers or asked.variances:
            log_z, new_vars = self._factor(asked.tilts[0], asked.new)
        axes, at = self._axes, self._at
        if len(asked.new):
            axes, new_at = _extended(axes, asked.new)
            at = np.concatenate([at, new_at])
        sizes = np.array([len(axis.points) for axis in axes])
        whole = (*sizes[:-1], int(padded(sizes[-1])))
        cells = np.ravel_multi_index(tuple(at.T), whole)
        n = len(self.inputs)
        add = csr_array((np.ones(n), (cells[:n], np.arange(n))), shape=(math.prod(whole), n))
        J = np.ascontiguousarray((add @ self._precisions()).T)
        plans = _plans(axes, J, whole)
        means = np.empty((len(asked.tilts), len(cells), len(J)))
        for tilt, mean in zip(asked.tilts, means, strict=True):
            h = np.ascontiguousarray((add @ tilt).T)
            for plan in plans:
                size = len(plan.columns)
                found = Found(np.empty((size, J.shape[1])), np.empty(size))
                over_rows(
                    solve_columns, size, J, h, plan, self.tolerance,
                    self.max_iterations, found, grain=1,
                )  # fmt: skip
                self._check(plan.columns, found.errors)
                mean[:, plan.columns] = found.fields[:, cells].T
        return Solved(means, log_z, new_vars)

    def _check(self, columns: IntArray, errors: FloatArray) -> None:
        bad = ~(errors <= self.tolerance)
        if bad.any():
            first = int(np.argmax(bad))
            raise ValueError(
                f"conjugate gradients left an error of {errors[first]:.3g} posterior standard"
                f" deviations in column {columns[first]} after"
                f" max_iterations={self.max_iterations}, above"
                f" tolerance={self.tolerance:g} (allow more iterations or a larger tolerance,"
                " or use structure='state_space' or 'dense', which do not iterate)"
            )

    def _factor(self, tilt: FloatArray, new: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log normalisers of the centred columns, and variances at new inputs."""
        axes, new_at = _extended(self._axes, new)
        values, vectors = [], []
        for known, axis in zip(self._axes, axes, strict=True):
            value, vector = np.linalg.eigh(known.cov())
            keep = value > _TINY * value[-1]
            cross = reduce(
                np.multiply,
                (f.cov(axis.points, known.points) for f in axis.factors),
                np.ones((len(axis.points), len(known.points))),
            )
            values.append(value[keep])
            vectors.append(cross @ (vector[:, keep] / value[keep]))  # Nyström: to new points
        spectrum = reduce(np.multiply.outer, values)
        order = np.argsort(spectrum, axis=None)[::-1]
        left = spectrum.sum() - np.cumsum(spectrum.ravel()[order])
        rank = 1 + int(np.argmax(left <= _LEFT_OUT * spectrum.sum()))
        if rank > _MOST_FACTORED:
            raise ValueError(
                f"the covariance is too rough for this: {rank} eigenvectors carry its variance,"
                f" more than {_MOST_FACTORED} (log normalisers and variances of a grid factor their"
                " precision; try structure='state_space')"
            )
        pairs = np.unravel_index(order[:rank], spectrum.shape)

        def basis(at: IntArray) -> FloatArray:
            columns = (v[at[:, a]][:, pairs[a]] for a, v in enumerate(vectors))
            return np.asarray(reduce(np.multiply, columns) * np.sqrt(spectrum[pairs]))

        J, h = (np.ascontiguousarray(values.T) for values in (self._precisions(), tilt))
        directions = basis(new_at)
        found = FoundByRank(
            np.empty(len(J)), np.empty((len(J), len(new))), np.empty((len(J), 1, rank))
        )
        statuses = over_rows(
            factor_columns, len(J), basis(self._at), J, h[:, None], directions, found, grain=1
        )
        check_columns(statuses)
        beyond = self.covariance.diagonal(new) - np.sum(np.square(directions), axis=1)
        return found.log_normalizers, np.maximum(beyond, 0.0)[:, None] + found.explained.T


def _plans(axes: tuple[_Axis, ...], J: FloatArray, whole: tuple[int, ...]) -> list[Plan]:
    """One plan for the columns whose J has much the same shape.

    Columns whose sums of J along an axis differ in shape from those of all columns, by more than
    `_ALIKE`, have plans of their own. That depends on J alone, never on noise.
    """
    cells = J.reshape(len(J), *whole)
    own = [
        cells.sum(axis=tuple(b + 1 for b in range(len(axes)) if b != a))[:, : len(axis.points)]
        for a, axis in enumerate(axes)
    ]
    scales = J.sum(axis=1)
    together = [margin.sum(axis=0) for margin in own]
    alone = np.zeros(len(J), dtype=np.bool_)
    for margin, sums in zip(own, together, strict=True):
        seen = sums > 0.0
        ratio = margin[:, seen] / sums[seen] * (sums.sum() / np.where(scales, scales, 1.0))[:, None]
        far = np.abs(np.log(np.maximum(ratio, 1e-300))) > _ALIKE
        alone |= (scales > 0.0) & far.any(axis=1)
    roots = [semidefinite_root(axis.cov(), _TINY) for axis in axes]
    ranks = np.array([len(root) for root in roots])

    def plan(columns: IntArray, margins: Sequence[FloatArray]) -> Plan:
        bases, spectra = [], []
        for root, margin in zip(roots, margins, strict=True):
            values, vectors = np.linalg.eigh((root * (margin / (margin.sum() or 1.0))) @ root.T)
            bases.append(root.T @ vectors)
            spectra.append(np.maximum(values, 0.0))
        spectra[-1] = np.pad(spectra[-1], (0, int(padded(ranks[-1])) - ranks[-1]))
        return Plan(
            columns, scales[columns], reduce(np.multiply.outer, spectra).ravel(),
            np.array([len(axis.points) for axis in axes]), ranks,
            *_flattened(bases), *_flattened([basis.T for basis in bases]),
        )  # fmt: skip

    plans = [plan(np.array([c]), [margin[c] for margin in own]) for c in np.flatnonzero(alone)]
    if not alone.all():
        plans.append(plan(np.flatnonzero(~alone), together))
    return plans


def _groups(covariance: Covariance, num_columns: int) -> list[tuple[list[int], list[Covariance]]]:
    """Groups of columns with the factors of the covariance that look at them."""
    groups: list[tuple[set[int], list[Covariance]]] = []
    constants: list[Covariance] = []
    for factor in _factors(covariance):
        columns = set(columns_of(factor, num_columns))
        if not columns:
            constants.append(factor)
            continue
        shared = [group for group in groups if group[0] & columns]
        groups = [group for group in groups if not group[0] & columns]
        merged = [part for _, parts in shared for part in parts]
        groups.append((columns.union(*(known for known, _ in shared)), [*merged, factor]))
    if len(groups) < 2:
        raise ValueError(
            "the covariance is not a product over two groups of columns or more, so it has no grid"
            " (write it as ... * ..., with active= columns for each factor)"
        )
    groups[0][1].extend(constants)
    return [(sorted(columns), parts) for columns, parts in groups]


def _factors(covariance: Covariance) -> Sequence[Covariance]:
    """The factors of a product, of products within it too."""
    if not isinstance(covariance, Product):
        return [covariance]
    return [factor for part in covariance.parts for factor in _factors(part)]


def _extended(axes: tuple[_Axis, ...], inputs: FloatArray) -> tuple[tuple[_Axis, ...], IntArray]:
    """The axes with the points of `inputs` added, and where each input stands on each axis."""
    longer, at = [], []
    most = max(int(np.max(axis.columns)) for axis in axes)
    if most >= inputs.shape[1]:
        raise ValueError(
            f"inputs must have the columns that the covariance names, {most + 1} at least, got"
            f" shape {inputs.shape}"
        )
    for axis in axes:
        points = np.zeros_like(inputs)
        points[:, axis.columns] = inputs[:, axis.columns]
        points, where = find_rows(axis.points, points)
        longer.append(axis._replace(points=points))
        at.append(where)
    return tuple(longer), np.stack(at, axis=1)


def _flattened(matrices: list[FloatArray]) -> tuple[FloatArray, IntArray]:
    """Matrices one after another, the last one transposed with its rows padded; where they begin.

    Row i of the last one's transpose has what its columns i have.
    """
    *others, last = matrices
    wide = np.zeros((last.shape[1], int(padded(len(last)))))
    wide[:, : len(last)] = last.T
    parts = [*(np.ascontiguousarray(matrix).ravel() for matrix in others), wide.ravel()]
    return np.concatenate(parts), np.cumsum([0, *(part.size for part in parts[:-1])])
