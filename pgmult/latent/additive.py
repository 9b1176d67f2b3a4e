"""A latent Gaussian: weights of several terms and their design, given hyperparameters.

    psi = A w + offset,      w ~ N(0, Q(x)^-1),      Q block diagonal over terms,

x all terms' hyperparameters, one after the other. Multiplied by a potential on psi, exp(-psi' J psi
/ 2 + h' psi) with diagonal J, w is Gaussian with precision Q(x) + A' J A. `absorb` finds
A' J A and A' h once, and `at` factors the sum for any x. This is one family of Gaussians of those
that `pgmult.latent.moves` moves through. Others have the same methods, but for slopes, which may be
None where they are costly, and their weights may have several columns, independent given x.

>>> import numpy as np
>>> from pgmult.latent.terms import Fixed, LevelEffects
>>> design = np.column_stack([np.ones(4), np.kron(np.eye(2), np.ones((2, 1)))])
>>> family = Additive((Fixed(1), LevelEffects(2)), design)
>>> absorbed = family.absorb(np.ones(4), np.array([1.0, 1.0, 3.0, 3.0]))
>>> family.predictor(family.at(family.start(), absorbed).mean).round(2)
array([1.59, 1.59, 2.26, 2.26])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.latent.factors import Factor
from pgmult.latent.layout import Layout, diagonal_blocks, slices
from pgmult.latent.terms import Term

_AFFORDABLE = 3e9  # multiplications for the variances of all predictors
_REMEMBERED = 4  # Gaussians, of the chains that may run side by side
_SMALL = 1e-5  # step of the differences for derivatives of a term's density
_MANY_ENTRIES = 12  # of a row's design, from which on it may be a product of two with fewer
_FEW_COLUMNS = 20  # of the first term, which are looked at one by one
_DRAWS = 40  # for these variances where that is too many


@dataclass(frozen=True, slots=True, eq=False)
class Conditioned:
    """The distribution of the weights given hyperparameters and a potential.

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

    def sample(self, rng: Generator) -> FloatArray:
        """A draw."""
        return self.colour(rng.standard_normal(len(self.mean)))

    def solve(self, g: FloatArray) -> FloatArray:
        """The covariance times a vector."""
        return self.factor.solve(g)

    def white(self, rng: Generator, w: FloatArray) -> FloatArray:
        """The standard normal numbers that `colour` makes w of."""
        return self.factor.white(w - self.mean)

    def colour(self, noise: FloatArray) -> FloatArray:
        """The weights that standard normal numbers stand for."""
        return self.mean + self.factor.colour(noise)


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

    def __init__(
        self, terms: Sequence[Term], design: FloatArray | sparse.sparray,
        offset: FloatArray | float = 0.0,
    ):  # fmt: skip
        self.terms = tuple(terms)
        self.layout = Layout(self.terms)
        self.weights = self.layout.weights
        self.hyperparameters = slices([term.num_hyperparameters for term in self.terms])
        self.design = sparse.csr_array(design)
        self._transposed = self.design.T.tocsr()
        # full columns are multiplied as a matrix
        full = 2 * np.diff(self._transposed.indptr) > self.design.shape[0]
        self._full = np.flatnonzero(full)
        self._full_design = np.ascontiguousarray(self._transposed[self._full].toarray().T)
        self._others = np.flatnonzero(~full)
        self._other_rows = self.design[:, self._others].tocsr()
        self._other_columns = self._other_rows.T.tocsr()
        self._cells = _cells_of(self.design, self.weights)
        self.offset = np.zeros(self.design.shape[0]) + offset
        self._gaussians: tuple[tuple[bytes, Any, Conditioned], ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the predictors: ``(num_rows,)``, or ``(num_rows, C)`` of several a row."""
        return self.offset.shape

    def take(self, rows: IntArray) -> "Additive":
        """The same weights with some of the rows."""
        return Additive(self.terms, self.design[rows], self.offset[rows])

    @property
    def parts(self) -> list[tuple[Term, slice, slice]]:
        """Each term, with the places of its hyperparameters and of its weights."""
        return list(zip(self.terms, self.hyperparameters, self.weights, strict=True))

    @property
    def num_weights(self) -> int:
        """Weights of all terms, and of all predictors."""
        return len(self.layout.order)

    @property
    def num_hyperparameters(self) -> int:
        """Hyperparameters of all terms."""
        return sum(term.num_hyperparameters for term in self.terms)

    def start(self) -> FloatArray:
        """Hyperparameters from which a search begins."""
        return np.concatenate([np.empty(0), *(term.start() for term in self.terms)])

    def is_sd(self) -> NDArray[np.bool_]:
        """A mask of the hyperparameters that are coordinates of standard deviations."""
        masks = [np.arange(t.num_hyperparameters) < t.num_sds for t in self.terms]
        return np.concatenate([np.zeros(0, dtype=np.bool_), *masks])

    def sample(self, rng: Generator) -> tuple[FloatArray, FloatArray]:
        """Hyperparameters and weights from the prior."""
        x = np.concatenate([np.empty(0), *(term.sample(rng) for term in self.terms)])
        nothing = self.absorb(np.zeros(self.shape + self.shape[1:]), np.zeros(self.shape))
        return x, self.at(x, nothing).sample(rng)

    def log_prior(self, x: FloatArray) -> float:
        """Log density of hyperparameters, up to a constant."""
        return float(sum(term.log_prior(x[at]) for term, at, _ in self.parts))

    def predictor(self, w: FloatArray) -> FloatArray:
        """Predictors of the rows."""
        return self.times(w) + self.offset

    def times(self, w: FloatArray) -> FloatArray:
        """A w, without the offset."""
        if self._cells is not None:
            cells, distinct = self._cells
            return np.asarray(cells @ (distinct @ w))
        psi = self._full_design @ w[self._full]
        return psi + self._other_rows @ w[self._others] if len(self._others) else psi

    def pull(self, g: FloatArray) -> FloatArray:
        """A' g."""
        if self._cells is not None:
            cells, distinct = self._cells
            return np.asarray(distinct.T @ (cells.T @ g))
        out = np.empty((self.design.shape[1], *g.shape[1:]))
        out[self._full] = (g.T @ self._full_design).T
        if len(self._others):
            out[self._others] = self._other_columns @ g
        return out

    def absorb(self, J: FloatArray, h: FloatArray) -> tuple[Any, FloatArray]:
        """A' J A, packed for the factor, and A' (h - J offset)."""
        pull = self.pull(h - J * self.offset)
        if self.num_hyperparameters or self.layout.is_sparse or len(self._others):
            gram = (self._transposed @ sparse.diags_array(J) @ self.design).tocsr()
            return self.layout.packed(gram), pull
        return (self._full_design.T * J) @ self._full_design, pull

    def at(self, x: FloatArray, absorbed: tuple[Any, FloatArray]) -> Conditioned:
        """The distribution of the weights at hyperparameters; the last few are remembered."""
        key = x.tobytes()
        for at, source, gaussian in self._gaussians:
            if at == key and source is absorbed:
                return gaussian
        gaussian = self._at(x, absorbed)
        self._gaussians = ((key, absorbed, gaussian), *self._gaussians[: _REMEMBERED - 1])
        return gaussian

    def _at(self, x: FloatArray, absorbed: tuple[object, FloatArray]) -> Conditioned:
        gram, pull = absorbed
        prior_log_det = sum(term.log_det(x[at]) for term, at, _ in self.parts)
        factor = self.layout.factor(gram, [term.precision(x[at]) for term, at, _ in self.parts])
        mean = factor.solve(pull)
        log_evidence = 0.5 * (prior_log_det - factor.log_det + float(pull @ mean))
        return Conditioned(factor, mean, log_evidence)

    def slopes(self, x: FloatArray, absorbed: tuple[object, FloatArray]) -> FloatArray | None:
        """Derivatives of log prior plus log evidence in hyperparameters; None for a sparse factor.

        By Fisher's identity they are those of E log p(x, w), w from the Gaussian at x: second
        moments of each term's weights suffice. It is 0 for a standard deviation at 0.
        """
        gaussian = self.at(x, absorbed)
        moments = self.layout.moments(gaussian.factor, gaussian.mean)
        if moments is None:
            return None
        out = np.empty(len(x))
        for (term, at, _), its in zip(self.parts, moments, strict=True):
            out[at] = _expected_slopes(term, x[at], its)
        return out

    def variances(self, gaussian: Conditioned, rng: Generator) -> FloatArray:
        """Variances of the predictors: exact where that is affordable, else from draws."""
        rows, size = self.design.shape
        if not self.layout.is_sparse and 1.0 * rows * size**2 < _AFFORDABLE:
            factor: Any = gaussian.factor  # an arrow
            half = factor.forward(np.asarray(self._transposed.todense()))
            return np.asarray(np.einsum("pn,pn->n", half, half))
        draws = (self.times(gaussian.sample(rng) - gaussian.mean) for _ in range(_DRAWS))
        return np.asarray(np.mean([draw**2 for draw in draws], axis=0))


def _cells_of(design: sparse.csr_array, weights: Sequence[slice]) -> tuple[Any, Any] | None:
    """Two sparse arrays whose product is a design, where that has many entries and few cells.

    Columns fall into parts, such as those of a curve and those of a grouping, in each of which
    rows are alike: the first array says which row of the part a row has, and the second has these.
    """
    num_rows, entries = design.shape[0], design.nnz
    if entries <= _MANY_ENTRIES * num_rows or not weights:
        return None
    first, *others = (np.arange(at.start, at.stop) for at in weights)
    units = [*(first[:, None] if len(first) < _FEW_COLUMNS else [first]), *others]
    factors = np.random.default_rng(0).standard_normal(design.shape[1])
    parts: list[tuple[FloatArray, int, Any]] = []  # what differs where rows do, how many, columns
    for columns in units:
        key = design[:, columns] @ factors[columns]
        size = len(np.unique(key))
        for place, (others_key, others_size, others_columns) in enumerate(parts):
            both = np.append(others_columns, columns)
            together = len(np.unique(key + others_key))
            alone = num_rows + size * len(columns) + others_size * len(others_columns)
            if together * len(both) <= alone:
                parts[place] = key + others_key, together, both
                break
        else:
            parts.append((key, size, columns))
    if 2 * sum(num_rows + size * len(columns) for _, size, columns in parts) > entries:
        return None
    cells, distinct = [], []
    for key, _, columns in parts:
        _, places, which = np.unique(key, return_index=True, return_inverse=True)
        cells.append(sparse.csr_array((np.ones(num_rows), which, np.arange(num_rows + 1))))
        has = np.isin(np.arange(design.shape[1]), columns).astype(np.float64)
        distinct.append((design[places] @ sparse.diags_array(has)).tocsr())
    return sparse.hstack(cells, format="csr"), sparse.vstack(distinct, format="csr")


def _expected_slopes(term: Term, x: FloatArray, moments: FloatArray) -> FloatArray:
    """Derivatives of E log p(x, w) in hyperparameters, given E w w' or its diagonal blocks."""

    def expected(x: FloatArray) -> float:
        x = np.where(np.arange(len(x)) < term.num_sds, np.abs(x), x)
        precision, second = term.precision(x), moments
        if sparse.issparse(precision):
            entries = precision.tocoo()
            product = entries.data @ second[entries.row, entries.col]
        else:
            if second.ndim == 2:
                second = diagonal_blocks(second, precision)
            elif precision.ndim == 1:
                second = np.einsum("gii->gi", second)
            product = np.vdot(precision, second)
        return term.log_prior(x) + 0.5 * (term.log_det(x) - float(product))

    steps = _SMALL * np.eye(len(x))
    return np.array([expected(x + s) - expected(x - s) for s in steps]) / (2.0 * _SMALL)
