"""Files packed on disk are the corpora that the readers make of the same files."""

import gzip
import io
import json
from dataclasses import asdict

import numpy as np
import pytest
import scipy.sparse
from same_draws import assert_same_corpora

from pgmult.datasets import pack_files, packing, read, read_corpus
from pgmult.datasets.files import each_line, lines_of, read_file
from pgmult.topics import open_corpus
from pgmult.topics.data.packed import losses_of

WORDS = [a + b for a in ("ka", "lo", "mi", "nu", "Pé") for b in ("ra", "sto", "ti", "the", "xü")]
RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(WORDS, size=size)) for size in RNG.poisson(7, size=40)]
TEXTS[3], TEXTS[17], TEXTS[39] = "the and of", "", "war & peace's end"


def write(path, text):
    path.write_text(text, encoding="utf-8", newline="")
    return path


def cell(text):
    return '"' + text.replace('"', '""') + '"'


def every_source(folder):
    """Files of every kind, and the arguments that they need."""
    lines = "\r\n".join(TEXTS)
    yield write(folder / "lines.txt", "\N{BYTE ORDER MARK}" + lines), {}
    paragraphs = "\n\n".join(text.replace(" ", "\n") for text in TEXTS)
    yield write(folder / "paragraphs.txt", paragraphs), {"documents": "paragraphs"}
    with gzip.open(folder / "zipped.txt.gz", "wb") as file:
        file.write(lines.encode("latin-1"))
    yield folder / "zipped.txt.gz", {"encoding": "latin-1"}
    (folder / "texts" / "below").mkdir(parents=True)
    for number, text in enumerate(TEXTS):
        write(folder / "texts" / ("below" if number % 3 else "") / f"{number}.txt", text)
    yield folder / "texts", {}
    rows = [f"{d};{cell(text)};NA" for d, text in enumerate(TEXTS)]
    yield write(folder / "a.csv", "n;body;x\n" + "\n".join(rows)), {"column": "body"}
    yield (
        write(folder / "a.tsv", "x\tbody\n" + "\n".join(f"1\t{t}" for t in TEXTS)),
        {"column": "body"},
    )
    rows = [json.dumps({"t": text or None, "n": d}) for d, text in enumerate(TEXTS)]
    rows[5] = json.dumps({"t": [1, "karaxü"]})  # as JSON
    yield write(folder / "a.jsonl", "\n\n".join(rows)), {"column": "t"}


CHOICES = [
    {},
    {"min_documents": 5, "max_words": 11},
    {"min_count": 8, "max_document_share": 0.3, "stop_words": ["kara", "misto"]},
    {"ngrams": 2, "max_words": 30, "stop_words": ()},
]


@pytest.mark.parametrize("most", [2, 500_000])
@pytest.mark.parametrize("choices", CHOICES, ids=range(len(CHOICES)))
def test_texts(tmp_path, choices, most, monkeypatch):
    monkeypatch.setattr(packing, "_MOST_WORDS", most)
    for number, (path, how) in enumerate(every_source(tmp_path)):
        expected = read_corpus(path, **how, **choices)
        out = tmp_path / f"packed-{number}"
        found = pack_files(path, out, progressbar=False, **how, **choices)
        assert_same_corpora(found, expected)
        assert asdict(losses_of(out)) == asdict(expected.table.losses)
        assert not [file.name for file in out.iterdir() if "raw" in file.name]
        assert_same_corpora(open_corpus(out), expected)


@pytest.mark.parametrize(
    "labels",
    [
        [str(d) for d in range(40)],
        [f"{d}.50" for d in range(40)],
        ["07", *map(str, range(39))],
        [f"{d}e1" if d % 2 else str(d) for d in range(40)],
        [f"a{d}" for d in range(40)],
    ],
)
def test_names_of_a_csv(tmp_path, labels):
    rows = [f"{label},{cell(text)}" for label, text in zip(labels, TEXTS, strict=True)]
    path = write(tmp_path / "a.csv", "n,body\n" + "\n".join(rows))
    found = pack_files(path, tmp_path / "packed", column="body", names="n", progressbar=False)
    assert_same_corpora(found, read(path).corpus("body", names="n"))


@pytest.mark.parametrize(
    "labels",
    [
        list(range(40)), [d + 0.5 for d in range(40)], [0.5, *range(39)], [True] * 40,
        ["a", *range(39)], [True, *range(39)],
    ],
)  # fmt: skip
def test_names_of_a_jsonl(tmp_path, labels):
    rows = [json.dumps({"n": n, "t": t}) for n, t in zip(labels, TEXTS, strict=True)]
    path = write(tmp_path / "a.jsonl", "\n".join(rows))
    found = pack_files(path, tmp_path / "packed", column="t", names="n", progressbar=False)
    assert_same_corpora(found, read(path).corpus("t", names="n"))


