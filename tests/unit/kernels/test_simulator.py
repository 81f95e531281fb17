"""Every CUDA kernel in Numba's simulator: right for every size and type, and wrong where its code is broken on purpose."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from in_simulator import answers, mutant_file

from fwtui_kernels import registry

CUDA = [k for k in registry().values() if k.backend == "cuda"]
# around a tile, odd ones, and several tiles a side where the tile is small
SIZES = {1: (1, 2, 5, 9), 4: (1, 3, 4, 5), 8: (9,)}
# steps to katz-kider and from it, whose larger tile says nothing new: it waits for -m slow, as do thirteen vertices
BETWEEN = ("blocked-global", "blocked-branch", "blocked-many-launches", "blocked-one-dimensional", "two-matrix-blocked")

HARNESS = """
import numpy as np
from case_by_case import kernel_in, tell
from fwtui.experiment.experiment import Experiment
from fwtui.graphs.canonical import canonical
from fwtui.experiment.generate import generate
from fwtui.experiment.generate import fill_numpy
from fwtui.engine.verify import Verifier
from fwtui_kernels import registry
from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.plan import Shape, Target

def verdict(kernel, n, tile, dtype, threads=None, **graph):
    graph = generate(Experiment(n=n, dtype=dtype, **graph), fill_numpy)
    options = tuple(sorted((o.name, threads or o.default) for o in kernel.options))
    shape = Shape(n, tile, dtype, nonnegative=graph.low is None or graph.low >= 0, options=options)
    program = kernel.build(shape, Target("simulator"))
    buffers = program.allocate()
    stream = cuda.stream()
    program.load(graph.matrix, buffers, stream)
    for repetition in range(2):
        program.restore(buffers, stream)
        if program._order is None:
            assert (np.asarray(buffers[0].copy_to_host())[:n, :n] == graph.matrix).all()
        for step in kernel.plan(shape, False):
            program.launch(step, buffers, stream)
        if n > 5:
            break
    raw = program.unload(buffers, stream)
    assert program.resources() == {}
    finding = Verifier().check(graph, "key", canonical(raw, graph, dtype), "full", 512, kernel.id)
    return finding.verdict

def verdicts(case):
    path, times = case.pop("path", None), case.pop("times", 1)
    name = case.pop("kernel")
    kernel = kernel_in(path) if path else registry()[name]
    found = []
    for seed in range(times):
        found.append(verdict(kernel, seed=seed, **case))
        if found[-1] != "verified":
            break
    return found

