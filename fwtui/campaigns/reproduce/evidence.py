"""What a session bears out of why a kernel takes its time: by its times, GPM, hardware counters and compiled code.

Sentences are empty where it bears nothing out; numbers raise Missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cache

from fwtui.analysis.occupancy import occupancy
from fwtui.campaigns.reproduce.claim import TOLERANCE
from fwtui.campaigns.reproduce.results import Make, Missing, Results, known, needed
from fwtui.common import units
from fwtui.common.child_process import ChildProcess, python
from fwtui.common.environment import worker_environment
from fwtui.common.units import gain as times
from fwtui.experiment.experiment import Experiment
from fwtui.stream.run import same
from kernels.plan import WARP

FULL = 0.9  # of a unit's time
LAUNCHES = 3  # of a round of the blocked kernels
STARTED_ALIKE = 1.25  # rates of blocks of two sizes that the same thing may limit
MOST_RESIDENT = 2048  # threads that a multiprocessor of any GPU holds at most
ROWS = 8  # of threads in a block of 256
OP = "rest"  # the op that decides a blocked kernel's time, whose counters and resources are read
NO_LOADS = "the counters hold no load from global memory"
COMPILING_SECONDS = 120.0  # at most


def integer_bound(results: Results, *makes: Make) -> str:
    """How full GPM found the integer units and the memory in the largest run of these that it read, if the former were full."""
    for make in makes:
        for n in sorted({run.n for run in results.runs}, reverse=True):
            with suppress(Missing):
                integer, dram = results.gpm(make(n))
                if integer >= FULL:
                    tile = f", tile {make(n).tile}" if make(n).tile else ""
                    shares = f"the integer units {units.percent(integer)} busy and the memory {units.percent(dram)}"
                    return f"{make(n).kernel} keeps {shares} (GPM, n {n}{tile})"
    return ""


def blocks_a_second(results: Results, make: Make, n: int, side: int = 1) -> float:
    """Blocks that a kernel with side x side results a thread and one launch for each k starts in a second. Raises Missing."""
    threads = make(n).options.get("threads", WARP * ROWS)
    across, down = WARP * side, threads // WARP * side
    return -(-n // across) * -(-n // down) * n / results.seconds(make(n))


def billions(rate: float) -> str:
    """So many thousand millions, in words."""
    return f"{units.digits(rate / 1e9)} billion"


def starting(results: Results, small: Make, large: Make) -> str:
    """Whether small and large blocks are started at one rate, so that this, and not what they do, may be the limit."""
    with suppress(Missing):
        n = results.sizes(small, large)[-1]
        rates = [blocks_a_second(results, make, n) for make in (large, small)]
        if max(rates) <= min(rates) * STARTED_ALIKE:
            counts = [make(n).options["threads"] for make in (large, small)]
            words = f"{billions(rates[0])} blocks of {counts[0]} threads a second and {billions(rates[1])} of {counts[1]}"
            return f"{large(n).kernel} starts {words} (n {n}): starting blocks seems to be its limit, not memory"
    return ""


def smaller_squares(results: Results, makes: Mapping[int, Make], n: int, best: int, usual: int, starts: bool) -> str:
    """Why h x h results a thread may be best for a smaller h than the usual one; `starts`: whether starting blocks costs."""
    words: list[str] = []
    if starts and best > 1:
        one, two = (blocks_a_second(results, makes[h], n, h) for h in (1, best))
        words.append(f"h = 1 starts {billions(one)} blocks a second, where that is a limit, and h = {best} {billions(two)}")
    threads = (n // usual) ** 2
    if threads > MOST_RESIDENT * (results.device.multiprocessors or threads):
        words.append(f"h = {usual} still has {threads:,} threads, more than this GPU holds at once, so it does not lack them")
    words.append(
        "a warp's threads lie h columns apart, so the larger h is the less their accesses join (counters would say how much)"
    )
    return "; ".join(words)


def saved_launches(results: Results, one: Make, many: Make, single: Make, n: int, rounds: int) -> str:
    """Whether what one launch gains over three a round may be these launches; what one takes is the smallest `single` run's."""
    each = (results.seconds(many(n)) - results.seconds(one(n))) / rounds
    words = f"It gains {units.duration(each)} in each of {rounds} rounds (n {n})"
    with suppress(Missing):
        small = results.sizes(single)[0]
        launches = LAUNCHES * results.seconds(single(small)) / small
        if each <= launches * TOLERANCE:
            return f"{words}, as much as {LAUNCHES} launches, which take {units.duration(launches)}"
        return f"{words}, and {LAUNCHES} launches take {units.duration(launches)}, so it is not they"
    return ""


