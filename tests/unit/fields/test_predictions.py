"""Predictions of multinomial Gaussian processes: ranks, counts and scores."""

import numpy as np
import pytest
import scipy.stats

from examples.papers.linderman2015.softmax_gp import LogisticNormalGP
from pgmult import Posterior, sample
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Matern
from pgmult.fields.predictions import FieldPredictions, _mean_probs, predict
from pgmult.links import StickBreaking
from pgmult.sampling.origin import Origin

ORDER = np.array([2, 0, 1])
MEAN = np.array([[[0.5, -1.0]], [[-0.3, 0.2]]])


def predictions():
    rng = np.random.default_rng(0)
    psi = [[0.5, -1.0]] + np.sqrt([[0.4, 1.5]]) * rng.standard_normal((2000, 1, 2))
    return FieldPredictions(StickBreaking(ORDER).probs(psi))


def test_the_density_of_new_counts_is_the_mean_over_draws():
    found, counts = predictions(), np.array([[1, 2, 4]])
    each = scipy.stats.multinomial(7, found.draws[:, 0]).pmf(counts[0])
    assert np.exp(found.log_predictive_density(counts)) == pytest.approx(each.mean())
    tables = [[a, b, 3 - a - b] for a in range(4) for b in range(4 - a)]
    total = sum(np.exp(found.log_predictive_density([table])) for table in tables)
    assert total == pytest.approx(1.0)
    assert found.log_predictive_density([[0, 0, 0]]) == pytest.approx(0.0)


def test_means_of_independent_sticks_agree_with_draws_in_the_order_of_categories():
    mean, var = np.array([[0.5, -1.0], [-0.3, 0.2]]), np.array([[0.4, 1.5], [0.8, 0.1]])
    rng = np.random.default_rng(0)
    pi = StickBreaking(ORDER).probs(mean + np.sqrt(var) * rng.standard_normal((20_000, 2, 2)))
    found = _mean_probs(ORDER, mean, var)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (np.abs(found - pi.mean(axis=0)) < 4.0 * pi.std(axis=0) / np.sqrt(len(pi))).all()


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")  # it is short on purpose
def test_a_row_has_the_same_mean_whatever_else_is_asked():
    model = MultinomialGP(Matern(1.5, 2.0), hyperparameters="fixed")
    keep = ["psi", "beta", "hyperparameters"]
    run = sample(
        model, DATA, draws=4, tune=1, chains=1, keep=keep, random_seed=0, progressbar=False
    )
    both, one = predict(run, [5.0, 0.5]), predict(run, [0.5])
    np.testing.assert_allclose(both.mean[1:], one.mean, rtol=1e-12)
    np.testing.assert_array_equal(both.rows([False, True]).mean, both.mean[1:])


def test_ranks_intervals_and_counts():
    pi = np.array([[[0.5, 0.3, 0.2]], [[0.5, 0.1, 0.4]], [[0.2, 0.7, 0.1]], [[0.6, 0.3, 0.1]]])
    found = FieldPredictions(pi)
    np.testing.assert_allclose(found.rank_probabilities(1), [[0.75, 0.25, 0.0]])
    np.testing.assert_allclose(found.rank_probabilities(2), [[1.0, 0.75, 0.25]])
    low, high = found.interval(0.5)
    np.testing.assert_allclose(low, np.quantile(pi, 0.25, axis=0))
    np.testing.assert_allclose(high, np.quantile(pi, 0.75, axis=0))
    counts = found.counts(10_000, random_seed=1)
    assert counts.shape == (4, 1, 3)
    assert np.abs(counts / 10_000 - pi).max() < 0.03
    np.testing.assert_array_equal(found.counts([5], random_seed=1).sum(-1), 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.interval(95), "between 0 and 1"),
        (lambda p: p.rank_probabilities(3), "below the number of categories"),
        (lambda p: p.counts([1, 2]), "one number or 1"),
        (lambda p: p.log_predictive_density([[1, 2]]), "counts must have shape"),
        (lambda p: p.log_predictive_density([[1, -2, 0]]), "non-negative"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(predictions())


DATA = as_field([0.0, 1.0], [[3, 1, 2], [0, 4, 9]], [2.0], categories=list("abc"))
MODEL = MultinomialGP(Matern(1.5))


def posterior(model=MODEL, data=DATA, **draws):
    pi = StickBreaking(data.order).probs(MEAN)[None]
    return Posterior({"pi_new": pi, **draws}, origin=Origin.of(model, data))


def ahead(run, data=DATA):
    return predict(run, data=data, inputs="new")


def elsewhere(run, data=DATA):
    return predict(run, [5.0], data=data)


def test_kept_probabilities_at_new_inputs_are_told_as_they_are():
    run = posterior()
    np.testing.assert_array_equal(ahead(run).draws, run.stack("pi_new"))
    assert ahead(run).labels["category"].tolist() == ["a", "b", "c"]


def test_seen_and_new_inputs_stand_one_after_the_other():
    rng = np.random.default_rng(0)
    psi = rng.normal(size=(1, 5, 3, 2))
    probs = StickBreaking(DATA.order).probs(psi)[0]
    run = Posterior({"psi": psi}, origin=Origin.of(MODEL, DATA))
    np.testing.assert_array_equal(predict(run, data=DATA).draws, probs)
    np.testing.assert_array_equal(ahead(run).draws, probs[:, 2:])
    np.testing.assert_array_equal(predict(run, data=DATA, inputs="seen").draws, probs[:, :2])
    assert (
        list(predict(run, data=DATA).table().columns["input"]) == [0.0] * 3 + [1.0] * 3 + [2.0] * 3
    )


def same_but(**changes):
    return as_field(**{"inputs": DATA.inputs, "counts": DATA.counts, "new_inputs": [2.0]} | changes)


KEPT = {name: np.zeros((1, 2)) for name in ("psi", "beta", "hyperparameters")}
OTHER = "data must be those of the run"
WITHOUT = DATA.with_new_inputs(None)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ahead(posterior(), same_but(order="given")), ValueError, OTHER),
        (lambda: ahead(posterior(), same_but(new_inputs=[3.0])), ValueError, OTHER),
        (lambda: ahead(posterior(), same_but(counts=DATA.counts[:, ::-1])), ValueError, OTHER),
        (lambda: elsewhere(posterior(**KEPT), same_but(inputs=[0.0, 1.5])), ValueError, OTHER),
        (
            lambda: ahead(Posterior({"beta": np.zeros((1, 2))}, origin=Origin.of(MODEL, DATA))),
            ValueError,
            "must have kept pi_new",
        ),
        (lambda: elsewhere(posterior()), ValueError, "must have kept psi, beta, hyperparameters"),
        (lambda: ahead(posterior(data=WITHOUT), WITHOUT), ValueError, "must have new inputs"),
        (
            lambda: ahead(Posterior({"pi_new": np.full((1, 2, 1, 3), 1 / 3)})),
            ValueError,
            "posterior must know its model",
        ),
        (
            lambda: elsewhere(posterior(LogisticNormalGP(Matern(1.5)))),
            TypeError,
            "of a MultinomialGP, got one of LogisticNormalGP",
        ),
        (
            lambda: predict(posterior(), data=DATA, places={"state": {}}, new=[5.0]),
            ValueError,
            "read from a table",
        ),
        (lambda: predict(posterior(), data=DATA, inputs="old"), ValueError, "one of all, seen"),
    ],
)
def test_what_cannot_be_predicted(call, error, message):
    with pytest.raises(error, match=message):
        call()
