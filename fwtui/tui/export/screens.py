"""Capture the screens of a replay at given moments, without a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from rich.color import blend_rgb
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from textual.pilot import Pilot
from textual.widget import Widget

from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.learn.questions import QuestionAnswer
from fwtui.sessions import reader
from fwtui.sessions.reader import LoadedSession
from fwtui.stream.events import Marker
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.export.film import Ink, Lines, Pool, Row, Span
from fwtui.tui.frame.appearance import Appearance
from fwtui.tui.frame.bindings import asks
from fwtui.tui.frame.cue_card import card
from fwtui.tui.frame.footer import KeyFooter, KeyName
from fwtui.tui.frame.frame import Frame as Screen
from fwtui.tui.frame.loaded_recording import Recording, named
from fwtui.tui.frame.saving import screen_svg, screen_text
from fwtui.tui.textual_internals import leave_undrawn, strips

DIM = 0.5  # share of the background in dimmed text
QUIET, MAX_CHECKS = 2, 500  # checks without a message after which a screen is at rest; checks of a screen that never is
MAX_TURNS = 500  # turns of the event loop in one check


class CaptureMoment(NamedTuple):
    """The time of a screen; with `marker`, the screen at the marker of that number."""

    recorded: float
    played: float
    key: bool = False
    marker: int = 0


class ScreensWanted(NamedTuple):
    """The screens of a session to capture."""

    name: str
    size: tuple[int, int]
    place: str
    look: Appearance
    start: float  # time of one more screen, captured before the moments
    moments: tuple[CaptureMoment, ...]


class Screens(NamedTuple):
    """The captured screens; `lines` are indices into `rows`."""

    dark: bool
    inks: list[Ink]
    rows: list[Row]
    first: Lines  # at the start
    lines: list[Lines]  # at each moment
    answers: dict[int, tuple[QuestionAnswer | str | None, Lines]]  # by marker: the answer and its screen


def capture_screens(session: LoadedSession, request: ScreensWanted, report: Callable[[float], None]) -> Screens:
    """Return the screens of the request; `report` gets the completed share (0 to 1) after each."""
    return asyncio.run(_capture(session, request, report))


async def _capture(session: LoadedSession, request: ScreensWanted, report: Callable[[float], None]) -> Screens:
    recording = Recording(request.name, session, start=request.start)
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
                player.seek_marker(moment.marker)
            else:
                player.seek_time(moment.recorded)
            # a playing recording shows that it plays; it stops at its end and, in a lecture, at markers
            player.playing = not (player.at_end or (moment.marker and player.stops))
            app.tick(0.0)
            if moment.key:  # the timeline links to this screen, so it must be complete on a busy machine too
                await settle(app, pilot)
            lines.append(await _screen(app, pilot, pool, focused))
            if moment.marker:
                answers[moment.marker] = await _answer(app, pilot, pool, focused, moment.marker)
            report(number / len(request.moments))
        return Screens(app.current_theme.dark, [*pool.inks], [*pool.rows], first, lines, answers)


async def _screen(app: FwtuiApp, pilot: Pilot[None], pool: Pool, focused: Widget | None) -> Lines:
    """Return the rows of the screen after its widgets have handled all messages."""
    await handled(app, pilot)
    app.screen.set_focus(focused, scroll_visible=False)  # a widget that was hidden has lost the focus
    await handled(app, pilot)
    await _name_keys(app.screen.query_one(KeyFooter))
    await handled(app, pilot)
    return tuple(pool.row(_row(strip, pool)) for strip in strips(app.screen))


async def _name_keys(footer: KeyFooter) -> None:
    """Update the footer to the current keys; Textual 8.2 does so only some time after they have changed."""
    named = asyncio.Event()
    shown = [name.key for name in footer.query(KeyName).exclude(".-command-palette")]
    if sorted(shown) != sorted(key for key, _ in footer.current_keys().values()):
        footer.call_later(footer.recompose)
    footer.call_later(named.set)
    await named.wait()


async def _answer(
    app: FwtuiApp, pilot: Pilot[None], pool: Pool, focused: Widget | None, marker: int
) -> tuple[QuestionAnswer | str | None, Lines]:
    """Return the answer at a marker and the screen that shows it; no rows without an answer."""
    view, screen = app.view, app.screen
    assert view is not None and isinstance(screen, Screen)
    view.answered = marker
    shown_card = card(view, str, roomy=False)
    answer, lines = (shown_card.answer if shown_card is not None else None), ()
    if answer is not None:
        screen.update(True)
        await settle(app, pilot)  # the screen scrolls to the panel of the answer
        lines = await _screen(app, pilot, pool, focused)
    view.answered = None
    screen.update(True)
    return answer, lines


def _row(strip: Iterable[Segment], pool: Pool) -> Row:
    inked = ((pool.ink(_ink(style or Style.null())), text) for text, style, control in strip if text and not control)
    return tuple(Span("".join(text for _, text in same), ink) for ink, same in groupby(inked, key=itemgetter(0)))


@lru_cache(maxsize=4096)
def _ink(style: Style) -> Ink:
    """Return the colours and attributes of a style, as in Textual's screenshots."""
    theme = SVG_EXPORT_THEME
    colour = theme.foreground_color if style.color is None else style.color.get_truecolor(theme)
    ground = theme.background_color if style.bgcolor is None else style.bgcolor.get_truecolor(theme, foreground=False)
    if style.reverse:
        colour, ground = ground, colour
    if style.dim:
        colour = blend_rgb(colour, ground, DIM)
    lines = bool(style.underline), bool(style.strike)
    return Ink(colour.hex, ground.hex, bool(style.bold), bool(style.italic), *lines)


