r"""Shares of transcripts among the reads of sequenced RNA.

A read comes from one of the transcripts that it fits (Glaus, Honkela and Rattray 2012, "Identifying
differentially expressed transcripts from RNA-seq data with biological variation", BitSeq)::

    shares      ~ Dirichlet(concentration)
    z_i         ~ shares,                        i = 1..reads
    p(read_i | z_i)   given: `pgmult.mixtures.data.Alignments`

The posterior of shares is the gold standard for `pgmult.variational.collapsed`. A step draws

1. z | shares, reads               all reads at once
2. z_i | all other z, reads        one after another, shares integrated out, a few sweeps
3. shares | z                      a Dirichlet draw

The second block alone would do for z. It mixes two to three times as fast as the first, at the same
cost, where transcripts share their reads. The first lets the state do without z.

>>> import numpy as np, pgmult
>>> data = pgmult.mixtures.as_alignments(
...     [0, 0, 1, 2, 2], [0, 1, 1, 1, 2], np.log([0.5, 0.1, 0.3, 0.2, 0.4])
... )
>>> posterior = pgmult.sample(
...     pgmult.mixtures.TranscriptExpression(), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["shares"].shape
(1, 10, 3)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_real
from pgmult.core.typing import FloatArray
from pgmult.core.validate import new_key
from pgmult.mixtures.compiled.expression import assign_rows, collapsed_sweeps
from pgmult.mixtures.data import Alignments, require_alignments
from pgmult.priors import Dirichlet

__all__ = ["TranscriptExpression", "TranscriptExpressionState"]

_SWEEPS = 4  # of the second block for one of the first


@dataclass(frozen=True, slots=True, eq=False)
class TranscriptExpressionState:
    """One point of the chain.

    Attributes
    ----------
    shares : array, ``(num_transcripts,)``
        Of reads: a long transcript has a larger share than a short one with as many copies.
    """

    shares: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class TranscriptExpression:
    """Shares of transcripts by Gibbs sampling.

    Parameters
    ----------
    concentration : float
        Of the symmetric Dirichlet prior of shares.

    Notes
    -----
    A step costs O(alignments) for each of its five passes over the reads.
    """

    concentration: float = 1.0

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"shares": ("transcript",)}
    default_keep: ClassVar[tuple[str, ...]] = ("shares",)

    def __post_init__(self) -> None:
        as_real(self.concentration, "concentration", above=0.0)

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
        """As many reads, each one of the table's.

        This is the law of `log_likelihood` if the table has all possible reads, so that each
        transcript's likelihoods sum to 1. Otherwise they are taken for proportions.
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
        table = data.indptr, data.transcripts, likelihood, offsets
        assignments = np.empty(data.num_reads, dtype=np.int64)
        over_rows(
            assign_rows, len(data.counts), new_key(rng), *table, state.shares, longest, assignments
        )
        counts = np.bincount(assignments, minlength=data.num_transcripts)
        collapsed_sweeps(
            new_key(rng), _SWEEPS, *table, float(self.concentration), longest, assignments, counts
        )
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
