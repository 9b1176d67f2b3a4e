"""The softmax Gaussian process: its compiled parts, its predictions, bad input."""

from functools import cached_property

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import kstest, norm

from examples.papers.linderman2015 import softmax_fields, softmax_gp
from examples.papers.linderman2015.softmax_fields import rotate_functions, smooth_columns
from examples.papers.linderman2015.softmax_gp import LogisticNormalGP
from pgmult import ConvergenceWarning, sample
from pgmult.compiled.rows import over_rows
from pgmult.fields import as_field
from pgmult.fields.compiled.dense_fields import multiply_lower
from pgmult.fields.covariances import Constant, Matern, SquaredExponential
from pgmult.testing import conditional_ratio
from pgmult.topics import as_corpus

RNG = np.random.default_rng(0)
INPUTS = np.array([0.0, 1.0, 1.0, 2.5, 4.0])
COUNTS = np.array([[1, 2, 0], [0, 0, 0], [3, 1, 0], [0, 1, 5], [0, 0, 0]])
DATA = as_field(INPUTS, COUNTS, new_inputs=[5.0, 2.5, 6.0])
COVARIANCE = 1.5 * Matern(1.5, 1.5)
MODEL = LogisticNormalGP(COVARIANCE, mean=[0.5, 0.0, -0.3])


