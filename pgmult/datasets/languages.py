"""Languages of texts, recognised by their stop words; the lists are those of stopwordsiso."""

import warnings
from collections import Counter
from collections.abc import Set

_ENOUGH_WORDS = 50  # in running text, to say another language than English
_ENGLISH, _OTHER = 0.3, 0.2  # least shares of stop words in running text
_AHEAD = 1.5  # times as many stop words as of English
_NAMES = (
    "ar Arabic, bg Bulgarian, ca Catalan, cs Czech, da Danish, de German, el Greek, en English, "
    "es Spanish, et Estonian, eu Basque, fa Persian, fi Finnish, fr French, ga Irish, gl "
    "Galician, he Hebrew, hi Hindi, hr Croatian, hu Hungarian, id Indonesian, it Italian, ja "
    "Japanese, ko Korean, la Latin, lt Lithuanian, lv Latvian, ms Malay, nl Dutch, no "
    "Norwegian, pl Polish, pt Portuguese, ro Romanian, ru Russian, sk Slovak, sl Slovenian, sv "
    "Swedish, th Thai, tr Turkish, uk Ukrainian, ur Urdu, vi Vietnamese, zh Chinese"
)
LANGUAGES = dict(pair.split() for pair in _NAMES.split(", "))
"""Names of languages by their codes (ISO 639-1)."""


def language_code(text: str) -> str:
    """Return the code of a language by its name or code; empty for what looks like neither."""
    codes = {name.lower(): code for code, name in LANGUAGES.items()}
    code = codes.get(text.lower(), text.lower())
    return code if code.isalpha() and len(code) == 2 else ""


def stop_words_of(code: str) -> frozenset[str]:
    """The stop words of a language.

    Raises
    ------
    ImportError
        If stopwordsiso is missing.
    ValueError
        If it has no list for the language.
    """
    try:
        import stopwordsiso
    except ImportError:
        advice = "pip install 'pgmult[texts]' (or pass a file with a word a line)"
        of = LANGUAGES.get(code, code)
        raise ImportError(f"stop words of {of} need stopwordsiso: {advice}") from None
    if not stopwordsiso.has_lang(code):
        codes = " ".join(sorted(stopwordsiso.langs()))
        raise ValueError(f"stop_words of a language must be one of {codes}, got {code!r}")
    return frozenset(stopwordsiso.stopwords(code))


def language_of(counts: Counter[str], english: Set[str]) -> str:
    """Recognise the language of texts by the words that they use most.

    Parameters
    ----------
    counts : Counter
        How often each word occurs, stop words among them.
    english : set of str
        Stop words of English.

    Returns
    -------
    str
        A code of ISO 639-1: English unless the texts have many more stop words of another language;
        empty, with a warning, if they have few of English and stopwordsiso is missing.
    """

    def share(words: Set[str]) -> float:
        return sum(counts[word] for word in words) / max(1, counts.total())

    of_english = share(english)
    if counts.total() < _ENOUGH_WORDS or of_english >= _ENGLISH:
        return "en"
    try:
        import stopwordsiso
    except ImportError:
        if of_english >= _OTHER:
            return "en"
        advice = "for other languages, pip install 'pgmult[texts]', or pass stop_words= with a file"
        few = "the texts have few of the English stop words, so none are taken out"
        warnings.warn(f"{few}: {advice}", stacklevel=2)
        return ""
    shares = {code: share(stopwordsiso.stopwords(code)) for code in sorted(stopwordsiso.langs())}
    best = max(shares.keys() - {"en"}, key=lambda code: (shares[code], code))
    return best if shares[best] >= max(_OTHER, _AHEAD * of_english) else "en"
