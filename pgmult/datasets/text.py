"""From running text to word counts: a tokenizer, stop words and the choice of a vocabulary.

>>> corpus = corpus_from_texts(["The cat sat on the mat.", "A dog and a cat."])
>>> corpus.vocabulary.tolist()
['cat', 'dog', 'mat', 'sat']
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, TypedDict

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pgmult.core.arguments import as_kind, as_real, as_strings, brief
from pgmult.core.validate import as_positive_int
from pgmult.topics.data.corpus import Corpus, as_corpus

__all__ = ["ENGLISH_STOP_WORDS", "TextOptions", "corpus_from_texts", "tokenize"]

ENGLISH_STOP_WORDS = frozenset(
    """
    a about above across after again against all almost alone along already also although always
    am among an and another any anybody anyone anything anywhere are aren't around as at away
    be became because become becomes been before behind being below beside besides between beyond
    both but by came can can't cannot could couldn't did didn't do does doesn't doing don't done
    down due during each either else elsewhere enough etc even ever every everybody everyone
    everything everywhere except few for former from further get gets getting given go goes going
    gone got had hadn't has hasn't have haven't having he he'd he'll he's hence her here hers
    herself him himself his how however i i'd i'll i'm i've if in indeed instead into is isn't it
    it'd it'll it's its itself just keep kept latter least less let let's like likely made make
    makes making many may maybe me meanwhile might mine more moreover most mostly much must
    mustn't my myself namely near neither never nevertheless next no nobody none nor not nothing
    now nowhere of off often on once one ones only onto or other others otherwise ought our ours
    ourselves out over own per perhaps put quite rather really said same saw say says see seem
    seemed seems seen several shall she she'd she'll she's should shouldn't since so some somebody
    someone something sometimes somewhere still such take taken than that that's the their theirs
    them themselves then there there's thereby therefore these they they'd they'll they're they've
    this those though through throughout thus to together too took toward towards two under unless
    until up upon us use used uses using usually various very via want was wasn't we we'd we'll
    we're we've well went were weren't what what's whatever when where where's whereas wherever
    whether which while who who's whoever whole whom whose why will with within without won't would
    wouldn't yet you you'd you'll you're you've your yours yourself yourselves
    """.split()  # noqa: SIM905 (words read best as words)
)

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")


def tokenize(text: str) -> list[str]:
    """The words of a text in lower case, two letters or longer, in order.

    A word is a run of letters of any alphabet; an apostrophe inside it belongs to it
    (``don't``), except that a possessive ``'s`` is cut off. Digits, underscores and hyphens
    separate words.
    """
    lower = as_kind(text, "text", str).lower()
    words = _WORD.findall(lower.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
    return [word for word in (w.removesuffix("'s") for w in words) if len(word) > 1]


class TextOptions(TypedDict, total=False):
    """The keyword arguments of `corpus_from_texts` that readers of text pass on."""

    tokenizer: Callable[[str], Iterable[str]]
    stop_words: Iterable[str]
    min_count: int
    min_documents: int
    max_document_share: float
    max_words: int | None


def corpus_from_texts(
    texts: Iterable[str],
    *,
    names: Sequence[str] | None = None,
    vocabulary: Sequence[str] | NDArray[np.str_] | None = None,
    tokenizer: Callable[[str], Iterable[str]] = tokenize,
    stop_words: Iterable[str] = ENGLISH_STOP_WORDS,
    min_count: int = 1,
    min_documents: int = 1,
    max_document_share: float = 1.0,
    max_words: int | None = None,
) -> Corpus:
    """Count the words of texts.

    Every text becomes a document, also when none of its words is kept.

    Parameters
    ----------
    texts : iterable of str
        One text a document.
    names : sequence of str, optional
        One name a document.
    vocabulary : sequence of str, optional
        Count these words, in this order, and no others; then the choices below do not apply.
    tokenizer : function from str to words
    stop_words : iterable of str
        Words left out; pass ``()`` to keep all.
    min_count : int
        Leave out words that occur less often than this in the whole corpus.
    min_documents : int
        Leave out words that occur in fewer documents than this.
    max_document_share : float in (0, 1]
        Leave out words that occur in a larger share of the documents.
    max_words : int, optional
        Of the words left, keep the most frequent; of equally frequent ones, the first in
        alphabetical order.

    Returns
    -------
    Corpus
        Its vocabulary is in alphabetical order, unless it was given.

    Raises
    ------
    ValueError
        If no word is left, or an option is out of its range.
    """
    min_count = as_positive_int(min_count, "min_count")
    min_documents = as_positive_int(min_documents, "min_documents")
    if max_words is not None:
        max_words = as_positive_int(max_words, "max_words", minimum=2)
    max_document_share = as_real(max_document_share, "max_document_share", above=0.0, maximum=1.0)
    stop_words = _as_stop_words(stop_words)
    documents = [Counter(_tokens(tokenizer, text)) for text in _as_texts(texts)]
    if vocabulary is not None:
        vocabulary = as_strings(vocabulary, "vocabulary")
    else:
        vocabulary = _choose_vocabulary(
            documents,
            stop_words,
            min_count,
            min_documents,
            max_document_share,
            max_words,
        )
    column = {word: j for j, word in enumerate(vocabulary)}
    if len(column) < len(vocabulary):
        twice = Counter(vocabulary).most_common(1)[0][0]
        raise ValueError(f"vocabulary must not repeat words, got {twice!r} more than once")
    kept = [{column[w]: c for w, c in words.items() if w in column} for words in documents]
    indptr = np.cumsum([0, *map(len, kept)])
    indices = np.array([j for words in kept for j in words], dtype=np.int64)
    counts = np.array([c for words in kept for c in words.values()], dtype=np.int64)
    matrix = scipy.sparse.csr_array((counts, indices, indptr), shape=(len(kept), len(column)))
    return as_corpus(matrix, vocabulary, names)


def _as_texts(texts: Any) -> list[str]:
    if isinstance(texts, str):
        raise TypeError("texts must be a sequence of strings, got one string (pass [text])")
    return as_strings(texts, "texts")


def _as_stop_words(stop_words: Any) -> frozenset[str]:
    """Words in any order, so that a set will do."""
    in_order = sorted(stop_words, key=str) if isinstance(stop_words, Set) else stop_words
    return frozenset(as_strings(in_order, "stop_words"))


def _tokens(tokenizer: Any, text: str) -> list[str]:
    if not callable(tokenizer):
        raise TypeError(f"tokenizer must be a function of a text, got {brief(tokenizer)}")
    try:
        words = tokenizer(text)
    except (TypeError, ValueError) as error:
        raise ValueError(f"tokenizer must take a text: {error}") from error
    return as_strings(words, "tokenizer's words")


def _choose_vocabulary(
    documents: list[Counter[str]],
    stop_words: frozenset[str],
    min_count: int,
    min_documents: int,
    max_document_share: float,
    max_words: int | None,
) -> list[str]:
    counts: Counter[str] = Counter()
    spread: Counter[str] = Counter()
    for words in documents:
        counts.update(words)
        spread.update(words.keys())
    most = max_document_share * len(documents)
    kept = [
        word
        for word in sorted(counts)
        if counts[word] >= min_count
        and min_documents <= spread[word] <= most
        and word not in stop_words
    ]
    if max_words is not None and len(kept) > max_words:
        kept = sorted(sorted(kept, key=lambda word: (-counts[word], word))[:max_words])
    if not kept:
        raise ValueError(
            f"no word is left of {len(counts)} different words in {len(documents)} documents"
            " (are the texts empty, or do tokenizer, stop_words, min_count, min_documents and"
            " max_document_share leave nothing?)"
        )
    return kept
