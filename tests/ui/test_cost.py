"""Cost of the dashboard: nothing is painted, woken or retained without need."""

import asyncio
import gc
import os
import selectors
import tty
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Self

import pytest
import scenes
from builders import write_session
from fake_live import FakeLive
from pressing import opened, press, proceed, until
from textual.app import App, ComposeResult
from textual.content import Content
from textual.events import Key
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from fwtui.experiment.experiment import Experiment
from fwtui.tui.app import refresh_rate
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.terminal_input import TerminalDriver
from fwtui.tui.frame.footer import KeyName
from fwtui.tui.frame.view import View
from fwtui.tui.widgets.text_panel import TextPanel, line


@pytest.fixture
def older_objects_are_exempt() -> None:
    """Exempt what other tests have left from collections, which would take a second each."""
    gc.freeze()


class Painted(TextPanel[tuple[str, str, int]]):
    """Panel with words, a style and a hidden value that counts its paintings."""

    painted = 0

    def draw(self, subject: tuple[str, str, int], width: int) -> list[Content]:
        return [line((subject[0], subject[1]))]

    def render(self) -> Content:
        self.painted += 1
        return super().render()


async def test_unchanged_content_is_not_repainted(every_frame: None) -> None:
    class Bare(App[None]):
        def compose(self) -> ComposeResult:
            yield Painted(("a", "bold", 1))

    app = Bare()
    async with app.run_test() as pilot:
        drawn = app.query_one(Painted)
        counts: list[int] = []
        for subject in (("a", "bold", 1), ("a", "bold", 2), ("a", "dim", 2), ("b", "dim", 2)):
            drawn.show(subject)
            await pilot.pause()
            await pilot.pause(0.05)
            counts.append(drawn.painted)
        assert counts[0] == counts[1] < counts[2] < counts[3] and drawn.subject == ("b", "dim", 2)


class Letters(TextPanel[int]):
    """Panel with a wrapped row of that many letters."""

    def draw(self, subject: int, width: int) -> Sequence[Content]:
        return line("a" * subject).wrap(width)


def test_a_layout_made_for_another_width_is_repeated() -> None:
    asked: list[bool] = []

    class Watched(Letters):
        def refresh(self, *regions: Any, layout: bool = False, **named: Any) -> Self:
            asked.append(layout)
            return self

    drawn = Watched(60)
    asked.clear()
    assert drawn.get_content_height(Size(20, 9), Size(20, 9), 20) == 3, "the layout made room for that"
    drawn.show(59)
    drawn.show(40)
    assert asked == [False, True], "both have one line at the width from before"
    drawn.display = False
    asked.clear()
    drawn.show(5)
    assert asked == [], "what is hidden is laid out when it is shown"
    assert drawn.get_content_height(Size(2, 9), Size(2, 9), 2) == 3


async def test_an_idle_dashboard_ticks_slowly_and_a_run_speeds_it_up_at_once(live: FakeLive) -> None:
    paces = list[float]()

    class Watched(FwtuiApp):
        def set_interval(self, interval: float, *given: Any, **named: Any) -> Timer:
            paces.append(interval)
            return super().set_interval(interval, *given, **named)

    async with opened(Watched(live, Experiment(kernel="tiled-cpu", n=512)), "escape") as pilot:
        await until(pilot, lambda: paces)
        await proceed(pilot)
        assert paces[-1] == 1.0
        live.pace = 1
        await press(pilot, "r")
        assert paces[-1] == 0.1, "no tick has come since"


@contextmanager
def read_terminal(driver: TerminalDriver) -> Iterator[int]:
    """Yield a descriptor whose input the driver reads; at the end the reader thread must stop."""
    master, driver.fileno = os.openpty()
    tty.setraw(driver.fileno)
    reader = Thread(target=driver.run_input_thread, daemon=True)
    reader.start()
    yield master
    driver.exit_event.set()
    reader.join(60.0)
    os.close(master)
    os.close(driver.fileno)
    assert not reader.is_alive()


async def test_an_escape_just_before_the_program_is_stopped_is_not_lost() -> None:
    told: list[Message] = []

    class Watched(TerminalDriver):
        def process_message(self, message: Message) -> None:
            told.append(message)

    driver = Watched(App[None]())
    with read_terminal(driver) as typed:
        os.write(typed, b"a\x1b")
        while not told:
            await asyncio.sleep(0.001)
    assert [message.key for message in told if isinstance(message, Key)] == ["a", "escape"]


async def test_the_input_thread_sleeps_without_input_and_notices_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float | None] = []

    class Selector(selectors.SelectSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            looks.append(timeout)
            return super().select(timeout)

    monkeypatch.setattr(selectors, "SelectSelector", Selector)
    with read_terminal(TerminalDriver(App[None]())):
        while not looks:
            await asyncio.sleep(0.01)
    assert looks == [None]


@pytest.mark.usefixtures("older_objects_are_exempt")
async def test_reference_cycles_are_collected_at_intervals(dashboard: FwtuiApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh_rate, "COLLECT_FROM", 4)

    def tick_after(partial: int) -> bool:
        """Return True if a reference cycle is freed after that many partial collections and a tick."""
        cycle: Any = type("Cycle", (), {})()
        cycle.itself, there = cycle, weakref.ref(cycle)
        for _ in range(partial):
            gc.collect(1)
        del cycle
        dashboard.tick()
        return there() is None

    async with dashboard.run_test():
        dashboard.pace.collect_from = 0.0
        assert tick_after(5)
        assert not tick_after(5), "it was looked for a moment ago"
        dashboard.pace.collect_from = 0.0
        assert tick_after(5)
        dashboard.pace.collect_from = 0.0
        assert not tick_after(1)


@pytest.mark.usefixtures("every_frame", "older_objects_are_exempt")
async def test_closed_replays_and_dialogs_are_freed(tmp_path: Path) -> None:
    path = write_session(tmp_path / "s.fwt.jsonl", scenes.gpu_session())
    app, shown, strips = FwtuiApp(replay=path, still=True), list[weakref.ref[View]](), list[int]()
    async with app.run_test(size=(120, 40)) as pilot:
        for number in range(3):
            if number:
                app.open(path)
            await until(pilot, lambda at=number: app.view is not None and app.view.number == at)
            assert app.view is not None
            app.action_place("explain")
            await pilot.pause()
            await pilot.press("question_mark", "escape")
            shown.append(weakref.ref(app.view))
            gc.collect()
            strips.append(sum(type(one) is Strip for one in gc.get_objects()))
    assert [view() is None for view in shown[:2]] == [True] * 2
    assert strips[2] < 1.2 * strips[1], "Textual holds the lines of widgets that are gone"


@pytest.mark.usefixtures("older_objects_are_exempt")
async def test_removed_key_labels_are_freed(dashboard: FwtuiApp) -> None:
    async with opened(dashboard, "escape") as pilot:
        counts = list[int]()
        for _ in range(3):
            for _ in range(2):
                await press(pilot, "tab", "escape")
            gc.collect()
            counts.append(sum(type(one) is KeyName for one in gc.get_objects()))
        assert counts[2] <= counts[1] + 10
