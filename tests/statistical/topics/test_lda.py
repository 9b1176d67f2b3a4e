"""The sampler of latent Dirichlet allocation is right, and the harness refuses broken ones."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.testing import check_geweke, check_model, check_sbc, mutant, rejects
from pgmult.topics import LDA, as_corpus

pytestmark = pytest.mark.slow

# Five short documents, one of them empty; only the first one has the last word.
CORPUS = as_corpus([[2, 1, 2, 1], [2, 1, 1, 0], [0, 0, 0, 0], [0, 2, 2, 0], [1, 0, 3, 0]])
LEARNED = LDA(3, word_concentration=0.8, alpha_shape=1.5, alpha_rate=2.0)
ALPHA = np.array([0.3, 0.9, 2.0])
GIVEN = {"alpha learned": {}, "alpha given": {"alpha": ALPHA}}


@pytest.mark.parametrize("kind", GIVEN)
def test_lda(kind):
    check_model(replace(LEARNED, **GIVEN[kind]), CORPUS, random_seed=1)


def test_lda_reaches_the_posterior():
    check_sbc(LEARNED, CORPUS, ["alpha", "effective_topics"], tune=60, thin=8)


# ------------------------------------------------------------------ broken samplers


BROKEN = {
    "another prior rate": {
        "_sample_alpha": lambda self, *given: replace(LEARNED, alpha_rate=0.5)._sample_alpha(*given)
    },
    "alpha of all documents as one": {
        "_sample_alpha": lambda self, rng, alpha, counts: LEARNED._sample_alpha(
            rng, alpha, counts.sum(axis=0, keepdims=True)
        )
    },
}


@pytest.mark.parametrize("kind", BROKEN)
def test_geweke_refuses_broken_lda(kind):
    rejects(check_geweke, mutant(LEARNED, **BROKEN[kind]), CORPUS)
