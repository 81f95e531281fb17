"""Sealed sessions whose values are absurd: real ones in which some values, or all numbers, are replaced and lines moved.

Every line has a valid checksum, so that what the decoder lets through reaches the model, every screen and every command.
A case that fell is kept as an @example.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import scenes
from attacking import attack
from hypothesis import strategies as st
from processes import DATA
from test_hostile_sessions import DOORS, EVIL, OBEYED, Knock, knock  # noqa: F401  # pyright: ignore[reportMissingImports]

from fwtui.sessions.folders import SUFFIX
from fwtui.stream import codec, events
from fwtui.tui import render
from fwtui.tui.frame.places import place_names

Change = tuple[int, int, Any]  # which line, which of its values, and what it becomes
Move = tuple[int, int]  # a line, and where else it comes too

GOLDEN = (DATA / "golden-v1.fwt.jsonl").read_bytes().splitlines(keepends=True)


def few(told: Sequence[events.Event]) -> list[bytes]:
    """Return the lines of a session, with every tenth telemetry sample."""
    readings = [event for event in told if isinstance(event, events.Telemetry)]
    return [codec.encode(event) for event in told if not isinstance(event, events.Telemetry) or event in readings[::10]]


SESSIONS = {
    "golden": GOLDEN,
    "cpu": few(scenes.cpu_session()),
    "gpu": few(scenes.gpu_session()),
    "sampled": few(scenes.sampled_session(short_scoreboard=60, selected=40)),
    "ranks": few(scenes.ranked_session(2)),
    "several gpus": few(scenes.several_gpus(2)),
}
NUMBERS = (0, 1, -1, 2, 0.5, 1.5, 5e-324, 1e-30, 1e-9, 1e9, 1e15, -1e15, 1e300, 511, 9999, 2**31, 2**53, 2**60)
WORDS = (*EVIL, "", " ", "cuda", "cpu", "simulator", "done", "failed", "cancelled", "wrong", "verified", "clean", "wait")
VALUES = (*NUMBERS, *WORDS, None, True, (), (0,))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the holder and the key of each scalar and of each empty container."""
    for key, inner in [*(value.items() if isinstance(value, dict) else enumerate(value))]:
        if isinstance(inner, (dict, list)) and inner:
            yield from places(inner)
        elif key not in ("kind", "crc"):
            yield value, key


def absurd(session: str, changes: Sequence[Change], moves: Sequence[Move], number: float | None = None) -> bytes:
    """Return the session with these changes, and with the number in every field that allows it; the header stays."""
    told = [json.loads(line) for line in SESSIONS[session]]
    for line in told:
        line.pop("crc")
    for line in () if number is None else told[1:]:
        for holder, key in places(line):
            before = holder[key]
            if type(before) in (int, float) and key not in ("t", "run", "since"):
                holder[key] = type(before)(number)
                try:
                    codec.decode(codec.seal(json.dumps(line).encode())[:-1])
                except codec.Corrupt:  # the line would be dropped
                    holder[key] = before
    for at, which, value in changes:
        there = [*places(told[1 + at % (len(told) - 1)])]
        holder, key = there[which % len(there)]
        holder[key] = value
    lines = [codec.seal(json.dumps(line).encode()) for line in told]
    for at, to in moves:
        lines.insert(1 + to % len(lines), lines[1 + at % (len(lines) - 1)])
    return b"".join(lines)


CHANGES = st.lists(st.tuples(st.integers(1, 400), st.integers(0, 60), st.sampled_from(VALUES)), min_size=1, max_size=40)
MOVES = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=8)
CASES = {"session": st.sampled_from([*SESSIONS]), "changes": CHANGES, "moves": MOVES}
SHOWN = {"place": st.sampled_from(place_names()), "size": st.sampled_from([(60, 16), (80, 24), (120, 40), (200, 60)])}


def shows(folder: Path, place: str, size: tuple[int, int], content: bytes) -> str:
    path, out = folder / f"absurd{SUFFIX}", folder / "out.txt"
    path.write_bytes(content)
    render(path, None, size, out, place)
    text = out.read_text(encoding="utf-8")
    assert text.strip() and not OBEYED.search(text)
    return text


def at_a_door(knock: Knock, tmp_path: Path, door: str, session: str, changes: Any, moves: Any) -> None:  # noqa: F811
    path = tmp_path / f"absurd{SUFFIX}"
    path.write_bytes(absurd(session, changes, moves))
    knock(door, path)


AT_DOORS = {"door": st.sampled_from([*DOORS]), **CASES}
test_every_command = attack(100, **AT_DOORS)(at_a_door)
test_every_command_in_many_cases = pytest.mark.slow(attack(10_000, **AT_DOORS)(at_a_door))


def on_a_screen(tmp_path: Path, place: str, size: tuple[int, int], session: str, changes: Any, moves: Any) -> None:
    shows(tmp_path, place, size, absurd(session, changes, moves))


test_every_screen = attack(3, **SHOWN, **CASES)(on_a_screen)
test_every_screen_in_many_cases = pytest.mark.slow(attack(1500, **SHOWN, **CASES)(on_a_screen))


QUICK = {(2**60, "run"), (2**60, "telemetry"), (2**60, "explain"), (5e-324, "run"), (5e-324, "explain")}


@pytest.mark.parametrize(
    ("number", "place"),
    [
        pytest.param(number, place, marks=() if (number, place) in QUICK else pytest.mark.slow)
        for number in NUMBERS
        for place in place_names()
    ],
)
def test_every_number_is_the_same(tmp_path: Path, number: float, place: str) -> None:
    text = shows(tmp_path, place, (120, 40), absurd("sampled", (), (), number))
    assert not re.search(r"\bnan\b|\binf\b", text)
