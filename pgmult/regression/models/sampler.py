"""How chains of an additive regression move: block after block, around its approximation.

Each move leaves the posterior as it is; how far the approximation is from it decides which are
made. Weights whose prior is fixed move by themselves (`pgmult.regression.models.dense`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from pgmult.core.blas import one_blas_thread
from pgmult.core.typing import BoolArray, FloatArray, Generator
from pgmult.latent.approximation import FAR
from pgmult.latent.moves import Point, Target, interweave, reflect, swing
from pgmult.priors import HalfT, LogNormal
from pgmult.regression.data import AdditiveRows
from pgmult.regression.models.blocks import Block, Structure, solved
from pgmult.regression.models.dense import Around, dense_blocks
from pgmult.sampling.moves import slice_sample
from pgmult.variational.sites import CountSite

_MIDDLE = 0.3  # spread up to which leaps are mostly taken
_LEAPT = 0.4  # of the sweeps up to there
_CARRIED = 0.9  # of the sweeps with a path; the others interweave
_TURNED = 0.65 * math.pi  # mean angle of paths, so that means are worth more than draws are
_LONGER = 3  # times as many kicks on paths where the approximation is far
_SAME = 0.05  # spread up to which one kick is enough


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
