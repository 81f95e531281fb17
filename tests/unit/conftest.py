"""Fixtures of machines: with a GPU to profile, with a fake NVML, without NVML."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pretending import Pretend
from stand_ins import FakeTool

from fwtui.live import ncu
from fwtui.machine import hardware
from fwtui.stream.events import Device

FAKE = Path(__file__).resolve().parents[1] / "faults" / "fake_nvml.c"


@pytest.fixture(autouse=True, scope="session")
def _no_gpu() -> Iterator[None]:
    """Hide the GPUs of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hardware, "gpus", lambda: hardware.Hardware(reason="there is no GPU here"))
        yield


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> None:
    pretend.gpus(Device(t=0, name="a GPU"))
    monkeypatch.setattr(ncu, "permitted", lambda: True)


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: None) -> FakeTool:
    fake = FakeTool(tmp_path)
    monkeypatch.setattr(ncu, "find", lambda: str(fake.path))
    return fake


@pytest.fixture(scope="session")
def fake_nvml(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Return environment variables that make the fake libnvidia-ml.so.1 and libcuda.so.1 loadable."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler on Linux to build the fake NVML")
    folder = tmp_path_factory.mktemp("nvml")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), str(FAKE)], check=True)
    (folder / "libcuda.so.1").symlink_to("libnvidia-ml.so.1")
    return {"LD_LIBRARY_PATH": str(folder)}


@pytest.fixture
def no_nvml(tmp_path: Path) -> Mapping[str, str]:
    """Return environment variables that hide NVML, even if there is a driver."""
    (tmp_path / "libnvidia-ml.so.1").touch()  # the loader stops at it and cannot load it
    return {"LD_LIBRARY_PATH": str(tmp_path)}
