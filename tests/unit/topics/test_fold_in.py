"""Documents folded into fixed topics: against quadrature, and independent of their neighbours."""

from typing import ClassVar

import numpy as np
import pytest

from pgmult import Posterior, StickBreaking, load
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


def repeated(draws, model=None, **others):
    """A posterior all of whose draws are the same."""
    globals_ = {"topics": TOPICS, "mu": MU, "Sigma": SIGMA} | others
    return Posterior(
        {
            name: np.broadcast_to(value, (1, draws, *value.shape))
            for name, value in globals_.items()
        },
        origin=Origin.of(model or CorrelatedTopics(3), None),
    )


def exact_moments(link):
    """Mean and standard deviation of theta given each document, by a grid over both sticks."""
    side = np.linspace(-9.0, 9.0, 400)
    psi = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    theta = link.probs(psi)
    deviation = psi - MU
    log_prior = -0.5 * np.einsum("gi,ij,gj->g", deviation, np.linalg.inv(SIGMA), deviation)
    log_weights = log_prior[:, None] + np.log(theta @ TOPICS) @ COUNTS.T
    weights = np.exp(log_weights - log_weights.max(axis=0))
    weights /= weights.sum(axis=0)
    mean = weights.T @ theta
    return mean, np.sqrt(weights.T @ theta**2 - mean**2)


@pytest.mark.parametrize("order", [None, (2, 0, 1)])
def test_proportions_follow_their_posterior(order, tmp_path):
    link = StickBreaking(order)
    draws = 6000
    repeated(draws, CorrelatedTopics(3, order=order)).save(tmp_path / "run")
    folded = fold_in(load(tmp_path / "run"), as_corpus(COUNTS), max_draws=draws, sweeps=3)
    theta = np.array([draw.theta for draw in folded])
    mean, sd = exact_moments(link)
    batches = theta.reshape(30, -1, *mean.shape).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    assert (np.abs(theta.mean(axis=0) - mean) < 5.0 * error).all()
    assert (error < 0.1 * sd).all()
    np.testing.assert_allclose(theta.std(axis=0), sd, rtol=0.1)


def test_a_document_depends_on_its_words_alone():
    corpus = as_corpus(COUNTS)

    def last(corpus, **kwargs):
        return list(fold_in(repeated(12), corpus, max_draws=5, **kwargs))[-1].theta

    theta = last(corpus)
    rows = [3, 0, 3, 1]
    np.testing.assert_array_equal(last(COUNTS[rows]), theta[rows])
    with row_threads(2, grain=1):
        np.testing.assert_array_equal(last(corpus), theta)
    assert (last(corpus, random_seed=1) != theta).any()
    assert len({tuple(row) for row in theta}) == len(theta)


def test_draws_are_spread_over_the_chain():
    folded = list(fold_in(repeated(11), as_corpus(COUNTS), max_draws=3))
    assert [draw.draw for draw in folded] == [0, 5, 10]
    np.testing.assert_array_equal(folded[0].topics, TOPICS)


def test_a_word_that_no_topic_holds_says_nothing():
    posterior = repeated(4000, topics=TOPICS * [1.0, 1.0, 1.0, 0.0])
    corpus = as_corpus([[0, 0, 0, 6], [0, 0, 0, 0]])
    theta = np.array([draw.theta for draw in fold_in(posterior, corpus, max_draws=4000)])
    error = theta.std(axis=0) / np.sqrt(400)
    assert (np.abs(theta[:, 0].mean(axis=0) - theta[:, 1].mean(axis=0)) < 5 * error[0]).all()


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="posterior's 4 words"):
        next(fold_in(repeated(3), as_corpus(np.ones((2, 5), int))))
    with pytest.raises(ValueError, match="max_draws"):
        next(fold_in(repeated(3), as_corpus(COUNTS), max_draws=0))
    broken = repeated(3, Sigma=np.array([[1.0, 3.0], [3.0, 1.0]]))
    with pytest.raises(ValueError, match="positive definite"):
        next(fold_in(broken, as_corpus(COUNTS)))


def test_other_models_and_none_are_refused():
    for model in (LDA(3), LogisticNormalTopics(3)):
        with pytest.raises(
            ValueError,
            match=f"of CorrelatedTopics or StructuralTopics, got .*{type(model).__name__}",
        ):
            next(fold_in(repeated(3, model), as_corpus(COUNTS)))
    draws = dict(repeated(3))
    with pytest.raises(ValueError, match="must know its model, got a plain dict"):
        next(fold_in(draws, as_corpus(COUNTS)))
    with pytest.raises(ValueError, match="must know its model, and these draws came without"):
        next(fold_in(Posterior(draws), as_corpus(COUNTS)))


