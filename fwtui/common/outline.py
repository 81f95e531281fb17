"""What modules say of themselves, read from their text: a list of them must be quick, and their imports may not be."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cached_property
from typing import TypeVar

_LAST = 1 << 20  # where a module without an ORDER stands


class Outline:
    """A module that is not imported."""

    def __init__(self, name: str, path: str):
        self.name = name
        with open(path, encoding="utf-8") as file:
            self._text = file.read()

    @property
    def about(self) -> str:
        """The first paragraph of its docstring."""
        parts = self._text.split('"""', 2)
        return " ".join(parts[1].split("\n\n")[0].split()) if len(parts) == 3 else ""

    @cached_property
    def constants(self) -> dict[str, str]:
        """The Python text of each constant that is set on one line."""
        lines = (line for line in self._text.splitlines() if line[:1].isupper() and " = " in line)
        return dict(line.partition("  #")[0].split(" = ", 1) for line in lines)

    @property
    def order(self) -> int:
        return int(self.constants.get("ORDER", _LAST))

    def strings(self, constant: str) -> tuple[str, ...]:
        """The strings in a constant; none where it is not set."""
        return tuple(re.findall(r'"([^"]*)"', self.constants.get(constant, "")))

    def defines(self, function: str) -> bool:
        return f"\ndef {function}(" in self._text


Kind = TypeVar("Kind", bound=Outline)


def module_files(folders: Iterable[str]) -> dict[str, str]:
    """Where each module of a package's folders is, by its name."""
    found = [(file, f"{folder}/{file}") for folder in folders for file in os.listdir(folder)]
    modules = {file.removesuffix(".py"): path for file, path in found if file.endswith(".py") and not file.startswith("_")}
    return {name: path for name, path in modules.items() if name.isidentifier()}  # no editor's or file system's own files


def outlines(folders: Iterable[str], kind: type[Kind]) -> list[Kind]:
    """The modules of a package's folders, by their ORDER and name."""
    return sorted((kind(*place) for place in module_files(folders).items()), key=lambda o: (o.order, o.name))
