"""The one place that rejects bad arrays, and settles dtype and memory order.

Every message says the value, where it stands, what was expected and a hint.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

_LEAST_VARIANCE = 1e-300  # inverses of smaller ones overflow


def place_of(bad: NDArray[np.bool_]) -> str:
    """Words for the position of the first True."""
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
    forms = {0: "", 1: " at position {}", 2: " at row {}, column {}"}
    return forms.get(bad.ndim, f" at index {index}").format(*index)


def _as_numeric(value: ArrayLike, name: str) -> NDArray[Any]:
    if np.ma.is_masked(value):
        raise ValueError(f"{name} must not be masked (a missing row of counts is a row of zeros)")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array of numbers, got {error}") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of numbers, got dtype {array.dtype}")
    return array


def _refuse(bad: Any, array: NDArray[Any], name: str, wanted: str, hint: str = "") -> None:
    """Raise ValueError with the first of the bad entries, if there is one."""
    bad = np.asarray(bad)
    if bad.any():
        got = f"{array[bad].flat[0]}{place_of(bad)}{hint and f' ({hint})'}"
        raise ValueError(f"{name} must {wanted}, got {got}")


def refuse_rows(
    bad: NDArray[np.bool_], cells: NDArray[Any], name: str, wanted: str, hint: str = ""
) -> None:
    """Raise ValueError with the cell of a column in the first of the bad rows, if there is one."""
    if bad.any():
        row = int(np.argmax(bad))
        got = f"{cells[row]:g}" if cells.dtype.kind == "f" else f"{cells[row]}"
        more = f" ({hint})" if hint else ""
        raise ValueError(f"column {name!r} must {wanted}, got {got} at row {row}{more}")


def as_finite(value: ArrayLike, name: str) -> NDArray[np.float64]:
    """A C-ordered float64 array without nan or inf."""
    array = np.ascontiguousarray(_as_numeric(value, name), dtype=np.float64)
    array = array.reshape(np.shape(value))
    _refuse(~np.isfinite(array), array, name, "be finite")
    return array


def as_positive(value: ArrayLike, name: str) -> NDArray[np.float64]:
    """A float64 array of finite numbers > 0."""
    array = as_finite(value, name)
    _refuse(array <= 0.0, array, name, "be positive")
    return array


def as_nonnegative(value: ArrayLike, name: str) -> NDArray[np.float64]:
    """A float64 array of finite numbers >= 0."""
    array = as_finite(value, name)
    _refuse(array < 0.0, array, name, "be non-negative")
    return array


def as_counts(value: ArrayLike, name: str = "counts") -> NDArray[np.int64]:
    """A C-ordered int64 array of counts; floats are taken when they hold integers."""
    array, wanted = _as_numeric(value, name), "be non-negative integers"
    if array.dtype.kind == "f":
        _refuse(~np.isfinite(array), array, name, wanted, "a missing row is a row of zeros")
        _refuse(array != np.floor(array), array, name, wanted, "did you pass proportions?")
    _refuse(array < 0, array, name, wanted)
    if array.dtype.kind in "uf" and array.dtype.itemsize >= 4:  # smaller ones end below 2**63
        _refuse(array >= 2**63, array, name, "be below 2**63")
    return np.ascontiguousarray(array, dtype=np.int64).reshape(array.shape)


def as_simplex(value: ArrayLike, name: str = "pi") -> NDArray[np.float64]:
    """A float64 array ``(..., K)``, K >= 2, whose last axis is non-negative and sums to 1."""
    array = as_finite(value, name)
    if array.ndim == 0 or array.shape[-1] < 2:
        got = f"got shape {array.shape}"
        raise ValueError(f"{name} must have at least 2 categories on its last axis, {got}")
    _refuse(array < 0.0, array, name, "be non-negative")
    totals = np.asarray(array.sum(axis=-1))
    odd = np.abs(totals - 1.0) > 1e-6
    _refuse(odd, totals, name, "sum to 1 on its last axis", "divide by the sum first")
    return array


def common_shape(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that the named shapes broadcast to."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        described = " and ".join(f"{shape} of {name}" for name, shape in shapes.items())
        raise ValueError(f"axes must match or broadcast, got {described}") from None


def made(kind: type[T], **values: object) -> T:
    """A frozen dataclass made without checks, of fields that are known to be right.

    Checks of small matrices would cost a sweep of small data more than what it does with them.
    """
    new = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(new, name, value)
    return new


def as_spd(
    value: ArrayLike, name: str, size: int | None = None, like: str = ""
) -> NDArray[np.float64]:
    """A float64 array ``(..., n, n)`` of symmetric positive definite matrices.

    `like` says which argument asks for the size.
    """
    from pgmult.compiled.linalg import cholesky  # the factorisation that will be used

    array = as_finite(value, name)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] == 0:
        raise ValueError(f"{name} must be a square matrix, got shape {array.shape}")
    got = array.shape[-1]
    if size is not None and got != size:
        wanted = f"{size} x {size}{like and f' to go with {like}'}"
        raise ValueError(f"{name} must be {wanted}, got {got} x {got}")
    scale = np.abs(array).max(axis=(-2, -1), keepdims=True)
    bad = np.abs(array - np.swapaxes(array, -1, -2)) > 1e-8 * scale
    if bad.any():
        raise ValueError(f"{name} must be symmetric, it is not{place_of(bad)}")
    if any(cholesky(matrix.copy()) for matrix in array.reshape(-1, *array.shape[-2:])):
        got = f"smallest eigenvalue {float(np.linalg.eigvalsh(array).min()):.3g}"
        hint = "add a small multiple of the identity, or drop collinear columns"
        raise ValueError(f"{name} must be positive definite, got {got} ({hint})")
    if (least := np.diagonal(array, axis1=-2, axis2=-1).min(initial=np.inf)) < _LEAST_VARIANCE:
        raise ValueError(
            f"{name} must have a diagonal of at least {_LEAST_VARIANCE:g}, got {least}"
        )
    return array


def as_positive_int(value: object, name: str, minimum: int = 1, maximum: int | None = None) -> int:
    """A Python int from `minimum` to `maximum`; True and 3.0 are not integers here."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    if maximum is not None and value > maximum:
        raise ValueError(f"{name} must be at most {maximum:,}, got {value:,}")
    return int(value)


