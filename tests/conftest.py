import os

import pytest

# scikit-learn and SciPy read this when they are imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")


@pytest.fixture(scope="module")
def cluster():
    """Two processes of dask, as a client."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
