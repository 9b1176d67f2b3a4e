"""Variational inference: the bound against Monte Carlo and quadrature, its updates, its streams."""

import dataclasses

import numpy as np
import pytest
from scipy.special import digamma

from pgmult import (
    DiagonalPotential,
    Dirichlet,
    MvNormal,
    NormalInverseWishart,
    StickBreaking,
    sample,
)
from pgmult.compiled.rows import row_threads
from pgmult.topics import CorrelatedTopics, as_corpus, split_tokens
from pgmult.topics.fits.stick_breaking import VariationalTopics, fit_cavi, fit_svi
from pgmult.topics.scores.completion import completion_score, unigram_log_predictive


def simulate(seed, num_documents=60, num_words=24, tokens=50, num_topics=3, concentration=0.2):
    """Documents of overlapping topics, and the theta they were drawn with."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(num_words, concentration), size=num_topics)
    n = num_topics - 1
    theta = StickBreaking().probs(
        rng.multivariate_normal(np.zeros(n), 1.5 * np.eye(n), size=num_documents)
    )
    counts = np.array([rng.multinomial(tokens, p) for p in theta @ topics])
    return as_corpus(counts), theta, topics


@pytest.fixture(scope="module")
def corpus():
    counts = simulate(0)[0].to_csr().toarray()
    counts[7] = 0
    counts[:, 5] = 0
    return as_corpus(counts)


@pytest.fixture(scope="module")
def model():
    return CorrelatedTopics(3, word_concentration=0.3)


@pytest.fixture(scope="module")
def fitted(model, corpus):
    """At the bound's maximum to rounding error."""
    return fit_cavi(model, corpus, tolerance=1e-13, max_iterations=5000, random_seed=1, cores=1)


def mean_log_sigmoid(mean, var):
    """E log sigma(psi) by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    psi = mean[..., None] + np.sqrt(var)[..., None] * nodes
    return -np.logaddexp(0.0, -psi) @ weights / np.sqrt(2.0 * np.pi)


def mean_log_theta(mean, var):
    taken, left = mean_log_sigmoid(mean, var), mean_log_sigmoid(-mean, var)
    before = np.concatenate([np.zeros((len(mean), 1)), np.cumsum(left, axis=1)], axis=1)
    return before + np.concatenate([taken, np.zeros((len(mean), 1))], axis=1)


def log_theta_bound(mean, var):
    """The bound of Jaakkola and Jordan (2000) of E log theta."""
    xi = np.sqrt(mean**2 + var)
    both = 0.5 * xi + np.log1p(np.exp(-xi))
    left = np.cumsum(-0.5 * mean - both, axis=1)
    before = np.concatenate([np.zeros((len(mean), 1)), left], axis=1)
    return before + np.concatenate([0.5 * mean - both, np.zeros((len(mean), 1))], axis=1)


def natural(gaussian):
    """Natural parameters of a normal-inverse-Wishart, in one vector."""
    between = gaussian.strength * np.outer(gaussian.mean, gaussian.mean)
    return np.concatenate(
        [
            gaussian.strength * gaussian.mean,
            [gaussian.strength, gaussian.dof],
            (gaussian.scale + between).ravel(),
        ]
    )


def test_q_of_the_sticks_is_the_prior_times_the_expected_potential(fitted, corpus):
    """Against the dense Gaussian, the link's own mean field and a dense q(z)."""
    documents = fitted.infer(corpus, tolerance=1e-13, max_steps=10_000)
    dense = documents.prior.condition(documents.potential)
    np.testing.assert_allclose(documents.mean, dense.mean(), atol=1e-12)
    variances = np.diagonal(dense.cov(), axis1=1, axis2=2)
    np.testing.assert_allclose(documents.var, variances, atol=1e-12)
    expected = StickBreaking().expected(documents.mean, documents.var, documents.topic_counts)
    np.testing.assert_allclose(documents.potential.J, expected.J, atol=1e-9)
    np.testing.assert_allclose(documents.potential.h, expected.h, atol=1e-9)
    share = responsibilities(fitted, documents)
    counts = np.einsum("dw,dwk->dk", corpus.to_csr().toarray(), share)
    np.testing.assert_allclose(documents.topic_counts, counts, atol=1e-9)


