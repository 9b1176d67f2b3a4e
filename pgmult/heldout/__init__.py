"""Held-out scores, each named by its method.

* *Document completion* (`DocumentCompletion`): part of each test document is seen in training, the
  rest is predicted. Quick, for any model, while it is sampled.
* *The probability of whole documents* (`left_to_right`, `annealed`): of documents of which nothing
  was seen, theta integrated out.

Sequences are scored one step ahead (`one_step_ahead`), beside the forecasters of
`pgmult.heldout.ngrams`. Scores of predicted probabilities against counts are in
`pgmult.heldout.fields`.
"""

from pgmult.heldout.completion import (
    CompletionScore,
    DocumentCompletion,
    completion_score,
    paired_difference,
    unigram_log_predictive,
)
from pgmult.heldout.fields import (
    Coverage,
    coverage,
    gain_by_count,
    log_predictive,
    log_predictive_mixture,
    mean_over_groups,
    overlap,
)
from pgmult.heldout.sequences import SequenceScore, blend, legacy_score, one_step_ahead
from pgmult.heldout.whole_documents import (
    DocumentScore,
    TopicDraw,
    annealed,
    left_to_right,
    topic_draws,
)

__all__ = [
    "CompletionScore",
    "Coverage",
    "DocumentCompletion",
    "DocumentScore",
    "SequenceScore",
    "TopicDraw",
    "annealed",
    "blend",
    "completion_score",
    "coverage",
    "gain_by_count",
    "left_to_right",
    "legacy_score",
    "log_predictive",
    "log_predictive_mixture",
    "mean_over_groups",
    "one_step_ahead",
    "overlap",
    "paired_difference",
    "topic_draws",
    "unigram_log_predictive",
]
