"""Check the installation and print the command that fixes each problem; --measure also measures the peak rates of this device."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from dataclasses import asdict, dataclass
from typing import TextIO

from fwtui.analysis import limits
from fwtui.analysis.cpu import level_name
from fwtui.commands.support.printing import add_json_option, table
from fwtui.commands.support.stderr_reporter import print_message
from fwtui.common import units
from fwtui.common.environment import RAISE_LIMIT, code_cache, file_limit
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK, WORKER_DIED, WRONG
from fwtui.common.text import sanitise
from fwtui.experiment.device import CPU, FIRST_GPU, DeviceId
from fwtui.live import ncu
from fwtui.live.protocols import finish
from fwtui.live.session import Live
from fwtui.machine import device_cache, hardware
from fwtui.sessions.folders import own_folder
from fwtui.sessions.library import SHIPPED, files_by_origin
from fwtui.stream import events
from fwtui.tui.frame.places import MIN
from fwtui_kernels.compiled.cache_files import damaged_functions
from fwtui_kernels.probes import probe_forms

FOUND, MISSING, NOTE = "ok", "missing", "note"
BACKENDS = {"cpu": "CPU", "cuda": "GPU"}
GPM = {
    True: (FOUND, "live occupancy, DRAM and integer utilisation"),
    False: (NOTE, "unavailable: no live occupancy or DRAM utilisation; requires Hopper or later"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    form = add_json_option(parser, "one JSON object per line of the report")
    form.add_argument("--extra", action="store_true", help="print only the CUDA extra that fits this machine, if any")
    about = "measure the peak rates of this CPU and GPU: relaxations per second and bandwidth; half a minute, "
    parser.add_argument("--measure", action="store_true", help=f"{about}on an idle machine; stored for later runs")


def execute(args: argparse.Namespace) -> int:
    if args.extra:
        print(hardware.cuda_extra(hardware.gpus()) or "")
        return OK
    if args.measure:
        if args.json:
            raise Refused("--measure and --json cannot be combined; pass only one")
        return measure()
    return print_report(sys.stdout, args.json)


def measure() -> int:
    """Measure the peak rates of every device and print each as soon as it is measured."""
    live = Live(telemetry_hz=0)
    worst = OK
    try:
        for device in _devices():
            print_message(f"measuring the peak rates of {device.noun}")
            live.measure_limits(device)
            finish(live)
            measured_limits = live.model.measuring.get(device)
            if measured_limits is not None and measured_limits.complete:
                print("\n".join(map(sanitise, limit_lines(measured_limits))), flush=True)
            if measured_limits is None or not measured_limits.complete or measured_limits.note:
                fault = live.model.fault
                print_message(fault.message if fault is not None else "its peak rates were not measured")
                worst = WORKER_DIED
    finally:
        live.close()
    return worst


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """The result of one check: "ok", "missing" (a feature will not work) or "note" (a feature will be limited)."""

    name: str
    state: str
    found: str
    fix: str = ""
    essential: bool = False  # required by every command


def report() -> list[DoctorCheck]:
    """Check everything that limits the kernels, screens and recordings of this machine."""
    found, here = hardware.gpus(), hardware.machine()
    cores = f", {units.counted(here.cores, 'core')}" if here.cores else ""
    users, shipped = (sum((origin == SHIPPED) is which for _, origin in files_by_origin()) for which in (False, True))
    return [
        DoctorCheck("python", FOUND, ".".join(map(str, sys.version_info[:3]))),
        _platform(),
        _packages(),
        DoctorCheck("processor", FOUND, f"{here.cpu}{cores}, {units.memory(here.memory_bytes)} of memory"),
        *(_gpus(found) if found.gpus else _no_gpu(found.reason)),
        DoctorCheck("GPM", *GPM[found.gpm]),
        _counters(),
        *_limits(),
        _terminal(),
        _data_folder(),
        _code_cache(),
        DoctorCheck("sessions", FOUND if users or shipped else NOTE, f"{users} of yours, {shipped} shipped"),
    ]


def print_report(stream: TextIO, as_json: bool = False) -> int:
    """Write the report as aligned lines, or as JSON lines; return 1 if the program cannot run, else 0."""
    checks = report()
    width = max(len(check.name) for check in checks)
    for check in checks:
        if as_json:
            print(json.dumps(asdict(check)), file=stream)
            continue
        print(f"{check.name:{width}}  {check.state:7}  {sanitise(check.found)}", file=stream)
        if check.fix:
            print(f"{'':{width}}  {'':7}  -> {sanitise(check.fix)}", file=stream)
    return WRONG if any(check.essential and check.state == MISSING for check in checks) else OK


def _platform() -> DoctorCheck:
    system = hardware.machine().system
    if sys.platform == "darwin":
        return DoctorCheck("platform", NOTE, f"{system}: CPU kernels, simulator and replay")
    return DoctorCheck("platform", FOUND, system)


def _packages() -> DoctorCheck:
    absent = [name for name in hardware.requirements() if hardware.installed_version(name) is None]
    if absent:
        return DoctorCheck("packages", MISSING, f"not installed: {', '.join(absent)}", hardware.install_command("fwtui"), True)
    versions = [f"{name} {version}" for name, version in hardware.versions().items() if name in ("fwtui", "textual", "numba")]
    return DoctorCheck("packages", FOUND, ", ".join(versions))


def _no_gpu(reason: str) -> list[DoctorCheck]:
    broken, installed = hardware.driver_present(), hardware.cuda_package()
    fix = "nvidia-smi" if broken else "nothing to do: CPU kernels, the simulator and replay need no GPU"
    return [
        DoctorCheck("GPU", MISSING if broken else NOTE, reason, fix),
        DoctorCheck("driver", NOTE, "there are signs of one" if broken else "none"),
        DoctorCheck("numba-cuda", FOUND if installed else NOTE, installed or "not installed; only a GPU needs it"),
        DoctorCheck("NVML", NOTE, "nothing to read; telemetry shows only the host"),
    ]


def _gpus(found: hardware.Hardware) -> list[DoctorCheck]:
    first = found.gpus[0]
    return [
        *(DoctorCheck(f"GPU {index}", FOUND, _described(gpu)) for index, gpu in enumerate(found.gpus)),
        DoctorCheck("driver", FOUND, f"{first.driver or 'version unknown'}, CUDA up to {first.cuda or 'unknown'}"),
        _numba_cuda(found),
        DoctorCheck("NVML", FOUND, "telemetry of the GPU; " + (first.note or "nothing is missing")),
    ]


def _described(gpu: events.Device) -> str:
    capability = "unknown" if gpu.compute_capability is None else "{}.{}".format(*gpu.compute_capability)
    peak = units.bandwidth(gpu.peak_bytes_per_second)
    return f"{gpu.name or 'unnamed'}, compute capability {capability}, {units.memory(gpu.memory_bytes)}, peak {peak}"


def _numba_cuda(found: hardware.Hardware) -> DoctorCheck:
    name, installed, driver = "numba-cuda", hardware.cuda_package(), found.gpus[0].driver
    extra = hardware.cuda_extra(found)
    if extra is None:
        none_runs = f"driver {driver or 'of unknown version'} and these GPUs run no toolkit it supports"
        fix = f"install driver {hardware.CU12_DRIVER} or later; GPUs from Maxwell on"
        return DoctorCheck(name, MISSING, f"{installed or 'not installed'}; {none_runs}", fix)
    fix = hardware.install_command(f"fwtui[{extra}]")
    if installed is None:
        return DoctorCheck(name, MISSING, "not installed", fix)
    toolkit = hardware.installed_version("cuda-toolkit")
    if toolkit is None:
        return DoctorCheck(name, NOTE, f"{installed}, without its compiler: a CUDA toolkit must be installed, too", fix)
    if extra == "cu12" and not toolkit.startswith("12."):
        return DoctorCheck(name, MISSING, f"{installed} with CUDA {toolkit}, which driver {driver} or these GPUs do not run", fix)
    return DoctorCheck(name, FOUND, f"{installed} with CUDA {toolkit}")


def _counters() -> DoctorCheck:
    if not os.path.exists(ncu.PARAMETERS):
        return DoctorCheck("counters", NOTE, "unknown: the driver does not state whether profilers may read them")
    if ncu.permitted():
        return DoctorCheck("counters", FOUND, "profilers may read them")
    return DoctorCheck("counters", NOTE, "only an administrator may profile", ncu.FORBIDDEN)


def _devices() -> list[DeviceId]:
    return [CPU, FIRST_GPU] if hardware.gpus().gpus and hardware.cuda_package() is not None else [CPU]


def _limits() -> list[DoctorCheck]:
    checks = []
    for device in _devices():
        stored = limits.load(device)
        name = f"limit {BACKENDS[device.backend]}"
        if stored is None:
            checks.append(DoctorCheck(name, NOTE, "not measured; shares of it are n/a", limits.HOW_TO_MEASURE))
        else:
            best = f"{', '.join(limits.describe_peaks(stored))} relaxations/s"
            noisy = limits.noise(stored)
            checks.append(DoctorCheck(name, NOTE if noisy else FOUND, best, limits.HOW_TO_MEASURE if noisy else ""))
    return checks


def limit_lines(limit_values: events.Limits) -> list[str]:
    """Format a device's peak rates as a table: every form of the inner loop, and copies."""
    titles = {form.key: form for form in probe_forms.FORMS if form.backend == limit_values.backend}
    rows: list[tuple[str, ...]] = [("form", "one relaxation", "at most", "clock")]
    for limit in limit_values.forms:
        form = titles.get(limit.form)
        clock = f"{limit.clock_mhz:.0f} MHz" if limit.clock_mhz else units.ABSENT
        names = (form.title, form.instructions) if form is not None else (limit.form, "-")
        rows.append((*names, units.rate(limit.relaxations_per_second) + _noisy(limit.noisy), clock))
    copied = units.bandwidth(limit_values.copy_bytes_per_second) + _noisy(limit_values.copy_noisy)
    rows.append(("copy", "bytes read and written", copied, ""))
    for one in limit_values.levels:
        bandwidth = f"{units.bandwidth(one.bytes_per_second)}{_noisy(one.noisy)}"
        if limit_values.backend == "cuda":
            rows.append(("shared memory" if one.level == 1 else level_name(one.level), "bytes read", bandwidth, ""))
        else:
            bandwidth += f", one core {units.bandwidth(one.one_core)}"
            rows.append((level_name(one.level), "bytes changed in place", bandwidth, ""))
    if not any(limit.clock_mhz for limit in limit_values.forms):  # the clock of a CPU is not recorded with its peak rates
        rows = [row[:-1] for row in rows]
    notes = filter(None, [limit_values.note, limits.noise(limit_values)])
    return [f"{BACKENDS.get(limit_values.backend, limit_values.backend)}: {limit_values.device}", *table(rows), *notes]


