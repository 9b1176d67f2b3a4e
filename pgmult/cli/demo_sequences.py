"""Sequences of symbols, made up on the spot, so that what is found can be checked.

Year books of the weather, with a season of 24 days that nobody tells the model about; one day in
ten nobody looked. The last twelve days of each book are hidden and forecast.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from pgmult.cli.shared import running
from pgmult.core.reports import Report, run_in_words
from pgmult.core.typing import ArrayLike, FloatArray
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.data.sequences import Sequences, as_sequences
from pgmult.sequences.models.lds import MultinomialLDS

_WEATHER = ("fog", "rain", "snow", "sun")
_PERIOD, _BOOKS, _DAYS, _AHEAD = 24, 12, 168, 12


def true_probs(days: ArrayLike) -> FloatArray:
    """Sun and snow take turns; fog comes in between; it rains all year round."""
    angle = 2.0 * np.pi * np.asarray(days, dtype=np.float64) / _PERIOD
    scores = [1.5 * np.cos(2 * angle), np.zeros_like(angle), -2 * np.sin(angle), 2 * np.sin(angle)]
    weights = np.exp(np.stack(scores, axis=-1))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def simulated(rng: np.random.Generator) -> tuple[Sequences, FloatArray]:
    """Books with the days that follow them, and the true probabilities of every day."""
    firsts = rng.integers(_PERIOD, size=_BOOKS)
    truth = true_probs(firsts[:, None] + np.arange(_DAYS + _AHEAD))
    sky = (rng.random((*truth.shape[:2], 1)) > np.cumsum(truth, axis=2)).sum(axis=2)
    books = np.where(rng.random(sky.shape) < 0.1, -1, sky)
    books[:, _DAYS:] = sky[:, _DAYS:]
    names = [f"book {i + 1}" for i in range(_BOOKS)]
    return as_sequences(list(books), alphabet=_WEATHER, names=names), truth


def run_demo(options: argparse.Namespace, say: Callable[[str], Any]) -> tuple[Posterior, Report]:
    """Simulate, sample and summarise."""
    whole, truth = simulated(np.random.default_rng(options.seed))
    data, later = whole.split(_DAYS)
    say(
        f"Made up: {_BOOKS} books of the weather, {_DAYS} days each, in one of ten of which nobody"
        f" looked; the {_AHEAD} days after are hidden from the model"
    )
    model = MultinomialLDS(state_dim=4)
    posterior = sample(
        model, data, keep=(*model.default_keep, "states"), **running(options)
    )  # fmt: skip
    report = posterior.report(
        title="The weather, made up, so that the truth is known",
        facts={
            "model": "probabilities driven by a linear Gaussian state of 4 dimensions",
            "truth": f"probabilities repeat every {_PERIOD} days, fog every {_PERIOD // 2}",
            "run": run_in_words(posterior),
        },
        steps=_AHEAD, held_out=later,
        truth=(truth[:, :_DAYS].reshape(-1, len(_WEATHER)), truth[:, _DAYS:]),
        random_seed=options.seed,
    )  # fmt: skip
    return posterior, report
