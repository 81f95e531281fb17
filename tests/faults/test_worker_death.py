"""Failures of workers, parents and disks: reported, recorded, and over by the next run."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest
from builders import model_of
from processes import ROOT, environment, gone

from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment
from fwtui.live.event_child import EventModule, describe_exit
from fwtui.live.session import Live
from fwtui.sessions.reader import load
from fwtui.stream import codec, events
from fwtui.stream.events import End
from fwtui.stream.run import Run
from fwtui.stream.stages import during

HERE = Path(__file__).parent
HANGS = 120.0  # seconds
LONG = Experiment(kernel="serial", n=300, repeats=1000)
SHORT = Experiment(kernel="serial", n=30, repeats=1, dtype="int32")


@pytest.fixture
def live() -> Iterator[Live]:
    session = Live(telemetry_hz=0)
    yield session
    session.close()


def drain_until(live: Live, reached: Callable[[], Any]) -> None:
    """Drain the session as the program does until the condition holds."""
    deadline = time.monotonic() + HANGS
    while not reached():
        assert time.monotonic() < deadline, live.model
        live.drain()
        time.sleep(0.005)


def stage(live: Live) -> str:
    return live.model.run.stage if live.model.run is not None else ""


def fault_of(live: Live) -> events.Fault:
    """Return the fault of the session, once there is one."""
    drain_until(live, lambda: live.model.fault is not None)
    assert live.model.fault is not None
    return live.model.fault


def worker_of(live: Live) -> int:
    assert live.worker.child is not None
    return live.worker.child.pid


def finished(live: Live, experiment: Experiment) -> Run:
    """Start the experiment and return the run when it has ended."""
    number = live.start(live.settled(experiment))
    drain_until(live, lambda: not live.busy)
    return live.model.runs[number]


def assert_verifies(live: Live) -> None:
    run = finished(live, SHORT)
    assert run.state == "done" and run.verified is True
    assert live.model.fault is None


def assert_replays_equal(path: Path, live: Live) -> None:
    """Check that the file is complete and that its replay equals the live model."""
    loaded = load(path)
    assert loaded.complete
    assert model_of(line.event for line in loaded.lines if not isinstance(line.event, End)) == live.model


def told_of(live: Live, run: int) -> bool:
    return live.model.fault is not None and live.model.fault.run == run


@pytest.mark.parametrize("moments", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_a_worker_killed_at_random_moments(live: Live, tmp_path: Path, moments: int) -> None:
    path = tmp_path / "killed.fwt.jsonl"
    live.record(path=path)
    random = Random(5)
    stages = set()
    for attempt in range(moments):
        number = live.start(live.settled(LONG))
        if attempt % 2:  # while it works; the first one while it starts
            drain_until(live, lambda number=number: live.model.current == number and stage(live))
        moment = time.monotonic() + random.random() * min(0.1 * attempt, 0.25)
        drain_until(live, lambda moment=moment: time.monotonic() >= moment)
        pid = worker_of(live)
        os.kill(pid, signal.SIGKILL)
        drain_until(live, lambda number=number: told_of(live, number))
        fault = live.model.fault
        assert fault is not None and (fault.source, fault.code) == ("worker", "died")
        assert "signal 9, killed" in fault.message and "the next run gets a new one" in fault.message
        assert not live.busy and gone(pid)
        run = live.model.runs.get(number)
        stages.add(None if run is None else fault.message.partition(" during ")[2].partition(";")[0])
        assert run is None or run.state == "failed"
        if attempt % 5 == 2:  # and the next one dies in a warm worker
            assert_verifies(live)
            assert worker_of(live) != pid
    assert None in stages and len(stages) > 1, "some die while they start and some while they work"
    assert sum(n.level == "error" for n in live.model.log) == moments
    live.close()
    assert_replays_equal(path, live)


@pytest.fixture
def faked() -> Iterator[Callable[[str], Live]]:
    """Return a session whose first worker misbehaves; later ones are real."""
    begun: list[Live] = []

    def behave(how: str) -> Live:
        fakes = iter([how])

        def hire(module: str, arguments: Sequence[str], origin: float, environment: Mapping[str, str] | None) -> EventModule:
            fake = next(fakes, "")
            if not fake:
                return EventModule(module, arguments, origin, environment)
            path = os.pathsep.join((str(HERE), str(ROOT)))
            return EventModule("fake_worker", arguments, origin, {**(environment or {}), "FAKE_WORKER": fake, "PYTHONPATH": path})

        begun.append(Live(telemetry_hz=0, child=hire))
        return begun[-1]

    yield behave
    for live in begun:
        live.close()


@pytest.mark.parametrize(
    ("how", "words", "stderr"),
    [
        ("exit 1", "the worker died (exit code 1) during warm-up", "the last words of [31m somebody"),
        pytest.param("segfault", "the worker died (signal 11, segmentation fault) during warm-up", "", marks=pytest.mark.slow),
        ("half a line", "the worker died (exit code 0) during warm-up", ""),
        ("fault, then exit", "the GPU reported an error", ""),
        ("fault and end, then exit", "the GPU reported an error", ""),
    ],
)
def test_every_death_is_one_fault(faked: Callable[[str], Live], tmp_path: Path, how: str, words: str, stderr: str) -> None:
    path, live = tmp_path / "fault.fwt.jsonl", faked(how)
    live.record(path=path)
    run = finished(live, SHORT)
    assert run.state == "failed"
    fault = live.model.fault
    assert fault is not None and fault.message.startswith(words) and (fault.run, fault.stderr) == (run.id, stderr)
    assert [n.text for n in live.model.log] == [fault.message]
    if how == "fault and end, then exit":
        assert_verifies(live)  # in another worker: one that has told its fault gets no other run
    live.close()
    assert_replays_equal(path, live)


def test_a_crashed_worker_reports_its_stack_and_the_next_run_gets_another(live: Live) -> None:
    live.start(live.settled(LONG))
    drain_until(live, lambda: stage(live) == "clean")
    os.kill(worker_of(live), signal.SIGSEGV)
    fault = fault_of(live)
    assert "signal 11" in fault.message and "during the timed repetitions;" in fault.message
    assert "Segmentation fault" in fault.stderr and "runner.py" in fault.stderr
    assert_verifies(live)


def test_a_crash_in_many_threads_keeps_its_first_line_and_its_last_frames(faked: Callable[[str], Live]) -> None:
    live = faked("crash in many threads")
    assert finished(live, SHORT).state == "failed"
    fault = fault_of(live)
    assert len(fault.stderr) == 2000 and fault.stderr.startswith("Fatal Python error: Segmentation fault ")
    assert fault.stderr.rstrip().endswith("line 1 in measure")


@pytest.mark.parametrize(("how", "dropped"), [("garbage", 4), ("200 KB without a line break", 1)])
def test_garbage_on_the_pipe_is_dropped_with_a_notice(faked: Callable[[str], Live], how: str, dropped: int) -> None:
    live = faked(how)
    run = finished(live, SHORT)
    assert run.state == "done"
    assert [(n.level, n.text.startswith("a child's line was dropped")) for n in live.model.log] == [("warning", True)] * dropped


def test_a_flood_of_events_is_read_completely(faked: Callable[[str], Live], tmp_path: Path) -> None:
    path, live = tmp_path / "flood.fwt.jsonl", faked("flood")
    live.record(path=path)
    assert finished(live, SHORT).state == "done"
    live.close()
    told = Counter(type(line.event) for line in load(path).lines)
    assert told[events.Progress] == 20_000 and load(path).complete


def test_output_of_a_worker_does_not_reach_the_screen(faked: Callable[[str], Live], capfd: pytest.CaptureFixture[str]) -> None:
    live = faked("talkative")
    run = finished(live, SHORT)
    assert run.state == "done"
    worker = live.worker.child
    assert worker is not None
    drain_until(live, lambda: "the very last words" in worker.last_output)
    assert len(worker.last_output) <= 2000 and worker.last_output.endswith("the very last words")
    worker.send(b"\n")
    fault = fault_of(live)
    assert "exit code 3" in fault.message and fault.stderr.endswith("the very last words")
    assert capfd.readouterr() == ("", "")


def test_a_worker_stays_when_a_run_is_cancelled_or_a_sink_fails_and_its_death_is_reported_though_it_is_idle(live: Live) -> None:
    heard: list[codec.Line] = []

    def bad(line: codec.Line) -> None:
        raise RuntimeError("no paper")

    assert_verifies(live)
    pid = worker_of(live)
    number = live.start(live.settled(Experiment(kernel="serial", n=1500, repeats=1000)))
    drain_until(live, lambda: stage(live) == "warm-up")
    live.cancel()
    drain_until(live, lambda: not live.busy)
    run = live.model.runs[number]
    assert (run.state, run.done and run.done.message) == ("cancelled", "cancelled")
    assert live.model.fault is None and not live.model.log
    live.sinks += [bad, heard.append]
    assert_verifies(live)
    assert live.sinks == [heard.append] and worker_of(live) == pid
    assert [n.text for n in live.model.log] == ["an output was detached: no paper"]
    assert any(isinstance(line.event, events.RunDone) for line in heard)
    # another fault that belongs to no run must not hide the next one
    live.emit(events.Fault(t=live.now, source="sampler", code="died", message="no telemetry"))
    before = len(live.model.log)
    os.kill(pid, signal.SIGKILL)
    drain_until(live, lambda: len(live.model.log) > before)
    fault = live.model.fault
    assert fault is not None and fault.source == "worker" and fault.run is None


def test_a_dead_sampler_does_not_disturb_the_run(tmp_path: Path) -> None:
    live = Live(telemetry_hz=10)
    try:
        drain_until(live, lambda: live.model.reading is not None)
        live.start(live.settled(LONG))
        drain_until(live, lambda: live.model.run is not None)
        sampler = live.sampling.child
        assert sampler is not None
        os.kill(sampler.pid, signal.SIGKILL)
        fault = fault_of(live)
        assert fault.source == "sampler" and "starts again in 2 s" in fault.message
        assert live.busy and live.model.run is not None and live.model.run.state == "running"
        live.cancel()
        drain_until(live, lambda: not live.busy)
        count = len(live.model.telemetry)
        drain_until(live, lambda: len(live.model.telemetry) > count)
    finally:
        live.close()


def test_a_step_that_does_not_end_is_killed() -> None:
    live = Live(telemetry_hz=0, cancel_grace=0.1)
    number = live.start(live.settled(Experiment(kernel="scipy", n=2000, verify="off")))
    drain_until(live, lambda: stage(live) == "warm-up")
    pid = worker_of(live)
    live.cancel()
    live.cancel()
    drain_until(live, lambda: not live.busy)
    run = live.model.runs[number]
    assert run.state == "cancelled" and run.done is not None and "did not end within 0.1 s" in run.done.message
    assert live.model.fault is None and gone(pid)
    live.close()


def test_one_run_at_a_time(faked: Callable[[str], Live]) -> None:
    live = faked("deaf")
    number = live.start(live.settled(SHORT))
    with pytest.raises(Refused, match=f"run {number} is still running; cancel it"):
        live.start(live.settled(SHORT))
    drain_until(live, lambda: live.model.run is not None)
    pid = worker_of(live)
    live.close()
    assert live.model.runs[number].state == "cancelled" and gone(pid)


def test_children_end_with_their_parent(tmp_path: Path) -> None:
    """The parent dies during one long call in which the worker runs no Python code."""
    path = tmp_path / "cut.fwt.jsonl"
    words = ["run", "-k", "scipy", "-n", "3000", "--repeats", "1000", "--verify", "off", "--record", str(path)]
    parent = subprocess.Popen(
        [sys.executable, "-P", "-m", "fwtui", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(tmp_path),
    )
    deadline = time.monotonic() + HANGS
    while not path.exists() or b'"name":"warm-up"' not in path.read_bytes():
        assert time.monotonic() < deadline and parent.poll() is None
        time.sleep(0.02)
    time.sleep(0.1)
    children = psutil.Process(parent.pid).children(recursive=True)
    assert len(children) == 2
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + HANGS
    while left := [c.pid for c in children if not gone(c.pid)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.01)
    loaded = load(path)
    assert not loaded.closed and loaded.damaged == 0


# bytecode that does not fit would be cut off, and found by the next program that imports the module
FULL_DISK = """
import os, resource, sys
os.environ["PYTHONDONTWRITEBYTECODE"], sys.dont_write_bytecode = "1", True
resource.setrlimit(resource.RLIMIT_FSIZE, (2500, 2500))
from fwtui.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_full_disk_stops_the_recording_and_not_the_run(tmp_path: Path) -> None:
    path = tmp_path / "full.fwt.jsonl"
    words = ["run", "--json", "-k", "scipy", "-n", "30,31", "--repeats", "30", "--telemetry-hz", "0", "--record", str(path)]
    done = subprocess.run(
        [sys.executable, "-P", "-c", FULL_DISK, *words], capture_output=True, text=True, timeout=60, env=environment(tmp_path)
    )
    assert done.returncode == 5, done.stderr
    assert [json.loads(line)["verified"] for line in done.stdout.splitlines()] == [True, True]
    assert done.stderr.count("recording stopped: ") == 1 and "events saved in full.fwt.jsonl" in done.stderr
    loaded = load(path)
    assert path.stat().st_size <= 2500 and loaded.damaged == 0 and not loaded.torn and not loaded.closed
    assert len(loaded.lines) > 3


def test_exit_codes_have_sentences() -> None:
    assert [describe_exit(code) for code in (0, 1, -9, -200)] == ["exit code 0", "exit code 1", "signal 9, killed", "signal 200"]
    assert during("clean") == " during the timed repetitions" and during("warm-up") == " during warm-up" and during("") == ""
