"""Matrix Market: a banner, sizes, and an entry on each line.

scipy.io.mmread is not used: it does not name the line of a weight outside the data type, accepts four numbers in place of three,
rejects comments between entries, and allocates the declared size before it checks the file's size.
"""

from __future__ import annotations

from typing import IO

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.graphs.adjacency import Adjacency, Arcs, graph_of_arcs
from fwtui.graphs.arc_lines import arc_count, comment, write_arcs
from fwtui.graphs.columns import ENTRIES_NOTE, matrix_note, weights_note
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.text_rows import Form, GraphFile, Rows, arc_of_each, are_counts, gather

_FORMATS = ("coordinate", "array")
_FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def read(source: GraphFile) -> Adjacency:
    """Read a matrix; duplicate entries add up, as in SciPy. Raises Refused with file and line."""
    name = source.name
    source.weight.check_unused(name)
    form, field, symmetry = _banner(source)
    number, fields = next(source.header("%", first=2), (0, []))
    if not fields:
        raise Refused(f"{name} has no line with its sizes; put it after the banner")
    if not are_counts(fields):
        raise source.wrong(number, f"{sanitise(' '.join(fields))[:40]!r} is where the sizes should be; correct the line")
    sizes = [int(word) for word in fields]
    if len(sizes) != (takes := 3 if form == "coordinate" else 2):
        raise source.wrong(number, f"{form} takes {takes} sizes, not {len(sizes)}; correct the line")
    n = sizes[0]
    if n != sizes[1]:
        raise Refused(f"{name} is {n:,} x {sizes[1]:,}, and a graph's matrix is square; choose another file")
    rows = sizes[2] if form == "coordinate" else _stored(n, symmetry)
    columns = "w" if form == "array" else "uv" if field == "pattern" else "uvw"
    source.check_count(number, rows, "entries", 2 * len(columns) - 1)
    source.limits.check_size(n, name, "declares")

    def arcs(table: Rows, before: int) -> Arcs:
        entries = _dense(table.weights, before, n, symmetry) if form == "array" else arc_of_each(table)
        sign = -1.0 if symmetry == "skew-symmetric" else 1.0
        return entries if symmetry == "general" else entries.with_reverse(entries.sources != entries.targets, sign)

    gathered = gather(source, Form(columns, comment="%", high=n), number + 1, rows, arcs, np.add)
    found = gathered.all()
    if source.limits.dtype == "int16" and (found.weights < 0).any() and symmetry == "skew-symmetric":
        raise Refused(
            f"{name} is skew-symmetric, so half of its weights are negative, which int16 does not allow; choose int32 or float32"
        )
    note = weights_note(None) if field == "pattern" else matrix_note(n) if form == "array" else ENTRIES_NOTE
    return graph_of_arcs(n, range(1, n + 1), found, merged=gathered.merged, add=True, notes=(note,))


def write(graph: GraphInput, file: IO[bytes], suffix: str) -> None:
    field = "integer" if graph.integer else "real"
    size = f"{graph.n} {graph.n} {arc_count(graph)}"
    file.write(f"%%MatrixMarket matrix coordinate {field} general\n% fwtui: {comment(graph)}\n{size}\n".encode())
    write_arcs(graph, file, "%s %s %s\n", range(1, graph.n + 1))


def _banner(source: GraphFile) -> list[str]:
    """Return format, field and symmetry. Raises Refused if one of them is not supported."""
    banner = source.file.readline(1 << 12).decode("latin1").lower().split()
    if len(banner) != 5 or banner[0] not in ("%%matrixmarket", "%matrixmarket") or banner[1] != "matrix":
        way = "begin with '%%MatrixMarket matrix coordinate real general'"
        raise Refused(f"{source.name}, line 1 is not a Matrix Market banner; {way}")
    form, field, symmetry = banner[2:]
    for word, allowed in ((form, _FORMATS), (field, _FIELDS), (symmetry, _SYMMETRIES)):
        if word not in allowed:
            raise source.wrong(1, f"{sanitise(word)[:40]!r} matrices are not supported; convert it to {' or '.join(allowed)}")
    if field == "pattern" and (form == "array" or symmetry == "skew-symmetric"):
        raise source.wrong(1, f"a pattern cannot be {form} and {symmetry}; convert it to coordinate general")
    return banner[2:]


def _stored(n: int, symmetry: str) -> int:
    """Return the number of entries in the file of a dense matrix."""
    return {"general": n * n, "symmetric": n * (n + 1) // 2, "skew-symmetric": n * (n - 1) // 2}[symmetry]


def _dense(table: np.ndarray, before: int, n: int, symmetry: str) -> Arcs:
    """Return the arcs of entries in column order; zero means no edge.

    In symmetric matrices columns begin at the diagonal (skew-symmetric: below it).
    """
    position = np.arange(before, before + len(table), dtype=np.int64)
    position = position[position < _stored(n, symmetry)]  # too many entries are an error at the end of the file
    if symmetry == "general":
        columns, rows = np.divmod(position, n)
    else:
        skew = int(symmetry == "skew-symmetric")
        lengths = n - skew - np.arange(n, dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        columns = np.searchsorted(starts[: n - skew], position, side="right") - 1
        rows = position - starts[columns] + columns + skew
    weights = table[: len(position), 0]
    present = weights != 0
    return Arcs(rows[present], columns[present], weights[present])
