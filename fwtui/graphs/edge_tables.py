"""Tables of edges from other libraries: pandas, polars, pyarrow, and whatever offers its rows as an Arrow stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import brief, clean, quoted
from fwtui.graphs.adjacency import Adjacency, Arcs
from fwtui.graphs.formats.table import named_columns

_SHOWN = 6  # titles in a message


def is_table(graph: Any) -> bool:
    """By the Arrow C stream or the dataframe interchange protocol."""
    return hasattr(graph, "__arrow_c_stream__") or hasattr(graph, "__dataframe__")


def arrow(what: str) -> Any:
    """The package pyarrow. Raises Refused if it is not installed."""
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise Refused(f"{what} needs pyarrow; run `python -m pip install pyarrow`, or install fwtui[arrow]") from None
    return pyarrow


def of_table(table: Any, name: str = "the table") -> Adjacency:
    """The edges in the columns source, target and, unless each counts 1, weight; see formats.table for other titles.

    Vertices are numbered in order of first appearance. Raises Refused.
    """
    if not _has_columns(table):
        table = arrow(f"{type(table).__name__}, which has no columns by name,").table(table)
    keys = list(getattr(table, "column_names", None) or table.columns)
    titles = [str(key) for key in keys]
    columns = named_columns(titles)
    if columns is None:
        few = ", ".join(brief(title) for title in titles[:_SHOWN]) + (", ..." if len(titles) > _SHOWN else "")
        raise Refused(f"{name} has the columns {few or 'none'}; name those of the edges source, target and weight")

    def column(place: int) -> np.ndarray:
        if titles.count(titles[place]) > 1:
            raise Refused(f"{name} has more than one column {quoted(titles[place])}; rename them")
        return np.asarray(table[keys[place]])

    numbers, labels = _numbered(column(columns.source), column(columns.target), name)
    weights = np.ones(len(numbers)) if columns.weight is None else _weights(column(columns.weight), name)
    if not len(weights):
        raise Refused(f"{name} has no rows; give a table with a row for each edge")
    return Adjacency(len(labels), labels, arcs=Arcs(numbers[:, 0], numbers[:, 1], weights))


def _has_columns(table: Any) -> bool:
    titles = getattr(table, "column_names", None) or getattr(table, "columns", ())
    try:
        return len(titles) > 0 and np.asarray(table[titles[0]]).ndim == 1
    except (KeyError, TypeError):
        return False


def _numbered(sources: np.ndarray, targets: np.ndarray, name: str) -> tuple[np.ndarray, list[Any]]:
    """(edges, 2) of vertex numbers, and the labels of the vertices: whole numbers if both columns have them, else texts."""
    ends = np.stack([_signed(sources), _signed(targets)], axis=1)
    if ends.dtype.kind == "f" and (ends == np.rint(ends)).all() and np.isfinite(ends).all():
        ends = ends.astype(np.int64)  # as libraries convert columns where something was missing
    if ends.dtype.kind in "iu":
        values, first, places = np.unique(ends.reshape(-1), return_index=True, return_inverse=True)
        order = np.argsort(first)
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        return number[places].reshape(-1, 2), values[order].tolist()
    number_of: dict[str, int] = {}
    numbers = np.empty(ends.shape, np.int64)
    text = ends.dtype.kind != "f"
    for row, pair in enumerate(ends.tolist()):
        for place, label in enumerate(pair):
            if not (isinstance(label, str | int) if text else label.is_integer()):
                what = ("source", "target")[place]
                raise Refused(f"{name}, row {row} has the {what} {quoted(str(label))}; give a text or a whole number")
            numbers[row, place] = number_of.setdefault(str(label), len(number_of))
    return numbers, list(number_of)


def _signed(column: np.ndarray) -> np.ndarray:
    """Beside an unsigned column NumPy would round a signed one to float64."""
    if column.dtype.kind != "u":
        return column
    return column.astype(np.int64 if column.max(initial=0) < 2**63 else object)


def _weights(column: np.ndarray, name: str) -> np.ndarray:
    try:
        weights = column.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise Refused(f"{name} has a weight that is not a number ({clean(str(error))[:60]}); correct it") from None
    wrong = np.flatnonzero(~np.isfinite(weights))
    if len(wrong):
        row = int(wrong[0])
        raise Refused(f"{name}, row {row} has the weight {weights[row]}; remove the row, or give a finite number")
    return weights
