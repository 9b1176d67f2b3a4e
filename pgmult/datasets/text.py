"""Word counts of running text: a tokenizer, stop words and the choice of a vocabulary.

A word is a run of letters and digits, a letter among them, with the marks that belong to them
(Unicode Standard Annex 29, word boundaries), in Unicode's normal form C and lower case, whatever
the script. Web addresses, names of users and single letters are dropped and counted: the table of
losses begins with all of the text.

>>> corpus, losses = count_words(["The cat sat on the mat.", "A dog and a cat."])
>>> corpus.vocabulary.tolist()
['cat', 'dog', 'mat', 'sat']
"""

import ast
import html
import json
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack

import numpy as np
import regex
import scipy.sparse

from pgmult.core.arguments import as_kind, as_path, as_strings, brief
from pgmult.core.labels import is_missing
from pgmult.core.parameters import Checked, real, whole
from pgmult.datasets.files import each_line
from pgmult.datasets.languages import LANGUAGES, language_code, language_of, stop_words_of
from pgmult.topics.data.corpus import Corpus, as_corpus
from pgmult.topics.data.documents import Losses, WordLoss

ENGLISH_STOP_WORDS = frozenset(
    Path(__file__).with_name("stop_words_english.txt").read_text(encoding="ascii").split()
)

StopWords = str | os.PathLike[str] | Iterable[str]
Text = str | Sequence[str]
"""A text, or the words of one, which stay as they are."""

LOOKED_AT = 500  # texts that show the language
DETECTED = "detected"

