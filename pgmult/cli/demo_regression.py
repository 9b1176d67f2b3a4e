"""A survey, made up on the spot, so that what is found can be checked.

Twenty states of very different sizes; who is asked is too old, and in most states few are asked.
What would the adults of each state say, of whom a census knows how many there are of each age?
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.cli.shared import running
from pgmult.core.estimands import Estimand
from pgmult.core.figures.forest import Forest
from pgmult.core.reports import Cell, Interval, Report, Section, run_in_words
from pgmult.core.tabled import Column
from pgmult.core.typing import FloatArray
from pgmult.datasets.tables import read
from pgmult.regression.models.additive import AdditiveRegression
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior

_STATES, _AGES = np.array(list("ABCDEFGHIJKLMNOPQRST")), np.arange(18, 90)
_ANSWERS = np.array(["for", "against", "unsure"])
_ASKED = 900


def true_probs(support: FloatArray, age: NDArray[Any]) -> FloatArray:
    """The young are for it, more in some states than in others; the unsure are of any age.

    By the softmax, which the model does not know.
    """
    scores = np.stack([support + 1.5 * np.sin((age - 20.0) / 22.0), 0 * age + 0.3, 0 * age - 1.0])
    weights = np.exp(scores.T)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def simulated(rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any], FloatArray]:
    """Answers, a census, and the true shares of the answers in each state."""
    support = 0.6 * rng.standard_normal(len(_STATES))
    state, age = np.repeat(np.arange(len(_STATES)), len(_AGES)), np.tile(_AGES, len(_STATES))
    people = rng.permutation(np.geomspace(60.0, 2000.0, len(_STATES)))[state] * (100.0 - age)
    people = np.round(people)
    probs = true_probs(support[state], age)
    chance = people * np.exp(0.02 * age)
    asked = rng.choice(len(people), _ASKED, p=chance / chance.sum())
    answer = (rng.random((_ASKED, 1)) > np.cumsum(probs[asked], axis=1)).sum(axis=1)
    survey = {"answer": _ANSWERS[answer], "age": age[asked], "state": _STATES[state[asked]]}
    sums = np.stack([np.bincount(state, people * column) for column in probs.T], axis=1)
    truth = sums / np.bincount(state, people)[:, None]
    return survey, {"state": _STATES[state], "age": age, "people": people}, truth


def run_demo(options: argparse.Namespace, say: Callable[[str], Any]) -> tuple[Posterior, Report]:
    """Simulate, sample and summarise."""
    survey, census, truth = simulated(np.random.default_rng(options.seed))
    sizes = np.array([np.sum(survey["state"] == state) for state in _STATES])
    say(
        f"Made up: {_ASKED} answers of {len(_STATES)} states, {sizes.min()} to {sizes.max()} in"
        " each, too many of them by the old; and a census of states and ages"
    )
    rows = read(survey).rows("answer ~ s(age) + (1 | state)")
    posterior = sample(AdditiveRegression(), rows, **running(options))
    shares = posterior.poststratify(census, by="state", weight="people")
    report = posterior.report(
        title="A survey of twenty states, made up, so that the truth is known",
        facts={"run": run_in_words(posterior)},
    )
    verdict, section = _beside_the_truth(shares, survey, truth)
    return posterior, replace(
        report, verdict=[verdict, *report.verdict], sections=[section, *report.sections]
    )


def _beside_the_truth(
    shares: Estimand, survey: dict[str, Any], truth: FloatArray
) -> tuple[str, Section]:
    """Shares of a population by state, beside those of the answers and the truth."""
    order = np.argsort([str(state) for state in shares.labels["state"]])
    columns = [list(shares.labels["category"]).index(answer) for answer in _ANSWERS]
    mean, lower, upper = (
        part[order][:, columns] for part in (shares.mean, shares.lower, shares.upper)
    )
    given = np.array([
        [np.sum((survey["state"] == state) & (survey["answer"] == a)) for a in _ANSWERS]
        for state in _STATES
    ])  # fmt: skip
    asked = given.sum(axis=1)
    said = given / np.maximum(asked, 1)[:, None]
    inside = np.mean((lower <= truth) & (truth <= upper))
    own, raw = (100.0 * np.sqrt(np.mean((part - truth) ** 2)) for part in (mean, said))
    verdict = (
        f"The truth is known here: the {100.0 * shares.probability:.0f} % intervals hold"
        f" {100.0 * inside:.0f} % of the true shares of the {len(_STATES)} states. Means are wrong"
        f" by {own:.1f} percentage points (root mean square), shares of the answers by {raw:.1f}."
    )
    first = _ANSWERS[0]
    one, place = mean[:, 0], np.argsort(-truth[:, 0])
    points = [np.stack([x[:, 0], said[:, 0], truth[:, 0]])[:, place] for x in (mean, lower, upper)]
    rows: list[list[Cell]] = [
        [
            str(_STATES[i]), int(asked[i]), Interval(one[i], lower[i, 0], upper[i, 0]),
            f"{said[i, 0]:.2f}", f"{truth[i, 0]:.2f}",
        ]
        for i in place
    ]  # fmt: skip
    heads = ("adults", "of the answers", "truth")
    figure = Forest(
        labels=[f"{_STATES[i]}, {asked[i]} asked" for i in place],
        mean=points[0], lower=points[1], upper=points[2], line=None, name="state",
        legend={0: "adults, by the model", 1: "of the answers", 2: "the truth"},
        cells=[Column("", [str(row[k + 2]) for row in rows], head) for k, head in enumerate(heads)],
        told=[", ".join(map(str, row[2:])) for row in rows],
    )  # fmt: skip
    return verdict, Section(
        f"Shares of '{first}' among all adults, by state",
        "The answers weighted as the census has it; means and"
        f" {100.0 * shares.probability:.0f} % intervals.",
        head=("state", "asked", *heads), rows=rows, figures=[figure], is_drawn=True, shown=8,
    )  # fmt: skip
