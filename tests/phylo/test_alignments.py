"""Alignments: round trips, other packages, conventions of the formats, errors."""

import builtins
import io
from importlib.util import find_spec

import numpy as np
import pandas as pd
import polars as pl
import pytest
from Bio import AlignIO
from dendropy import DnaCharacterMatrix, StandardCharacterMatrix
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from skbio import DNA, TabularMSA

from skextra.phylo._alignments import read_alignment, ry_coding, write_alignment

FORMATS = ["fasta", "phylip", "nexus"]
NAN = np.nan
LABELS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]),
    min_size=1,
)
labels_of = {
    "phylip": LABELS.filter(
        lambda label: len(label.split()) == 1 and label == label.strip()
    ),
    None: LABELS.filter(lambda label: label == label.strip()),
}


@st.composite
def frames(draw, cells, format=None):
    labels = labels_of.get(format, labels_of[None])
    names = draw(st.lists(labels, min_size=1, max_size=5, unique=True))
    n_sites = draw(st.integers(1, 12))
    column = st.lists(st.sampled_from(cells), min_size=n_sites, max_size=n_sites)
    return pd.DataFrame({name: draw(column) for name in names})


def read(text, **kwargs):
    return read_alignment(io.StringIO(text), **kwargs)


def written(X, format):
    target = io.StringIO()
    write_alignment(X, target, format=format)
    return target.getvalue()


def rows(X):
    """The text of each leaf, for a frame of str."""
    return {name: "".join(X[name]) for name in X.columns}


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_round_trip_of_states(format, data):
    X = data.draw(frames([0.0, 1.0, NAN], format))
    assert_frame_equal(read(written(X, format)), X.astype(float))
    text = written(pl.from_pandas(X), format)
    assert_frame_equal(read(text), X.astype(float))


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_round_trip_of_characters(format, data):
    X = data.draw(frames(list("ACGTacgtNRY?-012.*"), format)).astype(str)
    assert_frame_equal(read(written(X, format), coding=None), X)


@pytest.mark.parametrize("format", FORMATS)
def test_round_trip_through_a_file(format, tmp_path):
    X = pd.DataFrame({"é": [0.0, 1.0], "b'c": [1.0, NAN]})
    for path in [tmp_path / "x.txt", str(tmp_path / "y.txt")]:
        write_alignment(X, path, format=format)
        assert_frame_equal(read_alignment(path), X)


@pytest.mark.parametrize(
    "cells",
    [[1, 0, 1], [True, False, True], pd.array([1, 0, None], "Int64"), ["1", "0", None]],
)
def test_cells_of_other_types(cells):
    X = pd.DataFrame({"a": cells})
    for same in [X, pl.from_pandas(X)]:
        assert written(same, "fasta") in (">a\n101\n", ">a\n10?\n")


# Other packages.


DNA_ROWS = {"cat": "ACGT-N", "guinea pig": "ACCTRA", "o'dog": "TTGT?A"}
PLAIN_ROWS = {"cat": "ACGT-N", "pig": "ACCTRA", "a_b": "TTGTAA"}


def characters(rows):
    return pd.DataFrame({name: list(row) for name, row in rows.items()})


@pytest.mark.parametrize("format", FORMATS)
def test_biopython_reads_what_we_write(format):
    text = written(characters(PLAIN_ROWS), format)
    name = "phylip-relaxed" if format == "phylip" else format
    found = AlignIO.read(io.StringIO(text), name)
    assert {row.id: str(row.seq) for row in found} == PLAIN_ROWS


@pytest.mark.parametrize("name", ["fasta", "nexus", "phylip", "phylip-relaxed"])
@pytest.mark.parametrize("n_repeats", [1, 40])
def test_we_read_what_biopython_writes(name, n_repeats):
    expected = {leaf: row * n_repeats for leaf, row in PLAIN_ROWS.items()}
    alignment = AlignIO.read(
        io.StringIO(written(characters(expected), "nexus")), "nexus"
    )
    for row in alignment:
        row.description, row.annotations["molecule_type"] = "", "DNA"
    target = io.StringIO()
    AlignIO.write(alignment, target, name)
    assert rows(read(target.getvalue(), coding=None)) == expected


