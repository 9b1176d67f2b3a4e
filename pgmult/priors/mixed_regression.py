r"""Gaussian rows explained by covariates and by random effects, in one exact draw.

Rows y_d, ``(n,)``, with covariates x_d and, for every random term j, a row z_jd::

    B, Sigma         ~  a matrix normal-inverse-Wishart
    u_j | Sigma      ~  MN(0, rho_j I, Sigma)                      A_j x n effects
    y_d              ~  N(B' x_d + sum_j u_j' z_jd, Sigma)

rho_j is the variance of an effect in units of Sigma, and sqrt(rho_j) is half-t. Given rho the
effects are rows of the regression like any others, of prior precision 1 / rho_j: so (B, u, Sigma)
is one draw of a matrix normal-inverse-Wishart, and what it leaves when it is integrated out, ::

    log p(y | rho) = - n/2 log |Q| + n/2 sum_j A_j log(1 / rho_j) - (dof + D)/2 log |S|,

with Q the precision of all rows and S the scale of Sigma given y, is what to draw rho from. With
rho and the effects drawn in turn, given each other, rho would hardly move once it is small.

The largest grouping has Z'Z diagonal: it is eliminated first, and what is left is dense (Schur).

>>> rng = np.random.default_rng(0)
>>> codes = np.repeat(np.arange(30), 20)
>>> y = 2.0 * rng.normal(size=(30, 1))[codes] + rng.normal(size=(600, 1))
>>> x = np.ones((600, 1))
>>> prior = MatrixNormalInverseWishart.weak(np.zeros((1, 1)), x)
>>> regression = MixedRegression.of(prior, y, x, [(codes, 30)])
>>> evidence = [regression.log_evidence(np.array([rho])) for rho in (0.01, 1.0, 4.0, 16.0, 64.0)]
>>> int(np.argmax(evidence))
2
>>> regression.sample(rng, np.array([4.0])).effects.shape
(30, 1)
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pgmult.compiled.linalg import invert_lower, scatter
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.priors.gaussian import lower_cholesky, sample_inverse_wishart
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart, linear_means

Terms = Sequence[tuple[IntArray | FloatArray, int]]  # designs and numbers of effects

DOF = 3.0  # of the half-t prior of a term's standard deviation, in units of that of Sigma
_FURTHEST = 30.0  # of |log rho|: the prior stops there, beyond which rho is 0 or 1 / rho is


class MixedDraw(NamedTuple):
    """Coefficients ``(p, n)``, effects of all terms ``(sum of A_j, n)`` and Sigma ``(n, n)``."""

    coefficients: FloatArray
    effects: FloatArray
    Sigma: FloatArray


def prior_variances(rng: Generator, num_terms: int, scale: float) -> FloatArray:
    """Rho of each term from its prior: sqrt(rho) half-t of 3 degrees of freedom and this scale."""
    variances = (scale * rng.standard_t(DOF, size=num_terms)) ** 2
    return np.asarray(np.clip(variances, math.exp(-_FURTHEST), math.exp(_FURTHEST)))


def log_variance_density(log_variance: float, scale: float) -> float:
    """Log density of log rho under its prior, up to a constant."""
    if not abs(log_variance) <= _FURTHEST:
        return -math.inf
    share = math.exp(log_variance) / (DOF * scale**2)
    return 0.5 * log_variance - 0.5 * (DOF + 1.0) * math.log1p(share)


class _Posed(NamedTuple):
    """The regression given rho, the effects of the largest grouping eliminated."""

    outer: FloatArray  # precision of the eliminated effects, a number each
    precision: FloatArray  # of the other columns
    pull: FloatArray
    squares: FloatArray
    log_det: float


class RowSums(NamedTuple):
    """What rows say of coefficients, effects and Sigma: it is added where rows are.

    Attributes
    ----------
    outer_counts : array, ``(A,)``
        Rows of each level of the grouping that is eliminated first.
    outer_pull, outer_cross : arrays, ``(A, n)`` and ``(A, r)``
        Sums of y - mean' x and of all other columns over each of its levels.
    gram, pull : arrays, ``(r, r)`` and ``(r, n)``
        Products of the other columns with each other and with y - mean' x.
    squares : array, ``(n, n)``
        Products of y - mean' x with itself.
    """

    outer_counts: FloatArray
    outer_pull: FloatArray
    outer_cross: FloatArray
    gram: FloatArray
    pull: FloatArray
    squares: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class MixedRegression:
    """The regression given rows. Make it by `of`, or by `of_sums`.

    Attributes
    ----------
    prior : MatrixNormalInverseWishart
        Of B and Sigma.
    num_rows : int
    sizes : tuple of int
        Effects of each term.
    outer : int
        The term that is eliminated first, -1 where none is a grouping.
    sums : RowSums
    """

    prior: MatrixNormalInverseWishart
    num_rows: int
    sizes: tuple[int, ...]
    outer: int
    sums: RowSums

    @classmethod
    def of(
        cls, prior: MatrixNormalInverseWishart, rows: FloatArray, x: FloatArray, terms: Terms
    ) -> "MixedRegression":
        """Sums over rows ``(D, n)`` with their covariates x, ``(D, p)``, O(D (p + n + r)**2).

        Parameters
        ----------
        terms : sequence of pairs
            The design of each term, ``(D,)``, the level of each row (-1 for none), or
            ``(D, A_j)``; and the number of its effects.
        """
        y, outer = rows - linear_means(x, prior.mean), _outer(terms)
        others = (_columns(*term) for j, term in enumerate(terms) if j != outer)
        inner = np.concatenate([x, *others], axis=1)
        together, r = np.concatenate([inner, y], axis=1), inner.shape[1]
        both = scatter(together, np.zeros(together.shape[1]))
        codes, size = terms[outer] if outer >= 0 else (np.full(len(y), -1), 0)
        at = np.asarray(codes, dtype=np.int64)
        sums = np.zeros((size, together.shape[1] + 1))
        counted = np.concatenate([together, np.ones((len(y), 1))], axis=1)
        np.add.at(sums, at[at >= 0], counted[at >= 0])
        of_outer = sums[:, -1], sums[:, r:-1], sums[:, :r]
        return cls.of_sums(
            prior, len(y), terms, (*of_outer, both[:r, :r], both[:r, r:], both[r:, r:])
        )

    @classmethod
    def of_sums(
        cls, prior: MatrixNormalInverseWishart, count: int, terms: Terms, sums: Iterable[FloatArray]
    ) -> "MixedRegression":
        """From sums over so many rows of terms like these, under a prior of the same mean."""
        return cls(prior, count, tuple(size for _, size in terms), _outer(terms), RowSums(*sums))

    def log_evidence(self, variances: FloatArray) -> float:
        """Log density of the rows given rho, B, u and Sigma integrated out, up to a constant."""
        at, _, _, scale = self._solve(variances)
        return self._evidence(at.log_det, scale)

    def evidence_along(self, variances: FloatArray, term: int) -> Callable[[float], float]:
        """Return `log_evidence` as a function of one term's variance, the others as they are.

        All other columns are eliminated once and the term is diagonalised, so that a value costs
        O(A_j n**2 + n**3); that of the term eliminated first costs what `log_evidence` does.
        """
        if term == self.outer:
            is_term = np.arange(len(variances)) == term
            return lambda rho: self.log_evidence(np.where(is_term, rho, variances))
        at, n = self._posed(variances, free=term), len(self.sums.squares)
        before = [size for j, size in enumerate(self.sizes[:term]) if j != self.outer]
        own = len(self.prior.mean) + sum(before) + np.arange(self.sizes[term])
        others = np.delete(np.arange(len(at.precision)), own)
        half = invert_lower(lower_cholesky(at.precision[np.ix_(others, others)]))
        cross = np.einsum("qr,ra->qa", half, at.precision[np.ix_(others, own)])
        pulled = np.einsum("qr,rn->qn", half, at.pull[others])
        schur = at.precision[np.ix_(own, own)] - scatter(cross, np.zeros(len(own)))
        values, vectors = np.linalg.eigh(schur)
        pull = at.pull[own] - np.einsum("qa,qn->an", cross, pulled)
        pull, values = np.einsum("ab,an->bn", vectors, pull), np.maximum(values, 0.0)
        squares = at.squares - scatter(pulled, np.zeros(n))
        log_det = at.log_det - 2.0 * float(np.sum(np.log(np.diagonal(half))))

        def log_evidence(rho: float) -> float:
            scaled = pull * np.sqrt(rho / (1.0 + rho * values))[:, None]
            growth = log_det + float(np.sum(np.log1p(rho * values)))
            return self._evidence(growth, squares - scatter(scaled, np.zeros(n)))

        return log_evidence

    def sample(self, rng: Generator, variances: FloatArray) -> MixedDraw:
        """One draw of B, all effects and Sigma given rho."""
        at, half, mean, scale = self._solve(variances)
        Sigma = sample_inverse_wishart(rng, scale, self.prior.dof + self.num_rows)
        noise = rng.standard_normal((len(mean) + len(at.outer), len(Sigma)))
        noise = np.einsum("aj,ij->ai", noise, lower_cholesky(Sigma))
        inner = mean + np.einsum("qr,qn->rn", half, noise[: len(mean)])
        outer = self.sums.outer_pull - np.einsum("ar,rn->an", self.sums.outer_cross, inner)
        outer = outer / at.outer[:, None] + noise[len(mean) :] / np.sqrt(at.outer)[:, None]
        coefficients, effects = np.split(inner, [len(self.prior.mean)])
        before = sum(self.sizes[: max(self.outer, 0)])
        effects = np.concatenate([effects[:before], outer, effects[before:]])
        return MixedDraw(self.prior.mean + coefficients, effects, Sigma)

    def _posed(self, variances: FloatArray, free: int = -1) -> _Posed:
        """The regression on the other columns given rho, O(A r**2) for A levels eliminated.

        The prior of a `free` term is left out.
        """
        p = len(self.prior.mean)
        others = np.arange(len(self.sizes)) != self.outer
        sizes = np.array(self.sizes, dtype=np.int64)[others]
        weights, log_dets = 1.0 / variances, np.log(variances)
        if free >= 0:
            weights[free] = log_dets[free] = 0.0
        precision = self.sums.gram.copy()
        precision[:p, :p] += self.prior.row_precision
        np.einsum("ii->i", precision)[p:] += np.repeat(weights[others], sizes)
        log_det = float(np.sum(sizes * log_dets[others]))
        rho = variances[[self.outer]] if self.outer >= 0 else np.empty(0)
        outer, r = self.sums.outer_counts + 1.0 / rho, len(precision)
        together = np.concatenate([self.sums.outer_cross, self.sums.outer_pull], axis=1)
        taken = scatter(together * (1.0 / np.sqrt(outer)[:, None]), np.zeros(together.shape[1]))
        precision, pull = precision - taken[:r, :r], self.sums.pull - taken[:r, r:]
        squares = self.prior.scale + self.sums.squares - taken[r:, r:]
        log_det += float(np.sum(np.log(outer * rho)))
        return _Posed(outer, precision, pull, squares, log_det)

    def _solve(self, variances: FloatArray) -> tuple[_Posed, FloatArray, FloatArray, FloatArray]:
        """The regression given rho, O(A r**2 + r**3 + n**3) for A levels eliminated.

        With the log determinant of Q; the inverse of the Cholesky factor of the other columns'
        precision; their mean; and the scale of Sigma.
        """
        at = self._posed(variances)
        factor = lower_cholesky(at.precision)
        half = invert_lower(factor)
        log_det = at.log_det + 2.0 * float(np.sum(np.log(np.diagonal(factor))))
        pulled = np.einsum("qr,rn->qn", half, at.pull)
        scale = at.squares - scatter(pulled, np.zeros(len(at.squares)))
        return at._replace(log_det=log_det), half, np.einsum("qr,qn->rn", half, pulled), scale

    def _evidence(self, log_det: float, scale: FloatArray) -> float:
        """Log evidence, from the log determinant of Q and the scale of Sigma."""
        diagonal = np.diagonal(lower_cholesky(scale))
        dof = self.prior.dof + self.num_rows
        return -0.5 * len(scale) * log_det - dof * float(np.sum(np.log(diagonal)))


def _outer(terms: Terms) -> int:
    """The largest grouping, -1 where there is none."""
    columns = [size if design.ndim == 1 else 0 for design, size in terms]
    return int(np.argmax(columns)) if any(columns) else -1


def _columns(design: IntArray | FloatArray, size: int) -> FloatArray:
    """A term's rows, spelled out: indicators of levels for a grouping."""
    spelled = design[:, None] == np.arange(size) if design.ndim == 1 else design
    return np.asarray(spelled, dtype=np.float64)
