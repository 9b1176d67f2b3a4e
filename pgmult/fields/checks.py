"""Do fields of counts that the model makes look like the one it was given?

>>> import numpy as np, pgmult
>>> from pgmult.fields.covariances import Matern
>>> counts = np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], size=8)
>>> data = pgmult.fields.as_field(np.arange(8.0), counts)
>>> posterior = pgmult.sample(
...     pgmult.fields.MultinomialGP(Matern(1.5, length_scale=5.0)), data, keep="psi",
...     draws=50, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> predictive_checks(posterior, data).verdict
'Data that the model makes look like the data.'
"""

from typing import Any

import numpy as np

from pgmult.core.arguments import as_seed
from pgmult.core.checks import PredictiveChecks
from pgmult.core.typing import FloatArray, IntArray
from pgmult.fields.data import CountField
from pgmult.fields.predictions import FieldPredictions
from pgmult.sampling.posterior import Posterior

__all__ = ["predictive_checks"]

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


def predictive_checks(
    posterior: Posterior, data: CountField, *, max_draws: int = 200, random_seed: Any = 0
) -> PredictiveChecks:
    """Simulate counts of the same totals from draws of the probabilities, and compare.

    *Dispersion* is the mean square of (count - expected) over its variance, expected given the
    draw; *empty cells* how many counts are 0; *largest share* the mean over rows of the largest.

    Parameters
    ----------
    posterior : Posterior
        That kept ``psi`` or ``pi``.
    data : CountField
        The posterior's data.
    max_draws : int
    random_seed : int, optional

    Raises
    ------
    ValueError
        As of `FieldPredictions.at_rows`, and if all rows are empty.
    """
    found = FieldPredictions.at_rows(posterior, data, max_draws=max_draws)
    full = data.totals > 0
    if not full.any():
        raise ValueError("data must have counts to be compared, all rows are empty")
    counts, totals = data.counts[full], data.totals[full]
    rng = np.random.default_rng(as_seed(random_seed))
    observed: dict[str, list[float]] = {name: [] for name in _ADVICE}
    replicated: dict[str, list[float]] = {name: [] for name in _ADVICE}
    for pi in found.pi[:, full]:
        shares = pi / pi.sum(axis=1, keepdims=True)
        for into, table in ((observed, counts), (replicated, rng.multinomial(totals, shares))):
            for name, value in _statistics(table, totals, shares).items():
                into[name].append(value)
    return PredictiveChecks.of(observed, replicated, _ADVICE)


def _statistics(counts: IntArray, totals: IntArray, shares: FloatArray) -> dict[str, float]:
    expected = totals[:, None] * shares
    variance = np.maximum(expected * (1.0 - shares), 1e-12)
    kept = expected > 0.5
    return {
        "dispersion": float(np.mean((np.square(counts - expected) / variance)[kept])),
        "empty cells": float(np.count_nonzero(counts == 0)),
        "largest share": float(np.mean(counts.max(axis=1) / totals)),
    }
