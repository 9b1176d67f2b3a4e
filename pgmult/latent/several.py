"""A latent Gaussian with several predictors a row, whose weights share hyperparameters.

    psi_n = sum_j a_nj w_j + offset_n,      psi_n, w_j in R^C,

with the same design a for every predictor. The C weights of a column are independent copies given
hyperparameters. A potential on a row is dense, exp(h_n' psi_n - psi_n' J_n psi_n / 2), since
categories of a softmax compete: `BlockSites` finds such potentials for any log-concave likelihood.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.special import polygamma

from pgmult.core.typing import FloatArray, Generator
from pgmult.latent.additive import Additive, Conditioned
from pgmult.latent.approximation import Approximation, Potentials, Sites
from pgmult.latent.categories import helmert
from pgmult.latent.compiled import blocks, categories
from pgmult.latent.layout import Layout, compressed_rows
from pgmult.latent.terms import Copies, Term

_MOST_INVERTED = 2500  # weights, up to which their covariance is found
_DRAWS = 40  # for variances where it is not
_STEP = 0.7  # of the way to new potentials
_MOST_ROUNDS = 16
_MANY = 30  # predictors
_LEAST_VAR = 1e-12
_WIDENED = 0.7  # power of the factors: all of them would leave slopes that are too steep for paths


class Several(Additive):
    """Terms side by side and their design, for C predictors a row.

    Parameters
    ----------
    terms : sequence of Term
        Priors of the weights of one predictor.
    design : array or scipy.sparse array, ``(num_rows, num_columns)``
    num : int
        Number of predictors, C.
    offset : array, ``(num_rows, C)``, or float
    """

    def __init__(
        self, terms: Sequence[Term], design: FloatArray | sparse.sparray, num: int,
        offset: FloatArray | float = 0.0,
    ):  # fmt: skip
        super().__init__(terms, design)
        self.num, self._single = num, tuple(terms)
        self.terms = tuple(Copies(term, num) for term in terms)
        self.layout = Layout(self.terms)
        self.weights = self.layout.weights
        self.offset = np.zeros((len(self.offset), num)) + offset
        self._rows = compressed_rows(self.design)
        self._columns = compressed_rows(self._transposed)
        pattern = (abs(self._transposed).sign() @ abs(self.design).sign()).tocsr()
        pattern.sort_indices()
        numbered = pattern.copy()
        numbered.data = np.arange(1.0, pattern.nnz + 1.0)
        mirrors = numbered.T.tocsr()
        mirrors.sort_indices()
        self._pattern = (*compressed_rows(pattern)[:2], mirrors.data.astype(np.int64) - 1)

    def take(self, rows: Any) -> "Several":
        """The same weights with some of the rows."""
        return Several(self._single, self.design[rows], self.num, self.offset[rows])

    def times(self, w: FloatArray) -> FloatArray:
        """The predictors without the offset."""
        return np.ascontiguousarray(super().times(w.reshape(-1, self.num)))

    def pull(self, g: FloatArray) -> FloatArray:
        """The gradient with respect to the weights of one with respect to predictors."""
        return super().pull(g).ravel()

    def absorb(self, J: FloatArray, h: FloatArray) -> tuple[Any, FloatArray]:
        """The potential on the weights of block potentials ``(num_rows, C, C)`` of the rows."""
        pull = self.pull(h - np.einsum("nst,nt->ns", J, self.offset))
        size, num = self.design.shape[1], self.num
        if not len(self._others) and self.layout.first is None and not self.layout.is_sparse:
            if num > size:
                squares = np.einsum("ni,nj->ijn", self._full_design, self._full_design)
                entries = squares.reshape(size * size, -1) @ J.reshape(len(J), -1)
                gram = entries.reshape(size, size, num, num).transpose(0, 2, 1, 3)
                return gram.reshape(size * num, size * num), pull
            gram = np.empty((size, num, size, num))
            for s in range(num):
                for t in range(s + 1):
                    product = (self._full_design.T * J[:, s, t]) @ self._full_design
                    gram[:, s, :, t] = gram[:, t, :, s] = product
            return gram.reshape(size * num, size * num), pull
        J = np.ascontiguousarray(J)
        entries = blocks.weighted_gram(self._rows, self._columns, J, self._pattern)
        indptr, indices, _ = self._pattern
        together = sparse.bsr_array((entries, indices, indptr), shape=(size * num, size * num))
        return self.layout.packed(together.tocsr()), pull

    @property
    def inverts(self) -> bool:
        """Whether the covariance of the weights is found."""
        return not self.layout.is_sparse and self.num_weights <= _MOST_INVERTED

    def covariances(self, gaussian: Conditioned) -> FloatArray | None:
        """Covariances of the predictors of each row, ``(num_rows, C, C)``; None where costly."""
        if not self.inverts:
            return None
        factor: Any = gaussian.factor  # an arrow
        half = factor.forward(np.eye(self.num_weights))
        covariance = (half.T @ half).reshape(2 * (self.design.shape[1], self.num))
        together = covariance.transpose(0, 2, 1, 3).reshape(*self.design.shape[1:] * 2, -1)
        return np.asarray(blocks.row_covariances(self._rows, together, self.num))

    def points(self, gaussian: Conditioned, rng: Generator) -> Iterator[tuple[float, FloatArray]]:
        """Weights and predictors, whose weighted means are means over the distribution.

        They are the points of a cubature rule of degree 3 (Julier and Uhlmann 2004), or draws
        where covariances of rows are costly. Where predictors are many it is one point, at which
        exp of each score is what it is on average: they are contrasts of scores.
        """
        mean, num = self.predictor(gaussian.mean), self.num
        covariances = self.covariances(gaussian)
        if num > _MANY:
            if covariances is not None:
                contrasts = helmert(num + 1)
                var = np.einsum("nsk,ks->nk", covariances @ contrasts.T, contrasts)
                mean = mean + 0.5 * var @ contrasts
            yield 1.0, mean
            return
        if covariances is None:
            draws = (gaussian.sample(rng) for _ in range(_DRAWS // 2))
            steps = ((1.0 / _DRAWS, self.times(draw - gaussian.mean)) for draw in draws)
        else:
            diagonal = np.einsum("nss->ns", covariances)
            more = 1e-9 * diagonal.max(axis=1, initial=0.0) + 1e-300  # they may be singular
            roots = np.linalg.cholesky(covariances + more[:, None, None] * np.eye(num))
            centre = max(3 - num, 0)
            if centre:
                yield centre / (centre + num), mean
            scale = np.sqrt(centre + num)
            steps = ((0.5 / (centre + num), scale * roots[:, :, s]) for s in range(num))
        for weight, away in steps:
            yield weight, mean + away
            yield weight, mean - away


@dataclass(frozen=True, slots=True, eq=False)
class BlockApproximation(Approximation):
    """An `Approximation` whose potentials are dense in each row: J is ``(num_rows, C, C)``."""

    def slope(self, psi: FloatArray) -> FloatArray:
        """The gradient of the log potential, h - J psi."""
        out = np.empty_like(psi)
        blocks.quadratic(psi, self.J, self.h, out)
        return out

    def correction(self, rows: Any, psi: FloatArray) -> Any:
        """Log likelihood less the potential, summed over rows."""
        return rows.total(psi) - blocks.quadratic(psi, self.J, self.h, np.empty_like(psi))


@dataclass(frozen=True, slots=True, eq=False)
class BlockSites(Sites):
    """Dense potentials from expected slopes and curvatures; they need a `start`, ``(num_rows, C)``.

    The rows are `MultinomialRows`, or others with a `curvature`.
    """

    rounds: ClassVar[int] = 4
    kind: ClassVar[type[Approximation]] = BlockApproximation

    def most(self, family: Several) -> int:
        """Many where they are exact: a category that is absent somewhere takes a step each unit."""
        return _MOST_ROUNDS if family.inverts else 0

    def first(self, family: Several) -> Potentials:
        """Potentials about the start."""
        return self._about([(1.0, self.start)], self.start)

    def expected(self, family: Several, gaussian: Conditioned, rng: Generator) -> Potentials:
        """Potentials with the expected slopes and curvatures."""
        return self._about(family.points(gaussian, rng), family.predictor(gaussian.mean))

    def matching(self, family: Any, gaussian: Any, sites: Potentials, rng: Generator) -> Potentials:
        """The same, most of the way from the last ones."""
        (J, h), (new_J, new_h) = sites, self.expected(family, gaussian, rng)
        return J + _STEP * (new_J - J), h + _STEP * (new_h - h)

    def _about(self, points: Iterable[tuple[float, Any]], mean: Any) -> Potentials:
        points = list(points)
        slope = sum(weight * self.rows.slope(psi) for weight, psi in points)
        J = np.ascontiguousarray(self.rows.curvature(points))
        return J, slope + np.einsum("nst,nt->ns", J, mean)

    def wide(self, family: Several, gaussian: Conditioned, sites: Potentials) -> Potentials:
        """Potentials nearly as wide as the posterior where a category is absent.

        There the likelihood of a log probability falls off steeply on one side alone, as that of
        the logarithm of a gamma variable with a few counts a. The nearest Gaussian has its mean,
        but the variance 1 / a, for trigamma(a). So information on log probabilities of variance v
        is multiplied by v / trigamma(1 / v), or most of that: as good as 1 where v is small.
        """
        (J, h), covariances = sites, family.covariances(gaussian)
        if covariances is None:
            return sites
        mean = family.predictor(gaussian.mean)
        points = list(family.points(gaussian, np.random.default_rng(0)))
        shares = sum(weight * categories.shares_of(psi) for weight, psi in points)
        num = family.num + 1
        towards = (np.eye(num) - shares[:, None]) @ helmert(num)
        var = np.einsum("nks,nks->nk", towards @ covariances, towards)
        var = np.maximum(var, _LEAST_VAR)
        factors = (var / polygamma(1, 1.0 / var)) ** _WIDENED
        new = np.ascontiguousarray(self.rows.curvature(points, factors))
        return new, h + np.einsum("nst,nt->ns", new - J, mean)
