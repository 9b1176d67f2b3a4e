"""The bracket of a slice update of one number: stepped out, then shrunk (Neal 2003, figures 3, 5).

A kernel evaluates its density in one place and asks here where to look next; a density that is
written out at every step of the method would be compiled as often.
"""

from pgmult.compiled.jit import jit
from pgmult.compiled.streams import uniform

START, LEFT, RIGHT, SHRINK, FOUND = range(5)


@jit
def look_next(at, above, width, state):
    """Where to look after a density at the point, above the level or not; the stream's state.

    A place is ``(stage, start, point, left, right)``. At START the point is `start`. At LEFT and
    RIGHT an end is stepped out; at SHRINK the point is drawn between the ends; at FOUND it is the
    draw, which is `start` where nothing else is left.
    """
    stage, start, point, left, right = at
    if stage == START:
        stage, point = LEFT, left
    elif stage == LEFT and above:
        left -= width
        point = left
    elif stage == LEFT:
        stage, point = RIGHT, right
    elif stage == RIGHT and above:
        right += width
        point = right
    elif stage == SHRINK and (above or point == start):
        stage = FOUND
    else:
        if stage == SHRINK:
            left, right = (point, right) if point < start else (left, point)
        u, state = uniform(state)
        stage, point = SHRINK, left + (right - left) * u if right - left > 1e-14 else start
    return (stage, start, point, left, right), state
