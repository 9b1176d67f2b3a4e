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
from pgmult.topics.data.corpus import Corpus, corpus_from
from pgmult.topics.data.designs import Design
from pgmult.topics.data.structured import StructuredCorpus
from pgmult.topics.draws import of_chain, spread, stick_order_of
from pgmult.topics.models.structural import StructuralTopics

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
        Of `pgmult.topics.CorrelatedTopics`, with ``topics``, ``mu`` and ``Sigma``; or of
        `pgmult.topics.StructuralTopics`, with what it keeps by default.
    corpus : Corpus, or sparse matrix or array of counts
        With the words of the posterior's corpus; where that has covariates, with the same, as
        `pgmult.topics.StructuredCorpus.new_documents` gives them. A level of a grouping that the
        posterior does not know adds the variance of its effects.
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
        If the number of words is not the posterior's, the covariates are not or are coded in
        another way, or the posterior is of another model or does not know its model.
    """
    order = stick_order_of(posterior, StructuralTopics)
    topics, Sigma = of_chain(posterior, chain, "topics", "Sigma")
    used = spread(len(topics), max_draws)
    sweeps = as_repeats(sweeps, "sweeps")
    warm_up = as_repeats(warm_up, "warm_up", minimum=0)
    corpus = corpus_from(corpus, "corpus")
    num_topics, num_words = topics.shape[1:]
    if corpus.num_words != num_words:
        raise ValueError(f"corpus must have the posterior's {num_words} words, got {corpus!r}")
    if isinstance(posterior.model, StructuralTopics):
        globals_at, tokens = _structural(posterior, chain, corpus)
    else:
        mu, tokens = of_chain(posterior, chain, "mu")[0], corpus

        def globals_at(draw: int) -> tuple[Any, Any, FloatArray]:
            return mu[draw], 1.0, topics[draw].T

    rng = np.random.Generator(np.random.Philox(as_seed(random_seed)))
    count = corpus.num_documents
    ids = np.empty(count, dtype=np.uint64)
    over_rows(kernels.document_ids, count, corpus.indptr, corpus.words, corpus.counts, ids)
    psi = np.array(np.broadcast_to(globals_at(used[0])[0], (count, num_topics - 1)), np.float64)
    for draw in used:
        cov = np.asarray(Sigma[draw], dtype=np.float64)
        precision = np.linalg.inv(cov)
        theta = np.empty((count, num_topics))
        centres, scales, by_word = globals_at(draw)
        here = np.asarray(topics[draw], dtype=np.float64)
        statuses = over_rows(
            kernels.fold_in, count, new_key(rng), ids, tokens.indptr, tokens.words, tokens.counts,
            np.ascontiguousarray(by_word, dtype=np.float64), precision,
            np.ascontiguousarray(np.broadcast_to(centres, psi.shape), dtype=np.float64),
            np.ascontiguousarray(np.broadcast_to(scales, count), dtype=np.float64), order,
            sweeps + (warm_up if draw == used[0] else 0), psi, theta,
        )  # fmt: skip
        failed = [status - 1 for status in statuses if status]
        if failed:
            raise ValueError(
                f"document {min(failed)} has no Gaussian posterior under draw {draw}:"
                " is its Sigma positive definite?"
            )
        yield FoldedIn(int(draw), theta, here)


def _structural(posterior: Posterior, chain: int, corpus: Corpus) -> tuple[Any, Corpus]:
    """Prior means, scales and word probabilities at a draw, and the tokens that these are of."""
    if not isinstance(corpus, StructuredCorpus):
        raise ValueError(
            f"corpus must have the covariates that the posterior is conditioned on, got {corpus!r}"
            " (make it with data.new_documents(corpus, columns), data being what was sampled)"
        )
    _check_coding(posterior, corpus)
    if ("group_topics" in posterior) != (corpus.content is not None):
        raise ValueError(
            "corpus must have groups of content where the posterior has, and only there (make it"
            " with data.new_documents(corpus, columns))"
        )
    design = corpus.design
    (coefficients,) = of_chain(posterior, chain, "coefficients")
    effects = variances = None
    if design.terms:
        effects, variances = of_chain(posterior, chain, "effects", "effect_variances")
    name = "topics" if corpus.content is None else "group_topics"
    (words,) = of_chain(posterior, chain, name)

    def at(draw: int) -> tuple[Any, Any, FloatArray]:
        none = np.zeros((0, coefficients.shape[-1]))
        centres = design.mean(
            np.asarray(coefficients[draw], dtype=np.float64),
            none if effects is None else np.asarray(effects[draw], dtype=np.float64),
        )
        scales = 1.0 if variances is None else 1.0 + design.spread(variances[draw])
        by_group = words[draw] if words[draw].ndim == 3 else words[draw][None]
        return centres, scales, np.moveaxis(by_group, 1, 2).reshape(-1, by_group.shape[1])

    return at, corpus.by_group()


def _check_coding(posterior: Posterior, corpus: StructuredCorpus) -> None:
    """Refuse covariates with other names, or that were centred, scaled or coded anew."""
    names = posterior.coords["covariate"].tolist()
    if names != corpus.design.names.tolist():
        raise ValueError(
            f"corpus must have the posterior's covariates {', '.join(map(str, names))}, got"
            f" {', '.join(corpus.design.names)}"
        )
    if _coding(posterior.data.design) != _coding(corpus.design):
        raise ValueError(
            "corpus must have covariates coded as the posterior's are: these were centred and"
            " scaled by themselves (make it with data.new_documents(corpus, columns))"
        )


def _coding(design: Design) -> tuple[Any, ...]:
    levels = [term.levels.tolist() for term in design.terms]
    return design.formula, design.centre.tolist(), design.scale.tolist(), levels
