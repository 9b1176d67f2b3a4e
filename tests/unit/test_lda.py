"""Latent Dirichlet allocation: its concentrations, its sweeps, what it keeps."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from pgmult import LDA, UncollapsedLDA, as_corpus, sample
from pgmult.compiled._rows import row_threads
from pgmult.updates.concentrations import sample_concentration, sample_concentrations


@pytest.fixture
def rng():
    return np.random.default_rng(21)


@pytest.fixture
def corpus(rng):
    """Forty documents of 0 to about 30 tokens, one of them empty, one word never used."""
    counts = rng.poisson(0.6, size=(40, 25))
    counts[3] = 0
    counts[:, 7] = 0
    return as_corpus(counts, [f"word{v}" for v in range(25)])


def exact_cdf(log_density):
    """The distribution function of a positive variable, by quadrature on its logarithm."""
    grid = np.linspace(-12.0, 6.0, 20_001)
    log_weight = log_density(np.exp(grid)) + grid
    running = np.cumsum(np.exp(log_weight - log_weight.max()))
    return lambda x: np.interp(np.log(x), grid, running / running[-1])


def log_symmetric(counts, shape, rate):
    """Log density of eta given counts, ``(num_categories, num_columns)``, probabilities summed."""
    categories = len(counts)

    def log_density(eta):
        eta = eta[:, None, None]
        each = (gammaln(counts + eta) - gammaln(eta)).sum(axis=(1, 2))
        whole = gammaln(categories * eta) - gammaln(counts.sum(axis=0) + categories * eta)
        eta = eta[:, 0, 0]
        return each + whole.sum(axis=(1, 2)) + (shape - 1.0) * np.log(eta) - rate * eta

    return log_density


@pytest.mark.parametrize(
    "counts",
    [
        [[5, 0], [0, 3], [1, 1], [0, 9]],
        [[30, 0, 0], [0, 12, 0], [0, 0, 0]],
        [[0], [0], [0]],
        [[7, 5, 3], [6, 7, 4]],
    ],
    ids=["spread", "one word a topic", "no tokens", "even"],
)
def test_one_concentration_has_its_exact_posterior(rng, counts):
    counts = np.array(counts)
    exact = exact_cdf(log_symmetric(counts, 2.0, 1.5))
    eta, draws = 1.0, []
    for i in range(20_000):
        eta = sample_concentration(rng, eta, counts, 2.0, 1.5)
        if i % 10 == 9:
            draws.append(eta)
    assert stats.kstest(draws, exact).pvalue > 1e-3
    if counts.any():  # had the counts been ignored, this would be the prior
        assert stats.kstest(draws, stats.gamma(2.0, scale=1 / 1.5).cdf).pvalue < 1e-6


def test_concentrations_have_their_exact_posterior(rng):
    """Given the other one, each of two is a curve: its draws' ranks there are uniform."""
    counts = np.array([[6, 0], [3, 1], [0, 0], [2, 4]])
    totals = counts.sum(axis=1)

    def log_density(a, b):
        each = gammaln(counts[:, 0] + a[:, None]) - gammaln(a[:, None])
        whole = gammaln(a[:, None] + b) - gammaln(totals + a[:, None] + b)
        return (each + whole).sum(axis=1) - 0.5 * a

    alpha, ranks = np.ones(2), []
    for i in range(8_000):
        alpha = sample_concentrations(rng, alpha, counts, 1.0, 0.5)
        if i % 20 == 19:
            ranks.append(exact_cdf(lambda a, b=alpha[1]: log_density(a, b))(alpha[0]))
    assert stats.kstest(ranks, "uniform").pvalue > 1e-3


def test_a_learned_concentration_finds_the_one_that_made_the_words(rng):
    """From far above, from words whose topics are known."""
    true = 0.1
    topics = rng.dirichlet(np.full(200, true), size=10)
    counts = np.array([rng.multinomial(400, row) for row in topics]).T
    eta, draws = 5.0, []
    for i in range(300):
        eta = sample_concentration(rng, eta, counts, 1.0, 1.0)
        if i >= 100:
            draws.append(eta)
    assert abs(np.mean(draws) - true) < 4.0 * np.std(draws)
    assert np.std(draws) < 0.2 * true


def test_lda_says_how_large_its_topics_are(rng, corpus):
    model = LDA(4)
    state = model.init(rng, corpus)
    shares = model.topic_shares(state, corpus)
    for k in range(4):
        assert shares[k] == pytest.approx(np.mean(state.assignments == k))
    entropy = stats.entropy(shares)
    assert model.effective_topics(state, corpus) == pytest.approx(np.exp(entropy))
    empty = as_corpus(np.zeros((2, 3), dtype=int))
    nothing = model.step(rng, model.init(rng, empty), empty)
    np.testing.assert_array_equal(model.topic_shares(nothing, empty), np.zeros(4))


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_what_lda_keeps(corpus):
    options = {"draws": 5, "tune": 1, "chains": 2, "random_seed": 0, "progressbar": False}
    learned = sample(LDA(3, word_concentration=None), corpus, **options)
    assert learned["word_concentration"].shape == (2, 5)
    assert len(np.unique(learned["word_concentration"])) == 10
    assert learned["topic_shares"].shape == (2, 5, 3)
    np.testing.assert_allclose(learned["topic_shares"].sum(axis=-1), 1.0)
    assert learned["effective_topics"].max() <= 3.0 + 1e-12
    given = sample(LDA(3, word_concentration=0.3), corpus, **options)
    assert (given["word_concentration"] == 0.3).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"word_concentration": 0.0}, "word_concentration must be positive"),
        ({"word_shape": -1.0}, "word_shape must be positive"),
        ({"word_rate": np.inf}, "word_rate must be finite"),
        ({"alpha_rate": 0.0}, "alpha_rate must be positive"),
        ({"num_topics": 1}, "num_topics must be at least 2, got 1"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        LDA(**({"num_topics": 3} | arguments))


@pytest.mark.parametrize("kind", [LDA, UncollapsedLDA])
def test_same_seed_same_draws_for_any_number_of_threads(kind):
    corpus = as_corpus(np.random.default_rng(5).poisson(0.1, size=(300, 50)))
    model = kind(5, word_concentration=None)

    def run(threads):
        rng = np.random.default_rng(2)
        with row_threads(threads):
            state = model.init(rng, corpus)
            for _ in range(3):
                state = model.step(rng, state, corpus)
        return state

    reference, state = run(1), run(3)
    for field in dataclasses.fields(state):
        np.testing.assert_array_equal(
            getattr(state, field.name), getattr(reference, field.name), err_msg=field.name
        )


def test_uncollapsed_lda_starts_where_its_parameters_say(rng, corpus):
    alpha = np.array([0.2, 0.4, 0.9])
    model = UncollapsedLDA(3, alpha=alpha, word_concentration=0.3, start_sweeps=0)
    state = model.init(rng, corpus)
    for _ in range(2):
        np.testing.assert_array_equal(state.alpha, alpha)
        assert state.word_concentration == 0.3
        np.testing.assert_array_equal(state.topic_counts.sum(axis=1), corpus.totals)
        np.testing.assert_allclose(state.theta.sum(axis=1), 1.0)
        np.testing.assert_allclose(state.topics.sum(axis=1), 1.0)
        state = model.step(rng, state, corpus)
    with pytest.raises(ValueError, match="start_sweeps must be at least 0, got -1"):
        UncollapsedLDA(3, start_sweeps=-1)
