"""Topic proportions of new documents: words and covariates are matched with those of the run.

>>> import numpy as np, pgmult
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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pgmult.core.arguments import as_flag, as_probability, as_seed, brief
from pgmult.core.markup import paragraphs
from pgmult.formulas.terms import GroupTerm
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus, StructuredCorpus, corpus_from
from pgmult.topics.draws import as_draws, share_of_draws
from pgmult.topics.fits.fold_in import fold_in
from pgmult.topics.models.structural import StructuralTopics
from pgmult.topics.summaries.documents import DocumentTopics, moments_of
from pgmult.topics.summaries.matching import aligned_chains, scope_of


@dataclass(frozen=True, slots=True, eq=False)
class NewDocuments:
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
        known = self.tokens - self.unknown_tokens
        share = f" ({known / self.tokens:.0%})" if self.tokens else ""
        lines = [
            f"{len(self.topics.documents):,} new documents; the run knows {known:,} of their"
            f" {self.tokens:,} words{share}, and does not know {self.unknown_words:,} different"
            " ones."
        ]
        if self.empty:
            few = ", ".join(self.empty[:5]) + (", ..." if len(self.empty) > 5 else "")
            lines.append(
                f"Without a word that it knows: {len(self.empty):,} ({few}). What is said of them"
                " is what was expected before reading."
            )
        for grouping, labels in self.new_levels.items():
            few = ", ".join(labels[:5]) + (", ..." if len(labels) > 5 else "")
            lines.append(
                f"New to the run, of {grouping}: {len(labels):,} ({few}). Their effects are"
                " unknown, which widens the intervals."
            )
        return "\n".join(lines)

    __repr__ = __str__

    def to_dataframe(self) -> Any:
        """Proportions of topics, a row per document and topic, as a pandas data frame."""
        return self.topics.to_dataframe()

    def _repr_html_(self) -> str:
        return paragraphs(str(self).splitlines()) + self.topics._repr_html_()


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
            raise ValueError(
                f"corpus must have the posterior's {num_words} words or a vocabulary to find them"
                f" by, got {corpus!r}"
            )
        return corpus, 0, 0
    place = {str(word): j for j, word in enumerate(vocabulary)}
    target = np.array([place.get(str(word), -1) for word in corpus.vocabulary], dtype=np.int64)
    known = np.flatnonzero(target >= 0)
    choose = scipy.sparse.csr_array(
        (np.ones(len(known), dtype=np.int64), (known, target[known])),
        shape=(corpus.num_words, num_words),
    )
    in_use = np.bincount(corpus.words, corpus.counts, minlength=corpus.num_words)
    lost = (target < 0) & (in_use > 0)
    aligned = replace(
        corpus_from(corpus.to_csr() @ choose, "corpus"), names=corpus.names, table=corpus.table,
        vocabulary=np.array(list(place), dtype=np.str_),
    )  # fmt: skip
    return aligned, int(lost.sum()), int(in_use[lost].sum())


def predict(
    posterior: Posterior,
    corpus: Any,
    covariates: Any = None,
    *,
    new_levels: bool = False,
    chain: int | None = None,
    max_draws: int = 100,
    sweeps: int = 2,
    probability: float = 0.9,
    random_seed: int = 0,
) -> NewDocuments:
    """Topic proportions of documents that were not in the run.

    Words are matched by name. If the run has covariates, the documents need them, too.

    Parameters
    ----------
    posterior : Posterior
        Of `pgmult.topics.CorrelatedTopics` or `pgmult.topics.StructuralTopics`.
    corpus : Corpus, sparse matrix or array of counts
        As ``pgmult.read(table).corpus(text)`` makes it: any vocabulary will do.
    covariates : mapping from name to column, or DataFrame, optional
        Every column that the run's formulas name; if left out, those of the table that the corpus
        was read from.
    new_levels : bool
        Whether labels of groupings, ``(1 | author)``, may be new to the run: nothing is known of
        their effects. They are an error otherwise, which names the nearest ones.
    chain : int, optional
        One chain alone. If left out, chains are aligned topic by topic with the best one, and each
        topic's draws are those of the chains that found it.
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
    as_draws(posterior, "topics")
    num_words = int(posterior["topics"].shape[-1])
    new, words, tokens = align_words(corpus, posterior.coords.get("word"), num_words)
    names = [str(d) for d in range(new.num_documents)] if new.names is None else new.names.tolist()
    empty = [names[d] for d in np.flatnonzero(new.totals == 0)]
    if isinstance(posterior.model, StructuralTopics):
        new = _with_the_same(posterior, new, covariates, new_levels)
    elif covariates is not None:
        raise ValueError(
            "covariates must be left out, for the posterior has none, got"
            f" {brief(covariates)} (it is of {type(posterior.model).__name__})"
        )
    chains = aligned_chains(posterior, chain, "topics")
    pieces = []
    for one in chains:
        folded = fold_in(
            posterior, new, chain=one.chain, max_draws=share_of_draws(max_draws, len(chains)),
            sweeps=sweeps, random_seed=seed + one.chain,
        )  # fmt: skip
        pieces += [one.place(draw.theta) for draw in folded]
    mean, sd, lower, upper = moments_of(np.stack(pieces, axis=-1), probability)
    topics = DocumentTopics(names, mean, sd, lower, upper, probability, scope_of(chains))
    return NewDocuments(
        topics, new, words, tokens, new.num_tokens + tokens, empty, _new_levels(new)
    )


def _with_the_same(
    posterior: Posterior, new: Corpus, covariates: Any, new_levels: bool
) -> StructuredCorpus:
    """The documents with covariates coded as the posterior's are."""
    data: StructuredCorpus = posterior.data
    if covariates is None:
        if new.table is None:
            columns = [str(name) for name in data.design.columns.names]
            columns += [name for term in data.design.terms for name in term.variables]
            columns += [] if data.content is None else list(data.content.known.columns)
            needed = ", ".join(dict.fromkeys(columns))
            raise ValueError(
                "covariates must be given, for the posterior has them and the corpus was not read"
                f" from a table (columns: {needed})"
            )
        covariates = new.table.columns
    return data.new_documents(new, covariates, new_levels=new_levels)


def _new_levels(new: Corpus) -> dict[str, list[str]]:
    """Labels of groupings that the posterior does not know."""
    if not isinstance(new, StructuredCorpus):
        return {}
    return {
        ":".join(term.variables): sorted(":".join(row) for row in term.new.tolist())
        for term in new.design.terms
        if isinstance(term, GroupTerm) and len(term.new)
    }