@pytest.mark.parametrize("several", ["waves", "waves/*.csv"])
def test_tables_of_a_folder(tmp_path, several):
    (tmp_path / "waves").mkdir()
    for wave, texts in (("a", TEXTS[:20]), ("b", TEXTS[20:])):
        rows = [f"{number},{cell(text)}" for number, text in enumerate(texts)]
        write(tmp_path / "waves" / f"{wave}.csv", "n,body\n" + "\n".join(rows))
    asked = {"column": "body", "names": "n", "progressbar": False}
    found = pack_files(tmp_path / several, tmp_path / "packed", **asked)
    assert_same_corpora(found, read(tmp_path / several).corpus("body", names="n"))


def test_names_that_are_numbers_in_a_workbook(tmp_path):
    pytest.importorskip("python_calamine")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("n", "body"), *enumerate(TEXTS)]:
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    found = pack_files(
        tmp_path / "a.xlsx", tmp_path / "p", column="body", names="n", progressbar=False
    )
    assert_same_corpora(found, read(tmp_path / "a.xlsx").corpus("body", names="n"))


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    days = np.arange("1999-01-01", "1999-02-10", dtype="datetime64[D]")
    texts = [text or None for text in TEXTS]
    table = pyarrow.table({"day": days, "t": texts, "n": np.arange(40)})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    expected = read_corpus(tmp_path / "a.parquet", column="t")
    assert np.array_equal(expected.table.columns["day"], days)
    found = pack_files(tmp_path / "a.parquet", tmp_path / "p", column="t", progressbar=False)
    assert_same_corpora(found, expected)
    for name in ("n", "day"):
        found = pack_files(
            tmp_path / "a.parquet", tmp_path / name, column="t", names=name, progressbar=False
        )
        assert_same_corpora(found, read(tmp_path / "a.parquet").corpus("t", names=name))
    with pytest.raises(ValueError, match="no column 'what'"):
        pack_files(tmp_path / "a.parquet", tmp_path / "q", column="what")
    with pytest.raises(ValueError, match="not a Parquet file"):
        pack_files(write(tmp_path / "b.parquet", "text"), tmp_path / "q", column="t")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_counts(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(packing, "_ROWS", 7)
    counts = RNG.poisson(0.4, size=(40, 9))
    vocabulary = [f"w{j}" for j in range(9)]
    scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.coo_array(counts).asformat(kind))
    write(tmp_path / "vocab.txt", "\n".join(vocabulary))
    for number, given in enumerate((None, [*vocabulary[:-1], "last"])):
        found = pack_files(
            tmp_path / "a.npz", tmp_path / f"p{number}", vocabulary=given, progressbar=False
        )
        assert_same_corpora(found, read_corpus(tmp_path / "a.npz", vocabulary=given))
    assert losses_of(tmp_path / "p0") is None


def test_rows_of_a_matrix_that_are_not_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "_ROWS", 1)
    entries = np.array([1, 0, 2, 5]), np.array([3, 1, 3, 0]), np.array([0, 3, 3, 4])
    matrix = scipy.sparse.csr_array(entries, shape=(3, 4))
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix)
    found = pack_files(tmp_path / "a.npz", tmp_path / "p", progressbar=False)
    assert_same_corpora(found, read_corpus(tmp_path / "a.npz"))
    for entry, words in ((2, "counted from row 2: .*got -1"), (1, "indices inside|index")):
        broken = [np.array(part) for part in entries]
        broken[0 if entry == 2 else 1][3] = -1 if entry == 2 else 7
        with np.load(tmp_path / "a.npz") as old:
            parts = dict(old) | {"data": broken[0], "indices": broken[1]}
        np.savez(tmp_path / "b.npz", **parts)
        with pytest.raises(ValueError, match=words):
            pack_files(tmp_path / "b.npz", tmp_path / "q", progressbar=False)


@pytest.mark.parametrize("compressed", [True, False])
def test_flipped_bits_of_a_matrix(tmp_path, compressed, monkeypatch):
    monkeypatch.setattr(packing, "_ROWS", 2)
    matrix = scipy.sparse.csr_array(RNG.poisson(0.9, size=(9, 5)))
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix, compressed=compressed)
    content = (tmp_path / "a.npz").read_bytes()
    expected = read_corpus(tmp_path / "a.npz")
    refused = 0
    for place in range(0, len(content), 13):
        changed = bytearray(content)
        changed[place] ^= 1 << (place % 8)
        (tmp_path / "b.npz").write_bytes(changed)
        try:
            found = pack_files(tmp_path / "b.npz", tmp_path / f"p{place}", progressbar=False)
        except ValueError as error:
            assert "b.npz" in str(error)  # noqa: PT017
            refused += 1
        else:  # of dates and the like nothing depends
            assert_same_corpora(found, expected)
    assert refused > 30


