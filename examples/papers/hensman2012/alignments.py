"""Readers of alignments of sequenced reads to transcripts."""

import os
from pathlib import Path

import numpy as np

from examples.papers.hensman2012.expression import Alignments, as_alignments
from pgmult.core.arguments import as_path
from pgmult.datasets.files import each_line


def read_alignments(path: str | os.PathLike[str]) -> Alignments:
    """Read log p(read | transcript) of every alignment.

    Parameters
    ----------
    path : path
        ``.npz``: arrays ``read``, ``tr`` and ``logp``, one entry per alignment, reads and
        transcripts numbered from 0; and, if it is there, ``names``, one per transcript.

        Any other name, also compressed (``.gz``): lines of read, transcript and log p(read |
        transcript), separated by tabs, in any order. Reads and transcripts are names; transcripts
        are numbered in the order of their first lines. Blank lines and those that begin with ``#``
        are passed over.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        Naming the file and, of text, the line: if it cannot be understood, or a value is not
        finite.
    """
    path = as_path(path)
    if path.suffix == ".npz":
        return _read_npz(path)
    reads: dict[str, int] = {}
    transcripts: dict[str, int] = {}
    columns: tuple[list[int], list[int], list[float]] = [], [], []
    for number, line in enumerate(each_line(path), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 3:
            raise ValueError(
                f"{path}, line {number}: expected read, transcript and log likelihood separated by"
                f" tabs, got {len(cells)} cells"
            )
        read, transcript, value = (cell.strip() for cell in cells)
        if not read or not transcript:
            raise ValueError(f"{path}, line {number}: the name of a read or transcript is blank")
        try:
            log_likelihood = float(value)
        except ValueError:
            raise ValueError(
                f"{path}, line {number}: expected a log likelihood, got {value!r}"
                " (is it a header? begin it with #)"
            ) from None
        if not np.isfinite(log_likelihood):
            raise ValueError(
                f"{path}, line {number}: a log likelihood must be finite, got {value}"
                " (leave impossible alignments out)"
            )
        columns[0].append(reads.setdefault(read, len(reads)))
        columns[1].append(transcripts.setdefault(transcript, len(transcripts)))
        columns[2].append(log_likelihood)
    if not reads:
        raise ValueError(f"{path}: the file has no alignments")
    return as_alignments(*columns, names=list(transcripts))


def _read_npz(path: Path) -> Alignments:
    with path.open("rb") as opened:
        try:
            file = np.load(opened, allow_pickle=False)
            missing = {"read", "tr", "logp"} - set(file.files)
            if missing:
                raise ValueError(f"no array {sorted(missing)[0]!r} among {sorted(file.files)}")
            names = file["names"] if "names" in file.files else None
            return as_alignments(file["read"], file["tr"], file["logp"], names=names)
        except Exception as error:  # a damaged archive can raise anything
            raise ValueError(
                f"{path}: not a table of alignments ({error or type(error).__name__})"
            ) from None
