"""Docstrings follow numpydoc, and their examples work as written, as does the README's."""

import doctest
import inspect
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest
from numpydoc.validate import validate
from sklearn.pipeline import Pipeline

import skextra

ROOT = Path(__file__).parents[1]
# Nobody must write an extended summary, a See Also section, or a line break before
# the summary; and a result may have a name.
NOT_NEEDED = {"ES01", "SA01", "GL01", "RT02"}
MODULES = [
    module.name
    for module in pkgutil.walk_packages(skextra.__path__, "skextra.")
    if not module.name.endswith("__main__")
]
PAGES = sorted((ROOT / "doc").glob("*.rst")) + sorted(
    (ROOT / "doc/user_guide").glob("*.rst")
)


def public_names():
    """Yield the import path of every public object, and of every method that we wrote."""
    for room in skextra.__all__:
        module = import_module(f"skextra.{room}")
        for name in module.__all__:
            path, item = f"skextra.{room}.{name}", getattr(module, name)
            yield path
            if inspect.isclass(item):
                yield from (f"{path}.{method}" for method in written_methods(item))


def written_methods(cls):
    """Yield the public methods and properties that our own classes give to a class."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("skextra.")]
    kinds = (classmethod, property, FunctionType, type(Pipeline.__dict__["transform"]))
    for base in ours:
        for name, member in vars(base).items():
            if isinstance(member, kinds) and not name.startswith("_"):
                yield name


@pytest.mark.parametrize("path", list(public_names()))
def test_numpydoc(path):
    is_method, is_raised = path.count(".") > 2, path.endswith(("Warning", "Error"))
    not_needed = NOT_NEEDED | ({"EX01"} if is_method or is_raised else set())
    errors = [f"{code}: {text}" for code, text in validate(path)["errors"]]
    assert not [error for error in errors if error[:4] not in not_needed]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    assert doctest.testmod(import_module(name)).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_doctests_of_the_pages(page):
    assert doctest.testfile(str(page), module_relative=False).failed == 0


def test_readme_example():
    example = re.search(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    exec(compile(example[1], "README.md", "exec"), {})
