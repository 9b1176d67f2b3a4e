r"""A move of a logistic regression with an intercept of each individual, these integrated out.

The standard deviation x and the coefficients w of the other terms have the density

    p(x) N(w | 0, Q^-1) prod over individuals of  int N(b | 0, sd(x)^2) prod of rows(w, b) db,

whose integrals are of one dimension. All of x and w / a(x), a = (1 + .346 sd^2)^1/2, which is
what averages over individuals depend on (Zeger, Liang and Albert 1988), move at once, by an
elliptical slice around a distribution that is near (`pgmult.latent.hyperparameters`) and by
Metropolis steps to its other side, and the intercepts are then drawn anew. Given the intercepts, x
would move by steps that get shorter the less an individual's rows say. Individuals with the same
rows have the same integral.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.latent.additive import Additive
from pgmult.latent.compiled.coordinates import LARGEST
from pgmult.latent.hyperparameters import Leaning, laplace, lean, sample_hyperparameters
from pgmult.latent.predictors import WEYL, mixed_bits
from pgmult.latent.terms import LevelEffects, sd_at
from pgmult.sequences.compiled.intercepts import draw_groups, log_integrals
from pgmult.variational.sites import LogisticSite

_MOST = 24  # coefficients that move together
_LEAST = 1e-3  # coordinate of a standard deviation from which a chain starts
_REFLECTIONS = 2
_ATTENUATION = 0.346  # of logits by the variance of intercepts: (16 sqrt(3) / (15 pi))^2


class _Rows(NamedTuple):
    """Rows of individuals that differ, sorted by individual.

    Attributes
    ----------
    design : array, ``(num_rows, num_others)``
    constants, taken, reached : arrays, ``(num_rows,)``
    offsets : int array, ``(num_different + 1,)``
    which : int array, ``(num_levels,)``
        The different individual that each level is like.
    copies : array, ``(num_different,)``
        How many levels are like it.
    """

    design: FloatArray
    constants: FloatArray
    taken: FloatArray
    reached: FloatArray
    offsets: IntArray
    which: IntArray
    copies: FloatArray

    def fixed(self, w: FloatArray) -> FloatArray:
        """Predictors without the intercepts."""
        return np.asarray(self.design @ w + self.constants)


class Intercepts:
    """Moves of a predictor around a distribution that is near the posterior of the first data.

    Parameters
    ----------
    family : Additive
        `takes` says of which kind.
    rows : LogisticSite
        The first data.
    """

    def __init__(self, family: Additive, rows: LogisticSite):
        (place,) = (i for i, term in enumerate(family.terms) if term.num_hyperparameters)
        self._effects, self._levels = family.terms[place], family.weights[place]
        self._others = np.delete(np.arange(family.num_weights), self._levels)
        level = family.design[:, self._levels].argmax(axis=1)
        self._order = np.argsort(level, kind="stable")
        counts = np.bincount(level, minlength=self._effects.size)
        self._offsets = np.append(0, np.cumsum(counts)).astype(np.int64)
        design = family.design[:, self._others].toarray()[self._order]
        self._design, self._constants = design, family.offset[self._order]
        columns = np.column_stack([design, self._constants])
        self._kind = np.unique(columns, axis=0, return_inverse=True)[1].astype(np.uint64).ravel()
        precisions = (t.precision(np.empty(0)) for t in family.terms if not t.num_hyperparameters)
        self._precision = np.concatenate([np.empty(0), *precisions])
        self._first = self._sorted(rows)
        self._near = self._distribution()

    @staticmethod
    def takes(family: Additive) -> bool:
        """Whether the terms are an intercept of each level and few coefficients."""
        pooled = [i for i, term in enumerate(family.terms) if term.num_hyperparameters]
        if len(pooled) != 1:
            return False
        effects, levels = family.terms[pooled[0]], family.weights[pooled[0]]
        columns = sparse.csr_array(family.design[:, levels])
        columns.eliminate_zeros()
        return (
            isinstance(effects, LevelEffects)
            and effects.width == 1
            and family.num_weights - effects.size <= _MOST
            and bool((np.diff(columns.indptr) == 1).all() and (columns.data == 1.0).all())
        )

    def start(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Hyperparameters and weights from which a chain starts."""
        at = self._near.at(rng.standard_normal(len(self._near.mean)))
        at[0] = np.clip(at[0], _LEAST, LARGEST)
        return self._with_intercepts(rng, at, self._first)

    def step(
        self, rng: np.random.Generator, x: FloatArray, w: FloatArray, rows: LogisticSite
    ) -> tuple[FloatArray, FloatArray]:
        """Hyperparameters and weights after a move."""
        given, factor = self._sorted(rows), _scales(x)[1]
        at = np.append(x, w[self._others] / factor)

        def log_density(at: FloatArray) -> float:
            return self._log_density(at, given)

        at = sample_hyperparameters(rng, log_density, at, self._near)
        weight = log_density(at) - float(self._near.log_density(at))
        for _ in range(_REFLECTIONS):
            new = self._near.reflected(rng, at)
            other = log_density(new) - float(self._near.log_density(new))
            if other - weight > -rng.exponential():
                at, weight = new, other
        return self._with_intercepts(rng, at, given)

    def _sorted(self, rows: LogisticSite) -> _Rows:
        """The rows of individuals that differ in inputs or in how often their sticks were taken."""
        taken, reached = rows.successes[self._order], rows.trials[self._order]
        code = _mixed(_mixed(_mixed(self._kind) ^ taken.view(np.uint64)) ^ reached.view(np.uint64))
        code[reached == 0.0] = 0
        sums = np.append(np.uint64(0), np.cumsum(code))  # modulo 2^64
        _, first, which, copies = np.unique(
            sums[self._offsets[1:]] - sums[self._offsets[:-1]],
            return_index=True, return_inverse=True, return_counts=True,
        )  # fmt: skip
        begin, size = self._offsets[first], np.diff(self._offsets)[first]
        offsets = np.append(0, np.cumsum(size)).astype(np.int64)
        chosen = np.arange(offsets[-1]) + np.repeat(begin - offsets[:-1], size)
        return _Rows(
            np.ascontiguousarray(self._design[chosen]), self._constants[chosen], taken[chosen],
            reached[chosen], offsets, which.ravel(), copies.astype(np.float64),
        )  # fmt: skip

    def _distribution(self) -> Leaning:
        """A distribution near the posterior of x and the other weights, of the first data."""

        def reflected(at: FloatArray) -> float:
            positive = at.copy()
            positive[0] = max(abs(at[0]), _LEAST)
            return self._log_density(positive, self._first)

        start = np.append(self._effects.start(), np.zeros(len(self._others)))
        guess = laplace(reflected, start)
        guess.mean[0] = max(abs(guess.mean[0]), _LEAST)
        return lean(lambda at: self._log_density(at, self._first), guess.mean, guess.root)

    def _log_density(self, at: FloatArray, rows: _Rows) -> float:
        """Log density of x and the attenuated weights, up to a constant."""
        prior = self._effects.log_prior(at[:1])
        if not math.isfinite(prior):
            return -math.inf
        sd, factor = _scales(at)
        w = factor * at[1:]
        integrals = log_integrals(
            sd, rows.fixed(w), rows.taken, rows.reached, rows.offsets, rows.copies
        )
        jacobian = len(w) * math.log(factor)
        return float(prior + jacobian - 0.5 * w @ (self._precision * w) + integrals)

    def _with_intercepts(
        self, rng: np.random.Generator, at: FloatArray, rows: _Rows
    ) -> tuple[FloatArray, FloatArray]:
        """X and weights, the intercepts from their distribution given the others."""
        (sd, factor), intercepts = _scales(at), np.empty(self._effects.size)
        fixed = rows.fixed(factor * at[1:])
        draw_groups(
            new_key(rng), sd, fixed, rows.taken, rows.reached, rows.offsets, rows.which, intercepts
        )
        w = np.empty(len(intercepts) + len(self._others))
        w[self._others], w[self._levels] = factor * at[1:], sd * intercepts
        return at[:1], w


def _scales(at: FloatArray) -> tuple[float, float]:
    """The standard deviation, and by how much weights are larger than those of averages."""
    sd = sd_at(float(at[0]))
    return sd, math.sqrt(1.0 + _ATTENUATION * sd * sd)


def _mixed(code: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Random bits of each number, also of 0."""
    return mixed_bits(code + WEYL)
