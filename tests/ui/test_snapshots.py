"""Pictures of whole screens: what changes here was meant to change, or it is a mistake.

After a change that was meant: pytest tests/ui/test_snapshots.py --snapshot-update, and look at the pictures, which are packed:
tar xOf tests/ui/__snapshots__/test_snapshots.txz test_a_replay_at_its_end.svg > picture.svg
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import scenes
from apps import replay_at_end
from fake_live import FakeLive
from pressing import SIZES, proceed
from test_matrix import slow_run
from textual.pilot import Pilot

from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.look import Appearance
from fwtui.tui.frame.places import place_names

Compare = Callable[..., bool]


def test_a_replay_at_its_end(replay_of: Callable[..., FwtuiApp], snap_compare: Compare) -> None:
    assert snap_compare(replay_of(scenes.gpu_session()), terminal_size=(120, 40))


def test_a_replay_in_the_middle_of_a_run_on_a_small_screen(replay_of: Callable[..., FwtuiApp], snap_compare: Compare) -> None:
    assert snap_compare(replay_of(scenes.gpu_session(), start=6.5), terminal_size=(80, 24))


@pytest.mark.parametrize("gpus", [2, 8])
def test_telemetry_of_several_gpus(replay_of: Callable[..., FwtuiApp], snap_compare: Compare, gpus: int) -> None:
    app = replay_of(scenes.several_gpus(gpus, idler=3))
    assert snap_compare(app, terminal_size=(80, 24), press=["5"])


def test_a_fault_on_the_smallest_screen(dashboard: FwtuiApp, live: FakeLive, snap_compare: Compare) -> None:
    async def story(pilot: Pilot[None]) -> None:
        await pilot.press("r")
        dashboard.tick()
        live.tell(events.Fault(t=live.now, source="sampler", code="died", message="the telemetry process died; telemetry stops"))
        await proceed(pilot)

    assert snap_compare(dashboard, terminal_size=(60, 16), run_before=story)


SESSION = Path(__file__).parents[1] / "recorded" / "h200-n4096-naive-blocked.fwt.jsonl.gz"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
@pytest.mark.parametrize("place", place_names()[1:])
def test_a_place_of_a_shipped_session(place: str, size: tuple[int, int], snap_compare: Compare) -> None:
    app = replay_at_end(SESSION, place)
    assert snap_compare(app, terminal_size=size)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_presenter(size: tuple[int, int], replay_of: Callable[..., FwtuiApp], snap_compare: Compare) -> None:
    app = replay_of(scenes.gpu_session())
    app.look = Appearance(presenter=True)
    assert snap_compare(app, terminal_size=size)


def test_plain_characters(replay_of: Callable[..., FwtuiApp], snap_compare: Compare) -> None:
    app = replay_of(scenes.gpu_session(), start=6.5)
    app.plain = True
    assert snap_compare(app, terminal_size=(120, 40))


def test_a_round_of_a_slow_run(replay_of: Callable[..., FwtuiApp], snap_compare: Compare) -> None:
    assert snap_compare(replay_of(slow_run(), start=5.5), terminal_size=(120, 40))
