"""The register-tiled rung with its critical path ahead of everything else.

    lane 1   pivot 0, panels 0 | cross 0, pivot 1, panels 1 | cross 1, pivot 2, panels 2 | ...
    lane 0                     |          bulk 0 -----------|-> waits    bulk 1 ---------|-> ...

The rest of round p is cut in two: the *cross*, which is the next pivot's row and column of tiles, and the *bulk*, everything
else. Once the cross is done the next pivot can be solved and its panels made, by a few multiprocessors, while all others work
on the bulk. Two panels alternate, as the bulk still reads the old one while the new one is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fwtui_kernels.parts import register_tiled as tiled
from fwtui_kernels.parts.products import program
from fwtui_kernels.parts.tuning import ALL, BULK, CROSS
from fwtui_kernels.plan import Shape, Step

BESIDE, AHEAD = 0, 1  # lanes; the higher of two ready ones goes first


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """The steps of `register-tiled`, with the rest of every round except the last in two parts."""
    last = shape.padded // shape.tile - 1
    steps: list[Step] = []
    bulk: tuple[int, ...] = ()  # the index of the last one

    for p in range(last + 1):
        steps.append(tiled.pivot_step(shape, p, AHEAD))
        if last:
            steps.append(tiled.panels_step(shape, p, AHEAD))
            steps.append(tiled.rest_step(shape, p, CROSS if p < last else ALL, AHEAD, bulk))
        if last > 1 and p < last:
            # it needs only the panels, but before the cross it would take the cross's multiprocessors
            steps.append(tiled.rest_step(shape, p, BULK, BESIDE, (len(steps) - 1,)))
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
    summary="The next round's pivot and panels are made while the bulk of this round's rest is still running.",
    lesson=(
        "Solving the pivot occupies one multiprocessor, the panels a few dozen; all others wait. But the next pivot and its "
        "panels need only one row and one column of tiles of this round. So these, the cross, are done first. Then two things "
        "run side by side: the next pivot with its panels, and the bulk of the rest, which is nearly all the work. On large "
        "graphs the first two phases vanish behind the third. On small ones the bulk is too short to hide them, and what counts "
        "is the chain of pivot, panels and cross. The two strands are lanes of the plan, with an `after` wherever one needs "
        "what the other made. In a captured graph they are branches, and the GPU starts whichever is ready."
    ),
    preference=60,
)
