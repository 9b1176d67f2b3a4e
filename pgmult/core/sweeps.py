"""Samplers: how a chain moves, apart from the model that says what it moves over.

A model states a prior, a likelihood and how to simulate. A `Sampler` of a model and its data states
where a chain starts and how it moves; `Scan` makes one of a start and a sequence of moves. Models
whose sampler is an object inherit from `Sampled`, and have ``init`` and ``step`` by it.

>>> import numpy as np
>>> walk = Scan(start=lambda rng: 0.0, moves=(lambda rng, x: 0.5 * x + rng.standard_normal(),))
>>> rng = np.random.default_rng(0)
>>> round(walk.step(rng, walk.init(rng)), 3)
0.126
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from pgmult.core.typing import Generator, Model

State = TypeVar("State")
Data = TypeVar("Data")

Move = Callable[[Generator, State], State]


class Sampler(Protocol[State]):
    """How chains of one model and one data set begin and move."""

    def init(self, rng: Generator) -> State:
        """Return the state where a chain starts."""

    def step(self, rng: Generator, state: State) -> State:
        """Return the state after one full sweep; `state` does not change."""


@dataclass(frozen=True, slots=True, eq=False)
class Scan(Generic[State]):
    """A systematic scan: a sampler that makes its moves one after another.

    Attributes
    ----------
    start : callable
        ``start(rng)`` returns the state where a chain starts.
    moves : tuple of callables
        ``move(rng, state)`` returns the next state and leaves the posterior as it is.
    """

    start: Callable[[Generator], State]
    moves: tuple[Move[State], ...]

    def init(self, rng: Generator) -> State:
        """Return the state where a chain starts."""
        return self.start(rng)

    def step(self, rng: Generator, state: State) -> State:
        """Return the state after every move was made once."""
        for move in self.moves:
            state = move(rng, state)
        return state


class Sampled(Generic[Data, State]):
    """A model that has its ``init`` and ``step`` by a sampler.

    A run makes the sampler once. So do ``init`` and ``step`` as long as the data are the same.
    """

    __slots__ = ()

    def sampler(self, data: Data) -> Sampler[State]:
        """Return the sampler of this model for a data set."""
        raise NotImplementedError

    def init(self, rng: Generator, data: Data) -> State:
        """Return the state where a chain starts."""
        state: State = _LATEST.of(self, data).init(rng)
        return state

    def step(self, rng: Generator, state: State, data: Data) -> State:
        """Return the state after one full sweep; `state` does not change."""
        new: State = _LATEST.of(self, data).step(rng, state)
        return new


class _Latest:
    """Keeps one sampler, the latest, so that no data set is held for long."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: tuple[Any, Any, Any] = (None, None, None)

    def of(self, model: Sampled[Any, Any], data: Any) -> Sampler[Any]:
        """Return the kept sampler, or make one if the model or the data are others."""
        latest = self._kept
        if latest[0] is not model or latest[1] is not data:
            with self._lock:
                latest = self._kept
                if latest[0] is not model or latest[1] is not data:
                    self._kept = latest = (model, data, model.sampler(data))
        sampler: Sampler[Any] = latest[2]
        return sampler


_LATEST = _Latest()


def sampler_of(model: Model[Data, State], data: Data) -> Sampler[State]:
    """Return the sampler of a model for a data set: its own, or one of its ``init`` and ``step``.

    Chains that ask at the same time get the same one.
    """
    if isinstance(model, Sampled):
        return _LATEST.of(model, data)
    return Scan(
        lambda rng: model.init(rng, data), (lambda rng, state: model.step(rng, state, data),)
    )
