"""Held-out scores of topic models, each named by its method.

* *Document completion* (`DocumentCompletion`): part of each test document is seen in training, the
  rest is predicted. Quick, for any model, while it is sampled.
* *The probability of whole documents* (`left_to_right`, `annealed`): of documents of which nothing
  was seen, theta integrated out.

Scores of predicted probabilities against counts are in `pgmult.heldout.fields`.
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
    "TopicDraw",
    "annealed",
    "completion_score",
    "coverage",
    "gain_by_count",
    "left_to_right",
    "log_predictive",
    "log_predictive_mixture",
    "mean_over_groups",
    "overlap",
    "paired_difference",
    "topic_draws",
    "unigram_log_predictive",
]
