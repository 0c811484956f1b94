"""Expected reductions beside torch as people write it, scikit-activeml and forests.

The quality of reductions is the largest difference of the first ten from the definition;
that of members, how sure their mean is; that of a batch, what its labels tell of the
members. The memory that we take for a pool of 100000 points and 1000 targets must stay
below 128 MiB. scikit-activeml is measured where it is installed.
"""

from functools import cache, partial
from importlib.util import find_spec

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from benchmarks._harness import Case, main
from skextra.uncertainty import (
    bald,
    batch_bald,
    epig,
    expected_uncertainty_reduction,
    member_predictions,
)

COST = np.where(np.eye(11, 10), 0.0, 1 + np.arange(10) / 10)
COST[10] = 0.3  # to abstain
# The uncertainty of beliefs, along the last axis.
UNCERTAINTY = {
    "log_loss": lambda p: -(p * np.log(p)).sum(axis=-1),
    "zero_one": lambda p: 1 - p.max(axis=-1),
    "brier": lambda p: 1 - (p**2).sum(axis=-1),
    "cost": lambda p: (p @ COST.T).min(axis=-1),
}


def cases(quick):
    """List what is measured; a quick run has smaller pools."""
    torch.set_num_threads(1)
    found = [beside_matmul(500 if quick else 2000)]
    found += [beside_broadcast(20 if quick else 200)]
    found += [beside_bald(2000)]
    losses = ["zero_one", "brier", "cost"]
    found += [other_loss(loss, 500 if quick else 2000) for loss in losses]
    if not quick:
        found += [growth()]
    found += [members(10_000 if quick else 100_000, classes) for classes in (2, 10)]
    if find_spec("skactiveml"):
        found += [batch(200, 4) if quick else batch(2000, 10)]
    return found


@cache
def beliefs(seed, points, members=100, classes=10):
    """Return probabilities, most of them far from equal."""
    rng = np.random.default_rng(seed)
    p = rng.gamma(0.5, size=(points, members, classes)) + 1e-6
    return p / p.sum(axis=-1, keepdims=True)


def tensors(*arrays):
    """Return the arrays as tensors, which share their memory."""
    return [torch.from_numpy(array) for array in arrays]


def matmul(pool, target):
    """Return EPIG: all joint distributions by one product, then their logarithms."""
    (n, k, c), (m, _, z) = pool.shape, target.shape
    left = pool.permute(0, 2, 1).reshape(n * c, k)
    right = target.permute(1, 0, 2).reshape(k, m * z)
    joint = (left @ (right / k)).reshape(n, c, m, z).permute(0, 2, 1, 3)
    return information(joint, pool, target)


def broadcast(pool, target, rows=10):
    """Return EPIG: each member's joint distributions, then their mean, in blocks."""
    blocks = []
    for block in pool.split(rows):
        joint = block[:, None, :, :, None] * target[None, :, :, None, :]
        blocks.append(information(joint.mean(dim=2), block, target))
    return torch.cat(blocks)


def entropy(p, dim):
    """Return the entropies of beliefs."""
    return -torch.special.xlogy(p, p).sum(dim=dim)


def information(joint, pool, target):
    """Return the mean over targets of the mutual information in the joints."""
    alone = entropy(pool.mean(dim=1), -1)[:, None] + entropy(target.mean(dim=1), -1)
    return (alone - entropy(joint, (-2, -1))).mean(dim=1)


def beside_matmul(points):
    """Compare EPIG with one matrix product and three passes over the joints."""
    pool, target = beliefs(0, points), beliefs(1, 100)
    return Case(
        f"EPIG of {points} points, 100 targets, 100 members, 10 classes",
        "torch: one matmul for the joint tables, and their entropies",
        partial(epig, pool, target),
        partial(matmul, *tensors(pool, target)),
        target=2,
        quality=partial(off_by, "log_loss", pool, target),
    )


def beside_broadcast(points):
    """Compare EPIG with the joints of each member on their own."""
    pool, target = beliefs(0, points), beliefs(1, 100)
    return Case(
        f"EPIG of {points} points, 100 targets, 100 members, 10 classes",
        "torch: joints of the members by broadcasting, 10 points at a time",
        partial(epig, pool, target),
        partial(broadcast, *tensors(pool, target)),
        target=50 if points >= 200 else None,
        quality=partial(off_by, "log_loss", pool, target),
        runs=3,
    )


