r"""Sweeps of weights whose prior is fixed: all of them in one dense block.

Without groups and curves the approximation of the weights is one Gaussian N(m, P^-1), whose
factor and inverse are found once. What it lacks, the correction C(w), is computed from the weights:
the potential is a quadratic in them, so only the likelihood itself looks at the rows. How weights
move depends on the spread, the variance of C: up to 0.1 they are reflected on an ellipse of the
Gaussian, and sometimes swing; beyond they swing (`pgmult.latent.moves`). They always swing where
rows have a size, since the Gaussian is that of one size, and others have wider or narrower ones.

Tails of a posterior of few or separable rows are longer than a Gaussian's. So a swing is about a
Student-t of d = 30 degrees of freedom: with n weights, z = w - m and q = z' P z, a variance s^2 is
drawn given w, and the path is that of the Gaussian N(m, s^2 P^-1) and the correction for a t::

    s^2   ~ (d + q) / chi^2(d + n)
    C(w) - q / 2 + (d + n) / 2 log(1 + q / d)
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pgmult.compiled.linalg import invert_lower
from pgmult.core.typing import FloatArray, Generator
from pgmult.latent.approximation import RowsLikelihood
from pgmult.latent.hyperparameters import REFLECTED
from pgmult.latent.moves import Point, Target, swing
from pgmult.latent.several import Several
from pgmult.priors.gaussian import lower_cholesky
from pgmult.regression.models.blocks import Block

_MOST_NUMBERS = 10_000_000  # of a design that is kept dense
_REFLECTED, _NEAR = 0.1, 1.0  # spreads
_SWUNG = 0.125  # of the sweeps that reflect
_MORE_KICKS = 2
_DOF = 30.0


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """A Gaussian near the posterior of the weights of a block: their prior and a potential.

    It serves `pgmult.latent.moves` as Gaussian, family and approximation: weights are their
    predictors.

    Attributes
    ----------
    mean : array, ``(num_weights,)``
    precision, inverse : arrays, ``(num_weights, num_weights)``
        The Gaussian's precision, and the inverse of its lower root.
    gram, shift : arrays
        What the rows add to the prior's precision, and to that times the mean.
    spread : float
        See `Approximation`.
    scores, back : callables
        Predictors of rows, and gradients in weights of gradients in these.
    var : float
        s^2: the Gaussian's covariance is so many times that of `precision`.
    """

    mean: FloatArray
    precision: FloatArray
    inverse: FloatArray
    gram: FloatArray
    shift: FloatArray
    spread: float
    scores: Callable[[FloatArray], FloatArray]
    back: Callable[[FloatArray], FloatArray]
    var: float = 1.0

    @classmethod
    def of(cls, block: Block) -> "Around":
        """Make the Gaussian of a block's approximation."""
        family, _, base = block
        gram, shift = base.absorbed
        prior = np.concatenate([term.precision(base.guess.mean) for term in family.terms])
        precision = gram + np.diag(prior)
        inverse = invert_lower(lower_cholesky(precision))
        scores, back = family.predictor, family.pull
        if not isinstance(family, Several):
            design, offset = np.ascontiguousarray(family.design.toarray()), family.offset
            scores, back = (lambda w: design @ w + offset), (lambda g: g @ design)
        mean = inverse.T @ (inverse @ shift)
        return cls(mean, precision, inverse, gram, shift, base.spread, scores, back)

    def sample(self, rng: Generator) -> FloatArray:
        """A draw."""
        noise = math.sqrt(self.var) * rng.standard_normal(len(self.mean))
        return np.asarray(self.mean + noise @ self.inverse)

    def solve(self, g: FloatArray) -> FloatArray:
        """The covariance times a vector."""
        return np.asarray(self.var * ((self.inverse @ g) @ self.inverse))

    def predictor(self, w: FloatArray) -> FloatArray:
        """The weights."""
        return w

    def pull(self, g: FloatArray) -> FloatArray:
        """A gradient, as it is."""
        return g

    def lacks(self, rows: RowsLikelihood, w: FloatArray) -> float:
        """Log likelihood less the potential."""
        return float(rows.total(self.scores(w))) - float(w @ (self.shift - 0.5 * (self.gram @ w)))

    def correction(self, rows: RowsLikelihood, w: FloatArray) -> float:
        """Log likelihood less the potential, for a Student-t."""
        z = w - self.mean
        q = float(z @ self.precision @ z)
        heavier = 0.5 * (_DOF + len(w)) * math.log1p(q / _DOF) - 0.5 * q
        return self.lacks(rows, w) + heavier

    def gradient(self, rows: RowsLikelihood, w: FloatArray) -> FloatArray:
        """The gradient of the correction."""
        z = w - self.mean
        towards = self.precision @ z
        heavier = (_DOF + len(w)) / (_DOF + float(z @ towards)) - 1.0
        slope = np.asarray(self.back(rows.slope(self.scores(w))))
        return slope - self.shift + self.gram @ w + heavier * towards

    def swung(self, rng: Generator, w: FloatArray, rows: RowsLikelihood, kicks: int) -> FloatArray:
        """One path of all the weights."""
        z = w - self.mean
        q = float(z @ self.precision @ z)
        around: Any = replace(self, var=(_DOF + q) / rng.chisquare(_DOF + len(w)))
        point = Point(np.empty(0), w, around, w)  # weights are their predictors
        return swing(rng, point, Target(around, rows, around), kicks).w

    def reflected(self, rng: Generator, w: FloatArray, rows: RowsLikelihood) -> FloatArray:
        """A point mostly on the other side, or the old one."""
        cos, sin = REFLECTED
        new = self.mean + cos * (w - self.mean) + sin * (self.sample(rng) - self.mean)
        return new if self.lacks(rows, new) - self.lacks(rows, w) > -rng.exponential() else w

    def moved(self, rng: Generator, w: FloatArray, rows: RowsLikelihood, kicks: int) -> FloatArray:
        """The weights after one sweep."""
        if self.spread < _REFLECTED and not math.isfinite(getattr(rows, "size", math.inf)):
            w = self.reflected(rng, w, rows)
            return self.swung(rng, w, rows, 1) if rng.random() < _SWUNG else w
        kicks = max(kicks - 1, 1) if self.spread < _NEAR else kicks + _MORE_KICKS
        return self.swung(rng, w, rows, kicks)


def dense_blocks(blocks: Sequence[Block]) -> list[Around | None]:
    """What dense sweeps of each block go around; None for all where one is not dense."""
    for family in (block.family for block in blocks):
        numbers = math.prod(family.design.shape)
        is_full = 2 * family.design.nnz >= numbers and numbers <= _MOST_NUMBERS
        if family.num_hyperparameters or not is_full:
            return [None] * len(blocks)
    return [Around.of(block) for block in blocks]
