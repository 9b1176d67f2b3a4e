"""The sampler that mixtures of Gaussians are judged by, against all assignments."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare, multivariate_t

from examples.papers.hensman2012.mixture_gibbs import Components, gibbs
from pgmult import NormalInverseWishart
from pgmult.testing import rejects

NIW = NormalInverseWishart(np.array([0.5, -1.0]), 0.7, 4.0, np.array([[2.0, 0.5], [0.5, 1.0]]))
X = np.array([[0.0, 0.0], [1.3, -0.2], [2.0, 1.0], [-1.5, 0.4], [3.0, -3.0]])
CONCENTRATION = 0.4


def student(law):
    """Of the next row, given those that `law` has seen."""
    dof = law.dof - len(law.mean) + 1.0
    shape = law.scale * (law.strength + 1.0) / (law.strength * dof)
    return multivariate_t(law.mean, shape, df=dof)


def log_joint(z):
    """One row after the other: a component by its rows so far, and its next row."""
    total = 0.0
    for n, k in enumerate(z):
        mine = np.array(z[:n], dtype=int) == k
        total += np.log((CONCENTRATION + mine.sum()) / (2.0 * CONCENTRATION + n))
        total += student(NIW.condition(X[:n][mine])).logpdf(X[n])
    return total


def check_gibbs(concentration=CONCENTRATION):
    """Frequencies of all 32 assignments over independent chains."""
    every = list(itertools.product(range(2), repeat=5))
    joint = np.array([log_joint(z) for z in every])
    expected = np.exp(joint - logsumexp(joint))
    rng = np.random.default_rng(0)
    *_, z = gibbs(rng, X, 2, NIW, concentration, num_chains=4000, sweeps=25)
    observed = np.bincount(z @ [16, 8, 4, 2, 1], minlength=32)
    assert 4000 * expected.min() > 5.0
    assert chisquare(observed, 4000 * expected).pvalue > 1e-3


def test_gibbs_against_all_assignments():
    check_gibbs()
    assert "pvalue" in rejects(check_gibbs, 2.0 * CONCENTRATION)


def left_in(self, row, z, sign=1.0):
    """Rows are drawn given themselves; their components have them once more each time."""
    if sign > 0.0:
        RIGHT_PUT(self, row, z, sign)


def determinant_kept(self, row, z, sign=1.0):
    log_det = self.log_det.copy()
    RIGHT_PUT(self, row, z, sign)
    self.log_det[:] = log_det


def gaussian(self, row):
    """The density at the expected precision, in place of Student's t."""
    dof = (self.prior.dof + self.counts)[..., None, None]
    away = row - self.mean
    square = np.einsum("cki,ckij,ckj->ck", away, dof * self.precision, away)
    return 0.5 * np.linalg.slogdet(dof * self.precision)[1] - 0.5 * square


def spread_of_means_forgotten(self, row):
    share = (self.prior.strength + self.counts) / (self.prior.strength + self.counts + 1.0)
    dof, away = self.prior.dof + self.counts + 1.0, row - self.mean
    square = np.einsum("cki,ckij,ckj->ck", away, self.precision, away)
    change = 0.5 * dof * (np.log1p(share * square) - np.log1p(square)) - np.log(share)
    return RIGHT_PREDICTIVE(self, row) + change


RIGHT_PUT, RIGHT_PREDICTIVE = Components.put, Components.log_predictive


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("put", left_in),
        ("put", determinant_kept),
        ("log_predictive", gaussian),
        ("log_predictive", spread_of_means_forgotten),
    ],
)
def test_broken_samplers_are_refused(monkeypatch, name, broken):
    monkeypatch.setattr(Components, name, broken)
    assert "pvalue" in rejects(check_gibbs)


@pytest.mark.parametrize("depth", [1, 3])
def test_rows_put_and_taken_away(depth):
    rng = np.random.default_rng(1)
    x, z = 2.0 * rng.standard_normal((8, depth)), rng.integers(3, size=(4, 8))
    prior = NormalInverseWishart(rng.standard_normal(depth), 0.3, depth + 1.5, np.eye(depth))
    one = Components.of(x, np.eye(3)[z], prior)
    for n in range(4):
        one.put(x[n], z[:, n], -1.0)
        z[:, n] = rng.integers(3, size=4)
        one.put(x[n], z[:, n])
    for c, k in np.ndindex(4, 3):
        law = prior.condition(x[z[c] == k])
        assert one.counts[c, k] == np.sum(z[c] == k)
        np.testing.assert_allclose(one.mean[c, k], law.mean, atol=1e-12)
        np.testing.assert_allclose(one.precision[c, k], np.linalg.inv(law.scale), atol=1e-11)
        assert one.log_det[c, k] == pytest.approx(np.linalg.slogdet(law.scale)[1], abs=1e-11)
        predictive = one.log_predictive(x[0])[c, k]
        assert predictive == pytest.approx(student(law).logpdf(x[0]), abs=1e-10)


def test_density_of_a_mixture():
    z = np.array([[0, 1, 1, 0, 1], [2, 2, 2, 2, 2]])
    found = Components.of(X, np.eye(3)[z], NIW).log_density(X, CONCENTRATION)
    for c in range(2):
        weights = CONCENTRATION + np.bincount(z[c], minlength=3)
        laws = [student(NIW.condition(X[z[c] == k])) for k in range(3)]
        expected = weights / weights.sum() @ [law.pdf(X) for law in laws]
        np.testing.assert_allclose(np.exp(found[c]), expected, rtol=1e-11)
