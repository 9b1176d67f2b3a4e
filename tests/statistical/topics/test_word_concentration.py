"""The learned concentration of words in topics: drawn right, refused when broken."""

import numpy as np
import pytest
from scipy.stats import dirichlet_multinomial

from pgmult import MatrixNormalInverseWishart, NormalInverseWishart
from pgmult.core.typing import variable
from pgmult.testing import check_geweke, rejects
from pgmult.topics import LDA, CorrelatedTopics, StructuralTopics, as_corpus, with_covariates
from pgmult.topics.updates import content, word_concentration, words
from pgmult.topics.updates.content import ContentPrior
from pgmult.topics.updates.word_concentration import CENTRE, sample_concentration

pytestmark = pytest.mark.slow

COUNTS = [[4, 1, 3, 1], [3, 1, 5, 0], [0, 0, 0, 0], [0, 6, 2, 1], [1, 0, 3, 0], [0, 0, 5, 5]]
CORPUS = as_corpus(COUNTS, ["w0", "w1", "w2", "w3"])
STRUCTURED = with_covariates(
    CORPUS, {"year": [1.0, 2.0, 4.0, 7.0, 8.0, 3.0], "place": list("xyxyxy")},
    "~ year", content="~ place",
)  # fmt: skip
GAUSSIAN = NormalInverseWishart(np.zeros(2), 2.0, 6.0, 3.0 * np.eye(2))
REGRESSION = MatrixNormalInverseWishart(np.zeros((2, 3)), np.eye(2), 9.0, 5.0 * np.eye(3))
MODELS = {
    "plain": (CorrelatedTopics(3, gaussian=GAUSSIAN, block_rows=3), CORPUS),
    "keywords": (CorrelatedTopics(3, gaussian=GAUSSIAN, keywords={"a": ["w0", "w2"]}), CORPUS),
    "groups": (
        StructuralTopics(3, regression=REGRESSION, content=ContentPrior(2.0, 3.0, 10.0)),
        STRUCTURED,
    ),
    "LDA": (LDA(3, alpha=0.7), CORPUS),
}


def statistics_of(model):
    def concentrated(state, data):
        return np.sort(np.sum(variable(model, state, data, "topics") ** 2, axis=1))

    return {
        "log eta": lambda state, data: np.log(state.word_concentration),
        "eta near 0.1": lambda state, data: np.log(state.word_concentration / CENTRE) ** 2,
        "concentrated": concentrated,
        "both": lambda state, data: (
            np.log(state.word_concentration) * concentrated(state, data)
        ),
        "log likelihood": model.log_likelihood,
    }  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_geweke(name):
    model, data = MODELS[name]
    check_geweke(model, data, statistics=statistics_of(model), replicates=400)


def words_for_topics(rng, fixed, eta, counts):
    return sample_concentration(rng, fixed, eta, counts.T)


def every_token_twice(rng, fixed, eta, counts):
    return sample_concentration(rng, fixed, eta, 2 * counts)


def moved_after_the_topics(rng, fixed, eta, counts):
    """Topics drawn given the concentration of the sweep before, and counts of this one."""
    sample_concentration(rng, fixed, eta, counts)
    return CENTRE


@pytest.mark.parametrize("broken", [words_for_topics, every_token_twice, moved_after_the_topics])
def test_broken_moves_are_refused(broken, monkeypatch):
    monkeypatch.setattr(words, "sample_concentration", broken)
    model, data = MODELS["plain"]
    rejects(check_geweke, model, data, statistics=statistics_of(model), replicates=400)


def test_tables_counted_three_times_are_refused(monkeypatch):
    """Groups whose words vary: the concentration given three tables for each."""

    def by_tokens(rng, fixed, eta, tables):
        return sample_concentration(rng, fixed, eta, 3 * tables)

    monkeypatch.setattr(content, "sample_concentration", by_tokens)
    model, data = MODELS["groups"]
    rejects(check_geweke, model, data, statistics=statistics_of(model), replicates=400)


@pytest.mark.parametrize("many", [1_000_000, 5], ids=["table", "sorted"])
def test_moves_given_counts_have_the_density_as_their_limit(many, monkeypatch):
    """Against a sum over a grid of scipy's Dirichlet multinomial."""
    monkeypatch.setattr(word_concentration, "_MANY", many)
    counts = np.array([[7, 0, 0, 2, 1], [0, 0, 12, 0, 0], [0, 0, 0, 0, 0]])
    grid = np.linspace(-9.0, 5.0, 2000)
    log_density = -0.5 * (grid - np.log(0.1)) ** 2 + np.array([
        sum(dirichlet_multinomial(np.full(5, eta), row.sum()).logpmf(row) for row in counts[:2])
        for eta in np.exp(grid)
    ])  # fmt: skip
    weights = np.exp(log_density - log_density.max())
    mean, square = (np.sum(weights * grid**power) / weights.sum() for power in (1, 2))
    rng, draws = np.random.default_rng(0), [0.1]
    for _ in range(6_000):
        draws.append(sample_concentration(rng, None, draws[-1], counts))
    found, sd = np.log(draws), np.sqrt(square - mean**2)
    assert abs(found.mean() - mean) < 0.08 * sd
    assert abs(found.std() / sd - 1.0) < 0.07
