"""The screens of a replay at given moments, drawn without a terminal, here or by another process, which is this module."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.color import blend_rgb
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from textual.pilot import Pilot
from textual.widget import Widget

from fwtui.common import gc_pause
from fwtui.common.child_process import ModuleProcess, request_line
from fwtui.common.cores import usable_cores
from fwtui.common.errors import Refused
from fwtui.common.serve import Parent, serve
from fwtui.learn.questions import QuestionAnswer
from fwtui.sessions import reader
from fwtui.sessions.reader import LoadedSession, load
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.export.film import Ink, Lines, Pool, Row, Span
from fwtui.tui.frame.cue_card import card
from fwtui.tui.frame.footer import KeyFooter, KeyName
from fwtui.tui.frame.frame import Frame as Screen
from fwtui.tui.frame.look import Appearance
from fwtui.tui.frame.recording import Recording, named
from fwtui.tui.frame.saving import screen_svg, screen_text
from fwtui.tui.textual_internals import leave_undrawn, strips

MIN_SHARED = 150  # screens from which on half of them are worth another process, which starts within a second
MAX_SECONDS = 3600.0  # that it may take
DIM = 0.5
QUIET, MAX_LOOKS = 2, 500  # looks without a message that end the wait, and looks at a screen that never rests
MAX_TURNS = 500  # of the event loop in one look


class CaptureMoment(NamedTuple):
    """A screen to be taken: at the marker of that number, or where the recording is then."""

    recorded: float
    played: float
    key: bool = False
    marker: int = 0


class ScreensWanted(msgspec.Struct, frozen=True):
    """Which screens of a session are to be drawn, and how."""

    path: str
    size: tuple[int, int]
    place: str
    look: Appearance
    start: float  # seconds at which a screen is drawn before those of the moments
    moments: tuple[CaptureMoment, ...]


class Screens(msgspec.Struct, frozen=True):
    """What has been drawn: the screens are lists of places in `rows`."""

    dark: bool
    inks: list[Ink]
    rows: list[Row]
    first: Lines  # at the start
    lines: list[Lines]  # at each moment
    answers: dict[int, tuple[QuestionAnswer | str | None, Lines]]  # by marker, each with its screen, if there is one

    def followed(self, later: Screens) -> Screens:
        """These, and those of later moments."""
        pool = Pool({ink: place for place, ink in enumerate(self.inks)}, {row: place for place, row in enumerate(self.rows)})
        inks = [pool.ink(ink) for ink in later.inks]
        rows = [pool.row(tuple(Span(text, inks[ink]) for text, ink in row)) for row in later.rows]
        lines = [*self.lines, *(tuple(rows[line] for line in screen) for screen in later.lines)]
        answers = {
            marker: (question, tuple(rows[line] for line in screen)) for marker, (question, screen) in later.answers.items()
        }
        return Screens(self.dark, [*pool.inks], [*pool.rows], self.first, lines, self.answers | answers)


def drawn_screens(
    loaded: LoadedSession, parts: Sequence[ScreensWanted], tell: Callable[[float], None], least: int = MIN_SHARED
) -> list[Screens]:
    """The screens of these parts; with `least` of them or more, and two cores, another process draws half.

    `tell` is given the share (0..1) that is there. Raises Refused.
    """
    total = sum(len(part.moments) for part in parts)
    if total < least or len(usable_cores()) < 2:
        return [asyncio.run(_screens(loaded, part, tell)) for part in parts]
    (whole, *others), half = parts, total // 2
    here, there = (msgspec.structs.replace(whole, moments=some) for some in (whole.moments[:half], whole.moments[half:]))
    process = ModuleProcess(__name__)
    with ThreadPoolExecutor(1) as reader:  # a pipe holds less than the screens of one part
        try:
            ending = reader.submit(process.finish, MAX_SECONDS, b"".join(map(request_line, (there, *others))))
            first = asyncio.run(_screens(loaded, here, tell))
            ended = ending.result()
        finally:
            process.reap()
    if ended.code != 0:
        raise Refused(f"the process that drew half of the screens has ended: {ended.last_words}")
    later, *screens = (msgspec.json.decode(line, type=Screens) for line in ended.stdout.splitlines())
    return [first.followed(later), *screens]


async def _screens(loaded: LoadedSession, request: ScreensWanted, tell: Callable[[float], None]) -> Screens:
    recording = Recording(named(Path(request.path)), loaded, start=request.start)
    app = FwtuiApp(replay=recording, still=True, place=request.place, look=request.look)
    pool, lines = Pool(), list[Lines]()
    answers: dict[int, tuple[QuestionAnswer | str | None, Lines]] = {}
    async with app.run_test(size=request.size) as pilot:
        await settle(app, pilot)
        leave_undrawn(app.screen)
        focused = app.screen.focused
        first = await _screen(app, pilot, pool, focused)
        view, player = app.view, recording.player
        assert view is not None and view.playback is not None
        for number, moment in enumerate(request.moments, 1):
            if moment.marker:
                player.seek_marker(str(moment.marker))
            else:
                player.seek_time(moment.recorded)
            # what plays says so, up to its end and, in a lecture, up to a marker
            player.playing = not (player.at_end or (moment.marker and player.stops))
            app.tick(0.0)
            if moment.key:  # what people go to is right on the busiest machine
                await settle(app, pilot)
            lines.append(await _screen(app, pilot, pool, focused))
            if moment.marker:
                answers[moment.marker] = await _answer(app, pilot, pool, focused, moment.marker)
            tell(number / len(request.moments))
        return Screens(app.current_theme.dark, [*pool.inks], [*pool.rows], first, lines, answers)


async def _screen(app: FwtuiApp, pilot: Pilot[None], pool: Pool, focused: Widget | None) -> Lines:
    """What is on the screen, once its widgets have taken what they were sent, and what they sent one another because of that."""
    await handled(app, pilot)
    app.screen.set_focus(focused, scroll_visible=False)  # which it lost if it was hidden at some time before
    await handled(app, pilot)
    await _name_keys(app.screen.query_one(KeyFooter))
    await handled(app, pilot)
    return tuple(pool.row(_row(strip, pool)) for strip in strips(app.screen))


async def _name_keys(footer: KeyFooter) -> None:
    """Have the footer show the keys of this moment.

    Textual 8.2 makes it again some time after they have changed (tests/ui/test_film.py,
    test_what_two_processes_draw_is_what_one_does).
    """
    named = asyncio.Event()
    shown = [name.key for name in footer.query(KeyName).exclude(".-command-palette")]
    if sorted(shown) != sorted(key for key, _ in footer.current_keys().values()):
        footer.call_later(footer.recompose)
    footer.call_later(named.set)
    await named.wait()


async def _answer(
    app: FwtuiApp, pilot: Pilot[None], pool: Pool, focused: Widget | None, marker: int
) -> tuple[QuestionAnswer | str | None, Lines]:
    """What its run answers at the marker at the recording's position, and the screen with that; nothing without an answer."""
    view, screen = app.view, app.screen
    assert view is not None and isinstance(screen, Screen)
    view.answered = marker
    shown_card = card(view, str, roomy=False)
    answer, lines = (shown_card.answer if shown_card is not None else None), ()
    if answer is not None:
        screen.update(True)
        await settle(app, pilot)  # the panel that it points at is scrolled to
        lines = await _screen(app, pilot, pool, focused)
    view.answered = None
    screen.update(True)
    return answer, lines


