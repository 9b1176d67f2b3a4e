r"""Forecasters from counts of symbols and pairs: baselines for all models of sequences.

Each is trained on some sequences and gives the log probability of every step of others, given the
steps before it in the same sequence. With c(w) and c(v, w) the training counts of symbols and of
pairs, K symbols and a pseudo-count a:

* `unigram`  p(w) = (c(w) + a) / (c + a K);
* `bigram`   p(w | v) = (c(v, w) + a) / (c(v) + a K);
* `cache`    (1 - u) unigram + u (share of w in the last steps) (Kuhn and De Mori 1990).

A step whose predecessor is missing, or that is the first, has no context: pairs of it are not
counted, and its probability is that of lower order. With ``continues=True`` test sequence s goes
on where training sequence s ended.

>>> import numpy as np, pgmult
>>> train = pgmult.sequences.as_sequences(["ABAB" * 10])
>>> test = pgmult.sequences.as_sequences(["ABAB"])
>>> round(float(np.exp(bigram(train, test).log_predictive[1])), 3)
0.955
"""

import numpy as np
import scipy.sparse

from examples.papers.linderman2015.step_scores import SequenceScore
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_positive, as_positive_int
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.scores.one_step import joined

__all__ = ["bigram", "cache", "unigram"]


def unigram(train: Sequences, test: Sequences, *, pseudo_count: float = 1.0) -> SequenceScore:
    """One distribution of symbols for all steps: training frequencies plus `pseudo_count` each."""
    as_positive(pseudo_count, "pseudo_count")
    _check_alike(train, test)
    frequencies = _frequencies(train) + pseudo_count
    log_probs = np.log(frequencies / frequencies.sum())
    return _score(f"unigram + {pseudo_count:g}", log_probs[test.symbols], test)


def cache(
    train: Sequences,
    test: Sequences,
    *,
    window: int = 200,
    weight: float | None = None,
    pseudo_count: float = 1.0,
    continues: bool = False,
) -> SequenceScore:
    """The unigram, interpolated with the symbols of the last steps.

    Parameters
    ----------
    window : int
        How many steps back the cache reaches, missing ones included.
    weight : float, optional
        Weight u of the cache, in (0, 1), while it is not empty; by default what fits the training
        sequences best, each of their steps predicted from those before it.
    """
    as_positive(pseudo_count, "pseudo_count")
    window = as_positive_int(window, "window")
    if weight is not None and not 0.0 < weight < 1.0:
        raise ValueError(f"weight must be between 0 and 1, got {weight}")
    whole, tested = joined(train, test) if continues else (test, np.arange(test.num_steps))
    _check_alike(train, test)
    if weight is None:
        base = _online_probs(np.full(train.num_symbols, pseudo_count), train)
        weight = _best_weight(train.counts.astype(np.int64), base, *_recent_share(train, window))
    frequencies = _frequencies(train) + pseudo_count
    base = (frequencies / frequencies.sum())[test.symbols]
    entries = np.isin(_step_of_entry(whole), tested)
    recent, filled = (x[entries] for x in _recent_share(whole, window))
    probs = np.where(filled, (1.0 - weight) * base + weight * recent, base)
    return _score(f"cache of {window} steps, weight {weight:.3f}", np.log(probs), test)


def bigram(
    train: Sequences, test: Sequences, *, pseudo_count: float = 1.0, continues: bool = False
) -> SequenceScore:
    """Each symbol given the one before it: frequencies of pairs plus `pseudo_count` each."""
    as_positive(pseudo_count, "pseudo_count")
    pairs = _pair_counts(train)
    K = train.num_symbols
    before, after = _contexts(train, test, continues)
    lower = _frequencies(train) + pseudo_count
    probs = (_at(pairs, before, after) + pseudo_count) / (
        np.asarray(pairs.sum(axis=1)).ravel()[before] + pseudo_count * K
    )
    probs = np.where(before < 0, (lower / lower.sum())[after], probs)
    return _score(f"bigram + {pseudo_count:g}", np.log(probs), test)


# --------------------------------------------------------------------------- counting


def _score(method: str, log_probs: FloatArray, test: Sequences) -> SequenceScore:
    """The score of forecasts given for every entry of `test`."""
    running = np.concatenate([[0.0], np.cumsum(test.counts * log_probs)])
    return SequenceScore.of_steps(method, np.diff(running[test.indptr]), test)


def _step_of_entry(data: Sequences) -> IntArray:
    return np.repeat(np.arange(data.num_steps), np.diff(data.indptr))


def _frequencies(data: Sequences) -> FloatArray:
    weights = data.counts.astype(np.float64)
    return np.asarray(np.bincount(data.symbols, weights, minlength=data.num_symbols), np.float64)


