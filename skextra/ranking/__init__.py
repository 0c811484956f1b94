"""Differentiable ranking, sorting and top-k selection, and models trained by them."""

from skextra.ranking._functions import soft_quantile, soft_rank, soft_sort, soft_topk
from skextra.ranking._gradients import soft_rank_vjp, soft_sort_vjp, soft_topk_vjp
from skextra.ranking._lapsum import lapsum, lapsum_inverse
from skextra.ranking._permutations import soft_permutation, soft_permutation_loss
from skextra.ranking._soft_topk_selector import SoftTopKSelector
from skextra.ranking._spearman_regressor import SpearmanRegressor
from skextra.ranking._topk_classifier import TopKClassifier

__all__ = [
    "SoftTopKSelector",
    "SpearmanRegressor",
    "TopKClassifier",
    "lapsum",
    "lapsum_inverse",
    "soft_permutation",
    "soft_permutation_loss",
    "soft_quantile",
    "soft_rank",
    "soft_rank_vjp",
    "soft_sort",
    "soft_sort_vjp",
    "soft_topk",
    "soft_topk_vjp",
]
