"""A posterior of topics as its readers take it: a chain's draws one after the other, and the model.

Draws are a `Posterior`, or a plain mapping from names to arrays ``(chain, draw, ...)`` where the
arrays say everything. They do not say how psi becomes proportions; the posterior's model does.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling.posterior import Posterior
from pgmult.topics.models.correlated import CorrelatedTopics

__all__ = [
    "Draws",
    "each_draw",
    "mean_of",
    "names_along",
    "num_chains",
    "spread",
    "stick_order_of",
    "with_model",
]

Draws = Mapping[str, NDArray[Any]]


def spread(num_draws: int, max_draws: int) -> IntArray:
    """At most `max_draws` of the numbers of draws, evenly spread."""
    count = min(as_positive_int(max_draws, "max_draws"), num_draws)
    return np.unique(np.linspace(0, num_draws - 1, count).astype(np.int64))


def with_model(posterior: Draws) -> Posterior:
    """The posterior itself, which must know its model: a plain mapping is refused."""
    if not isinstance(posterior, Posterior):
        raise ValueError(
            f"posterior must know its model, got a plain {type(posterior).__name__} (take it from"
            " pgmult.sample or pgmult.load, or make a Posterior with origin=)"
        )
    return posterior


def stick_order_of(posterior: Draws) -> IntArray:
    """The order of sticks of `CorrelatedTopics`, ``(num_topics,)``: other models are refused."""
    known = with_model(posterior)
    if not isinstance(known.model, CorrelatedTopics):
        raise ValueError(
            f"posterior must be of CorrelatedTopics, got one of {type(known.model).__name__}"
        )
    order = known.link.order
    return np.arange(known.model.num_topics) if order is None else np.asarray(order)


def num_chains(posterior: Draws, name: str) -> int:
    """Chains of a posterior, without reading draws from disk."""
    return posterior.num_chains if isinstance(posterior, Posterior) else len(posterior[name])


def each_draw(
    posterior: Draws, name: str, chain: int, max_draws: int | None = None
) -> Iterator[FloatArray]:
    """One variable's draws in a chain, in float64: all, or `max_draws` evenly spread.

    Raises
    ------
    KeyError
        If the variable was not kept.
    ValueError
        If there is no such chain, or no draw.
    """
    if name not in posterior:
        raise KeyError(f"the posterior holds no {name!r}, only {', '.join(posterior)}")
    chains = num_chains(posterior, name)
    if not 0 <= chain < chains:
        raise ValueError(f"chain must be from 0 to {chains - 1}, got {chain}")
    if isinstance(posterior, Posterior):
        num_draws, draws = posterior.num_draws, posterior.each(name, chain)
    else:
        num_draws, draws = len(posterior[name][chain]), iter(posterior[name][chain])
    if num_draws == 0:
        raise ValueError("the posterior has no draws yet")
    used = set(spread(num_draws, num_draws if max_draws is None else max_draws).tolist())
    return (np.asarray(d, dtype=np.float64) for i, d in enumerate(draws) if i in used)


def mean_of(draws: Iterable[FloatArray]) -> FloatArray:
    """The mean of some draws, one at a time in memory."""
    total = np.zeros(())
    count = 0
    for count, draw in enumerate(draws, start=1):  # noqa: B007
        total = total + draw
    return np.asarray(total / count)


def names_along(posterior: Draws, axis: str, size: int) -> list[str]:
    """Labels of an axis as strings; numbers where it has none."""
    coords = posterior.coords if isinstance(posterior, Posterior) else {}
    labels = coords.get(axis, range(size))
    return [str(label) for label in labels]
