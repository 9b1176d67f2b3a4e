"""What an input does to the shares: averages over everything else that was observed.

>>> import numpy as np, pgmult
>>> table = {"year": [1990, 1990, 2000, 2000], "name": ["Ada", "Ben"] * 2, "n": [30, 10, 10, 30]}
>>> data = pgmult.read(table).field("year", "name", count="n")
>>> run = pgmult.sample(
...     pgmult.fields.MultinomialGP(pgmult.fields.covariances.Matern(1.5, 10.0)), data, keep="psi",
...     draws=20, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> found = effects(run, "year")
>>> found.axes, found.difference("year", 2000, 1990).mean.shape
(('year', 'category'), (2,))
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_choice, as_list, as_mapping, under_name
from pgmult.core.estimands import Estimand, Labels
from pgmult.core.labels import find_labels, labels_of
from pgmult.core.typing import FloatArray, IntArray
from pgmult.fields.predictions import predict
from pgmult.sampling.posterior import Posterior


def effects(
    run: Posterior,
    column: str,
    values: Sequence[Any] | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    by: str | None = None,
    probability: float = 0.9,
    max_draws: int = 1000,
) -> Estimand:
    """Mean probabilities of the categories at each value of an input.

    Averages over the observed rows that have the value, each row alike, whatever was counted there.
    ``found.difference(column, a, b)`` compares two values. Where other inputs change with the one
    asked for, so do the rows that are averaged: hold them by `at`, or look at each by `by`.

    Parameters
    ----------
    run : Posterior
        Of a field, that kept ``psi`` or ``pi``.
    column : str
        An input, by the name that it has in the table.
    values : sequence, optional
        Of the column; all that were observed if left out.
    at : mapping from column to a value, or to several, optional
        Only rows that have these.
    by : str, optional
        Another input: averages are taken for each of its values.
    probability : float
        Of the intervals.
    max_draws : int

    Returns
    -------
    Estimand
        Axes `column`, then `by` if given, and category.

    Raises
    ------
    ValueError
        If there is no such input or value, or no row has it.
    """
    found = predict(run, inputs="seen", max_draws=max_draws)
    rows = found.columns_of("row")
    as_choice(column, "column", list(rows))
    chosen = np.ones(found.draws.shape[1], dtype=np.bool_)
    fixed = as_mapping(at, "at")
    for name, held in fixed.items():
        as_choice(name, "at", list(rows))
        given = list(held) if isinstance(held, list | tuple | np.ndarray) else [held]
        chosen &= _which(rows[name], given, name, "at") >= 0
    if not chosen.any():
        raise ValueError(f"at must leave a row of the data, {dict(fixed)!r} leaves none")
    axes = {column: _values(rows[column], chosen, values, column)}
    if by is not None:
        by = as_choice(by, "by", [name for name in rows if name != column])
        axes[by] = _values(rows[by], chosen, None, by)
    places = [_which(rows[name], labels, name, "values") for name, labels in axes.items()]
    chosen &= np.logical_and.reduce([place >= 0 for place in places])
    sizes = tuple(map(len, axes.values()))
    cell = np.ravel_multi_index([place[chosen] for place in places], sizes)
    number = np.bincount(cell, minlength=int(np.prod(sizes)))
    if (number == 0).any():
        empty = np.unravel_index(int(np.argmin(number)), sizes)
        told = ", ".join(
            f"{name} {labels[i]}" for (name, labels), i in zip(axes.items(), empty, strict=True)
        )
        raise ValueError(f"each combination must have been observed, none was of {told}")
    draws = _means(found.draws[:, chosen], cell, number).reshape(-1, *sizes, found.draws.shape[2])
    labels: dict[str, Labels] = dict(axes)
    if "category" in found.labels:
        labels["category"] = found.labels["category"]
    held = ", ".join(f"{name} {value}" for name, value in fixed.items())
    return Estimand(
        draws, (*axes, "category"), labels,
        caption=f"Mean probabilities of the categories by {column}"
        + (f" and {by}" if by else "") + (f", at {held}." if held else "."),
        probability=probability,
    )  # fmt: skip


def _values(
    cells: Any, chosen: NDArray[np.bool_], given: Sequence[Any] | None, name: str
) -> list[Any]:
    """The values asked for, as the column has them."""
    known = np.unique(np.asarray(cells)[chosen])
    if given is None:
        return list(known)
    asked = as_list(given, "values", "values of the column")
    if not asked:
        raise ValueError("values must hold a value of the column, got none")
    with under_name("values", of=f"column {name!r}"):
        return [known[place] for place in find_labels(labels_of(known, name), asked, name)]


def _which(cells: Any, values: Sequence[Any], name: str, argument: str) -> IntArray:
    """Which of the values each cell is; -1 for none."""
    texts = labels_of(cells, name)
    known = np.array(list(dict.fromkeys(texts.tolist())), dtype=np.str_)
    with under_name(argument, of=f"column {name!r}"):
        asked = known[find_labels(known, list(values), name)].tolist()
    place = {text: i for i, text in enumerate(asked)}
    return np.array([place.get(text, -1) for text in texts.tolist()], dtype=np.int64)


def _means(draws: FloatArray, cell: IntArray, number: IntArray) -> FloatArray:
    """Means over the rows of each cell, ``(num_draws, num_cells, num_categories)``."""
    sums = np.zeros((len(number), len(draws), draws.shape[2]))
    np.add.at(sums, cell, draws.swapaxes(0, 1))
    return np.asarray(sums.swapaxes(0, 1) / number[:, None])
