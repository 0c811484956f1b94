"""Run the demonstrations: ``python -m skextra``."""

import argparse
import json
import sys
from pathlib import Path

from skextra._demo import demos, run
from skextra.utils import require_torch


def main():
    """Parse the command line and run what it asks for."""
    args = parse()
    chosen = choose(args.only)
    if args.list:
        for demo in chosen:
            print(f"{demo.name:12} {demo.problem} {demo.answer}")
        return
    try:
        import matplotlib  # noqa: F401
        from rich.console import Console
    except ImportError as error:
        sys.exit(f"The demo needs {error.name}: pip install 'skextra[plot]'")
    try:
        if any(demo.needs_torch for demo in chosen):
            require_torch("The demo")
    except ImportError as error:
        sys.exit(str(error))
    results = run_all(chosen, Console(stderr=True))
    picture = draw(results, args.output)
    if args.json:
        print(json.dumps([result.row() for result in results], indent=2))
    else:
        Console().print(table(results))
        print(f"Picture: {picture}")


def parse():
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m skextra",
        description="Fit each method of skextra, and what people use today, to data.",
    )
    parser.add_argument(
        "--list", action="store_true", help="list the demonstrations and stop"
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="run NAME (repeatable)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("skextra-demo"),
        metavar="DIR",
        help="folder of the picture (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    return parser.parse_args()


def choose(only):
    """Return the demonstrations named in ``only``, or all; exit if one is unknown."""
    known = demos()
    unknown = [name for name in only or [] if name not in known]
    if unknown:
        print(
            f"No demonstration is called {', '.join(unknown)}. "
            f"There are: {', '.join(known)}.",
            file=sys.stderr,
        )
        sys.exit(2)
    return [known[name] for name in dict.fromkeys(only or known)]


def run_all(chosen, console):
    """Run the demonstrations under one progress bar."""
    from rich.progress import Progress, TimeElapsedColumn

    with Progress(
        *Progress.get_default_columns(), TimeElapsedColumn(), console=console
    ) as bar:
        task = bar.add_task("", total=2 * len(chosen))
        results = []
        for demo in chosen:
            bar.update(task, description=f"{demo.name} on {demo.data}")
            results.append(run(demo, advance=lambda: bar.advance(task)))
    return results


def table(results):
    """Return the rich table of the results."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    today = [
        f"today on {result.demo.data}: {result.demo.baseline_name}"
        for result in results
    ]
    found = Table(
        title="Scores on the test rows: higher is better",
        caption="\n".join(today),
        box=SIMPLE_HEAD,
    )
    for column in ("task", "data", "rows", "score", "skextra", "today"):
        found.add_column(column, no_wrap=True)
    for column in ("fit", "today fit"):
        found.add_column(column, justify="right", no_wrap=True)
    for result in results:
        found.add_row(
            result.demo.task,
            result.demo.data,
            str(result.rows),
            result.demo.score_name,
            f"[bold]{result.ours.score:.3f}",
            f"{result.baseline.score:.3f}",
            f"{result.ours.seconds:.1f} s",
            f"{result.baseline.seconds:.1f} s",
        )
    return found


def draw(results, folder):
    """Save one picture with a panel for each result and return its path."""
    from matplotlib.figure import Figure

    columns = min(len(results), 3)
    rows = -(-len(results) // columns)
    figure = Figure(figsize=(5 * columns, 4 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, result in zip(panels, results, strict=False):
        result.demo.plot(ax, result)
    for ax in panels[len(results) :]:
        ax.set_axis_off()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "skextra-demo.png"
    figure.savefig(path, dpi=120)
    return path


if __name__ == "__main__":
    main()
