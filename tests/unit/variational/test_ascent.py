"""When a history has settled."""

import pytest

from pgmult.variational.ascent import has_settled


@pytest.mark.parametrize(
    ("history", "settled"),
    [
        ([], False),
        ([-5.0], False),
        ([-5.0, -4.99], True),
        ([-5.0, -4.9], False),
        ([4.99, 5.0], True),
    ],
)
def test_a_history_settles_when_its_last_change_is_small(history, settled):
    assert has_settled(history, 0.01) == settled
