"""The Watch screen with a scripted loop, and the picture of wrong cells."""

from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Event

import numpy as np
import pytest
from apps import Compare, screen_of
from fake_live import FakeLive
from msgspec.structs import replace
from pressing import keyed, opened, press, until
from textual.pilot import Pilot

from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment
from fwtui.live import watch_loop
from fwtui.live.watch_events import Activity, CheckEnd, CheckStart, Report, Superseded, WatchUpdate
from fwtui.live.watch_loop import WatchRequest
from fwtui.machine import trust
from fwtui.stream.kernel_tests import Finding, Where
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.export.screens import screen_text
from fwtui.tui.run.live_screen import RunScreen
from fwtui.tui.watch.screen import OUTLINE, RIGHT, WRONG, WatchScreen, editor_arguments, wrong_pixels
from fwtui_kernels.plan import Rect

PATH = Path("/course/hw/mine.py")
CELLS = np.zeros((12, 12), dtype=bool)
CELLS[8:11, 4:7] = CELLS[2, 1] = True
WHERE = Where(
    row=2, column=1, count=10, got="27", wanted="20", n=12, mask=np.packbits(CELLS).tobytes(), block=Rect(8, 4, 12, 8)
)  # fmt: skip
BROKEN = (
    "n = 12, two tiles and a bit: wrong at row 2, column 1: 27, expected 20 (10 wrong cells); it began in remainder of round 1"
)
GOOD = [
    Report("compiled", "sm_90: rest: 32 registers, 12.0 KiB of shared memory, no spills, 64 of 64 warps"),
    Report(
        "plan",
        "the plan does every relaxation once, and its launches do not race (threads within one: not checked here)",
        right=True,
    ),
    *(
        Report("case", f"n = {n}: [bold]right", Finding(case="", outcome="right", sentence="", n=n), right=True)
        for n in (1, 3, 4, 5)
    ),
]
BAD = [*GOOD, Report("case", BROKEN, Finding(case="n = 12", outcome="wrong", sentence=BROKEN, n=12, where=WHERE), right=False)]
TIMED = [
    Report("verdict", "right in all 4 cases, up to n = 5", right=True),
    Report("time", "n = 512: 1.20 ms, 112 Grelax/s; 1.25x speedup over save 2", seconds=0.0012),
    Report("line", "mine.py:9 waits for device memory: 43 % of samples, [d] = via"),
    Report("reason", "It is bottleneck memory."),
]


class FakeSitting:
    """Watch loop that yields the updates of its queue."""

    def __init__(self, *told: WatchUpdate):
        self.request = WatchRequest(PATH, "mine", DeviceId("simulator"), (9, 0))
        self.says: SimpleQueue[WatchUpdate | None] = SimpleQueue()
        self.ended: Event | None = None
        self.closed = False
        for one in told:
            self.says.put(one)

    def run(self, ended: Event) -> Iterator[WatchUpdate]:
        self.ended = ended
        yield from iter(self.says.get, None)

    def close(self) -> None:
        self.closed = True


