"""Reading corpora: every format, every way a file can be broken, and the built-in texts."""

import gzip
import json
import unicodedata

import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given
from hypothesis import strategies as st

import pgmult
from pgmult.datasets import read, read_corpus, read_text
from pgmult.datasets.readers import read_ldac, read_npz, recognise
from pgmult.datasets.text import count_words, tokenize
from pgmult.topics import as_corpus


def corpus_of(texts, **options):
    return pgmult.read({"text": texts}).corpus("text", **options)


def dense(corpus):
    return corpus.to_csr().toarray()


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


class TestText:
    def test_tokenize(self):
        text = "The Dog's bones; don’t re-use x_1 or 42 Żółw ÉTÉ l'été!"
        expected = ["the", "dog", "bones", "don't", "re", "use", "or", "żółw", "été", "l'été"]
        assert tokenize(text) == expected

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("हिन्दी में लिखा हुआ पाठ सरकार की नीति", "हिन्दी में लिखा हुआ पाठ सरकार की नीति"),
            ("தமிழ் மொழி", "தமிழ் மொழி"),
            ("שָׁלוֹם עוֹלָם צה״ל", "שָׁלוֹם עוֹלָם צה״ל"),
            ("اَلْعَرَبِيَّةُ لغة", "اَلْعَرَبِيَّةُ لغة"),
            ("می\u200cخواهم", "می\u200cخواهم"),
            ("e\u0301te\u0301 pre\u0301sident", "été président"),
            ("İSTANBUL Istanbul", "istanbul istanbul"),
            ("ﬁrst\u00ad Co\u00adop\ufeff", "ﬁrst coop"),
            ("и в САДУ", "и в саду"),
            ("물 나 먹다", "물 나 먹다"),
            ("我 喜欢 苹果", "我 喜欢 苹果"),
            ("a b é I x̄", ""),
            ("#MeToo (#covid_19) C# a#b", "#metoo #covid_19"),
            ("o’clock rock'n'roll 'quoted' paral·lel", "o'clock rock'n'roll quoted paral·lel"),
        ],
    )
    def test_words_of_every_script(self, text, words):
        assert tokenize(text) == [unicodedata.normalize("NFC", word) for word in words.split()]

    @given(st.text())
    def test_one_normal_form(self, text):
        forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
        assert tokenize(forms[0]) == tokenize(forms[1])

    @pytest.mark.parametrize(
        "text",
        [
            "我喜欢吃苹果和香蕉因为它们很好吃",
            "日本語の文章には空白がありません",
            "ภาษาไทยเขียนโดยไม่เว้นวรรค",
        ],
    )
    def test_texts_without_spaces_are_refused(self, text):
        with pytest.raises(ValueError, match=r"must have spaces between words.*tokenizer=jieba"):
            corpus_of([text, "one line of English"])
        assert corpus_of([text], tokenizer=list).num_words > 5
        english = ["many words of English stand around it, so that it can be told as a name"] * 9
        assert text in corpus_of([*english, text]).vocabulary

    POSTS = (
        "RT @Bob: jobs &amp; taxes https://t.co/aBc1 #Vote",
        "see www.who.int/x or write to a.b@c.org; it&#39;s R&amp;D & amp ; x",
        "http taxes HTTPS://EXAMPLE.COM/jobs?utm=1",
    )

    def test_addresses_are_taken_out_and_counted(self):
        corpus, losses = count_words(self.POSTS, stop_words=())
        assert corpus.vocabulary.tolist() == [
            "#vote", "it", "jobs", "or", "rt", "see", "taxes", "to", "write"
        ]  # fmt: skip
        told = {loss.reason: (loss.words, loss.tokens) for loss in losses.left_out}
        assert told == {
            "web and mail addresses": (5, 5),
            "names of users (@)": (1, 1),
            "single letters": (3, 3),
        }
        assert losses.tokens == corpus.num_tokens + 9
        assert losses.words == corpus.num_words + 9
        kept = corpus_of(self.POSTS, stop_words=(), keep_addresses=True).vocabulary
        assert {"https", "co", "bob", "www", "org"} <= set(kept.tolist())
        assert "amp" not in kept

    def test_twins_of_unicode_are_one_word(self):
        decomposed = unicodedata.normalize("NFD", "été")
        texts = [f"{decomposed} jour", "été jour"]
        assert corpus_of(texts, stop_words=["été"]).vocabulary.tolist() == ["jour"]
        assert corpus_of(texts).to_csr().toarray().tolist() == [[1, 1], [1, 1]]
        assert corpus_of([f"{decomposed} été"], tokenizer=str.split).num_words == 1

    def test_counts_and_alphabetical_vocabulary(self):
        corpus = corpus_of(["b a b", "", "c c c a"], tokenizer=str.split, stop_words=())
        assert corpus.vocabulary.tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(dense(corpus), [[1, 2, 0], [0, 0, 0], [1, 0, 3]])

    def test_choices_of_the_vocabulary(self):
        texts = ["a b c c", "a b d d d", "a e", "a b f"]

        def words(**options):
            return corpus_of(
                texts, tokenizer=str.split, **{"stop_words": (), **options}
            ).vocabulary.tolist()

        assert words(min_count=2) == ["a", "b", "c", "d"]
        assert words(min_documents=2) == ["a", "b"]
        assert words(max_document_share=0.75) == ["b", "c", "d", "e", "f"]
        assert words(stop_words=["a", "b"]) == ["c", "d", "e", "f"]
        assert words(max_words=2) == ["a", "b"], "b and d are equally frequent: the first one"

    @given(st.lists(st.lists(st.sampled_from("abcdef")), min_size=1))
    def test_every_token_is_counted(self, documents):
        texts = [" ".join(words) for words in documents]
        assume(any(documents))
        corpus = corpus_of(texts, tokenizer=str.split, stop_words=())
        assert corpus.totals.tolist() == [len(words) for words in documents]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"min_documents": 0}, "min_documents must be at least 1, got 0"),
            ({"max_document_share": 1.5}, r"max_document_share must be at most 1, got 1.5"),
            ({"max_words": 1}, "max_words must be at least 2"),
            ({"min_count": 3}, "no word is left of 2 different words in 2 documents"),
        ],
    )
    def test_bad_choices(self, options, message):
        with pytest.raises(ValueError, match=message):
            corpus_of(["cat dog", "cat"], **options)


