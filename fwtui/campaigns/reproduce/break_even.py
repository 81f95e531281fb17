"""The size from which a GPU pays: bisection on the end-to-end time."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from fwtui.campaigns.reproduce.claim import TOLERANCE, ClaimAnswer, judged
from fwtui.campaigns.reproduce.results import Make, Missing, Results
from fwtui.campaigns.sweep.findings import bracket
from fwtui.experiment.experiment import Experiment

LOW, HIGH = 16, 512
LARGEST = 1024  # runs above do not locate the break-even
GPUS_GAINED_MORE = "GPUs have gained more than single cores since then"
CAPTURED = "Here n launches are captured in one graph, which the host starts at once; the document does not give its launch times"
STEPS = 4  # leave a factor of 1.24 between the last loss and the first win


def search(results: Results, cpu: Make, gpu: Make, steps: int = STEPS) -> Iterator[Experiment]:
    """Runs at both ends and then `steps` times in the geometric middle of the interval with the break-even, if it is between."""
    low, high = LOW, HIGH
    for n in (low, high):
        yield cpu(n)
        yield gpu(n)
    for step in range(steps):
        try:
            if not step and (_wins(results, cpu, gpu, low) or not _wins(results, cpu, gpu, high)):
                return
            middle = round(sqrt(low * high))
            yield cpu(middle)
            yield gpu(middle)
            wins = _wins(results, cpu, gpu, middle)
        except Missing:
            return
        low, high = (low, middle) if wins else (middle, high)


def _wins(results: Results, cpu: Make, gpu: Make, n: int) -> bool:
    return results.end_to_end(gpu(n)) <= results.end_to_end(cpu(n))


def break_even(results: Results, cpu: Make, gpu: Make, document: float) -> ClaimAnswer:
    """Holds if the break-even is within the usual factor of the document's."""
    sizes = [n for n in results.sizes(cpu, gpu) if n <= LARGEST]
    if not sizes:
        raise Missing(f"no size up to {LARGEST} was run on both")
    wins = {n: _wins(results, cpu, gpu, n) for n in sizes}
    least, most = document / TOLERANCE, document * TOLERANCE
    low, high = bracket(wins)
    if high is None:
        if low is None or low < most:
            raise Missing(f"the CPU is faster up to n = {low}, and nothing larger was run on both")
        return judged(False, f"above {low}", f"the CPU is faster up to n = {low}")
    if low is None:
        if high > least:
            raise Missing(f"the GPU is faster at n = {high} already, and nothing smaller was run on both")
        return judged(False, f"at most {high}", f"the GPU is faster from n = {high} on, the smallest size run", cause=CAPTURED)
    inside, outside = least <= low and high <= most, low >= most or high <= least
    if not inside and not outside and high > low * TOLERANCE:
        raise Missing(f"it lies between {low} and {high}, and nothing between them was run on both")
    middle = sqrt(low * high)
    holds = inside or (not outside and least <= middle <= most)
    cause = CAPTURED if middle < document else ""
    return judged(holds, f"between {low} and {high}", f"about {middle:.0f} vertices", cause=cause)
