"""Instances of the consistency model for scikit-learn's checks, beside the default."""

from skextra.generative import ConsistencyModel

QUICK = {"max_iter": 10, "hidden_layer_sizes": (8,)}

INSTANCES = [
    ConsistencyModel(method="training", **QUICK),
    ConsistencyModel(method="distillation", teacher="kde", **QUICK),
    ConsistencyModel(
        gaussian_preconditioning=True, scaling="global", conditional=False, **QUICK
    ),
    ConsistencyModel(tau="auto", clip=True, **QUICK),
]
