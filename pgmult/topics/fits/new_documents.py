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

`predict` matches words and covariates with those of the run, and says what it had to leave out:

>>> old = pgmult.topics.as_corpus(np.random.default_rng(0).poisson(1.0, (20, 3)), list("abc"))
>>> posterior = pgmult.sample(
...     pgmult.topics.CorrelatedTopics(num_topics=2), old,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> new = pgmult.topics.as_corpus([[3, 1, 0], [0, 0, 2]], ["c", "a", "z"], ["one", "two"])
>>> found = predict(posterior, new)
>>> found.topics.mean.shape, found.unknown_tokens, found.empty
((2, 2), 2, ['two'])
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pgmult.compiled.rows import over_rows
from pgmult.core.answers import Answer
from pgmult.core.arguments import as_flag, as_kind, as_probability, as_repeats, as_seed, brief
from pgmult.core.markup import paragraphs
from pgmult.core.tabled import Table
from pgmult.core.typing import FloatArray
from pgmult.core.validate import new_key
from pgmult.formulas.terms import GroupTerm
from pgmult.sampling.posterior import Posterior
from pgmult.topics import runs
from pgmult.topics.compiled import fold_in as kernels
from pgmult.topics.data.corpus import Corpus, StructuredCorpus, corpus_from
from pgmult.topics.models.structural import StructuralTopics
from pgmult.topics.models.topic_model import ExchangeableTopics
from pgmult.topics.summaries.documents import DocumentTopics, moments_of
from pgmult.topics.summaries.effects import column_names
from pgmult.topics.summaries.matching import aligned_chains, scope_of
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
    run: Posterior, corpus: Any, *, chain: int = 1, max_draws: int = 100, sweeps: int = 2,
    warm_up: int = 20, random_seed: int = 0,
) -> Iterator[FoldedIn]:  # fmt: skip
    """Sample the topic proportions of new documents, one posterior draw after the other.

    Parameters
    ----------
    run : Posterior
        Of `pgmult.topics.CorrelatedTopics` or `pgmult.topics.LogisticNormalTopics`, with
        ``topics``, ``mu`` and ``Sigma``; or of `pgmult.topics.StructuralTopics`, with ``topics``,
        ``coefficients``, ``Sigma`` and, where there are any, ``effects``, ``effect_variances`` and
        ``group_topics``.
    corpus : Corpus, or sparse matrix or array of counts
        With the words of the posterior's corpus. For structural topics a `StructuredCorpus` that
        ``data.new_documents(corpus, table)`` made, or some rows ``data[rows]``.
    chain : int
        Its number, from 1: labels of topics mean something within a chain only.
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
    place = runs.as_chain(runs.as_unmerged(run), chain)
    prior = runs.of_chain(run, place, *_names_of_prior(run, corpus), beside=_WORDS)
    design = None if "mu" in prior else corpus.design
    name = "topics" if design is None or corpus.content is None else "group_topics"
    topics = runs.of_chain(run, place, name, beside=_WORDS)[name]
    used = runs.spread(len(topics), max_draws)
    sweeps = as_repeats(sweeps, "sweeps")
    warm_up = as_repeats(warm_up, "warm_up", minimum=0)
    corpus = corpus_from(corpus, "corpus")
    num_topics, num_words = topics.shape[-2:]
    if corpus.num_words != num_words:
        raise ValueError(f"corpus must have the posterior's {num_words} words, got {corpus!r}")
    rng = np.random.Generator(np.random.Philox(as_seed(random_seed)))
    link, count = run.link, corpus.num_documents
    ids = np.empty(count, dtype=np.uint64)
    over_rows(kernels.document_ids, count, corpus.entries, ids)
    tokens = corpus if design is None else corpus.by_version()
    means, *_ = runs.prior_at(prior, int(used[0]), design)
    psi = np.broadcast_to(means, (count, means.shape[-1]))
    for draw in used:
        words = np.asarray(topics[draw], np.float64)
        if words.ndim == 3:  # by group
            words = np.ascontiguousarray(words.swapaxes(0, 1)).reshape(num_topics, -1)
        by_word = np.ascontiguousarray(words.T)
        centre, which, covariances = runs.prior_at(prior, int(draw), design)
        for _ in range(sweeps + (warm_up if draw == used[0] else 0)):
            topic_counts = np.empty((count, num_topics), dtype=np.int64)
            given = tokens.entries, by_word, link.probs(psi), topic_counts
            over_rows(kernels.allocate_documents, count, new_key(rng), ids, *given)
            key, moved = new_key(rng), np.empty_like(psi)
            for number, cov in enumerate(covariances):
                rows = np.flatnonzero(np.broadcast_to(which, count) == number)
                about = psi[rows], topic_counts[rows], np.broadcast_to(centre, psi.shape)[rows]
                try:
                    moved[rows] = swing_alone(key, ids[rows], link, *about, cov)
                except ValueError as error:
                    raise ValueError(f"{error} under draw {draw}") from None
            psi = moved
        yield FoldedIn(int(draw), link.probs(psi), words)


def _names_of_prior(run: Posterior, corpus: Any) -> list[str]:
    """Variables that the documents' prior depends on; refuses documents without their values."""
    if isinstance(run.model, ExchangeableTopics):
        return ["mu", "Sigma"]
    if not isinstance(run.model, StructuralTopics):
        allowed = "CorrelatedTopics, LogisticNormalTopics or StructuralTopics"
        raise ValueError(f"run must be of {allowed}, got one of {type(run.model).__name__}")
    hint = "of structural topics new documents need covariates: data.new_documents(corpus, table)"
    as_kind(corpus, "corpus", StructuredCorpus, hint)
    new = () if corpus.content is None else corpus.content.labels
    groups, got = (", ".join(map(str, of)) or "none" for of in (run.coords.get("group", ()), new))
    if groups != got:
        raise ValueError(f"corpus must have the posterior's groups, {groups}; got {got}")
    coding = run.coords["coding"][0] if "coding" in run.coords else run.data.design.coding
    if str(coding) != corpus.design.coding:
        coded = "coded as the posterior's are, with the same means, scales, labels and knots"
        hint = "make it with data.new_documents(corpus, table), data being what was sampled"
        raise ValueError(f"corpus must have covariates {coded}: {hint}")
    return runs.regression_variables(run, corpus)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NewDocuments(Answer):
    """Topic proportions of new documents, and which of their words were not in the run.

    Attributes
    ----------
    topics : DocumentTopics
    corpus : Corpus
        The documents as they were folded in: with the run's words and, if it has any, covariates.
    unknown_words, unknown_tokens : int
        Different words that are not in the run's vocabulary, and how many tokens they are.
    tokens : int
        Tokens that there were.
    empty : list of str
        Documents without a word of the run: their proportions are those expected a priori.
    new_levels : mapping from a grouping to its labels that were not in the run
    """

    topics: DocumentTopics
    corpus: Corpus
    unknown_words: int
    unknown_tokens: int
    tokens: int
    empty: list[str]
    new_levels: dict[str, list[str]]

    def __str__(self) -> str:
        matched = self.tokens - self.unknown_tokens
        share = f" ({matched / self.tokens:.0%})" if self.tokens else ""
        known = f"the run knows {matched:,} of their {self.tokens:,} words{share}"
        unknown = f"and does not know {self.unknown_words:,} different ones"
        lines = [f"{len(self.topics.documents):,} new documents; {known}, {unknown}."]
        if self.empty:
            what = "What is said of them is what was expected before reading."
            lines.append(f"Without a word that it knows: {_first(self.empty)}. {what}")
        for grouping, labels in self.new_levels.items():
            what = "Their effects are unknown, which widens the intervals."
            lines.append(f"New to the run, of {grouping}: {_first(labels)}. {what}")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def draws(self) -> FloatArray:
        """Proportions of topics, ``(num_draws, document, topic)``."""
        return self.topics.draws

    def table(self) -> Table:
        """Proportions of topics, a row per document and topic."""
        return self.topics.table()

    def figure(self) -> Any:
        """Draw the proportions in the first documents."""
        return self.topics.figure()

    def _repr_html_(self) -> str:
        return paragraphs(str(self).splitlines()) + self.topics._repr_html_()


