"""Markov decision processes: the best policy, and how good it is."""

from skextra.mdp._display import GainIntervalDisplay
from skextra.mdp._gymnasium import from_gymnasium
from skextra.mdp._halpern_mdp_solver import HalpernMDPSolver

__all__ = ["GainIntervalDisplay", "HalpernMDPSolver", "from_gymnasium"]
