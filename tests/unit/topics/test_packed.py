"""Corpora on disk are the corpora in memory: hash, rows, draws; and damage is named."""

import json
import os
import random
import signal
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from same_draws import assert_same_corpora

import pgmult
from pgmult.core import mapped
from pgmult.core.mapped import ArrayWriter, MappedArray
from pgmult.core.sealed import read_json, write_json
from pgmult.sampling.codec import fingerprint
from pgmult.topics import as_corpus, open_corpus, pack_corpus, split_tokens
from pgmult.topics.compiled.tokens import allocate
from pgmult.topics.data import corpus as corpus_module
from pgmult.topics.starts import searches

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")

COUNTS = np.random.default_rng(0).poisson(0.4, size=(23, 12))
COUNTS[[4, 22]] = 0
WORDS = [f"word {j}" for j in range(12)]
NAMES = [f"document {d}\n" for d in range(23)]
MODEL = pgmult.topics.CorrelatedTopics(num_topics=3, start_sweeps=5)
FEW = {"draws": 4, "tune": 2, "chains": 2, "random_seed": 1, "progressbar": False}


@pytest.fixture
def whole():
    return as_corpus(COUNTS, WORDS, NAMES)


@pytest.fixture
def packed(whole, tmp_path):
    return pack_corpus(whole, tmp_path / "corpus")


def test_what_is_opened_is_what_was_packed(whole, packed, tmp_path):
    assert_same_corpora(whole, packed)
    assert isinstance(packed.words, MappedArray)
    assert repr(packed) == repr(whole)
    assert_same_corpora(open_corpus(str(tmp_path / "corpus")), whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus"]
    assert not (tmp_path / "corpus" / "lock").exists()


def test_hash_is_that_of_the_corpus_in_memory(whole, packed, monkeypatch):
    expected = fingerprint(whole)
    monkeypatch.setattr("pgmult.core.mapped.pieces", None)  # nothing is read
    assert fingerprint(packed) == expected


def test_blocks_are_stacked(whole, tmp_path):
    blocks = (as_corpus(COUNTS[rows], WORDS, NAMES[rows]) for rows in (slice(9), slice(9, 23)))
    assert_same_corpora(pack_corpus(blocks, tmp_path / "stacked"), whole)
    bare = pack_corpus(iter([COUNTS[:9], whole[9:]]), tmp_path / "bare", vocabulary=WORDS)
    assert_same_corpora(bare, replace(whole, names=None))  # not all blocks have names
    assert_same_corpora(pack_corpus(bare, tmp_path / "again"), bare)
    blocks = [scipy.sparse.csr_array(COUNTS[:9]), COUNTS[9:]]
    assert_same_corpora(pack_corpus(blocks, tmp_path / "list", vocabulary=WORDS), bare)
    assert_same_corpora(pack_corpus(COUNTS.tolist(), tmp_path / "rows", vocabulary=WORDS), bare)


@pytest.mark.parametrize("block", [1, 7, 2**20])
def test_rows_and_totals(whole, packed, block, monkeypatch):
    monkeypatch.setattr(corpus_module, "_BLOCK", block)
    assert np.array_equal(packed.totals, COUNTS.sum(axis=1))
    stops = [rows.stop for rows in packed.pieces()]
    assert stops[-1] == 23
    assert np.all(np.diff(stops) > 0)
    part = packed.rows(slice(3, 9))
    assert np.shares_memory(part.words, packed.words)
    assert np.shares_memory(part.counts, packed.counts)
    assert_same_corpora(part, whole[3:9])
    assert_same_corpora(packed.rows(slice(5, 5)), whole[5:5])
    assert np.array_equal(packed[[7, 2, 7]].to_csr().toarray(), COUNTS[[7, 2, 7]])
    assert packed[np.arange(23) > 20].names.tolist() == NAMES[21:]
    with pytest.raises(ValueError, match="neighbouring"):
        packed.rows(slice(0, 9, 2))


def test_tokens_are_split_alike(whole, packed):
    for left, right in zip(split_tokens(whole, 4), split_tokens(packed, 4), strict=True):
        assert_same_corpora(left, right)


def test_draws_are_those_of_the_corpus_in_memory(whole, packed, tmp_path):
    expected = pgmult.sample(MODEL, whole, **FEW)
    compiled = len(allocate.signatures)
    found = pgmult.sample(MODEL, packed, store=tmp_path / "run", **FEW)
    for name in expected:
        assert np.array_equal(expected[name], found[name])
    assert len(allocate.signatures) == compiled
    assert found.is_of(whole)
    assert found.is_of(packed)
    assert (tmp_path / "run" / "inputs.npz").stat().st_size < 8000  # no words in it
    longer = pgmult.sample(MODEL, whole, **FEW | {"draws": 6})
    resumed = pgmult.resume(tmp_path / "run", draws=6, progressbar=False)
    assert np.array_equal(longer["topics"], resumed["topics"])
    assert isinstance(pgmult.load(tmp_path / "run").data.words, MappedArray)


def test_a_run_goes_on_where_its_corpus_has_moved(packed, tmp_path):
    pgmult.sample(MODEL, packed, store=tmp_path / "run", **FEW)
    (tmp_path / "corpus").rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match=r"moved or deleted.*corpus.*\.npy"):
        pgmult.resume(tmp_path / "run", draws=5, progressbar=False)
    with pytest.raises(ValueError, match="data must be given"):
        _ = pgmult.load(tmp_path / "run").data
    moved = open_corpus(tmp_path / "elsewhere")
    assert pgmult.resume(tmp_path / "run", draws=5, data=moved, progressbar=False).num_draws == 5


