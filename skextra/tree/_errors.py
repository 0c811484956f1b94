"""Errors of the sub-package."""


class BudgetExceededError(RuntimeError):
    """An exact answer needs more terms or more time than allowed.

    The message names the parameter that sets the budget.
    """
