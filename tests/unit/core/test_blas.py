"""Linear algebra on one thread, and whatever number there was before."""

import threading

import numpy as np
import pytest

from pgmult.core import blas
from pgmult.core.blas import one_blas_thread


@pytest.fixture
def threads():
    """Reads the threads of every BLAS, set to 2 meanwhile."""
    libraries = blas._libraries()
    if not libraries:
        pytest.skip("a BLAS of another kind")
    before = [get() for get, _ in libraries]
    for _, set_to in libraries:
        set_to(2)
    yield lambda: {get() for get, _ in libraries}
    for (_, set_to), number in zip(libraries, before, strict=True):
        set_to(number)


def test_overlapping_contexts_leave_what_they_found(threads):
    assert threads() == {2}
    entered, leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        entered.wait(30)
        with one_blas_thread():
            assert threads() == {1}
    assert threads() == {1}  # the other thread is inside
    leave.set()
    thread.join()
    assert threads() == {2}


def test_products_and_factors_have_the_bits_of_one_thread(threads):
    rows = np.random.default_rng(0).normal(size=(600, 199))

    def made():
        with one_blas_thread():
            gram = rows.T @ rows
            return gram, np.linalg.cholesky(gram)

    with_two = made()
    for _, set_to in blas._libraries():
        set_to(1)
    for first, second in zip(with_two, made(), strict=True):
        np.testing.assert_array_equal(first, second)
