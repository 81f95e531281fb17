"""What the live screen and the replay screen have in common: the same panels from the same Model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from threading import Thread
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import DataTable, Footer, OptionList, Static

from fwtui.model import Model
from fwtui.run import Run
from fwtui.text import clean
from fwtui.tui import claims, commands, notices, wording
from fwtui.tui.counters import CountersScreen
from fwtui.tui.dialogs import HelpScreen, LogScreen
from fwtui.tui.glossary import GLOSSARY, NUMBERS
from fwtui.tui.history import HistoryTable
from fwtui.tui.notices import Entry, LogLine
from fwtui.tui.run_panel import RunPanel
from fwtui.tui.strip import TelemetryStrip
from fwtui.tui.topbar import Top, TopBar

LEAST = (60, 16)  # columns and rows below which a card says what is needed
BASELINE = Binding("b", "baseline", "Baseline", id="baseline", tooltip="compare with the marked run (again: stop comparing)")
COMMON = (
    Binding(
        "pageup",
        "scroll_run(-1)",
        "Panel up",
        id="panel.up",
        show=False,
        priority=True,
        tooltip="scroll the run's panel up, where it is taller than its place",
    ),
    Binding(
        "pagedown",
        "scroll_run(1)",
        "Panel down",
        id="panel.down",
        show=False,
        priority=True,
        tooltip="scroll the run's panel down",
    ),
    Binding(
        "h",
        "counters",
        "Counters",
        id="counters",
        show=False,
        tooltip="hardware counters of the run that is shown: profiled apart by ncu, never timed with it",
    ),
    Binding("l", "log", "Log", id="log", show=False, tooltip="the whole log, and the last words of whoever died"),
    Binding("question_mark,f1", "help", "Help", id="help", key_display="?", tooltip="every key, and what the words mean"),
    Binding("q", "leave", "Quit", id="quit", tooltip="end the program; a run that is going is cancelled"),
)


EVERYWHERE = (
    Binding("tab", "", "Next", tooltip="to the next field; shift+tab to the one before"),
    Binding("ctrl+p", "", "Palette", tooltip="kernels, sessions, themes, screenshot"),
)
MOVES = (
    Binding("up", "", "Up", tooltip="mark the run above"),
    Binding("down", "", "Down", tooltip="mark the run below"),
    Binding("enter", "", "Show", tooltip="show the marked run"),
)


class Unanswered(Message):
    """Claims that could not be put to the test, in one sentence."""

    def __init__(self, sentence: str):
        super().__init__()
        self.sentence = sentence


class SessionScreen(Screen[None]):
    """Lays out the panels and keeps them in agreement with `model`, which subclasses provide."""

    DEFAULT_CSS = """
    SessionScreen #left { width: 36; padding: 0 1; border-right: solid $border-blurred; }
    SessionScreen #body { height: 1fr; min-height: 4; border-bottom: solid $border-blurred; }
    SessionScreen #history { height: 9; border-bottom: solid $border-blurred; padding: 0 1; }
    SessionScreen #line { display: none; height: 1; padding: 0 1; }
    SessionScreen.-short RunPanel Drawn { margin-top: 0; }
    SessionScreen.-flat RunPanel Drawn { margin-top: 0; }
    SessionScreen.-flat TelemetryStrip { max-height: 1; }
    SessionScreen #small { display: none; height: 1fr; width: 1fr; content-align: center middle; text-align: center; }
    SessionScreen .heading { color: $text-muted; text-style: bold; height: 1; }
    SessionScreen TopBar { border-bottom: none; }
    SessionScreen.-narrow #left { display: none; }
    SessionScreen.-narrow #line { display: block; }
    SessionScreen.-high #history { height: 18; }
    SessionScreen.-short #history { height: 4; border-bottom: none; }
    SessionScreen.-flat #history { height: 3; border-bottom: none; }
    SessionScreen.-short #body, SessionScreen.-flat #body { border-bottom: none; }
    SessionScreen.-tiny #screen, SessionScreen.-tiny Footer { display: none; }
    SessionScreen.-tiny #small { display: block; }
    """
    AUTO_FOCUS = "HistoryTable"
    COMMANDS: ClassVar = {commands.Commands}
    NAME = ""

    def __init__(self, model: Model):
        super().__init__()
        self.model = model
        self.selected: int | None = None  # the run that is shown; None follows the newest
        self.baseline: int | None = None
        self._told: Entry | None = None  # what the screen itself had to say last
        self._said_at = -1  # index of the model at that time
        self._shown: object = None
        self._possible: tuple[bool | None, ...] = ()

    def compose(self) -> ComposeResult:
        with Vertical(id="screen"):
            yield TopBar(Top(self.NAME))
            yield Static(id="line", markup=False)
            with Horizontal(id="body"):
                yield self.left()
                yield RunPanel()
            with Vertical(id="history"):
                yield HistoryTable()
            yield TelemetryStrip()
            yield LogLine(None)
            yield from self.bottom()
        yield Static(id="small", markup=False)
        yield Footer(compact=True)

    def left(self) -> Widget:
        """The left panel."""
        raise NotImplementedError

    def bottom(self) -> ComposeResult:
        """Lines under the log."""
        yield from ()

    def top(self) -> Top:
        return Top(self.NAME, wording.device(self.model))

    def advice(self) -> tuple[str, ...]:
        """What to do where there is no run yet."""
        return ("Nothing has run yet.",)

    def state(self) -> object:
        """Whatever decides, besides the model, what is shown; a new value shows everything again."""
        return None

    @property
    def narrow(self) -> bool:
        return not self.has_class("-wide")

    @property
    def run(self) -> Run | None:
        """The run that is shown."""
        if self.selected is not None and self.selected in self.model.runs:
            return self.model.runs[self.selected]
        return self.model.run

    def on_mount(self) -> None:
        self.call_after_refresh(self.update)

    def on_resize(self) -> None:
        width, height = self.app.size
        if (width, height) < LEAST or height < LEAST[1]:
            card = f"fwtui needs {LEAST[0]} x {LEAST[1]}\nthis terminal has {width} x {height}"
            self.query_one("#small", Static).update(Content(card))
        self.call_after_refresh(self.update, True)

    def update(self, forced: bool = False) -> None:
        """Agree with the model; costs nothing where nothing happened."""
        if not self.is_mounted:
            return
        now = (self.model.index, self.selected, self.baseline, self._told, self.narrow, self.state())
        if now == self._shown and not forced:
            return
        self._shown = now
        model = self.model
        baseline = model.runs.get(self.baseline) if self.baseline is not None else None
        self.query_one(TopBar).show(self.top())
        self.query_one(RunPanel).show(model, self.run, baseline, self.advice())
        self.query_one(HistoryTable).show(model, baseline, self.app.size.width - 2)
        self.query_one(TelemetryStrip).show(model)
        self.query_one(LogLine).show(self._latest())
        self._refresh_keys()

    def _refresh_keys(self) -> None:
        # only when they change: it makes the whole footer again
        possible = tuple(self.check_action(b.action, ()) for b in type(self).BINDINGS if isinstance(b, Binding))
        if possible != self._possible:
            self._possible = possible
            self.refresh_bindings()

    def say(self, text: str, level: str = "info") -> None:
        """A sentence of the screen itself on the log line, until something newer happens."""
        self._told = Entry(self.model.t, text, level) if text else None
        self._said_at = self.model.index
        self.update()

    def _latest(self) -> Entry | None:
        last = notices.latest(self.model)
        return self._told if self._told is not None and (last is None or last.t <= self._told.t) else last

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        marked = self.query_one(HistoryTable).marked
        self.selected = None if marked == self.model.current else marked
        self.update()

    def action_baseline(self) -> None:
        table = self.query_one(HistoryTable)
        run = table.marked if table.has_focus else (self.run.id if self.run is not None else None)
        self.baseline = None if run == self.baseline else run
        self.say(
            "no baseline"
            if self.baseline is None
            else f"run {self.baseline} is the baseline; runs of the same n are compared with it"
        )

    def action_counters(self) -> None:
        if self.run is not None and self.run.counted:
            self.app.push_screen(CountersScreen(self.run))

    def ask_claims(self, name: str) -> None:
        """Show what a document claims and what this session answers, as soon as that is known."""
        self.say(f"answering the claims of {name}")
        # a thread of its own: some claims are about code that is compiled for it
        Thread(target=self._answer, args=(name,), name="claims", daemon=True).start()

    def _answer(self, name: str) -> None:
        try:
            answered: Message = claims.answers(name, self.model)
        except Exception as error:
            answered = Unanswered(f"the claims of {name} could not be answered: {clean(str(error))}")
        with contextlib.suppress(RuntimeError):  # the screen is gone
            self.post_message(answered)

    def on_answered(self, event: claims.Answered) -> None:
        self.say("")
        self.app.push_screen(claims.ClaimsScreen(event))

    def on_unanswered(self, event: Unanswered) -> None:
        self.say(event.sentence, "error")

    def action_log(self) -> None:
        fault = self.model.fault
        self.app.push_screen(LogScreen(notices.entries(self.model), fault.stderr if fault is not None else ""))

    def action_help(self) -> None:
        groups = (("This screen", self.offered()), ("Table of runs", MOVES), ("Everywhere", EVERYWHERE))
        about = (("What the numbers mean", NUMBERS), ("Other words", GLOSSARY))
        self.app.push_screen(HelpScreen(groups, about))

    def offered(self) -> list[Binding]:
        """The bindings that the help shows."""
        return [binding for binding in type(self).BINDINGS if isinstance(binding, Binding)]

    def action_scroll_run(self, direction: int) -> None:
        panel = self.query_one(RunPanel)
        if direction > 0:
            panel.scroll_page_down(animate=False)
        else:
            panel.scroll_page_up(animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "scroll_run":
            return not isinstance(self.focused, OptionList)  # an open list of choices has pages of its own
        if action == "baseline":
            return bool(self.model.runs)
        if action == "counters":
            return self.run is not None and bool(self.run.counted)
        return True

    def commands(self) -> Iterator[commands.Command]:
        """What the palette offers here."""
        for active in self.active_bindings.values():
            binding = active.binding
            if active.enabled and active.node is self and binding.action != "help":
                words = f"{binding.description}: {binding.tooltip}"
                yield commands.Command(words, partial(self._do, binding.action))
        for name in claims.reproduced(self.model):
            yield commands.Command(f"Claims: {name}", partial(self.ask_claims, name), "what the document says, and this session")

    def _do(self, action: str) -> None:
        # not before the palette is closed
        self.call_later(self.run_action, action)
