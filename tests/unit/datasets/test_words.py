"""Words of texts as people have them: lists, digits, sentences, languages, counts, matrices."""

import json
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from pgmult import read
from pgmult.datasets import pack_files, read_corpus
from pgmult.datasets.text import tokenize

GERMAN = (
    "Die Regierung hat das Gesetz nicht geändert, und die Bürger sind mit dem Ergebnis nicht"
    " zufrieden. Was war denn also der Grund dafür, dass es so lange gedauert hat?"
)
FRENCH = (
    "Le gouvernement n'a pas changé la loi et les citoyens ne sont pas contents de ce qui est dans"
    " le texte. Pourquoi est-ce que cela a pris tant de temps pour eux?"
)
ENGLISH = (
    "The government has not changed the law and the people are not content with what is in the"
    " text. Why was it that this took so much time for them?"
)


def counts_of(corpus):
    """Names of documents, their words and counts, in the order of the corpus."""
    matrix = corpus.to_csr().toarray()
    words = corpus.vocabulary.tolist()
    names = range(len(matrix)) if corpus.names is None else corpus.names.tolist()
    return [
        (name, {w: int(n) for w, n in zip(words, row, strict=True) if n})
        for name, row in zip(names, matrix, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CO2 and H1N1, 5G or MP3", "co2 and h1n1 5g or mp3"),
        ("Covid-19's 2nd wave; an F-16, COVID-19.", "covid-19 2nd wave an f-16 covid-19"),
        ("in 2020, 1,000 of 3.5kg at 10-20", "in of kg at"),
        ("co2-neutral state-of-the-art pre-1990", "co2 neutral state of the art pre"),
        ("a 5 b", ""),
    ],
)
def test_words_with_digits(text, words):
    assert [w.removesuffix("'s") for w in tokenize(text)] == words.split()


def test_runs_do_not_cross_sentences():
    texts = [
        "He left Paris. France won! Spain lost\n\nItaly drew (in Rome.) Berlin slept",
        "The U.S. Senate met Dr. King at 3.30 near Paris France",
    ]
    words = read({"t": texts}).corpus("t", ngrams=2).vocabulary.tolist()
    runs = {word for word in words if "_" in word}
    assert "paris_france" in runs  # of the second text
    assert not runs & {"france_won_spain", "won_spain", "lost_italy", "rome_berlin"}
    assert "dr_king" in runs
    first = read({"t": texts[:1]}).corpus("t", ngrams=2).vocabulary.tolist()
    assert "paris_france" not in first


TOKENS = [["new york", "Is", "big"], None, ["rain", "new york", "rain"]]


def frames():
    yield "mapping", lambda _: read({"t": TOKENS, "n": [1, 2, 3]})

    def pandas(_):
        return read(pytest.importorskip("pandas").DataFrame({"t": TOKENS, "n": [1, 2, 3]}))

    def lines(folder):
        path = folder / "t.jsonl"
        rows = [json.dumps({"t": t, "n": n}) for n, t in enumerate(TOKENS, 1)]
        path.write_text("\n".join(rows), encoding="utf-8")
        return read(path)

    def csv(folder):
        """Python's lists, as pandas writes them."""
        path = folder / "t.csv"
        rows = ["" if t is None else '"' + str(t) + '"' for t in TOKENS]
        text = "t,n\n" + "".join(f"{t},{n}\n" for n, t in enumerate(rows, 1))
        path.write_text(text, encoding="utf-8")
        return read(path)

    yield from (("pandas", pandas), ("jsonl", lines), ("csv", csv))


@pytest.mark.parametrize(("name", "table"), list(frames()))
def test_lists_of_words_stay_words(tmp_path, name, table):
    corpus = table(tmp_path).corpus("t", stop_words=())
    assert counts_of(corpus) == [
        (0, {"new york": 1, "Is": 1, "big": 1}), (1, {}), (2, {"rain": 2, "new york": 1}),
    ]  # fmt: skip
    assert corpus.table.texts == ["new york Is big", "", "rain new york rain"]
    assert corpus.table.columns["n"].tolist() == [1, 2, 3]
    if name == "jsonl":
        packed = pack_files(tmp_path / "t.jsonl", tmp_path / "p", column="t", stop_words=())
        assert counts_of(packed) == counts_of(corpus)


