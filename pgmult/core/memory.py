"""What is found once for a data set, and asked for again by every sweep."""

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

Data = TypeVar("Data")
Others = ParamSpec("Others")
Answer = TypeVar("Answer")


def _same(one: Any, other: Any) -> bool:
    return one is other or (isinstance(one, np.ndarray) and np.array_equal(one, other))


def once_a_data_set(
    function: Callable[Concatenate[Data, Others], Answer],
) -> Callable[Concatenate[Data, Others], Answer]:
    """Cache what `function` returns for a data set, as long as the data set exists.

    Of each data set the last answer is remembered, and given again while the other arguments, such
    as a model, are the same objects or equal arrays. The answer must not hold on to the data set.
    Chains that ask at the same time wait for the one that finds it.
    """
    lock = RLock()
    known: WeakKeyDictionary[object, tuple[tuple[object, ...], Answer]] = WeakKeyDictionary()

    @wraps(function)
    def ask(data: Data, /, *others: Others.args, **named: Others.kwargs) -> Answer:
        given = (*others, *named.values()) if named else others
        found = known.get(data)
        if found is not None and (not given or all(map(_same, found[0], given))):
            return found[1]
        with lock:
            found = known.get(data)  # another thread may have found it by now
            if found is None or not all(map(_same, found[0], given)):
                found = known[data] = given, function(data, *others, **named)
        return found[1]

    return ask


@once_a_data_set
def _parts(data: Any) -> dict[range, Any]:
    """Some rows of the data that were asked for."""
    return {}


def part_of(data: Data, part: slice, size: int, make: Callable[[range], Data]) -> Data:
    """Neighbouring ones of so many rows of the data, made at the first call.

    The same rows are the same object, so that what is found once for a data set is found once for
    them; all of them are the data themselves.
    """
    rows = range(size)[part]
    if rows == range(size):
        return data
    pieces = _parts(data)
    if rows not in pieces:
        pieces[rows] = make(rows)
    piece: Data = pieces[rows]
    return piece
