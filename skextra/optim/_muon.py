"""torch's Muon and AdamW as one optimizer."""

import torch
from torch.optim import AdamW, Muon, Optimizer


class MuonAdamW(Optimizer):
    """Muon for the groups that have the key "adjust_lr_fn", AdamW for the others.

    The two parts work on this optimizer's own groups and state.

    Parameters
    ----------
    params : list of dict
        Parameter groups.
    defaults : dict
        Learning rate and weight decay of groups that have none.
    """

    def add_param_group(self, param_group):
        """Add a group of parameters, for Muon if it has "adjust_lr_fn"."""
        super().add_param_group(param_group)
        self._make_parts()

    def __setstate__(self, state):
        """Take over the state, and let the parts work on it."""
        super().__setstate__(state)
        self._make_parts()

    def _make_parts(self):
        groups = {Muon: [], AdamW: []}
        for group in self.param_groups:
            groups[Muon if "adjust_lr_fn" in group else AdamW].append(group)
        # A torch optimizer keeps the very dictionaries that it is given.
        self._parts = [kind(own) for kind, own in groups.items() if own]
        for part in self._parts:
            part.state = self.state

    @torch.no_grad()
    def step(self, closure=None):
        """Do a step of both parts and return the closure's loss, if there is one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for part in self._parts:
            part.step()
        return loss


def is_muon_matrix(parameter):
    """Whether a hidden layer's parameter has two axes, and none of a few entries."""
    return parameter.ndim == 2 and min(parameter.shape) >= 4
