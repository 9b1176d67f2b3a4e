"""A run of the default length agrees with one ten times as long, within its errors."""

import pytest
from invariances.frame import cells, hold


@pytest.mark.parametrize(("job", "variation"), cells("longer"), ids=lambda each: each.name)
def test_longer(job, variation, runs):
    hold(job, variation, runs)
