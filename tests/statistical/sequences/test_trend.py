"""The sampler of trends is right, and broken ones are refused."""

import numpy as np
import pytest

from pgmult.sequences import MultinomialTrend, as_sequences
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


def test_a_broken_sampler_is_refused():
    broken = mutant(MODEL, sampler=sites_alone)
    assert rejects(lambda: check_model(broken, DATA, replicates=100, sweeps=3))
