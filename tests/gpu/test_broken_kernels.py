"""Broken kernels on a real GPU: each is found and reported in one correct sentence, and the next one runs."""

import re
from pathlib import Path
from threading import Event

import pytest
from data.broken_kernels.edits import BLOCKED, BY_VERTEX, EDITS, FOLDER
from data.broken_kernels.planted import PLANTED, RIGHT

from fwtui.experiment.device import FIRST_GPU
from fwtui.live.kernel_test import run_kernel_test
from fwtui.live.ncu import installed
from fwtui.live.sanitizer import NAME, PLACES, run_sanitizer
from fwtui.stream.kernel_tests import KernelTestRequest, verdict

pytestmark = pytest.mark.gpu


def on_gpu(path: Path, *sizes: int) -> KernelTestRequest:
    return KernelTestRequest(kernel="mine", path=str(path), device=FIRST_GPU, sizes=sizes)


@pytest.mark.parametrize("name", EDITS)
def test_a_broken_kernel_is_reported_in_one_sentence(name: str, tmp_path: Path) -> None:
    edit = EDITS[name]
    found = []
    for finding in run_kernel_test(on_gpu(edit.write(tmp_path)), seconds=15.0 if edit.outcome == "hung" else 60.0):
        found.append(finding)
        if not finding.fine:
            break
    assert re.fullmatch(edit.gpu or edit.simulated, verdict(found)), verdict(found)


@pytest.mark.skipif(installed(NAME, PLACES) is None, reason="compute-sanitizer is not here")
def test_a_race_is_found_with_both_lines(tmp_path: Path) -> None:
    path = EDITS["missing barrier"].write(tmp_path)
    memory, races = run_sanitizer(on_gpu(path), Event())
    assert memory.sentence == "compute-sanitizer finds no access out of bounds, up to n = 81"
    one = r"(?:reads|writes) \(mine\.py:\d+\)"
    assert re.search(rf"race in \w+: in shared memory one {one} where another {one}", races.sentence), races


RACES = ("pivot without", "panels without", "stored where", "a running minimum")


@pytest.mark.skipif(installed(NAME, PLACES) is None, reason="compute-sanitizer is not here")
@pytest.mark.parametrize("name", [name for name in PLANTED if name.startswith(RACES)])
def test_races_of_the_simulator_are_races_on_a_gpu(name: str, tmp_path: Path) -> None:
    assert PLANTED[name].outcome == "racy"
    path = PLANTED[name].write(tmp_path)
    _, races = run_sanitizer(on_gpu(path), Event())
    assert "race in" in races.sentence, races


@pytest.mark.parametrize("name", RIGHT)
def test_kernels_that_are_correct_in_the_simulator_are_correct_on_a_gpu(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(RIGHT[name])
    found = list(run_kernel_test(on_gpu(path), seconds=60.0))
    assert verdict(found).startswith("right in all "), verdict(found)


@pytest.mark.parametrize("file", [BLOCKED, BY_VERTEX])
def test_correct_kernels_are_verified_and_timed(file: str) -> None:
    found = list(run_kernel_test(on_gpu(FOLDER / file, 512), seconds=60.0))
    assert verdict(found) == "right in all 12 cases, up to n = 512", verdict(found)
    assert all(finding.seconds for finding in found if finding.n)
