"""Array aliases and the protocols that hold the library together.

Every *link* turns counts into a Gaussian potential; every Gaussian prior has one method,
``condition(potential)``, which returns its own type; a *model* is a frozen dataclass of
hyperparameters whose ``step`` makes one full Markov sweep. Data and states are frozen, slotted
dataclasses of plain arrays, passed in and never stored: that is why `pgmult.testing.check_model`
can test any model, a checkpoint is a file of arrays, and `pgmult.sample` needs to know nothing
else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.random import Generator as Generator
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import NDArray

from pgmult.core.potentials import DensePotential, DiagonalPotential

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
StrArray = NDArray[np.str_]
AnyArray = NDArray[Any]
Array = NDArray[np.generic]
"""An array of any type."""
Draw = Mapping[str, FloatArray]
"""Variables of a kept draw, or of several, by their names."""
Coords = Mapping[str, Sequence[object] | Array]
"""Labels of axes, by their names."""
Names = tuple[str, ...]
"""Names of variables, or of axes."""

Potential = DiagonalPotential | DensePotential


class Link(Protocol):
    """A map from K - 1 (or K) real numbers to probabilities of K categories."""

    def probs(self, psi: ArrayLike) -> FloatArray:
        """Probabilities, ``(..., K)``."""

    def inverse(self, pi: ArrayLike) -> FloatArray:
        """The psi of given probabilities."""

    def log_likelihood(self, psi: ArrayLike, counts: ArrayLike) -> FloatArray:
        """Multinomial log likelihood, without the multinomial coefficient."""

    def simulate(self, rng: Generator, psi: ArrayLike, totals: ArrayLike) -> IntArray:
        """Multinomial counts, ``(..., K)``."""

    def augment(self, rng: Generator, psi: ArrayLike, counts: ArrayLike) -> Potential:
        """Draw the Pólya-gamma variables given psi: the potential of one Gibbs step."""

    def expected(self, mean: ArrayLike, var: ArrayLike, counts: ArrayLike) -> Potential:
        """The potential under E_q[omega]: mean field."""

    def quadratic(self, psi: ArrayLike, counts: ArrayLike) -> Potential:
        """The local Taylor expansion of the log likelihood: Newton and Laplace."""


Data = TypeVar("Data")
DataIn = TypeVar("DataIn", contravariant=True)
StateIn = TypeVar("StateIn", contravariant=True)
State = TypeVar("State")


class Model(Protocol[Data, State]):
    """What `pgmult.sample` requires of a model.

    A *variable* that can be kept is a field or a property of the state, or a method of the model
    called as ``method(state, data)``; `dims` names every such variable and its axes. What a sampler
    learned of the posterior while it tuned is a record, a dataclass, in a field ``tuning`` of the
    state: fixed after tuning, and part of no draw.

    What else a model may say is a small protocol each (`Linked`, `Labelled`, `TakesRawData`,
    `FindsStarts`, `PredictsRows`) or a class variable of `Traits`.
    """

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """Names of axes by variable, ``()`` for a scalar: most models have a class variable."""

    def prior(self, rng: Generator, data: Data) -> State:
        """A state from the prior; uses covariates and totals of `data`, never its counts."""

    def simulate(self, rng: Generator, state: State, data: Data) -> Data:
        """New data of the same shape, covariates and totals, given the state."""

    def init(self, rng: Generator, data: Data) -> State:
        """Where a chain starts."""

    def step(self, rng: Generator, state: State, data: Data) -> State:
        """One full sweep, pure: neither argument is changed."""

    def log_likelihood(self, state: State, data: Data) -> float:
        """Log p(data | state), up to a constant that does not depend on the state."""


@dataclass(frozen=True, slots=True)
class Traits:
    """Optional class variables of a model, which describe its variables: see `traits_of`.

    Attributes
    ----------
    default_keep : tuple of str
        The variables that `pgmult.sample` keeps by default; all if the model does not
        say.
    kernel_set : str
        Name of what the model compiles, in the lists of `pgmult.compiled.ahead`; that of its class
        if it does not say.
    label_dims : frozenset of str
        Axes whose labels are arbitrary (topics, mixture components) and need not agree between
        chains: variables that have one are diagnosed within each chain only.
    basis_dims : frozenset of str
        Axes of coordinates in a basis that the data do not fix (of hidden states): variables that
        have one are not diagnosed.
    label_rows : mapping from an axis in `label_dims` to a variable
        Whose rows along it are probability distributions that identify its labels (topics by their
        words). Chains of the model are then matched label by label, and judged by what they found
        and by how each of them mixes, since they may stay in different modes.
    label_parts : mapping from an axis in `label_dims` to a variable
        ``(part, label, ...)`` that is taken instead where it was kept, of labels that differ
        between parts (topics in groups of documents): two are the same if they are in every part.
    single_precision : frozenset of str
        Variables so large that draws keep seven digits of them, in half the bytes.
    monitored : tuple of str
        Main results of reports, by which a run's worth is judged where they are kept; the
        first kept variable that chains can agree on if the model does not say.
    ess_targets : mapping from a variable of `monitored` to float
        Independent draws a chain that it is worth in a run that is settled, 100 unless the model
        says otherwise.
    least_draws : int
        Of a chain, before a run is asked whether it is settled.
    many_modes : bool
        Whether each chain stays in a mode of its own, which it hardly moves through (topics): such
        a run is settled once log likelihoods are level and each chain has enough effective draws
        of what `ReportsFirst` names, instead of by agreement between chains.
    draws_anew : bool
        Whether draws are independent, so that diagnostics of chains are not needed.
    """

    default_keep: tuple[str, ...]
    kernel_set: str
    label_dims: frozenset[str] = frozenset()
    basis_dims: frozenset[str] = frozenset()
    label_rows: Mapping[str, str] = field(default_factory=dict)
    label_parts: Mapping[str, str] = field(default_factory=dict)
    single_precision: frozenset[str] = frozenset()
    monitored: tuple[str, ...] = ()
    ess_targets: Mapping[str, float] = field(default_factory=dict)
    least_draws: int = 200
    many_modes: bool = False
    draws_anew: bool = False


@runtime_checkable
class Linked(Protocol[DataIn]):
    """A model whose real vectors become probabilities through a link."""

    def link(self, data: DataIn) -> Link:
        """The link, with the order in which it takes the categories of `data`."""


@runtime_checkable
class Labelled(Protocol[DataIn]):
    """A model that names the entries of its variables."""

    def coords(self, data: DataIn) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Labels along the named axes; an axis without labels is left out."""


