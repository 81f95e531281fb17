"""The source of a kernel for the course: the functions of each op, and the lines that relax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import fwtui
import fwtui_kernels
from fwtui.common.text import sanitise
from fwtui.experiment.user_kernel_registry import path_of
from fwtui.learn.stepping import MAX_N
from fwtui.stream.run import BROADCAST
from fwtui_kernels import files, registry
from fwtui_kernels.own import files_of, text_of
from fwtui_kernels.plan import Kernel, Shape

COMPILED = ("jit", "njit", "inner", "entry", "reduction")  # decorators under which numba compiles
RELAXING = ("min", "relax", "minimum")  # prefixes of the functions that return the smaller of two distances
LINKS = "fwtui.engine.links"  # the module of the classes that broadcast
LINK_CLASSES = {"cpu": "MpiLink", "cuda": "NcclLink"}


class SourcePart(NamedTuple):
    """A compiled function: its lines in its file from `first`, the lines that relax, and the ops that run it."""

    file: str
    first: int  # counted from 1
    lines: tuple[str, ...]
    relaxing: frozenset[int] = frozenset()
    own: frozenset[str] = frozenset()  # ops that are this function
    ops: frozenset[str] = frozenset()  # all ops that call it
    name: str = ""  # empty for a file


class _Function(NamedTuple):
    module: str
    node: ast.FunctionDef


def source(kernel_id: str, dense: bool = False, options: Mapping[str, int] = {}) -> tuple[SourcePart, ...]:
    """Return the source of a kernel: the compiled functions of a rung, the current file of a user kernel.

    `dense`: if the kernel has functions for sparse graphs, return those that it launches without an elimination order.
    `options` replace the kernel's defaults, which decide the compiled branches.
    """
    path = path_of(kernel_id)
    return (_user_source(Path(path)),) if path else _rung_source(kernel_id, dense, tuple(sorted(options.items())))


def innermost(parts: Sequence[SourcePart], op: str) -> SourcePart | None:
    """Return the function that relaxes in an op, of any op if none has that name, and calls no other function that does."""
    relaxing = [part for part in parts if part.relaxing and op in part.ops] or [part for part in parts if part.relaxing]
    names = {part.name for part in relaxing}
    for part in reversed(relaxing):
        called = {name for number in part.relaxing for name in re.findall(r"(\w+)\(", part.lines[number - part.first])}
        if not called & names - {part.name}:
            return part
    return None


def _user_source(path: Path) -> SourcePart:
    """Return the source of a file, with its relaxations marked if it is Python without syntax errors."""
    source_file = files_of(path)[-1]  # a CUDA C++ kernel has its plan in the first file
    try:
        text = text_of(source_file).expandtabs(4)
    except OSError:
        text = ""
    relaxing: frozenset[int] = frozenset()
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        relaxing = frozenset(number for node in _compiled(text) for number in _relaxations(node))
    return SourcePart(sanitise(source_file.name), 1, tuple(map(sanitise, text.split("\n"))), relaxing)


@cache
def _rung_source(kernel_id: str, dense: bool, options: tuple[tuple[str, int], ...]) -> tuple[SourcePart, ...]:
    """Return the functions of a kernel's ops in the order of the plan, each followed by the functions that it calls.

    A kernel without compiled functions is one part: its file.
    """
    kernel = registry()[kernel_id]
    modules = list(_modules(f"fwtui_kernels.{files()[kernel_id]}"))
    if dense and kernel.ordered is not None:
        modules = [*modules[1:], modules[0]]  # the functions of the rung below come first
    functions = [_Function(module, node) for module in modules for node in _compiled(_text(module))]
    choices = _choices(modules, dict([*kernel.defaults, *options]))
    runs: dict[_Function, set[str]] = {}
    ops_by_function: dict[_Function, set[str]] = {}
    for op, phase in _ops(kernel):
        begin = _broadcast(kernel) if op == BROADCAST else _named(op, functions) or _named(phase, functions)
        if begin is not None:
            ops_by_function.setdefault(begin, set()).add(op)
            for function in _called_by(begin, functions, choices):
                runs.setdefault(function, set()).add(op)
    if not runs:
        return (SourcePart(_file(modules[0]), 1, tuple(_text(modules[0]).split("\n"))),)
    return tuple(_part(function, frozenset(ops_by_function.get(function, ())), frozenset(ops)) for function, ops in runs.items())


def _named(name: str, functions: list[_Function]) -> _Function | None:
    """Return the nearest function with that name, also if an assignment or a table of ops gives it the name."""
    for module in dict.fromkeys(function.module for function in functions):
        names = {name}
        for node in ast.walk(_parsed(module)):
            if isinstance(node, ast.Assign) and _bare(node.targets[0]) == name:
                names.add(_function_of(node.value))
            elif isinstance(node, ast.Dict):
                entries = zip(node.keys, node.values, strict=True)
                names |= {_function_of(value) for key, value in entries if isinstance(key, ast.Constant) and key.value == name}
        found = next((f for f in functions if f.module == module and f.node.name in names), None)
        if found is not None:
            return found
    return None


def _function_of(value: ast.expr) -> str:
    """Return the function `a` of `a`, `a if ... else b`, `partial(a, ...)` or `Op(a, ...)`."""
    if isinstance(value, ast.IfExp):
        return _bare(value.body)
    return _bare(value.args[0] if isinstance(value, ast.Call) and value.args else value)


def _broadcast(kernel: Kernel) -> _Function:
    """Return the function that every rank calls in a broadcast."""
    name = LINK_CLASSES[kernel.backend]
    links = (node for node in ast.walk(_parsed(LINKS)) if isinstance(node, ast.ClassDef) and node.name == name)
    methods = (node for link in links for node in link.body if isinstance(node, ast.FunctionDef))
    return _Function(LINKS, next(method for method in methods if method.name == BROADCAST))


def _ops(kernel: Kernel) -> Iterable[tuple[str, str]]:
    """Return the ops with their phases in the order of a small plan, then those that only larger plans have."""
    tiles = kernel.tiles_for(kernel.backend == "cuda" or kernel.ranked)
    shape = Shape(MAX_N, tile=tiles[0] if tiles else 1, options=kernel.defaults, ranks=2 if kernel.ranked else 1)
    ops = {step.op: step.phase for step in kernel.plan(shape, True)}
    return {**ops, **{phase: phase for phase in kernel.phases if phase not in ops.values()}}.items()


def _modules(begin: str) -> Iterator[str]:
    """Yield a kernel's module and the modules that it imports, breadth first."""
    found = [begin]
    for module in found:  # the list grows in this loop
        yield module
        found += [imported for imported in dict.fromkeys(_imported(module)) if imported not in found]


