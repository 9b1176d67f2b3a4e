"""What is asked of a run of a field: probabilities anywhere, a check, another run, a report."""

import os
from dataclasses import replace
from typing import Any

import numpy as np

from pgmult.core.arguments import as_kind
from pgmult.core.checks import PredictiveChecks
from pgmult.core.reports import Report
from pgmult.core.typing import ArrayLike
from pgmult.core.validate import as_counts
from pgmult.fields.checks import predictive_checks
from pgmult.fields.predictions import FieldPredictions
from pgmult.fields.report import field_report
from pgmult.fields.scores import gain_by_count
from pgmult.sampling.posterior import Posterior

__all__ = ["check", "compare", "predict", "report"]


def predict(
    run: Posterior,
    new: Any = None,
    *,
    names: Any = None,
    max_draws: int = 1000,
    random_seed: int = 0,
) -> FieldPredictions:
    """Probabilities of the categories with intervals, at any inputs.

    Parameters
    ----------
    run : Posterior
        Of a field; for new inputs one of a `MultinomialGP` that kept ``psi``, ``beta`` and
        ``hyperparameters``.
    new : array or data frame, ``(num_new, num_inputs)``, optional
        Inputs that the chains did not know. If left out, the inputs of the data, those that were
        new to the fit last.
    names : sequence of str, ``(num_new,)``, optional
        Labels of the new inputs.
    max_draws : int
        At most so many draws, evenly spread over the chains.
    random_seed : int

    Raises
    ------
    ValueError
        If the run did not keep what it takes, or its data are not at hand.
    """
    data = run.data
    if new is not None:
        return FieldPredictions.at(
            run, data, new, names=names, max_draws=max_draws, random_seed=random_seed
        )
    found = FieldPredictions.at_rows(run, data, max_draws=max_draws)
    if not data.num_new:
        return found
    ahead = FieldPredictions.of(run, data)
    pick = np.linspace(0, len(ahead.pi) - 1, len(found.pi)).astype(np.int64)
    return replace(
        found,
        pi=np.concatenate([found.pi, ahead.pi[pick]], axis=1),
        inputs={k: np.concatenate([v, ahead.inputs[k]]) for k, v in found.inputs.items()},
    )


def check(run: Posterior, *, max_draws: int = 200, random_seed: int = 0) -> PredictiveChecks:
    """Compare the counts with counts that the model makes: see `predictive_checks`."""
    return predictive_checks(run, run.data, max_draws=max_draws, random_seed=random_seed)


def compare(
    run: Posterior,
    other: Posterior,
    *,
    held_out: ArrayLike | None = None,
    names: tuple[str, str] = ("the first", "the second"),
    max_draws: int = 400,
) -> Report:
    """How far two runs of the same inputs and categories are apart, and which one predicts better.

    Parameters
    ----------
    run, other : Posterior
    held_out : int array, ``(num_rows, num_categories)``, optional
        Counts that neither run was shown; without them it is not said which one is better.
    names : pair of str
        What to call the runs.
    max_draws : int
        At most so many draws of each are used.

    Raises
    ------
    ValueError
        If the runs are of other inputs or categories.
    """
    runs = run, as_kind(other, "other", Posterior)
    data, theirs = (one.data for one in runs)
    for what in ("categories", "inputs"):
        if not np.array_equal(getattr(data, what), getattr(theirs, what)):
            raise ValueError(f"the runs must be of the same {what}, those of {names[1]} are others")
    one, two = (FieldPredictions.at_rows(each, each.data, max_draws=max_draws) for each in runs)
    difference = np.abs(one.mean() - two.mean())
    row, k = np.unravel_index(int(difference.argmax()), difference.shape)
    category = k if one.categories is None else one.categories[k]
    place = row if one.names is None else one.names[row]
    apart = (
        f"Their probabilities are {difference.mean():.3f} apart on average, at most"
        f" {difference.max():.2f}: {category} at {place}, where the first says"
        f" {one.mean()[row, k]:.2f} and the second {two.mean()[row, k]:.2f}."
    )
    if held_out is None:
        better = "Which one is better cannot be said: fit both with the same --hold-out and --seed."
        return Report(" and ".join(names), [apart, better])
    hidden = as_counts(held_out, "held_out")
    those = hidden.sum(axis=1) > 0
    scores = [
        replace(f, pi=f.pi[:, those]).log_predictive_density(hidden[those], coefficients=False)
        for f in (one, two)
    ]
    gain, error = gain_by_count(scores[0], scores[1], hidden[those].sum(axis=1))
    word = "better" if gain > 2 * error else "worse" if gain < -2 * error else "no better"
    better = (
        f"The first tells counts that neither was shown {word} than the second:"
        f" {gain:+.4f} ± {error:.4f} nats a count, paired by input."
    )
    return Report(" and ".join(names), [better, apart])


def report(
    run: Posterior, page: str | os.PathLike[str] | None = None, *, title: str = "", **options: Any
) -> Report:
    """What the run found, in sentences, tables and figures: see `field_report`.

    Parameters
    ----------
    run : Posterior
    page : path, optional
        Where to write it as an HTML page.
    title : str
    **options
        Of `field_report`.
    """
    found = field_report(run, run.data, title=title or "A field of counts", **options)
    return found.save(page)
