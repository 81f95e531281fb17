"""Parquet, read by pyarrow if installed: a table of edges with the columns source, target and weight."""

from __future__ import annotations

from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.common.units import memory
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.edge_tables import arrow, of_table
from fwtui.graphs.formats.table import named_columns
from fwtui.graphs.number_lines import GraphFile

TITLE = "Parquet"
SUFFIXES = (".parquet",)
ORDER = 65
ARRAYS = True
_EDGE = 40  # bytes of an edge in memory, at least


def read(source: GraphFile) -> Adjacency:
    """Raises Refused if the file is not Parquet, has no edges, or pyarrow is missing."""
    name = source.name
    pyarrow = arrow(f"{name} is Parquet, which")
    from pyarrow.parquet import ParquetFile  # pyright: ignore[reportMissingImports]

    data = source.file.read()
    try:
        file = ParquetFile(pyarrow.BufferReader(data))
        rows, titles = file.metadata.num_rows, file.schema_arrow.names
        if rows * _EDGE > source.most:
            raise Refused(f"{name} has {rows:,} rows, and {memory(source.most)} can be used; choose a smaller graph")
        columns = named_columns(titles)
        # the other columns stay unread
        wanted = (
            None if columns is None else [titles[c] for c in (columns.source, columns.target, columns.weight) if c is not None]
        )
        table = file.read(columns=wanted)
    except (pyarrow.ArrowException, OSError) as error:
        words = clean(str(error))[:80] or type(error).__name__
        raise Refused(f"{name} is not Parquet that pyarrow can read: {words}; save it again") from None
    return of_table(table, name)
