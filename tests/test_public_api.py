"""What a user can import, and what importing costs."""

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from sklearn.utils import estimator_html_repr

import skextra
from skextra.utils import all_estimators

API_PAGES = Path(__file__).parents[1] / "doc" / "api"
MODULES = ["skextra", *(f"skextra.{name}" for name in skextra.__all__)]


def python(code, *args):
    """Run the code in a new interpreter and return what it printed as JSON."""
    command = [sys.executable, "-c", code, *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout or "null")


def test_sub_packages_are_attributes():
    assert set(skextra.__all__) <= set(dir(skextra))
    for name in skextra.__all__:
        assert getattr(skextra, name) is import_module(f"skextra.{name}")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        skextra.nothing  # noqa: B018


@pytest.mark.parametrize("name", skextra.__all__)
def test_api_page_lists_exactly_the_public_names(name):
    page = (API_PAGES / f"{name}.rst").read_text()
    listed = re.findall(r"^ {3}(\w+)$", page, flags=re.MULTILINE)
    assert f".. currentmodule:: skextra.{name}" in page
    assert sorted(listed) == sorted(import_module(f"skextra.{name}").__all__)


@pytest.mark.parametrize(("name", "estimator"), all_estimators())
def test_html_view_links_to_the_api_page(name, estimator):
    room = ".".join(estimator.__module__.split(".")[:2])
    assert name in import_module(room).__all__
    page = f"https://skextra.readthedocs.io/en/stable/api/generated/{room}.{name}.html"
    assert f'href="{page}"' in estimator_html_repr(estimator())


def test_import_needs_no_optional_package():
    python(
        """
import sys
absent = {"torch", "skorch", "cupy", "matplotlib", "pandas", "rich"}
class Block:
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] in absent:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Block)
from importlib import import_module
for module in sys.argv[1:]:
    import_module(module)
""",
        *MODULES,
    )


def test_import_compiles_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiled = python(
        """
import json, sys
from importlib import import_module
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    for module in sys.argv[1:]:
        import_module(module)
print(json.dumps(len(recorder.buffer)))
""",
        *MODULES,
    )
    assert compiled == 0


def test_import_time():
    """Each module adds at most a fifth to what scikit-learn and numba take to import."""
    code = """
import json, sys, time
from importlib import import_module
seconds = {}
for group in ["sklearn numba", *sys.argv[1:]]:
    start = time.perf_counter()
    for module in group.split():
        import_module(module)
    seconds[group] = time.perf_counter() - start
print(json.dumps(seconds))
"""
    runs = [python(code, *MODULES) for _ in range(5)]
    best = {group: min(run[group] for run in runs) for group in runs[0]}
    base = best.pop("sklearn numba")
    slow = {module: seconds for module, seconds in best.items() if seconds > 0.2 * base}
    assert not slow, f"scikit-learn and numba take {base:.2f} s"
