"""CUDA kernels in the simulator: correct for every size and type, and caught when broken."""

import re
from pathlib import Path
from typing import Any

import pytest
from in_simulator import all_right, mutant_file

from fwtui_kernels import registry

CUDA = [k for k in registry().values() if k.backend == "cuda"]
# around a tile, odd ones, and several tiles a side where the tile is small
SIZES = {1: (1, 2, 5, 9), 4: (1, 3, 4, 5), 8: (9,)}
# steps to katz-kider and from it, whose larger tile says nothing new: it waits for -m slow, as do thirteen vertices
BETWEEN = ("blocked-global", "blocked-branch", "blocked-many-launches", "blocked-one-dimensional", "two-matrix-blocked")


def assert_right(cases: list[dict[str, Any]]) -> None:
    assert not [case for case, right in zip(cases, all_right(cases), strict=True) if not right]


@pytest.mark.parametrize("kernel", CUDA, ids=lambda k: k.id)
def test_every_cuda_kernel_is_right_in_the_simulator(kernel: Any) -> None:
    cases: list[dict[str, Any]] = []
    tile, *larger = kernel.tiles_for(True) or (1,)
    # without tiles a block has as many threads as asked, and here one runs after the other
    few = {"options": {"threads": 64}} if not kernel.tiles and any(o.name == "threads" for o in kernel.options) else {}
    for other in (tile, *([] if kernel.id in BETWEEN else larger)):
        for at, n in enumerate(SIZES[other]):
            # every type around one tile, one type in turn at the others
            types = kernel.dtypes if n == other + 1 and other == tile else (kernel.dtypes[at % len(kernel.dtypes)],)
            twice = {"stepwise": [False] * (2 if n <= 5 else 1)}  # the second time from the restored input
            cases += [{"kernel": kernel.id, "n": n, "tile": other, "dtype": dtype, **few, **twice} for dtype in types]
    base: dict[str, Any] = {"kernel": kernel.id, "n": 9, "tile": tile}
    cases.append({**base, "dtype": kernel.dtypes[0], "kind": "sparse"})  # unreachable pairs, and the usual threads
    base |= few
    cases.append({**base, "dtype": kernel.dtypes[-1], "kind": "zeros"})
    wide = [dtype for dtype in kernel.dtypes if dtype != "int16"]
    cases += [{**base, "dtype": dtype, "kind": kind} for dtype in wide for kind in ("negative", "cycle")]
    cases += [{**base, "dtype": "float32", "kind": "real"}] * ("float32" in kernel.dtypes)
    assert_right(cases)


KERNELS = Path(__file__).resolve().parents[3] / "kernels" / "fwtui_kernels"
RUNG, PART = (str(KERNELS / file) for file in ("k45_katz_kider.py", "parts/blocked_tiles.py"))
RELAXED = "                own[r, x] = via\n"
KEPT = "\n            r = int32(y + s * stride)\n            relax("
MUTANTS: dict[str, tuple[str, str, str, int]] = {  # the file, what is replaced, by what, and which of its occurrences
    "no barrier after the pivot is loaded": (PART, "cuda.syncthreads()\n    relax_in_order(", "relax_in_order(", 0),
    "no barrier after the panels are loaded": (PART, "cuda.syncthreads()\n    if across:", "if across:", 0),
    "no barrier after the rest is loaded": (PART, "cuda.syncthreads()\n    for k", "for k", 0),
    "no barrier between the steps of the pivot": (PART, RELAXED + "        cuda.syncthreads()\n", RELAXED, 0),
    "a stale panel": (PART, "middle[r, x] = target[base + r, left + x]", "middle[r, x] = target[top + r, left + x]", 0),
    "the other panel": (PART, "to[r, x] = target[top + r, base + x]", "to[r, x] = target[base + r, left + x]", 0),
    "one k too few in the rest": (PART, "for k in range(tile):", "for k in range(tile - 1):", 1),
    "a larger distance in the rest": (RUNG, "min(own[r, x],", "max(own[r, x],", 0),
    "one k too few in the pivot": (PART, "for k in range(tile):", "for k in range(tile - 1):", 0),
    "the pivot's own row in the rest": (PART, "row = skip_pivot(row, p)", "row = skip_pivot(row, p + 1)", 0),
    "the pivot among the panels": (PART, "skip_pivot(cuda.blockIdx.x, p)", "skip_pivot(cuda.blockIdx.x, p + 1)", 0),
    "a grid one block short": (PART, "(others, others), buffers", "(others, max(1, others - 1)), buffers", 0),
    "only a thread's first result": (PART, "tile // stride):" + KEPT, "1):" + KEPT, 0),
}  # fmt: skip


def test_broken_kernels_are_caught(tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = []
    unchanged = {f"unchanged {Path(file).stem}": (file, "def relax", "def relax", 0) for file in (RUNG, PART)}
    for number, (file, old, new, occurrence) in enumerate({**unchanged, **MUTANTS}.values()):
        path = mutant_file(tmp_path, number, RUNG, file, old, new, occurrence)
        options = {"threads": 8 if KEPT in old else 16}
        # a race may come out right by luck, and a graph may not need what is missing: seven graphs
        graphs = 3 if number < len(unchanged) else 7
        cases.append(
            {"kernel": path, "n": 12, "tile": 4, "dtype": "int32", "kind": "round", "options": options, "graphs": graphs}
        )
    told = dict(zip((*unchanged, *MUTANTS), all_right(cases), strict=True))
    assert [name for name, right in told.items() if right] == [*unchanged]


def test_the_readmes_example_works(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (KERNELS.parent / "README.md").read_text(), re.DOTALL)
    example = next(block for block in blocks if "KERNEL = Kernel" in block)
    path = tmp_path / "example.py"
    path.write_text(example)
    assert_right([{"kernel": str(path), "n": n, "tile": 1, "dtype": "int16"} for n in (3, 9)])
