"""When a run may stop before its last draw: once it is worth so many, or after so much time.

How much draws are worth is looked at after 50 draws of each chain, and again whenever a quarter
more have been made, from the draws alone: so a run with the same seed stops at the same draw, in
one piece or resumed. Time is measured, and the number of draws that were kept is written down.

>>> as_goal("400ess")
Goal(text='400ess', worth=400.0, seconds=inf)
>>> as_goal("5min").seconds
300.0
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import brief
from pgmult.core.typing import FloatArray, traits_of
from pgmult.sampling import diagnostics

_FIRST_LOOK, _GROWTH = 50, 1.25
_ENTRIES = 64  # of the variable that is watched
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


class Goal(NamedTuple):
    """What a run is to reach.

    Attributes
    ----------
    text : str
        As it was given.
    worth : float
        Independent draws that the main quantity is to be worth; infinite if time decides.
    seconds : float
        Infinite if it does not.
    """

    text: str
    worth: float
    seconds: float

    def looks(self, draws: int) -> Iterator[int]:
        """After how many draws of each chain it is asked whether the goal is reached."""
        look = float(_FIRST_LOOK)
        while math.isfinite(self.worth) and round(look) < draws:
            yield round(look)
            look *= _GROWTH
        yield draws


def as_goal(until: Any) -> Goal | None:
    """What ``until=`` says: "400ess", "90s", "5min" or "2h"; None of nothing.

    Raises
    ------
    ValueError
        If it says something else.
    """
    if until is None:
        return None
    text = until if isinstance(until, str) else ""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ess|s|min|h)\s*", text)
    if found is None or float(found[1]) <= 0.0:
        raise ValueError(
            "until must be a number of effective draws or a time, such as '400ess', '90s', '5min'"
            f" or '2h', got {brief(until)}"
        )
    number, unit = float(found[1]), found[2]
    if unit == "ess":
        return Goal(until.strip(), number, math.inf)
    return Goal(until.strip(), math.inf, number * _UNITS[unit])


def main_variable(model: Any, kept: Mapping[str, tuple[str, ...]]) -> str | None:
    """The first of the kept variables that chains can be expected to agree on.

    Parameters
    ----------
    model : Model
    kept : mapping from a variable to the names of its axes
    """
    basis = traits_of(model).basis_dims
    judged = [name for name, axes in kept.items() if basis.isdisjoint(axes)]
    return next(iter(judged or kept), None)


class Trace:
    """Some entries of the main variable, draw by draw, of all chains.

    Parameters
    ----------
    name : str
        Of the variable.
    chains : int
    labelled : bool
        Whether its labels mean something within a chain only: chains are then judged apart.
    """

    def __init__(self, name: str, chains: int, labelled: bool):
        self.name, self._labelled = name, labelled
        self._draws: list[list[FloatArray]] = [[] for _ in range(chains)]
        self._chosen: NDArray[np.int64] | None = None

    def add(self, chain: int, value: NDArray[Any]) -> None:
        """A draw of a chain."""
        flat = np.asarray(value, dtype=np.float64).ravel()
        if self._chosen is None:
            size = min(_ENTRIES, len(flat))
            self._chosen = np.linspace(0, len(flat) - 1, size).astype(np.int64) if size else None
        self._draws[chain].append(flat[:0] if self._chosen is None else flat[self._chosen])

    @property
    def length(self) -> int:
        """Draws that all chains have."""
        return min(map(len, self._draws))

    def worth(self, draws: int | None = None) -> float:
        """Effective draws of the entry that has fewest, of all chains' first draws; nan of few."""
        size = self.length if draws is None else draws
        if size < diagnostics.MIN_DRAWS:
            return math.nan
        values = np.array([chain[:size] for chain in self._draws])
        groups = [values[i : i + 1] for i in range(len(values))] if self._labelled else [values]
        with np.errstate(all="ignore"):
            found = sum(diagnostics.ess_bulk(group) for group in groups)
        known = np.asarray(found)[np.isfinite(found)]
        return float(known.min()) if len(known) else math.nan
