"""GraphML by NetworkX, where that is installed: attribute "weight" of the edges, 1 where it is missing."""

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
    """Raises Refused for what is no GraphML, and where NetworkX is missing."""
    name, data = source.name, source.file.read()
    # entities may stand for more than the memory holds, and GraphML needs none
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise Refused(f"{name} has a document type declaration, which GraphML needs not; remove it")
    try:
        import networkx
    except ImportError:
        raise Refused(f"{name} needs NetworkX to be read; run `python -m pip install networkx`") from None
    try:
        graph = networkx.read_graphml(io.BytesIO(data))
    except Exception as error:  # NetworkX lets whatever goes wrong through: KeyError, ParseError, ValueError, ...
        words = clean(str(error))[:80] or type(error).__name__
        raise Refused(f"{name} is no GraphML that NetworkX reads: {words}; save it again") from None
    try:
        return of_networkx(graph)
    except Refused as refusal:
        raise Refused(f"{name}: {refusal}") from None
