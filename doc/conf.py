import json
import os
import re
import sys
from pathlib import Path
from urllib.request import urlopen

HERE = Path(__file__).parent
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # for examples with torch arrays
sys.path.insert(0, str(HERE.parent))

import skextra  # noqa: E402
from skextra._demo import demos  # noqa: E402

project = "skextra"
copyright = "skextra developers"
version = release = skextra.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.extlinks",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "generated", "sg_execution_times.rst"]
templates_path = ["_templates"]

extlinks = {
    "arxiv": ("https://arxiv.org/abs/%s", "arXiv:%s"),
    "doi": ("https://doi.org/%s", "doi:%s"),
}
numpydoc_show_class_members = False
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "generated/examples",
    "doc_module": ("skextra",),
    "reference_url": {"skextra": None},
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "skextra"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["skextra.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "skextra"},
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
html_sidebars = {"index": [], "choose": [], "how_fast": [], "install": []}


def reachable(site):
    """Say whether the site's inventory can be read: links to it need the network."""
    try:
        with urlopen(f"{site}objects.inv", timeout=5) as inventory:
            return inventory.read(18) == b"# Sphinx inventory"
    except OSError:
        return False


intersphinx_mapping = {
    name: (site, None)
    for name, site in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
        "scipy": "https://docs.scipy.org/doc/scipy/",
        "sklearn": "https://scikit-learn.org/stable/",
        "matplotlib": "https://matplotlib.org/stable/",
        "joblib": "https://joblib.readthedocs.io/en/stable/",
    }.items()
    if reachable(site)
}


def list_table(header, rows):
    """Write a table in reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", "   :class: table", ""]
    for row in [header, *rows]:
        lines += [f"   {'-' if i else '* -'} {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines).replace("\n   - ", "\n     - ") + "\n"


def methods_by_problem():
    """Write the table of the "choose your method" page from the demonstrations."""
    rows = [
        (
            demo.problem,
            f"{demo.answer} (:doc:`user_guide/{demo.name}`)",
            demo.baseline_name,
        )
        for demo in demos().values()
    ]
    return list_table(("You ask", "skextra offers", "Instead of"), rows)


def measured(side):
    """Write the seconds of one side and, in brackets, its quality if it has one."""
    seconds, quality = side["seconds"], side["quality"]
    return f"{seconds:.3g} s" + ("" if quality is None else f" ({quality:.3f})")


def measured_times():
    """Write the tables of the "how fast" page from the results of the benchmarks."""
    text = ""
    for path in sorted((HERE.parent / "benchmarks" / "results").glob("*.json")):
        found = json.loads(path.read_text())
        machine = ", ".join(f"{key} {value}" for key, value in found["machine"].items())
        rows = [
            (
                case["name"],
                case["against"],
                "{median:.2f} ({min:.2f} to {max:.2f})".format(**case["ratio"]),
                *(measured(case[side]) for side in ("ours", "peer")),
            )
            for case in found["cases"]
        ]
        header = ("Job", "Against", "Times as fast (median, range)", "skextra", "Peer")
        title = f"skextra.{found['family']}"
        text += f"{title}\n{'=' * len(title)}\n\n{list_table(header, rows)}\n"
        text += f"Measured on: {machine}.\n\n"
    return text or "No measurement is published yet.\n"


def write_tables(app):
    """Write what pages include."""
    folder = HERE / "generated"
    folder.mkdir(exist_ok=True)
    (folder / "choose.inc").write_text(methods_by_problem())
    (folder / "how_fast.inc").write_text(measured_times())


def skip_routing(app, what, name, member, skip, options):
    """Leave out the methods that scikit-learn makes for metadata routing."""
    is_setter = name.startswith("set_") and name.endswith("_request")
    return True if is_setter or name == "get_metadata_routing" else None


def unlink_inherited(app, what, name, member, options, lines):
    """Offline, turn scikit-learn's references to its own pages into plain words."""
    inherited = getattr(member, "__module__", "").startswith("sklearn.")
    if inherited and "sklearn" not in intersphinx_mapping:
        lines[:] = [re.sub(r":ref:`([^`<]+?)( <.*?>)?`", r"\1", line) for line in lines]


def setup(app):
    app.connect("builder-inited", write_tables)
    app.connect("autodoc-skip-member", skip_routing)
    app.connect("autodoc-process-docstring", unlink_inherited)
