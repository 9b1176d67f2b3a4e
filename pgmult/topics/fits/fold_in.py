"""Topic proportions of documents that were not there when the topics were sampled.

For each of some posterior draws of (topics, mu, Sigma) the sticks of the new documents are sampled
by a few sweeps of the same Gibbs sampler, the globals held fixed, going on from where the draw
before left them. So the new documents say nothing of the topics, and the spread of the answers
holds both uncertainties: that of the topics and that of the document's own proportions.

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> posterior = pgmult.sample(
...     pgmult.topics.CorrelatedTopics(num_topics=3), pgmult.topics.as_corpus(counts[:15]),
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> draws = list(fold_in(posterior, pgmult.topics.as_corpus(counts[15:])))
>>> len(draws), draws[0].theta.shape
(10, (5, 3))
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_repeats, as_seed
from pgmult.core.typing import FloatArray
from pgmult.core.validate import new_key
from pgmult.sampling.posterior import Posterior
from pgmult.topics.compiled import fold_in as kernels
from pgmult.topics.data.corpus import corpus_from
from pgmult.topics.draws import of_chain, spread, stick_order_of

__all__ = ["FoldedIn", "fold_in"]


class FoldedIn(NamedTuple):
    """Documents folded into one posterior draw: its number, their proportions and its topics."""

    draw: int
    theta: FloatArray
    topics: FloatArray


def fold_in(
    posterior: Posterior,
    corpus: Any,
    *,
    chain: int = 0,
    max_draws: int = 100,
    sweeps: int = 2,
    warm_up: int = 20,
    random_seed: int = 0,
) -> Iterator[FoldedIn]:
    """Sample the topic proportions of new documents, one posterior draw after the other.

    Parameters
    ----------
    posterior : Posterior
        Of `pgmult.topics.CorrelatedTopics`, with ``topics``, ``mu`` and ``Sigma``.
    corpus : Corpus, or sparse matrix or array of counts
        With the words of the posterior's corpus.
    chain : int
        Labels of topics mean something within a chain only.
    max_draws : int
        At most so many draws are used, evenly spread over the chain.
    sweeps : int
        Gibbs sweeps at each draw.
    warm_up : int
        Sweeps more at the first, which start from mu.
    random_seed : int
        The answer is a function of it, the posterior and the document alone: equal documents get
        equal draws, whatever stands beside them.

    Yields
    ------
    FoldedIn
        ``theta`` is a fresh array ``(num_documents, num_topics)``.

    Raises
    ------
    ValueError
        If the number of words is not the posterior's, or the posterior is of another model or
        does not know its model.
    """
    order = stick_order_of(posterior)
    topics, mu, Sigma = of_chain(posterior, chain, "topics", "mu", "Sigma")
    used = spread(len(topics), max_draws)
    sweeps = as_repeats(sweeps, "sweeps")
    warm_up = as_repeats(warm_up, "warm_up", minimum=0)
    corpus = corpus_from(corpus, "corpus")
    num_topics, num_words = topics.shape[1:]
    if corpus.num_words != num_words:
        raise ValueError(f"corpus must have the posterior's {num_words} words, got {corpus!r}")
    rng = np.random.Generator(np.random.Philox(as_seed(random_seed)))
    count = corpus.num_documents
    ids = np.empty(count, dtype=np.uint64)
    over_rows(kernels.document_ids, count, corpus.indptr, corpus.words, corpus.counts, ids)
    psi = np.tile(np.asarray(mu[used[0]], dtype=np.float64), (count, 1))
    for draw in used:
        cov = np.asarray(Sigma[draw], dtype=np.float64)
        precision = np.linalg.inv(cov)
        theta = np.empty((count, num_topics))
        here = np.asarray(topics[draw], dtype=np.float64)
        statuses = over_rows(
            kernels.fold_in, count, new_key(rng), ids, corpus.indptr, corpus.words, corpus.counts,
            np.ascontiguousarray(here.T), precision,
            np.asarray(mu[draw], dtype=np.float64), order,
            sweeps + (warm_up if draw == used[0] else 0), psi, theta,
        )  # fmt: skip
        failed = [status - 1 for status in statuses if status]
        if failed:
            raise ValueError(
                f"document {min(failed)} has no Gaussian posterior under draw {draw}:"
                " is its Sigma positive definite?"
            )
        yield FoldedIn(int(draw), theta, here)
