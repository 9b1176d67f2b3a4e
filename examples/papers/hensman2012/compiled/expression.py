"""Where each read came from, given shares of transcripts or given where all others came from.

Row n of the table has the alignments e = indptr[n], ..., indptr[n+1] - 1 and stands for the reads
offsets[n]:offsets[n+1]; likelihood[e] is p(read | transcript) up to a factor of the row.
"""

from typing import Any, NamedTuple

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import open_stream, uniform


class Reads(NamedTuple):
    """The table, and the most alignments of a row."""

    indptr: Any
    transcripts: Any
    likelihood: Any
    offsets: Any
    longest: int


@jit(inline=True)
def _choose(running, total, state):
    """An index with probability proportional to the steps of `running`, which ends in `total`."""
    u, state = uniform(state)
    threshold = u * total
    i = 0
    while running[i] < threshold:
        i += 1
    return i, state


@jit
def assign_rows(worker, start, stop, key, reads, shares, assignments):
    """assignments[i] ~ p(transcript of read i | shares): independent reads."""
    indptr, transcripts, likelihood, offsets, longest = reads
    running = np.empty(longest)
    for n in range(start, stop):
        first = indptr[n]
        total = 0.0
        for e in range(first, indptr[n + 1]):
            total += shares[transcripts[e]] * likelihood[e]
            running[e - first] = total
        state = open_stream(key, n)
        for i in range(offsets[n], offsets[n + 1]):
            j, state = _choose(running, total, state)
            assignments[i] = transcripts[first + j]


@jit
def collapsed_sweeps(key, num_sweeps, reads, concentration, assignments, counts):
    """assignments[i] ~ p(transcript of read i | all others), the shares integrated out, in turn.

    `counts` are the reads of each transcript, kept up to date.
    """
    indptr, transcripts, likelihood, offsets, longest = reads
    running = np.empty(longest)
    state = open_stream(key, 0)
    for _ in range(num_sweeps):
        for n in range(offsets.shape[0] - 1):
            first = indptr[n]
            for i in range(offsets[n], offsets[n + 1]):
                counts[assignments[i]] -= 1
                total = 0.0
                for e in range(first, indptr[n + 1]):
                    total += (counts[transcripts[e]] + concentration) * likelihood[e]
                    running[e - first] = total
                j, state = _choose(running, total, state)
                assignments[i] = transcripts[first + j]
                counts[assignments[i]] += 1
