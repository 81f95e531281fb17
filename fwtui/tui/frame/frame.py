"""The frame of every place: top bar, telemetry, log line, transport of a recording, footer, help, and keys they share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, ClassVar

from textual.actions import parse
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.events import ScreenResume
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, Static

from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.stream.model import Model
from fwtui.tui.actions import READ_ONLY, Action, only_shows, rebound, table
from fwtui.tui.arrow_keys import Arrowed
from fwtui.tui.frame import bindings, notices, palette
from fwtui.tui.frame.base_screens import Sized
from fwtui.tui.frame.dialogs import AskScreen, ChoiceScreen, Dialog, HelpScreen, LogScreen
from fwtui.tui.frame.glossary import GLOSSARY
from fwtui.tui.frame.key_line import KeyLine
from fwtui.tui.frame.look import USUAL, Look, classes_at
from fwtui.tui.frame.notices import Entry, LogLine
from fwtui.tui.frame.own_cost import CostLine, Meter
from fwtui.tui.frame.places import LEAST
from fwtui.tui.frame.telemetry_strip import TelemetryStrip
from fwtui.tui.frame.topbar import Top, TopBar
from fwtui.tui.frame.view import View
from fwtui.tui.widgets import wording

if TYPE_CHECKING:
    from fwtui.tui.frame.saving import Table
    from fwtui.tui.frame.transport import PositionLine, Timeline

FAILED = "-failed"  # the class of a screen in the stead of a place that could not be drawn
CARD = "card"  # the id of the cue card
# what goes through the cue cards while they are presented; no other move does anything then
TURNS: Mapping[tuple[object, ...], int] = {
    ("play",): 1,
    ("jump", 5): 1,
    ("jump", -5): -1,
    ("next_marker", 1): 1,
    ("next_marker", -1): -1,
}


class Painted(Message):
    """A place is seen for the first time."""


class Frame(Sized, Screen[None]):
    """One place of the bar; live and in a replay it reads the same `view`, and nothing but `view.model` for its numbers.

    A new place is one file with a subclass of this, and one line in fwtui.tui.frame.places. The subclass provides

    - `PLACE`: its name in the registry;
    - `BINDINGS`: its rows of the table of actions (fwtui.tui.actions) first, then `*bindings.SHARED` (not inherited, so that
      a footer can put first what matters there);
    - `body()`: yields the widgets between top bar and telemetry strip; one of them should be `height: 1fr`;
    - `show()`: makes them agree with `self.view`; called at most ten times a second, and only while the place is
      seen and something happened, so it has to be cheap but need not be clever;
    - `state()`: whatever else, besides the view, decides what is shown: a new value leads to show();
    - where it applies: `PANEL` (selects what PgUp and PgDn scroll), `table()` (what is saved as a table), `WORDS` (what
      its words mean, for the help), `MOVES` (keys of its widgets, for the help), `commands()` (more for the palette),
      `STRIP = False` (no telemetry strip).

    Classes set by the app for style sheets: -tiny, -narrow (below 100 columns), -wide, and -flat, -short, -tall, -high.
    """

    DEFAULT_CSS = """
    Frame #small { display: none; height: 1fr; width: 1fr; content-align: center middle; text-align: center; }
    Frame #transport { height: 2; padding: 0 1; background: $panel; }
    Frame #body { height: 1fr; border-bottom: solid $border-blurred; }
    Frame.-short #body, Frame.-flat #body { border-bottom: none; }
    Frame .heading { color: $text-muted; text-style: bold; height: 1; }
    Frame.-flat TelemetryStrip { max-height: 1; }
    Frame.-presenting TopBar, Frame.-presenting LogLine, Frame.-presenting KeyLine { display: none; }
    Frame.-presenting.-short #transport, Frame.-presenting.-flat #transport { display: none; }
    Frame.-presenting #card { dock: top; padding: 1 4; max-height: 70%; border-bottom: heavy $primary; }
    Frame.-presenting.-flat #card { padding: 0 1; max-height: 85%; }
    Frame .-dimmed { opacity: 35%; }
    Frame.-flat .-dimmed { display: none; }
    Frame.-tiny #screen, Frame.-tiny KeyLine { display: none; }
    Frame.-tiny #small { display: block; }
    """
    COMMANDS: ClassVar = {palette.Commands}
    PLACE: ClassVar[str] = ""
    PANEL: ClassVar[str] = ""
    STRIP: ClassVar = True
    SUBMITS: ClassVar = "Take"  # what Enter does in a field, for the footer
    WORDS: ClassVar[tuple[tuple[str, str], ...]] = ()
    MOVES: ClassVar[tuple[str, tuple[Action, ...]]] = ("", ())  # a title, and keys

    def __init__(self, view: View):
        super().__init__()
        self.view = view
        # before there are widgets, because Textual finds the styles of all of them again when a class comes later
        self.add_class(*classes_at(*self.app.size), update=False)
        # a new screen finds its styles in today's style sheets: Textual would parse all of them twice, and apply them to all
        self._css_update_count = self.app._css_update_count
        self._transport: tuple[PositionLine | Timeline, ...] = ()  # of a recording
        self._panel = ""  # the one that stands out
        self._in_sight: tuple[Sequence[Widget], bool] = (), False  # what to scroll to, and whether to its top
        self._had_focus: Widget | None = None  # before cue cards were presented
        self._complete = False  # its widgets are there, and theirs
        self._shown: object = None
        self._possible: tuple[bool | None, ...] = ()

    @property
    def model(self) -> Model:
        return self.view.model

    @property
    def look(self) -> Look:
        return getattr(self.app, "look", USUAL)

    @property
    def meter(self) -> Meter:
        return getattr(self.app, "meter", None) or Meter()

    def compose(self) -> ComposeResult:
        with Vertical(id="screen"):
            yield TopBar(Top(self.view.places, self.PLACE))
            yield from self.body()
            if self.STRIP:
                yield TelemetryStrip()
            yield LogLine(None)
            yield CostLine(None)
            if self.view.playback is not None:
                from fwtui.tui.frame.cue_card import CueCard
                from fwtui.tui.frame.transport import PositionLine, Timeline

                yield CueCard(None, id=CARD)
                position = self.view.playback.position
                self._transport = PositionLine(position), Timeline(position)
                yield Vertical(*self._transport, id="transport")
        yield Static(id="small", markup=False)
        yield KeyLine()

    def body(self) -> ComposeResult:
        raise NotImplementedError

    def show(self) -> None:
        raise NotImplementedError

    def state(self) -> object:
        return None

    def panel(self) -> Widget | None:
        """What the page keys scroll."""
        return self.query_one(self.PANEL) if self.PANEL else None

    def table(self) -> Table:
        """What this place saves as a table: titles, then rows. Nothing where it has none."""
        from fwtui.analysis.columns import PRINTED_HEAD, printed

        if not self.model.runs:
            return ()
        baseline = self.view.baseline_run.experiment.kernel if self.view.baseline_run is not None else None
        return [PRINTED_HEAD, *(printed(self.model, run, baseline) for run in self.model.runs.values())]

    def pointed(self, panel: str) -> Sequence[Widget]:
        """The widgets of the panel of that name (fwtui.learn.cue.PANELS); most places have none."""
        return ()

    def point(self, panel: str) -> None:
        """Light that panel, and no other; in a presentation the rest is dimmed, and at its end everything."""
        lit, playback = [*self.pointed(panel)], self.view.playback
        dims = playback is not None and playback.presenting and (playback.over or bool(lit))
        around = {holder for one in lit for holder in takewhile(lambda w: w is not self, one.ancestors)} if dims else set()
        dimmed = {*self._beside(self.query_one("#screen"), lit, around)} if dims else set()
        for name, now in (("-pointed", {*lit}), ("-around", around), ("-dimmed", dimmed)):
            for widget in {*self.query(f".{name}"), *now}:
                widget.set_class(widget in now, name)
        if lit and (dims or panel != self._panel):  # a card with an answer leaves less room
            self.keep_in_sight(lit, dims)
        elif self._panel and not lit:
            self.let_scroll()
        self._panel = panel

    def keep_in_sight(self, widgets: Sequence[Widget], top: bool = False) -> None:
        """Scroll to the first of them that has room, again whenever the layout changes, until let_scroll()."""
        self._in_sight = widgets, top
        self.call_after_refresh(self._scroll_into_sight, widgets, top)

    def let_scroll(self) -> None:
        """What was kept in sight may leave it: the user does something."""
        self._in_sight = (), False

    def _layout_changed(self, _: object = None) -> None:
        if self._in_sight[0]:
            self.call_after_refresh(self._scroll_into_sight, *self._in_sight)

    def _scroll_into_sight(self, widgets: Sequence[Widget], top: bool) -> None:
        for widget in [widget for widget in widgets if widget.region.area][:1]:
            widget.scroll_visible(animate=False, top=top)

    def _beside(self, holder: Widget, lit: Collection[Widget], around: Collection[DOMNode]) -> Iterator[Widget]:
        """The largest parts of a widget that are not lit and hold nothing lit, without the cue card."""
        for part in holder.children:
            if part in around:
                yield from self._beside(part, lit, around)
            elif part not in lit and part.id != CARD:
                yield part

    @property
    def narrow(self) -> bool:
        """Whether panels at the side have no room, or are not wanted."""
        return not self.has_class("-wide") or self.has_class("-presenter")

    def on_mount(self) -> None:
        self.screen_layout_refresh_signal.subscribe(self, self._layout_changed)
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
        """A hidden place gives up its drawn lines, of 1.5 KB each: a large terminal has thousands of them in each place."""
        if self not in self.app.screen_stack:  # it is not only under a dialog
            for widget in self.walk_children(Widget, with_self=True):
                widget._styles_cache.clear()

    def on_resize(self) -> None:
        width, height = self.app.size
        if width < LEAST[0] or height < LEAST[1]:
            card = f"fwtui needs {LEAST[0]} x {LEAST[1]}\nthis terminal has {width} x {height}"
            self.query_one("#small", Static).update(Content(card))
        self.call_after_refresh(self.update, True)

    def update(self, forced: bool = False) -> None:
        """Update from the view; free if nothing happened."""
        if not self._complete or self._pruning:  # not made yet, or being taken away
            return
        if self.view.playback is not None:
            position = self.view.playback.position
            for line in self._transport:
                line.show(position)
        self._show_cost()
        self._rest_focus()
        if (words := self.view.measuring) and (self.view.told is None or self.view.told.text != words):
            self.view.told = Entry(self.model.t, words, "info")
        self.set_class(self.look.presenter or self.view.presenting, "-presenter")
        self.set_class(self.view.presenting, "-presenting")
        now = (self.view.key, self.narrow, self.state())
        if now == self._shown and not forced:
            return
        self._shown = now
        self.query_one(TopBar).show(self._top())
        self.show()
        if self.STRIP:
            self.query_one(TelemetryStrip).show(self.model)
        if self.view.playback is not None:
            self._show_card()
        self.query_one(LogLine).show(self.view.latest)
        self._refresh_keys()

    def _show_cost(self) -> None:
        line, shown = self.query_one(CostLine), self.meter.shown and not self.view.presenting
        if line.display != shown:
            line.display = shown
        if shown:
            line.show(self.meter.read(self.model))

    def _rest_focus(self) -> None:
        """No table has a cursor while cue cards are presented; afterwards it comes back."""
        if self.view.presenting and self.focused is not None:
            self._had_focus = self.focused
            self.set_focus(None)
        elif not self.view.presenting and self._had_focus is not None:
            self.set_focus(self._had_focus)
            self._had_focus = None

    def _show_card(self) -> None:
        """Update from the marker at the recording's position, if there is one."""
        from fwtui.tui.frame.cue_card import CueCard, card

        roomy = not (self.has_class("-flat") or self.has_class("-tiny"))
        shown = card(self.view, self.key_of, roomy)
        self.query_one(CueCard).show(shown)
        self.point(shown.cue.panel if shown is not None else "")

    def _top(self) -> Top:
        source, recording, paused = self.view.source, "", ""
        if source is not None and source.recorder is not None:
            recording = f"{units.clock(source.now - source.recorder.began)} · {units.memory(source.recorder.bytes)}"
        if source is not None and self.view.paused:
            missed = source.model.index - self.model.index
            paused = f"{units.clock(max(0.0, source.now - self.model.t))} · {missed:,} events"
        return Top(self.view.places, self.PLACE, wording.device(self.model), recording, paused)

    def _refresh_keys(self) -> None:
        # only when those in the footer change: all others are looked at as well then
        possible = tuple(row.show and self._can(row) for row in self._rows)
        if possible != self._possible:
            self._possible = possible
            self.refresh_bindings()

    @property
    def _rows(self) -> list[Action]:
        return rebound((row for row in type(self).BINDINGS if isinstance(row, Action)), self.look.keymap)

    def _can(self, row: Action) -> bool:
        return self.check_action(*parse(row.action)[1:]) is True

    def on_descendant_focus(self) -> None:
        self._refresh_keys()

    def say(self, text: str, level: str = "info") -> None:
        """A sentence of the program itself on the log line, until something newer happens."""
        self.view.told = Entry(self.model.t, text, level) if text else None
        self.update()

    @contextmanager
    def saying(self, level: str = "warning") -> Iterator[None]:
        """Say why if what is done in it is refused."""
        try:
            yield
        except Refused as refusal:
            self.say(str(refusal), level)

    def action_limits(self) -> None:
        with self.saying():
            self.say(self.view.measure_limits(self.view.device))

    def action_cancel(self) -> None:
        if words := self.view.cancel():
            self.say(words)

    def action_pause(self) -> None:
        if self.view.paused:
            self.view.resume()
            self.say("")
        else:
            self.view.pause()
            self.say(f"only the view is paused; {self.key_of('pause')} goes on")

    def action_record(self) -> None:
        source = self.view.source
        known = source is not None and (source.recorder or source.keeper) is not None
        hint = f"Enter keeps it under this name, from {'its beginning' if known else 'now'} on; Esc does not"
        asked = AskScreen("Keep this session", self.view.named or self.recording_title(), hint=hint)
        self.ask(asked, lambda title: self.say(self.view.name(title.strip() or self.recording_title())), "error")

    def recording_title(self) -> str:
        """The session's name unless the user gives another."""
        return self.view.run.experiment.kernel if self.view.run is not None else self.view.experiment.kernel

    def ask(self, dialog: Dialog, take: Callable[[str], object], level: str = "warning") -> None:
        """Open the dialog and take its answer, if any; say why if that is refused."""

        def answered(answer: str | None) -> None:
            if answer is not None:
                with self.saying(level):
                    take(answer)

        self.app.push_screen(dialog, answered)

    def action_mark(self) -> None:
        source, hint = self.view.source, "Enter leaves it in the recording, Esc does not"
        if source is not None:
            asked = AskScreen("Marker", "", "what is new here? @phases ?phase asks", hint)
            self.ask(asked, lambda words: source.mark(words.strip() or "marker"))

    def action_move(self, how: str, *where: float | str) -> None:
        """Go elsewhere in the recording, as that method of its playback does; in a presentation to another cue card."""
        if self.view.presenting:
            self.turn(TURNS.get((how, *where), 0))
            return
        self.view.selected = self.view.told = None
        self.action_adjust(how, *where)

    def turn(self, count: int) -> None:
        """Go that many cue cards on, or back; 0 says what else can be done."""
        self.view.selected = self.view.told = self.view.answered = None
        turned = self.view.playback.turn(count) if count and self.view.playback is not None else None
        self.say(turned if turned is not None else bindings.is_presented(self) or "")

    def action_present(self) -> None:
        playback = self.view.playback
        if playback is not None:
            self.view.selected = self.view.told = self.view.answered = None
            playback.leave() if playback.presenting else playback.present()
            self.update(True)

    def action_adjust(self, how: str, *amount: float | str) -> None:
        """Change how the recording is played, as that method of its playback does."""
        if words := getattr(self.view.playback, how)(*amount):
            self.say(words)
        else:
            self.update()

    def action_go(self) -> None:
        from fwtui.tui.frame.playback import WHERE

        def go(place: str) -> None:
            if place.strip():
                self.action_move("go", place)

        hint = f"{WHERE}. Enter goes there, Esc does not"
        self.ask(AskScreen("Go to", "", "12.5 · 1:30 · 40 % · run 3 · marker 2", hint), go, "error")

    def on_timeline_sought(self, event: Timeline.Sought) -> None:
        event.stop()
        self.action_move("seek", event.share)

    def action_answer(self) -> None:
        marker = self.view.marker
        if marker is not None:
            self.view.answered = None if self.view.answered == marker[0] else marker[0]
            self.update(True)

    def action_motion(self) -> None:
        self.view.motion = not self.view.motion
        self.update()

    def action_save(self) -> None:
        from fwtui.tui.frame.saving import FORMS

        hint = "Enter saves it in a new file and says where; text goes to the clipboard too, if the terminal allows it"
        choices = ((name, FORMS[name].title) for name in self.savable())
        self.ask(ChoiceScreen("Save", choices, hint), self.save_soon)

    def savable(self) -> list[str]:
        """The forms of fwtui.tui.frame.saving that have something to save."""
        from fwtui.tui.frame.saving import FORMS

        gone = ("table" if not self.table() else "", "results" if not self.model.runs else "")
        return [name for name in FORMS if name.partition("-")[0] not in gone]

    def save_soon(self, name: str) -> None:
        """Save it once the dialog has gone from the screen."""
        self.call_after_refresh(self.save, name)

    def save(self, name: str) -> None:
        """Keep what is shown in that form, and say where."""
        from fwtui.tui.frame import saving

        form = saving.FORMS[name]
        text = form.text(self.app, self.model, self.table())
        with self.saying("error"):
            path = saving.write(f"fwtui-{self.PLACE}-{name}", form.suffix, text)
            copied = form.copied and len(text) <= saving.MOST_COPIED
            if copied:
                self.app.copy_to_clipboard(text)
            also = "also sent to the clipboard, if the terminal allows it" if copied else ""
            # the log line may be too short for the path; this is not
            self.app.notify(f"{path}\n{also}".strip(), title="Saved", markup=False, timeout=saving.SHOWN_SECONDS)
            self.say(f"saved {path}")

    def action_back(self) -> None:
        if (go := self.way_back) is not None:
            go()

    @property
    def way_back(self) -> Callable[[], object] | None:
        """One step back: out of cue cards, of a field or a chart, to the newest run, the first place, what was shown before."""
        if self.view.presenting:
            return self.action_present
        if isinstance(self.focused, Arrowed | Input):
            return partial(self.set_focus, None)
        if self.view.selected is not None:
            return self._to_newest
        if self.view.places and self.view.places[0].name != self.PLACE:
            return partial(self.post_message, TopBar.Chosen(self.view.places[0].name))
        return self.view.close

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

    def action_cost(self) -> None:
        self.meter.shown = not self.meter.shown
        self.update()

    def action_presenter(self) -> None:
        self.app.look = self.look._replace(presenter=not self.look.presenter)  # type: ignore[attr-defined]
        self.update(True)

    def action_log(self) -> None:
        fault = self.model.fault
        self.app.push_screen(LogScreen(notices.entries(self.model), fault.stderr if fault is not None else ""))

    def action_help(self) -> None:
        here = {f"place.{place.name}" for place in self.view.places}
        places = [row for row in rebound(bindings.TO_PLACES, self.look.keymap) if row.id in here]
        groups = (("This screen", self.offered()), self.MOVES, ("Places", places), ("Everywhere", bindings.EVERYWHERE))
        about = (("What is shown here", self.WORDS), ("Glossary", GLOSSARY))
        self.app.push_screen(HelpScreen((g for g in groups if g[1]), (a for a in about if a[1])))

    def key_of(self, name: str) -> str:
        """The name of the key that the row with that id has now."""
        everywhere = rebound((row for row in vars(bindings).values() if isinstance(row, Action)), self.look.keymap)
        row = next(row for row in (*self._rows, *everywhere) if row.id == name)
        return row.key_display or self.app.get_key_display(Binding(row.key.partition(",")[0], ""))

    def offered(self) -> list[Action]:
        """The rows that the help shows: all that this place has for such a view."""
        return [row for row in self._rows if row.belongs(self.view) and (row.shows or not self.read_only)]

    def action_scroll_panel(self, direction: int) -> None:
        panel = self.panel()
        if self.view.presenting:  # a clicker has these keys
            self.turn(direction)
        elif panel is not None:
            panel.scroll_relative(y=direction * panel.scrollable_content_region.height, animate=False)

    @property
    def read_only(self) -> bool:
        return getattr(self.app, "read_only", False)

    def unavailable(self, action: str, parameters: tuple[object, ...] = ()) -> str | None:
        """Why an action can do nothing now; None if it can, "" where another row has its key or that is seen."""
        if self.read_only and not only_shows(type(self), action, parameters):
            return READ_ONLY
        row = table(type(self)).get((action, parameters))
        if row is None:
            return None
        words = row.unavailable(self)
        return "" if words is None and not row.belongs(self.view) else words

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.unavailable(action, parameters) is None

    def commands(self) -> Iterator[palette.Command]:
        """What the palette offers here."""
        from fwtui.tui.frame.saving import FORMS

        for row in self._rows:
            if self._can(row):
                # not before the palette is closed
                run = partial(self.call_later, self.run_action, row.action)
                yield palette.Command(f"{row.description}: {row.tooltip}", run, looks=True)
        for name in self.savable():
            yield palette.Command(f"Save {FORMS[name].title}", partial(self.save_soon, name))
