"""Keys for an application, and waits until it has handled them."""

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
    """Start the application and press these keys."""
    async with app.run_test(size=size) as pilot:
        await press(pilot, *keys)
        yield pilot


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys and wait until they are handled; reading the screen too would take as long again."""
    app = pilot.app
    assert isinstance(app, FwtuiApp)
    await pilot.press(*keys)
    await until(pilot, lambda: not len(app.inputs))
    await pilot.pause()
    await pilot.pause()


async def keyed(pilot: Pilot[None], *keys: str) -> str:
    """Press keys and return the text of the screen."""
    await press(pilot, *keys)
    assert isinstance(pilot.app, FwtuiApp)
    return screen_text(pilot.app)


async def settled(pilot: Pilot[None], *keys: str) -> str:
    """Press keys and return the text of the screen once it is stable, as widgets of automatic height settle one by one."""
    shown = await keyed(pilot, *keys)
    while (again := await keyed(pilot)) != shown:
        shown = again
    return shown


async def proceed(pilot: Pilot[None], *keys: str) -> None:
    """Press keys, and let the session go on."""
    await press(pilot, *keys)
    assert isinstance(pilot.app, FwtuiApp)
    pilot.app.tick()
    await pilot.pause()
    await pilot.pause()  # the table lays itself out when idle


async def go(pilot: Pilot[None], *keys: str) -> str:
    """Press keys, let the session go on, and read the screen."""
    await proceed(pilot, *keys)
    assert isinstance(pilot.app, FwtuiApp)
    return screen_text(pilot.app)


async def until(pilot: Pilot[None], true: Callable[[], object]) -> None:
    """Wait until a condition holds that another thread brings about; fails after about a minute."""
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