@pytest.mark.parametrize("schema", FORMATS)
def test_dendropy_reads_what_we_write_and_vice_versa(schema):
    expected = PLAIN_ROWS if schema == "phylip" else DNA_ROWS
    text = written(characters(expected), schema)
    keep, spaces = {}, {}
    if schema == "nexus":  # where DendroPy takes underscores for blanks by default
        keep, spaces = {"preserve_underscores": True}, {"preserve_spaces": True}
    found = DnaCharacterMatrix.get(data=text, schema=schema, **keep)
    assert {t.label: str(found[t]) for t in found} == expected
    assert rows(read(found.as_string(schema, **spaces), coding=None)) == expected


def test_dendropy_reads_our_states():
    X = pd.DataFrame({"a": [0, 1, NAN], "b c": [1, 1, 0]})
    found = StandardCharacterMatrix.get(data=written(X, "nexus"), schema="nexus")
    assert {t.label: str(found[t]) for t in found} == {"a": "01?", "b c": "110"}
    assert_frame_equal(
        read(found.as_string("nexus", preserve_spaces=True)), X.astype(float)
    )


@pytest.mark.parametrize("format", ["fasta", "phylip"])
def test_scikit_bio_reads_what_we_write_and_vice_versa(format):
    expected = {"cat": "ACGT-N", "pig": "ACCTRA"}
    text = written(characters(expected), format)
    if format == "fasta":
        found = TabularMSA.read(io.StringIO(text), constructor=DNA, format=format)
        found.reassign_index(minter="id")
        assert {k: str(s) for k, s in zip(found.index, found)} == expected
    msa = TabularMSA([DNA(s) for s in expected.values()], index=list(expected))
    for leaf, sequence in zip(expected, msa):
        sequence.metadata["id"] = leaf
    target = io.StringIO()
    msa.write(target, format=format)
    assert rows(read(target.getvalue(), coding=None)) == expected


# Conventions of the formats.


NEXUS = """#nexus [a comment [in it one more], it's fine]
begin taxa; dimensions ntax=3; taxlabels 'a b' c 'd''e;'; end;
BEGIN CHARACTERS;
  Title nothing;
  Dimensions nchar = 6;
  format datatype=standard symbols="0 1 2" gap=~ missing = X matchchar=. {interleave};
  matrix {matrix};
endblock;
begin other; matrix 1 2 3; end"""
SEQUENTIAL = """
'a b' 01[one]0
1x~
c  .(01).{0 1}1.[two]
'd''e;' 1?
  -0
  .."""
INTERLEAVED = """
'a b' 01 0
c .(01).
'd''e;' 1?-

'a b' 1x~
c {0 1}1.
'd''e;' 0 .."""


@pytest.mark.parametrize(
    "interleave, matrix",
    [
        ("", SEQUENTIAL),
        ("interleave=no", SEQUENTIAL),
        ("interleave", INTERLEAVED),
        ("interleave=yes", INTERLEAVED),
        ("", SEQUENTIAL.replace("c ", "2 ").replace("'d''e;'", "3")),
    ],
)
def test_nexus(interleave, matrix):
    text = NEXUS.format(interleave=interleave, matrix=matrix)
    expected = {
        "a b": [0.0, 1.0, 0.0, 1.0, NAN, NAN],
        "c": [0.0, NAN, 0.0, NAN, 1.0, NAN],
        "d'e;": [1.0, NAN, NAN, 0.0, NAN, NAN],
    }
    assert_frame_equal(read(text), pd.DataFrame(expected))
    as_text = read(text, coding=None)
    assert as_text["c"].tolist() == ["0", "(01)", "0", "{01}", "1", "~"]


def test_nexus_with_a_mixed_datatype():
    text = """#NEXUS
    begin data; dimensions ntax=2 nchar=4;
    format datatype=mixed(standard:1-2, dna:3-4) gap=- missing=?;
    matrix a 01AC
    b 1-GT
    ; end;"""
    assert rows(read(text, coding=None)) == {"a": "01AC", "b": "1-GT"}


