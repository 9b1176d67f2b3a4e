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
EVERY = (CorrelatedTopics, SOFTMAX, STRUCTURAL, DYNAMIC, LDA)
THREE_STICKS = NormalInverseWishart.weak(np.zeros(3))
REGRESSION = MatrixNormalInverseWishart.weak(np.zeros((4, 2)), np.eye(4))
POSITIVE = (
    "prevalence_shape", "prevalence_scale", "base_var", "initial_shape", "initial_scale",
    "drift_shape", "drift_scale",
)  # fmt: skip

CASES = [
    *[(kind, {"num_topics": 1}, "num_topics must be at least 2, got 1") for kind in EVERY],
    *[(kind, {"num_topics": 2.5}, "num_topics must be an integer") for kind in EVERY],
    *[
        (kind, {"block_rows": rows}, "block_rows must be")
        for kind in (CorrelatedTopics, DYNAMIC)
        for rows in (0, 2.5, "many")
    ],
    (CorrelatedTopics, {"word_concentration": 0.0}, "word_concentration must be above 0"),
    (CorrelatedTopics, {"num_topics": 5, "gaussian": THREE_STICKS}, "gaussian must have 4 dim"),
    *[
        (kind, {"keywords": ["tax"]}, "keywords must be a mapping from a topic's name")
        for kind in (CorrelatedTopics, SOFTMAX, STRUCTURAL)
    ],
    (SOFTMAX, {"word_concentration": 0.0}, "word_concentration must be above 0"),
    (SOFTMAX, {"start_sweeps": -1}, "start_sweeps must be at least 0, got -1"),
    (SOFTMAX, {"num_topics": 4, "gaussian": THREE_STICKS}, "gaussian must have 4 dimensions"),
    (STRUCTURAL, {"word_concentration": -1.0}, "word_concentration must be above 0"),
    (STRUCTURAL, {"regression": REGRESSION}, "regression must have 3 columns under"),
    (STRUCTURAL, {"effects": "probit"}, "effects must be one of softmax, sticks"),
    (STRUCTURAL, {"keywords": {"a": []}}, r"keywords\['a'\] must hold a word"),
    (STRUCTURAL, {"keywords": {c: ["w"] for c in "abcd"}}, "of 3 topics at most, got 4"),
    (STRUCTURAL, {"effect_scale": 0.0}, "effect_scale"),
    (STRUCTURAL, {"content": 30.0}, "content must be"),
    (DYNAMIC, {"persistence": 1.1}, "persistence must be at most 1"),
    (DYNAMIC, {"persistence": np.nan}, "persistence must be finite"),
    (DYNAMIC, {"start_sweeps": 1.0}, "start_sweeps must be an integer"),
    (DYNAMIC, {"gaussian": THREE_STICKS}, "gaussian must have 2 dimensions"),
    *[(DYNAMIC, {name: 0.0}, f"{name} must be above 0") for name in POSITIVE],
    (LDA, {"word_concentration": 0.0}, "word_concentration must be above 0"),
    (LDA, {"word_shape": -1.0}, "word_shape must be above 0"),
    (LDA, {"word_rate": np.inf}, "word_rate must be finite"),
    (LDA, {"alpha_rate": 0.0}, "alpha_rate must be above 0"),
    (LDA, {"alpha": np.ones(4)}, r"alpha must be one number or 3 \(num_topics\), got shape"),
    (LDA, {"alpha": 0.0}, "alpha must be positive"),
]


@pytest.mark.parametrize(("kind", "options", "message"), CASES)
def test_bad_parameters_are_refused(kind, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        kind(**{"num_topics": 3, **options})