class TestLdac:
    @pytest.mark.parametrize("compressed", [False, True])
    def test_reads_counts(self, tmp_path, compressed):
        data = b"2 3:1 0:5\n0\n1 1:2\n"
        path = tmp_path / ("c.dat.gz" if compressed else "c.dat")
        path.write_bytes(gzip.compress(data) if compressed else data)
        corpus = read_ldac(path, ["w", "x", "y", "z"])
        np.testing.assert_array_equal(dense(corpus), [[5, 0, 0, 1], [0, 0, 0, 0], [0, 2, 0, 0]])
        assert corpus.vocabulary.tolist() == ["w", "x", "y", "z"]

    def test_size_of_the_vocabulary(self, tmp_path):
        path = write(tmp_path / "c.dat", "1 2:1\n")
        assert read_ldac(path).num_words == 3
        words = write(tmp_path / "words.txt", "a\nb\nc\nd\n")
        assert read_ldac(path, words).num_words == 4

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("3 0:1 1:1", "line 2: announces 3 entries but has 2"),
            ("2 0:1 1:", "line 2: expected term:count.*got '1:'"),
            ("1 0:-1", "line 2: expected term:count.*got '0:-1'"),
            ("1 0:1.5", "line 2: expected term:count"),
            ("1 7:1", "line 2: word number 7 is beyond the vocabulary of 2 words"),
            ("2 1:1 1:1", "line 2: word number 1 comes twice"),
            ("one 0:1", "line 2: expected the number of entries, got 'one'"),
            ("", "line 2: expected the number of entries"),
        ],
    )
    def test_broken_lines(self, tmp_path, line, message):
        path = write(tmp_path / "c.dat", f"1 0:1\n{line}\n1 1:1\n")
        with pytest.raises(ValueError, match=f"c.dat, {message}"):
            read_ldac(path, ["a", "b"])

    @pytest.mark.parametrize(
        "line", ["1 2147483648:1", "1 0:2147483648", f"1 0:{10**30}", f"1 {10**30}:1",
                 f"{10**30} 0:1", f"{'9' * 5000} 0:1", f"1 0:{'9' * 5000}", "1 4294967297:1"],
        ids=lambda line: line[:20],
    )  # fmt: skip
    def test_numbers_that_do_not_fit(self, tmp_path, line):
        """They used to wrap: word 2**31 became word -2**31 of a compiled loop."""
        path = write(tmp_path / "c.dat", f"1 0:1\n{line}\n")
        with pytest.raises(ValueError, match=r"c.dat, line 2: expected a number below 2\*\*31"):
            read_ldac(path)

    def test_damaged_files(self, tmp_path):
        whole = gzip.compress(b"1 0:1\n" * 1000)
        (tmp_path / "cut.dat.gz").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=r"cut.dat.gz: damaged or truncated gzip"):
            read_ldac(tmp_path / "cut.dat.gz")
        (tmp_path / "plain.dat.gz").write_bytes(b"1 0:1\n")
        with pytest.raises(ValueError, match=r"plain.dat.gz: damaged or truncated gzip"):
            read_ldac(tmp_path / "plain.dat.gz")
        with pytest.raises(ValueError, match=r"empty.dat: the file is empty"):
            read_ldac(write(tmp_path / "empty.dat", ""))
        with pytest.raises(FileNotFoundError, match=r"nothing.dat: no such file"):
            read_ldac(tmp_path / "nothing.dat")
        (tmp_path / "latin.dat").write_bytes(b"1 0:1\n1 0:1 \xfc\n")
        with pytest.raises(ValueError, match=r"latin.dat, line 2: .* \(save the file as utf-8\)"):
            read_ldac(tmp_path / "latin.dat")

    def test_blank_line_in_a_vocabulary(self, tmp_path):
        words = write(tmp_path / "words.txt", "a\n\nb\n")
        with pytest.raises(ValueError, match=r"words.txt, line 2: a blank line"):
            read_ldac(write(tmp_path / "c.dat", "1 0:1\n"), words)


