"""Constants and docstrings of modules, read from their source: importing the modules would be too slow for a list."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

_LAST = 1 << 20  # position of a module without an ORDER
Value = TypeVar("Value")


class Outline:
    """A module, read without importing it."""

    def __init__(self, name: str, path: str):
        self.name = name
        self._path = path
        with open(path, encoding="utf-8") as file:
            text = file.read()
        tree = _head(text, path)
        docstring = ast.get_docstring(tree, clean=False) or ""
        self.about = " ".join(docstring.strip().split("\n\n")[0].split())  # the first paragraph
        self._functions = set(re.findall(r"^def (\w+)", text, re.MULTILINE))
        sets = [node for node in tree.body if isinstance(node, ast.Assign)]
        self._constants = {name.id: node.value for node in sets for name in node.targets if isinstance(name, ast.Name)}
        self.order = self.constant("ORDER", int, _LAST)

    def constant(self, name: str, kind: type[Value], default: Value | None = None) -> Value:
        """Return the literal of that kind assigned to a name. Raises ValueError if it is missing and has no default."""
        if name not in self._constants and default is not None:
            return default
        try:
            value = ast.literal_eval(self._constants[name])
            if isinstance(value, kind):
                return value
        except (KeyError, ValueError):
            pass
        raise ValueError(f"{self._path} has no literal {kind.__name__} named {name}")

    def defines(self, function: str) -> bool:
        return function in self._functions


def _head(text: str, path: str) -> ast.Module:
    """Parse only the part above the first function or class: parsing the whole file takes several times as much time."""
    try:
        return ast.parse(re.split(r"^(?:@|def |class )", text, maxsplit=1, flags=re.MULTILINE)[0], path)
    except SyntaxError:  # a docstring line began like a function
        return ast.parse(text, path)


Kind = TypeVar("Kind", bound=Outline)


def outlines(folders: Iterable[str], kind: type[Kind]) -> list[Kind]:
    """Return the modules in a package's folders, sorted by their ORDER and name."""
    files = [path for folder in folders for path in Path(folder).glob("[!_]*.py")]
    # skips files of editors and file systems
    modules = [kind(path.stem, str(path)) for path in files if path.stem.isidentifier()]
    return sorted(modules, key=lambda o: (o.order, o.name))