def test_fasta():
    text = "\ufeff>a b | c [d]\r\n0 1\r\n1\r\n\r\n>'e'\r\n-?0\r\n"
    expected = {"a b | c [d]": [0.0, 1.0, 1.0], "'e'": [NAN, NAN, 0.0]}
    assert_frame_equal(read(text), pd.DataFrame(expected))


@pytest.mark.parametrize(
    "text",
    [
        "2 6\nabc  010 110\ndefghijklmnop 1\t11000\n",  # relaxed
        "2 6\nabc\n010\n110\ndefghijklmnop\n111\n000\n",  # relaxed, sequential
        "  2  6\n\nabc 010\ndefghijklmnop 111\n\n110\n000\n",  # relaxed, interleaved
    ],
)
def test_phylip_with_relaxed_names(text):
    expected = {"abc": "010110", "defghijklmnop": "111000"}
    assert rows(read(text, coding=None)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "2 6\nHomo sapie010 110\nabc       111000\n",
        "2 6\nHomo sapie010\n          110\nabc       111\n          000\n",
        "2 6\nHomo sapie010\nabc       111\n\n110\n000\n",
        "2 6\nHomo sapie010\nabc       111\n\n          110\n          000\n",
    ],
)
def test_phylip_with_names_of_ten_columns(text):
    assert rows(read(text, coding=None)) == {"Homo sapie": "010110", "abc": "111000"}


def test_purines_and_pyrimidines_of_a_file():
    text = """#NEXUS
    begin data; dimensions ntax=2 nchar=8; format datatype=dna missing=Z;
    matrix a AGRCtuYn
    b z{AC}-?WCAG
    ; end;"""
    expected = [[0, 0, 0, 1, 1, 1, 1, NAN], [NAN] * 5 + [1, 0, 0]]
    np.testing.assert_array_equal(read(text, coding="ry").to_numpy().T, expected)


# ry_coding.


SYMBOLS = "AGRagrCTUYctuyKMSWBDHVNXkmswbdhvnx-.?"


def slow_ry(symbol):
    return 0.0 if symbol in "AGRagr" else 1.0 if symbol in "CTUYctuy" else NAN


@given(st.lists(st.text(st.sampled_from(SYMBOLS), min_size=4, max_size=4), min_size=1))
@settings(max_examples=40, deadline=None)
def test_ry_coding_of_all_containers(sequences):
    expected = np.array([[slow_ry(s) for s in row] for row in sequences]).T
    cells = np.array([list(row) for row in sequences]).T
    labels = [f"x{i}" for i in range(len(sequences))]
    index = [3, 5, 7, 9]
    X = pd.DataFrame(cells, columns=labels, index=index)
    for given_X in [sequences, cells, cells.astype("S1"), cells.astype(object)]:
        np.testing.assert_array_equal(ry_coding(given_X), expected)
    np.testing.assert_array_equal(ry_coding(cells.tolist()), expected)
    assert_frame_equal(
        ry_coding(X), pd.DataFrame(expected, columns=labels, index=index)
    )
    coded = ry_coding(pl.DataFrame({n: X[n].tolist() for n in labels}))
    assert coded.columns == labels
    np.testing.assert_array_equal(coded.to_numpy(), expected)


def test_ry_coding_of_missing_cells_and_tokens():
    X = pd.DataFrame({"a": ["A", None, "{CT}", "(AC)"]})
    np.testing.assert_array_equal(ry_coding(X)["a"], [0, NAN, NAN, NAN])
    assert ry_coding(pl.DataFrame({"a": ["C", None]}))["a"].is_nan().to_list() == [0, 1]


