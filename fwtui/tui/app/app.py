"""The application: one live session or one recorded one, a timer that moves it, and a clean end on every way out."""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from rich.cells import cached_cell_len
from rich.console import RenderableType
from textual import constants
from textual._context import active_message_pump
from textual._styles_cache import StylesCache
from textual.actions import ActionParseResult, parse
from textual.app import App, ComposeResult, ScreenStackError, SystemCommand
from textual.await_complete import AwaitComplete
from textual.content import Content
from textual.css.scalar import Scalar
from textual.dom import DOMNode
from textual.driver import Driver
from textual.events import Event, InputEvent, Key, MouseDown, MouseEvent, MouseScrollDown, MouseScrollUp, Paste
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Region
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.strip import Strip
from textual.theme import ThemeProvider
from textual.timer import Timer
from textual.widget import AwaitMount, Widget
from textual.widgets import OptionList, Static

from fwtui.common import gc_pause
from fwtui.common.exit_codes import USAGE, WRONG
from fwtui.experiment.experiment import Experiment
from fwtui.sessions.autosave import Earlier, earlier
from fwtui.stream.events import Marker
from fwtui.stream.requests import Hardware
from fwtui.tui.actions import READ_ONLY, only_shows
from fwtui.tui.app import strip_caches, terminal
from fwtui.tui.app.ascii_only import Plain
from fwtui.tui.app.left import Left, save
from fwtui.tui.app.style_sheets import StyleSheets
from fwtui.tui.frame.bindings import OF_THE_APP
from fwtui.tui.frame.dialogs import EndScreen
from fwtui.tui.frame.frame import FAILED, Frame
from fwtui.tui.frame.look import FWTUI, HEIGHTS, USUAL, WIDTHS, Look
from fwtui.tui.frame.own_cost import Meter
from fwtui.tui.frame.palette import Command, Palette
from fwtui.tui.frame.places import BESIDE, PLACES, Place, load, places
from fwtui.tui.frame.topbar import TopBar
from fwtui.tui.frame.view import Source, View

if TYPE_CHECKING:
    from fwtui.sessions.pipes import Listener
    from fwtui.tui.app.claims import Documents
    from fwtui.tui.app.crash_log import Mishaps
    from fwtui.tui.app.session_opener import SessionOpener
    from fwtui.tui.frame.recording import Recording
    from fwtui.tui.sessions.screen import SessionWanted

TICKS_PER_SECOND = 10
COLLECT_FROM = 20  # partial collections since the last full one: next to none while nothing happens
COLLECT_REST = 200  # times as long as a full collection took, the next one waits: a long replay has many objects
FORGET_TICKS = 100  # after which what Textual holds of earlier pictures is given up
# The first holds the last 1024 widgets that were drawn, with all their text, also those that have gone. The others would
# fill for hours: with the places of widgets in every size of the terminal, and with every style that a text ever had.
_CACHES = (
    *(StylesCache.get_inner_outer, Scalar.resolve, Strip.render_ansi, ANSIToTruecolor.truecolor_style),
    *(Region.grow, Region.intersection, Region.shrink, Region.split_vertical, Region.translate, Region.union),
    *(Region.overlaps, Region.contains_region, Region.__contains__, cached_cell_len),
)
QUIET_SECONDS = 0.5  # between two updates while nothing runs and nothing plays
AWAY_AFTER, AWAY_SECONDS = 60.0, 5.0  # the same once the terminal has been without focus for so long
AWAY_TICK_SECONDS = 0.5  # between two ticks then
PAGING = ("page_up", "page_down")
KEY_STUCK_AFTER = 5.0  # seconds until a key counts as handled whose widget is there and does not come to an end with it


class Handled(Message):
    """Follows an input through the same widgets; when it arrives, they are done with it."""

    def __init__(self, handled: Event):
        super().__init__()
        self.handled = handled


