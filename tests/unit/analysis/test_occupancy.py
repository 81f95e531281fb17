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


@pytest.mark.parametrize("cc", [(7, 5), (8, 0), (9, 0), (10, 0)])
def test_a_32_by_32_tile_fills_a_multiprocessor_of_whole_kilothreads(cc: tuple[int, int]) -> None:
    estimate = occupancy(cc, threads=1024, registers=30, shared_bytes=8192)
    assert estimate is not None
    assert estimate.fraction == 1.0


@pytest.mark.parametrize("cc", [(8, 6), (8, 9), (12, 0)])
def test_a_32_by_32_tile_leaves_a_third_of_48_warps_idle(cc: tuple[int, int]) -> None:
    estimate = occupancy(cc, threads=1024, registers=30, shared_bytes=8192)
    assert estimate is not None
    assert (estimate.blocks, estimate.warps, estimate.max_warps) == (1, 32, 48)
    assert estimate.fraction == pytest.approx(2 / 3)
    assert "warps" in estimate.limiters


@pytest.mark.parametrize("cc", [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (12, 0)])
def test_a_16_by_16_tile_fills_every_multiprocessor(cc: tuple[int, int]) -> None:
    estimate = occupancy(cc, threads=256, registers=32, shared_bytes=2048)
    assert estimate is not None
    assert estimate.fraction == 1.0


def test_registers_limit_by_whole_warps() -> None:
    estimate = occupancy((9, 0), threads=256, registers=128, shared_bytes=0)
    assert estimate is not None
    assert (estimate.blocks, estimate.limiters) == (2, ("registers",))  # 16 warps of 4,096 registers fill the file
    one_more = occupancy((9, 0), threads=256, registers=129, shared_bytes=0)
    assert one_more is not None
    assert one_more.blocks == 1


def test_shared_memory_counts_what_the_system_reserves() -> None:
    with_reserve = occupancy((8, 0), threads=128, registers=16, shared_bytes=40 * 1024)
    assert with_reserve is not None
    assert (with_reserve.blocks, with_reserve.limiters) == (4, ("shared memory",))  # 4 x 41 KiB of 164
    one_byte_more = occupancy((8, 0), threads=128, registers=16, shared_bytes=40 * 1024 + 1)
    assert one_byte_more is not None
    assert one_byte_more.blocks == 3


def test_barriers_limit_only_where_they_are_modelled() -> None:
    many = occupancy((9, 0), threads=32, registers=16, shared_bytes=0, barriers=16)
    assert many is not None
    assert (many.blocks, many.limiters) == (4, ("barriers",))
    older = occupancy((8, 0), threads=32, registers=16, shared_bytes=0, barriers=16)
    assert older is not None
    assert older.limiters == ("blocks",)


@pytest.mark.parametrize(
    ("threads", "registers", "shared_bytes", "limiter"),
    [(1025, 16, 0, "warps"), (32, 256, 0, "registers"), (1024, 65, 0, "registers"), (32, 16, 228 * 1024, "shared memory")],
)
def test_a_block_that_is_too_big_does_not_fit_at_all(threads: int, registers: int, shared_bytes: int, limiter: str) -> None:
    estimate = occupancy((9, 0), threads, registers, shared_bytes)
    assert estimate is not None
    assert (estimate.blocks, estimate.fraction, estimate.limiters) == (0, 0.0, (limiter,))


def test_a_block_needs_registers_for_whole_groups_of_four_warps() -> None:
    estimate = occupancy((6, 0), threads=448, registers=136, shared_bytes=0)  # 14 warps of 4,352 fit, 16 do not
    assert estimate is not None
    assert (estimate.blocks, estimate.limiters) == (0, ("registers",))


def test_every_equal_limit_is_named() -> None:
    estimate = occupancy((9, 0), threads=64, registers=32, shared_bytes=0)
    assert estimate is not None
    assert estimate.blocks == 32
    assert set(estimate.limiters) == {"warps", "blocks", "registers"}


@pytest.mark.parametrize("cc", [None, (3, 5), (9, 9), (99, 0)])
def test_an_unknown_compute_capability_is_not_guessed(cc: tuple[int, int] | None) -> None:
    assert occupancy(cc, 256, 32, 0) is None


def test_a_block_without_threads_is_refused() -> None:
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
