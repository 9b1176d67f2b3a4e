"""`to_arviz` gives what the installed ArviZ takes: InferenceData of 0.x, DataTree of 1.x."""

import sys
import warnings

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import multinomial

import pgmult
from examples.papers.regressions.data import as_counted_rows, as_labelled_rows
from examples.papers.regressions.logistic import LogisticRegression
from examples.papers.regressions.multinomial import SoftmaxRegression, StickBreakingRegression
from pgmult.sampling import Origin, _arviz
from pgmult.sampling.posterior import Posterior


@pytest.fixture(scope="module")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz")


@pytest.fixture
def posterior():
    rng = np.random.default_rng(0)
    return Posterior(
        {
            "level": rng.normal(size=(4, 50)),
            "cov": rng.normal(size=(4, 50, 2, 2)),
            "size": rng.integers(0, 9, size=(4, 50, 3)),
        },
        dims={"level": (), "cov": ("side", "side"), "size": ("group",)},
        coords={"side": ["left", "right"]},
        sample_stats={"log_likelihood": rng.normal(size=(4, 50))},
        attrs={
            "model": "Model()",
            "seconds": [1.0, 2.0, 3.0, 4.0],
            "start_facts": [{"support": [0.5, 1.0]}],
        },
    )


def test_draws_dims_coords_and_attributes(arviz, posterior):
    data = posterior.to_arviz()
    group = data["posterior"]
    for name in posterior:
        np.testing.assert_array_equal(group[name].values, posterior[name])
    assert group["cov"].dims == ("chain", "draw", "side", "side_2")
    assert group["side"].values.tolist() == group["side_2"].values.tolist() == ["left", "right"]
    assert group["group"].values.tolist() == [0, 1, 2]
    assert group.attrs["model"] == "Model()"
    assert group.attrs["seconds"] == [1.0, 2.0, 3.0, 4.0]
    assert group.attrs["start_facts"] == '[{"support": [0.5, 1.0]}]'  # files hold nothing nested
    stats = data["sample_stats"]["total_log_likelihood"]
    np.testing.assert_array_equal(stats.values, posterior.sample_stats["log_likelihood"])


def test_arviz_can_work_with_it(arviz, posterior):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = arviz.summary(posterior.to_arviz(), round_to="none", kind="all")
    assert len(table) == 1 + 4 + 3
    mean = posterior["level"].mean()
    assert float(table.loc["level", "mean"]) == pytest.approx(mean, rel=1e-6)
    ours = posterior.summary()
    place = ours.rows.index("level")
    for column in ("ess_bulk", "r_hat"):  # the tail that 1.x looks at is another
        assert float(table.loc["level", column]) == pytest.approx(ours[column][place], rel=1e-6)


def test_says_what_to_install(posterior, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"pip install 'pgmult\[arviz\]'"):
        posterior.to_arviz()


def field_draws(spread, seed=0):
    rng = np.random.default_rng(seed)
    years = np.arange(12.0)
    shares = np.array([0.5, 0.3, 0.2])
    counts = np.random.default_rng(1).multinomial(40, shares, size=12)
    counts[4] = 0
    data = pgmult.fields.as_field(years, counts, categories=["a", "b", "c"])
    model = pgmult.fields.MultinomialGP(pgmult.fields.covariances.Matern(1.5, 5.0))
    psi = model.link(data).inverse(shares) + spread * rng.standard_normal((2, 60, 12, 2))
    made = Posterior(
        {"psi": psi}, dims={"psi": ("site", "stick")}, origin=Origin.of(model, data),
        coords={"category": ["a", "b", "c"]},
    )  # fmt: skip
    return made, data


