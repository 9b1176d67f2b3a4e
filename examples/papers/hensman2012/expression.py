r"""Shares of transcripts among the reads of sequenced RNA.

A read comes from one of the transcripts that it fits (Glaus, Honkela and Rattray 2012, "Identifying
differentially expressed transcripts from RNA-seq data with biological variation", BitSeq)::

    shares      ~ Dirichlet(concentration)
    z_i         ~ shares,                        i = 1..reads
    p(read_i | z_i)   given: `Alignments`

The posterior of shares is the gold standard for `collapsed.natural_cg`. A step draws

1. z | shares, reads               all reads at once
2. z_i | all other z, reads        one after another, shares integrated out, a few sweeps
3. shares | z                      a Dirichlet draw

The second block alone would do for z. It mixes two to three times as fast as the first, at the same
cost, where transcripts share their reads. With the first, z need not be stored in the state.

A read is compatible with a few transcripts; aligning it gives log p(read | transcript) for those
and nothing for the others. `Alignments` holds the table, a compressed sparse row for every
different read, and how often each was sequenced: once, unless equal reads were counted.

>>> import numpy as np, pgmult
>>> data = as_alignments(
...     [0, 0, 1, 2, 2], [0, 1, 1, 1, 2], np.log([0.5, 0.1, 0.3, 0.2, 0.4])
... )
>>> data
Alignments(3 reads, 3 transcripts, 5 alignments)
>>> posterior = pgmult.sample(
...     TranscriptExpression(), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["shares"].shape
(1, 10, 3)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from examples.papers.hensman2012.compiled.expression import Reads, assign_rows, collapsed_sweeps
from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_kind, as_strings
from pgmult.core.parameters import Checked, axes_of, real
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_counts, as_finite, as_positive_int, new_key
from pgmult.priors import Dirichlet

_SWEEPS = 4  # of the second block for one of the first


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


def require_alignments(data: Any, name: str = "data") -> Alignments:
    """`data` itself, if it is a table of alignments."""
    return as_kind(data, name, Alignments, "make them with as_alignments")


def as_alignments(
    read: ArrayLike,
    transcript: ArrayLike,
    log_likelihood: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    num_transcripts: int | None = None,
    names: Sequence[str] | NDArray[np.str_] | None = None,
) -> Alignments:
    """Alignments from three columns, one row per alignment, in any order.

    Parameters
    ----------
    read : integer array, ``(num_alignments,)``
        From 0; every number up to the largest must occur, since reads without alignments carry no
        information.
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
        likelihood is not finite, or counts are not one per read.
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


# --------------------------------------------------------------------------- the model


@dataclass(frozen=True, slots=True, eq=False)
class TranscriptExpressionState:
    """One point of the chain.

    Attributes
    ----------
    shares : array, ``(num_transcripts,)``
        Of reads: a long transcript has a larger share than a short one with as many copies.
    """

    shares: Annotated[FloatArray, "transcript"]


@dataclass(frozen=True, slots=True, eq=False)
class TranscriptExpression(Checked):
    """Shares of transcripts by Gibbs sampling.

    Parameters
    ----------
    concentration : float
        Of the symmetric Dirichlet prior of shares.

    Notes
    -----
    A step costs O(alignments) for each of its five passes over the reads.
    """

    concentration: Annotated[float, real(above=0.0)] = 1.0

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(TranscriptExpressionState)
    default_keep: ClassVar[tuple[str, ...]] = ("shares",)

    def as_data(self, data: Any) -> Alignments:
        """`data` itself, if it is a table of alignments."""
        return require_alignments(data)

    def coords(self, data: Alignments) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Names of transcripts, if there are any."""
        return {} if data.names is None else {"transcript": data.names}

    def prior(self, rng: np.random.Generator, data: Alignments) -> TranscriptExpressionState:
        """Shares from the prior."""
        shares = Dirichlet(self.concentration).sample(rng, (data.num_transcripts,))
        return TranscriptExpressionState(shares)

    def simulate(
        self, rng: np.random.Generator, state: TranscriptExpressionState, data: Alignments
    ) -> Alignments:
        """As many reads, each drawn from those of the table.

        This is the law of `log_likelihood` if the table has all possible reads, so that each
        transcript's likelihoods sum to 1. Otherwise they are taken as proportions.
        """
        likelihood = np.exp(data.log_likelihood)
        totals = np.bincount(data.transcripts, likelihood, data.num_transcripts)
        terms = (state.shares / np.where(totals > 0.0, totals, 1.0))[data.transcripts] * likelihood
        probs = np.add.reduceat(terms, data.indptr[:-1])
        counts = rng.multinomial(data.num_reads, probs / probs.sum())
        return replace(data, counts=counts)

    def init(self, rng: np.random.Generator, data: Alignments) -> TranscriptExpressionState:
        """A step from equal shares."""
        equal = np.full(data.num_transcripts, 1.0 / data.num_transcripts)
        return self.step(rng, TranscriptExpressionState(equal), data)

    def step(
        self, rng: np.random.Generator, state: TranscriptExpressionState, data: Alignments
    ) -> TranscriptExpressionState:
        """One sweep over all blocks."""
        likelihood, _ = _scaled(data)
        offsets = np.concatenate([[0], np.cumsum(data.counts)])
        longest = int(np.diff(data.indptr).max())
        reads = Reads(data.indptr, data.transcripts, likelihood, offsets, longest)
        assignments = np.empty(data.num_reads, dtype=np.int64)
        over_rows(assign_rows, len(data.counts), new_key(rng), reads, state.shares, assignments)
        counts = np.bincount(assignments, minlength=data.num_transcripts)
        concentration = float(self.concentration)
        collapsed_sweeps(new_key(rng), _SWEEPS, reads, concentration, assignments, counts)
        shares = Dirichlet(self.concentration).condition(counts).sample(rng)
        return TranscriptExpressionState(shares)

    def log_likelihood(self, state: TranscriptExpressionState, data: Alignments) -> float:
        """Log p(reads | shares)."""
        likelihood, largest = _scaled(data)
        terms = state.shares[data.transcripts] * likelihood
        each = np.log(np.add.reduceat(terms, data.indptr[:-1])) + largest
        return float(np.sum(data.counts * each))


def _scaled(data: Alignments) -> tuple[FloatArray, FloatArray]:
    """Likelihoods over the largest of their row, and its logarithm."""
    largest = np.maximum.reduceat(data.log_likelihood, data.indptr[:-1])
    return np.exp(data.log_likelihood - np.repeat(largest, np.diff(data.indptr))), largest
