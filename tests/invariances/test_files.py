"""The same data in another form of file are the same to the bit."""

import pytest
from invariances.frame import cells, hold


@pytest.mark.parametrize(("job", "variation"), cells("files"), ids=lambda each: each.name)
def test_files(job, variation, runs):
    hold(job, variation, runs)
