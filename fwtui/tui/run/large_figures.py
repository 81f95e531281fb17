"""The headline numbers in large digits, for whoever sits far from the screen."""

from __future__ import annotations

from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Digits, Static

from fwtui.analysis.limits import share_of_peak
from fwtui.common import units
from fwtui.stream.stages import doing
from fwtui.tui.widgets import wording
from fwtui.tui.widgets.readout import Subject


class Figure(NamedTuple):
    """One number with what it is; what has no number shows its words alone."""

    number: str
    words: str
    doubtful: bool = False


NOTHING = Figure("", "")


def figures(s: Subject | None) -> tuple[Figure, Figure, Figure]:
    """Total, rate, and how that compares with the baseline (else with the peak); progress until there is a time."""
    if s is None:
        return NOTHING, NOTHING, NOTHING
    run = s.run
    if run.simulated or run.seconds is None:
        if run.state == "running" and run.progress is not None:
            return Figure(f"{100 * min(run.progress.done, 1.0):.0f} %", doing(run.stage)), NOTHING, NOTHING
        words = wording.SIMULATED if run.simulated else "no time yet" if run.state == "running" else "no time"
        return Figure("", words), NOTHING, NOTHING
    doubtful = wording.doubtful(run)
    count = run.done.count if run.done is not None else len(run.samples)
    around = f"{units.spread(run.done.spread)}, " if run.done is not None and run.done.spread is not None else "so far, "
    how = "not to be trusted: " + wording.verdict(run)[0].lstrip("?✗ ") if doubtful else f"total, {around}{wording.passes(count)}"
    number, _, unit = units.rate(run.rate).partition(" ")
    rate = Figure(f"{number} {unit.removesuffix('relax/s')}".strip(), "relaxations per second", doubtful)
    return Figure(units.duration(run.seconds), how, doubtful), rate, _compared(s, doubtful)


def _compared(s: Subject, doubtful: bool) -> Figure:
    ratio = wording.speedup(s.run, s.baseline)
    if s.baseline is not None and ratio.endswith("x"):
        return Figure(ratio, f"as fast as run {s.baseline.id}, {s.baseline.title}", doubtful)
    share = share_of_peak(s.run, s.device)
    if share is None:
        return NOTHING
    return Figure(units.percent(share), "of peak bandwidth (model)", doubtful)


class Figures(Horizontal):
    DEFAULT_CSS = """
    Figures { height: auto; display: none; margin-top: 1; }
    Figures Vertical { width: 1fr; height: auto; }
    Figures Digits { height: 3; color: $text-primary; text-style: bold; }
    Figures Static { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    Figures .-doubtful { color: $text-error; text-style: strike; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown = (NOTHING, NOTHING, NOTHING)

    def compose(self) -> ComposeResult:
        for _ in self._shown:
            with Vertical() as place:
                place.display = False
                yield Digits("")
                yield Static(markup=False)

    def show(self, subject: Subject | None) -> None:
        """Show that run's numbers; what has not changed costs nothing."""
        now = figures(subject)
        for old, new, place in zip(self._shown, now, self.query(Vertical), strict=True):
            if new != old:
                place.display = new != NOTHING
                place.query_one(Static).update(Content(new.words))
                digits = place.query_one(Digits)
                digits.update(new.number)
                digits.set_class(new.doubtful, "-doubtful")
        self._shown = now