def as_permutation(order: Any, size: int) -> NDArray[np.int64]:
    """A permutation of 0, ..., size - 1.

    Raises
    ------
    ValueError
        If it is none.
    """
    permutation = as_counts(order, "order")
    if permutation.shape != (size,) or not np.array_equal(np.sort(permutation), np.arange(size)):
        raise ValueError(f"order must be a permutation of 0, ..., {size - 1}, got {order}")
    return permutation


def as_order(order: object, totals: ArrayLike) -> NDArray[np.int64]:
    """The order of sticks of categories with the given total counts.

    Parameters
    ----------
    order : {"frequency", "given"} or permutation of the categories
        "frequency" takes frequent categories first, ties as they come: Gibbs sampling mixes best.
    totals : array, ``(num_categories,)``
    """
    totals = np.asarray(totals)
    if not isinstance(order, str):
        return as_permutation(order, len(totals))
    if order == "given":
        return np.arange(len(totals))
    if order == "frequency":
        return np.argsort(-totals, kind="stable")
    raise ValueError(f"order must be 'frequency', 'given' or a permutation, got {order!r}")


def as_generator(rng: object) -> np.random.Generator:
    """`rng` itself, if it is a numpy Generator."""
    if not isinstance(rng, np.random.Generator):
        hint = "make one with numpy.random.default_rng(seed)"
        raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__} ({hint})")
    return rng


_OF_64_BITS = np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64


def new_key(rng: np.random.Generator) -> NDArray[np.uint64]:
    """A fresh 128-bit key for one block's streams: see `pgmult.compiled.streams`."""
    bits = as_generator(rng).bit_generator
    if isinstance(bits, _OF_64_BITS):  # the same numbers, in a tenth of the time
        return bits.random_raw(2)
    return rng.integers(0, 2**64, size=2, dtype=np.uint64)


def keyed_generator(
    key: NDArray[np.uint64], counter: Sequence[int] | None = None
) -> np.random.Generator:
    """The generator of ``numpy.random.Philox(key=key, counter=counter)``, in half the time."""
    seed: Any = _Key(key)
    return np.random.Generator(np.random.Philox(seed, counter=counter))


class _Key(ISeedSequence):
    """The key itself: without a seed Philox asks the system for one, though it has a key."""

    def __init__(self, key: NDArray[np.uint64]):
        self._key = key

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        return self._key
