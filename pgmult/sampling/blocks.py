"""Sweeps in blocks of rows: the same draws on one core, on many, and on many machines.

Given what they share, the rows of a model (documents, sequences, groups) are independent. So a
sweep is two steps, and this is its only definition, whoever carries it out::

    for each block b of rows:   state_b, _, sums_b = local_step(block_rng(key, b), state_b, data_b)
    then, once:                 shared = shared_step(rng, shared, total of sums_b, data, ask)

A *block* of some thousand neighbouring rows has a random generator of its own, and its sums are
added as a whole. Integers may be added in any order. Floating-point numbers are added in a fixed
binary tree over the blocks (`Total`). So the draws are the same bits whichever thread, process or
machine does which blocks, in whatever order. They depend on `block_rows`, a parameter of the model.

A shared step that needs more sums on its way, as one along a Hamiltonian path does, has them by
``ask(Ask(...))``: the sum of all blocks' answers.

`step` does all blocks in this process. A cluster cuts the rows between blocks into shards, calls
`Shard.steps` and `Shard.answers` for each of them, merges the totals and finishes the model's
`shared_step`; what is kept of a draw comes from `Shard.summaries` and `shared_variable`. Rows of a
model with a `shared_start` start block by block as well.

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

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import cache, reduce
from itertools import count, pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import brief
from pgmult.core.parameters import whole
from pgmult.core.sweeps import Sampled, sampler_of
from pgmult.core.typing import Array, FloatArray, Generator, IntArray, variable
from pgmult.core.validate import keyed_generator, new_key

BLOCK_ROWS = 2048
"""Rows of a block, unless a model says otherwise."""

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

State = TypeVar("State", bound="DataclassInstance")
Data = TypeVar("Data", bound="HasRows")


class HasRows(Protocol):
    """Data of a model in blocks."""

    @property
    def row_costs(self) -> Array:
        """What each row costs in a sweep, relative to others, ``(num_rows,)``."""

    def rows(self, part: slice, /) -> Self:
        """The data of neighbouring rows."""


class Tables(Protocol):
    """Tables in which blocks that are done one after the other count."""

    def counts(self) -> tuple[IntArray, ...]:
        """The counts so far."""

    def another(self) -> Self:
        """The tables of another thread."""


class Sums(NamedTuple):
    """What the shared step must know of the rows, added over blocks.

    Attributes
    ----------
    exact : tuple of int arrays
        Their total is int64.
    rounded : tuple of float arrays
    """

    exact: tuple[IntArray, ...]
    rounded: tuple[FloatArray, ...]


@dataclass(slots=True, eq=False)  # frozen, one takes 1 us more
class Ask:
    """A question of a shared step to all blocks.

    Attributes
    ----------
    method : str
        A method of the model, as ``method(rng, state, held, data, *arrays) -> state, held, sums``
        for one block: `held` is what the block's `local_step`, or an answer since, left for later
        answers of the same sweep.
    arrays : tuple of arrays
        What the block must know besides the shared fields that its local step saw.
    moves : bool
        Whether the answer changes local fields or `held`. One that does not need not be made
        again when rows were lost.
    draws : bool
        Whether it needs random numbers: without, the method gets None for `rng`.
    of_held : bool
        Whether the method is not the model's, but of what the block holds:
        ``held.method(*arrays)`` gives an array, or several, whose sums are the answer.
    """

    method: str
    arrays: tuple[NDArray[Any], ...]
    moves: bool
    draws: bool = True
    of_held: bool = False


def to_held(method: str, *arrays: Array, moves: bool = False) -> Ask:
    """A question to what each block holds; `moves` where it changes that."""
    return Ask(method, arrays, moves, draws=False, of_held=True)


Key = NDArray[np.uint64]
Asks = Callable[[Ask], Sums]
"""What a shared step asks all blocks with."""


class SweepsInBlocks(Generic[Data, State]):
    """A base of models whose sweep is `step`: a `pgmult.core.typing.Model` with the parts below.

    Fields of the state whose axes, in `dims`, begin with `row_dim` are *local*, of rows; all others
    are *shared*. Where there are no rows, local fields are None.

    ``data.rows(part)`` gives neighbouring rows and all else, without copies, and ``rows(slice(0,
    0))`` all but the rows. Rows that are sequences have several *cells* in local fields: their data
    say in ``row_offsets``, an int array, ``(num_rows + 1,)``, which cells are whose.

    A class has `local_step`, `shared_step` and `local_summary`, and overrides other methods where
    they apply. Those of `SampledInBlocks` have a sampler with the steps.

    Attributes
    ----------
    in_blocks : bool
        False for a model whose rows depend on each other, and which has a sweep without blocks.
    row_dim : str
        The axis of rows.
    cell_dim : str
        The axis of their cells, with which local fields begin; "" where it is that of rows.
    summary_names : frozenset of str
        The variables that `summarized` knows.
    whole_names : frozenset of str
        Variables that no sum over rows gives, as it would cost too much.
    block_rows : int
        Rows of a block.
    """

    __slots__ = ()

    in_blocks: ClassVar[bool] = True
    row_dim: ClassVar[str]
    cell_dim: ClassVar[str] = ""
    summary_names: ClassVar[frozenset[str]] = frozenset()
    whole_names: ClassVar[frozenset[str]] = frozenset()
    dims: ClassVar[Mapping[str, tuple[str, ...]]]
    block_rows: int

    def sweep_tables(self, state: State, data: Data) -> Tables | None:
        """Tables as large as what is shared, for all blocks that are done one after the other.

        They go to ``local_step(rng, state, data, tables)``, which leaves out of its sums what it
        counts in them. Their ``counts()``, a tuple of int64 arrays, come last in the exact sums;
        ``another()`` gives those of another thread. Without, None.
        """
        return None

    def local_step(self, rng: Generator, state: State, data: Data) -> tuple[State, object, Sums]:
        """Move the local fields of one block.

        Returns
        -------
        state : state
        held : object
            What the block keeps for an `Ask` of the same sweep.
        sums : Sums
            What the shared step must know of it.
        """
        raise NotImplementedError

    def shared_step(self, rng: Generator, state: State, sums: Sums, data: Data, ask: Asks) -> State:
        """Move the shared fields, given the sums over all blocks, and those that it asks for.

        The local fields of `state` stay as they are, and may be None; no row of `data` is read.
        """
        raise NotImplementedError

    def answer(
        self, ask: Ask, rng: Generator | None, state: State, held: object, data: Data
    ) -> tuple[State, object, Sums]:
        """The answer of one block to a question of the shared step."""
        return getattr(self, ask.method)(rng, state, held, data, *ask.arrays)  # type: ignore[no-any-return]

    def summary_table(self, state: State, data: Data) -> object:
        """A table that goes to ``local_summary(state, data, table)``, or None."""
        return None

    def local_summary(self, state: State, data: Data) -> Sums:
        """What is kept of one block: the first of `rounded` is its log likelihood."""
        raise NotImplementedError

    def summarized(self, name: str, state: State, summary: Sums, data: Data) -> object:
        """A variable out of `summary_names` from shared fields and the sum of all summaries."""
        raise KeyError(name)

    def shared_start(self, rng: Generator, data: Data) -> tuple[State, object] | None:
        """A state, of which the shared fields count, and what rows start from: a small dataclass.

        None where rows start together, by ``init``: then no random number is drawn. Others start
        by ``local_start(rng, found, data)``, which gives the local fields of one block.
        """
        return None

    def step(self, rng: Generator, state: State, data: Data) -> State:
        """One sweep over all variables, block after block of rows."""
        return step(self, rng, state, data)

    def log_likelihood(self, state: State, data: Data) -> float:
        """Log probability of the observations given the state, up to a constant."""
        shard = Shard(self, data)
        return float(shard.summaries(state).result(len(shard.parts(state))).rounded[0])


class SampledInBlocks(Sampled[Data, State], SweepsInBlocks[Data, State]):
    """A base of models in blocks whose sampler has the steps and answers, for its own data.

    They are ``local_step(rng, state)``, ``shared_step(rng, state, sums, ask)`` and
    ``method(rng, state, held, *arrays)`` for an `Ask`.
    """

    __slots__ = ()

    def _sampler(self, data: Data) -> Any:
        model: Any = self
        return sampler_of(model, data)

    def local_step(self, rng: Generator, state: State, data: Data) -> tuple[State, object, Sums]:
        """Move the local fields of one block."""
        return self._sampler(data).local_step(rng, state)  # type: ignore[no-any-return]

    def shared_step(self, rng: Generator, state: State, sums: Sums, data: Data, ask: Asks) -> State:
        """Move the shared fields, given the sums over all blocks, and those that it asks for."""
        return self._sampler(data).shared_step(rng, state, sums, ask)  # type: ignore[no-any-return]

    def answer(
        self, ask: Ask, rng: Generator | None, state: State, held: object, data: Data
    ) -> tuple[State, object, Sums]:
        """The answer of one block to a question of the shared step."""
        return getattr(self._sampler(data), ask.method)(rng, state, held, *ask.arrays)  # type: ignore[no-any-return]


def is_in_blocks(model: object) -> bool:
    """Whether a model's sweeps are made of blocks."""
    return isinstance(model, SweepsInBlocks) and model.in_blocks