tell(verdicts)
"""


def verdicts(cases: list[dict[str, Any]]) -> list[list[str]]:
    """What verification says of each case, in a simulator of their own."""
    return answers(HARNESS, cases)


def assert_all(cases: list[dict[str, Any]], verdict: str) -> None:
    wrong = [(case, told) for case, told in zip(cases, verdicts(cases), strict=True) if told[-1] != verdict]
    assert not wrong


@pytest.mark.parametrize("kernel", CUDA, ids=lambda k: k.id)
def test_every_cuda_kernel_is_right_in_the_simulator(kernel: Any) -> None:
    cases: list[dict[str, Any]] = []
    tile, *larger = kernel.tiles_for(True) or (1,)
    # without tiles a block has as many threads as asked, and here one runs after the other
    few = {"threads": 64} if not kernel.tiles and any(o.name == "threads" for o in kernel.options) else {}
    for other in (tile, *([] if kernel.id in BETWEEN else larger)):
        for at, n in enumerate(SIZES[other]):
            # every type around one tile, one type in turn at the others
            types = kernel.dtypes if n == other + 1 and other == tile else (kernel.dtypes[at % len(kernel.dtypes)],)
            cases += [{"kernel": kernel.id, "n": n, "tile": other, "dtype": dtype, **few} for dtype in types]
    base: dict[str, Any] = {"kernel": kernel.id, "n": 9, "tile": tile}
    cases.append({**base, "dtype": kernel.dtypes[0], "density": 0.08})  # unreachable pairs, and the usual threads
    base |= few
    cases.append({**base, "dtype": kernel.dtypes[-1], "low": 0, "high": 1})
    for dtype, density in zip((dtype for dtype in kernel.dtypes if dtype != "int16"), (0.1, 0.3), strict=False):
        cases.append({**base, "dtype": dtype, "negative": 0.4, "density": density})
    if "float32" in kernel.dtypes:
        cases.append({**base, "dtype": "float32", "real": True})
    cycles = [{**base, "dtype": dtype, "low": -3, "high": 5, "density": 0.6} for dtype in kernel.dtypes if dtype != "int16"]
    told = verdicts(cases + cycles)
    wanted = ["verified"] * len(cases) + ["negative cycle"] * len(cycles)
    wrong = [(case, got) for case, got, want in zip(cases + cycles, told, wanted, strict=True) if got[-1] != want]
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("kernel", CUDA, ids=lambda k: k.id)
def test_more_tiles_and_larger_ones(kernel: Any) -> None:
    asked = [(n, tile) for tile in kernel.tiles_for(True) or (1,) for n in (9, 13)]
    base = {"kernel": kernel.id, "low": 0}
    assert_all([{**base, "n": n, "tile": tile, "dtype": dtype} for n, tile in asked for dtype in kernel.dtypes], "verified")


def test_several_results_per_thread() -> None:
    cases = [
        {"kernel": "katz-kider", "n": n, "tile": tile, "dtype": dtype, "threads": threads}
        for n, tile, dtype, threads in (
            (16, 8, "int32", 16),
            (13, 8, "float32", 16),
            (9, 8, "int16", 8),
            (9, 4, "int32", 8),
            (20, 8, "int32", 32),
        )
    ]
    assert_all(cases, "verified")


KERNELS = Path(__file__).resolve().parents[3] / "kernels" / "fwtui_kernels"
RUNG, PART = (str(KERNELS / file) for file in ("k45_katz_kider.py", "parts/blocked_tiles.py"))
RELAXED = "                own[r, x] = via\n"
KEPT = "\n            r = int32(y + s * stride)\n            relax("
MUTANTS: dict[str, tuple[str, str, str, int]] = {  # the file, what is replaced, by what, and which of its occurrences
    "no barrier after the pivot is loaded": (PART, "cuda.syncthreads()\n    relax_in_order(", "relax_in_order(", 0),
    "no barrier after the panels are loaded": (PART, "cuda.syncthreads()\n    if across:", "if across:", 0),
    "no barrier after the rest is loaded": (PART, "cuda.syncthreads()\n    for k", "for k", 0),
    "no barrier between the steps of the pivot": (PART, RELAXED + "        cuda.syncthreads()\n", RELAXED, 0),
    "a stale panel": (PART, "load(middle, made, base, left", "load(middle, made, top, left", 0),
    "the other panel": (PART, "load(to, made, top, base", "load(to, made, base, left", 0),
    "one k too few in the rest": (PART, "for k in range(tile):", "for k in range(tile - 1):", 1),
    "a larger distance in the rest": (RUNG, "min(own[r, x],", "max(own[r, x],", 0),
    "one k too few in the pivot": (PART, "for k in range(tile):", "for k in range(tile - 1):", 0),
    "the pivot's own row in the rest": (PART, "row = beside(row, p)", "row = beside(row, p + 1)", 0),
    "the pivot among the panels": (PART, "beside(cuda.blockIdx.x, p)", "beside(cuda.blockIdx.x, p + 1)", 0),
    "a grid one block short": (PART, "(others, others), buffers", "(others, max(1, others - 1)), buffers", 0),
    "only a thread's first result": (PART, "tile // stride):" + KEPT, "1):" + KEPT, 0),
}  # fmt: skip


def test_broken_kernels_are_caught(tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = []
    # a race may come out right by luck, and a graph may not need what is missing: seven graphs
    unchanged = {f"unchanged {Path(file).stem}": (file, "def relax", "def relax", 0) for file in (RUNG, PART)}
    for number, (file, old, new, occurrence) in enumerate({**unchanged, **MUTANTS}.values()):
        path = mutant_file(tmp_path, number, RUNG, file, old, new, occurrence)
        threads = 8 if KEPT in old else 16
        cases.append(
            {
                "kernel": "",
                "path": path,
                "n": 12,
                "tile": 4,
                "dtype": "int32",
                "density": 0.1,
                "connected": True,
                "threads": threads,
            }
        )
    for case in cases:
        case["times"] = 3 if case in cases[:2] else 7
    told = dict(zip((*unchanged, *MUTANTS), verdicts(cases), strict=True))
    assert [told.pop(name) for name in unchanged] == [["verified"] * 3] * 2
    missed = [name for name, verdict in told.items() if verdict[-1] == "verified"]
    assert not missed


def test_the_tiles_of_the_simulator_are_small() -> None:
    for kernel in CUDA:
        assert all(tile * tile <= 64 for tile in kernel.tiles_for(True))


def test_the_readmes_example_works(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (KERNELS.parent / "README.md").read_text(), re.DOTALL)
    example = next(block for block in blocks if "KERNEL = Kernel" in block)
    path = tmp_path / "example.py"
    path.write_text(example)
    assert_all([{"kernel": "", "path": str(path), "n": n, "tile": 1, "dtype": "int16"} for n in (3, 9)], "verified")
