"""GraphML, read by NetworkX if installed: the edges' attribute "weight", or 1 if it is missing."""

from __future__ import annotations

import io

from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.library_objects import of_networkx
from fwtui.graphs.number_lines import Source

TITLE = "GraphML"
SUFFIXES = (".graphml",)
ORDER = 70


def read(source: Source) -> Adjacency:
    """Raises Refused if the file is not GraphML or NetworkX is missing."""
    name, data = source.name, source.file.read()
    # entities may expand beyond memory, and GraphML needs none
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise Refused(f"{name} has a document type declaration, which GraphML does not need; remove it")
    try:
        import networkx
    except ImportError:
        raise Refused(f"{name} needs NetworkX to be read; run `python -m pip install networkx`") from None
    try:
        graph = networkx.read_graphml(io.BytesIO(data))
    except Exception as error:  # NetworkX passes every error through: KeyError, ParseError, ValueError, ...
        words = clean(str(error))[:80] or type(error).__name__
        raise Refused(f"{name} is not GraphML that NetworkX can read: {words}; save it again") from None
    try:
        return of_networkx(graph)
    except Refused as refusal:
        raise Refused(f"{name}: {refusal}") from None