def test_rows_come_with_their_likelihood_and_replicates(arviz):
    posterior, data = field_draws(0.1)
    made = posterior.to_arviz(data)
    pi = posterior.link.probs(posterior["psi"])
    seen = data.totals > 0
    rows = np.array([[multinomial(40, p).logpmf(x) for p, x in zip(draw[seen], data.counts[seen],
                     strict=True)] for draw in pi[1][:3]])  # fmt: skip
    np.testing.assert_allclose(made["log_likelihood"]["counts"].values[1, :3], rows)
    assert made["posterior_predictive"]["counts"].dims == ("chain", "draw", "row", "category")
    drawn = made["posterior_predictive"]["counts"].values
    assert (drawn.sum(axis=-1) == data.totals).all()
    assert np.abs(drawn[:, :, seen].mean(axis=(0, 1)) / 40 - [0.5, 0.3, 0.2]).max() < 0.05
    np.testing.assert_array_equal(made["observed_data"]["counts"].values, data.counts)
    assert made["observed_data"]["category"].values.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(made["constant_data"]["totals"].values, data.totals)


@pytest.mark.filterwarnings("ignore")
def test_arviz_compares_by_leaving_rows_out(arviz):
    good, data = field_draws(0.05)
    bad, _ = field_draws(0.6)
    scores = [arviz.loo(draws.to_arviz(data)) for draws in (good, bad)]
    elpd = [getattr(score, "elpd_loo", None) or score.elpd for score in scores]
    assert elpd[0] > elpd[1]
    table = arviz.compare({"good": good.to_arviz(data), "bad": bad.to_arviz(data)})
    assert table.index[0] == "good"


def regressions():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(15, 2))
    trials = rng.integers(1, 6, size=15)
    labelled = as_labelled_rows(x, rng.binomial(trials, 0.4), np.arange(15) % 3, trials=trials)
    counted = as_counted_rows(x, rng.multinomial(4, [0.5, 0.3, 0.2], size=15))
    return {
        "logistic": (LogisticRegression(), labelled),
        "softmax": (SoftmaxRegression(), counted),
        "sticks": (StickBreakingRegression(), counted),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["logistic", "softmax", "sticks"])
def test_rows_of_regressions_add_up_to_the_log_likelihood(arviz, name):
    model, data = regressions()[name]
    posterior = pgmult.sample(
        model, data, draws=6, tune=2, chains=2, random_seed=0, progressbar=False
    )
    made = posterior.to_arviz(data)
    counts = made["observed_data"]["counts"].values
    each = made["log_likelihood"]["counts"].values
    coefficients = gammaln(counts.sum(axis=1) + 1).sum() - gammaln(counts + 1).sum()
    np.testing.assert_allclose(
        each.sum(axis=-1) - coefficients, posterior.sample_stats["log_likelihood"]
    )
    drawn = made["posterior_predictive"]["counts"].values
    assert (drawn.sum(axis=-1) == counts.sum(axis=1)).all()
    if name == "logistic":
        np.testing.assert_array_equal(made["constant_data"]["row_group"], np.arange(15) % 3)


def test_rows_of_weights_that_are_not_whole_have_no_counts(arviz):
    model, data = regressions()["softmax"]
    data = data.with_counts(0.5 * data.counts)
    posterior = Posterior({"weights": np.zeros((1, 5, 3, 2))}, origin=Origin.of(model, data))
    with pytest.raises(ValueError, match="counts must be whole"):
        posterior.to_arviz(data)


def test_data_must_be_the_posteriors_own(arviz):
    posterior, data = field_draws(0.1)
    with pytest.raises(ValueError, match="got other ones"):
        posterior.to_arviz(data.with_counts(data.counts + 1))
    bare = Posterior({"x": np.zeros((1, 5))}, origin=Origin.of(posterior.model, data))
    with pytest.raises(ValueError, match="must have kept psi or pi"):
        bare.to_arviz(data)


def test_too_much_is_left_out_with_a_warning(arviz, monkeypatch):
    posterior, data = field_draws(0.1)
    monkeypatch.setattr(_arviz, "available_memory", lambda: 8 * 120 * 12)
    with pytest.warns(UserWarning, match="posterior_predictive is left out"):
        made = posterior.to_arviz(data)
    assert "posterior_predictive" not in made
    monkeypatch.setattr(_arviz, "available_memory", lambda: 8 * 120)
    with pytest.raises(MemoryError, match="the log likelihoods of 11 rows"):
        posterior.to_arviz(data)


