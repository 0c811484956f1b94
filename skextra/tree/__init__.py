"""Decision trees as functions: missing values, reasons, rules, equality, acquisition."""

from skextra.tree._acquisition import AcquisitionPolicy
from skextra.tree._boolean_tree import BooleanTree
from skextra.tree._display import AcquisitionDisplay, RulesDisplay
from skextra.tree._errors import BudgetExceededError
from skextra.tree._explanations import Explanation
from skextra.tree._functions import (
    essential_thresholds,
    exact_permutation_importance,
    explain_tree,
    rashomon_importance,
    tree_counterexample,
    trees_equivalent,
    unique_trees,
    value_interval,
)
from skextra.tree._rules import Rule

__all__ = [
    "AcquisitionDisplay",
    "AcquisitionPolicy",
    "BooleanTree",
    "BudgetExceededError",
    "Explanation",
    "Rule",
    "RulesDisplay",
    "essential_thresholds",
    "exact_permutation_importance",
    "explain_tree",
    "rashomon_importance",
    "tree_counterexample",
    "trees_equivalent",
    "unique_trees",
    "value_interval",
]
