"""An id, a constant, an unused level, an empty row beside the data change nothing."""

import pytest
from invariances.frame import cells, hold


@pytest.mark.parametrize(("job", "variation"), cells("besides"), ids=lambda each: each.name)
def test_besides(job, variation, runs):
    hold(job, variation, runs)
