"""Word counts of documents: the data type of every topic model.

A `Corpus` is a compressed sparse row matrix of counts, documents by words, with optional names.
`as_corpus` makes one from any matrix of counts and refuses counts that are not valid.
Empty documents and unused words are kept: they carry no information, and rows keep their numbers.

`with_covariates` attaches covariates of documents (their year, their author's party) to a corpus.
Prevalence covariates change the proportions of topics: they are a design matrix, whose first column
is the intercept, and random terms (`pgmult.formulas.design`). Content covariates change the words
of topics: they divide the documents into groups (`pgmult.topics.data.groups`).

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(1.0, size=(4, 6))
>>> columns = {"year": [1990, 2000, 2010, 2020], "party": ["D", "R", "R", "D"]}
>>> data = pgmult.topics.with_covariates(counts, columns)
>>> [str(name) for name in data.design.names]
['Intercept', 'year', 'party[T.R]']
>>> data.covariates[:2].round(2)
array([[ 1.  , -1.34,  0.  ],
       [ 1.  , -0.45,  1.  ]])
>>> data.design.rows({"party": ["D", "R"], "year": 2005})
array([[1., 0., 0.],
       [1., 0., 1.]])
>>> data = pgmult.topics.with_covariates(counts, columns, "~ year + (1 | party)", content="~ party")
>>> data.design.terms[0].name, [str(label) for label in data.content.labels]
('1 | party', ['D', 'R'])
>>> data[[0, 2]].content.codes
array([0, 1])
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pgmult.core.arguments import as_flag, as_kind, as_list, as_probability, as_seed, as_strings
from pgmult.core.machine import available_memory
from pgmult.core.mapped import part_of
from pgmult.core.tables import as_rows
from pgmult.core.typing import Array, ArrayLike, FloatArray, Generator, IntArray
from pgmult.core.validate import as_counts, as_positive_int
from pgmult.formulas.columns import as_mapping
from pgmult.formulas.design import Design, make_design
from pgmult.formulas.language import parse
from pgmult.topics.compiled.tokens import Entries
from pgmult.topics.data.documents import DocumentTable
from pgmult.topics.data.groups import ContentGroups, content_groups

_MOST = np.iinfo(np.int32).max  # of word numbers and of counts
_MOST_TOPICS = 2**16
_DRAWN_BYTES = 40  # of a token whose word is drawn
_LITTLE = 2**28  # bytes that are always there
_BLOCK = 2**20  # entries that are looked at together

Kind = TypeVar("Kind", bound="Corpus")


class Versions(NamedTuple):
    """Topics in several versions, such as one per time or group of documents.

    Attributes
    ----------
    codes : int array, ``(num_documents,)``
        The version that each document uses.
    number : int
        How many versions there are.
    """

    codes: IntArray
    number: int

    def tokens(self, topic_counts: Array) -> IntArray:
        """Add up tokens of topics in documents by version, ``(number, num_topics)``."""
        tokens = np.zeros((self.number, topic_counts.shape[1]), dtype=np.int64)
        np.add.at(tokens, self.codes, topic_counts)
        return tokens

    def word_probs(self, theta: FloatArray, topics: FloatArray) -> FloatArray:
        """Word probabilities of documents, ``(num_documents, num_words)``.

        `topics` is ``(number, num_topics, num_words)``.
        """
        probs = np.empty((len(theta), topics.shape[2]))
        for version in np.unique(self.codes):
            rows = self.codes == version
            probs[rows] = theta[rows] @ topics[version]
        return probs


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Corpus:
    """Counts of words in documents. Make one with `as_corpus`, which checks its input.

    Attributes
    ----------
    indptr : int64 array, ``(num_documents + 1,)``
        Document d's entries are ``indptr[d]:indptr[d + 1]``.
    words : int32 array, ``(num_entries,)``
        Word number of each entry.
    counts : int32 array, ``(num_entries,)``
        How often that word stands in that document, >= 1.
    num_words : int
        Size of the vocabulary, unused words included.
    vocabulary : str array, ``(num_words,)``, or None
    names : str array, ``(num_documents,)``, or None
    table : DocumentTable or None
        Texts and other columns of the documents, where `pgmult.read` read them.

    Notes
    -----
    ``corpus[rows]``, with row numbers, a slice or a mask, is a corpus of these documents and of
    everything that is known about them. Words keep their numbers.
    """

    indptr: IntArray
    words: NDArray[np.int32]
    counts: NDArray[np.int32]
    num_words: int
    vocabulary: NDArray[np.str_] | None = None
    names: NDArray[np.str_] | None = None
    table: DocumentTable | None = None

    @property
    def num_documents(self) -> int:
        """Number of documents, empty ones included."""
        return len(self.indptr) - 1

    @property
    def num_tokens(self) -> int:
        """Number of words in running text."""
        return int(self.counts.sum(dtype=np.int64))

    @property
    def totals(self) -> IntArray:
        """Tokens of each document, ``(num_documents,)``."""
        totals = np.empty(self.num_documents, dtype=np.int64)
        for rows in self.pieces():
            bounds = self.indptr[rows.start : rows.stop + 1]
            counts = self.counts[bounds[0] : bounds[-1]]
            running = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
            totals[rows] = np.diff(running[bounds - bounds[0]])
        return totals

    @property
    def bare(self) -> "Corpus":
        """The words alone, without names, covariates and times."""
        return Corpus(self.indptr, self.words, self.counts, self.num_words)

    @property
    def entries(self) -> Entries:
        """The counts, as compiled functions take them."""
        return Entries(self.indptr, self.words, self.counts)

    @property
    def entry_documents(self) -> IntArray:
        """The document of each entry, ``(num_entries,)``."""
        return np.repeat(np.arange(self.num_documents), np.diff(self.indptr))

    def pieces(self) -> Iterator[slice]:
        """Neighbouring documents with a million entries or fewer, or one with more."""
        start = 0
        while start < self.num_documents:
            most = self.indptr[start] + _BLOCK
            stop = int(np.searchsorted(self.indptr, most, side="right")) - 1
            yield slice(start, start := max(stop, start + 1))

    def to_csr(self) -> "scipy.sparse.csr_array":
        """The counts as a scipy sparse array, ``(num_documents, num_words)``."""
        shape = (self.num_documents, self.num_words)
        return scipy.sparse.csr_array((self.counts, self.words, self.indptr), shape=shape)

    @property
    def versions(self) -> Versions | None:
        """The version of the topics that each document uses; None where all use the same."""
        return None

    def by_version(self, corpus: "Corpus | None" = None) -> "Corpus":
        """The words as (version, word) pairs, ``version * num_words + word``.

        Parameters
        ----------
        corpus : Corpus, optional
            Other tokens of the same documents (held out, say); their own if left out.
        """
        tokens = self if corpus is None else corpus
        if self.versions is None:
            return tokens
        codes, number = self.versions
        versions = np.repeat(codes.astype(np.int32), np.diff(tokens.indptr))
        words = tokens.words + versions * np.int32(self.num_words)
        return Corpus(tokens.indptr, words, tokens.counts, self.num_words * number)

    def with_counts(self, counts: "scipy.sparse.csr_array") -> Self:
        """The same documents with other counts of the same words; all else stays."""
        bare = as_corpus(counts)
        return replace(self, indptr=bare.indptr, words=bare.words, counts=bare.counts)

    def with_covariates(
        self, formula: str = "~ 1", *, content: str | None = None, standardize: bool = True
    ) -> "StructuredCorpus":
        """The corpus with covariates from the table that it was read from.

        See `pgmult.topics.with_covariates`, which takes covariates from anywhere.

        Parameters
        ----------
        formula : str
            Of prevalence: what the proportions of topics depend on, such as ``"~ year * party"``.
        content : str, optional
            What the words of topics depend on, such as ``"~ party"``.
        standardize : bool

        Raises
        ------
        ValueError
            If the corpus does not know its table, or as `pgmult.topics.with_covariates`.
        """
        if self.table is None:
            function = "pgmult.topics.with_covariates(corpus, columns, formula)"
            hint = f"pass them to {function}, or read both at once: pgmult.read(table).corpus(text)"
            raise ValueError(f"the corpus was not read from a table and has no columns: {hint}")
        columns = self.table.columns
        return with_covariates(self, columns, formula, content=content, standardize=standardize)

    def __getitem__(self, rows: ArrayLike | slice) -> Self:
        chosen = as_rows(rows, self.num_documents)
        starts = np.asarray(self.indptr)[chosen]
        sizes = np.asarray(self.indptr)[chosen + 1] - starts
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], sizes)
        words, counts = (np.asarray(array)[entries] for array in (self.words, self.counts))
        return replace(
            self, indptr=indptr, words=words, counts=counts,
            names=None if self.names is None else self.names[chosen],
            table=None if self.table is None else self.table[chosen], **self._rows_beside(chosen),
        )  # fmt: skip

    @property
    def row_costs(self) -> IntArray:
        """Relative cost of each document in a sweep: sticks cost as much as 40 to 90 words."""
        return np.diff(self.indptr) + 64

    def rows(self, part: slice) -> Self:
        """Neighbouring documents, for sweeps in blocks, as views; the table is left out."""
        rows = range(self.num_documents)[part]
        if rows.step != 1:
            raise ValueError(f"part must be of neighbouring documents, got {part}")
        part = slice(rows.start, rows.start + len(rows))
        bounds = part_of(self.indptr, slice(part.start, part.stop + 1))
        entries = slice(int(bounds[0]), int(bounds[-1]))
        return replace(
            self, indptr=bounds - bounds[0], words=part_of(self.words, entries),
            counts=part_of(self.counts, entries),
            names=None if self.names is None else part_of(self.names, part), table=None,
            **self._rows_beside(part),
        )  # fmt: skip

    def extended(self, kind: type[Kind], **more: Any) -> Kind:
        """The same documents as a subclass of `Corpus`, with its further fields."""
        values = {field.name: getattr(self, field.name) for field in fields(Corpus)}
        return kind(**values, **more)

    def _rows_beside(self, rows: IntArray | slice) -> dict[str, Any]:
        """The fields of a subclass that have one entry per document, of some documents."""
        return {}

    def _more(self) -> str:
        """The rest of the printed form, in subclasses."""
        return ""

    def __repr__(self) -> str:
        words = f"{self.num_words:,} words, {self.num_tokens:,} tokens"
        return f"{type(self).__name__}({self.num_documents:,} documents, {words}{self._more()})"


Documents = TypeVar("Documents", bound=Corpus)


def as_corpus(
    counts: object,
    vocabulary: Sequence[str] | NDArray[np.str_] | None = None,
    names: Sequence[str] | NDArray[np.str_] | None = None,
) -> Corpus:
    """A `Corpus` from a scipy sparse matrix, a dense array or another corpus.

    Parameters
    ----------
    counts : sparse matrix or array, ``(num_documents, num_words)``
        Non-negative integers, in any integer or float dtype. Duplicates are added up.
    vocabulary : sequence of str, optional
        One word per column.
    names : sequence of str, optional
        One name per document.

    Raises
    ------
    TypeError
        If `counts` are not numbers: texts are for ``pgmult.read({"text": texts}).corpus("text")``.
    ValueError
        If a count is negative, fractional, nan, infinite or above 2**31 - 1; if the shape is not
        two-dimensional, there are 2**31 words or more, or an index of a sparse matrix is outside
        of it; if `vocabulary` or `names` has the wrong length.
    """
    return corpus_from(counts, "counts", vocabulary, names)


def corpus_from(counts: Any, name: str, vocabulary: object = None, names: object = None) -> Corpus:
    """`as_corpus` for an argument called `name` in errors."""
    corpus = counts if isinstance(counts, Corpus) else _counted(counts, name)
    given = {
        "vocabulary": (vocabulary, corpus.num_words, "words (columns)"),
        "names": (names, corpus.num_documents, "documents (rows)"),
    }
    labels: dict[str, Any] = {}
    for argument, (values, length, what) in given.items():
        if values is not None:
            labels[argument] = array = np.array(as_strings(values, argument), dtype=np.str_)
            if array.shape != (length,):
                every = f"one entry for each of the {length} {what} of {name}"
                raise ValueError(f"{argument} must have {every}, got {array.shape}")
    return replace(corpus, **labels) if labels else corpus


def _counted(counts: Any, name: str) -> Corpus:
    """A corpus of counts that are checked."""
    refuse_texts(counts, name)
    table: Any = counts if scipy.sparse.issparse(counts) else as_counts(counts, name)
    if table.ndim != 2:
        got = f"{table.ndim} axes (shape {table.shape})"
        raise ValueError(f"{name} must be documents by words, got {got}")
    num_words = int(table.shape[1])
    if num_words > _MOST:
        got = f"{num_words} (leave out the columns without counts)"
        raise ValueError(f"{name} must have fewer than 2**31 words (columns), got {got}")
    try:  # compiled code, here and in models, trusts indices
        if scipy.sparse.issparse(table) and table.format in ("csr", "csc", "bsr"):
            table.check_format(full_check=True)
        entries = scipy.sparse.coo_array(table)
    except ValueError as error:
        raise ValueError(f"{name} must have all indices inside the matrix, and {error}") from None
    data = _checked_counts(entries, name)
    matrix = scipy.sparse.csr_array((data, entries.coords), shape=table.shape)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if matrix.nnz and matrix.data.max() > _MOST:
        raise ValueError(f"{name} must be below 2**31, got {matrix.data.max()}")
    indptr, words = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    return Corpus(indptr, words, matrix.data.astype(np.int32), num_words)


def as_num_topics(value: object, name: str = "num_topics") -> int:
    """A number of topics."""
    return as_positive_int(value, name, minimum=2, maximum=_MOST_TOPICS)


def refuse_texts(counts: object, name: str) -> None:
    """Refuse texts given instead of counts, with a hint what to use."""
    first = counts
    for _ in range(2):  # texts, or rows of them; a list may hold itself
        if isinstance(first, list | tuple) and first:
            first = first[0]
    if isinstance(first, np.ndarray) and first.dtype.kind in "OU" and first.size:
        first = first.flat[0]
    if isinstance(first, str):
        got = f"texts such as {first[:20]!r}"
        count = "pgmult.read({'text': texts}).corpus('text') or scikit-learn's CountVectorizer"
        hint = f"count their words with {count}; pgmult.datasets.read_corpus reads files"
        raise TypeError(f"{name} must be numbers, documents by words, got {got} ({hint})")


def _checked_counts(entries: "scipy.sparse.coo_array", name: str) -> IntArray:
    """The stored entries as integers; an error names the row and column of a bad one."""
    data, (row, column) = entries.data, entries.coords
    if data.dtype.kind in "biuf":
        fits = np.isfinite(data) & (data >= 0) & (data == np.floor(data))
        bad = ~(fits & (data <= _MOST))
        if bad.any():
            place = int(np.argmax(bad))
            fraction = np.isfinite(data[place]) and data[place] != np.floor(data[place])
            hint = " (did you pass proportions or tf-idf weights?)" if fraction else ""
            wanted = "below 2**31" if fits[place] else "non-negative integers"
            got = f"{data[place]} at row {row[place]}, column {column[place]}{hint}"
            raise ValueError(f"{name} must be {wanted}, got {got}")
    return as_counts(data, name)


def refuse_many_tokens(num_tokens: int, num_bytes: int, why: str, hint: str) -> None:
    """Raise MemoryError where something of each token would not fit into memory."""
    needed = float(num_bytes) * num_tokens
    if needed > _LITTLE and needed > (free := available_memory()):
        sizes = f"{needed / 2**30:,.1f} GiB, and {free / 2**30:,.1f} are available"
        got = f"{num_tokens:,}: {why}, {sizes} (count in larger units; {hint})"
        raise MemoryError(f"the corpus must have fewer tokens, got {got}")


def refuse_to_simulate(corpus: Corpus) -> None:
    """Raise MemoryError where `simulate_words`, and the topics that it takes, have no room."""
    why = "simulated words are drawn one by one"
    refuse_many_tokens(corpus.num_tokens, _DRAWN_BYTES, why, "or simulate fewer documents")


def simulate_words(rng: Generator, assignments: IntArray, topics: FloatArray, like: Kind) -> Kind:
    """Draw a word for every token given its topic.

    Parameters
    ----------
    assignments : int array, ``(num_tokens,)``
        Topic of each token, document after document.
    topics : array, ``(num_topics, num_words)``
        Rows sum to 1.
    like : Corpus
        Sets the documents' lengths, and all else that a corpus holds.

    Returns
    -------
    Corpus
        One entry per token, in the order of `assignments`: words may repeat in a document.
    """
    words = np.empty(len(assignments), dtype=np.int32)
    for k, probs in enumerate(topics):
        running, of_topic = np.cumsum(probs), assignments == k
        u = rng.random(np.count_nonzero(of_topic)) * running[-1]
        words[of_topic] = np.searchsorted(running, u, side="right")
    indptr = np.concatenate([[0], np.cumsum(like.totals)])
    return replace(like, indptr=indptr, words=words, counts=np.ones_like(words))


def split_tokens(
    corpus: Corpus, documents: int | Sequence[int], observed: float = 0.5, *, random_seed: int = 0
) -> tuple[Corpus, Corpus]:
    """Hold out part of the tokens of some documents, for document completion.

    Parameters
    ----------
    corpus : Corpus
    documents : int or sequence of int
        How many documents lose tokens, chosen at random; or which ones, by their rows.
    observed : float
        Share of a chosen document's tokens that stay, rounded up, in (0, 1).
    random_seed : int

    Returns
    -------
    training, held_out : Corpus
        Both with all rows, all words and all that `corpus` knows of its documents, covariates
        among it; their counts add up to `corpus`.
    """
    corpus = as_kind(corpus, "corpus", Corpus, "make one with as_corpus")
    observed = as_probability(observed, "observed")
    rng = np.random.default_rng(as_seed(random_seed))
    if isinstance(documents, list | tuple | np.ndarray):
        most = corpus.num_documents - 1
        given = as_list(documents, "documents", "rows")
        chosen = np.unique([as_positive_int(row, "documents", 0, most) for row in given])
        if not len(chosen):
            raise ValueError("documents must be at least one row, got none")
    else:
        number = as_positive_int(documents, "documents", maximum=corpus.num_documents)
        chosen = np.sort(rng.permutation(corpus.num_documents)[:number])
    held = scipy.sparse.lil_array((corpus.num_documents, corpus.num_words), dtype=np.int64)
    for d in chosen:
        entries = slice(corpus.indptr[d], corpus.indptr[d + 1])
        tokens = np.repeat(corpus.words[entries], corpus.counts[entries])
        shuffled = tokens[rng.permutation(len(tokens))]
        words, counts = np.unique(shuffled[math.ceil(len(tokens) * observed) :], return_counts=True)
        held[d, words] = counts
    held_out = held.tocsr()
    return corpus.with_counts(corpus.to_csr() - held_out), corpus.with_counts(held_out)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class StructuredCorpus(Corpus):
    """A corpus with covariates of its documents. Make one with `with_covariates`.

    Attributes
    ----------
    design : Design
    content : ContentGroups or None
        Groups of documents that vary the words of topics.
    """

    design: Design
    content: ContentGroups | None = None

    @property
    def covariates(self) -> FloatArray:
        """The design matrix, ``(num_documents, num_covariates)``."""
        return self.design.matrix

    @property
    def versions(self) -> Versions | None:
        """Topics have a version for each group of documents, if there are any."""
        if self.content is None:
            return None
        return Versions(self.content.codes, self.content.num_groups)

    def _rows_beside(self, rows: IntArray | slice) -> dict[str, Any]:
        content = self.content and self.content.take(rows)
        return {"design": self.design.take(rows), "content": content}

    def new_documents(
        self, corpus: object, covariates: object, *, new_levels: bool = False
    ) -> "StructuredCorpus":
        """Other documents with the covariates that these have, coded alike.

        Parameters
        ----------
        corpus : Corpus, or anything that `as_corpus` takes
            With the same words.
        covariates : mapping from name to column, or DataFrame
            Every column that the design and the content groups were made from.
        new_levels : bool
            Whether grouping columns may hold labels that these documents do not have, such as new
            authors. (Of content groups none may be new: nothing is known of their words.)

        Raises
        ------
        ValueError
            If a column is missing, or a label is new that may not be.
        """
        new, may_be_new = corpus_from(corpus, "corpus"), as_flag(new_levels, "new_levels")
        if new.num_words != self.num_words:
            raise ValueError(f"corpus must have the same {self.num_words} words, got {new!r}")
        design = self.design.like(covariates, new_levels=may_be_new, num_rows=new.num_documents)
        if may_be_new:
            self.design.report_new_labels(covariates, "covariates", asked=True)
        content = self.content and self.content.of(as_mapping(covariates, None), new.num_documents)
        return new.extended(StructuredCorpus, design=design, content=content)

    def _more(self) -> str:
        formula = self.design.formula or f"~ {' + '.join(self.design.columns.names)}"
        return f", prevalence {formula}{f', content ~ {self.content.name}' if self.content else ''}"


def with_covariates(
    corpus: object, covariates: object, formula: str | None = None, *, content: str | None = None,
    names: Sequence[str] | None = None, standardize: bool = True,
) -> StructuredCorpus:  # fmt: skip
    """A corpus with covariates of its documents.

    Parameters
    ----------
    corpus : Corpus, or anything that `as_corpus` takes
    covariates : mapping from name to column, pandas DataFrame, or matrix
        One value or row a document, by position (an index is not consulted). A column holds
        numbers, or labels: strings, booleans or a categorical. The first label, in sorted or in
        the categorical's order, is the reference.
    formula : str, optional
        Which columns, transformed how, and which products of them, such as ``"~ year + party +
        year:party"``. By default all columns. ``s(year)`` is a smooth curve, ``(1 | author)`` an
        effect of each author; how much these vary is learned. See `pgmult.formulas.design`.
    content : str, optional
        Which labels may change the words of a topic, such as ``"~ party"``: documents of each label
        then have their own words for it. ``"~ party:house"`` makes a group of each combination.
    names : sequence of str, optional
        Of a matrix's columns; ``x0, x1, ...`` if left out.
    standardize : bool
        Whether to bring columns of the design matrix to mean 0 and standard deviation 1, except
        those of only zeros and ones. Models' default priors do not depend on it; a prior of your
        own is one of the coefficients of these columns.

    Returns
    -------
    StructuredCorpus
        Its design matrix begins with an intercept.

    Raises
    ------
    ValueError
        If a value is missing or infinite, a column has the wrong length, is constant or is a linear
        combination of others; if the formula cannot be evaluated or has no intercept.
    TypeError
        If a column holds neither numbers nor labels.
    """
    counts = corpus_from(corpus, "corpus")
    design = make_design(covariates, counts.num_documents, formula, names, standardize)
    if design.offset is not None or (formula is not None and parse(formula).outcome is not None):
        raise ValueError(f"formula must have terms, no offset and no outcome, got {formula!r}")
    groups = None
    if content is not None:
        groups = content_groups(content, as_mapping(covariates, names), counts.num_documents)
    return counts.extended(StructuredCorpus, design=design, content=groups)