async def picture(
    path: Path,
    at: float | None,
    size: tuple[int, int],
    plain: bool,
    place: str,
    look: Appearance,
    number: int | None = None,
    answered: bool = False,
) -> tuple[str, bool]:
    """Return a screen of the replay at `at` seconds (None: the end) as text or SVG, and whether the session is complete.

    In the presenter's layout a lecture shows the cue card `number` (None: the last one), if `answered` with its answer. Raises
    Refused for a card that does not exist or has no answer, and if both a time and cue cards are requested.
    """
    session = reader.load(path, for_screen=True)
    recording = Recording(named(path), session, start=session.duration if at is None else at)
    cards = recording.player.count(Marker)[1] if recording.marks.directed else 0
    if number is not None and not 1 <= number <= cards:
        range_of = f"pass 1 to {cards}" if cards else "omit --card"
        raise Refused(f"there is no card {number} in this session, which has {units.counted(cards, 'cue card')}; {range_of}")
    if look.presenter and cards and at is not None:
        raise Refused(f"several cue cards may have the time {at:g} s; replace --at by --card 1 to {cards}")
    app = FwtuiApp(replay=recording, still=True, place=place, look=look)
    async with app.run_test(size=size) as pilot:
        await settle(app, pilot)
        if look.presenter and app.view is not None and app.view.playback is not None and isinstance(app.screen, Screen):
            app.view.playback.present(True)
            if number is not None:
                app.view.playback.show_card(number)
            if answered and not asks(app.view, by_run=False):
                raise Refused(f"card {number} has no question with an answer; omit --answer")
            app.view.answered = number if answered else None
            app.screen.update(True)
            await settle(app, pilot)
        return screen_text(app) if plain else screen_svg(app), session.complete


async def settle(app: FwtuiApp, pilot: Pilot[None]) -> None:
    """Wait until the footer has its keys and all messages, and the messages that these caused, are handled."""
    quiet = 0
    for _ in range(MAX_CHECKS):
        waiting = await handled(app, pilot)
        quiet = 0 if waiting or not app.screen.query_one(KeyFooter).children else quiet + 1
        if quiet == QUIET:
            return


async def handled(app: FwtuiApp, pilot: Pilot[None]) -> bool:
    """Handle all messages, then lay out the screen; return whether there was a message."""
    nodes = (app, *app.screen.walk_children(with_self=True))
    turn = 0
    while turn < MAX_TURNS and any(node.message_queue_size for node in nodes):
        turn += 1
        await asyncio.sleep(0)
    await pilot.wait_for_animation()  # unlike pause(), this sends no messages to widgets
    return turn > 0
