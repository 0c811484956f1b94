"""The harness of the benchmarks: it measures what it says."""

import json
import sys
import time
from types import SimpleNamespace

import numpy as np

from benchmarks import _harness
from benchmarks._harness import Case, measure


def case(**settings):
    return Case(
        "sleep",
        "twice as long",
        ours=lambda: time.sleep(0.02) or 1,
        peer=lambda: time.sleep(0.06) or 2,
        **settings,
    )


def test_ratio_and_quality():
    found = measure(case(runs=3, quality=lambda result: 10 * result))
    assert found["ratio"]["min"] <= found["ratio"]["median"] <= found["ratio"]["max"]
    assert 1.5 < found["ratio"]["median"] < 3.5
    assert (found["ours"]["quality"], found["peer"]["quality"]) == (10, 20)


def test_runs_alternate():
    order = []
    one = Case(
        "", "", lambda: order.append("ours"), lambda: order.append("peer"), runs=3
    )
    measure(one)
    assert order == 2 * ["peer", "ours", "ours", "peer"]


def test_peak_memory():
    held = measure(Case("", "", lambda: np.ones(2**22).sum(), lambda: None))
    assert held["ours"]["peak_mb"] is None or 30 < held["ours"]["peak_mb"] < 40
    assert held["peer"]["peak_mb"] is None or held["peer"]["peak_mb"] < 5


def test_main_saves(monkeypatch, tmp_path, capsys):
    family = SimpleNamespace(cases=lambda quick: [case(runs=1)])
    monkeypatch.setitem(sys.modules, "benchmarks.naps", family)
    monkeypatch.setattr(_harness, "HERE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick"])
    _harness.main("naps")
    saved = json.loads((tmp_path / "scratch" / "naps.json").read_text())
    assert saved["cases"][0]["name"] == "sleep"
    assert saved["machine"]["cpu"] in capsys.readouterr().out.replace("\n", " ")
