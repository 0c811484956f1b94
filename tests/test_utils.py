"""Row blocks, and tasks spread by joblib."""

import threading

import joblib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.parallel import delayed
from threadpoolctl import threadpool_info, threadpool_limits

from skextra.utils import in_threads, row_blocks, run_parallel


@given(st.integers(1, 500), st.integers(1, 10**8), st.sampled_from([0.5, 1, 32]))
def test_blocks_cover_the_rows_within_the_memory(n_rows, row_bytes, memory):
    blocks = list(row_blocks(n_rows, row_bytes, memory=memory))
    assert [i for block in blocks for i in range(n_rows)[block]] == list(range(n_rows))
    longest = max(block.stop - block.start for block in blocks)
    assert longest == 1 or longest * row_bytes <= memory * 2**20


def blas_threads():
    return [
        lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"
    ]


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_results_come_in_order_and_one_by_one(n_jobs):
    made = []

    def make(i):
        made.append(i)
        return i**2

    results = run_parallel((delayed(make)(i) for i in range(6)), n_jobs)
    assert next(results) == 0
    if n_jobs != 2:
        assert made == [0]
    assert list(results) == [1, 4, 9, 16, 25]


def test_workers_in_threads_share_the_cores_with_blas():
    """Two workers with as many BLAS threads as cores would fight for them."""
    share = max(1, joblib.cpu_count() // 2)
    with threadpool_limits(joblib.cpu_count()):
        before = blas_threads()
        alone = list(run_parallel([delayed(blas_threads)()]))
        together = list(run_parallel([delayed(blas_threads)() for _ in range(4)], 2))
        assert blas_threads() == before
        with threadpool_limits(1):  # a limit of the user's is not raised
            limited = list(run_parallel([delayed(blas_threads)() for _ in range(4)], 2))
    assert alone == [before]
    assert together == [[share] * len(before)] * 4
    assert limited == [[1] * len(before)] * 4


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "sequential"])
def test_other_backends_take_over(backend):
    with joblib.parallel_config(backend, n_jobs=2 if backend != "sequential" else 1):
        assert list(run_parallel(delayed(abs)(i) for i in (-3, 2))) == [3, 2]


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_calls_in_threads_come_in_order(n_jobs):
    def call(i, by):
        return i * by, threading.current_thread()

    results, threads = zip(*in_threads(call, [(i, 10) for i in range(5)], n_jobs))
    assert results == (0, 10, 20, 30, 40)
    is_here = threading.current_thread() in threads
    assert is_here == (n_jobs != 2 or joblib.cpu_count() == 1)


def test_errors_in_threads_arrive():
    with pytest.raises(ZeroDivisionError):
        in_threads(divmod, [(1, 1), (1, 0)], 2)