def _seen_before(data: Sequences, step: IntArray, limit: IntArray) -> tuple[FloatArray, FloatArray]:
    """Counts in each sequence before a step: of each entry's symbol, and of all symbols.

    Parameters
    ----------
    step : array, ``(num_entries,)``
        The step of each entry.
    limit : array, ``(num_entries,)``
        Count the steps of the same sequence before this one.
    """
    sequence = np.repeat(np.arange(data.num_sequences), data.lengths)[step]
    group = sequence * data.num_symbols + data.symbols
    span = data.num_steps + 1
    order = np.lexsort((step, group))
    running = np.concatenate([[0.0], np.cumsum(data.counts[order], dtype=np.float64)])
    keys = (group * span + step)[order]
    own = running[np.searchsorted(keys, group * span + np.maximum(limit, 0))]
    own -= running[np.searchsorted(keys, group * span)]
    everything = np.concatenate([[0.0], np.cumsum(data.totals, dtype=np.float64)])
    first = data.offsets[:-1][sequence]
    return own, everything[np.maximum(limit, first)] - everything[first]


def _online_probs(prior: FloatArray, data: Sequences) -> FloatArray:
    """Of each entry: prior counts plus those of the steps before it, normalised."""
    step = _step_of_entry(data)
    own, total = _seen_before(data, step, step)
    return np.asarray((prior[data.symbols] + own) / (prior.sum() + total))


def _recent_share(data: Sequences, window: int) -> tuple[FloatArray, BoolArray]:
    """Of each entry: its symbol's share of the last steps, and whether these hold anything."""
    step = _step_of_entry(data)
    own, total = _seen_before(data, step, step)
    old, old_total = _seen_before(data, step, step - window)
    recent = total - old_total
    return (own - old) / np.maximum(recent, 1.0), recent > 0.0


def _best_weight(
    counts: IntArray, base: FloatArray, recent: FloatArray, filled: BoolArray
) -> float:
    """The weight that maximises the likelihood of base and recent shares, by EM."""
    weight = 0.5
    if not filled.any():
        return weight
    base, recent, counts = base[filled], recent[filled], counts[filled]
    for _ in range(100):
        share = weight * recent / (weight * recent + (1.0 - weight) * base)
        weight = float(np.clip(counts @ share / counts.sum(), 1e-3, 1.0 - 1e-3))
    return weight


def _check_alike(train: Sequences, test: Sequences) -> None:
    if train.num_symbols != test.num_symbols:
        raise ValueError(
            "test must have as many symbols as the training sequences: these have"
            f" {train.num_symbols} symbols and the test sequences {test.num_symbols}"
        )
    labels = [None if x.alphabet is None else x.alphabet.tolist() for x in (train, test)]
    if labels[0] != labels[1]:
        raise ValueError(
            "test and training sequences must number their symbols alike"
            " (give both the same alphabet=)"
        )


def _only_symbols(data: Sequences, name: str) -> IntArray:
    """The symbol of each step, -1 where it is missing."""
    bad = data.totals > 1
    if bad.any():
        raise ValueError(
            f"pairs of symbols need one symbol a step, got {data.totals[bad][0]} observations at"
            f" step {int(np.argmax(bad))} of the {name} sequences"
        )
    symbols = np.full(data.num_steps, -1, dtype=np.int64)
    symbols[_step_of_entry(data)] = data.symbols
    return symbols


def _previous(data: Sequences, name: str) -> tuple[IntArray, IntArray]:
    """The symbols before each step and at it, -1 where there is none."""
    symbols = _only_symbols(data, name)
    before = np.concatenate([[-1], symbols[:-1]])
    before[data.offsets[:-1]] = -1
    return before, symbols


def _pair_counts(train: Sequences) -> "scipy.sparse.csr_array":
    before, after = _previous(train, "training")
    both = (before >= 0) & (after >= 0)
    shape = (train.num_symbols, train.num_symbols)
    ones = np.ones(int(both.sum()))
    pairs = scipy.sparse.csr_array((ones, (before[both], after[both])), shape=shape)
    pairs.sum_duplicates()
    return pairs


def _contexts(train: Sequences, test: Sequences, continues: bool) -> tuple[IntArray, IntArray]:
    """Of each observed test step: the symbol before it, or -1, and its own."""
    _check_alike(train, test)
    if continues:
        whole, tested = joined(train, test)
        before, after = (x[tested] for x in _previous(whole, "joined"))
    else:
        before, after = _previous(test, "test")
    return before[after >= 0], after[after >= 0]


def _at(pairs: "scipy.sparse.csr_array", before: IntArray, after: IntArray) -> FloatArray:
    """Entries of a sparse matrix, 0 where `before` is -1."""
    if len(before) == 0:
        return np.zeros(0)
    values = np.asarray(pairs[np.maximum(before, 0), after]).ravel()
    return np.where(before < 0, 0.0, values)
