"""Tables of alignments: what makes one, files of them, and everything that is refused."""

import gzip

import numpy as np
import pytest

from examples.papers.hensman2012.alignments import read_alignments
from examples.papers.hensman2012.expression import Alignments, as_alignments

READ, TRANSCRIPT, VALUES = [0, 2, 1, 0, 2], [1, 2, 0, 0, 0], [-1.0, -2.0, -3.0, -4.0, -5.0]


class TestAsAlignments:
    def test_rows_in_order(self):
        data = as_alignments(READ, TRANSCRIPT, VALUES, names=["a", "b", "c", "noise"])
        assert isinstance(data, Alignments)
        np.testing.assert_array_equal(data.indptr, [0, 2, 3, 5])
        np.testing.assert_array_equal(data.transcripts, [0, 1, 0, 0, 2])
        np.testing.assert_array_equal(data.log_likelihood, [-4.0, -1.0, -3.0, -5.0, -2.0])
        np.testing.assert_array_equal(data.rows, [0, 0, 1, 2, 2])
        assert (data.num_reads, data.num_transcripts) == (3, 4)
        assert data.names.tolist() == ["a", "b", "c", "noise"]
        assert repr(data) == "Alignments(3 reads, 4 transcripts, 5 alignments)"

    def test_counts(self):
        data = as_alignments(READ, TRANSCRIPT, VALUES, counts=[4, 0, 2.0])
        assert data.counts.dtype == np.int64
        assert data.num_reads == 6
        assert data.num_transcripts == 3

    def test_several_alignments_to_one_transcript_add_up(self):
        data = as_alignments([0, 0, 0, 1], [1, 0, 1, 0], np.log([0.1, 0.2, 0.3, 0.4]))
        np.testing.assert_array_equal(data.indptr, [0, 2, 3])
        np.testing.assert_allclose(np.exp(data.log_likelihood), [0.2, 0.4, 0.4])

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"read": [0, 2, 0, 0, 2]}, "every read must have an alignment, read 1 has none"),
            ({"read": [0, 1]}, "must be columns of one length"),
            ({"read": [], "transcript": [], "log_likelihood": []}, "must be columns of one length"),
            ({"read": [0, -1, 1, 0, 2]}, "read must be non-negative integers, got -1"),
            ({"transcript": [0.5] * 5}, "transcript must be non-negative integers, got 0.5"),
            ({"num_transcripts": 2}, "transcript must be from 0 to 1 .*, got 2 at position 1"),
            ({"names": ["a"]}, "transcript must be from 0 to 0 .*, got 2"),
            ({"names": ["a"], "num_transcripts": 3}, "names must be 3, one a transcript, got 1"),
            ({"log_likelihood": [-1, -1, np.nan, 0, 0]}, "log_likelihood must be finite, got nan"),
            ({"log_likelihood": [-1, -1, -np.inf, 0, 0]}, "must be finite, got -inf at position 2"),
            ({"counts": [1, 2]}, r"counts must be 3, one a read, got shape \(2,\)"),
            ({"counts": [1, -2, 1]}, "counts must be non-negative integers, got -2"),
        ],
    )
    def test_refusals(self, changes, message):
        right = {"read": READ, "transcript": TRANSCRIPT, "log_likelihood": VALUES}
        with pytest.raises(ValueError, match=message):
            as_alignments(**(right | changes))


TEXT = """# read, transcript, log p
r1\ttB\t-1.5
r2\ttA\t-2

r1\ttA\t-0.25
r2\ttB\t-1e2
"""


class TestReadText:
    def test_a_table(self, tmp_path):
        path = tmp_path / "reads.tsv"
        path.write_text(TEXT)
        data = read_alignments(path)
        assert data.names.tolist() == ["tB", "tA"]
        np.testing.assert_array_equal(data.indptr, [0, 2, 4])
        np.testing.assert_array_equal(data.transcripts, [0, 1, 0, 1])
        np.testing.assert_array_equal(data.log_likelihood, [-1.5, -0.25, -100.0, -2.0])

    def test_compressed_and_from_windows(self, tmp_path):
        path = tmp_path / "reads.tsv.gz"
        path.write_bytes(gzip.compress(TEXT.replace("\n", "\r\n").encode("utf-8-sig")))
        assert read_alignments(path).num_reads == 2

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("r1 tA -1", "line 3: expected read, transcript and log likelihood .* got 1 cells"),
            ("r1\ttA\t-1\t0", "line 3: .* got 4 cells"),
            ("r1\ttA\tlogp", r"line 3: expected a log likelihood, got 'logp' \(is it a header"),
            ("r1\ttA\t", "line 3: expected a log likelihood, got ''"),
            ("r1\ttA\tnan", "line 3: a log likelihood must be finite, got nan"),
            ("r1\ttA\t-inf", "line 3: .* got -inf .leave impossible alignments out"),
            ("\ttA\t-1", "line 3: the name of a read or transcript is blank"),
        ],
    )
    def test_bad_lines(self, tmp_path, line, message):
        path = tmp_path / "reads.tsv"
        path.write_text(f"r0\ttA\t-1\n\n{line}\n")
        with pytest.raises(ValueError, match=rf"reads.tsv, {message}"):
            read_alignments(path)

    def test_bad_files(self, tmp_path):
        path = tmp_path / "reads.tsv"
        with pytest.raises(FileNotFoundError, match=r"reads.tsv: no such file"):
            read_alignments(path)
        path.write_text("# nothing\n")
        with pytest.raises(ValueError, match=r"reads.tsv: the file has no alignments"):
            read_alignments(path)
        path.write_bytes(b"r\xff\tt\t-1\n")
        with pytest.raises(ValueError, match=r"line 1: byte 0xff is not utf-8"):
            read_alignments(path)
        path = tmp_path / "reads.tsv.gz"
        path.write_bytes(gzip.compress(TEXT.encode())[:-9])
        with pytest.raises(ValueError, match="damaged or truncated gzip data"):
            read_alignments(path)


