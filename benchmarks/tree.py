"""BooleanTree beside scikit-learn, packages for Boolean formulas and plain Python.

Trees for several packages are nested dictionaries, as `BooleanTree.from_tree` takes
them; on binary features, "true" is where the feature is 0.
"""

import sys
from collections import defaultdict
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from itertools import combinations, product
from random import Random
from unittest.mock import patch

import numpy as np
import pandas as pd
from pyeda.inter import ITE, And, Or, exprvar
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sympy import SOPform, symbols

from benchmarks._harness import Case, main
from skextra.tree import (
    BooleanTree,
    exact_permutation_importance,
    trees_equivalent,
    unique_trees,
)

try:
    from dd import cudd as dd  # in C; not built everywhere
except ImportError:
    from dd import autoref as dd

CANCER = load_breast_cancer(return_X_y=True)
BINARY = {(j, 0.5): exprvar("x", j) for j in range(15)}  # tests, for pyeda
ENDS = Or(), And()  # false and true
CART = DecisionTreeClassifier(random_state=0).fit(*CANCER)


def cases(quick):
    """List what is measured; a quick run times once, after ours has been compiled."""
    small = [(20, 6)] if quick else [(50, 8), (200, 6)]
    found = [
        *predictions(20 if quick else 200),
        *equality(),
        distinct(500 if quick else 10_000, 10, f"{dd.__name__} nodes", diagrams),
        *(distinct(*sizes, "sympy.SOPform", forms, target=100) for sizes in small),
        *primes(),
        importance(100 if quick else 569),
        reasons(5 if quick else 50),
        *(acquisition(*s) for s in ([(3, 0)] if quick else [(4, 1), (4, 0)])),
    ]
    if not quick:
        return found
    for case in found:
        case.ours()
    return [replace(case, runs=1) for case in found]


def ten_times(job):
    """Do a short job so often that it can be timed; return its last result."""
    return lambda: [job() for _ in range(10)][-1]


def predictions(repeats):
    """Predict rows; the quality is the accuracy."""
    X, y = CANCER
    imputing = make_pipeline(SimpleImputer().fit(X), CART)
    ours, tree = BooleanTree.from_tree(CART), CART.tree_
    share = tree.n_node_samples[tree.children_left] / tree.n_node_samples
    parts = [tree.feature, tree.threshold, tree.children_left, tree.children_right]
    nodes = list(zip(*(part.tolist() for part in [*parts, share, tree.value[:, 0]])))
    whole, labels = np.tile(X, (repeats, 1)), np.tile(y, repeats)
    holed = whole.copy()
    holed[np.random.default_rng(0).random(whole.shape) < 0.5] = np.nan

    def python(rows):
        return np.array([both_ways(nodes, 0, x) for x in rows.astype("f4").tolist()])

    peers = [
        ("nothing", whole, "DecisionTreeClassifier", CART.predict_proba, 0.67),
        ("half", holed, "plain Python, row by row", python, 20),
        ("half", holed, "SimpleImputer + the tree", imputing.predict_proba, None),
    ]
    return [
        Case(
            f"predict_proba of {len(y) * repeats} rows, {share} missing",
            against,
            lambda rows=rows: ours.predict_proba(rows),
            lambda peer=peer, rows=rows: peer(rows),
            target,
            quality=lambda proba: np.mean(proba.argmax(axis=1) == labels),
        )
        for share, rows, against, peer, target in peers
    ]


def both_ways(nodes, i, x):
    """Mean of the leaves that a row can reach from a node."""
    j, threshold, left, right, share, proba = nodes[i]
    if j < 0:
        return proba
    if x[j] <= threshold:
        return both_ways(nodes, left, x)
    if x[j] > threshold:
        return both_ways(nodes, right, x)
    pairs = zip(both_ways(nodes, left, x), both_ways(nodes, right, x))
    return [share * a + (1 - share) * b for a, b in pairs]


def split(j, true, false, t=0.5):
    """A split; "true" is where x[j] <= t."""
    return {"feature": j, "threshold": t, "true": true, "false": false}


def as_dict(cart, i=0, used=range(64)):
    """A tree of scikit-learn for the labels 0 and 1; features by their place in used."""
    tree = cart.tree_
    if tree.children_left[i] < 0:
        return {"prediction": int(tree.value[i, 0].argmax())}
    children = tree.children_left[i], tree.children_right[i]
    sides = (as_dict(cart, k, used) for k in children)
    return split(used.index(tree.feature[i]), *sides, float(tree.threshold[i]))


def alternating(depth, i=0):
    """A complete tree of a distinct binary feature at each node: 7 at depth 2."""
    if depth < 0:
        return {"prediction": 1 - i % 2}
    return split(i, *(alternating(depth - 1, 2 * i + k) for k in (1, 2)))


def testing_first(tree, j):
    """The same function by a tree that tests the binary feature j at its root."""
    return split(j, part(tree, j, "true"), part(tree, j, "false"))