class TestLanguages:
    @pytest.mark.parametrize(
        ("text", "language", "gone", "kept"),
        [(GERMAN, "German", "die", "bürger"), (FRENCH, "French", "les", "gouvernement"),
         (ENGLISH, "English", "the", "government")],
    )  # fmt: skip
    def test_is_that_of_the_texts(self, tmp_path, text, language, gone, kept):
        pytest.importorskip("stopwordsiso")
        corpus = read({"t": [text] * 3}).corpus("t")
        assert corpus.table.losses.left_out[-1].reason == f"stop words ({language})"
        words = corpus.vocabulary.tolist()
        assert gone not in words
        assert kept in words
        (tmp_path / "t.txt").write_text("\n".join([text] * 3), encoding="utf-8")
        packed = pack_files(tmp_path / "t.txt", tmp_path / "p", progressbar=False)
        assert packed.vocabulary.tolist() == words

    def test_is_asked_for(self):
        pytest.importorskip("stopwordsiso")
        for named in ("de", "German"):
            words = read({"t": ["Die Katze und der Hund"]}).corpus("t", stop_words=named)
            assert words.vocabulary.tolist() == ["hund", "katze"]
        with pytest.raises(ValueError, match=r"must be one of af ar .* got 'xx'"):
            read({"t": ["Die Katze"]}).corpus("t", stop_words="xx")

    def test_without_the_lists(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "stopwordsiso", None)
        with pytest.warns(UserWarning, match=r"few of the English stop words.*pgmult\[texts\]"):
            corpus = read({"t": [GERMAN] * 3}).corpus("t")
        assert {"die", "was", "war"} <= set(corpus.vocabulary.tolist())
        assert "the" not in read({"t": [ENGLISH] * 3}).corpus("t").vocabulary
        with pytest.raises(ImportError, match=r"stop words of German need stopwordsiso: pip"):
            read({"t": [GERMAN]}).corpus("t", stop_words="de")

    def test_texts_without_stop_words_are_not_of_another_language(self):
        pytest.importorskip("stopwordsiso")
        rng = np.random.default_rng(0)
        words = ["tax", "budget", "school", "army", "health", "trade", "peace", "farm"]
        texts = [" ".join(rng.choice(words, 30)) for _ in range(9)]
        assert set(read({"t": texts}).corpus("t").vocabulary.tolist()) == set(words)


TIDY = {
    "document": ["b", "b", "a", "a", "a", "b"], "year": [1999, 1999, 2001, 2001, 2001, 1999],
    "term": ["tax", "the", "tax", "new york", "war", "war"], "n": [3, 9, 1, 2, 0, 1],
}  # fmt: skip


class TestTidyCounts:
    def test_rows_of_a_document_are_one(self):
        corpus = read(TIDY).corpus("term", names="document", count="n")
        assert counts_of(corpus) == [("b", {"tax": 3, "war": 1}), ("a", {"tax": 1, "new york": 2})]
        assert corpus.table.columns["year"].tolist() == [1999, 2001]
        assert sorted(corpus.table.columns) == ["document", "year"]

    def test_order_of_rows_does_not_matter(self):
        turned = {name: cells[::-1] for name, cells in TIDY.items()}
        first, second = (
            read(t).corpus("term", names="document", count="n") for t in (TIDY, turned)
        )
        assert dict(counts_of(first)) == dict(counts_of(second))

    @pytest.mark.parametrize(
        ("how", "said"),
        [
            ({"text": "term", "count": "n"}, "count needs text, .* and names"),
            ({"text": "term", "count": "term", "names": "document"}, "another column than"),
            ({"text": "term", "count": "document", "names": "year"}, "must hold numbers"),
        ],
    )
    def test_what_is_refused(self, how, said):
        with pytest.raises(ValueError, match=said):
            read(TIDY).corpus(**how)


WIDE = {
    "doc_id": ["b", "a", "c"], "year": [1999, 2001, 2003],
    "tax": [3, 1, 0], "the": [9, 0, 0], "war": [1, 0, 0], "new york": [0, 2, 0],
}  # fmt: skip


