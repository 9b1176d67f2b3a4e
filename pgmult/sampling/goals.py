"""When a run may stop before its last draw: once it is worth so many, or after so much time.

How much draws are worth is looked at after 50 draws of each chain (mostly 200 for "settled"), and
again
whenever a quarter more have been made, from the draws alone: so a run with the same seed stops at
the same draw, in one piece or resumed. Time is measured, and the number of draws that were kept is
written down.

A run is settled once the main results are worth a hundred independent draws a chain, or as
many as the model says, and the chains' log likelihoods agree. Chains of topics stay in different
modes and never agree. They are settled once the log likelihood of each is level, that is, its mean
moves by less than 1/4000 of itself from the first half of the draws to the second, and once most
numbers of the report are worth 50 effective draws of the chains that have the topic. A number that
still drifts, or that chains do not agree on, is worth few.

>>> as_goal("400ess").worth
400.0
>>> as_goal("5min").seconds
300.0
"""

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pgmult.core.arguments import brief
from pgmult.core.typing import AnyArray, FloatArray, IntArray, ReportsFirst, Traits, traits_of
from pgmult.sampling import diagnostics
from pgmult.sampling.labels import LabelMatches, match_rows
from pgmult.sampling.settled import SETTLED
from pgmult.sampling.store import LOG_LIKELIHOOD, Settings

_FIRST_LOOK, _GROWTH = 50, 1.25
_ENTRIES = 200  # of a variable that is watched
_WORTH = 100.0  # independent draws a chain, of what is settled
_MODES_WORTH = 50.0  # effective draws of all chains together, where these stay in different modes
_LEVEL = 1.0 / 4000.0  # of a log likelihood, by which it moves between the halves of a level chain
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


class Goal(NamedTuple):
    """What a run is to reach.

    Attributes
    ----------
    text : str
        As it was given.
    worth : float
        Independent draws that what is watched is to be worth; infinite if something else decides.
    seconds : float
        Infinite if time does not decide.
    settles : bool
        Whether log likelihoods have a say, too.
    shares : mapping from a variable to float
        What a draw of it counts, 1 of those that are not named.
    least_draws : int
        Of a chain, before the first look.
    """

    text: str
    worth: float
    seconds: float
    settles: bool = False
    shares: Mapping[str, float] = {}
    least_draws: int = _FIRST_LOOK

    @property
    def is_of_draws(self) -> bool:
        """Whether draws decide, and not time."""
        return math.isinf(self.seconds)

    @property
    def asks_for_level(self) -> bool:
        """Whether level log likelihoods decide alone: of chains that stay in modes of their own."""
        return self.settles and math.isinf(self.worth)

    def of(self, traits: Traits, chains: int) -> "Goal":
        """The goal of so many chains of a model."""
        if not self.settles:
            return self
        least = min([_WORTH, *traits.ess_targets.values()])
        shares = {name: least / value for name, value in traits.ess_targets.items()}
        worth = math.inf if traits.many_modes else least * chains
        return self._replace(worth=worth, shares=shares, least_draws=traits.least_draws)

    def looks(self, draws: int) -> Iterator[int]:
        """After how many draws of each chain it is asked whether the goal is reached."""
        look = float(self.least_draws)
        while self.is_of_draws and round(look) < draws:
            yield round(look)
            look *= _GROWTH
        yield draws


def as_goal(until: Any) -> Goal | None:
    """What ``until=`` says: "settled", "400ess", "90s", "5min" or "2h"; None of nothing.

    Raises
    ------
    ValueError
        If it says something else.
    """
    if until is None:
        return None
    text = until if isinstance(until, str) else ""
    if text.strip() == SETTLED:
        return Goal(SETTLED, _WORTH, math.inf, settles=True)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ess|s|min|h)\s*", text)
    if match is None or float(match[1]) <= 0.0:
        raise ValueError(
            "until must be a number of effective draws or a time, such as '400ess', '90s', '5min'"
            f" or '2h', or 'settled', got {brief(until)}"
        )
    number, unit = float(match[1]), match[2]
    worth, seconds = (number, math.inf) if unit == "ess" else (math.inf, number * _UNITS[unit])
    return Goal(text.strip(), worth, seconds)


