"""Limits of a worker, its remaining processes, and the first of several children to die."""

import os
import re
import resource
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

import psutil
import pytest

from fwtui.common.errors import Refused
from fwtui.common.process_limits import ProcessLimits, check_address_space, check_process_list
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment, settle
from fwtui.live.event_child import EventChild, enforce_limits
from fwtui.live.kernel_test import run_kernel_test
from fwtui.live.mpi_job import ExitWatcher
from fwtui.stream.kernel_tests import KernelTestRequest
from fwtui.stream.requests import RunRequest

REQUEST = RunRequest(1, settle(Experiment(kernel="naive", n=8, device="simulator")), own="/hw/mine.py")
# in a session of its own, by a parent that has ended
AWAY = """
import os, subprocess, sys
if not os.fork():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", {tag!r}], start_new_session=True)
    os._exit(0)
"""


def waited(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 50
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def alive(tag: str) -> bool:
    return any(tag in (process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))


@pytest.mark.parametrize(
    ("program", "silence", "death"),
    [
        ("import time; time.sleep(60)", 0.5, r"the worker writes no output for 0\.5 s: an endless loop, or threads .*"),
        (
            "import sys, time; sys.stderr.write('x' * 2**21); sys.stderr.flush(); time.sleep(60)",
            60,
            r"the worker prints more than .*",
        ),
        (
            "import subprocess, time; [subprocess.Popen(['sleep', '60']) for _ in range(20)]; time.sleep(60)",
            60,
            r"the worker starts more than 16 processes, which is the limit",
        ),
    ],
)
def test_a_worker_beyond_its_limits_is_ended(program: str, silence: float, death: str) -> None:
    worker = EventChild([sys.executable, "-c", program])
    enforce_limits(worker, REQUEST, lambda: True, silence)
    assert waited(lambda: worker.exit_code is not None) and re.fullmatch(death, worker.death), worker.death
    assert not worker.killed, "and nobody is told that memory ran out"
    worker.close(0)


def test_processes_of_a_run_end_with_it_and_the_worker_stays() -> None:
    over, tag = Event(), f"guarded-{time.monotonic_ns()}"
    worker = EventChild([sys.executable, "-c", AWAY.format(tag=tag) + "import time; time.sleep(60)"])
    enforce_limits(worker, REQUEST, lambda: not over.is_set())
    assert waited(lambda: alive(tag))
    over.set()
    assert waited(lambda: not alive(tag)) and worker.exit_code is None
    worker.close(0)


def test_a_test_run_shows_printed_output_and_leaves_no_process(tmp_path: Path) -> None:
    tag, path = f"tried-{time.monotonic_ns()}", tmp_path / "mine.py"
    path.write_text(
        f"print('one')\nfor _ in range(99):\n    print('more')\n{AWAY.format(tag=tag)}\nraise ValueError('no kernel')\n"
    )
    told = list(run_kernel_test(KernelTestRequest(kernel="mine", device=DeviceId("simulator"), path=str(path))))
    printed = [finding.sentence for finding in told if finding.outcome == "printed"]
    assert printed == ["it prints: one", *["it prints: more"] * 9, "it prints: ..."]
    assert told[-1].sentence == "mine.py:10: ValueError: no kernel: raise ValueError('no kernel')"
    assert waited(lambda: not alive(tag))


def test_the_largest_excess_is_reported_first() -> None:
    assert ProcessLimits(output=1).excess([], 1025) == "prints more than 1 KiB, which is the limit"
    assert ProcessLimits(memory=0.0).excess([psutil.Process()], 0) == "takes more than 0 GiB of memory, which is the limit"
    assert ProcessLimits().excess([psutil.Process()], 0) == ""


on_linux = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only on Linux")


@on_linux
def test_the_first_to_close_is_found_whatever_closes_later() -> None:
    first_end = ExitWatcher(3)
    opened = [os.open(path, os.O_WRONLY) for path in first_end.paths]
    assert first_end.found() is None
    first_end.watch()
    assert first_end.found() is None
    for process in (2, 0, 1):
        os.close(opened[process])
    assert first_end.found() == 2
    first_end.close()
    assert first_end.found() is None


@on_linux
def test_no_first_death_is_found_without_epoll_or_after_an_earlier_end(monkeypatch: pytest.MonkeyPatch) -> None:
    first_end = ExitWatcher(2)
    opened = os.open(first_end.paths[0], os.O_WRONLY)
    first_end.watch()
    os.close(opened)
    assert first_end.found() is None
    first_end.close()
    monkeypatch.delattr(select, "epoll")
    first_end = ExitWatcher(2)
    first_end.watch()
    assert (first_end.paths, first_end.found()) == ([], None)
    first_end.close()


@on_linux
def test_no_descriptor_is_left() -> None:
    before = os.listdir("/proc/self/fd")
    for watched in (False, True):
        first_end = ExitWatcher(3)
        if watched:
            first_end.watch()
        first_end.close()
        assert os.listdir("/proc/self/fd") == before
    room = [os.pipe() for _ in range(2)]

    def until_there_is_no_room() -> tuple[int, int]:
        if not room:
            raise OSError(24, "Too many open files")
        return room.pop()

    with pytest.raises(OSError, match="Too many"):
        ExitWatcher(3, until_there_is_no_room)
    assert os.listdir("/proc/self/fd") == before


def test_limits_that_cannot_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "pids", lambda: [][0])  # what psutil does with an empty /proc
    with pytest.raises(Refused, match="mount /proc"):
        check_process_list()
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (200_000 * 1024, -1))
    with pytest.raises(Refused, match="`ulimit -v` allows 200000 KiB"):
        check_address_space()
