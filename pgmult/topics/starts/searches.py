"""Searches for a good allocation of tokens to topics.

The posterior of topics has many modes, and in practice a chain stays in the mode where it starts.
Good starts are therefore searched for. A search is cheaper than sampling, since topics and theta
are integrated out, and it may split and merge topics, which an exact sampler cannot do as freely.

* ``plain``: one chain of collapsed sweeps, alpha learned once topics have formed.
* ``merge``: start with 1.5 times as many topics as are wanted, then merge the pairs whose merging
  raises F most, a few at a time with sweeps in between.
* ``consensus``: a tree of plain chains. Tokens that two chains both put together stay together: the
  largest cells of the cross-tabulation of the two are the topics of a child, which are merged as
  above. The best of the child and its parents by LOO is kept.

In a large corpus only a part of the documents is searched. The topics of all other tokens are drawn
given the result, followed by a few sweeps (`part_to_search`, `settled`). These sweeps run on one
core. In corpora that are too large for them, only the topics of the part are used, and each
document starts from its own draw given those (`is_too_large_to_sweep`, `Placement`). Every leaf has
a generator of its own, whose key comes from the caller's, so the result does not depend on the
number of threads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, TypeVar

import numpy as np

from pgmult.compiled.rows import over_rows, row_threads
from pgmult.core.arguments import as_repeats
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.topics.compiled.starts import place_tokens
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.starts.allocations import Searched, merge_topics, unsearched
from pgmult.topics.updates.collapsed import Allocation, count_topics

Item = TypeVar("Item")

START_SWEEPS = 100  # of a leaf
StartSweeps = Annotated[int, partial(as_repeats, minimum=0)]
"""A number of sweeps of a search."""
SEARCHES = ("merge", "consensus", "plain")

_HELD = 30  # sweeps before alpha is learned
_FEW = 20  # sweeps that are too few for topics to be split and joined
_SPLIT = 1.5  # topics of an over-split allocation, in units of those wanted
_CELLS = 1.5  # the same of a cross-tabulation
_ROUNDS = 5  # of merges
_LEAF = 0.5, 0.2, 0.3  # shares of a leaf's sweeps before, between and after merges
_CHILD = 0.1, 0.5, 0.4  # the same of a child of two allocations
_CHILD_SWEEPS = 0.8  # of a child, in units of a leaf's

_MOST_TOKENS = 500_000, 10_000  # searched at least, and for each topic: more are placed afterwards
_LARGE = 20_000, 5_000_000  # documents and tokens, both, beyond which no sweep goes over all tokens
_PASSES, _SETTLING = 5, 20  # over tokens that were not searched; sweeps over all tokens then


def leaf(
    rng: np.random.Generator,
    corpus: Corpus,
    num_topics: int,
    eta: float,
    sweeps: int = START_SWEEPS,
    search: str = "merge",
) -> Searched:
    """An allocation of all documents by one leaf, of ``plain`` or ``merge``."""
    part = part_to_search(rng, corpus, num_topics)
    return settled(rng, grown(rng, part, num_topics, eta, sweeps, search), part, corpus, sweeps)


def search_leaves(
    rng: np.random.Generator,
    corpus: Corpus,
    num_topics: int,
    eta: float,
    leaves: int,
    sweeps: int = START_SWEEPS,
    search: str = "merge",
) -> tuple[Searched, list[Searched]]:
    """The best allocation that a search of several leaves came to, and the leaves.

    Leaves run in parallel on the threads of the enclosing `row_threads`.
    """

    def grow(own: np.random.Generator, _: int) -> Searched:
        return grown(own, corpus, num_topics, eta, sweeps, search)

    def join(own: np.random.Generator, parents: tuple[Searched, Searched]) -> Searched:
        return _child(own, *parents, corpus=corpus, sweeps=round(_CHILD_SWEEPS * sweeps))

    first = _side_by_side(rng, grow, range(leaves))
    if search != "consensus":
        return _best_of(first, corpus), first
    generation = first
    while len(generation) > 1:
        parents = list(pairwise(generation))[::2]
        generation = _side_by_side(rng, join, parents) + generation[2 * len(parents) :]
    return generation[0], first


def _side_by_side(
    rng: np.random.Generator,
    task: Callable[[np.random.Generator, Item], Searched],
    items: Sequence[Item],
) -> list[Searched]:
    """``task(generator, item)`` of every item, on threads, each with a generator of its own."""
    generators = [np.random.Generator(np.random.Philox(key=new_key(rng))) for _ in items]

    def run(worker: int, start: int, stop: int) -> list[Searched]:
        with row_threads(1):
            return [task(generators[i], items[i]) for i in range(start, stop)]

    return [result for piece in over_rows(run, len(items), grain=1) for result in piece]


def grown(
    rng: np.random.Generator,
    corpus: Corpus,
    num_topics: int,
    eta: float,
    sweeps: int = START_SWEEPS,
    search: str = "merge",
) -> Searched:
    """An allocation of these documents by one leaf, of ``plain`` or ``merge``."""
    held = min(_HELD, sweeps // 4)
    if search != "merge" or sweeps < _FEW:
        return unsearched(rng, corpus, num_topics, eta).swept(rng, corpus, sweeps, held)
    before, between, after = (round(share * sweeps) for share in _LEAF)
    fine = unsearched(rng, corpus, round(_SPLIT * num_topics), eta)
    fine = fine.swept(rng, corpus, before, held)
    return _joined(rng, fine, corpus, num_topics, between).swept(rng, corpus, after)


def _joined(
    rng: np.random.Generator, at: Searched, corpus: Corpus, num_topics: int, sweeps: int
) -> Searched:
    """With pairs of topics joined until `num_topics` are left, in rounds with sweeps in between."""
    excess = at.num_topics - num_topics
    for left in range(_ROUNDS - 1, -1, -1):
        target = num_topics + excess * left // _ROUNDS
        while at.num_topics > target:
            at = merge_topics(at, corpus, min(at.num_topics - target, at.num_topics // 2))
        at = at.swept(rng, corpus, sweeps // _ROUNDS)
    return at


def part_to_search(
    rng: np.random.Generator, corpus: Corpus, num_topics: int, documents: int | None = None
) -> Corpus:
    """The corpus itself or, of a large one, the words of `documents_to_search`."""
    chosen = documents_to_search(rng, corpus, num_topics, documents)
    return corpus if chosen is None else only_words(corpus, chosen)


def only_words(corpus: Corpus, chosen: IntArray) -> Corpus:
    """The words of some documents, without their names."""
    return Corpus(corpus.indptr, corpus.words, corpus.counts, corpus.num_words)[chosen]


def documents_to_search(
    rng: np.random.Generator, corpus: Corpus, num_topics: int, documents: int | None = None
) -> IntArray | None:
    """Which documents of a large corpus are searched: as many as make up half a million tokens.

    10,000 tokens per topic, where that is more, or so many documents; they are whole and chosen at
    random. None means all.
    """
    if documents is not None:
        if documents >= corpus.num_documents:
            return None
        return np.sort(rng.permutation(corpus.num_documents)[:documents])
    most = max(_MOST_TOKENS[0], _MOST_TOKENS[1] * num_topics)
    if corpus.num_tokens <= most:
        return None
    order = rng.permutation(corpus.num_documents)
    running = np.cumsum(corpus.totals[order])
    return np.sort(order[: max(1, int(np.searchsorted(running, most, side="right")))])


def settled(
    rng: np.random.Generator, found: Searched, part: Corpus, corpus: Corpus, sweeps: int
) -> Searched:
    """An allocation of all documents: drawn given the topics of a part, and swept a few times."""
    if part is corpus:
        return found
    everywhere = Placement.of(found).place(rng, corpus)
    return Searched(everywhere, found.alpha, found.eta).swept(rng, corpus, min(_SETTLING, sweeps))


def is_too_large_to_sweep(corpus: Corpus) -> bool:
    """Whether sweeps from token to token would take longer than what they are to begin."""
    return corpus.num_documents > _LARGE[0] and corpus.num_tokens > _LARGE[1]


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """What the topics of a document's tokens are drawn from, given those of a part of a corpus.

    Attributes
    ----------
    alpha : array, ``(num_topics,)``
        Concentrations of topics in documents.
    by_word : array, ``(num_words, num_topics)``
        Mean word probabilities of topics.
    """

    alpha: FloatArray
    by_word: FloatArray

    @classmethod
    def of(cls, found: Searched) -> "Placement":
        """From an allocation of the part."""
        word_counts = found.allocation.word_counts + found.eta
        return cls(found.alpha, word_counts / word_counts.sum(axis=0))

    def place(self, rng: np.random.Generator, corpus: Corpus) -> Allocation:
        """Every token's topic, in a few passes over each document."""
        first = np.concatenate([[0], np.cumsum(corpus.totals)])
        assignments = np.zeros(corpus.num_tokens, dtype=np.int64)
        over_rows(
            place_tokens, corpus.num_documents, new_key(rng), corpus.entries, first, self.alpha,
            self.by_word, _PASSES, assignments,
        )  # fmt: skip
        return count_topics(corpus, assignments, len(self.alpha))


