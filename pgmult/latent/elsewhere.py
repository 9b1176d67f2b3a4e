"""Rows in blocks, which moves of weights only know by sums: in shards of a cluster, or one by one.

To the moves of `pgmult.latent.moves` weights are their own predictors here (`AsWeights`). What rows
say is a function of weights that is asked for (`RowsElsewhere`), and the potential in its place is
the quadratic of the weights that it adds up to (`Summed`): one number and one slope a weight, not a
row, come from each block.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pgmult.core.typing import FloatArray
from pgmult.latent.additive import Additive
from pgmult.latent.approximation import Approximation, RowsLikelihood
from pgmult.sampling.blocks import Ask, Asks, Sums


class AsWeights(Additive):
    """Terms side by side whose predictors are the weights themselves."""

    def __init__(self, family: Additive):
        self.__dict__.update(family.__dict__)

    def times(self, w: FloatArray) -> FloatArray:
        """The weights."""
        return w

    def pull(self, g: FloatArray) -> FloatArray:
        """The slope in the weights."""
        return g

    predictor = times


@dataclass(frozen=True, slots=True, eq=False)
class RowsElsewhere:
    """The log likelihood of all rows, as a function of weights.

    Attributes
    ----------
    ask : callable
        Gives the sums over blocks that answer an `Ask`.
    which : int
        Sticks with weights of their own are told apart by it.
    size : float
        Of negative binomials.
    """

    ask: Asks
    which: int
    size: float = math.inf
    _known: dict[tuple[float, bytes], tuple[FloatArray, ...]] = field(default_factory=dict)

    def remember(self, w: FloatArray, total: FloatArray) -> None:
        """What `total` is at some weights."""
        self._known[self.size, w.tobytes()] = (total,)

    def total(self, w: FloatArray) -> float:
        """Log likelihood of all rows, up to a constant."""
        return float(self._answer("totals", w)[0])

    def slope(self, w: FloatArray) -> FloatArray:
        """Its slope in the weights."""
        return self._answer("slopes", w)[1]

    def value(self, w: FloatArray) -> FloatArray:
        """Log likelihood of all rows, as an array of one."""
        return np.atleast_1d(self._asked("values", w)[0])

    def _answer(self, method: str, w: FloatArray) -> tuple[FloatArray, ...]:
        """The answer, or one given before that tells as much."""
        key = self.size, w.tobytes()
        found = self._known.get(key, ())
        if len(found) <= (method == "slopes"):
            found = self._known[key] = self._asked(method, w)
        return found

    def _asked(self, method: str, w: FloatArray) -> tuple[FloatArray, ...]:
        given = np.array(self.which), np.array(self.size), w
        return self.ask(Ask(method, given, moves=False, draws=False)).rounded


def answer(method: str, family: Additive, rows: RowsLikelihood, w: FloatArray) -> Sums:
    """What a block answers to one of the questions of `RowsElsewhere`."""
    psi = family.predictor(w)
    if method == "values":
        return Sums((), (np.asarray(rows.value(psi).sum()),))
    total = np.asarray(rows.total(psi))
    return Sums((), (total, family.pull(rows.slope(psi))) if method == "slopes" else (total,))


@dataclass(frozen=True, slots=True, eq=False)
class Summed(Approximation):
    """An approximation whose potential is known as a quadratic of the weights.

    Attributes
    ----------
    gram : sparse array, ``(num_weights, num_weights)``
    pull : array, ``(num_weights,)``
    """

    gram: Any
    pull: FloatArray

    @classmethod
    def of(cls, family: Additive, found: Approximation) -> "Summed":
        """The same with the potential on predictors summed."""
        gram, pull = family.gram(found.J), found.seen[1]
        return cls(found.J, found.h, found.seen, found.guess, found.spread, gram, pull)

    def correction(self, rows: RowsLikelihood, psi: FloatArray) -> float:
        """Log likelihood less the potential, both up to constants."""
        return float(rows.total(psi) - psi @ (self.pull - 0.5 * (self.gram @ psi)))

    def gradient(self, rows: RowsLikelihood, psi: FloatArray) -> FloatArray:
        """Of the correction with respect to each weight."""
        return np.asarray(rows.slope(psi) - self.pull + self.gram @ psi)
