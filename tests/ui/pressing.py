"""Keys, and waiting for what they do."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from textual.command import CommandPalette
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import OptionList

from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.export.screens import screen_text

WIDE, NARROW = (120, 40), (80, 24)
SIZES = [pytest.param(NARROW, marks=pytest.mark.slow), WIDE]  # the narrow layout of every place is in test_snapshots.py


@asynccontextmanager
async def opened(app: FwtuiApp, *keys: str, size: tuple[int, int] = WIDE) -> AsyncIterator[Pilot[None]]:
    """The application at work, after these keys."""
    async with app.run_test(size=size) as pilot:
        await press(pilot, *keys)
        yield pilot


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Keys, and waiting for what they do; to read the screen as well takes as long again."""
    app = pilot.app
    assert isinstance(app, FwtuiApp)
    await pilot.press(*keys)
    await until(pilot, lambda: not len(app.inputs))
    await pilot.pause()
    await pilot.pause()


async def keyed(pilot: Pilot[None], *keys: str) -> str:
    """What the screen says after these keys."""
    await press(pilot, *keys)
    assert isinstance(pilot.app, FwtuiApp)
    return screen_text(pilot.app)


async def settled(pilot: Pilot[None], *keys: str) -> str:
    """What the screen says once it says the same twice: parts that are as high as their text are laid out one after the other."""
    shown = await keyed(pilot, *keys)
    while (again := await keyed(pilot)) != shown:
        shown = again
    return shown


async def proceed(pilot: Pilot[None], *keys: str) -> None:
    """Press keys, and let the session go on."""
    app = pilot.app
    assert isinstance(app, FwtuiApp)
    await pilot.press(*keys)
    await until(pilot, lambda: not len(app.inputs))
    await pilot.pause()
    app.tick()
    await pilot.pause()
    await pilot.pause()  # the table lays itself out when idle


async def go(pilot: Pilot[None], *keys: str) -> str:
    """Press keys, let the session go on, and read the screen."""
    await proceed(pilot, *keys)
    assert isinstance(pilot.app, FwtuiApp)
    return screen_text(pilot.app)


async def until(pilot: Pilot[None], true: Callable[[], object]) -> None:
    """Wait for what another thread does; the test's own time limit ends what never happens."""
    for _ in range(6000):
        if true():
            return
        await pilot.pause(0.01)
    raise AssertionError("it did not happen")


async def offered(pilot: Pilot[None]) -> list[str]:
    """Return the words of the commands that the open palette shows, once it has searched."""
    palette = pilot.app.screen
    assert isinstance(palette, CommandPalette)
    await until(pilot, lambda: palette.has_class("-ready") and all(worker.is_finished for worker in palette.workers))
    prompts = [option.prompt for option in palette.query_one(OptionList).options]
    return [prompt.plain.split("\n")[0] for prompt in prompts if isinstance(prompt, Content)]
