"""scikit-learn faces of the models: fit, transform or predict, score.

Needs scikit-learn 1.6 or later: ``pip install pgmult[sklearn]``.
"""

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise ImportError(
        "pgmult.estimators needs scikit-learn 1.6 or later: pip install pgmult[sklearn]"
    ) from error

from pgmult.estimators.gaussian_processes import MultinomialGaussianProcess
from pgmult.estimators.multinomial import MultinomialRegression
from pgmult.estimators.regression import (
    BayesianLogisticRegression,
    HierarchicalLogisticRegression,
)
from pgmult.estimators.sequences import SequenceForecaster
from pgmult.estimators.topics import CorrelatedTopicModel

__all__ = [
    "BayesianLogisticRegression",
    "CorrelatedTopicModel",
    "HierarchicalLogisticRegression",
    "MultinomialGaussianProcess",
    "MultinomialRegression",
    "SequenceForecaster",
]
