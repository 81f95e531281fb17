"""Session files that are cut, damaged, hostile or unwritable: one sentence, no wrong number, no traceback."""

import errno
import os
import subprocess
import sys
import textwrap
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import header
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import ROOT
from recorded_sessions import GOLDEN

from fwtui.common import units
from fwtui.common.errors import Corrupt, Refused
from fwtui.sessions.reader import LoadedSession, SessionFile, load, open_session
from fwtui.sessions.recorder import Recorder
from fwtui.stream import codec, events

WHOLE = GOLDEN.read_bytes()
LINES = WHOLE.splitlines(keepends=True)
RAWS = [line[:-1] for line in LINES]
HEADER = header()


def load_bytes(folder: Path, content: bytes) -> LoadedSession | None:
    """Return the session with these bytes, or None if its beginning is refused."""
    path = folder / "s"
    path.write_bytes(content)
    try:
        return load(path)
    except Refused as refusal:
        assert "is not a fwtui session" in str(refusal) or "cannot be unpacked" in str(refusal)
        return None


def test_every_truncation_gives_exactly_the_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(WHOLE)
    for length in range(len(WHOLE) - 1, -1, -1):
        os.truncate(path, length)
        whole_lines = WHOLE[:length].count(b"\n")
        if not whole_lines:
            with pytest.raises(Refused, match="is not a fwtui session"):
                load(path)
            continue
        loaded = load(path)
        assert [line.raw for line in loaded.lines] == RAWS[:whole_lines]
        assert loaded.torn == (WHOLE[length - 1 : length] != b"\n")
        assert not loaded.closed and not loaded.complete and not loaded.damaged


@pytest.mark.parametrize("flip", [0x01, *(pytest.param(flip, marks=pytest.mark.slow) for flip in (0x20, 0xFF))])
def test_every_single_byte_flip_is_noticed(tmp_path: Path, flip: int) -> None:
    (tmp_path / "s").write_bytes(WHOLE)
    with open(tmp_path / "s", "r+b", buffering=0) as file:
        for place in range(len(WHOLE)):
            os.pwrite(file.fileno(), bytes([WHOLE[place] ^ flip]), place)
            try:
                loaded = load(tmp_path / "s")
            except Refused as refusal:
                assert place < len(LINES[0]) and "is not a fwtui session" in str(refusal)
            else:
                assert place >= len(LINES[0])
                assert not loaded.closed and (loaded.damaged or loaded.torn)
                # what is left is what was there, and at most the two lines around the change are gone
                rest = iter(RAWS)
                assert all(line.raw in rest for line in loaded.lines)
                assert len(loaded.lines) >= len(RAWS) - 2
            os.pwrite(file.fileno(), WHOLE[place : place + 1], place)


PLACE = st.integers(0, len(WHOLE))
PUT = st.binary(max_size=40) | st.tuples(PLACE, st.integers(1, 700)).map(lambda piece: WHOLE[piece[0] : sum(piece)])


@given(st.lists(st.tuples(PLACE, PLACE, PUT), max_size=4))
@settings(max_examples=150)
def test_splices_never_make_a_new_line(tmp_path_factory: pytest.TempPathFactory, cuts: list[tuple[int, int, bytes]]) -> None:
    content = WHOLE
    for start, end, put in cuts:
        content = content[: min(start, end)] + put + content[max(start, end) :]
    loaded = load_bytes(tmp_path_factory.mktemp("splice"), content)
    if loaded is not None:
        assert {line.raw for line in loaded.lines} <= set(RAWS)
        assert loaded.closed == (content == WHOLE)


@pytest.mark.parametrize("size", [256 * 2**20, 256 * 2**20 + 1, 10 * 2**30])
def test_huge_sparse_files_are_refused_in_little_memory(tmp_path: Path, size: int) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, size)
    tracemalloc.start()
    with pytest.raises(
        Refused, match=rf"{size} bytes, more than the limit of" if size > 256 * 2**20 else "is not a fwtui session"
    ):
        load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_a_huge_line_deep_json_and_hostile_numbers_are_counted_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.write_bytes(LINES[0])
    os.truncate(path, 50 * 2**20)
    with open(path, "ab") as file:
        file.write(b"\n" + LINES[1])
    tracemalloc.start()
    loaded = load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [line.raw for line in loaded.lines] == RAWS[:2]
    assert (loaded.damaged, loaded.torn, loaded.closed) == (1, False, False)
    assert peak < 2**21
    bodies = [
        b'{"kind":"notice","t":1,"text":"a","x":' + b"[" * 60_000,
        b'{"kind":"later","t":1,"x":' + b'{"a":' * 12_000,
        b'{"kind":"notice","t":1e999,"text":"a"}',
        b'{"kind":"notice","t":-1,"text":"a"}',
        b'{"kind":"notice","t":NaN,"text":"a"}',
    ]
    loaded = load_bytes(tmp_path, LINES[0] + b"".join(map(codec.seal, bodies)) + LINES[1])
    assert loaded is not None
    assert loaded.damaged == len(bodies)
    assert [line.raw for line in loaded.lines] == RAWS[:2]


def test_a_refusal_is_one_sentence_and_leaves_no_descriptor_open(tmp_path: Path) -> None:
    file, folder = (os.open(path, os.O_RDONLY) for path in (GOLDEN, tmp_path))
    session = SessionFile("golden", file)
    os.dup2(folder, file)
    with pytest.raises(Refused, match=r"golden cannot be read: is a directory; copy it"):
        list(session.lines())
    os.close(file)
    os.close(folder)
    (tmp_path / "no").write_text("no session\n")
    probe = os.open(tmp_path / "no", os.O_RDONLY)
    os.close(probe)
    for _ in range(3):
        for path in (tmp_path, tmp_path / "no", Path("/dev/zero")):
            with pytest.raises(Refused), open_session(path):
                pass
    again = os.open(tmp_path / "no", os.O_RDONLY)
    os.close(again)
    assert again == probe


