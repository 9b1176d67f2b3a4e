"""``pgmult demo topics --covariates``: what party and time do to what presidents speak of.

A structural topic model of the State of the Union messages that ship with the package: shares of
topics depend on party and, smoothly, on the year, each president has an effect of his own, and the
parties have words of their own for a topic.
"""

import os
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

from pgmult.datasets import state_of_the_union
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior
from pgmult.topics.models.structural import StructuralTopics
from pgmult.topics.report import TopicReport, run_facts, topic_report
from pgmult.topics.summaries.content import content
from pgmult.topics.summaries.effects import difference, effects

__all__ = ["effects_in_words", "run_covariates_demo"]

PREVALENCE, CONTENT = "~ party * s(year) + (1 | president)", "~ party"
_THIN = 2
_YEARS = (1960, 1990, 2020)
_NAMED = 4  # topics of a sentence
_SURE = 0.95


def run_covariates_demo(
    store: str | os.PathLike[str] | None = None,
    *,
    num_topics: int = 12,
    draws: int = 100,
    tune: int = 150,
    chains: int = 2,
    cores: int | None = None,
    random_seed: int = 0,
    progressbar: bool = True,
    say: Callable[[str], Any] = print,
) -> tuple[Posterior, TopicReport]:
    """Sample a structural topic model of State of the Union messages and summarise it.

    Parameters
    ----------
    store : path, optional
        A run directory to create; draws are kept in memory if left out.
    num_topics, draws, tune, chains, cores, random_seed, progressbar
        As in `pgmult.sample`; every second draw is kept.
    say : function of str
        Told what is being done, and what was found.
    """
    corpus = state_of_the_union()
    years = corpus.table.columns["year"] if corpus.table is not None else np.zeros(1)
    data = corpus.with_covariates(PREVALENCE, content=CONTENT)
    presidents = data.design.terms[1].size
    say(
        f"State of the Union messages, {years.min()} to {years.max()}, by {presidents} presidents:"
        f" {data.num_documents:,} pieces of 200 words, {data.num_words:,} different words"
    )
    say(f'Shares of topics depend on "{PREVALENCE}", words on "{CONTENT}"')
    say(f"Sampling a structural topic model of {num_topics} topics, {chains} chains")
    model = StructuralTopics(num_topics)
    posterior = sample(
        model, data, store=store, keep=(*model.default_keep, "theta"), draws=draws, tune=tune,
        chains=chains, thin=_THIN, cores=cores, random_seed=random_seed, progressbar=progressbar,
    )  # fmt: skip
    for paragraph in effects_in_words(posterior):
        say("\n" + textwrap.fill(paragraph, 88, subsequent_indent="  "))
    report = topic_report(
        posterior,
        title="What presidents speak of, by party and year",
        facts={
            "corpus": f"State of the Union messages: {data}",
            "shares of topics": PREVALENCE,
            "words of topics": CONTENT,
            **run_facts(posterior),
        },
        reference=data,
        num_documents=2,
        random_seed=random_seed,
    )
    return posterior, report


def effects_in_words(posterior: Posterior) -> list[str]:
    """What party and years do to shares and words of topics, and how sure that is."""
    by_year = effects(posterior, "party", by="year", at={"year": list(_YEARS)})
    party = difference(by_year, "Republican", "Democratic")
    time = effects(posterior, "year", at={"year": [_YEARS[0], _YEARS[-1]]})
    lines = [
        "How to read it: shares of what a new president would say, in percentage points, with 90 %"
        " intervals; the effects are averaged over all draws of all chains."
    ]
    number = len(party.names)
    for i, year in enumerate(_YEARS):
        lines.append(
            f"Party, {year}. "
            + _of_topics(
                party.names,
                party.mean[i],
                party.lower[i],
                party.upper[i],
                party.p_positive[i],
                "Republicans speak more of",
                "Democrats speak more of",
                f"Of none of the {number} topics is it sure that one party speaks more: presidents"
                " are few, and differ within a party.",
            )
        )
    change = difference(time, _YEARS[-1], _YEARS[0])
    lines.append(
        f"Time, from {_YEARS[0]} to {_YEARS[-1]}. "
        + _of_topics(
            change.names,
            change.mean.ravel(),
            change.lower.ravel(),
            change.upper.ravel(),
            change.p_positive.ravel(),
            "Both parties speak more of",
            "Both speak less of",
            "Of no topic is it sure that it rose or fell.",
        )
    )
    lines.append(_words_in_words(posterior))
    return lines


def _of_topics(
    names: list[str],
    mean: Any,
    lower: Any,
    upper: Any,
    p_positive: Any,
    more: str,
    less: str,
    neither: str,
) -> str:
    """The surest effects of either sign, the largest first."""
    sentences = []
    for words, sure, sign in (
        (more, p_positive > _SURE, 1.0),
        (less, p_positive < 1.0 - _SURE, -1.0),
    ):
        order = [k for k in np.argsort(-sign * mean) if sure[k]]
        if order:
            shown = "; ".join(
                f"{names[k]} ({100 * mean[k]:+.1f} [{100 * lower[k]:+.1f}, {100 * upper[k]:+.1f}])"
                for k in order[:_NAMED]
            )
            rest = len(order) - _NAMED
            sentences.append(f"{words} {shown}{f'; and {rest} others' if rest > 0 else ''}.")
    return " ".join(sentences) or neither


def _words_in_words(posterior: Posterior) -> str:
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
        f"Words. The parties differ most in how they say topic {found.names[topic]}:"
        f" {found.groups[0]} presidents lean to {first}; {found.groups[1]} ones to {second}."
    )
