"""Tables of edges from other libraries: pandas, polars, pyarrow, and all objects that export an Arrow stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import quoted, sanitise
from fwtui.common.units import counted
from fwtui.graphs.adjacency import Adjacency, Arcs, graph_of_arcs
from fwtui.graphs.columns import ANY_WEIGHT, Roles, WeightChoice, both_ways_of, ends_among, listed, roles_of
from fwtui.graphs.vertex_numbers import NamedVertices, number_whole

_SAMPLE = 200  # rows that show whether a column holds numbers


def is_table(graph: Any) -> bool:
    """Return whether the object offers the Arrow C stream or the dataframe interchange protocol."""
    return hasattr(graph, "__arrow_c_stream__") or hasattr(graph, "__dataframe__")


def arrow(what: str) -> Any:
    """Import pyarrow and return it. Raises Refused if it is not installed."""
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise Refused(f"{what} needs pyarrow; run `python -m pip install pyarrow`, or install fwtui[arrow]") from None
    return pyarrow


def roles_in(table: Any, name: str, choice: WeightChoice) -> Roles:
    """Return the roles of a table's columns by their titles and numbers. Raises Refused if they are not clear."""
    keys = _keys(table)
    titles = [str(key) for key in keys]
    ends = ends_among(titles)
    if ends is None:
        raise Refused(f"{name} has the columns {listed(titles) or 'none'}; rename the edge columns to source, target and weight")

    def sample(place: int) -> list[Any]:
        if titles.count(titles[place]) > 1:
            return []
        return [value for value in np.asarray(table[keys[place]])[:_SAMPLE].tolist() if value is not None]

    return roles_of(titles, ends, sample, choice, name)


def of_table(
    table: Any,
    name: str = "the table",
    choice: WeightChoice = ANY_WEIGHT,
    no_edge: int | float | None = None,
    roles: Roles | None = None,
) -> Adjacency:
    """Return the edges in the columns source and target, and weight unless each edge counts 1; other titles: see graphs.columns.

    Integer vertices are in ascending order, all others in order of first appearance. `no_edge` is a weight that means no
    edge. Raises Refused.
    """
    if not _has_columns(table):
        table = arrow(f"{type(table).__name__}, which has no columns by name,").table(table)
    roles = roles or roles_in(table, name, choice)
    keys = _keys(table)

    def column(place: int) -> np.ndarray:
        return np.asarray(table[keys[place]])

    numbers, labels = _numbered(column(roles.source), column(roles.target), name)
    if not len(numbers):
        raise Refused(f"{name} has no rows; pass a table with one row per edge")
    weights = np.ones(len(numbers)) if roles.weight is None else _weights(column(roles.weight), name, no_edge)
    arcs, notes = Arcs(numbers[:, 0], numbers[:, 1], weights), roles.notes
    if roles.direction is not None:
        title = str(keys[roles.direction])
        back = both_ways_of([str(value) for value in column(roles.direction).tolist()], title, name)
        notes = (*notes, f"{counted(int(np.count_nonzero(back)), 'edge')} undirected by column {quoted(title)}")
        arcs = arcs.with_reverse(back)
    present = np.isfinite(arcs.weights)
    return graph_of_arcs(len(labels), labels, arcs if present.all() else Arcs(*(part[present] for part in arcs)), notes=notes)


def _keys(table: Any) -> list[Any]:
    """Return the keys of a table's columns, in order."""
    return list(table if isinstance(table, dict) else getattr(table, "column_names", None) or getattr(table, "columns", ()))


def _has_columns(table: Any) -> bool:
    keys = _keys(table)
    try:
        return len(keys) > 0 and np.asarray(table[keys[0]]).ndim == 1
    except (KeyError, TypeError):
        return False


def _numbered(sources: np.ndarray, targets: np.ndarray, name: str) -> tuple[np.ndarray, list[Any]]:
    """Return (edges, 2) vertex numbers and the labels of the vertices: integers if both columns have them, else text."""
    ends = np.stack([_signed(sources), _signed(targets)], axis=1)
    if ends.dtype.kind == "f" and (ends == np.rint(ends)).all() and np.isfinite(ends).all():
        ends = ends.astype(np.int64)  # libraries store integer columns with missing values as floats
    if ends.dtype.kind in "iu" and ends.size:
        places, values = number_whole(ends)
        return places, values.tolist()
    text = ends.dtype.kind != "f"
    for row, pair in enumerate(ends.tolist()):
        for what, label in zip(("source", "target"), pair, strict=True):
            if not (isinstance(label, str | int) if text else label.is_integer()):
                raise Refused(f"{name}, row {row} has the {what} {quoted(str(label))}; use text or an integer")
    vertices = NamedVertices()
    numbers = vertices.add(*([str(label) for label in column.tolist()] for column in ends.T))
    again, labels = vertices.merged()
    return again[numbers] if len(labels) else numbers, labels


def _signed(column: np.ndarray) -> np.ndarray:
    """Convert an unsigned column to signed: NumPy rounds a mix of both to float64."""
    if column.dtype.kind != "u":
        return column
    return column.astype(np.int64 if column.max(initial=0) < 2**63 else object)


def _weights(column: np.ndarray, name: str, no_edge: int | float | None) -> np.ndarray:
    """Return the weights as float64, +inf for no edge. Raises Refused for one that is not a finite number."""
    try:
        weights = column.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise Refused(f"{name} has a weight that is not a number ({sanitise(str(error))[:60]}); correct it") from None
    absent = np.zeros(len(weights), bool) if no_edge is None else weights == no_edge
    wrong = np.flatnonzero(~np.isfinite(weights) & ~absent)
    if len(wrong):
        row = int(wrong[0])
        raise Refused(f"{name}, row {row} has the weight {weights[row]}; remove the row, or pass a finite number")
    return np.where(absent, np.inf, weights) if absent.any() else weights
