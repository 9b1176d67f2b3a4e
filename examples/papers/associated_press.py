"""The corpus of several papers, taken from a local folder or downloaded once and checked.

The environment variable ``PGMULT_DATA`` names a folder that is looked at first; in it the corpus is
``ap/ap.dat.gz`` and ``ap/vocab.txt.gz``.
"""

import hashlib
import os
import tarfile
import tempfile
from pathlib import Path

import numpy as np

from examples.papers.downloads import download
from pgmult.datasets.readers import read_ldac
from pgmult.topics.data.corpus import Corpus, as_corpus

_AP_URL = "http://www.cs.columbia.edu/~blei/lda-c/ap.tgz"
_AP_SHA256 = "e6132706037300e82295616d6693766f2bae0fde5077c3553a4d98117b1b9d66"
_AP_WORDS_SHA256 = "f26aac3455a444effe6e333dbb82ed1bf87a8e527c59a0505a28a55e1dbcba42"


def associated_press() -> Corpus:
    """Associated Press articles of TREC-1: 2,246 documents, 10,473 words, 435,838 tokens.

    The corpus of Blei, Ng and Jordan (2003), from the page of Blei's lda-c,
    http://www.cs.columbia.edu/~blei/lda-c/: counts only, stop words already gone. Taken from
    ``$PGMULT_DATA/ap``, if it is there; otherwise downloaded once into the user's cache folder.
    Either way the counts are checked against a checksum, and words come in alphabetical order.

    Raises
    ------
    ImportError
        If a download is needed and pooch is not installed (``pip install "pgmult[data]"``).
    OSError
        If the download fails.
    ValueError
        If the counts or the words are not the expected ones.
    """
    folder = os.environ.get("PGMULT_DATA")
    if folder:
        for ending in (".gz", ""):
            counts = Path(folder) / "ap" / f"ap.dat{ending}"
            if counts.is_file():
                corpus = read_ldac(counts, counts.with_name(f"vocab.txt{ending}"))
                return _checked(_alphabetical(corpus), str(counts))
    archive = download(_AP_URL, "ap.tgz")
    try:
        with tarfile.open(archive) as tar, tempfile.TemporaryDirectory() as folder:
            for name in ("ap.dat", "vocab.txt"):
                member = tar.extractfile(f"ap/{name}")
                if member is None:
                    raise KeyError(f"{name} is not a file")
                Path(folder, name).write_bytes(member.read())
            corpus = read_ldac(Path(folder, "ap.dat"), Path(folder, "vocab.txt"))
    except (tarfile.TarError, KeyError, EOFError) as error:
        raise ValueError(f"{archive}: not the expected archive ({error}); delete it") from None
    return _checked(_alphabetical(corpus), str(archive))


def _alphabetical(corpus: Corpus) -> Corpus:
    """The same corpus with its words in alphabetical order."""
    assert corpus.vocabulary is not None
    order = np.argsort(corpus.vocabulary, kind="stable")
    return as_corpus(corpus.to_csr()[:, order], corpus.vocabulary[order], corpus.names)


def _checked(corpus: Corpus, source: str) -> Corpus:
    """The corpus itself, if its words and counts have the published checksums."""
    assert corpus.vocabulary is not None
    words = "".join(f"{word}\n" for word in corpus.vocabulary)
    lines = []
    for start, stop in zip(corpus.indptr[:-1], corpus.indptr[1:], strict=True):
        entries = zip(corpus.words[start:stop], corpus.counts[start:stop], strict=True)
        lines.append(" ".join([str(stop - start), *(f"{w}:{c}" for w, c in entries)]) + "\n")
    found = [hashlib.sha256(text.encode()).hexdigest() for text in (words, "".join(lines))]
    if found != [_AP_WORDS_SHA256, _AP_SHA256]:
        raise ValueError(
            f"{source}: not the Associated Press corpus (checksum {found[1][:12]}…, expected"
            f" {_AP_SHA256[:12]}…); delete the file to download it again"
        )
    return corpus
