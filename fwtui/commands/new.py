"""Write a working kernel for you to change: naive, a copy of a rung, or in CUDA C++."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from contextlib import ExitStack
from pathlib import Path

import fwtui_kernels
from fwtui.common.atomic_file import atomic_write
from fwtui.common.errors import Refused, os_error_reason
from fwtui.common.exit_codes import OK
from fwtui.common.text import quoted, sanitise
from fwtui.experiment.user_kernel_registry import name_for
from fwtui_kernels import files, registry
from fwtui_kernels.own import BEGUN, PLAN, cuda_functions, source_of
from fwtui_kernels.programs.cuda_source import NUMBER

FOLDER = Path(fwtui_kernels.__file__).parent
NAIVE, PYTHON, CUDA = "naive", ("three-phases",), ("one-thread", "tile-32", "tile-64")
DTYPES = {name: dtype for dtype, name in NUMBER.items()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "output file: .py for Python (Numba-CUDA), .cu for CUDA C++ with its plan in a .cu.py; existing files stay"
    parser.add_argument("file", metavar="FILE", help=about)
    about = f"copy a rung, or {PYTHON[0]}, instead of the naive kernel; for FILE.cu: {', '.join(CUDA)}"
    parser.add_argument("--from", dest="rung", metavar="ID", help=about)


def execute(args: argparse.Namespace) -> int:
    path, rung = source_of(Path(args.file)), args.rung
    if not path.name or os.path.isdir(path):
        raise Refused(f"{quoted(args.file)} is not the name of a file; pass {sanitise(str(path / 'mine.py'))}")
    in_cuda = path.suffix == ".cu"
    if path.suffix not in (".py", ".cu"):
        stem = sanitise(str(path.with_suffix("")))
        raise Refused(f"{quoted(args.file)} does not end in .py or .cu, as a kernel's file must; write {stem}.py, or {stem}.cu")
    if not os.path.isdir(path.parent):
        raise Refused(f"there is no folder {sanitise(str(path.parent))} for {sanitise(path.name)}; create it or choose another")
    texts = cuda(rung or CUDA[0]) if in_cuda else {".py": python(rung, name_for(path.absolute()))}
    task = "; change it, and"
    if in_cuda and os.path.exists(path):  # the user's own CUDA C++: only its plan is written
        texts[PLAN], launched = with_launch_of(texts[PLAN], path)
        del texts[".cu"]
        task = f" for your {sanitise(path.name)}; {launched};"
    with ExitStack() as whole:  # all files or none
        files = {suffix: whole.enter_context(atomic_write(path.with_suffix(suffix), force=False)) for suffix in texts}
        for suffix, file in files.items():
            file.write(texts[suffix].encode())
            file.flush()
    written = " and ".join(sanitise(path.with_suffix(suffix).name) for suffix in texts)
    print(f"{written} written{task} check it at every save: fwtui watch {sanitise(shlex.quote(str(path)))}")
    return OK


def python(rung: str | None, name: str) -> str:
    """Return the text of a kernel file: a commented example, or that of a rung under another name. Raises Refused."""
    if rung is None or rung in PYTHON:
        return (FOLDER / "examples" / f"{(rung or NAIVE).replace('-', '_')}.py").read_text(encoding="utf-8")
    if rung not in registry():
        raise Refused(f"there is no rung {quoted(rung)}; choose one of {', '.join((*registry(), *PYTHON))}")
    text = (FOLDER / f"{files()[rung]}.py").read_text(encoding="utf-8")
    text = re.sub(rf'\bid="{re.escape(rung)}"', f'id="{name}"', text)
    text = re.sub(r'^    title="[^"]*"', f'    title="{name}"', text, flags=re.MULTILINE)
    text = re.sub(r"^    preference=\d+,\n", "", text, flags=re.MULTILINE)  # auto never chooses a user kernel
    more = "# its imports have the loads and barriers; `fwtui new FILE.py --from three-phases` has all the code in one file\n"
    return f"{BEGUN}{rung}\n{more * ('parts import blocked' in text)}{text}"


def cuda(example: str) -> dict[str, str]:
    """Return the texts of an example in CUDA C++, by suffix. Raises Refused."""
    if example not in CUDA:
        raise Refused(f"there is no example {quoted(example)} in CUDA C++; choose one of {', '.join(CUDA)}")
    path = FOLDER / "examples" / example.replace("-", "_")
    return {suffix: path.with_suffix(suffix).read_text(encoding="utf-8") for suffix in (".cu", PLAN)}


def with_launch_of(plan: str, source: Path) -> tuple[str, str]:
    """Return the plan of an example with the only kernel function of a CUDA C++ file, and a clause on its launches."""
    try:
        functions = cuda_functions(source)
    except OSError as error:
        raise Refused(f"{sanitise(source.name)} cannot be read: {os_error_reason(error)}") from None
    names, launched = [name for _, name, _ in functions], re.findall(r'Launch\(f"(\w+)<', plan)
    if len(names) == len(launched) == 1:
        ((template, name, number),) = functions
        plan = plan.replace(f'"{launched[0]}<', f'"{name}<')
        if not template:
            plan = plan.replace(f'f"{name}<{{number(shape)}}>"', f'"{name}"').replace("Launch, number,", "Launch,")
            if number in DTYPES:
                plan = plan.replace("own(plan, build, ", f'own(plan, build, dtypes=("{DTYPES[number]}",), ')
        return plan, f"it launches {name}(distance, n, k) for each k, with a thread for each pair"
    if set(launched) <= set(names):
        return plan, f"it launches {', '.join(launched)}"
    has = ", ".join(names) or "its __global__ functions"
    return plan, f"write the launches of {has} into build, in place of {', '.join(launched)}"
