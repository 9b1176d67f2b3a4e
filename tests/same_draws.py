"""One seed, the same draws, on any number of threads."""

import dataclasses

import numpy as np

from pgmult.compiled.rows import row_threads


def check_threads_do_not_matter(model, data, sweeps=3):
    """A start and some sweeps give the same bits on one, two and three threads."""

    def run(threads):
        rng = np.random.default_rng(2)
        with row_threads(threads):
            state = model.init(rng, data)
            for _ in range(sweeps):
                state = model.step(rng, state, data)
        return state

    reference = run(1)
    for threads in (2, 3):
        state = run(threads)
        for field in dataclasses.fields(state):
            np.testing.assert_array_equal(
                getattr(state, field.name), getattr(reference, field.name), err_msg=field.name
            )
