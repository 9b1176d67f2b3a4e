"""From running text to word counts: a tokenizer, stop words and the choice of a vocabulary.

>>> corpus = corpus_from_texts(["The cat sat on the mat.", "A dog and a cat."])
>>> corpus.vocabulary.tolist()
['cat', 'dog', 'mat', 'sat']
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from typing import Annotated, Any, TypedDict, Unpack

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pgmult.core.arguments import as_kind, as_path, as_strings, brief
from pgmult.core.parameters import Checked, real, whole
from pgmult.topics.data.corpus import Corpus, as_corpus
from pgmult.topics.data.documents import Losses, WordLoss

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

StopWords = str | os.PathLike[str] | Iterable[str]

_LONGEST_RUN = 10
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
    stop_words: StopWords
    ngrams: int
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
    stop_words: StopWords = "english",
    ngrams: int = 1,
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
        One text per document.
    names : sequence of str, optional
        One name per document.
    vocabulary : sequence of str, optional
        Count these words, in this order, and no others; then the choices below do not apply,
        except that `ngrams` and `stop_words` say which runs of words are looked up.
    tokenizer : function from str to words
    stop_words : "english", path, or iterable of str
        Words left out: `ENGLISH_STOP_WORDS`, those of a file with one word per line (for any other
        language), or these; pass ``()`` to keep all.
    ngrams : int
        Also count runs of up to this many neighbouring words, none of them a stop word, as words of
        their own: ``united_states``.
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
    return count_words(
        _as_texts(texts), names, vocabulary, tokenizer=tokenizer, stop_words=stop_words,
        ngrams=ngrams, min_count=min_count, min_documents=min_documents,
        max_document_share=max_document_share, max_words=max_words,
    )[0]  # fmt: skip


def count_words(
    texts: Sequence[str],
    names: Sequence[str] | None = None,
    vocabulary: Any = None,
    **text_options: Unpack[TextOptions],
) -> tuple[Corpus, Losses]:
    """The counts, as `corpus_from_texts` makes them, and what was lost on the way to them."""
    choices = WordChoices(**text_options)
    documents = [choices.words_of(text) for text in texts]
    counts: Counter[str] = Counter()
    for words in documents:
        counts.update(words)
    if vocabulary is not None:
        vocabulary = as_strings(vocabulary, "vocabulary")
        others = counts.keys() - set(vocabulary)
        loss = WordLoss(
            "not in the vocabulary given", len(others), sum(counts[word] for word in others)
        )
        left_out: tuple[WordLoss, ...] = (loss,) if others else ()
    else:
        spread: Counter[str] = Counter()
        for words in documents:
            spread.update(words.keys())
        ranked = ((word, counts[word], spread[word]) for word in sorted(counts))
        vocabulary, left_out = choices.choose(ranked, len(documents))
    column = {word: j for j, word in enumerate(vocabulary)}
    if len(column) < len(vocabulary):
        twice = Counter(vocabulary).most_common(1)[0][0]
        raise ValueError(f"vocabulary must not repeat words, got {twice!r} more than once")
    kept = [{column[w]: c for w, c in words.items() if w in column} for words in documents]
    indptr = np.cumsum([0, *map(len, kept)])
    indices = np.array([j for words in kept for j in words], dtype=np.int64)
    amounts = np.array([c for words in kept for c in words.values()], dtype=np.int64)
    matrix = scipy.sparse.csr_array((amounts, indices, indptr), shape=(len(kept), len(column)))
    losses = Losses(
        documents=len(documents),
        without_text=sum(not words for words in documents),
        emptied=sum(bool(words) and not left for words, left in zip(documents, kept, strict=True)),
        words=len(counts),
        tokens=counts.total(),
        left_out=left_out,
        ngrams=choices.ngrams,
    )
    return as_corpus(matrix, vocabulary, names), losses


@dataclass(frozen=True)
class WordChoices(Checked):
    """What counts as a word, and which words stay: the arguments of `corpus_from_texts`."""

    tokenizer: Callable[[str], Iterable[str]] = tokenize
    stop_words: Annotated[Any, lambda value, _: _as_stop_words(value)] = "english"
    ngrams: Annotated[int, whole(1, _LONGEST_RUN)] = 1
    min_count: Annotated[int, whole()] = 1
    min_documents: Annotated[int, whole()] = 1
    max_document_share: Annotated[float, real(above=0.0, maximum=1.0)] = 1.0
    max_words: Annotated[int, whole(2)] | None = None

    def words_of(self, text: str) -> Counter[str]:
        """How often each word stands in a text."""
        return Counter(_runs(_tokens(self.tokenizer, text), self.ngrams, self.stop_words))

    def choose(
        self, words: Iterable[tuple[str, int, int]], num_documents: int
    ) -> tuple[list[str], tuple[WordLoss, ...]]:
        """The words to keep, in alphabetical order, and why others are left out.

        Parameters
        ----------
        words : iterable of (word, count, number of documents with it)
            In alphabetical order. If `max_words` is given, no more of them are held in memory.
        num_documents : int
        """
        most = self.max_document_share * num_documents
        falls: dict[str, Callable[[str, int, int], bool]] = {
            "stop words": lambda word, count, spread: word in self.stop_words,
            f"fewer than {self.min_count} times in all": lambda word, count, spread: (
                count < self.min_count
            ),
            f"in fewer than {self.min_documents} documents": lambda word, count, spread: (
                spread < self.min_documents
            ),
            f"in more than {self.max_document_share:.0%} of the documents": (
                lambda word, count, spread: spread > most
            ),
        }
        lost = {reason: [0, 0] for reason in falls}
        read = [0, 0]  # different words, tokens

        def passing() -> Iterator[tuple[int, str]]:
            for word, count, spread in words:
                reason = next((r for r, fails in falls.items() if fails(word, count, spread)), None)
                place = read if reason is None else lost[reason]
                place[0], place[1] = place[0] + 1, place[1] + count
                if reason is None:
                    yield -count, word

        if self.max_words is None:
            kept = [word for _, word in passing()]
        else:
            first = nsmallest(self.max_words, passing())
            kept = sorted(word for _, word in first)
            tokens = -sum(count for count, _ in first)
            lost[f"beyond the {self.max_words:,} most frequent"] = [
                read[0] - len(first), read[1] - tokens
            ]  # fmt: skip
        if not kept:
            different = sum(words for words, _ in lost.values())
            raise ValueError(
                f"no word is left of {different} different words in {num_documents} documents"
                " (are the texts empty, or do tokenizer, stop_words, min_count, min_documents and"
                " max_document_share leave nothing?)"
            )
        return kept, tuple(WordLoss(why, *what) for why, what in lost.items() if what[0])


def _as_texts(texts: Any) -> list[str]:
    if isinstance(texts, str):
        raise TypeError("texts must be a sequence of strings, got one string (pass [text])")
    return as_strings(texts, "texts")


def _as_stop_words(stop_words: Any) -> frozenset[str]:
    """The set of stop words."""
    if isinstance(stop_words, str) and stop_words == "english":
        return ENGLISH_STOP_WORDS
    if isinstance(stop_words, str | os.PathLike):
        path = as_path(stop_words, "stop_words")
        if not path.is_file():
            raise ValueError(
                f"stop_words must be 'english', a file with a word a line, or words, got"
                f" {str(stop_words)!r} (no such file)"
            )
        try:
            lines = path.read_text(encoding="utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not a file of words in utf-8 ({error.reason})") from None
        return frozenset(word for line in lines for word in [line.strip().lower()] if word)
    in_order = sorted(stop_words, key=str) if isinstance(stop_words, Set) else stop_words
    return frozenset(as_strings(in_order, "stop_words"))


def _runs(words: list[str], longest: int, stops: frozenset[str]) -> list[str]:
    """The words, and runs of neighbouring ones of which none is a stop word."""
    if longest == 1:
        return words
    runs = list(words)
    for length in range(2, longest + 1):
        shifted = (islice(words, start, None) for start in range(length))
        runs += ["_".join(run) for run in zip(*shifted, strict=False) if stops.isdisjoint(run)]
    return runs


def _tokens(tokenizer: Any, text: str) -> list[str]:
    if not callable(tokenizer):
        raise TypeError(f"tokenizer must be a function of a text, got {brief(tokenizer)}")
    try:
        words = tokenizer(text)
    except (TypeError, ValueError) as error:
        raise ValueError(f"tokenizer must take a text: {error}") from error
    return as_strings(words, "tokenizer's words")
