"""What users without torch see."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USES = {
    "NeuralClassifier": "from skextra.neural import NeuralClassifier as C; C().fit(X, y)",
    "NeuralRegressor": "from skextra.neural import NeuralRegressor as R; R().fit(X, y)",
    "ConsistencyModel": "from skextra.generative import ConsistencyModel as M; M().fit(X)",
    "SWAN": "from skextra.optim import SWAN",
    "make_optimizer": "from skextra.optim import make_optimizer as f; f('swan', 0, 0.1)",
    "swan_param_groups": "from skextra.optim import swan_param_groups as f; f(0)",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """All that is installed, but torch and skorch."""
    folder = tmp_path_factory.mktemp("site")
    for item in Path(sysconfig.get_path("purelib")).iterdir():
        if not item.name.startswith(("torch", "skorch", "_distutils")):
            (folder / item.name).symlink_to(item)
    return folder


def run(code, site):
    """Run code where torch is not installed."""
    return subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])},
    )


@pytest.mark.parametrize("name", USES)
def test_error_says_what_to_install(name, site):
    code = f"import skextra\nX, y = [[0.0], [1.0]] * 9, [0, 1] * 9\n{USES[name]}"
    done = run(code, site)
    assert done.returncode == 1
    message = done.stderr.splitlines()[-1]
    needs = "torch" if "skextra.optim" in USES[name] else "torch and skorch"
    assert message == f'ImportError: {name} needs {needs}: pip install "skextra[torch]"'


def test_ranking_of_numpy_arrays_needs_no_torch(site):
    done = run("from skextra.ranking import soft_rank as f; print(*f([3, 1, 2]))", site)
    assert done.stdout.split()[2] == "2.0", done.stderr
