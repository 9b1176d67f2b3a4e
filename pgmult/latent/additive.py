"""A latent Gaussian: weights of several terms, seen through a design, given hyperparameters.

    psi = A w + offset,      w ~ N(0, Q(x)^-1),      Q block diagonal over terms,

x all terms' hyperparameters, one after the other. Multiplied by a potential on psi, exp(-psi' J psi
/ 2 + h' psi) with diagonal J, the law of w is Gaussian with precision Q(x) + A' J A. `absorb` finds
A' J A and A' h once, and `at` factors the sum for any x. This is one family of Gaussians of those
that `pgmult.latent.moves` moves through; what the moves ask of it is `Family`.

>>> import numpy as np
>>> from pgmult.latent.terms import Fixed, Levels
>>> design = np.column_stack([np.ones(4), np.kron(np.eye(2), np.ones((2, 1)))])
>>> family = Additive((Fixed(1), Levels(2)), design)
>>> seen = family.absorb(np.ones(4), np.array([1.0, 1.0, 3.0, 3.0]))
>>> family.predictor(family.at(family.start(), seen).mean).round(2)
array([1.59, 1.59, 2.26, 2.26])
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from pgmult.core.typing import FloatArray
from pgmult.latent.compiled.stacked import Stacked
from pgmult.latent.factors import (
    Analysis,
    ArrowFactor,
    Factor,
    SparseFactor,
    between_of,
    stacked,
)
from pgmult.latent.terms import Term

_MANY_LEVELS = 20  # of a grouping that is worth eliminating first
_MANY_WEIGHTS = 1500  # besides those, from which on a factor is sparse
_AFFORDABLE = 3e9  # multiplications for the variances of all predictors
_REMEMBERED = 4  # laws: of the chains that may run side by side
_SMALL = 1e-5  # step of the differences that tell slopes of a term's own density
_DRAWS = 40  # that tell these variances where that is too many


@dataclass(frozen=True, slots=True, eq=False)
class Conditioned:
    """The law of the weights given hyperparameters and a potential.

    Attributes
    ----------
    factor : Factor
        Of the precision.
    mean : array, ``(num_weights,)``
    log_evidence : float
        Log integral of prior times potential over the weights, up to a constant.
    """

    factor: Factor
    mean: FloatArray
    log_evidence: float

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """A draw."""
        return self.colour(rng.standard_normal(len(self.mean)))

    def solve(self, g: FloatArray) -> FloatArray:
        """The covariance times a vector."""
        return self.factor.solve(g)

    def white(self, rng: np.random.Generator, w: FloatArray) -> FloatArray:
        """The standard normal numbers that `colour` makes w of."""
        return self.factor.white(w - self.mean)

    def colour(self, noise: FloatArray) -> FloatArray:
        """The weights that standard normal numbers stand for."""
        return self.mean + self.factor.colour(noise)


class Law(Protocol):
    """A Gaussian law of weights, of several independent columns where weights have two axes."""

    @property
    def mean(self) -> FloatArray:
        """Means."""

    @property
    def log_evidence(self) -> float:
        """Log integral of prior times potential, of all columns, up to a constant."""

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """A draw."""

    def solve(self, g: FloatArray) -> FloatArray:
        """The covariance times a vector, or of each column."""

    def white(self, rng: np.random.Generator, w: FloatArray) -> Any:
        """Standard normal numbers that `colour` makes w of, drawn where w does not tell them."""

    def colour(self, noise: Any) -> FloatArray:
        """The weights that standard normal numbers stand for."""


class Family(Protocol):
    """Gaussian laws of weights by hyperparameters, and how rows see the weights."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the predictors."""

    def start(self) -> FloatArray:
        """Hyperparameters from which a search begins."""

    def is_sd(self) -> Any:
        """Which hyperparameters are coordinates of standard deviations, which are positive."""

    def variances(self, law: Any, rng: np.random.Generator) -> FloatArray:
        """Of the predictors, exactly or from draws."""

    def log_prior(self, x: FloatArray) -> float:
        """Log density of hyperparameters, up to a constant."""

    def at(self, x: FloatArray, seen: Any) -> Law:
        """The law at hyperparameters, given what a potential says of the weights.

        Raises
        ------
        numpy.linalg.LinAlgError
            If its precision is not positive definite.
        """

    def absorb(self, J: FloatArray, h: FloatArray) -> Any:
        """What a potential on the rows says of the weights, whatever the hyperparameters."""

    def slopes(self, x: FloatArray, seen: Any) -> FloatArray | None:
        """Of the log prior and the log evidence in hyperparameters; None where they are dear."""

    def predictor(self, w: FloatArray) -> FloatArray:
        """Predictors of the rows."""

    def pull(self, g: FloatArray) -> FloatArray:
        """The gradient with respect to the weights of a gradient with respect to predictors."""


