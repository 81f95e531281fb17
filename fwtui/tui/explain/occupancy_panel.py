"""The occupancy panel: theoretical and achieved occupancy, and the resources of a block that limit it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.content import Content

from fwtui.analysis.bottleneck import counters_of
from fwtui.analysis.occupancy import KIB, TABLE, occupancy
from fwtui.common import units
from fwtui.stream import events
from fwtui.stream.model import Evidence, Model
from fwtui.stream.run import Run
from fwtui.tui.widgets.run_text import NOT_LIMITED, WHOLE_RUN, meter
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, hanging_indent, line

LABEL = 12
THIS_FUNCTION = "this function"
HEAD = line(("OCCUPANCY  ", f"{STRONG} $text-primary"))


class OccupancySubject(NamedTuple):
    """A kernel function of a run, and the GPU that ran it."""

    cuda: bool
    phase: str = ""
    capability: tuple[int, int] | None = None
    compiled: events.Occupancy | None = None
    achieved: float | None = None
    of: str = ""  # the part that was measured: WHOLE_RUN (GPM) or THIS_FUNCTION (counters)


class OccupancyPanel(TextPanel[OccupancySubject | None]):
    """Theoretical and achieved occupancy of a kernel function, its limiters, and the blocks that each resource allows."""

    NOTHING = HEAD, line(("no run yet", MUTED))

    def follow(self, model: Model, run: Run | None, evidence: Evidence | None, op: str) -> None:
        """Show a kernel function of the run; empty `op`: its main one."""
        if run is None:
            self.show(None)
            return
        found, gpu = next((o for o in run.occupancies if o.op == op), run.main_occupancy), model.gpu_of(run)
        counted = counters_of(run, found.op).get("occupancy") if found is not None else None
        achieved = counted if counted is not None else evidence.sm_occupancy if evidence is not None else None
        of = THIS_FUNCTION if counted is not None else WHOLE_RUN
        phase = run.phase_title(found.op) if found is not None else ""
        capability = gpu.compute_capability if gpu is not None else None
        self.show(OccupancySubject(run.backend == "cuda", phase, capability, found, achieved, of))

    def draw(self, subject: OccupancySubject, width: int) -> Sequence[Content]:
        head = line(HEAD, (subject.phase, STRONG))
        if not subject.cuda:
            return [head, line(("occupancy needs a GPU; this run used the CPU", MUTED))]
        compiled = subject.compiled
        share = compiled.warps / compiled.max_warps if compiled is not None and compiled.max_warps else None
        warps = f"{compiled.warps}/{compiled.max_warps} warps" if compiled is not None else ""
        rows = [head, _bar("theoretical", share, width, warps), _bar("achieved", subject.achieved, width, subject.of)]
        if subject.capability not in TABLE:
            return [*rows, line(("no occupancy table for the compute capability of this GPU", MUTED))]
        shared = -(-compiled.shared_bytes // KIB) if compiled is not None else 0
        one = occupancy(subject.capability, compiled.threads, compiled.registers, shared * KIB) if compiled is not None else None
        if compiled is not None and one is not None:
            limiter = " and ".join(one.limiters) if one.fraction < 1 else NOT_LIMITED
            rows.append(line((f"{'limiter':<{LABEL}}", MUTED), (limiter, STRONG)))
            rows += hanging_indent("blocks/SM", LABEL, [f"{name} {blocks}" for name, blocks in one.limits.items()], width)
            each = [f"{compiled.threads} threads", f"{compiled.registers} registers/thread", f"{shared} KiB shared memory"]
            rows += hanging_indent("block", LABEL, each, width)
        return rows


def _bar(label: str, share: float | None, width: int, text: str) -> Content:
    room = max(4, width - LABEL - 9 - 15)
    if share is None:
        return line((f"{label:<{LABEL}}", MUTED), (" " * room + f"{units.ABSENT:>9}", MUTED))
    return line((f"{label:<{LABEL}}", MUTED), *meter(share, room), (f"{units.percent(share):>9}", STRONG), (f" {text}", MUTED))
