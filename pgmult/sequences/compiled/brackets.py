"""The bracket of a slice update of one number: stepped out, then shrunk (Neal 2003, figures 3, 5).

A kernel evaluates its density in one place and asks here where to look next; a density that is
written out at every step of the method would be compiled as often.
"""

from pgmult.compiled.jit import jit

START, LEFT, RIGHT, SHRINK, FOUND = range(5)


@jit
def look_next(stage, above, point, start, left, right, width):
    """Stage, point, left and right end after a density at `point`, above the level or not.

    At START the point is `start`. At LEFT and RIGHT an end is stepped out; at SHRINK the caller
    draws the next point between the ends; at FOUND `point` is the draw.
    """
    if stage == START:
        return LEFT, left, left, right
    if stage == LEFT:
        if above:
            left -= width
            return LEFT, left, left, right
        return RIGHT, right, left, right
    if stage == RIGHT:
        if above:
            right += width
            return RIGHT, right, left, right
        return SHRINK, point, left, right
    if above:
        return FOUND, point, left, right
    if point < start:
        return SHRINK, point, point, right
    return SHRINK, point, left, point
