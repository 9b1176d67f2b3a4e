"""The corpus of several papers: both sources, and everything that is refused."""

import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from examples.papers import associated_press as public
from examples.papers.associated_press import associated_press
from pgmult.datasets.readers import read_ldac
from pgmult.topics import as_corpus


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


class TestAssociatedPress:
    def test_from_a_local_folder(self, monkeypatch, shared_data):
        monkeypatch.setenv("PGMULT_DATA", str(shared_data("ap").parent))
        corpus = associated_press()
        shape = (corpus.num_documents, corpus.num_words, corpus.num_tokens)
        assert shape == (2246, 10473, 435838)
        assert len(corpus.words) == 302031
        assert corpus.vocabulary[0] == "aaron"

    def test_without_the_download_helper(self, monkeypatch):
        monkeypatch.delenv("PGMULT_DATA", raising=False)
        monkeypatch.setitem(sys.modules, "pooch", None)
        with pytest.raises(ImportError, match=r"pip install 'pgmult\[data\]'.*PGMULT_DATA"):
            associated_press()

    @pytest.mark.slow
    def test_an_archive_in_another_order_of_words(self, monkeypatch, tmp_path, shared_data):
        archive = self._shuffled_archive(tmp_path, shared_data("ap"))
        monkeypatch.delenv("PGMULT_DATA", raising=False)
        monkeypatch.setattr(public, "download", lambda url, name: archive)
        corpus = associated_press()
        assert (corpus.num_tokens, str(corpus.vocabulary[-1])) == (435838, "zurich")

    def test_other_counts_are_refused(self, monkeypatch, tmp_path):
        (tmp_path / "ap").mkdir()
        write(tmp_path / "ap" / "ap.dat", "1 0:1\n")
        write(tmp_path / "ap" / "vocab.txt", "red\n")
        monkeypatch.setenv("PGMULT_DATA", str(tmp_path))
        with pytest.raises(ValueError, match="not the Associated Press corpus"):
            associated_press()

    def test_a_broken_archive_is_refused(self, monkeypatch, tmp_path):
        archive = write(tmp_path / "ap.tgz", "<html>moved</html>")
        monkeypatch.delenv("PGMULT_DATA", raising=False)
        monkeypatch.setattr(public, "download", lambda url, name: archive)
        with pytest.raises(ValueError, match="not the expected archive"):
            associated_press()

    @staticmethod
    def _shuffled_archive(folder: Path, source: Path) -> Path:
        """An archive as on the public page: the same corpus with its words in another order."""
        corpus = read_ldac(source / "ap.dat.gz", source / "vocab.txt.gz")
        order = np.random.default_rng(0).permutation(corpus.num_words)
        corpus = as_corpus(corpus.to_csr()[:, order], corpus.vocabulary[order])
        (folder / "ap").mkdir()
        with (folder / "ap" / "ap.dat").open("w") as file:
            for start, stop in zip(corpus.indptr[:-1], corpus.indptr[1:], strict=True):
                pairs = zip(corpus.words[start:stop], corpus.counts[start:stop], strict=True)
                print(stop - start, *(f"{w}:{c}" for w, c in pairs), file=file)
        write(folder / "ap" / "vocab.txt", "".join(f"{word}\n" for word in corpus.vocabulary))
        with tarfile.open(folder / "ap.tgz", "w:gz") as tar:
            tar.add(folder / "ap", "ap")
        return folder / "ap.tgz"
