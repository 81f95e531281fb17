"""What modules say of themselves, read from their text: a list of them must be quick, and their imports may not be."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_LAST = 1 << 20  # where a module without an ORDER stands


class Outline(NamedTuple):
    """A module that is not imported."""

    name: str
    text: str

    @property
    def about(self) -> str:
        """The first paragraph of its docstring."""
        return " ".join(self.text.split('"""', 2)[1].split("\n\n")[0].split())

    @property
    def order(self) -> int:
        return int(self.constant("ORDER") or _LAST)

    def constant(self, name: str) -> str:
        """The Python text of a constant that is set on one line; "" where there is none."""
        found = re.search(rf"^{name} = (.+?)(?:  #.*)?$", self.text, re.MULTILINE)
        return found[1] if found else ""

    def defines(self, function: str) -> bool:
        return f"\ndef {function}(" in self.text


def outlines(folders: Iterable[str]) -> list[Outline]:
    """The modules of a package's folders, by their ORDER and name."""
    paths = [path for folder in folders for path in Path(folder).glob("[!_]*.py")]
    return sorted((Outline(path.stem, path.read_text("utf-8")) for path in paths), key=lambda o: (o.order, o.name))
