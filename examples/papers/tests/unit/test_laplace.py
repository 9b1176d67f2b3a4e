"""Modes and curvatures of many functions at once, safe where they are not concave."""

import numpy as np
import pytest
from gaussian_targets import PoissonLogNormal, TwoHumps
from scipy.optimize import minimize

from examples.papers.wang2013.laplace import _inverses, expand, fit_laplace
from pgmult.compiled.rows import row_threads

COV = np.array([[1.5, 0.7, 0.0], [0.7, 2.0, -0.4], [0.0, -0.4, 0.8]])
COUNTS = np.array([[3, 0, 1], [0, 0, 0], [50, 2, 7], [1, 200, 0], [5, 5, 5]])
TARGET = PoissonLogNormal(COUNTS, [0.3, -0.5, 1.0], COV)
ROWS = np.arange(len(COUNTS))


def test_modes_and_curvatures_against_a_general_optimiser():
    q = fit_laplace(TARGET, np.zeros((5, 3)))
    assert q.converged
    assert q.is_proper.all()
    for r in ROWS:
        row = np.array([r])
        best = minimize(
            lambda x, row=row: -TARGET.value(x[None], row)[0], np.zeros(3), method="BFGS",
            jac=lambda x, row=row: -TARGET.gradient(x[None], row)[0], options={"gtol": 1e-8},
        )  # fmt: skip
        np.testing.assert_allclose(q.mean[r], best.x, atol=1e-6)
        curvature = -TARGET.hessian(q.mean[[r]], row)[0]
        np.testing.assert_allclose(q.cov[r] @ curvature, np.eye(3), atol=1e-12)


def test_rows_do_not_know_of_each_other_or_of_threads():
    together = fit_laplace(TARGET, np.zeros((5, 3)))
    with row_threads(3, grain=1):
        threaded = fit_laplace(TARGET, np.zeros((5, 3)))
    np.testing.assert_array_equal(together.mean, threaded.mean)
    np.testing.assert_array_equal(together.cov, threaded.cov)
    alone = fit_laplace(PoissonLogNormal(COUNTS[[3]], TARGET.mean, COV), np.zeros((1, 3)))
    np.testing.assert_allclose(together.mean[3], alone.mean[0], atol=1e-12)


@pytest.mark.parametrize("far", [-40.0, 40.0, 300.0])
def test_newton_does_not_diverge_from_far_away(far):
    q = fit_laplace(TARGET, np.full((5, 3), far), max_iterations=1000)
    assert q.converged
    np.testing.assert_allclose(q.mean, fit_laplace(TARGET, np.zeros((5, 3))).mean, atol=1e-6)


def test_newton_leaves_a_region_that_is_not_concave():
    start = np.array([[-0.3], [0.3], [1.0], [-7.0]])
    assert (-TwoHumps().hessian(start[:2], ROWS[:2]) < 0.0).all()
    q = fit_laplace(TwoHumps(), start)
    assert q.converged
    assert q.is_proper.all()
    np.testing.assert_allclose(q.mean, 2.0 * np.tanh(2.0 * q.mean), atol=1e-9)
    assert list(np.sign(q.mean[:, 0])) == [-1.0, 1.0, 1.0, -1.0]


def test_a_saddle_is_called_one():
    q = fit_laplace(TwoHumps(), np.zeros((1, 1)))
    assert not q.is_proper[0]
    assert not q.converged
    np.testing.assert_allclose(q.cov, 1.0 / 3.0)  # the absolute value of a curvature of -3


def test_values_outside_the_domain_are_refused():
    class LogGamma:
        """3 log x - x, defined for x > 0."""

        def value(self, theta, rows):
            return (3.0 * np.log(theta) - theta)[:, 0]

        def gradient(self, theta, rows):
            return 3.0 / theta - 1.0

        def hessian(self, theta, rows):
            return (-3.0 / theta**2)[:, :, None]

    q = fit_laplace(LogGamma(), np.array([[0.01], [20.0]]))
    np.testing.assert_allclose(q.mean, 3.0, rtol=1e-6)
    np.testing.assert_allclose(q.cov, 3.0, rtol=1e-6)
    with (
        pytest.raises(ValueError, match="f must be finite at the start, got nan for row 1"),
        np.errstate(invalid="ignore"),
    ):
        fit_laplace(LogGamma(), np.array([[1.0], [-1.0]]))


def test_expansion_at_the_previous_mean_is_one_newton_step():
    mean = fit_laplace(TARGET, np.zeros((5, 3))).mean + 0.05
    q = expand(TARGET, mean)
    precision = -TARGET.hessian(mean, ROWS)
    np.testing.assert_allclose(q.cov, np.linalg.inv(precision), rtol=1e-10)
    step = np.linalg.solve(precision, TARGET.gradient(mean, ROWS)[..., None])[..., 0]
    np.testing.assert_allclose(q.mean, mean + step, rtol=1e-10)
    far = np.full((5, 3), -9.0)
    assert (TARGET.value(expand(TARGET, far).mean, ROWS) >= TARGET.value(far, ROWS)).all()


def test_indefinite_systems_give_directions_of_ascent():
    rng = np.random.default_rng(2)
    matrices = rng.standard_normal((200, 4, 4))
    matrices = matrices + np.swapaxes(matrices, 1, 2) + 3.0 * np.eye(4)
    gradient = rng.standard_normal((200, 4))
    covs, log_dets, is_definite = _inverses(matrices)
    assert 0 < is_definite.sum() < 200
    assert (is_definite == (np.linalg.eigvalsh(matrices)[:, 0] > 0.0)).all()
    steps = np.einsum("rij,rj->ri", covs, gradient)
    assert (np.einsum("ri,ri->r", steps, gradient) > 0.0).all()
    right = np.linalg.solve(matrices[is_definite], gradient[is_definite][..., None])[..., 0]
    np.testing.assert_allclose(steps[is_definite], right, rtol=1e-8)
    assert (np.linalg.eigvalsh(covs)[:, 0] > 0.0).all()
    np.testing.assert_allclose(log_dets, -np.linalg.slogdet(covs)[1], atol=1e-10)


def test_bad_input():
    with pytest.raises(ValueError, match=r"start must have shape \(rows, n\), got \(3,\)"):
        fit_laplace(TARGET, np.zeros(3))
    with pytest.raises(ValueError, match="start must be finite"):
        fit_laplace(TARGET, np.full((5, 3), np.nan))
    with pytest.raises(ValueError, match="max_iterations must be at least 1"):
        fit_laplace(TARGET, np.zeros((5, 3)), max_iterations=0)
