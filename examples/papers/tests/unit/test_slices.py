"""Slices of weights leave the posterior as it is; their bases are near it, and from the data."""

import numpy as np
import pytest
import scipy.stats
from same_draws import check_threads_do_not_matter

from examples.papers.regressions import updates as module
from examples.papers.regressions.compiled.slices import REFLECTED
from examples.papers.regressions.data import as_counted_rows, as_labelled_rows
from examples.papers.regressions.linear import bases_of
from examples.papers.regressions.logistic import LogisticRegression
from examples.papers.regressions.logistic_fits import fit_logistic_regression
from examples.papers.regressions.multinomial import StickBreakingRegression
from examples.papers.regressions.updates import Bases, find_potentials, move_weights
from pgmult import MvNormal
from pgmult.testing import rejects

GROUPS = 20_000
X = np.array([[1.0], [0.5], [-2.0], [3.0]])
SUCCESSES, TRIALS = np.array([1, 0, 0, 5]), np.array([1, 4, 0, 40])
MEAN, PRECISION = np.array([0.7]), np.array([[0.5]])
GRID = np.linspace(-9.0, 6.0, 6001)


def log_posterior(w, successes=SUCCESSES, trials=TRIALS):
    psi = X * w
    likelihood = successes @ psi - trials @ np.logaddexp(0.0, psi)
    return likelihood - 0.5 * PRECISION[0, 0] * (w - MEAN[0]) ** 2


def exact():
    density = np.exp(log_posterior(GRID) - log_posterior(GRID).max())
    share = np.cumsum(density)
    return share / share[-1]


def check_slices(
    *,
    successes=SUCCESSES,
    trials=TRIALS,
    mean=MEAN,
    precision=PRECISION,
    base=-0.5,
    root=9.0,
    updates=1,
    moves=2,
):
    """Exact draws, one a group, are exact draws after slices around a base that is far off."""
    rng = np.random.default_rng(0)
    cdf = exact()
    w = np.interp(rng.random(GROUPS), cdf, GRID)[:, None]
    data = as_labelled_rows(
        np.tile(X, (GROUPS, 1)), np.tile(successes, GROUPS), np.repeat(np.arange(GROUPS), 4),
        trials=np.tile(trials, GROUPS),
    )  # fmt: skip
    bases = Bases(
        np.empty((0, 1, 1)), np.empty((0, 1)),
        np.full((GROUPS, 1), base), np.full((GROUPS, 1, 1), root), np.full(GROUPS, moves), None,
    )  # fmt: skip
    new = w
    for _ in range(updates):
        new = move_weights(rng, new, mean, precision, data, bases)
    assert (new != w).all() if moves > 0 else (new != w).mean() > 0.2
    uniform = np.interp(new[:, 0], GRID, cdf)
    assert scipy.stats.kstest(uniform, "uniform").pvalue > 1e-4


@pytest.mark.parametrize(("base", "root"), [(-3.0, 1.0), (-0.5, 9.0), (2.0, 0.3)])
def test_slices_leave_the_posterior_as_it_is(base, root):
    """Far off, too narrow, too wide: the posterior has mean -0.66 and sd 0.16."""
    check_slices(base=base, root=root)


@pytest.mark.parametrize(("base", "root"), [(-0.6, 9.0), (-0.7, 4.0)])
def test_reflected_steps_leave_the_posterior_as_it_is(base, root):
    check_slices(base=base, root=root, moves=REFLECTED)


def test_reflected_steps_of_another_posterior_are_refused():
    wrong = SUCCESSES + np.array([0, 1, 0, 1])
    rejects(check_slices, successes=wrong, base=-0.6, moves=REFLECTED)


@pytest.mark.parametrize(
    "broken",
    [
        {"successes": SUCCESSES + np.array([0, 1, 0, 1])},
        {"trials": TRIALS + np.array([1, 0, 0, 4])},
        {"mean": MEAN - 3.0},
        {"precision": 1.5 * PRECISION},
    ],
    ids=["successes", "trials", "prior mean", "prior precision"],
)
def test_slices_of_another_posterior_are_refused(broken):
    rejects(check_slices, **broken)


def test_a_base_that_follows_the_weights_is_refused(monkeypatch):
    right = module.slice_weights

    def following(worker, start, stop, rows, prior, around, key, weights, out):
        around = around._replace(base=weights)
        return right(worker, start, stop, rows, prior, around, key, weights, out)

    monkeypatch.setattr(module, "slice_weights", following)
    rejects(check_slices, root=15.0, updates=8)


