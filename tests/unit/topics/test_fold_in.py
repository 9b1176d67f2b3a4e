"""Documents folded into fixed topics: against quadrature, and independent of their neighbours."""

import numpy as np
import pytest
from topic_runs import repeated

from pgmult import LogisticNormal, Posterior, load, sample
from pgmult.compiled.rows import row_threads
from pgmult.sampling import Origin
from pgmult.topics import (
    LDA,
    CorrelatedTopics,
    LogisticNormalTopics,
    StructuralTopics,
    as_corpus,
    fold_in,
    with_covariates,
)

TOPICS = np.array([[0.6, 0.3, 0.05, 0.05], [0.1, 0.1, 0.7, 0.1], [0.2, 0.2, 0.2, 0.4]])
MU, SIGMA = np.array([-0.4, 0.3]), np.array([[1.5, -0.8], [-0.8, 1.2]])
COUNTS = np.array([[4, 1, 0, 2], [0, 0, 9, 0], [0, 0, 0, 0], [2, 2, 2, 2], [0, 1, 0, 0]])


def run(copies, model=None, **others):
    values = {"topics": TOPICS, "mu": MU, "Sigma": SIGMA} | others
    return repeated(model or CorrelatedTopics(3), None, copies, **values)


def exact_moments(link, mu=MU, cov=SIGMA, topics=TOPICS, counts=COUNTS):
    """Mean and standard deviation of theta given each document, by a grid over both sticks."""
    side = np.linspace(-9.0, 9.0, 400)
    psi = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    theta = link.probs(psi)
    deviation = psi - mu
    log_prior = -0.5 * np.einsum("gi,ij,gj->g", deviation, np.linalg.inv(cov), deviation)
    log_weights = log_prior[:, None] + np.log(theta @ topics) @ counts.T
    weights = np.exp(log_weights - log_weights.max(axis=0))
    weights /= weights.sum(axis=0)
    mean = weights.T @ theta
    return mean, np.sqrt(weights.T @ theta**2 - mean**2)


@pytest.mark.parametrize("model", [CorrelatedTopics(3), LogisticNormalTopics(2)])
def test_proportions_follow_their_posterior(model, tmp_path):
    """Two topics of a softmax have two coordinates, as three of sticks."""
    topics, draws = TOPICS[: model.num_topics], 2000
    run(draws, model, topics=topics).save(tmp_path / "run")
    folded = fold_in(load(tmp_path / "run"), as_corpus(COUNTS), max_draws=draws, sweeps=3)
    theta = np.array([draw.theta for draw in folded])
    mean, sd = exact_moments(model.link(), topics=topics)
    batches = theta.reshape(20, -1, *mean.shape).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    assert (np.abs(theta.mean(axis=0) - mean) < 5.0 * error).all()
    assert (error < 0.1 * sd).all()
    np.testing.assert_allclose(theta.std(axis=0), sd, rtol=0.1)


def test_a_document_depends_on_its_words_alone():
    corpus = as_corpus(COUNTS)

    def last(corpus, **kwargs):
        return list(fold_in(run(12), corpus, max_draws=5, **kwargs))[-1].theta

    theta = last(corpus)
    rows = [3, 0, 3, 1]
    np.testing.assert_array_equal(last(COUNTS[rows]), theta[rows])
    with row_threads(2, grain=1):
        np.testing.assert_array_equal(last(corpus), theta)
    assert (last(corpus, random_seed=1) != theta).any()
    assert len({tuple(row) for row in theta}) == len(theta)


def test_draws_are_spread_over_the_chain():
    folded = list(fold_in(run(11), as_corpus(COUNTS), max_draws=3))
    assert [draw.draw for draw in folded] == [0, 5, 10]
    np.testing.assert_array_equal(folded[0].topics, TOPICS)


