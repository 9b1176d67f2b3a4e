"""Units and origins of columns do not matter, inside products and groups included."""

import pytest
from invariances.frame import cells, hold


@pytest.mark.parametrize(("job", "variation"), cells("units"), ids=lambda each: each.name)
def test_units(job, variation, runs):
    hold(job, variation, runs)
