"""Markov decision processes that are known from textbooks, and logs of them."""

from numbers import Integral, Real

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import binom, poisson
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._optional_dependencies import check_pandas_support
from sklearn.utils._param_validation import Interval, validate_params

POSITIVE = Interval(Integral, 1, None, closed="left")
AMOUNT = Interval(Real, 0, None, closed="left")
PROBABILITY = Interval(Real, 0, 1, closed="both")


@validate_params(
    {"n_states": [Interval(Integral, 2, None, closed="left")]},
    prefer_skip_nested_validation=True,
)
def make_riverswim(n_states=6):
    """Make RiverSwim: a small reward at hand, a large one up the stream.

    Swimming moves up with probability 0.35 (0.6 from the first state), down with 0.05
    (0.4 from the last state), and otherwise stays. Resting drifts down. Resting in the
    first state earns 0.005, swimming in the last 1 [1]_.

    Parameters
    ----------
    n_states : int, default=6
        Number of states along the river, 2 at least.

    Returns
    -------
    model : Bunch
        With the arguments of :meth:`skextra.mdp.HalpernMDPSolver.fit_mdp`

        P : ndarray of shape (n_actions, n_states, n_states)
            Probabilities of the next state.
        R : ndarray of shape (n_states, n_actions)
            Rewards.
        states : ndarray of shape (n_states,)
            Places, from 0.
        actions : ndarray of shape (n_actions,)
            "rest" and "swim".

    References
    ----------
    .. [1] A. L. Strehl and M. L. Littman, "An analysis of model-based interval
       estimation for Markov decision processes", Journal of Computer and System
       Sciences 74(8), 2008.

    Examples
    --------
    >>> from skextra.datasets import make_riverswim
    >>> from skextra.mdp import HalpernMDPSolver
    >>> model = HalpernMDPSolver(tol=1e-9).fit_mdp(**make_riverswim())
    >>> round(model.gain_, 7)
    0.4286224
    """
    places = np.arange(n_states)
    down, up = np.maximum(places - 1, 0), np.minimum(places + 1, n_states - 1)
    rest, swim = np.zeros((2, n_states, n_states))
    rest[places, down] = 1
    swim[places[1:-1], down[1:-1]] = 0.05
    swim[places[1:-1], places[1:-1]] = 0.6
    swim[places[1:-1], up[1:-1]] = 0.35
    swim[0, :2] = 0.4, 0.6
    swim[-1, -2:] = 0.4, 0.6
    R = np.zeros((n_states, 2))
    R[0, 0], R[-1, 1] = 0.005, 1
    return Bunch(
        P=np.stack([rest, swim]), R=R, states=places, actions=np.array(["rest", "swim"])
    )


@validate_params(
    {
        "n_states": [Interval(Integral, 2, None, closed="left")],
        "old_reward": [Real],
        "cut_reward": [Real],
        "fire": [PROBABILITY],
    },
    prefer_skip_nested_validation=True,
)
def make_forest(n_states=3, *, old_reward=4.0, cut_reward=2.0, fire=0.1):
    """Make the management of a forest: wait for it to grow old, or cut it.

    A forest that is left alone grows a year older, up to the last age, or burns down to
    the first. Waiting in the oldest forest earns `old_reward`. Cutting earns
    `cut_reward` from the oldest, 1 from those in between and nothing from the
    youngest [1]_.

    Parameters
    ----------
    n_states : int, default=3
        Number of ages, 2 at least.

    old_reward : float, default=4.0
        Reward of waiting in the oldest forest.

    cut_reward : float, default=2.0
        Reward of cutting the oldest forest.

    fire : float, default=0.1
        Probability of a fire in a year.

    Returns
    -------
    model : Bunch
        With the arguments of :meth:`skextra.mdp.HalpernMDPSolver.fit_mdp`

        P : ndarray of shape (n_actions, n_states, n_states)
            Probabilities of the next state.
        R : ndarray of shape (n_states, n_actions)
            Rewards.
        states : ndarray of shape (n_states,)
            Ages, from 0.
        actions : ndarray of shape (n_actions,)
            "wait" and "cut".

    References
    ----------
    .. [1] I. Chades, G. Chapron, M.-J. Cros, F. Garcia and R. Sabbadin, "MDPtoolbox: a
       multi-platform toolbox to solve stochastic dynamic programming problems",
       Ecography 37(9), 2014.

    Examples
    --------
    >>> from skextra.datasets import make_forest
    >>> make_forest(3).P[0]
    array([[0.1, 0.9, 0. ],
           [0.1, 0. , 0.9],
           [0.1, 0. , 0.9]])
    """
    ages = np.arange(n_states)
    wait, cut = np.zeros((2, n_states, n_states))
    wait[ages, np.minimum(ages + 1, n_states - 1)] = 1 - fire
    wait[:, 0] += fire
    cut[:, 0] = 1
    R = np.zeros((n_states, 2))
    R[1:, 1] = 1
    R[-1] = old_reward, cut_reward
    return Bunch(
        P=np.stack([wait, cut]), R=R, states=ages, actions=np.array(["wait", "cut"])
    )


