"""The regressor against its objective, written out, and against SciPy's ranks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.sparse import csr_array, csr_matrix
from scipy.stats import rankdata, spearmanr
from sklearn.datasets import load_diabetes, make_regression
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra.ranking import SpearmanRegressor
from skextra.ranking._rank_correlation import (
    line,
    rank_correlation,
    rank_objective,
    standardised,
    weighted_ranks,
)
from tests.ranking import reference as ref
from tests.ranking.common import noisy
from tests.recorder import Recorder

DIABETES = load_diabetes(return_X_y=True)
TIGHT = {"tol": 1e-10, "max_iter": 10_000}


def slow_objective(w, X, y, alpha, C, weight):
    """The objective of the documentation, from all pairs of rows."""
    share = weight / weight.sum()
    s = X @ w
    deviation = np.sqrt(np.cov(s, aweights=weight, ddof=0))
    u = (s[:, None] - s) / deviation / alpha
    soft = 0.5 + ref.cdf(u) @ weight
    hard = [weight @ ((y < v) + (y == v) / 2) for v in y]
    a, b = soft - share @ soft, hard - share @ hard
    correlation = share @ (a * b) / np.sqrt((share @ a**2) * (share @ b**2))
    return 1 - correlation + w @ w / (2 * C * weight.sum() * deviation**2)


def test_weighted_ranks():
    y = np.array([3.0, 1, 3, 2, 2, 2, 7])
    assert_array_equal(weighted_ranks(y, np.ones(7)), rankdata(y) - 0.5)
    weight = np.array([2, 1, 3, 1, 2, 0, 1])
    rows = np.repeat(np.arange(7), weight)
    expected = rankdata(y[rows]) - 0.5
    assert_array_equal(weighted_ranks(y, weight)[rows], expected)


@pytest.mark.parametrize("factor", [1, 1e-300, 1e300])
def test_standardised(factor):
    x, share = np.array([1.0, 2, 4]) * factor, np.array([0.5, 0.25, 0.25])
    z, deviation = standardised(x, share)
    assert_allclose([share @ z, share @ z**2], [0, 1], atol=1e-15)
    assert_allclose(deviation / factor, 1.2247448713915890)
    z, deviation = standardised(np.full(3, 0.1), share)
    assert deviation == 0 and not z.any()


def test_rank_correlation():
    rng = np.random.default_rng(0)
    x, y = rng.integers(9, size=(2, 50)).astype(float)
    share = np.full(50, 1 / 50)
    assert rank_correlation(x, y, share) == pytest.approx(spearmanr(x, y).statistic)
    assert rank_correlation(x, np.ones(50), share) == 0


@pytest.mark.parametrize("alpha", [0.02, 0.3, 5.0])
def test_gradient_and_value_of_the_objective(alpha):
    X, y = noisy(30)
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.2, 3, len(X))
    share = weight / weight.sum()
    ranks, _ = standardised(weighted_ranks(y, share), share)
    penalty = np.full(4, 1 / (0.3 * weight.sum()))

    def objective(w):
        return rank_objective(X, ranks, share, alpha, penalty, w)

    for w in rng.normal(size=(3, 4)):
        value, gradient = objective(w)
        slow = slow_objective(w, X, y, alpha, 0.3, weight) / (1 + penalty[0])
        assert value == pytest.approx(slow, rel=1e-12)
        steps = 1e-6 * np.eye(4)
        central = [(objective(w + h)[0] - objective(w - h)[0]) / 2e-6 for h in steps]
        assert_allclose(gradient, central, atol=1e-7)
        # The scale of w has no say.
        assert abs(gradient @ w) < 1e-12
        assert objective(7 * w)[0] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("params", [{}, {"alpha": 0.5, "C": 0.01}, {"alpha": 0.1}])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_minimises_the_slow_objective(params, weighted):
    X, y = noisy()
    weight = np.ones(len(X))
    if weighted:
        weight = np.random.default_rng(2).uniform(0.1, 2, len(X))
    model = SpearmanRegressor(**params, **TIGHT)
    model.fit(X, y, weight if weighted else None)
    args = (X, y, model.alpha, model.C, weight)
    found = slow_objective(model.coef_, *args)
    for start in (model.coef_, np.array([4.0, 3, 2, 1]), np.ones(4)):
        options = {"xatol": 1e-8, "fatol": 1e-13, "maxiter": 4000}
        slow = minimize(
            slow_objective, start, args, method="Nelder-Mead", options=options
        )
        assert found <= slow.fun + 1e-9
    cosine = slow.x @ model.coef_ / np.linalg.norm(slow.x) / np.linalg.norm(model.coef_)
    assert cosine > 1 - 1e-5


def test_line():
    rng = np.random.default_rng(3)
    s, share = rng.normal(size=40), rng.dirichlet(np.ones(40))
    slope, intercept = line(s, 3 * s - 2 + rng.normal(size=40) / 9, share)
    assert_allclose([slope, intercept], [3, -2], atol=0.1)
    # One outlier turns the line, not the order.
    y = s.copy()
    y[s.argmin()] = 1e4
    share = np.full(40, 1 / 40)
    assert np.polyfit(s, y, 1)[0] < 0
    slope, intercept = line(s, y, share)
    assert_allclose(slope, spearmanr(s, y).statistic * y.std() / s.std())
    assert_allclose(intercept, y.mean() - slope * s.mean())


def test_predictions_are_a_line_by_least_squares():
    X, y = DIABETES
    model = SpearmanRegressor(C=100.0).fit(X, y)
    slope, intercept = np.polyfit(model.predict(X), y, 1)
    assert_allclose([slope, intercept], [1, 0], atol=1e-10)
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize(
    "function", [np.cbrt, np.arctan, rankdata, lambda y: np.exp(y / 4), lambda y: y**3]
)
def test_increasing_transformations_change_no_order(function):
    X, y = noisy()
    plain = SpearmanRegressor(**TIGHT).fit(X, y)
    changed = SpearmanRegressor(**TIGHT).fit(X, function(y))
    direction = changed.coef_ / np.linalg.norm(changed.coef_)
    assert_allclose(direction, plain.coef_ / np.linalg.norm(plain.coef_), rtol=1e-12)
    assert_array_equal(
        rankdata(changed.predict(X).round(9)), rankdata(plain.predict(X).round(9))
    )


def test_shift_and_scale_of_columns():
    X, y = noisy()
    plain = SpearmanRegressor(**TIGHT).fit(X, y)
    shifted = SpearmanRegressor(**TIGHT).fit(X + 1e5, y)
    assert_allclose(shifted.coef_, plain.coef_, rtol=1e-5)
    scaled = SpearmanRegressor(**TIGHT, C=1e-6).fit(1e3 * X, y)
    assert_allclose(scaled.coef_ * 1e3, plain.coef_, rtol=1e-5)
    turned = SpearmanRegressor(**TIGHT).fit(-X, y)
    assert_allclose(turned.coef_, -plain.coef_, rtol=1e-5)
    units = SpearmanRegressor(**TIGHT).fit(X, 1e9 * y + 5)
    assert_allclose(units.coef_, 1e9 * plain.coef_, rtol=1e-5)


def test_integer_weights_are_repeated_rows_and_zeros_are_left_out():
    X, y = noisy()
    weight = np.random.default_rng(4).integers(0, 4, len(X))
    weighted = SpearmanRegressor(**TIGHT).fit(X, y, weight)
    rows = np.repeat(np.arange(len(X)), weight)
    repeated = SpearmanRegressor(**TIGHT).fit(X[rows], y[rows])
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5)
    assert weighted.rank_score(X, y, weight) == pytest.approx(
        repeated.rank_score(X[rows], y[rows])
    )
    assert weighted.score(X, y, weight) == pytest.approx(
        repeated.score(X[rows], y[rows])
    )
    without = SpearmanRegressor(**TIGHT).fit(X[weight > 0], y[weight > 0])
    outlier = SpearmanRegressor(**TIGHT)
    X, y = np.vstack([X, np.full((1, 4), 1e9)]), np.append(y, -1e9)
    outlier.fit(X, y, np.append(weight > 0, False))
    assert_array_equal(outlier.coef_, without.coef_)


def test_scale_of_the_weights_is_that_of_C():
    X, y = noisy()
    one = SpearmanRegressor(C=0.02, **TIGHT).fit(X, y, np.full(len(X), 5))
    other = SpearmanRegressor(C=0.1, **TIGHT).fit(X, y)
    assert_allclose(one.coef_, other.coef_, rtol=1e-6)


def test_heavy_tails_and_distortion():
    ours, theirs = [], []
    for seed in range(4):
        X, y = make_regression(300, 10, noise=20, random_state=seed)
        y = np.exp(y / y.std() * 2)
        X, y, X_new, y_new = X[:150], y[:150], X[150:], y[150:]
        model = SpearmanRegressor().fit(X, y)
        ours.append(model.rank_score(X_new, y_new))
        ridge = Ridge().fit(X, y)
        theirs.append(spearmanr(ridge.predict(X_new), y_new).statistic)
        expected = spearmanr(model.predict(X_new), y_new).statistic
        assert ours[-1] == pytest.approx(expected)
    assert np.mean(ours) > np.mean(theirs) + 0.03


def test_rank_score():
    X, y = noisy()
    model = SpearmanRegressor().fit(X, y)
    assert model.rank_score(X, y) == model.rank_score(X, list(y))
    assert model.rank_score(X, -y) == pytest.approx(-model.rank_score(X, y))
    assert model.rank_score(X, np.ones(len(X))) == 0
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.rank_score(X, y[1:])
    with pytest.raises(ValueError, match="contains NaN"):
        model.rank_score(X, np.full(len(X), np.nan))


@pytest.mark.parametrize("kind", [csr_matrix, csr_array])
def test_sparse(kind):
    X, y = noisy()
    X[np.abs(X) < 1] = 0
    dense = SpearmanRegressor(**TIGHT).fit(X, y)
    sparse = SpearmanRegressor(**TIGHT).fit(kind(X), y)
    assert_allclose(sparse.coef_, dense.coef_, rtol=1e-5)
    assert_allclose(sparse.predict(kind(X)), dense.predict(X), rtol=1e-5)


def test_float32():
    X, y = noisy()
    plain = SpearmanRegressor().fit(X, y)
    single = SpearmanRegressor().fit(X.astype(np.float32), y)
    assert_allclose(single.coef_, plain.coef_, rtol=1e-2)


def test_kinds_of_attributes():
    model = SpearmanRegressor().fit(*noisy())
    assert model.coef_.shape == (4,) and isinstance(model.intercept_, float)


def test_grid_search_in_a_pipeline():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SpearmanRegressor()),
        {"spearmanregressor__alpha": [0.05, 0.5], "spearmanregressor__C": [0.01, 1.0]},
        cv=3,
    ).fit(*DIABETES)
    assert search.best_score_ > 0.45


def test_huge_and_tiny_values():
    X, y = noisy()
    plain = SpearmanRegressor().fit(X, y)
    huge = SpearmanRegressor().fit(X, y * 1e140)
    assert_allclose(huge.coef_ / 1e140, plain.coef_, rtol=1e-6)
    large = SpearmanRegressor(C=1e-100).fit(X * 1e100, y)
    assert large.rank_score(X * 1e100, y) > plain.rank_score(X, y) - 0.05
    constant = SpearmanRegressor().fit(np.column_stack([X, np.full(len(X), 0.1)]), y)
    assert constant.coef_[4] == 0
    with pytest.raises(ValueError, match="y must hold no value beyond"):
        SpearmanRegressor().fit(X, y * 1e200)


def test_nothing_but_symmetry():
    """No direction is better than another; predictions are then the mean."""
    X, y = np.array([[-1.0], [0], [1]]), np.array([1.0, 0, 1])
    model = SpearmanRegressor().fit(X, y)
    assert_allclose(model.predict(X), y.mean())
    assert model.rank_score(X, y) == pytest.approx(0)


def test_bad_data():
    X, y = noisy()
    no_order = "There is no order to learn: {} is constant"
    with pytest.raises(ValueError, match=no_order.format("y")):
        SpearmanRegressor().fit(X, np.full(len(X), 0.1))
    with pytest.raises(ValueError, match=no_order.format("every column of X")):
        SpearmanRegressor().fit(np.full_like(X, 0.1), y)
    with pytest.raises(ValueError, match=no_order.format("y")):
        SpearmanRegressor().fit(X, y, np.arange(len(X)) == 3)
    with pytest.raises(ValueError, match="could not convert"):
        SpearmanRegressor().fit(X, ["a"] * len(X))


def test_iterations_go_down():
    X, y = noisy()
    recorder = Recorder()
    SpearmanRegressor().set_callbacks(recorder).fit(X, y)
    args = (X, y, 1.0, 1.0, np.ones(len(X)))
    values = [slow_objective(fitted.coef_, *args) for fitted in recorder.fitted]
    assert len(values) > 2 and (np.diff(values) < 1e-14).all()
