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
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.core.validate import new_key
from pgmult.latent.additive import Additive
from pgmult.latent.compiled.coordinates import LARGEST
from pgmult.latent.hyperparameters import Leaning, laplace, lean, sample_hyperparameters
from pgmult.latent.predictors import WEYL, mixed_bits
from pgmult.latent.terms import LevelEffects, sd_at
from pgmult.sequences.compiled.intercepts import draw_groups, log_integrals

_MOST = 24  # coefficients that move together
_LEAST = 1e-3  # coordinate of a standard deviation from which a chain starts
_REFLECTIONS, _SLICED = 2, 0.25  # a move; the share of moves with a slice step, too
_ATTENUATION = 0.346  # of logits by the variance of intercepts: (16 sqrt(3) / (15 pi))^2


class Patterns(NamedTuple):
    """Rows of individuals that differ, sorted by individual.

    Attributes
    ----------
    design : array, ``(num_rows, num_others)``
    constants, taken, reached : arrays, ``(num_rows,)``
    offsets : int array, ``(num_different + 1,)``
    which : int array, ``(num_individuals,)``
        The different individual that each one is like.
    """

    design: FloatArray
    constants: FloatArray
    taken: FloatArray
    reached: FloatArray
    offsets: IntArray
    which: IntArray

    @property
    def copies(self) -> FloatArray:
        """How many individuals are like each different one."""
        return np.bincount(self.which, minlength=len(self.offsets) - 1).astype(np.float64)


