"""A replay screen as text or SVG, without a terminal and without a clock."""

from __future__ import annotations

from pathlib import Path

from fwtui.sessions import reader
from fwtui.tui.app import FwtuiApp
from fwtui.tui.look import Look
from fwtui.tui.recording import Recording, named
from fwtui.tui.shot import screen_svg, screen_text


async def picture(path: Path, at: float | None, size: tuple[int, int], plain: bool, place: str, look: Look) -> str:
    """What that place of the session's replay shows at `at` seconds, or at its end."""
    loaded = reader.load(path)
    start = loaded.duration if at is None else at
    app = FwtuiApp(replay=Recording(named(path), loaded, start=start), still=True, place=place, look=look)
    async with app.run_test(size=size) as pilot:
        for _ in range(3):  # mount, lay out, draw what the layout decided
            await pilot.pause()
        return screen_text(app) if plain else screen_svg(app)
