"""The text of alignments: FASTA, PHYLIP and NEXUS."""

import os
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

# A polymorphic token of NEXUS, such as {01}, is one symbol: a character that nobody uses.
PRIVATE = 0xF0000
QUOTED = r"'(?:[^']|'')*'"
BRACKET = re.compile(r"[\[\]]")
BRACKET_OR_QUOTE = re.compile(r"\[|'[^']*'")  # within comments no quotes count


class Alignment(NamedTuple):
    """The symbols of a text."""

    names: list
    symbols: np.ndarray  # (n_leaves, n_sites), dtype U1
    missing: str = "?-"
    tokens: dict = {}  # polymorphic token -> the character in its place


def text_of(source):
    """Return the text of a path or of an open text file."""
    if hasattr(source, "read"):
        text = source.read()
    elif isinstance(source, str | os.PathLike):
        text = Path(source).read_text(encoding="utf-8")
    else:
        text = None
    if not isinstance(text, str):
        raise TypeError(
            "source must be a path or an open text file, got "
            f"{type(source).__name__}{' of bytes' if isinstance(text, bytes) else ''}."
        )
    return text.removeprefix("\ufeff")


def write_text(text, target):
    """Write a text to a path or to an open text file."""
    if hasattr(target, "write"):
        target.write(text)
    elif isinstance(target, str | os.PathLike):
        Path(target).write_text(text, encoding="utf-8", newline="\n")
    else:
        raise TypeError(
            f"target must be a path or an open text file, got {type(target).__name__}."
        )


def read_any(text):
    """Return the alignment of a text whose first line tells its format."""
    text = text.lstrip()
    if text[:6].upper() == "#NEXUS":
        return read_nexus(text)
    if text.startswith(">"):
        return read_fasta(text)
    if re.match(r"\d+[ \t]+\d+[ \t]*(\n|\r|$)", text):
        return read_phylip(text)
    raise ValueError(
        "The text of an alignment must begin with '#NEXUS', with '>' (FASTA), or with "
        "the numbers of leaves and sites on the first line (PHYLIP); "
        + (f"it begins with {text[:20]!r}." if text else "it is empty.")
    )


def checked(names, sequences, n_leaves=None, n_sites=None):
    """Return names and sequences as an alignment of the size that a header told.

    Raises
    ------
    ValueError
        If the names are not unique, or a number does not fit.
    """
    if not names:
        raise ValueError("there are no leaves")
    if n_leaves is not None and len(names) != n_leaves:
        raise ValueError(
            f"there are {len(names)} leaves, but the header has {n_leaves}"
        )
    require_unique(names)
    expected = len(sequences[0]) if n_sites is None else n_sites
    of_what = f"leaf {names[0]!r}" if n_sites is None else "the header"
    for name, sequence in zip(names, sequences, strict=True):
        if len(sequence) != expected:
            raise ValueError(
                f"leaf {name!r} has {len(sequence)} sites, but {of_what} has {expected}"
            )
    if not expected:
        raise ValueError("there are no sites")
    return Alignment(names, symbols_of(sequences))


def require_unique(names):
    """Raise a ValueError unless every leaf has a name of its own."""
    seen = set()
    for place, name in enumerate(names):
        if not name:
            raise ValueError(f"leaf {place} has no name")
        if name in seen:
            raise ValueError(f"two leaves have the name {name!r}")
        seen.add(name)


def symbols_of(sequences):
    """Return the characters of strings of one length, an array of dtype U1."""
    characters = np.frombuffer("".join(sequences).encode("utf-32-le"), dtype="<U1")
    return characters.reshape(len(sequences), -1)


def squeezed(text):
    """Return a text without its blanks."""
    return "".join(text.split())


def sequential(lines, n_sites, cut, squeezed=squeezed):
    """Return names and sequences of leaves that follow each other, on any lines each.

    ``cut`` splits the first line of a leaf into its name and the rest.
    """
    names, sequences, length = [], [], n_sites
    for line in lines:
        if length >= n_sites:
            name, line = cut(line)
            names.append(name)
            sequences.append([])
            length = 0
        sequences[-1].append(squeezed(line))
        length += len(sequences[-1][-1])
    return names, ["".join(pieces) for pieces in sequences]


def read_fasta(text):
    """Return the alignment of FASTA text; the whole header line is the label."""
    names, sequences = [], []
    for line in text.splitlines():
        if line.startswith(">"):
            names.append(line[1:].strip())
            sequences.append([])
        else:
            sequences[-1].append(squeezed(line))
    try:
        return checked(names, ["".join(pieces) for pieces in sequences])
    except ValueError as error:
        raise ValueError(f"Malformed FASTA text: {error}.") from None