@runtime_checkable
class ReportsFirst(Protocol[DataIn, StateIn]):
    """A model that says which numbers its report shows first, where labels differ by chain.

    Attributes
    ----------
    reported_names : sequence of str
        Variables that these numbers follow from.
    """

    reported_names: Sequence[str]

    def reported(self, draw: Mapping[str, Array]) -> FloatArray:
        """Numbers of the report, from a draw's stored variables, ``(number, label)``."""

    def label_probs(self, state: StateIn, data: DataIn) -> FloatArray:
        """Distributions by which labels of several chains are matched, ``(label, ...)``."""


@runtime_checkable
class TakesRawData(Protocol):
    """A model that converts data as users have them into its own data type, or refuses them."""

    def as_data(self, data: object) -> Any:
        """Data of the model's type."""


@runtime_checkable
class Start(Protocol):
    """A state that a search arrived at."""

    @property
    def state(self) -> Any:
        """Where a chain may begin."""

    def facts(self) -> Mapping[str, Any]:
        """Facts about the start, for reports: numbers, strings, lists and mappings of these."""


@runtime_checkable
class FindsStarts(Protocol[DataIn]):
    """A model that has a search for a start that several chains share."""

    def find_start(self, rng: Generator, data: DataIn, leaves: int) -> Start:
        """The best result of so many independent searches, and how far they agree."""


class ObservedRows(NamedTuple):
    """Data as rows of multinomial counts.

    Attributes
    ----------
    dims : pair of str
        Of the rows and of the categories, with labels in the posterior's coords where it has any.
    counts : int array, ``(num_rows, num_categories)``
    constants : mapping from name to (dims, array)
        What else is known of the rows.
    """

    dims: tuple[str, str]
    counts: IntArray
    constants: Mapping[str, tuple[tuple[str, ...], NDArray[Any]]]


@runtime_checkable
class PredictsRows(Protocol[DataIn]):
    """A model of multinomial rows that are independent given a draw of what it keeps."""

    def observed_rows(self, data: DataIn) -> ObservedRows:
        """The rows of the data."""

    def row_probs(self, draw: Mapping[str, Array], data: DataIn) -> FloatArray:
        """Probabilities of the rows, ``(num_rows, num_categories)``, given kept variables.

        Raises
        ------
        ValueError
            That names what must be kept.
        """


@runtime_checkable
class PredictsRowsInTurn(Protocol[DataIn]):
    """A model of multinomial rows that depend on the rows before them, given a draw."""

    def observed_rows(self, data: DataIn) -> ObservedRows:
        """The rows of the data."""

    def log_predictive(self, draw: Mapping[str, Array], data: DataIn) -> FloatArray:
        """Log p(row | rows before it), ``(num_rows,)``, without multinomial coefficients."""

    def replicate(self, rng: Generator, draw: Mapping[str, Array], data: DataIn) -> IntArray:
        """New counts of all rows, ``(num_rows, num_categories)``."""


def coords_of(model: object, data: object) -> dict[str, NDArray[Any]]:
    """Labels along the axes of a model's variables."""
    coords = model.coords(data) if isinstance(model, Labelled) else {}
    return {name: np.asarray(labels) for name, labels in coords.items()}


def traits_of(model: Any) -> Traits:
    """The traits of a model: its class variables, and defaults for those that it does not have."""
    defaults: dict[str, Any] = {"default_keep": model.dims, "kernel_set": type(model).__name__}
    names = [trait.name for trait in fields(Traits) if hasattr(model, trait.name)]
    defaults |= {name: getattr(model, name) for name in names}
    return Traits(**defaults | {"default_keep": tuple(defaults["default_keep"])})


def absent_of(model: Any, data: object) -> frozenset[str]:
    """Variables that these data leave empty and that are not kept, if a model has ``absent``."""
    return model.absent(data) if hasattr(model, "absent") else frozenset()


def data_of(model: object, data: object) -> Any:
    """Data of the model's type, from what users have."""
    return model.as_data(data) if isinstance(model, TakesRawData) else data


def variable(model: object, state: object, data: object, name: str) -> Any:
    """The value of a keepable variable: an attribute of the state, or by a method of the model."""
    return getattr(state, name) if hasattr(state, name) else getattr(model, name)(state, data)
