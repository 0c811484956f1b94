"""RFEnsembleRegressor beside bagged random features and beside kernel methods."""

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import BaggingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, LeaveOneOut, train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._harness import Case, main
from skextra.ensemble import RFEnsembleRegressor

ALPHAS = np.logspace(-4, 3, 20)
GAMMA = 0.1  # of the Gaussian kernel that both sides approximate
SIZES = [  # rows, features of a member, members, target, runs
    (500, 1000, 20, 1.5, 5),
    (300, 2000, 30, 1.5, 5),
    (1000, 8000, 4, 1.5, 5),
    (2000, 4000, 4, 1.2, 5),
    (20000, 500, 8, 1.2, 5),
]
TUNING = [(200, 3), (500, 3), (1000, 3)]  # rows, runs
QUICK_SIZES = [(300, 500, 5, 1.5, 3), (2000, 200, 4, 1.2, 3)]


def cases(quick):
    """List what is measured."""
    return [
        *(bagging(*size) for size in (QUICK_SIZES if quick else SIZES)),
        arithmetic(*((1000, 2000) if quick else (2000, 8000))),
        *(tuning(n, runs) for n, runs in ([(200, 1)] if quick else TUNING)),
        intervals(n=50 if quick else 200, runs=1 if quick else 3),
        conjugate_gradients(*((1500, 6000, 2) if quick else (10_000, 40_000, 5))),
        prediction(n=10_000 if quick else 100_000, runs=3 if quick else 5),
        *peers(load_diabetes(return_X_y=True), "diabetes", quick),
        *peers(friedman(300 if quick else 1000), "friedman1", quick),
    ]


def friedman(n):
    """Rows and targets of a known function, on the scale that suits GAMMA."""
    X, y = make_friedman1(n, n_features=10, noise=1.0, random_state=0)
    return StandardScaler().fit_transform(X), y


def ours(n_members, n_components, **settings):
    """Random Fourier features, with the kernel of :func:`bagged`."""
    return RFEnsembleRegressor(
        n_members,
        n_components,
        feature_map="fourier",
        weight_scale=np.sqrt(2 * GAMMA),
        random_state=0,
        **settings,
    )


def bagged(n_members, n_components):
    """The same ensemble of scikit-learn's parts."""
    member = make_pipeline(
        RBFSampler(gamma=GAMMA, n_components=n_components), Ridge(alpha=1e-3)
    )
    return BaggingRegressor(member, n_members, bootstrap=False, random_state=0)


def bagging(n, n_components, n_members, target, runs):
    """Fit the same members on the same rows; the quality is R2 on further rows."""
    X, y = friedman(n + 500)
    return Case(
        f"fit {n_members} members of width {n_components} on {n} rows",
        "BaggingRegressor(RBFSampler + Ridge)",
        lambda: ours(n_members, n_components, alpha=1e-3).fit(X[:n], y[:n]),
        lambda: bagged(n_members, n_components).fit(X[:n], y[:n]),
        target,
        quality=lambda model: model.score(X[n:], y[n:]),
        runs=runs,
    )


def arithmetic(n, n_components):
    """One member beside a matrix product of as many operations as its linear algebra."""
    X, y = friedman(n)
    inner = n_components // 2 + n // 6  # 2 n^2 inner = n^2 D + n^3 / 3
    A = np.random.default_rng(0).standard_normal((n, inner))
    B = np.ascontiguousarray(A.T)
    return Case(
        f"fit 1 member of width {n_components} on {n} rows",
        "a matrix product with the operations of Gram matrix and Cholesky",
        lambda: ours(1, n_components, alpha=1e-3).fit(X, y),
        lambda: A @ B,
        target=0.75,
    )


def tuning(n, runs):
    """Choose alpha; the quality is R2 on further rows."""
    X, y = friedman(n + 500)
    path = ours(10, 512, alpha=ALPHAS)
    search = GridSearchCV(ours(10, 512), {"alpha": ALPHAS}, cv=5)
    return Case(
        f"choose 1 of 20 alphas, {n} rows, 10 members of width 512",
        "GridSearchCV(RFEnsembleRegressor, cv=5)",
        lambda: path.fit(X[:n], y[:n]),
        lambda: search.fit(X[:n], y[:n]),
        target=15,
        quality=lambda model: model.score(X[n:], y[n:]),
        runs=runs,
    )


