"""``pgmult demo effects``: what party and time do to what presidents speak of.

A structural topic model of the State of the Union messages that ship with the package: shares of
topics depend on party and, smoothly, on the year, each president has an effect of his own, and the
parties have words of their own for a topic.
"""

import argparse
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

from pgmult.cli.shared import running
from pgmult.core.reports import Report
from pgmult.datasets.messages import state_of_the_union
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior
from pgmult.topics.models.structural import StructuralTopics
from pgmult.topics.reports.contents import run_facts
from pgmult.topics.summaries.content import content
from pgmult.topics.summaries.effects import Difference, difference, effects

PREVALENCE, CONTENT = "~ party * s(year) + (1 | president)", "~ party"
_THIN = 2
_YEARS = (1960, 1990, 2020)
_NAMED = 4  # topics of a sentence
_SURE = 0.95


def run_demo(options: argparse.Namespace, say: Callable[[str], Any]) -> tuple[Posterior, Report]:
    """Sample a structural topic model of the messages and summarise it; half the draws are kept."""
    corpus = state_of_the_union()
    years = corpus.table.columns["year"] if corpus.table is not None else np.zeros(1)
    data = corpus.with_covariates(PREVALENCE, content=CONTENT)
    presidents = data.design.terms[1].size
    say(
        f"State of the Union messages, {years.min()} to {years.max()}, by {presidents} presidents:"
        f" {data.num_documents:,} pieces of 200 words, {data.num_words:,} different words"
    )
    say(f'Shares of topics depend on "{PREVALENCE}", words on "{CONTENT}"')
    say(f"Sampling a structural topic model of {options.topics} topics, {options.chains} chains")
    model = StructuralTopics(options.topics)
    posterior = sample(
        model, data, keep=(*model.default_keep, "theta"), thin=_THIN, **running(options)
    )  # fmt: skip
    for paragraph in effects_in_words(posterior):
        say("\n" + textwrap.fill(paragraph, 88))
    report = posterior.report(
        title="What presidents speak of, by party and year",
        facts={
            "corpus": f"State of the Union messages: {data}",
            "shares of topics": PREVALENCE,
            "words of topics": CONTENT,
            **run_facts(posterior),
        },
        reference=data,
        num_documents=2,
        random_seed=options.seed,
    )
    return posterior, report


def effects_in_words(posterior: Posterior) -> list[str]:
    """What party and years do to shares and words of topics, and how sure that is."""
    by_year = effects(posterior, "party", by="year", at={"year": list(_YEARS)})
    party = difference(by_year, "Republican", "Democratic")
    change = difference(
        effects(posterior, "year", at={"year": [_YEARS[0], _YEARS[-1]]}), _YEARS[-1], _YEARS[0]
    )
    return [
        "What a new president would speak of, in percentage points, with 90 % intervals over all"
        " draws of the chains that found a topic:",
        f"Time, from {_YEARS[0]} to {_YEARS[-1]}. " + _of_time(change),
        "Party. " + _of_party(party),
        _of_words(posterior),
    ]


def _of_time(change: Difference) -> str:
    """The surest changes of either sign, the largest first."""
    sentences = []
    mean, p_positive = change.mean[0], change.p_positive[0]
    for words, sure, sign in (
        ("Presidents of both parties speak more of", p_positive > _SURE, 1.0),
        ("They speak less of", p_positive < 1.0 - _SURE, -1.0),
    ):
        order = [int(k) for k in np.argsort(-sign * mean) if sure[k]]
        if order:
            rest = len(order) - _NAMED
            sentences.append(
                f"{words} {'; '.join(_effect(change, 0, k) for k in order[:_NAMED])}"
                + (f"; and {rest} other topics." if rest > 0 else ".")
            )
    return " ".join(sentences) or "Of no topic is it sure that it rose or fell."


def _of_party(party: Difference) -> str:
    """The surest effect of each year, and whether it is sure."""
    sentences, is_any_sure = [], False
    for i, year in enumerate(_YEARS):
        p_positive = np.nan_to_num(party.p_positive[i], nan=0.5)
        k = int(np.argmax(np.abs(p_positive - 0.5)))
        more = bool(p_positive[k] > 0.5)
        who, sign = ("Republicans", 1.0) if more else ("Democrats", -1.0)
        p = p_positive[k] if more else 1.0 - p_positive[k]
        sentences.append(
            f"In {year} the surest is that {who} speak more of {_effect(party, i, k, sign)}:"
            f" probability {min(p, 0.99):.2f}."
        )
        is_any_sure |= bool(p > _SURE)
    sentences.append(
        "Most other intervals hold 0: presidents are few, and differ within a party."
        if is_any_sure
        else "So none is sure: presidents are few, and differ within a party."
    )
    return " ".join(sentences)


def _effect(found: Difference, group: int, topic: int, sign: float = 1.0) -> str:
    """Such as ``3 tax budget cuts (-4.2 [-6.1, -2.0])``; with a negative sign, from the other."""
    mean, *ends = (100.0 * sign * x[group, topic] for x in (found.mean, found.lower, found.upper))
    return f"{found.names[topic]} ({mean:+.1f} [{min(ends):+.1f}, {max(ends):+.1f}])"


def _of_words(posterior: Posterior) -> str:
    """The topic whose words party changes most, of those that both speak of."""
    found = content(posterior)
    apart = 0.5 * np.abs(found.mean[1] - found.mean[0]).sum(axis=-1)
    apart[found.tokens.min(axis=0) < 0.02 * found.tokens.sum() / len(apart)] = -1.0
    topic = int(np.argmax(apart))
    gaps = found.mean[1, topic] - found.mean[0, topic]
    order = np.argsort(gaps)
    first, second = (
        ", ".join(found.vocabulary[j] for j in rows[:5]) for rows in (order, order[::-1])
    )
    return (
        f"Words. The parties differ most in how they say {found.names[topic]}:"
        f" {found.groups[0]} presidents lean to {first}; {found.groups[1]} ones to {second}."
    )
