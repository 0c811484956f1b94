"""ConsistencyModel beside the sampler of its teacher, mixtures and kernel densities.

The quality is the sliced Wasserstein-2 distance to fresh points: less is better.
"""

from functools import cache, partial

import numpy as np
from sklearn.datasets import load_digits
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KernelDensity

from benchmarks._harness import Case, main
from skextra.datasets import make_plane_density
from skextra.generative import ConsistencyModel

ITERATIONS, SAMPLES = 4000, 5000


def cases(quick):
    """List what is measured; a quick run trains little."""
    kinds, n_iter = ("ring", "moons", "checkerboard"), ITERATIONS
    if quick:
        kinds, n_iter = ("ring",), 300
    model = fitted("ring", n_iter)
    found = [
        sampled(model, 20_000, 1, target=28),
        sampled(model, 20_000, 2, target=18),
        many(model),
        trained(200 if quick else 1000),
    ]
    for kind in kinds:
        found += quality(kind, n_iter)
    if not quick:
        found += digits()
    for peer in ("uniform", "vp", "geometric"):
        for n_steps in (1, 2):
            found.append(spaced(peer, n_steps, 300 if quick else 2500))
    return found


@cache
def fitted(kind, n_iter):
    """Return a model of 2000 points."""
    X = make_plane_density(kind, 2000, random_state=0)
    return ConsistencyModel(max_iter=n_iter, tau="auto", random_state=0).fit(X)


def sampled(model, n_samples, n_steps, target):
    """Draw samples by few evaluations, and by the 49 of Heun's method."""
    draw = partial(model.sample, n_samples, random_state=1)
    return Case(
        f"{n_samples} points of the plane in {n_steps} evaluations",
        "Heun's method with the same network, 49 evaluations",
        partial(draw, n_steps=n_steps),
        partial(draw, sampler="teacher"),
        target=target,
        quality=lambda X: distance_to("ring", X[:SAMPLES]),
        runs=3,
    )


def many(model):
    """Draw many samples, ours and a mixture's."""
    mixture = best_mixture(make_plane_density("ring", 2000, random_state=0))
    return Case(
        "100 000 points of the plane in 1 evaluation",
        "GaussianMixture.sample",
        partial(model.sample, 100_000, random_state=1),
        partial(mixture.sample, 100_000),
        runs=3,
    )


def trained(n_iter):
    """Train the consistency function alone, and its teacher alone."""
    X = make_plane_density("ring", 2000, random_state=0)

    def fit(**iterations):
        return ConsistencyModel(random_state=0, **iterations).fit(X)

    return Case(
        f"{n_iter} iterations of tuning",
        "as many of the teacher",
        partial(fit, max_iter=n_iter, teacher_iter=1),
        partial(fit, max_iter=1, teacher_iter=n_iter),
        target=1 / 1.4,
        runs=3,
    )


def quality(kind, n_iter):
    """Compare samples of each model with fresh points of the plane."""
    model, X = fitted(kind, n_iter), make_plane_density(kind, 2000, random_state=0)
    one, two, heun, short = (
        partial(model.sample, SAMPLES, random_state=1, **how)
        for how in (
            {"n_steps": 1},
            {"n_steps": 2},
            {"sampler": "teacher"},
            {"sampler": "teacher", "n_steps": 9},
        )
    )
    pairs = {
        ("1 evaluation", "Heun's method, 49 evaluations"): (one, heun),
        ("2 evaluations", "Heun's method, 49 evaluations"): (two, heun),
        ("2 evaluations ", "Heun's method, 17 evaluations"): (two, short),
        ("fit, 2 evaluations", "GaussianMixture, components by BIC"): (
            lambda: fitted.__wrapped__(kind, n_iter).sample(
                SAMPLES, n_steps=2, random_state=1
            ),
            lambda: best_mixture(X).sample(SAMPLES)[0],
        ),
        ("2 evaluations", "KernelDensity, bandwidth by cross-validation"): (
            two,
            lambda: best_kernel(X).sample(SAMPLES, random_state=1),
        ),
        ("2 evaluations", "5000 other fresh points: the least possible"): (
            two,
            lambda: make_plane_density(kind, SAMPLES, random_state=3),
        ),
    }
    return [
        Case(
            f"{kind}, {name.strip()}",
            peer,
            ours,
            theirs,
            quality=partial(distance_to, kind),
            runs=1,
        )
        for (name, peer), (ours, theirs) in pairs.items()
    ]


