"""The noise that fields are made of: values from it and back, from one covariance to another."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult import DiagonalPotential
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Constant, Matern, SquaredExponential, White
from pgmult.fields.models import multinomial_gp as gp_model
from pgmult.fields.models.approximation import Approximation
from pgmult.fields.models.multinomial_gp import MultinomialGPState
from pgmult.fields.priors.dense import IndependentFields
from pgmult.fields.priors.grids import GridProcess
from pgmult.fields.priors.structures import make_field
from pgmult.latent.hyperparameters import Guess
from pgmult.testing import mutant, rejects

WHOLE = np.array([[t, s] for t in (0.0, 1.0, 2.5, 3.0) for s in (0.0, 1.0, 2.0)])
ORDER = np.random.default_rng(0).permutation(12)
INPUTS = {"whole": WHOLE[ORDER], "with gaps": WHOLE[ORDER[:8]]}
COVARIANCES = {
    "product": 1.3 * Matern(1.5, 2.0, active=[0]) * SquaredExponential(1.0, active=[1]),
    "nearly singular": 1.3 * Matern(0.5, 50.0, active=[0]) * SquaredExponential(40.0, active=[1]),
    "places alike": Matern(2.5, 3.0, active=[0]) * White(1.0, active=[0]),
    "sum": 0.7 * Matern(2.5, 2.0, active=[0]) * Matern(0.5, 1.0, active=[1])
    + Matern(0.5, 4.0, active=[0])
    + Constant(0.5) * Matern(0.5, 2.0, active=[1]),
}
STRUCTURES = ["dense", "state_space", "grid", "inducing_points"]
CASES = [  # a grid's covariance is a product over two axes
    (structure, kind)
    for structure in STRUCTURES
    for kind in COVARIANCES
    if structure != "grid" or kind in ("product", "nearly singular")
]


@pytest.fixture
def rough_approximation(monkeypatch):
    """Half of the curvature at 0 everywhere; nowhere a count, nothing."""

    def found(model, data):
        start, (taken, reaching) = model.start(data), model.binomials(data)
        potential = DiagonalPotential(reaching / 8.0, taken - reaching / 2.0)
        none = np.zeros_like(taken)
        guess = Guess(start, np.tile(0.3 * np.eye(start.shape[1]), (len(start), 1, 1)))
        return Approximation(potential, guess, none[0], none, none + 1.0)

    monkeypatch.setattr(gp_model, "approximation", found)


def field_of(structure, covariance, inputs):
    mean = np.random.default_rng(1).standard_normal((len(inputs), 3))
    return make_field(structure, covariance, inputs, mean)


def root_of(field):
    """The matrix that `colour` multiplies noise by, and what it adds."""
    rng = np.random.default_rng(2)
    size = len(field.whiten(rng, field.sample(rng)))
    nothing = field.colour(np.zeros((size, 3)))
    columns = [field.colour(np.tile(unit[:, None], 3)) - nothing for unit in np.eye(size)]
    return np.stack(columns, axis=1)[..., 0], nothing


@pytest.mark.parametrize("where", INPUTS)
@pytest.mark.parametrize(("structure", "kind"), CASES)
def test_noise_makes_the_prior_and_values_tell_their_noise(structure, kind, where):
    inputs, covariance = INPUTS[where], COVARIANCES[kind]
    field, rng = field_of(structure, covariance, inputs), np.random.default_rng(3)
    root, mean = root_of(field)
    np.testing.assert_allclose(mean, field.prior_mean, atol=1e-12)
    np.testing.assert_allclose(root @ root.T, covariance.cov(inputs), atol=1e-9)
    values = field.sample(rng)
    np.testing.assert_allclose(field.colour(field.whiten(rng, values)), values, atol=1e-5)
    # what values do not tell is drawn: over draws of both the noise has unit covariance
    noise = np.concatenate([field.whiten(rng, field.sample(rng)) for _ in range(200)], axis=1)
    moments = noise @ noise.T / noise.shape[1] - np.eye(len(noise))
    assert np.abs(moments).max() < 5.5 / np.sqrt(noise.shape[1])
    assert np.abs(noise.mean(axis=1)).max() < 5.0 / np.sqrt(noise.shape[1])


def test_columns_of_their_own_covariances():
    fields = [make_field("dense", var * Matern(0.5, 2.0, active=[0]), WHOLE) for var in (1.0, 4.0)]
    both, rng = IndependentFields(fields), np.random.default_rng(4)
    noise = both.whiten(rng, both.sample(rng))
    np.testing.assert_allclose(both.colour(noise)[:, 1], fields[1].colour(noise[:, [1]])[:, 0])
    assert both.whitens


def test_a_large_grid_with_gaps_has_no_noise_at_hand(monkeypatch, rough_approximation):
    monkeypatch.setattr("pgmult.fields.priors.grids._MOST_WHITENED", 7)
    assert GridProcess(COVARIANCES["product"], INPUTS["whole"]).whitens
    assert not GridProcess(COVARIANCES["product"], INPUTS["with gaps"]).whitens
    data = as_field(INPUTS["with gaps"], np.tile([3, 1], (8, 1)))
    model = MultinomialGP(COVARIANCES["product"], structure="grid", hyperparameter_rate=1.0)
    rng = np.random.default_rng(0)
    state = model.init(rng, data)
    assert (model.step(rng, state, data).hyperparameters != state.hyperparameters).all()


# ------------------------------------------------------------------ of an approximation

COUNTS = np.random.default_rng(5).multinomial(9, [0.6, 0.3, 0.1], size=8)
DATA = as_field(INPUTS["with gaps"], COUNTS, new_inputs=[[4.0, 1.0]])
MODEL = MultinomialGP(COVARIANCES["product"], structure="state_space", mean="linear")


def check_law_and_way_back(model):
    """Noise makes the assembled Gaussian at other hyperparameters, and psi its own noise."""
    rng = np.random.default_rng(6)
    state = model.prior(rng, DATA)
    noise = model._noise_of(rng, state, DATA)
    psi, beta = model._rebuilt(np.log(state.hyperparameters), noise, DATA)
    np.testing.assert_allclose(psi, state.psi, atol=1e-8)
    np.testing.assert_allclose(beta, state.beta, atol=1e-8)
    theta = np.log(state.hyperparameters) + 0.4 * rng.standard_normal(state.hyperparameters.shape)
    trend, potential = model.trend(DATA), model.approximation(DATA).potential
    covs = [model.law.with_log_params(row).cov(DATA.sites) for row in theta]
    F, num_features = trend.features, len(trend.centre)
    sizes = [part.shape[0] for part in noise]
    units = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
    still = [np.zeros_like(noise[0]), trend.centre, np.zeros_like(noise[2])]
    scale = [1.0, np.sqrt(trend.var), 1.0]

    def made(parts):
        return np.concatenate(model._rebuilt(theta, parts, DATA))

    mean = made(still)
    root = np.empty((len(mean), sum(sizes), 2))
    for i in range(sum(sizes)):
        parts = [a + s * u[i][:, None] for a, s, u in zip(still, scale, units, strict=True)]
        root[:, i] = made(parts) - mean
    for k in range(2):
        K = covs[k % len(covs)]
        joint = np.block([[K + trend.var * F @ F.T, trend.var * F],
                          [trend.var * F.T, trend.var * np.eye(num_features)]])  # fmt: skip
        J = np.concatenate([potential.J[:, k], np.zeros(num_features)])
        h = np.concatenate([potential.h[:, k], np.zeros(num_features)])
        centre = np.concatenate([F @ trend.centre[:, k], trend.centre[:, k]])
        cov = np.linalg.solve(np.eye(len(J)) + joint * J, joint)
        np.testing.assert_allclose(root[..., k] @ root[..., k].T, cov, atol=1e-7)
        np.testing.assert_allclose(mean[:, k], centre + cov @ (h - J * centre), atol=1e-7)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_noise_makes_the_approximation_at_any_hyperparameters(structure, rough_approximation):
    check_law_and_way_back(replace(MODEL, structure=structure))


def test_each_stick_may_have_its_own_hyperparameters(rough_approximation):
    check_law_and_way_back(replace(MODEL, shared=False))


def test_fields_without_their_own_noise_are_refused(rough_approximation):
    def unmoved(self, theta, noise, data):
        of_field, beta, errors = noise
        old, new = (MODEL.field(at, np.zeros_like(beta), data) for at in (MODEL.start(data), theta))
        return MODEL._posterior_mean(new, old.colour(of_field), beta, errors, data)

    rejects(check_law_and_way_back, mutant(MODEL, _rebuilt=unmoved))


def test_noise_of_draws_of_the_approximation_is_white(rough_approximation):
    """Of psi and beta that have its law; psi alone says little of some of the noise."""
    rng, theta = np.random.default_rng(7), MODEL.start(DATA)
    trend, potential = MODEL.trend(DATA), MODEL.approximation(DATA).potential
    found = []
    for _ in range(200):
        beta, psi = MODEL.sample_sticks(rng, theta, potential, DATA)
        of_field, beta, errors = MODEL._noise_of(
            rng, MultinomialGPState(psi, beta, np.exp(theta)), DATA
        )
        beta = (beta - trend.centre) / np.sqrt(trend.var)
        found.append(np.concatenate([of_field, beta, errors]))
    noise = np.concatenate(found, axis=1)
    moments = noise @ noise.T / noise.shape[1] - np.eye(len(noise))
    assert np.abs(moments).max() < 5.5 / np.sqrt(noise.shape[1])
    assert np.abs(noise.mean(axis=1)).max() < 5.0 / np.sqrt(noise.shape[1])