_LONGEST_RUN = 10
_LETTERS = (
    r"(?:(?<!\p{Nd}[.,])\p{Nd}+)?"  # of 2.5kg, only kg
    r"\p{L}[\p{L}\p{M}\p{Nd}\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}]*"
)
_INSIDE = "['\N{MIDDLE DOT}\N{HEBREW PUNCTUATION GERESH}\N{HEBREW PUNCTUATION GERSHAYIM}]"
_NUMBERED = r"(?:-\p{Nd}{1,3}(?![\p{L}\p{Nd}-]))?"  # covid-19, F-16
_WORD = regex.compile(rf"{_LETTERS}(?:{_INSIDE}{_LETTERS})*{_NUMBERED}")
_SENTENCE = regex.compile(
    r"(?:(?<!\b(?:\p{L}|[DM]rs?|Ms|St|Jr|Sr|Prof|Gen|Sen|Rep|Gov|No|vs|cf))\.|[!?…]+)"
    r"[\"'’”»)\]]*\s+|[。！？]+|\n\s*\n"
)
_HASHTAG = regex.compile(rf"(?<![\w&/#])#\w*{_LETTERS}\w*")
_HASHTAG_OR_WORD = regex.compile(rf"{_HASHTAG.pattern}|{_WORD.pattern}")
_ENTITY = regex.compile(r"&(?:[A-Za-z]\w{1,31}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_AMPERSAND = regex.compile(r"(?<=&\s?)amp\b")  # what others leave of an entity
_WEB_ADDRESS = regex.compile(
    r"\b(?:https?|ftp)(?::\S*|\s+t\s+co\s+\w+|\b)|\bwww\.\S+|\b(?:t\.co|bit\.ly)/\w+"
    r"|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    regex.IGNORECASE,
)
_USER = regex.compile(r"(?<![\w@.])@\w+")
_LATIN_LETTER = regex.compile(r"\p{Script=Latin}\p{M}*")
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WITHOUT_SPACES = regex.compile(rf"[{_UNSPACED}][{_UNSPACED}\p{{M}}ー]*")
_LETTER = regex.compile(r"\p{L}")
_FIRST_WITHOUT_SPACES = "\N{THAI CHARACTER KO KAI}"  # no letter before it is of such a script
_LONGEST_SEGMENT = 6.0  # letters of a run, on average: words of these scripts are shorter
_ENOUGH = 0.1  # of all letters, to be what the texts are written in
_INVISIBLE = dict.fromkeys(map(ord, "\N{SOFT HYPHEN}\N{WORD JOINER}\ufeff\u200e\u200f"))
_INVISIBLE |= {ord("\N{RIGHT SINGLE QUOTATION MARK}"): "'"}


def normal_form(text: str) -> str:
    """One spelling of what looks the same: normal form C, no invisible marks, plain apostrophes."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text.translate(_INVISIBLE))


def lower_case(text: str) -> str:
    """The normal form in lower case; a dotted capital I becomes an i."""
    return normal_form(normal_form(text).lower().replace("i\N{COMBINING DOT ABOVE}", "i"))


def split_words(text: str) -> list[str]:
    """All words of a text, in lower case and in order, those of one letter among them."""
    words = _HASHTAG_OR_WORD.findall(lower_case(text))
    return [word.removesuffix("'s") for word in words]


def tokenize(text: str) -> list[str]:
    """The words of a text in lower case, in order.

    A word is a run of letters of any script with their marks; an apostrophe inside it belongs to
    it (``don't``), except that a possessive ``'s`` is cut off. Digits beside letters belong to the
    word (``CO2``, ``5G``), and up to three after a hyphen (``covid-19``); numbers alone are none.
    Other hyphens and underscores separate words, but in a hashtag, which is a word
    (``#covid_19``). Single letters of the Latin script are none.
    """
    words = split_words(as_kind(text, "text", str))
    return [word for word in words if not _LATIN_LETTER.fullmatch(word)]


class TextOptions(TypedDict, total=False):
    """How words are chosen, as keyword arguments: see `WordChoices`."""

    tokenizer: Callable[[str], Iterable[str]]
    keep_addresses: bool
    stop_words: StopWords
    ngrams: int
    min_count: int
    min_documents: int
    max_document_share: float
    max_words: int | None


def tokens_of(cells: Iterable[object]) -> list[Text] | None:
    """Lists of words, where all cells are lists of strings, or such lists as text.

    >>> tokens_of(["['new york', 'is']", None, ["big"]])
    [['new york', 'is'], [], ['big']]
    """
    lists: list[Text] = []
    for cell in cells:
        if is_missing(cell):
            lists.append([])
            continue
        if isinstance(cell, str) and cell[:1] == "[":
            for read in (json.loads, ast.literal_eval):  # as Python writes it
                with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                    cell = read(cell)
                    break
        cell = cell.tolist() if isinstance(cell, np.ndarray) else cell
        if not isinstance(cell, list | tuple) or not all(isinstance(x, str) for x in cell):
            return None
        lists.append(list(cell))
    return lists if any(lists) else None


def count_words(
    texts: Sequence[Text], names: Sequence[str] | None = None, **text_options: Unpack[TextOptions]
) -> tuple[Corpus, Losses]:
    """The counts of texts, one a document, and what was lost on the way to them."""
    choices = WordChoices(**text_options).for_texts(texts[:LOOKED_AT])
    dropped = Dropped()
    documents = [choices.words_of(text, dropped) for text in texts]
    dropped.refuse_unsegmented()
    return chosen_counts(documents, names, choices, dropped)


def chosen_counts(
    documents: Sequence[Counter[str]], names: Sequence[str] | None, choices: "WordChoices",
    dropped: "Dropped",
) -> tuple[Corpus, Losses]:  # fmt: skip
    """The corpus of the words of documents that are kept, and what was lost."""
    counts, spread = Counter[str](), Counter[str]()
    for words in documents:
        counts.update(words)
        spread.update(words.keys())
    ranked = ((word, counts[word], spread[word]) for word in sorted(counts))
    vocabulary, left_out = choices.choose(ranked, len(documents))
    column = {word: j for j, word in enumerate(vocabulary)}
    rows = [{column[w]: c for w, c in words.items() if w in column} for words in documents]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.fromiter(chain.from_iterable(rows), np.int64, indptr[-1])
    amounts = np.fromiter(chain.from_iterable(x.values() for x in rows), np.int64, indptr[-1])
    matrix = scipy.sparse.csr_array((amounts, indices, indptr), shape=(len(rows), len(column)))
    empty, without_text = sum(not row for row in rows), sum(not words for words in documents)
    documents_lost = len(documents), without_text, empty - without_text
    losses = Losses(*documents_lost, len(counts), counts.total(), left_out, choices.ngrams)
    return as_corpus(matrix, vocabulary, names), dropped.added(losses)


class Dropped:
    """Pieces of texts that are dropped before words are counted, and the script of the texts.

    Attributes
    ----------
    found : dict from str to Counter
        The number of times that each piece was dropped, by reason.
    """

    def __init__(self) -> None:
        names = ("web and mail addresses", "names of users (@)", "single letters")
        self.found: dict[str, Counter[str]] = {name: Counter() for name in names}
        self._letters = self._letters_without_spaces = self._runs = 0
        self._longest = ""

    def clean(self, text: str) -> str:
        """A text without addresses and names of users."""
        for why, pattern in zip(self.found, (_WEB_ADDRESS, _USER), strict=False):
            pieces = pattern.findall(text)
            if pieces:
                self.found[why].update(pieces)
                text = pattern.sub(" ", text)
        return text

    def short(self, words: Sequence[str]) -> list[str]:
        """The words but for single letters of the Latin script."""
        longer = [word for word in words if not _LATIN_LETTER.fullmatch(word)]
        if len(longer) < len(words):
            self.found["single letters"].update(filter(_LATIN_LETTER.fullmatch, words))
        return longer

    def look(self, text: str) -> None:
        """Count letters of scripts without spaces between words."""
        if text.isascii():
            self._letters += len(text)
        elif max(text) >= _FIRST_WITHOUT_SPACES:
            self._letters += len(_LETTER.findall(text))
            for run in _WITHOUT_SPACES.findall(text):
                self._letters_without_spaces += len(run)
                self._runs += 1
                self._longest = max(self._longest, run, key=len)

    def refuse_unsegmented(self) -> None:
        """Raise ValueError for unsegmented texts in a script without spaces between words."""
        letters, runs = self._letters_without_spaces, self._runs
        if letters > _ENOUGH * self._letters and letters > _LONGEST_SEGMENT * runs:
            expected = f"texts must have spaces between words, got {self._longest[:12]!r}"
            advice = "split words of Chinese, Japanese or Thai by jieba, fugashi or pythainlp"
            how = "pass tokenizer=jieba.lcut, or write the texts with spaces"
            raise ValueError(f"{expected}: {advice} ({how})")

    def added(self, losses: Losses) -> Losses:
        """Return the losses with the pieces that were dropped before words were counted."""
        dropped = [WordLoss(why, len(x), x.total()) for why, x in self.found.items() if x]
        words = losses.words + sum(x.words for x in dropped)
        tokens = losses.tokens + sum(x.tokens for x in dropped)
        left_out = (*dropped, *losses.left_out)
        return replace(losses, words=words, tokens=tokens, left_out=left_out)


@dataclass(frozen=True)
class WordChoices(Checked):
    """What counts as a word, and which words stay.

    Attributes
    ----------
    tokenizer : function from str to words
        It gets the text as it is without addresses. The one that is usual refuses texts in scripts
        without spaces between words (Chinese, Japanese, Thai, ...).
    keep_addresses : bool
        Keep web addresses, addresses of mail and names of users (``@name``), which are taken out of
        the texts otherwise. Entities of HTML (``&amp;``) become the characters that they stand for.
    stop_words : "detected", "english", another language, path, or iterable of str
        Words left out: those of the texts' language, as their words show it; `ENGLISH_STOP_WORDS`;
        those of another language, "de" or "German", by stopwordsiso; those of a file with one word
        per line; or these; pass ``()`` to keep all.
    ngrams : int
        Also count runs of up to this many neighbouring words of a sentence, none of them a stop
        word, as words: ``united_states``.
    language : str
        Code of the language of the stop words, where it is known.
    min_count : int
        Leave out words that occur less often than this in the whole corpus.
    min_documents : int
        Leave out words that occur in fewer documents than this.
    max_document_share : float in (0, 1]
        Leave out words that occur in a larger share of the documents.
    max_words : int, optional
        Of the words left, keep the most frequent; of equally frequent ones, the first in
        alphabetical order. The vocabulary is in alphabetical order.

    Raises
    ------
    ValueError
        If no word is left, an option is out of its range, or the texts are in a script without
        spaces between words and the tokenizer is the usual one.
    """

    tokenizer: Callable[[str], Iterable[str]] = tokenize
    keep_addresses: bool = False
    stop_words: Annotated[Any, lambda value, _: as_stop_words(value)] = DETECTED
    ngrams: Annotated[int, whole(1, _LONGEST_RUN)] = 1
    min_count: Annotated[int, whole()] = 1
    min_documents: Annotated[int, whole()] = 1
    max_document_share: Annotated[float, real(above=0.0, maximum=1.0)] = 1.0
    max_words: Annotated[int, whole(2)] | None = None
    language: str = ""

    def for_texts(self, texts: Sequence[Text]) -> "WordChoices":
        """Choose stop words of the language of some texts, if none are asked for."""
        if self.stop_words != DETECTED:
            return self
        words = Counter[str]()
        for text in texts:
            words.update(split_words(text) if isinstance(text, str) else map(lower_case, text))
        code = language_of(words, ENGLISH_STOP_WORDS)
        return replace(self, stop_words=code or (), language=code)

    def words_of(self, text: Text, dropped: Dropped) -> Counter[str]:
        """How often each word stands in a text; what was taken out is added to `dropped`."""
        if not isinstance(text, str):
            return Counter(_runs([*map(normal_form, text)], self.ngrams, self.stop_words))
        plain: str = _AMPERSAND.sub("", _ENTITY.sub(lambda entity: html.unescape(entity[0]), text))
        if not self.keep_addresses:
            plain = dropped.clean(plain)
        counted = Counter[str]()
        sentences: list[str] = _SENTENCE.split(plain) if self.ngrams > 1 else [plain]
        for sentence in sentences:
            if self.tokenizer is tokenize:
                dropped.look(sentence)
                words = dropped.short(split_words(sentence))
            else:
                words = [*map(normal_form, _tokens(self.tokenizer, sentence))]
            counted.update(_runs(words, self.ngrams, self.stop_words))
        return counted

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
        named = LANGUAGES.get(self.language, self.language)
        reasons = (
            f"stop words{f' ({named})' if named else ''}",
            f"fewer than {self.min_count} times in all",
            f"in fewer than {self.min_documents} documents",
            f"in more than {self.max_document_share:.0%} of the documents",
            f"beyond the {self.max_words or 0:,} most frequent",
        )
        lost = [[0, 0] for _ in reasons]  # different words, tokens

        def passing() -> Iterator[tuple[int, str]]:
            for word, count, spread in words:
                rare, common = spread < self.min_documents, spread > most
                fails = (word in self.stop_words, count < self.min_count, rare, common)
                place = lost[fails.index(True) if True in fails else -1]
                place[0], place[1] = place[0] + 1, place[1] + count
                if True not in fails:
                    yield -count, word

        kept = [*passing()] if self.max_words is None else nsmallest(self.max_words, passing())
        lost[-1] = [lost[-1][0] - len(kept), lost[-1][1] + sum(count for count, _ in kept)]
        if not kept:
            of = f"{sum(words for words, _ in lost)} different words in {num_documents} documents"
            why = "tokenizer, stop_words, min_count, min_documents and max_document_share"
            hint = f"are the texts empty, or do {why} leave nothing?"
            raise ValueError(f"no word is left of {of} ({hint})")
        losses = [WordLoss(why, *what) for why, what in zip(reasons, lost, strict=True) if what[0]]
        return sorted(word for _, word in kept), tuple(losses)


def as_stop_words(stop_words: object) -> frozenset[str] | str:
    """The set of stop words, or that they are to be detected."""
    if isinstance(stop_words, str):
        if stop_words == DETECTED:
            return DETECTED
        if code := language_code(stop_words):
            return ENGLISH_STOP_WORDS if code == "en" else stop_words_of(code)
    if isinstance(stop_words, str | os.PathLike):
        path = as_path(stop_words, "stop_words")
        if not path.is_file():
            expected = "a language such as 'de', a file with a word a line, or words"
            raise ValueError(f"stop_words must be {expected}, got {str(path)!r} (no such file)")
        return frozenset(filter(None, (lower_case(line.strip()) for line in each_line(path))))
    in_order = sorted(stop_words, key=str) if isinstance(stop_words, Set) else stop_words
    return frozenset(normal_form(word) for word in as_strings(in_order, "stop_words"))


def _runs(words: list[str], longest: int, stops: frozenset[str]) -> list[str]:
    """The words, and runs of neighbouring ones of which none is a stop word."""
    runs = list(words)
    for length in range(2, longest + 1):
        shifted = (words[start:] for start in range(length))
        runs += ["_".join(run) for run in zip(*shifted, strict=False) if stops.isdisjoint(run)]
    return runs


def _tokens(tokenizer: object, text: str) -> list[str]:
    if not callable(tokenizer):
        raise TypeError(f"tokenizer must be a function of a text, got {brief(tokenizer)}")
    try:
        words = tokenizer(text)
    except (TypeError, ValueError) as error:
        raise ValueError(f"tokenizer must take a text: {error}") from error
    return as_strings(words, "tokenizer's words")