def responsibilities(q, documents):
    """q(z), ``(num_documents, num_words, num_topics)``."""
    log_topics = digamma(q.concentration) - digamma(q.concentration.sum(axis=1, keepdims=True))
    logits = log_theta_bound(documents.mean, documents.var)[:, None, :] + log_topics.T
    share = np.exp(logits - logits.max(axis=2, keepdims=True))
    return share / share.sum(axis=2, keepdims=True)


@pytest.mark.parametrize("num_topics", [2, 3, 6, 9, 14])
def test_lanes_of_every_size_agree_with_dense_algebra(num_topics):
    corpus, _, _ = simulate(num_topics, num_documents=21, num_topics=num_topics)
    model = CorrelatedTopics(num_topics)
    q = VariationalTopics.start(np.random.default_rng(0), model, corpus)
    documents = q.infer(corpus, max_steps=2)
    dense = documents.prior.condition(documents.potential)
    np.testing.assert_allclose(documents.mean, dense.mean(), atol=1e-11)
    covariances = dense.cov()
    np.testing.assert_allclose(
        documents.var, np.diagonal(covariances, axis1=1, axis2=2), rtol=1e-11
    )
    asked = q.update(corpus, step_size=1.0).gaussian
    documents = q.infer(corpus, tolerance=1e-3, max_steps=50)
    within = documents.prior.condition(documents.potential).cov().sum(axis=0)
    expected = model.gaussian.condition(documents.mean)
    np.testing.assert_allclose(asked.scale, expected.scale + within, rtol=1e-10)
    np.testing.assert_allclose(asked.mean, expected.mean, rtol=1e-10)
    assert (asked.strength, asked.dof) == (expected.strength, expected.dof)


@pytest.mark.slow
def test_the_bound_is_the_expected_log_joint_less_the_expected_log_q():
    """Term by term against draws from q; leaving out any part would be seen."""
    rng = np.random.default_rng(3)
    corpus = as_corpus(np.array([[3, 0, 2, 1], [0, 4, 1, 0], [1, 1, 0, 6]]))
    model = CorrelatedTopics(
        3, 0.9, NormalInverseWishart(np.array([0.3, -0.2]), 0.7, 6.0, np.diag([2.0, 3.0]))
    )
    q = VariationalTopics.start(rng, model, corpus)
    q = q.update(corpus, step_size=0.5)  # away from any optimum
    documents = q.infer(corpus, max_steps=3)
    share = responsibilities(q, documents)
    counts = corpus.to_csr().toarray()
    psi_law = documents.prior.condition(documents.potential)
    words = Dirichlet(q.concentration)
    prior = Dirichlet(np.full_like(q.concentration, model.word_concentration))
    tokens = counts[:, :, None] * share
    draws: dict[str, list[float]] = {}
    for _ in range(6000):
        mu, Sigma = q.gaussian.sample(rng)
        topics, psi = words.sample(rng), psi_law.sample(rng)
        parts = {
            "words": np.sum(tokens * np.log(topics.T)),
            "z": np.sum(tokens.sum(axis=1) * StickBreaking().log_probs(psi)),
            "entropy of z": -np.sum(tokens * np.log(share)),
            "psi": MvNormal(mu, Sigma).log_density(psi).sum(),
            "entropy of psi": -psi_law.log_density(psi).sum(),
            "topics": prior.log_density(topics).sum(),
            "entropy of topics": -words.log_density(topics).sum(),
            "gaussian": model.gaussian.log_density(mu, Sigma),
            "entropy of gaussian": -q.gaussian.log_density(mu, Sigma),
        }
        for name, value in parts.items():
            draws.setdefault(name, []).append(float(value))
    values = {name: np.array(list_) for name, list_ in draws.items()}
    slack = np.sum(
        documents.topic_counts
        * (
            mean_log_theta(documents.mean, documents.var)
            - log_theta_bound(documents.mean, documents.var)
        )
    )
    bound = q.bound(documents)
    groups = {
        bound.documents + slack: ("words", "z", "entropy of z", "psi", "entropy of psi"),
        bound.topics: ("topics", "entropy of topics"),
        bound.gaussian: ("gaussian", "entropy of gaussian"),
    }
    for term, names in groups.items():
        total = np.sum([values[name] for name in names], axis=0)
        error = total.std() / np.sqrt(len(total))
        assert abs(total.mean() - term) < 4.0 * error
        for name in names:
            assert abs(values[name].mean()) > 8.0 * error, name
    assert slack > 0.0
    assert bound.total == pytest.approx(bound.documents + bound.topics + bound.gaussian)


