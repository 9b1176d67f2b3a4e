"""Every public entry, called rightly once; and what becomes of it when one argument is odd.

``python front_doors.py FIRST LAST`` makes the calls of that range and prints a line of JSON each:
its number before it begins, and its outcome after. `tests/end_to_end/test_front_doors.py` runs it
in processes of its own, so that a call that hangs or crashes is found, too.
"""

import inspect
import json
import os
import sys
import tempfile
import traceback
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse
from odd_values import VALUES

import pgmult
from pgmult import datasets, fields, mixtures, regression, sequences, testing, topics, variational
from pgmult.fields import covariances
from pgmult.priors import CommonScale, HalfTScales
from pgmult.sampling import Origin
from pgmult.variational.designs import Rows
from pgmult.variational.sites import logistic_site

PACKAGE = str(Path(pgmult.__file__).parent)
FEW = {"draws": 4, "tune": 1, "chains": 2, "random_seed": 1, "progressbar": False}

COUNTS = np.random.default_rng(0).poisson(1.0, size=(8, 6))
X = np.random.default_rng(1).normal(size=(12, 2))
LABELS = np.array([0, 1, 2] * 4)
BINARY = np.array([0, 1] * 6)
PSI = np.array([[0.5, -0.2], [0.0, 1.0]])
PI = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
THREE = np.array([[1, 2, 3], [0, 1, 0]])
TIMES = np.arange(6.0)
SHARES = np.array([[0.5, 0.3, 0.2]] * 6)
FIELD_COUNTS = np.random.default_rng(2).multinomial(9, [0.5, 0.3, 0.2], size=6)


ROOMS = {"topics": ("data", "fits", "models", "reports", "scores", "starts", "summaries")}
"""Rooms of a family that have public names of their own."""


def of_topics(name):
    """A model of topics, from the front or from the room of models."""
    return getattr(topics if name in topics.__all__ else topics.models, name)


def rng():
    return np.random.default_rng(3)


@cache
def folder():
    return Path(tempfile.mkdtemp(prefix="front-doors-"))


@cache
def packed_corpus():
    topics.pack_corpus(COUNTS, folder() / "packed")
    return folder() / "packed"


@cache
def table_corpus():
    columns = {"text": ["red blue", "red", "blue blue"], "n": [1, 2, 4]}
    return datasets.read(columns).corpus("text")


@cache
def structural_posterior():
    data = table_corpus().with_covariates("~ n")
    keep = (*topics.StructuralTopics(2).default_keep, "theta")
    return pgmult.sample(topics.StructuralTopics(2), data, keep=keep, **FEW)


@cache
def grouped_fit():
    model = regression.GroupedLogisticRegression.like_wang_blei(2)
    return model, labelled(), regression.fit_grouped_logistic_regression(model, labelled())


@cache
def corpus():
    return topics.as_corpus(COUNTS, list("abcdef"))


@cache
def structured():
    return topics.with_covariates(corpus(), {"x": np.arange(8.0)}, "~ x")


@cache
def words():
    return sequences.as_sequences(["ABBAB", "BABAA"])


@cache
def field():
    return fields.as_field(TIMES, FIELD_COUNTS, new_inputs=[6.0, 7.0])


@cache
def labelled():
    return regression.as_labelled_rows(X, BINARY, groups=np.arange(12) % 3)


@cache
def voters():
    table = {"y": ["a", "b", "c"] * 4, "x": list(X[:, 0]), "g": list("uvuvwwuvuvww")}
    return table | {"n": [1, 2, 3] * 4}


@cache
def voters_run():
    data = pgmult.read(voters()).rows("y ~ x + (1 | g)")
    return pgmult.sample(regression.AdditiveRegression(), data, **FEW)


@cache
def counted():
    return regression.as_counted_rows(X, LABELS)


@cache
def alignments():
    return mixtures.as_alignments([0, 0, 1], [0, 1, 1], [-1.0, -2.0, -0.5])


@cache
def topic_draws():
    model = topics.CorrelatedTopics(num_topics=2, start_sweeps=1)
    return pgmult.sample(model, corpus(), keep=["topics", "mu", "Sigma", "psi", "theta"], **FEW)


@cache
def structural_draws():
    return pgmult.sample(topics.StructuralTopics(num_topics=2, start_sweeps=1), structured(), **FEW)


@cache
def grouped_draws():
    data = topics.with_covariates(corpus(), {"g": list("abababab")}, "~ 1", content="~ g")
    return pgmult.sample(topics.StructuralTopics(num_topics=2, start_sweeps=1), data, **FEW)


@cache
def authored_draws():
    data = topics.with_covariates(corpus(), {"a": list("aabbccdd")}, "~ (1 | a)")
    return pgmult.sample(topics.StructuralTopics(num_topics=2, start_sweeps=1), data, **FEW)