@pytest.mark.parametrize(
    "X, message",
    [
        (["ACGT", "AC1T"], "leaf 1 at site 2, .* got '1'"),
        (["ACGT", "ACT"], "leaf 1 has 3 sites, but leaf 0 has 4"),
        ([["A", "C"], ["é", "G"]], "leaf 0 at site 1, .* got 'é'"),
        ([["A", "CC"]], "leaf 1 at site 0, .* got 'CC'"),
        (pd.DataFrame({"cat": ["A", "Z"]}), "leaf 'cat' at site 1, .* got 'Z'"),
        (pd.DataFrame({"cat": [0.0]}), "leaf 'cat' at site 0, .* got '0.0'"),
        ("ACGT", "2-D array .* got str"),
        ([], "2-D array"),
    ],
)
def test_ry_coding_errors(X, message):
    with pytest.raises(ValueError, match=message):
        ry_coding(X)


# Errors.


def nexus(matrix, format="", ntax=2, nchar=2, more=""):
    return (
        f"#NEXUS\nbegin data;\ndimensions ntax={ntax} nchar={nchar};\n{more}"
        f"format {format};\nmatrix\n{matrix}\n;\nend;"
    )


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("(a,b);", r"'#NEXUS', with '>' .*PHYLIP\); it begins with '\(a,b\);'"),
        (">a\n01\n>b\n0\n", "FASTA.*leaf 'b' has 1 sites, but leaf 'a' has 2"),
        (">a\n01\n>a\n01\n", "FASTA.*two leaves have the name 'a'"),
        (">\n01\n", "leaf 0 has no name"),
        (">a\n", "no sites"),
        (
            ">a\n012\n",
            "leaf 'a' at site 2.*'01\\?-', got '2'.*coding=None.*coding='ry'",
        ),
        ("2 3\na 010\n", "header of 2 leaves and 3 sites"),
        ("2 3\na 010\nb 01\n", "leaf 'b' has 2 sites, but the header has 3"),
        ("2 3\na 010\nb 0111\n", "leaf 'b' has 4 sites, but the header has 3"),
        ("1 3\na 010\nb 011\n", "there are 2 leaves, but the header has 1"),
        ("2 3\na 010\na 011\n", "two leaves have the name 'a'"),
        ("2 3\na 010\n", "1 lines are no blocks of 2 leaves"),
        ("0 0\n", "header of 0 leaves"),
        ("0 3\n", "there are no leaves"),
        ("2 0\na\nb\n", "no sites"),
        ("2 4\na 01\n01 01\nb01\n1\n", "PHYLIP"),
        ("#NEXUS\nbegin trees; end;", "one DATA or CHARACTERS block.*got 0"),
        (nexus("a 01\nb 01") + nexus("a 01\nb 01")[6:], "got 2 such blocks"),
        ("#NEXUS begin data; matrix a 01; end;", r"NCHAR.*DIMENSIONS \{\}"),
        (nexus("a 01\nb 01", ntax=3), "there are 2 leaves, but the header has 3"),
        (nexus("a 01\nb 01", nchar=3), "there are 1 leaves|leaf 'a' has"),
        (nexus("a 01\nb 01", nchar=1), "leaf 'a' has 2 sites, but the header has 1"),
        (nexus("a 01\nb 0"), "leaf 'b' has 1 sites, but the header has 2"),
        (nexus("a 01\na 01"), "two leaves have the name 'a'"),
        (nexus("a 0\nb 1\na 1\nb 01", "interleave"), "leaf 'b' has 3 sites"),
        (nexus("a 01\nb 0(1"), "'\\(' without its pair"),
        (nexus("a 01\nb 02"), "leaf 'b' at site 1, .* got '2'"),
        (nexus("a 01\nb 01", "transpose"), "with transpose cannot be read"),
        (nexus("a 01\nb 01", "nolabels tokens"), "with nolabels, tokens cannot"),
        (nexus("a 01\nb 01", 'equate="x=0"'), "with equate cannot be read"),
        (nexus("a 01\nb 01", "datatype=continuous"), "datatype=continuous"),
        (nexus("a 01\nb 01", "labels=right"), "labels=right"),
        (nexus("a 01\nb 01", more="eliminate 1;"), "eliminate"),
        (nexus("a 01\nb 01", more="taxlabels a c;"), r"the leaves \['b', 'c'\]"),
        (nexus("a 01\nb 01 [never ends"), "comment that begins at .* never ends"),
        (nexus(""), "there are no leaves"),
        (nexus("a 01\nb 01", ntax=0), "there are 2 leaves, but the header has 0"),
        (nexus("'a 01\n'b 01"), "quote does not end on its line, \"'a 01"),
        (nexus("a 0.\nb 01", "matchchar=."), "first row has the MATCHCHAR '.'"),
        (nexus("'a 01\nb 01"), "odd number of apostrophes"),
    ],
)
def test_errors_of_texts(text, message):
    with pytest.raises(ValueError, match=message):
        read(text)


