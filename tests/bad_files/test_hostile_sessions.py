"""Hostile sessions at every entry of the program: read as far as possible or refused in one sentence, never executed.

The default run takes samples of cuts and changed bytes; with `-m slow` the doors together take every one (and the reader
alone takes them all in test_damaged_files).
"""

import json
import os
import random
import re
import runpy
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import inspect
from pretending import Pretend
from processes import DATA
from recorded_sessions import GOLDEN

from fwtui.__main__ import main
from fwtui.sessions.folders import SUFFIX
from fwtui.sessions.reader import load
from fwtui.stream import codec, events
from fwtui.tui import filmed, render
from fwtui.tui.export import KINDS, encode
from fwtui.tui.export.film import FilmCut

SOME = runpy.run_path(str(DATA / "strategies.py"))
WHOLE = GOLDEN.read_bytes()
LINES = WHOLE.splitlines(keepends=True)
# C0 but tab and newline, DEL, C1, text direction: what no output may hold
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
EVIL = (
    *("\x1b[2J\x1b]0;owned\x07", "\u202egnp.exe", "a\x00b\x9b31m", "../../etc/passwd", "=cmd|' /C calc'!A0"),
    "[@click=app.quit]x[/]",
    *("|`<script>", "9" * 400, "{0} %s $x", "x" * 1900, "\n\r\u2028"),
)
EXTREME = (0, 1, -1, 2**31, 2**60, 2**60 + 1, 5e-324, 1e15, 1e300, 0.5, True, None)

Knock = Callable[[str, Path], tuple[int, str]]
Door = Callable[[Path, Path], list[str]]
DOORS: dict[str, Door] = {
    "check": lambda path, out: ["check", str(path)],
    "list": lambda path, out: ["list"],
    "replay --json": lambda path, out: ["replay", "--json", str(path)],
    "replay --table": lambda path, out: ["replay", "--table", str(path)],
    "export csv": lambda path, out: ["export", str(path)],
    "export md": lambda path, out: ["export", str(path), "--format", "md"],
    "export telemetry": lambda path, out: ["export", str(path), "telemetry", "-o", str(out / "t.jsonl")],
    "export trace": lambda path, out: ["export", str(path), "-o", str(out / "t.perfetto.json")],
    "export phases": lambda path, out: ["export", str(path), "phases", "--format", "md"],
    "export rounds": lambda path, out: ["export", str(path), "rounds"],
    "export counters": lambda path, out: ["export", str(path), "counters", "--format", "jsonl"],
    "mark": lambda path, out: ["mark", str(path), "--at", "end 1", "@phases ?phase", "-o", str(out / "marked")],
    "reproduce --from": lambda path, out: ["reproduce", "cs542200", "--from", str(path)],
    "compare": lambda path, out: ["compare", str(path), str(path), "--phases"],
}


@pytest.fixture
def knock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretend: Pretend, capfd: pytest.CaptureFixture[str]) -> Knock:
    """Pass a file to one entry of the program, check all output and files, and return the exit code."""
    shelf, out = tmp_path / "data" / "fwtui" / "sessions", tmp_path / "out"
    shelf.mkdir(parents=True)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    pretend.shipped(shelf)
    monkeypatch.chdir(tmp_path)

    def bring(door: str, path: Path) -> tuple[int, str]:
        out.mkdir(exist_ok=True)
        for old in (*out.iterdir(), *shelf.iterdir()):
            old.unlink()
        if door == "list":
            (shelf / f"ladder{SUFFIX}").symlink_to(path)
        code = main(DOORS[door](path, out))
        said, words = capfd.readouterr()
        written = "".join(file.read_text(encoding="utf-8", errors="replace") for file in out.iterdir())
        for text in (said, words, written if door.startswith("export") else ""):
            found = OBEYED.search(text)
            assert not found, f"{door}: {text[max(0, found.start() - 40) : found.end() + 40]!r}"
        assert "Traceback" not in words
        assert code in (0, 1, 2), (door, code, words)
        assert words or said or code == 0
        if code == 2 and not (door == "check" and said):  # of a newer session its origin is told
            assert words.count("\n") == 1 and words.startswith("fwtui: ")
        return code, words

    return bring


def evil_lines() -> Iterator[bytes]:
    """Yield each string and number of each event kind, one at a time, with the worst value that the format can hold."""
    for kind in events.ALL:
        told = inspect.type_info(kind)
        whole = SOME["filled"](told)
        for path, leaf in SOME["leaves"](told, whole):
            for value in EVIL if isinstance(leaf, inspect.StrType) else EXTREME:
                changed = json.loads(json.dumps(whole))
                holder: Any = changed
                for step in path[:-1]:
                    holder = holder[step]
                holder[path[-1]] = value
                changed["kind"] = kind.__struct_config__.tag
                yield codec.seal(json.dumps(changed, ensure_ascii=random.Random(str(value)).random() < 0.5).encode())