class TestReadArrays:
    def arrays(self, **changes):
        return {"read": READ, "tr": TRANSCRIPT, "logp": VALUES, "names": ["a", "b", "c"]} | changes

    def test_a_table(self, tmp_path):
        np.savez(tmp_path / "reads.npz", **self.arrays())
        data = read_alignments(tmp_path / "reads.npz")
        assert data.names.tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(data.transcripts, [0, 1, 0, 0, 2])

    def test_names_are_optional(self, tmp_path):
        arrays = self.arrays()
        del arrays["names"]
        np.savez_compressed(tmp_path / "reads.npz", **arrays)
        assert read_alignments(tmp_path / "reads.npz").names is None

    def test_refusals(self, tmp_path):
        path = tmp_path / "reads.npz"
        with pytest.raises(FileNotFoundError):
            read_alignments(path)
        arrays = self.arrays()
        del arrays["tr"]
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match=r"reads.npz: not a table .*no array 'tr' among"):
            read_alignments(path)
        np.savez(path, **self.arrays(logp=[-1.0, np.nan, 0.0, 0.0, 0.0]))
        with pytest.raises(
            ValueError, match=r"reads.npz: .*log_likelihood must be finite, got nan"
        ):
            read_alignments(path)
        np.savez(path, **self.arrays(names=np.array([{}, {}, {}], dtype=object)))
        with pytest.raises(ValueError, match=r"reads.npz: not a table .*allow_pickle"):
            read_alignments(path)
        whole = tmp_path / "whole.npz"
        np.savez(whole, **self.arrays())
        for damaged in (whole.read_bytes()[:200], b"text", b""):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=r"reads.npz: not a table of alignments"):
                read_alignments(path)
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
        with pytest.raises(ValueError, match=r"reads.npz: not a table of alignments"):
            read_alignments(path)

    def test_numbers_that_do_not_fit(self, tmp_path):
        """One sentence, and no attempt at a table of 2**40 reads."""
        path = tmp_path / "a.npz"
        for reads, transcript, message in (
            ([0, 2**40], [0, 0], "read must be numbered 0, 1, ... without gaps, got 1099511627776"),
            ([0, 1], [0, 2**40], "transcript must be below 2\\*\\*31, got 1099511627776 at posi"),
        ):
            np.savez(path, read=reads, tr=transcript, logp=np.zeros(2))
            with pytest.raises(ValueError, match=f"a.npz: not a table of alignments .{message}"):
                read_alignments(path)

    def test_every_flipped_bit(self, tmp_path):
        """A damaged archive is one sentence, or still a table; never another exception."""
        path = tmp_path / "reads.npz"
        np.savez(path, read=[0, 1, 1], tr=[0, 0, 1], logp=[-1.0, -2.0, -3.0])
        content = path.read_bytes()
        complaints = []
        for bit in range(0, 8 * len(content), 59):
            changed = bytearray(content)
            changed[bit // 8] ^= 1 << bit % 8
            path.write_bytes(changed)
            try:
                assert read_alignments(path).num_reads == 2
            except ValueError as error:
                complaints.append(str(error))
        assert len(complaints) > 50
        assert all("reads.npz: " in complaint for complaint in complaints)


@pytest.mark.parametrize("mark", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_separators_inside_names_split_no_line(tmp_path, mark):
    path = tmp_path / "reads.tsv"
    path.write_text(f"r{mark}1\tt\t-1.0\nr2\tt\t-2.0\n", encoding="utf-8")
    assert read_alignments(path).num_reads == 2


def test_real_reads(shared_data):
    data = read_alignments(shared_data("bitseq") / "bitseq_c0b0.npz")
    assert (data.num_reads, data.num_transcripts) == (4663, 56)
    assert np.all(np.diff(data.indptr) >= 1)
    assert len(data.names) == 56
