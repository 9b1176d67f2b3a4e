"""The sampler of latent Dirichlet allocation is right, and the harness refuses broken ones."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.testing import check_geweke, check_model, check_sbc, mutant, rejects
from pgmult.topics import LDA, as_corpus
from pgmult.topics.updates import concentrations
from pgmult.topics.updates.concentrations import sample_concentration

pytestmark = pytest.mark.slow

# Five short documents, one of them empty; only the first one has the last word.
CORPUS = as_corpus([[2, 1, 2, 1], [2, 1, 1, 0], [0, 0, 0, 0], [0, 2, 2, 0], [1, 0, 3, 0]])
LEARNED = LDA(
    3, word_concentration=None, word_shape=3.0, word_rate=4.0, alpha_shape=1.5, alpha_rate=2.0
)
ALPHA = np.array([0.3, 0.9, 2.0])
GIVEN = {
    "all learned": {},
    "words' concentration given": {"word_concentration": 0.8},
    "alpha given": {"alpha": ALPHA},
    "all given": {"word_concentration": 0.8, "alpha": ALPHA},
}


@pytest.mark.parametrize("kind", GIVEN)
def test_lda(kind):
    check_model(replace(LEARNED, **GIVEN[kind]), CORPUS)


def test_lda_reaches_the_posterior():
    statistics = ["alpha", "word_concentration", "effective_topics"]
    check_sbc(LEARNED, CORPUS, statistics, tune=60, thin=8)


# ------------------------------------------------------------------ broken samplers


def words_from(change, **other_prior):
    """The words' concentration drawn from changed counts, or with another prior."""

    def _sample_word_concentration(self, rng, eta, word_counts):
        prior = {"shape": self.word_shape, "rate": self.word_rate} | other_prior
        return sample_concentration(rng, eta, change(word_counts), **prior)

    return {"_sample_word_concentration": _sample_word_concentration}


def num_words_forgotten(self, rng, eta, word_counts):
    """Beta variables that stand for Gamma(V eta), taken as if they stood for Gamma(eta)."""
    log_beta = concentrations._sum_log_beta(rng, eta * len(word_counts), word_counts.sum(axis=0))
    tables = concentrations._tables(rng, word_counts, np.full(3, eta)).sum()
    return float(rng.gamma(self.word_shape + tables) / (self.word_rate - log_beta))


BROKEN = {
    "tables and betas of words, not topics": words_from(lambda counts: counts.T.copy()),
    "the number of words forgotten": {"_sample_word_concentration": num_words_forgotten},
    "tokens of all topics together": words_from(lambda counts: counts.sum(axis=1, keepdims=True)),
    "another prior rate": words_from(lambda counts: counts, rate=2.0),
    "alpha of all documents as one": {
        "_sample_alpha": lambda self, rng, alpha, counts: LEARNED._sample_alpha(
            rng, alpha, counts.sum(axis=0, keepdims=True)
        )
    },
}


@pytest.mark.parametrize("kind", BROKEN)
def test_geweke_refuses_broken_lda(kind):
    rejects(check_geweke, mutant(LEARNED, **BROKEN[kind]), CORPUS)