def part(tree, j, side):
    """What is left of a tree on one side of the binary feature j."""
    if "feature" not in tree:
        return tree
    if tree["feature"] == j:
        return part(tree[side], j, side)
    return split(tree["feature"], *(part(tree[k], j, side) for k in ("true", "false")))


def random_tree(random, features, n_leaves):
    """A tree of random labels with a feature once on a path."""
    if n_leaves == 1 or not features:
        return {"prediction": random.randrange(2)}
    j, n = random.choice(features), random.randrange(1, n_leaves)
    others = [k for k in features if k != j]
    return split(j, *(random_tree(random, others, k) for k in (n, n_leaves - n)))


def many_trees(n, n_features):
    """Trees of up to 16 leaves; 70 % are earlier ones, redrawn if that fits."""
    random, trees = Random(0), []
    for _ in range(n):
        if trees and random.random() < 0.7:
            tree = random.choice(trees)
            other = testing_first(tree, random.randrange(n_features))
            trees.append(other if str(other).count("prediction") < 17 else tree)
        else:
            trees.append(random_tree(random, range(n_features), random.randint(2, 16)))
    return trees


def forms(trees, n_features):
    """Formulas of sympy; equal functions have equal ones."""
    rows = [list(x) for x in product([0, 1], repeat=n_features)]
    names = symbols(f"x:{n_features}")
    return [SOPform(names, [x for x in rows if labels(t, x) == {1}]) for t in trees]


def diagrams(trees, n_features):
    """Numbers of the decision diagrams of dd; equal functions share one."""
    manager = dd.BDD()
    manager.declare(*(f"x{j}" for j in range(n_features)))
    tests = {(j, 0.5): manager.var(f"x{j}") for j in range(n_features)}
    ends = manager.false, manager.true
    return list(map(int, [formula(tree, tests, manager.ite, ends) for tree in trees]))


def formula(node, tests, ite, ends=ENDS):
    """The tree of a package's variables `tests`; `ends` stand for labels 0 and 1."""
    if "prediction" in node:
        return ends[node["prediction"]]
    test = tests[node["feature"], node["threshold"]]  # first: pyeda is slow otherwise
    sides = (formula(node[side], tests, ite, ends) for side in ("true", "false"))
    return ite(test, *sides)


def either(test, true, false):
    """If-then-else, as pyeda finds prime implicants fastest."""
    return test & true | ~test & false


def equality():
    """Compare two trees; the quality is the verdict."""
    X, y = load_digits(return_X_y=True)
    cart = DecisionTreeClassifier(max_leaf_nodes=100, random_state=0).fit(X > 7, y % 2)
    small, large = (
        (tree, testing_first(tree, tree["true"]["feature"]))
        for tree in (alternating(2), as_dict(cart))
    )

    def satisfiability():
        a, b = (formula(tree, BINARY, ITE) for tree in small)
        return a.equivalent(b)

    peers = {
        "sympy.SOPform": (small, lambda: len(set(forms(small, 7))) == 1),
        "pyeda equivalent": (small, satisfiability),
        dd.__name__: (large, lambda: len(set(diagrams(large, 64))) == 1),
    }
    return [
        Case(
            f"10 times trees_equivalent, {7 if pair is small else 64} binary features",
            against,
            ten_times(lambda pair=pair: trees_equivalent(*pair)),
            ten_times(peer),
            quality=bool,
        )
        for against, (pair, peer) in peers.items()
    ]


def distinct(n, n_features, package, keys, target=None):
    """Find the distinct functions among trees; the quality is their number."""
    trees = many_trees(n, n_features)
    return Case(
        f"unique_trees of {n} trees of up to 16 leaves, {n_features} binary features",
        f"keys of {package}",
        lambda: unique_trees(trees).counts,
        lambda: set(keys(trees, n_features)),
        target,
        quality=len,
    )


def primes():
    """Find the largest boxes of labels; the quality is their number."""
    complete, tree = alternating(3), as_dict(CART)

    def ours():
        model = BooleanTree.from_tree(CART)
        return [*model.implicants(0), *model.implicants(1)]

    return [
        Case(
            "10 times implicants of a tree of 15 binary features",
            "pyeda complete_sum",
            ten_times(lambda: BooleanTree.from_tree(complete).implicants(1)),
            ten_times(lambda: formula(complete, BINARY, either).complete_sum().xs),
            quality=len,
        ),
        Case(
            f"implicants of both classes, breast cancer, {CART.get_n_leaves()} leaves",
            "pyeda complete_sum of the tests, then the largest boxes",
            ours,
            lambda: [*largest_boxes(tree, 0, 30), *largest_boxes(tree, 1, 30)],
            quality=len,
        ),
    ]


