"""Alignments and character matrices as data frames."""

import re

import numpy as np
from sklearn.utils._optional_dependencies import check_pandas_support

from skextra.phylo import _alignment_formats as formats

NAN = float("nan")
BINARY = {"0": 0.0, "1": 1.0, "?": NAN, "-": NAN}
PURINE_PYRIMIDINE = (
    dict.fromkeys("AGRagr", 0.0)
    | dict.fromkeys("CTUYctuy", 1.0)
    | dict.fromkeys("KMSWBDHVNXkmswbdhvnx-.?", NAN)
)
# Missing cells of a data frame, as str() writes them.
MISSING = ["nan", "None", "NaN", "<NA>"]
WRITTEN = dict.fromkeys(MISSING, "?") | {
    "0.0": "0",
    "-0.0": "0",
    "1.0": "1",
    "False": "0",
    "True": "1",
}
FORMATS = {
    "fasta": formats.fasta_text,
    "phylip": formats.phylip_text,
    "nexus": formats.nexus_text,
}


def read_alignment(source, *, coding="binary"):
    r"""Read an alignment or a character matrix.

    The content tells the format: FASTA; PHYLIP, sequential or interleaved, with names of
    10 columns or names that end at a blank; or the DATA or CHARACTERS block of NEXUS.

    Parameters
    ----------
    source : str, path-like or file-like
        Path of a file, or an open text file.

    coding : {"binary", "ry"} or None, default="binary"
        What the symbols become. "binary": 0 and 1 are states, and "?", "-", the MISSING
        and GAP symbols of NEXUS and polymorphic tokens, such as ``{01}``, are NaN.
        "ry": purines are 0 and pyrimidines 1, as in `ry_coding`. None: they
        stay as they are, in columns of str.

    Returns
    -------
    X : DataFrame of shape (n_sites, n_leaves)
        One row a site, one column a leaf, named by its label. Of FASTA the
        label is the whole header line. Underscores stay underscores.

    Raises
    ------
    ValueError
        If the format is none of these, a number does not fit the header, sequences
        differ in length, two leaves have one name, or a symbol has no place
        in the coding.

    ImportError
        If pandas is not installed.

    See Also
    --------
    write_alignment : The inverse.
    ry_coding : Nucleotides as purines and pyrimidines.

    Examples
    --------
    >>> from io import StringIO
    >>> from skextra.phylo import read_alignment
    >>> read_alignment(StringIO(">cat\n01?\n>dog\n110\n"))
       cat  dog
    0  0.0  1.0
    1  1.0  1.0
    2  NaN  0.0
    """
    if coding not in ("binary", "ry", None):
        raise ValueError(f"coding must be 'binary', 'ry' or None, got {coding!r}.")
    pd = check_pandas_support("read_alignment")
    names, symbols, missing, tokens = formats.read_any(formats.text_of(source))
    if coding is None:
        cells = symbols.astype(object)
        for token, character in tokens.items():
            cells[symbols == character] = token
        return pd.DataFrame(cells.T, columns=names, dtype=str)
    table = BINARY if coding == "binary" else PURINE_PYRIMIDINE
    unknown = dict.fromkeys([*missing, *tokens.values()], NAN)
    return pd.DataFrame(_numbers(symbols, names, table | unknown), columns=names)


def ry_coding(X):
    """Code nucleotides as purines (0) and pyrimidines (1).

    A, G and R become 0, C, T, U and Y become 1, in both cases. Other symbols
    that IUPAC has for a nucleotide, X, gaps ("-", "."), "?", missing cells and
    polymorphic tokens such as ``{AC}`` become NaN.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n_sites, n_leaves), or list of str
        Single characters, one row a site; or one sequence a leaf, of equal lengths.

    Returns
    -------
    coded : DataFrame or ndarray of shape (n_sites, n_leaves)
        Numbers; a data frame with the labels of X if that is one.

    Raises
    ------
    ValueError
        If X is neither, or has another symbol.

    See Also
    --------
    read_alignment : Read and code a file.

    Examples
    --------
    >>> from skextra.phylo import ry_coding
    >>> ry_coding(["ACGT", "ACNC"])
    array([[ 0.,  0.],
           [ 1.,  1.],
           [ 0., nan],
           [ 1.,  1.]])
    """
    if hasattr(X, "columns"):
        names, columns = map(list, zip(*_columns(X), strict=True))
        coded = _numbers(columns, names, PURINE_PYRIMIDINE)
        if hasattr(X, "index"):
            return type(X)(coded, index=X.index, columns=X.columns)
        return type(X)(coded, schema=names, orient="row")
    if isinstance(X, list | tuple) and X and all(isinstance(row, str) for row in X):
        for leaf, sequence in enumerate(X):
            if len(sequence) != len(X[0]):
                raise ValueError(
                    f"X must be sequences of equal lengths; that of leaf {leaf} has "
                    f"{len(sequence)} sites, but leaf 0 has {len(X[0])}."
                )
        return _numbers(formats.symbols_of(X), range(len(X)), PURINE_PYRIMIDINE)
    cells = np.asarray(X)
    if cells.ndim != 2:
        raise ValueError(
            "X must be a data frame or a 2-D array of single characters, or a list of "
            f"str, got {type(X).__name__} of shape {cells.shape}."
        )
    return _numbers(cells.T, range(cells.shape[1]), PURINE_PYRIMIDINE)


