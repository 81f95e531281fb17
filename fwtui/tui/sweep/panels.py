"""What the sweep's screen says in words: how far it is, what is under the cursor, sentences."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from fwtui.campaigns.sweep.running import Sweep
from fwtui.campaigns.sweep.squares import Square, Squares
from fwtui.common import units
from fwtui.stream.model import Model
from fwtui.tui.widgets import readout, wording
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, Piece, line

STATUS_BAR = 24  # cells of the bar


class Status(Drawn[tuple[Sweep | None, object]]):
    """How far the sweep is. The second part of its subject is whatever changes while the sweep stays the same object."""

    def draw(self, subject: tuple[Sweep | None, object], width: int) -> Sequence[Content]:
        sweep = subject[0]
        if sweep is None:
            return [line(("runs of this session", MUTED))]
        total = len(sweep.grid.order)
        state = "sweeping" if sweep.going else "done" if sweep.done == total else "stopped"
        pieces: list[Piece] = [(f"{state:<10}", "$primary" if sweep.going else STRONG)]
        pieces += readout.meter(sweep.done / total if total else None, min(STATUS_BAR, max(4, width - 60)))
        pieces.append(f"{sweep.done:>5} of {total}")
        pieces.append((f"   {units.clock(sweep.queue.spent)} of {units.clock(sweep.queue.seconds)}", MUTED))
        if sweep.left_out:
            pieces.append((f"   {len(sweep.left_out)} left out", "$text-warning"))
        return [line(*pieces)]


def described(square: Square, squares: Squares, model: Model) -> str:
    """Everything about one square in a line."""
    run = square.run
    if run is None or run.state != "done":
        return square.why or (wording.outcome(run) if run is not None else square.state or "not run")
    best = squares.best_rate
    words = [f"run {run.id}", f"{units.duration(run.seconds)} {units.spread(run.done.spread if run.done else None)}".strip()]
    words.append(units.rate(run.rate))
    if run.rate and best:
        words.append(f"{units.percent(run.rate / best)} of the best")
    return " · ".join([*words, wording.outcome(run, model)])


def saved(square: Square) -> str:
    """A square in a saved table: its time and rate with what is to be kept in mind, or why there are none."""
    run = square.run
    if run is None or run.state != "done":
        return square.state
    return f"{units.duration(run.seconds)}, {units.rate(run.rate)}" + (", not verified" if wording.doubtful(run) else "")
