"""The demonstration, as a user starts it."""

import json
import os
import subprocess
import sys

import pytest

from skextra._demo import demos
from skextra.utils import all_estimators

NAMES = list(demos())
ROOMS = {estimator.__module__.split(".")[1] for _, estimator in all_estimators()}


def demo(*args, prelude=""):
    """Run ``python -m skextra`` with these arguments."""
    code = f"{prelude}\nimport runpy; runpy.run_module('skextra', run_name='__main__')"
    command = [sys.executable, "-c", code, *args]
    env = {**os.environ, "COLUMNS": "150"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def test_every_sub_package_with_an_estimator_has_a_demo():
    assert ROOMS <= set(NAMES)


def test_list():
    done = demo("--list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_json_is_all_that_is_printed(name, tmp_path):
    done = demo("--only", name, "--json", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["name"] == name
    assert row["score"] > row["baseline_score"] - 0.05
    assert row["fit_seconds"] > 0
    assert (tmp_path / "skextra-demo.png").stat().st_size > 10_000


def test_table(tmp_path):
    done = demo("--only", NAMES[0], "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert demos()[NAMES[0]].task in done.stdout
    assert "skextra-demo.png" in done.stdout


def test_unknown_name():
    done = demo("--only", "nothing")
    assert done.returncode == 2
    assert done.stderr.startswith("No demonstration is called nothing. There are: ")
    assert all(name in done.stderr for name in NAMES)


@pytest.mark.parametrize("package", ["matplotlib", "rich"])
def test_missing_package(package):
    done = demo(prelude=f"import sys; sys.modules['{package}'] = None")
    assert done.returncode == 1
    assert "pip install 'skextra[plot]'" in done.stderr


def test_missing_torch():
    absent = "lambda name, find=find: None if name == 'torch' else find(name)"
    done = demo(
        prelude="import importlib.util as util; find = util.find_spec; "
        f"util.find_spec = {absent}"
    )
    assert done.returncode == 1
    assert done.stderr == 'The demo needs torch: pip install "skextra[torch]"\n'
