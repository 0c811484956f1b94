"""Work in pieces: blocks of rows, and tasks spread by joblib."""

from joblib.parallel import get_active_backend
from sklearn.utils import gen_batches
from sklearn.utils._chunking import get_chunk_n_rows
from sklearn.utils.parallel import Parallel


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

    Threads are preferred; any backend of :func:`joblib.parallel_config` takes over. A
    backend that cannot deliver one by one delivers all at the end.

    Parameters
    ----------
    tasks : iterable
        Calls made with :func:`sklearn.utils.parallel.delayed`.
    n_jobs : int, default=None
        As in :class:`joblib.Parallel`.

    Returns
    -------
    results : iterable
        The results, in the order of the tasks.

    Examples
    --------
    >>> from sklearn.utils.parallel import delayed
    >>> from skextra.utils import run_parallel
    >>> list(run_parallel(delayed(abs)(i) for i in (-2, 1)))
    [2, 1]
    """
    backend, _ = get_active_backend(prefer="threads")
    return_as = "generator" if backend.supports_return_generator else "list"
    return Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as)(tasks)
