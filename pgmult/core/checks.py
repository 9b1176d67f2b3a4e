"""Posterior-predictive checks: do data that a model makes look like those it was given?

For each draw of the posterior data are simulated, and statistics of them and of the real data are
compared: p is the share of draws in which the simulated statistic is as large or larger. A model
that fits has p well inside (0, 1); since it has seen the data, p near the ends is rarer than under
a test, and means more (Gelman, Meng and Stern 1996, "Posterior predictive assessment of model
fitness via realized discrepancies").
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pgmult.core.answers import Answer
from pgmult.core.figures.forest import Forest
from pgmult.core.reports import Section
from pgmult.core.tabled import Column, Table, digits_of, interval, number, probability_text
from pgmult.core.typing import FloatArray

_ODD = 0.025  # p beyond which a statistic is
_MOST_NAMED = 6  # statistics, where data and simulations agree
_HOW_TO_READ = (
    "Statistics of the data and of data simulated from the posterior [90 % interval]; p: how often"
    " those are as large or larger. Near 0 or 1 the model lacks something."
)


class Kind(NamedTuple):
    """Statistics that are alike: a verdict names the most extreme of a kind.

    Attributes
    ----------
    name : str
        The plural, such as "pairs of columns".
    parts : sequence of str
        Statistics that explain this one if they are extreme on the same side.
    """

    name: str
    parts: Sequence[str] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PredictiveChecks(Answer):
    """Statistics of the data and of simulated data, with a verdict in words.

    Attributes
    ----------
    statistics : tuple of str
    observed, draws : arrays, ``(num_draws, num_statistics)``
        Statistics of the data, given each draw, and of data simulated from it.
    p_values : array, ``(num_statistics,)``
    verdict : str
        In words, with what to try.
    """

    statistics: tuple[str, ...]
    observed: FloatArray
    draws: FloatArray
    p_values: FloatArray
    verdict: str

    @classmethod
    def of(
        cls, draws: Iterable[tuple[Mapping[str, float], Mapping[str, float]]],
        advice: Mapping[str, tuple[str, str]], kinds: Mapping[str, Kind] | None = None,
    ) -> "PredictiveChecks":  # fmt: skip
        """The check of some statistics.

        Parameters
        ----------
        draws : iterable of pairs of mappings
            Of each draw, the statistics of the data and of what the model makes.
        advice : mapping
            What to say where the data have more of a statistic, and where they have less.
        kinds : mapping, optional
            Of statistics of which there are many.
        """
        both = list(zip(*draws, strict=True))  # of the data, and of what the model makes
        names = tuple(both[0][0])
        observed, made = (np.array([[of[n] for n in names] for of in each], float) for each in both)
        p = np.asarray((made > observed).mean(axis=0) + 0.5 * (made == observed).mean(axis=0))
        excess = np.abs((observed - made).mean(axis=0)) / np.maximum(made.std(axis=0), 1e-300)
        size = dict(zip(names, excess.tolist(), strict=True))
        sentences = list[str]()
        for side, is_odd in enumerate((p < _ODD, p > 1.0 - _ODD)):
            odd = {names[i]: advice[names[i]][side] for i in np.flatnonzero(is_odd)}
            sentences += _most_extreme(odd, size, kinds or {})
        return cls(names, observed, made, p, " ".join(sentences) or _agreement(names))

    def table(self) -> Table:
        """A row a statistic: of the data, of what the model makes, and p."""
        lower, upper = np.quantile(self.draws, [0.05, 0.95], axis=0)
        made, observed = self.draws.mean(axis=0), self.observed.mean(axis=0)
        forms = [number(digits_of(width)) if width else "{:.4g}".format for width in upper - lower]
        rows = zip(forms, made, lower, upper, strict=True)
        model = [f"{form(mean)} {interval(low, high, form)}" for form, mean, low, high in rows]
        data = [form(value) for form, value in zip(forms, observed.tolist(), strict=True)]
        columns = [
            Column("statistic", self.statistics, "statistic"),
            Column("data", observed, "data", data),
            Column("model", made, "model", model),
            Column("model_lower", lower), Column("model_upper", upper),
            Column("p", self.p_values, "p", probability_text),
        ]  # fmt: skip
        return Table(self.verdict, columns)

    def figure(self) -> Forest:
        """Return by how much the data exceed what the model simulates, a row for each statistic.

        Differences are in standard deviations of the simulated statistic, with 90 % intervals.
        """
        scale = self.draws.std(axis=0)
        gaps = (self.observed - self.draws) / np.where(scale > 0.0, scale, 1.0)
        lower, upper = np.quantile(gaps, [0.05, 0.95], axis=0)
        return Forest(
            labels=self.statistics, mean=gaps.mean(axis=0)[None], lower=lower[None],
            upper=upper[None], line=0.0, name="statistic",
            x_label="data less simulated data, in standard deviations of these",
            caption="The model fits a statistic whose interval covers 0.",
            cells=[Column("", self.p_values, "p", probability_text)],
        )  # fmt: skip

    def section(
        self, title: str = "Does the model make such data?", note: str = _HOW_TO_READ,
        **options: object,
    ) -> Section:  # fmt: skip
        """Return the section of a report, whose verdict holds that of the check."""
        table = replace(self.table(), caption="")
        return Section(title, note, table=table, figures=[self.figure(**options)])


def _most_extreme(
    sentences: Mapping[str, str], size: Mapping[str, float], kinds: Mapping[str, Kind]
) -> Iterable[str]:
    """What to say of extreme statistics: of each, but of those of a kind the most extreme one."""
    alike: dict[str, list[str]] = {}
    for name, sentence in sentences.items():
        kind = kinds.get(name, Kind(name))
        if sentence and sentences.keys().isdisjoint(kind.parts):
            alike.setdefault(kind.name, []).append(name)
    for kind_name, names in alike.items():
        yield sentences[max(names, key=size.__getitem__)]
        if len(names) > 1:
            yield f"These are the most extreme of {len(names)} such {kind_name}."


def _agreement(names: Sequence[str]) -> str:
    """Say in which statistics data and simulations agree: nothing else was looked at."""
    whole = [name for name in names if name.rpartition(", ")[0] not in names]  # not their parts
    listed = ", ".join(whole[:_MOST_NAMED])
    more = len(whole) - _MOST_NAMED
    listed += f" and {more} more" if more > 0 else ""
    return f"Data simulated from the model agree with the data in {listed}."
