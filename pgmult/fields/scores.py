r"""Do predicted intervals hold counts that were held out?

The rank of a truth among S draws of it is uniform on 0, ..., S when the draws are right (Talts et
al. 2018). Spread uniformly over its cell of (0, 1), and over the cells of the draws that equal it
(Czado, Gneiting and Held 2009, "Predictive model assessment for count data"), it lies in the
central interval of probability q with probability exactly q. `shares_inside` is that probability,
which needs no draw of its own: it is right for counts as well as for probabilities, and for few
draws.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> pi = rng.dirichlet(np.full(3, 50.0), size=(100, 200))  # draws of the probabilities of 200 rows
>>> truth = rng.dirichlet(np.full(3, 50.0), size=200)
>>> print(calibration(pi, rng.multinomial(30, truth), random_seed=0))
As wide as they should be: 95 % intervals contain 94 % of the counts. 600 cells.
<BLANKLINE>
intervals of  hold   ±
50%           49.4%  2.1%
80%           80.5%  1.8%
95%           94.0%  1.0%
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pgmult.core.answers import Answer
from pgmult.core.arguments import as_real, as_seed
from pgmult.core.figures.forest import Forest
from pgmult.core.scores import mean_by_token
from pgmult.core.tabled import Column, Table
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_counts, as_simplex

_LEVELS = (0.5, 0.8, 0.95)
_TOLERANCE = 0.02  # of a coverage


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Calibration(Answer):
    """Coverage of held-out counts by central intervals; print it for a verdict in words.

    Attributes
    ----------
    levels : array, ``(num_levels,)``
        Nominal probabilities of the intervals: 50, 80 and 95 %.
    covered : array, ``(num_levels,)``
        Shares of counts inside.
    standard_errors : array, ``(num_levels,)``
        Computed over rows, since the categories of a row are dependent.
    num_cells : int
        Cells that were looked at.
    draws : array, ``(num_rows, num_levels)``
        Share of each row's cells inside.
    """

    levels: FloatArray
    covered: FloatArray
    standard_errors: FloatArray
    num_cells: int
    draws: FloatArray

    @property
    def in_words(self) -> str:
        """The numbers in one line."""
        rows = zip(self.levels, self.covered, self.standard_errors, strict=True)
        return "coverage " + ", ".join(f"{q:.0%}: {c:.1%} ± {e:.1%}" for q, c, e in rows)

    @property
    def verdict(self) -> str:
        """Interpretation of the coverage, and what to try."""
        off = self.covered - self.levels
        clear = np.abs(off) > np.maximum(3.0 * np.nan_to_num(self.standard_errors), _TOLERANCE)
        level, share = 100 * self.levels[-1], 100 * self.covered[-1]
        said = f"{level:.0f} % intervals contain {share:.0f} % of the counts"
        if (off[clear] < 0.0).any():
            return (
                f"Too narrow: {said}. Try overdispersion=0.1, or + White(0.1) on what has an effect"
                " of its own; a rougher covariance, Matern(0.5) or Matern(1.5) in time and place;"
                ' and hyperparameters="sampled", shared=False'
            )
        if clear.any():
            return (
                f"Too wide: {said}. Try a smoother covariance, one without White or overdispersion,"
                " or priors of its variances that allow less; and more draws, if there are few"
            )
        return f"As wide as they should be: {said}"

    def figure(self) -> Forest:
        """Return the shares of counts inside, with their standard errors, by nominal level."""
        ends = self.covered + np.array([[0.0], [-1.0], [1.0]]) * np.nan_to_num(self.standard_errors)
        mean, lower, upper = ends[:, None]
        return Forest(
            labels=[f"{level:.0%} intervals" for level in self.levels],
            mean=mean, lower=lower, upper=upper, line=None, span=(0.0, 1.0),
            x_label="share of the counts inside, ± standard error",
            caption=self.verdict + ".",
        )  # fmt: skip

    def table(self) -> Table:
        """One row per level, headed by the verdict."""
        percent = "{:.1%}".format
        columns = [
            Column("level", self.levels, "intervals of", "{:.0%}".format),
            Column("covered", self.covered, "hold", percent),
            Column("standard_error", self.standard_errors, "±", percent),
        ]
        return Table(f"{self.verdict}. {self.num_cells:,} cells.", columns)


def calibration(
    draws: ArrayLike, counts: ArrayLike, *, least: float = 1.0, random_seed: int | None = None
) -> Calibration:
    """Check predictions of held-out rows; if they fail, say what to try.

    Parameters
    ----------
    draws : array, ``(num_draws, num_rows, num_categories)``
        Of the probabilities at the held-out rows: `draws` of `FieldPredictions`. Counts of the
        rows' totals are drawn from each.
    counts : integer array, ``(num_rows, num_categories)``
    least : float
        Cells with a smaller mean predicted count are left out: they are nearly always 0.
    random_seed : int, optional
        Of the counts that are drawn.

    Raises
    ------
    ValueError
        If shapes do not agree, or no cell is left.
    """
    pi, table = as_simplex(draws, "draws"), as_counts(counts)
    if pi.ndim != 3 or pi.size == 0 or pi.shape[1:] != table.shape:
        expected = f"(draws, rows, categories) to go with counts of shape {table.shape}"
        raise ValueError(f"draws must be {expected}, got shape {pi.shape}")
    rng = np.random.default_rng(as_seed(random_seed))
    totals = np.broadcast_to(table.sum(axis=1), pi.shape[:2])
    drawn = rng.multinomial(totals, pi / pi.sum(axis=-1, keepdims=True))
    enough = drawn.mean(axis=0) >= as_real(least, "least", minimum=0.0)
    if not enough.any():
        raise ValueError(f"counts must have a cell with {least:g} expected, got none (try least=0)")
    rows = enough.any(axis=1)
    cells = enough.sum(axis=1)[rows]
    inside = np.where(enough, shares_inside(drawn, table, _LEVELS), 0.0).sum(axis=2)[:, rows]
    covered, errors = np.array([mean_by_token(share, cells) for share in inside]).T
    return Calibration(np.array(_LEVELS), covered, errors, int(enough.sum()), (inside / cells).T)


def shares_inside(draws: NDArray[Any], truth: NDArray[Any], levels: Sequence[float]) -> FloatArray:
    """Degree to which each truth lies inside each central interval of its draws, from 0 to 1.

    Parameters
    ----------
    draws : array, ``(num_draws, ...)``
    truth : array, ``(...)``
    levels : sequence of floats in (0, 1)

    Returns
    -------
    array, ``(num_levels, ...)``
    """
    cells = len(draws) + 1  # ends of the interval of (0, 1) in which the rank is uniform
    low = (draws < truth).sum(axis=0) / cells
    high = ((draws <= truth).sum(axis=0) + 1) / cells
    half = 0.5 * np.reshape(levels, (-1, *(1,) * low.ndim))
    inside = np.minimum(high, 0.5 + half) - np.maximum(low, 0.5 - half)
    return np.asarray(np.maximum(inside, 0.0) / (high - low))