def read_phylip(text):
    """Return the alignment of PHYLIP text.

    Nothing in the text tells whether names have 10 columns or end at a blank, nor
    whether leaves follow each other or are interleaved; the numbers of the header do.
    """
    header, *lines = (line for line in text.splitlines() if line.strip())
    n_leaves, n_sites = map(int, header.split())

    def relaxed(line):
        name, *rest = line.split(maxsplit=1)
        return name, "".join(rest)

    def strict(line):
        return line[:10].strip(), line[10:]

    def interleaved(lines, n_sites, cut):
        if not lines or not n_leaves or len(lines) % n_leaves:
            raise ValueError(f"{len(lines)} lines are no blocks of {n_leaves} leaves")
        names, firsts = zip(*map(cut, lines[:n_leaves]), strict=True)
        later = [lines[n_leaves + leaf :: n_leaves] for leaf in range(n_leaves)]
        rows = zip(firsts, later, strict=True)
        return list(names), [squeezed(first + "".join(rest)) for first, rest in rows]

    readings, reasons = [], []
    for layout in [sequential, interleaved]:
        for cut in [relaxed, strict]:
            try:
                names, sequences = layout(lines, n_sites, cut)
                found = checked(names, sequences, n_leaves, n_sites)
            except ValueError as error:
                reasons.append(f"{layout.__name__} with {cut.__name__} names: {error}")
                continue
            if not any(_same(found, other) for other in readings):
                readings.append(found)
    if len(readings) == 1:
        return readings[0]
    raise ValueError(
        f"Malformed PHYLIP text for a header of {n_leaves} leaves and {n_sites} sites: "
        + ("it can be read in two ways" if readings else "; ".join(reasons))
        + "."
    )


def _same(one, other):
    return one.names == other.names and np.array_equal(one.symbols, other.symbols)


def after_comment(text, start):
    """Return the position after a comment in square brackets, which may nest; or None."""
    depth = 0
    for bracket in BRACKET.finditer(text, start):
        depth += 1 if bracket[0] == "[" else -1
        if not depth:
            return bracket.end()
    return None


def without_comments(text):
    """Return NEXUS or Newick text without comments."""
    kept, start, place = [], 0, 0
    while found := BRACKET_OR_QUOTE.search(text, place):
        place = found.end()
        if found[0] == "[":
            kept.append(text[start : found.start()])
            start = place = after_comment(text, found.start())
            if place is None:
                raise ValueError(
                    f"The comment that begins at position {found.start()} never ends."
                )
    return "".join(kept) + text[start:]


def commands(text):
    """Return the commands of NEXUS text without comments, which end with semicolons."""
    if text.count("'") % 2:
        raise ValueError(
            "The text has an odd number of apostrophes, so a quote never ends; within "
            "quotes, an apostrophe is written as two."
        )
    found = re.findall(r"((?:[^';]++|'[^']*')*+)(?:;|\Z)", text)
    return [command.strip() for command in found if command.strip()]


def words(text, separators=""):
    """Return the labels in a text, without their quotes."""
    return [
        unquoted(word) for word in re.findall(rf"{QUOTED}|[^\s'{separators}]+", text)
    ]


def unquoted(word):
    """Return a label without its quotes."""
    return word[1:-1].replace("''", "'") if word.startswith("'") else word


def blocks(text):
    """Yield block, command and the rest of it, of NEXUS text."""
    block = ""
    for command in commands(without_comments(text.lstrip()[len("#NEXUS") :])):
        key, *rest = command.split(maxsplit=1)
        key, rest = key.lower(), "".join(rest)
        if key == "begin":
            block = rest.lower()
        yield block, key, rest


def read_nexus(text):
    """Return the alignment of the DATA or CHARACTERS block of NEXUS text."""
    counts, settings, labels, matrices = {}, {}, [], []
    for block, key, rest in blocks(text):
        if block not in ("taxa", "data", "characters"):
            continue
        if key == "dimensions":
            found = re.findall(r"(\w+)\s*=\s*(\d+)", rest)
            counts |= {name.lower(): int(count) for name, count in found}
        elif key == "format":
            settings |= _settings(rest)
        elif key == "taxlabels":
            labels = words(rest)
        elif key == "matrix":
            matrices.append(rest)
        elif key == "eliminate":
            settings["eliminate"] = rest
    if len(matrices) != 1 or "nchar" not in counts:
        raise ValueError(
            "NEXUS text must have one DATA or CHARACTERS block, with NCHAR in its "
            f"DIMENSIONS; got {len(matrices)} such blocks, and DIMENSIONS {counts}."
        )
    _require_known(settings)
    try:
        return _matrix(matrices[0], counts, settings, labels)
    except ValueError as error:
        raise ValueError(f"Malformed NEXUS text: {error}.") from None