class Additive:
    """Terms side by side and their design.

    Parameters
    ----------
    terms : sequence of Term
    design : array or scipy.sparse array, ``(num_rows, num_weights)``
        A column for each weight, terms one after the other.
    offset : array, ``(num_rows,)``, or float
        Added to the predictors.
    """

    def __init__(self, terms: Sequence[Term], design: Any, offset: FloatArray | float = 0.0):
        self.terms = tuple(terms)
        sizes = [term.size for term in self.terms]
        self.weights = _slices(sizes)
        self.hyperparameters = _slices([term.num_hyperparameters for term in self.terms])
        self.design = sparse.csr_array(design)
        if self.design.shape[1] != sum(sizes):
            raise ValueError(
                f"design must have {sum(sizes)} columns, one a weight, got {self.design.shape[1]}"
            )
        self._transposed = self.design.T.tocsr()
        # full columns are multiplied as a matrix
        full = 2 * np.diff(self._transposed.indptr) > self.design.shape[0]
        self._full = np.flatnonzero(full)
        self._full_design = np.ascontiguousarray(self._transposed[self._full].toarray().T)
        self._others = np.flatnonzero(~full)
        self._other_rows = self.design[:, self._others].tocsr()
        self._other_columns = self._other_rows.T.tocsr()
        self.offset = np.zeros(self.design.shape[0]) + offset
        apart = [term.size if term.num_blocks else 0 for term in self.terms]
        most = max(apart, default=0)
        self._is_sparse = sum(sizes) - most > _MANY_WEIGHTS
        self._first = apart.index(most) if most >= _MANY_LEVELS and not self._is_sparse else None
        # weights in the order of the factor: those of the first term, then the others
        order = np.arange(sum(sizes))
        if self._first is not None:
            first = self.weights[self._first]
            order = np.concatenate([order[first], np.delete(order, first)])
        self._order = order
        self._analysis: Analysis | None = None
        self._laws: tuple[tuple[bytes, Any, Conditioned], ...] = ()

    @property
    def shape(self) -> tuple[int]:
        """Of the predictors: ``(num_rows,)``."""
        return self.offset.shape

    def shifted(self, by: float) -> "Additive":
        """The same weights and rows, so much added to the predictors."""
        found = copy(self)
        found.offset = self.offset + by
        return found

    def take(self, rows: Any) -> "Additive":
        """The same weights, seen by some of the rows."""
        return Additive(self.terms, self.design[rows], self.offset[rows])

    @property
    def num_weights(self) -> int:
        """Weights of all terms."""
        return int(self.design.shape[1])

    @property
    def num_hyperparameters(self) -> int:
        """Hyperparameters of all terms."""
        return sum(term.num_hyperparameters for term in self.terms)

    def start(self) -> FloatArray:
        """Hyperparameters from which a search begins."""
        return np.concatenate([np.empty(0), *(term.start() for term in self.terms)])

    def is_sd(self) -> Any:
        """Which hyperparameters are coordinates of standard deviations, which are positive."""
        each = [np.arange(t.num_hyperparameters) < t.num_sds for t in self.terms]
        return np.concatenate([np.zeros(0, dtype=np.bool_), *each])

    def sample(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Hyperparameters and weights from the prior."""
        x = np.concatenate([np.empty(0), *(term.sample(rng) for term in self.terms)])
        nothing = self.absorb(np.zeros(len(self.offset)), np.zeros(len(self.offset)))
        return x, self.at(x, nothing).sample(rng)

    def log_prior(self, x: FloatArray) -> float:
        """Log density of hyperparameters, up to a constant."""
        pairs = zip(self.terms, self.hyperparameters, strict=True)
        return float(sum(term.log_prior(x[own]) for term, own in pairs))

    def predictor(self, w: FloatArray) -> FloatArray:
        """Predictors of the rows."""
        return self.times(w) + self.offset

    def times(self, w: FloatArray) -> FloatArray:
        """A w, without the offset."""
        psi = self._full_design @ w[self._full]
        return psi + self._other_rows @ w[self._others] if len(self._others) else psi

    def pull(self, g: FloatArray) -> FloatArray:
        """A' g."""
        out = np.empty((self.num_weights, *g.shape[1:]))
        out[self._full] = (g.T @ self._full_design).T
        if len(self._others):
            out[self._others] = self._other_columns @ g
        return out

    def absorb(self, J: FloatArray, h: FloatArray) -> tuple[Any, FloatArray]:
        """A' J A, packed for the factor, and A' (h - J offset)."""
        pull = self.pull(h - J * self.offset)
        if self.num_hyperparameters or self._is_sparse or len(self._others):
            return self._packed(self.gram(J)), pull
        return (self._full_design.T * J) @ self._full_design, pull

    def gram(self, J: FloatArray) -> Any:
        """A' J A, a sparse array."""
        return (self._transposed @ sparse.diags_array(J) @ self.design).tocsr()

    def at(self, x: FloatArray, seen: tuple[Any, FloatArray]) -> Conditioned:
        """The law of the weights at hyperparameters; the last few are remembered."""
        key = x.tobytes()
        for at, given, law in self._laws:
            if at == key and given is seen:
                return law
        law = self._at(x, seen)
        self._laws = ((key, seen, law), *self._laws[: _REMEMBERED - 1])
        return law

    def _at(self, x: FloatArray, seen: tuple[Any, FloatArray]) -> Conditioned:
        gram, pull = seen
        own = list(zip(self.terms, self.hyperparameters, self.weights, strict=True))
        prior_log_det = sum(term.log_det(x[at]) for term, at, _ in own)
        factor = self._factor(x, gram)
        if self._first is not None:
            factor = _Reordered(factor, self._order)
        mean = factor.solve(pull)
        return Conditioned(
            factor, mean, 0.5 * (prior_log_det - factor.log_det + float(pull @ mean))
        )

    def stacked(self, laws: Sequence[Conditioned]) -> Stacked:
        """The factors of several laws, as compiled functions take them."""
        factors = [law.factor for law in laws]
        inner = [each.inner if isinstance(each, _Reordered) else each for each in factors]
        return stacked(inner, self._order)

    def slopes(self, x: FloatArray, seen: tuple[Any, FloatArray]) -> FloatArray | None:
        """Of the log prior and the log evidence in hyperparameters; None of a sparse factor.

        By Fisher's identity they are those of E log p(x, w), w from the law at x: second moments of
        each term's weights tell them. Of a standard deviation at 0, mirrored there, it is 0.
        """
        law = self.at(x, seen)
        factor = law.factor.inner if isinstance(law.factor, _Reordered) else law.factor
        if not isinstance(factor, ArrowFactor):
            return None
        blocks, others = factor.inverse_blocks()
        out, done = np.empty(len(x)), blocks.shape[0] * blocks.shape[1]
        own = list(zip(self.terms, self.hyperparameters, self.weights, strict=True))
        for i, (term, at, weights) in enumerate(own):
            w = law.mean[weights]
            if i == self._first:
                each = w.reshape(blocks.shape[:2])
                moments = blocks + each[:, :, None] * each[:, None]
            else:
                start = weights.start
                if self._first is not None and start > self.weights[self._first].start:
                    start -= done
                moments = others[start : start + term.size, start : start + term.size]
                moments = moments + w[:, None] * w
            out[at] = _expected_slopes(term, x[at], moments)
        return out

    def variances(self, law: Conditioned, rng: np.random.Generator) -> FloatArray:
        """Of the predictors: exactly where that is affordable, else from draws."""
        rows, size = self.design.shape
        inner = law.factor.inner if isinstance(law.factor, _Reordered) else law.factor
        if isinstance(inner, ArrowFactor) and 1.0 * rows * size**2 < _AFFORDABLE:
            half = inner.forward(np.asarray(self._transposed.todense())[self._order])
            return np.asarray(np.einsum("pn,pn->n", half, half))
        draws = (self.times(law.sample(rng) - law.mean) for _ in range(_DRAWS))
        return np.asarray(np.mean([draw**2 for draw in draws], axis=0))

    def _packed(self, gram: Any) -> Any:
        if self._is_sparse:
            return gram
        if self._first is None:
            return np.asarray(gram.todense())
        term = self.terms[self._first]
        num = term.num_blocks
        d = term.size // num
        dense = gram[self._order][:, self._order]
        top = dense[: num * d, : num * d].tocoo()
        blocks = np.zeros((num, d, d))
        np.add.at(blocks, (top.row // d, top.row % d, top.col % d), top.data)
        between = between_of(dense[: num * d, num * d :], d)
        return blocks, between, np.asarray(dense[num * d :, num * d :].todense())

    def _factor(self, x: FloatArray, gram: Any) -> Factor:
        own = list(zip(self.terms, self.hyperparameters, self.weights, strict=True))
        if self._is_sparse:
            parts = [_as_sparse(term.precision(x[at])) for term, at, _ in own]
            precision = (gram + sparse.block_diag(parts, format="csr")).tocsr()
            precision.sort_indices()
            if self._analysis is None or not self._analysis.fits(precision):
                self._analysis = Analysis.of(precision)
            return SparseFactor.of(precision, self._analysis)
        if self._first is None:
            return ArrowFactor.dense(_added(gram, own, x))
        blocks, between, others = gram
        term, at, first = own.pop(self._first)
        rest = [
            (each, place, slice(w.start - (w.start > first.start) * term.size, None))
            for each, place, w in own
        ]
        mine = term.precision(x[at])
        if mine.ndim == 1:
            mine = mine.reshape(len(blocks), -1, 1) * np.eye(blocks.shape[1])
        return ArrowFactor.of(blocks + mine, between, _added(others, rest, x))


@dataclass(frozen=True, slots=True, eq=False)
class _Reordered:
    """A factor of weights in another order."""

    inner: Any
    order: Any

    @property
    def log_det(self) -> float:
        """Log determinant of the precision."""
        return float(self.inner.log_det)

    def solve(self, b: FloatArray) -> FloatArray:
        """The precision's inverse times a vector."""
        return self._back(self.inner.solve(b[self.order]))

    def colour(self, e: FloatArray) -> FloatArray:
        """A draw with this precision, of standard normal numbers."""
        return self._back(self.inner.colour(e))

    def white(self, x: FloatArray) -> FloatArray:
        """The standard normal numbers that `colour` makes a draw of."""
        return np.asarray(self.inner.white(x[self.order]))

    def _back(self, x: FloatArray) -> FloatArray:
        out = np.empty_like(x)
        out[self.order] = x
        return out


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(start, stop) for start, stop in pairwise(ends)]


def _added(gram: FloatArray, own: Any, x: FloatArray) -> FloatArray:
    """A dense matrix with the precisions of terms added in their places."""
    out = gram.copy()
    for term, at, weights in own:
        here = slice(weights.start, weights.start + term.size)
        precision = term.precision(x[at])
        if sparse.issparse(precision):
            out[here, here] += precision.todense()
        else:
            _diagonal_blocks(out[here, here], precision)[...] += precision
    return out


def _diagonal_blocks(matrix: FloatArray, like: FloatArray) -> FloatArray:
    """A view of a matrix's diagonal, or of as many blocks around it as another array has."""
    if like.ndim == 1:
        return np.asarray(np.einsum("ii->i", matrix))
    num, d, _ = like.shape
    return np.asarray(np.einsum("gigj->gij", matrix.reshape(num, d, num, d)))


def _expected_slopes(term: Term, x: FloatArray, moments: FloatArray) -> FloatArray:
    """Of E log p(x, w) in a term's hyperparameters, given E w w' or its diagonal blocks."""

    def expected(x: FloatArray) -> float:
        x = np.where(np.arange(len(x)) < term.num_sds, np.abs(x), x)
        precision, seen = term.precision(x), moments
        if sparse.issparse(precision):
            entries = precision.tocoo()
            product = entries.data @ seen[entries.row, entries.col]
        else:
            if seen.ndim == 2:
                seen = _diagonal_blocks(seen, precision)
            elif precision.ndim == 1:
                seen = np.einsum("gii->gi", seen)
            product = np.vdot(precision, seen)
        return term.log_prior(x) + 0.5 * (term.log_det(x) - float(product))

    steps = _SMALL * np.eye(len(x))
    return np.array([expected(x + s) - expected(x - s) for s in steps]) / (2.0 * _SMALL)


def _as_sparse(precision: Any) -> Any:
    """A precision as a sparse array, whatever it was given as."""
    if sparse.issparse(precision):
        return precision
    if precision.ndim == 1:
        return sparse.diags_array(precision)
    return sparse.block_diag([sparse.csr_array(block) for block in precision], format="csr")
