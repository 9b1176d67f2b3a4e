"""Arrays in files: numpy reads what is written, and they know their content without reading it."""

import hashlib
import pickle

import numpy as np
import pytest

from pgmult.core.mapped import ArrayFile, ArrayWriter, MappedArray, content_hash, pieces


def written(path, dtype, *values):
    with ArrayWriter(path, dtype) as writer:
        for part in values:
            writer.append(np.asarray(part, dtype=dtype))
        return writer.finish()


@pytest.mark.parametrize("dtype", ["<i8", "<i4", "<U3", "<f8"])
def test_a_file_is_what_numpy_reads(tmp_path, dtype):
    file = written(tmp_path / "a.npy", dtype, [1, 2], [], [3])
    array = file.open()
    assert np.array_equal(np.load(tmp_path / "a.npy"), array)
    assert array.tolist() == np.array([1, 2, 3], dtype=dtype).tolist()
    assert content_hash(array) == hashlib.sha256(np.load(tmp_path / "a.npy").tobytes()).hexdigest()
    assert content_hash(array) == content_hash(np.asarray(array))


def test_an_empty_file(tmp_path):
    assert written(tmp_path / "a.npy", "<i4").open().tolist() == []


def test_what_is_made_of_it_has_no_file(tmp_path):
    array = written(tmp_path / "a.npy", "<i4", [1, 2, 3]).open()
    assert array.flags.writeable
    assert array.file is not None
    array.check()
    assert array[:2].file is None
    assert (array + 1).file is None
    assert type(pickle.loads(pickle.dumps(array[:2]))) is np.ndarray
    again = pickle.loads(pickle.dumps(array))
    assert isinstance(again, MappedArray)
    assert again.file == array.file
    array[0] = 7  # in memory alone
    assert np.load(tmp_path / "a.npy")[0] == 1


def test_damage_is_named(tmp_path):
    file = written(tmp_path / "a.npy", "<i4", [1, 2, 3])
    content = (tmp_path / "a.npy").read_bytes()
    for changed in (content[:-1], content + b"x", b"x" + content[1:], b""):
        (tmp_path / "a.npy").write_bytes(changed)
        with pytest.raises(ValueError, match=r"a\.npy is damaged"):
            file.open()
    (tmp_path / "a.npy").write_bytes(content[:-1] + b"\1")
    with pytest.raises(ValueError, match="is damaged: its block 0 has changed"):
        file.open().check()
    with pytest.raises(ValueError, match="is damaged"):
        ArrayFile(file.path, "what", 3, "", "").open()
    (tmp_path / "a.npy").unlink()
    with pytest.raises(FileNotFoundError, match="no such file"):
        file.open()


def test_pieces_make_up_the_whole():
    array = np.arange(3_000_000)
    assert np.array_equal(np.concatenate(list(pieces(array))), array)
    assert len(list(pieces(array))) > 1
    assert not list(pieces(array[:0]))
