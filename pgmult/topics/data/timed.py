"""A corpus whose documents have times."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.typing import IntArray
from pgmult.core.validate import as_finite
from pgmult.topics.data.corpus import Corpus, Versions, as_corpus


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class TimedCorpus(Corpus):
    """A corpus whose documents have times. Make one with `as_timed_corpus`, which checks its input.

    Attributes
    ----------
    times : int64 array, ``(num_documents,)``
        Step of each document, from 0.
    time_labels : int64 array, ``(num_times,)``
        What the steps were called, consecutive; steps without documents are among them.
    order : int64 array, ``(num_words,)``
        Word numbers, most frequent first: a fixed order for models that need one.
    """

    times: IntArray
    time_labels: IntArray
    order: IntArray

    @property
    def num_times(self) -> int:
        """Number of steps, those without documents included."""
        return len(self.time_labels)

    @property
    def versions(self) -> Versions:
        """Topics have a version for each step."""
        return Versions(self.times, self.num_times)

    def _rows_beside(self, rows: IntArray | slice) -> dict[str, Any]:
        return {"times": self.times[rows]}

    def _more(self) -> str:
        return f", times {self.time_labels[0]} to {self.time_labels[-1]}"


def as_timed_corpus(
    counts: object, times: Any, vocabulary: Sequence[str] | NDArray[np.str_] | None = None,
    names: Sequence[str] | NDArray[np.str_] | None = None,
) -> TimedCorpus:  # fmt: skip
    """A `TimedCorpus` from a corpus, or from what `as_corpus` takes, and the documents' times.

    Parameters
    ----------
    times : sequence of int, ``(num_documents,)``
        Years, months since a start, issue numbers: whole numbers of equal steps, in any order of
        documents. Steps between the first and the last that no document has are kept.

    Raises
    ------
    ValueError
        If `times` has the wrong length or is not whole, or if steps times words pass 2**31.
    """
    corpus = as_corpus(counts, vocabulary, names)
    steps = as_finite(times, "times")
    if steps.shape != (corpus.num_documents,) or not steps.size:
        every = f"one entry for each of the {corpus.num_documents} documents of counts"
        raise ValueError(f"times must have {every}, at least one, got shape {steps.shape}")
    fractional = steps != np.floor(steps)
    if fractional.any():
        got = f"{steps[fractional][0]} at position {int(np.argmax(fractional))}"
        hint = "round them to years, months, ..."
        raise ValueError(f"times must be whole numbers of steps, got {got} ({hint})")
    first, last = int(steps.min()), int(steps.max())
    if (last - first + 1) * corpus.num_words >= 2**31:
        many = f"too many steps for {corpus.num_words} words"
        hint = "are they time stamps? Divide them into coarser steps"
        raise ValueError(f"times span {first} to {last}: {many} ({hint})")
    totals = np.bincount(corpus.words, corpus.counts, minlength=corpus.num_words)
    order, labels = np.argsort(-totals, kind="stable"), np.arange(first, last + 1)
    times = (steps - first).astype(np.int64)
    return corpus.extended(TimedCorpus, times=times, time_labels=labels, order=order)
