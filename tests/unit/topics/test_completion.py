"""What a held-out word is told by: exact on cases small enough to enumerate, alike for all models.

A document of three tokens and one of two, three words, two topics: all 32 allocations are summed.
"""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit, gammaln, softmax

from pgmult.core.scores import mean_by_token
from pgmult.priors import NormalInverseWishart
from pgmult.topics import (
    LDA,
    CorrelatedTopics,
    DynamicTopics,
    StructuralTopics,
    as_corpus,
    as_timed_corpus,
    split_tokens,
    with_covariates,
)
from pgmult.topics.scores import DocumentCompletion
from pgmult.topics.updates.collapsed import count_topics
from pgmult.topics.updates.content import ContentPrior

SEEN = as_corpus(np.array([[2, 1, 0], [0, 1, 1]]))
HELD_OUT = as_corpus(np.array([[0, 1, 1], [1, 0, 1]]))
ETA, ALPHA = 0.5, np.array([0.7, 1.6])
MEAN, VAR = 0.4, 1.5
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)


def dirichlet_theta(topic_counts):
    """Log evidence of each document's topics, and mean proportions."""
    at = topic_counts + ALPHA
    log = (gammaln(at) - gammaln(ALPHA)).sum(1) + gammaln(ALPHA.sum()) - gammaln(at.sum(1))
    return log.sum(), at / at.sum(1, keepdims=True)


def stick_theta(topic_counts):
    """The same where the logit of the first topic is N(MEAN, VAR)."""
    share = expit(MEAN + np.sqrt(VAR) * NODES)[None]
    weight = WEIGHTS * share ** topic_counts[:, :1] * (1 - share) ** topic_counts[:, 1:]
    first = (weight * share).sum(1) / weight.sum(1)
    return np.log(weight.sum(1)).sum(), np.stack([first, 1.0 - first], axis=1)


def exact(theta_given):
    """Probability of every held-out entry given what was seen, over all allocations."""
    log, told = [], []
    for assignments in product(range(2), repeat=SEEN.num_tokens):
        z = count_topics(SEEN, np.array(assignments), 2)
        evidence, theta = theta_given(z.topic_counts)
        at = z.word_counts.T + ETA
        words = gammaln(at).sum() - gammaln(at.sum(axis=1)).sum()
        log.append(evidence + words)
        told.append((theta @ (at / at.sum(axis=1, keepdims=True)))[HELD_OUT.to_csr().nonzero()])
    return softmax(log) @ np.array(told)


TIGHT = NormalInverseWishart(
    mean=np.array([MEAN]), strength=1e8, dof=1e8, scale=np.array([[VAR * 1e8]])
)
MODELS = {
    "LDA": (LDA(2, word_concentration=ETA, alpha=ALPHA), dirichlet_theta),
    "sticks": (CorrelatedTopics(2, ETA, gaussian=TIGHT), stick_theta),
}


