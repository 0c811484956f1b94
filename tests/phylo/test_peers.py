"""Lengths and likelihoods of IQ-TREE and phangorn, kept in ``peer_numbers.json``."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skextra.phylo import PhyloBranchLengths
from tests.phylo import peer_data, reference

RESULTS = json.loads(Path(__file__).with_name("peer_numbers.json").read_text())[
    "results"
]


def label(result):
    kind = f"gamma{result['categories']}" if result["categories"] > 1 else "plain"
    kind += "-alpha" * result["alpha_fitted"] + "-asc" * result["ascertainment"]
    return f"{result['set']}-{kind}-{result['program']}"


@cache
def fitted(name, categories, alpha, ascertainment):
    names, parents, lengths, X = peer_data.make(name)
    model = PhyloBranchLengths(
        parents,
        n_rate_categories=categories,
        alpha=alpha,
        ascertainment=ascertainment,
        max_iter=5000,
    )
    return names, model.fit(X), X


def of(result):
    alpha = None if result["alpha_fitted"] else result["alpha"]
    return fitted(result["set"], result["categories"], alpha, result["ascertainment"])


def in_our_order(result, names, parents):
    """The peer's lengths, edge by edge."""
    sides, n_leaves = reference.sides_of(parents)
    found = []
    for side in sides:
        split = reference.named_split(side, n_leaves, names)
        (length,) = (
            value
            for key, value in result["lengths"].items()
            if frozenset(key.split("|")) == split
        )
        found.append(length)
    return np.array(found)


@pytest.mark.parametrize("result", RESULTS, ids=label)
def test_fit(result):
    names, model, X = of(result)
    assert model.converged_
    lengths = in_our_order(result, names, model.parents_)
    at_theirs = PhyloBranchLengths(
        model.parents_,
        n_rate_categories=result["categories"],
        alpha=result["alpha"],
        ascertainment=result["ascertainment"],
        init=lengths,
        max_iter=0,
    ).fit(X)
    assert_allclose(at_theirs.branch_lengths_, np.maximum(lengths, 1e-8))
    assert at_theirs.loglik_ == pytest.approx(result["loglik"], abs=2e-6)
    assert model.loglik_ >= result["loglik"] - 1e-6
    if not result["lengths_fitted"]:
        return
    if result["alpha_fitted"]:
        assert model.alpha_ == pytest.approx(0.570551, abs=1e-3)
        assert model.loglik_ == pytest.approx(-8556.136245, abs=1e-5)
        atol = 1e-4
    else:
        assert model.loglik_ == pytest.approx(result["loglik"], abs=1e-6)
        constant_sites_dropped = result["set"] == "variable"
        atol = 1e-5 if constant_sites_dropped and not result["ascertainment"] else 1e-6
    assert_allclose(model.branch_lengths_, lengths, atol=atol)


@pytest.mark.parametrize("solver", ["coordinate", "lbfgs", "em"])
@pytest.mark.parametrize("name", ["plain", "missing"])
def test_other_solvers(name, solver):
    (result,) = (r for r in RESULTS if r["set"] == name and r["program"] == "phangorn")
    names, parents, _, X = peer_data.make(name)
    model = PhyloBranchLengths(parents, solver=solver, max_iter=5000).fit(X)
    assert model.loglik_ == pytest.approx(result["loglik"], abs=1e-6)
    lengths = in_our_order(result, names, parents)
    assert_allclose(model.branch_lengths_, lengths, atol=2e-6)
