"""How good a topic's top words are: coherence in a reference corpus, exclusivity.

A `Corpus` keeps no order of words, so words occur together when they are in one document: the
window of every co-occurrence here is the document. With D(v) the number of reference documents
that have word v, D(v, u) those that have both, p = D / number of documents, and words in the order
of their scores, v_1 the best::

    NPMI    mean over l < m of  log[p(v_m, v_l) / (p(v_m) p(v_l))] / -log p(v_m, v_l)
                                            (Bouma 2009; Lau, Newman and Baldwin 2014)

Coherence in the corpus that a model was trained on is biased upwards: use another of the same kind.

>>> from pgmult.topics import as_corpus
>>> corpus = as_corpus([[1, 1, 0], [2, 1, 0], [0, 0, 1], [0, 1, 1]], ["salt", "pan", "goal"])
>>> npmi([["salt", "pan"], ["salt", "goal"]], corpus).round(3).tolist()
[0.415, -1.0]
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core.arguments import as_kind
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.draws import most_probable
from pgmult.topics.summaries.words import TopWord, as_topics, frex, names_of

Words = Sequence[Sequence[TopWord | str]]


def npmi(words: Words, reference: Corpus) -> FloatArray:
    """Mean normalised pointwise mutual information of the pairs of a topic's words.

    Parameters
    ----------
    words : lists of TopWord or str, one per topic
        As from `top_words`; ten per topic is usual.
    reference : Corpus

    Returns
    -------
    array, ``(num_topics,)``
        From -1, no pair ever together, over 0, independent, to 1, always together. A pair that is
        never together counts -1, and a pair that is in every document 0; nan with one word.
    """
    counts = _documents_with(words, reference)
    num_documents = reference.num_documents
    result = np.full(len(counts), np.nan)
    for k, together in enumerate(counts):
        first, second = np.triu_indices(len(together), k=1)
        if len(first) == 0:
            continue
        alone = np.diag(together)
        both = together[first, second] / num_documents
        met = (both > 0.0) & (both < 1.0)
        expected = alone[first] * alone[second] / num_documents**2
        scores = np.where(both > 0.0, 0.0, -1.0)
        scores[met] = np.log(both[met] / expected[met]) / -np.log(both[met])
        result[k] = scores.mean()
    return result


def exclusivity(topics: ArrayLike, num_words: int = 10, *, weight: float = 0.7) -> FloatArray:
    """Summed FREX of each topic's most probable words, `weight` on exclusivity: stm's measure.

    Parameters
    ----------
    topics : array, ``(num_topics, num_words)``
        As from `mean_topics`.
    num_words : int
        10, like the weight, is what stm takes (Roberts et al. 2014, section 3.4).
    weight : float in [0, 1]

    Returns
    -------
    array, ``(num_topics,)``
        At most `num_words`.
    """
    topics = as_topics(topics)
    best = most_probable(topics, as_positive_int(num_words, "num_words"))
    return np.asarray(np.take_along_axis(frex(topics, weight), best, axis=1).sum(axis=1))


def _documents_with(words: Words, reference: Corpus) -> list[IntArray]:
    """For each topic's words, the number of documents with each pair of them."""
    names = as_kind(reference, "reference", Corpus, "make one with as_corpus").vocabulary
    number = {
        str(name): j
        for j, name in enumerate(range(reference.num_words) if names is None else names)
    }
    topics = [[number.get(word, -1) for word in topic] for topic in names_of(words)]
    used = sorted({j for topic in topics for j in topic if j >= 0})
    counts = np.zeros((len(used) + 1, len(used) + 1), dtype=np.int64)  # last: words unknown there
    for rows in reference.pieces():
        present = reference.rows(rows).to_csr()[:, used]
        present.data = np.ones_like(present.data, dtype=np.int64)
        counts[:-1, :-1] += (present.T @ present).toarray()
    place = {j: i for i, j in enumerate(used)} | {-1: len(used)}
    return [counts[np.ix_(rows, rows)] for rows in ([place[j] for j in t] for t in topics)]
