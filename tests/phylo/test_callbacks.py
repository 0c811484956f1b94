"""Progress of a fit through scikit-learn's callback protocol."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skextra.phylo import PhyloBranchLengths, simulate_characters
from tests.recorder import Recorder

TREE = "((a:.1,b:.2):.1,(c:.1,d:.3):.1,e:.2);"
X = simulate_characters(TREE, 300, as_frame=True, random_state=0)


def fit(recorder, **params):
    return PhyloBranchLengths(TREE, **params).set_callbacks(recorder).fit(X)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"solver": "coordinate"},
        {"solver": "em"},
        {"solver": "lbfgs"},
        {"n_rate_categories": 2},
        {"max_iter": 0},
        {"n_init": 3, "random_state": 0},
    ],
)
def test_every_iteration_is_a_task(params):
    recorder = Recorder()
    model = fit(recorder, **params)
    n = len(recorder.fitted)
    tasks = [(event, "iteration", i) for i in range(n) for event in ("begin", "end")]
    assert recorder.calls == [
        "setup", ("begin", "fit", 0), *tasks, ("end", "fit", 0), "teardown",
    ]  # fmt: skip
    last = recorder.fitted[-1]
    assert_array_equal(last.branch_lengths_, model.branch_lengths_)
    assert last.loglik_ == model.loglik_ and last.tree_ == model.tree_
    values = [fitted.loglik_ for fitted in recorder.fitted]
    # The least-squares start comes first, and nothing goes down.
    assert (np.diff(values) >= -1e-9 * abs(values[0])).all()
    if params.get("solver") in ("coordinate", "em"):
        assert n == model.n_iter_ + 1
    for fitted in recorder.fitted:
        assert fitted.score(X) * len(X) == pytest.approx(fitted.loglik_)
    plain = PhyloBranchLengths(TREE, **params).fit(X)
    assert_array_equal(plain.branch_lengths_, model.branch_lengths_)


@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_a_callback_can_stop_the_fit(stop_after):
    recorder = Recorder(stop_after)
    model = fit(recorder, solver="coordinate")
    assert len(recorder.fitted) == stop_after
    assert model.n_iter_ == stop_after - 1 and not model.converged_
    last = recorder.fitted[-1]
    assert_array_equal(last.branch_lengths_, model.branch_lengths_)
    assert np.isfinite(model.score(X))


def test_a_failed_refit_leaves_nothing():
    model = PhyloBranchLengths(TREE).fit(X)
    with pytest.raises(ValueError, match="not in the tree"):
        model.set_params(tree="(a,b,c,d,f);").fit(X)
    left = [k for k in vars(model) if k.endswith("_") and not k.endswith("_in_")]
    assert left == [] and not hasattr(model, "branch_lengths_")


def test_a_callback_that_fails_leaves_nothing():
    class Broken(Recorder):
        def on_fit_task_end(self, *args, **kwargs):
            raise RuntimeError("broken")

    model = PhyloBranchLengths(TREE).fit(X).set_callbacks(Broken())
    with pytest.raises(RuntimeError, match="broken"):
        model.fit(X)
    assert not hasattr(model, "tree_")
