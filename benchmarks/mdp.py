"""HalpernMDPSolver beside QuantEcon, pymdptoolbox and SciPy, on the same models.

The quality is the gain that was found, or the number of draws.
"""

from functools import partial

import numpy as np
from mdptoolbox.mdp import RelativeValueIteration
from quantecon.markov import DiscreteDP
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch

from benchmarks._harness import Case, main
from skextra.datasets import make_forest, make_garnet, make_riverswim
from skextra.mdp import HalpernMDPSolver
from skextra.mdp._inputs import make_model
from skextra.mdp._model import Sweeper
from skextra.mdp._sampling import ModelSampler

DISCOUNT = 0.99


def cases(quick):
    """List what is measured; a quick run leaves the large ones out."""
    sizes = [1000, 10_000] if quick else [1000, 10_000, 100_000, 1_000_000]
    found = []
    for n_states in sizes:
        garnet = make_garnet(n_states, random_state=0)
        found += [sweeps(garnet), average(garnet), discounted(garnet)]
        if n_states <= 100_000:
            found.append(scipy_sweeps(garnet))
    dense = make_garnet(500 if quick else 2000, random_state=0)
    found += [toolbox(dense, as_dense=False), toolbox(dense, as_dense=True)]
    if not quick:
        found += [grown(100_000, 10), grown(1_000_000, 2)]
        found.append(by_threads(make_garnet(1_000_000, random_state=0)))
    found += [drawn(1000), drawn(10)]
    models = {
        "RiverSwim": (make_riverswim(), 0.32),
        "forest, rewards / 4": (scaled(make_forest(), 4), 0.32),
        "a cycle of 4, rewards / 3": (scaled(cycle(), 3), 0.32),
    }
    for name, (model, tol) in models.items():
        found.append(constants(name, model, 2 * tol if quick else tol))
        found.append(certified(name, model, tol))
    return found


def gain(model, discount=None, **params):
    """Solve a model, and return the gain."""
    return HalpernMDPSolver(discount, **params).fit_mdp(model.P, model.R).gain_


def size_of(model):
    """Say how large a model is."""
    n_states, n_actions = model.R.shape
    return f"{n_states} states, {n_actions} actions, {model.P.nnz} non-zeros"


def sweeps(garnet):
    """Apply the Bellman operator ten times, with its certificates."""
    model = make_model(garnet.P, garnet.R)
    sweep, P, r = Sweeper(model), csr_matrix(garnet.P), garnet.R.ravel()
    h0 = np.random.default_rng(0).random(model.n_states)

    def ours():
        h = h0
        for _ in range(10):
            h, _ = sweep(h, (1.0, 0.0, 0.0))
        return h

    def peer():
        h = h0
        for _ in range(10):
            new = (r + P @ h).reshape(garnet.R.shape).max(axis=1)
            np.ptp(new - h)
            h = new
        return h

    return Case(
        f"10 Bellman sweeps, {size_of(garnet)}",
        "SciPy's CSR product and max",
        ours,
        peer,
        target=1.5 if model.n_states >= 10_000 else None,
        quality=np.mean,
    )


def quantecon(garnet):
    """Return the mean value by QuantEcon, times one minus the discount."""
    n_states, n_actions = garnet.R.shape
    states = np.repeat(np.arange(n_states), n_actions)
    actions = np.tile(np.arange(n_actions), n_states)
    problem = DiscreteDP(
        garnet.R.ravel(), csr_matrix(garnet.P), DISCOUNT, states, actions
    )
    solved = problem.solve("modified_policy_iteration", epsilon=1e-6)
    return (1 - DISCOUNT) * solved.v.mean()


def average(garnet):
    """Find the best average reward, beside a discounted solution by QuantEcon."""
    return Case(
        f"best average reward, {size_of(garnet)}",
        f"QuantEcon, modified policy iteration, discount {DISCOUNT} (it has no average)",
        partial(gain, garnet),
        partial(quantecon, garnet),
        target=1.0,
        quality=float,
    )


def discounted(garnet):
    """Find the best discounted values to 1e-6."""
    return Case(
        f"discount {DISCOUNT}, {size_of(garnet)}",
        "QuantEcon, modified policy iteration",
        partial(gain, garnet, DISCOUNT),
        partial(quantecon, garnet),
        quality=float,
    )


def scipy_sweeps(garnet):
    """Find the best average reward, beside relative value iteration with SciPy."""
    P, r = csr_matrix(garnet.P), garnet.R.ravel()

    def peer():
        h = np.zeros(len(garnet.R))
        while True:
            new = (r + P @ h).reshape(garnet.R.shape).max(axis=1)
            change = new - h
            if np.ptp(change) <= 1e-6:
                return (change.min() + change.max()) / 2
            h = new - new[0]

    return Case(
        f"best average reward, {size_of(garnet)}",
        "relative value iteration by SciPy's CSR product, undamped",
        partial(gain, garnet),
        peer,
        quality=float,
    )


