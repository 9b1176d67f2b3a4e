"""Array aliases and the three protocols that hold the library together.

Every *link* turns counts into a Gaussian potential; every Gaussian *prior* has one verb,
``condition(potential)``; a *model* is a frozen dataclass of hyperparameters whose ``step`` makes
one full Markov sweep. Data and states are frozen, slotted dataclasses of plain arrays, passed in
and never stored: that is why `pgmult.testing.check_model` can test anybody's model, a checkpoint
is a file of arrays, and `pgmult.sample` needs to know nothing else.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pgmult.core.potentials import DensePotential, DiagonalPotential

__all__ = [
    "ArrayLike",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "Link",
    "Model",
    "Prior",
    "variable",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Potential = DiagonalPotential | DensePotential


class Link(Protocol):
    """A map from K - 1 (or K) real numbers to probabilities of K categories."""

    def probs(self, psi: ArrayLike) -> FloatArray:
        """Probabilities, ``(..., K)``."""

    def inverse(self, pi: ArrayLike) -> FloatArray:
        """The psi of given probabilities."""

    def log_likelihood(self, psi: ArrayLike, counts: ArrayLike) -> FloatArray:
        """Multinomial log likelihood, without the multinomial coefficient."""

    def simulate(self, rng: np.random.Generator, psi: ArrayLike, totals: ArrayLike) -> IntArray:
        """Multinomial counts, ``(..., K)``."""

    def augment(self, rng: np.random.Generator, psi: ArrayLike, counts: ArrayLike) -> Potential:
        """Draw the Pólya-gamma variables given psi: the potential of one Gibbs step."""

    def expected(self, mean: ArrayLike, var: ArrayLike, counts: ArrayLike) -> Potential:
        """The potential under E_q[omega]: mean field."""

    def quadratic(self, psi: ArrayLike, counts: ArrayLike) -> Potential:
        """The local Taylor expansion of the log likelihood: Newton and Laplace."""


class Prior(Protocol):
    """A distribution closed under multiplication by a Gaussian potential."""

    def sample(self, rng: np.random.Generator) -> Any:
        """One draw."""

    def condition(self, potential: Potential) -> "Prior":
        """The posterior: the same kind of thing."""


Data = TypeVar("Data")
State = TypeVar("State")


class Model(Protocol[Data, State]):
    """What `pgmult.sample` asks of a model.

    A *variable* that can be kept is a field of the state or a method of the model called as
    ``method(state, data)``; `dims` names every such variable and its axes. A model may also have
    ``as_data(data)``, which turns what users have into its data type, or refuses it.

    Attributes
    ----------
    dims : mapping from a variable's name to the names of its axes, ``()`` for a scalar.
    default_keep : the variables that `pgmult.sample` keeps unless told otherwise.
    label_dims : axes whose labels are arbitrary (topics, mixture components) and need not agree
        between chains; variables that carry one are diagnosed within each chain only.
    """

    dims: ClassVar[Mapping[str, tuple[str, ...]]]
    default_keep: ClassVar[tuple[str, ...]]
    label_dims: ClassVar[frozenset[str]]

    def coords(self, data: Data) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Labels along the named axes; an axis without labels is left out."""

    def prior(self, rng: np.random.Generator, data: Data) -> State:
        """A state from the prior; uses covariates and totals of `data`, never its counts."""

    def simulate(self, rng: np.random.Generator, state: State, data: Data) -> Data:
        """New data of the same shape, covariates and totals, given the state."""

    def init(self, rng: np.random.Generator, data: Data) -> State:
        """Where a chain starts."""

    def step(self, rng: np.random.Generator, state: State, data: Data) -> State:
        """One full sweep, pure: neither argument is changed."""

    def log_likelihood(self, state: State, data: Data) -> float:
        """Log p(data | state), up to a constant that does not depend on the state."""


def variable(model: Model[Data, State], state: State, data: Data, name: str) -> Any:
    """The value of a keepable variable: a field of the state, or a method of the model."""
    if name in getattr(state, "__dataclass_fields__", ()):
        return getattr(state, name)
    return getattr(model, name)(state, data)
