"""NVIDIA Nsight Compute's command line: finding it, its permission to read counters, running it, and parsing its output.

Options and output: Nsight Compute CLI documentation, "Command Line Options" and "CSV output".
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from msgspec import Struct

from fwtui.common.child_process import ChildProcess, ExitResult
from fwtui.common.environment import worker_environment
from fwtui.common.temporary_folder import temporary_folder

PLACES = ("/usr/local/cuda*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
PARAMETERS = "/proc/driver/nvidia/params"
PRIVILEGES = "/proc/self/status"
ABSENT = "ncu was not found; install NVIDIA Nsight Compute (it comes with the CUDA toolkit) and put it on PATH"
FORBIDDEN = (
    "the NVIDIA driver lets only administrators read hardware counters; run this as root, or put "
    "`options nvidia NVreg_RestrictProfilingToAdminUsers=0` into a file of /etc/modprobe.d and reboot "
    "(a container needs --cap-add=SYS_ADMIN)"
)
_SYS_ADMIN = 21  # bit of CAP_SYS_ADMIN in the capability sets of Linux
# --print-units base is set, but versions differ; an unknown unit is not scaled
_SCALES = {
    "%": 0.01,
    **{f"{prefix}{unit}": scale for prefix, scale in (("n", 1e-9), ("u", 1e-6), ("m", 1e-3)) for unit in ("second", "s")},
    **{
        f"{prefix}{unit}": scale for prefix, scale in (("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)) for unit in ("byte", "hz")
    },
}


def find(places: Sequence[str] = PLACES) -> str | None:
    """Return the path of ncu; None if it is not installed."""
    return installed("ncu", places)


def installed(tool: str, places: Sequence[str]) -> str | None:
    """Return the path of an NVIDIA tool: on PATH, in the environment's toolkit, or the newest in an installer's folder."""
    if path := shutil.which(tool):
        return path

    def version(path: Path) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", str(path))]

    named = [Path(os.environ[v]) / "bin" / tool for v in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX") if os.environ.get(v)]
    defaults = [path for place in places for path in sorted(Path("/").glob(place.lstrip("/")), key=version, reverse=True)]
    return next((str(path) for path in (*named, *defaults) if os.access(path, os.X_OK)), None)


def permitted(parameters: str | Path = PARAMETERS, privileges: str | Path = PRIVILEGES) -> bool:
    """Return True if the driver's parameters let this process read counters (ERR_NVGPUCTRPERM otherwise)."""
    try:
        text = Path(parameters).read_text(errors="replace")
        capabilities = re.search(r"^CapEff:\s*([0-9a-f]+)$", Path(privileges).read_text(), re.MULTILINE)
    except OSError:
        return True  # ncu reports the error
    restricted = re.search(r"^RmProfilingAdminOnly:\s*1\s*$", text, re.MULTILINE) is not None
    return not restricted or (capabilities is not None and bool(int(capabilities[1], 16) >> _SYS_ADMIN & 1))


def run(tool: str, metrics: Sequence[str], program: Sequence[str], stop: Event, seconds: float) -> tuple[str, ExitResult]:
    """Profile the kernels that the program launches between cuProfilerStart and cuProfilerStop; stopped early by `stop`."""
    options = ["--profile-from-start", "off", "--replay-mode", "kernel"]
    # locked clocks and flushed caches would differ from the timed runs
    options += ["--cache-control", "none", "--clock-control", "none", "--metrics", ",".join(metrics)]
    return run_tool([tool, *options, "--csv", "--page", "raw", "--print-units", "base"], program, stop, seconds)


def run_tool(
    tool: Sequence[str], program: Sequence[str], stop: Event, seconds: float, request: Struct | None = None
) -> tuple[str, ExitResult]:
    """Run a tool with its options on a program, which gets the request; return the tool's log and the end. Raises StartError."""
    with temporary_folder() as folder:
        log = folder / "log"
        command = [*tool, "--target-processes", "all", "--log-file", str(log), *program]
        # LC_ALL sets the number format; another user's lock file in /tmp would block
        environment = {**worker_environment("real"), "LC_ALL": "C", "TMPDIR": str(folder)}
        ended = ChildProcess(command, environment, subprocess.PIPE).finish(seconds, request, stop)
        return log.read_text("utf-8", "replace") if log.exists() else "", ended


def rows(log: str) -> list[dict[str, float]]:
    """Return the profiled kernels in launch order: ncu's metric -> value in seconds, bytes, hertz, shares of 1 or counts.

    It parses the wide "raw" page: a header, a row of units, a row for each kernel, and ncu's `==...==` lines anywhere. Values
    that are not numbers (n/a) are skipped.
    """
    rows_read: list[dict[str, float]] = []
    names: list[str] = []
    units: list[str] = []
    for cells in csv.reader(line for line in log.splitlines() if not line.startswith("==")):
        if cells[:1] == ["ID"]:
            names, units = cells, [""] * len(cells)
        elif len(cells) != len(names) or not names:
            continue  # the profiled program may print too
        elif not cells[0]:
            units = cells
        else:
            values = {n: (number(c), _scale(u)) for n, c, u in zip(names, cells, units, strict=True) if "__" in n}
            rows_read.append({name: value * scale for name, (value, scale) in values.items() if value is not None})
    return rows_read


def number(text: str) -> float | None:
    """Parse a number of ncu's output, whose thousands the C locale may group: 1234, 1,234,567.5; None for anything else."""
    match = re.fullmatch(r"\s*(-?(\d+(,\d{3})*\.?\d*|\.\d+)(e[+-]?\d{1,2})?)\s*", text, re.IGNORECASE)
    return float(match[1].replace(",", "")) if match else None


def errors(log: str) -> list[str]:
    """Return ncu's error lines, without their prefix."""
    return re.findall(r"^==ERROR==\s+(.*\S)", log, re.MULTILINE)


def _scale(unit: str) -> float:
    amount, _, per = unit.partition("/")
    return _SCALES.get(amount, 1.0) / _SCALES.get(per, 1.0)
