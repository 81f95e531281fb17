"""Large figures and fewer panels: what stays, what goes, and that doubtful numbers are still visibly so."""

from __future__ import annotations

from collections.abc import Callable

import scenes
from apps import dashboard_of
from builders import model_of
from fake_live import FakeLive
from msgspec.structs import replace
from pressing import opened, press, proceed
from textual.widgets import Digits

from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.verdict import verdict
from fwtui.experiment.device import DeviceId
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import screen_text
from fwtui.tui.frame.look import Appearance
from fwtui.tui.frame.telemetry_strip import TelemetryStrip
from fwtui.tui.run.run_panel import NOTHING, LargeNumber, beside, figure
from fwtui.tui.widgets.large import TALL, filled
from fwtui.tui.widgets.run_text import RunSubject


def subject(run: int, baseline: int | None = None, until: str = "end", **changes: object) -> RunSubject:
    unfinished = [scenes.GPU, *scenes.run(1, 1.0, scenes.experiment("naive"), title="Naive", until=until)]
    model = model_of(scenes.gpu_session() if until == "end" else unfinished)
    chosen = replace(model.runs[run], **changes)  # type: ignore[arg-type]
    return RunSubject(chosen, None, model.gpu, model.runs.get(baseline) if baseline else None, True)


def test_a_run_alone_has_its_time_how_sure_it_is_its_rate_and_share() -> None:
    assert figure(subject(2)) == LargeNumber("38.4 ms", "")
    assert [words.plain for words in beside(subject(2))] == [
        "",
        "± 0.3 %, 12 passes",
        "1.79 T relaxations/s · asks for 14.0 % of peak bandwidth",
    ]


def test_with_a_baseline_the_ratio_is_the_largest() -> None:
    model = model_of(scenes.gpu_session())
    told = verdict(ComparedRun(model, model.runs[2]), ComparedRun(model, model.runs[1]))
    both = subject(2, baseline=1)._replace(verdict=told)
    assert figure(both) == LargeNumber("5.92x", "")
    first, second, _ = (words.plain for words in beside(both))
    assert "IS 5.92x AS FAST AS NAIVE" in first
    assert second == "38.4 ms ± 0.3 %, 12 passes"
    back = verdict(ComparedRun(model, model.runs[1]), ComparedRun(model, model.runs[2]))
    slower = subject(1, baseline=2)._replace(verdict=back)
    assert figure(slower).number == "227 ms" and "227" not in beside(slower)[1].plain
    assert beside(slower)[0].plain.startswith("NAIVE TAKES 5.92x AS LONG AS KATZ-KIDER")


def test_numbers_nobody_checked_are_doubtful() -> None:
    wrong = subject(2, verdict=scenes.verdict("wrong", "3 cells differ"))
    assert figure(wrong) == LargeNumber("38.4 ms", "", True)
    assert "not to be trusted: WRONG 3 cells differ" in beside(wrong)[1].plain


def test_before_there_is_a_time_the_progress() -> None:
    told = subject(1, until="clean")
    assert figure(told).number == "38.4 ms"
    early = told._replace(run=replace(told.run, samples=()))
    assert figure(early) == LargeNumber("58 %", "clean passes") and beside(early)[0].plain == "clean passes"
    assert figure(None) == NOTHING
    assert figure(early._replace(run=replace(early.run, device=DeviceId("simulator"), state="done"))).words.startswith(
        "simulated"
    )


async def test_a_replay_enlarges_what_matters(replay_of: Callable[..., FwtuiApp]) -> None:
    app = replay_of(scenes.gpu_session())
    async with opened(app) as pilot:
        for size in ((120, 40), (60, 16)):
            await pilot.resize_terminal(*size)
            await press(pilot)
            roomy = size[1] >= 20
            assert any(digits.region.area for digits in app.screen.query(Digits)) == roomy
            await pilot.press("P")
            await press(pilot)
            shown = [digits.value for digits in app.screen.query(Digits) if digits.region.area]
            assert shown == ["3.71x"]
            assert not app.screen.query_one(TelemetryStrip).region.area
            words = screen_text(app)
            assert "settings  " not in words and "outside the clock" not in words
            assert [digits.region.height for digits in app.screen.query(Digits) if digits.region.area] == [TALL if roomy else 3]
            await pilot.press("P")
            await press(pilot)
            assert [digits.region.height for digits in app.screen.query(Digits) if digits.region.area] == [3] * roomy
            assert app.screen.query_one(TelemetryStrip).region.area


def test_filled_digits_are_as_wide_in_ascii_and_keep_the_unit() -> None:
    rows = filled("7.88x ms")
    assert len(rows) == TALL and len({len(row) for row in rows}) == 1 and rows[-1].endswith("  ms")
    assert [row.replace("#", "█") for row in filled("7.88x ms", "#")] == rows and "█" not in "".join(filled("7.88x ms", "#"))


async def test_live_it_keeps_the_form_a_key_away(live: FakeLive) -> None:
    app = dashboard_of(live, look=Appearance(presenter=True))
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot)
        assert "EXPERIMENT" not in screen_text(app) and "e edit" in screen_text(app)
        await proceed(pilot, "r")
        (total, *_) = app.screen.query(Digits)
        assert total.value == "20.0 ms" and live.started
        await press(pilot, "e")
        assert "Enter or ctrl+r runs it" in screen_text(app)


async def test_doubt_is_seen_from_the_last_row(replay_of: Callable[..., FwtuiApp]) -> None:
    run = scenes.run(1, 1.0, scenes.experiment("naive"), title="Naive", verdict=scenes.verdict("wrong", "3 cells differ"))
    app = replay_of([scenes.header(), scenes.GPU, *run])
    app.look = Appearance(presenter=True)
    async with opened(app):
        assert all(digits.has_class("-doubtful") for digits in app.screen.query(Digits) if digits.value)
        assert "not to be trusted: WRONG" in screen_text(app)
