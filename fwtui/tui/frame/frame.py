"""The frame of every place: top bar, telemetry, log line, transport of a recording, footer, help, and keys they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import ScreenResume
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList, Select, Static

from fwtui.common.errors import Refused
from fwtui.stream.model import Model
from fwtui.tui.actions import Action, Arrowed, filled_in
from fwtui.tui.frame import bindings, notices
from fwtui.tui.frame.action_table import ActionTable
from fwtui.tui.frame.appearance import classes_at
from fwtui.tui.frame.base_screens import CARD, DETAILED, PlaceScreen
from fwtui.tui.frame.dialogs import ChoiceScreen, Dialog, HelpScreen, PickFile, PromptScreen, ScrollableText, log_rows
from fwtui.tui.frame.footer import KeyFooter
from fwtui.tui.frame.glossary import GLOSSARY
from fwtui.tui.frame.notices import LogEntry, LogLine
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.places import MIN
from fwtui.tui.frame.telemetry_strip import TelemetryStrip
from fwtui.tui.frame.topbar import Top, TopBar, top_of
from fwtui.tui.frame.view import View
from fwtui.tui.textual_internals import drop_lines

if TYPE_CHECKING:
    from fwtui.tui.frame.playback import PositionLine, Timeline
    from fwtui.tui.frame.saving import Table

HIDDEN_SECONDS = 10.0  # after which a place lets go of what it has drawn
FAILED = "-failed"  # the class of a screen in the stead of a place that could not be drawn


class Painted(Message):
    """A place is seen for the first time."""


class Frame(PlaceScreen):
    """One place of the bar; live and in a replay it reads the same `view`, and nothing but `view.model` for its numbers.

    A new place is one file with a subclass of this, and one line in fwtui.tui.frame.places. The subclass provides

    - `PLACE`: its name in the registry;
    - `BINDINGS`: its rows of the table of actions (fwtui.tui.actions), then `*bindings.SHARED`, those that most places have;
    - `body()`: yields the widgets between top bar and telemetry strip; one of them should be `height: 1fr`;
    - `show()`: makes them agree with `self.view`; called at most ten times a second, while the place is seen and it changes;
    - `state()`: whatever else, besides the view, decides what is shown: a new value leads to show();
    - where it applies: `PANEL` (selects what PgUp and PgDn scroll), `table()` (what is saved as a table), `WORDS` and `MOVES`
      (what its words and the keys of its widgets mean), `commands()` (more for the palette), `STRIP = False` (no telemetry).

    Classes set by the app for style sheets: -tiny, -narrow (below 100 columns), -wide, and -flat, -short, -tall, -high.
    """

    DEFAULT_CSS = """
    Frame #small { display: none; height: 1fr; width: 1fr; content-align: center middle; text-align: center; }
    Frame #transport { height: 2; padding: 0 1; background: $panel; }
    Frame #body { height: 1fr; border-bottom: solid $border-blurred; }
    Frame.-short #body, Frame.-flat #body { border-bottom: none; }
    Frame .heading { color: $text-muted; text-style: bold; height: 1; }
    Frame.-flat TelemetryStrip { max-height: 1; }
    Frame.-presenting TopBar, Frame.-presenting LogLine, Frame.-presenting Footer { display: none; }
    Frame.-presenting.-short #transport, Frame.-presenting.-flat #transport { display: none; }
    Frame.-presenting #card { dock: top; padding: 1 4; max-height: 70%; border-bottom: heavy $primary; }
    Frame.-presenting #card.-source { padding: 0 4; max-height: 90%; }
    Frame.-presenting.-flat #card { padding: 0 1; max-height: 85%; }
    Frame .-dimmed { opacity: 35%; }
    Frame .-veiled { visibility: hidden; }
    Frame TextPanel.-veiled { visibility: visible; }
    Frame.-flat .-dimmed { display: none; }
    Frame.-tiny #screen, Frame.-tiny Footer { display: none; }
    Frame.-tiny #small { display: block; }
    """
    BINDINGS: ClassVar = [*bindings.COMMON]
    PLACE: ClassVar[str] = ""
    STRIP: ClassVar = True
    WORDS: ClassVar[tuple[tuple[str, str], ...]] = ()
    MOVES: ClassVar[tuple[str, tuple[Action, ...]]] = ("", ())  # a title, and keys

    def __init__(self, view: View):
        super().__init__(view)
        # before there are widgets, because Textual finds the styles of all of them again when a class comes later
        self.add_class(*classes_at(*self.app.size), update=False)
        self._transport: tuple[PositionLine | Timeline, ...] = ()  # of a recording
        self.rows = ActionTable(self, view)
        self._complete = False  # its widgets are there, and theirs
        self._left = False  # for good
        self._shown: object = None
        self._named: list[str] = []  # the actions in the footer

    @property
    def model(self) -> Model:
        return self.view.model

    def compose(self) -> ComposeResult:
        with Vertical(id="screen"):
            yield TopBar(Top(self.rows.tabs(), self.PLACE))
            yield from self.body()
            if self.STRIP:
                yield TelemetryStrip()
            yield LogLine(None)
            if self.view.playback is not None:
                from fwtui.tui.frame.cue_card import CueCard
                from fwtui.tui.frame.playback import PositionLine, Timeline

                yield CueCard(None, id=CARD)
                position = self.view.playback.position
                self._transport = PositionLine(position), Timeline(position, partial(self.action_move, "seek"))
                yield Vertical(*self._transport, id="transport")
        yield Static(id="small", markup=False)
        yield KeyFooter()

    def body(self) -> ComposeResult:
        raise NotImplementedError

    def show(self) -> None:
        raise NotImplementedError

    def state(self) -> object:
        return None

    def table(self) -> Table:
        """What this place saves as a table: titles, then rows. Nothing where it has none."""
        from fwtui.tui.frame.saving import table_of_runs

        return table_of_runs(self.view)

    def on_mount(self) -> None:
        self.screen_layout_refresh_signal.subscribe(self, self.sight.layout_changed)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self._complete = True
        self.update()
        self.call_after_refresh(self.begun)

    def begun(self) -> None:
        """It has been painted for the first time: other work can begin."""
        self.post_message(Painted())

    def on_screen_resume(self, event: ScreenResume) -> None:
        event.refresh_styles &= self._complete  # they are fresh when the screen is: Textual resumes it twice then
        self.update()

    def on_screen_suspend(self) -> None:
        """A place that has been hidden for some time is drawn again when it is shown."""
        self.set_timer(HIDDEN_SECONDS, lambda: drop_lines(self) if self not in self.app.screen_stack else None)

    def leave(self) -> None:
        """It is being taken away."""
        self._left = True

    def on_resize(self) -> None:
        width, height = self.app.size
        if width < MIN[0] or height < MIN[1]:
            card = f"fwtui needs {MIN[0]} x {MIN[1]}\nthis terminal has {width} x {height}"
            self.query_one("#small", Static).update(Content(card))
        self.call_after_refresh(self.update, True)

    def update(self, forced: bool = False) -> None:
        """Update from the view; free if nothing happened."""
        if not self._complete or self._left or not self.is_attached:  # not made yet, or being taken away
            return
        if self.view.playback is not None:
            position = self.view.playback.position
            for line in self._transport:
                line.show(position)
        self.sight.rest_focus(self.view.presenting)
        if (words := self.view.measuring) and (self.view.notice is None or self.view.notice.text != words):
            self.view.notice = LogEntry(self.model.t, words, "info")
        self.set_class(self.look.presenter, "-presenter")
        self.set_class(self.view.presenting, "-presenting")
        self.set_class(self.look.details, DETAILED)
        log = self.key_of("log")  # another one while a field has the focus
        now, before = (self.view.key, self.narrow, self.look.details, log, self.state()), self._shown
        self._shown = now
        if now == before and not forced:
            return
        self.query_one(TopBar).show(top_of(self.view, self.rows.tabs(), self.PLACE))
        self.show()
        if self.STRIP:
            self.query_one(TelemetryStrip).show(self.model, None if self.view.busy else self.view.run)
        if self.view.playback is not None:
            from fwtui.tui.frame.cue_card import show_card

            show_card(self)
        self.query_one(LogLine).show((latest, log) if (latest := self.view.latest) is not None else None)
        self.call_after_refresh(self._refresh_keys)  # what a class has hidden or shown counts only then

    def _refresh_keys(self) -> None:
        if self._left or not self.is_attached:
            return
        named = [
            row.title_now(self) if row.title_now is not None else row.description
            for row in self.rows.all()
            if row.show and self.rows.can(row)
        ]
        if named != self._named:
            self._named = named
            self.refresh_bindings()

    def on_descendant_focus(self) -> None:
        self._refresh_keys()
        self.call_after_refresh(self.update)  # a field takes keys that are named

    on_descendant_blur = on_descendant_focus

    def show_message(self, text: str, level: str = "info") -> None:
        """A sentence of the program itself on the log line, until something newer happens."""
        self.view.notice = LogEntry(self.model.t, text, level) if text else None
        self.update()

    @contextmanager
    def reporting(self, level: str = "warning") -> Iterator[None]:
        """Say why if what is done in it is refused."""
        try:
            yield
        except Refused as refusal:
            self.show_message(str(refusal), level)

    def action_limits(self) -> None:
        with self.reporting():
            self.show_message(self.view.measure_limits(self.view.device))

    def action_cancel(self) -> None:
        if words := self.view.cancel():
            self.show_message(words)

    def action_pause(self) -> None:
        if self.view.paused:
            self.view.resume()
            self.show_message("")
        else:
            self.view.pause()
            self.show_message(f"only the view is paused; {self.key_of('pause')} goes on")

    def action_record(self) -> None:
        since = "now" if self.view.recorder is None else "its beginning"
        hint = f"Enter keeps it under this name, from {since} on; {{key[dialog.close]}} does not"
        dialog = PromptScreen("Keep this session", self.view.named or self.view.free_name, hint=hint)
        self.ask(dialog, lambda title: self.show_message(self.view.name(title.strip() or self.view.free_name)))

    def ask(self, dialog: Dialog, take: Callable[[str], object] = lambda answer: None, opener: str = "") -> None:
        """Open the dialog, which the key of the row `opener` closes again, and take its answer; say why if that is refused,
        in the dialog where it is text, which can be mended there.
        """
        dialog.closed_by = self.rows.keys(opener)

        def answered(answer: str | None) -> None:
            if answer is not None:
                with self.reporting():
                    take(answer)

        if isinstance(dialog, PromptScreen | PickFile):
            dialog.accept = take
            self.app.push_screen(dialog)
        else:
            self.app.push_screen(dialog, answered)

    def action_mark(self) -> None:
        source, hint = self.view.source, "Enter leaves it in the recording, {key[dialog.close]} does not"
        dialog = PromptScreen("Marker", "", "what is new here? @phases ?phase asks", hint)
        self.ask(dialog, lambda words: source is not None and source.mark(words.strip() or "marker"))

    def action_move(self, how: str, *where: float | str) -> None:
        """Go elsewhere in the recording, as that method of its playback does; in a presentation to another cue card."""
        if self.view.presenting:
            self.turn(bindings.TURNS.get((how, *where), 0))
            return
        self.view.selected = self.view.notice = None
        self.action_adjust(how, *where)

    def action_adjust(self, how: str, *amount: float | str) -> None:
        """Change how the recording is played, as that method of its playback does."""
        if words := getattr(self.view.playback, how)(*amount):
            self.show_message(words)
        else:
            self.update()

    def action_go(self) -> None:
        from fwtui.tui.frame.playback import WHERE

        hint = f"{WHERE}. Enter goes there, {{key[dialog.close]}} does not"
        dialog = PromptScreen("Go to", "", "12.5 · 1:30 · 40 % · run 3 · marker 2", hint)
        self.ask(dialog, lambda place: place.strip() and self.action_move("go", place))

    def action_answer(self) -> None:
        marker = self.view.marker
        if marker is not None:
            self.view.answered = None if self.view.answered == marker[0] else marker[0]
            self.update(True)

    def action_presenter(self) -> None:
        """Large figures, and a recording's cue cards if it has any; again: neither."""
        self.app.look = self.look._replace(presenter=not self.look.presenter)  # type: ignore[attr-defined]
        if (playback := self.view.playback) is not None:
            self.view.selected = self.view.notice = self.view.answered = None
            playback.present(self.look.presenter)
        self.update(True)

    def action_details(self) -> None:
        self.app.look = self.look._replace(details=not self.look.details)  # type: ignore[attr-defined]
        self.show_message(f"{'with' if self.look.details else 'without'} where each number comes from")

    def turn(self, count: int) -> None:
        """Go that many cue cards on, or back; 0 says what else can be done."""
        self.view.selected = self.view.notice = self.view.answered = None
        turned = self.view.playback.turn(count) if count and self.view.playback is not None else None
        self.show_message(turned if turned is not None else bindings.is_presented(self) or "")

    def action_motion(self) -> None:
        self.view.motion = not self.view.motion
        self.update()

    def action_guess(self) -> None:
        from fwtui.tui.frame.cue_card import take_guess

        with self.reporting():
            self.ask(*take_guess(self.view, lambda: self.update(True)))

    def action_save(self) -> None:
        from fwtui.tui.frame.saving import FORMS, savable

        hint = "Enter saves it in a new file and says where; text goes to the clipboard too, if the terminal allows it"
        choices = ((name, FORMS[name].title) for name in savable(self.model, self.table()))
        self.ask(ChoiceScreen("Save", choices, hint), self.save)

    def save(self, name: str) -> None:
        """Keep what is shown in that form once no dialog is over it, and say where."""
        from fwtui.tui.frame.saving import save

        def keep() -> None:
            with self.reporting("error"):
                self.show_message(f"saved {save(self.app, name, self.PLACE, self.model, self.table())}")

        self.call_after_refresh(keep)

    def action_back(self) -> None:
        if (go := self.way_back) is not None:
            go()

    @property
    def way_back(self) -> Callable[[], object] | None:
        """One step back: out of cue cards, of a field or a chart, to the newest run, the first place, what was shown before."""
        if self.view.presenting:
            return self.action_presenter
        home = self._home
        if self.focused is not home and isinstance(self.focused, Arrowed | Button | Input | OptionList | Select):
            return partial(self.set_focus, home)
        if self.view.selected is not None:
            return self._to_newest
        if self.view.places and self.view.places[0].name != self.PLACE:
            return partial(self.post_message, TopBar.Chosen(self.view.places[0].name))
        return self.view.close

    @property
    def _home(self) -> Widget | None:
        """The widget that has the focus at first; None if there is none, or if it cannot have the focus now."""
        found = self.query(self.AUTO_FOCUS) if self.AUTO_FOCUS else ()
        return next((widget for widget in found if widget.focusable), None)

    def _to_newest(self) -> None:
        self.view.selected = None
        self.update()

    def action_cursor(self) -> None:
        """Give the arrow keys to the next widget that uses them, and after the last one to none."""
        takers: list[Widget | None] = [widget for widget in self.focus_chain if isinstance(widget, Arrowed)]
        after = takers.index(self.focused) + 1 if self.focused in takers else 0
        self.set_focus([*takers, None][after])

    def action_close(self) -> None:
        if self.view.close is not None:
            self.view.close()

    async def action_leave(self) -> None:
        await self.app.action_quit()

    def action_log(self) -> None:
        fault = self.model.fault
        rows = log_rows(notices.entries(self.model), fault.stderr if fault is not None else "")
        self.ask(Dialog("Log", ScrollableText(rows, at_end=True)), opener="log")

    def action_help(self) -> None:
        first, more = ([row for row in self.rows.offered() if row.show is visible] for visible in (True, False))
        groups = (("To begin with", first), self.MOVES, ("Places", self.rows.places()), ("More", more))
        glossary = [(term, filled_in(meaning, self)) for term, meaning in GLOSSARY]
        about = (("What is shown here", self.WORDS), ("Glossary", glossary))
        everywhere = ("Everywhere", bindings.EVERYWHERE)
        keys = ((filled_in(title, self), rows) for title, rows in (*groups, everywhere) if rows)
        self.ask(HelpScreen(keys, (a for a in about if a[1])), opener="help")

    def action_scroll_panel(self, direction: int) -> None:
        panel = self.panel()
        if self.view.presenting:  # a clicker has these keys
            self.turn(direction)
        elif panel is not None:
            panel.scroll_relative(y=direction * panel.scrollable_content_region.height, animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.rows.unavailable(action, parameters) is None

    def commands(self) -> Iterator[Command]:
        """What the palette offers here."""
        from fwtui.tui.frame.saving import FORMS, savable

        yield from self.rows.commands()
        for name in savable(self.model, self.table()):
            yield Command(f"Save {FORMS[name].title}", partial(self.save, name))
