r"""Forecasters by counts of symbols, and one of two others. See also `ngrams`.

* `online_unigram`  p(w) = (c(w) + a) / (c + a K), c counting also the test steps so far of the
  sequence;
* `kneser_ney`      interpolated absolute discounting with continuation counts (Kneser and Ney 1995;
  Chen and Goodman 1999, section 2.7): with N(., w) the number of different v before w,

      p(w | v) = max(c(v, w) - d, 0) / c(v) + d N(v, .) / c(v) p_cont(w),

  where p_cont discounts N(., w) in the same way and goes back to 1 / K;

* `blend`           two forecasters, weighed by how well each does as a sequence goes on.
"""

from dataclasses import replace

import numpy as np

from examples.papers.linderman2015 import ngrams
from examples.papers.linderman2015.step_scores import SequenceScore, mix_draws
from pgmult.core.typing import FloatArray
from pgmult.sequences.data.sequences import Sequences

_USUAL_DISCOUNT = 0.75  # where no count is 1


def online_unigram(
    train: Sequences, test: Sequences, *, pseudo_count: float = 1.0
) -> SequenceScore:
    """The unigram updated with the symbols of each test sequence as they come."""
    probs = ngrams._online_probs(ngrams._frequencies(train) + pseudo_count, test)
    return ngrams._score(f"online unigram + {pseudo_count:g}", np.log(probs), test)


def kneser_ney(train: Sequences, test: Sequences, *, continues: bool = False) -> SequenceScore:
    """Interpolated Kneser-Ney bigram; discounts d = n_1 / (n_1 + 2 n_2) from counts of counts."""
    pairs = ngrams._pair_counts(train)
    before, after = ngrams._contexts(train, test, continues)
    different_before = np.bincount(pairs.indices, minlength=train.num_symbols).astype(np.float64)
    d = _discount(different_before)
    kept = np.maximum(different_before - d, 0.0)
    total = different_before.sum()
    spare = total - kept.sum()
    lower = (kept + spare / train.num_symbols) / max(total, 1.0)
    if total == 0.0:
        lower = np.full(train.num_symbols, 1.0 / train.num_symbols)
    d = _discount(pairs.data)
    totals = np.asarray(pairs.sum(axis=1)).ravel()
    saved = d * np.diff(pairs.indptr)
    with np.errstate(invalid="ignore", divide="ignore"):
        probs = (
            np.maximum(ngrams._at(pairs, before, after) - d, 0.0) + saved[before] * lower[after]
        ) / totals[before]
    known = (before >= 0) & (totals[before] > 0.0)
    return ngrams._score("Kneser-Ney bigram", np.log(np.where(known, probs, lower[after])), test)


def _discount(counts: FloatArray) -> float:
    once, twice = (counts == 1.0).sum(), (counts == 2.0).sum()
    return float(once / (once + 2.0 * twice)) if once else _USUAL_DISCOUNT


def blend(first: SequenceScore, second: SequenceScore, num_weights: int = 50) -> SequenceScore:
    """A mixture of two forecasters, whose weight is learned as a sequence goes on.

    The mixture of sequences under (1 - u) p(x_t | x_<t) + u q(x_t | x_<t), u ~ U(0, 1): Bayes' rule
    for u, so that nothing is fitted to the steps that are scored. A model with long memory that
    learns slowly, blended with `ngrams.cache`, also repeats recent symbols.

    Parameters
    ----------
    first, second : SequenceScore
        Of the same steps: p and q.
    num_weights : int
        Of a grid of u that stands for all of them.

    Raises
    ------
    ValueError
        If the scores are of different steps.
    """
    first.gain_over(second)  # refuses other steps
    u = ((np.arange(num_weights) + 0.5) / num_weights)[:, None]
    by_weight = np.logaddexp(np.log1p(-u) + first.log_predictive, np.log(u) + second.log_predictive)
    ends = np.flatnonzero(np.diff(first.sequence)) + 1
    offsets = np.concatenate([[0], ends, [len(first.sequence)]])
    name = f"{first.method} and {second.method}, blended"
    return replace(first, method=name, log_predictive=mix_draws(by_weight, offsets))
