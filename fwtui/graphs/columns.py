"""The roles of columns and attributes, found by their names: source, target and weight of an edge."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import excerpt, quoted
from fwtui.graphs.file_options import AUTO

_SHOWN = 8  # names in a message
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")  # tokens of snake_case and camelCase
_SOURCE = {"source", "src", "from", "start", "tail", "u", "origin", "orig", "sender"}
_TARGET = {"target", "dst", "to", "end", "head", "v", "destination", "dest", "receiver"}
_VERTEX = {"node", "nodes", "vertex", "vertices", "id", "ids", "name", "key", "code", "station", "stop", "city", "airport"}
_NUMBERED = ({"1", "a"}, {"2", "b"})  # suffixes of source and target, as in node_1 and node_2
_WEIGHT = {"weight", "weights"}
_WEIGHTS = {"cost", "costs", "length", "len", "distance", "dist", "value", "val", "time", "duration", "km", "miles", "minutes"}
_NO_WEIGHT = {"start", "end", "begin", "date", "stamp", "unit", "id"}  # tokens of a name such as start_time or value_id
_DIRECTION = {"type", "directed", "undirected", "bidirectional", "direction", "directedness"}
_DIRECTED = {"undirected": False, "bidirectional": False, "mutual": False, "both": False, "directed": True}
_YES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}  # values of a column such as directed
_IDENTIFIER = {"id", "ids", "key", "index", "osmid", "unnamed"}


def tokens_of(title: str) -> list[str]:
    """Split a name into tokens in lower case: ["weight", "km"] for weight_km, weightKm and "Weight (km)"."""
    return [token.lower() for token in _WORDS.findall(title)]


def ends_among(titles: Sequence[str]) -> tuple[int, int] | None:
    """Return the places of source and target among the titles; None if the titles do not name both."""
    found: list[int] = []
    for known, numbers in zip((_SOURCE, _TARGET), _NUMBERED, strict=True):
        matches: list[tuple[int, int]] = []
        for place, title in enumerate(titles):
            tokens = tokens_of(title)
            rest = {token for token in tokens if token not in _VERTEX}
            if len(rest) == 1 and (rest <= known or (rest <= numbers and len(tokens) > 1)):
                matches.append((len(tokens), place))
        if not matches:
            return None
        found.append(min(matches)[1])
    return found[0], found[1]


def listed(titles: Sequence[object]) -> str:
    """Return the first names of a list, for a message."""
    return ", ".join(excerpt(str(title)) for title in titles[:_SHOWN]) + (", ..." if len(titles) > _SHOWN else "")


class WeightChoice(NamedTuple):
    """The column or attribute that holds the weights, as the user chose it, and how to choose another one."""

    name: Hashable | None = AUTO  # AUTO: found by its name; None: each edge counts 1
    way: str = "name the column of weights weight"

    def among(
        self, titles: Sequence[Hashable], has_numbers: Callable[[int], bool], where: str, noun: str = "column"
    ) -> int | None:
        """Return the place of the weights among the titles, or None if each edge counts 1.

        `has_numbers` takes a place. Raises Refused if the chosen name does not exist, if several names are equally likely, or
        if only columns with unknown names hold numbers.
        """
        if self.name is None:
            return None
        if self.name != AUTO:
            return self._chosen(titles, where, noun)
        ranks = [_rank(str(title)) for title in titles]
        likely = [place for place, rank in enumerate(ranks) if rank == 0 or (rank is not None and has_numbers(place))]
        best = min((ranks[place] or 0 for place in likely), default=0)
        likely = [place for place in likely if ranks[place] == best]
        if len(likely) > 1:
            names = listed([titles[place] for place in likely])
            raise Refused(f"{where} has several {noun}s that may be the weights: {names}; {self.way}")
        if likely:
            return likely[0]
        numeric = [title for place, title in enumerate(titles) if not is_identifier(str(title)) and has_numbers(place)]
        if numeric:
            raise Refused(f"{where} has numbers in {noun}s that may or may not be weights: {listed(numeric)}; {self.way}")
        return None

    def _chosen(self, titles: Sequence[Hashable], where: str, noun: str) -> int:
        """Return the place of the chosen name. Raises Refused if there is none or more than one."""
        places = [place for place, title in enumerate(titles) if title == self.name]
        if not places:
            places = [place for place, title in enumerate(titles) if str(title).lower() == str(self.name).lower()]
        if len(places) == 1:
            return places[0]
        which = "more than one" if places else "no"
        raise Refused(f"{where} has {which} {noun} {quoted(str(self.name))} for weights; its {noun}s: {listed(titles) or 'none'}")

    def check_unused(self, where: str) -> None:
        """Raise Refused if a name was chosen, for files and objects without names."""
        if self.name not in (AUTO, None):
            raise Refused(f"{where} has no columns with names, so {quoted(str(self.name))} cannot name its weights; omit it")


ANY_WEIGHT = WeightChoice(way="pass weight=NAME, or weight=None if each edge counts 1")


ENTRIES_NOTE = "weights from the entries of the sparse matrix"


def matrix_note(n: int) -> str:
    """Return the phrase for a file whose cells are the weights."""
    return f"read as a matrix of {n:,} x {n:,} weights"


def weights_note(title: object | None, noun: str = "column") -> str:
    """Return the phrase that states where the weights come from."""
    return "each edge counts 1" if title is None else f"weights from {noun} {quoted(str(title))}"


def is_identifier(title: str) -> bool:
    """Return whether the column name denotes a row identifier, such as Id, edge_id or the index of a table."""
    tokens = tokens_of(title)
    return not title.strip() or (bool(tokens) and (tokens[0] == "unnamed" or tokens[-1] in _IDENTIFIER))


def _rank(title: str) -> int | None:
    """Return 0 for weight, 1 to 3 for names that are less likely to be the weights, None for all others."""
    tokens = tokens_of(title)
    if not tokens or set(tokens) & _NO_WEIGHT:
        return None
    if len(tokens) == 1 and tokens[0] in _WEIGHT:
        return 0
    if set(tokens) & _WEIGHT or tokens == ["w"]:
        return 1
    if set(tokens) & _WEIGHTS:
        return 2 if len(tokens) == 1 else 3
    return None


def is_numeric(value: Any) -> bool:
    """Return whether a value is a number or numeric text."""
    try:
        return not isinstance(value, bool) and float(value) == float(value)
    except (TypeError, ValueError):
        return False


class Roles(NamedTuple):
    """The places of the used columns in a table of edges."""

    source: int
    target: int
    weight: int | None  # None: each edge counts 1
    direction: int | None
    notes: tuple[str, ...] = ()

    @property
    def places(self) -> list[int]:
        """Return the places of the columns that exist."""
        return [place for place in self[:4] if place is not None]


def roles_of(
    titles: Sequence[str], ends: tuple[int, int], sample: Callable[[int], Sequence[Any]], choice: WeightChoice, where: str
) -> Roles:
    """Return the roles of the columns with these titles; `sample` returns the first values in a place, without missing ones.

    Raises Refused if the weights are not clear, or two used columns have the same title.
    """
    others = [place for place in range(len(titles)) if place not in ends]

    def has_numbers(place: int) -> bool:
        values = sample(others[place])
        return len(values) > 0 and all(map(is_numeric, values))

    chosen = choice.among([titles[place] for place in others], has_numbers, where)
    weight = None if chosen is None else others[chosen]
    for title in (titles[place] for place in (*ends, weight) if place is not None):
        if titles.count(title) > 1:
            raise Refused(f"{where} has more than one column {quoted(title)}; rename them")
    direction = next((place for place in others if place != weight and _has_directions(titles[place], sample(place))), None)
    ignored = [titles[place] for place in others if place not in (weight, direction) and not is_identifier(titles[place])]
    notes = [weights_note(None if weight is None else titles[weight]), *([f"ignored: {listed(ignored)}"] if ignored else [])]
    return Roles(*ends, weight, direction, tuple(notes))


def _directions_of(title: str) -> dict[str, bool]:
    """Return the values of a column in lower case, such as undirected, or false in a column directed: true for both ways."""
    both_ways, tokens = {value: not directed for value, directed in _DIRECTED.items()}, tokens_of(title)
    if not _DIRECTED.keys().isdisjoint(tokens):
        both_ways |= {value: yes != ("directed" in tokens) for value, yes in _YES.items()}
    return both_ways


def _has_directions(title: str, values: Sequence[Any]) -> bool:
    """Return whether a column marks each edge as directed or not, as Gephi's column Type does."""
    known = _directions_of(title)
    return bool(set(tokens_of(title)) & _DIRECTION) and any(str(value).lower() in known for value in values)


def both_ways_of(directions: Sequence[str], title: str, where: str) -> np.ndarray:
    """Return for each edge whether it leads both ways. Raises Refused for a value that is not a direction."""
    known = _directions_of(title)
    ways = [known.get(str(direction).lower()) for direction in directions]
    if None in ways:
        value = quoted(directions[ways.index(None)])
        raise Refused(f"{where} has {value} in column {quoted(title)}; write directed or undirected")
    return np.array(ways, bool)