@pytest.mark.parametrize("name", MODELS)
def test_completion_is_the_exact_probability_of_a_held_out_word(name):
    model, theta_given = MODELS[name]
    rng, completion = np.random.default_rng(4), DocumentCompletion(HELD_OUT, every=1)
    state = model.init(rng, SEEN)
    for index in range(1000):
        state = model.step(rng, state, SEEN)
        completion(sweep_of(model, state, SEEN, index, chain=index // 50))
    score = completion.score()
    expected = np.log(exact(theta_given)).reshape(2, 2).sum(axis=1)
    error = score.by_chain.std(axis=0, ddof=1) / np.sqrt(len(score.by_chain))
    assert (np.abs(score.by_unit - expected) < 4.5 * error).all()
    assert error.max() < 0.05


def sweep_of(model, state, data, index=0, chain=0):
    return SimpleNamespace(
        chain=chain, index=index, tuning=False, state=state, model=model, data=data
    )


def test_means_given_the_tokens_topics_are_those_of_the_draws(rng):
    """With groups and keywords, too: the words of a sweep drawn many times anew."""
    counts = as_corpus(rng.poisson(1.0, size=(20, 5)), [f"w{v}" for v in range(5)])
    data = with_covariates(counts, {"party": list("DR") * 10}, "~ 1", content="~ party")
    model = StructuralTopics(2, 0.5, keywords={"first": ["w0", "w3"]})
    state = model.step(rng, model.init(rng, data), data)
    means, draws = [], []
    word_counts = np.random.default_rng(0).integers(30, size=(2, 10))
    for _ in range(600):
        moved = replace(state, **model.words(data).given(rng, state, word_counts, data))
        means.append(model.mean_topics(moved, data))
        draws.append(model.words(data).table(moved))
    means, draws = np.array(means), np.array(draws)
    error = (means - draws).std(axis=0) / np.sqrt(len(draws))
    assert (np.abs((means - draws).mean(axis=0)) < 4.5 * error).all()
    assert means.std(axis=0).mean() < 0.9 * draws.std(axis=0).mean()


def test_every_state_is_told_by_draws_of_its_own(rng):
    training, held_out = split_tokens(
        as_corpus(rng.poisson(1.0, size=(8, 6))), documents=4, random_seed=0
    )
    model = CorrelatedTopics(2, start_sweeps=2)
    sweep = sweep_of(model, model.init(rng, training), training)
    once, twice = (DocumentCompletion(held_out, every=1) for _ in range(2))
    for completion, times in ((once, 1), (twice, 2)):
        for _ in range(times):
            completion(sweep)
    assert (once.score().by_unit != twice.score().by_unit).any()


def words_of_groups(state, training):
    """Mean words of each document's group given the topics of all tokens."""
    prior = state.content_concentration[:, None] * state.topics
    varied = state.word_counts + prior
    return (varied / varied.sum(axis=2, keepdims=True))[training.content.codes]


PARTIES = {"party": list("DR") * 20}
# a model, its states, its data, and words of topics by document
AVERAGED = {
    "plain": (
        CorrelatedTopics(3),
        CorrelatedTopics.prior,
        as_corpus,
        lambda state, data: state.topics[None],
    ),
    "by time": (
        DynamicTopics(3, start_sweeps=2),
        DynamicTopics.prior,
        lambda training: as_timed_corpus(training, np.arange(40) % 4),
        lambda state, data: state.topics[:, data.times].transpose(1, 0, 2),
    ),
    "by group": (
        StructuralTopics(3, content=ContentPrior(start_sweeps=2), start_sweeps=2),
        lambda model, rng, data: model.step(rng, model.init(rng, data), data),
        lambda training: with_covariates(training, PARTIES, "~ 1", content="~ party"),
        words_of_groups,
    ),
}


@pytest.mark.parametrize("kind", AVERAGED)
def test_completion_averages_probabilities_over_draws(rng, corpus, kind):
    """By the words of the document's own time or group; every second draw is scored."""
    model, begin, data_of, words_of = AVERAGED[kind]
    training, held_out = split_tokens(corpus, documents=10)
    data, rows = data_of(training), np.flatnonzero(held_out.totals)
    completion = DocumentCompletion(held_out, every=2)
    with pytest.raises(ValueError, match="no draws yet"):
        completion.score()
    dense = np.zeros((len(rows), corpus.num_words))
    for chain, index in product(range(2), range(4)):
        state = begin(model, rng, data)
        completion(sweep_of(model, state, data, index, chain))
        if index % 2 == 0:
            own = np.random.default_rng([chain, index // 2])  # by draws that were scored
            theta = model.mean_theta(own, state, data, rows, 4)  # of 40 documents for ten
            words = np.broadcast_to(words_of(state, data), (40, 3, corpus.num_words))
            dense += np.einsum("dk,dkv->dv", theta, words[rows]) / 4
    counts = held_out.to_csr().toarray()[rows]
    used = counts > 0
    expected = np.sum(counts[used] * np.log(dense[used])) / counts.sum()
    assert completion.score().num_draws == 4
    assert completion.score(1).num_draws == 2
    assert completion.log_predictive == pytest.approx(expected, rel=1e-10)
    assert completion.score().by_unit.sum() == pytest.approx(expected * counts.sum())


def test_paired_difference_is_that_of_a_ratio(rng):
    totals = np.array([10, 0, 30, 5])
    base = -7.0 * totals
    level, error = mean_by_token(base + 0.1 * totals - base, totals)
    assert level == pytest.approx(0.1)
    assert error == pytest.approx(0.0, abs=1e-12)
    gains = np.array([1.0, 0.0, 6.0, -0.5])
    level, error = mean_by_token(base + gains - base, totals)
    residuals = (gains - gains.sum() / 45 * totals)[totals > 0]
    assert level == pytest.approx(6.5 / 45)
    assert error == pytest.approx(np.sqrt(3 / 2 * np.sum(residuals**2)) / 45)
