"""Reads of sequenced RNA, and the transcripts each may have come from.

A read is compatible with a few transcripts; aligning it gives log p(read | transcript) for those
and nothing for the others. `Alignments` holds the table, a compressed sparse row for every
different read, and how often each was sequenced: once, unless equal reads were counted.

>>> data = as_alignments(read=[0, 0, 1], transcript=[0, 1, 1], log_likelihood=[-1.0, -2.0, -1.5])
>>> data
Alignments(2 reads, 2 transcripts, 3 alignments)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pgmult.core.arguments import as_strings
from pgmult.core.validate import as_counts, as_finite, as_positive_int

__all__ = ["Alignments", "as_alignments", "require_alignments"]


@dataclass(frozen=True, slots=True, eq=False)
class Alignments:
    """Compatible transcripts of every read. Make one with `as_alignments`, which checks its input.

    Attributes
    ----------
    indptr : int64 array, ``(num_rows + 1,)``
        Row n's alignments are ``indptr[n]:indptr[n + 1]``; every row has one.
    transcripts : int64 array, ``(num_alignments,)``
    log_likelihood : array, ``(num_alignments,)``
        log p(read | transcript).
    counts : int64 array, ``(num_rows,)``
        How many reads a row stands for.
    num_transcripts : int
        Those without a read included; a transcript of noise, if there is one, is one of them.
    names : str array, ``(num_transcripts,)``, or None
    """

    indptr: NDArray[np.int64]
    transcripts: NDArray[np.int64]
    log_likelihood: NDArray[np.float64]
    counts: NDArray[np.int64]
    num_transcripts: int
    names: NDArray[np.str_] | None = None

    @property
    def num_reads(self) -> int:
        """Number of reads."""
        return int(self.counts.sum())

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row of each alignment, ``(num_alignments,)``."""
        return np.repeat(np.arange(len(self.counts)), np.diff(self.indptr))

    def __repr__(self) -> str:
        return (
            f"Alignments({self.num_reads:,} reads, {self.num_transcripts:,} transcripts,"
            f" {len(self.transcripts):,} alignments)"
        )


def require_alignments(data: Any) -> Alignments:
    """`data` itself, if it is a table of alignments."""
    if not isinstance(data, Alignments):
        raise TypeError(
            f"data must be Alignments, got {type(data).__name__}"
            " (make them with pgmult.mixtures.as_alignments)"
        )
    return data


def as_alignments(
    read: ArrayLike,
    transcript: ArrayLike,
    log_likelihood: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    num_transcripts: int | None = None,
    names: Sequence[str] | NDArray[np.str_] | None = None,
) -> Alignments:
    """Alignments from three columns, a row an alignment, in any order.

    Parameters
    ----------
    read : integer array, ``(num_alignments,)``
        From 0; every number up to the largest must occur, for a read without alignments says
        nothing and has no place here.
    transcript : integer array, ``(num_alignments,)``
        From 0. The likelihoods of several alignments of a read to one transcript are added up.
    log_likelihood : array, ``(num_alignments,)``
        Finite: leave impossible alignments out.
    counts : integer array, ``(num_rows,)``, optional
        How often each read, by its number, was sequenced; by default once.
    num_transcripts : int, optional
        By default the number of names, or one more than the largest.
    names : sequence of str, optional

    Raises
    ------
    ValueError
        If columns differ in length, a read has no alignment, a transcript is out of range, a log
        likelihood is not finite, or counts are not one a read.
    """
    reads, transcripts = as_counts(read, "read"), as_counts(transcript, "transcript")
    values = as_finite(log_likelihood, "log_likelihood")
    shapes = {reads.shape, transcripts.shape, values.shape}
    if len(shapes) > 1 or reads.ndim != 1 or len(reads) == 0:
        raise ValueError(
            "read, transcript and log_likelihood must be columns of one length, got shapes"
            f" {reads.shape}, {transcripts.shape} and {values.shape}"
        )
    if reads.max() >= len(reads):  # some read below it has no alignment
        raise ValueError(
            f"read must be numbered 0, 1, ... without gaps, got {reads.max()} at position"
            f" {reads.argmax()} of {len(reads)} alignments"
        )
    names = None if names is None else as_strings(names, "names")
    if num_transcripts is not None:
        num_transcripts = as_positive_int(num_transcripts, "num_transcripts", 1, 2**31)
    if num_transcripts is None and names is None and transcripts.max() >= 2**31:
        raise ValueError(
            f"transcript must be below 2**31, got {transcripts.max()} at position"
            f" {transcripts.argmax()} (number them 0, 1, ...)"
        )
    if num_transcripts is None:
        num_transcripts = int(transcripts.max()) + 1 if names is None else len(names)
    if transcripts.max() >= num_transcripts:
        raise ValueError(
            f"transcript must be from 0 to {num_transcripts - 1} (num_transcripts, or names),"
            f" got {transcripts.max()} at position {transcripts.argmax()}"
        )
    if names is not None and len(names) != num_transcripts:
        raise ValueError(f"names must be {num_transcripts}, one a transcript, got {len(names)}")
    per_read = np.bincount(reads)
    if not per_read.all():
        raise ValueError(
            f"every read must have an alignment, read {per_read.argmin()} has none"
            " (number the aligned reads 0, 1, ...)"
        )
    multiplicity = np.ones(len(per_read), np.int64) if counts is None else as_counts(counts)
    if multiplicity.shape != per_read.shape:
        raise ValueError(
            f"counts must be {len(per_read)}, one a read, got shape {multiplicity.shape}"
        )
    order = np.lexsort((transcripts, reads))
    reads, transcripts, values = reads[order], transcripts[order], values[order]
    again = (reads[1:] == reads[:-1]) & (transcripts[1:] == transcripts[:-1])
    first = np.flatnonzero(np.concatenate([[True], ~again]))
    return Alignments(
        np.concatenate([[0], np.cumsum(np.bincount(reads[first]))]).astype(np.int64),
        transcripts[first],
        np.logaddexp.reduceat(values, first),
        multiplicity,
        num_transcripts,
        None if names is None else np.asarray(names, dtype=np.str_),
    )
