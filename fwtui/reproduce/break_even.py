"""From which size on a GPU pays: bisection on the end-to-end time."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from fwtui.experiment import Experiment
from fwtui.reproduce.claim import TOLERANCE, Answer, Judge, judged
from fwtui.reproduce.runs import Make, Missing, Results
from fwtui.sweep.findings import bracket

LOW, HIGH = 16, 512
LARGEST = 1024  # runs above say nothing about where the break-even is


def search(results: Results, cpu: Make, gpu: Make, steps: int) -> Iterator[Experiment]:
    """Runs at both ends and then `steps` times in the middle (by ratio) of where the break-even must be."""
    low, high = LOW, HIGH
    for n in (low, high):
        yield cpu(n)
        yield gpu(n)
    for _ in range(steps):
        middle = round(sqrt(low * high))
        yield cpu(middle)
        yield gpu(middle)
        try:
            wins = results.end_to_end(gpu(middle)) <= results.end_to_end(cpu(middle))
        except Missing:
            return
        low, high = (low, middle) if wins else (middle, high)


def break_even(cpu: Make, gpu: Make, document: float) -> Judge:
    """Holds where the break-even is within the usual factor of the document's."""

    def judge(results: Results) -> Answer:
        sizes = [n for n in results.sizes(cpu, gpu) if n <= LARGEST]
        if not sizes:
            raise Missing(f"no size up to {LARGEST} was run on both")
        wins = {n: results.end_to_end(gpu(n)) <= results.end_to_end(cpu(n)) for n in sizes}
        low, high = bracket(wins)
        if high is None:
            return judged(False, f"above {low}", f"the CPU is faster up to n = {low}")
        if low is None:
            return judged(high <= document, f"at most {high}", f"the GPU is faster from n = {high} on, the smallest size run")
        middle = sqrt(low * high)
        holds = document / TOLERANCE <= middle <= document * TOLERANCE
        return judged(holds, f"between {low} and {high}", f"about {middle:.0f} vertices")

    return judge
