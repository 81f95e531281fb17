"""A kernel's own file as a lesson: its text, and the lines of compiled code in which a relaxation happens."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import NamedTuple

from fwtui.common.text import clean
from fwtui.experiment.own_kernels import path_of
from kernels import registry
from kernels.own import files_of

COMPILED = ("jit", "njit", "reduction")  # decorators under which numba compiles
RELAXING = ("min", "relax", "minimum")  # calls, or beginnings of their names, that keep the smaller of two distances


class Source(NamedTuple):
    """The lines of a file from `first` on (counted from 1), and the numbers of those that matter."""

    file: str
    first: int
    lines: tuple[str, ...]
    marked: frozenset[int]


def source(kernel_id: str) -> Source:
    """What a kernel's source shows: of a rung the part that is compiled, of one of the user's own its whole file as it is now."""
    path = path_of(kernel_id)
    return _own(Path(path)) if path else _of_rung(kernel_id)


def _own(path: Path) -> Source:
    """With its relaxations marked, where it is Python that can be read."""
    shown = files_of(path)[-1]  # in CUDA C++ the kernel is beside the plan
    try:
        text = shown.read_text("utf-8", "replace").expandtabs(4)
    except OSError:
        return Source(shown.name, 1, (), frozenset())
    marked: frozenset[int] = frozenset()
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        marked = frozenset(number for node in _compiled(text) for number in _relaxations(node))
    return Source(clean(shown.name), 1, tuple(map(clean, text.split("\n"))), marked)


@cache
def _of_rung(kernel_id: str) -> Source:
    """The part of a kernel's file that is compiled, with its relaxations marked.

    A kernel that has another file's program built shows that one's; where nothing is compiled at all, its own whole file.
    """
    build = registry()[kernel_id].build
    texts = {module: _text(module) for module in _modules(build)}
    module = next((module for module, text in texts.items() if _compiled(text)), build.__module__)
    text, name = texts[module], f"{module.replace('.', '/')}.py"
    lines, compiled = text.split("\n"), _compiled(text)
    if not compiled:
        return Source(name, 1, tuple(lines), frozenset())
    first = min(min(d.lineno for d in node.decorator_list) for node in compiled)
    last = max(node.end_lineno or node.lineno for node in compiled)
    marked = frozenset(line for node in compiled for line in _relaxations(node))
    return Source(name, first, tuple(lines[first - 1 : last]), marked)


def _modules(build: Callable[..., object]) -> Iterator[str]:
    """The file that a kernel is built in, and those of the kernels that its `build` calls a function of or imports."""
    assert isinstance(build, FunctionType)
    yield build.__module__
    for name in build.__code__.co_names:
        called = build.__globals__.get(name)
        module = called.__module__ if isinstance(called, FunctionType) else name
        if module.startswith("kernels."):
            yield module


def _text(module: str) -> str:
    """A module's source, without importing it: it may bring numba."""
    found = find_spec(module)
    assert found is not None and found.origin is not None
    return Path(found.origin).read_text(encoding="utf-8")


def _compiled(text: str) -> list[ast.FunctionDef]:
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return [f for f in functions if any(_called(decorator) in COMPILED for decorator in f.decorator_list)]


def _relaxations(function: ast.FunctionDef) -> Iterator[int]:
    """Lines of the statements that relax."""
    for node in ast.walk(function):
        relaxes = isinstance(node, ast.If) and _keeps_smaller(node)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Return | ast.Expr):
            relaxes = any(isinstance(inner, ast.Call) and _called(inner).startswith(RELAXING) for inner in ast.walk(node))
        if relaxes and isinstance(node, ast.stmt):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _keeps_smaller(choice: ast.If) -> bool:
    """`if there < here: ... = there`, without a call of min."""
    test = choice.test
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Lt | ast.Gt) and not choice.orelse):
        return False
    kept = {ast.dump(side) for side in (test.left, *test.comparators) if not isinstance(side, ast.Constant)}
    return any(isinstance(then, ast.Assign) and ast.dump(then.value) in kept for then in choice.body)


def _called(node: ast.expr) -> str:
    """The bare name of what is called: `cuda.jit(...)` is jit."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
