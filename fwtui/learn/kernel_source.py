"""A kernel's source as a lesson: the functions that each of its ops runs, and the lines that relax."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import fwtui
import fwtui_kernels
from fwtui.common.text import clean
from fwtui.experiment.user_kernel_registry import path_of
from fwtui.learn.stepping import MAX_N
from fwtui.stream.run import BROADCAST
from fwtui_kernels import files, registry
from fwtui_kernels.own import files_of
from fwtui_kernels.plan import Kernel, Shape

COMPILED = ("jit", "njit", "reduction")  # decorators under which numba compiles
RELAXING = ("min", "relax", "minimum")  # calls, or beginnings of their names, that keep the smaller of two distances
SENDING = "fwtui.engine.links"  # how a broadcast is made: by the class of a backend
SENDERS = {"cpu": "MpiLink", "cuda": "NcclLink"}


class SourcePart(NamedTuple):
    """A compiled function: its lines in its file, from `first` on, those of them that relax, and the ops that run it."""

    file: str
    first: int  # counted from 1
    lines: tuple[str, ...]
    relaxing: frozenset[int] = frozenset()
    own: frozenset[str] = frozenset()  # ops whose function it is
    ops: frozenset[str] = frozenset()  # and those that call it


class _Function(NamedTuple):
    module: str
    node: ast.FunctionDef


def source(kernel_id: str) -> tuple[SourcePart, ...]:
    """A kernel's source: of a rung its compiled functions, of a user's kernel the whole file as it is now."""
    path = path_of(kernel_id)
    return (_own(Path(path)),) if path else _of_rung(kernel_id)


def _own(path: Path) -> SourcePart:
    """Return the source of a file, with its relaxations marked if it is Python without syntax errors."""
    source_file = files_of(path)[-1]  # in CUDA C++ the kernel is beside the plan
    try:
        text = source_file.read_text("utf-8", "replace").expandtabs(4)
    except OSError:
        text = ""
    relaxing: frozenset[int] = frozenset()
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        relaxing = frozenset(number for node in _compiled(ast.parse(text)) for number in _relaxations(node))
    return SourcePart(clean(source_file.name), 1, tuple(map(clean, text.split("\n"))), relaxing)


@cache
def _of_rung(kernel_id: str) -> tuple[SourcePart, ...]:
    """The functions of a kernel's ops in the order in which they run, each with those that it calls after it.

    If nothing is compiled, its whole file as one part.
    """
    kernel = registry()[kernel_id]
    modules = list(_modules(f"fwtui_kernels.{files()[kernel_id]}"))
    functions = [_Function(module, node) for module in modules for node in _compiled(_parsed(module))]
    runs: dict[_Function, set[str]] = {}
    ops_by_function: dict[_Function, set[str]] = {}
    for op, phase in _ops(kernel):
        begin = _sending(kernel) if op == BROADCAST else _named(op, functions) or _named(phase, functions)
        if begin is not None:
            ops_by_function.setdefault(begin, set()).add(op)
            for function in _called_by(begin, functions):
                runs.setdefault(function, set()).add(op)
    if not runs:
        return (SourcePart(_file(modules[0]), 1, tuple(_text(modules[0]).split("\n"))),)
    return tuple(_part(function, frozenset(ops_by_function.get(function, ())), frozenset(ops)) for function, ops in runs.items())


def _named(name: str, functions: list[_Function]) -> _Function | None:
    """The nearest function of that name, or one that the name is given to in an assignment or in a table of ops."""
    for module in dict.fromkeys(function.module for function in functions):
        names = {name}
        for node in ast.walk(_parsed(module)):
            if isinstance(node, ast.Assign) and _bare(node.targets[0]) == name:
                names.add(_stood_for(node.value))
            elif isinstance(node, ast.Dict):
                entries = zip(node.keys, node.values, strict=True)
                names |= {_stood_for(value) for key, value in entries if isinstance(key, ast.Constant) and key.value == name}
        found = next((f for f in functions if f.module == module and f.node.name in names), None)
        if found is not None:
            return found
    return None


def _stood_for(value: ast.expr) -> str:
    """The function `a` in `a`, in `a if ... else b`, and in `partial(a, ...)` or `Op(a, ...)`."""
    if isinstance(value, ast.IfExp):
        return _bare(value.body)
    return _bare(value.args[0] if isinstance(value, ast.Call) and value.args else value)


def _sending(kernel: Kernel) -> _Function:
    """Return the function that every rank calls in a broadcast."""
    sender = SENDERS[kernel.backend]
    links = (node for node in ast.walk(_parsed(SENDING)) if isinstance(node, ast.ClassDef) and node.name == sender)
    methods = (node for link in links for node in link.body if isinstance(node, ast.FunctionDef))
    return _Function(SENDING, next(method for method in methods if method.name == BROADCAST))


def _ops(kernel: Kernel) -> Iterable[tuple[str, str]]:
    """Return the ops with their phases in the order of a small plan, then those that only larger plans have."""
    tiles = kernel.tiles_for(kernel.backend == "cuda" or kernel.ranked)
    shape = Shape(MAX_N, tile=tiles[0] if tiles else 1, options=kernel.defaults, ranks=2 if kernel.ranked else 1)
    ops = {step.op: step.phase for step in kernel.plan(shape, True)}
    return {**ops, **{phase: phase for phase in kernel.phases if phase not in ops.values()}}.items()


def _modules(begin: str) -> Iterator[str]:
    """A kernel's module, and those that it imports, the nearest first."""
    found = [begin]
    for module in found:  # which grows meanwhile
        yield module
        found += [imported for imported in dict.fromkeys(_imported(module)) if imported not in found]


