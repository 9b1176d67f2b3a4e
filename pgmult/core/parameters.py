"""Dataclasses whose annotations say what a field may be, and which axes an array has.

Models, priors and data are frozen dataclasses. What a field may be is said once, in its type; one
that derives from `Checked` refuses anything else when it is made:

* ``bool``, ``float`` (finite), ``int`` (1 or more), ``Literal["a", "b"]`` and classes, each also
  with ``| None``, are checked as they stand; other types are not;
* ``Annotated`` adds functions ``check(value, name)`` that return the value to keep, or raise: any
  ``as_...`` of `pgmult.core.arguments` and `pgmult.core.validate`, `real` and `whole` with limits;
* strings in ``Annotated`` name the axes of an array, and axes of one name have one length. A
  leading ``"..."`` stands for any axes in front.

What depends on several fields goes into a method ``_complete``.

>>> from dataclasses import dataclass
>>> from typing import Annotated
>>> from pgmult.core.typing import FloatArray
>>> from pgmult.core.validate import as_finite, as_spd
>>> @dataclass(frozen=True, slots=True)
... class Normal(Checked):
...     mean: Annotated[FloatArray, as_finite, "dim"]
...     cov: Annotated[FloatArray, as_spd, "dim", "dim"]
...     weight: Annotated[float, real(above=0.0)] = 1.0
>>> Normal([0, 1], [[2, 0], [0, 1]]).mean
array([0., 1.])
>>> Normal([0], [[2, 0], [0, 1]])
Traceback (most recent call last):
...
ValueError: cov must have shape (1, 1) to go with mean, got (2, 2)

States are made thousands of times a second, so they name their axes and check nothing; a model's
``dims`` are read from them (`axes_of`), and `pgmult.testing.check_model` compares the shapes.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from pgmult.core.arguments import as_choice, as_flag, as_kind, as_real
from pgmult.core.validate import as_positive_int

Check = Callable[[Any, str], Any]

_FEW = 6  # numbers of an array that is printed


def real(**limits: float) -> Check:
    """A check: a finite number within limits, ``above``, ``minimum`` and ``maximum``."""
    return partial(as_real, **limits)  # type: ignore[arg-type]


def whole(minimum: int = 1, maximum: int | None = None) -> Check:
    """A check: an integer within limits."""
    return partial(as_positive_int, minimum=minimum, maximum=maximum)


def positive(value: object, name: str) -> float:
    """A finite number above 0."""
    number = as_real(value, name)
    if number <= 0.0:
        raise ValueError(f"{name} must be positive, got {value}")
    return number


Positive = Annotated[float, positive]


class _PlainSignature:
    """The signature of a class with types alone: what `help` and the docs show."""

    def __get__(self, _: object, kind: Any) -> inspect.Signature:
        _, *parameters = inspect.signature(kind.__init__).parameters.values()
        types = get_type_hints(kind.__init__)
        plain = [p.replace(annotation=types.get(p.name, p.annotation)) for p in parameters]
        return inspect.Signature(plain)


class Checked:
    """A base of frozen dataclasses that check, and convert, their fields when they are made.

    A class that has more to check or to fill in has a method ``_complete(self)``. Those of parents
    are called first, so none calls another's.
    """

    __slots__ = ()
    __signature__ = _PlainSignature()

    def __post_init__(self) -> None:
        kind: Any = type(self)
        declared, steps = _plan(kind)
        sizes: dict[str, tuple[int, str]] = {}
        for field in declared:
            value = original = getattr(self, field.name)
            if value is None and field.optional:
                continue
            for check in field.checks:
                value = check(value, field.name)
            if value is not original:
                object.__setattr__(self, field.name, value)
            if field.axes is not None:
                measure(field.name, np.shape(value), field.axes, sizes)
        for complete in steps:
            complete(self)

    def __repr__(self) -> str:
        """Parameters that have no default, or another value; a dataclass needs ``repr=False``."""
        kind: Any = type(self)
        taken = [field for field in fields(kind) if field.init]
        needed = {f.name for f in taken if f.default is f.default_factory is MISSING}
        values = {f.name: getattr(self, f.name) for f in taken}
        plain = kind(**{name: values[name] for name in needed})
        shown = (
            f"{name}={_in_short(value)}" for name, value in values.items()
            if name in needed or not _are_equal(value, getattr(plain, name))
        )  # fmt: skip
        return f"{kind.__name__}({', '.join(shown)})"

    def _set(self, **values: object) -> None:
        """Give fields their final values."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


