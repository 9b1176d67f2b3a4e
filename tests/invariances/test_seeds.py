"""Other seeds change an answer by its Monte Carlo error alone."""

import pytest
from invariances.frame import cells, hold


@pytest.mark.parametrize(("job", "variation"), cells("seeds"), ids=lambda each: each.name)
def test_seeds(job, variation, runs):
    hold(job, variation, runs)
