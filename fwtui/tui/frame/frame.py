"""The frame of every place: top bar, telemetry, log line, transport of a recording, footer, help, and keys they share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.events import ScreenResume
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Footer, Input, OptionList, Select, Static

from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.tui.arrow_keys import Arrowed
from fwtui.tui.frame import bindings, notices, palette
from fwtui.tui.frame.cost import CostLine, meter_of
from fwtui.tui.frame.dialogs import HelpScreen, LogScreen, MarkerScreen
from fwtui.tui.frame.glossary import GLOSSARY, NUMBERS
from fwtui.tui.frame.look import keymap_of, presenting, rebound
from fwtui.tui.frame.notices import Entry, LogLine
from fwtui.tui.frame.reasons import Reasoned
from fwtui.tui.frame.saving import FORMS, Saved
from fwtui.tui.frame.sizes import classes_at
from fwtui.tui.frame.telemetry_strip import TelemetryStrip
from fwtui.tui.frame.topbar import Top, TopBar
from fwtui.tui.frame.transported import Transported
from fwtui.tui.frame.view import View
from fwtui.tui.widgets import wording

LEAST = (60, 16)  # columns and rows below which a card says what is needed
ROOM_FOR_PALETTE = 80  # columns from which the footer names it
Words = tuple[tuple[str, str], ...]


class Painted(Message):
    """A place is seen for the first time."""


class Frame(Transported, Saved, Reasoned):
    """One place of the bar; live and in a replay it reads the same `view`, and nothing but `view.model` for its numbers.

    A new place is one file with a subclass of this, and one line in fwtui.tui.frame.places. The subclass provides

    - `PLACE`: its name in the registry;
    - `BINDINGS`: its own keys first, each with an id and a tooltip, then `*bindings.SHARED` (not inherited, so that a
      footer can put first what matters there);
    - `body()`: yields the widgets between top bar and telemetry strip; one of them should be `height: 1fr`;
    - `show()`: makes them agree with `self.view`; called at most ten times a second, and only while the place is
      seen and something happened, so it has to be cheap but need not be clever;
    - `state()`: whatever else, besides the view, decides what is shown: a new value leads to show();
    - `check_action()`: False for keys that can do nothing now, and `why_not()`: why (ask super() for all others);
    - where it applies: `panel()` (what PgUp and PgDn scroll), `table()` (what is saved as a table), `WORDS` (what its
      words mean, for the help), `MOVES` (keys of its widgets, for the help), `commands()` (more for the palette),
      `STRIP = False` (no telemetry strip).

    Classes set by the app for style sheets: -tiny, -narrow (below 100 columns), -wide, and -flat, -short, -tall, -high.
    """

    DEFAULT_CSS = """
    Frame #small { display: none; height: 1fr; width: 1fr; content-align: center middle; text-align: center; }
    Frame .heading { color: $text-muted; text-style: bold; height: 1; }
    Frame.-flat TelemetryStrip { max-height: 1; }
    Frame.-tiny #screen, Frame.-tiny Footer { display: none; }
    Frame.-tiny #small { display: block; }
    """
    COMMANDS: ClassVar = {palette.Commands}
    PLACE: ClassVar = ""
    STRIP: ClassVar = True
    WORDS: ClassVar[Words] = ()
    MOVES: ClassVar[tuple[str, tuple[Binding, ...]]] = ("", ())  # a title, and keys

    def __init__(self, view: View):
        super().__init__(view)
        # before there are widgets, because Textual finds the styles of all of them again when a class comes later
        self.add_class(*classes_at(*self.app.size), update=False)
        self._complete = False  # its widgets are there, and theirs
        self._shown: object = None
        self._possible: tuple[bool | None, ...] = ()

    def compose(self) -> ComposeResult:
        with Vertical(id="screen"):
            yield TopBar(Top(self.view.tabs, self.PLACE))
            yield from self.body()
            if self.STRIP:
                yield TelemetryStrip()
            yield LogLine(None)
            yield CostLine(None)
            if self.view.playback is not None:
                yield from self.transport(self.view.playback)
        yield Static(id="small", markup=False)
        yield Footer(compact=True)

    def body(self) -> ComposeResult:
        """The place's own widgets."""
        raise NotImplementedError

    def show(self) -> None:
        """Make them agree with the view."""
        raise NotImplementedError

    def state(self) -> object:
        """Whatever decides, besides the view, what is shown; a new value shows everything again."""
        return None

    def panel(self) -> Widget | None:
        """What the page keys scroll."""
        return None

    @property
    def narrow(self) -> bool:
        """Whether panels at the side have no room, or are not wanted."""
        return not self.has_class("-wide") or self.has_class("-presenter")

    def on_mount(self) -> None:
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self._complete = True
        self.update()
        self.call_after_refresh(self.begun)

    def begun(self) -> None:
        """It has been painted for the first time: what that need not wait for can begin."""
        self.post_message(Painted())

    def on_screen_resume(self, event: ScreenResume) -> None:
        event.refresh_styles &= self._complete  # they are fresh when the screen is: Textual resumes it twice then
        self.update()

    def on_resize(self) -> None:
        width, height = self.app.size
        if width < LEAST[0] or height < LEAST[1]:
            card = f"fwtui needs {LEAST[0]} x {LEAST[1]}\nthis terminal has {width} x {height}"
            self.query_one("#small", Static).update(Content(card))
        footer = self.query_one(Footer)
        if footer.show_command_palette != (width >= ROOM_FOR_PALETTE):
            footer.show_command_palette = width >= ROOM_FOR_PALETTE
            self.refresh_bindings()  # which makes the footer again
        self.call_after_refresh(self.update, True)

    def update(self, forced: bool = False) -> None:
        """Agree with the view; costs nothing where nothing happened."""
        if not self._complete:
            return
        if self.view.playback is not None:
            self.show_transport(self.view.playback)
        self._show_cost()
        self.set_class(presenting(self.app), "-presenter")
        now = (self.view.key, self.narrow, self.state())
        if now == self._shown and not forced:
            return
        self._shown = now
        self.query_one(TopBar).show(self._top())
        self.show()
        if self.STRIP:
            self.query_one(TelemetryStrip).show(self.model)
        if self.view.playback is not None:
            self.show_card()
        self.query_one(LogLine).show(self.view.latest)
        self._refresh_keys()

    def _show_cost(self) -> None:
        meter = meter_of(self.app)
        line = self.query_one(CostLine)
        if line.display != meter.shown:
            line.display = meter.shown
        if meter.shown:
            line.show(meter.read(self.model))

    def _top(self) -> Top:
        source = self.view.source
        recording = ""
        if source is not None and source.recorder is not None:
            recording = f"{units.clock(source.now - self.view.recording_since)} · {units.memory(source.recorder.bytes)}"
        paused = ""
        if source is not None and self.view.paused:
            missed = source.model.index - self.model.index
            paused = f"{units.clock(max(0.0, source.now - self.model.t))} · {missed:,} events"
        return Top(self.view.tabs, self.PLACE, wording.device(self.model), recording, paused)

    def _refresh_keys(self) -> None:
        # only when they change: it makes the whole footer again
        possible = tuple(self.check_action(b.action.partition("(")[0], ()) for b in self._own_bindings())
        if possible != self._possible:
            self._possible = possible
            self.refresh_bindings()

    def _own_bindings(self) -> list[Binding]:
        return rebound((binding for binding in type(self).BINDINGS if isinstance(binding, Binding)), keymap_of(self.app))

    def on_descendant_focus(self) -> None:
        self._refresh_keys()

    def say(self, text: str, level: str = "info") -> None:
        """A sentence of the program itself on the log line, until something newer happens."""
        self.view.told = Entry(self.model.t, text, level) if text else None
        self.update()

    def action_cancel(self) -> None:
        if self.view.campaign is not None:
            self.view.campaign.cancel()
        sweep = self.view.sweep
        if sweep is not None and sweep.going:
            sweep.cancel()
            self.say("the sweep is cancelled; what is done stays, and it can go on from there")
        elif self.view.source is not None and self.view.source.busy:
            self.view.source.cancel()
            self.say("cancelling; what does not end by itself is killed after 2 s")

    def action_pause(self) -> None:
        if self.view.paused:
            self.view.resume()
            self.say("")
        else:
            self.view.pause()
            self.say(f"the view stands still, and nothing else does; {self.key_of('pause')} goes on")

    def action_record(self) -> None:
        source = self.view.source
        if source is None:
            return
        if source.recorder is not None:
            recorder = source.recorder
            source.stop_recording()
            self.say(f"recorded {units.memory(recorder.bytes)} as {_named(recorder.path)}")
            return
        try:
            recorder = source.record(title=self.recording_title())
        except Refused as refusal:
            self.say(str(refusal), "error")
            return
        self.view.recording_since = source.now
        self.say(f"recording to {_named(recorder.path)}")

    def recording_title(self) -> str:
        """What a recording that begins now is called."""
        return self.view.run.experiment.kernel if self.view.run is not None else self.view.experiment.kernel

    def action_mark(self) -> None:
        def leave(words: str | None) -> None:
            if words and self.view.source is not None:
                self.view.source.mark(words)

        self.app.push_screen(MarkerScreen(), leave)

    def action_back(self) -> None:
        """One step back: out of a field or a chart, to the newest run, to the first place, to what was shown before."""
        if isinstance(self.focused, Arrowed | Input):
            self.set_focus(None)
        elif self.view.selected is not None:
            self.view.selected = None
            self.update()
        elif not self._first:
            self.post_message(TopBar.Chosen(self.view.tabs[0].name))
        elif self.view.close is not None:
            self.view.close()

    @property
    def _first(self) -> bool:
        return not self.view.tabs or self.view.tabs[0].name == self.PLACE

    def action_cursor(self) -> None:
        """Give the arrow keys to the next widget that has a use for them, and after the last one to none."""
        takers: list[Widget] = [widget for widget in self.focus_chain if isinstance(widget, Arrowed)]
        after = takers.index(self.focused) + 1 if self.focused in takers else 0
        self.set_focus(takers[after] if after < len(takers) else None)

    def action_close(self) -> None:
        if self.view.close is not None:
            self.view.close()

    def action_leave(self) -> None:
        if self.view.source is not None and self.view.source.busy:
            self.view.source.cancel()
        self.app.exit(return_code=0)

    def action_cost(self) -> None:
        meter = meter_of(self.app)
        meter.shown = not meter.shown
        self.update()

    def action_presenter(self) -> None:
        self.app.look = self.app.look._replace(presenter=not presenting(self.app))  # type: ignore[attr-defined]
        self.update(True)

    def action_log(self) -> None:
        fault = self.model.fault
        self.app.push_screen(LogScreen(notices.entries(self.model), fault.stderr if fault is not None else ""))

    def action_help(self) -> None:
        places = rebound(bindings.TO_PLACES, keymap_of(self.app))
        here = [binding for binding in places if binding.id in {f"place.{tab.name}" for tab in self.view.tabs}]
        groups = (("This screen", self.offered()), self.MOVES, ("Places", here), ("Everywhere", bindings.EVERYWHERE))
        about = (("What is shown here", self.WORDS), ("What the numbers mean", NUMBERS), ("Other words", GLOSSARY))
        self.app.push_screen(HelpScreen((g for g in groups if g[1]), (a for a in about if a[1])))

    def key_of(self, name: str) -> str:
        """How the key of the binding with that id is called, whoever gave it that key."""
        binding = next(binding for binding in self._own_bindings() if binding.id == name)
        return binding.key_display or self.app.get_key_display(Binding(binding.key.partition(",")[0], ""))

    def offered(self) -> list[Binding]:
        """The bindings that the help shows: all that this place ever has for such a view."""
        live, recorded = self.view.source is not None, self.view.playback is not None
        gone = {"close" if self.view.close is None else "leave"}
        gone |= set() if live else {binding.action for binding in bindings.LIVE}
        gone |= set() if recorded else bindings.TRANSPORTED
        return [binding for binding in self._own_bindings() if binding.action.partition("(")[0] not in gone]

    def action_scroll_panel(self, direction: int) -> None:
        panel = self.panel()
        if panel is None:
            return
        if direction > 0:
            panel.scroll_page_down(animate=False)
        else:
            panel.scroll_page_up(animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        source, playback = self.view.source, self.view.playback
        if action == "answer":
            return self.asks
        if action in bindings.TRANSPORTED:
            arrows = action in ("jump", "leap", "seek")
            return playback is not None and not (arrows and isinstance(self.focused, Arrowed | Input | OptionList | Select))
        match action:
            case "cancel":
                return self.view.busy
            case "record" | "pause":
                return source is not None
            case "mark":
                return source is not None and source.recorder is not None
            case "cursor":
                return any(isinstance(widget, Arrowed) for widget in self.focus_chain)
            case "leave":
                return self.view.close is None
            case "close":
                return self.view.close is not None
            case "back":
                return (
                    isinstance(self.focused, Arrowed | Input)
                    or self.view.selected is not None
                    or not self._first
                    or self.view.close is not None
                )
            case "scroll_panel":  # an open list of choices has pages of its own
                return self.panel() is not None and not isinstance(self.focused, OptionList)
        return True

    def commands(self) -> Iterator[palette.Command]:
        """What the palette offers here."""
        for active in self.active_bindings.values():
            binding = active.binding
            if active.enabled and active.node is self and binding.tooltip:  # Textual's own have none
                words = f"{binding.description}: {binding.tooltip}"
                yield palette.Command(words, partial(self._do, binding.action))
        for name in self.savable():
            yield palette.Command(f"Save {FORMS[name].title}", partial(self.save_soon, name))

    def _do(self, action: str) -> None:
        # not before the palette is closed
        self.call_later(self.run_action, action)


def _named(path: Path) -> str:
    """A file and its folder, the name first: the line may be too short for both."""
    return f"{path.name} in {path.parent}"
