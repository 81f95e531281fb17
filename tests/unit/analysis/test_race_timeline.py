"""Timelines of a race: the position of each run at any time."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from recorded_sessions import SESSION

from fwtui.analysis.race_timeline import by_time, progress_curve
from fwtui.sessions.library import load_model
from fwtui.stream import events
from fwtui.stream.run import Run


@pytest.fixture(scope="module")
def recorded() -> Mapping[int, Run]:
    return load_model(SESSION)[0].runs


def rounds(*seconds: float, every: int = 1, each: int = 100) -> tuple[events.Round, ...]:
    return tuple(
        events.Round(t=0, run=1, index=i * every, first=i * every * each, seconds=(s / 2, s / 2)) for i, s in enumerate(seconds)
    )


def made(run: Run, told: tuple[events.Round, ...], relaxations: int, seconds: float) -> Run:
    assert run.done is not None
    done = events.RunDone(t=0, run=1, outcome="done", median=seconds, count=5)
    return replace(run, rounds=told, relaxations=relaxations, done=done)


def test_a_progress_curve_follows_all_or_sampled_rounds_and_ends_with_the_median_time(recorded: dict[int, Run]) -> None:
    found = progress_curve(made(recorded[8], rounds(1.0, 3.0), 200, 8.0))
    assert found is not None and found.sampled
    assert found.total == 8.0 and found.share_at(2.0) == pytest.approx(0.5)
    assert found.share_at(5.0) == pytest.approx(0.75)
    assert (found.share_at(-1), found.share_at(99)) == (0, 1)
    found = progress_curve(made(recorded[8], rounds(1.0, 2.0, every=4), 600, 10.0))  # 6 rounds: 4 as the first, 2 as the second
    assert found is not None
    assert found.share_at(5.0) == pytest.approx(4 / 6)
    found = progress_curve(made(recorded[8], (), 200, 8.0))
    assert found is not None and not found.sampled and found.share_at(2.0) == 0.25
    assert progress_curve(replace(recorded[8], done=None, samples=())) is None
    assert progress_curve(replace(recorded[8], state="cancelled")) is None


def test_recorded_runs_race_by_time(recorded: dict[int, Run]) -> None:
    naive, blocked = progress_curve(recorded[3]), progress_curve(recorded[8])
    assert naive is not None and blocked is not None and blocked.sampled
    assert not naive.sampled  # one phase has no rounds
    assert naive.total == recorded[3].seconds
    slow, quick = by_time([naive, blocked], 0.5)
    assert quick == (1.0, blocked.total) and slow.seconds == pytest.approx(naive.total / 2) and 0.4 < slow.share < 0.6
    assert by_time([], 0.5) == []


@given(st.lists(st.floats(0, 1e9), max_size=6), st.integers(0, 2**60), st.floats(0, 1e9), st.floats(-1, 2))
def test_any_file_races_to_its_end(recorded: dict[int, Run], seconds: list[float], total: int, median: float, at: float) -> None:
    found = progress_curve(made(recorded[8], rounds(*seconds), total, median))
    if found is None:
        assert not median
    else:
        assert 0 <= found.share_at(at * found.total) <= 1
