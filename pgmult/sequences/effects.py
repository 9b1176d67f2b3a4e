"""Mean probabilities of symbols by sequence, step or time, averaged over everything else.

>>> import pgmult
>>> data = pgmult.sequences.as_sequences(["ABABABABAB", "AAAAABAAAA"], names=["one", "two"])
>>> model = pgmult.sequences.MultinomialLDS(state_dim=1)
>>> run = pgmult.sample(
...     model, data, keep=[*model.default_keep, "states"],
...     draws=20, tune=20, chains=1, random_seed=0, progressbar=False,
... )
>>> found = effects(run, "sequence")
>>> found.axes, found.difference("sequence", "two", "one").mean.shape
(('sequence', 'symbol'), (2,))
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pgmult.core.arguments import as_choice
from pgmult.core.averages import Averages
from pgmult.core.estimands import Estimand
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive_int
from pgmult.formulas.design import table_of
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.input_effects import input_effects
from pgmult.sequences.posteriors import (
    Foretells,
    draws_of,
    sequences_of,
    state_space_draws,
    states_of,
)


def effects(
    posterior: Posterior,
    column: str = "sequence",
    values: Sequence[Any] | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    by: str | None = None,
    probability: float = 0.9,
    max_draws: int = 500,
) -> Estimand:
    """Mean probabilities of the symbols in each sequence, at each step or time, or by an input.

    Averages over all steps, missing ones included, each step alike.
    ``found.difference(column, a, b)`` compares two sequences or times.

    `column` may also be an input of a formula. Of a `MixedHMM` the result is the symbols' long-run
    shares if the input had one value at all steps, all else unchanged, averaged over the steps; of
    a `MultinomialLDS` their mean probabilities if it had had that value, the noise as it was.

    Parameters
    ----------
    posterior : Posterior
        Of sequences, that kept what `pgmult.sequences.predict` takes, such as ``states``.
    column : "sequence", "step", "time" or an input
        What to compare: sequences, by name or number; steps, from 0 in each sequence; or times,
        where the sequences have them.
    values : sequence, optional
        Of the column; all of them if left out.
    at : mapping from a column to a value, or to several, optional
        Only steps that have these.
    by : str, optional
        Another of the columns: averages are taken for each of its values.
    probability : float
        Of the intervals.
    max_draws : int

    Returns
    -------
    Estimand
        Axes `column`, then `by` if given, and symbol.

    Raises
    ------
    ValueError
        If there is no such sequence, step or time, or a variable was not kept.
    """
    data = sequences_of(posterior)
    if data.design is not None and column in table_of(data.design):
        return input_effects(posterior, data, column, values, at, by, probability, max_draws)
    sequence = np.repeat(np.arange(data.num_sequences), data.lengths)
    step = np.arange(data.num_steps) - data.offsets[sequence]
    rows: dict[str, Any] = {
        "sequence": sequence if data.names is None else data.names[sequence], "step": step,
    }  # fmt: skip
    if (when := data.times(sequence, step)) is not None:
        rows["time"] = when
    if data.design is not None:
        as_choice(column, "column", [*rows, *table_of(data.design)])
    cells = Averages.of(rows, column, values, at=at, by=by)
    symbols = np.arange(data.num_symbols) if data.alphabet is None else data.alphabet
    each = _each(posterior, data, max_draws)
    return cells.estimand(each, {"symbol": symbols}, "symbols", probability)


def _each(posterior: Posterior, data: Sequences, max_draws: int) -> Iterator[FloatArray]:
    """Probabilities of every step, ``(num_steps, num_symbols)``, draw by draw."""
    as_positive_int(max_draws, "max_draws")
    model: Any = posterior.model
    if isinstance(model, Foretells):
        for draw in draws_of(posterior, model.predictive_variables, max_draws):
            yield model.step_probs(draw, data)
        return
    kept = states_of(posterior, max_draws)
    for point, states in zip(state_space_draws(posterior, max_draws), kept, strict=True):
        yield np.asarray(point.link.probs(point.psi(states, data.inputs)))
