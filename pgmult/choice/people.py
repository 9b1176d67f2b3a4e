"""Utilities and probabilities, draw by draw, for people in the data and for anybody else.

The utility of a row is linear in its attributes; so are its derivatives in a column of the table,
whose slopes `slopes_in` has from the design: products, powers, logarithms and splines are changed
as the formula says. People in the data have their own tastes. Anybody else is integrated over the
population, by a Sobol sequence with a shift of its own in each draw (Cranley and Patterson 1976,
"Randomization of number theoretic methods for multiple integration"), of so many points that their
error is a tenth of the posterior standard deviation or less.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from pgmult.choice.data import ChoiceRows
from pgmult.core.arguments import as_choice, as_kind
from pgmult.core.estimands import Estimand
from pgmult.core.typing import BoolArray, FloatArray, Generator, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.formulas.design import table_of
from pgmult.formulas.language import parse
from pgmult.sampling.posterior import Posterior

_FEWEST_POINTS, _MOST_POINTS = 64, 4096
_MOST_CELLS = 1 << 22  # rows times points
_PILOTS = 16  # draws that say how many points are needed
_SMALL = 0.1  # error of an integral, in posterior standard deviations
_FEWEST_CODES, _MOST_CODES = 3, 6
_STEP = 1e-5  # of a number, for the derivative of the design


def data_of_run(run: Posterior, name: str = "run") -> ChoiceRows:
    """The data of a run of a choice model."""
    as_kind(run, name, Posterior)
    return as_kind(run.data, name, ChoiceRows, "a run of MixedLogit")


def answer(
    draws: FloatArray, axes: Mapping[str, Any], caption: str, probability: float, **more: Any
) -> Estimand:
    """Draws along axes with labels, in this order."""
    return Estimand(draws, tuple(axes), axes, caption=caption, probability=probability, **more)


def of_settings(draws: Sequence[FloatArray], axes: Mapping[str, Any]) -> FloatArray:
    """Draws at each of several settings, along all axes: those of settings come first."""
    return np.stack(draws, axis=1).reshape(-1, *(len(labels) for labels in axes.values()))


def thinned(run: Posterior, max_draws: int, *names: str) -> list[FloatArray]:
    """Draws of variables, at most `max_draws`, chains one after the other."""
    most = as_positive_int(max_draws, "max_draws")
    return [np.concatenate(list(run.thinned(name, most))) for name in names]


def population(run: Posterior, max_draws: int = sys.maxsize) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of people's coefficients, ``(num_draws, num_columns)``."""
    data, signed = data_of_run(run), data_of_run(run).signs != 0.0
    centre, cov, fixed = thinned(run, max_draws, "mean", "cov", "coefficients")
    mean, sd = np.zeros((2, len(centre), len(data.names)))
    mean[:, data.fixed], var = fixed, np.diagonal(cov, axis1=1, axis2=2)
    with np.errstate(over="ignore"):
        of_exp = np.exp(np.where(signed, centre + 0.5 * var, 0.0))
        mean[:, data.random] = np.where(signed, data.signs * of_exp, centre)
        spread = of_exp * np.sqrt(np.expm1(np.where(signed, var, 0.0)))
        sd[:, data.random] = np.where(signed, spread, np.sqrt(var))
    return mean, sd


class PeopleDraw(NamedTuple):
    """One draw of the coefficients of the people who choose.

    Attributes
    ----------
    data : ChoiceRows
    shared : array, ``(num_points, num_random)``
        Coefficients of people of the population.
    own : array, ``(num_rows, num_random)``
        Coefficients of the person of each row, where the data have this person.
    is_new : bool array, ``(num_rows,)``
        Whether the person of a row is anybody of the population.
    fixed : array, ``(num_fixed,)``
        Coefficients that all people share.
    """

    data: ChoiceRows
    shared: FloatArray
    own: FloatArray
    is_new: BoolArray
    fixed: FloatArray

    def linear(self, x: FloatArray, offset: FloatArray) -> FloatArray:
        """The sum of attributes times coefficients, ``(num_rows, num_points)``."""
        varies = x[:, self.data.random]
        out = np.einsum("rk,rk->r", varies, self.own)[:, None]
        if self.is_new.any():
            out = np.where(self.is_new[:, None], varies @ self.shared.T, out)
        return np.asarray(out + (x[:, self.data.fixed] @ self.fixed + offset)[:, None])

    @property
    def utilities(self) -> FloatArray:
        """Utilities of all rows, ``(num_rows, num_points)``."""
        return self.linear(self.data.x, self.data.offset)

    @property
    def probs(self) -> FloatArray:
        """Probabilities of all rows, with sum 1 in each occasion, ``(num_rows, num_points)``."""
        return self.data.probs_of(self.utilities)


def normal_points(number: int, size: int, rng: Generator) -> FloatArray:
    """Evenly spread standard normal points, shifted at random, ``(number, size)``."""
    if not size:
        return np.zeros((1, 0))
    shifted = (_even_points(number, size) + rng.uniform(size=size)) % 1.0
    return np.asarray(ndtri(np.clip(shifted, 1e-9, 1.0 - 1e-9)))