class FwtuiApp(App[None]):
    TITLE = "fwtui"
    CSS = """
    Screen { background: $background; }
    #loading { width: 1fr; height: 1fr; content-align: center middle; color: $text-muted; }
    """
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    BINDINGS = [*OF_THE_APP]
    ENABLE_COMMAND_PALETTE = False  # Textual's own

    def __init__(
        self,
        source: Source | None = None,
        experiment: Experiment | None = None,
        replay: Path | Recording | Listener | None = None,
        speed: float = 1.0,
        start: float = 0.0,
        max_gap: float | None = None,
        still: bool = False,
        found: Hardware | None = None,
        last_resort: Callable[[], None] = lambda: None,
        place: str = PLACES[0].name,
        present: bool = False,
        look: Look = USUAL,
        lesson: str = "",
        left: Left | None = None,
        read_only: bool = False,
    ):
        """Live from `source`, or a replay; `still` is a picture: no clock, no animation.

        `found` are the GPUs, if known already; `last_resort()` is called, in a separate thread, if a signal finds the
        application stuck; `place` is shown first; `present` is whether the recording's cue cards are presented; `look`
        is how it looks; `lesson` is the first step of the course; `left` is how the dashboard was left, if that is
        remembered and sessions are kept; `read_only` is the dashboard that only shows: a replay, if one is given, over
        the course and the sessions that are offered.
        """
        super().__init__()
        strip_caches.leave_out()
        self.stylesheet = StyleSheets(variables=self.get_css_variables())
        self.register_theme(FWTUI)
        self.theme = look.theme
        self.look = look
        self.plain = look.ascii  # everything in ASCII
        self.meter = Meter()
        self.read_only = read_only
        if read_only:
            from fwtui.tui.frame.read_only import NoEngine

            source, found = NoEngine(), Hardware()
        self.source = source
        self.left_by_signal = False
        self._experiment = experiment or Experiment()
        self._left = left
        self._replay = replay
        self.refusal: str | None = None  # why there was nothing to show
        self._how = {"speed": speed, "start": start, "max_gap": max_gap}
        self.still = still
        self._found = found
        self._last_resort = last_resort
        self._place = place
        self._present = present
        self._lesson = lesson
        self._views: list[View] = []  # the live session, a replay over it; the last one is shown
        self._opened = 0  # views that there ever were
        self._inputs: deque[Event] = deque()  # keys, and what came after them; the first one is under way
        self._awaited: MessagePump = self  # where the first one was sent
        self._sent = False  # whether it was, or waits for a screen to open
        self._entered: Screen[Any] | None = None  # the screen that was given an input last
        self._stuck: MessagePump | None = None  # what has not answered in time: nothing waits for it again until it does
        self.key_since = 0.0
        self._answered = 0.0  # when a dialog was closed last
        self._clock: Timer | None = None
        self._tick_seconds = 0.0
        self._left_alone: float | None = None  # since when the terminal has no focus
        self._ticks = 0
        self._partial, self._collect_from = 0, 0.0  # partial collections before the last full one, and when the next may come
        self._looked = 0.0  # when the screens were updated last
        self._painted = False
        self._failure = ""  # why it had to end
        if still:
            self.animation_level = "none"

    def compose(self) -> ComposeResult:
        yield Static(Content("opening…"), id="loading", markup=False)

    def get_driver_class(self) -> type[Driver]:
        if constants.DRIVER is not None or sys.platform == "win32":
            return super().get_driver_class()
        from fwtui.tui.app.terminal_input import TerminalDriver

        return TerminalDriver

    def on_load(self) -> None:
        # here and not when mounted: the terminal's modes are still its own
        if not self.still:
            terminal.listen(self._leave, self._last_resort)

    async def on_event(self, event: Event) -> None:
        """Handle keys one after the other, and pasted text and the mouse after the keys that came before them.

        A key bubbles up before its binding acts, and the binding acts on what has the focus by then. In a burst of keys on a
        busy machine, letters would overtake an earlier backspace, or go to the field before an earlier tab.
        """
        alone = isinstance(event, MouseEvent) and not self._inputs
        if alone or event.is_forwarded or not isinstance(event, InputEvent | Paste):
            if not event.is_forwarded:
                self._let_scroll(event)
            await super().on_event(event)
        elif not (isinstance(event, Key) and event.time < self._answered):  # else it was pressed for a dialog that has answered
            self._inputs.append(event)
            if len(self._inputs) == 1:
                await self._handle_input()
            else:
                await self._give_up_input()

    def _let_scroll(self, event: Event) -> None:
        """Before a user's action: what the screen keeps in sight may leave it."""
        if isinstance(event, Key | MouseDown | MouseScrollDown | MouseScrollUp) and isinstance(self.screen, Frame):
            self.screen.let_scroll()

    @property
    def waiting(self) -> int:
        """How many inputs are not handled yet."""
        return len(self._inputs)

    async def _handle_input(self) -> None:
        """Give the first input to what has the focus, once the screen that the input before has opened is there."""
        first, self.key_since = self._inputs[0], time.monotonic()
        self._sent = self.screen is self._entered or self.focused is not None
        self._entered = self.screen
        self._awaited = self.focused or self.screen if self._sent else self.screen
        if self._sent:
            self._let_scroll(first)
            await super().on_event(first)
        if not self._awaited.post_message(Handled(first)):
            self._handled(first)

    def on_handled(self, message: Handled) -> None:
        self._stuck = None
        self._handled(message.handled)

    def _handled(self, first: Event) -> None:
        if self._inputs and self._inputs[0] is first:
            self.call_later(self._go_on, first)  # after the focus has moved, which is put off in the same way

    async def _go_on(self, first: Event) -> None:
        if self._inputs and self._inputs[0] is first:
            if self._sent:
                self._inputs.popleft()
            if self._inputs:
                await self._handle_input()

    def pop_screen(self) -> AwaitComplete:
        """Close the dialog; keys that were pressed for it go nowhere."""
        self._answered = Event().time  # by the clock that tells when a key was pressed
        self._inputs.clear()
        return super().pop_screen()

    async def _give_up_input(self) -> None:
        """Go on without the first input if its widget went away with it. A slow machine is no reason: it comes to it yet."""
        gone, known = not self._awaited.is_attached, self._awaited is self._stuck
        if self._inputs and (gone or known or time.monotonic() > self.key_since + KEY_STUCK_AFTER):
            self._stuck = None if gone else self._awaited
            await self._go_on(self._inputs[0])

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, renderable)
        self.meter.frame()

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), *[Plain()] * self.plain]

    def on_mount(self) -> None:
        self.set_keymap(self.look.keymap)
        if self.source is not None:
            view = View(self.source.model, self.source, experiment=self._experiment, found=self._found, lesson=self._lesson)
            if self._left is not None:
                view.experiment, view.step = self._left.begins_with(self._experiment), self._left.course
                view.own_files = self._left.own_files
                view.look_back = self._look_back if self.source.recorder is None else None
            self._enter(view)
        if self._replay is not None or self.source is None:
            self._start_clock()  # recordings come by ticks
        if isinstance(self._replay, Path):
            self.open(self._replay)
        elif self._replay is not None:
            from fwtui.tui.frame.recording import Recording

            if isinstance(self._replay, Recording):
                self._enter_recording(self._replay)
            else:
                self._opener.wait_for(self._replay)

    @cached_property
    def _opener(self) -> SessionOpener:
        from fwtui.tui.app.session_opener import SessionOpener

        return SessionOpener(self, self._enter_recording, self._not_opened, self._how)

    def open(self, path: Path) -> None:
        """Read a session in the background and show it over what is there."""
        self.say(f"opening {self._opener.read(path)}")

    def _not_opened(self, sentence: str, code: int) -> None:
        if self.view is not None:
            self.say(sentence, "error" if code else "info")
            return
        self.refusal = sentence if code else None
        self.exit(return_code=code)

    def _start_clock(self) -> None:
        if not self.still and self._clock is None:
            self._pace(1 / TICKS_PER_SECOND)

    def _pace(self, seconds: float) -> None:
        """Tick at this interval from now on."""
        if self._clock is not None:
            self._clock.stop()
        self._tick_seconds = seconds
        self._clock = self.set_interval(seconds, self.tick)

    def on_painted(self) -> None:
        self._painted = True
        gc_pause.wake()
        self._start_clock()  # a tick starts children, and they would take time from the first frame

    def _look_back(self) -> Earlier | None:
        """The session that this one could go on with."""
        assert self.source is not None and self.source.model.header is not None and self._left is not None
        last = Path(self._left.session) if self._left.session else None
        found = earlier(self.source.model.header.machine, last)
        return found._replace(baseline=self._left.baseline) if found is not None and found.path == last else found

    @property
    def view(self) -> View | None:
        """What is shown: the live session, or the replay that was opened last."""
        return self._views[-1] if self._views else None

    def _enter_recording(self, recording: Recording) -> None:
        """Show a recording over what is there."""
        from fwtui.tui.frame.playback import Playback

        self.say("")  # or it would be opening still when the user comes back
        playback = Playback(recording, self.set_timer, playing=not self.still)
        playback.follow()
        if self._present:
            self._present = False
            if not playback.player.count(Marker)[1]:
                how = "`fwtui mark --from notes.md` writes them into a recording (sessions/README.md)"
                self._not_opened(f"{recording.name} has no cue cards; {how}", USAGE)
                return
            playback.present()
        self._enter(View(playback.model, playback=playback))

    def _enter(self, view: View) -> None:
        """Show a view at the place asked for, or at its first one. A replay takes the place of a replay."""
        gone = self._views.pop() if self._views and self._views[-1].playback is not None else None
        replayed = view.playback is not None
        there = view.places = self._places(replayed)
        view.close = self._close if self._views else None
        view.number, self._opened = self._opened, self._opened + 1
        for place in there:
            self.add_mode(self._mode(view, place), self._screen_of(view, place))
        self._views.append(view)
        self._go(view, next((place for place in there if place.name == self._place), there[0]))
        self._place = there[0].name  # of what is opened later
        if gone is not None:
            self._forget(gone)

    def _places(self, replayed: bool) -> tuple[Place, ...]:
        if not self.read_only or replayed:
            return places(replayed)
        from fwtui.tui.frame.read_only import PLACES

        return tuple(place for place in places(replayed) if place.name in PLACES)

    def _close(self) -> None:
        """Back from a replay to the dashboard."""
        gone = self._views.pop()
        self.action_place(self._views[-1].place)
        self._forget(gone)

    def _go(self, view: View, place: Place) -> AwaitMount:
        view.place = place.name
        if any(screen.has_class(FAILED) for screen in self._screen_stacks.get(self._mode(view, place), ())):
            self._renew(view, place, self._screen_of(view, place))
        return self.switch_mode(self._mode(view, place))

    @staticmethod
    def _screen_of(view: View, place: Place) -> Callable[[], Screen[Any]]:
        return lambda: load(place.where(view.playback is not None))(view)  # imported when it is first seen

    @staticmethod
    def _mode(view: View, place: Place) -> str:
        return f"{view.number}:{place.name}:{view.drawn.get(place.name, 0)}"

    def _forget(self, view: View) -> None:
        for place in view.places:
            self.remove_mode(self._mode(view, place))

    def action_place(self, name: str) -> None:
        """Show another place of the view that is shown."""
        if (view := self.view) is not None and (place := view.place_named(name)) is not None:
            self._go(view, place)

    def on_top_bar_chosen(self, event: TopBar.Chosen) -> None:
        self.action_place(event.place)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "place":
            return self.view is not None and self.view.place_named(str(parameters[0])) is not None
        return super().check_action(action, parameters)

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Like Textual's, but a key that can do nothing on a screen says why, and a read-only dashboard only shows.

        A list that is not laid out yet, where a key was quicker, fails to page: it does nothing here.
        """
        if action in PAGING and isinstance(default_namespace, OptionList) and not default_namespace.scrollable_content_region:
            return True
        where, name, parameters = parse(action) if isinstance(action, str) else action
        target = (namespaces or {}).get(where) or {"": default_namespace or self, "app": self, "screen": self.screen}.get(where)
        if self.read_only and target is not None and not only_shows(type(target), name, parameters):
            self.say(READ_ONLY)
            return False
        try:
            done = await super().run_action(action, default_namespace, namespaces)
        except ScreenStackError:  # a key that came after the last screen had gone
            return True
        if not done and isinstance(target, Frame) and (words := target.unavailable(name, parameters)):
            target.say(words)
        return done

    async def on_session_wanted(self, event: SessionWanted) -> None:
        if not event.beside:
            self.open(event.path)
        elif (view := self.view) is not None and (place := view.place_named(BESIDE)) is not None:
            await self._go(view, place)
            bring = getattr(self.screen, "bring", None)  # of the place itself, and not of a dialog over it
            if bring is not None:
                bring(str(event.path))

    @cached_property
    def _documents(self) -> Documents:
        from fwtui.tui.app.claims import Documents

        return Documents(self, self.say)

    def say(self, text: str, level: str = "info") -> None:
        """A sentence on the log line of the screen that is shown."""
        screen = next((s for s in reversed(self.screen_stack) if isinstance(s, Frame)), None)
        if screen is not None:
            screen.say(text, level)

    def commands(self) -> Iterator[Command]:
        """Commands that go to the places, and that replay the sessions of this machine; only names are read."""
        from fwtui.sessions.library import paths
        from fwtui.tui.frame.recording import named

        for place in self.view.places if self.view is not None else ():
            yield Command(f"Go to {place.title}", partial(self.action_place, place.name), place.tooltip, looks=True)
        if self.view is not None:
            yield from self._documents.commands(self.view)
        for path in paths():
            yield Command(f"Replay: {named(path)}", partial(self.open, path), looks=True)

    def tick(self, now: float | None = None) -> None:
        """Read the children's events, move the players to `now` on a monotonic clock, and show both."""
        if not self.is_running:  # the screens are being taken down
            return
        if self._inputs:
            self.call_later(self._give_up_input)
        going = self._going
        self._ticks += 1
        pace = AWAY_TICK_SECONDS if self._away and not going else 1 / TICKS_PER_SECOND
        if self._clock is not None and pace != self._tick_seconds:
            self._pace(pace)
        if self.source is not None:
            self.source.drain()
            self._remember()
        else:
            self._opener.hear()
        for view in self._views:
            if view.sweep is not None:
                view.sweep.tick()
            if view.playback is not None:
                view.playback.tick(time.monotonic() if now is None else now)
            if view.campaign is not None:
                self._documents.tick(view)
        if self._ticks % FORGET_TICKS == 0:
            self._forget_pictures()
        if self._look_due(going or self._going):
            for screen in self.screen_stack:
                if isinstance(screen, Frame):
                    screen.update()

    def _forget_pictures(self) -> None:
        """Clear Textual's caches of earlier pictures.

        They hold styles, widths of texts, places of widgets in 16 sizes of the terminal, lines cut up for four layouts, and
        answers to queries of 1,024 earlier trees. Lines and removed widgets form reference cycles, which only a full collection
        frees; by itself that comes once a minute.
        """
        for cache in _CACHES:
            cache.cache_clear()
        for screen in chain.from_iterable(self._screen_stacks.values()):
            for widget in screen.walk_children(Widget, with_self=True):
                widget._box_model_cache.clear()
                widget._styles_cache.clear()
                widget._query_one_cache.clear()
        begun, partial = time.monotonic(), sum(generation["collections"] for generation in gc.get_stats()[:2])
        if partial >= self._partial + COLLECT_FROM and begun >= self._collect_from:
            gc.collect()
            self._partial, self._collect_from = partial, begun + COLLECT_REST * (time.monotonic() - begun)

    @property
    def _going(self) -> bool:
        """Whether something happens but telemetry."""
        playing = (view.playback is not None and (view.playback.player.playing or view.playback.live) for view in self._views)
        return self.still or any(playing) or any(view.busy for view in self._views)

    @property
    def _away(self) -> bool:
        return self._left_alone is not None and time.monotonic() > self._left_alone + AWAY_AFTER

    def _look_due(self, going: bool) -> bool:
        """Whether the screens are updated in this tick: less often while nothing happens, rarely in a terminal without focus."""
        now = time.monotonic()
        if not going and now < self._looked + (AWAY_SECONDS if self._away else QUIET_SECONDS):
            return False
        self._looked = now
        return True

    def on_app_blur(self) -> None:
        self._left_alone = time.monotonic()

    def on_app_focus(self) -> None:
        self._left_alone, self._looked = None, 0.0
        self.tick()

    def _remember(self) -> None:
        """Save what the next start begins with, if it has changed."""
        if self._left is None or self.source is None:
            return
        view, recorder = self._views[0], self.source.recorder or self.source.keeper
        now = replace(self._left, usual=self._experiment, form=view.experiment, course=view.step, own_files=view.own_files)
        if self.source.model.runs and recorder is not None:
            now = replace(now, session=str(recorder.path.absolute()), baseline=view.baseline)
        if now != self._left:
            self._left = now
            save(now)

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Of Textual's commands only the theme: fwtui has its own for quitting, help and pictures."""
        yield SystemCommand("Theme", "Change the current theme", self.action_change_theme)

    async def action_quit(self) -> None:
        """End the program; ask first where that cuts something short."""
        what = self._views[0].end if self._views and not isinstance(self.screen, EndScreen) else ""
        if what:
            self.push_screen(EndScreen(what), lambda answer: self._end() if answer else None)
        else:
            self._end()

    def _end(self) -> None:
        if self.source is not None and self.source.busy:
            self.source.cancel()
        self.exit(return_code=0)

    def action_help_quit(self) -> None:
        """Ctrl+C ends nothing; the log line says which key does."""
        if isinstance(self.screen, Frame):
            self.say("ctrl+q ends the program")
        else:
            super().action_help_quit()

    def search_themes(self) -> None:
        self.push_screen(Palette(providers=[ThemeProvider], placeholder="Search for themes…"))

    def panic(self, *renderables: RenderableType) -> None:
        self._return_code = WRONG  # Textual leaves it alone where its input thread has failed
        super().panic(*renderables)

    def _print_error_renderables(self) -> None:
        """One line, without the values of variables that Textual would print."""
        if self._failure:
            self._exit_renderables.clear()
            print(self._failure, file=sys.__stderr__)
        super()._print_error_renderables()

    @property
    def survives(self) -> bool:
        """Whether errors of the screens are survived; tests and pictures have them raised."""
        return not self.is_headless

    @cached_property
    def _mishaps(self) -> Mishaps:
        from fwtui.tui.app.crash_log import Mishaps

        return Mishaps()

    def _handle_exception(self, error: Exception) -> None:
        if self.left_by_signal:  # what was about to be shown misses what has been taken away
            return
        if not self.survives:
            super()._handle_exception(error)
            return
        what = self._mishaps.keep(error)
        if not (self._painted and self._running) or self.view is None:
            self._failure = self._failure or f"fwtui: error in the dashboard: {what}"
            self.panic("")
            return
        pump = active_message_pump.get(None)
        self.call_later(self._draw_anew, pump if isinstance(pump, Widget) else None, what)

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            if isinstance(error, ScreenStackError) and not self.screen_stack:  # a key that came after the last screen had gone
                return
            if not (self._painted and self.survives):
                raise
            self._handle_exception(error)  # Textual would end the program after that

    def _draw_anew(self, failed: Widget | None, what: str) -> None:
        """Make the place anew in which that widget has failed, or the program itself; if that never helps, say so there."""
        if failed is not None and not failed.is_attached:  # it has been drawn anew already
            return
        screen = self.screen if failed is None else failed.screen
        mode = next((mode for mode, stack in self._screen_stacks.items() if screen in stack), "")
        known = {self._mode(view, place): (view, place) for view in self._views for place in view.places}
        if mode not in known:
            return
        view, place = known[mode]
        if not self._mishaps.hopeless(place.name):
            self._renew(view, place, self._screen_of(view, place))
            self.say(f"this screen failed and was drawn anew; runs and recordings go on: {what}", "error")
        elif not screen.has_class(FAILED):
            from fwtui.tui.app.crash_log import FailedPlace

            self._renew(view, place, lambda: FailedPlace(view, place.name, what))

    def _renew(self, view: View, place: Place, made: Callable[[], Screen[Any]]) -> None:
        """Put another screen where that place is; what is open over it goes, too."""
        old = self._mode(view, place)
        view.drawn[place.name] = view.drawn.get(place.name, 0) + 1
        new = self._mode(view, place)
        self.add_mode(new, made)
        if old == self.current_mode:
            self._inputs.clear()
            self.switch_mode(new)
        self.remove_mode(old)

    def _leave(self, code: int) -> None:
        self.left_by_signal = True
        self.exit(return_code=code)