def gain(results: Results, slow: Make, fast: Make, n: int) -> str:
    """How many times as fast, in words; empty where one was not run at that size."""
    with suppress(Missing):
        return times(results.seconds(slow(n)) / results.seconds(fast(n)))
    return ""


def ways(results: Results, make: Make) -> float:
    """Wavefronts that its reads of shared memory took for each one that they would take without bank conflicts."""
    taken, extra = _pair(results, make, "shared_load_wavefronts", "shared_load_conflicts")
    return taken / needed(max(0.0, taken - extra), "the counters of shared memory contradict each other")


def sectors(results: Results, make: Make) -> float:
    """Sectors of 32 bytes that one load from global memory asks for."""
    asked, loads = _pair(results, make, "global_load_sectors", "global_load_requests")
    return needed(asked, NO_LOADS) / needed(loads, NO_LOADS)


def full(results: Results, make: Make) -> str:
    """What counters say of a kernel that keeps something on the chip busy all the time; empty otherwise."""
    with suppress(Missing):
        n = results.counted_at(OP, "memory_share", make)
        compute, moved, dram = (results.counter(make(n), OP, f"{what}_share") for what in ("compute", "memory", "dram"))
        if max(compute, moved) >= FULL:
            words = f"{make(n).kernel} keeps what computes {units.percent(compute)} busy, what fetches and stores"
            return f"{words} {units.percent(moved)}, and the memory outside the chip {units.percent(dram)} (counters, n {n})"
    return ""


def counted(results: Results, key: str, *makes: Make) -> tuple[int, list[float]]:
    """The largest size at which all of them have that counter, and what it is for each there."""
    n = results.counted_at(OP, key, *makes)
    return n, [results.counter(make(n), OP, key) for make in makes]


def shared_bytes(results: Results, kernel_id: str) -> tuple[int, str]:
    """Bytes of shared memory of the kernel's main op, and in words how many blocks fit and what limits them. Raises Missing.

    For float32, the kernel's own tile and options: from a run's own words, else from compiling it without a GPU.
    """
    kernel = known(kernel_id)
    for run in results.runs:
        told = next((o for o in run.occupancies if o.op == OP), None)
        if told is not None and same(run, Experiment(kernel=kernel_id), kernel):
            cc = results.model.gpu.compute_capability if results.model.gpu is not None else None
            table = occupancy(cc, told.threads, told.registers, told.shared_bytes)
            allowed = f"{table.limits['shared memory']} by shared memory, " if table and "shared memory" in table.limits else ""
            limited = f", limited by {', '.join(told.limiters)}" if told.limiters else ""
            return told.shared_bytes, f"here {allowed}{told.blocks} fit{limited}"
    compiled = _compiled(kernel_id)
    if isinstance(compiled, str):
        raise Missing(compiled)
    return compiled[OP], "compiled without a GPU"


@cache
def _compiled(kernel_id: str) -> Mapping[str, int] | str:
    """Shared bytes by op, or in words why it could not be compiled."""
    try:
        child = ChildProcess(python("fwtui.measure.off_gpu_compile", kernel_id), worker_environment("real"))
        ended = child.finish(COMPILING_SECONDS)
    except OSError:
        return "the compiler did not answer"
    if ended.code:
        return "needs a GPU, or the CUDA compiler of numba-cuda"
    return json.loads(ended.stdout) if ended.code == 0 else "the compiler did not answer"


def _pair(results: Results, make: Make, first: str, second: str) -> tuple[float, float]:
    wanted = make(results.counted_at(OP, second, make))
    return results.counter(wanted, OP, first), results.counter(wanted, OP, second)
