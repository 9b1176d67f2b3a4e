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

_lock = Lock()
_latest: tuple[Any, Any, Any] = (None, None, None)
"""A model, data and their sampler: one alone, so that no data set is held for long."""


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
        return sampler_of(self, data).init(rng)

    def step(self, rng: Generator, state: State, data: Data) -> State:
        """Return the state after one full sweep; `state` does not change."""
        return sampler_of(self, data).step(rng, state)


def sampler_of(model: Model[Data, State] | Sampled[Data, State], data: Data) -> Sampler[State]:
    """Return the sampler of a model for a data set: its own, or one of its ``init`` and ``step``.

    Chains that ask at the same time get the same one.
    """
    global _latest
    if not isinstance(model, Sampled):
        return Scan(
            lambda rng: model.init(rng, data), (lambda rng, state: model.step(rng, state, data),)
        )
    with _lock:
        if _latest[0] is not model or _latest[1] is not data:
            _latest = (model, data, model.sampler(data))
        sampler: Sampler[State] = _latest[2]
    return sampler
