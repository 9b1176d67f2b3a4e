"""Counts at places and times, made up on the spot, so that what is found can be checked.

Names of newborns in nine regions and thirty years. A tenth of the counts was lost, and the last
three years are hidden and predicted.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from pgmult.cli.shared import running
from pgmult.core.reports import Report, run_in_words
from pgmult.core.typing import FloatArray
from pgmult.fields.covariances import Matern
from pgmult.fields.models.multinomial_gp import MultinomialGP
from pgmult.fields.tables import field_of
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior

_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve")
_PEAKS = np.array([1988.0, 1997.0, 2006.0, 2015.0, 2024.0])
_REGIONS = {
    f"{north}{east}": (float(i), float(j))
    for i, east in enumerate(("west", "centre", "east"))
    for j, north in enumerate(("south-", "", "north-"))
}
_HIDDEN_FROM = 2017


def true_probs(year: FloatArray, east: FloatArray) -> FloatArray:
    """Names have their peaks one after the other, in the east eight years before the west.

    By the softmax, which the model does not know.
    """
    scores = -0.5 * ((year + 4.0 * (east - 2.0))[:, None] - _PEAKS) ** 2 / 9.0**2
    weights = np.exp(scores)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def run_demo(options: argparse.Namespace, say: Callable[[str], Any]) -> tuple[Posterior, Report]:
    """Simulate, sample and summarise."""
    rng = np.random.default_rng(options.seed)
    years = np.repeat(np.arange(1990, 2020), len(_REGIONS))
    regions = np.tile(list(_REGIONS), 30)
    east = np.array([_REGIONS[region][0] for region in regions])
    truth = true_probs(years.astype(np.float64), east)
    counts = rng.multinomial(rng.poisson(60, len(truth)), truth)
    table = {
        "year": np.repeat(years, len(_NAMES)),
        "region": np.repeat(regions, len(_NAMES)),
        "name": np.tile(_NAMES, len(truth)),
        "births": counts.ravel(),
    }
    whole = field_of(
        table, inputs=["year", "region"], category="name", count="births",
        places={"region": _REGIONS},
    )  # fmt: skip
    assert whole.columns is not None
    lost = rng.random(whole.num_rows) < 0.1
    ahead = whole.columns["year"] >= _HIDDEN_FROM
    held_out = np.where((lost | ahead)[:, None], whole.counts, 0)
    data = whole.with_counts(whole.counts - held_out)
    say(
        f"Made up: {int(whole.counts.sum()):,} newborns with {len(_NAMES)} names in"
        f" {len(_REGIONS)} regions, 1990 to 2019; hidden from the model: a tenth of the years and"
        f" regions, and everything from {_HIDDEN_FROM} on"
    )
    covariance = (
        1.0
        * Matern(2.5, length_scale=10.0, active=[0])
        * Matern(1.5, length_scale=2.0, active=[1, 2])
    )
    model = MultinomialGP(covariance, overdispersion=0.01, hyperparameter_rate=1.0)
    posterior = sample(
        model, data, keep=("psi", "beta", "hyperparameters"), **running(options)
    )  # fmt: skip
    place = np.array([_REGIONS[region][0] for region in whole.columns["region"]])
    report = posterior.report(
        title="Names of newborns, made up, so that the truth is known",
        facts={
            "model": "Gaussian processes of year and region (Matérn), their scales learned",
            "run": run_in_words(posterior),
        },
        held_out=held_out, truth=true_probs(whole.columns["year"].astype(np.float64), place),
        random_seed=options.seed,
    )  # fmt: skip
    return posterior, report
