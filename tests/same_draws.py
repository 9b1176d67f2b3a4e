"""One seed, the same draws, on any number of threads and for any shards."""

import dataclasses
import pickle

import numpy as np

from pgmult.compiled.rows import row_threads
from pgmult.core.typing import absent_of, default_keep_of, variable
from pgmult.core.validate import new_key
from pgmult.sampling import blocks


def check_threads_do_not_matter(model, data, sweeps=3):
    """A start and some sweeps give the same bits on one, two and three threads."""

    def run(threads):
        rng = np.random.default_rng(2)
        with row_threads(threads):
            state = model.init(rng, data)
            for _ in range(sweeps):
                state = model.step(rng, state, data)
        return state

    reference = run(1)
    for threads in (2, 3):
        state = run(threads)
        for field in dataclasses.fields(state):
            np.testing.assert_array_equal(
                getattr(state, field.name), getattr(reference, field.name), err_msg=field.name
            )


def check_shards_do_not_matter(model, data, sweeps=3):
    """Sweeps of blocks in 1, 2 and 5 shards, done in any order, are those of `model.step`.

    So are the log likelihood and what is kept by default, bit for bit; and nobody who does the
    shared step sees a row.
    """
    rng = np.random.default_rng(3)
    start = model.init(rng, data)
    parts = blocks.blocks(blocks.num_rows(model, start), model.block_rows)
    assert len(parts) > 5
    bare = pickle.loads(pickle.dumps(data.rows(slice(0, 0))))
    state, mine = start, np.random.default_rng(4)
    whole = [state := model.step(mine, state, data) for _ in range(sweeps)]
    for shards in (1, 2, 5):
        state, theirs = start, np.random.default_rng(4)
        for expected in whole:
            key = new_key(theirs)
            moved, total, kept = {}, blocks.Total(), blocks.Total()
            for piece in rng.permutation(shards):
                mine = np.array_split(np.arange(len(parts)), shards)[piece]
                part, first = slice(parts[mine[0]].start, parts[mine[-1]].stop), int(mine[0])
                here = blocks.take_rows(model, state, part)
                with row_threads(1 + piece % 2, grain=1):
                    here, sums = blocks.local_steps(model, key, here, data.rows(part), first)
                total.merge(sums)
                moved[first] = part, here
            shared = model.shared_step(
                theirs, blocks.without_rows(model, state), total.result(len(parts)), bare
            )
            state = blocks.empty_rows(model, state, parts[-1].stop)
            for part, here in moved.values():
                blocks.put_rows(model, state, part, here)
            state = blocks.with_rows_of(model, shared, state)
            for field in dataclasses.fields(state):
                np.testing.assert_array_equal(
                    getattr(state, field.name), getattr(expected, field.name), err_msg=field.name
                )
            for first, (part, _) in moved.items():
                here = blocks.take_rows(model, state, part)
                kept.merge(blocks.summaries(model, here, data.rows(part), first))
        summary = kept.result(len(parts))
        assert summary.rounded[0] == model.log_likelihood(state, data)
        for name in {*default_keep_of(model), *model.summary_names} - absent_of(model, data):
            if model.dims[name][:1] != (model.row_dim,):
                np.testing.assert_array_equal(
                    blocks.shared_variable(model, shared, summary, bare, name),
                    variable(model, state, data, name), err_msg=name,
                )  # fmt: skip


def forget_a_block(monkeypatch):
    """From now on nothing is added of what the second block of a sweep says."""
    right = blocks.Total.add

    def add(self, b, sums):
        if b == 1:
            sums = blocks.Sums(*(tuple(0 * value for value in values) for values in sums))
        right(self, b, sums)

    monkeypatch.setattr(blocks.Total, "add", add)


def repeat_the_first_block(monkeypatch):
    """From now on all blocks of a sweep draw the same numbers."""
    right = blocks.block_rng
    monkeypatch.setattr(blocks, "block_rng", lambda key, b: right(key, 0))
