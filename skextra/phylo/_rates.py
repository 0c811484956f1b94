"""Rates that vary from site to site."""

import numpy as np
from scipy.special import gammainc
from scipy.stats import gamma

MAX_ALPHA = 1e6  # all rates are equal to two digits, and the slices lose theirs


def gamma_rates(alpha, n_categories):
    """Return the mean rates of equally probable slices of a gamma distribution.

    Parameters
    ----------
    alpha : float
        Shape of the gamma distribution, whose mean is 1.

    n_categories : int
        Number of slices.

    Returns
    -------
    rates : ndarray of shape (n_categories,)
        Rates with mean 1, in increasing order.
    """
    if n_categories == 1:
        return np.ones(1)
    shares = np.arange(n_categories + 1) / n_categories
    borders = gamma.ppf(shares, alpha)  # times alpha: of the distribution of scale 1
    rates = n_categories * np.diff(gammainc(alpha + 1, borders))
    return np.maximum(rates, 1e-12)  # at a rate of 0 two states could not differ
