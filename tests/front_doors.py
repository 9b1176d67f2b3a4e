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
from functools import cache, partial
from pathlib import Path

import numpy as np
from odd_values import VALUES

import pgmult
from pgmult import choice, datasets, fields, regression, sequences, topics
from pgmult.fields import covariances
from pgmult.sampling import Origin
from pgmult.sequences.scores import rivals
from pgmult.variational.sites import LogisticSite

PACKAGE = str(Path(pgmult.__file__).parent)
FEW = {"draws": 4, "tune": 1, "chains": 2, "random_seed": 1, "progressbar": False}

rivals._DRAWS, rivals._TUNE = 6, 1  # of brief runs of sequences

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


def matern():
    return covariances.Matern(1.5, 3.0)


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
def trips():
    return {
        "who": np.repeat([1, 2, 3], 4), "trip": np.repeat(np.arange(6), 2), "x": X[:, 0],
        "mode": ["bus", "car"] * 6, "taken": [1, 0, 0, 1] * 3,
    }  # fmt: skip


@cache
def trips_run():
    formula = "taken ~ x + mode + (x | who)"
    data = choice.choices_of(formula, trips(), occasion="trip", alternative="mode", signs={"x": -1})
    return pgmult.sample(choice.MixedLogit(), data, **FEW)


@cache
def labelled():
    return pgmult.read({"y": BINARY, "x": X[:, 0]}).rows("y ~ x")


@cache
def voters():
    table = {"y": ["a", "b", "c"] * 4, "x": list(X[:, 0]), "g": list("uvuvwwuvuvww")}
    return table | {"n": [1, 2, 3] * 4}


@cache
def voters_run():
    data = pgmult.read(voters()).rows("y ~ x + (1 | g)")
    return pgmult.sample(regression.AdditiveRegression(), data, **FEW)


@cache
def topic_draws():
    model = topics.CorrelatedTopics(num_topics=2, start_sweeps=1)
    return pgmult.sample(
        model, corpus(), keep=["topics", "topic_shares", "mu", "Sigma", "psi", "theta"], **FEW
    )


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
        topics.CorrelatedTopics(2, start_sweeps=1), corpus(), max_iterations=1, random_seed=1
    )


@cache
def completion():
    scores = topics.scores.DocumentCompletion(corpus(), every=1)
    pgmult.sample(topics.LDA(2), corpus(), callback=scores, keep=(), **FEW)
    return scores


@cache
def correlations():
    return topics.topic_correlations(topic_draws(), num_simulated=5)


@cache
def report():
    return topics.report(topic_draws(), title="t", num_words=2)


def transformer():
    return topics.TopicTransformer(2, chains=1, **CHAINS).fit(COUNTS)


@cache
def sequence_draws():
    return pgmult.sample(sequences.MultinomialLDS(state_dim=1), words(), **FEW)


@cache
def field_draws():
    return pgmult.sample(fields.MultinomialGP(matern()), field(), **FEW)


@cache
def sequence_states():
    model = sequences.MultinomialLDS(state_dim=1)
    return pgmult.sample(model, words(), keep=[*model.default_keep, "states"], **FEW)


@cache
def field_sites():
    model = fields.MultinomialGP(matern())
    return pgmult.sample(model, field(), keep=["psi", "pi_new"], **FEW)


@cache
def counts_csv():
    path = folder() / "counts.csv"
    path.write_text("year,name,n\n2000,Ada,3\n", encoding="utf-8")
    return path


@cache
def stored():
    path = folder() / "stored"
    pgmult.sample(regression.AdditiveRegression(), labelled(), store=path, **FEW)
    return path


def never(*arguments, **options):
    raise AssertionError("refused")


def written(name, content):
    path = folder() / name
    path.write_text(content)
    return path


CHAINS = {"draws": 2, "tune": 1, "random_state": 0}

# estimator: how it is made, and what it is fitted to
ESTIMATORS = {
    "topics.TopicTransformer": (dict(n_components=2, chains=1, **CHAINS), (COUNTS,)),
    "sequences.SequenceForecaster": (dict(n_components=1, **CHAINS), (["ABBA", "BAB"],)),
    "fields.MultinomialGPClassifier": (CHAINS, (X, LABELS)),
    "regression.AdditiveClassifier": (
        {"method": "approximate", "draws": 5, "tune": 0, "chains": 1},
        (X, BINARY),
    ),
    "regression.CountRegressor": (
        {"method": "approximate", "draws": 5, "tune": 0, "chains": 1},
        (X, LABELS),
    ),
}