@cache
def timed_draws():
    data = topics.as_timed_corpus(COUNTS, np.arange(8) // 4)
    keep = ["prevalence", "topics"]
    return pgmult.sample(topics.DynamicTopics(num_topics=2, start_sweeps=1), data, keep=keep, **FEW)


@cache
def few_effects():
    return topics.effects(structural_draws(), "x", at={"x": [0.0, 1.0]}, num_simulated=2)


@cache
def variational_topics():
    return topics.fits.fit_cavi(
        topics.CorrelatedTopics(2), corpus(), max_iterations=1, start_sweeps=1, random_seed=1
    )


@cache
def completion():
    scores = topics.scores.DocumentCompletion(corpus(), every=1)
    pgmult.sample(topics.LDA(2), corpus(), callback=scores, keep=(), **FEW)
    return scores


@cache
def report():
    return topics.report(topic_draws(), title="t", num_words=2)


def transformer():
    return topics.TopicTransformer(2, method="svi", max_iter=1, random_state=0).fit(COUNTS)


@cache
def sequence_draws():
    return pgmult.sample(sequences.MultinomialLDS(state_dim=1), words(), **FEW)


@cache
def field_draws():
    return pgmult.sample(fields.MultinomialGP(covariances.Matern(1.5, 3.0)), field(), **FEW)


@cache
def sequence_states():
    model = sequences.MultinomialLDS(state_dim=1)
    return pgmult.sample(model, words(), keep=[*model.default_keep, "states"], **FEW)


@cache
def field_sites():
    model = fields.MultinomialGP(covariances.Matern(1.5, 3.0))
    return pgmult.sample(model, field(), keep=["psi", "pi_new"], **FEW)


@cache
def counts_csv():
    path = folder() / "counts.csv"
    path.write_text("year,name,n\n2000,Ada,3\n", encoding="utf-8")
    return path


@cache
def stored():
    path = folder() / "stored"
    pgmult.sample(regression.LogisticRegression(), labelled(), store=path, **FEW)
    return path


class PoissonRows:
    """Counts 3 and 0 with a log rate of N(0, 1) each."""

    counts = np.array([[3.0], [0.0]])

    def value(self, theta, rows):
        return (self.counts[rows % 2] * theta - np.exp(theta) - 0.5 * theta**2).sum(axis=1)

    def gradient(self, theta, rows):
        return self.counts[rows % 2] - np.exp(theta) - theta

    def hessian(self, theta, rows):
        return -np.exp(theta)[:, :, None] - 1.0


class PoissonNode:
    """The same as a model of one node."""

    def objectives(self, node, gaussians, rest):
        return PoissonRows()

    def update_rest(self, gaussians, rest):
        return rest

    def log_joint(self, gaussians, rest):
        return 0.0


def never(*arguments, **options):
    raise AssertionError("refused")


def written(name, content):
    path = folder() / name
    path.write_text(content)
    return path


def saved_matrix():
    path = folder() / "a.npz"
    scipy.sparse.save_npz(path, scipy.sparse.csr_array(COUNTS))
    return path


def fitted(kind, x, y, **arguments):
    """An estimator's arguments are checked when it is fitted."""

    def fit(**given):
        return (
            kind(**arguments | given).fit(x) if y is None else kind(**arguments | given).fit(x, y)
        )

    fit.__signature__ = inspect.signature(kind)
    return fit


def fit_of(kind, **arguments):
    estimator = kind(**arguments)
    return estimator.fit


CHAINS = {"draws": 2, "tune": 1, "random_state": 0}

# name: (function or class, made when called; right arguments, made when called)
CALLS = {
    "sample": (
        lambda: pgmult.sample,
        lambda: dict(model=regression.LogisticRegression(), data=labelled(), **FEW),
    ),
    "resume": (lambda: pgmult.resume, lambda: {"store": stored(), "progressbar": False}),
    "load": (lambda: pgmult.load, lambda: {"path": stored()}),
    "Posterior": (lambda: pgmult.Posterior, lambda: {"draws": {"x": np.zeros((2, 3))}}),
    "Posterior.is_of": (lambda: pgmult.load(stored()).is_of, lambda: {"data": labelled()}),
    "Posterior.stack": (lambda: topic_draws().stack, lambda: {"name": "mu"}),
    "Posterior.each": (lambda: topic_draws().each, lambda: {"name": "mu", "chain": 1}),
    "Posterior.summary": (lambda: topic_draws().summary, lambda: {"var_names": ["mu"]}),
    "Posterior.save": (
        lambda: topic_draws().save,
        lambda: {"path": Path(tempfile.mkdtemp(dir=folder()))},
    ),
    "Origin.of": (
        lambda: Origin.of,
        lambda: {"model": regression.LogisticRegression(), "data": labelled()},
    ),
    "StickBreaking": (lambda: pgmult.StickBreaking, lambda: {"order": [2, 0, 1]}),
    **{
        f"StickBreaking.{name}": (
            lambda name=name: getattr(pgmult.StickBreaking(), name),
            lambda arguments=arguments: {key: value() for key, value in arguments.items()},
        )
        for name, arguments in {
            "probs": {"psi": lambda: PSI},
            "log_probs": {"psi": lambda: PSI},
            "inverse": {"pi": lambda: PI},
            "totals": {"counts": lambda: THREE},
            "log_likelihood": {"psi": lambda: PSI, "counts": lambda: THREE},
            "simulate": {"rng": rng, "psi": lambda: PSI, "totals": lambda: np.array([3, 4])},
            "augment": {"rng": rng, "psi": lambda: PSI, "counts": lambda: THREE},
            "expected": {
                "mean": lambda: PSI,
                "var": lambda: np.ones((2, 2)),
                "counts": lambda: THREE,
            },
            "expected_sites": {
                "mean": lambda: PSI,
                "var": lambda: np.ones((2, 2)),
                "counts": lambda: THREE,
            },
            "quadratic": {"psi": lambda: PSI, "counts": lambda: THREE},
            "match_dirichlet": {"concentration": lambda: np.ones(3)},
        }.items()
    },
    **{
        f"LogisticNormal.{name}": (
            lambda name=name: getattr(pgmult.LogisticNormal(), name),
            lambda arguments=arguments: {key: value() for key, value in arguments.items()},
        )
        for name, arguments in {
            "probs": {"psi": lambda: PI},
            "log_probs": {"psi": lambda: PI},
            "inverse": {"pi": lambda: PI},
            "log_likelihood": {"psi": lambda: PI, "counts": lambda: THREE},
            "simulate": {"rng": rng, "psi": lambda: PI, "totals": lambda: np.array([3, 4])},
            "augment_coordinate": {
                "rng": rng,
                "psi": lambda: PI,
                "counts": lambda: THREE,
                "k": lambda: 1,
            },
            "expected": {
                "mean": lambda: PI,
                "var": lambda: np.ones((2, 3)),
                "counts": lambda: THREE,
            },
            "quadratic": {"psi": lambda: PI, "counts": lambda: THREE},
        }.items()
    },
    "Dirichlet": (lambda: pgmult.Dirichlet, lambda: {"concentration": np.ones(3)}),
    "Dirichlet.condition": (
        lambda: pgmult.Dirichlet(np.ones(3)).condition,
        lambda: {"counts": THREE[0]},
    ),
    "Dirichlet.log_density": (
        lambda: pgmult.Dirichlet(np.ones(3)).log_density,
        lambda: {"pi": PI[0]},
    ),
    "Dirichlet.sample": (
        lambda: pgmult.Dirichlet(np.ones(3)).sample,
        lambda: {"rng": rng(), "shape": (2, 3)},
    ),
    "MvNormal": (
        lambda: pgmult.MvNormal,
        lambda: {"prior_mean": np.zeros(2), "prior_cov": np.eye(2)},
    ),
    "MvNormal.condition": (
        lambda: pgmult.MvNormal(np.zeros(2), np.eye(2)).condition,
        lambda: {"potential": pgmult.DiagonalPotential(np.ones((3, 2)), np.ones((3, 2)))},
    ),
    "MvNormal.log_density": (
        lambda: pgmult.MvNormal(np.zeros(2), np.eye(2)).log_density,
        lambda: {"x": PSI},
    ),
    "MvNormal.sample": (
        lambda: pgmult.MvNormal(np.zeros(2), np.eye(2)).sample,
        lambda: {"rng": rng(), "num_rows": 3},
    ),
    "NormalInverseWishart": (
        lambda: pgmult.NormalInverseWishart,
        lambda: {"mean": np.zeros(2), "strength": 1.0, "dof": 4.0, "scale": np.eye(2)},
    ),
    "NormalInverseWishart.condition": (
        lambda: pgmult.NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2)).condition,
        lambda: {"rows": PSI},
    ),
    "NormalInverseWishart.weak": (
        lambda: pgmult.NormalInverseWishart.weak,
        lambda: {"mean": np.zeros(2)},
    ),
    "NormalInverseWishart.sample": (
        lambda: pgmult.NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2)).sample,
        lambda: {"rng": rng()},
    ),
    "NormalInverseWishart.log_density": (
        lambda: pgmult.NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2)).log_density,
        lambda: {"mu": np.zeros(2), "Sigma": np.eye(2)},
    ),
    "MatrixNormalInverseWishart": (
        lambda: pgmult.MatrixNormalInverseWishart,
        lambda: {
            "mean": np.zeros((2, 2)),
            "row_precision": np.eye(2),
            "dof": 4.0,
            "scale": np.eye(2),
        },
    ),
    "MatrixNormalInverseWishart.condition": (
        lambda: (
            pgmult.MatrixNormalInverseWishart(np.zeros((2, 2)), np.eye(2), 4.0, np.eye(2)).condition
        ),
        lambda: {"rows": PSI, "covariates": np.ones((2, 2))},
    ),
    "MatrixNormalInverseWishart.weak": (
        lambda: pgmult.MatrixNormalInverseWishart.weak,
        lambda: {"mean": np.zeros((2, 2)), "covariates": X},
    ),
    "MatrixNormalInverseWishart.sample": (
        lambda: (
            pgmult.MatrixNormalInverseWishart(np.zeros((2, 2)), np.eye(2), 4.0, np.eye(2)).sample
        ),
        lambda: {"rng": rng()},
    ),
    "MatrixNormalInverseWishart.log_density": (
        lambda: (
            pgmult.MatrixNormalInverseWishart(
                np.zeros((2, 2)), np.eye(2), 4.0, np.eye(2)
            ).log_density
        ),
        lambda: {"coefficients": np.zeros((2, 2)), "Sigma": np.eye(2)},
    ),
    "GaussianMarkovField": (
        lambda: pgmult.GaussianMarkovField,
        lambda: {"prior_mean": np.zeros(2), "prior_precision": np.eye(2)},
    ),
    **{
        f"GaussianMarkovField.{name}": (
            lambda name=name: getattr(pgmult.GaussianMarkovField(np.zeros(2), np.eye(2)), name),
            lambda arguments=arguments: arguments(),
        )
        for name, arguments in {
            "condition": lambda: {"potential": pgmult.DiagonalPotential(np.ones(2), np.ones(2))},
            "sample": lambda: {"rng": rng(), "num_rows": 3},
            "log_density": lambda: {"x": np.zeros(2)},
        }.items()
    },
    "HalfTScales": (lambda: HalfTScales, lambda: {"dof": 2.0, "scale": 1.0}),
    "CommonScale": (lambda: CommonScale, lambda: {"shape": 2.0, "rate": 1.0}),
    "DiagonalPotential": (
        lambda: pgmult.DiagonalPotential,
        lambda: {"J": np.ones((2, 2)), "h": np.ones((2, 2))},
    ),
    "DensePotential": (
        lambda: pgmult.DensePotential,
        lambda: {"J": np.ones((2, 2, 2)), "h": np.ones((2, 2))},
    ),
    **{
        f"polya_gamma.{name}": (
            lambda name=name: getattr(pgmult.polya_gamma, name),
            lambda arguments=arguments: arguments | ({"rng": rng()} if "rng" in arguments else {}),
        )
        for name, arguments in {
            "sample": {"rng": None, "b": 1.0, "c": 0.5},
            "mean": {"b": 1.0, "c": 0.5},
            "var": {"b": 1.0, "c": 0.5},
            "cumulants": {"b": 1.0, "c": 0.5},
            "kl": {"b": 1.0, "c": 0.5},
            "laplace_transform": {"t": 0.3, "b": 1.0, "c": 0.5},
            "logpdf": {"x": 0.3, "b": 1.0, "c": 0.5},
            "cdf": {"x": 0.3, "b": 1.0, "c": 0.5},
        }.items()
    },
    # topics
    "topics.as_corpus": (
        lambda: topics.as_corpus,
        lambda: {"counts": COUNTS, "vocabulary": list("abcdef")},
    ),
    "topics.pack_corpus": (
        lambda: topics.pack_corpus,
        lambda: {
            "counts": COUNTS,
            "out": Path(tempfile.mkdtemp(dir=folder())),
            "vocabulary": list("abcdef"),
        },
    ),
    "topics.open_corpus": (
        lambda: topics.open_corpus,
        lambda: {"path": packed_corpus()},
    ),
    "topics.as_timed_corpus": (
        lambda: topics.as_timed_corpus,
        lambda: {"counts": COUNTS, "times": np.arange(8)},
    ),
    "topics.with_covariates": (
        lambda: topics.with_covariates,
        lambda: {"corpus": corpus(), "covariates": {"x": np.arange(8.0)}, "formula": "~ x"},
    ),
    "topics.split_tokens": (
        lambda: topics.split_tokens,
        lambda: {"corpus": corpus(), "documents": 3, "random_seed": 1},
    ),
    **{
        f"topics.{name}": (
            lambda name=name: getattr(topics if name != "UncollapsedLDA" else topics.models, name),
            lambda: {"num_topics": 2},
        )
        for name in (
            "CorrelatedTopics",
            "LDA",
            "UncollapsedLDA",
            "LogisticNormalTopics",
            "StructuralTopics",
            "DynamicTopics",
        )
    },
    "topics.fit_cavi": (
        lambda: topics.fits.fit_cavi,
        lambda: {
            "model": topics.CorrelatedTopics(2),
            "corpus": corpus(),
            "max_iterations": 2,
            "start_sweeps": 1,
            "random_seed": 1,
        },
    ),
    "topics.fit_svi": (
        lambda: topics.fits.fit_svi,
        lambda: {
            "model": topics.CorrelatedTopics(2),
            "corpus": corpus(),
            "max_epochs": 1,
            "start_sweeps": 1,
            "random_seed": 1,
        },
    ),
    "topics.fit_ctm": (
        lambda: topics.fits.fit_ctm,
        lambda: {
            "model": topics.LogisticNormalTopics(2),
            "corpus": corpus(),
            "max_iterations": 2,
            "start_sweeps": 1,
            "random_seed": 1,
        },
    ),
    "topics.fit_language_model": (
        lambda: topics.fits.fit_language_model,
        lambda: {"corpus": corpus(), "max_iterations": 3},
    ),
    "topics.TopicProblem": (
        lambda: topics.fits.TopicProblem,
        lambda: {"corpus": corpus(), "num_topics": 2},
    ),
    "topics.fold_in": (
        lambda: lambda **given: list(topics.fold_in(**given)),
        lambda: {"posterior": topic_draws(), "corpus": corpus(), "max_draws": 2},
    ),
    "topics.effects": (
        lambda: topics.effects,
        lambda: {
            "posterior": structural_draws(),
            "variable": "x",
            "data": structured(),
            "num_simulated": 5,
            "random_seed": 1,
        },
    ),
    "topics.effects.settings": (
        lambda: topics.effects,
        lambda: {
            "posterior": structural_draws(),
            "variable": {"x": [0.0, 1.0]},
            "average": "typical",
            "num_simulated": 5,
        },
    ),
    "topics.difference": (
        lambda: topics.difference,
        lambda: {"effects": few_effects(), "setting": 1.0, "baseline": 0.0},
    ),
    "topics.Effects.take": (lambda: few_effects().take, lambda: {"topics": [1, 0]}),
    "topics.Effects.plot": (lambda: few_effects().plot, lambda: {"topic": 1, "num_columns": 2}),
    "topics.quotes": (
        lambda: topics.quotes,
        lambda: {"posterior": topic_draws(), "topic": 1, "texts": ["a text"] * 8, "max_draws": 2},
    ),
    "topics.predictive_checks": (
        lambda: topics.check,
        lambda: {"posterior": topic_draws(), "groups": {"half": list("aaaabbbb")}, "max_draws": 2},
    ),
    "topics.content": (
        lambda: topics.content,
        lambda: {"posterior": grouped_draws(), "max_draws": 2},
    ),
    "topics.Content.words": (
        lambda: topics.content(grouped_draws()).words,
        lambda: {"first": "b", "second": "a", "topic": 1, "num_words": 2},
    ),
    "topics.Content.table": (
        lambda: topics.content(grouped_draws()).table,
        lambda: {"num_words": 2},
    ),
    "topics.variance_shares": (
        lambda: topics.summaries.variance_shares,
        lambda: {"posterior": authored_draws(), "probability": 0.5},
    ),
    "topics.shares_over_time": (
        lambda: topics.summaries.shares_over_time,
        lambda: {"posterior": timed_draws(), "max_draws": 2},
    ),
    "topics.permutation_test": (
        lambda: topics.summaries.permutation_test,
        lambda: {
            "posterior": structural_draws(),
            "variable": "x",
            "blocks": list("aaaabbbb"),
            "num_permutations": 20,
            "random_seed": 1,
        },
    ),
    "topics.transform": (
        lambda: topics.predict,
        lambda: {
            "posterior": structural_posterior(),
            "corpus": table_corpus(),
            "covariates": {"n": [1, 2, 4]},
            "chain": 0,
            "max_draws": 2,
            "sweeps": 1,
            "probability": 0.9,
            "random_seed": 1,
        },
    ),
    "topics.export": (
        lambda: topics.export,
        lambda: {
            "posterior": structural_posterior(),
            "folder": folder() / "files",
            "kinds": ["csv", "ldavis"],
            "chain": 0,
        },
    ),
    "topics.ldavis": (
        lambda: topics.exports.ldavis,
        lambda: {
            "posterior": structural_posterior(),
            "data": structural_posterior().data,
            "chain": 0,
            "num_words": 2,
        },
    ),
    "topics.Corpus.with_covariates": (
        lambda: table_corpus().with_covariates,
        lambda: {"formula": "~ n"},
    ),
    "topics.Corpus.__getitem__": (lambda: table_corpus().__getitem__, lambda: {"rows": [0, 2]}),
    "topics.search_num_topics": (
        lambda: topics.search_num_topics,
        lambda: {
            "make_model": topics.CorrelatedTopics,
            "data": corpus(),
            "candidates": [2],
            "documents": 2,
            "every": 1,
            "random_seed": 1,
            "draws": 2,
            "tune": 1,
            "chains": 1,
            "progressbar": False,
        },
    ),
    "topics.DocumentCompletion": (
        lambda: topics.scores.DocumentCompletion,
        lambda: {"held_out": corpus()},
    ),
    "topics.unigram_log_predictive": (
        lambda: topics.scores.unigram_log_predictive,
        lambda: {"training": corpus(), "held_out": corpus()},
    ),
    "topics.topic_draws": (
        lambda: topics.scores.topic_draws,
        lambda: {"posterior": topic_draws(), "max_draws": 2},
    ),
    "topics.left_to_right": (
        lambda: topics.scores.left_to_right,
        lambda: {
            "draws": topics.scores.topic_draws(topic_draws(), max_draws=1),
            "corpus": corpus(),
            "particles": 2,
        },
    ),
    "topics.annealed": (
        lambda: topics.scores.annealed,
        lambda: {
            "draws": topics.scores.topic_draws(topic_draws(), max_draws=1),
            "corpus": corpus(),
            "steps": 2,
            "runs": 2,
        },
    ),
    "topics.align_topics": (
        lambda: topics.summaries.align_topics,
        lambda: {"posterior": topic_draws()},
    ),
    "topics.match_topics": (
        lambda: topics.summaries.match_topics,
        lambda: {"posterior": topic_draws()},
    ),
    "topics.topic_stability": (
        lambda: topics.topic_stability,
        lambda: {"posterior": topic_draws()},
    ),
    "topics.TopicStability.take": (
        lambda: topics.topic_stability(topic_draws()).take,
        lambda: {"topics": np.array([1, 0])},
    ),
    "topics.TopicCorrelations.take": (
        lambda: topics.topic_correlations(topic_draws(), num_simulated=5).take,
        lambda: {"topics": np.array([1, 0])},
    ),
    "topics.completion_by_seconds": (
        lambda: topics.scores.completion_by_seconds,
        lambda: {
            "model": topics.LDA(2),
            "data": corpus(),
            "held_out": corpus(),
            "seconds": [0.01],
            "random_seed": 1,
        },
    ),
    "topics.CompletionScore.on": (lambda: completion().score().on, lambda: {"part": corpus()}),
    "topics.match_runs": (
        lambda: topics.compare,
        lambda: {"first": topic_draws(), "second": topic_draws()},
    ),
    "topics.mean_topics": (
        lambda: topics.summaries.mean_topics,
        lambda: {"posterior": topic_draws()},
    ),
    "topics.document_topics": (
        lambda: topics.document_topics,
        lambda: {"posterior": topic_draws(), "documents": [0, 1]},
    ),
    "topics.representative_documents": (
        lambda: topics.summaries.representative_documents,
        lambda: {"posterior": topic_draws(), "num_documents": 2},
    ),
    "topics.topic_correlations": (
        lambda: topics.topic_correlations,
        lambda: {"posterior": topic_draws(), "num_simulated": 5, "random_seed": 1},
    ),
    "topics.top_words": (
        lambda: topics.top_words,
        lambda: {"posterior": topic_draws(), "num_words": 3},
    ),
    "topics.word_scores": (
        lambda: topics.summaries.word_scores,
        lambda: {"posterior": topic_draws()},
    ),
    "topics.topic_labels": (
        lambda: topics.summaries.topic_labels,
        lambda: {"words": topics.top_words(topic_draws())},
    ),
    "topics.topic_diversity": (
        lambda: topics.summaries.topic_diversity,
        lambda: {"words": [["a", "b"], ["b", "c"]]},
    ),
    "topics.npmi": (
        lambda: topics.summaries.npmi,
        lambda: {"words": [["a", "b"], ["b", "c"]], "reference": corpus()},
    ),
    "topics.u_mass": (
        lambda: topics.summaries.u_mass,
        lambda: {"words": [["a", "b"], ["b", "c"]], "reference": corpus()},
    ),
    "topics.exclusivity": (
        lambda: topics.summaries.exclusivity,
        lambda: {"topics": PI, "num_words": 2},
    ),
    "topics.frex": (lambda: topics.summaries.frex, lambda: {"topics": PI}),
    "topics.lift": (
        lambda: topics.summaries.lift,
        lambda: {"topics": PI, "shares": np.array([0.4, 0.6])},
    ),
    "topics.relevance": (
        lambda: topics.summaries.relevance,
        lambda: {"topics": PI, "shares": np.array([0.4, 0.6])},
    ),
    "topics.topic_report": (
        lambda: topics.report,
        lambda: {"posterior": topic_draws(), "title": "t", "num_words": 2, "random_seed": 1},
    ),
    "topics.TopicTransformer": (
        lambda: fitted(topics.TopicTransformer, COUNTS, None, n_components=2, chains=1, **CHAINS),
        lambda: {"n_components": 2},
    ),
    "topics.TopicTransformer.fit": (
        lambda: fit_of(topics.TopicTransformer, n_components=2, chains=1, **CHAINS),
        lambda: {"X": COUNTS},
    ),
    "topics.with_covariates.rows": (
        lambda: structured().design.rows,
        lambda: {"covariates": {"x": [0.0, 1.0]}},
    ),
    "topics.with_covariates.new_documents": (
        lambda: structured().new_documents,
        lambda: {"corpus": COUNTS[:2], "covariates": {"x": [0.0, 1.0]}, "new_levels": True},
    ),
    "topics.ContentPrior": (
        lambda: topics.models.ContentPrior,
        lambda: {
            "shape": 1.0,
            "rate_shape": 0.5,
            "rate_rate": 9.0,
            "start": 30.0,
            "start_sweeps": 2,
        },
    ),
    "topics.find_start": (
        lambda: topics.find_start,
        lambda: {
            "model": topics.CorrelatedTopics(2),
            "data": COUNTS,
            "leaves": 2,
            "sweeps": 1,
            "random_seed": 1,
        },
    ),
    "topics.TopicProblem.sampled_start": (
        lambda: topics.fits.TopicProblem(corpus(), 2).sampled_start,
        lambda: {"random_seed": 1, "sweeps": 2},
    ),
    "topics.VariationalTopics.start": (
        lambda: topics.fits.VariationalTopics.start,
        lambda: {
            "rng": rng(),
            "model": topics.CorrelatedTopics(2),
            "corpus": corpus(),
            "start_sweeps": 1,
        },
    ),
    **{
        f"topics.VariationalTopics.{name}": (
            lambda name=name: getattr(variational_topics(), name),
            lambda arguments=arguments: {key: value() for key, value in arguments.items()},
        )
        for name, arguments in {
            "infer": {"corpus": corpus},
            "theta": {"corpus": corpus},
            "update": {"minibatch": corpus, "num_documents": lambda: 8},
            "bound": {"documents": lambda: variational_topics().infer(corpus())},
        }.items()
    },
    "topics.LanguageModelFit.log_predictive": (
        lambda: topics.fits.fit_language_model(corpus(), max_iterations=1).log_predictive,
        lambda: {"observed": corpus(), "held_out": corpus()},
    ),
    "topics.TopicChoice.smallest_within": (
        lambda: (
            topics.scores.TopicChoice(
                (topics.scores.Candidate(2, -1.0, 0.0, 0.0, 0.1, 5.0, 1.0, 0.5, 1.0),),
                np.zeros((1, 3)),
                np.ones(3),
            ).smallest_within
        ),
        lambda: {"errors": 1.0},
    ),
    "topics.DocumentCompletion.score": (
        lambda: completion().score,
        lambda: {"chain": 0},
    ),
    "topics.completion_score": (
        lambda: topics.scores.completion_score,
        lambda: {"draws": [(np.full((8, 2), 0.5), np.full((2, 6), 1 / 6))], "held_out": corpus()},
    ),
    "topics.compare_scores": (
        lambda: topics.scores.compare_scores,
        lambda: {
            "scores": {"unigram": topics.scores.unigram_log_predictive(corpus(), corpus())},
            "held_out": corpus(),
        },
    ),
    **{
        f"topics.{name}": (
            lambda name=name: getattr(topics.summaries, name),
            lambda: {"correlations": topics.topic_correlations(topic_draws(), num_simulated=5)},
        )
        for name in ("correlated_pairs", "correlation_graph", "strongest_pairs")
    },
    "topics.WordScores.top": (
        lambda: topics.summaries.word_scores(topic_draws()).top,
        lambda: {"num_words": 2},
    ),
    "topics.TopicReport.topic": (lambda: report().topic, lambda: {"topic": 1}),
    **{
        f"topics.TopicTransformer.{name}": (
            lambda name=name: getattr(transformer(), name),
            lambda: {"X": COUNTS},
        )
        for name in ("transform", "sample_transform", "score", "partial_fit")
    },
    # sequences
    "sequences.as_sequences": (lambda: sequences.as_sequences, lambda: {"data": ["ABBA", "BAB"]}),
    "sequences.as_vector_sequences": (
        lambda: sequences.as_vector_sequences,
        lambda: {"data": [X, X]},
    ),
    **{
        f"sequences.{name}": (
            lambda name=name: getattr(sequences, name),
            lambda size=size: dict(size),
        )
        for name, size in {
            "MultinomialLDS": {"state_dim": 2},
            "LogisticNormalLDS": {"state_dim": 2},
            "GaussianLDS": {"state_dim": 2},
            "MultinomialHMM": {"num_states": 2},
        }.items()
    },
    "sequences.forecast": (
        lambda: sequences.forecast,
        lambda: {"posterior": sequence_draws(), "steps": 2, "num_particles": 5},
    ),
    "sequences.filter_sequences": (
        lambda: sequences.filter_sequences,
        lambda: {"posterior": sequence_draws(), "data": words(), "num_particles": 5},
    ),
    "sequences.predict": (
        lambda: sequences.predict,
        lambda: {"posterior": sequence_draws(), "data": words(), "warm_up": 1},
    ),
    "sequences.impute": (
        lambda: sequences.impute,
        lambda: {
            "posterior": sequence_draws(),
            "data": sequences.as_sequences([["A", None, "B"]]),
            "warm_up": 1,
        },
    ),
    "sequences.one_step_ahead": (
        lambda: sequences.one_step_ahead,
        lambda: {"posterior": sequence_draws(), "test": words(), "num_particles": 5},
    ),
    "sequences.compare": (
        lambda: sequences.compare,
        lambda: {
            "posterior": sequence_draws(),
            "other": sequence_draws(),
            "held_out": words(),
            "names": ("a", "b"),
        },
    ),
    "sequences.blend": (
        lambda: sequences.blend,
        lambda: {
            "first": sequences.ngrams.unigram(words(), words()),
            "second": sequences.ngrams.bigram(words(), words()),
            "num_weights": 5,
        },
    ),
    "sequences.check": (
        lambda: sequences.check,
        lambda: {"posterior": sequence_states()},
    ),
    "sequences.report": (
        lambda: sequences.report,
        lambda: {"posterior": sequence_states(), "title": "t"},
    ),
    "sequences.latent_axes": (
        lambda: sequences.latent_axes,
        lambda: {"probs": sequences.predict(sequence_draws(), words()), "num_axes": 1},
    ),
    "sequences.SequenceForecaster": (
        lambda: fitted(
            sequences.SequenceForecaster, ["ABBA", "BAB"], None, n_components=1, **CHAINS
        ),
        lambda: {"n_components": 1},
    ),
    "sequences.SequenceForecaster.fit": (
        lambda: fit_of(sequences.SequenceForecaster, n_components=1, **CHAINS),
        lambda: {"X": ["ABBA", "BAB"]},
    ),
    # fields
    "fields.as_field": (
        lambda: fields.as_field,
        lambda: {"inputs": TIMES, "counts": FIELD_COUNTS, "new_inputs": [7.0]},
    ),
    "fields.MultinomialGP": (
        lambda: fields.MultinomialGP,
        lambda: {"covariance": covariances.Matern(1.5, 3.0)},
    ),
    "fields.LogisticNormalGP": (
        lambda: fields.LogisticNormalGP,
        lambda: {"covariance": covariances.Matern(1.5, 3.0)},
    ),
    "fields.RawGP": (lambda: fields.RawGP, lambda: {"covariance": covariances.Matern(1.5, 3.0)}),
    "fields.RawGP.predict_probs": (
        lambda: fields.RawGP(covariances.Matern(1.5, 3.0)).predict_probs,
        lambda: {"data": field()},
    ),
    "fields.Static": (lambda: fields.Static, dict),
    "fields.Static.predict_probs": (
        lambda: fields.Static().predict_probs,
        lambda: {"data": field()},
    ),
    "fields.predict": (
        lambda: fields.predict,
        lambda: {"run": field_draws(), "data": field(), "inputs": "new"},
    ),
    "fields.check": (
        lambda: fields.check,
        lambda: {"run": field_sites(), "data": field()},
    ),
    "fields.compare": (
        lambda: fields.compare,
        lambda: {"run": field_sites(), "other": field_sites(), "held_out": field().counts},
    ),
    "fields.report": (
        lambda: fields.report,
        lambda: {"run": field_sites(), "data": field(), "title": "t"},
    ),
    "fields.FieldPredictions.interval": (
        lambda: fields.predict(field_draws(), data=field(), inputs="new").interval,
        lambda: {"probability": 0.8},
    ),
    "fields.FieldPredictions.rank_probabilities": (
        lambda: fields.predict(field_draws(), data=field(), inputs="new").rank_probabilities,
        lambda: {"top": 1},
    ),
    "fields.make_field": (
        lambda: fields.make_field,
        lambda: {
            "structure": "dense",
            "covariance": covariances.Matern(1.5, 3.0),
            "inputs": TIMES[:, None],
        },
    ),
    **{
        f"fields.{name}": (
            lambda name=name: getattr(fields, name),
            lambda more=more: {
                "covariance": covariances.Matern(1.5, 3.0),
                "inputs": TIMES[:, None],
                **more,
            },
        )
        for name, more in {
            "GaussianProcess": {},
            "SpaceTimeProcess": {},
            "GridProcess": {
                "covariance": covariances.Matern(1.5, 3.0, active=[0])
                * covariances.Matern(1.5, 3.0, active=[1]),
                "inputs": np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]),
            },
            "InducingProcess": {},
        }.items()
    },
    "fields.empirical_bayes": (
        lambda: fields.empirical_bayes,
        lambda: {"model": fields.MultinomialGP(covariances.Matern(1.5, 3.0)), "data": field()},
    ),
    "fields.coverage": (
        lambda: fields.coverage,
        lambda: {"draws": np.stack([PI, PI]), "truth": PI},
    ),
    "fields.calibration": (
        lambda: fields.calibration,
        lambda: {"draws": np.stack([PI, PI]), "counts": THREE, "top": 1, "least": 0.0},
    ),
    "fields.log_predictive": (
        lambda: fields.log_predictive,
        lambda: {"probs": PI, "counts": THREE},
    ),
    "fields.log_predictive_mixture": (
        lambda: fields.log_predictive_mixture,
        lambda: {"probs": np.stack([PI, PI]), "counts": THREE},
    ),
    "fields.gain_by_count": (
        lambda: fields.gain_by_count,
        lambda: {
            "by_row": np.array([-1.0, -2.0]),
            "reference": np.array([-2.0, -2.0]),
            "totals": np.array([3, 4]),
        },
    ),
    "fields.mean_over_groups": (
        lambda: fields.mean_over_groups,
        lambda: {"by_row": np.array([-1.0, -2.0])},
    ),
    "fields.overlap": (
        lambda: fields.overlap,
        lambda: {"predicted": PI, "counts": THREE, "size": 1},
    ),
    "fields.MultinomialGPClassifier": (
        lambda: fitted(fields.MultinomialGPClassifier, X, LABELS, **CHAINS),
        lambda: {"covariance": covariances.Matern(1.5, 3.0)},
    ),
    "fields.MultinomialGPClassifier.fit": (
        lambda: fit_of(fields.MultinomialGPClassifier, **CHAINS),
        lambda: {"X": X, "y": LABELS},
    ),
    **{
        f"covariances.{name}": (
            lambda name=name: getattr(covariances, name),
            lambda arguments=arguments: dict(arguments),
        )
        for name, arguments in {
            "Constant": {"var": 1.0},
            "Matern": {"nu": 1.5, "length_scale": 2.0},
            "SquaredExponential": {"length_scale": 2.0},
            "RationalQuadratic": {"alpha": 1.0, "length_scale": 2.0},
            "Periodic": {"period": 3.0, "length_scale": 2.0},
            "Linear": {"var": 1.0},
            "White": {"var": 1.0},
            "GreatCircle": {"length_scale": 2.0},
            "HalfNormal": {"scale": 1.0},
            "LogNormal": {"median": 1.0},
        }.items()
    },
    # regressions and mixtures
    "regression.as_labelled_rows": (
        lambda: regression.as_labelled_rows,
        lambda: {"covariates": X, "successes": BINARY},
    ),
    "regression.as_counted_rows": (
        lambda: regression.as_counted_rows,
        lambda: {"covariates": X, "outcomes": LABELS},
    ),
    "regression.LogisticRegression": (lambda: regression.LogisticRegression, dict),
    "regression.StickBreakingRegression": (lambda: regression.StickBreakingRegression, dict),
    "regression.SoftmaxRegression": (lambda: regression.SoftmaxRegression, dict),
    "regression.GroupedLogisticRegression": (
        lambda: regression.GroupedLogisticRegression,
        lambda: {
            "mean_prior": pgmult.MvNormal(np.zeros(2), np.eye(2)),
            "dof": 4.0,
            "scale": np.eye(2),
        },
    ),
    "regression.AdditiveRegression": (lambda: regression.AdditiveRegression, lambda: {"kicks": 2}),
    "regression.predict": (lambda: regression.predict, lambda: {"run": voters_run()}),
    "regression.effects": (
        lambda: regression.effects,
        lambda: {"run": voters_run(), "column": "g", "values": ["u", "v"]},
    ),
    "regression.compare": (
        lambda: regression.compare,
        lambda: {"run": voters_run(), "other": voters_run(), "held_out": voters()},
    ),
    "regression.report": (lambda: regression.report, lambda: {"run": voters_run()}),
    "regression.poststratify": (
        lambda: regression.poststratify,
        lambda: {"run": voters_run(), "census": voters(), "by": "g", "weight": "n"},
    ),
    "regression.fit_logistic_regression": (
        lambda: regression.fit_logistic_regression,
        lambda: {
            "model": regression.LogisticRegression(),
            "data": regression.as_labelled_rows(X, BINARY),
        },
    ),
    "regression.fit_grouped_logistic_regression": (
        lambda: regression.fit_grouped_logistic_regression,
        lambda: {
            "model": regression.GroupedLogisticRegression.like_wang_blei(2),
            "data": labelled(),
            "max_iterations": 3,
        },
    ),
    **{
        f"regression.{name}": (
            lambda name=name: getattr(regression, name),
            lambda: {"data": counted()},
        )
        for name in (
            "fit_probit_regression",
            "fit_softmax_regression",
            "fit_stick_breaking_regression",
        )
    },
    **{
        f"regression.{name}": (
            lambda name=name, y=y, more=more: fitted(getattr(regression, name), X, y, **more),
            lambda more=more: dict(more),
        )
        for name, y, more in (
            ("LogisticClassifier", BINARY, {}),
            ("MultinomialClassifier", LABELS, {}),
            ("GroupedLogisticClassifier", BINARY, {"max_iter": 5}),
            ("CountRegressor", LABELS, {}),
        )
    },
    **{
        f"regression.{name}.fit": (
            lambda name=name: fit_of(getattr(regression, name)),
            lambda y=y: {"X": X, "y": y},
        )
        for name, y in (
            ("LogisticClassifier", BINARY),
            ("MultinomialClassifier", LABELS),
            ("CountRegressor", LABELS),
        )
    },
    "regression.from_formula": (
        lambda: regression.from_formula,
        lambda: {"formula": "y ~ a", "table": {"a": X[:, 0], "y": BINARY}},
    ),
    "regression.as_event_rows": (
        lambda: regression.as_event_rows,
        lambda: {"covariates": X, "counts": LABELS},
    ),
    "regression.fit_count_regression": (
        lambda: regression.fit_count_regression,
        lambda: {"data": regression.as_event_rows(X, LABELS)},
    ),
    "regression.grouped_log_evidence": (
        lambda: regression.grouped_log_evidence,
        lambda: dict(zip(("model", "data", "fit"), grouped_fit(), strict=True), tolerance=0.1),
    ),
    "regression.PoissonRegression": (lambda: regression.PoissonRegression, dict),
    "regression.NegativeBinomialRegression": (
        lambda: regression.NegativeBinomialRegression,
        dict,
    ),
    "regression.HalfT": (lambda: regression.HalfT, dict),
    "regression.Horseshoe": (lambda: regression.Horseshoe, dict),
    "regression.ScaledRegression": (
        lambda: regression.ScaledRegression,
        lambda: {"model": regression.LogisticRegression(), "scales": regression.HalfT()},
    ),
    "mixtures.CollapsedGaussianMixture": (
        lambda: fitted(mixtures.CollapsedGaussianMixture, X, None, n_init=1),
        dict,
    ),
    "mixtures.as_alignments": (
        lambda: mixtures.as_alignments,
        lambda: {"read": [0, 0, 1], "transcript": [0, 1, 1], "log_likelihood": [-1.0, -2.0, -0.5]},
    ),
    "mixtures.TranscriptExpression": (lambda: mixtures.TranscriptExpression, dict),
    "mixtures.GaussianMixtureProblem": (
        lambda: mixtures.GaussianMixtureProblem,
        lambda: {"x": X, "num_components": 2},
    ),
    "mixtures.ExpressionProblem": (
        lambda: mixtures.ExpressionProblem,
        lambda: {"data": alignments()},
    ),
    # fits and tests that know no family
    "variational.CountSite": (
        lambda: variational.CountSite,
        lambda: {"counts": LABELS, "size": 2.0},
    ),
    "variational.LogisticSite": (
        lambda: variational.LogisticSite,
        lambda: {"successes": BINARY, "trials": np.ones(12)},
    ),
    "variational.Rows": (lambda: variational.Rows, lambda: {"covariates": X}),
    "variational.RowLikelihood": (
        lambda: variational.RowLikelihood,
        lambda: {"value": np.negative, "slope": np.negative, "curvature": np.negative},
    ),
    "variational.natural_cg": (
        lambda: variational.natural_cg,
        lambda: {"problem": mixtures.GaussianMixtureProblem(X, 2), "max_iterations": 3},
    ),
    "variational.random_start": (
        lambda: variational.random_start,
        lambda: {"problem": mixtures.GaussianMixtureProblem(X, 2)},
    ),
    **{
        f"variational.{name}": (
            lambda name=name: getattr(variational, name),
            lambda: {"objectives": PoissonRows(), "start": np.zeros((2, 1))},
        )
        for name in ("fit_laplace", "fit_delta")
    },
    "variational.fit_nonconjugate": (
        lambda: variational.fit_nonconjugate,
        lambda: {
            "model": PoissonNode(),
            "start": {"theta": np.zeros((2, 1))},
            "rest": None,
            "max_iterations": 3,
        },
    ),
    "variational.fit_sites": (
        lambda: variational.fit_sites,
        lambda: {
            "design": Rows(X),
            "site": logistic_site(BINARY, np.ones(12), "delta"),
            "prior": pgmult.MvNormal(np.zeros(2), np.eye(2)),
        },
    ),
    **{
        f"testing.{name}": (
            lambda name=name: getattr(testing, name),
            lambda more=more: {
                "model": regression.LogisticRegression(),
                "data": regression.as_labelled_rows(X[:4], BINARY[:4]),
                **more,
            },
        )
        for name, more in {
            "geweke": {"replicates": 60, "sweeps": 2},
            "sbc": {"replicates": 20, "tune": 2, "draws": 3, "thin": 1},
            "likelihood": {"replicates": 20},
            "check_geweke": {},
            "check_sbc": {},
            "check_likelihood": {},
        }.items()
    },
    "testing.check_link": (
        lambda: testing.check_link,
        lambda: {"link": pgmult.StickBreaking(), "num_categories": 3, "replicates": 200},
    ),
    "testing.check_site": (
        lambda: testing.check_site,
        lambda: {"site": variational.CountSite(BINARY), "num_rows": 12},
    ),
    "testing.check_prior": (
        lambda: testing.check_prior,
        lambda: {"prior": pgmult.MvNormal(np.zeros(2), np.eye(2)), "replicates": 200},
    ),
    "testing.conditional_ratio": (
        lambda: testing.conditional_ratio,
        lambda: {"log_joint": float, "log_conditional": float, "points": [0.0, 1.0]},
    ),
    "testing.mutant": (lambda: testing.mutant, lambda: {"original": pgmult.StickBreaking()}),
    "testing.rejects": (lambda: testing.rejects, lambda: {"check": never}),
    "testing.check_model": (
        lambda: testing.check_model,
        lambda: {
            "model": regression.LogisticRegression(),
            "data": regression.as_labelled_rows(X[:4], BINARY[:4]),
            "replicates": 60,
        },
    ),
    # datasets
    "datasets.corpus_from_texts": (
        lambda: datasets.corpus_from_texts,
        lambda: {"texts": ["some text", "other words"]},
    ),
    "datasets.pack_files": (
        lambda: datasets.pack_files,
        lambda: {
            "path": written("to_pack.txt", "some text\nother text"),
            "out": Path(tempfile.mkdtemp(dir=folder())),
            "min_count": 1,
            "progressbar": False,
        },
    ),
    "datasets.tokenize": (lambda: datasets.tokenize, lambda: {"text": "some text"}),
    "datasets.read_text": (
        lambda: datasets.read_text,
        lambda: {"path": written("a.txt", "some text\nother words\n")},
    ),
    "datasets.read": (
        lambda: datasets.read,
        lambda: {
            "table": written("a.csv", "text,n\nsome text,1\nother,2\n"),
            "na_values": ("", "NA"),
            "time_zone": None,
        },
    ),
    "datasets.Table.corpus": (
        lambda: datasets.read({"text": ["some text", "other"], "n": [1, 2]}).corpus,
        lambda: {"text": "text", "min_documents": 1, "ngrams": 2, "stop_words": ["some"]},
    ),
    "datasets.Table.sequences": (
        lambda: (
            datasets.read(
                {"who": ["a", "a", "b"], "day": [1, 3, 1], "state": ["x", "y", "x"], "n": [1, 2, 1]}
            ).sequences
        ),
        lambda: {
            "symbol": "state",
            "sequence": "who",
            "time": "day",
            "every": None,
            "week_start": "monday",
            "count": "n",
            "order": "frequency",
        },
    ),
    "datasets.Table.rows": (
        lambda: datasets.read({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "a"], "n": [1, 2, 1]}).rows,
        lambda: {"formula": "y ~ x", "groups": None, "weights": "n", "offset": "x"},
    ),
    "datasets.Table.field": (
        lambda: (
            datasets.read(
                {
                    "year": [1, 1, 2],
                    "place": ["a", "b", "a"],
                    "name": ["x", "y", "y"],
                    "n": [1, 2, 3],
                }
            ).field
        ),
        lambda: {
            "inputs": ["year", "place"],
            "category": "name",
            "count": "n",
            "new_inputs": {"year": [3], "place": ["b"]},
            "places": {"place": {"a": 1.0, "b": 2.0}},
            "order": "frequency",
        },
    ),
    "datasets.read_ldac": (
        lambda: datasets.read_ldac,
        lambda: {"path": written("a.dat", "2 0:1 1:2\n1 1:1\n")},
    ),
    "datasets.read_corpus": (
        lambda: datasets.read_corpus,
        lambda: {"path": written("b.txt", "some text\nother\n")},
    ),
    "datasets.read_fasta": (
        lambda: datasets.read_fasta,
        lambda: {"path": written("a.fa", ">a\nACGT\n")},
    ),
    "datasets.translate": (lambda: datasets.translate, lambda: {"dna": "ATGGCC"}),
    "datasets.recognise": (
        lambda: datasets.recognise,
        lambda: {"path": written("c.txt", "some text\n")},
    ),
    "datasets.read_npz": (
        lambda: datasets.read_npz,
        lambda: {"path": saved_matrix(), "vocabulary": list("abcdef")},
    ),
    "datasets.read_alignments": (
        lambda: datasets.read_alignments,
        lambda: {"path": written("a.tsv", "r\tt\t-1\nr\tu\t-2\n")},
    ),
    "datasets.NameCounts.take": (
        lambda: (
            datasets.NameCounts(
                np.ones((2, 2, 2), dtype=np.int64),
                np.array([1990, 1991]),
                np.array(["CA", "NY"]),
                np.array(["Mary", "John"]),
                np.zeros((2, 2)),
            ).take
        ),
        lambda: {"years": [1990], "states": ["NY"]},
    ),
    "datasets.demo_corpus": (lambda: datasets.demo_corpus, lambda: {"max_words": 1}),
    "datasets.thin": (
        lambda: datasets.thin,
        lambda: {"counts": THREE, "size": 2, "random_seed": 1},
    ),
}

