"""Parquet, read by pyarrow if installed: a table of edges with the columns source, target and weight."""

from __future__ import annotations

from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.common.units import memory
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.columns import Roles
from fwtui.graphs.edge_tables import arrow, of_table, roles_in
from fwtui.graphs.text_rows import GraphFile

_SAMPLE = 200  # rows that show the roles of the columns
_EDGE = 40  # bytes of an edge in memory, at least


def read(source: GraphFile) -> Adjacency:
    """Read the edges. Raises Refused if the file is not Parquet, has no edges, or pyarrow is not installed."""
    name = source.name
    pyarrow = arrow(f"{name} is Parquet, which")
    from pyarrow.parquet import ParquetFile  # pyright: ignore[reportMissingImports]

    data = source.file.read()
    try:
        file = ParquetFile(pyarrow.BufferReader(data))
        rows = file.metadata.num_rows
        if rows * _EDGE > source.most:
            needed = f"{memory(rows * _EDGE)} for {rows:,} rows"
            raise Refused(f"{name} needs {needed}, but only {memory(source.most)} can be used; choose a smaller graph")
        begin = next(file.iter_batches(_SAMPLE), None)
        if begin is None:
            raise Refused(f"{name} has no rows; save a table with one row per edge")
        roles = roles_in(begin, name, source.weight)
        titles = file.schema_arrow.names
        table = file.read(columns=[titles[place] for place in roles.places])  # the other columns stay unread
    except (pyarrow.ArrowException, OSError) as error:
        reason = sanitise(str(error))[:80] or type(error).__name__
        raise Refused(f"{name} is not Parquet that pyarrow can read: {reason}; save it again") from None
    at = {place: table.column_names.index(titles[place]) for place in roles.places}
    weight, direction = (None if place is None else at[place] for place in (roles.weight, roles.direction))
    read_roles = Roles(at[roles.source], at[roles.target], weight, direction, roles.notes)
    return of_table(table, name, no_edge=source.no_edge, roles=read_roles)
