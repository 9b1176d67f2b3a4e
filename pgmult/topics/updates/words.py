"""Topics given z: Dirichlet rows, without the checks that data and models have passed already."""

import numpy as np

from pgmult.compiled.dirichlet import sample_rows
from pgmult.compiled.rows import over_rows
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key

__all__ = ["sample_topics"]


def sample_topics(
    rng: np.random.Generator, word_concentration: float, word_counts: IntArray
) -> FloatArray:
    """Draw word probabilities, ``(num_topics, num_words)``, given the counts of words in topics.

    The same draw as ``Dirichlet(word_concentration).condition(word_counts).sample(rng)``.
    """
    concentration = np.ascontiguousarray(word_counts, dtype=np.float64) + word_concentration
    topics = np.empty(concentration.shape)
    over_rows(sample_rows, len(topics), new_key(rng), concentration, topics, grain=1)
    return topics