class TestCovariates:
    """Documents of a structural model: each under its own prior mean, scale and words."""

    COLUMNS: ClassVar = {
        "year": [0.0, 1.0, 2.0, 4.0, 5.0],
        "who": list("abcab"),
        "party": list("DRDRD"),
    }
    GROUPS = np.stack([TOPICS, TOPICS[:, [1, 0, 3, 2]]])

    @pytest.fixture
    def data(self):
        return with_covariates(
            as_corpus(COUNTS), self.COLUMNS, "~ year + (1 | who)", content="~ party"
        )

    @pytest.fixture
    def posterior(self, data):
        rng = np.random.default_rng(0)
        values = {
            "topics": TOPICS, "Sigma": SIGMA, "coefficients": rng.normal(size=(2, 2)),
            "effects": rng.normal(size=(3, 2)), "effect_variances": np.array([0.5]),
            "group_topics": self.GROUPS,
        }  # fmt: skip
        return Posterior(
            {name: np.stack([x] * 6)[None] for name, x in values.items()},
            origin=Origin.of(StructuralTopics(3), data), coords={"covariate": data.design.names},
        )  # fmt: skip

    def test_each_document_has_its_own_prior(self, data, posterior):
        columns = {"year": [3.0, 3.0, 7.0], "who": ["b", "new", "a"], "party": ["D", "D", "R"]}
        new = data.new_documents(as_corpus(COUNTS[:3]), columns, unseen=True)
        *_, last = fold_in(posterior, new, random_seed=4)
        x = (np.array([3.0, 3.0, 7.0]) - np.mean(data.design.columns.values[:, 0])) / np.std(
            data.design.columns.values[:, 0]
        )
        B, u = posterior["coefficients"][0, 0], posterior["effects"][0, 0]
        for d, (effect, scale, group) in enumerate([(u[1], 1.0, 0), (0.0, 1.5, 0), (u[0], 1.0, 1)]):
            mu = B[0] + x[d] * B[1] + effect
            plain = repeated(6, mu=mu, Sigma=scale * SIGMA, topics=self.GROUPS[group])
            single = as_corpus(COUNTS[d : d + 1])
            moved = data.new_documents(single, {k: [v[d]] for k, v in columns.items()}, unseen=True)
            *_, alone = fold_in(posterior, moved, random_seed=4)
            np.testing.assert_array_equal(alone.theta[0], last.theta[d])
            *_, expected = fold_in(plain, single, random_seed=4)
            np.testing.assert_allclose(last.theta[d], expected.theta[0], rtol=1e-9)

    def test_covariates_matter(self, data, posterior):
        """They used to be ignored, and the posterior refused."""
        same = as_corpus(np.repeat(COUNTS[:1], 2, axis=0))
        early, late = ({"year": y, "who": "a", "party": "D"} for y in (-9.0, 9.0))
        theta = [
            np.mean([f.theta[0] for f in fold_in(posterior, data.new_documents(same, x))], axis=0)
            for x in (early, late)
        ]
        assert np.abs(theta[0] - theta[1]).max() > 0.1

    def test_what_does_not_fit_is_refused(self, data, posterior):
        with pytest.raises(ValueError, match=r"corpus must have the covariates .*new_documents"):
            next(fold_in(posterior, as_corpus(COUNTS)))
        anew = with_covariates(
            as_corpus(COUNTS), self.COLUMNS | {"year": [9.0, 1.0, 2.0, 4.0, 5.0]},
            "~ year + (1 | who)", content="~ party",
        )  # fmt: skip
        with pytest.raises(ValueError, match=r"coded as the posterior's .*by themselves"):
            next(fold_in(posterior, anew))
        other = with_covariates(as_corpus(COUNTS), {"x": np.arange(5.0)})
        with pytest.raises(ValueError, match="covariates Intercept, year, got Intercept, x"):
            next(fold_in(posterior, other))
        bare = with_covariates(as_corpus(COUNTS), self.COLUMNS, "~ year + (1 | who)")
        with pytest.raises(ValueError, match="content"):
            next(fold_in(posterior, bare))