def test_phylip_that_can_be_read_in_two_ways():
    # Interleaved, the leaves are "a" and "bb"; sequential, they are "a" and "cc".
    text = "2 6\na AC\nbb AC\ncc AC\nACAC\n"
    with pytest.raises(ValueError, match="it can be read in two ways"):
        read(text, coding=None)


@pytest.mark.parametrize("coding", ["RY", "dna", 1])
def test_unknown_coding(coding):
    with pytest.raises(ValueError, match="coding must be 'binary', 'ry' or None, got"):
        read(">a\n0\n", coding=coding)


@pytest.mark.parametrize("source", [3, None, io.BytesIO(b">a\n0\n")])
def test_sources_of_other_types(source):
    with pytest.raises(TypeError, match="source must be a path or an open text file"):
        read_alignment(source)


def test_missing_pandas(monkeypatch):
    def without_pandas(name, *args, _import=builtins.__import__):
        if name == "pandas":
            raise ImportError(name)
        return _import(name, *args)

    assert find_spec("pandas")
    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match="read_alignment requires pandas"):
        read(">a\n0\n")


@pytest.mark.parametrize(
    "X, format, error, message",
    [
        ({"a": [0]}, "clustal", ValueError, "format must be one of .* got 'clustal'"),
        ({}, "fasta", ValueError, r"sites and leaves, got shape \(0, 0\)"),
        ({"a b": [0]}, "phylip", ValueError, "blank in the name of leaf 'a b'"),
        ({"a\nb": [0]}, "fasta", ValueError, "'a.*nb' must be one line"),
        ({" a": [0]}, "nexus", ValueError, "without blanks at its ends"),
        ({"": [0]}, "nexus", ValueError, "leaf 0 has no name"),
        ({1: [0], "1": [1]}, "nexus", ValueError, "two leaves have the name '1'"),
        ({"a": [0, 0.5]}, "nexus", ValueError, "leaf 'a' at site 1.* got '0.5'"),
        ({"a": ["A", ">"]}, "fasta", ValueError, "leaf 'a' at site 1.* got '>'"),
        ({"a": ["{01}"]}, "nexus", ValueError, "leaf 'a' at site 0.* got '.01.'"),
    ],
)
def test_errors_of_writing(X, format, error, message):
    with pytest.raises(error, match=message):
        written(pd.DataFrame(X), format)


def test_write_needs_a_data_frame_and_a_target():
    with pytest.raises(TypeError, match="X must be a data frame .* got ndarray"):
        written(np.zeros((2, 2)), "fasta")
    with pytest.raises(TypeError, match="target must be a path .* got int"):
        write_alignment(pd.DataFrame({"a": [0]}), 3, format="fasta")


@given(
    st.sampled_from(
        ["2 4\na 0101\nb 01?1\n", ">a\n01\n>b c\n01\n", INTERLEAVED, SEQUENTIAL]
    ),
    st.sampled_from(["", "interleave"]),
    st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from(["", *"01 \n;'[](){}>2=.,"]))
    ),
)
@settings(max_examples=200, deadline=None)
def test_broken_text_is_read_or_refused(text, interleave, changes):
    if text in (INTERLEAVED, SEQUENTIAL):
        text = NEXUS.format(interleave=interleave, matrix=text)
    for place, new in changes:
        place %= len(text)
        text = text[:place] + new + text[place + 1 :]
    try:
        X = read(text, coding=None)
    except ValueError as error:
        assert len(str(error)) > 20
    else:
        assert X.size
        assert X.columns.is_unique
