"""Markers added to copies of sessions: nothing else changes and nothing is lost."""

import errno
import os
import tracemalloc
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from session_lines import HEADER, done, notice, planned, record, started, telemetry, verdict

from fwtui.__main__ import main
from fwtui.common.errors import Refused
from fwtui.sessions.markers import Mark, mark
from fwtui.sessions.reader import load
from fwtui.stream import codec, events

LATER = codec.seal(b'{"kind":"heatmap","t":2.5,"run":1,"cells":[1,2,{"a":18446744073709551615}]}')[:-1]
LATER_LINE = codec.Line(LATER, codec.decode(LATER))


def marker(t: float, text: str) -> codec.Line:
    return codec.as_line(events.Marker(t=t, text=text))


def two_runs(path: Path, **more: Any) -> Path:
    """Run 1 from 1 to 3 s, run 2 from 5 to 7 s, ten readings a second throughout, an event of a later kind at 2.5 s."""
    first = [started(1, 1), planned(1.1, 1, 64), LATER_LINE, done(3, 1)]
    second = [started(5, 2, "blocked"), planned(5.1, 2, 128), verdict(6, 2), done(7, 2, 0.25)]
    others = [codec.as_line(events.Device(t=0.1, name="A GPU")), marker(4, "between"), notice(7.5, "after")]
    readings = [telemetry(tick / 10) for tick in range(80)]
    return record(path, *sorted([*first, *second, *others, *readings], key=lambda line: line.t), **more)


MARKED = [(Mark(seconds=1.0), events.Marker(t=0.0, text="here"))]


class TestLongSessions:
    """Sessions are copied line by line, so that memory does not grow with the file."""

    @pytest.mark.parametrize(
        "words",
        [("mark", "IN", "--at", "1s", "here", "--at", "run 9 end", "there", "-o", "OUT"), ("mark", "IN", "--to", "OUT")],
        ids=lambda words: " ".join(words[:3]),
    )
    def test_no_tool_loads_a_session_into_memory(self, tmp_path: Path, words: tuple[str, ...]) -> None:
        lines = [codec.encode(HEADER)]
        for run in range(1, 10):
            lines += [started(run, run).raw + b"\n", marker(run, "here").raw + b"\n"]
            lines += [notice(run, "words " * 300).raw + b"\n"] * 200
            lines += [done(run, run).raw + b"\n"]
        whole = b"".join([*lines, codec.encode(events.End(t=9, reason="closed", events=len(lines)))])
        (tmp_path / "IN").write_bytes(whole)
        import_module(f"fwtui.commands.{words[0]}")  # compiling it takes memory as well
        tracemalloc.start()
        code = main([str(tmp_path / word) if word.isupper() else word for word in words])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert code == 0 and peak < len(whole) / 3

    def test_a_disk_that_fills_up_leaves_no_copy(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        two_runs(tmp_path / "whole")
        monkeypatch.setattr(os, "fsync", full)
        said = "copy cannot be recorded to: no space left on device; free some space or choose another place"
        with pytest.raises(Refused, match=said):
            mark(tmp_path / "whole", MARKED, tmp_path / "copy")
        assert not (tmp_path / "copy").exists()

    def test_copied_lines_do_not_change(self, tmp_path: Path) -> None:
        later = codec.seal(codec.encode(HEADER)[: -len(',"crc":"00000000"}\n')] + b',"mood":"fine","minor":9}')
        odd = codec.seal(b'{"kind":"later","t":1,"x":1e999}')
        (tmp_path / "s").write_bytes(later + notice(1).raw + b"\n" + odd)
        mark(tmp_path / "s", MARKED, tmp_path / "out")
        assert (tmp_path / "out").read_bytes().splitlines()[:3] == [later[:-1], notice(1).raw, odd[:-1]]

    def test_a_lossy_source_never_becomes_a_whole_session(self, tmp_path: Path) -> None:
        for name, change in (
            ("no-end", lambda whole: whole[:-1]),
            ("damaged", lambda whole: [*whole[:5], b"junk\n", *whole[5:]]),
            ("torn", lambda whole: [*whole[:-1], whole[-1][:-9]]),
        ):
            source = tmp_path / name
            source.write_bytes(b"".join(change(two_runs(tmp_path / f"{name}-whole").read_bytes().splitlines(keepends=True))))
            complete = mark(source, MARKED, tmp_path / f"{name}-out")
            loaded = load(tmp_path / f"{name}-out")
            assert not complete and not loaded.complete
            assert loaded.closed and loaded.dropped >= 1 and loaded.end and loaded.end.reason == "incomplete source"
