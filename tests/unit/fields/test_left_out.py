"""Rows predicted from all others: a site given the other sites, and weights of draws."""

import numpy as np
import pytest
import scipy.stats

import pgmult
from examples.papers.linderman2015.softmax_gp import LogisticNormalGP
from pgmult.core.scores import leave_one_out
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Matern
from pgmult.fields.left_out import _Conditionals, _Counts, log_mean_binomial, without_row
from pgmult.fields.rivals import compare

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")  # short on purpose
KEEP = ["psi", "beta", "hyperparameters"]
FEW = {"chains": 2, "random_seed": 0, "progressbar": False}


def overdispersed(num_rows=8, spread=0.7, seed=0, total=40):
    rng = np.random.default_rng(seed)
    psi = np.linspace(-1.0, 1.0, num_rows)[:, None] * [1.0, 0.5]
    psi = psi + spread * rng.normal(size=psi.shape)
    first, second = 1.0 / (1.0 + np.exp(-psi.T))
    probs = np.column_stack([first, (1 - first) * second, (1 - first) * (1 - second)])
    return np.array([rng.multinomial(total, p) for p in probs])


@pytest.mark.parametrize("reaching", [0, 1, 7, 200])
@pytest.mark.parametrize(("mean", "var"), [(-3.0, 0.01), (0.0, 1.0), (2.0, 4.0)])
def test_mean_binomial(reaching, mean, var):
    z = np.linspace(-30.0, 30.0, 200_001)
    psi = mean + np.sqrt(var) * z
    for taken in {0, reaching // 3, reaching}:
        log_terms = taken * psi - reaching * np.logaddexp(0.0, psi) + scipy.stats.norm.logpdf(z)
        top = log_terms.max()
        expected = top + np.log(np.exp(log_terms - top).sum() * (z[1] - z[0]))
        counts = np.array([taken, reaching], dtype=float)
        found = log_mean_binomial(np.array(mean), np.array(var), np.array(mean), counts)
        assert found == pytest.approx(expected, abs=1e-6, rel=1e-6)


@pytest.mark.parametrize("shared", [True, False])
def test_the_law_of_a_site_is_the_conditional_normal(shared):
    counts = overdispersed()
    counts[3] = 0  # nothing is left out there, nor known of the others
    data = as_field(np.arange(8.0), counts)
    model = MultinomialGP(2.0 * Matern(1.5, 3.0), overdispersion=0.3, shared=shared)
    state = model.prior(np.random.default_rng(0), data)
    psi, mean, var = _Conditionals(model, data).of(state)
    np.testing.assert_array_equal(psi, state.psi)
    seen = [i for i in range(8) if i != 3]
    level = model.trend(data).at(state.beta)
    for j in range(2):
        theta = state.hyperparameters[0 if shared else j]
        K = model.full_covariance(data).with_log_params(np.log(theta)).cov(data.sites)
        for i in seen:
            others = [s for s in seen if s != i]
            weights = np.linalg.solve(K[np.ix_(others, others)], K[others, i])
            expected = level[i, j] + weights @ (psi - level)[others, j]
            assert mean[i, j] == pytest.approx(expected, abs=1e-6)
            assert var[i, j] == pytest.approx(K[i, i] - weights @ K[others, i], rel=1e-6)


@pytest.mark.parametrize("missing", [[], [4, 7]])
def test_a_table_has_the_same_laws(missing):
    """All its cells are known, those without counts, too."""
    at = np.array([[t, s] for t in range(4) for s in (0.0, 1.0, 3.0)])
    there = np.delete(at, missing, axis=0)
    counts = np.random.default_rng(0).multinomial(9, [0.5, 0.3, 0.2], size=len(there))
    covariance = 2.0 * Matern(1.5, 3.0, active=[0]) * Matern(0.5, 2.0, active=[1])
    model = MultinomialGP(covariance, structure="separable", overdispersion=0.3)
    data = as_field(there, counts)
    assert model.table_sticks(data) is not None
    state = model.prior(np.random.default_rng(0), data)
    _, mean, var = _Conditionals(model, data).of(state)
    # the same with counts in every cell, which stand as the table has them
    sites = model.table_sticks(data)[0].table.sites
    whole = as_field(sites, np.ones((len(sites), 3), int), order=data.order)
    dense = MultinomialGP(covariance, structure="dense", overdispersion=0.3)
    _, *expected = _Conditionals(dense, whole).of(state)
    np.testing.assert_allclose(mean, expected[0][: len(there)], atol=1e-6)
    np.testing.assert_allclose(var, expected[1][: len(there)], rtol=1e-6)


def test_probabilities_of_all_counts_of_a_row_sum_to_one():
    """Beside another row at its site, and a category that was not counted."""
    other, total = [3, 1, 2], 4
    rng = np.random.default_rng(0)
    mean, var, psi = rng.normal(size=(1, 2)), rng.uniform(0.2, 2.0, size=(1, 2)), np.zeros((1, 2))
    sums = {}
    for mask in ([True, True, True], [False, True, True]):
        tables = [
            [a, b, total - a - b] for a in range(total + 1) for b in range(total + 1 - a)
            if mask[0] or a == 0
        ]  # fmt: skip
        logs, means = [], np.zeros(3)
        for table in tables:
            data = as_field(
                [0.0, 0.0], [other, table], counted=np.array([[True] * 3, mask]), order=[0, 1, 2]
            )
            log_p, log_probs = _Counts.of(data, np.array([1])).log_probs(psi, mean, var)
            number = scipy.stats.multinomial(total, [1 / 3] * 3).logpmf(table) + total * np.log(3)
            logs.append(log_p[0] + number)
            means += np.exp(logs[-1]) * np.array(table) / total
        sums[tuple(mask)] = np.exp(logs).sum()
        np.testing.assert_allclose(means, np.exp(log_probs[0]), atol=1e-6)
    assert list(sums.values()) == pytest.approx([1.0, 1.0], abs=1e-6)


@pytest.mark.slow
def test_rows_are_told_as_runs_without_them_tell_them():
    counts, rows = overdispersed(), [0, 4]
    model = MultinomialGP(1.0 * Matern(1.5, 4.0), overdispersion=0.5)
    data = as_field(np.arange(8.0), counts)
    run = pgmult.sample(model, data, draws=600, tune=100, keep=KEEP, **FEW)
    found = leave_one_out(*without_row(run, data, np.array(rows), 1200))
    assert (found.k < 0.7).all()
    for row, told in zip(rows, np.exp(found.log_p), strict=True):
        shown = np.where(np.arange(8)[:, None] == row, 0, counts)
        alone = pgmult.sample(
            model, as_field(np.arange(8.0), shown, order=data.order), draws=600, tune=100,
            keep=["pi"], **FEW,
        )  # fmt: skip
        expected = alone.stack("pi")[:, row].mean(axis=0)
        np.testing.assert_allclose(told, expected, atol=0.04)
        seen = run.predict(inputs="seen").mean[row]
        assert row or np.abs(seen - expected).max() > 0.06, "the row itself tells much of its own"


@pytest.mark.slow
def test_runs_that_kept_less_are_weighted_as_they_are():
    counts = overdispersed(spread=0.1, total=10)
    data = as_field(np.arange(8.0), counts)
    model = MultinomialGP(1.0 * Matern(1.5, 4.0), overdispersion=0.05)
    run = pgmult.sample(model, data, draws=600, tune=200, keep=[*KEEP, "pi"], **FEW)
    whole = compare(run)
    less = pgmult.sample(model, data, draws=600, tune=200, keep=["pi"], **FEW)
    assert compare(less).levels[0] == pytest.approx(whole.levels[0], abs=0.02)
    other = pgmult.sample(LogisticNormalGP(Matern(1.5, 4.0)), data, draws=300, tune=100, **FEW)
    assert np.isfinite(compare(other).levels[0])


@pytest.mark.slow
def test_with_large_counts_that_scatter_the_model_beats_what_is_simple():
    """Each row has many counts and an effect of its own: draws that saw it are no yardstick."""
    rng = np.random.default_rng(5)
    years = np.repeat(np.arange(20.0), 3)
    place = np.tile(np.arange(3.0), 20)
    truth = np.sin(years / 3.0)[:, None] * [1.5, -1.0] + 0.3 * rng.normal(size=(60, 2))
    first, second = 1.0 / (1.0 + np.exp(-truth.T))
    probs = np.column_stack([first, (1 - first) * second, (1 - first) * (1 - second)])
    counts = np.array([rng.multinomial(3000, p) for p in probs])
    data = as_field(np.column_stack([years, place]), counts, input_names=["year", "place"])
    covariance = 1.0 * Matern(1.5, 5.0, active=[0]) * Matern(0.5, 3.0, active=[1])
    model = MultinomialGP(covariance, overdispersion=0.1)
    run = pgmult.sample(model, data, draws=300, tune=200, keep=KEEP, **FEW)
    found = compare(run)
    assert found.sentences[0].startswith("The model predicts a count better"), found.sentences
    assert set(found.names) == {
        "the model", "pooled shares", "shares of its place", "shares of its year",
        "its nearest places", "last shares", "the rows before and after", "AR(2) of log ratios",
    }  # fmt: skip
    assert "rough" not in found.how


def test_a_series_that_swings_is_told_by_its_autoregression():
    """A cycle: what is ahead is neither what was nor between, but a sum of the last two."""
    t = np.arange(40)
    x = 1.5 * np.cos(2.0 * np.pi * t / 5.0)
    p = np.column_stack([np.exp(x), np.ones(40)]) / (1.0 + np.exp(x))[:, None]
    counts = np.array([np.random.default_rng(i).multinomial(5000, q) for i, q in enumerate(p)])
    data = as_field(t.astype(float), counts)
    model = MultinomialGP(Matern(1.5, 3.0))
    pi = np.broadcast_to(p, (1, 30, 40, 2))
    run = pgmult.Posterior(
        {"pi": np.full(pi.shape, 0.5)}, dims={"pi": model.dims["pi"]},
        origin=pgmult.sampling.Origin.of(model, data),
    )  # fmt: skip
    found = compare(run)
    assert found.names[found.rival] == "AR(2) of log ratios"
    hidden = np.where((t >= 36)[:, None], counts, 0)
    shown = data.with_counts(counts - hidden)
    run = pgmult.Posterior(
        {"pi": np.full(pi.shape, 0.5)}, dims={"pi": model.dims["pi"]},
        origin=pgmult.sampling.Origin.of(model, shown),
    )  # fmt: skip
    found = compare(run, held_out=hidden)
    best = (hidden * np.log(p)).sum() / hidden.sum()
    assert found.levels[found.names.index("AR(2) of log ratios")] == pytest.approx(best, abs=0.02)
