"""The race: who wins in words, the figures of a moment, and the screen from its beginning to its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import scenes
from apps import replay_at_end, screen_of
from msgspec.structs import replace
from pressing import NARROW, SIZES, keyed, opened, press
from recorded import medians, milliseconds
from textual.pilot import Pilot
from textual.widgets import Digits

from fwtui.analysis.compare import ComparedRun, compare
from fwtui.analysis.race import SECONDS, Course, RacePosition
from fwtui.sessions.library import load_model
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.compare import race
from fwtui.tui.compare.race import Ending, RaceScreen, clock, ending

SESSION = Path(__file__).resolve().parents[1] / "recorded" / "h200-n4096-naive-blocked.fwt.jsonl.gz"
TIMES = medians(SESSION)
RATIO = f"{TIMES[3] / TIMES[8]:.2f}x"
SLOWED = f"{SECONDS / TIMES[3]:.1f}x slower"
WINS = f"Katz-Kider (run 8) wins: {milliseconds(TIMES[8])} against {milliseconds(TIMES[3])}, {RATIO} as fast."


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time as the race sees it: its last element."""
    told = [100.0]
    monkeypatch.setattr(race, "monotonic", lambda: told[-1])
    return told


async def after(pilot: Pilot[None], now: list[float], seconds: float) -> str:
    """The screen so many seconds later."""
    assert isinstance(pilot.app.screen, RaceScreen)
    now.append(now[-1] + seconds)
    pilot.app.screen.advance()
    return await keyed(pilot)


def large(pilot: Pilot[None]) -> list[str]:
    return [digits.value for digits in pilot.app.screen.query(Digits)]


def ended(one: Run, other: Run, model: Model) -> Ending:
    entrant, baseline = ComparedRun(model, one), ComparedRun(model, other)
    return ending(baseline, entrant, compare(entrant, baseline))


def test_the_end_says_who_won_only_where_that_is_known() -> None:
    model, _ = load_model(SESSION)
    naive, blocked = model.runs[3], model.runs[8]
    for won, place in ((ended(blocked, naive, model), 1), (ended(naive, blocked, model), 0)):
        assert won.words.startswith(f"{WINS} Why: ") and won[1:] == (place, RATIO, True)
    again = ended(replace(blocked, id=9), blocked, model)
    assert again.words.startswith("A draw: time ") and again.winner is None
    few = ended(replace(blocked, samples=blocked.samples[:1]), model.runs[7], model)
    assert few.words.startswith("Katz-Kider (run 8) is first: ") and "That is unclear: " in few.words
    assert (few.winner, few.sure) == (1, False)
    smaller = ended(replace(blocked, n=1024), naive, model)
    assert smaller == Ending("Nobody has won: n = 1024 is not the same work as n = 4096; rates can be compared, times cannot.")
    wrong = ended(replace(blocked, verdict=scenes.verdict("wrong")), naive, model)
    assert wrong == Ending("Nobody has won: run 8 is wrong, so its time does not count.")


@pytest.mark.parametrize(
    ("total", "seconds", "shown"),
    [
        (0.0314, 0.0099, "9.9 ms"),
        (0.255, 0.0314, "31 ms"),
        (0.0314, 0.0314, "31.4 ms"),
        (150.0, 30.0, "30.0 s"),
        (2.5, 0.0, "0.00 s"),
    ],
)
def test_the_time_so_far_has_the_unit_and_the_decimals_of_the_whole(total: float, seconds: float, shown: str) -> None:
    assert clock(RacePosition(0.5, seconds), Course((0.0, 1.0), (0.0, total), 0, False)) == shown


async def test_a_race_of_the_compare_screen_by_time_and_by_round(now: list[float]) -> None:
    app = replay_at_end(SESSION, "compare")
    async with opened(app) as pilot:
        shown = await keyed(pilot, "g")
        assert "by time: both at the same moment" in shown and SLOWED in shown and "run 8 against run 3" in shown
        shown = await after(pilot, now, 0.5)  # a sixteenth of the race: half of the faster one
        assert large(pilot) == ["16 ms", "6 %", "15.9 ms", "51 %"] and "(run 3) was not timed round by round" in shown
        assert "round 257 of 4096" in shown and "round 65 of 128" in shown
        await press(pilot, "space")
        assert await after(pilot, now, 3.0) == await keyed(pilot) and large(pilot)[1] == "6 %", "it stands still"
        shown = await keyed(pilot, "v")
        assert "by round: both at the same point" in shown and large(pilot)[1] == large(pilot)[3] == "6 %"
        assert "shown in 4 s" in await keyed(pilot, "v", "greater_than_sign")
        assert "shown in 16 s" in await keyed(pilot, "less_than_sign", "less_than_sign")
        await press(pilot, "space")
        shown = await after(pilot, now, 60.0)
        assert "over" in shown and WINS in shown and shown.count("finished") == 2
        assert large(pilot) == [milliseconds(TIMES[3]), "100 %", milliseconds(TIMES[8]), RATIO]
        why = screen_of(app, RaceScreen).ending.words
        for size in (NARROW, (60, 16)):
            await pilot.resize_terminal(*size)
            shown = " ".join(" ".join(row.strip("│ ") for row in (await keyed(pilot)).splitlines()).split())
            assert "Why: " in why and why in shown, "all of it"
        await press(pilot, "space")
        assert large(pilot)[1] == "0%", "it begins anew, and on this screen without a space"
        await press(pilot, "escape")
        assert not isinstance(app.screen, RaceScreen)


async def test_a_run_of_an_unknown_kernel_has_a_bar_in_place_of_a_film(
    now: list[float], replay_of: Callable[..., FwtuiApp]
) -> None:
    told = [event for event in scenes.gpu_session() if getattr(event, "run", None) != 3]
    odd = [replace(e, experiment=replace(e.experiment, kernel="gone")) if isinstance(e, events.RunStarted) else e for e in told]
    async with opened(replay_of(odd), "3", "g", size=(80, 24)) as pilot:
        shown = await after(pilot, now, 1.0)
        assert "written" not in shown and "━" in shown and large(pilot)[1] == "12 %"


@pytest.mark.parametrize("size", SIZES)
def test_picture(now: list[float], snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    async def story(pilot: Pilot[None]) -> None:
        await press(pilot, "g")
        await after(pilot, now, 0.5)

    assert snap_compare(replay_at_end(SESSION, "compare"), terminal_size=size, run_before=story)