class TestWideCounts:
    @pytest.mark.parametrize("wide", ["tax:new york", ["war", "new york", "the", "tax"]])
    def test_a_column_is_a_word(self, wide):
        corpus = read(WIDE).corpus(wide=wide, names="doc_id")
        assert counts_of(corpus) == [
            ("b", {"tax": 3, "war": 1}), ("a", {"tax": 1, "new york": 2}), ("c", {})
        ]  # fmt: skip
        assert sorted(corpus.table.columns) == ["doc_id", "year"]

    def test_it_is_the_corpus_of_a_row_a_word(self):
        long = {"doc": ["b", "b", "a", "a"], "term": ["tax", "war", "tax", "new york"]}
        tidy = read({**long, "n": [3, 1, 1, 2]}).corpus("term", names="doc", count="n")
        rows = read({name: cells[:2] for name, cells in WIDE.items()})
        assert counts_of(rows.corpus(wide="tax:new york", names="doc_id")) == counts_of(tidy)

    @pytest.mark.parametrize(
        ("how", "said"),
        [
            ({"wide": "tax:war", "text": "doc_id"}, "text and count must be left out"),
            ({"wide": "tax"}, "two different columns"),
            ({"wide": "doc_id:tax"}, "'doc_id' must hold numbers"),
        ],
    )
    def test_what_is_refused(self, how, said):
        with pytest.raises(ValueError, match=said):
            read(WIDE).corpus(**how)


class TestMatrices:
    COUNTS = np.array([[0, 2, 0], [1, 0, 7]])

    def matrix(self, folder, counts=COUNTS):
        scipy.io.mmwrite(folder / "dfm.mtx", scipy.sparse.coo_array(counts))
        return folder / "dfm.mtx"

    @pytest.mark.parametrize("name", ["vocab.txt", "dfm.cols", "dfm_colnames.txt", "features.txt"])
    def test_names_are_beside(self, tmp_path, name):
        path = self.matrix(tmp_path)
        (tmp_path / name).write_text("tax\nwar\nnew york\n", encoding="utf-8")
        (tmp_path / "rownames.txt").write_text("b\na\n", encoding="utf-8")
        corpus = read_corpus(path)
        assert counts_of(corpus) == [("b", {"war": 2}), ("a", {"tax": 1, "new york": 7})]
        packed = pack_files(path, tmp_path / "p", progressbar=False)
        assert packed.vocabulary.tolist() == corpus.vocabulary.tolist()

    def test_words_by_documents_are_turned_round(self, tmp_path):
        path = self.matrix(tmp_path, self.COUNTS.T)
        corpus = read_corpus(path, vocabulary=["tax", "war", "york"])
        assert corpus.to_csr().toarray().tolist() == self.COUNTS.tolist()

    def test_bad_matrices(self, tmp_path):
        path = self.matrix(tmp_path, self.COUNTS / 2)
        with pytest.raises(ValueError, match=r"dfm.mtx: counts must be .*got 0.5"):
            read_corpus(path)
        path.write_text("no matrix\n", encoding="utf-8")
        with pytest.raises(ValueError, match=r"dfm.mtx: "):
            read_corpus(path)

    @pytest.mark.parametrize(
        "lines",
        [
            ["1 tax", "2 war", "3 york"], ["0\ttax\t9", "1\twar\t2", "2\tyork\t7"],
            ["tax 10", "war 2", "york 2"], ['"1" "tax"', '"2" "war"', '"3" "york"'],
            ["3 york", "1 tax", "2 war"],
        ],
    )  # fmt: skip
    def test_vocabularies_with_numbers(self, tmp_path, lines):
        path = self.matrix(tmp_path)
        (tmp_path / "vocab.txt").write_text("\n".join(lines), encoding="utf-8")
        assert read_corpus(path).vocabulary.tolist() == ["tax", "war", "york"]

    def test_words_that_come_twice(self, tmp_path):
        (tmp_path / "vocab.txt").write_text("tax\nwar\ntax\n", encoding="utf-8")
        with pytest.warns(UserWarning, match="1 words more than once, such as 'tax'"):
            corpus = read_corpus(self.matrix(tmp_path))
        assert counts_of(corpus) == [(0, {"war": 2}), (1, {"tax": 8})]
        ldac = tmp_path / "c.dat"
        ldac.write_text("1 1:2\n2 0:1 2:7\n", encoding="utf-8")
        with pytest.warns(UserWarning, match="more than once"):
            assert counts_of(read_corpus(ldac)) == counts_of(corpus)
