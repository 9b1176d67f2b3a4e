"""Comparison of a model with simple rivals, or of two runs, by how well they predict observations.

All families score in the same way: each observation is predicted from all the others. `Comparison`
says in the first sentence of a report whether the model predicts better than simple rivals, as well
or worse; `RunComparison` does the same of two runs.

>>> import numpy as np
>>> from pgmult.core.scores import Score
>>> totals = np.full(50, 10)
>>> model = Score(np.linspace(-9.0, -8.0, 50), totals)
>>> pooled = Score(model.by_unit - 1.0 + 0.3 * np.cos(np.arange(50)), totals)
>>> compared = Comparison.of({"this model": model, "pooled shares": pooled}, "a count", "Made up.")
>>> print(compared.sentences[0])
The model predicts a count better than pooled shares: +0.100 ± 0.003 nats.
>>> compared.draws.shape
(50, 2)
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from pgmult.core.answers import Answer
from pgmult.core.arguments import as_kind, as_mapping, as_strings
from pgmult.core.figures.forest import Forest
from pgmult.core.markup import Leading
from pgmult.core.reports import Section
from pgmult.core.scores import Gain, Score
from pgmult.core.tabled import Column, Table
from pgmult.core.typing import FloatArray

_TITLE = "Does it predict better than simple models?"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Answer):
    """A model and simple rivals on the same observations; print it to see which one to use.

    Attributes
    ----------
    names : tuple of str
        The model first.
    levels : tuple of float
        Mean log probability of an observation, nats.
    gains : tuple of Gain
        By how much the model is ahead of each; the first, of itself, is 0.
    draws : array, ``(num_units, num_models)``
        Contributions of the units: sums of their log probabilities, nats. The standard errors of
        `gains` are made of their differences.
    unit : str
        What an observation is: "a count".
    how : str
        What was predicted from what, in a sentence or more.
    advice : mapping from the name of a rival to how to use it instead
    simpler : collection of str
        Rivals that are preferred to the model if they are as good.
    labels : sequence of str
        Names of the units, such as their row of the table; or none.
    """

    names: tuple[str, ...]
    levels: tuple[float, ...]
    gains: tuple[Gain, ...]
    draws: FloatArray
    unit: str
    how: str
    advice: Mapping[str, str]
    simpler: Collection[str]
    labels: Sequence[str] = ()

    subject: ClassVar[str] = "the model"

    @classmethod
    def of(
        cls, scores: Mapping[str, Score], unit: str, how: str,
        advice: Mapping[str, str] | None = None, simpler: Collection[str] | None = None,
        labels: Sequence[str] = (),
    ) -> Self:  # fmt: skip
        """The comparison of scores of the same observations, the model's first.

        Rivals stand from the simplest on; all of them are simpler than the model unless it is said
        which.

        Raises
        ------
        ValueError
            If there is no rival, or a score is of other observations.
        """
        members = [as_kind(x, "scores", Score) for x in as_mapping(scores, "scores").values()]
        if len(members) < 2:
            raise ValueError(f"scores must be of a model and a rival at least, got {len(members)}")
        gains = (Gain(0.0, 0.0), *(members[0].gain_over(rival) for rival in members[1:]))
        doubt = members[0].large_k
        if doubt > 0.05:
            rough = f"{100 * doubt:.0f} % of the observations, on which the model depends too much"
            how += f" This is rough for {rough} to be predicted without them (Pareto k above 0.7)."
        levels = tuple(score.mean for score in members)
        names = tuple(scores)
        simpler = names[1:] if simpler is None else [n for n in names[1:] if n in simpler]
        by_unit = np.stack([score.by_unit for score in members], axis=1)
        return cls(names, levels, gains, by_unit, unit, how, dict(advice or {}), simpler, labels)

    @property
    def rival(self) -> int:
        """The place of the best rival."""
        return 1 + int(np.argmax(self.levels[1:]))

    @property
    def best(self) -> str:
        """What to use: the best, but the simplest of those that are as good as the model."""
        if self.gains[self.rival].sign < 0:
            return self.names[self.rival]
        return next((self.names[place] for place in self._as_good), self.names[0])

    @property
    def _as_good(self) -> list[int]:
        """Simpler rivals that are level with the model."""
        gains = enumerate(self.gains)
        return [i for i, g in gains if i and g.sign <= 0 and self.names[i] in self.simpler]

    @property
    def sentences(self) -> list[str]:
        """Better, level or worse, by how much, and what to use instead."""
        return [Leading(self._sentence(), _TITLE)]

    def _sentence(self) -> str:
        place, count = self.rival, len(self.names) - 1
        name, gain = self.names[place], self.gains[place]
        rivals = "" if count == 1 else f", the best of {count} rivals"
        predicts, by = f"The model predicts {self.unit}", f"{gain} nats."
        if gain.sign > 0:
            return f"{predicts} better than {name}{rivals}: {by}"
        if not math.isfinite(gain.error):
            few = f"The data have one unit, too few to compare the model with {name}"
            return f"{few} ({gain.mean:+.3f} nats)."
        if gain.sign < 0:
            return f"{predicts} worse than {name}: {by} {self._take(name)}."
        if not self._as_good:
            return f"{predicts} better than all simpler rivals, and as well as {name}: {by}"
        level = [i for i in self._as_good if not self.gains[i].is_ahead]
        if not level:
            clearly = f"better than {name}{rivals}, but not clearly: {by}"
            return f"{predicts} {clearly}{self._deciding(place)}"
        instead, why = self.names[level[0]], self._deciding(level[0])
        take = f"{self._take(instead)}, unless you need what the model says beyond it."
        return f"{predicts} no better than {instead}: {self.gains[level[0]]} nats.{why} {take}"

    def _deciding(self, place: int) -> str:
        """Name the unit that makes most of the error of a difference, if one does."""
        apart = np.square(self.draws[:, 0] - self.draws[:, place])
        largest = int(np.argmax(apart))
        if not self.labels or apart[largest] < 0.5 * apart.sum():
            return ""
        row = self.labels[largest]
        return f" Most of this error comes from one row, {row}: look at its counts."

    def _take(self, name: str) -> str:
        take = self.advice.get(name, f"take {name} instead")
        return f"{take[0].upper()}{take[1:]}"

    def table(self) -> Table:
        """One row per model, the best first."""
        models = sorted(zip(self.levels, self.names, self.gains, strict=True), key=lambda m: -m[0])
        levels, names, gains = map(list, zip(*models, strict=True))
        itself = self.gains[0]
        texts = ["" if gain is itself else f"{gain}" for gain in gains]
        verdicts = ["" if gain is itself else gain.verdict for gain in gains]
        columns = [
            Column("forecaster", names, "forecaster"),
            Column("nats", levels, f"nats {self.unit}", "{:.4f}".format),
            Column("ahead_by", [g.mean for g in gains], f"{self.subject} is ahead by", texts),
            Column("error", [g.error for g in gains]), Column("verdict", verdicts, "it is"),
        ]  # fmt: skip
        return Table(" ".join([*self.sentences, self.how]), columns)

    def figure(self) -> Forest:
        """Return by how much the model is ahead of each rival, with twice the error."""
        gains = self.gains[1:]
        mean = np.array([[gain.mean for gain in gains]])
        error = 2.0 * np.array([[gain.error for gain in gains]])
        texts = [f"{gain} nats" for gain in gains]
        verdicts = [gain.verdict for gain in gains]
        cells = [
            Column("", texts, f"{self.subject} is ahead by"), Column("", verdicts, "it is"),
            Column("", [f"{level:.4f}" for level in self.levels[1:]], f"nats {self.unit}"),
        ]  # fmt: skip
        return Forest(
            labels=self.names[1:], mean=mean, lower=mean - error, upper=mean + error,
            name="rival", x_label=f"{self.subject} is ahead by, nats {self.unit}",
            caption=f"Right of the line {self.subject} is better.", cells=cells, texts=texts,
            note=f"Points right of the line: {self.subject} is better; bars are twice the error."
            f" Its own score is {self.levels[0]:.4f} nats {self.unit}.",
        )  # fmt: skip

    def section(self, title: str = _TITLE, note: str = "", **options: object) -> Section:
        """Return the section of a report, whose verdict holds the `sentences`."""
        table, figures = self.table(), [self.figure(**options)]
        rule = "errors are over units and chains, and a difference below twice its error is level"
        note = note or f"{self.how} Higher is better; {rule}."
        return Section(
            title, note, head=table.head, rows=table.rows, figures=figures, is_drawn=True
        )


class RunComparison(Comparison):
    """Two runs on the same observations; print it to see which of them predicts better."""

    __slots__ = ()

    @property
    def subject(self) -> str:  # type: ignore[override]
        """The name of the first run."""
        return self.names[0]

    def _sentence(self) -> str:
        gain, (one, other) = self.gains[1], self.names
        name = f"{one[:1].upper()}{one[1:]}"
        return f"{name} predicts {self.unit} {gain.word} {other}: {gain} nats."


def between_two(names: object, scores: Iterable[Score], unit: str, how: str) -> RunComparison:
    """Compare how well two runs predict the same observations.

    Parameters
    ----------
    names : pair of str
        Names of the runs.
    scores : iterable of two Scores
        It is begun once the names are known to be two.
    unit : str
        An observation in words: "a count".
    how : str
        What was predicted from what.
    """
    called = as_strings(names, "names")
    if len(called) != 2:
        raise ValueError(f"names must be two, one of each run, got {len(called)}")
    one, other = called
    if one == other:
        one, other = f"{one} (1)", f"{other} (2)"
    return RunComparison.of(dict(zip((one, other), scores, strict=True)), unit, how)


def as_comparison(value: object) -> "Comparison | bool":
    """The argument of a report: one that was made before, or whether to make one."""
    return value if isinstance(value, bool) else as_kind(value, "comparison", Comparison)
