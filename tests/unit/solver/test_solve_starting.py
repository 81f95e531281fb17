"""A GPU that is made ready while a file is read, and how the time of a command is told."""

import ctypes
import subprocess
import sys
from pathlib import Path
from threading import Event, current_thread, main_thread
from types import SimpleNamespace

import pytest
from pretending import Pretend

from fwtui.__main__ import parser
from fwtui.experiment.device import FIRST_GPU, DeviceId
from fwtui.solver import choose, starting
from fwtui.solver.output import spent


@pytest.fixture
def engines(pretend: Pretend) -> list[int]:
    """The GPUs that were started."""
    pytest.importorskip("numba.cuda")
    started: list[int] = []

    def start(gpu: DeviceId) -> None:
        assert current_thread() is not main_thread()
        started.append(gpu.index)
        raise RuntimeError("no such GPU, which somebody else will say")

    pretend.driver(True, start)
    return started


@pytest.mark.parametrize(
    ("name", "size", "words", "expected"),
    [
        ("a.gr", 4 << 20, [], [0]),
        ("a.gr", (4 << 20) - 1, [], []),
        ("a.npy", (16 << 20) - 1, [], []),
        ("a.NPZ", 16 << 20, ["--device", "3"], [3]),
        *(("a.gr", 4 << 20, ["--device", device], [0][: device == "auto"]) for device in ("auto", "cpu", "one")),
        *(
            ("a.gr", 4 << 20, ["--kernel", kernel], [0][: kernel == "naive"])
            for kernel in ("naive", "numpy", "tiled-cpu", "none")
        ),
    ],
)
def test_when_it_pays(tmp_path: Path, engines: list[int], name: str, size: int, words: list[str], expected: list[int]) -> None:
    with open(tmp_path / name, "wb") as file:
        file.truncate(size)
    start = starting.start_gpu(parser("solve").parse_args(["solve", file.name, *words]))
    start.wait(choose.WORTH)
    assert engines == expected


def test_the_context_comes_first_and_numba_after_the_imports(engines: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Event()
    monkeypatch.setattr(starting, "_open_context", lambda gpu: opened.set())
    start = starting.GpuStart(FIRST_GPU)
    assert opened.wait(120) and engines == [] and start._thread.is_alive(), "it waits for the imports of this thread"
    start.go_on()
    start._thread.join(120)
    assert engines == [0]


def test_a_driver_that_fails_is_left_to_who_needs_it(engines: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    failing = SimpleNamespace(cuInit=lambda flags: called.append("cuInit") or 100)
    for driver in (lambda name: failing, lambda name: SimpleNamespace(), lambda name: ctypes.CDLL("libno-such-driver.so")):
        monkeypatch.setattr(starting, "ctypes", SimpleNamespace(CDLL=driver, c_int=ctypes.c_int, c_void_p=ctypes.c_void_p))
        starting.GpuStart(FIRST_GPU).wait(choose.WORTH)
    assert engines == [0, 0, 0] and called == ["cuInit"]


def test_nothing_of_cuda_is_imported_without_a_driver(pretend: Pretend, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend.driver(False)
    monkeypatch.setattr(starting, "_import_what_launches", lambda: pytest.fail("it was imported"))
    starting.GpuStart(FIRST_GPU).wait(choose.WORTH)


def test_a_small_graph_brings_nothing_that_does_not_solve_it(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("0,1,2\n")
    code = "import sys; from fwtui.__main__ import main; main(sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-P", "-c", code, "solve", "g.csv", "-o", "d.npy"]
    brought = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
    others = {"fwtui.machine.hardware", "fwtui.measure", "fwtui.solver.stack", "fwtui.stream", "fwtui_kernels.own", "scipy"}
    assert "fwtui.solver.driver" in brought and not others & set(brought)


def test_what_is_done_once_is_told_apart() -> None:
    seconds = {"set-up": 0.5, "read": 0.03, "compile": 0.1, "copy in": 0.02, "prepare": 0.01, "kernels": 0.04, "copy out": 0.1}
    told = spent(seconds)
    assert told.startswith("set-up 600 ms once; then 200 ms: read 30.0 ms, copy in 20.0 ms, prepare 10.0 ms, kernels 40.0 ms, ")
    assert told.endswith("copy out 100 ms; 20.0 % of that outside copies and kernels")
    assert spent({"set-up": 0.5}).startswith("set-up 500 ms once; then 0")
