"""Scalars at the boundary: right, or a sentence that names the argument."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from pgmult.core.arguments import (
    as_choice,
    as_flag,
    as_kind,
    as_probability,
    as_real,
    as_seed,
    brief,
)


class Silent:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (3, "3 (int)"),
        ("a", "'a' (str)"),
        (np.zeros((30, 30)), "array([[0., 0."),
        (list(range(100)), "... (list)"),
        (Silent(), "... (Silent)"),
    ],
)
def test_values_are_shown_briefly(value, shown):
    assert shown in brief(value)
    assert len(brief(value)) < 90
    assert "\n" not in brief(value)


def test_what_is_right_passes():
    assert as_choice("a", "method", ("a", "b")) == "a"
    assert as_flag(np.True_, "new") is True
    assert as_real(Fraction(1, 4), "share") == 0.25
    assert as_real(np.array(2), "share", above=0.0, maximum=2.0) == 2.0
    assert as_probability(np.float32(0.5), "probability") == 0.5
    assert as_seed(7) == 7
    assert as_seed(None) != as_seed(None)
    assert as_kind({}, "settings", dict) == {}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: as_choice("c", "method", ("a", "b")),
            ValueError,
            "method must be one of a, b, got",
        ),
        (lambda: as_choice([], "method", ("a", "b")), ValueError, "got [] (list)"),
        (lambda: as_flag(1, "new"), TypeError, "new must be True or False, got 1 (int)"),
        (lambda: as_real(True, "scale"), TypeError, "scale must be a number, got True (bool)"),
        (lambda: as_real("1", "scale"), TypeError, "scale must be a number, got '1' (str)"),
        (lambda: as_real(1j, "scale"), TypeError, "scale must be a number"),
        (lambda: as_real(math.nan, "scale"), ValueError, "scale must be finite, got nan"),
        (lambda: as_real(10**400, "scale"), ValueError, "scale must be finite"),
        (lambda: as_real(5e-324, "scale"), ValueError, "scale must be 0 or further from it"),
        (lambda: as_real(0, "scale", above=0.0), ValueError, "scale must be above 0, got 0"),
        (lambda: as_real(1, "scale", minimum=2.0), ValueError, "scale must be at least 2, got 1"),
        (lambda: as_real(3, "scale", maximum=2.0), ValueError, "scale must be at most 2, got 3"),
        (
            lambda: as_probability(1.0, "level"),
            ValueError,
            "level must be between 0 and 1, got 1.0",
        ),
        (lambda: as_seed(1.5), TypeError, "random_seed must be an integer or None, got 1.5"),
        (lambda: as_seed(-1), ValueError, "random_seed must be at least 0, got -1"),
        (lambda: as_kind(3, "data", dict, "make one"), TypeError, "got 3 (int) (make one)"),
    ],
)
def test_what_is_wrong_is_named(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()
