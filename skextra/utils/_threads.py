"""Work on blocks of arrays in threads."""

from concurrent.futures import ThreadPoolExecutor

from joblib import cpu_count, effective_n_jobs


def in_threads(function, tasks, n_jobs):
    """Return ``function(*task)`` of each task, called in threads.

    For functions that release the GIL and take well under the 10 ms at which joblib looks
    at its threads.

    Parameters
    ----------
    function : callable
        What to call.
    tasks : list of sequences
        Arguments of each call.
    n_jobs : int or None
        As in :class:`joblib.Parallel`.

    Returns
    -------
    results : list
        What the calls returned, in the order of the tasks.

    Examples
    --------
    >>> from skextra.utils import in_threads
    >>> in_threads(max, [(1, 2), (4, 3)], n_jobs=2)
    [2, 4]
    """
    n_threads = 1
    if len(tasks) > 1:  # asking takes longer than a small task
        n_threads = min(effective_n_jobs(n_jobs), cpu_count(), len(tasks))
    if n_threads == 1:
        return [function(*task) for task in tasks]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(lambda task: function(*task), tasks))