def _first(names: list[str]) -> str:
    return f"{len(names):,} ({', '.join(names[:5])}{', ...' * (len(names) > 5)})"


def align_words(
    corpus: Any, vocabulary: Sequence[str] | NDArray[np.str_] | None, num_words: int
) -> tuple[Corpus, int, int]:
    """The same documents with another vocabulary, and how many words and tokens it does not have.

    Parameters
    ----------
    corpus : Corpus, sparse matrix or array of counts
        Without words of its own it must have as many columns as there are words.
    vocabulary : sequence of str, or None
        None where the posterior's corpus had no words.
    num_words : int

    Raises
    ------
    ValueError
        If words cannot be told from each other.
    """
    corpus = corpus_from(corpus, "corpus")
    if corpus.vocabulary is None or vocabulary is None:
        if corpus.num_words != num_words:
            wanted = f"the posterior's {num_words} words or a vocabulary to find them by"
            raise ValueError(f"corpus must have {wanted}, got {corpus!r}")
        return corpus, 0, 0
    place = {str(word): j for j, word in enumerate(vocabulary)}
    target = np.array([place.get(str(word), -1) for word in corpus.vocabulary], dtype=np.int64)
    in_both = np.flatnonzero(target >= 0)
    ones, shape = np.ones_like(in_both), (corpus.num_words, num_words)
    choose = scipy.sparse.csr_array((ones, (in_both, target[in_both])), shape=shape)
    in_use = np.bincount(corpus.words, corpus.counts, minlength=corpus.num_words)
    lost = (target < 0) & (in_use > 0)
    aligned = corpus_from(corpus.to_csr() @ choose, "corpus", list(place), corpus.names)
    aligned = replace(aligned, table=corpus.table)
    return aligned, int(lost.sum()), int(in_use[lost].sum())


