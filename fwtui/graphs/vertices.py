"""The names of a graph's vertices."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property

from fwtui.common.errors import Refused
from fwtui.common.text import quoted, sanitise

_SHOWN = 6  # labels in a representation


class Vertices:
    """Distinct labels of the vertices 0 .. n - 1: integers, names, or objects such as NetworkX nodes."""

    def __init__(self, labels: Sequence[Hashable]):
        self.labels = labels

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        if self.numbered or len(self) <= _SHOWN:
            return f"Vertices({self.labels!r})"
        first = ", ".join(repr(label) for label in self.labels[: _SHOWN - 1])
        return f"Vertices([{first}, ..., {self.labels[-1]!r}], {len(self):,} in all)"

    @property
    def numbered(self) -> bool:
        """Return whether the labels are consecutive numbers, which a file does not have to store."""
        return isinstance(self.labels, range)

    def name(self, vertex: int) -> str:
        """Return a label as text that is safe to show on a terminal; see text for files."""
        return sanitise(self.text(vertex))

    def text(self, vertex: int) -> str:
        """Return a label as text without any change, for files and programs."""
        return str(self.labels[vertex])

    def index(self, name: str) -> int:
        """Return the vertex of that name. Raises Refused if there is none or two labels read alike."""
        numbers, plain = self._by_name, name.strip()
        vertex = next((numbers[form] for form in (name, plain, sanitise(plain), _whole(plain)) if form in numbers), None)
        if vertex is None:
            raise self._unknown(name)
        if vertex < 0:
            raise Refused(f"vertex {quoted(name)} is the name of several vertices; rename them in the file")
        return vertex

    def row(self, label: Hashable) -> int:
        """Return the vertex with this label, compared as an object and not as text. Raises Refused if there is none."""
        try:
            vertex = self._by_label.get(label)
        except TypeError:  # an unhashable label
            raise self._unknown(str(label)) from None
        if vertex is None and isinstance(label, str) and len(self) and all(isinstance(one, int) for one in self.labels):
            numbers = f"the vertices are numbers, {self.name(0)} to {self.name(len(self) - 1)}"
            raise Refused(f"{quoted(label)} is text, but {numbers}; pass one without quotes")
        if vertex is None:
            raise self._unknown(str(label))
        return vertex

    def _unknown(self, name: str) -> Refused:
        if not len(self):
            return Refused(f"there is no vertex {quoted(name)}; the graph is empty")
        first, last = quoted(self.name(0)), quoted(self.name(len(self) - 1))
        return Refused(f"there is no vertex {quoted(name)}; the first one is {first}, the last {last}")

    @cached_property
    def _by_label(self) -> dict[Hashable, int]:
        return {label: vertex for vertex, label in enumerate(self.labels)}

    @cached_property
    def _by_name(self) -> dict[str, int]:
        numbers: dict[str, int] = {}
        for vertex in range(len(self)):
            name = self.text(vertex)
            numbers[name] = -1 if name in numbers else vertex
            if (shown := sanitise(name)) != name:
                numbers[shown] = -1 if shown in numbers else vertex
        return numbers


def _whole(name: str) -> str:
    """Return 1 for 1.0, and any other name as it is."""
    whole, _, zeros = name.partition(".")
    return whole if zeros and not zeros.strip("0") else name
