"""The scikit-learn face of mixtures of Gaussians."""

import numpy as np
import pytest
import scipy.stats
from sklearn.utils.estimator_checks import check_estimator

from examples.papers.hensman2012.estimator import CollapsedGaussianMixture

RNG = np.random.default_rng(0)
CENTRES = np.array([[0.0, 0.0], [7.0, 0.0], [0.0, 7.0]])
X = RNG.standard_normal((120, 2)) @ [[1.0, 0.4], [0.0, 1.0]] + np.repeat(CENTRES, 40, axis=0)
TRUE = np.repeat([0, 1, 2], 40)


@pytest.mark.slow
def test_scikit_learns_own_checks():
    results = check_estimator(CollapsedGaussianMixture(n_init=1), on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []


def test_components_that_are_not_needed_are_empty():
    fitted = CollapsedGaussianMixture(7, random_state=0).fit(X)
    assert fitted.n_components_used_ == 3
    assert fitted.converged_
    assert (np.diff(fitted.weights_) <= 0.0).all()
    np.testing.assert_allclose(fitted.weights_.sum(), 1.0)
    found = fitted.predict(X)
    pairs = {(a, b) for a, b in zip(TRUE, found, strict=True)}
    assert len(pairs) == 3
    assert set(found) == {0, 1, 2}
    for centre in CENTRES:
        assert np.linalg.norm(fitted.means_[:3] - centre, axis=1).min() < 0.6
    np.testing.assert_allclose(fitted.covariances_[0], [[1.16, 0.4], [0.4, 1.0]], atol=1.0)
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1.0)


def test_densities_are_those_of_scipy_and_one_component_is_exact():
    """With one component nothing is left to approximate: the evidence chains into predictions."""
    fitted = CollapsedGaussianMixture(1).fit(X)
    law = fitted.components_[0]
    dof = law.dof - 1.0
    shape = law.scale * (law.strength + 1.0) / (law.strength * dof)
    expected = scipy.stats.multivariate_t(law.mean, shape, dof).logpdf(X[:5])
    np.testing.assert_allclose(fitted.score_samples(X[:5]), expected)
    assert fitted.score(X) == pytest.approx(fitted.score_samples(X).mean())


def test_densities_integrate_to_one():
    fitted = CollapsedGaussianMixture(4, random_state=0).fit(X[:, :1])
    grid = np.linspace(-300.0, 300.0, 60_001)
    total = np.exp(fitted.score_samples(grid[:, None])).sum() * (grid[1] - grid[0])
    assert total == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"n_components": 0}, ValueError, "n_components must be at least 1, got 0"),
        ({"n_components": 999}, ValueError, "n_components must be at most the 120 rows of X"),
        ({"concentration": 0.0}, ValueError, "concentration must be at least 1e-06"),
        ({"n_init": 1.5}, TypeError, "n_init must be an integer"),
    ],
)
def test_bad_parameters(change, error, words):
    with pytest.raises(error, match=words):
        CollapsedGaussianMixture(**change).fit(X)
