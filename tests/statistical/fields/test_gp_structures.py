"""Multinomial Gaussian processes of every structure: right, and the same as the dense sampler."""

from dataclasses import replace

import numpy as np
import pytest

import pgmult
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Constant, LogNormal, Matern, White
from pgmult.fields.priors import structures
from pgmult.fields.priors.state_space import StateSpaceGaussian, StateSpaceProcess
from pgmult.sampling.diagnostics import mcse_mean
from pgmult.testing import check_geweke, mutant, rejects

pytestmark = pytest.mark.slow

# Irregular times in no order, a repeated input, a missing row, new times before, among and after.
DATA = as_field(
    [0.0, 3.5, 0.7, 0.7, 2.0, 3.0],
    [[2, 1, 1], [1, 1, 1], [3, 0, 2], [0, 2, 1], [0, 0, 0], [6, 2, 1]],
    new_inputs=[5.0, 2.5, -1.0],
)
COVARIANCE = Constant(0.8, priors={"var": LogNormal(0.8, 0.6)}) * Matern(
    1.5, 2.0, priors={"length_scale": LogNormal(2.0, 0.6)}
) + White(0.3, fixed=["var"])
MODEL = MultinomialGP(COVARIANCE, mean_var=1.0, structure="state_space")


def test_joint_distribution(any_approximation):
    check_geweke(MODEL, DATA, replicates=200)


class VagueGaussian(StateSpaceGaussian):
    """Its filter sees less of the observations."""

    def __init__(self, field, potential, trend):
        super().__init__(field, potential, trend)
        self.J = 0.1 * self.J


class Vague(StateSpaceProcess):
    """Fields of such distributions."""

    def condition(self, potential, trend):
        return VagueGaussian(self, potential, trend)


class Narrow(StateSpaceProcess):
    """Draws that are moved by what is left come from too narrow a prior."""

    def colour(self, noise):
        return super().colour(0.2 * noise)


@pytest.mark.parametrize("any_approximation", [0.3], indirect=True)
@pytest.mark.parametrize("broken", [Vague, Narrow])
def test_broken_filters_and_draws_are_refused(broken, any_approximation):
    fixed = replace(MODEL, hyperparameters="fixed", mean=np.array([1.5, -1.5]))

    def step(self, rng, state, data):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(structures, "StateSpaceProcess", broken)
            return fixed.step(rng, state, data)

    rejects(check_geweke, mutant(fixed, step=step), DATA, replicates=100)


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_posterior_is_that_of_the_dense_sampler():
    rng = np.random.default_rng(0)
    inputs = np.random.default_rng(1).uniform(0.0, 10.0, 30)
    counts = rng.multinomial(30, [0.5, 0.3, 0.15, 0.05], size=30)
    data = as_field(inputs, counts, new_inputs=[10.0, 5.0, 11.5])

    def pi_new(structure, seed):
        model = MultinomialGP(COVARIANCE, structure=structure, hyperparameters="fixed")
        posterior = pgmult.sample(
            model, data, draws=600, tune=50, chains=2, random_seed=seed, progressbar=False,
            keep=["pi_new"],
        )  # fmt: skip
        return posterior["pi_new"]

    here, dense = pi_new("state_space", 1), pi_new("dense", 2)
    for moment in (1, 2):
        means = [(draws**moment).mean(axis=(0, 1)) for draws in (here, dense)]
        errors = [mcse_mean(draws**moment) for draws in (here, dense)]
        assert (np.abs(means[0] - means[1]) < 4.5 * np.hypot(*errors)).all()
