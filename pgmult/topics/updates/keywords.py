r"""Keyword-assisted topics: some of a topic's words are given.

A token of topic k is one of its keywords with probability pi_k (Eshima, Imai and Sasaki 2024,
"Keyword-assisted topic models", section 2)::

    pi_k ~ Beta,    kappa_k ~ Dir on the keywords of k,    w ~ (1 - pi_k) beta_k + pi_k kappa_k

Tokens are allocated by the mixture. Of the n tokens that topic k has of a keyword v, those that
came as a keyword are binomial with probability pi_k kappa_kv over the mixture's, and without them
everything is as if there were no keywords.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from pgmult.core.arguments import as_strings, brief
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.topics.data.corpus import Corpus

_SHARE = (1.0, 1.0)  # of the beta prior of pi
_SPREAD = 0.5  # of the Dirichlet prior of kappa
_START = 0.3  # pi where a chain begins
_EMPTY = partial(np.empty, 0)

NamedWords = tuple[tuple[str, tuple[str, ...]], ...]
"""Names of topics and their keywords."""


@dataclass(frozen=True, slots=True, eq=False)
class KeywordsState:
    """Fields of a state for keywords: empty without any.

    Attributes
    ----------
    keyword_shares : array, ``(num_keyword_topics,)``
        Share of a topic's tokens that came as its keywords.
    keyword_words : array, ``(num_keywords,)``
        Probability of each keyword among those of its topic.
    """

    _: KW_ONLY
    keyword_shares: Annotated[FloatArray, "keyword_topic"] = field(default_factory=_EMPTY)
    keyword_words: Annotated[FloatArray, "keyword"] = field(default_factory=_EMPTY)


def as_keywords(keywords: object, num_topics: int) -> NamedWords:
    """Names and words of the first topics, checked; () for none."""
    if keywords is None:
        return ()
    if isinstance(keywords, tuple) and all(map(_is_checked, keywords)):
        keywords = dict(keywords)  # as a model that is copied has them
    if not isinstance(keywords, Mapping):
        such = "a mapping from a topic's name to its words, such as {'economy': ['tax', 'jobs']}"
        raise TypeError(f"keywords must be {such}, got {brief(keywords)}")
    checked = dict[str, tuple[str, ...]]()
    for name, words in keywords.items():
        if not isinstance(name, str):
            raise TypeError(f"keywords must have names of topics as keys, got {brief(name)}")
        checked[name] = tuple(dict.fromkeys(as_strings(words, f"keywords[{name!r}]")))
        if not checked[name]:
            raise ValueError(f"keywords[{name!r}] must hold a word at least")
    if len(checked) > num_topics:
        raise ValueError(f"keywords must be of {num_topics} topics at most, got {len(checked)}")
    return tuple(checked.items())


def _is_checked(pair: object) -> bool:
    return isinstance(pair, tuple) and [*map(type, pair)] == [str, tuple]


@dataclass(frozen=True, slots=True, eq=False)
class Keywords:
    """Keywords as pairs of a topic and a word; without any it leaves topics as they are.

    Attributes
    ----------
    topics, words : int64 arrays, ``(num_pairs,)``
        Topic after topic.
    bounds : int64 array, ``(num_keyword_topics + 1,)``
        Pairs of topic k are ``bounds[k]:bounds[k + 1]``.
    """

    topics: IntArray
    words: IntArray
    bounds: IntArray

    @classmethod
    def of(cls, keywords: NamedWords, data: Corpus) -> "Keywords":
        """Keywords as words of a corpus; a word that it does not have is refused."""
        if keywords and data.vocabulary is None:
            raise ValueError("keywords need a corpus with a vocabulary (as_corpus(counts, words))")
        wanted = {word: name for name, words in keywords for word in words}
        vocabulary = data.vocabulary.tolist() if keywords and data.vocabulary is not None else []
        place = {word: v for v, word in enumerate(vocabulary) if word in wanted}
        for word, name in wanted.items():
            if word not in place:
                raise ValueError(f"keywords[{name!r}] must be words of the corpus, got {word!r}")
        sizes = [len(words) for _, words in keywords]
        places = np.array([place[word] for _, words in keywords for word in words], dtype=np.int64)
        bounds = np.cumsum([0, *sizes], dtype=np.int64)
        return cls(np.repeat(np.arange(len(sizes)), sizes), places, bounds)

    def prior(self, rng: Generator) -> tuple[FloatArray, FloatArray]:
        """Shares pi and words kappa, one number a pair, from their prior."""
        return self._draw(rng, np.zeros(len(self.words)), np.zeros(len(self.bounds) - 1))

    def start(self) -> tuple[FloatArray, FloatArray]:
        """Shares and words that a chain begins with."""
        sizes = np.diff(self.bounds)
        return np.full(len(sizes), _START), np.repeat(1.0 / sizes, sizes)

    def best_order(self, word_counts: IntArray) -> IntArray:
        """Topics ``(num_topics, num_words)`` so ordered that the first have their keywords."""
        owned = word_counts[:, self.words] / np.maximum(word_counts[:, self.words].sum(axis=0), 1)
        shares = np.stack([owned[:, a:b].mean(axis=1) for a, b in pairwise(self.bounds)])
        chosen = linear_sum_assignment(-shares)[1]
        others = np.setdiff1d(np.arange(len(word_counts)), chosen)
        return np.concatenate([chosen, others])

    def mixed(self, plain: FloatArray, shares: FloatArray, words: FloatArray) -> FloatArray:
        """Words of topics ``(..., num_topics, num_words)`` with their keywords mixed in."""
        if not len(shares):
            return plain
        mixture = plain.copy()
        mixture[..., : len(shares), :] *= (1.0 - shares)[:, None]
        mixture[..., self.topics, self.words] += shares[self.topics] * words
        return mixture

    def sample(
        self, rng: Generator, counts: IntArray, mixture: FloatArray, state: KeywordsState
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Draw which tokens came as keywords, then shares and words.

        Parameters
        ----------
        counts : int64 array, ``(num_groups, num_topics, num_words)``
        mixture : array, ``(num_groups, num_topics, num_words)``
            What the tokens were allocated by.
        state : KeywordsState
            Shares and words that `mixture` has.

        Returns
        -------
        counts without them, shares, words
        """
        shares, words = state.keyword_shares, state.keyword_words
        if not len(shares):
            return counts, shares, words
        tokens = counts[:, self.topics, self.words]
        chance = shares[self.topics] * words / mixture[:, self.topics, self.words]
        came = rng.binomial(tokens, np.clip(np.where(tokens > 0, chance, 0.0), 0.0, 1.0))
        left = counts.copy()
        left[:, self.topics, self.words] -= came
        totals = counts[:, : len(shares)].sum(axis=(0, 2))
        return left, *self._draw(rng, came.sum(axis=0), totals)

    def _draw(self, rng: Generator, came: Any, totals: Any) -> tuple[FloatArray, FloatArray]:
        sums = np.array([came[a:b].sum() for a, b in pairwise(self.bounds)])
        shares = rng.beta(_SHARE[0] + sums, _SHARE[1] + totals - sums)
        words = [rng.dirichlet(_SPREAD + came[a:b]) for a, b in pairwise(self.bounds)]
        return np.asarray(shares), np.concatenate([np.empty(0), *words])
