"""Sessions on pipes: they are read as written, at any cut, and nothing waits forever."""

import os
import select
import signal
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from builders import header
from recorded_sessions import GOLDEN
from session_lines import HEADER, notice

from fwtui.common.errors import Refused
from fwtui.common.signals import Stopped, hold_signals, on_signals, restore_handlers, stop
from fwtui.sessions.pipes import Inlet, Listener, Outlet, piped
from fwtui.sessions.reader import TooNew, load
from fwtui.stream import codec, events
from fwtui.stream.codec import Line

WHOLE = GOLDEN.read_bytes()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Yield the ends for reading and writing; a test may close either."""
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def inlet_of(content: bytes, tmp_path: Path) -> Inlet:
    """Return an inlet on a file with these bytes, which is quick to cut at every byte."""
    path = tmp_path / "bytes"
    path.write_bytes(content)
    return Inlet(os.open(path, os.O_RDONLY))


def all_of(inlet: Inlet) -> list[Line]:
    try:
        return list(inlet.lines())
    finally:
        os.close(inlet.descriptor)


def test_written_lines_are_read_and_the_stream_ends(pipe: tuple[int, int]) -> None:
    listener = Listener(Inlet(pipe[0]))
    outlet = Outlet(pipe[1], HEADER)
    lines = [notice(i, "y" * (i * 97 % 1900)) for i in range(300)]
    for line in lines:
        outlet.write(line)
    outlet.close()
    outlet.close("again")
    os.close(pipe[1])  # which whoever owns it has to do
    taken: list[Line] = []
    while not listener.over:
        taken += listener.take()
    assert taken[0].event == HEADER and taken[1:-1] == lines
    assert taken[-1].event == events.End(t=299.0, reason="closed", events=301)
    loaded = listener.inlet.snapshot(taken)
    assert loaded.complete and not listener.inlet.condition.missing and not listener.refusal


def test_a_reader_that_has_gone_is_noticed_before_anything_is_written(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1], HEADER)
    assert not outlet.unread
    os.close(pipe[0])
    assert outlet.unread and outlet.failure is None
    outlet.write(notice(1))
    outlet.close()
    assert outlet.unread and outlet.failure is not None and "broken pipe" in outlet.failure


def test_a_reader_that_takes_nothing_ends_the_stream_when_patience_does(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1], HEADER)
    outlet.patience = 0.01
    for _ in range(200):
        outlet.write(notice(1, "z" * 1900))
    assert outlet.failure is not None and "its reader does not respond" in outlet.failure
    assert not outlet.unread
    outlet.close()  # does not wait


@pytest.mark.parametrize("where", ["write", "poll"])
@pytest.mark.parametrize("at", range(1, 5))
def test_a_signal_at_any_part_of_a_line_leaves_whole_lines_and_a_true_count(pipe: tuple[int, int], where: str, at: int) -> None:
    calls, begun = 0, False

    def come() -> None:
        nonlocal calls
        calls += begun
        if calls == at:
            signal.raise_signal(signal.SIGTERM)

    def write(descriptor: int, data: memoryview) -> int:
        count = os.write(descriptor, data)
        if where == "write":
            come()
        return count

    def poll() -> select.poll:
        if where == "poll":
            come()
        return select.poll()

    outlet = Outlet(pipe[1], HEADER, write=write, poll=poll)
    begun = True
    long = notice(1, "z" * 4 * (select.PIPE_BUF - 50))
    with restore_handlers():
        on_signals(stop)
        with pytest.raises(Stopped) as stopped:
            outlet.write(long)  # of four parts
    assert stopped.value.signum == signal.SIGTERM
    outlet.write(notice(2))
    outlet.close("signal")
    os.close(pipe[1])
    inlet = Inlet(pipe[0])
    got = list(inlet.lines())
    assert got[1:-1] == [long, notice(2)]
    assert got[-1].event == events.End(t=2.0, reason="signal", events=3) and outlet.bytes > len(long.raw)
    assert not inlet.condition.missing


def test_signals_are_held_back_until_the_outermost_end() -> None:
    done = []
    with restore_handlers():
        on_signals(stop)
        with pytest.raises(Stopped) as stopped, hold_signals():
            with hold_signals():
                signal.raise_signal(signal.SIGTERM)
                signal.raise_signal(signal.SIGINT)
                done.append("inner")
            done.append("outer")
        with hold_signals():
            done.append("again")
    assert stopped.value.signum == signal.SIGTERM and done == ["inner", "outer", "again"]


def test_a_file_that_the_stream_is_appended_to_is_never_cut_back(tmp_path: Path) -> None:
    path = tmp_path / "all"
    path.write_bytes(b"before\n")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)

    def full(descriptor: int, data: memoryview) -> int:
        if b"notice" in bytes(data):
            raise OSError(28, "No space left on device")
        return os.write(descriptor, data)

    outlet = Outlet(descriptor, HEADER, write=full)
    outlet.write(notice(1))
    os.close(descriptor)
    assert outlet.failure is not None and "no space left on device" in outlet.failure
    assert path.read_bytes() == b"before\n" + codec.encode(HEADER)


def test_a_cut_stream_reads_like_the_file_that_is_cut_there(tmp_path: Path) -> None:
    whole_header = WHOLE.index(b"\n") + 1
    ends = [0, *(place + 1 for place, byte in enumerate(WHOLE) if byte == 10)]
    around = {end + near for end in ends for near in (-1, 0, 1)} | {sum(pair) // 2 for pair in pairwise(ends)}
    for length in sorted(around & set(range(len(WHOLE) + 1))):
        inlet = inlet_of(WHOLE[:length], tmp_path)
        if length < whole_header:
            with pytest.raises(Refused, match="standard input is not a fwtui session"):
                all_of(inlet)
            continue
        lines = all_of(inlet)
        loaded, expected = inlet.snapshot(lines), load(tmp_path / "bytes")
        assert loaded == expected
        assert bool(inlet.condition.missing) == (not expected.closed)


class Endless:
    """Replacement of os.read() for an endless stream."""

    def __init__(self, start: bytes, more: bytes) -> None:
        self._start, self._more, self.taken = start, more, 0

    def __call__(self, _: int, most: int) -> bytes:
        chunk, self._start = self._start or self._more * (most // len(self._more)), b""
        self.taken += len(chunk)
        return chunk


def test_an_endless_first_line_is_refused_soon() -> None:
    endless = Endless(b"", b"\0")
    with pytest.raises(Refused, match="is not a fwtui session"):
        list(Inlet(-1, read=endless).lines())
    assert endless.taken < 2**20


@pytest.mark.parametrize("more", [b"\0", b"junk\n", WHOLE.splitlines(keepends=True)[1]])
def test_an_endless_session_ends_at_a_files_limits(more: bytes) -> None:
    endless = Endless(WHOLE.splitlines(keepends=True)[0], more)
    inlet = Inlet(-1, most_bytes=2**20, most_lines=3000, read=endless)
    seen = []
    with pytest.raises(
        Refused, match=r"standard input has more than [\d,]+ (bytes|lines), the limit for (its size|a session); record less"
    ):
        seen.extend(inlet.lines())
    assert endless.taken < 2**21 and (len(seen) == 3000 or more in (b"\0", b"junk\n"))


def test_a_listener_keeps_what_came_before_a_refusal() -> None:
    listener = Listener(Inlet(-1, most_lines=4, read=Endless(b"", WHOLE)))
    taken: list[Line] = []
    while not listener.over:
        taken += listener.take()
    assert len(taken) == 4 and "more than 4 lines" in listener.refusal


def test_a_pipe_without_a_session_is_refused(tmp_path: Path) -> None:
    newer = codec.encode(header(version=2))
    with pytest.raises(TooNew, match="standard input has format version 2"):
        all_of(inlet_of(newer + WHOLE, tmp_path))
    master, terminal = os.openpty()
    try:
        with pytest.raises(Refused, match=r"there is no session on standard input; pipe one into it"):
            piped(terminal)
    finally:
        os.close(master)
        os.close(terminal)
    with pytest.raises(Refused, match="standard input cannot be read: bad file descriptor"):
        list(piped(-1).lines())


def test_lines_come_before_the_pipe_ends(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1], HEADER)
    outlet.write(notice(1))
    lines = Inlet(pipe[0]).lines()
    got: list[Line] = []
    reader = threading.Thread(target=lambda: got.extend((next(lines), next(lines))), daemon=True)
    reader.start()
    reader.join(60)
    assert [type(line.event) for line in got] == [events.Header, events.Notice]
