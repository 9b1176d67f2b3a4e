"""Checks of a fitted field: replicated counts against the data.

>>> import numpy as np, pgmult
>>> from pgmult.fields.covariances import Matern
>>> counts = np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], size=8)
>>> data = pgmult.fields.as_field(np.arange(8.0), counts)
>>> posterior = pgmult.sample(
...     pgmult.fields.MultinomialGP(Matern(1.5, length_scale=5.0)), data, keep="psi",
...     draws=50, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> check(posterior).verdict
'Data simulated from the model agree with the data in dispersion, empty cells, largest share.'
"""

import numpy as np

from pgmult.core.arguments import as_seed
from pgmult.core.checks import PredictiveChecks
from pgmult.core.typing import FloatArray, IntArray
from pgmult.fields.data import CountField
from pgmult.fields.predictions import own_data, predict
from pgmult.fields.priors.separable import has_effects
from pgmult.sampling.posterior import Posterior

_ADVICE = {
    "dispersion": (
        "Counts vary more than the model predicts: try {}a rougher covariance.",
        "Counts vary less than the model predicts: try a smoother covariance, without White.",
    ),
    "empty cells": (
        "More cells are empty than the model predicts: leave out categories where they cannot be.",
        "Fewer cells are empty than the model predicts: counts may be rounded, or have a minimum.",
    ),
    "largest share": (
        "The largest share of a row is larger than the model predicts: try a rougher covariance.",
        "The largest share of a row is smaller than the model predicts: try a smoother covariance.",
    ),
}


def check(
    run: Posterior,
    *,
    data: CountField | None = None,
    max_draws: int = 200,
    random_seed: int | None = 0,
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
    predictions = predict(run, data=data, inputs="seen", max_draws=max_draws)
    full = data.totals > 0
    if not full.any():
        raise ValueError("data must have counts to be compared, all rows are empty")
    counts, totals = data.counts[full], data.totals[full]
    impossible = int(np.sum(~data.was_counted[full]))
    rng = np.random.default_rng(as_seed(random_seed))
    covariance = getattr(run.model, "full_covariance", None)  # sticks have one
    has_own = covariance is not None and has_effects(covariance(data), data.inputs.shape[1])
    more, less = _ADVICE["dispersion"]
    advice = {"dispersion": (more.format("" if has_own else "overdispersion=, or "), less)}
    shares = (pi / pi.sum(axis=1, keepdims=True) for pi in predictions.draws[:, full])

    def statistics(counts: IntArray, shares: FloatArray) -> dict[str, float]:
        expected = totals[:, None] * shares
        squares = np.square(counts - expected) / np.maximum(expected * (1.0 - shares), 1e-12)
        return {
            "dispersion": float(np.mean(squares[expected > 0.5])),
            "empty cells": float(np.count_nonzero(counts == 0) - impossible),
            "largest share": float(np.mean(counts.max(axis=1) / totals)),
        }

    pairs = ((statistics(counts, p), statistics(rng.multinomial(totals, p), p)) for p in shares)
    return PredictiveChecks.of(pairs, _ADVICE | advice)
