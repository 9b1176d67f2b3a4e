"""A model in blocks whose sweeps take microseconds, for tests of what carries blocks out."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from pgmult.sampling.blocks import Ask, Shard, Sums, SweepsInBlocks, started
from pgmult.sampling.cluster.tasks import work


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    y: Any

    @property
    def row_costs(self):
        return np.ones(len(self.y))

    def rows(self, part):
        return Rows(self.y[part])


@dataclass(frozen=True, slots=True, eq=False)
class RowsState:
    x: Any
    signs: Any
    mu: Any
    var: Any


@dataclass(frozen=True, slots=True, eq=False)
class GaussianRows(SweepsInBlocks):
    """mu ~ N(0, 1), var ~ InvGamma(2, 1), x_i ~ N(mu, var) in two dimensions, y_i ~ N(x_i, 1)."""

    block_rows: int = 8
    fails_at: float = np.inf

    row_dim: ClassVar[str] = "row"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "x": ("row", "axis"), "signs": ("row",), "mu": ("axis",), "var": (), "positive": (),
        "mean": ("axis",),
    }  # fmt: skip
    default_keep: ClassVar[tuple[str, ...]] = ("mu", "var", "positive", "mean")
    summary_names: ClassVar[frozenset[str]] = frozenset({"positive", "mean"})

    def init(self, rng, data):
        return RowsState(data.y + rng.standard_normal(data.y.shape), data.y[:, 0] > 0.0,
                         np.zeros(2), 1.0)  # fmt: skip

    def local_step(self, rng, state, data):
        if np.any(data.y == self.fails_at):
            row = int(np.flatnonzero(np.any(data.y == self.fails_at, axis=1))[0])
            raise ValueError(f"y must be finite, got inf at row {row}")
        precision = 1.0 + 1.0 / state.var
        mean = (data.y + state.mu / state.var) / precision
        x = mean + rng.standard_normal(mean.shape) / np.sqrt(precision)
        signs = x[:, 0] > 0.0
        sums = Sums((np.array(len(x)), signs.sum()), (x.sum(0), np.sum((x - state.mu) ** 2)))
        return replace(state, x=x, signs=signs), None, sums

    def shared_step(self, rng, state, sums, data, ask):
        (count, _), (total, squares) = sums
        var = (1.0 + 0.5 * squares) / rng.standard_gamma(2.0 + count)
        precision = 1.0 + count / var
        mu = total / var / precision + rng.standard_normal(2) / np.sqrt(precision)
        return replace(state, mu=mu, var=float(var))

    def local_summary(self, state, data):
        return Sums(
            (state.signs.sum(), np.array(len(data.y))),
            (-0.5 * np.sum((data.y - state.x) ** 2), state.x.sum(0)),
        )

    def summarized(self, name, state, summary, data):
        (positive, count), (_, total) = summary
        return positive if name == "positive" else total / count

    def positive(self, state, data):
        return state.signs.sum()

    def mean(self, state, data):
        parts = max(1, (len(data.y) + self.block_rows // 2) // self.block_rows)
        return self.summarized(
            "mean", state, Shard(self, data).summaries(state).result(parts), data
        )


@dataclass(frozen=True, slots=True, eq=False)
class StartingFrom:
    shift: Any


@dataclass(frozen=True, slots=True, eq=False)
class StartingRows(GaussianRows):
    """Rows that start where a few of them say, and depend on where they were."""

    def init(self, rng, data):
        return started(self, rng, *self.shared_start(rng, data), data)

    def shared_start(self, rng, data):
        some = data.y[:5]
        state = GaussianRows.init(self, rng, Rows(some))
        return state, StartingFrom(some.mean(axis=0) + rng.standard_normal(2))

    def local_start(self, rng, found, data):
        x = data.y - found.shift + rng.standard_normal(data.y.shape)
        return {"x": x, "signs": x[:, 0] > 0.0}

    def local_step(self, rng, state, data):
        return GaussianRows.local_step(self, rng, state, Rows(0.5 * (data.y + state.x)))


@dataclass(frozen=True, slots=True, eq=False)
class HeavyRows(GaussianRows):
    """Rows of few bytes whose sums are a megabyte, as those of topics are."""

    def local_step(self, rng, state, data):
        moved, _, sums = GaussianRows.local_step(self, rng, state, data)
        return moved, None, Sums((*sums.exact, np.full(2**17, 2**40)), sums.rounded)

    def shared_step(self, rng, state, sums, data, ask):
        sums = Sums(sums.exact[:2], sums.rounded)
        return GaussianRows.shared_step(self, rng, state, sums, data, ask)


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """Numbers y of sequences: number s is ``offsets[s]:offsets[s + 1]``."""

    y: Any
    offsets: Any

    @property
    def row_offsets(self):
        return self.offsets

    @property
    def row_costs(self):
        return np.ones(len(self.offsets) - 1)

    def rows(self, part):
        offsets = self.offsets[part.start : part.stop + 1]
        return Paths(self.y[offsets[0] : offsets[-1]], offsets - offsets[0])


@dataclass(frozen=True, slots=True, eq=False)
class PathsState:
    x: Any
    mu: Any


@dataclass(frozen=True, slots=True, eq=False)
class AskingPaths(SweepsInBlocks):
    """Sweeps whose shared step asks: of no use but that every number depends on all before."""

    block_rows: int = 3

    row_dim: ClassVar[str] = "sequence"
    cell_dim: ClassVar[str] = "step"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "x": ("step",), "mu": (), "first": ("sequence",)
    }  # fmt: skip
    default_keep: ClassVar[tuple[str, ...]] = ("mu", "x", "first")

    def init(self, rng, data):
        return PathsState(rng.standard_normal(len(data.y)), 0.0)

    def local_step(self, rng, state, data):
        x = 0.5 * state.x + 0.3 * state.mu + rng.standard_normal(len(data.y))
        held = rng.standard_normal(len(data.offsets) - 1)
        return replace(state, x=x), held, Sums((np.array(len(held)),), (x.sum(),))

    def shared_step(self, rng, state, sums, data, ask):
        (count,), (total,) = sums
        around = total / count
        _, (spread,) = ask(Ask("spread", (np.array(around),), moves=False))
        (ones,), (total,) = ask(Ask("shifted", (np.array(0.1 * spread / count),), moves=True))
        _, (spread,) = ask(Ask("spread", (np.array(around),), moves=False))
        if spread > rng.chisquare(total % 20 + 1):
            _, (total,) = ask(Ask("shifted", (np.array(-0.1),), moves=True))
        return replace(state, mu=float(np.tanh(total / ones) + 0.1 * rng.standard_normal()))

    def spread(self, rng, state, held, data, around):
        squares = (state.x - around) ** 2
        return state, held, Sums((), (squares.sum() + held.sum() + rng.random(),))

    def shifted(self, rng, state, held, data, by):
        x = state.x + by * np.repeat(held, np.diff(data.offsets)) * rng.random()
        sums = Sums((np.array(len(held)),), (x.sum(),))
        return replace(state, x=x), held + x[data.offsets[:-1]], sums

    def local_summary(self, state, data):
        return Sums((), (-0.5 * np.sum((data.y - state.x) ** 2),))

    def first(self, state, data):
        return state.x[data.offsets[:-1]]


class InThisProcess:
    """Workers that are none: tasks are sent as bytes, and done by whoever asks, with 2 threads."""

    num_slots = 3

    def __init__(self):
        self.done = []

    def run(self, task, home):
        done = pickle.loads(pickle.dumps(work(pickle.loads(pickle.dumps(task)), 2)))
        self.done.append((task, done))
        return done

    def close(self):
        raise AssertionError("it was not made by pgmult")


def rows(size=53):
    return Rows(np.random.default_rng(size).normal(1.0, 1.5, size=(size, 2)))


def paths(size=20):
    rng = np.random.default_rng(size)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 5, size))])
    return Paths(rng.standard_normal(offsets[-1]), offsets)


def same(one, other):
    """Have two posteriors the same draws, to the last bit?"""
    names = set(one) | set(other)
    return all(np.array_equal(one[name], other[name]) for name in names) and np.array_equal(
        one.sample_stats["log_likelihood"], other.sample_stats["log_likelihood"]
    )