@cache  # most kernels share modules
def _imported(module: str) -> tuple[str, ...]:
    imports = (node for node in ast.walk(_parsed(module)) if isinstance(node, ast.ImportFrom) and node.module is not None)
    names = [name for node in imports for name in (str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names))]
    return tuple(name for name in names if name.startswith("fwtui_kernels.") and _path(name).is_file())


def _path(module: str) -> Path:
    """Return the file of a module without importing the module, which may import numba."""
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


@lru_cache(100)  # all modules of kernels, and some versions of a user's file
def _compiled(text: str) -> list[ast.FunctionDef]:
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return [f for f in functions if any(_called(decorator) in COMPILED for decorator in f.decorator_list)]


def _choices(modules: Iterable[str], options: Mapping[str, int]) -> dict[str, bool]:
    """Return the value of each test `x is not None` with these options (default: 1) of `x = None if options[name] else y`."""
    assigned = (node for module in modules for node in ast.walk(_parsed(module)) if isinstance(node, ast.Assign))
    found = ((node, re.match(r"None if options\['(\w+)'\] else ", ast.unparse(node.value))) for node in assigned)
    return {f"{_bare(node.targets[0])} is not None": not options.get(match[1], 1) for node, match in found if match}


def _compiled_nodes(function: ast.AST, choices: Mapping[str, bool]) -> Iterator[ast.AST]:
    """Yield the nodes of a function, breadth first, without the branches that numba drops because of an argument None."""
    nodes = [function]
    for node in nodes:  # the list grows in this loop
        yield node
        if isinstance(node, ast.If) and (test := ast.unparse(node.test)) in choices:
            nodes += node.body if choices[test] else node.orelse
        else:
            nodes += ast.iter_child_nodes(node)


def _called_by(begin: _Function, functions: list[_Function], choices: Mapping[str, bool]) -> Iterator[_Function]:
    """Yield a function and the compiled functions that it calls, at any depth; a name first means the one in its file."""
    found, waiting = {begin}, [begin]
    while waiting:
        function = waiting.pop(0)
        yield function
        calls = [node for node in _compiled_nodes(function.node, choices) if isinstance(node, ast.Call)]
        names = [_bare(call.args[0]) if _called(call) == "on_all_cores" else _called(call) for call in calls]
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
    return SourcePart(_file(function.module), first, tuple(lines), frozenset(_relaxations(node)), relaxed_ops, ops, node.name)


def _relaxations(function: ast.FunctionDef) -> Iterator[int]:
    """Yield the lines of the statements that relax."""
    for node in ast.walk(function):
        relaxes = isinstance(node, ast.If) and _keeps_smaller(node)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Return | ast.Expr):
            relaxes = any(_takes_smaller(inner) for inner in ast.walk(node))
        if relaxes and isinstance(node, ast.stmt):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _takes_smaller(node: ast.AST) -> bool:
    """Return True for a call of a minimum, and for `there if there < here else here`."""
    if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Compare):
        sides = {ast.dump(side) for side in (node.test.left, *node.test.comparators)}
        return isinstance(node.test.ops[0], ast.Lt | ast.Gt) and sides == {ast.dump(node.body), ast.dump(node.orelse)}
    return isinstance(node, ast.Call) and _called(node).startswith(RELAXING)


def _keeps_smaller(choice: ast.If) -> bool:
    """Return True for `if there < here: ... = there`."""
    test = choice.test
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Lt | ast.Gt) and not choice.orelse):
        return False
    operands = {ast.dump(side) for side in (test.left, *test.comparators) if not isinstance(side, ast.Constant)}
    return any(isinstance(then, ast.Assign) and ast.dump(then.value) in operands for then in choice.body)


def _called(node: ast.expr) -> str:
    """Return the bare name of the called function: jit for `cuda.jit(...)`."""
    return _bare(node.func if isinstance(node, ast.Call) else node)


def _bare(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
