"""Graph files of others: DIMACS .gr and Matrix Market .mtx, distrusted line by line.

Formats: the 9th DIMACS challenge's "Challenge format" (2006); Boisvert, Pozo & Remington, "The Matrix Market exchange
formats", NIST IR 5935 (1996).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from fwtui.errors import Refused
from fwtui.experiment import GRID
from fwtui.graphs import dimacs, matrixmarket
from fwtui.graphs.adjacency import keep_least
from fwtui.graphs.bounds import EXACT_INTEGER, EXACT_REAL
from fwtui.graphs.graph import GraphInput, blocks, survey
from fwtui.graphs.lines import CHUNK, Arcs, Layout, Table, parse
from fwtui.graphs.opening import opened
from fwtui.graphs.vertices import Vertices
from fwtui.text import clean
from kernels.plan import ITEMSIZE, NO_EDGE

MAX_BYTES = 256 * 2**20
MAX_WEIGHT = 1e15  # what an event can state
_COPIES, _CANONICAL = 5, 4  # of the matrix while a run works on it, and bytes a cell of its checked result


def read(path: str, dtype: str, max_vertices: int = 65536, free_bytes: int | None = None) -> GraphInput:
    """The graph in a .gr or .mtx file as a dense matrix of dtype. Only Refused leaves: it names file, line and way out.

    Parallel arcs and duplicate entries keep the least weight; positive self-loops are ignored, negative ones kept.
    Declared sizes are checked against max_vertices and free_bytes (by default what the machine has free) first.
    """
    name = clean(Path(path).name)
    layout = {".gr": dimacs.layout, ".mtx": matrixmarket.layout}.get(Path(path).suffix.lower())
    if layout is None:
        raise Refused(f"{name!r} ends in neither .gr nor .mtx; convert it to DIMACS or Matrix Market")
    if free_bytes is None:
        import psutil

        free_bytes = psutil.virtual_memory().available
    try:
        with opened(path, name, MAX_BYTES) as (file, size):
            shape = layout(file, name, size)
            _check_size(shape, name, dtype, max_vertices, free_bytes)
            return _filled(file, shape, name, dtype)
    except MemoryError:
        raise Refused(
            f"{name} does not fit into memory as a dense {dtype} matrix; choose a smaller graph or a smaller type"
        ) from None


def _check_size(layout: Layout, name: str, dtype: str, max_vertices: int, free_bytes: int) -> None:
    if not 1 <= layout.n <= max_vertices:
        raise Refused(f"{name} declares {layout.n:,} vertices, outside 1 to {max_vertices:,}; choose another graph")
    needed = layout.n**2 * (ITEMSIZE[dtype] * _COPIES + _CANONICAL)
    if needed > free_bytes:
        raise Refused(
            f"{name} needs {needed / 2**30:.3g} GiB for {layout.n:,} vertices in {dtype}, "
            f"and {free_bytes / 2**30:.3g} GiB are free; choose a smaller graph or a smaller type"
        )


def _filled(file: io.BufferedReader, layout: Layout, name: str, dtype: str) -> GraphInput:
    matrix = np.full((layout.n, layout.n), NO_EDGE[dtype], dtype=dtype)
    np.fill_diagonal(matrix, 0)
    arcs_read = 0
    largest = 0.0
    integer = exact = True
    for arcs in arcs_in(file, layout, name, lambda weight: _unfit(weight, dtype)):
        arcs_read += len(arcs.weights)
        if dtype == "int16" and (arcs.weights < 0).any():
            raise Refused(
                f"{name} is skew-symmetric, so half its weights are negative, which int16 does not take; choose int32 or float32"
            )
        integer = integer and bool((arcs.weights == np.rint(arcs.weights)).all())
        exact = exact and bool((arcs.weights * GRID == np.rint(arcs.weights * GRID)).all())
        largest = max(largest, float(np.abs(arcs.weights).max(initial=0)))
        keep_least(matrix, arcs)
    if integer and dtype == "float32" and largest > EXACT_INTEGER:
        raise Refused(f"{name} has whole weights beyond {EXACT_INTEGER:,}, which float32 cannot hold exactly; choose int32")
    return _assembled(matrix, integer, exact, arcs_read, name)


def arcs_in(file: io.BufferedReader, layout: Layout, name: str, unfit: Callable[[float], str | None]) -> Iterator[Arcs]:
    """The rest of the file, some lines at a time. Raises Refused for lines and counts that are wrong."""
    table = Table(name, layout, unfit)
    read_rows = 0
    for chunk, first_line in _chunks(file, layout, name):
        rows = parse(chunk, first_line, table)
        yield layout.arcs(rows, read_rows)
        read_rows += len(rows)
    if layout.rows is not None and read_rows != layout.rows:
        raise Refused(
            f"{name} declares {layout.rows:,} entries and holds {read_rows:,}; fetch the file again, or correct the count"
        )


def _chunks(file: io.BufferedReader, layout: Layout, name: str) -> Iterator[tuple[bytes, int]]:
    """The rest of the file in whole lines, each piece with the number of its first line."""
    line = layout.first_line
    head = layout.head
    while chunk := head + file.read(CHUNK):
        head = b""
        chunk += file.readline(CHUNK)
        if len(chunk) >= 2 * CHUNK + len(layout.head):
            raise Refused(f"{name} has a line of more than {CHUNK:,} bytes after line {line}; break it up")
        yield chunk, line
        line += chunk.count(b"\n")


def _unfit(weight: float, dtype: str) -> str | None:
    """Why a weight cannot be stored, or None."""
    if not np.isfinite(weight):
        return "is not a finite number; remove the line"
    if dtype == "float32":
        return f"is beyond {MAX_WEIGHT:g}; scale the weights down" if abs(weight) > MAX_WEIGHT else None
    if weight != int(weight):
        return f"is not a whole number, as {dtype} needs; choose float32"
    if dtype == "int16" and weight < 0:
        return "is negative, which int16 does not take; choose int32 or float32"
    if abs(weight) >= NO_EDGE[dtype]:
        way = "int32" if dtype == "int16" else "smaller weights"
        return f"does not fit {dtype}, which ends at {NO_EDGE[dtype] - 1}; choose {way}"
    return None


def _assembled(matrix: np.ndarray, integer: bool, exact: bool, arcs: int, name: str) -> GraphInput:
    n = len(matrix)
    if matrix.dtype.kind == "f":
        for rows in blocks(matrix):
            matrix[rows] += 0  # -0 becomes 0
    edges, negative, low, high = survey(matrix)
    widest = max(abs(low or 0), abs(high or 0)) * (n - 1)
    drift = (n - 1) * -low if low is not None and low < 0 else 0
    ignored = arcs - edges
    return GraphInput(
        matrix=matrix,
        integer=integer,
        edges=edges,
        low=low,
        high=high,
        negative_share=negative / edges if edges else None,
        drift=int(drift) if integer else drift,
        exact_sums=integer or (exact and 3 * widest < EXACT_REAL),
        name=name,
        note=f"{ignored:,} of {arcs:,} arcs are parallel or self-loops" if ignored else "",
        vertices=Vertices(range(1, n + 1)),
    )