async def test_a_file_is_watched(dashboard: FwtuiApp, live: FakeLive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def plan(:\n")  # what is broken is watched, too
    trust.trust(tmp_path / "mine.py")
    sitting = FakeSitting(CheckStart(1), *GOOD, Activity("case 5 of 15: n = 11"))
    wanted: list[WatchRequest] = []

    def made(asked: WatchRequest, times: object) -> FakeSitting:
        wanted.append(asked)
        return sitting

    monkeypatch.setattr(watch_loop, "WatchLoop", made)
    async with opened(dashboard, "escape", "W", size=(80, 24)) as pilot:
        await until(pilot, lambda: bool(dashboard.screen.query("PickFile OptionList")))
        await press(pilot, "enter")
        await until(
            pilot,
            lambda: isinstance(dashboard.screen, WatchScreen) and "CHECKING  case 5 of 15: n = 11" in screen_text(dashboard),
        )
        assert wanted[0].path == tmp_path / "mine.py" and "[bold]right" in screen_text(dashboard)
        sitting.says.put(Superseded())
        await until(pilot, lambda: "these results are of the save before" in screen_text(dashboard))
        for told in (CheckStart(2), *BAD, *BAD[-1:] * 3, Report("verdict", BROKEN, right=False), CheckEnd(BROKEN, False, True)):
            sitting.says.put(told)
        await until(pilot, lambda: "NOT RIGHT  n = 12" in screen_text(dashboard))
        shown = await keyed(pilot)
        assert "rows 8-11, columns" in shown and "■ wrong, of n = 12" in shown and "save 2" in shown
        assert (
            "✗ 4 of 8 cases are wrong, also" in shown and shown.count("     n = 12") == 3 and shown.count("it began in") == 1
        ), "each once"
        right = (CheckEnd("", True, True, seconds) for seconds in (0.004, 0.0012))
        for told in (CheckStart(3), next(right), CheckStart(4), *GOOD, *TIMED, next(right)):
            sitting.says.put(told)
        await until(pilot, lambda: "RIGHT  right in all 4 cases" in screen_text(dashboard))
        shown = await keyed(pilot)
        assert "■ wrong" not in shown and "It is bottleneck memory." in shown
        assert "save 4   █▃  1.20 ms, best 1.20 ms" in shown, "save 2 was not right"
        assert shown.count("mine.py:9 waits for device") == 2 and "[d] = via" in shown, "below the verdict, and in its order"
        monkeypatch.setenv("VISUAL", "'")
        assert "did not start" in await keyed(pilot, "e")
        await press(pilot, "W")
        assert not isinstance(dashboard.screen, WatchScreen) and sitting.ended is not None and sitting.ended.is_set()
        sitting.says.put(None)
        await until(pilot, lambda: sitting.closed)
        await press(pilot, "r")
        assert live.started, "the dashboard goes on"
        screen_of(dashboard, RunScreen).draft.set("device", "moon")
        await press(pilot, "W", "enter")
        await until(pilot, lambda: "device 'moon' is neither auto" in screen_text(dashboard))


async def test_the_last_course_step_leads_by_prompts(live: FakeLive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def plan(shape, stepwise): ...\n")
    trust.trust(tmp_path / "mine.py")
    sitting = FakeSitting(CheckStart(1), *BAD, Report("verdict", BROKEN, right=False))
    monkeypatch.setattr(watch_loop, "WatchLoop", lambda asked, times: sitting)
    app = FwtuiApp(live, Experiment(kernel="tiled-cpu", n=512), still=True, place="learn", lesson="write-your-own")
    async with app.run_test(size=(60, 16)) as pilot:
        await until(pilot, lambda: "Write your own" in screen_text(app))
        await press(pilot, "r")
        await until(pilot, lambda: bool(app.screen.query("PickFile OptionList")))
        await press(pilot, "enter")
        await until(pilot, lambda: "NOT RIGHT" in screen_text(app))
        shown = await keyed(pilot)
        assert "prompt 1 of 5: Save the file" in shown and "■ wrong, of n = 12" in shown
        for told in (CheckStart(2), *GOOD, *TIMED, CheckEnd("", True, True)):
            sitting.says.put(told)
        await until(pilot, lambda: "prompt 2 of 5: Let one block of threads update one tile" in screen_text(app))
        assert "RIGHT  right in all 4 cases" in await keyed(pilot)
        await press(pilot, "W")
        sitting.says.put(None)
        await until(pilot, lambda: sitting.closed)
        assert "Write your own" in screen_text(app) and not live.started, "the course goes on where it was"


def test_every_wrong_cell_is_seen_and_the_outline_is_around_the_block() -> None:
    def drawn(where: Where, width: int, height: int) -> list[str]:
        signs = {RIGHT: ".", OUTLINE: "+", WRONG: "#"}
        return ["".join(signs[part] for part in row) for row in wrong_pixels(where, width, height)]

    block = ("....++++++....", *["....+###.+...."] * 3, "....+....+....", "....++++++....")
    assert drawn(WHERE, 14, 14) == [*["." * 14] * 3, "..#...........", *["." * 14] * 4, *block]
    whole = replace(WHERE, block=Rect(0, 0, 12, 12))
    assert drawn(whole, 6, 6) == ["++++++", "+#...+", "+....+", "+.##.+", "+.##.+", "++++++"]
    one = np.zeros((400, 400), dtype=bool)
    one[399, 0] = True
    lonely = replace(WHERE, n=400, mask=np.packbits(one).tobytes(), block=None)
    assert drawn(lonely, 8, 4) == ["........", "........", ".#......", "........"]


@pytest.mark.parametrize("size", [(120, 40), (60, 16)], ids=["120x40", "60x16"])
def test_a_kernel_that_is_wrong(size: tuple[int, int], dashboard: FwtuiApp, snap_compare: Compare) -> None:
    told = (CheckStart(5), *BAD, Report("verdict", BROKEN, right=False), CheckEnd(BROKEN, False, True))
    sitting = FakeSitting(*told)

    async def story(pilot: Pilot[None]) -> None:
        dashboard.push_screen(WatchScreen(sitting))  # type: ignore[arg-type]
        await until(pilot, lambda: isinstance(dashboard.screen, WatchScreen) and "NOT RIGHT" in screen_text(dashboard))
        await press(pilot)
        sitting.says.put(None)

    assert snap_compare(dashboard, terminal_size=size, run_before=story)


def test_the_editor_opens_the_line_that_the_verdict_names() -> None:
    verdict = "n = 3: k_mine.py:7 reads what mine.py:40 of another thread writes"
    assert editor_arguments("vim -u NONE", Path("a/mine.py"), verdict) == ["vim", "-u", "NONE", "+40", "a/mine.py"]
    assert editor_arguments("code -w", Path("a/mine.py"), verdict) == ["code", "-w", "a/mine.py"]
    assert editor_arguments("vi", Path("a/mine.py"), "n = 3: wrong at row 2") == ["vi", "a/mine.py"]