def _best_of(candidates: Sequence[Searched], corpus: Corpus) -> Searched:
    """The candidate of the largest LOO."""
    if len(candidates) == 1:
        return candidates[0]
    return max(candidates, key=lambda at: at.scores(corpus).loo)


def _child(
    rng: np.random.Generator, first: Searched, second: Searched, corpus: Corpus, sweeps: int
) -> Searched:
    before, between, after = (round(share * sweeps) for share in _CHILD)
    fine = _common_cells(first, second, corpus, round(_CELLS * first.num_topics))
    fine = fine.swept(rng, corpus, before)
    own = _joined(rng, fine, corpus, first.num_topics, between).swept(rng, corpus, after)
    return _best_of([own, first, second], corpus)


def _common_cells(first: Searched, second: Searched, corpus: Corpus, cells: int) -> Searched:
    """Tokens by the topic of either parent: the largest cells, others joining their row's largest.

    A row is a topic of the first parent. One that has no large cell at all joins, token by token,
    the largest of the second's topic, and else the largest of all.
    """
    K = second.num_topics
    cell = first.allocation.assignments * K + second.allocation.assignments
    sizes = np.bincount(cell, minlength=first.num_topics * K)
    largest = np.argsort(-sizes, kind="stable")[:cells]
    number = np.full(len(sizes), -1)
    number[largest] = np.arange(len(largest))
    by_row, by_column = np.full(first.num_topics, -1), np.full(K, -1)
    for at in largest[::-1]:
        by_row[at // K] = by_column[at % K] = number[at]
    rows, columns = np.divmod(np.arange(len(sizes)), K)
    for instead in (by_row[rows], by_column[columns], np.zeros_like(number)):
        number = np.where(number < 0, instead, number)
    alpha_sum = 0.5 * (first.alpha.sum() + second.alpha.sum())
    alpha = np.full(len(largest), alpha_sum / len(largest))
    return Searched(count_topics(corpus, number[cell], len(largest)), alpha, first.eta)
