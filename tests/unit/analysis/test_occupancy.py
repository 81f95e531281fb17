"""Theoretical occupancy: worked cases on either side of each limit."""

import pytest

from fwtui.analysis.occupancy import occupancy


@pytest.mark.parametrize(
    ("ccs", "threads", "registers", "shared_bytes", "barriers", "blocks", "limiters"),
    [
        # a tile of 32 x 32 fills a multiprocessor of whole kilothreads, and leaves a third of 48 warps idle
        ([(7, 5)], 1024, 30, 8192, 1, 1, {"warps"}),
        ([(8, 0), (9, 0), (10, 0)], 1024, 30, 8192, 1, 2, {"warps", "registers"}),
        ([(8, 6), (8, 9), (12, 0)], 1024, 30, 8192, 1, 1, {"warps"}),
        # registers go by whole warps: 16 of 4,096 fill the file
        ([(9, 0)], 256, 128, 0, 1, 2, {"registers"}),
        ([(9, 0)], 256, 129, 0, 1, 1, {"registers"}),
        # and by groups of four warps: 14 of 4,352 fit, 16 do not
        ([(6, 0)], 448, 136, 0, 1, 0, {"registers"}),
        # shared memory counts what the system reserves: 4 x 41 KiB of 164
        ([(8, 0)], 128, 16, 40 * 1024, 1, 4, {"shared memory"}),
        ([(8, 0)], 128, 16, 40 * 1024 + 1, 1, 3, {"shared memory"}),
        # and what one block may have of it
        ([(7, 5)], 32, 16, 65536, 1, 1, {"shared memory"}),
        ([(8, 0)], 32, 16, 166912, 1, 1, {"shared memory"}),
        ([(8, 6), (8, 9), (12, 0)], 32, 16, 101376, 1, 1, {"shared memory"}),
        ([(9, 0), (10, 0)], 32, 16, 232448, 1, 1, {"shared memory"}),
        ([(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)], 32, 16, 232449, 1, 0, {"shared memory"}),
        # barriers limit only where they are modelled
        ([(9, 0)], 32, 16, 0, 16, 4, {"barriers"}),
        ([(12, 0)], 32, 16, 0, 6, 4, {"barriers"}),
        ([(8, 0)], 32, 16, 0, 16, 32, {"blocks"}),
        ([(8, 9)], 32, 16, 0, 1, 24, {"blocks"}),
        ([(7, 5), (8, 6)], 32, 16, 0, 1, 16, {"blocks"}),
        ([(9, 0)], 64, 32, 0, 1, 32, {"warps", "blocks", "registers"}),  # every equal limit is named
        # a block that is too big does not fit at all
        ([(9, 0)], 1025, 16, 0, 1, 0, {"warps"}),
        ([(9, 0)], 32, 256, 0, 1, 0, {"registers"}),
    ],
)
def test_occupancy_names_the_limiters_of_a_multiprocessor(
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