class Intercepts:
    """Moves of a predictor around a distribution that is near the posterior of its weights.

    Parameters
    ----------
    family : Additive
        `takes` says of which kind.

    Attributes
    ----------
    num_levels : int
        Number of individuals.
    individuals : int array, ``(num_cells,)``
        The one of each row of the family.
    """

    def __init__(self, family: Additive):
        (place,) = (i for i, term in enumerate(family.terms) if term.num_hyperparameters)
        self._effects, self._levels = family.terms[place], family.weights[place]
        self._others = np.delete(np.arange(family.num_weights), self._levels)
        self.num_levels = self._effects.size
        self.individuals = family.design[:, self._levels].argmax(axis=1)
        columns = np.column_stack([family.design[:, self._others].toarray(), family.offset])
        different, kind = np.unique(columns, axis=0, return_inverse=True)
        self._kind = kind.ravel()
        self._design, self._constants = different[:, :-1].copy(), different[:, -1]
        precisions = (t.precision(np.empty(0)) for t in family.terms if not t.num_hyperparameters)
        self._precision = np.concatenate([np.empty(0), *precisions])

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

    def patterns(
        self, individuals: IntArray, num: int, cells: IntArray, taken: IntArray, reached: IntArray
    ) -> Patterns:
        """The different ones among so many individuals, of the cells in which they have rows."""
        tried = np.flatnonzero(reached)
        pairs = individuals[tried] * len(self._design) + self._kind[cells[tried]]
        pairs, place = np.unique(pairs, return_inverse=True)
        sums = [np.bincount(place, n[tried], len(pairs)).astype(float) for n in (taken, reached)]
        individuals, kinds = np.divmod(pairs, len(self._design))
        code = _mixed(kinds.astype(np.uint64))
        for number in sums:
            code = _mixed(code ^ number.view(np.uint64))
        running = np.append(np.uint64(0), np.cumsum(code))  # modulo 2^64
        ends = np.searchsorted(individuals, np.arange(num + 1))
        codes = running[ends[1:]] - running[ends[:-1]]
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        size = np.diff(ends)[first]
        offsets = np.append(0, np.cumsum(size)).astype(np.int64)
        rows = np.arange(offsets[-1]) + np.repeat(ends[first] - offsets[:-1], size)
        return Patterns(
            self._design[kinds[rows]], self._constants[kinds[rows]], sums[0][rows], sums[1][rows],
            offsets, which.ravel(),
        )  # fmt: skip

    def distribution(
        self, patterns: Patterns, log_likelihood: Callable[[FloatArray], float]
    ) -> Leaning:
        """A distribution near that of x and the other weights: see `step`."""
        log_density = partial(self._log_density, patterns=patterns, log_likelihood=log_likelihood)

        def reflected(at: FloatArray) -> float:
            return log_density(np.append(max(abs(at[0]), _LEAST), at[1:]))

        guess = laplace(reflected, np.append(self._effects.start(), np.zeros(len(self._others))))
        guess.mean[0] = max(abs(guess.mean[0]), _LEAST)
        return lean(log_density, guess.mean, guess.root)

    def at(self, near: Leaning, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Hyperparameters and weights that numbers stand for, intercepts at 0."""
        at = near.at(noise)
        at[0] = np.clip(at[0], _LEAST, LARGEST)
        return self._weights(at)

    def step(
        self, rng: Generator, x: FloatArray, w: FloatArray, near: Leaning, patterns: Patterns,
        log_likelihood: Callable[[FloatArray], float],
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """Hyperparameters and weights after a move, intercepts at 0.

        Parameters
        ----------
        x, w : arrays
            Where the chain is; intercepts play no part.
        near : Leaning
            Of any data but these.
        patterns : Patterns
        log_likelihood : callable
            Of all individuals, from the log integral of each different one.
        """
        at = np.append(x, w[self._others] / _scales(x)[1])
        log_density = partial(self._log_density, patterns=patterns, log_likelihood=log_likelihood)
        if rng.random() < _SLICED:
            at = sample_hyperparameters(rng, log_density, at, near)
        weight = log_density(at) - float(near.log_density(at))
        for _ in range(_REFLECTIONS):
            new = near.reflected(rng, at)
            other = log_density(new) - float(near.log_density(new))
            if other - weight > -rng.exponential():
                at, weight = new, other
        return self._weights(at)

    def log_integrals(self, x: FloatArray, w: FloatArray, patterns: Patterns) -> FloatArray:
        """Log integral over the intercept of each different individual."""
        integrals = np.empty(len(patterns.offsets) - 1)
        log_integrals(*self._groups(x, w, patterns), integrals)
        return integrals

    def with_intercepts(
        self, rng: Generator, x: FloatArray, w: FloatArray, patterns: Patterns, which: IntArray
    ) -> FloatArray:
        """The weights with an intercept drawn for each individual, which is like `which`."""
        groups, w = self._groups(x, w, patterns), w.copy()
        intercepts = np.empty(self.num_levels)
        draw_groups(new_key(rng), *groups, which, intercepts)
        w[self._levels] = groups[0] * intercepts
        return w

    def _groups(self, x: FloatArray, w: FloatArray, patterns: Patterns) -> tuple[Any, ...]:
        """Individuals as compiled code takes them, the standard deviation first."""
        fixed = patterns.design @ w[self._others] + patterns.constants
        return sd_at(float(x[0])), fixed, *patterns[2:5]

    def _log_density(
        self, at: FloatArray, patterns: Patterns, log_likelihood: Callable[[FloatArray], float]
    ) -> float:
        """Log density of x and the attenuated weights, up to a constant."""
        prior = self._effects.log_prior(at[:1])
        if not math.isfinite(prior):
            return -math.inf
        x, w = self._weights(at)
        others, jacobian = w[self._others], (len(at) - 1) * math.log(_scales(at)[1])
        density = prior + jacobian - 0.5 * others @ (self._precision * others)
        return float(density + log_likelihood(self.log_integrals(x, w, patterns)))

    def _weights(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Hyperparameters, and weights whose intercepts are 0."""
        w = np.zeros(self.num_levels + len(self._others))
        w[self._others] = _scales(at)[1] * at[1:]
        return at[:1], w


def _scales(at: FloatArray) -> tuple[float, float]:
    """The standard deviation, and by how much weights are larger than those of averages."""
    sd = sd_at(float(at[0]))
    return sd, math.sqrt(1.0 + _ATTENUATION * sd * sd)


def _mixed(code: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Random bits of each number, also of 0."""
    return mixed_bits(code + WEYL)
