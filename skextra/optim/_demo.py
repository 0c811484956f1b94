"""Two optimizers for the same network, each at the learning rate that suits it."""

from functools import partial

from sklearn.model_selection import GridSearchCV

from skextra._demo import Demo, scaled_digits


def _search(optimizer):
    from skextra.neural import NeuralClassifier

    network = NeuralClassifier(
        module_params={"hidden_layer_sizes": (64, 64)},
        optimizer=optimizer,
        max_epochs=10,
        random_state=0,
    )
    return GridSearchCV(network, {"learning_rate": [1e-3, 3e-3, 1e-2]}, cv=3)


def _plot(ax, result):
    for name, fitted in {"AdamW": result.baseline, "SWAN": result.ours}.items():
        network = fitted.search.best_estimator_
        losses = network.history_[:, "train_loss"]
        rate = network.learning_rate
        ax.semilogy(range(1, len(losses) + 1), losses, label=f"{name}, rate {rate:g}")
    ax.set(xlabel="epoch", ylabel="training loss", title="The same network")
    ax.legend()


DEMO = Demo(
    name="optim",
    task="classification",
    problem="Can a network be trained without the memory that Adam takes?",
    answer="SWAN keeps nothing for a weight matrix between two steps: "
    'NeuralClassifier(optimizer="swan"), or in a torch loop of your own.',
    data="digits",
    load=scaled_digits,
    estimator=partial(_search, "swan"),
    baseline=partial(_search, "adamw"),
    baseline_name="AdamW",
    scoring="accuracy",
    plot=_plot,
    needs_torch=True,
)
