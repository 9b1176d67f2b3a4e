"""Regression on sticks of shares against the assembled Gaussian, and carrying forward."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from examples.papers.linderman2015.field_baselines import RawGP, Static
from pgmult import StickBreaking
from pgmult.fields import as_field
from pgmult.fields.covariances import Matern, SquaredExponential

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(9, 2))
COUNTS = RNG.poisson(3.0, size=(9, 4))
COUNTS[4] = 0  # a missing row
DATA = as_field(INPUTS, COUNTS, new_inputs=RNG.normal(size=(3, 2)))
COVARIANCE = 1.3 * Matern(1.5, 0.8, active=[0]) * SquaredExponential(1.1, active=[1])
MODEL = RawGP(COVARIANCE, noise_var=0.4, pseudo_count=0.5)


def sticks():
    seen = COUNTS.sum(axis=1) > 0
    shares = (COUNTS[seen] + 0.5) / (COUNTS[seen] + 0.5).sum(axis=1, keepdims=True)
    return INPUTS[seen], StickBreaking(order=DATA.order).inverse(shares)


class TestRawGP:
    def test_prediction_is_the_gaussian_conditional(self):
        inputs, y = sticks()
        precision = np.linalg.inv(COVARIANCE.cov(inputs) + 0.4 * np.eye(len(inputs)))
        across = COVARIANCE.cov(DATA.new_inputs, inputs)
        mean, var = MODEL.predict(DATA)
        np.testing.assert_allclose(
            mean, y.mean(axis=0) + across @ precision @ (y - y.mean(axis=0)), rtol=1e-10
        )
        expected = COVARIANCE.cov(DATA.new_inputs) - across @ precision @ across.T
        np.testing.assert_allclose(var, np.diagonal(expected), rtol=1e-9)
        link = StickBreaking(order=DATA.order)
        np.testing.assert_allclose(MODEL.predict_probs(DATA), link.probs(mean))

    def test_marginal_likelihood(self):
        inputs, y = sticks()
        cov = COVARIANCE.cov(inputs) + 0.4 * np.eye(len(inputs))
        expected = sum(multivariate_normal.logpdf(c - c.mean(), None, cov) for c in y.T)
        assert MODEL.log_marginal_likelihood(DATA) == pytest.approx(expected, rel=1e-12)

    def test_learning_ends_at_a_maximum(self):
        learned = MODEL.learned(DATA)
        assert learned.log_marginal_likelihood(DATA) > MODEL.log_marginal_likelihood(DATA)
        start, end = (
            np.append(m.covariance.log_params, np.log(m.noise_var)) for m in (MODEL, learned)
        )
        training = MODEL._training(DATA)
        gradient = approx_fprime(end, lambda x: MODEL._with(x)._evidence(*training), 1e-6)
        inside = np.abs(end - start) < np.log(1e4) - 1e-6
        assert inside.any()
        np.testing.assert_allclose(gradient[inside], 0.0, atol=1e-3)

    def test_draws(self):
        mean, var = MODEL.predict(DATA)
        draws = MODEL.sample_probs(DATA, 4000, random_seed=1)
        assert draws.shape == (4000, 3, 4)
        psi = StickBreaking(order=DATA.order).inverse(draws)
        error = np.sqrt(var)[:, None]
        np.testing.assert_allclose((psi.mean(axis=0) - mean) / error, 0.0, atol=5 / np.sqrt(4000))
        np.testing.assert_allclose(psi.var(axis=0) / error**2, 1.0, atol=0.15)

    def test_bad_input(self):
        with pytest.raises(TypeError, match="covariance must be a Covariance, got"):
            RawGP(1.0)
        with pytest.raises(ValueError, match="noise_var must be positive"):
            RawGP(COVARIANCE, noise_var=0.0)
        with pytest.raises(ValueError, match="all rows are empty"):
            MODEL.predict(as_field(INPUTS, 0 * COUNTS, new_inputs=INPUTS[:1]))


class TestStatic:
    def test_carries_the_last_observed_row_of_each_place_forward(self):
        inputs = [[2001, 5], [2003, 5], [2002, 5], [2002, 7], [2004, 5]]
        counts = [[9, 1], [0, 4], [3, 3], [8, 0], [0, 0]]
        data = as_field(inputs, counts, new_inputs=[[2005, 7], [2005, 5], [2002, 5], [2004, 5]])
        expected = np.array([[9, 1], [1, 5], [4, 4], [1, 5]])
        np.testing.assert_allclose(
            Static().predict_probs(data), expected / expected.sum(axis=1, keepdims=True)
        )
        swapped = as_field(np.array(inputs)[:, ::-1], counts, new_inputs=data.new_inputs[:, ::-1])
        np.testing.assert_array_equal(
            Static(time=1).predict_probs(swapped), Static().predict_probs(data)
        )

    def test_rows_of_one_time_and_place_add_up(self):
        data = as_field([[1, 0], [1, 0]], [[3, 0], [0, 1]], new_inputs=[[2, 0]])
        np.testing.assert_allclose(Static(pseudo_count=0.5).predict_probs(data), [[0.7, 0.3]])

    def test_answers_where_it_can_and_says_where_it_cannot(self):
        data = as_field([[1, 0], [3, 1]], [[3, 0], [1, 1]], new_inputs=[[2, 0], [2, 1], [4, 1]])
        with pytest.warns(UserWarning, match=r"\[2.0, 1.0\] or before its time, and of 1 of 3"):
            found = Static().predict_probs(data)
        np.testing.assert_allclose(found, [[0.8, 0.2], [np.nan, np.nan], [0.5, 0.5]])

    def test_bad_input(self):
        data = as_field([[1, 0], [3, 1]], [[3, 0], [1, 1]], new_inputs=[[2, 1]])
        with pytest.raises(
            ValueError, match=r"no counts at the place of the new input \[2.0, 1.0\]"
        ):
            Static().predict_probs(data)
        with pytest.raises(ValueError, match="time must be a column of the inputs"):
            Static(time=2).predict_probs(data)
        with pytest.raises(ValueError, match="pseudo_count must be positive"):
            Static(pseudo_count=-1.0)
