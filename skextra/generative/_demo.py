"""Digits that nobody wrote, good enough to learn reading from."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.mixture import GaussianMixture
from sklearn.svm import SVC

from skextra._demo import Demo, scaled_digits
from skextra.generative._consistency_model import ConsistencyModel


class _Mixtures(BaseEstimator):
    """A mixture of three normal distributions for each class."""

    def fit(self, X, y):
        """Fit the mixtures."""
        self.mixtures_ = {
            label: GaussianMixture(
                3, covariance_type="diag", reg_covar=1e-3, random_state=0
            ).fit(X[y == label])
            for label in np.unique(y)
        }
        return self

    def sample(self, y):
        """Draw a row of each class in y."""
        X = np.empty((len(y), self.mixtures_[y[0]].n_features_in_))
        for label in np.unique(y):
            rows = y == label
            X[rows] = self.mixtures_[label].sample(rows.sum())[0]
        return X, y


def _model():
    return ConsistencyModel(scaling="global", max_iter=1000, random_state=0)


def teaches(estimator, X, y):
    """Return the accuracy on real rows of a classifier that saw only drawn ones."""
    drawn, labels = estimator.sample(y=np.repeat(np.unique(y), 130))
    return SVC().fit(drawn, labels).score(X, y)


def _plot(ax, result):
    labels = np.repeat(np.arange(10), 2)
    ours, _ = result.ours.search.sample(y=labels, random_state=0)
    theirs, _ = result.baseline.search.sample(y=labels)
    strips = [
        np.hstack(np.pad(rows[start::2].reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1))))
        for rows in (ours, theirs)
        for start in (0, 1)
    ]
    ax.imshow(np.vstack(strips), cmap="gray_r", vmin=0, vmax=1)
    ax.axhline(19.5, color="C1")
    ax.set(
        xticks=[],
        yticks=[9.5, 29.5],
        yticklabels=["consistency", "mixtures"],
        title="Digits, drawn by class",
    )


DEMO = Demo(
    name="generative",
    task="generation",
    problem="How do I draw new rows of a table, or images, of a class that I name?",
    answer="ConsistencyModel learns to draw them in one or two evaluations of a network, "
    "where diffusion models need about fifty.",
    data="digits",
    load=scaled_digits,
    estimator=_model,
    baseline=_Mixtures,
    baseline_name="a GaussianMixture for each class",
    scoring=teaches,
    plot=_plot,
    needs_torch=True,
)
