"""A replay screen as text or SVG, without a terminal and without a clock."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.pilot import Pilot

from fwtui.sessions import reader
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.key_line import KeyLine
from fwtui.tui.frame.look import Appearance
from fwtui.tui.frame.recording import Recording, named
from fwtui.tui.frame.saving import screen_svg, screen_text

QUIET, MOST_LOOKS = 2, 500  # looks without a message that end the wait, and looks at a screen that never rests
MOST_TURNS = 500  # of the event loop in one look


async def picture(path: Path, at: float | None, size: tuple[int, int], plain: bool, place: str, look: Appearance) -> str:
    """What that place of the session's replay shows at `at` seconds, or at its end."""
    loaded = reader.load(path, shown=True)
    start = loaded.duration if at is None else at
    app = FwtuiApp(replay=Recording(named(path), loaded, start=start), still=True, place=place, look=look)
    async with app.run_test(size=size) as pilot:
        await settle(app, pilot)
        return screen_text(app) if plain else screen_svg(app)


async def settle(app: FwtuiApp, pilot: Pilot[None]) -> None:
    """Wait until the footer has its keys and no widget has a message left, nor what came of handling the last ones."""
    quiet = 0
    for _ in range(MOST_LOOKS):
        waiting = await handled(app, pilot)
        quiet = 0 if waiting or not app.screen.query_one(KeyLine).subject else quiet + 1
        if quiet == QUIET:
            return


async def handled(app: FwtuiApp, pilot: Pilot[None]) -> bool:
    """Have all messages handled, then the screen laid out. Returns whether there was a message."""
    nodes = (app, *app.screen.walk_children(with_self=True))
    turn = 0
    while turn < MOST_TURNS and any(node.message_queue_size for node in nodes):
        turn += 1
        await asyncio.sleep(0)
    await pilot.wait_for_animation()  # there is none: unlike pause() it does not also send each widget a message
    return turn > 0