def digits():
    """Compare samples of written digits, drawn by class."""
    X, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(
        X, y, train_size=1200, stratify=y, random_state=0
    )

    def ours():
        model = ConsistencyModel(
            scaling="global", tau="auto", random_state=0, max_iter=ITERATIONS
        )
        return model.fit(train, y_train)

    def of_each_class(make):
        parts = []
        for label in np.unique(y):
            model = make().fit(train[y_train == label])
            drawn = model.sample(np.sum(y_test == label))
            parts.append(drawn[0] if isinstance(drawn, tuple) else drawn)
        return np.concatenate(parts)

    model = ours()
    samples = {
        "1 evaluation": partial(model.sample, y=y_test, n_steps=1, random_state=1),
        "2 evaluations": partial(model.sample, y=y_test, n_steps=2, random_state=1),
    }
    peers = {
        "Heun's method, 49 evaluations": partial(
            model.sample, y=y_test, sampler="teacher", random_state=1
        ),
        "a diagonal GaussianMixture of 3 for each class": lambda: of_each_class(
            lambda: GaussianMixture(
                3, covariance_type="diag", reg_covar=0.1, random_state=0
            )
        ),
        "a KernelDensity for each class": lambda: of_each_class(
            lambda: KernelDensity(bandwidth=1.9)
        ),
        "the training rows: the least possible": lambda: train[: len(test)],
    }

    def distance(drawn):
        rows = drawn[0] if isinstance(drawn, tuple) else drawn
        return sliced_wasserstein(rows / 16, test / 16)

    found = [
        Case(f"digits, {name}", peer, draw, theirs, quality=distance, runs=1)
        for name, draw in samples.items()
        for peer, theirs in peers.items()
    ]
    fit = Case(
        "fit 1200 digits, 4000 + 4000 iterations",
        "a diagonal GaussianMixture of 3 for each class",
        ours,
        peers["a diagonal GaussianMixture of 3 for each class"],
        runs=1,
    )
    return [fit, *found]


def spaced(peer, n_steps, n_iter):
    """Train on 16 steps that shrink toward the data, and on others."""

    def fit(schedule):
        model = ConsistencyModel(
            method="training",
            schedule=schedule,
            n_discretization=16,
            index_distribution="uniform",
            max_iter=n_iter,
            hidden_layer_sizes=(64, 64),
            tau="auto",
            random_state=0,
        )
        X = make_plane_density("ring", 2000, random_state=0)
        return model.fit(X).sample(SAMPLES, n_steps=n_steps, random_state=1)

    return Case(
        f"16 decaying steps, {n_iter} iterations, sampled in {n_steps}",
        f"16 steps, schedule {peer!r}",
        partial(fit, "decay"),
        partial(fit, peer),
        quality=partial(distance_to, "ring"),
        runs=1,
    )


def best_mixture(X):
    """Return the mixture of the smallest BIC, of up to 30 components."""
    models = [
        GaussianMixture(k, n_init=3, random_state=0).fit(X) for k in range(2, 31, 2)
    ]
    return min(models, key=lambda model: model.bic(X))


def best_kernel(X):
    """Return the kernel density of the best bandwidth."""
    widths = {"bandwidth": np.geomspace(0.01, 1, 20) * X.std()}
    return GridSearchCV(KernelDensity(), widths).fit(X).best_estimator_


def distance_to(kind, X):
    """Return the distance to fresh points, in standard deviations of them."""
    fresh = make_plane_density(kind, SAMPLES, random_state=2)
    return sliced_wasserstein(X / fresh.std(), fresh / fresh.std())


def sliced_wasserstein(A, B, n_directions=256):
    """Return the root mean square of the distances of 256 random projections."""
    directions = np.random.default_rng(0).normal(size=(A.shape[1], n_directions))
    directions /= np.linalg.norm(directions, axis=0)
    n = min(len(A), len(B))
    gaps = np.sort(A[:n] @ directions, axis=0) - np.sort(B[:n] @ directions, axis=0)
    return np.sqrt(np.mean(gaps**2))


if __name__ == "__main__":
    main("generative")
