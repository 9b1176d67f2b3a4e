"""FASTA files."""

import gzip

import pytest

from pgmult.datasets import read_fasta

TEXT = ">one a comment\nATGG\nCC\n\n>two\nTAA\n"


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_sequences_by_name(tmp_path, ending):
    path = tmp_path / f"a.fa{ending}"
    path.write_bytes(gzip.compress(TEXT.encode()) if ending else TEXT.encode())
    assert read_fasta(path) == {"one": "ATGGCC", "two": "TAA"}
    assert list(read_fasta(str(path))) == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.fa", b"ATG\n>one\nA\n", "line 1: a line starting with '>' must come first, got 'ATG'"),
        ("a.fa", b">one\nA\n>one\nC\n", "line 3: the name 'one' stands there twice"),
        ("a.fa", b">\nA\n", "line 1: a name is empty"),
        ("a.fa", b">one\n>two\nA\n", ".*'one' has no sequence"),
        ("a.fa", b"", ".*is empty"),
        ("a.fa", ">one\nACGT\nACGÉ\n".encode(), "line 3: byte 0xc3 is not ascii .save the file as"),
        ("a.fa", ">é\nACGT\n".encode(), "line 1: byte 0xc3 is not ascii"),
        (
            "a.fa.gz",
            gzip.compress(TEXT.encode() * 99, mtime=0)[:-9],
            "damaged or truncated gzip data",
        ),
        ("a.fa.gz", TEXT.encode(), "damaged or truncated gzip data"),
        ("a.fa", b"\x7fELF\0\0", "a binary file, expected text"),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name}(:|,) {message}"):
        read_fasta(tmp_path / name)