def test_every_update_raises_the_bound(model, corpus):
    q = VariationalTopics.start(np.random.default_rng(4), model, corpus)
    levels = []
    for max_steps in range(1, 8):  # of q(psi), q(z)
        documents = q.infer(corpus, tolerance=1e-12, max_steps=max_steps)
        levels.append(q.bound(documents).total)
    assert (np.diff(levels) > 0).all()
    fit = fit_cavi(model, corpus, tolerance=1e-12, max_iterations=60, random_seed=4)
    assert (np.diff(fit.history) > 0).all()


def test_no_change_of_q_raises_the_bound_of_a_fit(fitted, corpus):
    """The envelope: documents follow, and still every direction goes down."""
    assert fitted.converged
    rng = np.random.default_rng(6)

    def level(q):
        return q.bound(q.infer(corpus, tolerance=1e-12, max_steps=5000)).total

    best = level(fitted)
    assert best == pytest.approx(fitted.objective, rel=1e-9)
    gaussian = fitted.gaussian
    changes = []
    for size in (0.02, -0.02):
        factors = 1.0 + size * rng.standard_normal(fitted.concentration.shape)
        changes += [
            {"concentration": fitted.concentration * factors},
            {"concentration": fitted.concentration * (1.0 + size)},
            {"gaussian": dataclasses.replace(gaussian, mean=gaussian.mean + size)},
            {"gaussian": dataclasses.replace(gaussian, strength=gaussian.strength * (1 + size))},
            {"gaussian": dataclasses.replace(gaussian, scale=gaussian.scale * (1 + size))},
            {"gaussian": dataclasses.replace(gaussian, dof=gaussian.dof * (1 + size))},
            {
                "gaussian": dataclasses.replace(
                    gaussian, scale=gaussian.scale * (1 + size), dof=gaussian.dof * (1 + size)
                )
            },
        ]
    for change in changes:
        assert level(dataclasses.replace(fitted, **change)) < best - 1e-8, change


def test_a_full_step_from_all_documents_is_one_batch_iteration(model, corpus):
    start = VariationalTopics.start(np.random.default_rng(5), model, corpus)
    stepped = start.update(corpus, step_size=1.0)
    batch = fit_cavi(model, corpus, max_iterations=2, random_seed=5)
    np.testing.assert_array_equal(stepped.concentration, batch.concentration)
    np.testing.assert_array_equal(natural(stepped.gaussian), natural(batch.gaussian))
    whole = fit_svi(
        model, corpus, batch_size=60, max_epochs=1, delay=0.0, random_seed=5, cores=1
    )  # one minibatch of all documents and a first step of 1
    assert len(whole.history) == 1
    assert whole.num_updates == 1


def test_a_step_mixes_natural_parameters(model, corpus):
    start = VariationalTopics.start(np.random.default_rng(5), model, corpus)
    full, part = start.update(corpus, step_size=1.0), start.update(corpus, step_size=0.3)
    for get in (lambda q: q.concentration, lambda q: natural(q.gaussian)):
        np.testing.assert_allclose(get(part), 0.7 * get(start) + 0.3 * get(full), rtol=1e-10)
    scheduled = start.update(corpus, delay=3.0, forgetting=0.8)
    by_hand = start.update(corpus, step_size=4.0**-0.8)
    np.testing.assert_array_equal(scheduled.concentration, by_hand.concentration)


