"""Sweeps in blocks of rows: the same draws on one core, on many, and on many machines.

Given what they share, the rows of a model (documents, sequences, groups) are independent. So a
sweep is two steps, and this is its only definition, whoever carries it out::

    for each block b of rows:   state_b, sums_b = local_step(block_rng(key, b), state_b, data_b)
    then, once:                 shared = shared_step(rng, shared, total of sums_b)

A *block* of some thousand neighbouring rows is the unit of randomness and of arithmetic: it draws
from a generator of its own, and what it adds up is added as a whole. Integers may be added in any
order. Floating-point numbers go into a fixed binary tree over the blocks, whose nodes are added
where both are known (`Total`). So it makes no difference who did which blocks, or when: the draws
are the same bits. They depend on `block_rows`, which is a parameter of the model.

`step` does all blocks here and now. An executor of another kind cuts the rows between blocks into
shards, calls `local_steps` for each of them, merges the totals and calls the model's
`shared_step`; what it keeps of a draw comes from `summaries` and `shared_variable`.

>>> parts = blocks(5000, 2048)
>>> parts
[slice(0, 2048, None), slice(2048, 5000, None)]
>>> one, other = Total(), Total()
>>> for b in (2, 0):
...     one.add(b, Sums((np.ones(1, int),), (np.array([0.1 * b]),)))
>>> other.add(1, Sums((np.ones(1, int),), (np.array([0.1]),)))
>>> one.merge(other)
>>> one.result(3)
Sums(exact=(array([3]),), rounded=(array([0.3]),))
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import brief
from pgmult.core.typing import FloatArray, IntArray, variable
from pgmult.core.validate import as_positive_int, new_key

__all__ = [
    "BLOCK_ROWS",
    "BlockModel",
    "Sums",
    "Total",
    "as_block_model",
    "as_block_rows",
    "block_rng",
    "blocks",
    "empty_rows",
    "local_fields",
    "local_steps",
    "log_likelihood",
    "num_rows",
    "put_rows",
    "shared_variable",
    "step",
    "summaries",
    "take_rows",
    "with_rows_of",
    "without_rows",
]

BLOCK_ROWS = 2048
"""Rows of a block, unless a model says otherwise."""

_MOST_ROWS = 2**31

State = TypeVar("State")
Data = TypeVar("Data", contravariant=True)


class Sums(NamedTuple):
    """What blocks say to the shared step, added over blocks.

    Attributes
    ----------
    exact : tuple of int arrays
        Their total is int64.
    rounded : tuple of float arrays
    """

    exact: tuple[NDArray[Any], ...]
    rounded: tuple[FloatArray, ...]


class RowData(Protocol):
    """Data of rows."""

    def rows(self, part: slice) -> Any:
        """Neighbouring rows and all else, without copies; ``slice(0, 0)`` is all but the rows."""


class BlockModel(Protocol[Data, State]):
    """A model whose sweep is `step`: a `pgmult.core.typing.Model` with the parts below.

    Fields of the state whose axes, in `dims`, begin with `row_dim` are *local*, of rows; all others
    are *shared*. Where there are no rows, local fields are None.

    Attributes
    ----------
    row_dim : str
        The axis of rows.
    summary_names : frozenset of str
        The variables that `summarized` knows.
    """

    row_dim: ClassVar[str]
    dims: ClassVar[Mapping[str, tuple[str, ...]]]
    summary_names: ClassVar[frozenset[str]]

    @property
    def block_rows(self) -> int:
        """Rows of a block."""

    @property
    def in_blocks(self) -> bool:
        """False where the model as it is set up draws rows that depend on each other."""

    def local_step(self, rng: np.random.Generator, state: State, data: Data) -> tuple[State, Sums]:
        """Move the local fields of one block, and what the shared step must know of it."""

    def shared_step(self, rng: np.random.Generator, state: State, sums: Sums, data: Data) -> State:
        """Move the shared fields, given the sums over all blocks.

        The local fields of `state` stay as they are, and may be None; no row of `data` is read.
        """

    def local_summary(self, state: State, data: Data) -> Sums:
        """What is kept of one block: the first of `rounded` is its log likelihood."""

    def summarized(self, name: str, state: State, summary: Sums, data: Data) -> Any:
        """A variable out of `summary_names` from shared fields and the sum of all summaries."""


@runtime_checkable
class _InBlocks(Protocol):
    in_blocks: Any
    local_step: Any
    shared_step: Any


def as_block_model(model: Any) -> Any:
    """The model, if its sweeps are made of blocks."""
    if not isinstance(model, _InBlocks):
        raise TypeError(
            f"model must have rows that are independent given what they share, got {brief(model)}"
            " (CorrelatedTopics, StructuralTopics, DynamicTopics, UncollapsedLDA and"
            " GroupedLogisticRegression do)"
        )
    if not model.in_blocks:
        raise ValueError(
            "model must draw its rows independently, given what they share, and as it is set up it"
            f" does not: {brief(model)} (collapsed words are drawn one after another; take"
            " words='parallel')"
        )
    return model


def as_block_rows(value: Any) -> int:
    """A number of rows a block."""
    return as_positive_int(value, "block_rows", maximum=_MOST_ROWS)


def blocks(num_rows: int, block_rows: int) -> list[slice]:
    """The rows of each block; the last block has from half as many rows to half as many more.

    Shards are cut at multiples of `block_rows` and have the blocks of the whole, but for the last
    half block: leave the rows of the last of these slices together.
    """
    count = max(1, (num_rows + block_rows // 2) // block_rows)
    bounds = [b * block_rows for b in range(count)] + [num_rows]
    return [slice(start, stop) for start, stop in pairwise(bounds)]


def block_rng(key: NDArray[np.uint64], b: int) -> np.random.Generator:
    """The generator of block b in the sweep of this key."""
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, b]))


@dataclass
class Total:
    """Sums over blocks, of all or of some, added the same way whatever their order.

    Attributes
    ----------
    exact : list of int64 arrays
    nodes : dict from (level, index) to tuple of arrays
        Sums of `rounded` over the blocks ``index * 2**level, ..., (index + 1) * 2**level - 1``,
        whose siblings are not known yet.
    """

    exact: list[IntArray] = field(default_factory=list)
    nodes: dict[tuple[int, int], tuple[FloatArray, ...]] = field(default_factory=dict)

    def add(self, b: int, sums: Sums) -> None:
        """Add block b."""
        self._add_exact(sums.exact)
        self._put((0, b), sums.rounded)

    def merge(self, other: "Total") -> None:
        """Add the blocks of another total, of other blocks."""
        if other.nodes:
            self._add_exact(other.exact)
        for node, values in other.nodes.items():
            self._put(node, values)

    def result(self, num_blocks: int) -> Sums:
        """The sums, when all blocks are there.

        Raises
        ------
        ValueError
            If a block is missing.
        """
        left, end = sorted(self.nodes, reverse=True), 0
        for level, index in left:
            end = end + (1 << level) if index << level == end else -1
        if not left or end != num_blocks:
            raise ValueError(f"blocks are missing: {num_blocks} expected, there are {left}")
        values = self.nodes[left[-1]]
        for node in left[-2::-1]:
            values = _added(self.nodes[node], values)
        return Sums(tuple(self.exact), values)

    def _add_exact(self, values: Sequence[NDArray[Any]]) -> None:
        if not self.exact:
            self.exact = [np.array(value, dtype=np.int64) for value in values]
            return
        for whole, value in zip(self.exact, values, strict=True):
            np.add(whole, value, out=whole)

    def _put(self, node: tuple[int, int], values: tuple[FloatArray, ...]) -> None:
        while (sibling := (node[0], node[1] ^ 1)) in self.nodes:
            other = self.nodes.pop(sibling)
            first, second = (values, other) if node < sibling else (other, values)
            node, values = (node[0] + 1, node[1] >> 1), _added(first, second)
        if node in self.nodes:
            raise ValueError(f"blocks were added twice: {node}")
        self.nodes[node] = values


def _added(first: tuple[FloatArray, ...], second: tuple[FloatArray, ...]) -> tuple[FloatArray, ...]:
    return tuple(np.add(a, b) for a, b in zip(first, second, strict=True))


def local_fields(model: Any, state: Any) -> tuple[str, ...]:
    """Names of the fields of a state that hold rows."""
    return _local_fields(cast(Hashable, type(model)), cast(Hashable, type(state)))


@cache
def _local_fields(model: Hashable, state: Hashable) -> tuple[str, ...]:
    kind, dims = cast(Any, state), cast(Any, model).dims
    row = (cast(Any, model).row_dim,)
    return tuple(f.name for f in fields(kind) if dims.get(f.name, ())[:1] == row)


def num_rows(model: Any, state: Any) -> int:
    """How many rows a state has."""
    return len(getattr(state, local_fields(model, state)[0]))


def take_rows(model: Any, state: State, part: slice) -> State:
    """The state of neighbouring rows, without copies."""
    local = {name: getattr(state, name)[part] for name in local_fields(model, state)}
    return replace(state, **local)  # type: ignore[type-var]


def put_rows(model: Any, whole: State, part: slice, state: State) -> None:
    """Write the rows of a state into those of a larger one: `empty_rows` makes it."""
    for name in local_fields(model, state):
        getattr(whole, name)[part] = getattr(state, name)


def empty_rows(model: Any, state: State, size: int) -> State:
    """A state with room for so many rows like those of `state`."""
    local = {}
    for name in local_fields(model, state):
        array = getattr(state, name)
        local[name] = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    return replace(state, **local)  # type: ignore[type-var]


def without_rows(model: Any, state: State) -> State:
    """The shared fields of a state; the local ones are None."""
    return replace(state, **dict.fromkeys(local_fields(model, state)))  # type: ignore[type-var]


def with_rows_of(model: Any, shared: State, state: State) -> State:
    """The state with these shared fields and the rows of another."""
    local = {name: getattr(state, name) for name in local_fields(model, state)}
    return replace(shared, **local)  # type: ignore[type-var]


def local_steps(
    model: Any, key: NDArray[np.uint64], state: Any, data: Any, first: int = 0
) -> tuple[Any, Total]:
    """The local steps of neighbouring blocks, one after the other.

    Parameters
    ----------
    model : BlockModel
    key : uint64 array, ``(2,)``
        Of the sweep.
    state : state
        The shared fields, and the local ones of these rows.
    data : data
        Of these rows.
    first : int
        Which block of the whole is the first of these.

    Returns
    -------
    state, total
        The state with its rows moved, and their sums.
    """
    size, total = num_rows(model, state), Total()
    parts = blocks(size, model.block_rows)
    if len(parts) == 1:
        moved, sums = _local_step(model, key, first, state, data)
        total.add(first, sums)
        return moved, total
    whole: Any = None
    for b, part in enumerate(parts, first):
        here = take_rows(model, state, part)
        moved, sums = _local_step(model, key, b, here, data.rows(part))
        total.add(b, sums)
        if whole is None:
            whole = empty_rows(model, moved, size)
        put_rows(model, whole, part, moved)
    return whole, total


def _local_step(
    model: Any, key: NDArray[np.uint64], b: int, state: Any, data: Any
) -> tuple[Any, Sums]:
    """The local step of block b; what it raises says where the block is."""
    try:
        moved, sums = model.local_step(block_rng(key, b), state, data)
    except Exception as error:
        if b > 0:
            error.add_note(
                f"in block {b}, which begins at {model.row_dim} {b * model.block_rows}: add that to"
                f" the number of a {model.row_dim}"
            )
        raise
    return moved, sums


def step(
    model: Any,
    rng: np.random.Generator,
    state: Any,
    data: Any,
    shared_step: Callable[..., Any] | None = None,
) -> Any:
    """One sweep of a `BlockModel`, all blocks in this process.

    `shared_step` may be another than the model's.
    """
    moved, total = local_steps(model, new_key(rng), state, data)
    sums = total.result(len(blocks(num_rows(model, state), model.block_rows)))
    return (shared_step or model.shared_step)(rng, moved, sums, data)


def summaries(model: Any, state: Any, data: Any, first: int = 0) -> Total:
    """What is kept of neighbouring blocks: arguments as of `local_steps`."""
    total = Total()
    parts = blocks(num_rows(model, state), model.block_rows)
    for b, part in enumerate(parts, first):
        whole = len(parts) == 1
        here = state if whole else take_rows(model, state, part)
        total.add(b, model.local_summary(here, data if whole else data.rows(part)))
    return total


def log_likelihood(model: Any, state: Any, data: Any) -> float:
    """The log likelihood of all rows, added up over blocks."""
    parts = blocks(num_rows(model, state), model.block_rows)
    return float(summaries(model, state, data).result(len(parts)).rounded[0])


def shared_variable(model: Any, state: Any, summary: Sums, data: Any, name: str) -> Any:
    """A variable that is not of rows, where no process holds them all.

    Parameters
    ----------
    model : BlockModel
    state : state
        Its shared fields.
    summary : Sums
        The sum of all `summaries`.
    data : data
        Without its rows.
    name : str

    Raises
    ------
    ValueError
        If it has a value for each row.
    """
    if model.dims[name][:1] == (model.row_dim,):
        raise ValueError(f"{name} has a value for each {model.row_dim}, got no {model.row_dim}s")
    if name in model.summary_names:
        return model.summarized(name, state, summary, data)
    return variable(model, state, data, name)
