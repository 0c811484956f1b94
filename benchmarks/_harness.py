"""Run ours and the peer's in turn, several times, and compare the times run by run."""

import argparse
import json
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median

import numba
from rich.console import Console
from rich.progress import track
from threadpoolctl import threadpool_limits

from benchmarks._machine import PeakMemory, describe

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One job done by ours and by a peer; a family's ``cases(quick)`` lists them."""

    name: str  # the job
    against: str  # the peer, with the settings that matter
    ours: Callable  # () -> result: all that it does is timed
    peer: Callable
    target: float | None = None  # the ratio, peer's seconds over ours, that we aim at
    quality: Callable | None = None  # result -> number that shows that the job was done
    runs: int = 5  # of each; with more than one, a first run of each is not counted
    threads: int = 1  # of BLAS and numba, for both


def measure(case):
    """Return seconds, their ratio, peak memory and quality of both sides."""
    sides = {"ours": case.ours, "peer": case.peer}
    runs = {side: [] for side in sides}
    with threads(case.threads):
        for run in range(case.runs + (case.runs > 1)):
            order = ["ours", "peer"] if run % 2 else ["peer", "ours"]
            for side in order:
                runs[side].append(once(sides[side], case.quality))
    counted = {side: done[-case.runs :] for side, done in runs.items()}
    pairs = zip(counted["ours"], counted["peer"], strict=True)
    ratios = [peer["seconds"] / ours["seconds"] for ours, peer in pairs]
    return {
        "name": case.name,
        "against": case.against,
        "runs": case.runs,
        "threads": case.threads,
        "target": case.target,
        "ratio": {"median": median(ratios), "min": min(ratios), "max": max(ratios)},
        **{
            side: {key: middle([run[key] for run in done]) for key in done[0]}
            for side, done in counted.items()
        },
    }


def once(job, quality):
    """Run the job once."""
    with PeakMemory() as memory:
        start = time.perf_counter()
        result = job()
        seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "peak_mb": memory.megabytes,
        "quality": None if quality is None else float(quality(result)),
    }


def middle(values):
    """Return the median, or None where there is nothing."""
    return None if None in values else median(values)


@contextmanager
def threads(number):
    """Give BLAS and numba this number of threads."""
    before = numba.get_num_threads()
    numba.set_num_threads(min(number, numba.config.NUMBA_NUM_THREADS))
    with threadpool_limits(number):
        yield
    numba.set_num_threads(before)


def main(*families):
    """Run the families' cases, print them and save them as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small cases, in under a minute; kept apart from the published results",
    )
    quick = parser.parse_args().quick
    console, machine = Console(), describe()
    console.print(", ".join(f"{key}: {value}" for key, value in machine.items()))
    folder = HERE / ("scratch" if quick else "results")
    folder.mkdir(exist_ok=True)
    for family in families:
        cases = import_module(f"benchmarks.{family}").cases(quick)
        done = []
        for case in track(cases, family, console=console):
            done.append(measure(case))
            console.print(report(done[-1]))
        found = {"family": family, "machine": machine, "cases": done}
        path = folder / f"{family}.json"
        path.write_text(json.dumps(found, indent=2) + "\n")
        console.print(f"Saved: {path}")


def report(case):
    """Return what was measured of one case, in two lines; pairs are ours / the peer's."""
    pair = case["ours"], case["peer"]
    words = ["ratio {median:.2f} ({min:.2f} to {max:.2f})".format(**case["ratio"])]
    if case["target"] is not None:
        words.append(f"target {case['target']:g}")
    for key, unit in {"seconds": "s", "peak_mb": "MB", "quality": "quality"}.items():
        if pair[0][key] is not None:
            words.append(f"{pair[0][key]:.3g} / {pair[1][key]:.3g} {unit}")
    return f"{case['name']}, against {case['against']}:\n    {', '.join(words)}"