def test_a_minibatch_stands_for_its_share(model, corpus):
    """Half of a corpus of which every document occurs twice is as good as all of it."""
    start = VariationalTopics.start(np.random.default_rng(5), model, corpus)
    counts = corpus.to_csr().toarray()
    twice = as_corpus(np.concatenate([counts, counts]))
    half = start.update(corpus, 2 * corpus.num_documents, step_size=0.6)
    whole = start.update(twice, step_size=0.6)
    np.testing.assert_allclose(half.concentration, whole.concentration, rtol=1e-10)
    np.testing.assert_allclose(natural(half.gaussian), natural(whole.gaussian), rtol=1e-10)
    sampled = start.bound(start.infer(corpus), 2 * corpus.num_documents)
    assert sampled.total == pytest.approx(start.bound(start.infer(twice)).total, rel=1e-10)


@pytest.mark.slow
def test_a_stream_ends_near_the_batch_optimum():
    corpus, _, _ = simulate(8, num_documents=400)
    model = CorrelatedTopics(3, word_concentration=0.3)
    batch = fit_cavi(model, corpus, random_seed=2, tolerance=1e-9, max_iterations=500)
    stream = fit_svi(
        model, corpus, batch_size=50, max_epochs=100, delay=5.0, tolerance=1e-9, random_seed=3
    )
    reached = stream.bound(stream.infer(corpus)).total
    start = VariationalTopics.start(np.random.default_rng(3), model, corpus)
    begun = start.bound(start.infer(corpus)).total
    best = batch.objective
    assert begun < reached < best + 1e-6 * abs(best)
    assert best - reached < 0.1 * (best - begun)
    assert stream.objective == pytest.approx(reached, rel=2e-3)


def test_same_bits_for_any_number_of_threads():
    corpus, _, _ = simulate(9, num_documents=300)
    model = CorrelatedTopics(3)
    one, two = (fit_cavi(model, corpus, max_iterations=5, random_seed=1, cores=c) for c in (1, 2))
    np.testing.assert_array_equal(one.history, two.history)
    np.testing.assert_array_equal(one.concentration, two.concentration)
    np.testing.assert_array_equal(natural(one.gaussian), natural(two.gaussian))
    with row_threads(3, grain=7):
        theta = one.theta(corpus)
    np.testing.assert_array_equal(one.theta(corpus), theta)
    stream = [
        fit_svi(model, corpus, max_epochs=2, batch_size=100, random_seed=1, cores=c) for c in (1, 2)
    ]
    np.testing.assert_array_equal(stream[0].concentration, stream[1].concentration)


def test_a_document_does_not_depend_on_its_neighbours(fitted, corpus):
    counts = corpus.to_csr()
    rows = [3, 41, 7, 12]
    theta = fitted.theta(corpus)
    np.testing.assert_allclose(fitted.theta(as_corpus(counts[rows])), theta[rows], rtol=1e-12)
    np.testing.assert_allclose(fitted.theta(counts[[41]].toarray()), theta[[41]], rtol=1e-12)


def test_an_empty_document_is_its_prior(fitted, corpus):
    documents = fitted.infer(corpus)
    np.testing.assert_allclose(documents.mean[7], fitted.gaussian.mean, atol=1e-14)
    np.testing.assert_array_equal(documents.potential.J[7], 0.0)
    assert documents.topic_counts[7].sum() == 0.0
    np.testing.assert_allclose(documents.topic_counts.sum(axis=1), corpus.totals, rtol=1e-12)


def test_mean_theta_is_the_average_over_q(fitted, corpus):
    documents = fitted.infer(corpus)
    law = MvNormal(fitted.gaussian.mean, documents.prior.prior_cov).condition(
        DiagonalPotential(documents.potential.J, documents.potential.h)
    )
    rng = np.random.default_rng(0)
    draws = np.array([StickBreaking().probs(law.sample(rng)) for _ in range(4000)])
    theta = documents.theta()
    np.testing.assert_allclose(theta.sum(axis=1), 1.0, rtol=1e-12)
    assert np.abs((theta - draws.mean(axis=0)) / draws.std(axis=0)).max() < 0.25
    plugged_in = StickBreaking().probs(documents.mean)
    assert (
        np.abs(theta - draws.mean(axis=0)).mean()
        < 0.5 * np.abs(plugged_in - draws.mean(axis=0)).mean()
    )


