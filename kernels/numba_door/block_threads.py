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

Place = tuple[int, ...]


class _Hand(BlockThread):
    """A thread of the host, which is one thread of a block after another."""

    def __init__(self, manager: BlockManager) -> None:
        super().__init__(None, manager, (0, 0, 0), (0, 0, 0), False)
        self._turn, self._pause = Lock(), Lock()
        self._turn.acquire()
        self._pause.acquire()
        self.start()

    def begin(self, manager: BlockManager, block: Place, waiting: list[Place], work: Callable[[], None]) -> None:
        """Be those threads, until one comes to a barrier or fails; which it is has then been taken from the list."""
        self._manager, self._work, self.ended, self.exception, self.abort = manager, work, False, None, False
        self._waiting = waiting
        self.blockIdx = Dim3(*block)
        self.go_on()

    def go_on(self) -> None:
        """Until its next barrier or its end."""
        self._turn.release()
        self._pause.acquire()

    def run(self) -> None:
        while True:
            self._turn.acquire()
            try:
                while self._waiting:
                    self._be(self._waiting.pop())
                    self._work()
                    if self._paused:  # others go on with those that wait
                        break
            except Exception as error:
                at = f"block {_place(self.blockIdx)}, thread {_place(self.threadIdx)}"
                error.add_note(f"in {at}")
                self.exception = error
            self.ended = True
            self._pause.release()

    def syncthreads(self) -> None:
        self._paused = True
        self._pause.release()
        self._turn.acquire()
        if self.abort:
            raise RuntimeError("another thread of this block failed")

    def _be(self, thread: Place) -> None:
        wide, high, _ = self._manager._block_dim
        self._paused = False
        self.threadIdx = Dim3(*thread)
        self.thread_id = thread[0] + wide * (thread[1] + high * thread[2])


_hands: list[_Hand] = []


def _place(index: Any) -> tuple[int, int]:
    return index.x, index.y


def _run(self: BlockManager, grid_point: Place, *args: Any) -> None:
    threads = list(np.ndindex(*self._block_dim))
    random.shuffle(threads)
    waiting = threads[::-1]  # a hand takes from its end
    alive: list[_Hand] = []
    failed = None
    # one hand is all threads that come to no barrier
    while waiting and not failed:
        if len(alive) == len(_hands):
            _hands.append(_Hand(self))
        hand = _hands[len(alive)]
        hand.begin(self, grid_point, waiting, lambda: self._f(*args))
        failed = hand.exception
        if not hand.ended:
            alive.append(hand)
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