def _settings(text):
    pattern = r"""(\w+)\s*(?:=\s*("[^"]*"|\w+\s*\([^)]*\)|\S+))?"""
    return {key.lower(): value.lower() for key, value in re.findall(pattern, text)}


def _require_known(settings):
    """Raise a ValueError for what would give the matrix another meaning."""
    unknown = {"transpose", "nolabels", "tokens", "equate", "eliminate"} & {
        key for key, value in settings.items() if value != "no"
    }
    if settings.get("datatype") == "continuous":
        unknown.add("datatype=continuous")
    if settings.get("labels") == "right":
        unknown.add("labels=right")
    if unknown:
        raise ValueError(
            f"NEXUS text with {', '.join(sorted(unknown))} cannot be read; write the "
            "matrix with one row a leaf, label first, and one symbol a site."
        )


def _matrix(matrix, counts, settings, labels):
    tokens = {}

    def packed(line):
        """Return symbols without blanks, one character for a polymorphic token."""
        line = re.sub(
            r"\([^()]*\)|\{[^{}]*\}",
            lambda token: tokens.setdefault(
                squeezed(token[0]), chr(PRIVATE + len(tokens))
            ),
            line,
        )
        if lost := re.search(r"[(){}]", line):
            raise ValueError(f"{lost[0]!r} without its pair on a line of the matrix")
        return squeezed(line)

    def cut(line):
        label = re.match(rf"\s*({QUOTED}|[^\s']\S*)", line)
        if not label:
            raise ValueError(f"a quote does not end on its line, {line[:20]!r}")
        return unquoted(label[1]), line[label.end() :]

    lines = [line for line in matrix.splitlines() if line.strip()]
    if settings.get("interleave", "no") != "no":
        rows = {}
        for name, rest in map(cut, lines):
            rows.setdefault(name, []).append(packed(rest))
        names, sequences = list(rows), ["".join(row) for row in rows.values()]
    else:
        names, sequences = sequential(lines, counts["nchar"], cut, packed)
    found = checked(
        _renamed(names, labels), sequences, counts.get("ntax"), counts["nchar"]
    )
    symbols, match = found.symbols, settings.get("matchchar")
    if match:
        # Settings are in lower case.
        is_match = (symbols == match) | (symbols == match.upper())
        if is_match[0].any():
            raise ValueError(f"the first row has the MATCHCHAR {match!r}")
        symbols = np.where(is_match, symbols[0], symbols)
    declared = settings.get("missing", "") + settings.get("gap", "")
    missing = "?-" + declared + declared.upper()
    return found._replace(symbols=symbols, missing=missing, tokens=tokens)


def _renamed(names, labels):
    """Return the names of rows, which may be numbers of TAXLABELS."""
    if not labels:
        return names
    number = {str(i): label for i, label in enumerate(labels, 1)}
    names = [name if name in labels else number.get(name, name) for name in names]
    if odd := sorted(set(names) ^ set(labels)):
        raise ValueError(
            f"TAXLABELS and the rows of the matrix differ in the leaves {odd[:10]}"
        )
    return names


def fasta_text(names, sequences):
    """Return sequences as FASTA text."""
    rows = zip(names, sequences, strict=True)
    return "".join(f">{name}\n{sequence}\n" for name, sequence in rows)


def phylip_text(names, sequences):
    """Return sequences as sequential PHYLIP text with relaxed names."""
    for name in names:
        if len(name.split()) > 1:
            raise ValueError(
                f"PHYLIP text cannot hold the blank in the name of leaf {name!r}; rename "
                "the column, or choose format='nexus' or 'fasta'."
            )
    rows = "".join(f"{n}  {s}\n" for n, s in zip(names, sequences, strict=True))
    return f"{len(names)} {len(sequences[0])}\n{rows}"


def nexus_text(names, sequences):
    """Return sequences as NEXUS text with a DATA block."""
    symbols = set().union(*sequences) - set("?-")
    nucleotides = symbols <= set("ACGTURYKMSWBDHVNacgturykmswbdhvn")
    kind = "RNA" if symbols & set("Uu") else "DNA"
    standard = f'STANDARD SYMBOLS="{"".join(sorted(symbols))}"'
    rows = "".join(
        f"    {nexus_label(n)} {s}\n" for n, s in zip(names, sequences, strict=True)
    )
    return (
        "#NEXUS\nBEGIN DATA;\n"
        f"  DIMENSIONS NTAX={len(names)} NCHAR={len(sequences[0])};\n"
        f"  FORMAT DATATYPE={kind if symbols and nucleotides else standard}"
        " MISSING=? GAP=-;\n"
        f"  MATRIX\n{rows}  ;\nEND;\n"
    )


def nexus_label(name):
    """Return a label as NEXUS text, in quotes where it needs them."""
    if re.fullmatch(r"[\w.-]+", name):
        return name
    return "'" + name.replace("'", "''") + "'"