def _noisy(noisy: bool) -> str:
    return " (noisy)" if noisy else ""


def _terminal() -> DoctorCheck:
    if not sys.stdout.isatty():
        return DoctorCheck("terminal", NOTE, "output is not a terminal; the dashboard needs one")
    columns, lines = shutil.get_terminal_size()
    term, encoding = os.environ.get("TERM", ""), sys.stdout.encoding or ""
    colours = "true colour" if os.environ.get("COLORTERM") in ("truecolor", "24bit") else "256 colours or fewer"
    found = f"TERM={term or 'unset'}, {colours}, {columns}x{lines}, {encoding or 'unknown encoding'}"
    if term in ("", "dumb"):
        return DoctorCheck("terminal", MISSING, found, "export TERM=xterm-256color")
    if encoding.lower().replace("-", "") != "utf8":
        return DoctorCheck("terminal", NOTE, found, "export LC_ALL=C.UTF-8")
    if columns < MIN[0] or lines < MIN[1]:
        return DoctorCheck("terminal", NOTE, found, "enlarge it to at least {}x{}".format(*MIN))
    return DoctorCheck("terminal", FOUND, found)


def _code_cache() -> DoctorCheck:
    name = "cache"
    folder, reason, fix = code_cache()
    if folder is None:
        return DoctorCheck(name, NOTE, f"compiled kernels are not cached: {reason}", fix)
    if damaged := damaged_functions(folder) + len(device_cache.damaged()):
        return DoctorCheck(name, NOTE, f"{units.counted(damaged, 'damaged file')} in {folder.parents[1]}, rebuilt when needed")
    return DoctorCheck(name, FOUND, f"compiled kernels are cached in {folder}")


def _data_folder() -> DoctorCheck:
    folder = own_folder()
    # Path.exists raises for folders that may not be read
    place = next(path for path in (folder, *folder.parents) if os.path.exists(path))
    if reason := file_limit():
        return DoctorCheck("data", NOTE, f"recordings stop early: {reason}", RAISE_LIMIT)
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return DoctorCheck("data", FOUND, f"sessions are stored in {folder}")
    return DoctorCheck("data", MISSING, f"{folder} cannot be written; nothing is recorded there", "fwtui run --record PATH")
