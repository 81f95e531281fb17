"""No part of a screen is empty where there is room: charts, the run, or its matrix take it."""

from __future__ import annotations

from itertools import groupby

import pytest

from fwtui.sessions import reader
from fwtui.sessions.library import resolve
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import screen_text
from fwtui.tui.frame.places import place_names
from fwtui.tui.frame.recording import Recording, named

SIZES = [(60, 16), (80, 24), (120, 40), (160, 50), (240, 67)]
SESSIONS = {
    "h200-n4096-naive-blocked": place_names(),
    "h200-ladder-n4096": ("explain", "sweep"),
    "lecture-own-kernel": ("sweep",),
}
SESSIONS |= {"h200-four-gpus": ("compare", "telemetry"), "h200-reproduce-catinello": ("compare", "telemetry")}
FRAMES = " │┃─━┌┐└┘┬┴├┤▔▁\u00a0"


def emptiest(text: str, width: int, height: int) -> int:
    """Cells of the largest rectangle without a sign, frames left out."""
    rows = [line.ljust(width)[:width] for line in [*text.split("\n"), *[""] * height][:height]]
    depths, most = [0] * width, 0
    for row in rows:
        depths = [depth + 1 if sign in FRAMES else 0 for depth, sign in zip(depths, row, strict=True)]
        for depth in set(depths):
            stretches = (sum(1 for _ in group) for deep, group in groupby(depths, lambda d, least=depth: d >= least) if deep)
            most = max(most, depth * max(stretches))
    return most


def test_the_largest_empty_rectangle() -> None:
    assert emptiest("ab\n│ \nc", 2, 4) == 3 and emptiest("x", 3, 2) == 4 and emptiest("", 3, 2) == 6


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(("session", "place"), [(s, p) for s, places in SESSIONS.items() for p in places])
async def test_no_third_of_a_screen_is_empty(session: str, place: str, size: tuple[int, int]) -> None:
    path = resolve(session)
    loaded = reader.load(path)
    app = FwtuiApp(replay=Recording(named(path), loaded, start=loaded.duration), still=True, place=place)
    async with app.run_test(size=size) as pilot:
        for _ in range(4):
            await pilot.pause()
        text = screen_text(app)
    assert emptiest(text, *size) < size[0] * size[1] / 3, text


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_list_of_sessions_tells_of_the_marked_one_below(size: tuple[int, int]) -> None:
    path = resolve("lecture-tiles")
    app = FwtuiApp(replay=Recording(named(path), reader.load(path)), still=True, place="sessions")
    async with app.run_test(size=size) as pilot:
        for _ in range(200):
            await pilot.pause(0.02)
            if "looking for sessions" not in (text := screen_text(app)) and "h200" in text:
                break
        await pilot.pause()
        text = screen_text(app)
    assert emptiest(text, *size) < size[0] * size[1] / 3, text