def test_sequences_and_topics_have_rows_too(arviz):
    few = {"draws": 4, "tune": 2, "chains": 2, "random_seed": 0, "progressbar": False}
    words = pgmult.sequences.as_sequences(["ABAB", "BA"])
    model = pgmult.sequences.MultinomialLDS(state_dim=1)
    corpus = pgmult.topics.as_corpus([[2, 0, 1], [0, 3, 1]])
    topics = pgmult.topics.CorrelatedTopics(2, start_sweeps=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = pgmult.sample(model, words, keep=[*model.default_keep, "states", "probs"], **few)
        only_states = pgmult.sample(model, words, keep=[*model.default_keep, "states"], **few)
        made = pgmult.sample(topics, corpus, keep=["topics", "psi"], **few)
    one, other = (d.to_arviz(words)["log_likelihood"]["counts"] for d in (draws, only_states))
    np.testing.assert_allclose(one.values, other.values)
    np.testing.assert_allclose(
        one.values.sum(axis=2), draws.sample_stats["log_likelihood"], rtol=1e-8
    )
    assert made.to_arviz(corpus)["log_likelihood"]["counts"].dims == ("chain", "draw", "document")


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_steps_of_hidden_markov_models_are_told_in_turn(arviz):
    data = pgmult.sequences.as_sequences(["ABABABCA", ["A", None, "B", "C"]])
    draws = pgmult.sample(
        pgmult.sequences.MultinomialHMM(2), data, draws=40, tune=5, chains=2, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    made = draws.to_arviz(data)
    each = made["log_likelihood"]["counts"]
    assert each.sizes["seen_step"] == 11
    np.testing.assert_allclose(each.values.sum(axis=2), draws.sample_stats["log_likelihood"])
    drawn = made["posterior_predictive"]["counts"].values
    assert (drawn.sum(axis=-1) == data.totals).all()
    assert len(np.unique(drawn.reshape(80, -1), axis=0)) > 40
    # state by state: a new first step follows the first state's law, averaged over draws
    first = np.einsum("cdm,cdmk->cdk", draws["initial"], draws["emission"]).mean(axis=(0, 1))
    np.testing.assert_allclose(drawn[:, :, 0].mean(axis=(0, 1)), first, atol=0.2)


@pytest.mark.parametrize(
    "kind", [pgmult.topics.LDA, pytest.param(pgmult.topics.DynamicTopics, marks=pytest.mark.slow)]
)
def test_documents_of_other_topic_models_are_told_given_their_proportions(arviz, kind):
    counts = np.random.default_rng(0).poisson(1.0, size=(6, 8))
    corpus = pgmult.topics.as_corpus(counts)
    timed = kind is pgmult.topics.DynamicTopics
    data = pgmult.topics.as_timed_corpus(corpus, [1990, 1990, 1991, 1991, 1995, 1995])
    data = data if timed else corpus
    few = {"draws": 4, "tune": 2, "chains": 2, "random_seed": 0, "progressbar": False}
    model = kind(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = pgmult.sample(model, data, keep=["topics", "theta"], **few)
        bare = pgmult.sample(model, data, **few)
    made = draws.to_arviz(data)
    topics = draws["topics"]
    if timed:
        topics = topics[:, :, :, data.times].transpose(0, 1, 3, 2, 4)
        np.testing.assert_array_equal(
            made["constant_data"]["time_of_document"].values, [1990, 1990, 1991, 1991, 1995, 1995]
        )
        probs = np.einsum("cdnk,cdnkv->cdnv", draws["theta"], topics)
    else:
        probs = draws["theta"] @ topics
    expected = multinomial(counts.sum(axis=1), probs).logpmf(counts)
    np.testing.assert_allclose(made["log_likelihood"]["counts"].values, expected)
    np.testing.assert_array_equal(made["observed_data"]["counts"].values, counts)
    drawn = made["posterior_predictive"]["counts"].values
    assert (drawn.sum(axis=-1) == counts.sum(axis=1)).all()
    with pytest.raises(ValueError, match="must have kept topics and theta"):
        bare.to_arviz(data)
