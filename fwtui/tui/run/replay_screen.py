"""A recorded session in the panels of the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from fwtui.common.text import shortened
from fwtui.experiment.fields import FIELDS
from fwtui.stream.run import Run
from fwtui.tui.frame.bindings import ANSWERS, BASELINE, COMMON, COUNTERS, MOTION, TRANSPORT
from fwtui.tui.run.session_screen import SessionScreen
from fwtui.tui.widgets.draft import titled
from fwtui.tui.widgets.drawn import MUTED, Drawn, line


class Shown(Drawn["Run | None"]):
    """The experiment of a run, read-only: the form's rows."""

    def draw(self, subject: Run | None, width: int) -> Sequence[Content]:
        if subject is None:
            return [line(("no run yet", MUTED))]
        e = subject.experiment
        rows = [("Kernel", subject.title or e.kernel)]
        for field in FIELDS[1:]:
            text = field.show(e)
            if text and not (field.name == "tile" and not e.tile):
                rows.append((titled(field), text))
            if field.name == "tile":
                rows += [(name.replace("_", " ").capitalize(), str(value)) for name, value in e.options.items()]
        return [line((f"{shortened(title, 12):<13}", MUTED), text) for title, text in rows]


class ReplayScreen(SessionScreen):
    DEFAULT_CSS = """
    ReplayScreen #what { height: auto; }
    """
    BINDINGS: ClassVar = [*TRANSPORT, BASELINE, ANSWERS, COUNTERS, MOTION, *COMMON]

    def left(self) -> Widget:
        return VerticalScroll(
            Static(Content("WHAT WAS RUN"), classes="heading", markup=False), Shown(None, id="what"), id="left", can_focus=False
        )

    def advice(self) -> tuple[str, ...]:
        playing = self.view.playback is not None and self.view.playback.player.playing
        state = "It is playing." if playing else f"Press {self.key_of('play')} to play it."
        keys = f"{self.key_of('run.next')} goes to where the next run begins, {self.key_of('help')} shows every key."
        return ("No run has begun yet at this position.", "", f"{state} {keys}")

    def state(self) -> object:
        return self.view.playback is not None and self.view.playback.player.playing

    def show(self) -> None:
        self.query_one(Shown).show(self.view.run)
        super().show()