def predict(
    run: Posterior, corpus: object, covariates: object = None, *, new_levels: bool = False,
    chain: int | None = None, max_draws: int = 100, sweeps: int = 2, probability: float = 0.9,
    random_seed: int = 0,
) -> NewDocuments:  # fmt: skip
    """Topic proportions of documents that were not in the run.

    Words are matched by name. If the run has covariates, the documents need them, too.

    Parameters
    ----------
    run : Posterior
        Of `pgmult.topics.CorrelatedTopics` or `pgmult.topics.StructuralTopics`.
    corpus : Corpus, sparse matrix or array of counts
        As ``pgmult.read(table).corpus(text)`` makes it: any vocabulary will do.
    covariates : mapping from name to column, or DataFrame, optional
        Every column that the run's formulas name; if left out, those of the table that the corpus
        was read from.
    new_levels : bool
        Allow labels of groupings that the run does not have: nothing is known of their effects.
        They are an error otherwise, which names the nearest ones.
    chain : int, optional
        One chain alone, by its number from 1. If left out, chains are aligned topic by topic
        with the best one, and each topic's draws are those of the chains that found it.
    max_draws : int
        Draws to use at most, evenly spread over chains.
    sweeps : int
        Gibbs sweeps at each draw: see `fold_in`.
    probability : float in (0, 1)
    random_seed : int

    Returns
    -------
    NewDocuments
        Print it to see what was lost.

    Raises
    ------
    ValueError
        If words cannot be matched by name, or a covariate is missing or has a value that was not in
        the run.
    """
    probability = as_probability(probability, "probability")
    new_levels = as_flag(new_levels, "new_levels")
    seed = as_seed(random_seed)
    runs.as_draws(runs.as_unmerged(run), "topics")
    num_words = int(run["topics"].shape[-1])
    new, words, tokens = align_words(corpus, run.coords.get("word"), num_words)
    names = list(map(str, range(1, new.num_documents + 1) if new.names is None else new.names))
    empty = [names[d] for d in np.flatnonzero(new.totals == 0)]
    if isinstance(run.model, StructuralTopics):
        new = _coded_alike(run, new, covariates, new_levels)
    elif covariates is not None:
        got = f"{brief(covariates)} (it is of {type(run.model).__name__})"
        raise ValueError(f"covariates must be left out, for the posterior has none, got {got}")
    chains = aligned_chains(run, chain, "topics")
    share, draws = runs.share_of_draws(max_draws, len(chains)), list[FloatArray]()
    for one in chains:
        how = {"chain": one.chain + 1, "max_draws": share, "random_seed": seed + one.chain}
        draws += [one.place(of.theta) for of in fold_in(run, new, sweeps=sweeps, **how)]
    shares, scope = np.stack(draws), scope_of(chains)
    mean, sd, lower, upper = moments_of(shares, probability)
    topics = DocumentTopics(names, mean, sd, lower, upper, probability, scope, shares)
    terms = new.design.terms if isinstance(new, StructuredCorpus) else ()
    levels = {
        ":".join(term.variables): sorted(":".join(row) for row in term.new.tolist())
        for term in terms if isinstance(term, GroupTerm) and len(term.new)
    }  # fmt: skip
    return NewDocuments(topics, new, words, tokens, new.num_tokens + tokens, empty, levels)


def _coded_alike(run: Posterior, new: Corpus, given: object, new_levels: bool) -> StructuredCorpus:
    """The documents with covariates coded as the posterior's are."""
    data: StructuredCorpus = run.data
    if given is None and new.table is None:
        columns = column_names(data)
        columns += [] if data.content is None else list(data.content.known.columns)
        why = "for the posterior has them and the corpus was not read from a table"
        had = ", ".join(dict.fromkeys(columns))
        raise ValueError(f"covariates must be given, {why} (columns: {had})")
    table = new.table.columns if given is None and new.table else given
    return data.new_documents(new, table, new_levels=new_levels)
