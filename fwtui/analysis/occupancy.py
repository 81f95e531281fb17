"""Theoretical occupancy: the number of blocks of a kernel that fit on one multiprocessor.

Limits per compute capability: NVIDIA CCCL, `cuda/__device/arch_traits.h` (Apache-2.0). Allocation units and rules:
CUDA C++ Programming Guide, appendix "Compute Capabilities", and the occupancy calculator of Nsight Compute; additions: table
"Throughput of Native Arithmetic Instructions" of that guide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fwtui_kernels.plan import WARP

KIB = 1024
MAX_THREADS = 1024  # per block
MAX_REGISTERS = 255  # per thread
REGISTERS = 65536  # per multiprocessor
REGISTER_UNIT = 256  # registers are allocated per warp, in units of this many
WARP_UNIT = 4  # a block's warps are rounded up to this for the register limit
STATIC_SHARED = 48 * KIB  # limit of a block without opting in to more


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """The resources of one multiprocessor by compute capability; sizes in bytes."""

    warps: int
    blocks: int
    shared: int
    shared_per_block: int  # at most, when opted in
    shared_reserved: int = KIB  # reserved by the system for every block
    shared_unit: int = 128
    barriers: int | None = None  # None: never the limit
    registers_per_block: int = REGISTERS
    partitions: int = 4  # each with its own register file, scheduling whole warps
    fp32_lanes: int = 128  # 32-bit floating-point additions per clock


def _before_ampere(warps: int, blocks: int, shared: int, per_block: int, **more: int) -> Multiprocessor:
    return Multiprocessor(warps, blocks, shared * KIB, per_block * KIB, shared_reserved=0, shared_unit=256, **more)


TABLE: Mapping[tuple[int, int], Multiprocessor] = {
    (5, 0): _before_ampere(64, 32, 64, 48),
    (5, 2): _before_ampere(64, 32, 96, 48),
    (5, 3): _before_ampere(64, 32, 64, 48, registers_per_block=32768),
    (6, 0): _before_ampere(64, 32, 64, 48, partitions=2, fp32_lanes=64),
    (6, 1): _before_ampere(64, 32, 96, 48),
    (6, 2): _before_ampere(64, 32, 64, 48, registers_per_block=32768),
    (7, 0): _before_ampere(64, 32, 96, 96, fp32_lanes=64),
    (7, 2): _before_ampere(64, 32, 96, 96, fp32_lanes=64),
    (7, 5): _before_ampere(32, 16, 64, 64, fp32_lanes=64),
    (8, 0): Multiprocessor(64, 32, 164 * KIB, 163 * KIB, fp32_lanes=64),
    (8, 6): Multiprocessor(48, 16, 100 * KIB, 99 * KIB),
    (8, 7): Multiprocessor(48, 16, 164 * KIB, 163 * KIB),
    (8, 9): Multiprocessor(48, 24, 100 * KIB, 99 * KIB),
    (9, 0): Multiprocessor(64, 32, 228 * KIB, 227 * KIB, barriers=64),
    (10, 0): Multiprocessor(64, 32, 228 * KIB, 227 * KIB, barriers=64),
    (10, 3): Multiprocessor(64, 32, 228 * KIB, 227 * KIB, barriers=32),
    (11, 0): Multiprocessor(48, 24, 228 * KIB, 227 * KIB, barriers=24),
    (12, 0): Multiprocessor(48, 24, 100 * KIB, 99 * KIB, barriers=24),
    (12, 1): Multiprocessor(48, 24, 100 * KIB, 99 * KIB, barriers=24),
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """Resident blocks and warps per multiprocessor, and the resources that limit them."""

    blocks: int
    warps: int
    max_warps: int
    limits: Mapping[str, int]  # blocks allowed by each resource; a resource that is not used is missing
    limiters: tuple[str, ...]  # all resources that allow only `blocks`

    @property
    def fraction(self) -> float:
        """Theoretical occupancy as a share of 1."""
        return self.warps / self.max_warps


def occupancy(cc: tuple[int, int] | None, threads: int, registers: int, shared_bytes: int, barriers: int = 1) -> Estimate | None:
    """Return the occupancy of blocks of `threads` threads with `registers` per thread and `shared_bytes` per block.

    Shared memory is static plus dynamic memory, with the largest carve-out, which the driver prefers by default. None for an
    unknown compute capability. Zero blocks if one block is too large.
    """
    has = TABLE.get(cc) if cc is not None else None
    if has is None:
        return None
    if threads < 1:
        raise ValueError(f"a block of {threads} threads is empty; pass at least 1")
    warps = -(-threads // WARP)
    limits = {"warps": has.warps // warps if threads <= MAX_THREADS else 0, "blocks": has.blocks}
    if registers > 0:
        limits["registers"] = _by_registers(has, warps, registers)
    shared = _by_shared_memory(has, shared_bytes)
    if shared is not None:
        limits["shared memory"] = shared
    if has.barriers is not None and barriers > 0:
        limits["barriers"] = has.barriers // barriers
    blocks = min(limits.values())
    limiters = tuple(name for name, limit in limits.items() if limit == blocks)
    return Estimate(blocks, blocks * warps, has.warps, limits, limiters)


def _by_registers(has: Multiprocessor, warps: int, registers: int) -> int:
    per_warp = _up(registers * WARP, REGISTER_UNIT)
    if registers > MAX_REGISTERS or per_warp * _up(warps, WARP_UNIT) > has.registers_per_block:
        return 0
    return REGISTERS // has.partitions // per_warp * has.partitions // warps


def _by_shared_memory(has: Multiprocessor, shared_bytes: int) -> int | None:
    needed = shared_bytes + has.shared_reserved
    if not needed:
        return None
    most = max(STATIC_SHARED, has.shared_per_block) + has.shared_reserved
    return has.shared // _up(needed, has.shared_unit) if needed <= most else 0


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