def intervals(n, runs):
    """Jackknife+ intervals at 90 %; the quality is their coverage of further rows."""
    X, y = friedman(n + 1000)
    model = ours(10, 512, alpha=1.0)

    def refits():
        below, above = np.empty((2, n, 1000))
        for i, (kept, (left_out,)) in enumerate(LeaveOneOut().split(X[:n])):
            model.fit(X[kept], y[kept])
            mu = model.predict(X[n:])
            residual = abs(y[left_out] - model.predict(X[[left_out]]))
            below[i], above[i] = mu - residual, mu + residual
        k = int(np.floor(0.1 * (n + 1)))
        return np.stack([np.sort(below, 0)[k - 1], np.sort(above, 0)[n - k]], axis=1)

    return Case(
        f"jackknife+ intervals from {n} rows, 10 members of width 512",
        f"{n} refits of the same model",
        lambda: model.fit(X[:n], y[:n]).predict_interval(X[n:], coverage=0.9),
        refits,
        target=0.2 * n,
        quality=lambda found: np.mean((found[:, 0] <= y[n:]) & (y[n:] <= found[:, 1])),
        runs=runs,
    )


def conjugate_gradients(n, n_components, n_members):
    """The solver for many rows, in the setting of its defaults: ReLU features.

    The members share one Cholesky factor; the quality is R2 on further rows.
    """
    X, y = friedman(n + 500)
    cg, dual = (
        RFEnsembleRegressor(
            n_members, n_components, alpha=1e-2, solver=name, random_state=0
        )
        for name in ("cg", "dual")
    )
    return Case(
        f'solver="cg", {n} rows, {n_members} members of width {n_components}',
        'solver="dual"',
        lambda: cg.fit(X[:n], y[:n]),
        lambda: dual.fit(X[:n], y[:n]),
        target=5,
        quality=lambda model: model.score(X[n:], y[n:]),
        runs=1,
    )


def prediction(n, runs):
    """Predict with 10 members of width 512."""
    X, y = friedman(1000)
    rows = friedman(n)[0]
    fitted = ours(10, 512, alpha=1e-3).fit(X, y)
    peer = bagged(10, 512).fit(X, y)
    return Case(
        f"predict {n} rows with 10 members of width 512",
        "BaggingRegressor(RBFSampler + Ridge)",
        lambda: fitted.predict(rows),
        lambda: peer.predict(rows),
        target=1.3,
        runs=runs,
    )


def peers(data, name, quick):
    """Tuned fits of what people use today; the quality is R2 on the test rows."""
    X_train, X_test, y_train, y_test = train_test_split(*data, random_state=0)
    model = make_pipeline(
        StandardScaler(), RFEnsembleRegressor(alpha=ALPHAS, random_state=0)
    )
    n_features = X_train.shape[1]
    process = ConstantKernel() * RBF(np.sqrt(n_features)) + WhiteKernel()
    network = MLPRegressor(
        hidden_layer_sizes=(64, 64), learning_rate_init=0.01, early_stopping=True
    )
    widths = {
        "kernelridge__alpha": ALPHAS,
        "kernelridge__gamma": GAMMA * 10.0 ** np.arange(-2, 2),
    }
    today = {
        "Nystroem + RidgeCV": make_pipeline(
            StandardScaler(),
            Nystroem(n_components=min(300, len(X_train)), random_state=0),
            RidgeCV(ALPHAS),
        ),
        "GridSearchCV(KernelRidge)": GridSearchCV(
            make_pipeline(StandardScaler(), KernelRidge(kernel="rbf")), widths
        ),
        "GaussianProcessRegressor": make_pipeline(
            StandardScaler(),
            GaussianProcessRegressor(process, normalize_y=True, random_state=0),
        ),
        "BaggingRegressor(MLPRegressor)": TransformedTargetRegressor(
            make_pipeline(
                StandardScaler(),
                BaggingRegressor(network, 10, bootstrap=False, random_state=0),
            ),
            transformer=StandardScaler(),
        ),
    }
    return [
        Case(
            f"fit and tune on {name}, {len(X_train)} rows",
            against,
            lambda: model.fit(X_train, y_train),
            lambda peer=peer: peer.fit(X_train, y_train),
            quality=lambda fitted: fitted.score(X_test, y_test),
            runs=1 if quick else 3,
        )
        for against, peer in today.items()
    ]


if __name__ == "__main__":
    main("ensemble")
