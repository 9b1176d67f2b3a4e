"""A corpus that is on every machine: the documentation of the installed numpy and scipy.

Every public function, class and method is a document. What is kept of its docstring is prose: the
descriptions, not the names and types of parameters; no code, no formulas, no references. A
paragraph that stands in many docstrings (``out``, ``where``, what every distribution inherits) is
boilerplate: it is found by counting, and dropped from all of them.
"""

import importlib
import inspect
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from pgmult.core.validate import as_positive_int
from pgmult.datasets.text import ENGLISH_STOP_WORDS, count_words, tokenize
from pgmult.topics.data.corpus import Corpus

_PACKAGES = ("numpy", "scipy")

# Sections of the numpydoc standard whose unindented lines are names and types, and those to drop.
_LISTS = {
    "Parameters", "Returns", "Yields", "Receives", "Other Parameters", "Raises", "Warns",
    "Attributes",
}  # fmt: skip
_DROPPED = {"See Also", "References", "Examples", "Methods", "Functions", "Routines"}

_MOST_COPIES = 3  # documents that may share a paragraph before it counts as boilerplate

_MARKUP = [
    (re.compile(r"\A[\w.]+\(.*?\)( *->.*)?$", re.M), ""),  # the signature of a compiled function
    (re.compile(r"^( *)\.\. (?!note|warning)\S+::.*\n((\1 +.*)?\n)*", re.M), "\n"),  # directives
    (re.compile(r"^ *\.\. .*$", re.M), ""),
    (re.compile(r"^ *(>>>|\.\.\. ).*$", re.M), ""),
    (re.compile(r"::\n(\s*\n)?(( +).*\n)((\3.*)?\n)*"), "\n"),  # literal blocks
    (re.compile(r"`[^`<]*<[^`]*>`__?"), " "),  # links
    (re.compile(r":[\w:]+:`[^`]*`"), " "),
    (re.compile(r"``.*?``|`[^`]*`_?", re.S), " "),  # code and names
    (
        re.compile(r"https?://\S+|\S*[_\\=()\[\]{}\d.]\w\S*|\*\*?\w+"),
        " ",
    ),  # names, numbers, formulas
]

# Words of the medium rather than of any subject.
_STOP_WORDS = ENGLISH_STOP_WORDS | frozenset(
    """
    argument arguments array arrays attribute attributes bool boolean call callable called calls
    case cases class code compute computed computes contain containing contains corresponding
    currently default defaults defined deprecated description detail details different
    documentation dtype equivalent example examples false first float following function
    functions futurewarning implementation implemented instance int integer integers keyword
    last list method methods module ndarray ndarrays new non none note notes number numpy object
    objects option optional options otherwise param parameter parameters passed passing provided
    python raise raised refer result results return returned returns scipy second see set sets
    single specified specifies specify str string strings true tuple tuples type types
    unspecified value values version versions warning
    """.split()  # noqa: SIM905 (words read best as words)
)


def demo_corpus(max_words: int = 2000) -> Corpus:
    """The documentation of the installed numpy and scipy, one document per public object.

    Deterministic for given versions of the two packages.

    Parameters
    ----------
    max_words : int
        Size of the vocabulary.

    Returns
    -------
    Corpus
        Documents of at least 10 different words, named by where the object is found, for example
        ``scipy.optimize.minimize``; a text that is found under several names comes once.
    """
    max_words = as_positive_int(max_words, "max_words", minimum=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deprecated names, met on the way
        prose = {name: list(_paragraphs(docstring)) for name, docstring in _docstrings()}
    spread = Counter(p for paragraphs in prose.values() for p in set(paragraphs))
    names: dict[str, str] = {}
    for name, paragraphs in prose.items():
        text = "\n".join(p for p in paragraphs if spread[p] <= _MOST_COPIES)
        if len(set(_words(text)) - _STOP_WORDS) >= 10:
            names.setdefault(text, name)
    return count_words(
        list(names),
        list(names.values()),
        tokenizer=_words,
        stop_words=_STOP_WORDS,
        min_documents=5,
        max_document_share=0.25,
        max_words=max_words,
    )[0]


def _words(text: str) -> list[str]:
    return [word for word in tokenize(text) if len(word) > 2 and word.isascii()]


def _docstrings() -> Iterator[tuple[str, str]]:
    """Names and docstrings of the public functions, classes and methods, each object once."""
    seen: dict[int, Any] = {}  # the objects are kept, so that no number is used again
    modules = [module for package in _PACKAGES for module in _modules(package, seen)]
    for module in modules:  # all are imported by now: one may rewrite another's docstrings
        for name in sorted(getattr(module, "__all__", ())):
            yield from _object(getattr(module, name, None), f"{module.__name__}.{name}", seen)


def _modules(name: str, seen: dict[int, Any]) -> Iterator[ModuleType]:
    """A package and the public modules in it: those with a docstring, named in ``__all__``."""
    try:
        module = importlib.import_module(name)
    except ImportError:  # an optional part that is not installed
        return
    if id(module) in seen or not module.__doc__:
        return
    seen[id(module)] = module
    yield module
    for child in sorted(getattr(module, "__all__", ())):
        if isinstance(getattr(module, child, None), ModuleType):
            yield from _modules(f"{name}.{child}", seen)


def _object(value: Any, name: str, seen: dict[int, Any]) -> Iterator[tuple[str, str]]:
    docstring = getattr(value, "__doc__", None)
    if id(value) in seen or isinstance(value, ModuleType) or not isinstance(docstring, str):
        return
    seen[id(value)] = value
    if inspect.isclass(value):
        yield name, docstring
        for method in sorted(vars(value)):
            if not method.startswith("_") and inspect.isroutine(getattr(value, method, None)):
                yield from _object(getattr(value, method), f"{name}.{method}", seen)
    elif inspect.isroutine(value) or docstring != type(value).__doc__:
        yield name, docstring


def _paragraphs(docstring: str) -> Iterator[str]:
    """The prose of a docstring in the numpydoc format, markup taken away."""
    for section, lines in _sections(inspect.cleandoc(docstring).splitlines()):
        if section in _DROPPED:
            continue
        if section in _LISTS:  # a name and its type stand at the margin, what it means is indented
            lines = [line if line.startswith(" ") else "" for line in lines]
        text = "\n".join(lines)
        for pattern, replacement in _MARKUP:
            text = pattern.sub(replacement, text)
        for paragraph in re.split(r"\n\s*\n", text):
            words = " ".join(paragraph.split())
            if words:
                yield words


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    title = ""
    body: list[str] = []
    for line in lines:
        if body and len(line) > 2 and set(line) <= {"-", "="}:
            following = body.pop().strip()
            yield title, body
            title, body = following, []
        else:
            body.append(line)
    yield title, body