def largest_boxes(tree, label, n_features):
    """Upper bounds of x and of -x, from prime implicants where each test is a variable.

    Tests of one feature that contradict each other allow any label.
    """
    tests = defaultdict(lambda: exprvar("b", len(tests)))
    paths = formula(tree, tests, either, ENDS if label else ENDS[::-1])
    pairs = (p for p in combinations(sorted(tests), 2) if p[0][0] == p[1][0])
    impossible = [And(tests[s], ~tests[t]) for s, t in pairs]
    bounds = {v: (0, j, t) for (j, t), v in tests.items()}
    bounds |= {~v: (1, j, -t) for (j, t), v in tests.items()}
    terms = Or(paths, *impossible).complete_sum().xs
    boxes = np.full((len(terms), 2, n_features), np.inf)
    for box, term in zip(boxes, terms):
        for literal in getattr(term, "xs", [term]):
            side, j, t = bounds[literal]
            box[side, j] = min(box[side, j], t)
    boxes = boxes[(boxes[:, 0] > -boxes[:, 1]).all(axis=1)]
    inside = (boxes[:, None] <= boxes).all(axis=(2, 3))
    return boxes[inside.sum(axis=1) == 1]


def importance(n):
    """Permutation importance; the quality is the largest one."""
    X, y = CANCER[0][:n], CANCER[1][:n]
    shuffles = {"n_repeats": 30, "random_state": 0}
    return Case(
        f"exact_permutation_importance, {n} rows of breast cancer",
        "sklearn.inspection.permutation_importance(n_repeats=30)",
        lambda: exact_permutation_importance(CART, X, y),
        lambda: permutation_importance(CART, X, y, **shuffles).importances_mean,
        target=10,
        quality=np.max,
    )


def tic_tac_toe():
    """The 958 boards at the end of a game, as "is o" and "is x", and whether x won."""
    lines = ["012", "345", "678", "036", "147", "258", "048", "246"]
    X, y = [], []
    for board in product("box", repeat=9):
        rows = ["".join(board[int(i)] for i in line) for line in lines]
        x, o, ahead = "xxx" in rows, "ooo" in rows, board.count("x") - board.count("o")
        if x != o and ahead == x or not (x or o or "b" in board) and ahead == 1:
            X.append([int(square == p) for square in board for p in "ox"])
            y.append(int(x))
    return np.array(X), np.array(y)


def reasons(n):
    """Find all sufficient reasons of rows; the quality is their number."""
    # Its solver reads the command line when it is imported, and prints at exit.
    with patch.object(sys, "argv", ["", "-nocompile"]), redirect_stdout(StringIO()):
        from pycsp3.compiler import Compilation
        from pyxai import Explaining, Learning

        Compilation.done = True
    X, y = tic_tac_toe()
    cart = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y)
    ours = BooleanTree.from_tree(cart)
    rows = X[np.random.default_rng(0).choice(len(X), n, replace=False)].astype(float)
    with redirect_stdout(StringIO()):
        _, model = Learning.ModelIO.import_models(cart, pd.DataFrame(X).assign(y=y))
        explainer = Explaining.decision_tree(model, X[0])

    def peer(x):
        explainer.set_instance(x)
        return explainer.sufficient_reason(n=Explaining.ALL)

    return Case(
        f"all reasons of {n} rows, tic-tac-toe, tree of {ours.n_leaves_} leaves",
        "pyxai sufficient_reason(n=ALL)",
        lambda: ours.explain(rows, max_explanations="all"),
        lambda: [peer(x) for x in rows],
        quality=lambda found: sum(map(len, found)),
    )


def acquisition(depth, seed):
    """Plan what to buy at the least expected cost, which is the quality."""
    X, y = tic_tac_toe()
    cart = DecisionTreeClassifier(max_depth=depth, random_state=seed).fit(X, y)
    costs = np.random.default_rng(seed).integers(1, 10, 18)
    ours = BooleanTree.from_tree(cart, X=X, y=y)
    used = sorted(set(cart.tree_.feature))[1:]  # after the mark of leaves
    tree, rows, prices = as_dict(cart, 0, used), X[:, used].tolist(), costs[used]
    return Case(
        f"acquisition policy, tic-tac-toe, {len(used)} features",
        "plain Python, recursion that remembers states",
        lambda: ours.acquisition_policy(costs).expected_cost_,
        lambda: least_cost(tree, rows, prices.tolist(), (None,) * len(used), {}),
        quality=float,
    )


def least_cost(tree, rows, prices, known, memo):
    """The least expected cost of knowing the label, by trying all orders."""
    if known not in memo:
        options, open_ = [], len(labels(tree, known)) > 1
        for j in [j for j, x in enumerate(known) if open_ and x is None]:
            cost = 0
            for value in (0, 1):
                if side := [x for x in rows if x[j] == value]:
                    after = (*known[:j], value, *known[j + 1 :])
                    cost += len(side) * least_cost(tree, side, prices, after, memo)
            options.append(prices[j] + cost / len(rows))
        memo[known] = min(options, default=0)
    return memo[known]


def labels(node, known):
    """The labels that are left."""
    if "feature" not in node:
        return {node["prediction"]}
    value = known[node["feature"]]
    if value is None:
        return labels(node["true"], known) | labels(node["false"], known)
    return labels(node["false" if value else "true"], known)


if __name__ == "__main__":
    main("tree")
