"""Real data that come with the package."""

import gzip
from importlib.resources import files

from sklearn.utils import Bunch
from sklearn.utils._optional_dependencies import check_pandas_support
from sklearn.utils._param_validation import validate_params


@validate_params({"as_frame": ["boolean"]}, prefer_skip_nested_validation=True)
def load_brca1(*, as_frame=False):
    """Load the BRCA1 gene of 55 mammals, with purines and pyrimidines for states.

    A row is a site of the alignment and a column is a mammal. State 0 stands for a
    purine (A or G) and state 1 for a pyrimidine (C or T); a cell is NaN at a gap or
    where the base is not known.

    =================  ==============
    Sites              3009
    Mammals            55
    States             0 and 1
    Missing cells      8 %
    =================  ==============

    Parameters
    ----------
    as_frame : bool, default=False
        Whether the data are a pandas DataFrame whose columns are the mammals.

    Returns
    -------
    brca1 : Bunch
        With the attributes

        data : ndarray or DataFrame of shape (3009, 55)
            States of the sites.
        feature_names : list of str
            Names of the mammals.
        tree : str
            Newick text of the phylogeny of the mammals by Murphy et al. [1]_, without
            branch lengths.

    Raises
    ------
    ImportError
        If `as_frame` is true and pandas is not installed.

    Notes
    -----
    The alignment and the tree come with the package cogent3, copyright Gavin Huttley,
    under the BSD 3-clause licence, whose text lies beside the data.

    References
    ----------
    .. [1] W. J. Murphy et al., "Resolution of the early placental mammal radiation
       using Bayesian phylogenetics", Science 294, 2001.

    Examples
    --------
    >>> from skextra.datasets import load_brca1
    >>> brca1 = load_brca1()
    >>> brca1.data.shape
    (3009, 55)
    >>> brca1.feature_names[:3]
    ['FlyingFox', 'DogFaced', 'FreeTaile']
    """
    from skextra.phylo import ry_coding  # a quarter of a second that others need not

    folder = files("skextra.datasets") / "data"
    text = gzip.decompress((folder / "brca1.fasta.gz").read_bytes()).decode()
    names, sequences = zip(*map(str.split, text.split(">")[1:]), strict=True)
    data, names = ry_coding(list(sequences)), list(names)
    if as_frame:
        pd = check_pandas_support("load_brca1")
        data = pd.DataFrame(data, columns=names)
    tree = (folder / "mammals.nwk").read_text().strip()
    return Bunch(data=data, feature_names=names, tree=tree)
