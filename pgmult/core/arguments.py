"""The one place that rejects bad scalars: numbers, switches, choices, seeds and our own types.

Arrays are settled in `pgmult.core.validate`. Every message names the argument, what was expected
and what came.
"""

import math
import numbers
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pgmult.core.validate import as_positive_int

T = TypeVar("T")

_LEAST = sys.float_info.min  # numbers nearer to 0 have lost digits, and 1 / x may be infinite
_MOST_REPEATS = 1_000_000  # of what takes its time: more is a slip, and would take days


def brief(value: object) -> str:
    """A value and its type as a short text, for messages."""
    try:
        text = repr(value)
    except Exception:  # somebody's broken __repr__ must not hide what is wrong
        text = ""
    if not 0 < len(text) <= 60 or "\n" in text:
        text = f"{text[:40].split(chr(10))[0]}..."
    return f"{text} ({type(value).__name__})"


def as_choice(value: object, name: str, choices: Iterable[T]) -> T:
    """`value`, if it is one of the strings in `choices`."""
    allowed = list(choices)
    if not (isinstance(value, str) and value in allowed):
        listed = ", ".join(map(str, allowed))
        raise ValueError(f"{name} must be one of {listed}, got {brief(value)}")
    return value


def as_flag(value: object, name: str) -> bool:
    """True or False; 0 and 1 are numbers."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {brief(value)}")
    return bool(value)


def as_real(
    value: object, name: str, *, above: float = -math.inf, minimum: float = -math.inf,
    maximum: float = math.inf,
) -> float:  # fmt: skip
    """A finite number, above `above`, and from `minimum` to `maximum`; no subnormal one."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {brief(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value}")
    if 0.0 < abs(number) < _LEAST:
        raise ValueError(f"{name} must be 0 or further from it than {_LEAST:.2g}, got {value}")
    if number <= above:
        raise ValueError(f"{name} must be above {above:g}, got {value}")
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum:g}, got {value}")
    if number > maximum:
        raise ValueError(f"{name} must be at most {maximum:g}, got {value}")
    return number


def as_probability(value: object, name: str) -> float:
    """A number strictly between 0 and 1."""
    number = as_real(value, name)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")
    return number


def made(make_model: object, number: int, what: str) -> Any:
    """The model that a function makes of a number, such as that of its topics."""
    if not callable(make_model):
        raise TypeError(f"make_model must be a function of {what}, got {brief(make_model)}")
    try:
        model = make_model(number)
    except TypeError as error:
        raise TypeError(f"make_model must take {what}: {error}") from error
    except ValueError as error:
        raise ValueError(f"candidates must be what make_model takes: {error}") from error
    if not hasattr(model, "step"):
        raise TypeError(f"make_model must make a model, got {brief(model)}")
    return model


def as_seed(value: object, name: str = "random_seed") -> int:
    """A seed: the integer itself, or a fresh one for None."""
    if value is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    try:
        return as_positive_int(value, name, minimum=0)
    except TypeError:
        raise TypeError(f"{name} must be an integer or None, got {brief(value)}") from None


def as_kind(value: object, name: str, kind: type[T], hint: str = "") -> T:
    """`value`, if it is of a certain type of this package."""
    if not isinstance(value, kind):
        more = f" ({hint})" if hint else ""
        raise TypeError(f"{name} must be a {kind.__name__}, got {brief(value)}{more}")
    return value


def as_repeats(value: object, name: str, minimum: int = 1) -> int:
    """A number of repetitions of something slow: sweeps, steps, simulated rows."""
    return as_positive_int(value, name, minimum, _MOST_REPEATS)


def as_mapping(value: object, name: str) -> Mapping[str, Any]:
    """A mapping with string keys; an empty one for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"{name} must be a mapping with strings for keys, got {brief(value)}")
    return value


def as_share(value: object, name: str) -> float:
    """A number from 0 to 1, both included."""
    return as_real(value, name, minimum=0.0, maximum=1.0)


def as_list(value: Any, name: str, of: str) -> list[Any]:
    """The items of a list, array or column, in order; strings, sets and mappings are refused."""
    is_vector = isinstance(value, Iterable) and getattr(value, "ndim", 1) == 1
    if not is_vector or isinstance(value, str | bytes | bytearray | Set | Mapping | type):
        raise TypeError(f"{name} must be a sequence of {of}, got {brief(value)}")
    return list(value)


def as_strings(value: object, name: str) -> list[str]:
    """Strings that have an order."""
    strings = as_list(value, name, "strings")
    for place, item in enumerate(strings):
        if not isinstance(item, str):
            raise TypeError(f"{name} must be strings, got {brief(item)} at position {place}")
    return [str(string) for string in strings]


def as_path(value: object, name: str = "path") -> Path:
    """A path that can be one of a file or folder."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a path, got {brief(value)}")
    with suppress(UnicodeEncodeError):
        if text and b"\0" not in os.fsencode(text):
            return Path(text)
    raise ValueError(f"{name} must be a path that a file can have, got {text!r}")


@contextmanager
def under_name(name: str, *, of: str) -> Iterator[None]:
    """Within this context, errors that name the argument `of` name the caller's `name` instead."""
    try:
        yield
    except (TypeError, ValueError) as error:
        words = str(error)
        if re.search(rf"\b{re.escape(name)}\b", words) or not words.startswith(of):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(name + words.removeprefix(of)) from None
