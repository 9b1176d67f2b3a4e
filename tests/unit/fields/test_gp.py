"""Multinomial Gaussian processes: conditionals, data, options, labels, threads."""

from dataclasses import replace

import numpy as np
import pytest

import pgmult
from pgmult import DiagonalPotential
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Matern, White
from pgmult.fields.elsewhere import predict_at
from pgmult.fields.priors.sticks import Sticks
from pgmult.sampling.diagnostics import ess_bulk
from pgmult.testing import mutant

RNG = np.random.default_rng(0)
INPUTS = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [2.5, 0.5], [4.0, 1.0]])
COUNTS = np.array([[2, 1, 1], [3, 0, 2], [0, 2, 1], [0, 0, 0], [60, 2, 11]])
DATA = as_field(INPUTS, COUNTS, new_inputs=[[5.0, 0.5], [0.0, 1.0]])
COVARIANCE = 0.8 * Matern(1.5, 2.0, active=[0]) + White(0.2)
MODEL = MultinomialGP(COVARIANCE, mean_var=1.5)
MODELS = {
    "constant": MODEL,
    "linear": replace(MODEL, mean="linear"),
    "a covariance a stick": replace(MODEL, shared=False),
    "given mean": replace(MODEL, mean=[0.5, -0.5]),
    "empirical mean, fixed": replace(MODEL, mean="empirical", hyperparameters="fixed"),
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def potential_of(model, state):
    return model.link(DATA).augment(np.random.default_rng(1), state.psi, DATA.site_counts())


@pytest.mark.parametrize("kind", ["linear", "a covariance a stick", "given mean"])
def test_laws_of_sticks_are_the_assembled_gaussians(kind):
    """Their log evidence, all over of (beta, psi) that they draw, and their means."""
    model = MODELS[kind]
    potential = potential_of(model, model.prior(np.random.default_rng(4), DATA))
    trend = model.trend(DATA)
    features, level = trend.features, trend.at(trend.centre)
    rng = np.random.default_rng(5)
    for group in model.groups(DATA):
        columns, family = group.columns, Sticks(model.structure, DATA.sites, group)
        seen = family.absorb(
            potential.J[family.counted, columns], potential.h[family.counted, columns]
        )
        theta = model.full_covariance(DATA).log_params + 0.5 * rng.standard_normal(3)
        covariance = model.covariance.with_log_params(theta)
        assert family.log_prior(theta) == pytest.approx(covariance.log_prior())
        cov = covariance.cov(DATA.sites) + model.mean_var * features @ features.T
        gaussian, expected = family.at(theta, seen), 0.0
        for k in range(2)[columns]:
            J, h, mean = potential.J[:, k], potential.h[:, k], level[:, k]
            system, left = np.eye(len(cov)) + cov * J, h - J * mean
            shift = np.linalg.solve(system, cov @ left)
            expected += mean @ (h - 0.5 * J * mean) + 0.5 * left @ shift
            expected -= 0.5 * np.linalg.slogdet(system)[1]
            got = gaussian.mean[: len(cov), k - columns.start]
            np.testing.assert_allclose(got, mean + shift, atol=1e-8)
        np.testing.assert_allclose(gaussian.log_evidence, expected, atol=1e-8)
        np.testing.assert_array_equal(
            family.predictor(gaussian.mean), gaussian.mean[family.counted]
        )
        g = rng.standard_normal(family.shape)
        assert np.sum(family.pull(g) * gaussian.mean) == pytest.approx(
            np.sum(g * family.predictor(gaussian.mean))
        )


def test_what_a_state_keeps_of_hyperparameters_is_enough():
    """The distribution is found again where the chain is: by the logarithms of exponentials."""
    family = Sticks(MODEL.structure, DATA.sites, *MODEL.groups(DATA))
    seen = family.absorb(*np.ones((2, *family.shape)))
    for x in 3.0 * np.random.default_rng(0).standard_normal((50, 3)):
        assert family.at(np.log(np.exp(x)), seen) is family.at(x, seen)


@pytest.mark.parametrize("kind", ["linear", "a covariance a stick"])
def test_the_law_at_new_inputs_is_of_the_assembled_gaussian(kind):
    model = MODELS[kind]
    state = model.prior(np.random.default_rng(9), DATA)
    potential = potential_of(model, state)
    counted = DATA.with_new_inputs(None).num_sites
    told = DiagonalPotential(potential.J[:counted], potential.h[:counted])
    link = mutant(model.link(DATA), augment=lambda self, rng, psi, counts: told)
    known = mutant(model, link=lambda self, data: link)
    _, mean, var = predict_at(np.random.default_rng(0), known, state, DATA, DATA.new_inputs)
    centre = model.trend(DATA).at(state.beta)
    for k, row in enumerate(np.broadcast_to(np.log(state.hyperparameters), (2, 3))):
        K = model.covariance.with_log_params(row).cov(DATA.sites)
        cov = np.linalg.solve(np.eye(len(K)) + K * potential.J[:, k], K)
        expected = centre[:, k] + cov @ (potential.h[:, k] - potential.J[:, k] * centre[:, k])
        np.testing.assert_allclose(mean[:, k], expected[DATA.new_sites], atol=1e-9)
        np.testing.assert_allclose(var[:, k], np.diagonal(cov)[DATA.new_sites], atol=1e-9)


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_sample_keeps_labelled_variables():
    data = as_field(INPUTS, COUNTS, [[6.0, 0.0]], categories=["a", "b", "c"], new_names=["next"])
    posterior = pgmult.sample(
        MODEL, data, keep=[*MODEL.dims], draws=4, tune=2, chains=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    assert list(posterior.coords["stick"]) == ["a", "c"]
    assert list(posterior.coords["new_row"]) == ["next"]
    assert list(posterior.coords["feature"]) == ["constant"]
    assert list(posterior.coords["hyperparameter"]) == [
        "Constant.var", "Matern.length_scale", "White.var",
    ]  # fmt: skip
    assert posterior["hyperparameters"].shape == (1, 4, 1, 3)
    np.testing.assert_allclose(posterior["pi"].sum(axis=-1), 1.0)
    np.testing.assert_allclose(posterior["pi_new"].sum(axis=-1), 1.0)


def test_rare_categories_do_not_creep():
    counts = np.array([[3000, 1, 0], [2900, 0, 1], [3100, 1, 1]])
    data = as_field(np.arange(3.0), counts)
    model = MultinomialGP(0.01 * Matern(0.5, 1.0), hyperparameters="fixed")
    rng = np.random.default_rng(11)
    state, levels = model.init(rng, data), []
    for _ in range(300):
        state = model.step(rng, state, data)
        levels.append(state.beta[0, 0])
    assert ess_bulk(np.array(levels)[None]) > 120


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_a_default_run_can_be_asked_everything():
    posterior = pgmult.sample(
        MODEL, DATA, draws=60, tune=5, chains=2, random_seed=0, progressbar=False
    )
    assert posterior.check().verdict
    assert posterior.report(comparison=False).verdict
    assert posterior.predict(new=[[6.0, 0.0]]).mean.shape == (1, 3)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: MultinomialGP(3.0), TypeError, "covariance must be a Covariance, got 3.0 .float"),
        (lambda: replace(MODEL, hyperparameters="learned"), ValueError, "must be one of"),
        (lambda: replace(MODEL, mean="flat"), ValueError, 'mean must be "constant"'),
        (lambda: replace(MODEL, mean=[[0.0]]), ValueError, "one number or one a stick"),
        (lambda: replace(MODEL, mean_var=0.0), ValueError, "mean_var must be positive"),
        (
            lambda: replace(MODEL, hyperparameter_rate=0.0),
            ValueError,
            "rate must be above 0, got 0.0",
        ),
        (lambda: replace(MODEL, mean=np.zeros(5)).as_data(DATA), ValueError, "each of 2 sticks"),
        (lambda: MODEL.as_data(COUNTS), TypeError, "make the data with as_field"),
        (
            lambda: replace(MODEL, structure="sparse").init(np.random.default_rng(0), DATA),
            ValueError,
            "structure must be one of",
        ),
    ],
)
def test_bad_input(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_a_potential_is_plain():
    state = MODEL.prior(np.random.default_rng(12), DATA)
    potential = potential_of(MODEL, state)
    assert isinstance(potential, DiagonalPotential)
    assert (potential.J[DATA.num_sites - 1] == 0.0).all()  # a new input is a missing row
