"""Options of every command that reads a graph file."""

from __future__ import annotations

from typing import NamedTuple

from fwtui.common.errors import Refused
from fwtui.common.text import quoted

STDIN = "-"  # the path of standard input
AUTO = "auto"
UNWEIGHTED = "none"
WEIGHT_HELP = (
    "column or attribute of the weights in the graph file, none to count each edge 1, or auto for weight or a similar name"
)
NO_EDGE_HELP = "weight that means no edge in the graph file, such as 1073741823, or inf for none but +inf and NaN"
UNDIRECTED_HELP = "use every edge of the graph file in both directions, also if the file is directed"


class FileOptions(NamedTuple):
    """The user's choices for reading a graph file."""

    weight: str = AUTO  # AUTO, UNWEIGHTED, or the name of a column or attribute
    no_edge: str = ""  # a number; empty: not chosen
    undirected: bool = False


def parse_no_edge(text: str) -> int | float | None:
    """Return the weight that means no edge; None for an empty text. Raises Refused if it is not a number."""
    try:
        return (int(text) if text.lstrip("-").isdecimal() else float(text)) if text else None
    except ValueError:
        raise Refused(f"no-edge {quoted(text)} is not a number; pass a weight such as 1073741823, or inf") from None
