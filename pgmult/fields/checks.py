"""Checks of a fitted field: replicated counts against the data, and one run against another.

>>> import numpy as np, pgmult
>>> from pgmult.fields.covariances import Matern
>>> counts = np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], size=8)
>>> data = pgmult.fields.as_field(np.arange(8.0), counts)
>>> posterior = pgmult.sample(
...     pgmult.fields.MultinomialGP(Matern(1.5, length_scale=5.0)), data, keep="psi",
...     draws=50, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> check(posterior).verdict
'Data that the model makes look like the data.'
"""

from typing import Any

import numpy as np

from pgmult.core.arguments import as_kind, as_seed, as_strings
from pgmult.core.checks import PredictiveChecks
from pgmult.core.comparison import Comparison
from pgmult.core.reports import Report
from pgmult.core.scores import Gain
from pgmult.core.typing import ArrayLike, FloatArray, IntArray
from pgmult.fields.data import CountField
from pgmult.fields.predictions import own_data, predict
from pgmult.fields.rivals import compare_with_rivals
from pgmult.fields.scores import gain_by_count
from pgmult.sampling.posterior import Posterior

_ADVICE = {
    "dispersion": (
        "Counts scatter more than the model says: try overdispersion=, or a rougher covariance.",
        "Counts scatter less than the model says: try a covariance without White or overdispersion,"
        " or smoother.",
    ),
    "empty cells": (
        "More cells are empty than the model says: categories may be absent for reasons of their"
        " own; leave those out where they cannot occur.",
        "Fewer cells are empty than the model says: counts may be rounded or censored from below.",
    ),
    "largest share": (
        "The first category of a row has more than the model says: try a rougher covariance.",
        "The first category of a row has less than the model says: try a smoother covariance.",
    ),
}


def check(
    run: Posterior, *, data: CountField | None = None, max_draws: int = 200, random_seed: Any = 0
) -> PredictiveChecks:
    """Simulate counts with the same totals from posterior draws, and compare them with the data.

    *Dispersion* is the mean square of (count - expected) over its variance, expected given the
    draw; *empty cells* how many counts are 0; *largest share* the mean over rows of the largest.

    Parameters
    ----------
    run : Posterior
        That kept ``psi`` or ``pi``.
    data : CountField, optional
        The data of the run, needed only if it was saved without them.
    max_draws : int
    random_seed : int, optional

    Raises
    ------
    ValueError
        As in `predict`, and if all rows are empty.
    """
    data = own_data(run, data)
    found = predict(run, data=data, inputs="seen", max_draws=max_draws)
    full = data.totals > 0
    if not full.any():
        raise ValueError("data must have counts to be compared, all rows are empty")
    counts, totals = data.counts[full], data.totals[full]
    impossible = 0 if data.counted is None else int(np.sum(~data.counted[full]))
    rng = np.random.default_rng(as_seed(random_seed))
    shares = (pi / pi.sum(axis=1, keepdims=True) for pi in found.draws[:, full])
    return PredictiveChecks.of(
        (
            (
                _statistics(counts, totals, p, impossible),
                _statistics(rng.multinomial(totals, p), totals, p, impossible),
            )
            for p in shares
        ),
        _ADVICE,
    )


def _statistics(
    counts: IntArray, totals: IntArray, shares: FloatArray, impossible: int
) -> dict[str, float]:
    expected = totals[:, None] * shares
    variance = np.maximum(expected * (1.0 - shares), 1e-12)
    kept = expected > 0.5
    return {
        "dispersion": float(np.mean((np.square(counts - expected) / variance)[kept])),
        "empty cells": float(np.count_nonzero(counts == 0) - impossible),
        "largest share": float(np.mean(counts.max(axis=1) / totals)),
    }


def compare(
    run: Posterior,
    other: Posterior | None = None,
    *,
    held_out: ArrayLike | None = None,
    names: tuple[str, str] = ("the first", "the second"),
    max_draws: int = 400,
) -> Report | Comparison:
    """Compare a run with simple models, or with another run.

    Parameters
    ----------
    run : Posterior
    other : Posterior, optional
        Of the same inputs and categories; without it the run is compared with simple models: see
        `pgmult.fields.rivals`.
    held_out : int array, ``(num_rows, num_categories)``, optional
        Counts that were not in the fits. Without them two runs are not ranked, and simple models
        are scored by leaving out one row of counts at a time.
    names : pair of str
        What to call the runs.
    max_draws : int
        Draws of each to use at most.

    Raises
    ------
    ValueError
        If the runs are of other inputs or categories.
    """
    if other is None:
        return compare_with_rivals(run, held_out=held_out, max_draws=max_draws)
    runs = as_kind(run, "run", Posterior), as_kind(other, "other", Posterior)
    called = as_strings(names, "names")
    if len(called) != 2:
        raise ValueError(f"names must be two, one of each run, got {len(called)}")
    data, theirs = (own_data(one, None) for one in runs)
    for what in ("categories", "inputs"):
        if not np.array_equal(getattr(data, what), getattr(theirs, what)):
            raise ValueError(
                f"the runs must be of the same {what}, those of {called[1]} are others"
            )
    one, two = (predict(each, inputs="seen", max_draws=max_draws) for each in runs)
    difference = np.abs(one.mean - two.mean)
    row, k = np.unravel_index(int(difference.argmax()), difference.shape)
    category = k if data.categories is None else data.categories[k]
    place = row if data.names is None else data.names[row]
    apart = (
        f"Their probabilities are {difference.mean():.3f} apart on average, at most"
        f" {difference.max():.2f}: {category} at {place}, where the first says"
        f" {one.mean[row, k]:.2f} and the second {two.mean[row, k]:.2f}."
    )
    if held_out is None:
        better = "Which one is better cannot be said: fit both with the same --hold-out and --seed."
        return Report(" and ".join(called), [apart, better])
    hidden = data.held_out(held_out)
    those = hidden.sum(axis=1) > 0
    scores = [
        f.rows(those).log_predictive_density(hidden[those], coefficients=False) for f in (one, two)
    ]
    gain = Gain(*gain_by_count(scores[0], scores[1], hidden[those].sum(axis=1)))
    better = (
        f"The first tells counts that neither was shown {gain.word} the second: {gain} nats a"
        " count, paired by input."
    )
    return Report(" and ".join(called), [better, apart])
