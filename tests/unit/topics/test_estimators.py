"""The scikit-learn face: its conventions, and that it says what the models under it say."""

import pickle
import subprocess
import sys
import warnings
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from pgmult import ConvergenceWarning, StickBreaking
from pgmult.topics import (
    CorrelatedTopics,
    TopicTransformer,
    as_corpus,
    split_tokens,
    with_covariates,
)
from pgmult.topics.fits.stick_breaking import VariationalTopics, fit_cavi

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")


class AtLeastTwo(TopicTransformer):
    """Topics are two at least, which scikit-learn's checks do not know."""

    def _model(self, corpus):
        return CorrelatedTopics(max(2, self.n_components), self.word_concentration)


def make(method, **changes):
    sizes = {"draws": 40, "tune": 200, "chains": 2, "thin": 1} if method == "gibbs" else {}
    return TopicTransformer(3, method=method, random_state=0, **(sizes | changes))


@pytest.fixture(scope="module")
def data():
    """Three topics of disjoint words, the first two of which go together, and their theta."""
    rng = np.random.default_rng(1)
    topics = np.kron(np.eye(3), np.full((1, 8), 1.0 / 8))
    logits = rng.multivariate_normal(np.zeros(2), [[6.0, -4.5], [-4.5, 6.0]], size=250)
    theta = StickBreaking([2, 0, 1]).probs(logits)
    return np.array([rng.multinomial(40, p) for p in theta @ topics]), theta


@pytest.fixture(scope="module", params=["svi", "gibbs"])
def fitted(request, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 40 draws
        return make(request.param).fit(data[0][:200])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["svi", "gibbs"])
def test_scikit_learns_own_checks(method, monkeypatch):
    """Their data are no counts, so these are rounded before the corpus is made."""

    def rounded(X, name):
        X = abs(X)
        return as_corpus(X.rint() if scipy.sparse.issparse(X) else np.rint(X))

    monkeypatch.setattr("pgmult.topics.estimator.corpus_from", rounded)
    estimator = AtLeastTwo(2, method=method, draws=5, tune=5, chains=1, thin=1)
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = [r["check_name"] for r in results if r["status"] == "failed"]
    assert failed == []
    assert Counter(r["status"] for r in results)["passed"] >= 40


def test_components_are_found_and_normalised(fitted, data):
    np.testing.assert_allclose(fitted.components_.sum(axis=1), 1.0, rtol=1e-12)
    owner = fitted.components_.reshape(3, 3, 8).sum(axis=2).argmax(axis=1)
    assert sorted(owner) == [0, 1, 2]
    theta = fitted.transform(data[0][200:])
    np.testing.assert_allclose(theta.sum(axis=1), 1.0, rtol=1e-9)
    truth = data[1][200:][:, owner]
    assert np.abs(theta - truth).mean() < 1.5 * np.mean(np.sqrt(truth * (1 - truth) / 40))


def test_correlations_are_those_of_simulated_proportions(fitted, data):
    owner = fitted.components_.reshape(3, 3, 8).sum(axis=2).argmax(axis=1)
    truth = np.corrcoef(data[1][:, owner], rowvar=False)
    correlation, covariance = fitted.topic_correlation_, fitted.topic_covariance_
    assert np.abs(correlation - truth).max() < 0.25
    sd = np.sqrt(np.diagonal(covariance))
    np.testing.assert_allclose(covariance / np.outer(sd, sd), correlation, rtol=1e-9)
    np.testing.assert_array_equal(correlation, fitted.topic_correlation_)


def test_transform_is_a_function_of_each_document(fitted, data):
    X = data[0][:30]
    theta = fitted.transform(X)
    for same in (
        X.astype(np.int32), X.astype(np.float32), scipy.sparse.csr_matrix(X),
        scipy.sparse.csc_array(X.astype(np.float64)),
    ):  # fmt: skip
        np.testing.assert_array_equal(fitted.transform(same), theta)
    np.testing.assert_array_equal(fitted.transform(X[[7, 3]]), theta[[7, 3]])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), theta)
    assert list(fitted.get_feature_names_out()) == [f"topictransformer{k}" for k in range(3)]


