"""A permutation test: are shares of topics related to a covariate more than by chance?

The proportions that a model estimates depend on the covariates it was given, so they cannot be used
to test a covariate. Here each document's proportions are estimated again *without* covariates, from
the topics' mean words alone: the most probable ones under theta_d ~ Dirichlet(1 + 1/K). They are
compared with the covariate as observed and with random permutations of it. The model is not fitted
again, so the test does not account for the covariate's part in finding the topics. With content
covariates the words common to all groups are used.

Documents of one author are not exchangeable. A covariate that is the same in all documents of an
author (the party) is permuted between authors; one that varies (the year) is permuted within each
author. Other covariates are not held fixed: the test is of any relation with the column.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmult.core.arguments import as_list, as_repeats, as_seed
from pgmult.core.labels import labels_of
from pgmult.core.tabled import Column, Table, Tabled, number
from pgmult.core.typing import FloatArray, IntArray
from pgmult.formulas.terms import GroupTerm
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus, StructuredCorpus
from pgmult.topics.draws import as_draws
from pgmult.topics.summaries.effects import structured_data, topic_names
from pgmult.topics.summaries.matching import best_chain, mean_topics
from pgmult.topics.summaries.settings import as_column

_STEPS = 100  # of the climb to each document's proportions
_BLOCK = 2**22  # numbers in memory at a time


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PermutationTest(Tabled):
    """Whether shares of topics go with a column more than by chance; print it for a table.

    Attributes
    ----------
    variable : str
    r_squared : array, ``(topic,)``
        Share of the variance of a topic's proportions that goes with the column.
    by_chance : array, ``(topic,)``
        Mean of the same over permutations.
    p : array, ``(topic,)``
        Share of permutations, the data among them, with at least that.
    p_any : array, ``(topic,)``
        The same against the largest of all topics: the chance of such a finding in *any* of them.
    names : list of str
        Number and telling words of each topic.
    how : str
        What was permuted, in words.
    """

    variable: str
    r_squared: FloatArray
    by_chance: FloatArray
    p: FloatArray
    p_any: FloatArray
    names: list[str]
    how: str

    def table(self) -> Table:
        """Every topic, that which goes with the column most first."""
        order = np.argsort(-self.r_squared, kind="stable")
        caption = (
            f"Do shares of topics go with {self.variable} more than by chance? {self.how} Shares"
            " were found without covariates, given the topics; the model was not fitted again, and"
            " other covariates are not held fixed."
        )
        columns = [
            Column("topic", order),
            Column("words", [self.names[k] for k in order], "topic"),
            Column("r_squared", self.r_squared[order], "R²", number(3)),
            Column("by_chance", self.by_chance[order], "by chance", number(3)),
            Column("p", self.p[order], "p", number(3)),
            Column("p_any", self.p_any[order], "p, any topic", number(3)),
        ]
        return Table(caption, columns)


def permutation_test(
    posterior: Posterior,
    variable: str,
    *,
    blocks: Any = None,
    num_permutations: int = 999,
    data: StructuredCorpus | None = None,
    chain: int | None = None,
    random_seed: int = 0,
) -> PermutationTest:
    """Compare shares of topics with a column of covariates, and with the column permuted.

    Parameters
    ----------
    posterior : Posterior
        Of `pgmult.topics.StructuralTopics`, with ``topics``.
    variable : str
        A column that prevalence depends on: numbers (a straight line) or labels.
    blocks : str or sequence of labels, optional
        Which documents belong together: the column of a random term, such as ``"author"``, or a
        label for each document. By default those of the formula's first ``(1 | author)``; every
        document is its own block where there is none.
    num_permutations : int
    data : StructuredCorpus, optional
        What the model was fitted to; needed only where `posterior` was saved without it.
    chain : int, optional
        Whose topics; the chain with the best log likelihood if left out.
    random_seed : int

    Raises
    ------
    ValueError
        If there is no such column, or too few blocks to permute.
    """
    data = structured_data(posterior, data)
    as_draws(posterior, "topics")
    count = as_repeats(num_permutations, "num_permutations", minimum=19)
    values, is_label = _column(data, variable)
    block, whose = _blocks_of(data, blocks)
    rng = np.random.default_rng(as_seed(random_seed))
    chain = best_chain(posterior) if chain is None else chain
    theta = proportions(data, mean_topics(posterior, chain, max_draws=100))
    used = data.totals > 0
    theta, values, block = theta[used], values[used], np.unique(block[used], return_inverse=True)[1]
    shuffled, how = _shuffler(values, block, whose, variable)
    scaled = (theta - theta.mean(axis=0)) / np.maximum(theta.std(axis=0), 1e-12)
    observed = _explained(scaled, values, is_label)
    drawn = np.stack([_explained(scaled, shuffled(rng), is_label) for _ in range(count)])
    at_least = drawn >= observed * (1.0 - 1e-9)
    largest = drawn.max(axis=1, keepdims=True) >= observed * (1.0 - 1e-9)
    return PermutationTest(
        variable, observed, drawn.mean(axis=0), (1 + at_least.sum(axis=0)) / (1 + count),
        (1 + largest.sum(axis=0)) / (1 + count), topic_names(posterior, chain),
        f"{how} {count:,} times.",
    )  # fmt: skip


def proportions(corpus: Corpus, topics: FloatArray) -> FloatArray:
    """Each document's most probable proportions given topics, under theta ~ Dirichlet(1 + 1/K).

    Parameters
    ----------
    topics : array, ``(num_topics, num_words)``

    Returns
    -------
    array, ``(num_documents, num_topics)``
        By 100 steps of expectation and maximisation; equal shares in empty documents. Costs
        O(entries num_topics) per step.
    """
    num_topics = len(topics)
    theta = np.full((corpus.num_documents, num_topics), 1.0 / num_topics)
    size = max(1, _BLOCK // num_topics)
    by_word = np.ascontiguousarray(topics.T)
    entries = corpus.indptr
    first = 0
    while first < corpus.num_documents:
        last = max(first + 1, int(np.searchsorted(entries, entries[first] + size, "right")) - 1)
        last = min(last, corpus.num_documents)
        span = slice(entries[first], entries[last])
        phi, counts = by_word[corpus.words[span]], corpus.counts[span]
        rows = np.repeat(np.arange(last - first), np.diff(entries[first : last + 1]))
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        there = rows[starts]
        here = theta[first:last]
        for _ in range(_STEPS):
            if not len(rows):
                break
            weights = here[rows] * phi
            weights *= (counts / np.maximum(weights.sum(axis=1), 1e-300))[:, None]
            here[there] = 1.0 / num_topics + np.add.reduceat(weights, starts, axis=0)
            here /= here.sum(axis=1, keepdims=True)
        first = last
    return theta


def _column(data: StructuredCorpus, name: Any) -> tuple[FloatArray, bool]:
    """Numbers, or numbers of labels; and which."""
    columns = data.design.columns
    names = columns.names.tolist()
    as_column(name, "variable", names)
    j = names.index(name)
    return columns.values[:, j], bool(columns.num_levels[j])


def _blocks_of(data: StructuredCorpus, blocks: Any) -> tuple[IntArray, str]:
    """A number of each document's block, and what blocks are."""
    terms = {":".join(t.variables): t.codes for t in data.design.terms if isinstance(t, GroupTerm)}
    if blocks is None:
        if not terms:
            return np.arange(data.num_documents), ""
        blocks = next(iter(terms))
    if isinstance(blocks, str):
        if blocks not in terms:
            raise ValueError(
                "blocks must be the column of a random term"
                f"{', one of ' + ', '.join(terms) if terms else ''}, or a label for each document,"
                f" got {blocks!r}"
            )
        return np.asarray(terms[blocks]), blocks
    labels = labels_of(as_list(blocks, "blocks", "labels"), "blocks")
    if len(labels) != data.num_documents:
        raise ValueError(
            f"blocks must have one label for each of the {data.num_documents} documents, got"
            f" {len(labels)}"
        )
    return np.unique(labels, return_inverse=True)[1], "block"


