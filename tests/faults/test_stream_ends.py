"""`fwtui run --stream` and `fwtui replay -` as processes of which one ends early."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from processes import environment
from recorded_sessions import GOLDEN

from fwtui.sessions.reader import load
from fwtui.stream import codec, events

LONG = ("run", "--stream", "-k", "serial", "-n", "1500", "--repeats", "1000", "--budget", "60")


def fwtui(folder: Path, *words: str, **more: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "fwtui", *words]
    return subprocess.Popen(command, env=environment(folder), cwd=folder, stderr=subprocess.PIPE, **more)  # type: ignore[call-overload]


def lines_until(child: subprocess.Popen[bytes], kind: type[events.Event]) -> list[codec.Line]:
    assert child.stdout is not None
    lines: list[codec.Line] = []
    while not lines or not isinstance(lines[-1].event, kind):
        raw = child.stdout.readline()
        lines.append(codec.Line(raw[:-1], codec.decode(raw[:-1])))
    return lines


def test_a_reader_that_goes_away_ends_the_run_and_its_children_silently(tmp_path: Path) -> None:
    child = fwtui(tmp_path, *LONG, "--telemetry-hz", "0", stdout=subprocess.PIPE)
    lines_until(child, events.RunStarted)
    family = psutil.Process(child.pid).children(recursive=True)
    assert child.stdout is not None and child.stderr is not None and family
    child.stdout.close()
    assert child.wait(120) == 128 + signal.SIGPIPE
    assert child.stderr.read() == b""
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("read", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_signal_ends_the_stream_even_if_nobody_reads_it(tmp_path: Path, read: bool) -> None:
    child = fwtui(tmp_path, *LONG, "--telemetry-hz", "10", stdout=subprocess.PIPE)
    lines = lines_until(child, events.RunStarted)
    child.send_signal(signal.SIGTERM)
    assert child.stdout is not None
    rest = child.stdout.read() if read else b""
    assert child.wait(120) == 128 + signal.SIGTERM
    if read:
        ended = [codec.decode(raw) for raw in rest.splitlines()]
        done, end = (next(e for e in reversed(ended) if isinstance(e, kind)) for kind in (events.RunDone, events.End))
        assert isinstance(done, events.RunDone) and done.outcome == "cancelled"
        assert isinstance(end, events.End) and (end.reason, end.events) == ("signal", len(lines) + len(ended) - 1)


SIGNALLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from fwtui.common.signals import Stopped, on_signals, stop
from fwtui.experiment.experiment import Experiment
from fwtui.live.protocols import finish
from fwtui.live.session import Live

fsync, synced = os.fsync, []

def signalled(descriptor):
    synced.append(descriptor)
    if len(synced) == 1:
        signal.raise_signal(signal.SIGTERM)
    fsync(descriptor)

live = Live(telemetry_hz=0)
on_signals(stop)
try:
    recorder = live.record(path=Path(sys.argv[1]))
    live.start(live.settled(Experiment(kernel="scipy", n=16, repeats=2)))
    os.fsync = signalled
    finish(live)
except Stopped:
    print("stopped")
finally:
    live.close("signal")
assert synced and recorder.failure is None
"""


def test_a_signal_while_a_runs_end_is_written_leaves_one_end(tmp_path: Path) -> None:
    # in a process of its own: a signal to this one could end the whole suite
    command = [sys.executable, "-c", SIGNALLED_WHILE_WRITING, str(tmp_path / "s")]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, timeout=120, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")
    ends = [line.event for line in load(tmp_path / "s").lines if isinstance(line.event, events.RunDone)]
    assert [end.outcome for end in ends] == ["done"]


def test_a_stream_into_a_file_is_a_session(tmp_path: Path) -> None:
    with open(tmp_path / "s", "wb") as file:
        words = "run --stream -k scipy -n 16 --repeats 2 --telemetry-hz 0"
        child = fwtui(tmp_path, *words.split(), stdout=file)
        assert child.wait(120) == 0
    assert load(tmp_path / "s").complete
    printed = []
    for words in (("s",), ("-",)):
        with open(tmp_path / "s", "rb") as file:
            child = fwtui(tmp_path, "replay", "--json", *words, stdin=file, stdout=subprocess.PIPE)
            printed.append(child.communicate(timeout=60)[0])
            assert child.returncode == 0
    assert printed[0] == printed[1] and b'"kernel": "scipy"' in printed[0]


def test_a_truncated_stream_is_printed_as_far_as_possible_and_fails(tmp_path: Path) -> None:
    whole = (GOLDEN).read_bytes()
    child = fwtui(tmp_path, "replay", "-", "--json", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, words = child.communicate(whole[:-40], timeout=60)
    assert child.returncode == 1 and out.count(b"\n") == 1
    assert words.startswith(b"fwtui: the session on standard input is incomplete: the last line is incomplete and skipped;")


def test_a_terminal_gets_no_stream(tmp_path: Path) -> None:
    master, terminal = os.openpty()
    try:
        child = fwtui(tmp_path, "run", "--stream", "-n", "8", stdout=terminal)
        assert child.stderr is not None
        assert child.wait(120) == 2 and child.stderr.read().startswith(b"fwtui: --stream writes a session for a program to read")
    finally:
        os.close(master)
        os.close(terminal)
