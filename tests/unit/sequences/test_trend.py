"""Trends of counts: the filter, paths from white noise, and what a run answers."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

import pgmult
from pgmult.sequences import MultinomialTrend, as_sequences
from pgmult.sequences.compiled import trends
from pgmult.sequences.models import trend

RNG = np.random.default_rng(3)
COUNTS = RNG.multinomial(200, [0.5, 0.3, 0.2], size=9)
COUNTS[4] = 0
DATA = as_sequences([COUNTS, COUNTS[:5] + 1], alphabet=["a", "b", "c"], names=["one", "two"])
FEW = {"draws": 40, "tune": 40, "chains": 2, "cores": 1, "random_seed": 0, "progressbar": False}
pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")


def dense(x, log_scale, first_sd):
    """The covariance of levels, slopes and psi of all steps, by simulation's linear map."""
    T, damping = len(log_scale), expit(x[0])
    slope, noise, s = np.exp(x[1]), np.exp(x[2]), np.exp(log_scale)
    rows = np.zeros((3, T, 3 * T))
    for t in range(T):
        if t == 0:
            rows[0, 0, 0] = first_sd
            rows[1, 0, 1] = slope * s[0] / np.sqrt(1.0 - damping**2)
        else:
            rows[0, t] = rows[0, t - 1] + rows[1, t - 1]
            rows[1, t] = damping * rows[1, t - 1]
            rows[0, t, 3 * t] += s[t]
            rows[1, t, 3 * t + 1] += slope * s[t]
        rows[2, t] = rows[0, t]
        rows[2, t, 3 * t + 2] += noise * s[t]
    return np.einsum("ati,bui->atbu", rows, rows)


X, SCALE = np.array([0.7, -1.0, -0.4, -1.5, -0.5]), RNG.normal(-0.5, 0.3, 6)
J, H = np.array([3.0, 0.0, 1.0, 5.0, 2.0, 0.5]), RNG.normal(0.0, 2.0, 6) * [1, 0, 1, 1, 1, 1]


def worked(T=6):
    return trends._Work(
        np.zeros(T), np.zeros(T), J, H, SCALE.copy(), np.empty((T, 2)), np.empty((T, 5)),
        np.empty((T, 3)),
    )  # fmt: skip


def test_the_filter_has_the_density_of_the_dense_gaussian():
    work, seen = worked(), np.flatnonzero(J)
    log_z, ahead = trends.filter_series(X, work), work.ahead
    cov = dense(X, SCALE, trends.FIRST_SD)[2, :, 2]
    y = H[seen] / J[seen]
    expected = multivariate_normal.logpdf(y, cov=cov[np.ix_(seen, seen)] + np.diag(1.0 / J[seen]))
    sites = 0.5 * (H[seen] * y - np.log(J[seen] / (2.0 * np.pi))).sum()
    assert log_z == pytest.approx(expected + sites, rel=1e-10)
    before = seen[seen < 5]
    gain = cov[5, before] @ np.linalg.inv(cov[np.ix_(before, before)] + np.diag(1.0 / J[before]))
    assert ahead[5, 0] == pytest.approx(gain @ (H[before] / J[before]), rel=1e-10)
    assert ahead[5, 1] == pytest.approx(cov[5, 5] - gain @ cov[before, 5], rel=1e-10)