@lru_cache(maxsize=4)
def _even_points(number: int, size: int) -> FloatArray:
    """The first points of a Sobol sequence, the same for all draws."""
    return np.asarray(qmc.Sobol(size, scramble=False).random(number))


def people_draws(
    run: Posterior, data: ChoiceRows, max_draws: int, codes: IntArray | None = None, seed: int = 0
) -> Iterator[PeopleDraw]:
    """Draws of the people of a table, whose `codes` are -1 where they are not in the data."""
    codes = np.arange(data.num_people) if codes is None else codes
    of_row = codes[data.person_of_row]
    mean, cov, fixed = thinned(run, max_draws, "mean", "cov", "coefficients")
    is_new, roots = of_row < 0, np.linalg.cholesky(cov)
    people = None if is_new.all() else thinned(run, max_draws, "tastes")[0]

    def draw(s: int, rng: Generator, number: int) -> PeopleDraw:
        tastes = mean[[s]] if people is None else np.vstack([people[s], mean[s]])  # -1: the mean
        points = normal_points(number, mean.shape[1], rng) if is_new.any() else roots[s][:1]
        shared = data.coefficients_of(mean[s] + points @ roots[s].T)
        return PeopleDraw(data, shared, data.coefficients_of(tastes)[of_row], is_new, fixed[s])

    rng, number = np.random.default_rng(seed), _FEWEST_POINTS
    pilots = np.linspace(0, len(mean) - 1, min(len(mean), _PILOTS)).astype(np.int64)
    most = min(_MOST_POINTS, max(_FEWEST_POINTS, _MOST_CELLS // data.num_rows))
    while is_new.any() and mean.shape[1] and number < most:
        twice = [[draw(s, rng, number).probs.mean(axis=1) for _ in range(2)] for s in pilots]
        probs = np.array(twice)
        error = 0.25 * np.mean((probs[:, 0] - probs[:, 1]) ** 2)
        if error <= _SMALL**2 * np.mean(probs.mean(axis=1).var(axis=0)):
            break
        number *= 2
    for s in range(len(mean)):
        yield draw(s, rng, number)


def slopes_in(data: ChoiceRows, column: str) -> tuple[FloatArray, FloatArray]:
    """Derivatives of attributes, and of the offset behind them, in a column; and its cells.

    Raises
    ------
    ValueError
        If it is not a column of numbers of the formula.
    """
    table = table_of(data.design)
    cells = table[as_choice(column, "column", list(table))]
    if cells.dtype.kind not in "fiub":
        raise ValueError(f"{column} must be a column of numbers, got labels or dates")
    cells = cells.astype(np.float64)
    step = _STEP * np.where(cells != 0.0, np.abs(cells), float(np.std(cells)) or 1.0)
    places, low, high = [cells + step, cells - step], cells.min(), cells.max()
    if low < high:  # splines end there
        places = [np.clip(place, low, high) for place in places]
    ends = [with_column(data, column, place) for place in places]
    x, other = (np.column_stack([end.x, end.offset]) for end in ends)
    return (x - other) / (places[0] - places[1])[:, None], cells


def with_column(data: ChoiceRows, column: str, value: object) -> ChoiceRows:
    """The same rows with other cells in a column, or one value in all."""
    cells = value if isinstance(value, np.ndarray) else np.full(data.num_rows, value)
    table = table_of(data.design) | {column: cells}
    return data.made_of(data.design.like(table, num_rows=data.num_rows))


def attributes_of(data: ChoiceRows) -> dict[str, list[str]]:
    """Columns of the formula, in its order, that differ within occasions; and their labels."""
    table, first = table_of(data.design), data.first_row
    groups = {name for term in data.design.terms for name in term.variables}  # people
    order = [*parse(str(data.design.formula)).columns, *table]
    differs = [n for n in table if n not in groups and (table[n] != table[n][first]).any()]
    return {name: data.design.levels_of(name) for name in sorted(differs, key=order.index)}


def numeric_attributes(data: ChoiceRows) -> list[str]:
    """Columns of numbers of the formula that differ within occasions."""
    return [name for name, labels in attributes_of(data).items() if not labels]


def codes_in_words(data: ChoiceRows) -> list[str]:
    """A sentence on each attribute of three to six whole numbers on end from 1 or more: codes?"""
    table, out = table_of(data.design), list[str]()
    for name in numeric_attributes(data):
        values = np.unique(table[name][~data.is_none])
        first, last, few = values[0], values[-1], _FEWEST_CODES <= len(values) <= _MOST_CODES
        if few and first >= 1 and np.array_equal(values, round(first) + np.arange(len(values))):
            has = f"{name} has the whole numbers {first:g} to {last:g} and is read as a number"
            out.append(f"{has}, with one slope: write C({name}) if these are labels.")
    return out
