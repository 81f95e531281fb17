"""Pictures of whole screens: what changes here was meant to change, or it is a mistake.

After a change that was meant: pytest tests/ui/test_snapshots.py --snapshot-update, and look at the pictures, which are packed:
tar xOf tests/ui/__snapshots__/test_snapshots.txz test_a_replay_at_its_end.svg > picture.svg
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import scenes
from fake_live import FakeLive
from textual.pilot import Pilot

from fwtui.sessions import reader
from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.places import place_names
from fwtui.tui.frame.recording import Recording, named

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
        dashboard.tick()
        await pilot.pause()
        await pilot.pause()

    assert snap_compare(dashboard, terminal_size=(60, 16), run_before=story)


SESSION = Path(__file__).parents[1] / "recorded" / "h200-n4096-naive-blocked.fwt.jsonl.gz"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
@pytest.mark.parametrize("place", place_names()[1:])
def test_a_place_of_a_shipped_session(place: str, size: tuple[int, int], snap_compare: Compare) -> None:
    loaded = reader.load(SESSION)
    app = FwtuiApp(replay=Recording(named(SESSION), loaded, start=loaded.duration), still=True, place=place)
    assert snap_compare(app, terminal_size=size)
