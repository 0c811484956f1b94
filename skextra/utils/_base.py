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