@validate_params(
    {
        "n_servers": [POSITIVE],
        "payments": ["array-like"],
        "finish": [PROBABILITY],
    },
    prefer_skip_nested_validation=True,
)
def make_access_control(n_servers=10, *, payments=(1, 2, 4, 8), finish=0.06):
    """Make access control to a queue: whom to serve while servers are scarce.

    In each step the customer at the head of a queue is accepted, pays and takes a free
    server, or is rejected. Then each busy server becomes free with probability
    `finish`, one just taken too, and the next customer offers any of the payments with
    equal probability [1]_. (In the book a customer may not finish in the step of
    arrival.)

    Parameters
    ----------
    n_servers : int, default=10
        Number of servers.

    payments : array-like of shape (n_payments,), default=(1, 2, 4, 8)
        What customers pay, all different.

    finish : float, default=0.06
        Probability that a busy server becomes free in a step.

    Returns
    -------
    model : Bunch
        With the arguments of :meth:`skextra.mdp.HalpernMDPSolver.fit_mdp`

        P : ndarray of shape (n_actions, n_states, n_states)
            Probabilities of the next state.
        R : ndarray of shape (n_states, n_actions)
            Rewards.
        mask : ndarray of shape (n_states, n_actions)
            Nobody can be accepted without a free server.
        states : ndarray of shape (n_states, 2)
            Number of free servers, and what the customer offers.
        actions : ndarray of shape (n_actions,)
            "reject" and "accept".

    Raises
    ------
    ValueError
        If a parameter is not as documented.

    References
    ----------
    .. [1] R. S. Sutton and A. G. Barto, "Reinforcement Learning: An Introduction", 2nd
       edition, MIT Press, 2018, example 10.2.

    Examples
    --------
    >>> from skextra.datasets import make_access_control
    >>> from skextra.mdp import HalpernMDPSolver
    >>> model = HalpernMDPSolver(tol=1e-9).fit_mdp(**make_access_control())
    >>> round(model.gain_, 7)
    2.747642
    >>> model.predict([[1, 1], [1, 8]])  # one server is free
    array(['reject', 'accept'], dtype='<U6')
    """
    payments = np.asarray(payments, dtype=float)
    if payments.ndim != 1 or not payments.size or not np.isfinite(payments).all():
        raise ValueError(
            f"payments must be a list of finite numbers; got {payments!r}."
        )
    if np.unique(payments).size < payments.size:
        raise ValueError(f"payments must be different; got {payments!r}.")
    free = np.arange(n_servers + 1)
    # Probabilities of the number of free servers after a step that left so many free.
    later = binom.pmf(free - free[:, None], n_servers - free[:, None], finish)
    offers = np.full((1, payments.size), 1 / payments.size)
    taken = later[np.maximum(free - 1, 0)]
    P = [
        np.repeat(np.kron(moves, offers), payments.size, axis=0)
        for moves in (later, taken)
    ]
    states = np.column_stack(
        [np.repeat(free, payments.size), np.tile(payments, free.size)]
    )
    R = np.column_stack([np.zeros(len(states)), states[:, 1]])
    mask = np.column_stack([np.ones(len(states), dtype=bool), states[:, 0] > 0])
    return Bunch(
        P=np.stack(P),
        R=R,
        mask=mask,
        states=states,
        actions=np.array(["reject", "accept"]),
    )