def test_a_word_that_no_topic_holds_says_nothing():
    posterior = run(1500, topics=TOPICS * [1.0, 1.0, 1.0, 0.0])
    corpus = as_corpus([[0, 0, 0, 6], [0, 0, 0, 0]])
    theta = np.array([draw.theta for draw in fold_in(posterior, corpus, max_draws=1500)])
    error = theta.std(axis=0) / np.sqrt(150)
    assert (np.abs(theta[:, 0].mean(axis=0) - theta[:, 1].mean(axis=0)) < 5 * error[0]).all()


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="posterior's 4 words"):
        next(fold_in(run(3), as_corpus(np.ones((2, 5), int))))
    broken = run(3, Sigma=np.array([[1.0, 3.0], [3.0, 1.0]]))
    with pytest.raises(ValueError, match="singular to working precision under draw 0"):
        next(fold_in(broken, as_corpus(COUNTS)))


def test_other_models_and_none_are_refused():
    with pytest.raises(ValueError, match=r"of CorrelatedTopics, .*, got one of LDA"):
        next(fold_in(run(3, LDA(3)), as_corpus(COUNTS)))
    draws = dict(run(3))
    with pytest.raises(ValueError, match="must know its model: take it from"):
        next(fold_in(Posterior(draws), as_corpus(COUNTS)))


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_documents_are_folded_by_topics_that_hold_their_keywords(tmp_path):
    """As by a model without keywords that has the same topics."""
    corpus = as_corpus(COUNTS, list("abcd"))
    model = CorrelatedTopics(3, keywords={"first": ["c"]}, start_sweeps=1)
    whole = sample(model, corpus, draws=4, tune=2, chains=1, random_seed=0, progressbar=False)
    whole.save(tmp_path / "run")
    kept = {name: whole[name] for name in ("topics", "mu", "Sigma")}
    plain = Posterior(kept, origin=Origin.of(CorrelatedTopics(3), corpus))
    both = fold_in(load(tmp_path / "run"), corpus), fold_in(plain, corpus)
    for one, other in zip(*both, strict=True):
        np.testing.assert_array_equal(one.theta, other.theta)
        assert one.topics[0, 2] >= whole["keyword_shares"][0, one.draw, 0]


# ------------------------------------------------------------------ with covariates

TABLE = {"party": ["D", "R", "D", "D", "R"], "author": ["a", "b", "b", "a", "a"]}
FORMULA = "~ party + (1 | author)"
STRUCTURED = with_covariates(COUNTS, TABLE, FORMULA, content="~ party")
COEFFICIENTS = np.array([[-0.4, 0.3], [1.0, -0.7]])
EFFECTS, VARIANCES = np.array([[0.5, 0.2], [-0.6, 0.4]]), np.array([1.5])
TWO = TOPICS[:2]  # of a softmax, which have two coordinates
GROUP_TOPICS = np.stack([TWO, TWO[:, ::-1]])


def structured(draws):
    model = StructuralTopics(2)
    values = {
        "topics": TWO, "coefficients": COEFFICIENTS, "Sigma": SIGMA, "effects": EFFECTS,
        "group_topics": GROUP_TOPICS, "effect_variances": VARIANCES,
    }  # fmt: skip
    return repeated(model, STRUCTURED, draws, **values)


def test_covariates_authors_and_groups_enter_the_prior():
    """Against quadrature: of a known author and of a new one, whose effect is the prior's."""
    posterior = structured(1500)
    of_new = 2.5 * SIGMA
    new = STRUCTURED.new_documents(
        COUNTS, {"party": ["D", "R", "R", "D", "R"], "author": ["a", "b", "X", "X", "a"]},
        new_levels=True,
    )  # fmt: skip
    theta = np.array([draw.theta for draw in fold_in(posterior, new, max_draws=1500)])
    batches = theta.reshape(20, -1, *theta.shape[1:]).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    x = np.array([[1, 0], [1, 1], [1, 1], [1, 0], [1, 1]])
    shift = np.vstack([EFFECTS, [0.0, 0.0]])[[0, 1, 2, 2, 0]]
    for d, (mean, author) in enumerate(zip(x @ COEFFICIENTS + shift, "abXXa", strict=True)):
        cov = of_new if author == "X" else SIGMA
        topics = GROUP_TOPICS[x[d, 1]]
        exact, _ = exact_moments(LogisticNormal(), mean, cov, topics, COUNTS[[d]])
        assert (np.abs(theta[:, d].mean(axis=0) - exact[0]) < 5.0 * error[d]).all()


