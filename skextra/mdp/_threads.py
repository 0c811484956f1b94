"""Work on blocks of arrays in threads."""

from concurrent.futures import ThreadPoolExecutor

from joblib import cpu_count, effective_n_jobs


def in_threads(function, tasks, n_jobs):
    """Return ``function(*task)`` of each task.

    Without joblib's threads, which are looked at every 10 ms: sweeps take less.
    """
    if len(tasks) == 1:  # what follows would take longer than a small sweep
        return [function(*tasks[0])]
    n_threads = min(effective_n_jobs(n_jobs), cpu_count(), len(tasks))
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(lambda task: function(*task), tasks))