def fitted(name):
    """An estimator's arguments are checked when it is fitted."""
    kind, (arguments, data) = public(name), ESTIMATORS[name]

    def fit(**given):
        return kind(**arguments | given).fit(*data)

    fit.__signature__ = inspect.signature(kind)
    return fit


@cache
def small_table():
    return datasets.read({"text": ["some text", "other"], "n": [1, 2]})


# what methods are called of, made when called
OBJECTS = {
    "Posterior": topic_draws,
    "StickBreaking": pgmult.StickBreaking,
    "LogisticNormal": pgmult.LogisticNormal,
    "Dirichlet": lambda: pgmult.Dirichlet(np.ones(3)),
    "MvNormal": lambda: pgmult.MvNormal(np.zeros(2), np.eye(2)),
    "NormalInverseWishart": lambda: pgmult.NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2)),
    "MatrixNormalInverseWishart": lambda: pgmult.MatrixNormalInverseWishart(
        np.zeros((2, 2)), np.eye(2), 4.0, np.eye(2)
    ),
    "topics.TopicShares": few_effects,
    "topics.Content": lambda: topics.content(grouped_draws()),
    "topics.Corpus": table_corpus,
    "topics.TopicStability": lambda: topics.topic_stability(topic_draws()),
    "topics.TopicCorrelations": correlations,
    "topics.CompletionScore": lambda: completion().score(),
    "topics.StructuredCorpus": structured,
    "topics.Design": lambda: structured().design,
    "topics.VariationalTopics": variational_topics,
    "topics.TopicChoice": lambda: topics.scores.TopicChoice(
        (topics.scores.Candidate(2, -1.0, 0.0, 0.0, 0.1, 5.0, 1.0),), np.zeros((2, 1))
    ),
    "topics.DocumentCompletion": completion,
    "topics.TopicTransformer": transformer,
    "fields.FieldPredictions": lambda: fields.predict(field_draws(), data=field(), inputs="new"),
    "datasets.DataTable": small_table,
}

# entries that are called in another way than their names say
OTHERS = {
    "Origin.of": lambda: Origin.of,
    "Posterior.is_of": lambda: pgmult.load(stored()).is_of,
    "topics.fold_in": lambda: lambda **given: list(topics.fold_in(**given)),
    "datasets.DataTable.sequences": lambda: (
        datasets.read(
            {"who": ["a", "a", "b"], "day": [1, 3, 1], "state": ["x", "y", "x"], "n": [1, 2, 1]}
        ).sequences
    ),
    "datasets.DataTable.rows": lambda: (
        datasets.read({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "a"], "n": [1, 2, 1]}).rows
    ),
    "datasets.DataTable.field": lambda: (
        datasets.read(
            {"year": [1, 1, 2], "place": ["a", "b", "a"], "name": ["x", "y", "y"], "n": [1, 2, 3]}
        ).field
    ),
}

ROOMS = {"topics": ("data", "fits", "models", "reports", "scores", "starts", "summaries")}
"""Rooms of a family that have public names of their own."""


def public(name):
    """What a family, or one of its rooms, has under a name such as ``topics.effects``."""
    room, _, last = name.rpartition(".")
    if room == "covariances":
        return getattr(covariances, last)
    front = getattr(pgmult, room) if room else pgmult
    homes = [front, *(getattr(front, part) for part in ROOMS.get(room, ()))]
    return next(getattr(home, last) for home in homes if last in home.__all__)


def function_of(name):
    """What is called: the entry itself, a method of one of `OBJECTS`, or what `OTHERS` say."""
    owner, _, last = name.rpartition(".")
    if name in OTHERS:
        return OTHERS[name]()
    if name in ESTIMATORS:
        return fitted(name)
    if owner in ESTIMATORS and last == "fit":
        return public(owner)(**ESTIMATORS[owner][0]).fit
    if owner in OBJECTS:
        return getattr(OBJECTS[owner](), last)
    return public(name)