def test_documents_without_the_posteriors_covariates_are_refused():
    posterior = structured(3)
    with pytest.raises(TypeError, match=r"data\.new_documents\(corpus, table\)"):
        next(fold_in(posterior, as_corpus(COUNTS)))
    turned = {name: column[::-1] for name, column in TABLE.items()}  # and coded alike
    assert next(fold_in(posterior, with_covariates(COUNTS, turned, FORMULA, content="~ party")))
    plain = with_covariates(COUNTS, TABLE, "~ party")[:]
    with pytest.raises(ValueError, match="posterior's groups, D, R; got none"):
        next(fold_in(posterior, plain))


def test_columns_that_other_documents_centred_are_refused():
    columns = {"x": [0.0, 1.0, 2.0, 3.0, 9.0]}
    data = with_covariates(COUNTS, columns)
    model = StructuralTopics(2)
    posterior = repeated(model, data, 3, topics=TWO, coefficients=COEFFICIENTS, Sigma=SIGMA)
    assert len(list(fold_in(posterior, data.new_documents(COUNTS[:2], {"x": [4.0, 5.0]})))) == 3
    others = with_covariates(COUNTS, {"x": [5.0, 1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(ValueError, match="coded as the posterior's are, with the same means"):
        next(fold_in(posterior, others[[0, 1]]))


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_draws_that_were_saved_without_data_still_know_how_columns_were_made(tmp_path):
    """Two designs of the same names, means and scales, and other knots."""
    year = np.array([0.0, 1.0, 2.0, 3.0, 9.0, 4.0, 5.0, 8.0])
    counts = np.tile(COUNTS, (2, 1))[:8]
    data = with_covariates(counts, {"x": year}, "~ s(x)")
    posterior = sample(
        StructuralTopics(3, start_sweeps=1), data, draws=4, tune=2, chains=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    posterior.save(tmp_path / "draws")
    saved = load(tmp_path / "draws")
    with pytest.raises(ValueError, match="saved without them"):
        saved.data  # noqa: B018
    new = {"x": [4.0, 5.0]}
    assert len(list(fold_in(saved, data.new_documents(counts[:2], new)))) == 4
    others = np.array([0.0, 1.0, 2.0, 3.0, 9.0, 4.2, 5.1, 7.9])
    others = (others - others.mean()) / others.std() * year.std() + year.mean()
    elsewhere = with_covariates(counts, {"x": others}, "~ s(x)")
    with pytest.raises(ValueError, match="coded as the posterior's are, with the same means"):
        next(fold_in(saved, elsewhere.new_documents(counts[:2], new)))


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_questions_of_a_run_that_kept_few_draws_of_its_topics():
    """Answers take topics and what goes with them from the draws that have both."""
    counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
    model, corpus = CorrelatedTopics(3), as_corpus(counts)
    often = {"tune": 10, "chains": 2, "random_seed": 0, "progressbar": False}
    few = dict.fromkeys(model.default_keep, 1) | {"topics": 4, "theta": 4}
    run = sample(model, corpus, draws=40, keep=few, **often)
    thin = run.whole()
    assert (run["mu"].shape[1], run["topics"].shape[1], thin.num_draws) == (40, 10, 10)
    for one, other in zip(fold_in(run, corpus), fold_in(thin, corpus), strict=True):
        np.testing.assert_array_equal(one.theta, other.theta)
    assert str(run.predict(corpus)) == str(thin.predict(corpus))
    assert str(run.check()) == str(thin.check())
    assert run.topics(by="frex") == thin.topics(by="frex")