def test_a_base_in_the_place_of_the_posterior_is_refused(monkeypatch):
    """No correction: draws from the base itself."""

    def uncorrected(worker, start, stop, rows, prior, around, key, weights, out):
        base, root, _ = around
        out[:] = base + np.random.default_rng(0).standard_normal(out.shape) / root[:, 0]
        return 0

    monkeypatch.setattr(module, "slice_weights", uncorrected)
    rejects(check_slices)


# ------------------------------------------------------------------ the bases


def rare(num_positives, num_rows=2000, size=9, seed=0):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(num_rows), rng.standard_normal((num_rows, size - 1))])
    y = np.zeros(num_rows, dtype=int)
    y[rng.choice(num_rows, num_positives, replace=False)] = 1
    return x, y


@pytest.mark.parametrize("num_positives", [0, 3, 60, 1000])
@pytest.mark.parametrize("var", [1.0, 100.0])
def test_bases_are_the_nearest_gaussians(num_positives, var):
    x, y = rare(num_positives)
    prior = MvNormal(np.zeros(9), var * np.eye(9))
    data = as_labelled_rows(x, y)
    gram, pull = find_potentials(data, prior.prior_mean, prior.precision())
    fit = fit_logistic_regression(LogisticRegression(prior), data, method="quadrature")
    P = prior.precision() + gram[0]
    root = np.linalg.cholesky(np.linalg.inv(fit.cov[0]))
    assert np.linalg.norm(root.T @ (np.linalg.solve(P, pull[0]) - fit.mean[0])) < 0.4
    white = np.linalg.solve(root, np.linalg.solve(root, P).T)
    assert (np.abs(np.linalg.eigvalsh(white) - 1.0) < 0.15).all()


def test_groups_without_rows_have_the_prior_for_a_base():
    data = as_labelled_rows([[1.0, 2.0]], [1], ["b"], group_names=["a", "b"])
    gram, pull = find_potentials(data, np.array([0.3, 0.1]), np.eye(2))
    assert not gram[0].any()
    assert not pull[0].any()
    assert gram[1].any()


def test_bases_come_from_data_and_model_alone():
    """Found once for data and model, whatever was done in between; others for other data."""
    x, y = rare(5)
    model, data = LogisticRegression(), as_labelled_rows(x, y)
    one = bases_of(data, model)
    model.init(np.random.default_rng(0), data)
    assert bases_of(data, model) is one
    again = bases_of(as_labelled_rows(x, y), model)
    np.testing.assert_array_equal(again.mean, one.mean)
    assert bases_of(data, LogisticRegression()) is not one
    other = bases_of(data.with_successes(1 - data.successes), model)
    assert (other.mean != one.mean).any()


def test_the_rule_looks_at_rows_columns_and_rarity():
    def sweep(x, y, prior=None):
        bases = bases_of(as_labelled_rows(x, y), LogisticRegression(prior))
        return 0 if bases.slices is None else int(bases.slices[0]), bases.gibbs is not None

    rng = np.random.default_rng(1)
    few = rng.standard_normal((60, 2))
    balanced = (rng.random(60) < 0.5).astype(int)
    wide = np.column_stack([np.ones(60), rng.standard_normal((60, 79))])
    vague = MvNormal(np.zeros(80), 100.0 * np.eye(80))
    assert sweep(few, balanced) == (0, True)
    assert sweep(*rare(100)) == (REFLECTED, False)
    assert sweep(*rare(12, size=5)) == (2, False)
    assert sweep(*rare(1), MvNormal(np.zeros(9), 100.0 * np.eye(9))) == (4, False)
    assert sweep(wide, balanced, vague) == (2, True)


@pytest.mark.parametrize("easy", [True, False])
@pytest.mark.parametrize("model", [LogisticRegression, StickBreakingRegression])
def test_threads_do_not_matter(model, easy, monkeypatch):
    monkeypatch.setattr(module, "_easy", lambda data, base: np.full(len(base), easy))
    x, y = rare(9, num_rows=300)
    if model is LogisticRegression:
        data = as_labelled_rows(x, y, np.arange(300) % 3)
    else:
        data = as_counted_rows(x, y + np.arange(300) % 3)
    check_threads_do_not_matter(model(), data)