def test_held_out_tokens_are_scored_under_posterior_means():
    corpus, _, _ = simulate(2, num_documents=150)
    training, held_out = split_tokens(corpus, documents=40)
    fit = fit_cavi(CorrelatedTopics(3), training, random_seed=0)
    theta = fit.theta(training)
    score = completion_score([(theta, fit.topics)], held_out)
    counts = held_out.to_csr().toarray()
    by_hand = np.sum(counts * np.log(theta @ fit.topics)) / counts.sum()
    assert score.log_predictive == pytest.approx(by_hand, rel=1e-12)
    assert by_hand > unigram_log_predictive(training, held_out).log_predictive + 0.1
    with pytest.raises(ValueError, match="at least one pair"):
        completion_score([], held_out)
    with pytest.raises(ValueError, match="no tokens"):
        completion_score([(theta, fit.topics)], as_corpus(np.zeros((150, 24), int)))
    with pytest.raises(ValueError, match=r"must be \(150, 24\)"):
        completion_score([(theta[:9], fit.topics)], held_out)


def test_tiny_concentrations_do_not_underflow():
    corpus, _, _ = simulate(1)
    fit = fit_cavi(CorrelatedTopics(3, word_concentration=1e-4), corpus, random_seed=0)
    assert np.isfinite(fit.history).all()
    assert np.isfinite(fit.theta(corpus)).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda q, c: q.update(c, 10), ValueError, "num_documents must be at least 60"),
        (lambda q, c: q.update(as_corpus(np.zeros((3, 24), int))), ValueError, "one token"),
        (lambda q, c: q.infer(as_corpus(np.ones((3, 5), int))), ValueError, "must have 24 words"),
        (lambda q, c: fit_cavi(q.model, as_corpus(np.zeros((3, 4), int))), ValueError, "one token"),
    ],
)
def test_bad_arguments_are_refused(fitted, corpus, call, error, message):
    with pytest.raises(error, match=message):
        call(fitted, corpus)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_means_agree_with_gibbs_and_spreads_are_too_small():
    """Three topics of disjoint words, a long chain started at the fit, so with its labels."""
    rng = np.random.default_rng(0)
    truth = np.kron(np.eye(3), np.full((1, 10), 0.1))
    psi = rng.multivariate_normal([-0.7, 0.0], [[2.0, -1.0], [-1.0, 2.0]], size=200)
    counts = [rng.multinomial(40, p) for p in StickBreaking().probs(psi) @ truth]
    corpus, model = as_corpus(np.array(counts)), CorrelatedTopics(3, word_concentration=0.5)
    fit = fit_cavi(model, corpus, tolerance=1e-9, max_iterations=1000, random_seed=0)
    documents = fit.infer(corpus, tolerance=1e-9)
    start = dataclasses.replace(
        model.init(rng, corpus), psi=documents.mean, topics=fit.topics, mu=fit.gaussian.mean,
        Sigma=documents.prior.prior_cov, topic_counts=np.rint(documents.topic_counts),
    )  # fmt: skip
    posterior = sample(
        model, corpus, draws=2000, tune=500, chains=1, random_seed=0, progressbar=False,
        keep=["topics", "theta", "psi", "Sigma"], starts=start,
    )  # fmt: skip
    topics, theta = posterior.stack("topics"), posterior.stack("theta")
    assert np.abs(topics.mean(axis=0) - fit.topics).sum(axis=1).max() < 0.3
    assert np.abs(documents.theta() - theta.mean(axis=0)).mean() < 0.5 * theta.std(axis=0).mean()
    sticks = np.sqrt(documents.var) / posterior.stack("psi").std(axis=0)
    assert 0.5 < np.median(sticks) < 0.85
    Sigma = posterior.stack("Sigma").mean(axis=0)
    assert 0.4 < np.trace(documents.prior.prior_cov) / np.trace(Sigma) < 0.85
    totals = fit.concentration.sum(axis=1, keepdims=True)
    spread = np.sqrt(fit.topics * (1.0 - fit.topics) / (totals + 1.0))
    assert np.median(spread / topics.std(axis=0)) < 0.5
