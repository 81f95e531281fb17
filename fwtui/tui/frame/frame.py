"""The frame of every screen: top bar, telemetry, log line, transport of a recording, footer, help, and common keys."""

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

HIDDEN_SECONDS = 10.0  # after which a hidden screen frees its drawn lines
FAILED = "-failed"  # the class of the replacement of a screen that cannot be drawn


class Painted(Message):
    """A screen has been drawn for the first time."""


class Frame(PlaceScreen):
    """A screen of the top bar. Live and in a replay it reads the same `view`; its numbers come only from `view.model`.

    A new screen is one file with a subclass, and one line in fwtui.tui.frame.places. The subclass provides

    - `PLACE`: its name in the registry;
    - `BINDINGS`: its rows of the table of actions (fwtui.tui.actions), then `*bindings.SHARED`;
    - `body()`: yields the widgets between top bar and telemetry strip, one of them with `height: 1fr`;
    - `show()`: updates the widgets from `self.view`; called after changes, at most ten times a second;
    - `state()`: other values on which the widgets depend: a new one leads to show();
    - optionally `PANEL` (selector of the widget that the page keys scroll), `table()` (saved as a table), `WORDS` and `MOVES`
      (definitions of its terms, keys of its widgets), `commands()` (for the palette), `STRIP = False` (no telemetry).

    Classes for style sheets, set by the size: -tiny, -narrow (below 100 columns), -wide, and -flat, -short, -tall, -high.
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
    Frame .-dimmed, Frame .-dimmed * { text-style: dim; }
    Frame .-veiled { visibility: hidden; }
    Frame TextPanel.-veiled, Frame Large.-veiled { visibility: visible; }
    Frame.-flat .-dimmed { display: none; }
    Frame.-tiny #screen, Frame.-tiny Footer { display: none; }
    Frame.-tiny #small { display: block; }
    """
    BINDINGS: ClassVar = [*bindings.COMMON]
    PLACE: ClassVar[str] = ""
    STRIP: ClassVar = True
    WORDS: ClassVar[tuple[tuple[str, str], ...]] = ()
    MOVES: ClassVar[tuple[str, tuple[Action, ...]]] = ("", ())  # title and keys of a group in the help

    def __init__(self, view: View):
        super().__init__(view)
        # before there are widgets: a later class makes Textual compute the styles of all of them again
        self.add_class(*classes_at(*self.app.size), update=False)
        self._transport: tuple[PositionLine | Timeline, ...] = ()  # empty without a recording
        self.rows = ActionTable(self, view)
        self._theme = self.app.theme  # of its styles
        self._complete = False  # True once all widgets are mounted
        self._left = False  # True once the screen is being removed
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
        """Return the table that the screen saves: titles, then rows; empty if it has none."""
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
        """Start work that is deferred until the first frame is drawn."""
        self.post_message(Painted())

    def on_screen_resume(self, event: ScreenResume) -> None:
        # the styles of a hidden screen stay up to date, unless the theme changes
        event.refresh_styles, self._theme = self.app.theme != self._theme, self.app.theme
        self.update()

    def on_screen_suspend(self) -> None:
        """Free the drawn lines if the screen stays hidden."""
        self.set_timer(HIDDEN_SECONDS, lambda: drop_lines(self) if self not in self.app.screen_stack else None)

    def leaving(self) -> None:
        """Remove the message of this screen before another one is shown."""
        self.view.notice = None

    def leave(self) -> None:
        """Stop updating: the screen is being removed."""
        self._left = True

    def on_resize(self) -> None:
        width, height = self.app.size
        if width < MIN[0] or height < MIN[1]:
            card = f"fwtui needs {MIN[0]} x {MIN[1]}\nthis terminal has {width} x {height}"
            self.query_one("#small", Static).update(Content(card))
        self.call_after_refresh(self.update, True)

    def update(self, forced: bool = False) -> None:
        """Update from the view; costs nothing if nothing has changed."""
        if not self._complete or self._left or not self.is_attached:  # before mounting or during removal
            return
        if self.view.playback is not None:
            position = self.view.playback.position
            for line in self._transport:
                line.show(position)
        self.sight.rest_focus(self.view.presenting)
        self.view.show_progress()
        self.set_class(self.look.presenter, "-presenter")
        self.set_class(self.view.presenting, "-presenting")
        self.set_class(self.look.details, DETAILED)
        log = self.key_of("log")  # depends on the focus
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
        self.call_after_refresh(self._refresh_keys)  # classes have hidden or shown widgets by then

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
        self.call_after_refresh(self.update)  # the displayed keys depend on the focus

    on_descendant_blur = on_descendant_focus

    def show_message(self, text: str, level: str = "info") -> None:
        """Show a message on the log line until a newer entry replaces it; "" removes it."""
        self.view.notice = LogEntry(self.model.t, text, level) if text else None
        self.update()

    @contextmanager
    def reporting(self, level: str = "warning") -> Iterator[None]:
        """Show the reason if the block raises Refused."""
        try:
            yield
        except Refused as refusal:
            self.show_message(str(refusal), level)

    def action_limits(self) -> None:
        with self.reporting():
            self.show_message(self.view.measure_limits(self.view.device))

    def action_cancel(self) -> None:
        if message := self.view.cancel():
            self.show_message(message)

    def action_pause(self) -> None:
        if self.view.paused:
            self.view.resume()
            self.show_message("")
        else:
            self.view.pause()
            self.show_message(f"only the view is paused; {self.key_of('pause')} resumes it")

    def action_record(self) -> None:
        since = "now" if self.view.recorder is None else "its beginning"
        hint = f"Enter saves it under this name, from {since}; {{key[dialog.close]}} cancels"
        dialog = PromptScreen("Save this session", self.view.named or self.view.free_name, hint=hint)
        self.open_dialog(dialog, lambda title: self.show_message(self.view.name(title.strip() or self.view.free_name)))

    def open_dialog(self, dialog: Dialog, take: Callable[[str], object] = lambda answer: None, opener: str = "") -> None:
        """Open a dialog, and pass its answer to `take`; a prompt reports a rejected text and stays open for a correction.

        `opener` is the id of the action whose key also closes the dialog.
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
        source, hint = self.view.source, "Enter adds it to the recording, {key[dialog.close]} cancels"
        dialog = PromptScreen("Marker", "", "text of the marker; @phases ?phase adds a question", hint)
        self.open_dialog(dialog, lambda message: source is not None and source.mark(message.strip() or "marker"))

    def action_move(self, how: str, *where: float | str) -> None:
        """Move in the recording with that method of its playback; in a presentation, turn the cue cards."""
        if self.view.presenting:
            self.turn(bindings.TURNS.get((how, *where), 0))
            return
        self.view.selected = self.view.notice = None
        self.action_adjust(how, *where)

    def action_adjust(self, how: str, *amount: float | str) -> None:
        """Change the playback with that method."""
        if message := getattr(self.view.playback, how)(*amount):
            self.show_message(message)
        else:
            self.update()

    def action_answer(self) -> None:
        marker = self.view.marker
        if marker is not None:
            self.view.answered = None if self.view.answered == marker[0] else marker[0]
            self.update(True)

    def action_presenter(self) -> None:
        """Switch the presenter's layout, and the presentation of cue cards if the recording has any, on or off."""
        self.app.look = self.look._replace(presenter=not self.look.presenter)  # type: ignore[attr-defined]
        if (playback := self.view.playback) is not None:
            self.view.selected = self.view.notice = None
            playback.present(self.look.presenter)
        self.update(True)

    def action_details(self) -> None:
        self.app.look = self.look._replace(details=not self.look.details)  # type: ignore[attr-defined]
        self.show_message(f"the origin of each number is {'shown' if self.look.details else 'hidden'}")

    def turn(self, count: int) -> None:
        """Turn that many cue cards forward or back; a card with a question first shows its answer. 0 names the keys that work."""
        marker, self.view.selected, self.view.notice = self.view.marker, None, None
        if count > 0 and marker is not None and self.view.answered != marker[0] and bindings.asks(self.view, by_run=False):
            self.action_answer()
            return
        turned = None
        if count and self.view.playback is not None:
            self.view.answered, turned = None, self.view.playback.turn(count)
        self.show_message(turned if turned is not None else bindings.is_presented(self) or "")

    def action_guess(self) -> None:
        from fwtui.tui.frame.cue_card import take_guess

        with self.reporting():
            self.open_dialog(*take_guess(self.view, lambda: self.update(True)))

    def action_save(self) -> None:
        from fwtui.tui.frame.saving import FORMS, savable

        hint = "Enter saves it in a new file and shows the path; text is also copied to the clipboard, if the terminal allows it"
        choices = ((name, FORMS[name].title) for name in savable(self.table()))
        self.open_dialog(ChoiceScreen("Save", choices, hint), self.save)

    def save(self, name: str) -> None:
        """Save the screen in that format once no dialog covers it, and show the path."""
        from fwtui.tui.frame.saving import save

        def save_now() -> None:
            with self.reporting("error"):
                self.show_message(f"saved {save(self.app, name, self.PLACE, self.table())}")

        self.call_after_refresh(save_now)

    def action_back(self) -> None:
        if (go := self.way_back) is not None:
            go()

    @property
    def way_back(self) -> Callable[[], object] | None:
        """The next step back: leave the cue cards, a field or a chart, show the newest run or first screen, leave the replay."""
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
        """The widget that takes the focus first; None if there is none, or if it cannot take the focus now."""
        found = self.query_one_optional(self.AUTO_FOCUS) if self.AUTO_FOCUS else None
        return found if found is not None and found.focusable else None

    def _to_newest(self) -> None:
        self.view.selected = None
        self.update()

    def action_cursor(self) -> None:
        """Focus the next widget that uses the arrow keys; after the last one, none."""
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
        self.open_dialog(Dialog("Log", ScrollableText(rows, at_end=True)), opener="log")

    def action_help(self) -> None:
        first, more = ([row for row in self.rows.offered() if row.show is visible] for visible in (True, False))
        others = () if self.view.presenting else (self.MOVES, ("Screens", self.rows.places()))
        groups = (("Main keys", first), *others, ("More", more))
        glossary = [(term, filled_in(meaning, self)) for term, meaning in GLOSSARY]
        about = (("Terms of this screen", self.WORDS), ("Glossary", glossary))
        everywhere = ("Everywhere", bindings.EVERYWHERE)
        keys = ((filled_in(title, self), rows) for title, rows in (*groups, everywhere) if rows)
        self.open_dialog(HelpScreen(keys, (a for a in about if a[1])), opener="help")

    def action_scroll_panel(self, direction: int) -> None:
        panel = self.panel()
        if self.view.presenting:  # a presenter's remote control sends the page keys
            self.turn(direction)
        elif panel is not None:
            panel.scroll_relative(y=direction * panel.scrollable_content_region.height, animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.rows.unavailable(action, parameters) is None

    def commands(self) -> Iterator[Command]:
        """Yield the palette's commands of this screen."""
        from fwtui.tui.frame.saving import FORMS, savable

        yield from self.rows.commands()
        for name in savable(self.table()):
            yield Command(f"Save {FORMS[name].title}", partial(self.save, name))
