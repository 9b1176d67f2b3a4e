"""Topic proportions of new documents, given the posterior draws of topics.

For each of some posterior draws of (topics, mu, Sigma) psi of the new documents is sampled by a
few sweeps of the same sampler, the globals held fixed, starting from psi at the previous draw. The
new documents do not change the topics. The spread of the results includes the uncertainty of the
topics and that of the document's own proportions.

With covariates, the mean of a document's psi comes from its covariates, the curves and the effects
of its groups, and its words from the topics of its content group. A level that was not in the fit
(a new author) has an effect from the prior: mean 0, and covariance rho Sigma, or Omega. Documents
that share such a level are folded in one by one.

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> posterior = pgmult.sample(
...     pgmult.topics.CorrelatedTopics(num_topics=3), pgmult.topics.as_corpus(counts[:15]),
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> draws = list(fold_in(posterior, pgmult.topics.as_corpus(counts[15:])))
>>> len(draws), draws[0].theta.shape
(10, (5, 3))

Documents with covariates come from the corpus that was sampled:

>>> table = {"party": ["D", "R"] * 10, "author": [f"author {d // 4}" for d in range(20)]}
>>> data = pgmult.topics.with_covariates(counts, table, "~ party + (1 | author)")
>>> posterior = pgmult.sample(
...     pgmult.topics.StructuralTopics(num_topics=3), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> who = {"party": "D", "author": ["author 1", "X"]}
>>> new = data.new_documents(counts[:2], who, new_levels=True)
>>> [draw.theta.shape for draw in fold_in(posterior, new, max_draws=2)]
[(2, 3), (2, 3)]
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_kind, as_repeats, as_seed
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.formulas.design import Design
from pgmult.links import LogisticNormal, StickBreaking
from pgmult.sampling.posterior import Posterior
from pgmult.topics.compiled import fold_in as kernels
from pgmult.topics.data.corpus import StructuredCorpus, corpus_from
from pgmult.topics.draws import (
    as_draws,
    of_chain,
    prior_at,
    regression_variables,
    spread,
)
from pgmult.topics.models.gaussian import NormalTopics
from pgmult.topics.models.structural import StructuralTopics
from pgmult.topics.updates.swing import swing_alone

_WORDS = ("topics", "group_topics")


class FoldedIn(NamedTuple):
    """Documents folded into one posterior draw: its number, their proportions and its topics.

    Topics are ``(num_topics, num_words)``, or ``(num_topics, num_groups * num_words)`` over the
    pairs of `Corpus.by_version` where words vary by group.
    """

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
        Of `pgmult.topics.CorrelatedTopics` or `pgmult.topics.LogisticNormalTopics`, with
        ``topics``, ``mu`` and ``Sigma``; or of `pgmult.topics.StructuralTopics`, with ``topics``,
        ``coefficients``, ``Sigma`` and, where there are any, ``effects``, ``effect_variances`` and
        ``group_topics``.
    corpus : Corpus, or sparse matrix or array of counts
        With the words of the posterior's corpus. For structural topics a `StructuredCorpus` that
        ``data.new_documents(corpus, table)`` made, or some rows ``data[rows]``.
    chain : int
        Labels of topics mean something within a chain only.
    max_draws : int
        Draws to use at most, evenly spread over the chain.
    sweeps : int
        Gibbs sweeps at each draw.
    warm_up : int
        Additional sweeps at the first draw, which starts from the prior's mean.
    random_seed : int
        Results depend on it, the posterior and the document alone: equal documents get equal draws.

    Yields
    ------
    FoldedIn
        ``theta`` is a fresh array ``(num_documents, num_topics)``.

    Raises
    ------
    ValueError
        If the number of words is not the posterior's, or the posterior is of another model or
        does not know its model, or the covariates are not coded as those of the posterior.
    """
    link, prior = _prior_of(posterior, corpus, chain)
    (topics,) = of_chain(posterior, chain, "topics", beside=_WORDS)
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
    over_rows(kernels.document_ids, count, corpus.entries, ids)
    design, tokens, varied = None, corpus, None
    if "mu" not in prior:
        design, tokens = corpus.design, corpus.by_version()
    if tokens is not corpus:
        (varied,) = of_chain(posterior, chain, "group_topics", beside=_WORDS)
    psi = np.broadcast_to(
        prior_at(prior, int(used[0]), design)[0], (count, prior["Sigma"].shape[-1])
    )
    theta = link.probs(psi)
    for draw in used:
        here = np.asarray(topics[draw] if varied is None else varied[draw], np.float64)
        if varied is not None:
            here = np.ascontiguousarray(here.swapaxes(0, 1)).reshape(num_topics, -1)
        psi_prior, by_word = prior_at(prior, int(draw), design), np.ascontiguousarray(here.T)
        for _ in range(sweeps + (warm_up if draw == used[0] else 0)):
            topic_counts = np.empty((count, num_topics), dtype=np.int64)
            over_rows(
                kernels.allocate_documents, count, new_key(rng), ids, tokens.entries, by_word,
                theta, topic_counts,
            )  # fmt: skip
            try:
                psi = _moved(new_key(rng), ids, link, psi, topic_counts, psi_prior)
            except ValueError as error:
                raise ValueError(f"{error} under draw {draw}") from None
            theta = link.probs(psi)
        yield FoldedIn(int(draw), theta, here)


