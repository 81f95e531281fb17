"""Registers and memory of a kernel function, from the log of ptxas."""

from __future__ import annotations

import re
from typing import NamedTuple


class KernelUse(NamedTuple):
    """Registers per thread, bytes of shared memory per block, and bytes of spills and stack per thread."""

    registers: int
    shared_bytes: int
    spill_bytes: int  # stored and loaded
    stack_bytes: int


def used_in(log: str, entry: str) -> KernelUse:
    """Return the resources of a kernel function from the output of `ptxas -v`."""
    part = log.partition(f"Compiling entry function '{entry}'")[2].partition("Compiling entry function")[0]

    def of(pattern: str) -> int:
        match = re.search(pattern, part)
        return int(match[1]) if match else 0

    spilled = of(r"(\d+) bytes spill stores") + of(r"(\d+) bytes spill loads")
    return KernelUse(of(r"Used (\d+) registers"), of(r"(\d+) bytes smem"), spilled, of(r"(\d+) bytes stack frame"))