def test_draws_of_proportions_average_to_transform(fitted, data):
    X = data[0][200:220]
    calls = np.array([fitted.sample_transform(X, 40, random_state=seed) for seed in range(3, 13)])
    draws = calls[0]
    assert draws.shape == (40, 20, 3)
    np.testing.assert_allclose(draws.sum(axis=2), 1.0, rtol=1e-9)
    gap = calls.mean(axis=(0, 1)) - fitted.transform(X)
    assert np.abs(gap).max() < 0.05
    spread = calls.std(axis=(0, 1))  # small proportions are skewed: of many draws, and no maximum
    scores = gap / (spread / np.sqrt(40))
    assert np.sqrt(np.mean(scores**2)) < 2.0
    shuffled = fitted.transform(X)[::-1]
    assert np.abs(draws.mean(axis=0) - shuffled).max() > 0.05
    np.testing.assert_array_equal(fitted.sample_transform(X, 40, random_state=3), draws)
    assert (fitted.sample_transform(X, 40, random_state=4) != draws).any()


def test_score_is_document_completion(fitted, data):
    X = data[0][200:]
    uniform = -np.log(24)
    assert uniform + 0.3 < fitted.score(X) < 0.0
    assert fitted.perplexity(X) == pytest.approx(np.exp(-fitted.score(X)))
    if hasattr(fitted, "variational_"):
        shown, held_out = split_tokens(as_corpus(X), len(X))
        counts = held_out.to_csr().toarray()
        probs = fitted.transform(shown.to_csr()) @ fitted.components_
        by_hand = np.sum(counts * np.log(probs)) / counts.sum()
        assert fitted.score(X) == pytest.approx(by_hand, rel=1e-12)
    with pytest.raises(ValueError, match="no tokens to score"):
        fitted.score(np.eye(24, dtype=int))


def test_chains_are_matched_before_they_are_averaged(data):
    estimator = make("gibbs", chains=3).fit(data[0])
    means = estimator.posterior_["topics"].mean(axis=1)
    best = means[np.argmax(estimator.posterior_.sample_stats["log_likelihood"].mean(axis=1))]
    expected = []
    for chain in means:
        costs = {p: np.abs(chain[list(p)] - best).sum() for p in permutations(range(3))}
        expected.append(min(costs, key=costs.get))
    np.testing.assert_array_equal(estimator.topic_order_, expected)
    matched = [chain[list(p)] for chain, p in zip(means, expected, strict=True)]
    np.testing.assert_allclose(estimator.components_, np.mean(matched, axis=0), rtol=1e-12)
    assert (estimator.stability_.found_again > 0.9).all()
    assert estimator.n_iter_ == 240


def test_fit_svi_is_the_fit_of_the_library(data):
    X = as_corpus(data[0])
    estimator = make("svi", max_iter=6).fit(data[0])
    seed = np.random.RandomState(0).randint(2**31 - 1)
    direct = fit_cavi(CorrelatedTopics(3), X, max_iterations=6, random_seed=int(seed))
    np.testing.assert_array_equal(estimator.components_, direct.topics)
    stochastic = make("svi", batch_size=50, max_iter=3).fit(data[0])
    assert stochastic.n_iter_ == stochastic.variational_.num_updates > 5


def test_partial_fit_streams(data):
    X = data[0]
    estimator = make("svi", total_samples=250, learning_offset=2.0, learning_decay=0.7)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    first, second = as_corpus(X[:100]), as_corpus(X[100:200])
    q = VariationalTopics.start(np.random.default_rng(seed), CorrelatedTopics(3), first, 250)
    for minibatch in (first, second):
        q = q.update(minibatch, 250, delay=2.0, forgetting=0.7)
    estimator.partial_fit(X[:100]).partial_fit(X[100:200])
    np.testing.assert_array_equal(estimator.components_, q.topics)
    assert estimator.n_iter_ == 2
    growing = make("svi").partial_fit(X[:100])
    assert growing.variational_.gaussian.dof == pytest.approx(q.model.gaussian.dof + 100, rel=0.01)
    growing.partial_fit(X[100:])
    refitted = make("svi", max_iter=3).partial_fit(X[:50]).fit(X)
    fresh = make("svi", max_iter=3).fit(X)
    np.testing.assert_array_equal(refitted.components_, fresh.components_)


def test_partial_fit_needs_variational_inference():
    assert not hasattr(make("gibbs"), "partial_fit")
    assert hasattr(make("svi"), "partial_fit")


