"""Large figures and fewer panels: what stays, what goes, and that doubtful numbers are still visibly so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import scenes
from fake_live import FakeLive
from msgspec.structs import replace
from textual.widgets import Digits

from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment
from fwtui.stream.model import Model
from fwtui.stream.requests import Hardware
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.look import Appearance
from fwtui.tui.frame.telemetry_strip import TelemetryStrip
from fwtui.tui.run.run_panel import NOTHING, LargeNumber, figures
from fwtui.tui.widgets.run_text import RunSubject


def subject(run: int, baseline: int | None = None, until: str = "end", **changes: object) -> RunSubject:
    model = Model()
    for event in scenes.gpu_session() if until == "end" else [
        scenes.GPU, *scenes.run(1, 1.0, scenes.experiment("naive"), title="Naive", until=until)
    ]:  # fmt: skip
        model.apply(event)
    chosen = replace(model.runs[run], **changes)  # type: ignore[arg-type]
    return RunSubject(chosen, None, model.gpu, model.runs.get(baseline) if baseline else None, True)


def test_total_rate_and_share_of_peak() -> None:
    assert figures(subject(2)) == (
        LargeNumber("38.4 ms", "± 0.3 %, 12 passes"),
        NOTHING,
        LargeNumber("1.79 T", "relaxations/s"),
        LargeNumber("14.0 %", "of peak (model)"),
    )


def test_with_a_baseline_the_ratio() -> None:
    assert figures(subject(2, baseline=1))[1] == LargeNumber("5.92x", "as fast as Naive")


def test_numbers_nobody_checked_are_doubtful() -> None:
    total, _, rate, _ = figures(subject(2, verdict=scenes.verdict("wrong", "3 cells differ")))
    assert total == LargeNumber("38.4 ms", "not to be trusted: WRONG 3 cells differ", True) and rate.doubtful


def test_before_there_is_a_time_the_progress() -> None:
    told = subject(1, until="clean")
    assert figures(told)[0].number == "38.4 ms"
    early = told._replace(run=replace(told.run, samples=()))
    assert figures(early) == (LargeNumber("58 %", "clean passes"), NOTHING, NOTHING, NOTHING)
    assert figures(None) == (NOTHING,) * 4
    assert figures(early._replace(run=replace(early.run, device=DeviceId("simulator"), state="done")))[0].words.startswith(
        "simulated"
    )


@pytest.mark.parametrize("size", [(60, 16), (120, 40), *(pytest.param(s, marks=pytest.mark.slow) for s in ((80, 24), (200, 60)))])
async def test_a_replay_enlarges_what_matters(
    size: tuple[int, int], replay_of: Callable[..., FwtuiApp], text: Callable[[FwtuiApp], str]
) -> None:
    app = replay_of(scenes.gpu_session())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        roomy = size[1] >= 20
        assert any(digits.region.area for digits in app.screen.query(Digits)) == roomy
        await pilot.press("P")
        for _ in range(3):
            await pilot.pause()
        shown = [digits.value for digits in app.screen.query(Digits) if digits.region.area]
        assert shown[:3] == ["61.2 ms", "3.71x", "1.12 T"] and all(value.endswith("%") for value in shown[3:])
        assert not app.screen.query_one(TelemetryStrip).region.area
        words = text(app)
        assert "WHAT WAS RUN" not in words and "outside the clock" not in words and "┗━┛" in words
        await pilot.press("P")
        for _ in range(3):
            await pilot.pause()
        assert any(digits.region.area for digits in app.screen.query(Digits)) == roomy
        assert app.screen.query_one(TelemetryStrip).region.area


async def test_live_it_keeps_the_form_a_key_away(live: FakeLive, text: Callable[[FwtuiApp], str]) -> None:
    app = FwtuiApp(
        live,
        Experiment(kernel="tiled-cpu", n=512),
        still=True,
        found=Hardware(reason="no NVIDIA driver is installed"),
        look=Appearance(presenter=True),
    )
    async with app.run_test(size=(120, 40)) as pilot:
        for _ in range(3):
            await pilot.pause()
        assert "EXPERIMENT" not in text(app) and "e edit" in text(app)
        await pilot.press("r")
        app.tick()
        for _ in range(3):
            await pilot.pause()
        (total, *_) = app.screen.query(Digits)
        assert total.value == "20.0 ms" and live.started
        await pilot.press("e")
        await pilot.pause()
        assert "Enter or ctrl+r runs it" in text(app)


async def test_doubt_is_seen_from_the_last_row(replay_of: Callable[..., FwtuiApp], text: Callable[[FwtuiApp], str]) -> None:
    told = [
        scenes.header(),
        scenes.GPU,
        *scenes.run(1, 1.0, scenes.experiment("naive"), title="Naive", verdict=scenes.verdict("wrong", "3 cells differ")),
    ]
    app = replay_of(told)
    app.look = Appearance(presenter=True)
    async with app.run_test(size=(120, 40)) as pilot:
        for _ in range(3):
            await pilot.pause()
        assert all(digits.has_class("-doubtful") for digits in app.screen.query(Digits) if digits.value)
        assert "not to be trusted: WRONG" in text(app)
