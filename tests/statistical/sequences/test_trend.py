"""The sampler of trends is right, and broken ones are refused."""

import numpy as np
import pytest

from pgmult.core.sweeps import Scan
from pgmult.sequences import MultinomialTrend, as_sequences
from pgmult.sequences.models.trend import TrendState
from pgmult.testing import check_model, mutant, rejects

pytestmark = pytest.mark.slow

PRIOR = np.array([[0.5, 0.8], [-0.7, 0.5], [-0.5, 0.5], [-0.7, 0.5], [-0.7, 0.5]])
MODEL = MultinomialTrend(parameters=PRIOR)
COUNTS = np.array([[20, 9, 1], [30, 5, 0], [0, 0, 0], [7, 7, 30], [40, 1, 2]])
DATA = as_sequences([COUNTS, COUNTS[:1] + 2])
HUGE = as_sequences([np.array([[300, 60, 20], [100, 300, 40], [50, 400, 90]])])


@pytest.mark.parametrize("data", [DATA, HUGE], ids=["gaps", "many"])
def test_trends(data):
    check_model(MODEL, data, replicates=100, sweeps=3)


def sites_alone(model, data):
    """A sampler that forgets what sites leave of the likelihood."""
    series = model.series(data)
    without = series._replace(taken=0.0 * series.taken, reaching=0.0 * series.reaching)
    broken = mutant(model, series=lambda self, data: without)
    return MultinomialTrend.sampler(broken, data)


def scales_as_they_were(model, data):
    """A sampler whose scales move without their paths."""
    right = MultinomialTrend.sampler(model, data)

    def step(rng, state):
        new = right.step(rng, state)
        return TrendState(new.coordinates, state.log_scales, new.paths)

    return Scan(right.start, (step,))


@pytest.mark.parametrize("sampler", [sites_alone, scales_as_they_were])
def test_broken_samplers_are_refused(sampler):
    broken = mutant(MODEL, sampler=sampler)
    assert rejects(lambda: check_model(broken, DATA, replicates=100, sweeps=3))
