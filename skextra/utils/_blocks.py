"""Work in pieces: blocks of rows, and tasks spread by joblib."""

from contextlib import nullcontext

from joblib import cpu_count
from joblib.parallel import get_active_backend
from sklearn.utils import gen_batches
from sklearn.utils._chunking import get_chunk_n_rows
from sklearn.utils.parallel import Parallel
from threadpoolctl import ThreadpoolController


def row_blocks(n_rows, row_bytes, memory=32):
    """Slice `n_rows` rows of `row_bytes` each into blocks of at most `memory` MiB.

    Parameters
    ----------
    n_rows : int
        Number of rows in all.
    row_bytes : int
        Bytes that one row takes.
    memory : float, default=32
        Size of a block in MiB.

    Returns
    -------
    blocks : generator of slice
        One row at least each.

    Examples
    --------
    >>> from skextra.utils import row_blocks
    >>> list(row_blocks(5, 2**20, memory=2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    row_bytes = min(row_bytes, int(memory * 2**20))
    return gen_batches(n_rows, get_chunk_n_rows(row_bytes, working_memory=memory))


def run_parallel(tasks, n_jobs=None):
    """Run joblib tasks and yield their results in order, as they arrive.

    Threads are preferred, which share the cores with the threads of BLAS; any backend
    of :func:`joblib.parallel_config` takes over. A backend that cannot deliver one by
    one delivers all at the end.

    Parameters
    ----------
    tasks : iterable
        Calls made with :func:`sklearn.utils.parallel.delayed`.
    n_jobs : int, default=None
        As in :class:`joblib.Parallel`.

    Yields
    ------
    result : object
        What a task returned, in the order of the tasks.

    Examples
    --------
    >>> from sklearn.utils.parallel import delayed
    >>> from skextra.utils import run_parallel
    >>> list(run_parallel(delayed(abs)(i) for i in (-2, 1)))
    [2, 1]
    """
    backend, default_n_jobs = get_active_backend(prefer="threads")
    n_workers = backend.effective_n_jobs(n_jobs or default_n_jobs)
    in_threads = getattr(backend, "supports_sharedmem", False) and n_workers > 1
    return_as = "generator" if backend.supports_return_generator else "list"
    with _shared_cores(n_workers) if in_threads else nullcontext():
        yield from Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as)(tasks)


def _shared_cores(n_workers):
    """Context in which each worker's BLAS has its share of the cores, if not less."""
    blas = ThreadpoolController()
    now = max((library.num_threads for library in blas.lib_controllers), default=1)
    return blas.limit(limits=min(now, max(1, cpu_count() // n_workers)))
