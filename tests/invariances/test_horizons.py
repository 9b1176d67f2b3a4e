"""An answer for one does not depend on how many are asked."""

import pytest
from invariances.frame import cells, hold


@pytest.mark.parametrize(("job", "variation"), cells("horizons"), ids=lambda each: each.name)
def test_horizons(job, variation, runs):
    hold(job, variation, runs)
