"""Theoretical occupancy of what was compiled: blocks from the driver's calculator, limiters from the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fwtui.analysis.occupancy import occupancy
from kernels.plan import WARP, Program, Target


def occupancies(program: Program, target: Target) -> Iterator[dict[str, Any]]:
    """Fields of an events.Occupancy for every op that the compiler says something about."""
    for op, got in program.resources().items():
        table = occupancy(target.cc, got.threads, got.registers, got.shared_bytes)
        blocks = got.blocks_per_multiprocessor
        if blocks is None and table is None:
            continue
        if blocks is None:
            assert table is not None
            blocks = table.blocks
        # a driver that knows better than the table also knows another limiter
        agreed = table is not None and table.blocks == blocks
        yield {
            "op": op,
            "threads": got.threads,
            "registers": got.registers,
            "shared_bytes": got.shared_bytes,
            "spill_bytes": got.spill_bytes,
            "blocks": blocks,
            "warps": blocks * -(-got.threads // WARP),
            "max_warps": table.max_warps if table is not None else 0,
            "limiters": table.limiters if table is not None and agreed else (),
            "source": "table" if got.blocks_per_multiprocessor is None else "driver",
        }
