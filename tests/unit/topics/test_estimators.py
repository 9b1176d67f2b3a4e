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
from pgmult.topics import TopicTransformer, as_corpus

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")


def make(**changes):
    sizes = {"draws": 40, "tune": 200, "chains": 2, "thin": 1}
    return TopicTransformer(3, random_state=0, **(sizes | changes))


@pytest.fixture(scope="module")
def data():
    """Three topics of disjoint words, the first two of which go together, and their theta."""
    rng = np.random.default_rng(1)
    topics = np.kron(np.eye(3), np.full((1, 8), 1.0 / 8))
    logits = rng.multivariate_normal(np.zeros(2), [[6.0, -4.5], [-4.5, 6.0]], size=250)
    theta = StickBreaking([2, 0, 1]).probs(logits)
    return np.array([rng.multinomial(40, p) for p in theta @ topics]), theta


@pytest.fixture(scope="module")
def fitted(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 40 draws
        return make().fit(data[0][:200])


@pytest.mark.slow
def test_scikit_learns_own_checks(monkeypatch):
    """Their data are no counts, so these are rounded; and they ask for one topic, which is two."""

    def rounded(X, name):
        X = abs(X)
        return as_corpus(X.rint() if scipy.sparse.issparse(X) else np.rint(X))

    monkeypatch.setattr("pgmult.topics.estimator.corpus_from", rounded)
    monkeypatch.setattr("pgmult.topics.estimator.as_num_topics", lambda value, name: max(2, value))
    estimator = TopicTransformer(2, draws=5, tune=5, chains=1, thin=1)
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


def test_score_is_document_completion(fitted, data):
    X = data[0][200:]
    uniform = -np.log(24)
    assert uniform + 0.3 < fitted.score(X) < 0.0
    with pytest.raises(ValueError, match="no tokens to score"):
        fitted.score(np.eye(24, dtype=int))


def test_chains_are_matched_before_they_are_averaged(data):
    estimator = make(chains=3).fit(data[0])
    means = estimator.posterior_["topics"].mean(axis=1)
    best = means[np.argmax(estimator.posterior_.sample_stats["log_likelihood"].mean(axis=1))]
    expected = []
    for chain in means:
        costs = {p: np.abs(chain[list(p)] - best).sum() for p in permutations(range(3))}
        expected.append(min(costs, key=costs.get))
    np.testing.assert_array_equal(estimator.stability_.matches.order, expected)
    matched = [chain[list(p)] for chain, p in zip(means, expected, strict=True)]
    np.testing.assert_allclose(estimator.components_, np.mean(matched, axis=0), rtol=1e-12)
    assert (estimator.stability_.found_again > 0.9).all()
    assert estimator.n_iter_ == 240


def test_in_a_pipeline_of_texts():
    texts = ["gene dna cell gene", "stock market price", "dna cell cell", "price stock stock"] * 10
    pipeline = make_pipeline(CountVectorizer(), make(n_jobs=1).set_params(n_components=2))
    theta = pipeline.fit_transform(texts)
    assert theta.shape == (40, 2)
    topic = theta.argmax(axis=1)
    assert topic[0] == topic[2] != topic[1] == topic[3]
    assert clone(pipeline[-1]).get_params() == pipeline[-1].get_params()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0.5, 1.0]], "did you pass proportions"),
        ([[-1, 1]], "Negative values"),
        ([[0, 0]], "at least one token"),
        ([[1], [2]], r"1 feature\(s\)"),
    ],
)
def test_bad_arguments_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        TopicTransformer(2).fit(np.array(X))


def test_a_corpus_is_refused_with_its_matrix(data):
    with pytest.raises(TypeError, match=r"a sparse matrix \(corpus.to_csr\(\)\), got Corpus"):
        TopicTransformer(2).fit(as_corpus(data[0]))


def test_what_is_not_fitted_says_so(fitted):
    for method in ("transform", "score"):
        with pytest.raises(NotFittedError):
            getattr(make(), method)(np.ones((2, 3)))
    with pytest.raises(ValueError, match="23 features"):
        fitted.transform(np.ones((2, 23)))


def test_without_scikit_learn_the_error_says_what_to_install():
    script = "import sys; sys.modules['sklearn'] = None\nfrom pgmult.topics import TopicTransformer"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode != 0
    assert "ImportError: pgmult.topics.TopicTransformer needs scikit-learn 1.6" in run.stderr