def test_covariates_of_a_packed_corpus_leave_the_words_where_they_are(packed):
    data = pgmult.topics.with_covariates(packed, {"x": np.arange(23.0)})
    assert data.words is packed.words


def test_bad_blocks(tmp_path):
    out = tmp_path / "corpus"
    for blocks, words in (
        (iter([]), "at least one block"),
        (iter([COUNTS, COUNTS[:, :5]]), "12 words in every block, got 5 in block 1"),
        (iter([COUNTS, as_corpus(COUNTS, WORDS), as_corpus(COUNTS, NAMES[:12])]), "block 2 has an"),
        (iter([COUNTS, -COUNTS]), r"counts\[1\] must be non-negative"),
    ):
        with pytest.raises(ValueError, match=words):
            pack_corpus(blocks, out, vocabulary=WORDS if "block 2" in words else None)
        assert not list(tmp_path.iterdir())  # nothing is left
    with pytest.raises(ValueError, match="vocabulary must have one entry for each of the 12"):
        pack_corpus(COUNTS, out, vocabulary=["a"])


def test_occupied_and_missing_folders(packed, tmp_path):
    with pytest.raises(FileExistsError, match="new or empty"):
        pack_corpus(COUNTS, tmp_path / "corpus")
    (tmp_path / "empty").mkdir()
    assert pack_corpus(COUNTS, tmp_path / "empty").num_documents == 23
    with pytest.raises(FileNotFoundError, match=r"no corpus\.json"):
        open_corpus(tmp_path)


def test_a_manifest_that_is_none(packed, tmp_path):
    file = tmp_path / "corpus" / "corpus.json"
    manifest = file.read_bytes()
    for changed in (
        manifest.replace(b'"num_words": 12', b'"num_words": 13'), manifest[:-9], b"[]", b"\xff",
        json.dumps({"pgmult_corpus": 2}).encode(),
    ):  # fmt: skip
        file.write_bytes(changed)
        with pytest.raises(ValueError, match=r"corpus\.json is damaged"):
            open_corpus(file.parent)
    file.write_bytes(manifest)
    told = read_json(file)
    words = told["arrays"]["words"]
    for changes in (
        {"pgmult_corpus": 1}, {"arrays": {}}, {"arrays": 3}, {"num_words": "12"},
        *({"arrays": told["arrays"] | more} for more in (
            {"words": ["|O", *words[1:]]}, {"words": ["<i8", *words[1:]]}, {"words": words[:3]},
            {"words": [*words, 1]}, {"names": ["<U2", "3", "", ""]}, {"table": words},
        )),
    ):  # fmt: skip
        write_json(file, told | changes)
        with pytest.raises(ValueError, match=r"corpus\.json is damaged"):
            open_corpus(file.parent)


@pytest.mark.parametrize(
    ("name", "place", "number"),
    [
        ("words", 3, 12), ("words", 3, -1), ("counts", 0, 0), ("indptr", 0, 1),
        ("indptr", 3, 10_000), ("indptr", 23, 2), ("indptr", 5, -1),
    ],
)  # fmt: skip
def test_numbers_out_of_range_whose_checksum_is_right(packed, tmp_path, name, place, number):
    file = tmp_path / "corpus" / f"{name}.npy"
    told = read_json(file.with_name("corpus.json"))
    array = np.load(file)
    array[place] = number
    file.unlink()
    with ArrayWriter(file, array.dtype) as writer:
        writer.append(array)
        told["arrays"][name] = writer.finish()[1:]
    write_json(file.with_name("corpus.json"), told)
    with pytest.raises(ValueError, match=rf"{name}\.npy is damaged: it"):
        open_corpus(file.parent)


