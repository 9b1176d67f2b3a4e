"""The delta method's objective, its profile and the coordinate ascent built on it."""

from dataclasses import dataclass

import numpy as np
import pytest
from gaussian_targets import PoissonLogNormal, TwoHumps, derivative
from scipy.optimize import minimize

from examples.papers.wang2013.derivatives import trace_gradient
from examples.papers.wang2013.laplace import fit_delta, fit_laplace
from examples.papers.wang2013.nonconjugate import fit_nonconjugate

COV = np.array([[1.5, 0.7, 0.0], [0.7, 2.0, -0.4], [0.0, -0.4, 0.8]])
COUNTS = np.array([[3, 0, 1], [0, 0, 0], [50, 2, 7], [5, 5, 5]])
MEAN = np.array([0.3, -0.5, 1.0])
TARGET = PoissonLogNormal(COUNTS, MEAN, COV)
ROWS = np.arange(len(COUNTS))


def random_point(seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((4, 3))
    factor = rng.standard_normal((4, 3, 3))
    return theta, 0.1 * factor @ np.swapaxes(factor, 1, 2) + 0.05 * np.eye(3)


def trace(target, theta, cov):
    return np.einsum("rij,rji->r", target.hessian(theta, ROWS), cov)


def test_trace_gradients_by_hand_and_by_differences():
    theta, cov = random_point()
    right = derivative(lambda t: trace(TARGET, t, cov), theta)
    by_hand = -np.exp(theta) * np.diagonal(cov, axis1=1, axis2=2)
    np.testing.assert_allclose(by_hand, right, rtol=1e-7)
    np.testing.assert_allclose(trace_gradient(TARGET, theta, cov, ROWS), by_hand, rtol=1e-6)


@pytest.mark.parametrize("diagonal", [False, True], ids=["full", "diagonal"])
def test_the_objective_has_its_maximum_there(diagonal):
    """L(m, S) is stationary in m and in S at once: no profile, no envelope theorem."""
    q = fit_delta(TARGET, np.zeros((4, 3)), diagonal=diagonal)
    assert q.converged

    def objective(packed, r):
        m, root = packed[None, :3], np.zeros((3, 3))
        if diagonal:
            root[np.diag_indices(3)] = packed[3:]
        else:
            root[np.tril_indices(3)] = packed[3:]
        cov = root @ root.T
        row = np.array([r])
        curve = np.trace(TARGET.hessian(m, row)[0] @ cov)
        return TARGET.value(m, row)[0] + 0.5 * curve + np.log(np.abs(np.diag(root))).sum()

    for r in ROWS:
        root = np.linalg.cholesky(q.cov[r])
        packed = np.concatenate(
            [q.mean[r], np.diag(root) if diagonal else root[np.tril_indices(3)]]
        )
        slopes = derivative(lambda x, r=r: np.array([objective(x[0], r)]), packed[None])
        assert np.abs(slopes).max() < 1e-4
        best = minimize(lambda x, r=r: -objective(x, r), packed + 0.05, method="BFGS")
        assert -best.fun == pytest.approx(objective(packed, r), abs=1e-8)
    off_diagonal = q.cov[:, ~np.eye(3, dtype=bool)]
    assert (off_diagonal == 0.0).all() == diagonal


def test_means_are_nearer_to_the_posterior_mean_than_modes():
    one = PoissonLogNormal(np.array([[2.0], [0.0]]), [0.0], [[1.0]])
    grid = np.linspace(-8.0, 8.0, 4001)[:, None]
    for r in (0, 1):
        log_density = one.value(grid, np.full(len(grid), r))
        weights = np.exp(log_density - log_density.max())
        exact = (weights * grid[:, 0]).sum() / weights.sum()
        mode = fit_laplace(one, np.zeros((2, 1))).mean[r, 0]
        delta = fit_delta(one, np.zeros((2, 1))).mean[r, 0]
        assert abs(delta - exact) < 0.25 * abs(mode - exact)


def test_a_row_without_a_proper_mode_is_left_to_laplace():
    q = fit_delta(TwoHumps(), np.array([[0.0], [1.5]]))
    assert list(q.is_proper) == [False, True]
    assert q.mean[0, 0] == 0.0
    assert np.isfinite(q.mean).all()
    assert np.isfinite(q.cov).all()
    assert (q.cov > 0.0).all()


def test_the_climb_stays_where_the_objective_is_defined():
    """Near the inflection of two close humps the profile grows without end."""
    humps = TwoHumps(1.02)
    q = fit_delta(humps, np.array([[0.3]]))
    assert np.isfinite(q.mean).all()
    assert (-humps.hessian(q.mean, ROWS[:1]) > 0.0).all()


# ------------------------------------------------------------------ coordinate ascent over a graph


@dataclass
class TwoLevels:
    """centre ~ N(0, 4); theta_r | centre ~ N(centre, 1 / tau); counts_rj ~ Poisson(exp theta_r).

    The rest is tau's factor, Gamma(shape, rate): conjugate.
    """

    counts: np.ndarray
    shape: float = 2.0
    rate: float = 1.0

    def _squares(self, gaussians):
        theta, centre = gaussians["theta"], gaussians["centre"]
        gaps = (theta.mean - centre.mean) ** 2 + theta.cov[:, 0] + centre.cov[:, 0]
        return gaps[:, 0]

    def objectives(self, node, gaussians, rest):
        tau = rest[0] / rest[1]
        if node == "theta":
            totals, trials = self.counts.sum(axis=1), self.counts.shape[1]
            return Level(totals, trials, gaussians["centre"].mean[0, 0], tau)
        precision = 0.25 + tau * len(self.counts)
        return Level(np.zeros(1), 0, tau * gaussians["theta"].mean.sum() / precision, precision)

    def update_rest(self, gaussians, rest):
        return (
            self.shape + 0.5 * len(self.counts),
            self.rate + 0.5 * self._squares(gaussians).sum(),
        )

    def log_joint(self, gaussians, rest):
        from scipy.special import digamma, gammaln

        a, b = rest
        tau, log_tau = a / b, digamma(a) - np.log(b)
        theta, centre = gaussians["theta"], gaussians["centre"]
        rate = np.exp(theta.mean[:, 0]) * (1.0 + 0.5 * theta.cov[:, 0, 0])
        poisson = self.counts.sum(axis=1) @ theta.mean[:, 0] - self.counts.shape[1] * rate.sum()
        rows = 0.5 * (
            len(rate) * (log_tau - np.log(2 * np.pi)) - tau * self._squares(gaussians).sum()
        )
        top = -0.125 * (centre.mean**2 + centre.cov[0])[0, 0] - 0.5 * np.log(8 * np.pi)
        prior = self.shape * np.log(self.rate) - gammaln(self.shape)
        prior += (self.shape - 1.0) * log_tau - self.rate * tau
        entropy = a - np.log(b) + gammaln(a) + (1.0 - a) * digamma(a)
        return poisson + rows + top + prior + entropy


class Level:
    """totals theta - trials exp(theta) - precision (theta - mean)**2 / 2."""

    def __init__(self, totals, trials, mean, precision):
        self.totals, self.trials, self.mean, self.precision = totals, trials, mean, precision

    def value(self, theta, rows):
        t = theta[:, 0]
        gap = 0.5 * self.precision * (t - self.mean) ** 2
        return self.totals[rows] * t - self.trials * np.exp(t) - gap

    def gradient(self, theta, rows):
        rate = self.trials * np.exp(theta)
        return self.totals[rows][:, None] - rate - self.precision * (theta - self.mean)

    def hessian(self, theta, rows):
        return (-self.trials * np.exp(theta) - self.precision)[:, :, None]


@pytest.fixture
def model():
    rng = np.random.default_rng(4)
    theta = 1.0 + 0.7 * rng.standard_normal(30)
    return TwoLevels(rng.poisson(np.exp(theta)[:, None], size=(30, 3)))


START = {"theta": np.zeros((30, 1)), "centre": np.zeros((1, 1))}


@pytest.mark.parametrize("method", ["laplace", "delta", "diagonal_delta", "previous_mean"])
def test_coordinate_ascent_finds_its_fixed_point(model, method):
    fit = fit_nonconjugate(model, START, (2.0, 1.0), method=method, tolerance=1e-8)
    assert fit.converged
    assert len(fit.history) == len(fit.change) < 200
    assert np.isfinite(fit.history).all()
    # the conjugate node's factor is exact, whatever the method
    tau = fit.rest[0] / fit.rest[1]
    centre = fit.gaussians["centre"]
    assert centre.cov[0, 0, 0] == pytest.approx(1.0 / (0.25 + 30 * tau), rel=1e-6)
    again = model.update_rest(fit.gaussians, fit.rest)
    np.testing.assert_allclose(again, fit.rest, rtol=1e-12)
    other = {"laplace": "previous_mean", "delta": "diagonal_delta"}.get(method)
    if other:  # the same fixed point by another way
        same = fit_nonconjugate(model, START, (2.0, 1.0), method=other, tolerance=1e-8)
        np.testing.assert_allclose(
            same.gaussians["theta"].mean, fit.gaussians["theta"].mean, atol=1e-5
        )


def test_the_delta_objective_is_stationary_at_the_fit(model):
    """With the delta method's own expectations, coordinate ascent ascends one function."""
    fit = fit_nonconjugate(model, START, (2.0, 1.0), method="delta", tolerance=1e-9)
    from dataclasses import replace

    def objective(theta_shift=0.0, centre_shift=0.0, spread=1.0, rate=1.0):
        theta, centre = fit.gaussians["theta"], fit.gaussians["centre"]
        gaussians = {
            "theta": replace(theta, mean=theta.mean + theta_shift, cov=spread * theta.cov),
            "centre": replace(centre, mean=centre.mean + centre_shift),
        }
        entropy = sum(q.entropy().sum() for q in gaussians.values())
        return model.log_joint(gaussians, (fit.rest[0], rate * fit.rest[1])) + entropy

    best = objective()
    assert fit.history[-1] == pytest.approx(best, abs=1e-9)
    for change in ("theta_shift", "centre_shift"):
        assert max(objective(**{change: 1e-3}), objective(**{change: -1e-3})) < best
    for change in ("spread", "rate"):
        assert max(objective(**{change: 1.01}), objective(**{change: 0.99})) < best


def test_a_callback_sees_every_iteration(model):
    seen = []
    fit = fit_nonconjugate(
        model, START, (2.0, 1.0), max_iterations=3, tolerance=1e-12, callback=seen.append
    )
    assert [len(f.history) for f in seen] == [1, 2, 3]
    assert not fit.converged
