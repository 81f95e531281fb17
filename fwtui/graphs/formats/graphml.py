"""GraphML, read by NetworkX if installed: the edges' attribute "weight", or 1 if it is missing."""

from __future__ import annotations

import io
from xml.parsers import expat

from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.library_objects import of_networkx
from fwtui.graphs.number_lines import GraphFile

TITLE = "GraphML"
SUFFIXES = (".graphml",)
ORDER = 70
_MOST_TAGS = 4_000_000  # an edge has two to four; each takes up to a kilobyte while they are read


def _check_beginning(data: bytes, name: str) -> None:
    """Raises Refused if there is more before the first element than XML's own declaration, in whatever encoding it is."""

    def declared(*_: object) -> None:  # entities may expand beyond memory, and GraphML needs none
        raise Refused(f"{name} has a document type declaration, which GraphML does not need; remove it")

    def begun(element: str, _: object) -> None:
        raise _Begun

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler, parser.StartElementHandler = declared, begun
    try:
        parser.Parse(data, True)
    except Refused:
        raise
    except (_Begun, expat.ExpatError, ValueError, LookupError):  # NetworkX says what is wrong
        pass


class _Begun(Exception):
    """The first element is there."""


def read(source: GraphFile) -> Adjacency:
    """Raises Refused if the file is not GraphML or NetworkX is missing."""
    name, data = source.name, source.file.read()
    _check_beginning(data, name)
    tags = data.count(b"<")
    if tags > _MOST_TAGS:
        raise Refused(f"{name} has {tags:,} tags, more than {_MOST_TAGS:,}, the limit; save it as .csv, which is read in blocks")
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
