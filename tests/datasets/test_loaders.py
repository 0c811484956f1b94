"""Data that come with the package."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from skextra.datasets import load_brca1
from skextra.phylo import parse_newick


def test_brca1():
    brca1 = load_brca1()
    assert brca1.data.shape == (3009, 55)
    assert len(set(brca1.feature_names)) == 55
    assert set(np.unique(brca1.data[~np.isnan(brca1.data)])) == {0.0, 1.0}
    assert np.isnan(brca1.data).mean() == pytest.approx(0.083, abs=5e-4)
    # The flying fox begins with TGTGGCAC.
    assert_array_equal(brca1.data[:8, 0], [1, 0, 1, 0, 0, 1, 0, 1])
    assert set(parse_newick(brca1.tree).names) - {""} == set(brca1.feature_names)


def test_brca1_as_frame():
    frame, plain = load_brca1(as_frame=True), load_brca1()
    assert isinstance(frame.data, pd.DataFrame)
    assert list(frame.data.columns) == frame.feature_names == plain.feature_names
    assert_array_equal(frame.data, plain.data)


def test_as_frame_is_true_or_false():
    with pytest.raises(ValueError, match="as_frame"):
        load_brca1(as_frame="yes")