def _imported(module: str) -> Iterator[str]:
    for node in ast.walk(_parsed(module)):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.partition(".")[0] == "fwtui_kernels":
            names = (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
            yield from (name for name in names if _path(name).is_file())


def _path(module: str) -> Path:
    """The file of a module, without importing it or its package, which may import numba."""
    package = fwtui_kernels if module.startswith("fwtui_kernels.") else fwtui
    return Path(str(package.__file__)).parents[1].joinpath(*module.split(".")).with_suffix(".py")


@cache
def _text(module: str) -> str:
    return _path(module).read_text(encoding="utf-8")


@cache
def _parsed(module: str) -> ast.Module:
    return ast.parse(_text(module))


def _file(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def _compiled(tree: ast.Module) -> list[ast.FunctionDef]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [f for f in functions if any(_called(decorator) in COMPILED for decorator in f.decorator_list)]


def _called_by(begin: _Function, functions: list[_Function]) -> Iterator[_Function]:
    """A function, and the compiled ones that it calls, at any depth; of equal names the one in the same file."""
    found, waiting = {begin}, [begin]
    while waiting:
        function = waiting.pop(0)
        yield function
        names = [_called(node) for node in ast.walk(function.node) if isinstance(node, ast.Call)]
        callees: list[_Function] = []
        for name in dict.fromkeys(names):
            named = [f for f in functions if f.node.name == name]
            near = [f for f in named if f.module == function.module]
            callees += [f for f in (near or named)[:1] if f not in found]
        found.update(callees)
        waiting = callees + waiting


def _part(function: _Function, relaxed_ops: frozenset[str], ops: frozenset[str]) -> SourcePart:
    node = function.node
    first, last = min((d.lineno for d in node.decorator_list), default=node.lineno), node.end_lineno or node.lineno
    lines = _text(function.module).split("\n")[first - 1 : last]
    return SourcePart(_file(function.module), first, tuple(lines), frozenset(_relaxations(node)), relaxed_ops, ops)


def _relaxations(function: ast.FunctionDef) -> Iterator[int]:
    """Lines of the statements that relax."""
    for node in ast.walk(function):
        relaxes = isinstance(node, ast.If) and _keeps_smaller(node)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Return | ast.Expr):
            relaxes = any(_takes_smaller(inner) for inner in ast.walk(node))
        if relaxes and isinstance(node, ast.stmt):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _takes_smaller(node: ast.AST) -> bool:
    """A call of min or the like, or `there if there < here else here`."""
    if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Compare):
        sides = {ast.dump(side) for side in (node.test.left, *node.test.comparators)}
        return isinstance(node.test.ops[0], ast.Lt | ast.Gt) and sides == {ast.dump(node.body), ast.dump(node.orelse)}
    return isinstance(node, ast.Call) and _called(node).startswith(RELAXING)


def _keeps_smaller(choice: ast.If) -> bool:
    """`if there < here: ... = there`, without a call of min."""
    test = choice.test
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Lt | ast.Gt) and not choice.orelse):
        return False
    operands = {ast.dump(side) for side in (test.left, *test.comparators) if not isinstance(side, ast.Constant)}
    return any(isinstance(then, ast.Assign) and ast.dump(then.value) in operands for then in choice.body)


def _called(node: ast.expr) -> str:
    """The bare name of what is called: `cuda.jit(...)` is jit."""
    return _bare(node.func if isinstance(node, ast.Call) else node)


def _bare(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