def toolbox(garnet, as_dense):
    """Find the best average reward, beside pymdptoolbox on dense matrices."""
    n_states, n_actions = garnet.R.shape
    P = garnet.P.toarray().reshape(n_states, n_actions, n_states)
    P = exact_sums(np.ascontiguousarray(P.transpose(1, 0, 2)))
    given = "the same arrays" if as_dense else "CSR"

    def peer():
        solver = RelativeValueIteration(P, garnet.R, epsilon=1e-6)
        solver.run()
        return solver.average_reward

    return Case(
        f"best average reward, {size_of(garnet)}, given {given}",
        "pymdptoolbox, relative value iteration, dense matrices",
        lambda: HalpernMDPSolver().fit_mdp(P if as_dense else garnet.P, garnet.R).gain_,
        peer,
        target=20.0,
        quality=float,
    )


def exact_sums(P):
    """Return probabilities of which each row sums to 1 exactly, as the toolbox asks."""
    P = np.round(P * 2**40) / 2**40
    largest = P.argmax(axis=-1)[..., None]
    rest = 1 - P.sum(axis=-1, keepdims=True)
    values = np.take_along_axis(P, largest, axis=-1) + rest
    np.put_along_axis(P, largest, values, axis=-1)
    return P


def swept(garnet, n_sweeps):
    """Return a job of Bellman sweeps."""
    sweep = Sweeper(make_model(garnet.P, garnet.R))
    h = np.random.default_rng(0).random(len(garnet.R))
    return lambda: np.mean([sweep(h, (1.0, 0.0, 0.0))[0] for _ in range(n_sweeps)])


def grown(n_states, times):
    """Show how the time of a sweep grows with the size of the model.

    The more states, the fewer of their values are in the cache of the processor.
    """
    large = make_garnet(times * n_states, random_state=0)
    small = make_garnet(n_states, random_state=0)
    return Case(
        f"10 Bellman sweeps, {size_of(large)}",
        f"ours, {10 * times} sweeps of {n_states} states",
        swept(large, 10),
        swept(small, 10 * times),
        quality=float,
        runs=3,
    )


def by_threads(garnet):
    """Find the best average reward with two threads."""
    return Case(
        f"best average reward, {size_of(garnet)}, n_jobs=2",
        "ours, n_jobs=1",
        partial(gain, garnet, n_jobs=2),
        partial(gain, garnet),
        quality=float,
        threads=2,
    )


def drawn(size):
    """Draw next states of all pairs of a model, as counts."""
    model = make_model(*make_garnet(10_000, random_state=0).values())
    rng = np.random.default_rng(0)
    # The distribution functions of all pairs in one row: that of pair i from i to i + 1.
    rows = np.split(model.probabilities, model.indptr[1:-1])
    functions = [i + np.append(row[:-1].cumsum(), 1.0) for i, row in enumerate(rows)]
    functions = np.concatenate(functions)
    block = np.arange(1000)[:, None]

    def peer():
        total = 0
        for first in range(0, model.n_pairs, len(block)):
            drawn = first + block + rng.random((len(block), size))
            where = np.searchsorted(functions, drawn.ravel())
            total += np.bincount(where, minlength=functions.size).sum()
        return total

    sampler = ModelSampler(model, np.random.RandomState(0))
    return Case(
        f"{size} draws of each of {model.n_pairs} pairs, as counts",
        "NumPy, inverse distribution function",
        lambda: sampler.counts(size).sum(),
        peer,
        quality=float,
    )


def scaled(model, divisor):
    """Return the model with smaller rewards."""
    return Bunch(P=model.P, R=model.R / divisor)


def cycle():
    """Return a cycle of four states, two rewards to choose from in each."""
    model = make_riverswim(4)
    model.P = np.stack([np.roll(np.eye(4), 1, axis=1)] * 2)
    model.R = np.array([[0.5, 0.1], [1.0, 0.3], [2.0, 0.7], [3.0, 0.2]])
    return model


def sampled(model, tol, **params):
    """Solve a model that is only sampled, and return the number of draws."""
    cumulated = model.P.cumsum(axis=2)
    cumulated[:, :, -1] = 1.0

    def sampler(s, a, size, rng):
        return np.searchsorted(cumulated[a, s], rng.random(size), side="right")

    solver = HalpernMDPSolver(
        sample_tol=tol, delta=0.1, max_samples=1e12, random_state=0, **params
    )
    return solver.fit_generative(sampler, *model.R.shape, model.R).n_samples_


def constants(name, model, tol):
    """Count and time the draws of SAVIA+ with the constants of the paper and ours.

    How far fewer draws save time depends on what a draw costs; here it is little.
    """
    return Case(
        f"SAVIA+ improved, {name}, sample_tol={tol}: quality is draws",
        "SAVIA+ with the constants of the paper",
        partial(sampled, model, tol),
        partial(sampled, model, tol, variant="paper"),
        quality=float,
        runs=1,
    )


def certified(name, model, tol):
    """Count and time the draws of the plug-in and SAVIA+."""
    return Case(
        f"plug-in with a certificate, {name}, sample_tol={tol}: quality is draws",
        "SAVIA+ improved",
        partial(sampled, model, tol, solver="plug_in"),
        partial(sampled, model, tol),
        quality=float,
    )


if __name__ == "__main__":
    main("mdp")
