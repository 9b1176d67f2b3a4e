"""The State of the Union messages that ship."""

import numpy as np
import pytest
import scipy.sparse
from make_state_of_the_union import pack_counts

from pgmult.datasets import state_of_the_union
from pgmult.datasets.messages import STATE_OF_THE_UNION, unpack_counts


def test_packed_counts_come_back():
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.01, size=(1600, 30))
    counts[:, 3] = 0
    counts[[0, 255, 510, 766, 1599], 4] = 200
    counts[1, 5] = counts[1599, 5] = 3  # a gap of several times 255
    again = unpack_counts(pack_counts(scipy.sparse.csr_array(counts)), len(counts))
    np.testing.assert_array_equal(again.toarray(), counts)
    with pytest.raises(ValueError, match="counts must be below 256, got 256"):
        pack_counts(scipy.sparse.csr_array([[256]]))


def test_what_ships():
    corpus = state_of_the_union()
    columns = corpus.table.columns
    assert (corpus.num_documents, corpus.num_words, corpus.num_tokens) == (2932, 2500, 233354)
    assert columns["year"].min() == 1946
    assert columns["year"].max() == 2026
    messages = zip(columns["year"], columns["president"], columns["message"], strict=True)
    assert len(set(messages)) == 81
    assert len(set(columns["president"])) == 14
    first = np.flatnonzero(columns["year"] == 1961)
    assert set(columns["president"][first]) == {"John F. Kennedy", "Dwight D. Eisenhower"}
    assert corpus.names[0] == "Harry S. Truman, 1946, piece 1"
    assert len(set(corpus.names)) == 2932
    vocabulary = corpus.vocabulary.tolist()
    assert vocabulary == sorted(vocabulary)
    per_word = np.asarray(corpus.to_csr().sum(axis=0)).ravel()
    assert vocabulary[int(np.argmax(per_word))] == "year"
    assert (per_word >= 10).all()
    assert corpus.totals.min() > 20
    assert STATE_OF_THE_UNION.stat().st_size < 200_000
    data = corpus.with_covariates("~ party + (1 | president)", content="~ party")
    assert data.design.terms[0].size == 14
