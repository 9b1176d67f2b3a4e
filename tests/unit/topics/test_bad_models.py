"""Parameters that topic models refuse, each in one sentence."""

import numpy as np
import pytest

from pgmult import MatrixNormalInverseWishart, NormalInverseWishart
from pgmult.topics import (
    LDA,
    CorrelatedTopics,
    DynamicTopics,
    LogisticNormalTopics,
    StructuralTopics,
)

SOFTMAX, STRUCTURAL, DYNAMIC = LogisticNormalTopics, StructuralTopics, DynamicTopics
THREE_STICKS = NormalInverseWishart.weak(np.zeros(3))
REGRESSION = MatrixNormalInverseWishart.weak(np.zeros((4, 2)), np.eye(4))
POSITIVE = (
    "prevalence_shape", "prevalence_scale", "base_var", "initial_shape", "initial_scale",
    "drift_shape", "drift_scale",
)  # fmt: skip

CASES = [
    (CorrelatedTopics, {"num_topics": 5, "gaussian": THREE_STICKS}, "gaussian must have 4 dim"),
    (CorrelatedTopics, {"keywords": ["tax"]}, "keywords must be a mapping from a topic's name"),
    (SOFTMAX, {"num_topics": 4, "gaussian": THREE_STICKS}, "gaussian must have 4 dimensions"),
    (STRUCTURAL, {"regression": REGRESSION}, "regression must have a column for each of 3 topics"),
    (STRUCTURAL, {"keywords": {"a": []}}, r"keywords\['a'\] must hold a word"),
    (STRUCTURAL, {"keywords": {c: ["w"] for c in "abcd"}}, "of 3 topics at most, got 4"),
    (DYNAMIC, {"gaussian": THREE_STICKS}, "gaussian must have 2 dimensions"),
    (DYNAMIC, {"persistence": 1.1}, "persistence must be at most 1"),
    *[(DYNAMIC, {name: 0.0}, f"{name} must be above 0") for name in POSITIVE],
    (LDA, {"alpha": np.ones(4)}, r"alpha must be one number or 3 \(num_topics\), got shape"),
]


@pytest.mark.parametrize(("kind", "options", "message"), CASES)
def test_bad_parameters_are_refused(kind, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        kind(**{"num_topics": 3, **options})