def test_ldac(tmp_path):
    path = write(tmp_path / "a.dat", "2 3:1 0:2\n0\n3 7:0 1:1 2:5\n")
    for number, given in enumerate((None, list("abcdefghi"))):
        out = tmp_path / f"p{number}"
        found = pack_files(path, out, vocabulary=given, progressbar=False)
        assert_same_corpora(found, read_corpus(path, vocabulary=given))


@pytest.mark.parametrize(
    ("name", "text", "how"),
    [
        ("a.txt", "", {}),
        ("a.txt", "\n \n", {}),
        ("a.txt", "the of and", {}),
        ("a.txt", "kara\0", {}),
        ("a.txt", "kara", {"vocabulary": ["kara"]}),
        ("a.txt.gz", "kara", {}),
        ("a.csv", "", {"column": "t"}),
        ("a.csv", "t,n\n", {"column": "t"}),
        ("a.csv", "t,n\nkara,1\nmiti", {"column": "t"}),
        ("a.csv", "t,n\n1,2", {"column": "t"}),
        ("a.csv", "t;n,m\n1,2", {"column": "t"}),
        ("a.csv", "t,t\nx,y", {"column": "t"}),
        ("a.csv", "t,n\nkara,1\nmiti", {"column": "t", "delimiter": ","}),
        ("a.jsonl", '{"t": "kara"}\n[]', {"column": "t"}),
        ("a.jsonl", '{"t": "kara"}\n{', {"column": "t"}),
        ("a.jsonl", '{"t": 1}', {"column": "t"}),
        ("a.dat", "2 1:1\n", {}),
        ("a.dat", "1 1:1\n1 1:x", {}),
        ("a.dat", "1 1:1\n\n", {}),
        ("a.dat", "1 1:1", {"min_count": 2}),
    ],
)
def test_errors_are_those_of_the_readers(tmp_path, name, text, how):
    path = write(tmp_path / name, text)
    with pytest.raises(ValueError, match=r".") as expected:
        read_corpus(path, **how)
    with pytest.raises(ValueError, match=r".") as found:
        pack_files(path, tmp_path / "out", progressbar=False, **how)
    assert str(found.value) == str(expected.value)
    assert not list(tmp_path.glob("out*"))


def test_arguments(tmp_path):
    path = write(tmp_path / "a.csv", "t,n\nkara,\n")
    for how, words in (
        ({"column": "what"}, r"no column 'what' among \['t', 'n'\]"),
        ({}, "say which column holds the texts"),
        ({"column": "t", "names": "n"}, "column 'n' must have a value in every row, got none"),
    ):
        with pytest.raises(ValueError, match=words):
            pack_files(path, tmp_path / "out", progressbar=False, **how)
    with pytest.raises(ValueError, match="names are a column of a table"):
        pack_files(write(tmp_path / "a.txt", "kara"), tmp_path / "out", names="n")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_one_at_a_time(tmp_path, encoding, end):
    text = end.join(["é" * size for size in (0, 3, 70_000, 1, 0, 9_000)])
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    assert read_file(tmp_path / "a.txt", encoding) == text
    for newline in (None, "", "\n"):
        expected = list(io.StringIO(text, newline=newline))
        assert list(each_line(tmp_path / "a.txt", encoding, newline=newline)) == expected
    assert lines_of(text) == [
        line.removesuffix("\n") for line in each_line(tmp_path / "a.txt", encoding)
    ]


@pytest.mark.parametrize("lines", [0, 3, 50_000])
def test_the_line_of_a_byte_that_is_no_text(tmp_path, lines):
    (tmp_path / "a.txt").write_bytes(b"abc\n" * lines + b"x\xe9y\n" + b"def\n" * 10)
    for encoding in (None, "utf-8"):
        with pytest.raises(ValueError, match=f"line {lines + 1}: byte 0xe9"):
            read_file(tmp_path / "a.txt", encoding)


def test_progress(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(packing, "_LOG_SECONDS", 0.0)
    path = write(tmp_path / "a.txt", "\n".join(TEXTS))
    pack_files(path, tmp_path / "loud")
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("writing: 39 documents, ")
    pack_files(path, tmp_path / "quiet", progressbar=False)
    assert not capsys.readouterr().err