@validate_params(
    {
        "capacity": [POSITIVE],
        "mean_demand": [Interval(Real, 0, None, closed="neither")],
        "price": [AMOUNT],
        "unit_cost": [AMOUNT],
        "order_cost": [AMOUNT],
        "holding_cost": [AMOUNT],
    },
    prefer_skip_nested_validation=True,
)
def make_inventory(
    capacity=20,
    *,
    mean_demand=4.0,
    price=5.0,
    unit_cost=2.0,
    order_cost=8.0,
    holding_cost=0.2,
):
    """Make inventory control: how much to order each day for tomorrow's customers.

    Each morning some units are ordered, and delivered at once; the demand of the day is
    Poisson, and what cannot be met is lost. A day earns the sales less what the order
    and storing the rest of the day's stock cost.

    Parameters
    ----------
    capacity : int, default=20
        Most units that can be stored.

    mean_demand : float, default=4.0
        Mean demand of a day.

    price : float, default=5.0
        What a unit sells for.

    unit_cost : float, default=2.0
        What a unit costs.

    order_cost : float, default=8.0
        What an order costs, whatever its size.

    holding_cost : float, default=0.2
        What it costs to store a unit overnight.

    Returns
    -------
    model : Bunch
        With the arguments of :meth:`skextra.mdp.HalpernMDPSolver.fit_mdp`

        P : ndarray of shape (n_actions, n_states, n_states)
            Probabilities of the next state.
        R : ndarray of shape (n_states, n_actions)
            Expected rewards.
        mask : ndarray of shape (n_states, n_actions)
            Orders that can be stored.
        states : ndarray of shape (n_states,)
            Stock in the morning, 0 to `capacity`.
        actions : ndarray of shape (n_actions,)
            Size of the order, 0 to `capacity`.

    Examples
    --------
    >>> from skextra.datasets import make_inventory
    >>> from skextra.mdp import HalpernMDPSolver
    >>> model = HalpernMDPSolver().fit_mdp(**make_inventory())
    >>> model.policy_[:6]  # a large order once little is left
    array([20, 19, 18, 17,  0,  0])
    """
    units = np.arange(capacity + 1)
    # Left of so many units after a day: all sold with the probability of the tail.
    left = poisson.pmf(units[:, None] - units, mean_demand)
    left[:, 0] = poisson.sf(units - 1, mean_demand)
    sold = units - left @ units
    of_day = price * sold - holding_cost * (units - sold)
    # Stock of the day, by stock in the morning and order.
    filled = units[:, None] + units
    mask = filled <= capacity
    filled = np.minimum(filled, capacity)
    R = of_day[filled] - unit_cost * units - order_cost * (units > 0)
    return Bunch(P=left[filled.T], R=R, mask=mask, states=units, actions=units)


