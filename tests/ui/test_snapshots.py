"""Pictures of whole screens: an unintended change is a mistake.

After a change that was meant: pytest tests/ui/test_snapshots.py --snapshot-update, and look at the pictures, which are packed:
tar xOf tests/ui/__snapshots__/test_snapshots.txz test_a_replay_at_its_end.svg > picture.svg
"""

from pathlib import Path

import pytest
import scenes
from apps import Compare, Replay, replay_at_end
from fake_live import FakeLive
from packed_picture import PackedPicture, pack, pictures
from pressing import proceed
from recorded_sessions import SESSION
from test_ranks_screen import slow_run
from textual.pilot import Pilot

from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.appearance import Appearance
from fwtui.tui.frame.places import place_names


def test_a_replay_at_its_end(replay_of: Replay, snap_compare: Compare) -> None:
    assert snap_compare(replay_of(scenes.gpu_session()), terminal_size=(120, 40))


def test_a_replay_in_the_middle_of_a_run_on_a_small_screen(replay_of: Replay, snap_compare: Compare) -> None:
    assert snap_compare(replay_of(scenes.gpu_session(), start=6.5), terminal_size=(80, 24))


@pytest.mark.parametrize("gpus", [pytest.param(2, marks=pytest.mark.slow), 8])
def test_telemetry_of_several_gpus(replay_of: Replay, snap_compare: Compare, gpus: int) -> None:
    app = replay_of(scenes.several_gpus(gpus, idler=3))
    assert snap_compare(app, terminal_size=(80, 24), press=["5"])


def test_a_fault_on_the_smallest_screen(dashboard: FwtuiApp, live: FakeLive, snap_compare: Compare) -> None:
    async def story(pilot: Pilot[None]) -> None:
        await pilot.press("r")
        dashboard.tick()
        live.emit(events.Fault(t=live.now, source="sampler", code="died", message="the telemetry process died; telemetry stops"))
        await proceed(pilot)

    assert snap_compare(dashboard, terminal_size=(60, 16), run_before=story)


@pytest.mark.parametrize(
    "size",
    [(80, 24), *(pytest.param(s, marks=pytest.mark.slow) for s in ((120, 40), (200, 60)))],
    ids=lambda size: f"{size[0]}x{size[1]}",
)
@pytest.mark.parametrize("place", place_names()[1:])
def test_a_place_of_a_shipped_session(place: str, size: tuple[int, int], snap_compare: Compare) -> None:
    app = replay_at_end(SESSION, place)
    assert snap_compare(app, terminal_size=size)


@pytest.mark.parametrize(
    "size",
    [(120, 40), *(pytest.param(s, marks=pytest.mark.slow) for s in ((80, 24), (200, 60)))],
    ids=lambda size: f"{size[0]}x{size[1]}",
)
def test_the_presenter(replay_of: Replay, snap_compare: Compare, size: tuple[int, int]) -> None:
    app = replay_of(scenes.gpu_session())
    app.look = Appearance(presenter=True)
    assert snap_compare(app, terminal_size=size)


def test_a_round_of_a_slow_run(replay_of: Replay, snap_compare: Compare) -> None:
    assert snap_compare(replay_of(slow_run(), start=5.5), terminal_size=(120, 40))


def test_pictures_come_back_as_they_were_and_are_the_same_file_every_time(tmp_path: Path) -> None:
    shown = {"test_a[80x24]": '<svg id="terminal-title">∞ ≤ µs</svg>\n', "test_b": "<svg></svg>"}
    places = [str(tmp_path / name) for name in ("a.txz", "b.txz")]
    for place, order in zip(places, (1, -1), strict=True):
        pack(place, dict([*shown.items()][::order]))
    assert Path(places[0]).read_bytes() == Path(places[1]).read_bytes() and pictures(places[0]) == shown
    kept = PackedPicture()
    kept.delete_snapshots(snapshot_location=places[0], snapshot_names={"test_b"})
    assert pictures(places[0]).keys() == {"test_a[80x24]"}
    kept.delete_snapshots(snapshot_location=places[0], snapshot_names={"test_a[80x24]"})
    assert not Path(places[0]).exists() and pictures(places[0]) == {}
