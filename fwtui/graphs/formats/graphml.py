"""GraphML, read by NetworkX if installed; weights are an attribute of the edges."""

from __future__ import annotations

import io
from xml.parsers import expat

from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.library_objects import of_networkx
from fwtui.graphs.text_rows import GraphFile

_MAX_TAGS = 4_000_000  # an edge has two to four; each takes up to a kilobyte while they are read


def _defaults(data: bytes, name: str) -> dict[str, str]:
    """Return the defaults of the attributes of edges by name; NetworkX returns only the last one.

    Raises Refused for a document type declaration, and for more than one graph, of which NetworkX reads the first.
    """
    defaults: dict[str, str] = {}
    key, graphs = "", 0

    def declared(*_: object) -> None:  # entities may expand beyond memory, and GraphML needs none
        raise Refused(f"{name} has a document type declaration, which GraphML does not need; remove it")

    def begin(element: str, attributes: dict[str, str]) -> None:
        nonlocal key, graphs
        tag = element.rpartition(":")[2]
        graphs += tag == "graph"
        if tag == "key":
            key = attributes.get("attr.name", "") if attributes.get("for", "all") in ("edge", "all") else ""
        if graphs > 1:
            raise Refused(f"{name} holds more than one graph; save each graph in a separate file")
        parser.CharacterDataHandler = text if tag == "default" and key else None

    def text(data: str) -> None:
        defaults[key] = (defaults.get(key, "") + data).strip()

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler, parser.StartElementHandler = declared, begin
    try:
        parser.Parse(data, True)
    except Refused:
        raise
    except (expat.ExpatError, ValueError, LookupError):  # NetworkX reports the error
        pass
    return defaults


def read(source: GraphFile) -> Adjacency:
    """Read the graph. Raises Refused if the file is not GraphML or NetworkX is not installed."""
    name, data = source.name, source.file.read()
    tags = data.count(b"<")
    if tags > _MAX_TAGS:
        raise Refused(f"{name} has {tags:,} tags, more than the limit of {_MAX_TAGS:,}; save it as .csv, which is read in blocks")
    defaults = _defaults(data, name)
    try:
        import networkx
    except ImportError:
        raise Refused(f"{name} needs NetworkX to be read; run `python -m pip install networkx`") from None
    try:
        graph = networkx.read_graphml(io.BytesIO(data))
    except Exception as error:  # NetworkX passes every error through: KeyError, ParseError, ValueError, ...
        reason = sanitise(str(error))[:80] or type(error).__name__
        raise Refused(f"{name} is not GraphML that NetworkX can read: {reason}; save it again") from None
    graph.graph["edge_default"] = defaults
    return of_networkx(graph, source.weight, name, source.no_edge, complete=True)
