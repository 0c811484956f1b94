"""Scores against the metrics of scikit-learn, and by hand."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    log_loss,
    mean_absolute_error,
    mean_pinball_loss,
    mean_squared_error,
)
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skextra.uncertainty import (
    BregmanLoss,
    LossUncertaintyRegressor,
    PinballLoss,
    WeightedSquaredError,
    make_loss_scorer,
)

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["a", "b", "c"])[Y]
XR, YR = load_diabetes(return_X_y=True)
COSTS = [[0, 4, 1], [1, 0, 1], [5, 1, 0], [0.3, 0.3, 0.3]]
MODEL = GaussianNB().fit(X[::3], NAMES[::3])
LINE = BayesianRidge().fit(XR[:200], YR[:200])


@pytest.mark.parametrize("weight", [None, np.arange(150.0)])
def test_classifiers(weight):
    p, options = MODEL.predict_proba(X), {"sample_weight": weight}
    found = make_loss_scorer("log_loss")(MODEL, X, NAMES, **options)
    assert_allclose(found, -log_loss(NAMES, p, **options))
    found = make_loss_scorer("brier")(MODEL, X, NAMES, **options)
    slow = brier_score_loss(NAMES, p, scale_by_half=False, **options)
    assert_allclose(found, -slow)
    found = make_loss_scorer("zero_one")(MODEL, X, NAMES, **options)
    assert_allclose(found, accuracy_score(NAMES, MODEL.predict(X), **options) - 1)
    costs = np.array(COSTS)
    losses = costs[(p @ costs.T).argmin(axis=1), Y]
    found = make_loss_scorer("cost", cost_matrix=COSTS)(MODEL, X, NAMES, **options)
    assert_allclose(found, -np.average(losses, weights=weight))


@pytest.mark.parametrize("weight", [None, np.arange(442.0)])
def test_regressors(weight):
    predicted, options = LINE.predict(XR), {"sample_weight": weight}
    for loss, metric in (
        ("squared_error", mean_squared_error),
        ("absolute_error", mean_absolute_error),
    ):
        found = make_loss_scorer(loss)(LINE, XR, YR, **options)
        assert_allclose(found, -metric(YR, predicted, **options))
    found = make_loss_scorer(PinballLoss(0.8))(LINE, XR, YR, **options)
    assert_allclose(found, -mean_pinball_loss(YR, predicted, alpha=0.8, **options))
    found = make_loss_scorer(BregmanLoss(np.square, grad=lambda z: 2 * z))
    assert_allclose(
        found(LINE, XR, YR, **options),
        -mean_squared_error(YR, predicted, **options),
    )
    found = make_loss_scorer(WeightedSquaredError("positive_part"))(LINE, XR, YR)
    assert_allclose(found, -np.mean(YR * (YR - predicted) ** 2))


def test_normal_distributions():
    mean, std = LINE.predict(XR, return_std=True)
    found = make_loss_scorer("log_loss")(LINE, XR, YR)
    assert_allclose(found, norm(mean, std).logpdf(YR).mean())
    found = make_loss_scorer("crps")(LINE, XR[:3], YR[:3])

    def slow(y, m, s):
        below, _ = quad(lambda z: norm(m, s).cdf(z) ** 2, m - 20 * s, y)
        above, _ = quad(lambda z: norm(m, s).sf(z) ** 2, y, m + 20 * s)
        return below + above

    rows = zip(YR[:3], mean[:3], std[:3], strict=True)
    assert_allclose(found, -np.mean([slow(*row) for row in rows]), rtol=1e-6)
    pipeline = make_pipeline(StandardScaler(), BayesianRidge()).fit(XR, YR)
    assert np.isfinite(make_loss_scorer("crps")(pipeline, XR, YR))


def test_class_that_was_ruled_out():
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, Y)
    wrong = np.roll(Y, 50)
    assert (tree.predict_proba(X)[np.arange(150), wrong] == 0).any()
    found = make_loss_scorer("log_loss")(tree, X, wrong)
    assert np.isfinite(found)
    assert_allclose(found, -log_loss(wrong, tree.predict_proba(X)))


def test_unseen_classes():
    model = GaussianNB().fit(X[:100], NAMES[:100])
    with pytest.raises(ValueError, match=r"has not seen: \['c'\]; it knows \['a', 'b'"):
        make_loss_scorer("brier")(model, X, NAMES)


def test_mismatches():
    for loss, model in (
        ("brier", LINE),
        ("squared_error", MODEL),
        (PinballLoss(0.5), MODEL),
    ):
        with pytest.raises(TypeError, match="does not fit"):
            make_loss_scorer(loss)(model, X, Y)
    with pytest.raises(TypeError, match="predict_proba, which LinearSVC does not have"):
        make_loss_scorer("brier")(LinearSVC().fit(X, Y), X, Y)
    for model in (LinearRegression(), make_pipeline(LinearRegression())):
        with pytest.raises(TypeError, match="return_std=True"):
            make_loss_scorer("crps")(model.fit(XR, YR), XR, YR)
    exact = GaussianProcessRegressor(alpha=1e-30).fit([[0.0]], [1.0])
    with pytest.raises(ValueError, match="standard deviations above 0"):
        make_loss_scorer("log_loss")(exact, [[0.0]], [1.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of"),
        ({"loss": None}, "loss must be one of"),
        ({"loss": lambda p: p}, "loss must be one of"),
        ({"loss": "cost"}, "cost_matrix must be given"),
        ({"loss": "brier", "cost_matrix": COSTS}, "and with no other"),
        ({"loss": PinballLoss(0.5), "cost_matrix": COSTS}, "and with no other"),
        ({"loss": "cost", "cost_matrix": [[np.nan, 1]]}, "cost_matrix contains NaN"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        make_loss_scorer(**options)


def test_cost_matrix_of_another_number_of_classes():
    with pytest.raises(ValueError, match="cost_matrix"):
        make_loss_scorer("cost", cost_matrix=np.eye(4))(MODEL, X, NAMES)


def test_repr_and_pickle():
    scorer = make_loss_scorer("cost", cost_matrix=COSTS)
    assert repr(scorer) == (
        "make_loss_scorer('cost', cost_matrix=[[0.0, 4.0, 1.0], [1.0, 0.0, 1.0], "
        "[5.0, 1.0, 0.0], [0.3, 0.3, 0.3]])"
    )
    assert (
        repr(make_loss_scorer(PinballLoss(0.2))) == "make_loss_scorer(PinballLoss(0.2))"
    )
    copy = pickle.loads(pickle.dumps(scorer))
    assert copy(MODEL, X, NAMES) == scorer(MODEL, X, NAMES)


def test_model_selection():
    scorer = make_loss_scorer("brier")
    scores = cross_val_score(GaussianNB(), X, NAMES, scoring=scorer, cv=3)
    slow = [
        -brier_score_loss(
            NAMES[test],
            GaussianNB().fit(X[train], NAMES[train]).predict_proba(X[test]),
            scale_by_half=False,
        )
        for train, test in StratifiedKFold(3).split(X, NAMES)
    ]
    assert_allclose(scores, slow)
    both = {"brier": scorer, "cost": make_loss_scorer("cost", cost_matrix=COSTS)}
    results = cross_validate(GaussianNB(), X, NAMES, scoring=both, cv=3)
    assert_array_equal(results["test_brier"], scores)
    forest = RandomForestClassifier(5, random_state=0)
    search = GridSearchCV(
        forest, {"max_depth": [1, 5]}, scoring=both, refit="cost", cv=3
    )
    assert search.fit(X, NAMES).best_params_ == {"max_depth": 5}
    assert clone(search).get_params()["scoring"].keys() == both.keys()


def test_weights_are_routed():
    weight = np.where(Y == 2, 1.0, 1e-9)
    with config_context(enable_metadata_routing=True):
        scorer = make_loss_scorer("brier").set_score_request(sample_weight=True)
        model = LogisticRegression(max_iter=500).set_fit_request(sample_weight=False)
        options = {"scoring": scorer, "cv": 3, "params": {"sample_weight": weight}}
        scores = cross_val_score(model, X, Y, **options)
        search = GridSearchCV(model, {"C": [1.0]}, scoring=scorer, cv=3)
        search.fit(X, Y, sample_weight=weight)
        named = make_loss_scorer("brier").set_score_request(sample_weight="w")
        again = {"scoring": named, "cv": 3, "params": {"w": weight}}
        assert_array_equal(cross_val_score(model, X, Y, **again), scores)
        with pytest.raises(ValueError, match="sample_weight"):
            options["scoring"] = make_loss_scorer("brier")
            cross_val_score(model, X, Y, **options)
    assert_allclose(search.cv_results_["mean_test_score"], scores.mean())
    plain = cross_val_score(model, X, Y, scoring=make_loss_scorer("brier"), cv=3)
    assert not np.allclose(plain, scores)


@pytest.mark.parametrize("loss", ["crps", "log_loss"])
def test_a_normal_has_the_mean_whatever_the_regressor_predicts(loss):
    X, y = load_diabetes(return_X_y=True)
    trees = ExtraTreesRegressor(5, min_samples_leaf=5, random_state=0)
    score = make_loss_scorer(loss)
    mean, quantile = (
        LossUncertaintyRegressor(trees, loss=own).fit(X, y)
        for own in ("squared_error", PinballLoss(0.9))
    )
    assert score(quantile, X, y) == score(mean, X, y)
    assert quantile.loss.tau == 0.9
