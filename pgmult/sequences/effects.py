"""Which symbols each sequence has, or each time: averages over everything else.

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

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pgmult.core.arguments import as_choice, as_list, under_name
from pgmult.core.estimands import Estimand
from pgmult.core.labels import find_labels, labels_of
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.posteriors import Foretells, draws_of, sequences_of, state_space_draws


def effects(
    posterior: Posterior,
    column: str = "sequence",
    values: Sequence[Any] | None = None,
    *,
    probability: float = 0.9,
    max_draws: int = 500,
) -> Estimand:
    """Mean probabilities of the symbols in each sequence, or at each step or time.

    Averages over all steps, missing ones included, each step alike.
    ``found.difference(column, a, b)`` compares two sequences or times.

    Parameters
    ----------
    posterior : Posterior
        Of sequences, that kept what `pgmult.sequences.predict` takes, such as ``states``.
    column : "sequence", "step" or "time"
        What is told apart: sequences, by name or number; steps, from 0 in each sequence; or times,
        where the sequences have them.
    values : sequence, optional
        Of the column; all of them if left out.
    probability : float
        Of the intervals.
    max_draws : int

    Returns
    -------
    Estimand
        Axes `column` and symbol.

    Raises
    ------
    ValueError
        If there is no such sequence, step or time, or a variable was not kept.
    """
    data = sequences_of(posterior)
    as_choice(column, "column", ("sequence", "step", "time"))
    sequence = np.repeat(np.arange(data.num_sequences), data.lengths)
    step = np.arange(data.num_steps) - data.offsets[sequence]
    place: Any = sequence if data.names is None else data.names[sequence]
    if column != "sequence":
        place = step if column == "step" else data.times(sequence, step)
    if place is None:
        raise ValueError("column must be 'sequence' or 'step': the sequences have no times")
    known, group = np.unique(place, return_inverse=True)
    number = np.bincount(group)
    sums = np.array(
        [_sums(probs, group, len(known)) for probs in _each(posterior, data, max_draws)]
    )
    draws, labels = sums / number[:, None], list(known)
    if values is not None:
        asked = as_list(values, "values", "sequences, steps or times")
        with under_name("values", of=f"column {column!r}"):
            chosen = find_labels(labels_of(known, column), asked, column)
        draws, labels = draws[:, chosen], [known[i] for i in chosen]
    symbols = np.arange(data.num_symbols) if data.alphabet is None else data.alphabet
    return Estimand(
        draws, (column, "symbol"), {column: labels, "symbol": symbols},
        caption=f"Mean probabilities of the symbols by {column}.", probability=probability,
    )  # fmt: skip


def _sums(probs: FloatArray, group: Any, size: int) -> FloatArray:
    return np.array([np.bincount(group, column, size) for column in probs.T]).T


def _each(posterior: Posterior, data: Sequences, max_draws: int) -> Iterator[FloatArray]:
    """Probabilities of every step, ``(num_steps, num_symbols)``, draw by draw."""
    as_positive_int(max_draws, "max_draws")
    model: Any = posterior.model
    if isinstance(model, Foretells):
        for draw in draws_of(posterior, model.predictive_variables, max_draws):
            yield model.step_probs(draw, data)
        return
    kept = draws_of(posterior, ["states"], max_draws)
    for point, draw in zip(state_space_draws(posterior, max_draws), kept, strict=True):
        yield np.asarray(point.link.probs(point.psi(draw["states"], data.inputs)))
