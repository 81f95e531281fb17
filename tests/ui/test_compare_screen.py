"""The Compare screen: verdicts, differences, runs of other sessions, and the race of two runs."""

from itertools import product
from pathlib import Path

import pytest
import scenes
from apps import Compare, replay_at_end, screen_of
from builders import model_of, run_started
from fake_live import FakeLive
from msgspec.structs import replace
from pressing import NARROW, SIZES, go, keyed, opened, press, proceed
from recorded_sessions import OTHER, SESSION, medians, milliseconds
from textual.pilot import Pilot
from textual.widgets import Digits, Input, OptionList

from fwtui.analysis.compare import FASTER, ComparedRun, compare
from fwtui.analysis.race_timeline import SECONDS, ProgressCurve, RacePosition
from fwtui.analysis.run_summary import summarise
from fwtui.experiment.experiment import changed
from fwtui.sessions.library import load_model, resolve
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.charts import BLOCK, SLIVER
from fwtui.tui.compare import detail, race
from fwtui.tui.compare.race import RaceResult, RaceScreen, clock, race_result
from fwtui.tui.compare.screen import CompareScreen, read
from fwtui.tui.frame.dialogs import PickFile

TIMES = medians(SESSION)


@pytest.fixture
def app() -> FwtuiApp:
    return replay_at_end(SESSION, "compare")


async def test_recorded_runs_get_verdicts_against_the_first(app: FwtuiApp) -> None:
    async with opened(app) as pilot:
        shown = await go(pilot)
        naive, blocked = TIMES[3], TIMES[8]
        assert f"KATZ-KIDER: {naive / blocked:.2f}x SPEEDUP OVER NAIVE   identical distances" in shown
        change = f"{blocked / naive - 1:+.1%}".replace("%", " %")
        assert milliseconds(naive) in shown and milliseconds(blocked) in shown and shown.count(change) >= 2
        await proceed(pilot, "down")
        shown = await go(pilot, "b", "down")
        assert app.view is not None and app.view.baseline == 7
        ratio = f"{TIMES[7] / TIMES[4]:.2f}x"
        assert "run 4 against run 7  SLOWER" in shown and f"{TIMES[4] / TIMES[7]:.2f}x SLOWER THAN" in shown
        shown = await go(pilot, "1")
        assert f"{ratio} ▼" in shown and f"{TIMES[3] / TIMES[8]:.2f}x" not in shown
        assert app.view is not None and app.view.playback is not None
        await proceed(pilot, "3")
        for place, words in ((0.0, "no run has ended yet; press B"), (0.6, "no other run has ended yet; press B")):
            app.view.playback.seek(place)
            assert words in await go(pilot)
        app.view.playback.seek(1.0)
        await pilot.resize_terminal(80, 24)
        await proceed(pilot)


async def test_runs_of_another_session_are_compared_with_these(app: FwtuiApp, tmp_path: Path) -> None:
    async with opened(app) as pilot:
        screen = screen_of(app, CompareScreen)
        screen.add_session(read(str(OTHER)))
        shown = await go(pilot)
        assert "4 runs of h200-n1024-naive-blocked" in shown
        assert "NOT COMPARED" not in shown and shown.count("FASTER") == 7, "each with the first of its size"
        table = screen.query_one(detail.CompareTable)
        table.move_cursor(row=table.row_count - 5)
        shown = await go(pilot, "b")
        assert shown.count("NOT COMPARED") == 4 and "n = 1024 is" not in shown and "h200-n1024-naive…:5" in shown
        assert {str(table.get_row_at(table.row_count - 1)[at].style) for at in range(4)} == {"dim"}
        table.move_cursor(row=table.row_count - 1)
        shown = await go(pilot)
        assert shown.count("n = 1024 is not the same work as n = 4096") == 1, "the reason of the row that is marked"
        assert not any(
            row[:77].count("%") for row in shown.partition("n = 1024 is not")[2].partition("not timed")[0].splitlines()
        )
        await proceed(pilot, "b")
        assert screen.pinned == "h200-n1024-naive-blocked:6" and app.view is not None and app.view.baseline is None
        await proceed(pilot, "B")
        assert isinstance(app.screen, PickFile)
        assert app.screen.query_one(OptionList).option_count >= 2
        await proceed(pilot, "escape")
        screen.add_session(read(str(tmp_path / "nothing.fwt.jsonl")))
        assert "cannot be opened" in await go(pilot)
        broken = tmp_path / "broken.fwt.jsonl"
        broken.write_text("hello\n")
        screen.add_session(read(str(broken)))
        assert "not a fwtui session" in await go(pilot)
        screen.add_session(("x", "x could not be read: [/] \x1b[31m"))
        assert "x could not be read: [/]" in await go(pilot)
        answers: list[str | None] = []
        await app.push_screen(PickFile("Another session", [("a[/]b", "a[/]b"), ("c", "c")], ""), answers.append)
        await proceed(pilot, "enter")
        await app.push_screen(PickFile("Another session", [], "or a path"), answers.append)
        await pilot.pause()
        assert app.screen.query_one(Input).placeholder == "a path", "there is nothing that it would be an alternative to"
        app.screen.query_one(Input).value = " /tmp/x "
        await proceed(pilot, "enter")
        assert answers == ["a[/]b", "/tmp/x"]


