r"""How chains of an additive regression move: block after block, around its approximation.

Each move leaves the posterior as it is; how far the approximation is from it decides which are
made.

Weights whose prior is fixed are swept all together, in one dense block (`Around`).
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
from typing import Annotated, Any, NamedTuple

import numpy as np

from pgmult.compiled.linalg import invert_lower
from pgmult.core.blas import one_blas_thread
from pgmult.core.typing import BoolArray, FloatArray, Generator
from pgmult.latent.approximation import FAR, RowsLikelihood
from pgmult.latent.hyperparameters import REFLECTED
from pgmult.latent.moves import Point, Target, interweave, reflect, swing
from pgmult.latent.several import Several
from pgmult.priors import HalfT, LogNormal
from pgmult.priors.gaussian import lower_cholesky
from pgmult.regression.data import AdditiveRows
from pgmult.regression.models.blocks import Block, Structure, solved
from pgmult.sampling.moves import slice_sample
from pgmult.variational.sites import CountSite

_MIDDLE = 0.3  # spread up to which leaps are mostly taken
_LEAPT = 0.4  # of the sweeps up to there
_CARRIED = 0.9  # of the sweeps with a path; the others interweave
_TURNED = 0.65 * math.pi  # mean angle of paths, so that means are worth more than draws are
_LONGER = 3  # times as many kicks on paths where the approximation is far
_SAME = 0.05  # spread up to which one kick is enough

# of dense blocks
_MOST_NUMBERS = 10_000_000  # of a design that is kept dense
_REFLECTED, _NEAR = 0.1, 1.0  # spreads
_SWUNG = 0.125  # of the sweeps that reflect
_MORE_KICKS = 2
_DOF = 30.0


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveRegressionState:
    """One point of the chain.

    Attributes
    ----------
    weights : array
        Weights of each score. Those of a softmax add up to 0 over categories.
    hyperparameters : array
        Coordinates of all terms' hyperparameters (`pgmult.latent.terms`), and the log size of
        negative binomial counts or log concentration of counts that scatter.
    """

    weights: Annotated[FloatArray, "score", "weight"]
    hyperparameters: Annotated[FloatArray, "block", "hyperparameter"]


class SizePrior(NamedTuple):
    """The prior of the log size of rows: negative binomial, or Dirichlet-multinomial.

    Attributes
    ----------
    prior : LogNormal or HalfT
        Prior of the size, or half-t prior of 1 / sqrt(size).
    least, most : float
        Bounds of the size.
    """

    prior: LogNormal | HalfT
    least: float
    most: float

    @classmethod
    def of(cls, data: AdditiveRows, priors: Any) -> "SizePrior":
        """The prior for rows of this kind."""
        if data.scatters:
            return cls(priors.get("scatter", HalfT()), 1e-3, 1e7)
        return cls(priors.get("size", LogNormal(3.0, 2.0)), 0.05, 1e4)

    def sample(self, rng: Generator) -> float:
        """Draw a log size."""
        if isinstance(self.prior, LogNormal):
            log_size = math.log(self.prior.median) + self.prior.sd * rng.standard_normal()
        else:
            log_size = -2.0 * math.log(self.prior.scale * abs(rng.standard_t(self.prior.dof)))
        return float(np.clip(log_size, math.log(self.least), math.log(self.most)))

    def log_density(self, log_size: float) -> float:
        """Log density of a log size, up to a constant; -inf outside the bounds."""
        if not math.log(self.least) < log_size < math.log(self.most):
            return -math.inf
        if isinstance(self.prior, LogNormal):
            return float(self.prior.log_density(np.array(log_size)))
        square = math.exp(-log_size) / self.prior.scale**2
        return -0.5 * log_size - 0.5 * (self.prior.dof + 1.0) * math.log1p(square / self.prior.dof)


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


class RegressionSampler:
    """The sampler of an additive regression for a data set.

    Attributes
    ----------
    structure : Structure
        How weights fall into blocks.
    blocks : list of Block
        Predictors, rows and approximation of each.
    dense : list of Around or None
        What sweeps of weights with a fixed prior go around.
    """

    def __init__(self, data: AdditiveRows, structure: Structure, model: Any):
        self.structure, self.kicks, self.is_exact = structure, model.kicks, not model.draws_anew
        self.size_prior = SizePrior.of(data, model.priors)
        with one_blas_thread():
            self.blocks: list[Block] = solved(data, structure)
            self.dense: list[Around | None] = dense_blocks(self.blocks)

    def init(self, rng: Generator) -> AdditiveRegressionState:
        """Draw weights and hyperparameters from the approximation."""
        return self._state([block.sample(rng) for block in self.blocks])

    def _state(self, points: Sequence[tuple[FloatArray, FloatArray]]) -> AdditiveRegressionState:
        x, flat = zip(*points, strict=True)
        return AdditiveRegressionState(self.structure.weights(flat), np.array(x))

    def step(self, rng: Generator, state: AdditiveRegressionState) -> AdditiveRegressionState:
        """The state after one sweep, or a new draw from the approximation."""
        if not self.is_exact:
            return self.init(rng)
        flat = self.structure.flat(state.weights)
        parts = zip(state.hyperparameters, flat, self.blocks, self.dense, strict=True)
        with one_blas_thread():
            return self._state([self._moved(rng, *part) for part in parts])

    def _moved(
        self, rng: Generator, x: FloatArray, w: FloatArray, block: Block, dense: Around | None
    ) -> tuple[FloatArray, FloatArray]:
        """Hyperparameters and weights of one block after its sweep."""
        family, rows, _ = block
        x, size = np.split(x, [family.num_hyperparameters])
        if len(size):
            size = sized(rng, size, family.predictor(w), rows, self.size_prior)
            rows = replace(rows, size=math.exp(float(size[0])))
        if dense is not None:
            return np.append(x, size), dense.moved(rng, w, rows, self.kicks)
        target = block._replace(rows=rows)
        x, w, *_ = moved(rng, Point.of(x, w, target), target, self.kicks)
        return np.append(x, size), w


def moved(rng: Generator, point: Point, target: Target, kicks: int) -> Point:
    """A leap where the approximation is near; or a path, after hyperparameters have moved."""
    spread = target.base.spread
    if spread < _MIDDLE and rng.random() < _LEAPT:
        return reflect(rng, point, target)
    if rng.random() < _CARRIED:
        point = reflect(rng, point, target, is_carried=True)
    else:
        point = interweave(rng, point, target)
    if spread < _MIDDLE:
        kicks = 1 + (spread > _SAME)
    return swing(rng, point, target, kicks if spread <= FAR else _LONGER * kicks, _TURNED)


def sized(
    rng: Generator, log_size: FloatArray, psi: FloatArray, rows: Any, prior: SizePrior
) -> FloatArray:
    """The log size of rows, given the predictors."""

    def log_density(at: FloatArray, active: BoolArray) -> FloatArray:
        density = prior.log_density(float(at[0]))
        if math.isinf(density):
            return np.array([density])
        here = replace(rows, size=math.exp(float(at[0])))  # all that depends on the size counts
        value = here.value(psi).sum() if isinstance(rows, CountSite) else here.total(psi)
        return np.array([density + float(value)])

    return slice_sample(rng, log_density, log_size)
