"""Models, data and states as JSON and plain arrays, and back: what a run directory is written in.

A value is None, a bool, an int, a float, a str, an array, a tuple, a list, a mapping with string
keys or a dataclass of such values; nothing else, and never a pickle. Arrays are either spelled out
in the JSON (small ones, of models) or handed over by name, to be kept in a file of arrays. Dtype,
shape and memory order survive, so that a decoded state continues a chain with the same bits.

>>> tree = encode({"scale": 2.5, "sides": (1, None)})
>>> tree
{'$dict': {'scale': 2.5, 'sides': {'$tuple': [1, None]}}}
>>> decode(tree)
{'scale': 2.5, 'sides': (1, None)}
"""

import hashlib
import json
import math
import sys
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import Any, Literal, TypeVar

import numpy as np

from pgmult.core.mapped import content_hash
from pgmult.core.typing import AnyArray, Array

T = TypeVar("T")

_DEEPEST = 400


def encode(value: object, arrays: dict[str, Array] | None = None, place: str = "value") -> Any:
    """`value` as JSON's types.

    Parameters
    ----------
    arrays : dict, optional
        Receives the arrays in `value` under their places; without it they become JSON, too.
    place : str
        What to call `value` in array names and errors.

    Raises
    ------
    TypeError
        If a part of `value` is of another type, or of a class that is defined inside a function.
    """
    if place.count(".") > _DEEPEST:
        raise TypeError(f"{place[:40]}... cannot be stored: it is more than {_DEEPEST} levels deep")
    if isinstance(value, np.ndarray | np.generic):
        return _encode_array(value, arrays, place)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, list | tuple):
        items = [encode(item, arrays, f"{place}.{i}") for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"$dict": {k: encode(item, arrays, f"{place}.{k}") for k, item in value.items()}}
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        if "<locals>" in kind.__qualname__:
            hint = "is defined inside a function (define it at the top level of a module)"
            raise TypeError(f"{place} cannot be stored: its class {kind.__qualname__} {hint}")
        names = [field.name for field in fields(value) if field.init]
        content = {n: encode(getattr(value, n), arrays, f"{place}.{n}") for n in names}
        return {"$class": f"{kind.__module__}:{kind.__qualname__}", "fields": content}
    kinds = "a number, a string, an array, a tuple, a list, a mapping with string keys"
    got = f"{type(value).__name__}, not {kinds} or a dataclass of these"
    raise TypeError(f"{place} cannot be stored: it is a {got}")


def _encode_array(value: "Array | np.generic", arrays: dict[str, Array] | None, place: str) -> Any:
    array = np.asanyarray(value)  # one in a file stays it
    if array.dtype.kind not in "biufUSM" or (arrays is None and array.dtype.kind in "SM"):
        got = f"an array of dtype {array.dtype}, not of numbers, dates or strings"
        raise TypeError(f"{place} cannot be stored: it is {got}")
    if isinstance(value, np.generic):
        return {"$scalar": array.dtype.str, "value": encode(array.item())}
    if arrays is not None:
        arrays[place] = array
        return {"$array": place}
    order: Literal["F", "C"] = "F" if np.isfortran(array) else "C"
    values = encode(array.ravel(order).tolist())
    shape = list(array.shape)
    return {"$array": array.dtype.str, "shape": shape, "order": order, "values": values}


def decode(
    tree: object, arrays: Mapping[str, Array] | None = None,
    modules: Collection[str] = (),
) -> Any:  # fmt: skip
    """The value that `encode` made `tree` from.

    Parameters
    ----------
    arrays : mapping, optional
        The arrays that `encode` handed over.
    modules : collection of str
        Modules, imported already, whose dataclasses may be made besides those of pgmult.

    Raises
    ------
    ValueError
        If a class is of no such module, or no dataclass.
    """
    if isinstance(tree, list):
        return [decode(item, arrays, modules) for item in tree]
    if not isinstance(tree, dict):
        return tree
    match tree:
        case {"$float": text}:
            return float(text)
        case {"$tuple": items}:
            return tuple(decode(item, arrays, modules) for item in items)
        case {"$dict": items}:
            return {key: decode(item, arrays, modules) for key, item in items.items()}
        case {"$scalar": dtype, "value": item}:
            return np.asarray(decode(item), dtype=dtype)[()]
        case {"$array": dtype, "shape": shape, "order": order, "values": values}:
            return np.array(decode(values), dtype=dtype).reshape(shape, order=order)
        case {"$array": name}:
            return (arrays or {})[name]
        case {"$class": name, "fields": content}:
            kind = _find_class(name, modules)
            return kind(**{key: decode(item, arrays, modules) for key, item in content.items()})
    raise ValueError(f"cannot be decoded: {str(tree)[:80]}")


def _find_class(name: str, modules: Collection[str]) -> type:
    module, _, qualname = name.partition(":")
    if "__" in name:  # a module that runs when it is imported, or what classes are made of
        raise ValueError(f"{name} is not a public class")
    if module.split(".")[0] == "pgmult":
        kind: Any = import_module(module)
    elif module in modules and module in sys.modules:
        kind = sys.modules[module]
    else:
        hint = "pass model= and data= made by the same modules"
        raise ValueError(f"{name} is not of pgmult: its objects are not made from a file ({hint})")
    for attribute in qualname.split("."):
        kind = getattr(kind, attribute, None)
    if not (isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module):
        raise ValueError(f"{name} is not a dataclass of its module")
    return kind


def contiguous(value: T) -> T:
    """`value` with arrays of scattered memory copied.

    Such an array has another layout once it was written and read, and layout may change the last
    bit of a matrix product.
    """
    if isinstance(value, np.ndarray):
        tidy = value.flags.c_contiguous or value.flags.f_contiguous
        return value if tidy else np.ascontiguousarray(value)  # type: ignore[return-value]
    if isinstance(value, tuple) and type(value) is tuple:
        items = tuple(contiguous(item) for item in value)
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else items  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: contiguous(getattr(value, f.name)) for f in fields(value) if f.init}
        same = all(part is getattr(value, name) for name, part in parts.items())
        return value if same else replace(value, **parts)
    return value


def fingerprint(value: object) -> str:
    """SHA-256 of a value's encoding: equal for equal values, on every machine, in memory or not.

    Arrays in files (`pgmult.core.mapped`) are not read.
    """
    arrays: dict[str, AnyArray] = {}
    tree = encode(value, arrays)
    digest = hashlib.sha256(json.dumps(tree, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} {content_hash(array)}".encode())
    return digest.hexdigest()