class TestPlainText:
    def test_lines(self, tmp_path):
        path = write(tmp_path / "t.txt", "\ufeffred blue\n\n  \nblue\r\nblue green\n")
        corpus = read_text(path)
        assert corpus.names.tolist() == ["line 1", "line 4", "line 5"]
        assert corpus.vocabulary.tolist() == ["blue", "green", "red"]
        np.testing.assert_array_equal(dense(corpus), [[1, 0, 1], [1, 0, 0], [1, 1, 0]])

    def test_paragraphs(self, tmp_path):
        path = write(tmp_path / "t.txt", "red\nblue\n\n\nblue\n")
        corpus = read_text(path, documents="paragraphs")
        assert corpus.names.tolist() == ["line 1", "line 5"]
        np.testing.assert_array_equal(dense(corpus), [[1, 1], [1, 0]])

    def test_folder(self, tmp_path):
        (tmp_path / "more").mkdir()
        write(tmp_path / "more" / "b.txt", "blue\nblue")
        (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"red"))
        write(tmp_path / "notes.log", "green")
        corpus = read_text(tmp_path)
        assert corpus.names.tolist() == ["a.txt.gz", "more/b.txt"]
        np.testing.assert_array_equal(dense(corpus), [[0, 1], [2, 0]])

    def test_bad_files(self, tmp_path):
        with pytest.raises(ValueError, match=r"no .txt or .txt.gz file in this folder"):
            read_text(tmp_path)
        (tmp_path / "latin.txt").write_bytes("red\ngrün\n".encode("latin-1"))
        with pytest.raises(
            ValueError, match=r"latin.txt, line 2: byte 0xfc is not utf-8 .*latin-1"
        ):
            read_text(tmp_path / "latin.txt", encoding="utf-8")
        with pytest.warns(UserWarning, match=r"latin.txt is not UTF-8 .* cp1252.*'grün'"):
            assert "grün" in read_text(tmp_path / "latin.txt").vocabulary
        assert "grün" in read_text(tmp_path / "latin.txt", encoding="latin-1").vocabulary
        (tmp_path / "x.txt").write_bytes(b"\x7fELF\0\0\0")
        with pytest.raises(ValueError, match=r"x.txt: a binary file, expected text"):
            read_text(tmp_path / "x.txt")
        for encoding in ("nope", "hex"):
            with pytest.raises(ValueError, match=f"encoding must be one that Python .*{encoding}"):
                read_text(tmp_path / "latin.txt", encoding=encoding)
        with pytest.raises(ValueError, match=r"encoding must be one that Python knows"):
            read_text(tmp_path / "latin.txt", encoding="undefined")
        with pytest.raises(ValueError, match=r"blank.txt: the file is empty"):
            read_text(write(tmp_path / "blank.txt", "\n \n"))
        with pytest.raises(ValueError, match=r"stop.txt: no word is left"):
            read_text(write(tmp_path / "stop.txt", "the and\n"))