def _shuffler(values: FloatArray, block: IntArray, whose: str, variable: str) -> tuple[Any, str]:
    """What hands out values anew, and how, in words."""
    count = int(block.max()) + 1
    if count == len(values):
        return lambda rng: rng.permutation(values), f"Values of {variable} were shuffled"
    first = np.unique(block, return_index=True)[1]
    if (values == values[first][block]).all():
        if count < 5:
            raise ValueError(f"blocks must be at least 5 to trade their values, got {count}")
        return (
            lambda rng: rng.permutation(values[first])[block],
            f"The {count} {whose}s traded their values of {variable}, each with all its documents",
        )
    order = np.argsort(block, kind="stable")

    def within(rng: np.random.Generator) -> FloatArray:
        mixed = np.lexsort((rng.random(len(values)), block))
        result = np.empty_like(values)
        result[order] = values[mixed]
        return result

    return within, f"Values of {variable} were shuffled within each of {count} {whose}s"


def _explained(scaled: FloatArray, values: FloatArray, is_label: bool) -> FloatArray:
    """Share of each standardised column's variance that goes with the values."""
    if is_label:
        parts = [scaled[values == label] for label in np.unique(values)]
        squares = [part.sum(axis=0) ** 2 / len(part) for part in parts]
        return np.asarray(np.sum(squares, axis=0) / len(values))
    centred = values - values.mean()
    length = max(float(centred @ centred), 1e-300)
    return np.asarray((centred @ scaled) ** 2 / (length * len(values)))
