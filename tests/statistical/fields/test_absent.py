"""Categories that were not counted: sweeps leave the joint distribution unless they count."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Constant, LogNormal, Matern, White
from pgmult.fields.updates import table_sticks
from pgmult.fields.updates.table_sticks import Potential, Reference
from pgmult.latent.hyperparameters import Leaning
from pgmult.testing import check_geweke, check_model, mutant, rejects

pytestmark = pytest.mark.slow

# The second category begins at 0.7, in one of two rows there.
DATA = as_field(
    [[0.0, 0.0], [0.0, 1.0], [0.7, 1.0], [0.7, 1.0], [2.0, 0.0], [2.0, 1.0]],
    [[4, 0, 5], [9, 0, 6], [2, 3, 1], [1, 0, 4], [6, 2, 1], [1, 1, 9]],
    counted=np.array([[1, 0, 1], [1, 0, 1], [1, 1, 1], [1, 0, 1], [1, 1, 1], [1, 1, 1]]) == 1,
)
COVARIANCE = Constant(0.8, priors={"var": LogNormal(0.8, 0.4)}) * Matern(
    1.5, 2.0, fixed=["length_scale"], active=[0]
) * Matern(0.5, 2.0, fixed=["length_scale"], active=[1]) + White(
    0.4, priors={"var": LogNormal(0.4, 0.4)}
)
MODELS = {
    structure: MultinomialGP(COVARIANCE, mean_var=1.0, structure=structure)
    for structure in ("dense", "separable")
}
STATISTICS = {
    "psi": lambda state, data: state.psi,
    "beta": lambda state, data: state.beta,
    "hyperparameters": lambda state, data: state.hyperparameters,
    "log_likelihood": MODELS["dense"].log_likelihood,
}


@pytest.fixture(autouse=True)
def any_pilot(monkeypatch):
    def rough(sticks):
        x = sticks.start
        level = np.linspace(-1.0, 1.5, sticks.taken.size).reshape(sticks.taken.shape)
        guess = Leaning(x, 0.5 * np.eye(len(x)), np.zeros(len(x)))
        return Reference(guess, Potential(sticks, x, level))

    monkeypatch.setattr(table_sticks, "pilot", rough)


@pytest.mark.parametrize("structure", MODELS)
def test_fields_with_categories_that_were_not_counted(structure, any_approximation):
    check_model(MODELS[structure], DATA, replicates=100, statistics=STATISTICS)


@pytest.mark.parametrize("structure", MODELS)
def test_geweke_refuses_sweeps_that_take_them_for_zeros(structure, any_approximation):
    def step(self, rng, state, data):
        return MODELS[structure].step(rng, state, replace(data, counted=None))

    broken = mutant(MODELS[structure], step=step)
    rejects(check_geweke, broken, DATA, statistics=STATISTICS, replicates=960)
