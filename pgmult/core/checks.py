"""Posterior-predictive checks: do data that a model makes look like those it was given?

For each draw of the posterior data are simulated, and statistics of them and of the real data are
compared: p is the share of draws in which the simulated statistic is as large or larger. A model
that fits has p well inside (0, 1); since it has seen the data, p near the ends is rarer than under
a test, and means more (Gelman, Meng and Stern 1996, "Posterior predictive assessment of model
fitness via realized discrepancies").
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from pgmult.core.tabled import Column, Table, Tabled
from pgmult.core.typing import FloatArray

_ODD = 0.025  # p beyond which a statistic is


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PredictiveChecks(Tabled):
    """Statistics of the data and of what the model makes; printing it says what to think of them.

    Attributes
    ----------
    statistics : tuple of str
    observed, replicated : arrays, ``(num_draws, num_statistics)``
        Of the data, given each draw, and of data simulated from it.
    p_values : array, ``(num_statistics,)``
    verdict : str
        In words, with what to try.
    """

    statistics: tuple[str, ...]
    observed: FloatArray
    replicated: FloatArray
    p_values: FloatArray
    verdict: str

    @classmethod
    def of(
        cls,
        draws: Iterable[tuple[Mapping[str, float], Mapping[str, float]]],
        advice: Mapping[str, tuple[str, str]],
    ) -> "PredictiveChecks":
        """The check of some statistics.

        Parameters
        ----------
        draws : iterable of pairs of mappings
            Of each draw, the statistics of the data and of what the model makes.
        advice : mapping
            What to say where the data have more of a statistic, and where they have less.
        """
        of_data, of_made = zip(*draws, strict=True)
        names = tuple(of_data[0])
        seen, made = (
            np.array([[each[name] for name in names] for each in of], dtype=np.float64)
            for of in (of_data, of_made)
        )
        above, equal = (made > seen).mean(axis=0), (made == seen).mean(axis=0)
        p = above + 0.5 * equal
        odd = [advice[n][0] for n, value in zip(names, p, strict=True) if value < _ODD]
        odd += [advice[n][1] for n, value in zip(names, p, strict=True) if value > 1.0 - _ODD]
        verdict = " ".join(filter(None, odd)) or "Data that the model makes look like the data."
        return cls(names, seen, made, np.asarray(p), verdict)

    def table(self) -> Table:
        """A row a statistic: of the data, of what the model makes, and p."""
        lower, upper = np.quantile(self.replicated, [0.05, 0.95], axis=0)
        made = self.replicated.mean(axis=0)
        model = [
            f"{mean:.4g} [{low:.4g}, {high:.4g}]"
            for mean, low, high in zip(made, lower, upper, strict=True)
        ]
        return Table(
            self.verdict,
            [
                Column("statistic", self.statistics, "statistic"),
                Column("data", self.observed.mean(axis=0), "data", lambda x: f"{x:.4g}"),
                Column("model", made, "model", model),
                Column("model_lower", lower),
                Column("model_upper", upper),
                Column("p", self.p_values, "p", lambda p: f"{p:.2f}"),
            ],
        )
