"""Another way for Numba's simulator to run the threads of a block: between two barriers one after the other, each time in
another order, which no kernel may notice. Numba's own way starts anew, for each block, threads of the host that poll each
other: ten times slower, and which barrier is missing shows by luck.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from numba.cuda.simulator.kernel import BlockManager, BlockThread, Dim3  # type: ignore[import-not-found]


class _Hand(BlockThread):
    """A thread of the host, which is one thread of a block after another."""

    def __init__(self, manager: BlockManager) -> None:
        super().__init__(None, manager, (0, 0, 0), (0, 0, 0), False)
        self._turn, self._pause = Lock(), Lock()
        self._turn.acquire()
        self._pause.acquire()
        self.start()

    def begin(self, manager: BlockManager, block: tuple[int, ...], thread: tuple[int, ...], work: Callable[[], None]) -> None:
        wide, high, _ = manager._block_dim
        self._manager, self._work, self.ended, self.exception, self.abort = manager, work, False, None, False
        self.blockIdx, self.threadIdx = Dim3(*block), Dim3(*thread)
        self.thread_id = thread[0] + wide * (thread[1] + high * thread[2])

    def go_on(self) -> None:
        """Until its next barrier or its end."""
        self._turn.release()
        self._pause.acquire()

    def run(self) -> None:
        while True:
            self._turn.acquire()
            try:
                self._work()
            except Exception as error:
                at = f"block {_place(self.blockIdx)}, thread {_place(self.threadIdx)}"
                error.add_note(f"in {at}")
                self.exception = error
            self.ended = True
            self._pause.release()

    def syncthreads(self) -> None:
        self._pause.release()
        self._turn.acquire()
        if self.abort:
            raise RuntimeError("another thread of this block failed")


_hands: list[_Hand] = []


def _place(index: Any) -> tuple[int, int]:
    return index.x, index.y


def _run(self: BlockManager, grid_point: tuple[int, ...], *args: Any) -> None:
    threads = list(np.ndindex(*self._block_dim))
    while len(_hands) < len(threads):
        _hands.append(_Hand(self))
    alive = _hands[: len(threads)]
    for hand, thread in zip(alive, threads, strict=True):
        hand.begin(self, grid_point, thread, lambda: self._f(*args))
    failed = None
    while alive:
        random.shuffle(alive)
        for hand in alive:
            hand.abort = failed is not None
            hand.go_on()
            failed = failed or hand.exception
        alive = [hand for hand in alive if not hand.ended]
    if failed:
        raise failed


def take_turns() -> None:
    """Let every block of this process run so from now on."""
    BlockManager.run = _run