def _row(strip: Iterable[Segment], pool: Pool) -> Row:
    inked = ((pool.ink(_ink(style or Style.null())), text) for text, style, control in strip if text and not control)
    return tuple(Span("".join(text for _, text in same), ink) for ink, same in groupby(inked, key=itemgetter(0)))


@lru_cache(maxsize=4096)
def _ink(style: Style) -> Ink:
    """As in Textual's own pictures."""
    theme = SVG_EXPORT_THEME
    colour = theme.foreground_color if style.color is None else style.color.get_truecolor(theme)
    ground = theme.background_color if style.bgcolor is None else style.bgcolor.get_truecolor(theme, foreground=False)
    if style.reverse:
        colour, ground = ground, colour
    if style.dim:
        colour = blend_rgb(colour, ground, DIM)
    lines = bool(style.underline), bool(style.strike)
    return Ink(colour.hex, ground.hex, bool(style.bold), bool(style.italic), *lines)


@gc_pause.paused()
def _handle(request: ScreensWanted, parent: Parent) -> None:
    loaded = load(request.path, for_screen=True)
    parent.send(asyncio.run(_screens(loaded, request, lambda share: None)))


async def picture(
    path: Path, at: float | None, size: tuple[int, int], plain: bool, place: str, look: Appearance
) -> tuple[str, bool]:
    """What that place of the session's replay shows at `at` seconds, or at its end; and whether the session is complete."""
    loaded = reader.load(path, for_screen=True)
    start = loaded.duration if at is None else at
    app = FwtuiApp(replay=Recording(named(path), loaded, start=start), still=True, place=place, look=look)
    async with app.run_test(size=size) as pilot:
        await settle(app, pilot)
        return screen_text(app) if plain else screen_svg(app), loaded.complete


async def settle(app: FwtuiApp, pilot: Pilot[None]) -> None:
    """Wait until the footer has its keys and no widget has a message left, nor what came of handling the last ones."""
    quiet = 0
    for _ in range(MAX_LOOKS):
        waiting = await handled(app, pilot)
        quiet = 0 if waiting or not app.screen.query_one(KeyFooter).children else quiet + 1
        if quiet == QUIET:
            return


async def handled(app: FwtuiApp, pilot: Pilot[None]) -> bool:
    """Have all messages handled, then the screen laid out. Returns whether there was a message."""
    nodes = (app, *app.screen.walk_children(with_self=True))
    turn = 0
    while turn < MAX_TURNS and any(node.message_queue_size for node in nodes):
        turn += 1
        await asyncio.sleep(0)
    await pilot.wait_for_animation()  # there is none: unlike pause() it does not also send each widget a message
    return turn > 0


if __name__ == "__main__":
    serve(ScreensWanted, _handle)
