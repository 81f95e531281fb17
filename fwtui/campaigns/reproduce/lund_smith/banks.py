"""Bank conflicts of the staged load's slices in shared memory, from the index pattern alone (Lund and Smith, section 4.3)."""

from __future__ import annotations

from collections import Counter


def conflict(cyclic: bool, banks: int, broadcasts: bool) -> int:
    """Threads of a half warp that one shared-memory bank must serve one after the other, the worse of the two tiles.

    16 threads own a 4 x 4 tile; slices are stored as 4 x 4 tiles, row by row. Where same-word reads are
    broadcast, only different words of one bank conflict; before, a half warp had to read one single word for that.
    """
    worst = 1
    for step in range(4):
        for i_aligned in (False, True):
            words = []
            for thread in range(16):
                i, j = divmod(thread, 4)
                k = (step + i + j) % 4 if cyclic else step
                words.append(4 * i + k if i_aligned else 4 * k + j)
            served = Counter(word % banks for word in (set(words) if broadcasts else words))
            worst = max(worst, *served.values())
    return worst