def off_by(loss, pool, target, found):
    """Return how far the first reductions are from the definition."""
    uncertainty = UNCERTAINTY[loss]
    joint = np.einsum("nkc,mkz->nmcz", pool[:10], target) / pool.shape[1]
    label = joint.sum(axis=-1)
    after = uncertainty(joint / label[..., None])
    before = uncertainty(target.mean(axis=1))
    expected = (before - (label * after).sum(axis=-1)).mean(axis=1)
    return np.abs(np.asarray(found)[:10] - expected).max()


def torch_bald(p):
    """Return the entropy of the mean less the mean of the entropies."""
    return entropy(p.mean(dim=1), -1) - entropy(p, -1).mean(dim=1)


def beside_bald(points, times=3):
    """Compare BALD with its formula."""
    p = beliefs(0, points)
    (tensor,) = tensors(p)

    def repeated(function, p):
        for _ in range(times):
            found = function(p)
        return found

    return Case(
        f"{times} x BALD of {points} points, 100 members, 10 classes",
        "torch: entropy of the mean less mean of the entropies",
        partial(repeated, bald, p),
        partial(repeated, torch_bald, tensor),
        target=3,
        quality=lambda found: float(found.sum()),
        runs=7,
    )


def other_loss(loss, points):
    """Compare another loss with our own EPIG; the quality is that of each."""
    pool, target = beliefs(0, points), beliefs(1, 100)

    def reduction(loss):
        matrix = COST if loss == "cost" else None
        found = expected_uncertainty_reduction(pool, target, loss, cost_matrix=matrix)
        return loss, found

    return Case(
        f"reduction of {loss} by {points} points, 100 targets",
        "our own EPIG",
        partial(reduction, loss),
        partial(reduction, "log_loss"),
        target=1 / 1.3,
        quality=lambda result: off_by(result[0], pool, target, result[1]),
    )


def growth():
    """Compare a large pool with its tenths."""
    pool, target = beliefs(2, 100_000, 10), beliefs(3, 1000, 10)

    def tenths():
        return np.concatenate([epig(part, target) for part in np.split(pool, 10)])

    return Case(
        "EPIG of 100000 points, 1000 targets, 10 members, 10 classes",
        "itself, 10 times 10000 points",
        partial(epig, pool, target),
        tenths,
        target=1 / 1.1,
        quality=partial(off_by, "log_loss", pool, target),
        runs=1,
    )


def members(rows, classes):
    """Compare what each tree says with their mean, by the forest itself."""
    X, y = make_classification(
        rows + 5000, 20, n_informative=10, n_classes=classes, random_state=0
    )
    forest = RandomForestClassifier(100, random_state=0).fit(X[rows:], y[rows:])

    def sureness(p):
        p = p.mean(axis=1) if p.ndim == 3 else p
        return p.max(axis=1).mean()

    return Case(
        f"members of a forest of 100 trees on {rows} rows, {classes} classes",
        "predict_proba, their mean",
        partial(member_predictions, forest, X[:rows]),
        partial(forest.predict_proba, X[:rows]),
        target=1 / 1.2,
        quality=sureness,
        runs=3,
    )


def batch(points, size, samples=10_000):
    """Compare BatchBALD; both are exact up to 100000 joint labels, and draw then."""
    from skactiveml.pool import batch_bald as their_batch_bald

    p = beliefs(4, points, 20)

    def ours():
        return batch_bald(p, size, n_samples=samples, random_state=0)[0]

    def theirs():
        swapped = np.ascontiguousarray(p.swapaxes(0, 1))  # it writes into its argument
        utilities = their_batch_bald(
            swapped, size, n_MC_samples=samples, random_state=0
        )
        return np.nanargmax(utilities, axis=1)

    def told(chosen):
        draws = {"method": "sampled", "n_samples": 10**5, "random_state": 1}
        return batch_bald(p[chosen], size, **draws)[1][-1]

    return Case(
        f"BatchBALD: {size} of {points} points, 20 members, 10 classes",
        f"scikit-activeml, {samples} samples as ours",
        ours,
        theirs,
        quality=told,
        runs=1,
    )


if __name__ == "__main__":
    main("uncertainty")
