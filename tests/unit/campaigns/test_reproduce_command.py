"""The command `fwtui reproduce`, and the graph files that a child writes for it while nobody waits."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from made_sessions import MadeLive, int32
from pretending import Pretend

from fwtui.__main__ import main
from fwtui.campaigns.reproduce import presets
from fwtui.campaigns.reproduce.campaign import Performer
from fwtui.campaigns.reproduce.claim import HOLDS, REFUTED, UNTESTABLE
from fwtui.campaigns.reproduce.documents.cs542200 import written
from fwtui.campaigns.reproduce.preset import LeftOut, Preset, RunScale
from fwtui.campaigns.reproduce.results import Results, ask
from fwtui.common.child_process import ChildProcess
from fwtui.common.exit_codes import OK, USAGE
from fwtui.experiment.experiment import Experiment, changed
from fwtui.graphs.loading import read


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch, pretend: Pretend, tmp_path: Path) -> None:
    """A machine without a GPU, and graphs of a few vertices."""
    pretend.driver(False)
    small = presets()["sing"]

    def runs(results: Results, scale: RunScale) -> Iterator[Experiment]:
        return (changed(wanted, n=12) for wanted in small.runs(results, scale) if isinstance(wanted, Experiment))

    monkeypatch.setattr("fwtui.commands.reproduce.presets", lambda: {"sing": replace(small, runs=runs)})
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_a_whole_preset_without_a_gpu_and_again_from_its_recording(
    no_gpu: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sing.fwt.jsonl"
    assert main(["reproduce", "sing", "--quick", "--telemetry-hz", "0", "--record", str(path), "--json"]) == OK
    live = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in live] == [claim.id for claim in presets()["sing"].claims]
    answers = {row["id"]: row["answer"] for row in live}
    # passes of a microsecond may differ too much to tell
    assert answers["SF6"] in (HOLDS, REFUTED) or "too noisy" in next(row["reason"] for row in live if row["id"] == "SF6")
    assert answers["SF9"] in (HOLDS, REFUTED)
    assert answers["SF4"] == UNTESTABLE
    assert path.stat().st_size < 80_000
    assert main(["reproduce", "sing", "--from", str(path), "--json"]) == OK
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == live
    assert main(["reproduce", "sing", "--from", str(path)]) == OK
    shown = capsys.readouterr().out
    assert "SF4 not testable here: naive: needs a GPU" in shown and "Left out: naive: needs a GPU" in shown and "Rule:" in shown


def test_a_record_goes_with_no_recording_and_all_records_take_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for words, said in ((["sing", "--from", "x"], "do not go together"), (["all"], "folder")):
        assert main(["reproduce", *words, "--record", str(tmp_path / "file")]) == USAGE
        assert said in capsys.readouterr().err


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
