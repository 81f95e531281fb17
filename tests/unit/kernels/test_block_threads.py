"""Threads of a simulated block: sequential between barriers, in random order, with separate pending copies."""

import json
import re
from pathlib import Path

from in_simulator import in_simulator

PROGRAM = """
import json, sys
import numpy as np
sys.path.insert(0, {folder!r})
import threads
from fwtui_kernels.compiled.device import cuda

def ran(function, cells, threads=8, blocks=1):
    made = np.zeros(cells, np.int32)
    function[blocks, threads, 0, 16](made)
    return made.tolist()

orders = [ran(threads.order, 16, blocks=2) for _ in range(6)]
words = np.arange(1, 33, dtype=np.int32).reshape(8, 4)
seen = np.zeros((2, 8), np.int32)
threads.copied[1, 8](words, seen)
failed = []
for _ in range(5):
    try:
        ran(threads.failing, 8)
    except ZeroDivisionError as error:
        failed += error.__notes__
print(json.dumps([orders, seen.tolist(), ran(threads.counted, 24), failed, ran(threads.counted, 24), ran(threads.wide, 4, 4)]))
"""
KERNELS = """
import numpy as np
from part import at_a_barrier, width
from fwtui_kernels.compiled.device import commit_copies, copy_async, cuda, jit, wait_copies

@jit
def order(made):
    last = cuda.shared.array(1, np.int32)
    own = cuda.shared.array(8, np.int32)
    t = cuda.threadIdx.x
    if t == 0:
        last[0] = 0
    cuda.syncthreads()
    own[t] = last[0]
    last[0] += 1
    cuda.syncthreads()
    made[cuda.blockIdx.x * 8 + t] = own[7 - t]

@jit
def copied(words, seen):
    near = cuda.shared.array((8, 4), np.int32)
    t = cuda.threadIdx.x
    for i in range(4):
        near[t, i] = 0
    copy_async(near, 4 * t, words, 4 * t)
    commit_copies()
    cuda.syncthreads()
    if t % 2:
        wait_copies(0)
    cuda.syncthreads()
    seen[0, t] = near[t, 0]
    wait_copies(0)
    seen[1, t] = near[t, 0]

@jit
def counted(made):
    t = cuda.threadIdx.x
    made[t] = cuda.syncthreads_count(t < 3)
    made[8 + t] = cuda.syncthreads_and(t < 8)
    made[16 + t] = cuda.syncthreads_or(t == 3)

@jit
def failing(made):
    made[cuda.threadIdx.x] = at_a_barrier(cuda.threadIdx.x)
    cuda.syncthreads()

@jit
def wide(made):
    own = cuda.shared.array(0, np.int16)
    made[cuda.threadIdx.x] = width() + own.size
"""
PART = """
from fwtui_kernels.compiled.device import cuda, jit

@jit(device=True)
def at_a_barrier(t):
    cuda.syncthreads()
    return t // (t - t)

@jit(device=True)
def width():
    return cuda.blockDim.x
"""


def test_threads_take_turns(tmp_path: Path) -> None:
    (tmp_path / "threads.py").write_text(KERNELS)
    (tmp_path / "part.py").write_text(PART)
    orders, (early, late), counted, failed, again, wide = json.loads(in_simulator(PROGRAM.format(folder=str(tmp_path))))
    halves = [made[at : at + 8] for made in orders for at in (0, 8)]
    assert all(sorted(half) == list(range(8)) for half in halves), "a block's shared arrays are its own, and all threads see them"
    assert len(set(map(tuple, halves))) > 6, "in another order each time"
    words = list(range(1, 33, 4))
    assert early == [word if t % 2 else 0 for t, word in enumerate(words)] and late == words, "who waits has its own copies"
    assert counted == again == [3] * 8 + [1] * 16, "also after a block whose threads were left at a barrier"
    assert len(failed) == 5 and all(re.fullmatch(r"in block \(0, 0\), thread \(\d, 0\)", told) for told in failed)
    assert wide == [4 + 8] * 4, "no later launch finds the one that failed"
