"""Kernels that are broken on purpose, tried in the simulator: each is found, and told in one right sentence."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from data.broken_kernels.edits import BLOCKED, BY_VERTEX, EDITS, FOLDER
from in_simulator import answers

from fwtui.experiment.device import DeviceId
from fwtui.live.trial import trial
from fwtui.stream.trials import Finding, verdict
from kernels.plan import Rect

SIMULATOR = DeviceId("simulator")
# all in one process, each only until something is found; a process for each takes ten times as long
HARNESS = """
import msgspec
from case_by_case import tell
from fwtui.measure.trial_target import Trial
from fwtui.stream.trials import Finding, TrialRequest
from fwtui.experiment.device import DeviceId

class Found(BaseException):
    pass

def found(case):
    told = []
    def take(finding):
        if isinstance(finding, Finding):
            told.append(msgspec.to_builtins(finding))
            if not finding.fine:
                raise Found
    try:
        Trial(TrialRequest(kernel="mine", path=case["path"], device=DeviceId("simulator")), take).run()
    except Found:
        pass
    return told

tell(found)
"""


def findings(path: Path) -> list[Finding]:
    (told,) = answers(HARNESS, [{"path": str(path)}])
    return [msgspec.convert(finding, Finding) for finding in told]


@pytest.mark.parametrize("name", [name for name, edit in EDITS.items() if edit.outcome != "hung"])
def test_what_is_broken_is_told_in_one_sentence(name: str, tmp_path: Path) -> None:
    edit = EDITS[name]
    found = findings(edit.write(tmp_path))
    assert re.fullmatch(edit.simulated, verdict(found)), verdict(found)
    assert found[-1].outcome == edit.outcome


def test_where_it_is_wrong_is_data(tmp_path: Path) -> None:
    where = findings(EDITS["wrong transposition"].write(tmp_path))[-1].where
    assert where is not None and (where.step, where.round, where.phase, where.op) == (2, 1, "rest", "rest")
    assert where.rect == where.block == Rect(4, 4, 8, 8) and where.writes == (where.rect,)
    cells = where.cells()
    assert cells.shape == (5, 5) and np.count_nonzero(cells) == where.count
    assert tuple(np.argwhere(cells)[0]) == (where.row, where.column)


@pytest.mark.parametrize("file", [BLOCKED, BY_VERTEX])
def test_what_is_right_is_right(file: str) -> None:
    found = findings(FOLDER / file)
    assert verdict(found) == "right in all 11 cases, up to n = 11"
    assert [finding.case for finding in found][:3] == ["plan", "n = 1, one vertex", found[2].case]


def test_a_kernel_that_hangs_is_ended_and_its_line_named(tmp_path: Path) -> None:
    edit = EDITS["infinite loop"]
    told = list(trial("mine", SIMULATOR, path=edit.write(tmp_path), seconds=1.0))
    assert re.fullmatch(edit.simulated, told[-1].sentence), told[-1].sentence
    assert [finding.outcome for finding in told] == ["right", "hung"]


def test_a_kernel_that_ends_its_process_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import os, signal\nprint('hello')\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    (told,) = trial("mine", SIMULATOR, path=path)
    assert (told.case, told.outcome) == ("loading", "died")
    assert told.sentence == "the process that ran it died (signal 11, segmentation fault)"