def as_block_model(model: Any) -> SweepsInBlocks[Any, Any]:
    """The model, if its sweeps are made of blocks."""
    if not is_in_blocks(model):
        raise TypeError(
            f"model must have rows that are independent given what they share, got {brief(model)}"
        )
    return model  # type: ignore[no-any-return]


as_block_rows = whole(maximum=2**31)
"""A check: a number of rows for each block."""


def blocks(num_rows: int, block_rows: int) -> list[slice]:
    """The rows of each block; the last block has from half as many rows to half as many more.

    Shards are cut at multiples of `block_rows` and have the blocks of the whole, but for the last
    half block: leave the rows of the last of these slices together.
    """
    count = max(1, (num_rows + block_rows // 2) // block_rows)
    bounds = [b * block_rows for b in range(count)] + [num_rows]
    return [slice(start, stop) for start, stop in pairwise(bounds)]


def block_rng(key: Key, b: int, answer: int = 0) -> Generator:
    """The generator of block b in the sweep of this key, for its step or one of its answers."""
    return keyed_generator(key, [0, 0, answer, b])


@dataclass(slots=True)
class Total:
    """Sums over all or some blocks; the bits do not depend on the order in which they are added.

    Attributes
    ----------
    exact : list of int arrays
        In int64, unless `narrowed`.
    nodes : dict from (level, index) to tuple of arrays
        Sums of `rounded` over the blocks ``index * 2**level, ..., (index + 1) * 2**level - 1``,
        whose siblings are not known yet.
    """

    exact: list[NDArray[Any]] = field(default_factory=list)
    nodes: dict[tuple[int, int], tuple[FloatArray, ...]] = field(default_factory=dict)

    def add(self, b: int, sums: Sums) -> None:
        """Add block b."""
        self.add_exact(sums.exact)
        self.put((0, b), sums.rounded)

    def merge(self, other: "Total") -> None:
        """Add the blocks of another total, of other blocks."""
        if other.nodes:
            self.add_exact(other.exact)
        for node, values in other.nodes.items():
            self.put(node, values)

    def narrowed(self) -> "Total":
        """The same with integers in the smallest dtype that holds them, to be sent elsewhere."""
        return Total([value.astype(_least_type(value)) for value in self.exact], self.nodes)

    def result(self, num_blocks: int) -> Sums:
        """The sums, when all blocks are there.

        Raises
        ------
        ValueError
            If a block is missing.
        """
        if num_blocks == len(self.nodes) == 1 and (0, 0) in self.nodes:
            return Sums(tuple(self.exact), self.nodes[0, 0])
        left, end = sorted(self.nodes, reverse=True), 0
        for level, index in left:
            end = end + (1 << level) if index << level == end else -1
        if not left or end != num_blocks:
            raise ValueError(f"blocks are missing: {num_blocks} expected, there are {left}")
        values = self.nodes[left[-1]]
        for node in left[-2::-1]:
            values = _added(self.nodes[node], values)
        return Sums(tuple(self.exact), values)

    def add_exact(self, values: Sequence[Array]) -> None:
        """Add integers alone."""
        if not self.exact:
            self.exact = [np.array(value, dtype=np.int64) for value in values]
            return
        for total, value in zip(self.exact, values, strict=True):
            np.add(total, value, out=total)

    def put(self, node: tuple[int, int], values: tuple[FloatArray, ...]) -> None:
        """Add the sums of a node alone."""
        while (sibling := (node[0], node[1] ^ 1)) in self.nodes:
            other = self.nodes.pop(sibling)
            first, second = (values, other) if node < sibling else (other, values)
            node, values = (node[0] + 1, node[1] >> 1), _added(first, second)
        if node in self.nodes:
            raise ValueError(f"blocks were added twice: {node}")
        self.nodes[node] = values


def _least_type(values: Array) -> np.dtype[np.generic]:
    """The smallest type of integers that holds these and can be added to int64."""
    least, most = int(values.min(initial=0)), int(values.max(initial=0))
    if least == 0 and most < 2**32:
        return np.min_scalar_type(most)
    return np.min_scalar_type(min(least, -most - 1))


def _added(first: tuple[FloatArray, ...], second: tuple[FloatArray, ...]) -> tuple[FloatArray, ...]:
    return tuple(np.add(a, b) for a, b in zip(first, second, strict=True))


def is_of_rows(model: SweepsInBlocks[Data, State], name: str) -> bool:
    """Whether a variable has a value for each row, or for each cell of a row."""
    return bool(model.dims[name]) and model.dims[name][0] in (model.row_dim, model.cell_dim)


def local_fields(model: Any, state: State) -> dict[str, Any]:
    """The fields of a state that hold rows, by name."""
    dims, axis = model.dims, (model.cell_dim or model.row_dim,)
    names = _names_of(type(state))
    return {name: getattr(state, name) for name in names if dims.get(name, ())[:1] == axis}


@cache
def _names_of(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def num_rows(model: Any, state: State, data: Data) -> int:
    """How many rows a state has."""
    offsets = getattr(data, "row_offsets", None)
    one = next(iter(local_fields(model, state).values())) if offsets is None else offsets[1:]
    return len(one)


def cells(data: Data, part: slice) -> slice:
    """Where local fields hold these rows: the same numbers unless rows have several cells."""
    offsets = getattr(data, "row_offsets", None)
    return part if offsets is None else slice(int(offsets[part.start]), int(offsets[part.stop]))


def take_rows(model: Any, state: State, part: slice) -> State:
    """The state of neighbouring `cells`, without copies."""
    return replace(state, **{n: rows[part] for n, rows in local_fields(model, state).items()})


def put_rows(model: Any, whole: State, part: slice, state: State) -> None:
    """Write the rows of a state into `cells` of a larger one: `empty_rows` makes it."""
    for name, rows in local_fields(model, state).items():
        getattr(whole, name)[part] = rows


def empty_rows(model: Any, state: State, size: int) -> State:
    """A state with room for so many cells like those of `state`."""
    local = local_fields(model, state).items()
    return replace(state, **{n: np.empty((size, *x.shape[1:]), x.dtype) for n, x in local})


def without_rows(model: Any, state: State) -> State:
    """The shared fields of a state; the local ones are None."""
    return replace(state, **dict.fromkeys(local_fields(model, state)))


def with_rows_of(model: Any, shared: State, state: State) -> State:
    """The state with these shared fields and the rows of another."""
    return replace(shared, **local_fields(model, state))


class MovedRows(NamedTuple, Generic[State]):
    """Neighbouring rows after their step of a sweep, or an answer.

    Attributes
    ----------
    state : state
        With the local fields of these rows.
    held : list
        What each block has in hand for answers.
    total : Total
        Of what they say.
    """

    state: State
    held: list[object]
    total: Total


def started(model: object, rng: Generator, state: State, found: object, data: object) -> State:
    """The state with rows where `local_start` has them, all in this process."""
    return replace(state, **local_starts(model, new_key(rng), found, data))


def local_starts(
    model: Any, key: Key, found: object, data: Any, first: int = 0
) -> dict[str, Array]:
    """Local fields of neighbouring blocks where they start, the first of them number `first`."""
    size = len(data.row_costs)
    arrays: dict[str, NDArray[Any]] = {}
    for b, part in enumerate(blocks(size, model.block_rows), first):
        try:
            rows = model.local_start(block_rng(key, b), found, data.rows(part))
        except Exception as error:
            _renumber_row(error, model, b)
            raise
        for name, values in rows.items():
            if name not in arrays:
                arrays[name] = np.empty((size, *values.shape[1:]), dtype=values.dtype)
            arrays[name][part] = values
    return arrays


@dataclass(frozen=True, slots=True, eq=False)
class Shard(Generic[Data, State]):
    """Neighbouring blocks of rows, which are moved together.

    Attributes
    ----------
    model : SweepsInBlocks
    data : data
        Of these rows.
    first : int
        Which block of the whole is the first of these.
    threads : int
        How many blocks are moved at a time.
    """

    model: SweepsInBlocks[Data, State]
    data: Data
    first: int = 0
    threads: int = 1

    def steps(self, key: Key, state: State, *, overwrite: bool = False) -> MovedRows[State]:
        """The local steps of the blocks.

        Parameters
        ----------
        key : uint64 array, ``(2,)``
            Of the sweep.
        state : state
            The shared fields, and the local ones of these rows.
        overwrite : bool
            Whether the rows of `state` may be written over: then no more than one block of them
            is in memory twice, for each thread.
        """
        model, num_blocks, tables = self.model, len(self.parts(state)), list[Tables]()
        if num_blocks > 1:  # a block alone counts by itself as well
            first, others = model.sweep_tables(state, self.data), min(self.threads, num_blocks) - 1
            # made here: they are as large as this thread's workers ask
            tables = [] if first is None else [first, *(first.another() for _ in range(others))]

        def move(rng: Any, here: State, of: Data, _: int, worker: int) -> Any:
            return model.local_step(rng, here, of, *tables[worker : worker + 1])

        moved = self._each((key, 0), state, move, num_blocks, overwrite)
        counts = (of_worker.counts() for of_worker in tables)
        moved.total.exact += [reduce(np.add, same) for same in zip(*counts, strict=True)]
        return moved

    def answers(self, key: Key, number: int, ask: Ask, moved: MovedRows[State]) -> MovedRows[State]:
        """The answers of the blocks to an `Ask`, the `number`-th of a sweep, from 1.

        Their rows in `moved` may be written over.
        """

        def move(rng: Any, here: State, of: Data, i: int, _: int) -> Any:
            held = moved.held[i]
            if not ask.of_held:
                return self.model.answer(ask, rng, here, held, of)
            sums = getattr(held, ask.method)(*ask.arrays)
            return here, held, Sums((), sums if isinstance(sums, tuple) else (sums,))

        seed = (key, number) if ask.draws else None
        answered = self._each(seed, moved.state, move, len(moved.held))
        return answered if ask.moves else MovedRows(moved.state, moved.held, answered.total)

    def summaries(self, state: State) -> Total:
        """Summaries of the blocks, for what is kept."""
        table = self.model.summary_table(state, self.data)
        given = () if table is None else (table,)

        def move(rng: Any, here: State, of: Data, i: int, _: int) -> Any:
            return here, None, self.model.local_summary(here, of, *given)

        return self._each(None, state, move, len(self.parts(state))).total

    def parts(self, state: State) -> list[slice]:
        """The rows of each block."""
        return blocks(num_rows(self.model, state, self.data), self.model.block_rows)

    def _each(
        self, seed: tuple[Key, int] | None, state: State, move: Callable[..., Any],
        num_blocks: int, overwrite: bool = True,
    ) -> MovedRows[State]:  # fmt: skip
        """`move` of every block: its generator, rows, data, number among these, and worker.

        Types of functions inside are plain names, for they are looked up at each call.
        """
        model, data, first = self.model, self.data, self.first
        held: list[object] = [None] * num_blocks

        def moved(i: int, here: State, of: Data, worker: int = 0) -> Any:
            rng = None if seed is None else block_rng(seed[0], first + i, seed[1])
            try:
                after, held[i], sums = move(rng, here, of, i, worker)
            except Exception as error:
                _renumber_row(error, model, first + i)
                raise
            return after, sums

        if num_blocks == 1:  # without copies: small data need it fast
            after, (exact, rounded) = moved(0, state, data)
            total = Total([np.array(x, dtype=np.int64) for x in exact], {(0, first): rounded})
            return MovedRows(after, held, total)
        parts, lock = self.parts(state), Lock()
        whole: Any = state if overwrite else None

        def act(i: int, worker: int) -> Any:
            nonlocal whole
            place = cells(data, parts[i])
            here = take_rows(model, state, place)
            after, sums = moved(i, here, data.rows(parts[i]), worker)
            with lock:
                if whole is None:
                    whole = empty_rows(model, after, cells(data, parts[-1]).stop)
            if after is not here or whole is not state:
                put_rows(model, whole, place, after)
            return sums

        total = _total(act, num_blocks, first, min(self.threads, num_blocks))
        return MovedRows(whole, held, total)


def _total(act: Callable[[int, int], Sums], count: int, first: int, workers: int) -> Total:
    """The total of ``act(i, worker)`` for so many blocks, of which each worker takes the next."""
    total, lock = Total(), Lock()
    left = iter(range(count))

    def work(worker: int) -> None:
        mine = Total()
        for i in left:
            sums = act(i, worker)
            mine.add_exact(sums.exact)
            with lock:  # siblings meet here, so that few nodes are in memory
                total.put((0, first + i), sums.rounded)
        if mine.exact:  # else there was no block left for this worker
            with lock:
                total.add_exact(mine.exact)

    if workers == 1:
        work(0)
        return total
    with ThreadPoolExecutor(workers - 1, "pgmult-blocks") as pool:
        others = pool.map(work, range(1, workers))
        work(0)
    list(others)  # an error of theirs
    return total


def step(
    model: SweepsInBlocks[Data, State], rng: Generator, state: State, data: Data,
    shared_step: Callable[..., State] | None = None,
) -> State:  # fmt: skip
    """One sweep of a model in blocks, all blocks in this process.

    `shared_step` takes the place of the model's.
    """
    key, shard, numbers = new_key(rng), Shard(model, data), count(1)
    moved = shard.steps(key, state)
    num_blocks = len(moved.held)

    def ask(question: Ask) -> Sums:
        nonlocal moved
        moved = shard.answers(key, next(numbers), question, moved)
        return moved.total.result(num_blocks)

    move = shared_step or model.shared_step
    shared = move(rng, moved.state, moved.total.result(num_blocks), data, ask)
    return with_rows_of(model, shared, moved.state)


def _renumber_row(error: Exception, model: Any, b: int) -> None:
    """Give a row that an error in block b names, such as "document 3", its number in the whole.

    That number is `block_rows` times b more.
    """
    start = b * model.block_rows
    if start and error.args and isinstance(error.args[0], str):
        pattern = rf"\b({model.row_dim} )(\d+)\b"
        text = re.sub(pattern, lambda m: f"{m[1]}{int(m[2]) + start}", error.args[0])
        error.args = (text, *error.args[1:])


def shared_variable(
    model: SweepsInBlocks[Data, State], state: State, summary: Sums, data: Data, name: str
) -> object:
    """The value of a variable without a row axis, where no process holds all rows.

    Parameters
    ----------
    model : SweepsInBlocks
    state : state
        Its shared fields.
    summary : Sums
        The sum of all `Shard.summaries`.
    data : data
        Without its rows.
    name : str
    """
    if name in model.summary_names:
        return model.summarized(name, state, summary, data)
    return variable(model, state, data, name)
