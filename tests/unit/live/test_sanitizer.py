"""Reports of compute-sanitizer as sentences: published reports, and a scripted tool."""

from pathlib import Path
from threading import Event, Timer

import msgspec
import pytest
from stand_ins import FakeTool

from fwtui.experiment.device import FIRST_GPU
from fwtui.live.sanitizer import ABSENT, invalid_access, race, run_sanitizer
from fwtui.stream.kernel_tests import Finding, KernelTestRequest

HEAD = "========= COMPUTE-SANITIZER\n"
NUMBA = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at 0xcc0 in /hw/mine.py:38:own_mine::build::<locals>::relax[abi:v1,cw51cXTLSUwv1oDH_3d]\
(Array<float, (int)2, C, mutable, aligned>, int)
=========     by thread (0,3,0) in block (1,0,0)
=========     Address 0x7f760a600010 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f760a600000 of size 16 bytes
=========
========= ERROR SUMMARY: 12 errors
"""
CUDA = """\
========= COMPUTE-SANITIZER
========= Invalid __shared__ write of size 16 bytes
=========     at void rest<float>(float *, int, int)+0x4bd0 in /hw/mine.cu:13
=========     by thread (16,0,0) in block (0,0,0)
=========     Access to 0x402 is misaligned
========= ERROR SUMMARY: 1 error
"""
NO_LINES = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ atomic of size 4 bytes
=========     at 0xb0 in cudapy::own_mine::build::$3clocals$3e::relax$241(Array<long long, (int)1, C, mutable, aligned>)
========= ERROR SUMMARY: 1 error
"""
RACE = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at rest(float *, int)+0x430 in mine.cu:46
=========     and Read access at rest(float *, int)+0x770 in mine.cu:55 [248 hazards]
=========     and Read access at rest(float *, int)+0x7a0 in mine.cu:56 [248 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
OLD_RACE = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Read access at 0x278 in mine_rest_0d1d
=========     and Write access at 0x298 in mine_rest_0d1d [4 hazards]
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
WARNING = RACE.replace("Error: ", "Warning: ").replace("(1 error, 0 warnings)", "(0 errors, 1 warning)")
NO_ERRORS = f"{HEAD}========= ERROR SUMMARY: 0 errors\n"
NO_HAZARDS = f"{HEAD}========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
HARMLESS = "; harmless only if the write repeats the stored value"
REQUEST = KernelTestRequest(kernel="mine", path="/course/mine.py", device=FIRST_GPU, sizes=(512,))
RAN = "".join(
    msgspec.json.encode(Finding(case="", outcome="right", sentence="", n=n)).decode() + "\n" for n in (31, 81, 33)
)  # fmt: skip


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (NUMBA, "relax reads 4 bytes outside its global memory (mine.py:38, thread (0,3,0) of block (1,0,0))"),
        (CUDA, "rest writes 16 bytes at a misaligned address (mine.cu:13, thread (16,0,0) of block (0,0,0))"),
        (NO_LINES, "relax accesses 4 bytes outside its global memory"),
        (NO_ERRORS, ""),
        ("", ""),
    ],
)
def test_an_access_out_of_bounds_is_reported_with_its_line(log: str, words: str) -> None:
    assert invalid_access(log) == words


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            RACE,
            "threads of a block race in rest: in shared memory one writes (mine.cu:46) where another reads (mine.cu:55), "
            "and no barrier is between them" + HARMLESS,
        ),
        (
            OLD_RACE,
            "threads of a block race in mine_rest_0d1d: in shared memory one reads where another writes, "
            "and no barrier is between them" + HARMLESS,
        ),
        (WARNING, ""),
        (NO_HAZARDS, ""),
    ],
)
def test_a_race_is_reported_with_both_lines(log: str, words: str) -> None:
    assert race(log) == words


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTool:
    monkeypatch.setenv("PATH", str(tmp_path))
    return FakeTool(tmp_path, "compute-sanitizer")


def found(seconds: float = 60.0) -> list[tuple[str, str, str]]:
    return [(told.case, told.outcome, told.sentence) for told in run_sanitizer(REQUEST, Event(), seconds)]


def test_each_check_is_a_finding(tool: FakeTool) -> None:
    tool.answers({"log": NUMBA, "code": 1}, {"log": NO_HAZARDS, "stdout": RAN})
    assert found() == [
        ("memcheck", "broken", f"compute-sanitizer: {invalid_access(NUMBA)}"),
        ("racecheck", "right", "compute-sanitizer finds no race in shared memory, up to n = 81"),
    ]
    words = tool.call()
    assert words[:2] == ["--tool", "memcheck"] and words[-1] == "fwtui.measure.kernel_test_process"


def test_checks_that_fail_to_run_are_reported_as_omitted(tool: FakeTool) -> None:
    tool.answers({"log": f"{HEAD}========= Error: Device not supported\n"}, {"log": NO_HAZARDS})
    assert found() == [
        ("memcheck", "left out", "memcheck was skipped: compute-sanitizer failed: Error: Device not supported"),
        ("racecheck", "left out", "racecheck was skipped: the kernel did not run in compute-sanitizer"),
    ]
    tool.path.unlink()
    assert found() == [("compute-sanitizer", "left out", ABSENT)]


def test_the_sanitizer_ends_in_time_and_at_the_next_save(tool: FakeTool) -> None:
    tool.answers({"log": "", "sleep": True}, {"log": RACE, "sleep": True}, {"log": RACE, "sleep": True})
    (_, _, slow), (_, racy, _) = found(seconds=1.0)
    assert slow == "memcheck was skipped: compute-sanitizer took more than 1 s"
    assert racy == "unreliable", "what it found until then is told"
    stop = Event()
    Timer(0.2, stop.set).start()
    assert list(run_sanitizer(REQUEST, stop)) == []
