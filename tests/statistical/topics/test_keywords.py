"""Keywords in every topic model that is sampled: drawn right, refused when broken."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult import NormalInverseWishart
from pgmult.core.typing import variable
from pgmult.testing import check_geweke, rejects
from pgmult.topics import (
    LDA,
    CorrelatedTopics,
    DynamicTopics,
    LogisticNormalTopics,
    as_corpus,
    as_timed_corpus,
)
from pgmult.topics.updates.collapsed import count_topics
from pgmult.topics.updates.keywords import Keywords

pytestmark = pytest.mark.slow

COUNTS = [[2, 1, 2, 1], [2, 1, 1, 0], [0, 0, 0, 0], [0, 2, 2, 0], [1, 0, 3, 0]]
CORPUS = as_corpus(COUNTS, ["w0", "w1", "w2", "w3"])
TIMED = as_timed_corpus(COUNTS, [1, 1, 2, 3, 3], ["w0", "w1", "w2", "w3"])
WORDS = {"a": ["w0", "w2"], "b": ["w2"]}  # one word of both


def gaussian(size):
    return NormalInverseWishart(np.zeros(size), 2.0, size + 4.0, 3.0 * np.eye(size))


PROBLEMS = {
    "CorrelatedTopics": (
        CorrelatedTopics(3, 0.8, gaussian(2), keywords=WORDS, block_rows=2), CORPUS
    ),
    "LogisticNormalTopics": (LogisticNormalTopics(3, 0.8, gaussian(3), keywords=WORDS), CORPUS),
    "LDA": (
        LDA(3, None, alpha_shape=3.0, alpha_rate=2.0, word_shape=4.0, word_rate=4.0,
            keywords=WORDS),
        CORPUS,
    ),
    "DynamicTopics": (
        DynamicTopics(
            3, gaussian(2), prevalence_shape=4.0, prevalence_scale=1.0, persistence=0.8,
            base_var=1.0, initial_shape=4.0, initial_scale=2.0, drift_shape=4.0, drift_scale=1.0,
            keywords=WORDS,
        ),
        TIMED,
    ),
}  # fmt: skip


def topic_counts(state, data):
    if hasattr(state, "topic_counts"):
        return state.topic_counts
    return count_topics(data, state.assignments, 3, len(WORDS)).topic_counts


def statistics_of(model):
    names = ("topics", "keyword_shares", "keyword_words")
    return {
        **{n: lambda state, data, n=n: variable(model, state, data, n) for n in names},
        "topic counts": topic_counts,
        "shares, squared": lambda state, data: state.keyword_shares**2,
        "log likelihood": model.log_likelihood,
        "tokens and shares": lambda state, data: (
            topic_counts(state, data).sum(axis=0)[:2] * state.keyword_shares
        ),
    }


@pytest.mark.parametrize("kind", PROBLEMS)
def test_geweke(kind):
    model, data = PROBLEMS[kind]
    check_geweke(model, data, statistics=statistics_of(model), replicates=500)


@pytest.mark.parametrize("kind", ["CorrelatedTopics", "DynamicTopics"])
def test_keywords_that_stay_among_the_counts_are_refused(kind, monkeypatch):
    right = Keywords.sample
    monkeypatch.setattr(
        Keywords, "sample",
        lambda self, rng, counts, *others: (counts, *right(self, rng, counts, *others)[1:]),
    )  # fmt: skip
    model, data = PROBLEMS[kind]
    rejects(check_geweke, model, data, statistics=statistics_of(model), replicates=500)


def test_words_drawn_without_their_keywords_are_refused(monkeypatch):
    """Tokens allocated by the topics without keywords."""
    model, data = PROBLEMS["CorrelatedTopics"]
    right = type(model)._mixed

    def unmixed(self, state, shares, words, data):
        mixed = right(self, state, shares, words, data)
        return replace(mixed, topics=state.topics) if state.word_counts.any() else mixed

    monkeypatch.setattr(type(model), "_mixed", unmixed)
    rejects(check_geweke, model, data, statistics=statistics_of(model), replicates=500)


def test_sweeps_that_forget_the_share_of_plain_words_are_refused(monkeypatch):
    right = Keywords.keyed
    monkeypatch.setattr(
        Keywords, "keyed",
        lambda *arguments: right(*arguments)._replace(plain=np.ones(3)),
    )  # fmt: skip
    model, data = PROBLEMS["LDA"]
    rejects(check_geweke, model, data, statistics=statistics_of(model), replicates=500)
