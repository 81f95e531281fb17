"""Playback of a session: the lines that are due, and the targets of jumps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_lines import HEADER, done, notice, started, telemetry

from fwtui.sessions.player import SPEEDS, Player
from fwtui.stream import codec


def session_lines() -> list[codec.Line]:
    """Return a header, run 1 at 1 s, a time that steps back, telemetry, and run 2 from 10 s to 12 s."""
    first = [started(1.0, 1), notice(0.9), telemetry(2.0), telemetry(6.0)]
    return [codec.as_line(HEADER), *first, started(10.0, 2), telemetry(11.0), done(12.0, 2)]


def test_lines_come_when_they_are_due_in_file_order() -> None:
    player = Player(session_lines())
    assert player.tick(100.0) == []
    player.play()
    assert player.tick(100.0) == player.lines[:1]
    assert player.tick(100.5) == []
    assert player.tick(101.25) == player.lines[1:3]
    assert player.tick(99.0) == []
    assert (player.position, player.index) == (1.25, 3)
    assert player.tick(109.0) == player.lines[3:7]
    assert player.tick(200.0) == player.lines[7:]
    assert (player.position, player.playing, player.at_end) == (12.0, False, True)
    assert player.tick(201.0) == []


@given(st.lists(st.floats(0, 3), max_size=40), st.sampled_from(SPEEDS), st.none() | st.floats(0.1, 5))
@settings(max_examples=100)
def test_every_line_comes_once_however_it_is_ticked(waits: list[float], speed: float, gap: float | None) -> None:
    player = Player(session_lines(), max_gap=gap)
    player.speed = speed
    player.play()
    now = 0.0
    seen: list[codec.Line] = []
    for wait in [*waits, 0.0, 100.0]:
        now += wait
        seen += player.tick(now)
        assert player.index == len(seen)
    assert seen == player.lines


def test_speed_and_pause() -> None:
    player = Player(session_lines())
    player.play()
    player.tick(0.0)
    player.hurry(1)
    player.hurry(1)
    player.tick(1.0)
    assert (player.speed, player.position) == (4.0, 4.0)
    player.pause()
    assert player.tick(2.0) == []
    player.play()
    player.hurry(-1)
    player.tick(50.0)
    player.tick(51.0)
    assert player.position == 6.0
    for way, last in ((1, 64.0), (-1, 0.25)):
        for _ in range(10):
            player.hurry(way)
        assert player.speed == last


def test_seeking_and_playing_at_the_end_begin_again() -> None:
    player = Player(session_lines())
    for seconds, position, index in ((6.0, 6.0, 5), (0.5, 0.5, 1), (-3, 0.0, 1), (99, 12.0, 8), (11.99, 11.99, 7)):
        player.seek(seconds)
        assert (player.position, player.index) == (position, index)
    assert player.index_at(1.0) == 3
    player.seek(12.0)
    player.play()
    assert (player.position, player.index, player.playing) == (0.0, 1, True)


def test_steps_pass_over_telemetry_and_playing_goes_on_after_them() -> None:
    player = Player(session_lines())
    player.play()
    places = []
    for _ in range(7):
        player.step(1)
        places.append(player.index)
    assert places == [1, 2, 3, 6, 8, 8, 8]
    assert not player.playing and player.position == 12.0
    for expected in (6, 3, 2, 1, 1):
        player.step(-1)
        assert player.index == expected
    player.seek(6.0)
    player.step(-1)
    assert player.index == 2
    player.step(99)
    assert player.index == 8


def test_gaps_are_squeezed_with_their_telemetry_and_a_long_run_is_not() -> None:
    first, second = [started(1.0, 1), done(31.0, 1)], [started(100.0, 2), done(130.0, 2)]
    told = [codec.as_line(HEADER), *first, telemetry(40.0), notice(91.0), *second]
    player = Player(told, max_gap=1.0, between_runs=True)
    assert [player.due(index) for index in range(len(told))] == pytest.approx([0.0, 1.0, 31.0, 31.15, 32.0, 33.0, 63.0])
    assert Player(told).duration == 130.0
    player = Player(session_lines(), max_gap=1.8)
    assert player.duration == pytest.approx(1.0 + 1.8 + 1.8)
    positions = []
    for index in range(1, 9):
        low = next(x / 100 for x in range(500) if player.index_at(x / 100) >= index)
        positions.append(low)
    assert positions == pytest.approx([0.0, 1.0, 1.0, 1.2, 2.0, 2.8, 3.7, 4.6], abs=0.011)
    assert Player(session_lines(), max_gap=100.0).duration == 12.0