ARGUMENTS = {
    "sample": lambda: dict(model=regression.AdditiveRegression(), data=labelled(), **FEW),
    "resume": lambda: dict(store=stored(), progressbar=False),
    "load": lambda: dict(path=stored()),
    "Posterior": lambda: dict(draws={"x": np.zeros((2, 3))}),
    "Posterior.is_of": lambda: dict(data=labelled()),
    "Posterior.stack": lambda: dict(name="mu"),
    "Posterior.each": lambda: dict(name="mu", chain=1),
    "Posterior.summary": lambda: dict(var_names=["mu"]),
    "Posterior.save": lambda: dict(path=Path(tempfile.mkdtemp(dir=folder()))),
    "Origin.of": lambda: dict(model=regression.AdditiveRegression(), data=labelled()),
    "StickBreaking": lambda: dict(order=[2, 0, 1]),
    "StickBreaking.probs": lambda: dict(psi=PSI),
    "StickBreaking.log_probs": lambda: dict(psi=PSI),
    "StickBreaking.inverse": lambda: dict(pi=PI),
    "StickBreaking.totals": lambda: dict(counts=THREE),
    "StickBreaking.log_likelihood": lambda: dict(psi=PSI, counts=THREE),
    "StickBreaking.simulate": lambda: dict(rng=rng(), psi=PSI, totals=np.array([3, 4])),
    "StickBreaking.augment": lambda: dict(rng=rng(), psi=PSI, counts=THREE),
    "StickBreaking.expected": lambda: dict(mean=PSI, var=np.ones((2, 2)), counts=THREE),
    "StickBreaking.quadratic": lambda: dict(psi=PSI, counts=THREE),
    "LogisticNormal.probs": lambda: dict(psi=PI),
    "LogisticNormal.log_probs": lambda: dict(psi=PI),
    "LogisticNormal.inverse": lambda: dict(pi=PI),
    "LogisticNormal.log_likelihood": lambda: dict(psi=PI, counts=THREE),
    "LogisticNormal.simulate": lambda: dict(rng=rng(), psi=PI, totals=np.array([3, 4])),
    "LogisticNormal.expected": lambda: dict(mean=PI, var=np.ones((2, 3)), counts=THREE),
    "LogisticNormal.quadratic": lambda: dict(psi=PI, counts=THREE),
    "Dirichlet": lambda: dict(concentration=np.ones(3)),
    "Dirichlet.condition": lambda: dict(counts=THREE[0]),
    "Dirichlet.log_density": lambda: dict(pi=PI[0]),
    "Dirichlet.sample": lambda: dict(rng=rng(), shape=(2, 3)),
    "MvNormal": lambda: dict(prior_mean=np.zeros(2), prior_cov=np.eye(2)),
    "MvNormal.condition": lambda: dict(
        potential=pgmult.DiagonalPotential(np.ones((3, 2)), np.ones((3, 2)))
    ),
    "MvNormal.log_density": lambda: dict(x=PSI),
    "MvNormal.sample": lambda: dict(rng=rng(), num_rows=3),
    "NormalInverseWishart": lambda: dict(mean=np.zeros(2), strength=1.0, dof=4.0, scale=np.eye(2)),
    "NormalInverseWishart.condition": lambda: dict(rows=PSI),
    "NormalInverseWishart.weak": lambda: dict(mean=np.zeros(2)),
    "NormalInverseWishart.sample": lambda: dict(rng=rng()),
    "NormalInverseWishart.log_density": lambda: dict(mu=np.zeros(2), Sigma=np.eye(2)),
    "MatrixNormalInverseWishart": lambda: dict(
        mean=np.zeros((2, 2)), row_precision=np.eye(2), dof=4.0, scale=np.eye(2)
    ),
    "MatrixNormalInverseWishart.condition": lambda: dict(rows=PSI, covariates=np.ones((2, 2))),
    "MatrixNormalInverseWishart.weak": lambda: dict(mean=np.zeros((2, 2)), covariates=X),
    "MatrixNormalInverseWishart.sample": lambda: dict(rng=rng()),
    "MatrixNormalInverseWishart.log_density": lambda: dict(
        coefficients=np.zeros((2, 2)), Sigma=np.eye(2)
    ),
    "DiagonalPotential": lambda: dict(J=np.ones((2, 2)), h=np.ones((2, 2))),
    "DensePotential": lambda: dict(J=np.ones((2, 2, 2)), h=np.ones((2, 2))),
    "polya_gamma.sample": lambda: dict(rng=rng(), b=1.0, c=0.5),
    "polya_gamma.mean": lambda: dict(b=1.0, c=0.5),
    "polya_gamma.var": lambda: dict(b=1.0, c=0.5),
    # topics
    "topics.as_corpus": lambda: dict(counts=COUNTS, vocabulary=list("abcdef")),
    "topics.pack_corpus": lambda: dict(
        counts=COUNTS, out=Path(tempfile.mkdtemp(dir=folder())), vocabulary=list("abcdef")
    ),
    "topics.open_corpus": lambda: dict(path=packed_corpus()),
    "topics.as_timed_corpus": lambda: dict(counts=COUNTS, times=np.arange(8)),
    "topics.with_covariates": lambda: dict(
        corpus=corpus(), covariates={"x": np.arange(8.0)}, formula="~ x"
    ),
    "topics.split_tokens": lambda: dict(corpus=corpus(), documents=3, random_seed=1),
    "topics.CorrelatedTopics": lambda: dict(num_topics=2),
    "topics.LDA": lambda: dict(num_topics=2),
    "topics.LogisticNormalTopics": lambda: dict(num_topics=2),
    "topics.StructuralTopics": lambda: dict(num_topics=2),
    "topics.DynamicTopics": lambda: dict(num_topics=2),
    "topics.fit_cavi": lambda: dict(
        model=topics.CorrelatedTopics(2, start_sweeps=1),
        corpus=corpus(),
        max_iterations=2,
        random_seed=1,
    ),
    "topics.fit_svi": lambda: dict(
        model=topics.CorrelatedTopics(2, start_sweeps=1),
        corpus=corpus(),
        max_epochs=1,
        random_seed=1,
    ),
    "topics.fold_in": lambda: dict(run=topic_draws(), corpus=corpus(), max_draws=2),
    "topics.refit": lambda: dict(
        run=topic_draws(), corpus=structured(), max_draws=2, sweeps=1, warm_up=1, random_seed=1
    ),
    "topics.effects": lambda: dict(
        run=structural_draws(), variable="x", data=structured(), num_simulated=5, random_seed=1
    ),
    "topics.TopicShares.take": lambda: dict(topics=[2, 1]),
    "topics.quotes": lambda: dict(run=topic_draws(), topic=1, max_draws=2),
    "topics.check": lambda: dict(run=topic_draws(), groups={"half": list("aaaabbbb")}, max_draws=2),
    "topics.content": lambda: dict(run=grouped_draws(), max_draws=2),
    "topics.Content.words": lambda: dict(first="b", second="a", topic=1, num_words=2),
    "topics.Content.table": lambda: dict(num_words=2),
    "topics.variance_shares": lambda: dict(run=authored_draws(), probability=0.5),
    "topics.predict": lambda: dict(
        run=structural_posterior(),
        corpus=table_corpus(),
        covariates={"n": [1, 2, 4]},
        chain=1,
        max_draws=2,
        sweeps=1,
        probability=0.9,
        random_seed=1,
    ),
    "topics.export": lambda: dict(run=structural_posterior(), folder=folder() / "files", chain=1),
    "topics.Corpus.with_covariates": lambda: dict(formula="~ n"),
    "topics.Corpus.__getitem__": lambda: dict(rows=[0, 2]),
    "topics.search_num_topics": lambda: dict(
        make_model=topics.CorrelatedTopics,
        data=corpus(),
        candidates=[2],
        documents=2,
        every=1,
        random_seed=1,
        draws=2,
        tune=1,
        chains=1,
        progressbar=False,
    ),
    "topics.DocumentCompletion": lambda: dict(held_out=corpus()),
    "topics.unigram_log_predictive": lambda: dict(training=corpus(), held_out=corpus()),
    "topics.topic_stability": lambda: dict(run=topic_draws()),
    "topics.TopicStability.take": lambda: dict(topics=np.array([2, 1])),
    "topics.TopicCorrelations.take": lambda: dict(topics=np.array([2, 1])),
    "topics.compare": lambda: dict(run=topic_draws(), other=topic_draws()),
    "topics.mean_topics": lambda: dict(run=topic_draws()),
    "topics.document_topics": lambda: dict(run=topic_draws(), documents=[1, 2]),
    "topics.topic_correlations": lambda: dict(run=topic_draws(), num_simulated=5, random_seed=1),
    "topics.top_words": lambda: dict(run=topic_draws(), num_words=3),
    "topics.topic_labels": lambda: dict(words=topics.top_words(topic_draws())),
    "topics.npmi": lambda: dict(words=[["a", "b"], ["b", "c"]], reference=corpus()),
    "topics.exclusivity": lambda: dict(topics=PI, num_words=2),
    "topics.frex": lambda: dict(topics=PI),
    "topics.report": lambda: dict(run=topic_draws(), title="t", topic=1, num_words=2),
    "topics.TopicTransformer": lambda: dict(n_components=2),
    "topics.TopicTransformer.fit": lambda: dict(X=COUNTS),
    "topics.Design.rows": lambda: dict(covariates={"x": [0.0, 1.0]}),
    "topics.StructuredCorpus.new_documents": lambda: dict(
        corpus=COUNTS[:2], covariates={"x": [0.0, 1.0]}, new_levels=True
    ),
    "topics.ContentPrior": lambda: dict(
        shape=1.0, rate_shape=0.5, rate_rate=9.0, start=30.0, start_sweeps=2
    ),
    "topics.find_start": lambda: dict(
        model=topics.CorrelatedTopics(2), data=COUNTS, leaves=2, sweeps=1, random_seed=1
    ),
    "topics.VariationalTopics.start": lambda: dict(
        rng=rng(), model=topics.CorrelatedTopics(2, start_sweeps=1), corpus=corpus()
    ),
    "topics.VariationalTopics.infer": lambda: dict(corpus=corpus()),
    "topics.VariationalTopics.theta": lambda: dict(corpus=corpus()),
    "topics.VariationalTopics.update": lambda: dict(minibatch=corpus(), num_documents=8),
    "topics.VariationalTopics.bound": lambda: dict(documents=variational_topics().infer(corpus())),
    "topics.TopicChoice.smallest_within": lambda: dict(errors=1.0),
    "topics.DocumentCompletion.score": lambda: dict(chain=1),
    "topics.completion_score": lambda: dict(
        draws=[(np.full((8, 2), 0.5), np.full((2, 6), 1 / 6))], held_out=corpus()
    ),
    "topics.strongest_pairs": lambda: dict(correlations=correlations()),
    "topics.TopicTransformer.transform": lambda: dict(X=COUNTS),
    "topics.TopicTransformer.score": lambda: dict(X=COUNTS),
    # sequences
    "sequences.as_sequences": lambda: dict(data=["ABBA", "BAB"]),
    "sequences.MultinomialLDS": lambda: dict(state_dim=2),
    "sequences.MultinomialTrend": lambda: dict(memory=4),
    "sequences.MultinomialHMM": lambda: dict(num_states=2),
    "sequences.MixedHMM": lambda: dict(num_states=2),
    "sequences.MarkovChain": lambda: dict(order=1),
    "sequences.MixedMarkovChain": lambda: dict(num_states=2),
    "sequences.in_channels": lambda: dict(channels={"job": ["AAB", "BB"], "home": ["xxy", "yx"]}),
    "sequences.forecast": lambda: dict(run=sequence_draws(), steps=2),
    "sequences.predict": lambda: dict(run=sequence_draws(), data=words()),
    "sequences.impute": lambda: dict(
        run=sequence_draws(), data=sequences.as_sequences([["A", None, "B"]])
    ),
    "sequences.one_step_ahead": lambda: dict(run=sequence_draws(), test=words()),
    "sequences.compare": lambda: dict(
        run=sequence_draws(), other=sequence_draws(), held_out=words(), names=("a", "b")
    ),
    "sequences.search_state_dim": lambda: dict(
        data=["ABBA", "BAB"], candidates=[1, 2], make_model=sequences.MarkovChain
    ),
    "sequences.check": lambda: dict(run=sequence_states()),
    "sequences.effects": lambda: dict(run=sequence_states(), column="step", values=[1, 2]),
    "sequences.report": lambda: dict(run=sequence_states(), title="t", comparison=False),
    "sequences.SequenceForecaster": lambda: dict(n_components=1),
    "sequences.SequenceForecaster.fit": lambda: dict(X=["ABBA", "BAB"]),
    # fields
    "fields.as_field": lambda: dict(inputs=TIMES, counts=FIELD_COUNTS, new_inputs=[7.0]),
    "fields.MultinomialGP": lambda: dict(covariance=matern()),
    "fields.predict": lambda: dict(run=field_draws(), data=field(), inputs="new"),
    "fields.check": lambda: dict(run=field_sites(), data=field()),
    "fields.effects": lambda: dict(run=field_sites(), column="input", values=[TIMES[0]]),
    "fields.compare": lambda: dict(run=field_sites(), other=field_sites(), held_out=field().counts),
    "fields.report": lambda: dict(run=field_sites(), data=field(), title="t"),
    "fields.FieldPredictions.interval": lambda: dict(probability=0.8),
    "fields.FieldPredictions.rank_probabilities": lambda: dict(top=1),
    "fields.calibration": lambda: dict(draws=np.stack([PI, PI]), counts=THREE, least=0.0),
    "fields.MultinomialGPClassifier": lambda: dict(covariance=matern()),
    "fields.MultinomialGPClassifier.fit": lambda: dict(X=X, y=LABELS),
    "covariances.Constant": lambda: dict(var=1.0),
    "covariances.Matern": lambda: dict(nu=1.5, length_scale=2.0),
    "covariances.SquaredExponential": lambda: dict(length_scale=2.0),
    "covariances.Periodic": lambda: dict(period=3.0, length_scale=2.0),
    "covariances.White": lambda: dict(var=1.0),
    "covariances.GreatCircle": lambda: dict(length_scale=2.0),
    "covariances.LogNormal": lambda: dict(median=1.0),
    # choices
    "choice.choices_of": lambda: dict(
        formula="taken ~ x + (x | who)", table=trips(), occasion="trip", alternative="mode"
    ),
    "choice.explode": lambda: dict(
        table={"trip": [1, 1, 2, 2], "price": [1.0, 2.0, 3.0, 4.0], "rank": [1, 2, 2, 1]},
        rank="rank",
        occasion="trip",
    ),
    "choice.lengthen": lambda: dict(
        table={"mode": ["bus", "car"], "p1": [1.0, 2.0], "p2": [3.0, 4.0], "there": [1, 1]},
        choice="mode",
        attributes={"price": {"bus": "p1", "car": "p2"}},
        available={"bus": "there"},
    ),
    "choice.MixedLogit": lambda: dict(mean_scale=2.0, kicks=2),
    "choice.tastes": lambda: dict(run=trips_run(), people=True),
    "choice.correlations": lambda: dict(run=trips_run()),
    "choice.worth": lambda: dict(run=trips_run(), per="x"),
    "choice.predict": lambda: dict(run=trips_run(), new=trips(), occasion="trip", by="mode"),
    "choice.elasticities": lambda: dict(run=trips_run(), column="x", by="mode"),
    "choice.surplus": lambda: dict(run=trips_run(), new=trips(), per="x", occasion="trip"),
    "choice.diversion": lambda: dict(run=trips_run(), by="mode"),
    "choice.importances": lambda: dict(run=trips_run()),
    "choice.scores": lambda: dict(run=trips_run(), column="mode"),
    "choice.marginal_means": lambda: dict(run=trips_run()),
    "choice.amce": lambda: dict(run=trips_run()),
    "choice.compare": lambda: dict(run=trips_run()),
    "choice.check": lambda: dict(run=trips_run()),
    "choice.report": lambda: dict(run=trips_run(), comparison=False),
    # regressions
    "regression.AdditiveRegression": lambda: dict(kicks=2),
    "regression.predict": lambda: dict(run=voters_run()),
    "regression.effects": lambda: dict(run=voters_run(), column="g", values=["u", "v"]),
    "regression.compare": lambda: dict(run=voters_run(), other=voters_run(), held_out=voters()),
    "regression.comparisons": lambda: dict(run=voters_run(), column="g", values=["u", "v"]),
    "regression.contrasts": lambda: dict(run=voters_run(), column="g", step=None, reference="a"),
    "regression.groups": lambda: dict(run=voters_run()),
    "regression.variance_shares": lambda: dict(run=voters_run()),
    "regression.check": lambda: dict(run=voters_run(), held_out=voters(), by="g"),
    "regression.loo": lambda: dict(run=voters_run()),
    "regression.report": lambda: dict(run=voters_run()),
    "regression.poststratify": lambda: dict(run=voters_run(), census=voters(), by="g", weight="n"),
    "regression.AdditiveClassifier": lambda: dict(draws=5),
    "regression.CountRegressor": lambda: dict(draws=5),
    "regression.AdditiveClassifier.fit": lambda: dict(X=X, y=BINARY),
    "regression.CountRegressor.fit": lambda: dict(X=X, y=LABELS),
    # fits and tests that know no family
    "variational.CountSite": lambda: dict(counts=LABELS, size=2.0),
    "variational.LogisticSite": lambda: dict(successes=BINARY, trials=np.ones(12)),
    "variational.fit_sites": lambda: dict(
        x=X, site=LogisticSite(BINARY, np.ones(12)), prior=pgmult.MvNormal(np.zeros(2), np.eye(2))
    ),
    "testing.geweke": lambda: dict(
        model=sequences.MarkovChain(), data=words(), replicates=60, sweeps=2
    ),
    "testing.sbc": lambda: dict(
        model=sequences.MarkovChain(), data=words(), replicates=20, tune=2, draws=3, thin=1
    ),
    "testing.likelihood": lambda: dict(model=sequences.MarkovChain(), data=words(), replicates=20),
    "testing.check_geweke": lambda: dict(
        model=regression.AdditiveRegression(), data=labelled(), replicates=60, sweeps=1
    ),
    "testing.check_sbc": lambda: dict(
        model=regression.AdditiveRegression(),
        data=labelled(),
        replicates=20,
        tune=1,
        draws=3,
        thin=1,
    ),
    "testing.check_likelihood": lambda: dict(
        model=regression.AdditiveRegression(), data=labelled(), replicates=20
    ),
    "testing.conditional_ratio": lambda: dict(
        log_joint=float, log_conditional=float, points=[0.0, 1.0]
    ),
    "testing.mutant": lambda: dict(original=pgmult.StickBreaking()),
    "testing.rejects": lambda: dict(check=never),
    "testing.check_model": lambda: dict(model=sequences.MarkovChain(), data=words(), replicates=60),
    # datasets
    "datasets.pack_files": lambda: dict(
        path=written("to_pack.txt", "some text\nother text"),
        out=Path(tempfile.mkdtemp(dir=folder())),
        min_count=1,
        progressbar=False,
    ),
    "datasets.read_text": lambda: dict(path=written("a.txt", "some text\nother words\n")),
    "datasets.read": lambda: dict(
        table=written("a.csv", "text,n\nsome text,1\nother,2\n"),
        na_values=("", "NA"),
        time_zone=None,
    ),
    "datasets.DataTable.corpus": lambda: dict(
        text="text", min_documents=1, ngrams=2, stop_words=["some"]
    ),
    "datasets.DataTable.sequences": lambda: dict(
        symbol="state",
        sequence="who",
        time="day",
        every=None,
        week_start="monday",
        count="n",
        order="frequency",
    ),
    "datasets.DataTable.rows": lambda: dict(formula="y ~ x", weights="n"),
    "datasets.DataTable.field": lambda: dict(
        inputs=["year", "place"],
        category="name",
        count="n",
        new_inputs={"year": [3], "place": ["b"]},
        places={"place": {"a": 1.0, "b": 2.0}},
        order="frequency",
    ),
    "datasets.read_corpus": lambda: dict(path=written("b.txt", "some text\nother\n")),
    "datasets.read_fasta": lambda: dict(path=written("a.fa", ">a\nACGT\n")),
}
"""The right arguments of each entry, made when it is called."""


CALLS = {name: (partial(function_of, name), right) for name, right in ARGUMENTS.items()}

FUNCTIONS = {"callback", "log_joint", "log_conditional", "check"}
PATHS = {"page", "path", "store", "vocabulary"}  # arguments whose errors are the file system's


def room_of(name):
    """The module of pgmult that stands before an entry's dot; for others pgmult itself."""
    first = name.split(".")[0]
    return first if inspect.ismodule(getattr(pgmult, first, None)) else "pgmult"


def all_calls():
    """(entry, argument, label of its value) of every call, in a fixed order, room by room."""
    return [
        (name, argument, label)
        for name in sorted(CALLS, key=room_of)
        for argument in arguments_of(name, CALLS[name][0]())
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