FUNCTIONS = {"callback", "log_joint", "log_conditional", "check"}
PATHS = {"page", "path", "store", "vocabulary"}  # arguments whose errors are the file system's


def all_calls():
    """(entry, argument, label of its value) of every call, in a fixed order."""
    return [
        (name, argument, label)
        for name, (function, _) in CALLS.items()
        for argument in arguments_of(name, function())
        for label in VALUES
    ]


def arguments_of(name, function):
    """Names of the arguments of a function, those that take any keyword left out."""
    if name == "topics.fold_in":
        function = topics.fold_in
    parameters = inspect.signature(function).parameters.values()
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in parameters if p.kind in plain]


def outcome(name, argument, label):
    """ "ok", "refused", or what leaked."""
    function, right = CALLS[name]
    arguments = right() | {argument: VALUES[label]()}
    try:
        function()(**arguments)
    except (ValueError, TypeError, MemoryError) as error:
        if argument == "points" or (argument in FUNCTIONS and callable(arguments[argument])):
            return "ok"  # what a user's function raises is the user's
        return judged(error, argument)
    except AssertionError as error:  # the verdict of a test
        if argument == "points" or (argument in FUNCTIONS and callable(arguments[argument])):
            return "ok"
        return judged(error, argument) if name.startswith("testing.") else f"leak: {error}"
    except OSError as error:
        return "refused" if argument in PATHS else f"leak: {described(error)}"
    except Exception as error:
        return f"leak: {described(error)}"
    return "ok"


def judged(error, argument):
    """Was an error raised by this package, or by scikit-learn for its faces, naming its cause?"""
    frames = traceback.extract_tb(error.__traceback__)
    inside = frames[-1].filename.startswith(PACKAGE)
    by_face = any("sklearn" in Path(frame.filename).parts for frame in frames)
    if by_face:
        return "refused"
    if not inside:
        return f"leak: {described(error)}"
    return "refused" if argument in str(error) else f"unnamed: {described(error)}"


def described(error):
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {frame.filename}:{frame.lineno}: {str(error)[:150]}"


def main(first, last):
    """Make the calls of a range, one line before and one after each."""
    warnings.simplefilter("ignore")
    os.chdir(folder())
    calls = all_calls()
    for number in range(first, min(last, len(calls))):
        print(json.dumps({"begins": number}), flush=True)
        print(json.dumps({"number": number, "outcome": outcome(*calls[number])}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
