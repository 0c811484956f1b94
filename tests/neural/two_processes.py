"""Train with accelerate, on as many processes as were started; the first one saves.

Arguments: file to write, and the precision of accelerate.
"""

import sys

import numpy as np
from accelerate import Accelerator
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale

from skextra.neural import NeuralClassifier

X, y = load_iris(return_X_y=True)
X = scale(X)
accelerator = Accelerator(cpu=True, mixed_precision=sys.argv[2])
model = NeuralClassifier(
    optimizer="sgd",
    learning_rate=0.1,
    max_epochs=5,
    batch_size=len(X) // accelerator.num_processes,
    accelerator=accelerator,
    random_state=0,
).fit(X, y)
if accelerator.is_main_process:
    np.savez(
        sys.argv[1],
        probability=model.predict_proba(X),
        n_processes=accelerator.num_processes,
    )
# A process that just ends, while another still talks to it, is at times aborted.
accelerator.wait_for_everyone()
accelerator.end_training()
