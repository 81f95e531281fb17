"""LS6: whether the naive kernel is bound by the bus, from the most direct thing that a session holds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from fwtui.campaigns.reproduce import causes
from fwtui.campaigns.reproduce.claim import TOLERANCE, Answer, judged, times
from fwtui.campaigns.reproduce.lund_smith.kernels import NAIVE, at
from fwtui.campaigns.reproduce.runs import Missing, Results, ask
from fwtui.common import units

COPY_BANDWIDTH, NAIVE_BANDWIDTH = 77e9, 42e9  # bytes/s, sections 2 and 5
TASK_BYTES = 16  # that a task moves where nothing is kept: three words read, one written
COUNTERS = "counters"
SHARED = "Row k and column k come from caches, so that the memory moves less than the model says"
BESIDE = "The kernel waits for more than the bus"


def memory_peak(results: Results) -> float:
    """Bytes per second that device memory could move. Raises Missing."""
    if not results.device.peak_bytes_per_second:
        raise Missing("the peak bandwidth of this device is not known")
    return results.device.peak_bytes_per_second


def bus(results: Results) -> Answer:
    """LS6: what counters or GPM say of the memory and of computing, else the model's bandwidth.

    Fuller than the document's is bound all the more. A matrix that the L2 cache holds shows what the kernel does without the bus.
    """
    cached = results.device.l2_bytes or 0
    beyond = [n for n in results.sizes(at(NAIVE)) if 4 * n * n > cached]
    if not beyond:
        raise Missing(f"the naive kernel was run only on matrices that fit into {units.memory(cached)} of L2 cache")
    least = NAIVE_BANDWIDTH / COPY_BANDWIDTH / TOLERANCE
    measured = _measured(results, beyond)
    if measured is not None:
        dram, computing, n, teller = measured
        value = (
            f"{_model_share(results, n)[1]}, DRAM {units.percent(dram)}, computing {units.percent(computing)} by {teller} (n {n})"
        )
        reason = "the memory is not busy enough" if dram < least else "the bus is less busy than what computes"
        full = computing >= causes.FULL
        waits = "its threads wait for what they asked for" if teller == COUNTERS else "it waits, for what needs counters"
        cause = f"{SHARED}, and {'it computes all the time' if full else f'neither is full: {waits}'}"
        return judged(least <= dram >= computing, value, reason, cause=cause)
    share, value = _model_share(results, beyond[-1])
    if share > 1:
        reason = "the model's traffic is more than the bus can carry, so caches serve a part of it"
        return judged(False, f"{value} (n {beyond[-1]})", reason, "the DRAM share itself needs counters", SHARED)
    held = [n for n in results.sizes(at(NAIVE)) if n not in beyond]
    if held and share >= least:
        without = results.seconds(ask(NAIVE, beyond[-1])) / results.seconds(ask(NAIVE, held[-1])) * (held[-1] / beyond[-1]) ** 3
        value = f"{value} (n {beyond[-1]}); {times(without)} the rate where the L2 cache holds all (n {held[-1]})"
        reason = "without the bus it is hardly faster" if without < TOLERANCE else ""
        return judged(without >= TOLERANCE, value, reason, "the DRAM share itself needs counters", BESIDE)
    return judged(share >= least, f"{value} (n {beyond[-1]})", "", "the DRAM share itself needs counters")


def _measured(results: Results, sizes: Sequence[int]) -> tuple[float, float, int, str] | None:
    """Shares of memory's and of computing's peak for the naive kernel, the size and who says so: counters, else GPM."""
    with suppress(Missing):
        n = results.counted_at("relax", "dram_share", at(NAIVE))
        if n in sizes:
            dram, compute = (results.counter(ask(NAIVE, n), "relax", name) for name in ("dram_share", "compute_share"))
            return dram, compute, n, COUNTERS
    for n in reversed(sizes):
        with suppress(Missing):
            integer, dram = causes.busy(results, at(NAIVE), n)
            return dram, integer, n, "GPM"
    return None


def _model_share(results: Results, n: int) -> tuple[float, str]:
    """Of what a copy in the device's memory reached, as the document has it, where the session holds that."""
    limits = results.model.limits.get("cuda")
    copied = limits.copy_bytes_per_second if limits is not None else None
    share = n**3 * TASK_BYTES / results.seconds(ask(NAIVE, n)) / (copied or memory_peak(results))
    return share, f"model {units.percent(share)} of {'a measured copy' if copied else 'the peak on the data sheet'}"
