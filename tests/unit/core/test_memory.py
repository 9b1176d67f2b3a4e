"""What is remembered of a data set, and for how long."""

import gc
import weakref

import numpy as np

from pgmult.core.memory import once_a_data_set


class Numbers:
    """Some data."""

    def __init__(self, size):
        self.values = np.arange(size)


def test_the_last_answer_is_remembered_while_the_data_live():
    asked = []

    @once_a_data_set
    def times(data, model):
        asked.append((len(data.values), model[0]))
        return model[0] * data.values

    data, double, triple = Numbers(3), [2], [3]
    assert times(data, double) is times(data, double)
    assert times(Numbers(2), double).tolist() == [0, 2]
    assert times(data, triple).tolist() == [0, 3, 6]
    assert times(data, double).tolist() == [0, 2, 4]
    assert times(data, [2]).tolist() == [0, 2, 4]  # another object
    assert asked == [(3, 2), (2, 2), (3, 3), (3, 2), (3, 2)]
    remembered = weakref.ref(times(data, double))
    del data
    gc.collect()
    assert remembered() is None
