"""
==================================
Frozen lake: which goal, which way
==================================

On the frozen lake a skater goes from the start to the goal, and slips: a move goes
ahead in one case of three, and sideways otherwise. Falling into a hole ends the episode
with nothing. What the best way is depends on what is counted: goals per step over many
episodes, or the discounted reward of one.
"""

# %%
# Two criteria
# ------------
# :meth:`~skextra.mdp.HalpernMDPSolver.fit_env` reads the model of the environment. With
# average reward the end of an episode leads to the start of the next one. With a
# discount it is the end.

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
from sklearn.utils import Bunch

from skextra.mdp import HalpernMDPSolver, from_gymnasium

env = gym.make("FrozenLake-v1", map_name="8x8")
models = {"average reward": HalpernMDPSolver().fit_env(env)}
for discount in [0.9, 0.99, 0.999]:
    models[f"discount {discount}"] = HalpernMDPSolver(discount).fit_env(env)

# %%
# What the policies do
# --------------------
# ``from_gymnasium`` gives the matrices, in which an episode can be followed exactly: the
# expected number of goals and of steps, from two linear equations. Their ratio is the
# gain.


def of_an_episode(model, env):
    """Return the expected reward and the expected number of steps of an episode."""
    found = from_gymnasium(env, restart=False)
    n_states, n_actions = found.R.shape
    rows = np.arange(n_states) * n_actions + model.policy_
    P, r = found.P[rows].toarray(), found.R.ravel()[rows]
    totals = np.linalg.solve(
        np.eye(n_states) - P, np.column_stack([r, np.ones(n_states)])
    )
    total, steps = found.start @ totals
    return Bunch(reward=total, steps=steps)


outcomes = {name: of_an_episode(model, env) for name, model in models.items()}
for name, outcome in outcomes.items():
    print(
        f"{name:15} reaches the goal in {100 * outcome.reward:5.1f} % of the episodes, "
        f"{outcome.steps:5.1f} steps each: "
        f"{1000 * outcome.reward / outcome.steps:5.2f} goals in 1000 steps"
    )
low, high = 1000 * models["average reward"].gain_interval_
print(f"certified: at best {low:.4f} to {high:.4f} goals in 1000 steps")

# %%
# Colours are the values of the states, arrows the moves, which slip. Holes are black.


def draw(ax, name):
    """Draw policy and values on the map."""
    model = models[name]
    letters = env.unwrapped.desc.astype(str)
    values = np.full(letters.size, np.nan)
    values[model.states_[:, 0].astype(int)] = model.bias_
    image = ax.imshow(values.reshape(letters.shape), cmap="YlGnBu", alpha=0.75)
    ax.figure.colorbar(image, ax=ax, shrink=0.7)
    goals, steps = 100 * outcomes[name].reward, outcomes[name].steps
    ax.set_title(f"{name}:\n{goals:.1f} % reach the goal, {steps:.1f} steps")
    for (row, column), letter in np.ndenumerate(letters):
        if letter == "H":
            ax.add_patch(plt.Rectangle((column - 0.5, row - 0.5), 1, 1, color="k"))
        elif letter == "G":
            ax.text(column, row, "goal", ha="center", va="center", fontsize=9)
    for state, action in zip(
        model.states_[:, 0].astype(int), model.policy_, strict=True
    ):
        row, column = divmod(state, letters.shape[1])
        if letters[row, column] in "SF":
            right, down = [(-1, 0), (0, 1), (1, 0), (0, -1)][action]
            ax.annotate(
                "",
                (column + 0.33 * right, row + 0.33 * down),
                (column - 0.33 * right, row - 0.33 * down),
                arrowprops={"arrowstyle": "->", "color": "k", "lw": 1.3},
            )
    ax.set(xticks=[], yticks=[])


shown = ["average reward", "discount 0.9", "discount 0.999"]
fig, axes = plt.subplots(1, 3, figsize=(13, 4.5), layout="constrained")
for ax, name in zip(axes, shown, strict=True):
    draw(ax, name)
plt.show()

# %%
# The three ways differ in what they risk. With average reward a fall costs the time of
# a new start and no more, so the best policy takes risks: 81.3 % of its episodes
# reach the goal, in 76.6 steps on average, and nothing makes more than 10.61 goals in
# 1000 steps. With the discount 0.999 time is cheap and a fall is the end of all. The
# policy goes along the upper edge, never falls, and needs 117 steps. The discount 0.9
# is in a hurry: what is 50 steps away is worth next to nothing. Fewer of its episodes
# succeed than of any other, and it makes fewer goals a step than average reward as
# well. No discount of the three makes the most goals in a given time, which is what
# average reward asks for.
#
# The model of the environment does not know Gymnasium's limit on the steps of an
# episode. The bias of average reward, in the first picture, says about how many goals more
# are made on the whole from a place than from the start.

# %%
# A taxi, and a cliff
# -------------------
# Average reward suits the taxi, which has one ride after the other. It does not suit
# the cliff.

taxi_env = gym.make("Taxi-v4")
taxi = HalpernMDPSolver().fit_env(taxi_env)
ride = of_an_episode(taxi, taxi_env)
print(
    f"Taxi: {taxi.gain_:.4f} a step, {ride.reward:.2f} in {ride.steps:.2f} steps a ride; "
    f"{len(taxi.states_)} of {taxi_env.observation_space.n} states"
)
cliff_env = gym.make("CliffWalking-v1")
for discount in [None, 0.99]:
    cliff = HalpernMDPSolver(discount).fit_env(cliff_env)
    print(f"Cliff, discount {discount}: gain_ {cliff.gain_:.3f}, moves")
    moves = np.full(48, " ")
    moves[cliff.states_[:, 0].astype(int)] = np.array(list("^>v<"))[cliff.policy_]
    for row in moves.reshape(4, 12):
        print("   ", *row)

# %%
# The taxi earns 0.6067 a step, a ride 7.93 in 13.07 steps. 100 of the 500 states that
# the environment numbers cannot be reached from a first state. ``fit_env`` leaves them
# out.
#
# On the cliff each step costs 1, whether it leads to the goal or up and down. So all
# policies that stay away from the cliff have the average reward -1, and the solver is
# right to return the first of them, which never arrives. How soon an episode ends
# makes no difference to the average. Where the aim is to arrive, and not to
# do something again and again, use a discount: with 0.99 the way is along the cliff,
# which does not slip.
