"""The application: a live session or a replay, the timer that advances it, and a clean end in every case."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import constants
from textual.actions import ActionParseResult, parse
from textual.app import ComposeResult, ScreenStackError
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.content import Content
from textual.dom import DOMNode
from textual.driver import Driver
from textual.events import Event, Resize
from textual.filter import LineFilter
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static

from fwtui.common import gc_pause
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import WRONG
from fwtui.common.text import quoted
from fwtui.experiment.experiment import Experiment
from fwtui.stream.requests import Hardware
from fwtui.tui import actions
from fwtui.tui.actions import READ_ONLY, is_read_only
from fwtui.tui.app import terminal
from fwtui.tui.app.input_queue import Handled, InputQueue
from fwtui.tui.app.refresh_rate import RefreshRate
from fwtui.tui.app.ui_state import SavedUiState
from fwtui.tui.app.view_stack import ViewStack
from fwtui.tui.frame.appearance import DEFAULT, FWTUI, HEIGHTS, WIDTHS, Appearance, bounded
from fwtui.tui.frame.bindings import OF_THE_APP
from fwtui.tui.frame.contrast import LEGIBLE_DIM
from fwtui.tui.frame.dialogs import Dialog, EndScreen
from fwtui.tui.frame.frame import FAILED, Frame
from fwtui.tui.frame.palette import Command, CommandProvider, panels
from fwtui.tui.frame.places import COMPARE, PLACES
from fwtui.tui.frame.topbar import TopBar
from fwtui.tui.frame.view import LiveSession, View
from fwtui.tui.textual_internals import Survivor, drop_lines, failed_widget

if TYPE_CHECKING:
    from fwtui.tui.app.crash_log import CrashLog
    from fwtui.tui.app.session_opener import SessionOpener
    from fwtui.tui.app.terminal_input import InputFailed
    from fwtui.tui.frame.loaded_recording import Recording, SessionWanted

PAGING = ("page_up", "page_down", "command_list('page_up')", "command_list('page_down')")
REMEMBER_EVERY = 2.0  # seconds between saves of the state while the user types


class FwtuiApp(Survivor):
    TITLE = "fwtui"
    CSS = """
    Screen { background: $background; } GuessScreen { background: transparent; }
    #loading { width: 1fr; height: 1fr; content-align: center middle; color: $text-muted; }
    """
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    BINDINGS = [*OF_THE_APP]
    COMMANDS = {CommandProvider}

    def __init__(
        self,
        source: LiveSession | None = None,
        experiment: Experiment | None = None,
        replay: Path | Recording | None = None,
        speed: float = 1.0,
        start: float = 0.0,
        max_gap: float | None = None,
        still: bool = False,
        found: Hardware | None = None,
        last_resort: Callable[[], None] = lambda: None,
        place: str = PLACES[0].name,
        look: Appearance = DEFAULT,
        lesson: str = "",
        saved_state: SavedUiState | None = None,
        read_only: bool = False,
    ):
        """Show the live session `source`, or a replay. With `still` there is no clock and no animation: for pictures.

        `found` are the GPUs, if already detected. `last_resort()` is called in a separate thread if a signal finds the
        application stuck. `place` is the first screen, `lesson` the first step of the course. `saved_state` is the state that
        the previous dashboard saved; None if neither state nor sessions are saved. With `read_only` there are only replays,
        the course and offered sessions.
        """
        super().__init__()
        self.register_theme(FWTUI)
        self.theme = look.theme
        self.look = look
        self.read_only = read_only
        if read_only:
            from fwtui.tui.frame.read_only import NoEngine

            source, found = NoEngine(), Hardware()
        self.source = source
        self.left_by_signal = False
        self.experiment = experiment or Experiment()
        self._saved, self._remembered_at = saved_state, 0.0
        self._replay = replay
        self.refusal: str | None = None  # why the session could not be opened
        self._how = {"speed": speed, "start": start, "max_gap": max_gap}
        self.still = still
        self._found = found
        self._last_resort = last_resort
        self._lesson = lesson
        self.views = ViewStack(self, place, read_only)
        self.inputs = InputQueue(self, super().on_event, self.show_message)
        self.pace = RefreshRate(self, self.tick)
        self.painted = False
        self.failure = ""  # one sentence about the error that ended the program
        if still:
            self.animation_level = "none"

    def compose(self) -> ComposeResult:
        yield Static(Content("opening…"), id="loading", markup=False)

    def get_driver_class(self) -> type[Driver]:
        if constants.DRIVER is None:
            from fwtui.tui.app.terminal_input import TerminalDriver

            return TerminalDriver
        if "web" in constants.DRIVER.lower():
            from fwtui.tui.app.page_driver import PageDriver

            return PageDriver
        try:
            return super().get_driver_class()
        except (ImportError, AttributeError, ValueError, RuntimeError):
            raise Refused(f"TEXTUAL_DRIVER is {quoted(constants.DRIVER)}, which is not a driver of Textual; unset it") from None

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        return filters if self.native_ansi_color else [LEGIBLE_DIM, *filters]  # a terminal dims its own colours

    def on_load(self) -> None:
        # before the application changes the modes of the terminal
        if not self.still:
            terminal.listen(self._leave, self._last_resort)

    @property
    def size(self) -> Size:
        return bounded(super().size)

    @property
    def message_queue_size(self) -> int:
        return super().message_queue_size + len(self.inputs)

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Resize):
            event = Resize(bounded(event.size), bounded(event.virtual_size), pixel_size=event.pixel_size)
        try:
            await self.inputs.take(event)
        except Exception as error:
            if isinstance(error, ScreenStackError) and not self.screen_stack:  # a key after the last screen was closed
                return
            if not (self.painted and self.survived(error)):
                raise  # Textual ends the program after that

    def on_handled(self, message: Handled) -> None:
        self.inputs.arrived(message)

    def pop_screen(self) -> AwaitComplete:
        """Close the dialog, and drop the keys that were pressed for it."""
        self.inputs.dialog_answered()
        closed = self.screen
        try:
            return super().pop_screen()
        finally:
            drop_lines(closed)

    def refresh_css(self, animate: bool = True) -> None:
        """Refresh the styles, except after a switch to a screen whose styles are up to date."""
        if not self.views.styled:
            super().refresh_css(animate)

    def on_mount(self) -> None:
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))  # the terminal's screen is empty then
        if self.source is not None:
            view = View(self.source.model, self.source, experiment=self.experiment, found=self._found, lesson=self._lesson)
            if self._saved is not None:
                self._saved.begin(view, self.experiment)
            self.views.enter(view)
        if self._replay is not None or self.source is None:
            self._start_clock()  # a tick opens the recording
        if isinstance(self._replay, Path):
            self.open(self._replay)
        elif self._replay is not None:
            self._enter_recording(self._replay)

    @cached_property
    def _opener(self) -> SessionOpener:
        from fwtui.tui.app.session_opener import SessionOpener

        return SessionOpener(self, self._enter_recording, self._not_opened, self._how)

    def open(self, path: Path) -> None:
        """Read a session in the background, and open its replay over the present view."""
        self.show_message(f"opening {self._opener.read(path)}")

    def _not_opened(self, sentence: str, code: int) -> None:
        if self.view is not None:
            self.show_message(sentence, "error" if code else "info")
            return
        self.refusal = sentence if code else None
        self.exit(return_code=code)

    def _start_clock(self) -> None:
        if not self.still:
            self.pace.start()

    def on_painted(self) -> None:
        self.painted = True
        gc_pause.enable_gc()
        self._start_clock()  # a tick starts child processes, which would delay the first frame

    @property
    def view(self) -> View | None:
        """The live session, or the replay that was opened last."""
        return self.views.shown

    def _enter_recording(self, recording: Recording) -> None:
        """Open a replay over the present view."""
        from fwtui.tui.frame.playback import Playback

        self.show_message("")  # the message that it is being opened
        playback = Playback(recording, self.set_timer, playing=not self.still)
        playback.follow()
        playback.present(self.look.presenter and not self.still)
        self.views.enter(View(playback.model, playback=playback))

    def action_place(self, name: str) -> None:
        """Switch to another screen of the view."""
        self.views.to(name)

    def on_top_bar_chosen(self, event: TopBar.Chosen) -> None:
        self.call_later(self.action_place, event.place)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "place":
            return self.view is not None and not self.view.presenting and self.view.place_named(str(parameters[0])) is not None
        return super().check_action(action, parameters)

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action; show the reason if it is unavailable or the dashboard is read-only; ignore keys of a typed word.

        Textual 8.2 fails to page a list that has no layout yet; here the key does nothing
        (tests/ui/test_robust.py, test_keys_page_a_list_before_and_after_its_layout).
        """
        if action in PAGING and default_namespace is not None:
            palette = isinstance(default_namespace, CommandPalette)
            paged = default_namespace.query_one(CommandList) if palette else default_namespace
            if isinstance(paged, OptionList) and not paged.scrollable_content_region:
                return True
        where, name, parameters = parse(action) if isinstance(action, str) else action
        target = (namespaces or {}).get(where) or {"": default_namespace or self, "app": self, "screen": self.screen}.get(where)
        if self.read_only and target is not None and not is_read_only(type(target), name, parameters):
            self.show_message(READ_ONLY)
            return False

        async def act() -> bool:
            try:
                done = await super(FwtuiApp, self).run_action(action, default_namespace, namespaces)
            except ScreenStackError:  # a key after the last screen was closed
                return True
            if not done and isinstance(target, Frame) and (reason := target.rows.unavailable(name, parameters)):
                target.show_message(reason)
            self.pace.adapt(self._going)  # refresh at once at the rate of the new activity
            return done

        row = actions.table(type(target)).get((name, parameters))
        if row is not None and target is not None and target.check_action(name, parameters) and self.inputs.holds(row, act):
            return True
        return await act()

    def on_session_wanted(self, event: SessionWanted) -> None:
        self.call_later(self._bring if event.compare else self.open, event.path)

    async def _bring(self, path: Path) -> None:
        """Compare the runs of a session with those of the view."""
        if (view := self.view) is not None and (place := view.place_named(COMPARE)) is not None:
            await self.views.go(view, place)
            getattr(self.screen, "bring", lambda path: None)(str(path))  # a dialog over the screen has none

    def show_message(self, text: str, level: str = "info") -> None:
        """Show a message on the log line of the present screen."""
        if (screen := next((s for s in reversed(self.screen_stack) if isinstance(s, Frame)), None)) is not None:
            screen.show_message(text, level)

    def commands(self) -> Iterator[Command]:
        """Yield the commands that switch screens, change the theme, and replay sessions of this machine."""
        from fwtui.sessions.library import paths
        from fwtui.tui.frame.loaded_recording import named

        for place in self.view.places if self.view is not None else ():
            yield Command(f"Go to {place.title}: {place.tooltip}", partial(self.action_place, place.name), looks=True)
        yield Command("Theme", self.search_themes, "change the colours until the program ends", looks=True)
        if self.view is not None:
            yield from panels(self.view, self.action_place)
        for path in paths():
            yield Command(f"Replay: {named(path)}", partial(self.open, path), looks=True)

    def tick(self, now: float | None = None) -> None:
        """Read the events of the child processes, advance the players to `now` (monotonic clock), and update the screens."""
        if not self.is_running:  # the screens are being removed
            return
        if self.inputs:
            self.call_later(self.inputs.give_up)
        self.pace.adapt(self._going)
        if self.source is not None:
            self.source.drain()
            if not isinstance(self.focused, Input) or time.monotonic() >= self._remembered_at + REMEMBER_EVERY:
                self._remember()
        for view in self.views.views:
            if view.sweep is not None:
                view.sweep.tick()
            if view.playback is not None:
                view.playback.tick(time.monotonic() if now is None else now)
        self.pace.collect()
        for screen in self.screen_stack:
            if isinstance(screen, Frame):
                screen.update()

    def _remember(self) -> None:
        """Save the state of the dashboard."""
        self._remembered_at = time.monotonic()
        if self._saved is not None:
            self._saved = self._saved.after(self.views.views[0], self.experiment)

    @property
    def _going(self) -> bool:
        """True while something other than telemetry happens."""
        playbacks = (view.playback for view in self.views.views if view.playback is not None)
        playing = any(playback.player.playing for playback in playbacks)
        return self.still or playing or any(view.busy for view in self.views.views)

    def action_command_palette(self) -> None:
        if isinstance(self.screen, Dialog) and not self.screen.query(Input):  # the palette has the actions of the screen below
            self.screen.dismiss(None)
        if not isinstance(self.screen, CommandPalette):  # Textual's has an id, which one that is being removed still occupies
            self.push_screen(CommandPalette())

    async def action_quit(self) -> None:
        """End the program, after a confirmation if that interrupts or loses something."""
        what = self.views.views[0].end if self.views.views and not isinstance(self.screen, EndScreen) else ""
        if what:
            self.push_screen(EndScreen(what), lambda answer: self._end() if answer else None)
        else:
            self._end()

    def _end(self) -> None:
        self._remember()
        if self.source is not None and self.source.busy:
            self.source.cancel()
        self.exit(return_code=0)

    def action_help_quit(self) -> None:
        """Name the key that ends the program: Ctrl+C does not."""
        if isinstance(self.screen, Frame):
            self.show_message("ctrl+q ends the program")
        else:
            super().action_help_quit()

    def on_input_failed(self, message: InputFailed) -> None:
        if self.crash_log is None:
            raise message.error
        self._give_up(self.crash_log.write(message.error))

    @cached_property
    def crash_log(self) -> CrashLog | None:
        """The log of errors that the screens survive; None in tests and pictures, which raise them."""
        from fwtui.tui.app.crash_log import CrashLog

        return None if self.is_headless else CrashLog()

    def survived(self, error: Exception) -> bool:
        """Log the error, and draw its screen again."""
        failed = failed_widget(error)
        if self.left_by_signal or (isinstance(failed, CommandPalette) and failed not in self.screen_stack):
            return True  # the widgets are being removed
        if self.crash_log is None:
            return False
        what = self.crash_log.write(error)
        if not (self.painted and self.is_running) or self.view is None:
            self._give_up(what)
        else:
            self.call_later(self._draw_again, failed, what, self.crash_log)
        return True

    def _give_up(self, what: str) -> None:
        self.failure = self.failure or f"fwtui: error in the dashboard: {what}"
        self.exit(return_code=WRONG)

    def _draw_again(self, failed: Widget | None, what: str, log: CrashLog) -> None:
        """Create the screen of the failed widget again; after repeated failures, replace it by a message."""
        if failed is not None and not failed.is_attached:  # already replaced
            return
        screen = self.screen if failed is None else failed.screen
        if (found := self.views.found(screen)) is None:
            return
        view, place = found
        self.inputs.clear()
        if not log.hopeless(place.name):
            self.views.renew(view, place)
            self.show_message(f"this screen failed and was drawn again; runs and recordings continue: {what}", "error")
        elif not screen.has_class(FAILED):
            from fwtui.tui.app.crash_log import FailedPlace

            self.views.renew(view, place, lambda: FailedPlace(view, place.name, what))

    def _leave(self, code: int) -> None:
        self.left_by_signal = True
        self.exit(return_code=code)
