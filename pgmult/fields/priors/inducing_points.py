"""Gaussian fields *approximated* by inducing points: O(n m^2) per column for m points.

The field is its regression on its values at m of the inputs, plus independent residuals that keep
the variances right::

    f(x) = phi(x)' z + e(x),   z ~ N(0, I),   e(x) ~ N(0, k(x, x) - phi(x)' phi(x)) independent,

phi(x) = R^-T k(points, x) with R'R the covariance of the points (FITC: Snelson and Ghahramani 2006;
Quiñonero-Candela and Rasmussen 2005). This is a Gaussian process of its own, near the one asked for
when residuals are small: everything below is exact for it. The points are chosen greedily, each
where the residual variance is largest, which is pivoted Cholesky of the covariance (Foster et al.
2009), and never look at the data. Unlike nearest-neighbour approximations it has log
normalisers in the time of a draw, so hyperparameters can be learned; for covariances that are rough
in many dimensions it needs many points.

>>> import numpy as np
>>> from pgmult.fields.covariances import SquaredExponential
>>> inputs = np.linspace(0.0, 10.0, 1000)
>>> field = InducingProcess(SquaredExponential(2.0), inputs, num_points=20)
>>> bool(field.residual_vars.max() < 1e-6)
True
"""

import logging
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular

from pgmult.compiled.rows import over_rows
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_generator
from pgmult.fields.compiled.low_rank import Found, factor_columns
from pgmult.fields.covariances import Covariance
from pgmult.fields.priors.field import NOTHING, Asked, Solved, StructuredField, check_columns

_TINY = 1e-12  # of the largest variance: no point is added for less
_ROUNDING = 1e-14  # of the largest variance: residuals below say nothing of their noise