async def test_several_devices_are_compared_with_one_of_their_number_type() -> None:
    path = resolve("h200-four-gpus")
    app = replay_at_end(path, "compare")
    async with app.run_test(size=(160, 40)) as pilot:
        assert "run 20 against run 21" in await go(pilot), "the newest run has none to be compared with"
        shown = await go(pilot, "up", "up")
        assert "devices" in shown and "131072" in shown and "NOT COMPARED" not in shown
        table = screen_of(app, CompareScreen).query_one(detail.CompareTable)
        rows = {line[0].plain: [text.plain for text in line] for line in map(table.get_row_at, range(table.row_count))}
        for run, *texts in ((19, "4", "~3.96x", FASTER), (20, "2", "~1.99x", FASTER), (21, "1", "baseline", "")):
            assert {*texts} <= {*rows[f"run {run}"]}, "on two and four GPUs, though they ran first"
        assert "3.47x" in rows["run 10"], "16 bit on four GPUs against 16 bit on one"
        shown = await go(pilot, "1")
        assert "devices" in shown and "131072" in shown


async def test_before_two_runs_compare_explains_what_to_do(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        assert "run two experiments" in await go(pilot, "3")
        dashboard.screen.query_one(detail.CompareTable).focus()
        shown = await go(pilot, "up", "down", "end", "home", "pagedown", "enter", "b", "g", "v")
        assert isinstance(dashboard.screen, CompareScreen) and "no run has ended yet" in shown
        live.start(live.settled(dashboard.experiment))
        shown = await go(pilot)
        assert "run 1 is the baseline; run another experiment" in shown
        live.start(live.settled(changed(dashboard.experiment, tile=32)))
        shown = await go(pilot)
        assert "run 2 against run 1  FASTER" in shown and "2.00x SPEEDUP OVER RUN 1" in shown and "tile 32 against 64" in shown
        live.start(live.settled(dashboard.experiment))
        shown = await go(pilot)
        assert "run 3 against run 1  UNCLEAR" in shown
        assert "the same experiment took 66.7 % less time this time; rerun it on an idle machine" in shown


def pair_of(model: Model, run: int, against: int) -> detail.Pair:
    return paired(ComparedRun(model, model.runs[run]), ComparedRun(model, model.runs[against]))


def paired(entrant: ComparedRun, baseline: ComparedRun) -> detail.Pair:
    found = compare(entrant, baseline)
    return detail.Pair(entrant, baseline, found, summarise(entrant, baseline, comparison=found))


def test_bars_of_very_different_runs_are_distinguishable() -> None:
    pair = pair_of(load_model(SESSION)[0], 8, 3)
    drawn = {row.plain.split()[0]: row.plain[detail.LABEL : detail.LABEL + 30] for row in detail.Deltas(pair).draw(pair, 78)[1:]}
    assert drawn["pivot"].strip() == SLIVER and drawn["remainder"].count(BLOCK) > 2, "1.05 ms is not as long as 30.1 ms"


def test_nothing_is_too_narrow_or_too_odd_to_be_drawn() -> None:
    told = [
        *scenes.run(1, 1.0, scenes.experiment("naive"), title="[/]", seconds=1e-12, passes=5),
        *scenes.run(2, 9.0, scenes.experiment("katz-kider"), title="b", seconds=1e9, passes=1),
        run_started(scenes.experiment("naive"), 3, 1e9, backend="cuda"),
        events.RunDone(t=1e9, run=3, outcome="failed"),
    ]
    model = model_of(told)
    for entrant, baseline in product((ComparedRun(model, run, "s" * 60) for run in model.runs.values()), repeat=2):
        pair = paired(entrant, baseline)
        assert all(text.plain is not None for text in detail.row_cells(detail.CompareRow(entrant, pair.comparison), 9).values())
        for width in (1, 3, 20, 79, 300):
            detail.CompareVerdict(pair).draw(pair, width)
            detail.Deltas(pair).draw(pair, width)
    assert all(sum(cells + 2 for _, cells in detail.columns(width)) < width for width in range(58, 300))


def test_a_change_of_many_times_is_not_a_percentage() -> None:
    assert [detail.share_changed(share) for share in (None, 0.031, -0.981, 9.9, 214.1)] == [
        "",
        "+3.1 %",
        "-98.1 %",
        "+990.0 %",
        "215x",
    ]


RATIO = f"{TIMES[3] / TIMES[8]:.2f}x"
SLOWED = f"{SECONDS / TIMES[3]:.1f}x slower"
WINS = f"Katz-Kider (run 8) wins: {milliseconds(TIMES[8])} against {milliseconds(TIMES[3])}, {RATIO} speedup."


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the clock of the race; the last element is the current time."""
    told = [100.0]
    monkeypatch.setattr(race, "monotonic", lambda: told[-1])
    return told


async def after(pilot: Pilot[None], now: list[float], seconds: float) -> str:
    """Advance the race by that many seconds and return the text of the screen."""
    assert isinstance(pilot.app.screen, RaceScreen)
    now.append(now[-1] + seconds)
    pilot.app.screen.advance()
    return await keyed(pilot)


def large(pilot: Pilot[None]) -> list[str]:
    return [digits.value for digits in pilot.app.screen.query(Digits)]


def ended(one: Run, other: Run, model: Model) -> RaceResult:
    entrant, baseline = ComparedRun(model, one), ComparedRun(model, other)
    return race_result(baseline, entrant, compare(entrant, baseline))


def test_the_end_of_a_race_names_a_winner_only_if_the_difference_is_clear() -> None:
    model, _ = load_model(SESSION)
    naive, blocked = model.runs[3], model.runs[8]
    for won, place in ((ended(blocked, naive, model), 1), (ended(naive, blocked, model), 0)):
        assert won.text.startswith(f"{WINS} Reason: ") and won[1:] == (place, RATIO, True)
    again = ended(replace(blocked, id=9), blocked, model)
    assert again.text.startswith("A draw: time ") and again.winner is None
    few = ended(replace(blocked, samples=blocked.samples[:1]), model.runs[7], model)
    assert few.text.startswith("Katz-Kider (run 8) is first: ") and "Unclear: " in few.text
    assert (few.winner, few.sure) == (1, False)
    smaller = ended(replace(blocked, n=1024), naive, model)
    assert smaller == RaceResult("No winner: n = 1024 is not the same work as n = 4096; rates can be compared, times cannot.")
    wrong = ended(replace(blocked, verdict=scenes.verdict("wrong")), naive, model)
    assert wrong == RaceResult("No winner: run 8 is wrong, so its time does not count.")


SECONDS = [(0.0314, 0.0099, "9.9 ms"), (0.255, 0.0314, "31 ms"), (0.0314, 0.0314, "31.4 ms"), (150.0, 30.0, "30.0 s")]


@pytest.mark.parametrize(("total", "seconds", "shown"), [*SECONDS, (2.5, 0.0, "0.00 s")])
def test_the_elapsed_time_has_the_unit_and_decimals_of_the_total(total: float, seconds: float, shown: str) -> None:
    assert clock(RacePosition(0.5, seconds), ProgressCurve((0.0, 1.0), (0.0, total), False)) == shown


async def test_a_race_of_the_compare_screen(now: list[float]) -> None:
    app = replay_at_end(SESSION, "compare")
    async with opened(app) as pilot:
        shown = await keyed(pilot, "g")
        assert "both at the same moment" in shown and SLOWED in shown and "run 8 against run 3" in shown
        shown = await after(pilot, now, 0.5)  # a sixteenth of the race: half of the faster one
        assert large(pilot) == ["16 ms", "6 %", "16.0 ms", "51 %"] and "(run 3) was not timed round by round" in shown
        assert "round 257 of 4096" in shown and "round 65 of 128" in shown
        assert "space: pause" in shown and "space: continue" in await keyed(pilot, "space")
        assert await after(pilot, now, 3.0) == await keyed(pilot) and large(pilot)[1] == "6 %", "it stands still"
        await press(pilot, "space")
        shown = await after(pilot, now, 60.0)
        assert "over" in shown and "space: again" in shown and WINS in shown and shown.count("finished") == 2
        assert large(pilot) == [milliseconds(TIMES[3]), "100 %", milliseconds(TIMES[8]), RATIO]
        why = screen_of(app, RaceScreen).result.text
        for size in (NARROW, (60, 16)):
            await pilot.resize_terminal(*size)
            shown = " ".join(" ".join(row.strip("│ ") for row in (await keyed(pilot)).splitlines()).split())
            assert "Reason: " in why and why in shown, "all of it"
        await press(pilot, "space")
        assert large(pilot)[1] == "0%", "it begins anew, and on this screen without a space"
        await press(pilot, "escape")
        assert not isinstance(app.screen, RaceScreen)


@pytest.mark.parametrize("size", SIZES)
def test_picture(now: list[float], snap_compare: Compare, size: tuple[int, int]) -> None:
    async def story(pilot: Pilot[None]) -> None:
        await press(pilot, "g")
        await after(pilot, now, 0.5)

    assert snap_compare(replay_at_end(SESSION, "compare"), terminal_size=size, run_before=story)
