"""Detection of GPUs in a child process with a fake NVML."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from test_sampler import probe

from fwtui.machine.hardware import gpus

SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("code", "words"),
    [(9, "not loaded"), *(pytest.param(*of, marks=SLOW) for of in ((18, "updated"), (4, "--gpus all"), (999, "does not start")))],
)
def test_a_driver_that_does_not_start_gives_the_reason(fake_nvml: Mapping[str, str], code: int, words: str) -> None:
    found = probe({**fake_nvml, "FAKE_NVML_INIT": str(code)})
    assert found.gpus == ()
    assert words in found.reason


@pytest.mark.parametrize(
    ("visible", "numbers"),
    [
        *(("2,0", [2, 0]), ("1,-1,0", [1]), ("", [])),
        *(pytest.param(*of, marks=SLOW) for of in (("GPU-1", [1]), ("1,GPU-9,0", [1]), (" 1 , 2 ", [1, 2]), ("5", []))),
    ],
)
def test_gpus_are_numbered_as_cuda_numbers_them(fake_nvml: Mapping[str, str], visible: str, numbers: list[int]) -> None:
    found = probe({**fake_nvml, "FAKE_NVML_GPUS": "3", "CUDA_VISIBLE_DEVICES": visible})
    assert [gpu.uuid for gpu in found.gpus] == [f"GPU-{number}-fake" for number in numbers]
    assert ("hides every GPU" in found.reason) == (not numbers)


def test_a_driver_without_cuda_has_no_gpu_for_kernels(fake_nvml: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").touch()  # the loader stops at it and cannot load it
    found = probe({"LD_LIBRARY_PATH": f"{tmp_path}:{fake_nvml['LD_LIBRARY_PATH']}"})
    assert found.gpus == ()
    assert "without CUDA's library (libcuda.so.1)" in found.reason


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Clear the cache of gpus() before and after the test."""
    gpus.cache_clear()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    yield monkeypatch
    gpus.cache_clear()


def test_hardware_finds_the_gpus_through_a_child(fake_nvml: Mapping[str, str], asked: pytest.MonkeyPatch) -> None:
    for name, value in {**fake_nvml, "FAKE_NVML_GPUS": "2"}.items():
        asked.setenv(name, value)
    found = gpus()
    assert [(gpu.name, gpu.compute_capability) for gpu in found.gpus] == [("FAKE NVML test device", (9, 0))] * 2 and found.gpm
    assert found.reason == ""
    assert gpus() is found


@pytest.mark.parametrize(("fault", "words"), [("CRASH_AFTER", "crashed during a query"), ("SLOW_MS", "did not answer")])
def test_a_faulty_driver_is_a_reason(fake_nvml: Mapping[str, str], asked: pytest.MonkeyPatch, fault: str, words: str) -> None:
    asked.setenv("LD_LIBRARY_PATH", fake_nvml["LD_LIBRARY_PATH"])
    asked.setenv(f"FAKE_NVML_{fault}", "0" if fault == "CRASH_AFTER" else "600000")
    found = gpus(0.5) if fault == "SLOW_MS" else gpus()
    assert found.gpus == ()
    assert words in found.reason
