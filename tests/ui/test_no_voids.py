"""No part of a screen is empty where there is room: charts, the run, or its matrix take it."""

from __future__ import annotations

from itertools import groupby

import pytest
from apps import replay_at_end
from pressing import opened, settled, until

from fwtui.sessions.library import resolve
from fwtui.tui.app.picture import screen_text
from fwtui.tui.frame.places import place_names

SIZES = ((60, 16), (120, 40), (240, 67))
BETWEEN = ((80, 24), (160, 50))
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


@pytest.mark.parametrize("sizes", [SIZES, pytest.param(BETWEEN, marks=pytest.mark.slow)], ids=len)
@pytest.mark.parametrize("session", SESSIONS)
async def test_no_third_of_a_screen_is_empty(session: str, sizes: tuple[tuple[int, int], ...]) -> None:
    app = replay_at_end(resolve(session))
    async with opened(app) as pilot:
        for place in SESSIONS[session]:
            app.action_place(place)
            for size in sizes:
                await pilot.resize_terminal(*size)
                text = await settled(pilot)
                assert emptiest(text, *size) < size[0] * size[1] / 3, (place, size, text)


async def test_the_list_of_sessions_tells_of_the_marked_one_below() -> None:
    app = replay_at_end(resolve("lecture-tiles"), "sessions")
    async with opened(app) as pilot:
        await until(pilot, lambda: "looking for sessions" not in (text := screen_text(app)) and "h200" in text)
        for size in (*SIZES, *BETWEEN):
            await pilot.resize_terminal(*size)
            text = await settled(pilot)
            assert emptiest(text, *size) < size[0] * size[1] / 3, (size, text)
