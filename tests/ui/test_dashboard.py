"""The dashboard, driven by keys, with a scripted live session; and the paused view."""

from pathlib import Path
from typing import Any

import scenes
from apps import screen_of
from builders import run_started
from fake_live import FakeLive
from pressing import NARROW, WIDE, go, opened, press, proceed
from textual.widgets import Button, Input, Select

from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment
from fwtui.sessions import reader
from fwtui.sessions.autosave import Keeper
from fwtui.sessions.recorder import Recorder
from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.export.screens import screen_text
from fwtui.tui.frame.dialogs import PromptScreen
from fwtui.tui.frame.view import View
from fwtui.tui.run.live_screen import RunScreen
from fwtui.tui.textual_internals import strips
from fwtui.tui.widgets.large import Large
from fwtui.tui.widgets.run_table import HistoryTable


async def test_a_newcomer_presses_r_and_sees_a_verified_result(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        assert "r         run the experiment: Tiled CPU" in screen_text(dashboard)
        offered = {active.binding.action for active in dashboard.screen.active_bindings.values()}
        assert {"run", "record", "help", "leave"} <= offered
        assert offered.isdisjoint({"cancel", "baseline", "mark", "again", "back"})
        shown = await go(pilot, "r")
        assert live.started[0].kernel == "tiled-cpu"
        assert "✓ verified · 16 rows" in shown and "checksum" not in shown
        assert "± 0.3 %, 12 repetitions" in shown and "relaxations/s" in shown
        assert all(phase.title in shown for phase in scenes.PHASES)
        assert "90.0 %" in shown and "18.4 ms" in shown
        assert "1.26 GB/s" in shown and "not available         % of peak" in shown
        assert "fwtui_kernels/compiled/cpu_tiles.py" in shown and "■ written" not in shown, "its picture would be of one colour"
        assert "no GPU · CPU kernels" in shown
        dashboard.screen.query_one("#field-kernel", Select).focus()
        await proceed(pilot, "enter", "pagedown", "enter")
        assert screen_of(dashboard, RunScreen).draft.kernel.id != "tiled-cpu", "page keys move in an open list of choices"


async def test_progress_is_shown_and_c_cancels(dashboard: FwtuiApp, live: FakeLive) -> None:
    live.pace = 20  # stops in the middle of the timed repetitions
    async with opened(dashboard, "escape") as pilot:
        assert live.cancelled == 0, "nothing is running"
        shown = await go(pilot, "r")
        assert "timed repetitions" in shown and "left" in shown and "timed" in shown
        assert "not verified yet" in shown
        assert dashboard.screen.query_one("#run", Button).disabled
        shown = await go(pilot, "c")
        assert live.cancelled == 1
        assert "- cancelled" in shown
        assert not dashboard.screen.query_one("#run", Button).disabled
        await proceed(pilot, "r")
        await proceed(pilot, "escape")
        assert live.cancelled == 2, "as c does"


async def test_runs_are_newest_first_chosen_compared_and_repeated(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        await proceed(pilot, "r")
        table, screen = dashboard.screen.query_one(HistoryTable), screen_of(dashboard, RunScreen)
        written: list[str] = []
        update = table.update_cell

        def counting(row: str, column: str, *rest: Any, **named: Any) -> None:
            written.append(f"{row}:{column}")
            update(row, column, *rest, **named)

        table.update_cell = counting  # type: ignore[method-assign, assignment]
        await proceed(pilot)
        assert written == []
        shown = await go(pilot, "r")
        assert "Unclear: Tiled CPU, measured 2.00x speedup over run 1" in shown and "the same experiment" in shown
        written.clear()
        await proceed(pilot, "b")
        assert written == ["2:gained", "1:gained"], "only cells that have changed"
        screen.choose("serial")
        await proceed(pilot, "r")
        assert [str(table.get_row_at(row)[0]) for row in range(3)] == ["3", "2", "1"]
        table.focus()
        shown = await go(pilot, "down", "down", "enter")
        assert "RUN 1  " in shown and "20.0 ms" in shown
        assert "RUN 3  " in await go(pilot, "escape")
        assert "RUN 2  " in await go(pilot, "up", "enter")
        assert "RUN 4  " in await go(pilot, "a"), "a new run is shown even if an older one was"
        assert [e.kernel for e in live.started] == ["tiled-cpu", "tiled-cpu", "serial", "tiled-cpu"]
        assert screen.draft.kernel.id == "tiled-cpu"
        screen.query_one("#field-n", Input).value = "256"
        await proceed(pilot, "r")
        assert "x" not in str(table.get_row("5")[8]), "a ratio is of runs of one size"
        screen.query_one("#field-n", Input).value = "/somewhere/roads.gr"
        await proceed(pilot, "r")
        table.focus()
        table.move_cursor(row=0)
        await proceed(pilot, "enter")
        await proceed(pilot, "a")
        assert live.model.runs[6].experiment.file == "roads.gr"
        assert [e.file for e in live.started[5:]] == ["/somewhere/roads.gr"] * 2, "its folder is kept"


async def test_the_table_of_runs_is_sorted_and_filtered(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        screen = screen_of(dashboard, RunScreen)
        for kernel in ("tiled-cpu", "serial"):
            screen.choose(kernel)
            await proceed(pilot, "r")
        table = screen.query_one(HistoryTable)

        def runs() -> list[str]:
            return [str(table.get_row_at(row)[0]) for row in range(table.row_count)]

        assert runs() == ["2", "1"]
        assert "runs sorted by median time" in await go(pilot, "S")
        assert runs() == sorted(runs(), key=lambda run: live.model.runs[int(run)].seconds or 0.0)
        assert "1 of 2 runs with 'tiled'" in await go(pilot, "slash", *"tiled", "enter") and runs() == ["1"]
        assert "all runs are shown" in await go(pilot, "slash", "ctrl+u", "enter") and len(runs()) == 2


async def test_the_next_rung_is_offered_and_run_on_the_same_graph(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        screen = screen_of(dashboard, RunScreen)
        for n, key in ((96, "n"), (97, "enter")):
            screen.choose("serial")
            screen.query_one("#field-n", Input).value = str(n)
            shown = await go(pilot, "r")
            assert "try next      Tiled CPU" in shown and "[n: try it]" in shown
            screen.choose("scipy")
            screen.query_one(HistoryTable).focus()
            await proceed(pilot, key)
            assert [(e.kernel, e.n) for e in live.started[-2:]] == [("serial", n), ("tiled-cpu", n)]
        assert "no rung of the ladder is predicted to be faster" in await go(pilot, "n")


async def test_wrong_numbers_are_struck_through_and_a_simulated_run_shows_no_time(dashboard: FwtuiApp, live: FakeLive) -> None:
    live.verdict = scenes.verdict("wrong", "wrong at (3, 17): 12, expected 11; 4 cells differ")
    async with opened(dashboard, size=(160, 40)) as pilot:
        assert "✗ INCORRECT at (3, 17): 12, expected 11" in await go(pilot, "r")
        segments = [segment for strip in strips(dashboard.screen) for segment in strip]
        struck = " ".join(segment.text for segment in segments if segment.style is not None and segment.style.strike)
        assert dashboard.screen.query_one(Large).has_class("-is_unreliable")
        for number in ("612 us", "1.43 ms", "18.4 ms", "1.26 GB/s", "20.4 ms", "20.0 ms", "6.71 G"):
            assert number in struck
        live.verdict = scenes.verdict("negative cycle", "vertex 3 has a negative distance to itself", (3, 7))
        assert "↻ negative cycle through 3 → 7 → 3" in await go(pilot, "r")
        live.verdict = None
        await pilot.resize_terminal(*WIDE)
        screen_of(dashboard, RunScreen).choose("katz-kider")
        dashboard.screen.query_one("#field-n", Input).value = "16"
        shown = await go(pilot, "r")
        assert live.started[-1].tile in (4, 8) and "not timed" in shown
        panel = "\n".join(part for line in shown.split("\n")[:27] for part in line.split("│")[1:])
        assert panel.count("simulated: correct, not timed") == 2, "nothing of it is cut off"
        assert not [unit for unit in (" ms", " us", "relax/s", "B/s", " of peak") if unit in panel]


async def test_a_refused_run_has_a_reason_and_a_fault_is_a_banner_until_the_next_run(dashboard: FwtuiApp, live: FakeLive) -> None:
    e = Experiment(kernel="tiled-cpu", file="roads.gr")
    why = "n = 90000 is more than 65536, the limit of tiled-cpu; choose a file with fewer vertices"
    async with opened(dashboard) as pilot:
        live.emit(run_started(e, phases=scenes.PHASES), events.RunDone(t=1.5, run=1, outcome="refused", message=why))
        lines = (await go(pilot)).split("\n")
        row = [str(text) for text in dashboard.screen.query_one(HistoryTable).get_row("1")]
        assert row[2] == "-" and row[-1] == "✗ refused", "the newest run is always in the table"
        title = next(text for text in lines if "RUN 1  " in text)
        assert title.endswith("✗ refused") and "unverified" not in "".join(lines)
        assert all(any(word in text for text in lines[:-4]) for word in ("n = 90000", "vertices"))
        log = " ".join((await go(pilot, "l")).replace("│", " ").split())
        assert f"✗ run 1 refused: {why[:40]}" in log
        died = "the worker died (signal 9, killed) during compilation; the next run gets a new one"
        live.emit(
            run_started(e, 2, 2.0, phases=scenes.PHASES),
            events.Fault(t=2.1, source="worker", code="died", run=2, message=died, stderr="Segmentation fault\nbye"),
        )
        shown = await go(pilot, "escape")
        assert died[:40] in shown and "✗ failed" in shown
        assert "bye" in await go(pilot, "l")
        await proceed(pilot, "escape")
        table = dashboard.screen.query_one(HistoryTable)
        assert [row.value for row in table.rows] == ["2"], "an older refused run has no numbers to compare"
        await proceed(pilot, "asterisk")
        assert [row.value for row in table.rows] == ["2", "1"]
        assert "signal 9" not in (await go(pilot, "r")).split("HISTORY")[0].split("run 1")[0]


async def test_recording_and_markers(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        assert "REC" not in await go(pilot, "m")
        assert "Save this session" in await go(pilot, "R")
        shown = await go(pilot, *"mine", "enter")
        assert "● REC 00:00" in shown and "saved as " in shown and live.names == ["mine"]
        assert live.recorder is not None
        path = live.recorder.path
        await proceed(pilot, "r")
        await proceed(pilot, "m")
        assert isinstance(dashboard.screen, PromptScreen)
        await proceed(pilot, *"rq", "enter")
        assert "marker: rq" in await go(pilot)
        assert "already saved as" in await go(pilot, "R", "enter") and len(live.names) == 1
        await proceed(pilot, "R", *"other", "enter")
        assert live.names[1:] == ["other"], "which renames it"
    loaded = reader.load(path)
    assert any(isinstance(line.event, events.Marker) and line.event.text == "rq" for line in loaded.lines)


async def test_on_small_screens_pages_scroll_no_clause_is_cut_and_the_footer_fits(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard, size=(60, 16)) as pilot:
        shown = await go(pilot, "r")
        assert "RUN 1  " in shown and "not timed" not in shown
        shown = await go(pilot, *["pagedown"] * 5)
        assert "RUN 1  " not in shown and "16 rows by Dijkstra" in shown
        assert "RUN 1  " in await go(pilot, *["pageup"] * 5)
        await pilot.resize_terminal(*NARROW)
        lines = (await go(pilot, "r")).splitlines()
        assert any("2.00x speedup over run 1" in one for one in lines), lines
        assert not [one for one in lines if "same" in one and "…" in one], lines
        live.pace = 20
        for keys in (("R", "enter"), ("r",)):
            last = (await go(pilot, *keys)).rstrip("\n").split("\n")[-1]
            assert last.endswith("^p Palette") and "Quit" in last, last


async def test_quitting_asks_before_it_cancels_the_run(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        await proceed(pilot, "r")
        live.pace = 3
        await proceed(pilot, "r")
        for key in ("q", "ctrl+q"):
            shown = await go(pilot, key)
            assert "Run 2 would be cancelled and 1 finished run would be lost, because this session is not recorded." in shown
            await proceed(pilot, "escape")
            assert isinstance(dashboard.screen, RunScreen) and not live.cancelled
        await proceed(pilot, "ctrl+q")
        await pilot.press("ctrl+q")
        await pilot.pause()
    assert live.cancelled == 1
    assert dashboard.return_code == 0


def test_one_sentence_names_the_work_that_quitting_would_end(live: FakeLive, tmp_path: Path) -> None:
    view = View(live.model, live)
    live.keeper = Keeper.at(tmp_path / "kept", scenes.header())
    live.pace = 10
    live.start(live.settled(Experiment(kernel="serial", n=8)))
    live.drain()
    assert view.end == "Run 1 would be cancelled."
    live.pace = 1000
    live.drain()
    assert view.end == "", "nothing is lost"
    live.measure_limits(DeviceId("cpu"))
    assert view.end == "The work in progress would be cancelled; 1 finished run is saved."
    live.recorder = Recorder.at(tmp_path / "named", scenes.header())
    assert view.end == "The work in progress would be cancelled and the recording named would end; it is saved."


async def test_a_paused_view_does_not_change_while_data_arrives(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        dashboard.screen.set_focus(None)
        live.emit(*scenes.telemetry(0.1, 1.0, 0.1, gpu=False))
        dashboard.tick()
        await press(pilot, "p")
        before = screen_text(dashboard).splitlines()
        assert "PAUSED" in before[0] and "only the view is paused" in screen_text(dashboard)
        live.emit(*scenes.telemetry(1.1, 9.0, 0.9, gpu=False))
        live.emit(*scenes.run(7, 11.0, scenes.experiment("serial", 128), title="Serial"))
        await proceed(pilot)
        after = screen_text(dashboard).splitlines()
        assert after[1:] == before[1:], "nothing but the first line changes"
        assert "PAUSED 00:" in after[0] and "0 events" not in after[0] and live.model.index > 90
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert "RUN 7" not in screen_text(dashboard), "nor does a resize show what is newer"
        await press(pilot, "p")
        assert "PAUSED" not in screen_text(dashboard) and "RUN 7" in screen_text(dashboard)
        await pilot.press("p")
        assert dashboard.view is not None and dashboard.view.paused
        await proceed(pilot, "r")
        assert not dashboard.view.paused and "RUN 1" in screen_text(dashboard), "a run that is started is seen"