def failing(number: int) -> Callable[..., int]:
    """Return a replacement for a function of `os` that raises this error."""

    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that replaces functions of `os` for a recorder."""

    def behaves(**functions: Callable[..., int]) -> None:
        for name, function in functions.items():
            monkeypatch.setattr(f"fwtui.sessions.recorder.os.{name}", function)

    return behaves


class TestFullDisk:
    """`/dev/full` refuses every byte, a file size limit takes a part of the last line first."""

    def notice(self, text: str) -> codec.Line:
        return codec.as_line(events.Notice(t=1, text=text))

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
    def test_a_full_device_stops_the_recording_and_raises_nothing(self) -> None:
        session = Recorder(Path("/dev/full"), os.open("/dev/full", os.O_WRONLY), HEADER)
        assert session.failure == "recording stopped: no space left on device, 0 events saved in full"
        session.write(self.notice("more"))
        session.close()
        assert (session.events, session.bytes) == (0, 0)

    def test_a_disk_or_a_folder_that_takes_nothing_leaves_no_file(self, tmp_path: Path, disk: Callable[..., None]) -> None:
        disk(write=failing(errno.ENOSPC))
        with pytest.raises(Refused, match=r"no space left on device.*; free some space or choose"):
            Recorder.at(None, HEADER, folder=tmp_path, slug="s")
        assert list(tmp_path.iterdir()) == []
        (tmp_path / "file").write_text("")
        with pytest.raises(Refused, match=r"file/sub cannot be created: not a directory; choose another one"):
            Recorder.at(None, HEADER, folder=tmp_path / "file" / "sub", slug="s")
        with pytest.raises(Refused, match=r"absent/s cannot be recorded to: no such file or directory; choose another path"):
            Recorder.at(tmp_path / "absent" / "s", HEADER)
        disk(open=failing(errno.EACCES))
        with pytest.raises(Refused, match="cannot be recorded to: permission denied; choose another one"):
            Recorder.at(None, HEADER, folder=tmp_path, slug="s")

    def test_short_writes_are_finished_or_taken_back(
        self, tmp_path: Path, disk: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write = os.write
        session = Recorder.at(tmp_path / "s", HEADER)
        disk(write=lambda fd, data: write(fd, data[:7]))
        session.write(self.notice("in pieces"))
        taken = iter([10])
        disk(write=lambda fd, data: write(fd, data[: next(taken, 0)]))
        session.write(self.notice("half of this"))
        assert session.failure == "recording stopped: no space left on device, 2 events saved in s"
        monkeypatch.undo()
        session.write(self.notice("there is room again, but a gap would lie"))
        session.close()
        loaded = load(session.path)
        assert [getattr(line.event, "text", None) for line in loaded.lines] == [None, "in pieces"]
        assert not loaded.torn and not loaded.damaged and not loaded.closed
        assert session.path.stat().st_size == session.bytes

    def test_a_deleted_or_unsynced_recording_is_reported_as_stopped(self, tmp_path: Path, disk: Callable[..., None]) -> None:
        session = Recorder.at(tmp_path / "s", HEADER)
        session.path.unlink()
        session.close()
        assert session.failure == "recording stopped: s was deleted"
        session = Recorder.at(tmp_path / "s", HEADER)
        disk(fsync=failing(errno.EIO))
        session.write(codec.as_line(events.RunDone(t=1, run=1, outcome="done")))
        assert session.failure == "recording stopped: input/output error, 2 events saved in s"
        session.close()

    @pytest.mark.parametrize("limit", [1000, *(pytest.param(limit, marks=pytest.mark.slow) for limit in (200, 1024, 5000))])
    def test_a_file_size_limit_keeps_the_whole_lines(self, tmp_path: Path, limit: int) -> None:
        program = textwrap.dedent("""
            import resource, sys
            from pathlib import Path
            from fwtui.stream import codec, events
            from fwtui.sessions.recorder import Recorder
            limit = int(sys.argv[2])
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            session = Recorder.at(Path(sys.argv[1]), events.Header(t=0, program="p", created="c"))
            for count in range(200):
                session.write(codec.as_line(events.Notice(t=count, text=f"event {count}")))
            session.close()
            print(session.events, session.failure)
        """)
        path = tmp_path / "s"
        command = [sys.executable, "-B", "-c", program, str(path), str(limit)]
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
        kept, _, failure = answer.stdout.strip().partition(" ")
        assert failure == f"recording stopped: file too large, {units.counted(int(kept), 'event')} saved in s"
        loaded = load(path)
        assert len(loaded.lines) == int(kept) >= 1
        assert [getattr(line.event, "text", "") for line in loaded.lines[1:]] == [f"event {i}" for i in range(int(kept) - 1)]
        assert not loaded.torn and not loaded.damaged and not loaded.complete
        assert limit - 200 < path.stat().st_size <= limit


def test_corrupt_items_carry_their_reason() -> None:
    items = list(codec.decode_lines([LINES[0] + b"junk\n" + b"x" * 70_000 + b"\n" + LINES[1]]))
    assert [type(item) for item in items] == [codec.Line, Corrupt, Corrupt, codec.Line]
    assert [str(item) for item in items if isinstance(item, Corrupt)] == [
        "checksum does not match",
        "a line of more than 65536 bytes",
    ]