def damages(files, number):
    """So many files, each with what stands in it after a flipped bit or a truncation."""
    moments = random.Random(number)
    for i in range(number):
        path = files[i % len(files)]
        there = bytearray(path.read_bytes())
        place = moments.randrange(len(there))
        if i // len(files) % 4 == 3:
            yield path, bytes(there[:place])
        else:
            there[place] ^= 1 << moments.randrange(8)
            yield path, bytes(there)


@pytest.mark.parametrize("block", [64, 2**22])
def test_no_damage_passes(whole, tmp_path, block, monkeypatch):
    """A flipped bit or a cut-off end, anywhere in any file, is refused with the file's name."""
    monkeypatch.setattr(mapped, "_BLOCK", block)
    folder = tmp_path / "corpus"
    pack_corpus(whole, folder)
    pgmult.sample(MODEL, open_corpus(folder), store=tmp_path / "run", **FEW)
    for path, content in damages(sorted(folder.iterdir()), 120):
        right = path.read_bytes()
        path.write_bytes(content)
        for read in (open_corpus, lambda folder: pgmult.load(folder.parent / "run").data):
            if path.name != "corpus.json" or read is open_corpus:
                with pytest.raises(ValueError, match=rf"{path.name} is damaged"):
                    read(folder)
        path.write_bytes(right)
    assert_same_corpora(open_corpus(folder), whole)


def test_blocks_are_checked_once_and_when_they_are_used(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(mapped, "_BLOCK", 64)
    folder = tmp_path / "corpus"
    pack_corpus(whole, folder)
    told = [mapped.ArrayFile(str(folder / f"{name}.npy"), *about)
            for name, about in read_json(folder / "corpus.json")["arrays"].items()]  # fmt: skip
    content = bytearray((folder / "counts.npy").read_bytes())
    content[-1] ^= 0x40  # of the last document but one: more tokens than there is memory for
    (folder / "counts.npy").write_bytes(content)
    arrays = {Path(file.path).stem: file.open(check=False) for file in told}
    part = type(whole)(num_words=12, **arrays)
    assert_same_corpora(part.rows(slice(0, 9)), whole.rows(slice(0, 9)))
    with pytest.raises(ValueError, match=r"counts\.npy is damaged"):
        part.rows(slice(9, 23))
    monkeypatch.setattr(mapped, "_checksum", None)
    assert_same_corpora(part.rows(slice(2, 9)), whole.rows(slice(2, 9)))


def test_a_checksum_sees_every_bit_and_the_order_of_pages():
    block = np.random.default_rng(0).integers(0, 256, size=5 * 4096 + 37, dtype=np.uint8)
    right = mapped._checksum(block)
    for place in range(0, len(block), 61):
        changed = block.copy()
        changed[place] ^= 1 << place % 8
        assert mapped._checksum(changed) != right
    pages = block.copy()
    pages[:4096], pages[4096:8192] = block[4096:8192], block[:4096]
    assert mapped._checksum(pages) != right
    words = block.copy()
    words[:8], words[8:16] = block[8:16], block[:8]
    assert mapped._checksum(words) != right


KILLED = """
import itertools, os, sys, time
import numpy as np, pgmult

def blocks():
    yield from itertools.repeat(np.eye(5, dtype=int), 3)
    print("killed now", flush=True)
    time.sleep(60)

pgmult.topics.pack_corpus(blocks(), sys.argv[1])
"""


def test_a_killed_pack_leaves_nothing_that_opens(tmp_path):
    out = tmp_path / "corpus"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(out)], stdout=subprocess.PIPE, env=os.environ.copy()
    ) as process:
        assert process.stdout.readline() == b"killed now\n"
        if sys.platform != "win32":
            with pytest.raises(BlockingIOError, match="another process"):
                pack_corpus(COUNTS, out)
        process.send_signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    assert not out.exists()
    with pytest.raises(FileNotFoundError):
        open_corpus(tmp_path / "corpus.part")
    assert pack_corpus(COUNTS, out).num_documents == 23
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


@pytest.mark.slow
def test_no_sweep_copies_the_corpus(tmp_path, monkeypatch):
    """What is allocated from the start to the last draw is a small part of the words."""
    monkeypatch.setattr(corpus_module, "_BLOCK", 2**13)
    monkeypatch.setattr(searches, "_LARGE", (0, 0))
    monkeypatch.setattr(searches, "_MOST_TOKENS", (5000, 1))
    counts = np.random.default_rng(3).poisson(1.0, size=(600, 1500))
    packed = pack_corpus(counts, tmp_path / "corpus", vocabulary=list(map(str, range(1500))))
    model = replace(MODEL, block_rows=16)
    pgmult.sample(model, packed, **FEW | {"draws": 1})  # compiled
    tracemalloc.start()
    try:
        pgmult.sample(model, packed, **FEW | {"chains": 1, "cores": 1})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * packed.words.nbytes  # a quarter of what is on disk
