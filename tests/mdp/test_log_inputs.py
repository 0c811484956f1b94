"""Logs in the containers and types of users, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from skextra.mdp import HalpernMDPSolver

CONTAINERS = {
    "lists": (lambda X: X.tolist(), list),
    "pandas": (lambda X: pd.DataFrame(X, columns=["a", "b"]), pd.Series),
    "polars": (lambda X: pl.DataFrame(X, schema=["a", "b"]), pl.Series),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_containers(kind):
    table, column = CONTAINERS[kind]
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(60, 2)).astype(float)
    y, actions, ends = (
        rng.normal(size=60),
        rng.integers(3, size=60),
        rng.random(60) < 0.2,
    )
    next_X = X[rng.permutation(60)]
    plain = HalpernMDPSolver().fit(X, y, actions=actions, next_X=next_X, terminal=ends)
    columns = {
        "actions": column(actions.tolist()),
        "next_X": table(next_X),
        "terminal": column(ends.tolist()),
    }
    mdp = HalpernMDPSolver().fit(table(X), column(y.tolist()), **columns)
    assert_array_equal(mdp.transition_.toarray(), plain.transition_.toarray())
    assert_array_equal(mdp.bias_, plain.bias_)
    assert_array_equal(mdp.predict(table(X)), plain.predict(X))
    score = mdp.score(table(X), column(y.tolist()), **columns)
    assert score == plain.score(X, y, actions=actions, next_X=next_X, terminal=ends)
    if kind != "lists":
        assert list(mdp.feature_names_in_) == ["a", "b"]
        swapped = columns | {"next_X": table(next_X)[["b", "a"]]}
        with pytest.raises(ValueError, match=r"next_X must have the columns of X"):
            mdp.fit(table(X), column(y.tolist()), **swapped)


@pytest.mark.parametrize(
    ("labels", "first", "second"),
    [
        (["b", "a"], "a", "b"),
        ([True, False], False, True),
        ([3, -1], -1, 3),
        ([2.5, 0.5], 0.5, 2.5),
        (pd.Series(["b", "a"], dtype="category"), "a", "b"),
        (pd.Series(["b", "a"], dtype="string"), "a", "b"),
        (pd.Categorical(["b", "a"]), "a", "b"),
        (pl.Series(["b", "a"]), "a", "b"),
        (np.array(["b", "a"], dtype=object), "a", "b"),
        (np.array([7, 5], dtype=np.uint8), 5, 7),
    ],
    ids=range(10),
)
def test_labels(labels, first, second):
    """Sorted; and the first row's action is the only one known in its state."""
    mdp = HalpernMDPSolver().fit([[0.0], [1.0]], [1, 2], actions=labels)
    assert mdp.actions_.tolist() == [first, second]
    assert mdp.predict([[0.0], [1.0]]).tolist() == [second, first]
    assert_array_equal(np.isfinite(mdp.q_), [[False, True], [True, False]])
    score = mdp.score([[0.0], [1.0], [0.0]], [1, 2, 0], actions=[second, first, first])
    assert np.isfinite(score)


def test_float32():
    X = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    X = X[np.random.default_rng(1).integers(10, size=200)]
    y = X[:, 0].astype(float)
    mdp = HalpernMDPSolver().fit(X, y)
    assert mdp.states_.dtype == np.float32 and len(mdp.states_) <= 10
    assert mdp.bias_.dtype == np.float64
    assert_array_equal(mdp.predict_value(X), mdp.predict_value(X.astype(float)))
    assert_array_equal(mdp.bias_, HalpernMDPSolver().fit(X.astype(float), y).bias_)


def test_zero_has_no_sign():
    mdp = HalpernMDPSolver().fit([[0.0], [1.0], [-0.0], [1.0]], [1, 2, 3, 4])
    assert_array_equal(mdp.states_, [[0.0], [1.0]])
    assert_array_equal(mdp.predict_value([[-0.0]]), mdp.predict_value([[0.0]]))


BAD = [
    ({"actions": [0]}, "actions must have one entry for each of the 3 rows"),
    ({"actions": [[0], [1], [2]]}, "actions must"),
    ({"actions": [0, 1, np.nan]}, "actions.*NaN"),
    ({"actions": ["a", 1, "b"]}, "actions must be labels of one kind"),
    ({"actions": np.array(["a", None, "b"], object)}, "actions must be labels of one"),
    ({"actions": np.array([{}, {}, {}], object)}, "actions must be labels"),
    ({"actions": 1}, "actions must"),
    ({"terminal": [True]}, "terminal must have one entry for each of the 3 rows"),
    ({"terminal": ["a", "b", "c"]}, "terminal must hold booleans"),
    ({"terminal": [0, 1, 2]}, "terminal must hold booleans"),
    ({"terminal": [0, 1, np.nan]}, "terminal must hold booleans"),
    ({"next_X": [[0.0], [1.0]]}, r"next_X must have the shape of X, \(3, 1\)"),
    ({"next_X": [[0.0, 1]] * 3}, r"next_X must have the shape of X, \(3, 1\)"),
    ({"next_X": [[0.0], [np.inf], [2]]}, "next_X contains infinity"),
    ({"next_X": [["a"], ["b"], ["c"]]}, "could not convert"),
    ({"y": [1, 2]}, "inconsistent numbers of samples"),
    ({"y": [1, 2, np.nan]}, "NaN"),
    ({"y": ["a", "b", "c"]}, "could not convert"),
    ({"X": [[0.0], [np.nan], [1]]}, "NaN"),
    ({"X": [0.0, 1, 2]}, "2D array"),
    ({"X": np.zeros((0, 1)), "y": []}, "0 sample"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=range(len(BAD)))
def test_bad_logs(change, message):
    columns = {"X": [[0.0], [1.0], [2.0]], "y": [1.0, 2, 3]}
    mdp = HalpernMDPSolver().fit(**columns)
    with pytest.raises(ValueError, match=message):
        mdp.score(**(columns | change))
    with pytest.raises(ValueError, match=message):
        mdp.fit(**(columns | change))
    left = [k for k in vars(mdp) if k.endswith("_") and not k.endswith("_in_")]
    assert left == [] and not hasattr(mdp, "policy_")


def test_names_of_next_rows():
    X, other = pd.DataFrame({"a": [1.0, 2]}), pd.DataFrame({"b": [1.0, 2]})
    with pytest.raises(ValueError, match=r"\['b'\] where X has \['a'\]"):
        HalpernMDPSolver().fit(X, next_X=other)
    with pytest.raises(ValueError, match=r"\['b'\] where X has \['a'\]"):
        HalpernMDPSolver().fit(X).score(X, next_X=other)