@dataclass(frozen=True, slots=True, eq=False)
class InducingProcess(StructuredField):
    """Independent columns of an approximate Gaussian field, times their potential.

    Attributes
    ----------
    covariance : Covariance
        What is approximated; any.
    inputs, prior_mean, potential
        As in every `pgmult.fields.priors.field.Field`.
    num_points : int
        How many inducing points at most; fewer where residuals vanish.
    points : array, ``(m, num_input_columns)``
        The points chosen.
    residual_vars : array, ``(n,)``
        Variances of the residuals: how good the approximation is.
    """

    num_points: int = 256
    points: FloatArray = field(init=False, repr=False)
    residual_vars: FloatArray = field(init=False, repr=False)
    _basis: FloatArray = field(init=False, repr=False)
    _root: FloatArray = field(init=False, repr=False)
    _chosen: IntArray = field(init=False, repr=False)

    def _complete(self) -> None:
        chosen, basis, left = _greedy(self.covariance, self.inputs, self.num_points)
        self._set(points=self.inputs[chosen], residual_vars=left, _basis=basis, _root=basis[chosen])
        self._set(_chosen=chosen)

    def whiten(self, rng: np.random.Generator, values: FloatArray) -> FloatArray:
        """The noise behind the values: first that of the points, then that of the residuals.

        The number of rows for points is their largest possible number.
        """
        centred, rank = values - self._means, len(self._chosen)
        noise = as_generator(rng).standard_normal((self._most + len(centred), centred.shape[1]))
        noise[:rank] = solve_triangular(self._root, centred[self._chosen], lower=True)
        sd = self._residual_sds()
        left = centred - np.einsum("nr,rc->nc", self._basis, noise[:rank])
        seen = sd > 0.0
        noise[self._most :][seen] = left[seen] / sd[seen, None]
        return noise

    def colour(self, noise: FloatArray) -> FloatArray:
        """The values made of standard normal noise, ``(n, num_columns)``."""
        smooth = np.einsum("nr,rc->nc", self._basis, noise[: len(self._chosen)])
        return np.asarray(
            self._means + smooth + self._residual_sds()[:, None] * noise[self._most :]
        )

    @property
    def _most(self) -> int:
        return min(self.num_points, len(self.inputs))

    def _residual_sds(self) -> FloatArray:
        left = self.residual_vars
        enough = _ROUNDING * self.covariance.diagonal(self.inputs).max()
        return np.sqrt(np.where(left > enough, left, 0.0))

    def _new_basis(self, new: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The basis at new inputs, and variances of the residuals there, ``(m, 1)``."""
        cross = solve_triangular(self._root, self.covariance.cov(self.points, new), lower=True)
        left = self.covariance.diagonal(new) - np.sum(np.square(cross), axis=0)
        return np.ascontiguousarray(cross.T), np.maximum(left, 0.0)[:, None]

    def _draw_prior(self, rng: np.random.Generator, new: FloatArray) -> FloatArray:
        basis, left = self._new_basis(new)
        basis = np.concatenate([self._basis, basis])
        left = np.concatenate([self.residual_vars[:, None], left])
        smooth = np.einsum("nr,rc->nc", basis, rng.standard_normal((basis.shape[1], self.shape[1])))
        return np.asarray(smooth + np.sqrt(left) * rng.standard_normal(smooth.shape))

    def _solve(self, asked: Asked) -> Solved:
        new_basis, new_left = self._new_basis(asked.new)
        J, left = self._precisions(), self.residual_vars[:, None]
        shrink = 1.0 + J * left  # the residuals integrated out, J and h are divided by this
        seen = J.any(axis=1)
        (num_columns, rank), num_tilts = (self.shape[1], self._basis.shape[1]), len(asked.tilts)
        directions = new_basis if asked.variances else new_basis[:0]
        found = Found(
            np.empty(num_columns), np.empty((num_columns, len(directions))),
            np.empty((num_columns, num_tilts, rank)),
        )  # fmt: skip
        tilts = np.ascontiguousarray(np.moveaxis((asked.tilts / shrink)[:, seen], 2, 0))
        statuses = over_rows(
            factor_columns, num_columns, self._basis[seen],
            np.ascontiguousarray((J / shrink)[seen].T), tilts, directions, found, grain=1,
        )  # fmt: skip
        check_columns(statuses)
        gain = 0.5 * np.sum(asked.tilts[0] ** 2 * left / shrink - np.log(shrink), axis=0)
        smooth, new_smooth = (
            np.einsum("nr,ctr->tnc", basis, found.means) for basis in (self._basis, new_basis)
        )
        values = smooth + left / shrink * (asked.tilts - J * smooth)
        return Solved(
            np.concatenate([values, new_smooth], axis=1), found.log_normalizers + gain,
            new_left + found.explained.T if asked.variances else NOTHING,
        )  # fmt: skip


def _greedy(
    covariance: Covariance, inputs: FloatArray, num_points: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Inputs where the residual variance is largest, their basis ``(n, m)``, what is left."""
    left = covariance.diagonal(inputs)
    enough = _TINY * left.max()
    basis = np.zeros((len(inputs), min(num_points, len(inputs))))
    chosen: list[int] = []
    for k in range(basis.shape[1]):
        pivot = int(np.argmax(left))
        if left[pivot] <= enough:
            break
        column = covariance.cov(inputs, inputs[[pivot]])[:, 0]
        column -= np.einsum("nk,k->n", basis[:, :k], basis[pivot, :k])
        basis[:, k] = column / np.sqrt(left[pivot])
        left = np.maximum(left - np.square(basis[:, k]), 0.0)
        left[pivot] = 0.0
        chosen.append(pivot)
    logging.getLogger("pgmult").info(
        "inducing points approximate the covariance: %d points for %d inputs leave residuals of"
        " standard deviation %.3g at most",
        len(chosen), len(inputs), np.sqrt(left.max()),
    )  # fmt: skip
    return np.array(chosen), np.ascontiguousarray(basis[:, : len(chosen)]), left
