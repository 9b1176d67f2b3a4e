"""A row of three, three rows and a weight of 3 are the same."""

import pytest
from invariances.frame import cells, hold


@pytest.mark.parametrize(("job", "variation"), cells("aggregation"), ids=lambda each: each.name)
def test_aggregation(job, variation, runs):
    hold(job, variation, runs)