def _moved(
    key: NDArray[np.uint64],
    ids: NDArray[np.uint64],
    link: StickBreaking | LogisticNormal,
    psi: FloatArray,
    topic_counts: IntArray,
    prior: tuple[FloatArray, IntArray, FloatArray],
) -> FloatArray:
    """Psi of documents given their counts of topics, whose covariances may differ."""
    centre, which, covariances = prior
    if len(covariances) == 1:
        return swing_alone(key, ids, link, psi, topic_counts, centre, covariances[0])
    moved = np.empty_like(psi)
    for number, cov in enumerate(covariances):
        rows = np.flatnonzero(which == number)
        moved[rows] = swing_alone(
            key, ids[rows], link, psi[rows], topic_counts[rows], centre[rows], cov
        )
    return moved


def _prior_of(
    posterior: Posterior, corpus: Any, chain: int
) -> tuple[StickBreaking | LogisticNormal, dict[str, Any]]:
    """The link, and a chain's draws of what the documents' prior depends on."""
    known = as_draws(posterior)
    if isinstance(known.model, NormalTopics):
        names = ["mu", "Sigma"]
        return known.link, _at_words(posterior, chain, names)
    if not isinstance(known.model, StructuralTopics):
        raise ValueError(
            "posterior must be of CorrelatedTopics, LogisticNormalTopics or StructuralTopics, got"
            f" one of {type(known.model).__name__}"
        )
    as_kind(
        corpus, "corpus", StructuredCorpus,
        "of structural topics new documents need covariates: data.new_documents(corpus, table)",
    )  # fmt: skip
    there = [str(label) for label in known.coords.get("group", [])]
    given = [] if corpus.content is None else [str(label) for label in corpus.content.labels]
    if there != given:
        raise ValueError(
            f"corpus must have the posterior's groups, {', '.join(there) or 'none'}; got"
            f" {', '.join(given) or 'none'}"
        )
    _check_coding(posterior, corpus.design)
    names = regression_variables(posterior, corpus)
    return known.link, _at_words(posterior, chain, names)


def _at_words(posterior: Posterior, chain: int, names: Sequence[str]) -> dict[str, Any]:
    """A chain's draws of some variables, of the draws at which its topics were kept."""
    return dict(zip(names, of_chain(posterior, chain, *names, beside=_WORDS), strict=True))


def _check_coding(posterior: Posterior, design: Design) -> None:
    """Refuse other columns, and columns that are centred, scaled or coded differently."""
    if "coding" in posterior.coords:
        (known,) = map(str, posterior.coords["coding"])
    else:
        known = posterior.data.design.coding
    if known != design.coding:
        raise ValueError(
            "corpus must have covariates coded as the posterior's are, with the same means, scales,"
            " labels and knots: make it with data.new_documents(corpus, table), data being what was"
            " sampled"
        )