class TestCompiled:
    @pytest.mark.parametrize(("size", "columns"), [(1, 1), (4, 2), (7, 3), (33, 5)])
    def test_multiply_lower(self, size, columns):
        factor = np.tril(RNG.normal(size=(size + 2, size + 2)))
        x, out = RNG.normal(size=(size, columns)), np.empty((size, columns))
        over_rows(multiply_lower, -(-size // 4), factor, x, out)
        np.testing.assert_allclose(out, factor[:size, :size] @ x, atol=1e-12)

    def test_smooth_columns(self):
        design, y, out = RNG.normal(size=(6, 9)), RNG.normal(size=(4, 6)), np.empty((4, 9))
        noisy = design @ design.T + 0.5 * np.eye(6)
        over_rows(smooth_columns, 4, design, np.linalg.cholesky(noisy), y, out)
        np.testing.assert_allclose(out, (design.T @ np.linalg.solve(noisy, y.T)).T, atol=1e-12)

    def test_rotations_keep_lengths_and_linear_functions(self):
        counts = RNG.poisson(2.0, size=(3, 5)).astype(np.float64)
        matrix = RNG.normal(size=(5, 5))
        z, across = RNG.normal(size=(2, 3, 5))
        pair = [np.concatenate([x @ matrix.T, x], axis=1) for x in (z, across)]
        before = np.sum(np.square(pair), axis=(0, 1))
        mean, key = np.zeros(3), np.array([1, 2], dtype=np.uint64)
        assert rotate_functions(key, counts, counts.sum(axis=0), mean, 4, *pair) == 0
        np.testing.assert_allclose(np.sum(np.square(pair), axis=(0, 1)), before)
        for moved, start in zip(pair, (z, across), strict=True):
            np.testing.assert_allclose(moved[:, :5], moved[:, 5:] @ matrix.T, atol=1e-12)
            assert np.all(moved[:, 5:] != start)

    def test_a_function_that_dwarfs_the_others(self):
        """Sums less their largest term are taken again, or the others would count for nothing."""
        key, draws = np.random.default_rng(1), []
        counts, totals = np.array([[0.0], [3.0], [0.0]]), np.array([3.0])
        mean = np.array([60.0, 0.0, 0.0])
        x = np.zeros((3, 1))
        for _ in range(4000):
            across = key.standard_normal((3, 1))
            new_key = key.integers(0, 2**63, size=2, dtype=np.uint64)
            assert rotate_functions(new_key, counts, totals, mean, 3, x, across) == 0
            draws.append(x[:, 0].copy())
        # psi_0 towers over the others, so the likelihood is exp(3 (psi_1 - psi_0)): shifted normals
        for function, shift in zip(np.array(draws[::4]).T, (-3.0, 3.0, 0.0), strict=True):
            assert kstest(function, norm(shift).cdf).pvalue > 1e-3

    def test_a_function_that_is_not_finite_is_reported(self):
        x = np.full((2, 1), np.nan)
        key = np.zeros(2, dtype=np.uint64)
        counts, still = np.ones((2, 1)), np.zeros((2, 1))
        status = rotate_functions(key, counts, np.full(1, 2.0), np.zeros(2), 1, x, still)
        assert status == 1


class TestConditionals:
    """log joint - log conditional is constant in each block."""

    @cached_property
    def state(self):
        return MODEL.prior(np.random.default_rng(8), DATA)

    def log_joint(self, whitened):
        state = MODEL._state(whitened, self.state.hyperparameters, DATA)
        return -0.5 * np.sum(whitened**2) + MODEL.log_likelihood(state, DATA)

    @pytest.mark.parametrize("k", range(3))
    def test_of_one_function(self, k):
        seen = softmax_gp._SeenCounts.of(DATA)
        psi = self.state.psi[: seen.num_sites]
        others = logsumexp(np.delete(psi, k, axis=1), axis=1)

        def with_column(z):
            whitened = self.state.whitened.copy()
            whitened[:, k] = z
            return whitened

        def log_conditional(z):
            state = MODEL._state(with_column(z), self.state.hyperparameters, DATA)
            f = state.psi[: seen.num_sites, k] - MODEL.mean[k]
            offset = MODEL.mean[k] - others
            fit = softmax_fields._log_likelihood(
                f, f, 1.0, 0.0, offset, seen.by_category[k], seen.totals
            )
            return -0.5 * z @ z + fit

        points = np.random.default_rng(9).normal(size=(4, DATA.num_sites))
        conditional_ratio(lambda z: self.log_joint(with_column(z)), log_conditional, points)

    def test_of_the_common_function(self):
        centred = self.state.whitened - self.state.whitened.mean(axis=1, keepdims=True)
        points = np.random.default_rng(10).normal(size=(4, DATA.num_sites))
        conditional_ratio(
            lambda z: self.log_joint(centred + z[:, None]),
            lambda z: norm.logpdf(z, scale=1.0 / np.sqrt(3)).sum(),
            points,
        )


class TestModel:
    def test_psi_at_new_inputs_given_psi_at_the_inputs(self):
        state = MODEL.prior(np.random.default_rng(2), DATA)
        sites, psi = DATA.sites[:4], state.psi[:4]
        weights = COVARIANCE.cov(DATA.new_inputs, sites) @ np.linalg.inv(COVARIANCE.cov(sites))
        expected = MODEL.mean + weights @ (psi - MODEL.mean)
        np.testing.assert_allclose(MODEL.psi_new_mean(state, DATA), expected, atol=1e-6)

    def test_psi_is_the_mean_plus_a_root_times_whitened(self):
        state = MODEL.step(np.random.default_rng(3), MODEL.init(RNG, DATA), DATA)
        root = np.linalg.cholesky(COVARIANCE.cov(DATA.sites))
        np.testing.assert_allclose(state.psi, MODEL.mean + root @ state.whitened, atol=1e-6)

    def test_sites_that_coincide_have_one_psi(self):
        state = MODEL.step(np.random.default_rng(4), MODEL.init(RNG, DATA), DATA)
        pi, new = MODEL.pi(state, DATA), MODEL.pi_new(state, DATA)
        np.testing.assert_array_equal(pi[1], pi[2])
        np.testing.assert_array_equal(pi[3], new[1])
        np.testing.assert_allclose(new.sum(axis=1), 1.0)

    def test_a_smooth_covariance_at_close_inputs(self):
        data = as_field(np.linspace(0, 1, 40), RNG.poisson(2.0, (40, 3)), new_inputs=[1.0, 1.1])
        model = LogisticNormalGP(SquaredExponential(2.0))
        state = model.init(np.random.default_rng(5), data)
        for _ in range(5):
            state = model.step(np.random.default_rng(5), state, data)
        assert np.isfinite(model.psi_new_mean(state, data)).all()

    def test_empirical_mean(self):
        data = as_field([0.0, 1.0], [[8, 0], [31, 0]])
        mean = LogisticNormalGP(COVARIANCE, mean="empirical")._mean(data)
        assert mean[0] - mean[1] == pytest.approx(np.log(39.5 / 0.5))

    def test_fixed_hyperparameters_stay(self):
        state = MODEL.step(np.random.default_rng(7), MODEL.init(RNG, DATA), DATA)
        np.testing.assert_allclose(state.hyperparameters, [1.5, 1.5])

    def test_labels(self):
        data = as_field(INPUTS, COUNTS, [5.0], categories=["a", "b", "c"], new_names=["later"])
        model = LogisticNormalGP(COVARIANCE, hyperparameters="sampled")
        with pytest.warns(ConvergenceWarning):
            posterior = sample(
                model, data, draws=3, tune=2, chains=1, random_seed=0, progressbar=False
            )
        assert list(posterior.coords["category"]) == ["a", "b", "c"]
        assert list(posterior.coords["new_row"]) == ["later"]
        assert posterior["hyperparameters"].shape == (1, 3, 2)

    def test_bad_input(self):
        with pytest.raises(TypeError, match="covariance must be a Covariance"):
            LogisticNormalGP(1.0)
        with pytest.raises(ValueError, match="hyperparameters must be one of fixed, sampled"):
            LogisticNormalGP(COVARIANCE, hyperparameters="guessed")
        with pytest.raises(ValueError, match='mean must be "empirical" or numbers'):
            LogisticNormalGP(COVARIANCE, mean="zero")
        with pytest.raises(ValueError, match="mean must be one number or one a category"):
            LogisticNormalGP(COVARIANCE, mean=np.zeros((2, 2)))
        with pytest.raises(ValueError, match="restarts must be at least 1"):
            LogisticNormalGP(COVARIANCE, restarts=0)
        with pytest.raises(TypeError, match="need the inputs of counts, got Corpus"):
            MODEL.as_data(as_corpus(COUNTS[:, :2] + 1))
        with pytest.raises(ValueError, match="mean must have one entry for each of 2 categories"):
            MODEL.as_data(as_field([0.0], [[1, 2]]))
        flat = LogisticNormalGP(Constant(1.0) + 1.0 * Matern(0.5, 1.0))
        assert flat.as_data(DATA) is DATA
