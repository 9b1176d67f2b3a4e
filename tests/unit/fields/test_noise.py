"""The noise that fields are made of: values from it and back, from one covariance to another."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Constant, Matern, SquaredExponential, White
from pgmult.fields.priors.field import FieldGaussian
from pgmult.fields.priors.sticks import Sticks
from pgmult.fields.priors.structures import make_field
from pgmult.testing import rejects

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
SERIES = {
    "series": 1.3 * Matern(1.5, 2.0, active=[0]) + White(0.3, active=[0]),
    "nearly singular series": Matern(2.5, 90.0, active=[0]) + Constant(0.5),
}
CASES = [("dense", kind) for kind in COVARIANCES] + [("state_space", kind) for kind in SERIES]


def root_of(field):
    """The matrix that `colour` multiplies noise by."""
    rng = np.random.default_rng(2)
    size = len(field.whiten(rng, field.sample(rng, 3)))
    np.testing.assert_array_equal(field.colour(np.zeros((size, 3))), 0.0)
    columns = [field.colour(np.tile(unit[:, None], 3)) for unit in np.eye(size)]
    return np.stack(columns, axis=1)[..., 0]


@pytest.mark.parametrize("where", INPUTS)
@pytest.mark.parametrize(("structure", "kind"), CASES)
def test_noise_makes_the_prior_and_values_tell_their_noise(structure, kind, where):
    inputs, covariance = INPUTS[where], (COVARIANCES | SERIES)[kind]
    field, rng = make_field(structure, covariance, inputs), np.random.default_rng(3)
    root = root_of(field)
    np.testing.assert_allclose(root @ root.T, covariance.cov(inputs), atol=1e-9)
    values = field.sample(rng, 3)
    np.testing.assert_allclose(field.colour(field.whiten(rng, values)), values, atol=1e-5)
    # what values do not tell is drawn: over draws of both the noise has unit covariance
    noise = np.concatenate([field.whiten(rng, field.sample(rng, 3)) for _ in range(200)], axis=1)
    moments = noise @ noise.T / noise.shape[1] - np.eye(len(noise))
    assert np.abs(moments).max() < 5.5 / np.sqrt(noise.shape[1])
    assert np.abs(noise.mean(axis=1)).max() < 5.0 / np.sqrt(noise.shape[1])


# ------------------------------------------------------------------ given a potential

COUNTS = np.random.default_rng(5).multinomial(9, [0.6, 0.3, 0.1], size=8)
DATA = as_field(INPUTS["with gaps"], COUNTS, new_inputs=[[4.0, 1.0]])
MODEL = MultinomialGP(COVARIANCES["product"], structure="dense", mean="linear")


def laws_of(model):
    """The family of both sticks, a potential, hyperparameters and others."""
    family = Sticks(model.structure, DATA.sites, *model.groups(DATA))
    taken, reaching = (each[family.counted] for each in model.binomials(DATA))
    seen = family.absorb(reaching / 8.0, taken - reaching / 2.0)
    start = family.start()
    return family, seen, start, start + 0.4 * np.random.default_rng(6).standard_normal(len(start))


def check_law_and_way_back(model):
    """Noise makes the assembled Gaussian at other hyperparameters, and w its own noise."""
    family, seen, here, there = laws_of(model)
    rng, gaussian = np.random.default_rng(7), family.at(here, seen)
    nothing = family.absorb(*np.zeros((2, *family.shape)))
    w = family.at(here, nothing).sample(rng)
    noise = gaussian.white(rng, w)
    np.testing.assert_allclose(gaussian.colour(noise), w, atol=1e-8)
    gaussian = family.at(there, seen)
    sizes = [len(part) for part in noise]
    trend = model.trend(DATA)
    still = [np.zeros_like(noise[0]), trend.centre, np.zeros_like(noise[2])]
    units = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
    scale = [1.0, np.sqrt(trend.var), 1.0]
    mean = gaussian.colour(still)
    root = np.empty((len(mean), sum(sizes), 2))
    for i in range(sum(sizes)):
        parts = [a + s * u[i][:, None] for a, s, u in zip(still, scale, units, strict=True)]
        root[:, i] = gaussian.colour(parts) - mean
    K, F = model.full_covariance(DATA).with_log_params(there).cov(DATA.sites), trend.features
    joint = trend.var * np.concatenate([F, np.eye(F.shape[1])])
    joint = joint @ np.concatenate([F, np.eye(F.shape[1])]).T
    joint[: len(K), : len(K)] += K
    for k in range(2):
        J, h = (np.append(part[:, k], np.zeros(F.shape[1])) for part in (seen.J, seen.h))
        centre = np.concatenate([F @ trend.centre[:, k], trend.centre[:, k]])
        cov = np.linalg.solve(np.eye(len(J)) + joint * J, joint)
        np.testing.assert_allclose(root[..., k] @ root[..., k].T, cov, atol=1e-7)
        np.testing.assert_allclose(mean[:, k], centre + cov @ (h - J * centre), atol=1e-7)


@pytest.mark.parametrize("structure", ["dense", "state_space"])
def test_noise_makes_the_law_at_any_hyperparameters(structure):
    covariance = MODEL.covariance if structure == "dense" else SERIES["series"]
    check_law_and_way_back(replace(MODEL, covariance=covariance, structure=structure))


def test_laws_that_forget_the_errors_of_the_noise_are_refused(monkeypatch):
    right = FieldGaussian.colour
    monkeypatch.setattr(
        FieldGaussian, "colour", lambda self, noise: right(self, (*noise[:2], 0.0 * noise[2]))
    )
    rejects(check_law_and_way_back, MODEL)


def test_noise_of_draws_is_white():
    """Of w that have the distribution; psi alone says little of some of the noise."""
    family, seen, x, _ = laws_of(MODEL)
    rng, trend, gaussian = np.random.default_rng(7), MODEL.trend(DATA), family.at(x, seen)
    found = []
    for _ in range(200):
        of_field, beta, errors = gaussian.white(rng, gaussian.sample(rng))
        beta = (beta - trend.centre) / np.sqrt(trend.var)
        found.append(np.concatenate([of_field, beta, errors]))
    noise = np.concatenate(found, axis=1)
    moments = noise @ noise.T / noise.shape[1] - np.eye(len(noise))
    assert np.abs(moments).max() < 5.5 / np.sqrt(noise.shape[1])
    assert np.abs(noise.mean(axis=1)).max() < 5.0 / np.sqrt(noise.shape[1])