@pytest.mark.slow
def test_another_method_replaces_the_fit(data):
    estimator = make("gibbs").fit(data[0])
    estimator.set_params(method="svi", max_iter=3)
    np.testing.assert_array_equal(
        estimator.transform(data[0][:5]), make("gibbs").fit(data[0]).transform(data[0][:5])
    )
    estimator.fit(data[0])
    assert not hasattr(estimator, "posterior_")
    assert hasattr(estimator, "variational_")


def test_in_a_pipeline_of_texts():
    texts = ["gene dna cell gene", "stock market price", "dna cell cell", "price stock stock"] * 10
    pipeline = make_pipeline(CountVectorizer(), make("svi", n_jobs=1).set_params(n_components=2))
    theta = pipeline.fit_transform(texts)
    assert theta.shape == (40, 2)
    topic = theta.argmax(axis=1)
    assert topic[0] == topic[2] != topic[1] == topic[3]
    assert clone(pipeline[-1]).get_params() == pipeline[-1].get_params()


@pytest.mark.parametrize(
    ("changes", "X", "error", "message"),
    [
        ({}, [[0.5, 1.0]], ValueError, "did you pass proportions"),
        ({}, [[-1, 1]], ValueError, "Negative values"),
        ({}, [[0, 0]], ValueError, "at least one token"),
        ({}, [[1], [2]], ValueError, r"1 feature\(s\)"),
        ({"method": "vb"}, [[1, 2]], ValueError, "method must be one of gibbs, svi, got 'vb'"),
    ],
)
def test_bad_arguments_are_refused(changes, X, error, message):
    with pytest.raises(error, match=message):
        TopicTransformer(**({"n_components": 2, "method": "svi"} | changes)).fit(np.array(X))


def test_what_is_not_fitted_says_so(fitted):
    for attribute in ("topic_covariance_", "topic_correlation_"):
        with pytest.raises(NotFittedError):
            getattr(make("svi"), attribute)
    for method in ("transform", "sample_transform", "score", "perplexity"):
        with pytest.raises(NotFittedError):
            getattr(make("svi"), method)(np.ones((2, 3)))
    with pytest.raises(ValueError, match="23 features"):
        fitted.transform(np.ones((2, 23)))
    if hasattr(fitted, "posterior_"):
        with pytest.raises(ValueError, match="at most the 40 of a chain, got 41"):
            fitted.sample_transform(np.ones((2, 24)), 41)


def test_without_scikit_learn_the_error_says_what_to_install():
    script = "import sys; sys.modules['sklearn'] = None\nfrom pgmult.topics import TopicTransformer"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode != 0
    assert "ImportError: pgmult.topics.TopicTransformer needs scikit-learn 1.6" in run.stderr


def test_covariates_are_carried(data):
    """They used to be refused in a sentence about arrays."""
    counts = data[0][:40]
    columns = {"party": ["D", "R"] * 20, "year": np.arange(40.0)}
    data = with_covariates(counts, columns, "~ party + year", content="~ party")
    estimator = TopicTransformer(2, draws=10, tune=10, chains=2, random_state=0).fit(data)
    assert type(estimator.posterior_.model).__name__ == "StructuralTopics"
    assert estimator.n_features_in_ == counts.shape[1]
    new = data.new_documents(counts[:3], {"party": ["D", "R", "D"], "year": 5.0})
    theta = estimator.transform(new)
    np.testing.assert_allclose(theta.sum(axis=1), 1.0)
    moved = data.new_documents(counts[:3], {"party": ["R", "D", "R"], "year": 5.0})
    assert np.abs(estimator.transform(moved) - theta).max() > 1e-6
    assert estimator.score(new) < 0.0
    assert estimator.topic_correlation_.shape == (2, 2)
    for bare in (counts[:3], as_corpus(counts[:3])):
        with pytest.raises(ValueError, match=r"X must have the covariates .*new_documents"):
            estimator.transform(bare)
    with pytest.raises(ValueError, match="method must be 'gibbs' with covariates, got 'svi'"):
        TopicTransformer(2, method="svi").fit(data)
    with pytest.raises(ValueError, match="method must be 'gibbs' with covariates, got 'svi'"):
        TopicTransformer(2, method="svi").partial_fit(data)
    again = TopicTransformer(2, draws=4, tune=4, chains=1, random_state=0).fit(as_corpus(counts))
    assert again.transform(counts[:3]).shape == (3, 2)
    with pytest.raises(ValueError, match=r"X must have .* features"):
        again.transform(as_corpus(np.eye(3, dtype=int)))
