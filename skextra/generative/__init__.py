"""Generators of new rows: one network evaluation, or two, from noise to data."""

from skextra.generative._consistency_model import ConsistencyModel
from skextra.generative._distances import memorization_report
from skextra.generative._schedule import consistency_schedule, required_discretization

__all__ = [
    "ConsistencyModel",
    "consistency_schedule",
    "memorization_report",
    "required_discretization",
]
