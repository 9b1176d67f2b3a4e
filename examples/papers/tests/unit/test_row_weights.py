"""Rows of regressions that count several times."""

import numpy as np
import pytest

from examples.papers.regressions import updates
from examples.papers.regressions.data import as_counted_rows, as_labelled_rows
from examples.papers.regressions.logistic import LogisticRegression
from pgmult import MvNormal

RNG = np.random.default_rng(4)
X = RNG.standard_normal((60, 2))
Y = (X @ [1.5, -0.5] + RNG.logistic(size=60) > 0.0).astype(int)


def exact_posterior(x, y, times, prior_var=4.0):
    """Mean and sd of one weight of rows of any weights, by a sum over a grid."""
    grid = np.linspace(-12.0, 12.0, 20_001)
    psi = x[:, None] * grid
    level = times @ (y[:, None] * psi - np.logaddexp(0.0, psi)) - 0.5 * grid**2 / prior_var
    weight = np.exp(level - level.max())
    weight /= weight.sum()
    mean = weight @ grid
    return mean, np.sqrt(weight @ (grid - mean) ** 2)


@pytest.mark.parametrize("easy", [True, False], ids=["gibbs", "slices"])
def test_samplers_are_exact_for_weights_that_are_not_whole(easy, monkeypatch):
    monkeypatch.setattr(updates, "_easy", lambda data, base: np.full(len(base), easy))
    x, y = np.linspace(0.5, 1.5, 8), np.array([1, 0, 1, 0, 1, 0, 1, 0])
    times = np.array([0.3, 1.7, 0.0, 2.5, 0.45, 3.2, 0.1, 1.0])
    data = as_labelled_rows(x[:, None], y, weights=times)
    model = LogisticRegression(MvNormal(np.zeros(1), np.array([[4.0]])))
    rng = np.random.default_rng(0)
    state, draws = model.init(rng, data), np.empty(3000)
    for i in range(len(draws)):
        state = model.step(rng, state, data)
        draws[i] = state.weights[0, 0]
    mean, sd = exact_posterior(x, y, times)
    plain, _ = exact_posterior(x, y, np.ones(8))
    assert abs(draws.mean() - mean) < 0.1 * sd < 0.3 * abs(plain - mean)
    assert draws.std() == pytest.approx(sd, rel=0.08)


def test_counts_of_weighted_rows_are_not_simulated():
    rng, state = np.random.default_rng(0), None
    data = as_labelled_rows(X, Y, weights=np.full(60, 1.5))
    model = LogisticRegression()
    state = model.prior(rng, data)
    with pytest.raises(ValueError, match="trials must be whole to be simulated from, got 1"):
        model.simulate(rng, state, data)
    doubled = as_labelled_rows(X, Y, weights=np.full(60, 2.0))
    assert set(model.simulate(rng, state, doubled).successes) <= {0.0, 1.0, 2.0}


def test_rows_say_what_is_wrong():
    with pytest.raises(ValueError, match="weights must be at least 0, got -1 at position 2"):
        as_labelled_rows(X[:3], Y[:3], weights=[1.0, 0.0, -1.0])
    with pytest.raises(ValueError, match=r"predictor_offset must have shape \(3,\), got \(2,\)"):
        as_labelled_rows(X[:3], Y[:3], predictor_offset=[1.0, 0.0])
    with pytest.raises(ValueError, match=r"weights must have shape \(60,\)"):
        as_counted_rows(X, Y, weights=[1.0])
    assert "31.5 trials" in repr(as_labelled_rows(X[:21], Y[:21], weights=np.full(21, 1.5)))
