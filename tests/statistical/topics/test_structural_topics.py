"""The structural topic model is sampled right, is refused when broken, and finds known effects."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pgmult import LogisticNormal, MatrixNormalInverseWishart, Posterior, sample
from pgmult.priors.mixed_regression import MixedRegression
from pgmult.sampling import Origin
from pgmult.sampling.blocks import Sums
from pgmult.testing import check_geweke, check_model, check_sbc, conditional_ratio, mutant, rejects
from pgmult.topics import StructuralTopics, as_corpus, effects, with_covariates
from pgmult.topics.starts import searches

pytestmark = pytest.mark.slow

# Six short documents, one of them empty; only the first one has the last word.
COUNTS = [[2, 1, 2, 1], [2, 1, 1, 0], [0, 0, 0, 0], [0, 2, 2, 0], [1, 0, 3, 0], [2, 2, 0, 0]]
DATA = with_covariates(
    as_corpus(COUNTS), {"year": [1.0, 2.0, 4.0, 7.0, 8.0, 3.0], "party": list("DRRDDR")}
)
PRIOR = MatrixNormalInverseWishart(
    mean=np.array([[0.8, -0.5, 0.0], [0.6, 0.0, -0.2], [-0.7, 0.5, 0.1]]),
    row_precision=np.array([[1.5, 0.4, 0.0], [0.4, 1.0, 0.2], [0.0, 0.2, 0.8]]),
    dof=6.0,
    scale=np.array([[2.0, 0.8, 0.0], [0.8, 1.5, -0.4], [0.0, -0.4, 1.0]]),
)
MODEL = StructuralTopics(num_topics=3, word_concentration=0.8, regression=PRIOR, start_sweeps=2)


def regression_of(state, data):
    """What a regression of psi on the covariates would find."""
    return data.covariates.T @ state.psi


STATISTICS = {
    **{
        name: lambda state, data, name=name: getattr(state, name)
        for name in ("psi", "coefficients", "Sigma", "topics", "topic_counts")
    },
    "regression": regression_of,
    "log_likelihood": MODEL.log_likelihood,
}
IDENTIFIED = ["log_likelihood", "effective_topics"]


@pytest.mark.parametrize(
    ("model", "replicates"),
    [(MODEL, 1000), (StructuralTopics(2, word_concentration=1.5, block_rows=2), 300)],
    ids=["3 topics", "2 topics, blocks"],
)
def test_structural_topics(model, replicates):
    own = {"log_likelihood": model.log_likelihood, "theta": model.theta}
    check_model(model, DATA, statistics=STATISTICS | own, replicates=replicates, random_seed=1)


def test_structural_topics_reach_the_posterior():
    check_sbc(MODEL, DATA, IDENTIFIED, tune=50, thin=10, replicates=60)


# ------------------------------------------------------------------ the block of B and Sigma


def coefficients_block(state, prior, covariates=DATA.covariates):
    posterior = prior.condition(state.psi, covariates)

    def log_joint(point):
        coefficients, Sigma = point
        errors = state.psi - DATA.covariates @ coefficients
        return (
            PRIOR.log_density(*point)
            + stats.multivariate_normal(np.zeros(3), Sigma).logpdf(errors).sum()
        )

    rng = np.random.default_rng(6)
    points = [PRIOR.sample(rng) for _ in range(6)]
    return log_joint, lambda point: posterior.log_density(*point), points


@pytest.fixture
def state():
    return MODEL.prior(np.random.default_rng(3), DATA)


def test_coefficients_and_Sigma_given_psi(state):
    conditional_ratio(*coefficients_block(state, PRIOR))


# ------------------------------------------------------------------ mutants


def precision_forgotten(self, rows, covariates):
    """Least squares for the mean: the prior precision left out of it."""
    right = PRIOR.condition(rows, covariates)
    flat = np.linalg.lstsq(covariates, rows, rcond=None)[0]
    return replace(right, mean=flat)


def rows_of_others(self, rows, covariates):
    return PRIOR.condition(rows, np.roll(covariates, 1, axis=0))


def scatter_without_the_shift(self, rows, covariates):
    right = PRIOR.condition(rows, covariates)
    residuals = rows - covariates @ right.mean
    return replace(right, scale=PRIOR.scale + residuals.T @ residuals)


def precision_kept(self, rows, covariates):
    return replace(PRIOR.condition(rows, covariates), row_precision=PRIOR.row_precision)


BROKEN_PRIORS = {
    "the prior precision forgotten": precision_forgotten,
    "covariates of the document before": rows_of_others,
    "the scale without the shift of the mean": scatter_without_the_shift,
    "the precision not updated": precision_kept,
}
BROKEN_PRIORS = {name: mutant(PRIOR, condition=f) for name, f in BROKEN_PRIORS.items()}


def with_state(change):
    """A model whose sweep sees a changed state."""
    return mutant(
        MODEL, step=lambda self, rng, state, data: MODEL.step(rng, change(state, data), data)
    )


def with_sums(change):
    """A model whose blocks say other things: change(sums, psi, data)."""

    def local_step(self, rng, state, data, tables=None):
        moved, held, sums = MODEL.local_step(rng, state, data, tables)
        return moved, held, Sums(sums.exact, change(sums.rounded, moved.psi, data))

    return mutant(MODEL, local_step=local_step)


def with_prior(**changes):
    """A model that takes the regression to have another prior, once it is under way."""
    other = replace(MODEL, regression=replace(PRIOR, **changes))
    return mutant(MODEL, shared_step=lambda self, *given: other.shared_step(*given))


def sums_of_others(sums, psi, data):
    covariates = np.roll(data.covariates, 1, axis=0)
    return MixedRegression.of(PRIOR, psi, covariates, []).sums


BROKEN_MODELS = {
    "a degree of freedom lost": with_prior(dof=PRIOR.dof - 1.0),
    "covariates of the document before": with_sums(sums_of_others),
    "effects left out of the mean of psi": with_state(
        lambda state, data: replace(
            state, coefficients=state.coefficients * np.array([[1.0], [0.0], [0.0]])
        )
    ),
}


@pytest.mark.parametrize("kind", BROKEN_PRIORS)
def test_conditional_ratio_refuses_broken_regressions(state, kind):
    rejects(conditional_ratio, *coefficients_block(state, BROKEN_PRIORS[kind]))


@pytest.mark.parametrize("kind", BROKEN_MODELS)
def test_geweke_refuses_broken_structural_topics(kind):
    rejects(check_geweke, BROKEN_MODELS[kind], DATA, statistics=STATISTICS, replicates=1000)


# ------------------------------------------------------------------ recovery

CORPORA = 25


def simulated_effects(rng, num_documents=150, words_a_topic=8):
    """A corpus of three topics of disjoint words, its covariate, coefficients and Sigma."""
    x = rng.normal(size=num_documents)
    coefficients = np.array([[-0.6, 0.1, 0.0], rng.normal(size=3)])
    Sigma = np.array([[0.8, 0.2, 0.0], [0.2, 0.5, -0.1], [0.0, -0.1, 0.4]])
    means = np.column_stack([np.ones(num_documents), x]) @ coefficients
    psi = means + rng.multivariate_normal(np.zeros(3), Sigma, size=num_documents)
    topics = np.kron(np.eye(3), np.full((1, words_a_topic), 1.0 / words_a_topic))
    counts = [rng.multinomial(40, theta) for theta in LogisticNormal().probs(psi) @ topics]
    return with_covariates(np.array(counts), {"x": x}), coefficients, Sigma


def fitted(rng, data, num_draws=250, tune=100):
    """Draws, and which topic of the model has the words of which true topic."""
    model = StructuralTopics(3, start_sweeps=50)
    # one start in a hundred merges two topics for good: take the best of three
    starts = [model.init(rng, data) for _ in range(3)]
    state = max(starts, key=lambda start: model.log_likelihood(start, data))
    draws = {"coefficients": [], "Sigma": []}
    for sweep in range(tune + 2 * num_draws):
        state = model.step(rng, state, data)
        if sweep >= tune and sweep % 2:
            draws["coefficients"].append(state.coefficients)
            draws["Sigma"].append(state.Sigma)
    owner = state.topics.reshape(3, 3, -1).sum(axis=2).argmax(axis=0)
    assert sorted(owner) == [0, 1, 2]
    return {name: np.array(values)[None] for name, values in draws.items()}, owner


def share_where_both_are_common(flat, monkeypatch):
    """Expected share of the first topic of two at x = 0, where half of the documents' words are it.

    Two vocabularies without a word in common: documents are far from pure, and a search for a start
    has them pure.
    """
    monkeypatch.setattr(searches, "_FLAT", flat)
    rng = np.random.default_rng(2)
    x = np.where(rng.random(600) < 0.5, 2.0, -2.0)
    psi = 0.5 + 1.5 * x + rng.normal(0.0, 0.3, 600)
    first = rng.binomial(40, 1.0 / (1.0 + np.exp(-psi)))
    counts = [
        np.concatenate([rng.multinomial(n, [1 / 6] * 6), rng.multinomial(40 - n, [1 / 6] * 6)])
        for n in first
    ]
    data = with_covariates(as_corpus(counts), {"x": x})
    run = sample(
        StructuralTopics(2), data, draws=150, tune=150, chains=2, random_seed=1, progressbar=False
    )
    found = effects(run, "x", at={"x": [0.0]})
    words = run["topics"][:, :, :, :6].sum(axis=3).mean(axis=(0, 1))
    return found.mean[0, int(words.argmax())]


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_chains_that_begin_flat_need_no_hundred_sweeps_to_get_where_the_posterior_is(monkeypatch):
    truth = np.mean(1.0 / (1.0 + np.exp(-0.5 - 0.3 * np.random.default_rng(0).normal(size=10_000))))
    assert abs(share_where_both_are_common(0.25, monkeypatch) - truth) < 0.035
    assert abs(share_where_both_are_common(1.0, monkeypatch) - truth) > 0.035, "the pure side"


def test_intervals_of_a_known_effect_cover_it():
    """Expected shares and their contrasts at 90 %, over simulated corpora, whatever the labels."""
    rng = np.random.default_rng(21)
    at = {"x": [-1.0, 1.0]}
    probability, covered, errors = 0.9, [], []
    for _ in range(CORPORA):
        data, coefficients, Sigma = simulated_effects(rng)
        plain = with_covariates(data, {"x": data.design.columns.values[:, 0]}, standardize=False)
        raw = {"coefficients": coefficients[None, None], "Sigma": Sigma[None, None]}
        exact = Posterior(raw, origin=Origin.of(StructuralTopics(3), plain))
        truth = effects(exact, "x", at=at, num_simulated=20_000)
        draws, owner = fitted(rng, data)
        posterior = Posterior(draws, origin=Origin.of(StructuralTopics(3), data))
        found = effects(posterior, "x", at=at, probability=probability)
        rise = tuple(one.difference("x", 1.0, -1.0) for one in (truth, found))
        for one, other in ((truth, found), rise):
            exact = one.mean
            lower, upper = other.lower[..., owner], other.upper[..., owner]
            covered.append(np.mean((lower <= exact) & (exact <= upper)))
            errors.append(np.abs(other.mean[..., owner] - exact).max())
    # the nine statements about one corpus are dependent: judge the corpora's averages
    averages = np.array(covered).reshape(CORPORA, 2).mean(axis=1)
    error = averages.std(ddof=1) / np.sqrt(len(averages))
    assert abs(averages.mean() - probability) < 4.0 * error
    assert error < 0.05
    assert np.max(errors) < 0.15
    assert np.median(errors) < 0.05