@validate_params(
    {
        "n_states": [POSITIVE],
        "n_actions": [POSITIVE],
        "n_successors": [POSITIVE],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_garnet(n_states=100, n_actions=4, n_successors=5, *, random_state=None):
    """Make a random sparse decision process, as large as memory allows.

    Each pair of a state and an action has `n_successors` next states, drawn with equal
    probability, and probabilities that are uniform over all there can be; the rewards
    are uniform from 0 to 1 [1]_.

    Parameters
    ----------
    n_states : int, default=100
        Number of states.

    n_actions : int, default=4
        Number of actions.

    n_successors : int, default=5
        Number of next states of a pair. Fewer where one is drawn twice.

    random_state : int, RandomState instance or None, default=None
        Draws the model.

    Returns
    -------
    model : Bunch
        With the arguments of :meth:`skextra.mdp.HalpernMDPSolver.fit_mdp`

        P : csr_array of shape (n_states * n_actions, n_states)
            Row ``state * n_actions + action`` holds the probabilities of the next
            state.
        R : ndarray of shape (n_states, n_actions)
            Rewards.

    References
    ----------
    .. [1] S. Bhatnagar, R. S. Sutton, M. Ghavamzadeh and M. Lee, "Natural actor-critic
       algorithms", Automatica 45(11), 2009.

    Examples
    --------
    >>> from skextra.datasets import make_garnet
    >>> make_garnet(1000, random_state=0).P.shape
    (4000, 1000)
    """
    rng = check_random_state(random_state)
    n_pairs = n_states * n_actions
    successors = rng.randint(n_states, size=(n_pairs, n_successors), dtype=np.int32)
    successors.sort(axis=1)
    shares = rng.standard_exponential(size=(n_pairs, n_successors))
    shares /= shares.sum(axis=1, keepdims=True)
    indptr = np.arange(0, shares.size + 1, n_successors)
    P = csr_array(
        (shares.ravel(), successors.ravel(), indptr), shape=(n_pairs, n_states)
    )
    P.sum_duplicates()
    return Bunch(P=P, R=rng.uniform(size=(n_states, n_actions)))


@validate_params(
    {
        "model": [dict],
        "n_steps": [POSITIVE],
        "policy": ["array-like", None],
        "as_frame": ["boolean"],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def simulate_log(model, n_steps, *, policy=None, as_frame=False, random_state=None):
    """Log the steps of a decision process, from a random first state.

    Parameters
    ----------
    model : Bunch
        A decision process of this module with one matrix for each action.

    n_steps : int
        Number of steps.

    policy : array-like of shape (n_states,), default=None
        Label of the action in each state. None draws any feasible action with equal
        probability.

    as_frame : bool, default=False
        Whether the results are pandas objects.

    random_state : int, RandomState instance or None, default=None
        Draws the steps.

    Returns
    -------
    log : Bunch
        With

        X : ndarray or DataFrame of shape (n_steps, n_features)
            Features of the state before each step.
        y : ndarray or Series of shape (n_steps,)
            Expected reward of the pair of the state and the action.
        actions : ndarray or Series of shape (n_steps,)
            Labels of the actions.
        next_X : ndarray or DataFrame of shape (n_steps, n_features)
            Features of the state after each step.

    Raises
    ------
    ValueError
        If a parameter is not as documented.

    Examples
    --------
    >>> from skextra.datasets import make_riverswim, simulate_log
    >>> log = simulate_log(make_riverswim(), 1000, random_state=0)
    >>> log.X.shape, log.next_X.shape
    ((1000, 1), (1000, 1))
    """
    rng = check_random_state(random_state)
    P, R = model.get("P"), np.asarray(model.get("R"))
    if np.ndim(P) != 3:
        raise ValueError(
            "model.P must be an array of shape (n_actions, n_states, n_states); got "
            f"{type(P).__name__} of shape {np.shape(P)}."
        )
    P = np.asarray(P)
    n_actions, n_states, _ = P.shape
    if R.shape != (n_states, n_actions):
        raise ValueError(
            f"model.R must have shape (n_states, n_actions) = ({n_states}, {n_actions}); "
            f"got {R.shape}."
        )
    labels = np.asarray(model.get("actions", np.arange(n_actions)))
    features = np.asarray(model.get("states", np.arange(n_states)))
    features = features.reshape(n_states, -1)
    allowed = np.asarray(model.get("mask", True)) & (R > -np.inf)
    if policy is not None:
        chosen = np.asarray(policy)[:, None] == labels
        if chosen.shape != allowed.shape or not (chosen & allowed).any(axis=1).all():
            raise ValueError(
                f"policy must name a feasible action for each of the {n_states} states; "
                f"got {policy!r}."
            )
        allowed = chosen
    if not allowed.any(axis=1).all():
        raise ValueError("model has a state without a feasible action.")
    choices = [np.flatnonzero(row) for row in allowed]
    cumulated = P.cumsum(axis=2)
    cumulated[:, :, -1] = 1.0
    states, actions = np.empty(n_steps + 1, dtype=int), np.empty(n_steps, dtype=int)
    states[0] = rng.randint(n_states)
    of_action, of_state = rng.uniform(size=(2, n_steps))
    for t in range(n_steps):
        options = choices[states[t]]
        actions[t] = options[int(of_action[t] * len(options))]
        row = cumulated[actions[t], states[t]]
        states[t + 1] = np.searchsorted(row, of_state[t], side="right")
    X, y = features[states].astype(float), R[states[:-1], actions]
    log = Bunch(X=X[:-1], y=y, actions=labels[actions], next_X=X[1:])
    if as_frame:
        pd = check_pandas_support("simulate_log with as_frame=True")
        names = [f"state_{j}" for j in range(X.shape[1])]
        log.X = pd.DataFrame(log.X, columns=names)
        log.next_X = pd.DataFrame(log.next_X, columns=names)
        log.y = pd.Series(log.y, name="reward")
        log.actions = pd.Series(log.actions, name="action")
    return log