def axes_of(kind: type) -> dict[str, tuple[str, ...]]:
    """Names of the axes of a dataclass's fields, ``()`` for numbers: what `Model.dims` asks for.

    Fields that are neither numbers nor arrays with named axes are left out.
    """
    return {name: axes for name, _, _, axes in _declared(kind) if axes is not None}


def sizes_of(*values: object, without: Collection[str] = ()) -> dict[str, int]:
    """Lengths of the named axes of dataclasses, but for the fields that are to be left out.

    Raises
    ------
    ValueError
        If an array has another number of axes than named, or two lengths of one name differ.
    """
    sizes: dict[str, tuple[int, str]] = {}
    for value in values:
        kind: Any = type(value)
        for name, _, _, axes in _declared(kind):
            array = getattr(value, name)
            if axes is not None and array is not None and name not in without:
                measure(name, np.shape(array), axes, sizes)
    return {axis: size for axis, (size, _) in sizes.items()}


def _are_equal(one: Any, other: Any) -> bool:
    if type(one) is type(other) and is_dataclass(one):
        return all(_are_equal(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return np.array_equal(one, other)


def _in_short(value: object) -> str:
    """A parameter in a line: arrays of more than a few numbers by their shape."""
    if isinstance(value, np.ndarray):
        size = " x ".join(map(str, value.shape))
        return str(value.tolist()) if value.size <= _FEW else f"<{size} array>"
    return repr(value)


class _Field(NamedTuple):
    name: str
    optional: bool
    checks: tuple[Check, ...]
    axes: tuple[str, ...] | None


@cache
def _plan(kind: type) -> tuple[list[_Field], list[Callable[[Any], None]]]:
    """What to check of a new object, and how to complete it, read from its class once."""
    named = [field for field in _declared(kind) if field.checks or field.axes]
    bases = [vars(base) for base in reversed(kind.__mro__)]
    return named, [base["_complete"] for base in bases if "_complete" in base]


@cache
def _declared(kind: type) -> tuple[_Field, ...]:
    types = {field.name: field.type for field in fields(kind) if field.init}
    if any(isinstance(annotation, str) for annotation in types.values()):
        hints = get_type_hints(kind, include_extras=True)
        types = {name: hints[name] for name in types}
    return tuple(_read(name, annotation) for name, annotation in types.items())


def _read(name: str, annotation: object) -> _Field:
    extras: tuple[Any, ...] = ()
    optional = False
    while (origin := get_origin(annotation)) in (Annotated, Union, UnionType):
        first, *more = get_args(annotation)
        if origin is Annotated:
            annotation, extras = first, (*more, *extras)
        elif NoneType in (first, *more):
            others = tuple(member for member in (first, *more) if member is not NoneType)
            annotation, optional = Union[others], True  # noqa: UP007
        else:
            break
    checks = tuple(extra for extra in extras if callable(extra))
    axes = tuple(extra for extra in extras if isinstance(extra, str)) or None
    if annotation in (bool, int, float):
        axes = ()
    return _Field(name, optional, checks or _checks_of(annotation), axes)


def _checks_of(annotation: Any) -> tuple[Check, ...]:
    """The check that a type without functions beside it stands for."""
    if get_origin(annotation) is Literal:
        return (partial(as_choice, choices=get_args(annotation)),)
    checks: Mapping[object, Check] = {bool: as_flag, int: as_positive_int, float: as_real}
    if annotation in checks:
        return (checks[annotation],)
    is_class = isinstance(annotation, type) and get_origin(annotation) is None
    return (partial(as_kind, kind=annotation),) if is_class and annotation is not Any else ()


def measure(
    name: str, shape: tuple[int, ...], axes: tuple[str, ...], sizes: dict[str, tuple[int, str]]
) -> None:
    """Compare a shape with the lengths that are known, and note new ones."""
    if axes[:1] == ("...",):
        axes = axes[1:]
        shape = shape[max(len(shape) - len(axes), 0) :]
    if len(shape) != len(axes):
        raise ValueError(f"{name} must have the axes ({', '.join(axes)}), got shape {shape}")
    for axis, length in zip(axes, shape, strict=True):
        expected_size, other = sizes.setdefault(axis, (length, name))
        if expected_size != length:
            expected = ", ".join(str(sizes.get(dim, (dim,))[0]) for dim in axes)
            raise ValueError(f"{name} must have shape ({expected}) to go with {other}, got {shape}")
