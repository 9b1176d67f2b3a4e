"""What is missing is summed out."""

import pytest
from invariances.frame import cells, hold


@pytest.mark.parametrize(("job", "variation"), cells("missing"), ids=lambda each: each.name)
def test_missing(job, variation, runs):
    hold(job, variation, runs)
