"""What the tests of fields share."""

import numpy as np
import pytest

from pgmult import DiagonalPotential
from pgmult.fields.models import multinomial_gp as gp_model
from pgmult.fields.models.approximation import Approximation
from pgmult.latent.hyperparameters import Guess


@pytest.fixture
def any_approximation(monkeypatch):
    """Half of the curvature at 0 everywhere, and any law of hyperparameters: a bad one will do.

    A good one hides what is missing, and the search for it is most of a tiny sweep.
    """

    def found(model, data):
        start = model.start(data)
        guess = Guess(start, np.tile(0.4 * np.eye(start.shape[1]), (len(start), 1, 1)))
        taken, reaching = model.binomials(data)
        potential = DiagonalPotential(reaching / 8.0, taken - reaching / 2.0)
        nothing = np.zeros_like(taken)
        spread = np.full(taken.shape[1], 0.3)
        return Approximation(potential, guess, spread, nothing, nothing + 1.0)

    monkeypatch.setattr(gp_model, "approximation", found)
