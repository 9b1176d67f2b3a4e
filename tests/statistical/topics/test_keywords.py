"""Keywords of topics: drawn right, refused when broken."""

import numpy as np
import pytest

from pgmult import NormalInverseWishart
from pgmult.core.typing import variable
from pgmult.testing import check_geweke, rejects
from pgmult.topics import CorrelatedTopics, as_corpus
from pgmult.topics.updates.keywords import Keywords
from pgmult.topics.updates.words import DirichletWords

pytestmark = pytest.mark.slow

COUNTS = [[2, 1, 2, 1], [2, 1, 1, 0], [0, 0, 0, 0], [0, 2, 2, 0], [1, 0, 3, 0]]
CORPUS = as_corpus(COUNTS, ["w0", "w1", "w2", "w3"])
WORDS = {"a": ["w0", "w2"], "b": ["w2"]}  # one word of both


GAUSSIAN = NormalInverseWishart(np.zeros(2), 2.0, 6.0, 3.0 * np.eye(2))
MODEL = CorrelatedTopics(3, 0.8, GAUSSIAN, keywords=WORDS, block_rows=2)


def statistics_of(model):
    names = ("topics", "keyword_shares", "keyword_words")
    return {
        **{n: lambda state, data, n=n: variable(model, state, data, n) for n in names},
        "topic counts": lambda state, data: state.topic_counts,
        "shares, squared": lambda state, data: state.keyword_shares**2,
        "log likelihood": model.log_likelihood,
        "tokens and shares": lambda state, data: (
            state.topic_counts.sum(axis=0)[:2] * state.keyword_shares
        ),
    }


def test_geweke():
    check_geweke(MODEL, CORPUS, statistics=statistics_of(MODEL), replicates=500)


def test_keywords_that_stay_among_the_counts_are_refused(monkeypatch):
    right = Keywords.sample
    monkeypatch.setattr(
        Keywords, "sample",
        lambda self, rng, counts, *others: (counts, *right(self, rng, counts, *others)[1:]),
    )  # fmt: skip
    rejects(check_geweke, MODEL, CORPUS, statistics=statistics_of(MODEL), replicates=500)


def test_words_drawn_without_their_keywords_are_refused(monkeypatch):
    """Tokens allocated by the topics without keywords."""
    right = DirichletWords._mixed

    def unmixed(self, eta, known, topics, word_counts, *keywords):
        mixed = right(self, eta, known, topics, word_counts, *keywords)
        return mixed | {"topics": topics} if word_counts.any() else mixed

    monkeypatch.setattr(DirichletWords, "_mixed", unmixed)
    rejects(check_geweke, MODEL, CORPUS, statistics=statistics_of(MODEL), replicates=500)
