"""`python -P -m fwtui.measure.off_gpu_compile KERNEL`: compile it without a GPU and print {op: bytes of shared memory} as JSON.

A separate process, because only those load a compiler.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from kernels import registry

ARCHITECTURE = (8, 0)  # shared memory does not depend on it


def shared_bytes(kernel_id: str) -> dict[str, int]:
    """Static shared memory of every op at the kernel's default shape."""
    from cuda import core

    from kernels.numba_door.device import cuda
    from kernels.plan import Shape, Target
    from kernels.programs.cuda_program import signature

    toolkit: Any = core
    kernel = registry()[kernel_id]
    shape = Shape(4 * kernel.default_tile, kernel.default_tile, options=kernel.defaults)
    program: Any = kernel.build(shape, Target("cuda", ARCHITECTURE, multiprocessors=1))
    steps = {step.op: step for step in kernel.plan(shape, False)}
    options = toolkit.LinkerOptions(arch="sm_{}{}".format(*ARCHITECTURE), link_time_optimization=True, ptxas_options=["-v"])
    found = {}
    for name, op in program.ops.items():
        args = steps[name].args
        types = signature(shape, len(args), len(op.buffers(args)))
        ir, _ = cuda.compile(op.function.py_func, types, cc=ARCHITECTURE, device=False, abi="numba", output="ltoir")
        linker = toolkit.Linker(toolkit.ObjectCode.from_ltoir(ir), options=options)
        linker.link("cubin")
        smem = re.search(r"(\d+) bytes smem", linker.get_info_log())
        found[name] = int(smem[1]) if smem else 0
    return found


if __name__ == "__main__":
    print(json.dumps(shared_bytes(sys.argv[1])))
