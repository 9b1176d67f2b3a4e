r"""Hidden Markov chains with the states summed out: Hamiltonian paths of all their probabilities.

Given its states, a chain's probabilities move by what complete data leave open, which is less than
what the observations leave open: draws crawl. With the states summed out, the log likelihood of the
forward algorithm has slopes in the predictor of each stick,

    d log p(y) / d psi_k  =  E n_k - E N_k sigma(psi_k),

where the forward-backward algorithm tells how often the stick was taken (n_k) and reached (N_k), in
expectation given all observations (Fisher's identity). So all probabilities move together:

* weights w ~ N(0, Q(x)^-1) of the sticks that inputs act on, psi = A w + c;
* Dirichlet rows as sticks, whose law is that of observations made before.

*The metric* of a leapfrog path (Neal 2011, "MCMC using Hamiltonian dynamics", section 4.1) is Q
plus the information of complete data, an amount per stick that a chain takes from where it starts
and keeps. Any amount leaves the posterior as it is. A path that visits a probability next to 0 is
refused, as its reverse would be.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.compiled.sticks import probs_rows
from pgmult.core.typing import FloatArray, IntArray
from pgmult.latent.additive import Additive, Conditioned
from pgmult.latent.factors import ArrowFactor, stacked
from pgmult.latent.sparse import SparseMatrix
from pgmult.sequences.compiled import hmm as compiled
from pgmult.sequences.compiled.hmm_paths import Moved

_LONGEST, _LONGEST_OF_MANY = 40, 10  # leapfrogs
_MANY = 10_000  # steps of all sequences: from there on passes take the time
_SIZES = 0.4, 0.9  # of a leapfrog, in standard deviations under the metric


class Sticks(NamedTuple):
    """Rows of probabilities that break as sticks, each in an order of its own.

    Attributes
    ----------
    order : int array, ``(num_rows, num_categories)``
        The categories of each row as they break.
    """

    order: IntArray

    @property
    def size(self) -> int:
        """Of all rows."""
        return self.order[:, 1:].size

    def probs(self, psi: FloatArray) -> FloatArray:
        """Of the categories, from ``(num_cells, num_rows, num_sticks)``."""
        num_rows, size = self.order.shape
        broken = np.empty((len(psi) * num_rows, size))
        over_rows(probs_rows, len(broken), psi.reshape(-1, size - 1), np.arange(size), broken)
        places = np.argsort(self.order, axis=1)[None]
        return np.take_along_axis(broken.reshape(-1, num_rows, size), places, axis=2)

    def tried(self, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How often each stick was taken and reached."""
        taken = np.take_along_axis(counts, self.order[None], axis=2)
        reached = taken[..., ::-1].cumsum(axis=2)[..., ::-1]
        return taken[..., :-1], reached[..., :-1]

    def psi(self, probs: FloatArray) -> FloatArray:
        """Of probabilities ``(num_rows, num_categories)``; infinite where one is 0."""
        ordered = np.take_along_axis(probs, self.order, axis=1)
        rest = ordered[:, :0:-1].cumsum(axis=1)[:, ::-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            psi = np.log(ordered[:, :-1]) - np.log(rest)
        return np.where(np.isnan(psi), 0.0, psi)  # of sticks that nothing can reach


class Columns(NamedTuple):
    """A design A that several sticks have: products of all at once.

    Attributes
    ----------
    rows, columns : ByRows
        A and A'.
    """

    rows: compiled.ByRows
    columns: compiled.ByRows

    @classmethod
    def of(cls, design: Any) -> "Columns":
        """Of a scipy.sparse array."""
        return cls(_by_rows(design), _by_rows(design.T))

    def times(self, weights: FloatArray) -> FloatArray:
        """A w, ``(num_cells, num_sticks)``, of weights ``(num_sticks, num_weights)``."""
        return _product(self.rows, weights.T)


def _by_rows(matrix: Any) -> compiled.ByRows:
    own = SparseMatrix.of(matrix)
    return compiled.ByRows(own.indptr, own.columns, own.values)


def _product(matrix: compiled.ByRows, dense: FloatArray) -> FloatArray:
    out = np.empty((len(matrix.starts) - 1, dense.shape[1]))
    over_rows(compiled.set_product, len(out), matrix, np.ascontiguousarray(dense), out)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Dirichlet rows: their sticks are what moves.

    Attributes
    ----------
    sticks : Sticks
    taken, reached : arrays, ``(num_rows, num_sticks)``
        How often each stick was taken and reached in the observations made before.
    information : array, ``(num_rows, num_sticks)``
        The precision that the metric has.
    """

    sticks: Sticks
    taken: FloatArray
    reached: FloatArray
    information: FloatArray

    def psi(self, values: FloatArray) -> FloatArray:
        """Predictors, of the one cell."""
        return values[None]

    def log_prior(self, values: FloatArray) -> float:
        """Up to a constant, of the sticks."""
        told = self.taken * values - self.reached * np.logaddexp(0.0, values)
        return float(told.sum())

    def moved(self, values: FloatArray, velocity: FloatArray) -> Moved:
        """A copy of values and velocities, each stick's own, and what moves them."""
        known = self.information.reshape(-1, 1)
        nothing, one = ArrowFactor.dense(np.eye(1)), np.zeros(1, dtype=np.int64)
        metric = stacked([nothing] * len(known), one)
        design = compiled.ByRows(np.arange(2), one, np.ones(1))
        return Moved(
            values.reshape(known.shape).copy(), velocity.reshape(known.shape), design, design,
            np.zeros((1, len(known))), known, metric._replace(inner=np.sqrt(known)[:, :, None]),
        )  # fmt: skip

    def velocity(self, rng: np.random.Generator) -> FloatArray:
        """A draw under the metric."""
        return rng.standard_normal(self.information.shape) / np.sqrt(self.information)

    def kinetic(self, velocity: FloatArray) -> float:
        """Its energy."""
        return 0.5 * float((self.information * velocity**2).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Regressions:
    """Rows whose sticks have predictors: their weights are what moves.

    Attributes
    ----------
    sticks : Sticks
    family : Additive
    columns : Columns
        Of its design.
    constants : array, ``(num_cells, num_rows * num_sticks)``
        The family's offset and the constants c.
    laws : list of Conditioned
        Of each stick's weights: their factors are those of the metric.
    information : array, ``(num_rows * num_sticks, num_cells)``
        What the metric has beside Q.
    """

    sticks: Sticks
    family: Additive
    columns: Columns
    constants: FloatArray
    laws: list[Conditioned]
    information: FloatArray

    def psi(self, values: FloatArray) -> FloatArray:
        """Predictors of all cells."""
        psi = self.columns.times(values) + self.constants
        return psi.reshape(len(psi), len(self.sticks.order), -1)

    def log_prior(self, values: FloatArray) -> float:
        """Up to a constant. With P the metric, Q = P - A' J A."""
        seen = self.columns.times(values)
        return 0.5 * float((self.information.T * seen**2).sum()) - self.kinetic(values)

    def moved(self, values: FloatArray, velocity: FloatArray) -> Moved:
        """As of `Rows`."""
        return Moved(
            values.copy(), velocity, *self.columns, self.constants, self.information,
            self.family.stacked(self.laws),
        )  # fmt: skip

    def velocity(self, rng: np.random.Generator) -> FloatArray:
        """A draw under the metric."""
        white = rng.standard_normal((len(self.laws), self.family.num_weights))
        return np.array([law.factor.colour(e) for law, e in zip(self.laws, white, strict=True)])

    def kinetic(self, velocity: FloatArray) -> float:
        """Its energy."""
        white = [law.factor.white(v) for law, v in zip(self.laws, velocity, strict=True)]
        return 0.5 * float((np.array(white) ** 2).sum())


Part = Rows | Regressions
Values = tuple[FloatArray, FloatArray, FloatArray]
"""Of first states, transitions and emissions: sticks of rows, or weights."""


def walk_summed_out(
    rng: np.random.Generator,
    parts: tuple[Part, Part, Part],
    leap: Callable[[list[Moved], float, int], tuple[float, float]],
    values: Values,
    num_steps: int,
) -> Values:
    """The values after one path, or as they were; `leap` takes so many leapfrogs of a size."""
    longest = _LONGEST if num_steps < _MANY else _LONGEST_OF_MANY
    size = math.exp(rng.uniform(*np.log(_SIZES)))
    steps, level = 1 + int(rng.integers(longest)), rng.standard_exponential()
    v = [part.velocity(rng) for part in parts]

    def energy(values: Values, v: list[FloatArray]) -> float:
        each = zip(parts, values, v, strict=True)
        return sum(part.kinetic(u) - part.log_prior(value) for part, value, u in each)

    start = energy(values, v)
    moved = [part.moved(*rest) for part, *rest in zip(parts, values, v, strict=True)]
    before, after = leap(moved, size, steps)
    if not math.isfinite(after):
        return values
    shaped = [(own.values.reshape(u.shape), own.velocity.reshape(u.shape))
              for own, u in zip(moved, v, strict=True)]  # fmt: skip
    first, moves, emits = (own for own, _ in shaped)
    new = first, moves, emits
    end = energy(new, [u for _, u in shaped])
    return new if end - after - start + before < level else values
