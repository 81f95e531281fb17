"""`fwtui warm`: every part in a process, some at a time; what fails is named and the rest goes on."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import pytest
from pretending import Pretend

from fwtui.commands import warm
from fwtui.commands.warm import CompileJob, compiled, parts
from fwtui.common import environment
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK, WRONG
from fwtui.stream.events import Device


def part(name: str, code: str) -> CompileJob:
    return CompileJob(name, [sys.executable, "-c", code])


def test_a_gpu_adds_its_parts_and_decides_the_first_run(pretend: Pretend) -> None:
    alone, both = [p.name for p in parts(False)], [p.name for p in parts(True)]
    assert len(set(both)) == len(both) and len(both) == len(alone) + 6
    assert alone[-1] == "the dashboard's first runs, serial and tiled-cpu"
    assert both[-1] == "the dashboard's first runs, naive and katz-kider"
    for device, here, used in (("auto", True, True), ("cpu", True, False), ("auto", False, False)):
        pretend.driver(here)
        pretend.gpus(*[Device(t=0)] * here)
        assert warm.uses_gpu(device) is used


def test_parts_run_side_by_side_and_each_tells_how_it_ended() -> None:
    waiting = [
        part("good", "import os; assert os.environ['GIVEN'] == 'yes'; print('x' * 100_000)"),
        part("bad", "raise SystemExit('fwtui: the disk is full')"),
        part("killed", "import os; os.kill(os.getpid(), 9)"),
    ]
    ended = {name: reason for name, _, reason in compiled(waiting, {"GIVEN": "yes"}, at_once=2)}
    assert ended == {"good": "", "bad": "the disk is full", "killed": "exit code -9"}


def test_one_that_hangs_is_ended_and_whoever_stops_it_leaves_no_process() -> None:
    begun = time.monotonic()
    hung = part("hung", "import time; time.sleep(60)")
    assert [reason for _, _, reason in compiled([hung], {}, most=0.2)] == ["it took too long"]
    assert time.monotonic() - begun < 30
    running = compiled([part("first", "pass"), part("second", "import time; time.sleep(60)")], {})
    next(running)
    begun = time.monotonic()
    running.close()  # type: ignore[attr-defined]
    assert time.monotonic() - begun < 30


def test_what_cannot_be_kept_is_not_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    environment.cache_folder.cache_clear()
    try:
        with pytest.raises(Refused, match=r"nothing can be kept: .*; correct that, or set XDG_CACHE_HOME"):
            warm.execute(argparse.Namespace(device="cpu"))
    finally:
        environment.cache_folder.cache_clear()


def test_the_exit_code_says_that_something_failed(capsys: pytest.CaptureFixture[str]) -> None:
    good = part("good", "pass")
    assert warm.compile_all([good], "the CPU") == OK
    assert warm.compile_all([good, part("bad", "raise SystemExit('no\\x1b[31m room')")], "the CPU") == WRONG
    told = capsys.readouterr()
    assert "bad" in told.out and "not compiled: no" in told.out and "\x1b" not in told.out and "1 of 2 ready" in told.err
