"""This machine's hardware, detected by a child process or from files, so that this process loads no driver."""

from __future__ import annotations

import contextlib
import ctypes.util
import importlib.util
import platform
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path

import msgspec

from fwtui.common.child_process import ChildProcess, module_command
from fwtui.common.cores import usable_cores
from fwtui.common.text import sanitise
from fwtui.common.version import __version__
from fwtui.stream import events
from fwtui.stream.event import Cache
from fwtui.stream.requests import Hardware

DRIVER_FILES = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg")  # the last one is WSL's
CU13_DRIVER, CU12_DRIVER = 580, 525  # the oldest drivers that run each toolkit
CU13_CAPABILITY, CU12_CAPABILITY = (7, 5), (5, 0)
DISTRIBUTIONS = (
    *("textual", "numpy", "numba", "llvmlite", "numba-cuda", "cuda-bindings", "cuda-core", "scipy"),
    *("nvidia-ml-py", "plotext", "msgspec", "psutil", "platformdirs"),
)


def _found_library(name: str) -> str | None:
    with contextlib.suppress(OSError):  # find_library writes a temporary file if the linker's cache does not list the library
        return ctypes.util.find_library(name)
    return None


@cache
def driver_present(files: tuple[str, ...] = DRIVER_FILES, library: Callable[[str], object] = _found_library) -> bool:
    """Return True if there is a sign of an NVIDIA driver; fast, and no proof that the driver works."""
    return any(Path(file).exists() for file in files) or library("cuda") is not None


@cache
def gpus(seconds: float = 10.0) -> Hardware:
    """Return the GPUs that CUDA sees, detected by a child once per process; it takes `seconds` if a driver hangs.

    A crash inside NVML kills only that child; every failure becomes a reason in text.
    """
    try:
        ended = ChildProcess(module_command("fwtui.machine.telemetry.sampler", "--probe")).finish(seconds)
    except OSError as error:
        return Hardware(reason=str(error))
    if ended.code is None:
        return Hardware(reason=f"the NVIDIA driver did not answer within {seconds:g} s; run nvidia-smi to see why")
    if ended.code < 0:
        name = signal.strsignal(-ended.code) or f"signal {-ended.code}"
        return Hardware(reason=f"the NVIDIA driver crashed during a query ({name.lower()}); run nvidia-smi to see why")
    try:
        return msgspec.json.decode(ended.stdout, type=Hardware)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Hardware(reason=f"the process that detects GPUs failed: {ended.last_output}")


def gpu_present() -> bool:
    """Return True if CUDA sees a GPU; without a sign of a driver, no child is started."""
    return driver_present() and bool(gpus().gpus)


def cuda_extra(detected: Hardware) -> str | None:
    """Return the extra of fwtui for the driver and all GPUs; None if there is none."""
    major = detected.gpus[0].driver.partition(".")[0] if detected.gpus else ""
    capabilities = [gpu.compute_capability or (0, 0) for gpu in detected.gpus]
    driver = int(major) if major.isdecimal() else 0
    if driver >= CU13_DRIVER and min(capabilities) >= CU13_CAPABILITY:
        return "cu13"
    return "cu12" if driver >= CU12_DRIVER and max(capabilities) >= CU12_CAPABILITY else None


def cuda_package() -> str | None:
    """Return the version of numba-cuda without importing it; None if it is not installed."""
    return installed_version("numba-cuda")


def installed_version(distribution: str) -> str | None:
    """Return the installed version, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def requirements() -> list[str]:
    """Return the required distributions of fwtui; none if it runs without being installed."""
    try:
        required = metadata.requires("fwtui") or ()
    except metadata.PackageNotFoundError:
        required = ()
    return [re.split(r"[^\w.-]", line)[0] for line in required if "extra ==" not in line]


def versions() -> dict[str, str]:
    """Return the versions of the program, Python and every installed distribution that affects results."""
    installed = {name: version for name in DISTRIBUTIONS if (version := installed_version(name)) is not None}
    return {"fwtui": __version__, "python": platform.python_version(), **installed}


@cache
def machine() -> events.Machine:
    """Describe the host without its name: operating system, processor, usable cores, memory."""
    import psutil

    wsl = " (WSL)" if "microsoft" in platform.release().lower() else ""
    return events.Machine(
        system=f"{platform.system()} {platform.machine()}{wsl}",
        python=platform.python_version(),
        cpu=_cpu(),
        cores=len(usable_cores()),
        memory_bytes=psutil.virtual_memory().total,
        caches=caches(),
    )


def caches(system: Path = Path("/sys/devices/system/cpu")) -> tuple[Cache, ...]:
    """Return the data caches of the first usable core, from the smallest; empty if Linux does not report them."""
    usable = usable_cores()
    by_level: dict[int, Cache] = {}
    for folder in (system / f"cpu{min(usable)}" / "cache").glob("index*"):
        with contextlib.suppress(OSError, ValueError):
            level, kind, size, sharing = (
                (folder / name).read_text().strip() for name in ("level", "type", "size", "shared_cpu_list")
            )
            if kind != "Instruction":
                units = {"K": 10, "M": 20, "G": 30}
                shift = units.get(size[-1], 0)
                cores = len(usable & _listed(sharing)) or 1
                by_level[int(level)] = Cache(level=int(level), bytes=int(size.rstrip("KMG")) << shift, cores=cores)
    return tuple(by_level[level] for level in sorted(by_level))


def _listed(cores: str) -> frozenset[int]:
    """Parse a core list of the Linux kernel: 0-3,8."""
    spans = (part.partition("-") for part in cores.split(","))
    return frozenset(core for first, _, last in spans for core in range(int(first), int(last or first) + 1))


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "Model"):  # x86; some ARM boards
                return sanitise(value.strip())
    if sys.platform == "darwin":
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            return sanitise(subprocess.run(command, capture_output=True, text=True, timeout=2, check=True).stdout.strip())
    return sanitise(platform.processor() or platform.machine())


def install_command(
    requirement: str, python: str = sys.executable, package: Callable[[str], object] = importlib.util.find_spec
) -> str:
    """Return a shell line that installs a requirement into the environment of that Python, by default the running one."""
    if package("pip") is None:
        return f"uv pip install --python {shlex.quote(python)} {shlex.quote(requirement)}"
    return f"{shlex.quote(python)} -m pip install {shlex.quote(requirement)}"
