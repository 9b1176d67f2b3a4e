"""Rows, columns, categories and labels may come in any order and have any names."""

import pytest
from invariances.frame import cells, hold


@pytest.mark.parametrize(("job", "variation"), cells("order"), ids=lambda each: each.name)
def test_order(job, variation, runs):
    hold(job, variation, runs)
