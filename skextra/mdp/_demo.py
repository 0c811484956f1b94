"""How much to order each morning, learnt from the log of a shop."""

import numpy as np

from skextra._demo import Demo
from skextra.datasets import make_inventory, simulate_log
from skextra.mdp._halpern_mdp_solver import HalpernMDPSolver


def _load():
    log = simulate_log(make_inventory(), 20_000, random_state=0)
    return log.X, log.y, {"actions": log.actions, "next_X": log.next_X}


def _discounted():
    return HalpernMDPSolver(discount=0.9)


def profit(estimator, X, y=None):
    """Return the profit of a day, in the long run, if the orders are followed."""
    shop = make_inventory()
    orders = estimator.predict(shop.states[:, None].astype(float))
    shop.mask &= orders[:, None] == shop.actions
    return HalpernMDPSolver().fit_mdp(**shop).gain_


def _plot(ax, result):
    stock = make_inventory().states.astype(float)
    policies = {"discount 0.9": result.baseline, "average reward": result.ours}
    for name, fitted in policies.items():
        orders = fitted.search.predict(stock[:, None])
        ax.step(stock, orders, where="mid", label=f"{name}: {fitted.score:.2f} a day")
    ax.set(
        xlabel="stock in the morning", ylabel="order", title="Profit of two policies"
    )
    ax.set(xticks=np.arange(0, 21, 5), yticks=np.arange(0, 21, 5))
    ax.legend()


DEMO = Demo(
    name="mdp",
    task="decision process",
    problem="How much should be ordered each morning, if only a log of days is there?",
    answer="HalpernMDPSolver learns the orders of greatest profit in the long run, and "
    "bounds what any policy can earn in the model of the log.",
    data="inventory log",
    load=_load,
    estimator=HalpernMDPSolver,
    baseline=_discounted,
    baseline_name="the same log solved with a discount of 0.9",
    scoring=profit,
    plot=_plot,
)
