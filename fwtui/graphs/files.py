"""Graph files of others: DIMACS .gr and Matrix Market .mtx, distrusted line by line.

Formats: the 9th DIMACS challenge's "Challenge format" (2006); Boisvert, Pozo & Remington, "The Matrix Market exchange
formats", NIST IR 5935 (1996).
"""

from __future__ import annotations

import codecs
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fwtui.errors import Refused
from fwtui.experiment import GRID
from fwtui.graphs import dimacs, matrixmarket
from fwtui.graphs.adjacency import keep_least
from fwtui.graphs.bounds import EXACT_INTEGER, EXACT_REAL
from fwtui.graphs.graph import GraphInput, blocks, survey
from fwtui.graphs.lines import CHUNK, Arcs, Layout, Table, parse
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
        with _opened(path, name) as file:
            size = os.fstat(file.fileno()).st_size
            shape = layout(file, name, size)
            _check_size(shape, name, dtype, max_vertices, free_bytes)
            return _filled(file, shape, name, dtype)
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror or error}; check the path and its permissions") from None
    except MemoryError:
        raise Refused(
            f"{name} does not fit into memory as a dense {dtype} matrix; choose a smaller graph or a smaller type"
        ) from None


def _opened(path: str, name: str) -> io.BufferedReader:
    try:
        # a FIFO would block here for ever without O_NONBLOCK
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        raise Refused(f"{name!r} is not a path; remove the zero bytes") from None
    file = os.fdopen(descriptor, "rb") if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    if file is None:
        os.close(descriptor)
        raise Refused(f"{name} is not a regular file; give a graph file")
    size = os.fstat(descriptor).st_size
    if size > MAX_BYTES:
        file.close()
        raise Refused(f"{name} has {size:,} bytes, more than {MAX_BYTES:,}; choose a smaller graph")
    if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
        file.seek(0)
    return file


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
    table = Table(name, layout, lambda weight: _unfit(weight, dtype))
    read_rows = arcs_read = 0
    largest = 0.0
    integer = exact = True
    for chunk, first_line in _chunks(file, layout, name):
        rows = parse(chunk, first_line, table)
        arcs = layout.arcs(rows, read_rows)
        read_rows += len(rows)
        arcs_read += len(arcs.weights)
        if dtype == "int16" and (arcs.weights < 0).any():
            raise Refused(
                f"{name} is skew-symmetric, so half its weights are negative, which int16 does not take; choose int32 or float32"
            )
        integer = integer and bool((arcs.weights == np.rint(arcs.weights)).all())
        exact = exact and bool((arcs.weights * GRID == np.rint(arcs.weights * GRID)).all())
        largest = max(largest, float(np.abs(arcs.weights).max(initial=0)))
        keep_least(matrix, arcs)
    if read_rows != layout.rows:
        raise Refused(
            f"{name} declares {layout.rows:,} entries and holds {read_rows:,}; fetch the file again, or correct the count"
        )
    if integer and dtype == "float32" and largest > EXACT_INTEGER:
        raise Refused(f"{name} has whole weights beyond {EXACT_INTEGER:,}, which float32 cannot hold exactly; choose int32")
    return _assembled(matrix, integer, exact, arcs_read, name)


def _chunks(file: io.BufferedReader, layout: Layout, name: str) -> Iterator[tuple[bytes, int]]:
    """The rest of the file in whole lines, each piece with the number of its first line."""
    line = layout.first_line
    while chunk := file.read(CHUNK):
        chunk += file.readline(CHUNK)
        if len(chunk) >= 2 * CHUNK:
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
    )