SEPARATORS = "\u2028", "\u2029", "\x85", "\f", "\v", "\x1c"


class TestLineDiscipline:
    """Lines end in LF, CR LF or CR; what else Unicode calls a line's end stands inside a text."""

    @pytest.mark.parametrize("mark", SEPARATORS)
    def test_separators_inside_texts_split_no_document(self, tmp_path, mark):
        inside = f"red{mark}blue"
        table = write(tmp_path / "t.csv", f'id,body\n1,{inside}\n2,green\n3,"{inside}"\n')
        np.testing.assert_array_equal(
            dense(read(table).corpus("body")), [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
        )
        for documents in ("lines", "paragraphs"):
            text = write(tmp_path / "t.txt", f"{inside}\n\ngreen\n\n{inside}\n")
            corpus = read_text(text, documents=documents)
            assert corpus.names.tolist() == ["line 1", "line 3", "line 5"]
        words = write(tmp_path / "words.txt", f"{inside}\ngreen\n")
        ldac = write(tmp_path / "c.dat", "1 1:1\n")
        assert read_ldac(ldac, words).vocabulary.tolist() == [inside, "green"]
        rows = write(tmp_path / "t.jsonl", json.dumps({"body": inside}, ensure_ascii=False))
        assert read(rows).corpus("body").num_documents == 1

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_every_usual_end_of_a_line(self, tmp_path, end):
        path = tmp_path / "t.csv"
        path.write_bytes(f'id,body{end}1,"red{end}blue"{end}{end}2,blue{end}'.encode())
        np.testing.assert_array_equal(dense(read(path).corpus("body")), [[1, 1], [1, 0]])
        (tmp_path / "t.txt").write_bytes(f"red{end}{end}blue".encode())
        assert read_text(tmp_path / "t.txt").names.tolist() == ["line 1", "line 3"]
        (tmp_path / "c.dat").write_bytes(f"1 0:1{end}0{end}".encode())
        assert read_ldac(tmp_path / "c.dat").num_documents == 2

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_a_return_alone_ends_no_row_of_a_file_with_line_feeds(self, tmp_path, end):
        """Data frames are written so: a return in a cell gets no quotes."""
        path = tmp_path / "t.csv"
        path.write_bytes(f'id,body{end}1,red\rblue{end}2,"blue\rred{end}green"{end}'.encode())
        table = read(path)
        assert table["body"].tolist() == ["red blue", f"blue\rred{end}green"]
        assert table["id"].tolist() == [1, 2]

    def test_byte_order_marks(self, tmp_path):
        path = write(tmp_path / "t.csv", "\ufeffbody,id\nred,1\n")
        assert read(path).corpus("body").num_documents == 1
        (tmp_path / "u.csv").write_bytes("body;id\nred;1\n".encode("utf-16"))
        assert read(tmp_path / "u.csv", encoding="utf-16").corpus("body").num_tokens == 1
        path = write(tmp_path / "c.dat", "\ufeff2 0:1 4:2\n")
        assert recognise(path).kind == "LDA-C"
        assert read_corpus(path).num_words == 5


class TestTable:
    @pytest.mark.parametrize("mark", [",", ";", "\t"])
    def test_the_header_tells_what_separates_cells(self, tmp_path, mark):
        text = f'id{mark}"a, b; c\td"{mark}body\n1{mark}x{mark}"red, blue; red"\n'
        path = write(tmp_path / "t.csv", text)
        assert read(path).corpus("body").num_tokens == 3
        assert read_corpus(path, column="body", delimiter=mark).num_tokens == 3

    def test_an_ambiguous_header(self, tmp_path):
        path = write(tmp_path / "t.csv", "id;body, in full\n1;red\n")
        with pytest.raises(ValueError, match=r"t.csv, line 1: ',' and ';' stand in .* delimiter="):
            read(path).corpus("body, in full")
        assert read(path, delimiter=";").corpus("body, in full").num_tokens == 1
        with pytest.raises(ValueError, match="delimiter must be one character, got 'xy'"):
            read(path, delimiter="xy")
        alone = write(tmp_path / "alone.csv", "body\nred\n")
        assert read(alone).corpus("body").num_tokens == 1

    def test_csv(self, tmp_path):
        path = write(tmp_path / "t.csv", 'id,body\n1,"red, blue\nred"\n2,\n\n3,blue\n')
        corpus = read(path).corpus("body")
        np.testing.assert_array_equal(dense(corpus), [[1, 2], [0, 0], [1, 0]])

    def test_a_book_in_a_cell(self, tmp_path):
        path = write(tmp_path / "t.tsv", "id\tbody\n1\t" + "red " * 50_000)
        assert read(path).corpus("body").num_tokens == 50_000

    def test_jsonl(self, tmp_path):
        rows = [{"body": "red blue"}, {"body": None}, {"body": "blue", "id": 3}]
        path = write(tmp_path / "t.jsonl", "\n".join(map(json.dumps, rows)) + "\n")
        np.testing.assert_array_equal(dense(read(path).corpus("body")), [[1, 1], [0, 0], [1, 0]])

    @pytest.mark.parametrize(
        ("name", "text", "message"),
        [
            ("t.csv", "id,text\n1,red\n", r"got 'body' \(it has 'id', 'text'\)"),
            ("t.csv", "id,body\n1,red\n2,red,blue\n", "line 3: 3 cells under a header of 2"),
            ("t.csv", 'id,body\n1,"red\n', "line 2: a cell that begins with a quote is nev"),
            ("t.csv", "id,body\n", "the table has no rows"),
            ("t.csv", "", "the file is empty"),
            ("t.jsonl", '{"body": "red"}\n{"body": "re\n', "line 2: not JSON"),
            ("t.jsonl", '{"body": 3}\n', "t.jsonl: text must be a column of strings, 'body' has"),
            ("t.jsonl", '{"text": "a"}\n', r"got 'body' \(it has 'text'\)"),
            ("t.jsonl", '["red"]\n', "line 1: expected an object, got list"),
            ("t.jsonl", '{"body": ' + "[" * 10**5 + "\n", "t.jsonl, line 1: not JSON that can be"),
            ("t.jsonl", '{"body": ' + "9" * 10**4 + "}\n", "t.jsonl, line 1: not JSON that can be"),
            ("t.csv", "body,body\n1,2\n", "'body' more than once"),
            ("t.json", "{}", "expected an array of objects"),
        ],
    )
    def test_bad_tables(self, tmp_path, name, text, message):
        with pytest.raises(ValueError, match=message):
            read(write(tmp_path / name, text)).corpus("body")


class TestNpz:
    def test_round_trip(self, tmp_path):
        counts = np.array([[0, 2, 0], [0, 0, 0], [1, 0, 7]])
        for to_format in (scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array):
            scipy.sparse.save_npz(tmp_path / "c.npz", to_format(counts))
            corpus = read_npz(tmp_path / "c.npz", ["a", "b", "c"])
            np.testing.assert_array_equal(dense(corpus), counts)

    def test_bad_files(self, tmp_path):
        path = tmp_path / "c.npz"
        scipy.sparse.save_npz(path, scipy.sparse.csr_array([[0.5, 1.0]]))
        with pytest.raises(ValueError, match=r"c.npz: counts must be .*got 0.5 at row 0, column 0"):
            read_npz(path)
        scipy.sparse.save_npz(path, scipy.sparse.csr_array([[2, 1]]))
        with pytest.raises(ValueError, match=r"vocabulary must have one entry for each of the 2"):
            read_npz(path, ["a", "b", "c"])
        data = path.read_bytes()
        for damaged in (data[: len(data) // 2], b"not a zip", b""):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=r"c.npz: not a sparse matrix"):
                read_npz(path)
        np.savez(path, counts=np.eye(2))
        with pytest.raises(ValueError, match=r"c.npz: not a sparse matrix"):
            read_npz(path)

    def test_indices_out_of_range_and_pickles_are_refused(self, tmp_path):
        path = tmp_path / "c.npz"
        parts = {"format": np.array(b"csr"), "shape": np.array([1, 2]), "indptr": np.array([0, 1])}
        np.savez(path, data=np.array([1]), indices=np.array([9]), **parts)
        with pytest.raises(
            ValueError, match=r"c.npz: counts must have all indices inside .*must be < 2"
        ):
            read_npz(path)
        np.savez(path, data=np.array([{}], dtype=object), indices=np.array([0]), **parts)
        with pytest.raises(ValueError, match=r"c.npz: not a sparse matrix"):
            read_npz(path)


def test_every_flipped_bit(tmp_path):
    """A damaged archive is one sentence, or still a table; never another exception."""
    path = tmp_path / "c.npz"
    scipy.sparse.save_npz(path, scipy.sparse.csr_array([[2, 1], [0, 3]]))
    content = path.read_bytes()
    complaints = []
    for bit in range(0, 8 * len(content), 59):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            assert read_npz(path).num_documents == 2
        except ValueError as error:
            complaints.append(str(error))
    assert len(complaints) > 50
    assert all("c.npz: " in complaint for complaint in complaints)


class TestBoundaryOfCorpora:
    @pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.coo_array])
    def test_a_column_beyond_32_bits(self, kind):
        """Column 2**32 + 5 used to become word 5."""
        column = np.array([2**32 + 5])
        wide = scipy.sparse.coo_array(([1], (np.array([0]), column)), shape=(1, 2**32 + 6))
        with pytest.raises(ValueError, match=r"fewer than 2\*\*31 words \(columns\), got 42949673"):
            as_corpus(kind(wide))

    @pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
    @pytest.mark.parametrize("index", [-1, 2, 2**31])
    def test_indices_outside(self, kind, index):
        matrix = scipy.sparse.coo_array([[1, 2], [3, 4]]).asformat(kind)
        if kind == "coo":
            matrix.coords = tuple(np.array([0, 0, index, 1]) for _ in range(2))
        else:
            matrix.indices = np.array([0, 1, index, 1])
        with pytest.raises(ValueError, match="counts must have all indices inside the matrix"):
            as_corpus(matrix)

    def test_duplicates_whose_sum_wraps(self):
        matrix = scipy.sparse.coo_array(([2**62] * 4, ([0] * 4, [1] * 4)), shape=(1, 2))
        with pytest.raises(
            ValueError, match=r"below 2\*\*31, got 4611686018427387904 at row 0, col"
        ):
            as_corpus(matrix)
        small = scipy.sparse.coo_array(
            (np.full(3, 100, np.uint8), ([0] * 3, [1] * 3)), shape=(1, 2)
        )
        assert as_corpus(small).num_tokens == 300
        matrix = scipy.sparse.coo_array(([2**30] * 2, ([0] * 2, [1] * 2)), shape=(1, 2))
        with pytest.raises(ValueError, match=r"below 2\*\*31, got 2147483648"):
            as_corpus(matrix)

    def test_a_list_that_holds_itself(self):
        endless = []
        endless.append(endless)
        with pytest.raises((TypeError, ValueError), match="counts must be"):
            as_corpus(endless)

    @pytest.mark.parametrize(
        "texts", [["a cat", "a dog"], "a cat", np.array(["a cat"]), np.array(["a cat"], object)]
    )
    def test_raw_texts_are_told_where_to_go(self, texts):
        with pytest.raises(TypeError, match=r"'a cat' .*pgmult.read.*CountVectorizer.*read_c"):
            as_corpus(texts)
        pytest.importorskip("sklearn")
        with pytest.raises(TypeError, match=r"^X must be .*'a cat' .*CountVectorizer"):
            pgmult.topics.TopicTransformer(2).fit(texts)


class TestReadCorpus:
    def test_recognises_every_kind(self, tmp_path):
        (tmp_path / "folder").mkdir()
        scipy.sparse.save_npz(tmp_path / "m.npz", scipy.sparse.csr_array([[1]]))
        kinds = {
            "folder": "folder of text",
            "m.npz": "sparse matrix",
            write(tmp_path / "t.CSV", "a\n").name: "table",
            write(tmp_path / "c.dat", "2 0:1 4:2\n").name: "LDA-C",
            write(tmp_path / "years.txt", "1984 was a book\n").name: "text",
        }
        assert {name: recognise(tmp_path / name).kind for name in kinds} == kinds
        with pytest.raises(FileNotFoundError, match="no such file or folder"):
            recognise(tmp_path / "nothing")

    def test_takes_the_vocabulary_beside(self, tmp_path):
        path = write(tmp_path / "c.dat", "1 0:1\n")
        assert read_corpus(path).vocabulary is None
        (tmp_path / "vocab.txt.gz").write_bytes(gzip.compress(b"red\nblue\n"))
        assert read_corpus(path).vocabulary.tolist() == ["red", "blue"]
        assert read_corpus(path, vocabulary=["x"]).vocabulary.tolist() == ["x"]

    def test_reads_texts_with_choices(self, tmp_path):
        path = write(tmp_path / "t.csv", "body\nred blue\nblue\n")
        corpus = read_corpus(path, column="body", min_count=2)
        assert corpus.vocabulary.tolist() == ["blue"]
        path = write(tmp_path / "t.txt", "red\nblue\n\nblue\n")
        assert read_corpus(path, documents="paragraphs").num_documents == 2

    def test_arguments_that_do_not_fit(self, tmp_path):
        ldac = write(tmp_path / "c.dat", "1 0:1\n")
        with pytest.raises(ValueError, match=r"holds counts already .*min_count cannot be applied"):
            read_corpus(ldac, min_count=2)
        with pytest.raises(ValueError, match="say which column holds the texts"):
            read_corpus(write(tmp_path / "t.csv", "body\nred\n"))
        with pytest.raises(ValueError, match="a vocabulary is for files of counts"):
            read_corpus(write(tmp_path / "t.txt", "red\n"), vocabulary=["red"])
