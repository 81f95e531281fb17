"""Graphs that a child writes for an experiment, while nobody waits."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from made_sessions import MadeLive, int32

from fwtui.campaigns.reproduce.campaign import Performer
from fwtui.campaigns.reproduce.documents.cs542200 import written
from fwtui.campaigns.reproduce.preset import LeftOut, Preset, RunScale
from fwtui.campaigns.reproduce.results import Results, ask
from fwtui.common.child_process import ChildProcess
from fwtui.experiment.experiment import Experiment
from fwtui.graphs.loading import read


def drained(steps: Iterator[str | None]) -> list[str | None]:
    told = []
    for step in steps:
        told.append(step)
        time.sleep(0.02)
    return told


def child(program: str) -> ChildProcess:
    return ChildProcess([sys.executable, "-c", program], stdin=subprocess.PIPE)


def test_the_file_is_there_when_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "g.gr"
    told = drained(written(int32("serial", 9), path))
    assert told[0] is None and set(told[:-1]) == {None} and told[-1] == ""
    assert read(str(path), "int32").n == 9


def test_a_failure_says_why_and_a_child_that_hangs_is_ended(tmp_path: Path) -> None:
    told = drained(written(int32("serial", 9), tmp_path / "no such folder" / "g.gr"))
    assert told[-1] is not None and told[-1].startswith("its graph was not written: g.gr cannot be written")
    ending = written(int32("serial", 9), tmp_path / "g.gr", partial(child, "import sys; sys.exit(3)"))
    assert drained(ending)[-1] == "its graph was not written: exit code 3"
    begin = time.monotonic()
    told = drained(written(int32("serial", 9), tmp_path / "g.gr", partial(child, "import time; time.sleep(60)"), most=0.05))
    assert told[-1] == "its graph was not written within 0 s" and time.monotonic() - begin < 30


def test_a_preset_that_waits_blocks_nobody_and_names_what_it_left_out() -> None:
    def runs(results: Results, scale: RunScale) -> Iterator[Experiment | LeftOut | None]:
        yield None
        yield LeftOut("serial n 9", "its graph was not written: no")
        yield ask("serial", 9)

    live: Any = MadeLive()
    preset = Preset("test", "Test", (), runs, seconds=9.0)
    performer = Performer(live, preset, RunScale(False), 9.0, lambda text: None)
    assert performer.advance() and live.started == []
    assert performer.advance() and [wanted.kernel for wanted in live.started] == ["serial"]
    assert not performer.advance()
    assert performer.results.left_out == ["serial n 9: its graph was not written: no"]
    live = MadeLive()
    Performer(live, preset, RunScale(False), 9.0, lambda text: None).perform()
    assert [wanted.kernel for wanted in live.started] == ["serial"]
