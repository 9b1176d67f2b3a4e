"""What a posterior says: words, coherence, documents, correlations, topics matched, latent axes.

The labels of topics are arbitrary, and so is the order of sticks on which `Sigma` lives. So words
are summarised within a chain, correlations are those of *simulated* topic proportions, and chains
and runs are compared topic by topic after the best matching of their mean topics. The basis of the
states of sequences is arbitrary too: `latent_axes` summarises how their probabilities move.

>>> import numpy as np
>>> draws = {"topics": np.tile([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], (1, 5, 1, 1))}
>>> [[(word, round(mean, 2)) for word, mean, sd in topic] for topic in top_words(draws, 2)]
[[('0', 0.7), ('1', 0.2)], [('2', 0.8), ('0', 0.1)]]
"""

from pgmult.summaries.coherence import exclusivity, npmi, topic_diversity, u_mass
from pgmult.summaries.correlations import (
    CorrelationGraph,
    PairCorrelation,
    TopicCorrelations,
    correlated_pairs,
    correlation_graph,
    similar_together,
    strongest_pairs,
    topic_correlations,
)
from pgmult.summaries.documents import (
    DocumentTopics,
    TopDocument,
    document_topics,
    representative_documents,
)
from pgmult.summaries.matching import (
    AlignedTopics,
    RunMatches,
    TopicMatches,
    align_topics,
    match_runs,
    match_topics,
)
from pgmult.summaries.sequences import LatentAxes, latent_axes
from pgmult.summaries.words import (
    SCORES,
    TopWord,
    WordScores,
    frex,
    lift,
    mean_topics,
    relevance,
    top_words,
    topic_labels,
    word_scores,
)

__all__ = [
    "SCORES",
    "AlignedTopics",
    "CorrelationGraph",
    "DocumentTopics",
    "LatentAxes",
    "PairCorrelation",
    "RunMatches",
    "TopDocument",
    "TopWord",
    "TopicCorrelations",
    "TopicMatches",
    "WordScores",
    "align_topics",
    "correlated_pairs",
    "correlation_graph",
    "document_topics",
    "exclusivity",
    "frex",
    "latent_axes",
    "lift",
    "match_runs",
    "match_topics",
    "mean_topics",
    "npmi",
    "relevance",
    "representative_documents",
    "similar_together",
    "strongest_pairs",
    "top_words",
    "topic_correlations",
    "topic_diversity",
    "topic_labels",
    "u_mass",
    "word_scores",
]
