"""What the tests of fields share."""

import numpy as np
import pytest

from pgmult.fields.updates import samplers
from pgmult.latent.approximation import Approximation
from pgmult.latent.hyperparameters import Leaning


@pytest.fixture(params=[0.3, 9.0], ids=["near", "far"])
def any_approximation(request, monkeypatch):
    """Half of the curvature at 0 everywhere, and bad distributions of hyperparameters will do.

    A good one hides what is missing, and the search for it is most of a tiny sweep. The moves are
    those that are made where it is said to be near, leaps and turns, or far, carries and swings.
    """

    def found(family, rows):
        start = family.start()
        guess = Leaning(start, 0.4 * np.eye(len(start)), np.zeros(len(start)))
        J, h = rows.trials / 8.0 + 1e-6, rows.successes - rows.trials / 2.0
        return Approximation(J, h, family.absorb(J, h), guess, request.param)

    monkeypatch.setattr(samplers, "approximate", found)
    return request.param
