"""What every estimator of skextra has."""


class DocLinkMixin:
    """Mixin that links the HTML view of an estimator to skextra's own pages.

    List it first among the base classes, so that it comes before
    :class:`~sklearn.base.BaseEstimator`, whose links lead to scikit-learn.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from skextra.utils import DocLinkMixin
    >>> class Method(DocLinkMixin, BaseEstimator):
    ...     __module__ = "skextra.room._method"
    >>> Method()._get_doc_link()
    'https://skextra.readthedocs.io/en/stable/api/generated/skextra.room.Method.html'
    """

    # scikit-learn fills in the module up to its first private part, and the class name.
    _doc_link_module = "skextra"
    _doc_link_template = (
        "https://skextra.readthedocs.io/en/stable/api/generated/"
        "{estimator_module}.{estimator_name}.html"
    )


def forget(estimator):
    """Drop the attributes of an earlier fit, but the names and number of the features.

    A fit that fails then leaves no earlier one that could be taken for it. The features
    are for scikit-learn's validation to set.

    Parameters
    ----------
    estimator : object
        Estimator that is about to be fitted again.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skextra.utils import forget
    >>> model = LinearRegression().fit([[0], [1]], [0, 1])
    >>> forget(model)
    >>> hasattr(model, "coef_"), hasattr(model, "n_features_in_")
    (False, True)
    """
    for name in list(vars(estimator)):
        if name.endswith("_") and not name.endswith("_in_"):
            delattr(estimator, name)
