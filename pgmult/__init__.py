"""Bayesian inference for dependent multinomial data.

The public names are loaded when first used: ``import pgmult`` imports neither numba nor scipy and
compiles nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "Alignments": "pgmult.alignments",
    "BayesianLogisticRegression": "pgmult.estimators",
    "CTMFit": "pgmult.inference.variational_ctm",
    "ConvergenceWarning": "pgmult.diagnostics",
    "Corpus": "pgmult.corpus",
    "CorrelatedTopicModel": "pgmult.estimators",
    "CorrelatedTopics": "pgmult.models.topics",
    "CountField": "pgmult.fields",
    "CountedRows": "pgmult.counted_rows",
    "DensePotential": "pgmult.potentials",
    "DiagonalPotential": "pgmult.potentials",
    "Dirichlet": "pgmult.priors",
    "DocumentCompletion": "pgmult.heldout",
    "DynamicTopics": "pgmult.models.dynamic_topics",
    "FieldPredictions": "pgmult.predictions",
    "GaussianLDS": "pgmult.models.gaussian_lds",
    "GaussianProcess": "pgmult.priors.gp",
    "GridProcess": "pgmult.priors.grids",
    "GroupedLogisticRegression": "pgmult.models.logistic_regression",
    "HierarchicalLogisticRegression": "pgmult.estimators",
    "InducingProcess": "pgmult.priors.inducing_points",
    "LDA": "pgmult.models.lda",
    "LabelledRows": "pgmult.labelled_rows",
    "LanguageModelFit": "pgmult.inference.language_model",
    "LogisticNormal": "pgmult.links",
    "LogisticNormalGP": "pgmult.models.logistic_normal_gp",
    "LogisticNormalLDS": "pgmult.models.logistic_normal_lds",
    "LogisticNormalTopics": "pgmult.models.logistic_normal_topics",
    "LogisticRegression": "pgmult.models.logistic_regression",
    "MatrixNormalInverseWishart": "pgmult.priors",
    "MultinomialGP": "pgmult.models.gp",
    "MultinomialGaussianProcess": "pgmult.estimators",
    "MultinomialHMM": "pgmult.models.hmm",
    "MultinomialLDS": "pgmult.models.lds",
    "MultinomialRegression": "pgmult.estimators",
    "MvNormal": "pgmult.priors",
    "NormalInverseWishart": "pgmult.priors",
    "Posterior": "pgmult.posterior",
    "RawGP": "pgmult.models.raw_gp",
    "SequenceForecaster": "pgmult.estimators",
    "Sequences": "pgmult.sequences",
    "SpaceTimeProcess": "pgmult.priors.space_time",
    "Static": "pgmult.models.raw_gp",
    "StickBreaking": "pgmult.links",
    "StickBreakingRegression": "pgmult.models.multinomial_regression",
    "StructuralTopics": "pgmult.models.structural_topics",
    "StructuredCorpus": "pgmult.covariates",
    "TimedCorpus": "pgmult.corpus",
    "TranscriptExpression": "pgmult.models.expression",
    "UncollapsedLDA": "pgmult.models.lda",
    "VariationalTopics": "pgmult.inference.svi",
    "as_alignments": "pgmult.alignments",
    "as_corpus": "pgmult.corpus",
    "as_counted_rows": "pgmult.counted_rows",
    "as_field": "pgmult.fields",
    "as_labelled_rows": "pgmult.labelled_rows",
    "as_sequences": "pgmult.sequences",
    "as_timed_corpus": "pgmult.corpus",
    "compare_num_topics": "pgmult.selection",
    "filter_sequences": "pgmult.forecasts",
    "fit_cavi": "pgmult.inference.svi",
    "fit_ctm": "pgmult.inference.variational_ctm",
    "fit_grouped_logistic_regression": "pgmult.inference.logistic_regression",
    "fit_language_model": "pgmult.inference.language_model",
    "fit_logistic_regression": "pgmult.inference.logistic_regression",
    "fit_probit_regression": "pgmult.inference.probit_regression",
    "fit_softmax_regression": "pgmult.inference.multinomial_regression",
    "fit_stick_breaking_regression": "pgmult.inference.multinomial_regression",
    "fit_svi": "pgmult.inference.svi",
    "fold_in": "pgmult.inference.fold_in",
    "forecast": "pgmult.forecasts",
    "impute": "pgmult.forecasts",
    "load": "pgmult.posterior",
    "make_field": "pgmult.priors.structures",
    "natural_cg": "pgmult.inference.collapsed",
    "prevalence": "pgmult.models.structural_topics",
    "resume": "pgmult.inference.gibbs",
    "sample": "pgmult.inference.gibbs",
    "smooth": "pgmult.forecasts",
    "split_tokens": "pgmult.corpus",
    "with_covariates": "pgmult.covariates",
}

if TYPE_CHECKING:
    from pgmult.alignments import Alignments, as_alignments
    from pgmult.corpus import Corpus, TimedCorpus, as_corpus, as_timed_corpus, split_tokens
    from pgmult.counted_rows import CountedRows, as_counted_rows
    from pgmult.covariates import StructuredCorpus, with_covariates
    from pgmult.diagnostics import ConvergenceWarning
    from pgmult.estimators import (
        BayesianLogisticRegression,
        CorrelatedTopicModel,
        HierarchicalLogisticRegression,
        MultinomialGaussianProcess,
        MultinomialRegression,
        SequenceForecaster,
    )
    from pgmult.fields import CountField, as_field
    from pgmult.forecasts import filter_sequences, forecast, impute, smooth
    from pgmult.heldout import DocumentCompletion
    from pgmult.inference.collapsed import natural_cg
    from pgmult.inference.fold_in import fold_in
    from pgmult.inference.gibbs import resume, sample
    from pgmult.inference.language_model import LanguageModelFit, fit_language_model
    from pgmult.inference.logistic_regression import (
        fit_grouped_logistic_regression,
        fit_logistic_regression,
    )
    from pgmult.inference.multinomial_regression import (
        fit_softmax_regression,
        fit_stick_breaking_regression,
    )
    from pgmult.inference.probit_regression import fit_probit_regression
    from pgmult.inference.svi import VariationalTopics, fit_cavi, fit_svi
    from pgmult.inference.variational_ctm import CTMFit, fit_ctm
    from pgmult.labelled_rows import LabelledRows, as_labelled_rows
    from pgmult.links import LogisticNormal, StickBreaking
    from pgmult.models.dynamic_topics import DynamicTopics
    from pgmult.models.expression import TranscriptExpression
    from pgmult.models.gaussian_lds import GaussianLDS
    from pgmult.models.gp import MultinomialGP
    from pgmult.models.hmm import MultinomialHMM
    from pgmult.models.lda import LDA, UncollapsedLDA
    from pgmult.models.lds import MultinomialLDS
    from pgmult.models.logistic_normal_gp import LogisticNormalGP
    from pgmult.models.logistic_normal_lds import LogisticNormalLDS
    from pgmult.models.logistic_normal_topics import LogisticNormalTopics
    from pgmult.models.logistic_regression import GroupedLogisticRegression, LogisticRegression
    from pgmult.models.multinomial_regression import StickBreakingRegression
    from pgmult.models.raw_gp import RawGP, Static
    from pgmult.models.structural_topics import StructuralTopics, prevalence
    from pgmult.models.topics import CorrelatedTopics
    from pgmult.posterior import Posterior, load
    from pgmult.potentials import DensePotential, DiagonalPotential
    from pgmult.predictions import FieldPredictions
    from pgmult.priors import Dirichlet, MatrixNormalInverseWishart, MvNormal, NormalInverseWishart
    from pgmult.priors.gp import GaussianProcess
    from pgmult.priors.grids import GridProcess
    from pgmult.priors.inducing_points import InducingProcess
    from pgmult.priors.space_time import SpaceTimeProcess
    from pgmult.priors.structures import make_field
    from pgmult.selection import compare_num_topics
    from pgmult.sequences import Sequences, as_sequences

__all__ = [
    "LDA",
    "Alignments",
    "BayesianLogisticRegression",
    "CTMFit",
    "ConvergenceWarning",
    "Corpus",
    "CorrelatedTopicModel",
    "CorrelatedTopics",
    "CountField",
    "CountedRows",
    "DensePotential",
    "DiagonalPotential",
    "Dirichlet",
    "DocumentCompletion",
    "DynamicTopics",
    "FieldPredictions",
    "GaussianLDS",
    "GaussianProcess",
    "GridProcess",
    "GroupedLogisticRegression",
    "HierarchicalLogisticRegression",
    "InducingProcess",
    "LabelledRows",
    "LanguageModelFit",
    "LogisticNormal",
    "LogisticNormalGP",
    "LogisticNormalLDS",
    "LogisticNormalTopics",
    "LogisticRegression",
    "MatrixNormalInverseWishart",
    "MultinomialGP",
    "MultinomialGaussianProcess",
    "MultinomialHMM",
    "MultinomialLDS",
    "MultinomialRegression",
    "MvNormal",
    "NormalInverseWishart",
    "Posterior",
    "RawGP",
    "SequenceForecaster",
    "Sequences",
    "SpaceTimeProcess",
    "Static",
    "StickBreaking",
    "StickBreakingRegression",
    "StructuralTopics",
    "StructuredCorpus",
    "TimedCorpus",
    "TranscriptExpression",
    "UncollapsedLDA",
    "VariationalTopics",
    "__version__",
    "as_alignments",
    "as_corpus",
    "as_counted_rows",
    "as_field",
    "as_labelled_rows",
    "as_sequences",
    "as_timed_corpus",
    "compare_num_topics",
    "filter_sequences",
    "fit_cavi",
    "fit_ctm",
    "fit_grouped_logistic_regression",
    "fit_language_model",
    "fit_logistic_regression",
    "fit_probit_regression",
    "fit_softmax_regression",
    "fit_stick_breaking_regression",
    "fit_svi",
    "fold_in",
    "forecast",
    "impute",
    "load",
    "make_field",
    "natural_cg",
    "prevalence",
    "resume",
    "sample",
    "smooth",
    "split_tokens",
    "with_covariates",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'pgmult' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
