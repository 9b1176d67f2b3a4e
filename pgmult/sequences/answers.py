"""What is asked of a run of sequences: probabilities, what comes next, a check, a report."""

import os
from typing import Any

from pgmult.core.arguments import as_kind
from pgmult.core.checks import PredictiveChecks
from pgmult.core.reports import Report
from pgmult.sampling.posterior import Posterior
from pgmult.sequences import forecasts
from pgmult.sequences.checks import predictive_checks
from pgmult.sequences.forecasts import Forecast, Imputed, StepProbs
from pgmult.sequences.report import sequence_report
from pgmult.sequences.scores.one_step import one_step_ahead

__all__ = ["check", "compare", "forecast", "impute", "predict", "report"]


def predict(run: Posterior, new: Any = None, **options: Any) -> StepProbs:
    """Probabilities of the symbols at every step, missing ones included, given all observations.

    Parameters
    ----------
    run : Posterior
        That kept ``states``.
    new : Sequences, or what the model takes, optional
        Other sequences of the same symbols: see `pgmult.sequences.smooth`. If left out, those that
        the run is of.
    **options
        ``levels``, ``max_draws`` and, with new sequences, those of `smooth`.
    """
    if new is not None:
        return forecasts.smooth(run, new, **options)
    return StepProbs.of(run, run.data, **options)


def forecast(run: Posterior, steps: int, **options: Any) -> Forecast:
    """What comes after the last step of each sequence: see `pgmult.sequences.forecast`."""
    return forecasts.forecast(run, run.data, steps, **options)


def impute(run: Posterior, **options: Any) -> Imputed:
    """The symbols at missing steps: see `pgmult.sequences.impute`."""
    return forecasts.impute(run, run.data, **options)


def check(run: Posterior, *, max_draws: int = 200, random_seed: int = 0) -> PredictiveChecks:
    """Compare the steps with steps that the model makes: see `predictive_checks`."""
    return predictive_checks(run, run.data, max_draws=max_draws, random_seed=random_seed)


def compare(
    run: Posterior,
    other: Posterior,
    *,
    held_out: Any,
    names: tuple[str, str] = ("the first", "the second"),
) -> Report:
    """Which of two runs of the same sequences predicts better how they went on.

    Parameters
    ----------
    run, other : Posterior
    held_out : Sequences
        How each sequence went on, which neither run was shown.
    names : pair of str
        What to call the runs.
    """
    runs = run, as_kind(other, "other", Posterior)
    scores = [one_step_ahead(r, held_out, after=r.data, pooling="average") for r in runs]
    gain = scores[0].gain_over(scores[1])
    sure = abs(gain.mean) > 2 * gain.standard_error
    word = "no better" if not sure else "better" if gain.mean > 0 else "worse"
    sentences = [
        f"One step ahead, the first tells what neither was shown {word} than the second: {gain}.",
        *(f"{name}: {score}." for name, score in zip(names, scores, strict=True)),
    ]
    return Report(" and ".join(names), sentences)


def report(
    run: Posterior, page: str | os.PathLike[str] | None = None, *, title: str = "", **options: Any
) -> Report:
    """What the run found, in sentences, tables and figures: see `sequence_report`.

    Parameters
    ----------
    run : Posterior
    page : path, optional
        Where to write it as an HTML page.
    title : str
    **options
        Of `sequence_report`.
    """
    found = sequence_report(run, run.data, title=title or "Sequences of symbols", **options)
    return found.save(page)
