"""Sweeps in blocks: sums in a fixed tree, and the same draws for any shards."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from block_models import AskingPaths, Rows, paths
from same_draws import check_shards_do_not_matter

from pgmult.sampling.blocks import (
    Shard,
    Sums,
    SweepsInBlocks,
    Total,
    as_block_model,
    block_rng,
    blocks,
    cells,
    local_fields,
    num_rows,
    shared_variable,
    take_rows,
    with_rows_of,
    without_rows,
)


@dataclass(frozen=True, slots=True, eq=False)
class RowsState:
    x: Any
    mu: Any


@dataclass(frozen=True, slots=True, eq=False)
class RowsModel(SweepsInBlocks):
    """mu ~ N(0, 1), x_i ~ N(mu, 1), y_i ~ N(x_i, 1)."""

    block_rows: int = 2

    row_dim: ClassVar[str] = "row"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"x": ("row",), "mu": (), "mean": ()}
    summary_names: ClassVar[frozenset[str]] = frozenset({"mean"})

    def local_step(self, rng, state, data):
        mean = 0.5 * (state.mu + data.y)
        x = mean + np.sqrt(0.5) * rng.standard_normal(len(mean))
        return replace(state, x=x), None, Sums((np.array(len(x)),), (x.sum(),))

    def shared_step(self, rng, state, sums, data, ask):
        (count,), (total,) = sums
        mu = (total + rng.standard_normal() * np.sqrt(count + 1.0)) / (count + 1.0)
        return replace(state, mu=float(mu))

    def local_summary(self, state, data):
        return Sums((), (-0.5 * np.sum((data.y - state.x) ** 2), state.x.sum()))

    def summarized(self, name, state, summary, data):
        return summary.rounded[1]


def test_blocks_cover_the_rows_and_none_is_small():
    assert blocks(0, 4) == [slice(0, 0)]
    assert blocks(3, 4) == [slice(0, 3)]
    assert blocks(5, 4) == [slice(0, 5)]
    assert blocks(6, 4) == [slice(0, 4), slice(4, 6)]
    for size in range(1, 40):
        for block_rows in range(1, 9):
            parts = blocks(size, block_rows)
            assert [i for part in parts for i in range(size)[part]] == list(range(size))
            for part in parts[:-1]:
                assert part.stop - part.start == block_rows
            if len(parts) > 1:
                assert parts[-1].stop - parts[-1].start >= block_rows / 2


@pytest.mark.parametrize("num_blocks", [1, 2, 5, 8, 13])
def test_totals_do_not_depend_on_order_or_on_who_added(num_blocks):
    rng = np.random.default_rng(num_blocks)
    sums = [
        Sums((rng.integers(9, size=2, dtype=np.int32),), (rng.standard_normal(3), rng.random(())))
        for _ in range(num_blocks)
    ]
    found = []
    for shards in (1, 1, 2, 5):
        totals = [Total() for _ in range(shards)]
        for b in rng.permutation(num_blocks):
            totals[rng.integers(shards)].add(int(b), sums[b])
        whole = Total()
        for i in rng.permutation(shards):
            whole.merge(totals[i])
        found.append(whole.result(num_blocks))
    for one in found:
        assert one.exact[0].dtype == np.int64
        np.testing.assert_array_equal(one.exact[0], sum(s.exact[0] for s in sums))
        np.testing.assert_allclose(one.rounded[0], sum(s.rounded[0] for s in sums))
        for i in range(2):
            np.testing.assert_array_equal(one.rounded[i], found[0].rounded[i])


def test_blocks_that_are_missing_or_there_twice_are_refused():
    sums = Sums((), (np.ones(1),))
    total = Total()
    for b in (0, 1, 3):
        total.add(b, sums)
    for expected in (2, 3, 4):
        with pytest.raises(ValueError, match="blocks are missing"):
            total.result(expected)
    with pytest.raises(ValueError, match="twice"):
        total.add(3, sums)
    with pytest.raises(ValueError, match="blocks are missing"):
        Total().result(1)


def test_every_block_has_numbers_of_its_own():
    key = np.array([1, 2], dtype=np.uint64)
    first, again, second = (block_rng(key, b).random(1000) for b in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert not np.isin(first, second).any()


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_sweeps_of_shards_are_those_of_the_whole(shards):
    rng = np.random.default_rng(0)
    data, model = Rows(rng.standard_normal(23)), RowsModel()
    state = whole = RowsState(np.zeros(23), 0.0)
    parts = blocks(23, model.block_rows)
    pieces = np.array_split(np.arange(len(parts)), shards)
    mine, theirs = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(3):
        whole = model.step(mine, whole, data)
        key = theirs.integers(0, 2**64, size=2, dtype=np.uint64)
        moved, total = [], Total()
        for piece in reversed(pieces):
            part = slice(parts[piece[0]].start, parts[piece[-1]].stop)
            shard = Shard(model, data.rows(part), int(piece[0]))
            here, _, sums = shard.steps(key, take_rows(model, state, part))
            moved.insert(0, here)
            total.merge(sums)
        shared = model.shared_step(
            theirs,
            without_rows(model, state),
            total.result(len(parts)),
            data.rows(slice(0, 0)),
            None,
        )
        rows = replace(state, x=np.concatenate([here.x for here in moved]))
        state = with_rows_of(model, shared, rows)
        np.testing.assert_array_equal(state.x, whole.x)
        assert state.mu == whole.mu
    summary = Shard(model, data).summaries(state).result(len(parts))
    assert model.log_likelihood(state, data) == summary.rounded[0]
    bare = without_rows(model, state)
    assert shared_variable(model, bare, summary, data.rows(slice(0, 0)), "mu") == state.mu
    mean = shared_variable(model, bare, summary, data.rows(slice(0, 0)), "mean")
    np.testing.assert_allclose(mean, state.x.sum())


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 255], "u1"), ([-1, 127], "i1"), ([-1, 255], "i2"), ([0, 256], "u2"),
        ([0, 2**32 - 1], "u4"), ([-1, 2**31], "i8"), ([0, 2**40], "i8"), ([], "u1"),
    ],
)  # fmt: skip
def test_integers_on_their_way_take_no_more_bytes_than_they_need(values, kind):
    whole, part, values = Total(), Total(), np.array(values, np.int64)
    part.add(0, Sums((values,), (np.ones(2),)))
    whole.add(1, Sums((values,), (np.ones(2),)))
    sent = part.narrowed()
    assert sent.exact[0].dtype == kind
    whole.merge(sent)
    found = whole.result(2)
    np.testing.assert_array_equal(found.exact[0], 2 * values)
    assert found.exact[0].dtype == np.int64


def test_answers_of_shards_are_those_of_the_whole():
    check_shards_do_not_matter(AskingPaths(), paths())


def test_rows_of_several_cells_are_cut_where_the_data_say():
    data = paths()
    state = AskingPaths().init(np.random.default_rng(0), data)
    assert num_rows(AskingPaths(), state, data) == 20
    assert cells(data, slice(0, 3)) == slice(0, data.offsets[3])
    assert list(local_fields(AskingPaths(), state)) == ["x"]


def test_local_fields_are_those_of_rows():
    state = RowsState(np.zeros(3), 0.0)
    assert list(local_fields(RowsModel(), state)) == ["x"]
    assert num_rows(RowsModel(), state, Rows(np.zeros(3))) == 3


def test_models_without_blocks_are_told_so():
    assert as_block_model(RowsModel()) is not None
    with pytest.raises(TypeError, match="rows that are independent given what they share"):
        as_block_model(3)


def test_errors_name_rows_by_their_number_in_the_whole():
    @dataclass(frozen=True, slots=True, eq=False)
    class Failing(RowsModel):
        def local_step(self, rng, state, data):
            if np.isnan(data.y).any():
                raise FloatingPointError("row 1 has no number")
            return RowsModel.local_step(self, rng, state, data)

    y = np.zeros(23)
    y[13] = np.nan
    state = RowsState(np.zeros(23), 0.0)
    with pytest.raises(FloatingPointError, match="row 13 has no number"):
        Failing(4).step(np.random.default_rng(0), state, Rows(y))
