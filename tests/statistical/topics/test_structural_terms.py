"""Random effects, curves, words by group and keywords: sampled right, refused when broken."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from pgmult import MatrixNormalInverseWishart
from pgmult.testing import check_geweke, mutant, rejects
from pgmult.topics import StructuralTopics, as_corpus, with_covariates
from pgmult.topics.fits.refitting import held_step
from pgmult.topics.priors import regression
from pgmult.topics.updates import content
from pgmult.topics.updates.content import ContentPrior
from pgmult.topics.updates.keywords import Keywords

pytestmark = pytest.mark.slow

COUNTS = [
    [2, 1, 2, 1], [2, 1, 1, 0], [0, 0, 0, 0], [0, 2, 2, 0],
    [1, 0, 3, 0], [2, 2, 0, 0], [1, 1, 0, 0], [3, 0, 0, 1],
]  # fmt: skip
TABLE = {
    "year": [1.0, 2.0, 4.0, 7.0, 8.0, 3.0, 5.0, 6.0],
    "party": list("DRRDDRII"),
    "author": list("aabbccab"),
    "place": list("xyxyxyxy"),
}
FIELDS = (
    "psi", "coefficients", "Sigma", "topics", "topic_counts", "effects", "effect_variances",
    "group_topics", "content_concentration", "content_rate",
    "keyword_shares", "keyword_words",
)  # fmt: skip


def problem(formula, keywords=None, **options):
    """A model, its data and statistics of everything that a state holds."""
    corpus = as_corpus(COUNTS, ["w0", "w1", "w2", "w3"])
    data = with_covariates(corpus, TABLE, formula, **options)
    p = len(data.design.names)
    model = StructuralTopics(
        3,
        word_concentration=0.8,
        regression=MatrixNormalInverseWishart(np.zeros((p, 3)), np.eye(p), 9.0, 5.0 * np.eye(3)),
        content=ContentPrior(2.0, 3.0, 10.0, start_sweeps=2),
        keywords=keywords,
        block_rows=3,
    )
    state = model.prior(np.random.default_rng(0), data)
    statistics = {
        name: lambda state, data, name=name: getattr(state, name)
        for name in FIELDS
        if np.size(getattr(state, name)) and (data.content is not None or name != "content_rate")
    }
    statistics["log_likelihood"] = model.log_likelihood
    statistics["regression"] = lambda state, data: data.covariates.T @ state.psi
    for j, term in enumerate(data.design.terms):
        rows = np.eye(term.size)[term.design] if term.kind == "group" else term.design
        statistics[f"term {j}"] = lambda state, data, rows=rows: rows.T @ state.psi
    if data.content is not None:
        statistics["alike"] = alike
    return model, data, statistics


def alike(state, data):
    """How near the words of a group are to those of the topic."""
    return np.sum(state.group_topics * state.topics, axis=-1)


PROBLEMS = {
    "effects": lambda: problem("~ s(year, knots=5) + (1 | author) + (1 | place)"),
    "groups": lambda: problem("~ year", content="~ party"),
    "keywords": lambda: problem(
        "~ year + (1 | author)", {"a": ["w0", "w2"], "b": ["w2"]}, content="~ place"
    ),
}


@cache
def made(name):
    return PROBLEMS[name]()


@pytest.mark.parametrize("name", PROBLEMS)
def test_geweke(name):
    model, data, statistics = made(name)
    check_geweke(model, data, statistics=statistics, replicates=300)


def held(sweep):
    """The structural model of given topics, moved by a sweep."""
    model, data, statistics = problem("~ year + (1 | author)")
    topics = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6]])

    def prior(self, rng, data):
        return replace(model.prior(rng, data), topics=topics)

    given = mutant(
        model, prior=prior, step=lambda self, rng, state, data: sweep(model, rng, state, data)
    )
    return given, data, {name: of for name, of in statistics.items() if name != "topics"}


def test_geweke_of_topics_that_are_held():
    model, data, statistics = held(held_step)
    check_geweke(model, data, statistics=statistics, replicates=300)


# ------------------------------------------------------------------ mutants


def test_topics_that_are_not_held_are_refused():
    def moving(model, rng, state, data):
        return model.step(rng, state, data)

    refused(*held(moving), replicates=300)


def refused(broken, data, statistics, replicates=250):
    rejects(check_geweke, broken, data, statistics=statistics, replicates=replicates)


def test_variances_without_their_prior_are_refused(monkeypatch):
    flat = regression.mixed.log_variance_density
    monkeypatch.setattr(
        regression.mixed, "log_variance_density",
        lambda x, scale: -np.inf if flat(x, scale) < -1e9 else 0.0,
    )  # fmt: skip
    refused(*made("effects"))


def test_effects_left_out_of_the_mean_are_refused():
    model, data, statistics = made("effects")
    broken = mutant(
        model,
        step=lambda self, rng, state, data: model.step(
            rng, replace(state, effects=0.0 * state.effects), data
        ),
    )
    refused(broken, data, statistics)


def counts_for_tables(worker, start, stop, key, counts, topics, prior, hold, concentration, tables):
    """Every token a table of its own."""
    tables += counts.sum(axis=0)


def test_counts_instead_of_tables_are_refused(monkeypatch):
    right = content.sample_tables

    def broken(*arguments):
        own = list(arguments)
        tables = own[-1].copy()
        right(*own[:-1], tables)  # concentrations as they should be
        counts_for_tables(*own)

    monkeypatch.setattr(content, "sample_tables", broken)
    refused(*made("groups"), replicates=300)


def test_concentrations_without_their_prior_are_refused(monkeypatch):
    right = content.sample_tables
    flat = (1e-3, 1e-3)
    monkeypatch.setattr(content, "sample_tables", lambda *a: right(*a[:6], flat, *a[7:]))
    refused(*made("groups"))


def test_words_of_groups_around_another_topic_are_refused(monkeypatch):
    right = content.vary

    def broken(rng, topics, concentration, counts):  # the prior, which has no counts, is right
        return right(rng, topics[:: -1 if counts.any() else 1].copy(), concentration, counts)

    monkeypatch.setattr(content, "vary", broken)
    refused(*made("groups"))


def test_keywords_that_stay_among_the_counts_are_refused(monkeypatch):
    right = Keywords.sample
    monkeypatch.setattr(
        Keywords, "sample",
        lambda self, rng, counts, *others: (counts, *right(self, rng, counts, *others)[1:]),
    )  # fmt: skip
    refused(*made("keywords"))
