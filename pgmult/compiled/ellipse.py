"""The bracket of angles of an elliptical slice (Murray, Adams and MacKay 2010, figure 2).

It begins with the whole ellipse and shrinks towards angle 0, where the chain is.
"""

import math

from .jit import jit
from .streams import uniform


@jit
def open_bracket(state):
    """A first angle, the ends of the bracket, and the state of the stream."""
    u, state = uniform(state)
    angle = 2.0 * math.pi * u
    return angle, angle - 2.0 * math.pi, angle, state


@jit
def shrink_bracket(angle, left, right, state):
    """The next angle, the ends of the bracket without the last one, and the stream's state.

    Angle 0 ends the search: a bracket shrunk to rounding holds the start itself.
    """
    if angle < 0.0:
        left = angle
    else:
        right = angle
    u, state = uniform(state)
    angle = left + (right - left) * u if right - left > 1e-14 else 0.0
    return angle, left, right, state
