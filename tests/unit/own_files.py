"""User files for tests: CPU kernels in plain Python, which compile nothing, and programs."""

import sys
from pathlib import Path

WHOLE = '''"""Row by row, in NumPy."""

from pathlib import Path

import numpy as np

from fwtui_kernels.own import own
from fwtui_kernels.plan import Cost, Rect, Step, crossing


def plan(shape, stepwise):
    n = shape.n
    whole = Rect(0, 0, n, n)
    for k in range(n):
        yield Step("relax", "all", (k,), Cost(n * n, 0), (*crossing(n, k, k + 1), whole), (whole,))


def relax(distance, k):
    np.minimum(distance, distance[:, k, None] + distance[k], out=distance)


def build(shape, target):
    from fwtui_kernels.programs.cpu_program import CpuProgram

    return CpuProgram(shape, {"relax": relax})


KERNEL = own(plan, build, backend="cpu", launch_modes=("eager",), compiles=False, dtypes=("float32",))
'''
TELLS = 'Path(__file__).with_suffix(".ran").write_text("")\n'  # a file that says that this one was run


def written(folder: Path, name: str = "mine.py", *changes: tuple[str, str], more: str = "") -> Path:
    """Write the kernel's file with replaced texts and `more` at its end."""
    text = WHOLE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text + more)
    return (folder / name).resolve()


def write_program(path: Path, code: str) -> None:
    """Write a Python program that a shell starts, as `#!` cannot name an interpreter in a folder with spaces."""
    path.write_text(f"#!/bin/sh\n'''exec' '{sys.executable}' \"$0\" \"$@\"\n' '''\n{code}")
    path.chmod(0o755)
