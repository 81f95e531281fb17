"""The Sweep screen, driven by keys with a scripted live session, and for recordings."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import msgspec
import pytest
import scenes
from apps import Compare, Replay, dashboard_of, playback_of, screen_of, view_of
from builders import model_of
from fake_live import FakeLive
from pressing import SIZES, keyed, opened, press
from rich.style import Style
from textual.pilot import Pilot
from textual.widgets import Button, Input

from fwtui.campaigns.sweep.findings import findings
from fwtui.campaigns.sweep.squares import ENDED, Square, of_runs
from fwtui.common.errors import Refused
from fwtui.common.text import cut_middle
from fwtui.experiment import user_kernel_registry
from fwtui.experiment.experiment import Experiment, Settled, settle
from fwtui.sessions.library import load_model, resolve
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.charts.figure import sign
from fwtui.tui.frame.dialogs import FormScreen
from fwtui.tui.sweep.live_screen import LiveSweepScreen, SweepDraft
from fwtui.tui.sweep.map_and_curves import SHADES, DotPlot, DotSubject, HeatMap, curve_numbers, figure, legend
from fwtui.tui.sweep.screen import RecordedSweepScreen
from fwtui_kernels import registry
from fwtui_kernels.plan import Option


class ScriptedLive(FakeLive):
    """Scripted session whose runs take n^3 over a rate that is highest for tile 32."""

    def mark(self, text: str) -> None:
        self.model.apply(events.Marker(t=self.model.t, text=text))

    def start(self, experiment: Settled) -> int:
        number = super().start(experiment)
        asked = self.started[-1]
        rate = {16: 2e9, 32: 5e9, 64: 4e9, 128: 3e9}.get(asked.tile, 1e9) * (1 if asked.n > 64 else 0.4)
        told = scenes.run(
            number, self.model.t + 0.1, asked, title="Tiled CPU", backend="cpu", seconds=asked.n**3 / rate, verdict=self.verdict
        )
        self._script.clear()
        self._script.extend(told)
        return number


@pytest.fixture
def live(tmp_path: Path) -> ScriptedLive:
    return ScriptedLive()


@pytest.fixture
def app(live: ScriptedLive) -> FwtuiApp:
    return dashboard_of(live, Experiment(n=512), place="sweep")


def recorded_sweep() -> list:
    """Return two kernels and two tiles over four sizes, on the made-up GPU."""
    told, t, number = [], 1.0, 0
    for n, naive, small, large in (
        (512, 0.0006, 0.0009, 0.0010),
        (1024, 0.0041, 0.0034, 0.0030),
        (2048, 0.030, 0.019, 0.012),
        (4096, 0.2272, 0.142, 0.0841),
    ):
        for kernel, tile, seconds in (("naive", 0, naive), ("katz-kider", 16, small), ("katz-kider", 32, large)):
            number += 1
            told.append(scenes.run(number, t, scenes.experiment(kernel, n, tile=tile), title=kernel, seconds=seconds, passes=5))
            t = told[-1][-1].t + 0.5
    return [scenes.header(), scenes.GPU, *scenes.merged(*told, scenes.telemetry(0.1, t, 0.6))]


async def proceed(pilot: Pilot[None], *keys: str, ticks: int = 0) -> None:
    assert isinstance(pilot.app, FwtuiApp)
    await press(pilot, *keys)
    for _ in range(ticks):
        pilot.app.tick()
    await press(pilot)


async def go(pilot: Pilot[None], *keys: str, ticks: int = 0) -> str:
    await proceed(pilot, *keys, ticks=ticks)
    return await keyed(pilot)


async def test_a_sweep_fills_the_map_and_says_what_is_fastest(app: FwtuiApp, live: ScriptedLive) -> None:
    async with opened(app) as pilot:
        assert "Press r to run every combination" in await go(pilot)
        shown = await go(pilot, "r", ticks=3)
        assert "sweeping" in shown and "3 of 16" in shown and "         ·" in shown
        assert app.screen.query_one("#run", Button).disabled and not app.screen.query_one("#cancel", Button).disabled
        await proceed(pilot, "1", ticks=40)
        shown = await go(pilot, "2", ticks=1)
        assert len(live.started) == 16, "it goes on while another place is shown"
        assert {(e.n, e.tile) for e in live.started} == {(n, t) for n in (64, 128, 256, 512) for t in (16, 32, 64, 128)}
        assert "done" in shown and "16 of 16" in shown
        assert "Fastest at n = 512: tiled-cpu, tile 32, 26.8 ms, 5.00 Grelax/s" in shown and "1.25x, FASTER" in shown
        assert "time ~ n^" not in shown, "four sizes far from a line have no exponent"
        assert "5.00 G" in shown and "2.00 G" in shown
        assert live.model.markers[-1].text.startswith("sweep kernel tiled-cpu x n 64,128,256,512")
        shown = await go(pilot, *["left"] * 3, "right")
        assert "n 128 · tile 32: run" in shown and "of the best" in shown
        heat = app.screen.query_one(HeatMap)
        await pilot.click(HeatMap, offset=(8 + 2 * 10 + 4, 3))
        assert heat.cursor == (2, 2)
        shown = await go(pilot, "z", ticks=1)
        assert "n 512" in shown and "tile│        16        32" in shown
        assert "26.8 ms" in await go(pilot, "U", ticks=1) and "100 %" in await go(pilot, "U", ticks=1)
        await proceed(pilot, "z", *["left"] * 3, "right")
        square = heat.square
        assert square is not None and square.run is not None and (square.run.n, square.run.experiment.tile) == (128, 64)
        await proceed(pilot, "enter", ticks=1)
        assert app.view is not None and app.view.place == "run" and app.view.selected == square.run.id


async def test_c_stops_a_sweep_r_continues_it_and_a_mistake_starts_nothing(app: FwtuiApp, live: ScriptedLive) -> None:
    async with opened(app) as pilot:
        await proceed(pilot, "r", ticks=5)
        live.pace = 3
        await proceed(pilot, ticks=1)
        shown = await go(pilot, "c", ticks=2)
        begun = len(live.started)
        assert live.cancelled == 1 and "stopped" in shown and "the sweep is cancelled" in shown
        shown = await go(pilot, ticks=5)
        assert len(live.started) == begun
        live.pace = 1000
        await proceed(pilot, "r", ticks=40)
        assert len(live.started) == 17  # the one that was cancelled ran again
        app.screen.query_one("#field-n", Input).value = "512..64"
        shown = await go(pilot, ticks=1)
        assert "is in descending order" in shown and app.screen.query_one("#run", Button).disabled
        await proceed(pilot, "r", ticks=2)
        assert len(live.started) == 17
        app.screen.query_one("#field-n", Input).value = "64"
        app.screen.query_one("#field-tile", Input).value = "16"
        assert "nothing varies" in await go(pilot, ticks=1)
        for name, text in (("kernel", "naive"), ("n", "64,128"), ("tile", "")):
            app.screen.query_one(f"#field-{name}", Input).value = text
        await proceed(pilot, ticks=1)
        assert "nothing simulated is timed" in next(iter(screen_of(app, LiveSweepScreen).draft.errors().values()))
        assert app.screen.query_one("#run", Button).disabled


async def test_an_unverified_run_is_struck_and_the_form_takes_the_run_that_is_shown(app: FwtuiApp, live: ScriptedLive) -> None:
    live.verdict = scenes.verdict("unverified")
    async with opened(app) as pilot:
        shown = await go(pilot, "r", ticks=40)
        assert "no run of this sweep is verified yet" in shown and "Fastest" not in shown
        heat = app.screen.query_one(HeatMap)
        cells = [cell for row in range(heat.row_count) for cell in heat.get_row_at(row)]
        assert any(isinstance(span.style, Style) and span.style.strike for cell in cells for span in cell.spans)
        live.start(live.settled(settle(Experiment(kernel="serial", n=100, density=0.5, dtype="int32"))))
        await proceed(pilot, ticks=1)
        begun = len(live.started)
        shown = await go(pilot, "f", ticks=1)
        screen = screen_of(app, LiveSweepScreen)
        assert [screen.draft.text(name) for name in ("kernel", "density", "dtype", "tile")] == ["serial", "0.5", "int32", ""]
        assert f"sweeps around run {begun}" in shown and "int32" in shown
        await proceed(pilot, "r", ticks=20)
        assert {(e.kernel, e.n, e.dtype, e.density) for e in live.started[begun:]} == {
            ("serial", n, "int32", 0.5) for n in (64, 128, 256, 512)
        }


@pytest.mark.slow
async def test_the_narrow_screen_edits_in_a_dialog_and_shows_curves_by_a_key(app: FwtuiApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        shown = await go(pilot, "e")
        assert isinstance(app.screen, FormScreen) and "Budget, s" in shown
        shown = await go(pilot, "ctrl+r", ticks=40)
        assert "16 of 16" in shown and not app.screen.query_one("#lines").display
        shown = await go(pilot, "v", ticks=1)
        assert app.screen.query_one("#lines").display and "① tile 16" in shown


async def test_a_recording_is_shown_as_a_sweep_with_its_break_even(replay_of: Replay) -> None:
    app = replay_of(recorded_sweep())
    async with opened(app) as pilot:
        shown = await go(pilot, "2", ticks=1)
        words = {binding.id for binding in screen_of(app, RecordedSweepScreen).rows.offered()}
        assert {"sweep.across", "play"} <= words and not {"sweep", "sweep.edit", "cancel"} & words
        shown = await go(pilot, "home")
        assert playback_of(app).player.position == 0.0 and len(view_of(app).model.runs) < 2
        await proceed(pilot, "enter", ticks=1)
        assert playback_of(app).player.at_end and view_of(app).place == "run" and view_of(app).selected is not None
    assert "katz-kider · tile 32 is faster than naive from about n = 787 on (between 512 and 1024)" in shown
    assert "n = 787: katz-kider · tile 32 overtakes naive" in shown and shown.count("overtakes naive") == 1
    assert "runs of this recording" in shown and "katz-kider · tile 16" in shown


async def test_kernels_are_dots_compared_with_the_previous_one_of_their_type(replay_of: Replay) -> None:
    whole = (("naive", 0, "float32", 0.4), ("naive-vector", 0, "int16", 0.1))
    tiled = (("katz-kider", 32, "float32", 0.1), ("blocked-vector", 32, "int16", 0.02))
    told = [
        scenes.run(number, number, scenes.experiment(kernel, 4096, tile=tile, dtype=dtype), title=kernel, seconds=seconds)
        for number, (kernel, tile, dtype, seconds) in enumerate((*whole, *tiled), 1)
    ]
    app = replay_of([scenes.header(), scenes.GPU, *scenes.merged(*told)])
    async with opened(app) as pilot:
        shown = await go(pilot, "2", ticks=1)
        signs = {kernel: sign(kernel).glyph for kernel in ("naive", "naive-vector", "katz-kider", "blocked-vector")}
        named = ((line.split()[0], line) for line in shown.splitlines() if line.strip())
        rows = {name: line for name, line in named if name in signs and signs[name] in line}
        assert list(rows) == list(signs)
        assert rows["katz-kider"].endswith("4.00x") and rows["blocked-vector"].endswith("5.00x")
        naive, other, katz, _ = (row.index(signs[kernel]) for kernel, row in rows.items())
        assert naive < katz == other
        shown = await go(pilot, "U")
        assert "time, logarithmic" in shown and "400 ms" in shown
        assert next(line for line in shown.splitlines() if line.split()[:1] == ["katz-kider"] and "▥" in line).endswith("4.00x")
        await pilot.resize_terminal(80, 24)
        assert app.screen.query_one(HeatMap).size.height <= 3 and "map and curves are both shown" in await go(pilot, "v")


async def test_the_best_of_many_runs_is_in_view_and_hidden_runs_are_counted(replay_of: Replay) -> None:
    kernels = [kernel.id for kernel in registry().values() if "float32" in kernel.dtypes and kernel.max_n >= 4096]
    seconds = {"serial": 9.0, "look-ahead": 0.005}
    told = [
        scenes.run(number, number, scenes.experiment(kernel, 4096), title=kernel, seconds=seconds.get(kernel, 0.1))
        for number, kernel in enumerate(kernels, 1)
    ]
    app = replay_of([scenes.header(), scenes.GPU, *scenes.merged(*told)])
    async with app.run_test(size=(120, 36)) as pilot:
        shown = await go(pilot, "2", ticks=1)
        heat = app.screen.query_one(HeatMap)
        assert heat.square is not None and heat.square.run is not None
        assert heat.square.run.experiment.kernel == "look-ahead", "the cursor begins at the best"
        drawn = [line.split()[0] for line in shown.splitlines() if line.split()[:1] and line.split()[0] in kernels]
        above = next(line for line in shown.splitlines() if "more above" in line)
        assert "look-ahead" in drawn and "serial" not in drawn
        below = next((line for line in shown.splitlines() if "more below" in line), "… 0 more below")
        assert int(above.split()[1]) + len(drawn) + int(below.split()[1]) == len(kernels), "every run is seen or counted"
        shown = await go(pilot, *["left"] * len(kernels), "right", ticks=2)
        assert heat.cursor == (0, 1), "where it was put it stays"
        drawn = [line.split()[0] for line in shown.splitlines() if line.split()[:1] and line.split()[0] in kernels]
        assert drawn[0] == "serial" and "more above" not in shown
        below = next(line for line in shown.splitlines() if "more below" in line)
        assert len(drawn) + int(below.split()[1]) == len(kernels)


def test_no_run_hides_behind_one_of_another_graph() -> None:
    asked = [scenes.experiment("naive", n, negative=negative) for n in (512, 1024) for negative in (0.0, 0.2)]
    asked += [scenes.experiment("katz-kider", n, file=file) for n in (512, 1024) for file in ("", "roads.gr")]
    told = [scenes.run(number, number, e, title=e.kernel, seconds=1.0 / number) for number, e in enumerate(asked, 1)]
    squares = of_runs(model_of([scenes.header(), scenes.GPU, *scenes.merged(*told)]))
    assert squares is not None and len(squares.runs) == len(asked)
    assert {"naive · negative 0.2", "katz-kider · file roads.gr · negative 0"} <= {row.name for row in squares.rows}
    plain = [e for e in asked if not e.negative and not e.file]
    told = [scenes.run(number, number, e, title=e.kernel) for number, e in enumerate(plain, 1)]
    squares = of_runs(model_of([scenes.header(), scenes.GPU, *scenes.merged(*told)]))
    assert squares is not None and squares.choices == ("kernel", "n"), "what is the same for all is no axis"


def test_names_that_begin_alike_are_cut_in_the_middle() -> None:
    names = [name for name in registry() if name.startswith("blocked-")]
    assert len(names) > 4 and len({cut_middle(name, 9) for name in names}) == len(names)
    for width in range(1, 12):
        assert all(len(cut_middle(name, width)) <= width for name in names)
    assert cut_middle("serial", 9) == "serial" and cut_middle("blocked-branch", 9) == "bloc…anch"


@pytest.mark.parametrize("size", SIZES)
def test_picture_of_a_recorded_sweep(replay_of: Replay, snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(replay_of(recorded_sweep()), terminal_size=size, press=["2"])


def test_no_map_is_too_odd_to_be_drawn() -> None:
    model = model_of(recorded_sweep())
    squares, dots = of_runs(model), DotPlot()
    asked = list(product((1, 2, 7, 20, 60, 300), ((0, 0), (99, 99), (-5, 3))))
    for (width, cursor), odd in product(asked, (None, squares, of_runs(model, "kernel"), of_runs(Model()))):
        assert len(dots.draw(DotSubject(odd, "time", cursor, 4), width)) <= 4
    assert figure(None, "rate", None, 0).empty and len(figure(squares, "time", None, 0).series) == 3


@pytest.mark.parametrize(("slowest", "levels"), [(0.25, "█▒░"), (0.001, "█▓░")])
async def test_the_shades_of_a_map_are_logarithmic_if_its_speeds_differ_much(
    replay_of: Replay, slowest: float, levels: str
) -> None:
    tiles = ((4, 1.0), (8, 1.0), (16, slowest**-0.5), (32, 1 / slowest))
    told = [scenes.run(tile, tile / 8, scenes.experiment("katz-kider", tile=tile), seconds=taken) for tile, taken in tiles]
    session = [scenes.header(), scenes.GPU, *scenes.merged(*told)]
    squares = of_runs(model_of(session))
    assert squares is not None
    (row,), failed = squares.rows, msgspec.structs.replace(squares.runs[0], state="failed")
    squares = squares._replace(rows=(row._replace(squares=(Square(ENDED, failed), *row.squares[1:])),))
    async with opened(replay_of(session), "2") as pilot:
        heat = pilot.app.screen.query_one(HeatMap)
        heat.take(squares, "rate")
        drawn = "".join(cell.plain for cell in heat.get_row_at(0))
    assert sorted(sign for sign in drawn if sign in SHADES.strip()) == sorted(levels), "only runs that count have one"
    assert ("logarithmic over 1,000x" in legend(squares)) == (slowest == 0.001)


def test_efficiencies_are_drawn_with_the_ideal() -> None:
    experiments = [settle(Experiment(kernel="distributed-cpu", devices=devices)) for devices in ("", "cpu,cpu")]
    told = [scenes.run(i, float(i), e, title="", backend="cpu", seconds=1.0 / i) for i, e in enumerate(experiments, 1)]
    model = model_of([event for run in told for event in run])
    squares, found = of_runs(model), findings(model, list(model.runs.values()))
    assert squares is not None and squares.across.name == "devices" and squares.choices == ("devices",)
    drawn = figure(squares, "rate", found, 0)
    assert [(s.name, s.xs, s.ys, s.strong) for s in drawn.series] == [("n 512", (1.0, 2.0), (1.0, 1.0), True)]
    assert [rule.value for rule in drawn.rules] == [1.0]
    model, _ = load_model(resolve("h200-four-gpus"))
    squares = of_runs(model)
    assert squares is not None
    numbers = {frozenset(row.name.split(" · ")): number for row, number in zip(squares.rows, curve_numbers(squares), strict=True)}
    drawn = figure(squares, "rate", findings(model, list(model.runs.values())), 5)
    assert len(drawn.series) == 7 and all(s.marker == numbers[frozenset(s.name.split(" · "))] for s in drawn.series)
    assert [s.name for s in drawn.series if s.strong] == ["int32 · n 32768"]


def test_the_form_sweeps_devices_where_the_kernel_runs_on_several(live: ScriptedLive) -> None:
    draft = SweepDraft(settle(Experiment(kernel="distributed-cpu", devices="cpu,cpu")), lambda: live.settled)
    rows = {row.key: row for row in draft.rows()}
    assert rows["devices"].text == "2" and rows["devices"].shown
    for key, text in {"devices": "1,2", "n": "512", "tile": "64"}.items():
        draft.set(key, text)
    assert {(cell.experiment.n, cell.experiment.devices) for cell in draft.grid().order if cell.experiment} == {
        *((512, ""), (512, "cpu,cpu"))
    }
    draft.set("kernel", "serial")
    assert not any(row.shown for row in draft.rows() if row.key == "devices")


def test_a_kernel_file_in_the_form_is_checked_after_it_is_loaded(live: ScriptedLive, tmp_path: Path) -> None:
    draft = SweepDraft(settle(Experiment()), lambda: live.settled)
    draft.set("kernel", "serial,./mine.py,none")
    assert draft.files == ("./mine.py",) and draft.errors() == {}
    (tmp_path / "mine.py").write_text("")
    option = Option("depth", (1, 2), 1, "how deep")
    user_kernel_registry.install(replace(registry()["serial"], id="mine", options=(option,)), tmp_path / "mine.py")
    draft.name_kernel("./mine.py", "mine")
    assert draft.text("kernel") == "serial,mine,none" and "there is no kernel 'none'" in draft.errors()["kernel"]
    draft.set("kernel", "serial")
    draft.name_kernel(str(tmp_path / "mine.py"), "mine")
    assert draft.text("kernel") == "serial,mine"
    draft.set("option-depth", "1,2")
    assert [e.options for e in (cell.experiment for cell in draft.grid().order) if e and e.kernel == "mine" and e.n == 64] == [
        {"depth": 1},
        {"depth": 2},
    ]


def test_a_sweep_around_a_users_kernel_runs_its_file_as_it_is_now(live: ScriptedLive, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="mine is a user kernel; choose its file first"):
        SweepDraft(Experiment(kernel="mine", code="0123456789abcdef"), lambda: live.settled)
    (tmp_path / "mine.py").write_text("")
    user_kernel_registry.install(replace(registry()["serial"], id="mine"), tmp_path / "mine.py")
    draft = SweepDraft(settle(Experiment(kernel="mine")), lambda: live.settled)
    (tmp_path / "mine.py").write_text("# changed")
    assert {cell.experiment.code for cell in draft.grid().order if cell.experiment} == {user_kernel_registry.code_of("mine")}
