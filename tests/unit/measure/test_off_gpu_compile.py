"""A kernel of the user's own compiled for a GPU that is not here."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwtui.commands.new import python
from fwtui.live.compiling import compile_kernel
from fwtui.stream.trials import CompileRequest


def test_a_function_that_the_kernel_calls_needs_no_gpu_either(tmp_path: Path) -> None:
    pytest.importorskip("cuda.core")
    text = python(None, "mine")
    sum_of_two = "number(distance[i, k] + distance[k, j])"
    assert text.count(sum_of_two) == 1
    text = text.replace(sum_of_two, "through(distance, i, j, k)").replace(
        "    @jit\n",
        f"    @jit(device=True)\n    def through(distance, i, j, k):\n        return {sum_of_two}\n\n    @jit\n",
    )
    (tmp_path / "mine.py").write_text(text)
    found = compile_kernel(CompileRequest(kernel="mine", path=str(tmp_path / "mine.py"), capability=(9, 0)))
    assert found is not None and not found.lacking and not found.wrong
    (used,) = found.used
    assert used.registers > 0 and (used.op, used.phase, used.tile, used.itemsize) == ("relax", "all", 0, 4)