@cache
def evil_session() -> bytes:
    """Return all hostile lines in one session; most belong to run 1, which has started."""
    header = {"kind": "header", "t": 0, "format": events.FORMAT, "version": 1, "minor": 0, "program": EVIL[0], "created": EVIL[1]}
    header |= {
        "title": f"ladder {EVIL[2]} {EVIL[5]} {EVIL[6]}",
        "machine": {"cpu": EVIL[0], "system": EVIL[1]},
        "versions": {EVIL[0]: EVIL[1]},
    }
    lines = [line for line in evil_lines() if b'"kind": "header"' not in line and b'"kind": "end"' not in line]
    return codec.seal(json.dumps(header).encode()) + b"".join(LINES[1:-1]) + b"".join(lines) + b"".join(LINES[2:-1])


def odd_files(folder: Path) -> dict[str, Path]:
    """Return files that are not regular, complete sessions of a reasonable size."""
    made: dict[str, Path] = {"absent": folder / "absent", "folder": folder, "zero": Path("/dev/zero")}
    os.mkfifo(folder / "fifo")
    (folder / "loop").symlink_to("loop")
    for name, content in {
        "empty": b"",
        "newline": b"\n",
        "header": LINES[0],
        "headers": LINES[0] * 50,
        "reversed": b"".join(LINES[::-1]),
        "after the end": WHOLE + WHOLE,
        "long first line": b"x" * 200_000,
        "long line": LINES[0] + b"y" * 200_000 + b"\n" + LINES[-1],
        "binary": LINES[0] + bytes(range(256)) * 40,
        "utf-16": WHOLE.decode().encode("utf-16"),
        "crlf": WHOLE.replace(b"\n", b"\r\n"),
        "newer": codec.encode(events.Header(t=0, program=EVIL[0], created=EVIL[1], title=f"ladder {EVIL[2]}", version=9)),
        "deep": LINES[0] + codec.seal(b'{"kind":"later","t":1,"x":' + b"[" * 30_000 + b"]" * 30_000 + b"}"),
        "deep runs": LINES[0] + codec.seal(b'{"kind":"later","t":1,"run":' + b'{"a":' * 9000 + b"1" + b"}" * 9000 + b"}"),
        "odd numbers": LINES[0]
        + b"".join(codec.seal(b'{"kind":"later","t":1,"run":%s}' % n) for n in (b"1e999", b"1" * 5000, b"-0.0")),
        "no run": LINES[0] + b"".join(LINES[5:]),
    }.items():
        (folder / name).write_bytes(content)
    (folder / "sparse").touch()
    os.truncate(folder / "sparse", 300 * 2**20)
    names = ("fifo", "loop", "sparse", *(p.name for p in folder.iterdir() if p.is_file() and not p.is_symlink()))
    return made | {name: folder / name for name in names}


@pytest.mark.parametrize("door", DOORS)
def test_invalid_sessions_are_refused_or_read_as_far_as_possible(door: str, knock: Knock, tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    for name, path in odd_files(folder).items():
        code, words = knock(door, path)
        if door != "list":
            assert code or "is incomplete" in words, (door, name)


@pytest.mark.parametrize("door", DOORS)
def test_everything_evil_at_once(door: str, knock: Knock, tmp_path: Path) -> None:
    path = tmp_path / f"evil{SUFFIX}"
    path.write_bytes(evil_session())
    knock(door, path)


def test_a_picture_of_everything_evil(tmp_path: Path) -> None:
    path, out = tmp_path / f"evil{SUFFIX}", tmp_path / "out.svg"
    path.write_bytes(evil_session())
    render(path, None, (120, 40), out)
    text = out.read_text(encoding="utf-8")
    assert text and not OBEYED.search(text) and "<script" not in text


def test_a_replay_of_everything_evil(tmp_path: Path) -> None:
    path = tmp_path / f"evil{SUFFIX}"
    path.write_bytes(evil_session())
    loaded = load(path)
    film = filmed(path, loaded, (80, 24), FilmCut(begin=loaded.duration))
    for suffix in KINDS:
        text = encode(film, suffix)[0].decode()
        assert not OBEYED.search(text)
        assert suffix == ".cast" or text.count("<script") == 2 * (suffix == ".html"), "the film, and what plays it"
