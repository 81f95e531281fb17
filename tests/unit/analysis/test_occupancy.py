"""Theoretical occupancy: worked cases, limits, and a brute-force restatement of the allocation rules."""

from __future__ import annotations

import random

import pytest

from fwtui.analysis.occupancy import occupancy

# compute capability -> warps, block slots, shared memory, most of it per block, reserved, unit, barriers (None: no limit);
# written out again here, so that a slip in the table shows
WRITTEN_OUT = {
    (7, 5): (32, 16, 65536, 65536, 0, 256, None),
    (8, 0): (64, 32, 167936, 166912, 1024, 128, None),
    (8, 6): (48, 16, 102400, 101376, 1024, 128, None),
    (8, 9): (48, 24, 102400, 101376, 1024, 128, None),
    (9, 0): (64, 32, 233472, 232448, 1024, 128, 64),
    (10, 0): (64, 32, 233472, 232448, 1024, 128, 64),
    (12, 0): (48, 24, 102400, 101376, 1024, 128, 24),
}


@pytest.mark.parametrize(
    ("ccs", "threads", "registers", "shared_bytes", "barriers", "blocks", "limiters"),
    [
        # a tile of 32 x 32 fills a multiprocessor of whole kilothreads, and leaves a third of 48 warps idle
        ([(7, 5)], 1024, 30, 8192, 1, 1, {"warps"}),
        ([(8, 0), (9, 0), (10, 0)], 1024, 30, 8192, 1, 2, {"warps", "registers"}),
        ([(8, 6), (8, 9), (12, 0)], 1024, 30, 8192, 1, 1, {"warps"}),
        # one of 16 x 16 fills each
        ([(7, 5)], 256, 32, 2048, 1, 4, {"warps"}),
        ([(8, 0), (9, 0)], 256, 32, 2048, 1, 8, {"warps", "registers"}),
        ([(8, 6), (8, 9), (12, 0)], 256, 32, 2048, 1, 6, {"warps"}),
        # registers go by whole warps: 16 of 4,096 fill the file
        ([(9, 0)], 256, 128, 0, 1, 2, {"registers"}),
        ([(9, 0)], 256, 129, 0, 1, 1, {"registers"}),
        # and by groups of four warps: 14 of 4,352 fit, 16 do not
        ([(6, 0)], 448, 136, 0, 1, 0, {"registers"}),
        # shared memory counts what the system reserves: 4 x 41 KiB of 164
        ([(8, 0)], 128, 16, 40 * 1024, 1, 4, {"shared memory"}),
        ([(8, 0)], 128, 16, 40 * 1024 + 1, 1, 3, {"shared memory"}),
        # barriers limit only where they are modelled
        ([(9, 0)], 32, 16, 0, 16, 4, {"barriers"}),
        ([(8, 0)], 32, 16, 0, 16, 32, {"blocks"}),
        ([(9, 0)], 64, 32, 0, 1, 32, {"warps", "blocks", "registers"}),  # every equal limit is named
        # a block that is too big does not fit at all
        ([(9, 0)], 1025, 16, 0, 1, 0, {"warps"}),
        ([(9, 0)], 32, 256, 0, 1, 0, {"registers"}),
        ([(9, 0)], 1024, 65, 0, 1, 0, {"registers"}),
        ([(9, 0)], 32, 16, 228 * 1024, 1, 0, {"shared memory"}),
    ],
)
def test_what_limits_the_blocks_of_a_multiprocessor(
    ccs: list[tuple[int, int]], threads: int, registers: int, shared_bytes: int, barriers: int, blocks: int, limiters: set[str]
) -> None:
    for cc in ccs:
        estimate = occupancy(cc, threads, registers, shared_bytes, barriers)
        assert estimate is not None and (estimate.blocks, set(estimate.limiters)) == (blocks, limiters), cc
        assert estimate.warps == blocks * -(-threads // 32)
        assert estimate.fraction == pytest.approx(estimate.warps / estimate.max_warps)


@pytest.mark.parametrize("cc", [None, (3, 5), (9, 9), (99, 0)])
def test_an_unknown_compute_capability_is_not_guessed_and_no_block_is_empty(cc: tuple[int, int] | None) -> None:
    assert occupancy(cc, 256, 32, 0) is None
    with pytest.raises(ValueError, match="0 threads"):
        occupancy((9, 0), 0, 32, 0)


def test_random_blocks_fit_exactly_as_often_as_brute_force_says() -> None:
    numbers = random.Random(2)
    for _ in range(2000):
        cc = numbers.choice(list(WRITTEN_OUT))
        threads, registers = numbers.randint(1, 1024), numbers.randint(1, 255)
        shared_bytes = numbers.choice([0, numbers.randint(0, 8192), numbers.randint(0, 240 * 1024)])
        barriers = numbers.choice([0, 1, 1, numbers.randint(1, 16)])
        estimate = occupancy(cc, threads, registers, shared_bytes, barriers)
        assert estimate is not None
        expected = _most_blocks(cc, threads, registers, shared_bytes, barriers)
        assert estimate.blocks == expected, (cc, threads, registers, shared_bytes, barriers)
        assert estimate.warps == expected * ((threads + 31) // 32)


def _most_blocks(cc: tuple[int, int], threads: int, registers: int, shared_bytes: int, barriers: int) -> int:
    """Add blocks until one resource is used up."""
    warps, slots, shared, most_shared, reserved, unit, most_barriers = WRITTEN_OUT[cc]
    block_warps = (threads + 31) // 32
    warp_registers = 256 * ((32 * registers + 255) // 256)
    block_shared = unit * ((shared_bytes + reserved + unit - 1) // unit)
    if shared_bytes > most_shared or warp_registers * 4 * ((block_warps + 3) // 4) > 65536:
        return 0
    places = 0  # warps that the four register files of 16,384 have room for
    for _ in range(4):
        free = 16384
        while free >= warp_registers:
            free -= warp_registers
            places += 1
    blocks = 0
    while (
        (blocks + 1) * block_warps <= min(warps, places)
        and blocks + 1 <= slots
        and (blocks + 1) * block_shared <= shared
        and (most_barriers is None or (blocks + 1) * barriers <= most_barriers)
    ):
        blocks += 1
    return blocks
