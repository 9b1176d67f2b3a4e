"""One seed, the same draws, on any number of threads and for any shards."""

import dataclasses
import pickle
from itertools import count

import numpy as np

from pgmult.compiled.rows import row_threads
from pgmult.core.typing import absent_of, traits_of, variable
from pgmult.core.validate import new_key
from pgmult.sampling import blocks
from pgmult.topics.updates.allocation import WordTables


def arrays(state):
    """The numbers of a state by field, and those of a record in a field."""
    found = {}
    for field in dataclasses.fields(state):
        item = getattr(state, field.name)
        inside = dataclasses.is_dataclass(item)
        found |= arrays(item) if inside else {field.name: np.asarray(item)}
    return found


def check_threads_do_not_matter(model, data, sweeps=3):
    """A start and some sweeps give the same bits on one, two and three threads."""

    def run(threads):
        rng = np.random.default_rng(2)
        with row_threads(threads, grain=1):
            state = model.init(rng, data)
            for _ in range(sweeps):
                state = model.step(rng, state, data)
        return state

    reference = run(1)
    for threads in (2, 3):
        state = run(threads)
        expected = arrays(reference)
        for field, value in arrays(state).items():
            np.testing.assert_array_equal(value, expected[field], err_msg=field)


def check_shards_do_not_matter(model, data, sweeps=3):
    """Sweeps of blocks in 1, 2 and 5 shards, done in any order, are those of `model.step`.

    So are the log likelihood and what is kept by default, bit for bit; and nobody who does the
    shared step sees a row.
    """
    rng = np.random.default_rng(3)
    start = model.init(rng, data)
    parts = blocks.blocks(blocks.num_rows(model, start, data), model.block_rows)
    assert len(parts) > 5
    bare = pickle.loads(pickle.dumps(data.rows(slice(0, 0))))
    state, mine = start, np.random.default_rng(4)
    whole = [state := model.step(mine, state, data) for _ in range(sweeps)]
    for shards in (1, 2, 5):
        state, theirs = start, np.random.default_rng(4)
        pieces = np.array_split(np.arange(len(parts)), shards)
        for expected in whole:
            shared, state = _sweep_of_shards(rng, theirs, model, state, data, parts, pieces)
            kept = blocks.Total()
            wanted = arrays(expected)
            for field, value in arrays(state).items():
                np.testing.assert_array_equal(value, wanted[field], err_msg=field)
            for mine in pieces:
                part = _rows_of(mine, parts)
                here = blocks.take_rows(model, state, blocks.cells(data, part))
                kept.merge(blocks.Shard(model, data.rows(part), int(mine[0])).summaries(here))
        summary = kept.result(len(parts))
        assert summary.rounded[0] == model.log_likelihood(state, data)
        for name in {*traits_of(model).default_keep, *model.summary_names} - absent_of(model, data):
            if not blocks.is_of_rows(model, name):
                np.testing.assert_array_equal(
                    blocks.shared_variable(model, shared, summary, bare, name),
                    variable(model, state, data, name), err_msg=name,
                )  # fmt: skip


def _sweep_of_shards(rng, chain_rng, model, state, data, parts, pieces):
    """What rows share after a sweep, and the state; shards come in an order out of `rng`."""
    key, bare = new_key(chain_rng), pickle.loads(pickle.dumps(data.rows(slice(0, 0))))
    places = [_rows_of(mine, parts) for mine in pieces]
    moved = [blocks.take_rows(model, state, blocks.cells(data, part)) for part in places]

    def everywhere(do, *given):
        total = blocks.Total()
        for i in rng.permutation(len(pieces)):
            with row_threads(1 + i % 2, grain=1):
                shard = blocks.Shard(model, data.rows(places[i]), int(pieces[i][0]), 1 + i % 3)
                moved[i] = do(shard, key, *given, moved[i])
            total.merge(moved[i].total)
        return total.result(len(parts))

    sums = everywhere(blocks.Shard.steps)
    numbers = count(1)
    shared = model.shared_step(
        chain_rng, blocks.without_rows(model, state), sums, bare,
        lambda question: everywhere(blocks.Shard.answers, next(numbers), question),
    )  # fmt: skip
    size = blocks.cells(data, slice(0, parts[-1].stop)).stop
    state = blocks.empty_rows(model, state, size)
    for part, here in zip(places, moved, strict=True):
        blocks.put_rows(model, state, blocks.cells(data, part), here.state)
    return shared, blocks.with_rows_of(model, shared, state)


def _rows_of(piece, parts):
    return slice(parts[piece[0]].start, parts[piece[-1]].stop)


def forget_a_block(monkeypatch):
    """From now on nothing is added of what the first block of a sweep says."""
    right = blocks._total

    def total(act, count, first, workers):
        def say(i, worker):
            sums = act(i, worker)
            if first + i == 0:
                sums = blocks.Sums(*(tuple(0 * value for value in values) for values in sums))
            return sums

        return right(say, count, first, workers)

    monkeypatch.setattr(blocks, "_total", total)
    allocate = WordTables.allocate

    def forget_words(self, rng, data, theta):
        first = not self._word_counts.any()
        topic_counts = allocate(self, rng, data, theta)
        if first:
            self._word_counts[:] = 0
        return topic_counts

    monkeypatch.setattr(WordTables, "allocate", forget_words)


def repeat_the_first_block(monkeypatch):
    """From now on all blocks of a sweep draw the same numbers."""
    right = blocks.block_rng
    monkeypatch.setattr(blocks, "block_rng", lambda key, b, *more: right(key, 0, *more))


def assert_same_corpora(one, other):
    """Sizes, counts, words and names, with their dtypes."""
    assert (one.num_words, one.num_tokens) == (other.num_words, other.num_tokens)
    for name in ("indptr", "words", "counts", "vocabulary", "names"):
        left, right = getattr(one, name), getattr(other, name)
        assert (left is None) == (right is None), name
        assert left is None or (left.dtype == right.dtype and np.array_equal(left, right)), name