def _columns(X):
    """Return (name, column) of a data frame of pandas or polars."""
    return list(X.items() if hasattr(X, "items") else zip(X.columns, X, strict=True))


def _numbers(rows, names, table):
    """Return the numbers of the symbols in the rows, which become columns."""
    numbers = np.empty((len(rows), len(rows[0]) if len(rows) else 0))
    for row, leaf, symbols in zip(numbers, names, rows, strict=True):
        row[:] = _looked_up(symbols := np.asarray(symbols, dtype=str), table)
        wrong = np.flatnonzero(np.isinf(row))
        if wrong.size:
            accepted = "".join(symbol for symbol in table if symbol.isprintable())
            raise ValueError(
                f"The symbol of leaf {leaf!r} at site {wrong[0]}, counted from 0, must be "
                f"one of {accepted!r}, got {str(symbols[wrong[0]])!r}. Read the text with "
                "coding=None and choose or code the columns yourself, or with "
                "coding='ry' if they are nucleotides."
            )
    return numbers.T


def _looked_up(symbols, table):
    """Return the numbers of an array of str, inf where the table has none."""
    if symbols.dtype == np.dtype("U1"):  # millions of them, so no sorting
        codes = np.ascontiguousarray(symbols).view(np.uint32)
        numbers = np.full(max(*map(ord, table), codes.max(initial=0)) + 1, np.inf)
        numbers[[ord(symbol) for symbol in table]] = list(table.values())
        return numbers[codes]
    distinct, places = np.unique(symbols, return_inverse=True)
    known = table | dict.fromkeys(MISSING, NAN)
    is_token = re.compile(r"\(.*\)|\{.*\}").fullmatch
    numbers = [NAN if is_token(s) else known.get(s, np.inf) for s in distinct.tolist()]
    return np.array(numbers)[places]


def write_alignment(X, target, *, format):
    """Write an alignment or a character matrix.

    Parameters
    ----------
    X : DataFrame of shape (n_sites, n_leaves)
        One column a leaf, named by its label: 0, 1 and NaN or None, written as "?"; or
        single characters. The labels of the rows are not written.

    target : str, path-like or file-like
        Path of a file, or an open text file.

    format : {"fasta", "phylip", "nexus"}
        Format of the text. The names of PHYLIP have any length, but no blanks.

    Raises
    ------
    ValueError
        If the format is none of these or cannot hold a label, or a cell is not one
        character.

    TypeError
        If X is not a data frame.

    See Also
    --------
    read_alignment : The inverse.

    Examples
    --------
    >>> import sys
    >>> import pandas as pd
    >>> from skextra.phylo import write_alignment
    >>> X = pd.DataFrame({"cat": [0, 1, None], "big dog": [1, 1, 0]})
    >>> write_alignment(X, sys.stdout, format="fasta")
    >cat
    01?
    >big dog
    110
    """
    if format not in FORMATS:
        raise ValueError(f"format must be one of {list(FORMATS)}, got {format!r}.")
    if not hasattr(X, "columns"):
        raise TypeError(
            f"X must be a data frame with one column a leaf, got {type(X).__name__}."
        )
    if 0 in X.shape:
        raise ValueError(f"X must have sites and leaves, got shape {X.shape}.")
    columns = _columns(X)
    names = [str(name) for name, _ in columns]
    formats.require_unique(names)
    for name in names:
        if name.strip() != name or len(name.splitlines()) > 1:
            raise ValueError(
                f"The name of leaf {name!r} must be one line without blanks at its ends."
            )
    sequences = [_sequence(name, column) for name, column in columns]
    formats.write_text(FORMATS[format](names, sequences), target)


def _sequence(leaf, column):
    """Return the text of a column."""
    cells = np.asarray(column)
    cells = cells.astype(str) if cells.dtype == object else cells
    distinct, places = np.unique(cells, return_inverse=True)
    distinct = [WRITTEN.get(str(cell), str(cell)) for cell in distinct]
    for number, symbol in enumerate(distinct):
        if not re.fullmatch(r"[A-Za-z0-9?*.+-]", symbol):
            raise ValueError(
                f"X of leaf {leaf!r} at site {np.argmax(places == number)}, counted from "
                f"0, must be 0, 1, NaN, a letter, a digit or one of ?*.+-, got {symbol!r}."
            )
    return "".join(np.array(distinct)[places].tolist())
