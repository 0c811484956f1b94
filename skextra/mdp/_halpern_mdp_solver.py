"""Markov decision processes by anchored and damped value iteration."""

from itertools import islice
from numbers import Integral, Real
from warnings import warn

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from skextra.mdp._components import OneGain
from skextra.mdp._exact import SOLVERS
from skextra.mdp._gymnasium import from_gymnasium
from skextra.mdp._inputs import (
    checked_labels,
    checked_log,
    checked_states,
    discounted_if_multichain,
    env_model,
    generative_model,
    make_model,
)
from skextra.mdp._logs import explained, log_model
from skextra.mdp._sampled import plug_in, savia
from skextra.mdp._sampling import CallableSampler, ModelSampler
from skextra.mdp._search import Search, transition_table
from skextra.mdp._states import discretized
from skextra.utils import DocLinkMixin, forget

MOST_SAMPLES = 2**62  # that 64-bit integers can count
LOOK_AFTER = 50  # iterations without progress, for the sets that the model may have


class HalpernMDPSolver(DocLinkMixin, CallbackSupportMixin, BaseEstimator):
    """Best long-run average or discounted reward of a finite Markov decision process.

    Give the process by its matrices (`fit_mdp`), as a tabular Gymnasium environment
    (`fit_env`), by a function that draws next states (`fit_generative`), or only by a
    log of steps (`fit`). The result is a policy, and a certified interval: the policy
    earns at least its lower end, and no policy more than its upper end. Periodic
    processes need no special care.

    The solvers are anchored (Halpern) value iteration, its sampled form SAVIA+ of [1]_,
    and what is faster where the model is known; the :ref:`User Guide <mdp>` says which
    bounds are from the literature and which are derived there.

    Parameters
    ----------
    discount : float in (0, 1) or None, default=None
        Discount of future rewards. None maximises the long-run average reward per step.

    solver : {"auto", "rvi", "anchored", "policy_iteration", "lp", "savia", "plug_in"}, \
            default="auto"
        "rvi" is damped relative value iteration, which periodic processes do not
        disturb. "anchored" is anchored value iteration, restarted each time its
        certificate has halved. "policy_iteration" evaluates each policy by sparse linear
        solves. "lp" solves linear programmes with HiGHS, and goes on from there by
        policy iteration. "savia" and "plug_in" use samples of the next states only, up
        to `sample_tol`. "auto" is modified policy iteration; where that is slow, it
        takes turns with policy iteration and linear programmes, in models of up to 5000
        states or with moves to near states only, and with anchored value iteration. For
        `fit_generative` it stands for "savia".

    tol : float, default=1e-6
        Width of the certificate at which the solvers of a known model end, in units of
        reward: the policy earns at most so much less than the best one, per step. With
        a discount, the value of no state falls short of the best by more.

    sample_tol : float, default=0.1
        The same for "savia" and "plug_in", with probability ``1 - delta``.

    delta : float in (0, 1), default=0.05
        Probability with which the certificate of "savia" or "plug_in" may be wrong.

    variant : {"improved", "paper"}, default="improved"
        Constants of "savia". "paper" is SAVIA+ as analysed in [1]_; "improved" has the
        same guarantee from sharper inequalities, and may stop after any step.

    max_iter : int, default=100_000
        Most iterations.

    max_samples : float, default=1e9
        Most next states that "savia" or "plug_in" draw.

    discretizer : "auto" or estimator, default="auto"
        Makes states of the rows of a log, which it gets as an array: a clusterer, or
        another estimator with `predict`, by its labels; a transformer by what it
        returns, such as :class:`~sklearn.preprocessing.KBinsDiscretizer`. "auto" takes
        the different rows, if they are at most `max_states`, and else five quantile
        bins of each feature.

    max_states : int, default=1000
        Most states that "auto" makes of a log.

    multichain : {"raise", "discount"}, default="raise"
        What to do if the best average reward depends on the first state: raise an
        error, or use the discount 0.999 whenever the process can stay in several sets
        of states for ever. A discount, or a sampler, makes no such check. "savia" and
        "plug_in" are hardly ever done with that discount: it asks them for a thousandth
        of `sample_tol` per step.

    n_jobs : int, default=None
        Number of threads for models of at least 200 000 states, and for draws from
        large known models, as in :class:`joblib.Parallel`. The result does not depend
        on it.

    random_state : int, RandomState instance or None, default=None
        Draws the samples of "savia" and "plug_in".

    Attributes
    ----------
    policy_ : ndarray of shape (n_states,)
        Label of the action for each state; of several that are equally good, the first.

    gain_ : float
        Estimate of the best average reward per step, the middle of `gain_interval_`.
        With a discount, of ``(1 - discount)`` times the mean value of the states.

    gain_interval_ : ndarray of shape (2,)
        What `policy_` earns at least, from every state, and what no policy can surpass.
        With a discount, bounds of the mean value of the states in the unit of `gain_`.

    gain_history_ : ndarray of shape (`n_iter_`, 2)
        The certificate of each iteration.

    bias_ : ndarray of shape (n_states,)
        How much more is earned in total from each state than from the first, if the
        best policy is followed: a solution of ``max_a q_ = bias_`` up to
        `span_residual_`, which may be farther from the exact one where the process
        mixes slowly. With a discount, the values of the states, up to `tol`.

    q_ : ndarray of shape (n_states, n_actions)
        Reward of an action less `gain_`, plus the mean bias of the next state. With a
        discount, the value of an action. -inf where the action is not feasible.

    states_ : ndarray of shape (n_states, n_features)
        Features of the states: of a log, the mean of the rows in each state; the
        numbers of the states where nothing else was given.

    actions_ : ndarray of shape (n_actions,)
        Labels of the actions.

    transition_ : csr_array of shape (n_states * n_actions, n_states)
        Row ``state * n_actions + action`` holds the probabilities of the next state;
        empty where not feasible. Not after `fit_generative`.

    reward_ : ndarray of shape (n_states, n_actions)
        Expected rewards, -inf where not feasible.

    discount_ : float or None
        The discount in use.

    n_iter_ : int
        Iterations done. "auto" and "policy_iteration" do more work in one than a sweep.

    n_samples_ : int
        Next states drawn.

    span_residual_ : float
        Width of the certificate that belongs to `policy_`, in the unit of `gain_`.

    converged_ : bool
        Whether that is at most the tolerance; with a discount, ``1 - discount`` times
        the tolerance, which is of values.

    restart_prob_ : float
        Probability with which a row of the log was led on to the row after, because the
        next states alone fell apart; 0 mostly. Only after `fit`.

    n_features_in_ : int
        Number of columns of `states_`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if they are all strings.

    See Also
    --------
    from_gymnasium : The matrices of a tabular environment of Gymnasium.
    skextra.datasets.make_access_control : A queue as a decision process.

    Notes
    -----
    A model for which the bounds close has one best average reward. If they do not, it
    may have several sets of states in which the process can stay for ever (maximal end
    components). Once the bounds prove that one of these earns more than another that
    cannot be left, the error lists them all.

    Time and memory of a sweep are linear in the number of non-zero probabilities. The
    certificate of a known model takes rounding into account, and so is slightly wider
    than the iterates alone would make it.

    References
    ----------
    .. [1] J. Lee, M. Bravo and R. Cominetti, "Near-Optimal Sample Complexity for MDPs
       via Anchoring", ICML 2025, :arxiv:`2502.04477`.
    .. [2] J. Lee and E. K. Ryu, "Accelerating Value Iteration with Anchoring",
       NeurIPS 2023, :arxiv:`2305.16569`.
    .. [3] M. L. Puterman, "Markov Decision Processes", Wiley, 1994, chapter 8.

    Examples
    --------
    A forest that is cut, or grows and may burn:

    >>> from skextra.datasets import make_forest
    >>> from skextra.mdp import HalpernMDPSolver
    >>> forest = make_forest(3)
    >>> model = HalpernMDPSolver().fit_mdp(forest.P, forest.R)
    >>> round(model.gain_, 5), model.policy_
    (3.24, array([0, 0, 0]))

    The same from a log of 20 000 steps:

    >>> from skextra.datasets import simulate_log
    >>> log = simulate_log(forest, 20_000, random_state=0)
    >>> model = HalpernMDPSolver().fit(log.X, log.y, actions=log.actions)
    >>> model.predict([[2.0]])
    array(['wait'], dtype='<U4')
    """

    _parameter_constraints: dict = {
        "discount": [Interval(Real, 0, 1, closed="neither"), None],
        "solver": [StrOptions({*SOLVERS, "savia", "plug_in"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "sample_tol": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "variant": [StrOptions({"improved", "paper"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [Interval(Real, 1, None, closed="left")],
        "discretizer": [
            StrOptions({"auto"}),
            HasMethods(["fit", "predict"]),
            HasMethods(["fit", "transform"]),
        ],
        "max_states": [Interval(Integral, 1, None, closed="left")],
        "multichain": [StrOptions({"raise", "discount"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        discount=None,
        *,
        solver="auto",
        tol=1e-6,
        sample_tol=0.1,
        delta=0.05,
        variant="improved",
        max_iter=100_000,
        max_samples=10**9,
        discretizer="auto",
        max_states=1000,
        multichain="raise",
        n_jobs=None,
        random_state=None,
    ):
        self.discount = discount
        self.solver = solver
        self.tol = tol
        self.sample_tol = sample_tol
        self.delta = delta
        self.variant = variant
        self.max_iter = max_iter
        self.max_samples = max_samples
        self.discretizer = discretizer
        self.max_states = max_states
        self.multichain = multichain
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)  # of the discretizer
    def fit(self, X, y=None, *, actions=None, next_X=None, terminal=None):
        """Estimate a model from a log of steps, and solve it.

        The rows of a log are in order. Pairs of a state and an action that it does not
        hold count as not feasible, and rewards are averaged over the rows of a pair.
        After the last row comes the first. With average reward a row that ends an
        episode leads to the row after; with a discount nothing follows it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features of the state before each step.

        y : array-like of shape (n_samples,), default=None
            Reward of each step. None stands for 0.

        actions : array-like of shape (n_samples,), default=None
            Label of the action of each step, all strings or all numbers. None stands
            for one action, 0.

        next_X : array-like of shape (n_samples, n_features), default=None
            Features of the state after each step, with the columns of `X`. A state that
            no row of `X` is in stands for the nearest one. None stands for the rows
            after.

        terminal : array-like of shape (n_samples,), default=None
            True where a step ends an episode. None stands for False.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the log is not as documented; or if "auto" would make more
            than `max_states` states.

        Warns
        -----
        ConvergenceWarning
            If the tolerance was not reached.
        """
        forget(self)
        X, y = self._validate_rows(X, y, reset=True)
        log = checked_log(X, y, actions, next_X, terminal, self)
        states, log.states = discretized(X, self.discretizer, self.max_states)
        log.next_states = None if log.next_X is None else states.find(log.next_X)
        labels, log.actions = np.unique(log.actions, return_inverse=True)
        model, restart = log_model(log, len(states.rows), len(labels), self.discount)
        routed = {"actions": actions, "next_X": next_X, "terminal": terminal}
        routed = {name: each for name, each in routed.items() if each is not None}
        data = {"X": X, "y": y, "metadata": routed}
        return self._solve(model, states, labels, data=data, restart_prob_=restart)

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_mdp(self, P, R, mask=None, *, states=None, actions=None):
        """Solve a model that is given by its matrices.

        Parameters
        ----------
        P : array-like of shape (n_actions, n_states, n_states), list of matrices, or \
                matrix of shape (n_states * n_actions, n_states)
            Probabilities of the next state: one matrix, dense or sparse, for each
            action; or one whose row ``state * n_actions + action`` is for this pair.

        R : array-like of shape (n_states, n_actions) or (n_states,), or as `P`
            Expected rewards, of finite value, or -inf where an action is not feasible;
            or finite rewards by next state in a format of `P`.

        mask : array-like of bool of shape (n_states, n_actions), default=None
            True where an action is feasible. None stands for all.

        states : array-like of shape (n_states,) or (n_states, n_features), default=None
            Features of the states, by which `predict` finds them: all different. None
            stands for their numbers.

        actions : array-like of shape (n_actions,), default=None
            Labels of the actions. None stands for their numbers.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the model is not as documented, naming the state and the
            action; or if the best average reward depends on the first state.

        Warns
        -----
        ConvergenceWarning
            If the tolerance was not reached.
        """
        forget(self)
        model = make_model(P, R, mask, self.discount)
        states = checked_states(states, model.n_states, self)
        labels = checked_labels(actions, model.n_actions)
        return self._solve(model, states, labels)

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_env(self, env):
        """Solve a tabular environment of Gymnasium.

        The states are known by the numbers of the environment, but for those that
        cannot be reached from its first states.

        Parameters
        ----------
        env : gymnasium.Env
            Environment with ``env.unwrapped.P`` and, as in FrozenLake, Taxi and
            CliffWalking, ``env.unwrapped.initial_state_distrib``. With average reward a
            step that ends an episode leads to the first states; with a discount nothing
            follows it.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the environment is not as documented; or if the best
            average reward depends on the first state.

        Warns
        -----
        ConvergenceWarning
            If the tolerance was not reached.
        """
        forget(self)
        found = from_gymnasium(env, restart=self.discount is None)
        model = env_model(found, self.discount)
        states = checked_states(found.states, model.n_states, self, nearest=False)
        return self._solve(model, states, np.arange(model.n_actions))

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_generative(self, sampler, n_states, n_actions, reward):
        """Solve a model of which only next states can be drawn.

        That the best average reward is the same from every state is assumed here, for
        samples cannot tell; where it is not, the draws end at `max_samples`.

        Parameters
        ----------
        sampler : callable
            ``sampler(s, a, size, rng)`` returns `size` independent next states of state
            s under action a, an integer array. `rng` is a NumPy
            :class:`~numpy.random.Generator` to draw with.

        n_states : int
            Number of states, which are 0, 1, 2, ...

        n_actions : int
            Number of actions, which are 0, 1, 2, ...

        reward : array-like of shape (n_states, n_actions) or (n_states,)
            Expected rewards, -inf where an action is not feasible.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or what the sampler returns is not as documented, or if
            `max_samples` does not allow two draws of each pair of state and action.

        Warns
        -----
        ConvergenceWarning
            If the tolerance was not reached with `max_samples` draws.
        """
        forget(self)
        model = generative_model(
            sampler, n_states, n_actions, reward, self.discount, self.solver
        )
        states = checked_states(None, model.n_states, self)
        return self._solve(model, states, np.arange(model.n_actions), sampler=sampler)

    def predict(self, X):
        """Choose an action for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features of states. A row unlike all states stands for the nearest one, each
            feature in units of its standard deviation over the states; of several, for
            the first. States that are known by their numbers alone have no others near.

        Returns
        -------
        actions : ndarray of shape (n_samples,)
            Labels of the actions.

        Raises
        ------
        ValueError
            If `X` is not as documented.
        """
        rows = self._find(X)
        return self.policy_[rows]

    def predict_value(self, X):
        """Give the value of the state of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features of states. A row unlike all states stands for the nearest one, each
            feature in units of its standard deviation over the states; of several, for
            the first. States that are known by their numbers alone have no others near.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            `bias_` of the states.

        Raises
        ------
        ValueError
            If `X` is not as documented.
        """
        rows = self._find(X)
        return self.bias_[rows]

    def q_values(self, X):
        """Give the value of each action for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features of states. A row unlike all states stands for the nearest one, each
            feature in units of its standard deviation over the states; of several, for
            the first. States that are known by their numbers alone have no others near.

        Returns
        -------
        values : ndarray of shape (n_samples, n_actions)
            `q_` of the states; -inf where an action is not feasible.

        Raises
        ------
        ValueError
            If `X` is not as documented.
        """
        rows = self._find(X)
        return self.q_[rows]

    def score(
        self,
        X,
        y=None,
        *,
        actions=None,
        next_X=None,
        terminal=None,
        sample_weight=None,
    ):
        """Score by the certified gain, or by how well a log is predicted.

        With `X` alone, the score is what `policy_` earns at least in the model,
        ``gain_interval_[0]``. With more, it is the coefficient of determination R^2 of
        the temporal-difference targets, as predicted by `q_`: reward - `gain_` + bias
        of the next state, or reward + discount * value of the next state. 1 is best, and
        0 is as good as their mean. For a pair of a state and an action that was not
        feasible in `fit`, the best of its state stands in. Grid search over discretizers
        can use it, with care: it says how well the values are told, and not what the
        policy is worth.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features of the state before each step of a log, in order.

        y : array-like of shape (n_samples,), default=None
            Reward of each step. None stands for 0.

        actions : array-like of shape (n_samples,), default=None
            Label of the action of each step. None stands for 0.

        next_X : array-like of shape (n_samples, n_features), default=None
            Features of the state after each step. None stands for the rows after, and
            the first row after the last.

        terminal : array-like of shape (n_samples,), default=None
            True where a step ends an episode. None stands for False.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in R^2; the gain has no use for them.

        Returns
        -------
        score : float
            The gain, or R^2.

        Raises
        ------
        ValueError
            If the log is not as documented, or has none of the actions of `fit`.
        """
        check_is_fitted(self)
        only_X = all(column is None for column in (y, actions, next_X, terminal))
        X, y = self._validate_rows(X, y, reset=False)
        if only_X:
            return float(self.gain_interval_[0])
        log = checked_log(X, y, actions, next_X, terminal, self)
        find = self._states.find
        log.states = find(X)
        log.next_states = None if log.next_X is None else find(log.next_X)
        number = {label: i for i, label in enumerate(self.actions_.tolist())}
        codes = np.array([number.get(a, -1) for a in log.actions.tolist()])
        if (codes < 0).all():
            raise ValueError(
                "actions must be labels as in fit, which has seen "
                f"{list(number)}; got {np.unique(log.actions).tolist()}."
            )
        log.actions = codes
        model = self.q_, self.bias_, self.gain_, self.discount_
        return explained(log, *model, sample_weight)

    def _validate_rows(self, X, y, reset):
        """Return the rows of a log and their rewards."""
        dtype = [np.float64, np.float32] if reset else self.states_.dtype
        if y is None:
            X = validate_data(self, X, dtype=dtype, reset=reset)
            return X, np.zeros(len(X))
        X, y = validate_data(self, X, y, dtype=dtype, y_numeric=True, reset=reset)
        return X, y.astype(np.float64, copy=False)

    def _find(self, X):
        """Return the state of each row."""
        check_is_fitted(self)
        dtype = self.states_.dtype
        return self._states.find(validate_data(self, X, dtype=dtype, reset=False))

    def _solve(self, model, states, labels, *, sampler=None, data=None, **others):
        """Run the solver, and set the fitted attributes; callbacks are told the data."""
        data = data or {}
        if self.multichain == "discount" and sampler is None:
            model = discounted_if_multichain(model)
        search, steps = self._plan(model, sampler)
        others |= {"states_": states.rows, "_states": states}
        if sampler is None:
            others["transition_"] = transition_table(model)
        fit_task = self._init_callback_context(max_subtasks=None)
        fit_task.call_on_fit_task_begin(estimator=self, **data)
        one_gain = None
        if sampler is None and model.discount == 1:
            one_gain = OneGain(model, states.numbers, search.width)
        over = stopped = False
        for step in islice(steps, self.max_iter):
            task = fit_task.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=self, **data)
            over = search.take(step)
            if one_gain and search.halving.since % LOOK_AFTER == LOOK_AFTER - 1:
                one_gain.require_possible(step)
            stopped = task.call_on_fit_task_end(
                estimator=self,
                **data,
                reconstruction_attributes=lambda: search.fitted(labels) | others,
            )
            if over or stopped:
                break
        if one_gain and not (search.converged or stopped):
            one_gain.require_possible(search.best)
        vars(self).update(search.fitted(labels) | others)
        if not (search.converged or stopped):
            warn(
                "The certified interval is still wider than the tolerance: "
                f"{search.shortfall(self.max_iter, self.max_samples)}",
                ConvergenceWarning,
                stacklevel=5,
            )
        fit_task.call_on_fit_task_end(
            estimator=self, **data, reconstruction_attributes={}
        )
        return self

    def _plan(self, model, sampler):
        """Return the search, and the steps of the solver."""
        sampled = sampler is not None or self.solver in ("savia", "plug_in")
        tol = self.sample_tol if sampled else self.tol
        search = Search(model, tol)
        if not sampled:
            return search, SOLVERS[self.solver](model, self.n_jobs)
        if self.max_samples < 2 * model.n_pairs:
            raise ValueError(
                f"max_samples must allow two draws of each of the {model.n_pairs} "
                f"pairs of state and action; got {self.max_samples}."
            )
        rng = check_random_state(self.random_state)
        if sampler is None:
            draws = ModelSampler(model, rng, self.n_jobs)
        else:
            draws = CallableSampler(sampler, model, rng)
        budget = min(self.max_samples, MOST_SAMPLES)
        arguments = model, draws, search.width, self.delta, budget
        if self.solver == "plug_in":
            return search, plug_in(*arguments, self.n_jobs)
        return search, savia(*arguments, self.variant)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "policy_")