def test_paths_have_the_moments_of_the_dense_gaussian_and_their_white_noise():
    work, T = worked(), 6
    trends.filter_series(X, work)

    def path(white):
        trends._path(X, work, white, False)
        return work.path.T.ravel().copy()

    mean = path(np.zeros((T, 4)))
    units = np.zeros((3 * T, T, 4))
    units[np.arange(3 * T), np.arange(3 * T) // 3, np.arange(3 * T) % 3] = 1.0
    columns = np.array([path(white) - mean for white in units])
    cov = dense(X, SCALE, trends.FIRST_SD).reshape(3 * T, 3 * T)
    site = np.concatenate([np.zeros(2 * T), J])
    inverse = np.linalg.inv(np.eye(3 * T) + cov * site)
    posterior = inverse @ cov
    np.testing.assert_allclose(columns.T @ columns, posterior, atol=1e-10)
    np.testing.assert_allclose(mean, posterior[:, 2 * T :] @ H, atol=1e-10)
    white, again = RNG.standard_normal((T, 4)), np.zeros((T, 4))
    path(white)
    trends._path(X, work, again, True)
    np.testing.assert_allclose(again[:, :3], white[:, :3], atol=1e-9)


@pytest.fixture(scope="module")
def run():
    return pgmult.sample(MultinomialTrend(), DATA, **FEW)


def test_a_run_answers(run, tmp_path):
    ahead = run.forecast(3, totals=100)
    assert ahead.draws.shape == (80, 2, 3, 3)
    assert ahead.counts.shape == (80, 2, 3, 3)
    np.testing.assert_allclose(ahead.draws.sum(axis=3), 1.0)
    assert ahead.draws.std(axis=0)[:, 2].mean() > ahead.draws.std(axis=0)[:, 0].mean()
    np.testing.assert_array_equal(ahead.mean, run.forecast(3, totals=100).mean)
    past = run.predict().mean
    assert np.abs(past[[0, 8]] - COUNTS[[0, 8]] / 200).max() < 0.1  # the gap has a prediction
    filtered = run.predict(filtered=True).mean
    np.testing.assert_allclose(filtered.sum(axis=1), 1.0)
    assert run.check().statistics
    assert "Within 12 steps the probability of" in str(run.report(tmp_path / "page.html"))
    with pytest.raises(TypeError, match="compare forecasts of steps held out"):
        run.compare()


def test_steps_before_the_memory_are_left_out():
    data = MultinomialTrend(4).as_data(DATA)
    assert data.lengths.tolist() == [4, 4]
    np.testing.assert_array_equal(data.to_csr().toarray()[:4], COUNTS[5:])
    assert DATA.last(20) is DATA


def test_one_step_ahead_agrees_with_simulation(run):
    """A draw's probability of the last step is that of psi simulated from the step before."""
    draw = {name: run[name][0, -1] for name in run.model.predictive_variables}
    scored = run.model.log_predictive(draw, DATA)
    assert scored.shape == (14,)
    assert scored[4] == 0.0
    assert (np.delete(scored, 4) < 0.0).all()
    psi, weights = run.model._nodes(draw, DATA)
    probs = (expit(psi) * weights).sum(axis=2)
    filtered = run.model.step_probs(draw, DATA, filtered=True)[:, DATA.order]
    np.testing.assert_allclose(filtered[:, 0], probs[:, 0])
    np.testing.assert_allclose(filtered[:, 1], (1.0 - probs[:, 0]) * probs[:, 1])


def test_other_sequences_are_refused(run):
    with pytest.raises(ValueError, match="goes on from their ends alone"):
        run.forecast(2, as_sequences([COUNTS[:9], COUNTS[:5]], alphabet=["a", "b", "c"]))
    with pytest.raises(ValueError, match="parameters must have five rows"):
        MultinomialTrend(parameters=np.zeros((5, 2)))
    with pytest.raises(ValueError, match="takes no inputs"):
        MultinomialTrend().as_data(as_sequences(["ab"], inputs=np.zeros((2, 1))))
    assert trend.as_prior(trend._PRIOR, "parameters").shape == (5, 2)


def test_chains_start_where_counts_are_possible():
    """A wide prior draws volatilities under which numbers overflow."""
    wide = trend._PRIOR.copy()
    wide[3] = 1.0, 1.0
    counts = RNG.multinomial(10**6, [0.5, 0.3, 0.2], size=20)
    model, data = MultinomialTrend(parameters=wide), as_sequences([counts] * 5)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        state = model.step(rng, model.init(rng, data), data)
        assert np.isfinite(model.log_likelihood(state, data))
        assert np.isfinite(state.paths).all()
