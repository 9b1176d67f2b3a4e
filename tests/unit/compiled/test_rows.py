"""Rows shared among threads: a split never changes results, and no failure is lost."""

import os
import threading
import warnings
from contextvars import copy_context

import numpy as np
import pytest

from pgmult.compiled import rows as _rows
from pgmult.compiled.jit import jit
from pgmult.compiled.rows import num_workers, over_rows, row_threads
from pgmult.compiled.streams import normal, open_stream

KEY = np.array([12, 34], dtype=np.uint64)


@jit
def draw_rows(worker, start, stop, key, out, sums):
    for i in range(start, stop):
        state = open_stream(key, i)
        for j in range(out.shape[1]):
            out[i, j], state = normal(state)
        sums[worker] += i
    return stop - start


def draw(num_rows, threads, grain=None):
    with row_threads(threads, grain=grain):
        out = np.zeros((num_rows, 3))
        sums = np.zeros(num_workers(num_rows), dtype=np.int64)
        sizes = over_rows(draw_rows, num_rows, KEY, out, sums)
        assert len(sizes) == len(sums)
    return out, sums.sum(), sizes


@pytest.mark.parametrize("num_rows", [0, 1, 63, 64, 65, 128, 1000])
@pytest.mark.parametrize("grain", [None, 1, 7])
def test_a_split_never_changes_results(num_rows, grain):
    whole, total, _ = draw(num_rows, 1)
    for threads in (2, 3, 8):
        split, split_total, sizes = draw(num_rows, threads, grain)
        np.testing.assert_array_equal(split, whole)
        assert split_total == total == num_rows * (num_rows - 1) // 2
        assert sum(sizes) == num_rows


def test_pieces_are_whole_grains_and_never_empty():
    for num_rows in range(1, 400):
        for threads in (1, 2, 3, 5):
            bounds = []
            with row_threads(threads):
                over_rows(lambda *piece, bounds=bounds: bounds.append(piece), num_rows)
                assert len(bounds) == num_workers(num_rows) == min(threads, -(-num_rows // 64))
            bounds.sort()
            assert [worker for worker, _, _ in bounds] == list(range(len(bounds)))
            assert [a for _, a, _ in bounds] == [0] + [b for _, _, b in bounds[:-1]]
            assert bounds[-1][2] == num_rows
            assert all(a < b and a % 64 == 0 for _, a, b in bounds)


def test_results_come_back_in_the_order_of_the_rows():
    with row_threads(4, grain=1):
        assert over_rows(lambda worker, a, b: (worker, a, b), 8) == [
            (0, 0, 2), (1, 2, 4), (2, 4, 6), (3, 6, 8),
        ]  # fmt: skip


def test_pieces_run_at_the_same_time():
    meeting = threading.Barrier(2)
    with row_threads(2, grain=1):
        over_rows(lambda worker, a, b: meeting.wait(timeout=30), 2)


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_an_error_in_any_piece_is_raised_after_all_pieces_are_done(bad):
    done = []

    def kernel(worker, start, stop):
        if worker == bad:
            raise ValueError(f"piece {worker}")
        done.append(worker)

    with row_threads(3, grain=1), pytest.raises(ValueError, match=f"piece {bad}"):
        over_rows(kernel, 3)
    assert sorted(done) == sorted({0, 1, 2} - {bad})
    assert len(draw(200, 3)[2]) == 3  # the pool still works


def test_no_piece_is_running_when_an_error_is_raised():
    """Arrays that a caller may free or reuse are no longer written to."""
    raised, finished = threading.Event(), []

    def kernel(worker, start, stop):
        if worker == 2:
            raised.wait(timeout=0.2)  # as long as a caller that does not wait would need
            finished.append(worker)
        else:
            raise ValueError(f"piece {worker}")

    with row_threads(3, grain=1), pytest.raises(ValueError, match="piece 0"):
        over_rows(kernel, 3)
    assert finished == [2]
    raised.set()


def test_contexts_nest_and_are_restored_after_an_error():
    assert num_workers(1000) == 1
    with row_threads(4):
        assert num_workers(1000) == 4
        with row_threads(2, grain=1):
            assert num_workers(2) == 2
        assert num_workers(64) == 1
        with pytest.raises(ZeroDivisionError), row_threads(3):
            raise ZeroDivisionError
        assert num_workers(1000) == 4
    assert num_workers(1000) == 1


@pytest.mark.parametrize("count", [0, -3])
def test_at_least_one_thread(count):
    with row_threads(count):
        assert num_workers(1000) == 1


def test_a_context_belongs_to_its_thread():
    seen = {}

    def look(name):
        seen[name] = num_workers(1000)

    with row_threads(3):
        plain = threading.Thread(target=look, args=("plain",))
        inherited = threading.Thread(target=copy_context().run, args=(look, "inherited"))
        for thread in (plain, inherited):
            thread.start()
            thread.join()
    assert seen == {"plain": 1, "inherited": 3}


def test_many_callers_share_the_pool():
    expected, _, _ = draw(500, 1)
    results = []
    callers = [
        threading.Thread(target=lambda: results.append(draw(500, 3, grain=16)[0])) for _ in range(8)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(results) == 8
    for result in results:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is of Unix")
def test_a_forked_child_makes_its_own_pool():
    expected, _, _ = draw(300, 3)
    assert _rows._shared_pool.cache_info().currsize
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12: threads and fork
        child = os.fork()
    if child == 0:
        try:
            fresh = not _rows._shared_pool.cache_info().currsize
            os.write(writer, draw(300, 3)[0].tobytes() if fresh else b"the parent's pool")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        received = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert received == expected.tobytes()
