"""Searches for a good allocation of tokens to topics.

The posterior of topics has many modes, and in practice a chain stays in the mode where it starts.
Good starts are therefore searched for. A search is cheaper than sampling, since topics and theta
are integrated out, and it may split and merge topics, which an exact sampler cannot do as freely.

A leaf of a search is one chain of collapsed sweeps, alpha learned once topics have formed. It
starts with 1.5 times as many topics as are wanted, then merges the pairs whose merging raises F
most, a few at a time with sweeps in between. The best of several leaves by LOO is kept.

In a large corpus only a part of the documents is searched. The topics of all other tokens are drawn
given the result, followed by a few sweeps (`Part`, `settled`). These sweeps run on one
core. In corpora that are too large for them, only the topics of the part are used, and each
document starts from its own draw given those (`is_too_large_to_sweep`, `Placement`). Every leaf has
a generator of its own, whose key comes from the caller's, so the result does not depend on the
number of threads.

Sweeps go from token to token. Counts that are so large that they are no words of a text (100 a cell
and 5 million in all) are searched in larger units (`thinned`), and their topics are then drawn as
counts, given those that were found.

An allocation z with concentrations alpha and eta is judged by LOO = sum_i log p(w_i | z_-i, w_-i),
in nats, each word predicted from all others: among allocations of simulated documents it orders
almost exactly as the recovery of the truth does. The log joint J = log p(w, z | alpha, eta), theta
and the topics integrated out, ignores how many allocations are about as good, and so prefers
degenerate ones.

Topics are joined by the change of F = J + sum_i H(z_i | z_-i, w), which adds the entropy of every
token's topic given all others: see `merge_gains`.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from pgmult.compiled.rows import over_rows, row_threads
from pgmult.core.arguments import as_repeats
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.core.validate import keyed_generator, new_key
from pgmult.links import LogisticNormal, StickBreaking
from pgmult.topics.compiled import starts as compiled
from pgmult.topics.compiled.collapsed import Tallies
from pgmult.topics.compiled.starts import place_tokens
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.updates import collapsed
from pgmult.topics.updates.allocation import allocate_tokens, sample_topics

_ROWS = 2**14  # documents that are looked at together
_FLAT = 0.25  # of a document's distance from the mean of psi, where chains begin, and
_LONG = 10_000  # tokens of a document, of which half as much is taken away, and
_SHORT = 5.0  # tokens of a document for each topic, below which less is taken away
_ALPHA_SUM = 5.0  # of the concentrations that a search starts from
_ALPHA_SHAPE = _ALPHA_RATE = 1.0  # of their gamma priors


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """An allocation and its concentrations: a point of a search.

    Attributes
    ----------
    allocation : Allocation
    alpha : array, ``(num_topics,)``
        Of topics in documents.
    eta : float
        Of words in topics.
    """

    allocation: collapsed.Allocation
    alpha: FloatArray
    eta: float

    @property
    def num_topics(self) -> int:
        """Number of topics, K."""
        return len(self.alpha)

    @property
    def sizes(self) -> IntArray:
        """Tokens of each topic."""
        return np.asarray(self.allocation.word_counts.sum(axis=0))

    def theta(self, rows: slice = slice(None)) -> FloatArray:
        """Mean proportions given the allocation, ``(num_documents, num_topics)``, all positive."""
        smoothed = self.allocation.topic_counts[rows] + self.alpha
        return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))

    def psi(self, link: Any) -> FloatArray:
        """Where a link has these proportions, some documents at a time."""
        count = len(self.allocation.topic_counts)
        psi = np.empty((count, link.inverse(self.theta(slice(1))).shape[1]))
        for first in range(0, count, _ROWS):
            rows = slice(first, first + _ROWS)
            psi[rows] = link.inverse(self.theta(rows))
        return psi

    def flat_psi(
        self, link: StickBreaking | LogisticNormal, centre: FloatArray | None = None
    ) -> FloatArray:
        """Psi where a chain begins: documents much nearer their centre than in the allocation.

        An allocation of tokens has documents nearly pure. A chain that begins so needs many hundred
        sweeps to find its way to mixed documents, where the posterior has them, while the way from
        mixed to pure documents takes some fifty. Very long documents stay where they are: their
        proportions are known, and so are the topics, which would leave their places. So do, more or
        less, documents of few tokens for each topic, whose way from the flat side is slow as well.

        Parameters
        ----------
        link : Link
        centre : array, ``(n,)``, optional
            The mean of psi by default.
        """
        psi = self.psi(link)
        if centre is None:
            centre = psi.mean(axis=0)
        lengths = self.allocation.topic_counts.sum(axis=1, keepdims=True)
        taken = np.minimum(1.0, lengths / (_SHORT * self.num_topics)) * _LONG / (_LONG + lengths)
        return np.asarray(centre + (1.0 - (1.0 - _FLAT) * taken) * (psi - centre))

    def topics(self) -> FloatArray:
        """Mean word probabilities given the allocation, ``(num_topics, num_words)``."""
        smoothed = self.allocation.word_counts.T + self.eta
        return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))

    def drawn_topics(self, rng: Generator) -> FloatArray:
        """Word probabilities drawn given the allocation, ``(num_topics, num_words)``."""
        return sample_topics(rng, self.eta, self.allocation.word_counts.T)

    def swept(self, rng: Generator, corpus: Corpus, sweeps: int, held: int = 0) -> "Searched":
        """Return the point after collapsed sweeps; alpha is fixed in the first `held` of them."""
        at, alpha, prior = self.allocation, self.alpha, (_ALPHA_SHAPE, _ALPHA_RATE)
        for number in range(sweeps):
            at = collapsed.sweep(rng, corpus, at, alpha, self.eta)
            if number >= held:
                alpha = collapsed.sample_concentrations(rng, alpha, at.topic_counts, *prior)
        return Searched(at, alpha, self.eta)

    def loo(self, corpus: Corpus) -> float:
        """LOO, in O(tokens K)."""
        return float(compiled.join_in_tokens(*_tokens_of(self, corpus), np.empty((0, 0))))

    def ordered(self, order: IntArray) -> "Searched":
        """The same, topics in another order."""
        at = self.allocation
        both = at.topic_counts, at.word_counts
        topic_counts, word_counts = (np.ascontiguousarray(of[:, order]) for of in both)
        assignments = np.argsort(order)[at.assignments]
        allocation = collapsed.Allocation(assignments, topic_counts, word_counts)
        return Searched(allocation, self.alpha[order], self.eta)


def unsearched(rng: Generator, corpus: Corpus, num_topics: int, eta: float) -> Searched:
    """Topics drawn uniformly, token by token."""
    alpha = np.full(num_topics, _ALPHA_SUM / num_topics)
    return Searched(collapsed.random_allocation(rng, corpus, num_topics), alpha, eta)


def _tokens_of(at: Searched, corpus: Corpus) -> tuple[object, ...]:
    """Return the first arguments of compiled passes over all tokens."""
    allocation = at.allocation
    tallies = Tallies(allocation.topic_counts, allocation.word_counts, at.sizes)
    return corpus.entries, allocation.assignments, at.alpha, at.eta, tallies


def merge_gains(at: Searched, corpus: Corpus) -> FloatArray:
    """Changes of F when two topics become one, ``(num_topics, num_topics)``.

    Entry (a, b), a < b, is exact in the log joint, alpha_a + alpha_b the joined topic's. For the
    entropies the shares of a and b in each token are added up, where both have 0.1 % or more.
    Entries elsewhere are -inf. O(tokens K + (documents + words) K**2) at most.
    """
    allocation, sizes, smoothing = at.allocation, at.sizes, at.eta * corpus.num_words
    gains, pairs = np.zeros((at.num_topics, at.num_topics)), np.add.outer(at.alpha, at.alpha)
    compiled.join_in_tokens(*_tokens_of(at, corpus), gains)
    compiled.join_in_rows(allocation.topic_counts, pairs, gains)
    compiled.join_in_rows(allocation.word_counts, np.full_like(pairs, at.eta), gains)
    for k, counts in enumerate(allocation.topic_counts.T):  # its own terms, alpha_k that of a pair
        values, times = np.unique(counts[counts > 0], return_counts=True)
        alpha = np.append(pairs[k], at.alpha[k])
        rise = times @ (gammaln(values[:, None] + alpha) - gammaln(alpha))
        gains[k] += rise[:-1] - rise[-1]
        gains[:, k] += rise[:-1] - rise[-1]
    both = np.add.outer(sizes, sizes) + smoothing
    gains += np.add.outer(gammaln(sizes + smoothing), gammaln(sizes + smoothing))
    gains -= gammaln(both) + gammaln(smoothing)
    gains[np.tril_indices(at.num_topics)] = -np.inf
    return gains


def merge_topics(at: Searched, corpus: Corpus, merges: int) -> Searched:
    """Join `merges` pairs of topics, those of the largest gains that share no topic.

    Raises
    ------
    ValueError
        If there are not as many pairs.
    """
    K = at.num_topics
    if not 0 <= merges <= K // 2:
        raise ValueError(f"merges must be from 0 to {K // 2} of {K} topics, got {merges}")
    gains = merge_gains(at, corpus)
    into = np.arange(K)
    free = np.ones(K, dtype=bool)
    for place in np.argsort(-gains, axis=None, kind="stable"):
        if merges == 0:
            break
        a, b = divmod(int(place), K)
        if a < b and free[a] and free[b]:
            into[b] = a
            free[a] = free[b] = False
            merges -= 1
    remaining, new = np.unique(into, return_inverse=True)
    alpha = np.zeros(len(remaining))
    np.add.at(alpha, new, at.alpha)
    assignments = new[at.allocation.assignments]
    return Searched(collapsed.count_topics(corpus, assignments, len(remaining)), alpha, at.eta)


START_SWEEPS = 100  # of a leaf
StartSweeps = Annotated[int, partial(as_repeats, minimum=0)]
"""A number of sweeps of a search."""

_HELD = 30  # sweeps before alpha is learned
_FEW = 20  # sweeps that are too few for topics to be split and joined
_SPLIT = 1.5  # topics of an over-split allocation, in units of those wanted
_ROUNDS = 5  # of merges
_LEAF = 0.5, 0.2, 0.3  # shares of a leaf's sweeps before, between and after merges

_MOST_TOKENS = 500_000, 10_000  # searched at least, and for each topic: more are placed afterwards
_LARGE = 20_000, 5_000_000  # documents and tokens, both, beyond which no sweep goes over all tokens
_DENSE, _UNITS = 100, 10  # tokens of a cell beyond which units are larger, and of one then
_SETTLING = 20  # sweeps over all tokens, once those that were not searched have topics


def leaf(
    rng: Generator, corpus: Corpus, num_topics: int, eta: float, sweeps: int = START_SWEEPS
) -> Searched:
    """An allocation of all documents by one leaf."""
    part = Part.of(rng, corpus, num_topics)
    searched = settled(rng, grown(rng, part.words, num_topics, eta, sweeps), part, sweeps)
    return counted(rng, searched, part.corpus, corpus)


def thinned(rng: Generator, corpus: Corpus, num_topics: int) -> Corpus:
    """The corpus itself; or, of large counts, one of about as many tokens as are searched."""
    tokens, cells = corpus.num_tokens, len(corpus.words)
    if tokens <= _LARGE[1] or tokens <= _DENSE * cells:
        return corpus
    share = max(_MOST_TOKENS[0], _MOST_TOKENS[1] * num_topics, _UNITS * cells) / tokens
    counts = np.floor(corpus.counts * share + rng.random(cells)).astype(np.int32)
    is_left = counts > 0
    indptr = np.concatenate([[0], np.cumsum(is_left)])[corpus.indptr]
    return Corpus(indptr, corpus.words[is_left], counts[is_left], corpus.num_words)


def counted(rng: Generator, searched: Searched, small: Corpus, corpus: Corpus) -> Searched:
    """Topics of all tokens, as counts alone, given proportions that were found in `small`."""
    if small is corpus:
        return searched
    counts = _counts_of(rng, corpus, searched.theta(), searched.topics())
    return replace(searched, allocation=counts)


def _counts_of(
    rng: Generator, corpus: Corpus, theta: FloatArray, topics: FloatArray
) -> collapsed.Allocation:
    topic_counts, word_counts = allocate_tokens(rng, corpus, theta, topics)
    none = np.zeros(0, dtype=np.int64)
    return collapsed.Allocation(none, topic_counts, np.ascontiguousarray(word_counts.T))


def search_leaves(
    rng: Generator, corpus: Corpus, num_topics: int, eta: float, leaves: int,
    sweeps: int = START_SWEEPS,
) -> tuple[Searched, list[Searched], list[float]]:  # fmt: skip
    """The best allocation that a search of several leaves came to, the leaves, and their LOO.

    Leaves run in parallel on the threads of the enclosing `row_threads`.
    """
    generators = [keyed_generator(new_key(rng)) for _ in range(leaves)]

    def run(worker: int, start: int, stop: int) -> list[Searched]:
        with row_threads(1):
            return [grown(of, corpus, num_topics, eta, sweeps) for of in generators[start:stop]]

    results = [leaf for piece in over_rows(run, leaves, grain=1) for leaf in piece]
    loo = [at.loo(corpus) for at in results]
    return results[int(np.argmax(loo))], results, loo


def grown(
    rng: Generator, corpus: Corpus, num_topics: int, eta: float, sweeps: int = START_SWEEPS
) -> Searched:
    """An allocation of these documents by one leaf."""
    held = min(_HELD, sweeps // 4)
    if sweeps < _FEW:
        return unsearched(rng, corpus, num_topics, eta).swept(rng, corpus, sweeps, held)
    before, between, after = (round(share * sweeps) for share in _LEAF)
    fine = unsearched(rng, corpus, round(_SPLIT * num_topics), eta)
    fine = fine.swept(rng, corpus, before, held)
    return _joined(rng, fine, corpus, num_topics, between).swept(rng, corpus, after)


def _joined(rng: Generator, at: Searched, corpus: Corpus, num_topics: int, sweeps: int) -> Searched:
    """Join pairs of topics until `num_topics` are left, in rounds with sweeps in between."""
    excess = at.num_topics - num_topics
    for left in range(_ROUNDS - 1, -1, -1):
        target = num_topics + excess * left // _ROUNDS
        while at.num_topics > target:
            at = merge_topics(at, corpus, min(at.num_topics - target, at.num_topics // 2))
        at = at.swept(rng, corpus, sweeps // _ROUNDS)
    return at


class Part(NamedTuple):
    """What a search goes over: of a large corpus, documents with half a million tokens.

    With 10,000 tokens per topic, where that is more; they are whole and chosen at random.

    Attributes
    ----------
    corpus : Corpus
        The whole, `thinned`.
    documents : int array or None
        Those that are searched; None means all.
    words : Corpus
        Theirs.
    """

    corpus: Corpus
    documents: Any
    words: Corpus

    @classmethod
    def of(cls, rng: Generator, corpus: Corpus, num_topics: int) -> "Part":
        """Choose documents."""
        small = thinned(rng, corpus, num_topics)
        most = max(_MOST_TOKENS[0], _MOST_TOKENS[1] * num_topics)
        if small.num_tokens <= most:
            return cls(small, None, small)
        order = rng.permutation(small.num_documents)
        running = np.cumsum(small.totals[order])
        chosen = np.sort(order[: max(1, int(np.searchsorted(running, most, side="right")))])
        return cls(small, chosen, small.bare[chosen])


def settled(rng: Generator, at: Searched, part: Part, sweeps: int) -> Searched:
    """An allocation of all documents: drawn given the topics of a part, and swept a few times."""
    if part.documents is None:
        return at
    everywhere = replace(at, allocation=Placement.of(at).place(rng, part.corpus))
    return everywhere.swept(rng, part.corpus, min(_SETTLING, sweeps))


def is_too_large_to_sweep(corpus: Corpus) -> bool:
    """Return whether sweeps over single tokens would take longer than the chain itself."""
    return corpus.num_documents > _LARGE[0] and corpus.num_tokens > _LARGE[1]


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The distribution of topics of tokens given the topics of a searched part of a corpus.

    Attributes
    ----------
    alpha : array, ``(num_topics,)``
        Concentrations of topics in documents.
    by_word : array, ``(num_words, num_topics)``
        Mean word probabilities of topics.
    centre : array, ``(n,)``
        Mean psi of the part, if a link is given; else empty.
    """

    alpha: FloatArray
    by_word: FloatArray
    centre: FloatArray

    @classmethod
    def of(cls, searched: Searched, link: Any = None) -> "Placement":
        """Make one from an allocation of the part."""
        word_counts = searched.allocation.word_counts + searched.eta
        centre = np.empty(0) if link is None else searched.psi(link).mean(axis=0)
        return cls(searched.alpha, word_counts / word_counts.sum(axis=0), centre)

    def place(self, rng: Generator, corpus: Corpus) -> collapsed.Allocation:
        """Every token's topic, in a few passes over each document; of large counts as counts."""
        small = thinned(rng, corpus, len(self.alpha))
        if small is not corpus:
            at = Searched(self.place(rng, small), self.alpha, 0.0)
            return _counts_of(rng, corpus, at.theta(), np.ascontiguousarray(self.by_word.T))
        first = np.concatenate([[0], np.cumsum(corpus.totals)])
        assignments = np.zeros(corpus.num_tokens, dtype=np.int64)
        given = corpus.entries, first, self.alpha, self.by_word, assignments
        over_rows(place_tokens, corpus.num_documents, new_key(rng), *given)
        return collapsed.count_topics(corpus, assignments, len(self.alpha))
