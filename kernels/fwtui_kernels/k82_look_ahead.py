"""The register-tiled rung with look-ahead: the critical path runs first.

    stream 1   pivot 0, panels 0 | cross 0, pivot 1, panels 1 | cross 1, pivot 2, panels 2 | ...
    stream 0                     |          bulk 0 -----------|-> waits    bulk 1 ---------|-> ...

The remainder of round p has two parts: the *cross*, the next pivot's row and column of tiles, and the *bulk*, all other tiles.
Once the cross is done, a few multiprocessors solve the next pivot and its panels while all others work on the bulk. Two panel
buffers alternate, because the bulk still reads the old one while the new one is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fwtui_kernels.parts import register_tiled as tiled
from fwtui_kernels.parts.products import program
from fwtui_kernels.parts.tuning import ALL, BULK, CROSS
from fwtui_kernels.plan import Shape, Step

MAIN, AHEAD = 0, 1  # streams; of two ready ones the higher number has priority


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Yield the steps of `register-tiled`, with the remainder of every round except the last in two parts."""
    last = shape.padded // shape.tile - 1
    steps: list[Step] = []
    bulk: tuple[int, ...] = ()  # index of the latest bulk step

    for p in range(last + 1):
        steps.append(tiled.pivot_step(shape, p, AHEAD))
        if last:
            steps.append(tiled.panels_step(shape, p, AHEAD))
            steps.append(tiled.rest_step(shape, p, CROSS if p < last else ALL, AHEAD, bulk))
        if last > 1 and p < last:
            # the bulk needs only the panels, but it waits for the cross, from which it would take multiprocessors
            steps.append(tiled.rest_step(shape, p, BULK, MAIN, (len(steps) - 1,)))
            bulk = (len(steps) - 1,)
    return iter(steps)


KERNEL = tiled.rung(
    id="look-ahead",
    title="Look-ahead",
    papers=(
        *tiled.PAPERS,
        "J. Kurzak, J. Dongarra, Implementing Linear Algebra Routines on Multi-Core Processors with Pipelining and a Look-Ahead, "
        "PARA 2006",
    ),
    plan=plan,
    build=partial(program, ahead=True),
    summary="The next round's pivot and panels are computed while the bulk of this round's remainder is still running.",
    lesson=(
        "The pivot occupies one multiprocessor and the panels a few dozen, while all others wait. But the next pivot and its "
        "panels need only one row and one column of tiles of this round: the cross, which is computed first. Then two things run "
        "concurrently: the next pivot with its panels, and the bulk of the remainder, which is nearly all the work. On large "
        "graphs the bulk hides the first two phases completely. On small ones it is too short, and the chain of pivot, panels "
        "and cross sets the time. The two chains are streams of the plan, with a dependency (`after`) wherever one needs a "
        "result of the other. In a CUDA graph they are branches, and the GPU starts whichever is ready."
    ),
    preference=60,
)
