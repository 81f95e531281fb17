"""GraphML, read by NetworkX if installed, and written without it; weights are an attribute of the edges."""

from __future__ import annotations

import io
import re
from typing import IO
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from fwtui.common.errors import Refused
from fwtui.common.text import quoted, sanitise
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.arc_lines import arc_count, comment, names_of, write_arcs
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.library_objects import of_networkx
from fwtui.graphs.text_rows import GraphFile

TITLE = "GraphML"
SUFFIXES = (".graphml",)
ORDER = 70
BEGINS = rb"\s*<"
_NOT_XML = "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]"
_EDGE_TAGS, _OTHER_TAGS = 4, 8  # tags of an edge; tags outside edges and vertices
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


def write(graph: GraphInput, file: IO[bytes], suffix: str) -> None:
    """Write the graph. Raises Refused for more edges than can be read again."""
    edges, most = arc_count(graph), (_MAX_TAGS - _OTHER_TAGS - graph.n) // _EDGE_TAGS
    if edges > most:
        raise Refused(f"{edges:,} edges are more than the limit of {most:,} for GraphML; choose .npz or .csv")
    names = [quoteattr(name) for name in names_of(graph)]
    if wrong := next((name for name in names if re.search(_NOT_XML, name)), None):
        raise Refused(f"{quoted(wrong)} has a control character, which XML cannot hold; choose .csv")
    kind = "long" if graph.integer else "double"
    file.write(
        f"""<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<desc>fwtui: {escape(comment(graph))}</desc>
<key id="weight" for="edge" attr.name="weight" attr.type="{kind}"/>
<graph edgedefault="directed">
""".encode()
    )
    file.write("".join(f"<node id={name}/>\n" for name in names).encode())
    write_arcs(graph, file, '<edge source=%s target=%s><data key="weight">%s</data></edge>\n', names)
    file.write(b"</graph>\n</graphml>\n")