class Watch:
    """Monitor of a run: its main results, its log likelihoods and its goal.

    Main results are the model's ``monitored``, among the variables of which every draw is kept, or
    else the first that chains can be expected to agree on.

    Parameters
    ----------
    model : Model
    settings : Settings
    goal : Goal, optional

    Attributes
    ----------
    names : list of str
        Variables that `add` takes.
    """

    def __init__(self, model: Any, settings: Settings, goal: Goal | None):
        traits, chains = traits_of(model), settings.chains
        names = [name for name in settings.keep if name not in settings.every]
        main = [name for name in traits.monitored if name in names]
        judged = [name for name in names if traits.basis_dims.isdisjoint(model.dims[name])]
        self.goal = None if goal is None else goal.of(traits, chains)
        self._settings = settings
        self._monitored = [
            Trace(name, chains, labelled=not traits.label_dims.isdisjoint(model.dims[name]))
            for name in main or (judged or names)[:1]
        ]
        self._score = Trace(LOG_LIKELIHOOD, chains, labelled=False)
        self.traces = {trace.name: trace for trace in (*self._monitored, self._score)}
        self._model: ReportsFirst[object, object] | None = None
        self.names = list(self.traces)
        if self.goal is not None and self.goal.asks_for_level and isinstance(model, ReportsFirst):
            self._model = model
            self.names += [n for n in names if n in model.reported_names and n not in self.names]
        self._reported: list[list[FloatArray]] = [[] for _ in range(chains)]

    def add(self, chain: int, values: Mapping[str, AnyArray]) -> None:
        """What a chain keeps of a draw."""
        for name, trace in self.traces.items():
            trace.add(chain, values[name])
        if self._model is not None:  # of one draw, so that no chain's numbers get out of step
            self._reported[chain].append(self._model.reported(values))

    def worth(self, draws: int | None = None) -> float:
        """Independent draws that the first, or all so far, are worth; nan if nobody knows."""
        shares = {} if self.goal is None else self.goal.shares
        worth = (trace.worth(draws) * shares.get(trace.name, 1.0) for trace in self._monitored)
        return min((value for value in worth if not math.isnan(value)), default=math.nan)

    def is_reached(self, draws: int, states: Sequence[object], data: object) -> bool:
        """Whether so many draws of each chain, now in these states, are what was asked for."""
        if self.goal is None or not self.goal.is_of_draws:
            return False
        if not self.goal.asks_for_level:
            is_worth = self.worth(draws) >= self.goal.worth
            return is_worth and (not self.goal.settles or self._score.agrees(draws))
        if self._model is None or not self._score.is_level(draws):
            return self._score.is_level(draws)
        probs = np.stack([self._model.label_probs(state, data) for state in states])
        values = np.array([chain[:draws] for chain in self._reported])
        return most_are_worth(_MODES_WORTH, values, match_rows(probs))

    def ending(self, draws: int, reached: bool) -> str:
        """Why a run ended that had a goal, in words."""
        assert self.goal is not None
        if not self.goal.is_of_draws:
            return f"by the time, {self.goal.text}"
        if not reached:
            worth = self.worth()
            said = "" if math.isnan(worth) else f", are worth {worth:.0f} independent ones"
            most = f"{draws} draws a chain, the most that draws= allows{said}"
            warnings.warn(f"until={self.goal.text!r} was not reached: {most}", stacklevel=4)
            ended = f"at the most draws that it was allowed, before its goal ({self.goal.text})"
            if math.isnan(worth) or math.isinf(self.goal.worth):
                return ended
            if worth < self.goal.worth:
                return f"{ended}: worth {worth:,.0f} independent ones, not {self.goal.worth:,.0f}"
            return f"{ended}: log likelihoods of chains still differed"
        why = f"the main results were worth {self.goal.worth:,.0f} independent draws"
        if self.goal.asks_for_level:
            why = "the log likelihood of each chain was level"
            if self._model is not None:
                why += f" and most numbers had {_MODES_WORTH:.0f} effective draws"
        return f"as soon as {why} ({self._settings.draws:,} draws a chain at most)"


class Trace:
    """Some entries of a variable, draw by draw, of all chains.

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
        self._chosen: IntArray | None = None

    def add(self, chain: int, value: AnyArray) -> None:
        """A draw of a chain."""
        flat = np.asarray(value, dtype=np.float64).ravel()
        if self._chosen is None:
            size = min(_ENTRIES, len(flat))
            self._chosen = np.linspace(0, len(flat) - 1, size).astype(np.int64)
        self._draws[chain].append(flat[self._chosen])

    def _first(self, draws: int | None) -> FloatArray:
        """All chains' first draws, ``(chain, draw, entries)``."""
        size = min(map(len, self._draws)) if draws is None else draws
        return np.array([chain[:size] for chain in self._draws])

    def agrees(self, draws: int) -> bool:
        """Whether R-hat of all chains' first draws is no larger than chance makes it."""
        values = self._first(draws)
        with np.errstate(all="ignore"):
            r_hat, worth = diagnostics.r_hat(values), diagnostics.ess_bulk(values)
        return bool(np.all(diagnostics.is_near(r_hat, worth) | np.isnan(r_hat)))

    def is_level(self, draws: int) -> bool:
        """Whether each chain's mean hardly moves between the halves of its first draws."""
        if draws < diagnostics.MIN_DRAWS:
            return False
        early, late = np.array_split(self._first(draws), 2, axis=1)
        before, after = early.mean(axis=1), late.mean(axis=1)
        return bool(np.all(np.abs(after - before) <= _LEVEL * np.abs(after)))

    def worth(self, draws: int | None = None) -> float:
        """Effective draws of the entry that has fewest, of all chains' first draws; nan of few."""
        values = self._first(draws)
        if values.shape[1] < diagnostics.MIN_DRAWS:
            return math.nan
        groups = [values[i : i + 1] for i in range(len(values))] if self._labelled else [values]
        with np.errstate(all="ignore"):
            sizes = sum(diagnostics.ess_bulk(group) for group in groups)
        finite = np.asarray(sizes)[np.isfinite(sizes)]
        return float(finite.min()) if len(finite) else math.nan


def most_are_worth(worth: float, values: FloatArray, matches: LabelMatches) -> bool:
    """Whether each number of three labels of four has so many effective draws.

    They are those of the chains that have the label.

    Parameters
    ----------
    worth : float
    values : array, ``(chain, draw, number, label)``
    matches : LabelMatches
        Labels of chains that go with those of the first.
    """
    if not values.size or values.shape[1] < diagnostics.MIN_DRAWS:
        return not values.size
    effective = []
    for label, has_it in enumerate(matches.found.T):
        chains = np.flatnonzero(has_it)
        one = np.stack([values[c, :, :, matches.order[c, label]] for c in chains])
        with np.errstate(all="ignore"):
            effective.append(diagnostics.ess_bulk(one))
    by_number = np.array(effective).T  # nan where draws never change
    moving = by_number[np.isfinite(by_number).any(axis=1)]
    return bool((np.nanquantile(moving, 0.25, axis=1) >= worth).all())
