"""What regressions share: a Gaussian prior of the weights, and two ways in which weights move.

Binomial rows of groups (or of sticks) move by `updates`, a group at a time:
`GroupMoves`. Where rows see the weights of all outputs, these are one vector, and swing about
one Gaussian: `JointMoves`. The search for that Gaussian sees data and prior alone, so moves around
it leave the posterior as it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from examples.papers.regressions.data import LabelledRows
from examples.papers.regressions.solver import SiteFit
from examples.papers.regressions.updates import Bases, find_bases_of, move_weights
from pgmult.compiled.linalg import invert_lower
from pgmult.core.arguments import as_kind
from pgmult.core.memory import once_a_data_set
from pgmult.core.parameters import Checked, axes_of
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive
from pgmult.latent.moves import Point, Target, swing
from pgmult.priors.gaussian import MvNormal, lower_cholesky

_KICKS = 3


def as_weights_prior(prior: MvNormal, name: str) -> MvNormal:
    """`prior`, if it is one Gaussian that is conditioned on nothing."""
    if as_kind(prior, name, MvNormal).potential is not None or prior.prior_mean.ndim != 1:
        raise ValueError(f"{name} must be one Gaussian, not conditioned on anything")
    return prior


def weights_prior(prior: MvNormal | None, size: int, name: str) -> MvNormal:
    """`prior`, if it is of so many weights; N(0, I) where it is left out."""
    if prior is None:
        return MvNormal(np.zeros(size), np.eye(size))
    if as_weights_prior(prior, name).size != size:
        raise ValueError(f"{name} must be of {size} weights, one a covariate, got {prior.size}")
    return prior


def _as_pair(value: Any, name: str) -> tuple[float, float]:
    pair = as_positive(value, name)
    if pair.shape != (2,):
        raise ValueError(f"{name} must be two numbers, got shape {pair.shape}")
    return float(pair[0]), float(pair[1])


WeightsPrior = Annotated[MvNormal | None, as_weights_prior]
Pair = Annotated[tuple[float, float], _as_pair]


@dataclass(frozen=True, slots=True, eq=False)
class FixedPrior(Checked):
    """A model whose weights have a given prior, N(0, I) if it is left out."""

    weights_prior: WeightsPrior = None

    _precision: FloatArray | None = field(init=False, default=None)

    def _complete(self) -> None:
        if self.weights_prior is not None:
            self._set(_precision=self.weights_prior.precision())

    def prior_of(self, data: Any) -> MvNormal:
        """The prior of an output's weights."""
        return weights_prior(self.weights_prior, data.num_covariates, "weights_prior")

    def _moments(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """Mean and precision of an output's weights under the prior."""
        if self._precision is None:
            return _standard_moments(data.num_covariates)
        return self.prior_of(data).prior_mean, self._precision


@dataclass(frozen=True, slots=True, eq=False)
class WeightsState:
    """One point of the chain, where weights are all that a model has.

    Attributes
    ----------
    weights : array, ``(num_outputs, num_covariates)``
        Of groups, sticks or categories, as the model's ``dims`` say.
    """

    weights: Annotated[FloatArray, "output", "covariate"]


class WeightsAlone(FixedPrior, ABC):
    """A model of weights with a given prior, and of nothing else."""

    __slots__ = ()

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(WeightsState)
    default_keep: ClassVar[tuple[str, ...]] = ("weights",)

    @abstractmethod
    def _num_outputs(self, data: Any) -> int:
        """How many vectors of weights there are."""

    @abstractmethod
    def _start(self, data: Any) -> FloatArray:
        """Weights in the midst of the posterior."""

    @abstractmethod
    def _moved(
        self, rng: np.random.Generator, weights: FloatArray, data: Any,
        prior_vars: FloatArray | None = None,
    ) -> FloatArray:  # fmt: skip
        """One sweep of the weights, with other prior variances where they are given."""

    def prior(self, rng: np.random.Generator, data: Any) -> Any:
        """A state from the prior."""
        return WeightsState(self.prior_of(data).sample(rng, self._num_outputs(data)))

    def init(self, rng: np.random.Generator, data: Any) -> Any:
        """One sweep from the middle of the Gaussian nearest to the posterior."""
        return self.step(rng, self.state_of(self._start(data)), data)

    def step(self, rng: np.random.Generator, state: Any, data: Any) -> Any:
        """One sweep of the weights."""
        return WeightsState(self._moved(rng, state.weights, data))

    def state_of(self, weights: FloatArray) -> Any:
        """The state with these weights."""
        return WeightsState(weights)

    def move(
        self, rng: np.random.Generator, weights: FloatArray, prior_vars: FloatArray, data: Any
    ) -> FloatArray:
        """One sweep of weights that are independent a priori, with these variances."""
        return self._moved(rng, weights, data, prior_vars)


@cache
def _standard_moments(size: int) -> tuple[FloatArray, FloatArray]:
    """Mean and precision of N(0, I), cached: making them takes as long as a sweep of few rows."""
    return np.zeros(size), np.eye(size)


class GroupMoves:
    """Models of binomial rows in groups, whose weights move a group at a time."""

    __slots__ = ()

    def _groups(self, data: Any) -> LabelledRows:
        """The rows that weights see, a group for each vector of them."""
        raise NotImplementedError

    def _reference(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """Mean and precision of the weights under the prior, or near it where it is learned."""
        raise NotImplementedError

    def potential(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """Precision, and that times the mean, that stand in for the rows of each group."""
        bases = bases_of(data, self)
        return bases.gram, bases.pull

    def _move_groups(
        self,
        rng: np.random.Generator,
        weights: FloatArray,
        mean: FloatArray,
        precision: FloatArray,
        data: Any,
        *,
        learned: bool,
    ) -> FloatArray:
        """One sweep of the weights under a prior with these moments."""
        groups, bases = self._groups(data), bases_of(data, self)
        return move_weights(rng, weights, mean, precision, groups, bases, learned=learned)


class FixedGroups(GroupMoves, WeightsAlone):
    """Binomial rows in groups whose weights have one given prior."""

    __slots__ = ()

    def _num_outputs(self, data: Any) -> int:
        return self._groups(data).num_groups

    def _start(self, data: Any) -> FloatArray:
        return bases_of(data, self).mean

    def _moved(
        self, rng: np.random.Generator, weights: FloatArray, data: Any,
        prior_vars: FloatArray | None = None,
    ) -> FloatArray:  # fmt: skip
        mean, precision = self._moments(data)
        if prior_vars is not None:
            precision = np.diag(1.0 / prior_vars)
        learned = prior_vars is not None
        return self._move_groups(rng, weights, mean, precision, data, learned=learned)

    def _reference(self, data: Any) -> tuple[FloatArray, FloatArray]:
        return self._moments(data)


@once_a_data_set
def bases_of(data: Any, model: Any) -> Bases:
    """What a model's moves of weights go around."""
    return find_bases_of(model._groups(data), *model._reference(data))


class JointRows(NamedTuple):
    """The log likelihood of all the weights, as one vector, and its derivatives."""

    total: Callable[[FloatArray], float]
    slope: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """A Gaussian near the posterior of all the weights: their prior and a potential of the rows.

    To `pgmult.latent.moves` it is law, family and approximation, the weights their own predictors.

    Attributes
    ----------
    mean : array, ``(num_outputs * num_weights,)``
    root, inverse : arrays
        Lower root of the precision, and its inverse.
    gram, shift : arrays
        What the rows add to the prior's precision, and to that times the mean.
    prior_mean : array, ``(num_weights,)``
    """

    mean: FloatArray
    root: FloatArray
    inverse: FloatArray
    gram: FloatArray
    shift: FloatArray
    prior_mean: FloatArray

    @classmethod
    def of(cls, fit: SiteFit, prior: MvNormal) -> "Around":
        """The fit rounded to float32, so that draws do not depend on the last digits of BLAS."""
        cov = fit.cov[0] if fit.joint_cov is None else fit.joint_cov
        precision = np.asarray(np.linalg.inv(cov))
        root = lower_cholesky(precision).astype(np.float32).astype(np.float64)
        mean = fit.mean.ravel().astype(np.float32).astype(np.float64)
        before, num_outputs = prior.precision(), len(fit.mean)
        gram = root @ root.T - np.kron(np.eye(num_outputs), before)
        shift = root @ (root.T @ mean) - np.tile(before @ prior.prior_mean, num_outputs)
        return cls(mean, root, invert_lower(root), gram, shift, prior.prior_mean)

    def with_prior(self, variances: FloatArray) -> "Around":
        """The same potential of the rows under another prior, with independent weights: O(n^3)."""
        num_outputs = len(self.mean) // len(self.prior_mean)
        target = self.gram + np.diag(np.tile(1.0 / variances, num_outputs))
        root = lower_cholesky(target)
        inverse = invert_lower(root)
        pull = self.shift + np.tile(self.prior_mean / variances, num_outputs)
        return replace(self, mean=inverse.T @ (inverse @ pull), root=root, inverse=inverse)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """A draw."""
        noise = rng.standard_normal(len(self.mean))
        return np.asarray(self.mean + np.einsum("j,ji->i", noise, self.inverse))

    def solve(self, g: FloatArray) -> FloatArray:
        """The covariance times a vector."""
        half = np.einsum("ij,j->i", self.inverse, g)
        return np.asarray(np.einsum("ij,i->j", self.inverse, half))

    def predictor(self, w: FloatArray) -> FloatArray:
        """The weights."""
        return w

    def pull(self, g: FloatArray) -> FloatArray:
        """A gradient, as it is."""
        return g

    def correction(self, rows: JointRows, w: FloatArray) -> float:
        """Log likelihood less the potential."""
        square = float(np.einsum("i,ij,j->", w, self.gram, w))
        return rows.total(w) - float(np.vdot(self.shift, w)) + 0.5 * square

    def gradient(self, rows: JointRows, w: FloatArray) -> FloatArray:
        """Of the correction."""
        return np.asarray(rows.slope(w) - self.shift + np.einsum("ij,j->i", self.gram, w))


class JointMoves(ABC):
    """Models whose weights are one vector that swings about a Gaussian."""

    __slots__ = ()

    @abstractmethod
    def _near(self, data: Any) -> tuple[Around, JointRows]:
        """A Gaussian near the posterior, and what the rows say."""

    def potential(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """Precision, and that times the mean, that stand in for the rows: of one block."""
        around, _ = self._near(data)
        return around.gram[None], around.shift[None]

    def _swung(
        self, rng: np.random.Generator, weights: FloatArray, around: Any, rows: Any
    ) -> FloatArray:
        """One path of all the weights, ``(num_outputs, num_weights)``."""
        x = weights.ravel()
        point = Point(np.empty(0), x, around, x)
        target = Target(around, rows, around)
        return swing(rng, point, target, _KICKS).w.reshape(weights.shape)


class JointWeights(JointMoves, WeightsAlone):
    """Weights with a given prior that are one vector."""

    __slots__ = ()

    def _start(self, data: Any) -> FloatArray:
        return self._near(data)[0].mean.reshape(self._num_outputs(data), -1)

    def _moved(
        self, rng: np.random.Generator, weights: FloatArray, data: Any,
        prior_vars: FloatArray | None = None,
    ) -> FloatArray:  # fmt: skip
        around, rows = self._near(data)
        if prior_vars is not None:
            around = around.with_prior(prior_vars)
        return self._swung(rng, weights, around, rows)
