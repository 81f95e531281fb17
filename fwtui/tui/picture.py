"""A replay screen as text or SVG, without a terminal and without a clock."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from fwtui.sessions import reader
from fwtui.tui.app import FwtuiApp
from fwtui.tui.recording import Recording, named

# fonts from somebody's server: a picture that is looked at should not ask for anything
_FONTS = re.compile(r"@font-face\s*\{[^}]*\}\s*")


async def picture(path: Path, at: float | None, size: tuple[int, int], plain: bool, place: str) -> str:
    """What that place of the session's replay shows at `at` seconds, or at its end."""
    loaded = reader.load(path)
    start = loaded.duration if at is None else at
    app = FwtuiApp(replay=Recording(named(path), loaded, start=start), still=True, place=place)
    async with app.run_test(size=size) as pilot:
        for _ in range(3):  # mount, lay out, draw what the layout decided
            await pilot.pause()
        return screen_text(app) if plain else _FONTS.sub("", app.export_screenshot(title="fwtui"))


def screen_text(app: FwtuiApp) -> str:
    """The screen as lines of plain text."""
    width, height = app.size
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=True, record=True, legacy_windows=False)
    console.print(app.screen._compositor.render_update(full=True))
    return "\n".join(line.rstrip() for line in console.export_text(styles=False).split("\n")).rstrip("\n") + "\n"
