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

from pgmult.core.averages import Averages
from pgmult.core.estimands import Estimand, Labels
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
    cells = Averages.of(found.columns_of("row"), column, values, at=at, by=by)
    labels: dict[str, Labels] = dict(cells.axes)
    if "category" in found.labels:
        labels["category"] = found.labels["category"]
    return Estimand(
        np.array([cells.means(draw) for draw in found.draws]), (*cells.axes, "category"), labels,
        caption=f"Mean probabilities of the categories by {' and '.join(cells.axes)}.",
        probability=probability,
    )  # fmt: skip
