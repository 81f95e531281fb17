"""Hardware counters of a kernel: Nsight Compute profiles one launch of each operation, never as a timing.

The metrics are those of nvprof under their present names (Nsight Compute CLI, "nvprof transition guide"). Shared memory
throughput counts 128 bytes per wavefront, the work of its banks, as in nvprof; bytes loaded count a broadcast word once
per thread. GOPS are integer instructions / time, as CS542200 counts them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Event, Thread
from typing import NamedTuple

import msgspec

from fwtui.common import units
from fwtui.common.child_process import ExitResult, module_command
from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.experiment.experiment import Settled, kernel_named
from fwtui.experiment.user_kernel_registry import path_of
from fwtui.live import ncu
from fwtui.machine import hardware
from fwtui.stream import events
from fwtui.stream.requests import ProfiledLaunch, ProfileRequest

PROFILED = "profiled: not timings"
WAVEFRONT = 128  # bytes: 32 banks of 4 each
Counters = Mapping[str, float]  # key: Metric.key; unavailable metrics are absent
Outcome = Mapping[str, Counters] | str  # key: op; a sentence gives the reason for no counters
SHOWN: Mapping[str, Callable[[float], str]] = {  # key: Metric.unit
    "share": units.percent,  # a share is at most 1
    "seconds": units.duration,
    "bytes": units.memory,
    "bytes/s": units.bandwidth,
    "GOPS": lambda value: f"{units.digits(value)} GOPS",
    "count": lambda value: units.scaled(value, "").rstrip(),
}


class Metric(NamedTuple):
    """A hardware counter: its key, its title, and its names in ncu (if chips differ, in order of preference)."""

    key: str
    title: str
    unit: str
    names: str = ""  # separated by spaces; empty: computed from others


METRICS = (
    Metric("occupancy", "achieved occupancy", "share", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    Metric("sm_efficiency", "SM efficiency", "share", "smsp__cycles_active.avg.pct_of_peak_sustained_elapsed"),
    Metric("compute_share", "Compute (SM) throughput", "share", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
    Metric("memory_share", "Memory throughput", "share", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
    Metric("dram_share", "DRAM throughput", "share", "dram__throughput.avg.pct_of_peak_sustained_elapsed"),
    Metric("shared_load_bytes_per_second", "shared load", "bytes/s"),
    Metric("shared_store_bytes_per_second", "shared store", "bytes/s"),
    Metric("shared_load_bytes", "requested shared loads", "bytes", "sm__sass_data_bytes_mem_shared_op_ld.sum"),
    Metric("shared_store_bytes", "requested shared stores", "bytes", "sm__sass_data_bytes_mem_shared_op_st.sum"),
    Metric("shared_load_wavefronts", "shared load wavefronts", "count", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"),
    Metric("shared_store_wavefronts", "shared store wavefronts", "count", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"),
    Metric("shared_load_conflicts", "bank conflicts, load", "count", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"),
    Metric(
        "shared_store_conflicts", "bank conflicts, store", "count", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
    ),
    Metric("global_load_bytes_per_second", "global load", "bytes/s", "l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum.per_second"),
    Metric("global_store_bytes_per_second", "global store", "bytes/s", "l1tex__t_bytes_pipe_lsu_mem_global_op_st.sum.per_second"),
    Metric("global_load_requests", "global load requests", "count", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
    Metric("global_load_sectors", "global load sectors", "count", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    Metric("l1_hit_rate", "L1 hits", "share", "l1tex__t_sector_hit_rate.pct"),
    Metric("l2_hit_rate", "L2 hits", "share", "lts__t_sector_hit_rate.pct"),
    # consumer Blackwell uses the second name of each
    Metric("dram_read_bytes", "DRAM read", "bytes", "dram__bytes_read.sum dram__bytes_op_read.sum"),
    Metric("dram_write_bytes", "DRAM written", "bytes", "dram__bytes_write.sum dram__bytes_op_write.sum"),
    Metric("dram_bytes", "DRAM, both ways", "bytes"),
    Metric("integer_instructions", "integer instructions", "count", "smsp__sass_thread_inst_executed_op_integer_pred_on.sum"),
    Metric("integer_instructions_per_relaxation", "integer instructions per relaxation", "count"),
    Metric("gops", "integer instructions / time", "GOPS"),
    Metric("seconds", "duration, profiled", "seconds", "gpu__time_duration.sum"),
    Metric("relaxations", "relaxations of that launch", "count"),
)


def measure(experiment: Settled, stop: Event | None = None, most_seconds: float = 600.0) -> dict[str, Counters] | str:
    """Return the counters of one launch of every op (the middle one of its largest launches), or the reason for none.

    Each call of ncu takes seconds to minutes; another thread can set `stop`. Nothing else may profile the GPU at the same time: a
    session's sampler reads the same counters.
    """
    try:
        reason = _refusal(experiment)
    except Refused as refusal:  # a recorded run's kernel that does not exist on this machine
        return str(refusal)
    tool = ncu.find()
    if reason or tool is None:
        return reason or ncu.ABSENT
    return _profile(tool, experiment, stop or Event(), most_seconds)


def counter_text(metric: Metric, values: Counters) -> str:
    """Format a counter with its unit; n/a if it was not measured."""
    value = values.get(metric.key)
    return units.ABSENT if value is None else SHOWN[metric.unit](value)


def _refusal(experiment: Settled) -> str | None:
    kernel = kernel_named(experiment.kernel)
    if kernel.backend != "cuda":
        return f"{kernel.id} runs on the CPU, and hardware counters are read from a GPU; choose a CUDA kernel"
    if experiment.device_id.simulated:
        return "the simulator has no hardware counters; choose a GPU"
    if not hardware.gpus().gpus:
        return f"hardware counters need a GPU ({hardware.gpus().reason}); run `fwtui doctor`"
    return None if ncu.permitted() else ncu.FORBIDDEN


def _profile(tool: str, experiment: Settled, stop: Event, most_seconds: float) -> dict[str, Counters] | str:
    names_by_key = {metric.key: metric.names.split() for metric in METRICS if metric.names}
    request = ProfileRequest(experiment, path_of(experiment.kernel))
    program = module_command("fwtui.measure.profile_process", msgspec.json.encode(request).decode())
    while True:
        names = [left[0] for left in names_by_key.values() if left]
        log, ended = ncu.run(tool, names, program, stop, most_seconds)
        complaints = ncu.errors(log)
        # a chip that lacks one counter makes ncu reject all of them: retry without it
        named = {word.rstrip(".") for text in complaints for word in re.findall(r"[^\s,'\"]+", text)}
        unknown = [name for name in names if name in named]
        if not unknown or len(unknown) == len(names):
            return _understood(log, ended, complaints, most_seconds)
        for left in names_by_key.values():
            if left and left[0] in unknown:
                left.pop(0)


def _understood(log: str, ended: ExitResult, complaints: list[str], most_seconds: float) -> dict[str, Counters] | str:
    launches, stderr = list[ProfiledLaunch](), ended.stderr.decode("utf-8", "replace")
    for line in ended.stdout.splitlines():
        with suppress(msgspec.MsgspecError):  # the profiler also prints to stdout
            launches.append(msgspec.json.decode(line, type=ProfiledLaunch))
    profiled = ncu.rows(log)
    if profiled and len(profiled) == len(launches):
        return {launch.op: read(launch, row) for launch, row in zip(launches, profiled, strict=True)}
    if ended.code is None:
        return f"the profiler took more than {most_seconds:g} s and was killed; choose a smaller n"
    if any("NVGPUCTRPERM" in text for text in (log, stderr)):
        return ncu.FORBIDDEN
    if profiled:
        return f"ncu profiled {len(profiled)} kernels, but {len(launches)} were launched, so they cannot be matched; report it"
    refusals = [line for line in stderr.splitlines() if line.startswith("fwtui: ")]
    if refusals:
        return sanitise(refusals[-1].removeprefix("fwtui: "))
    last = complaints or stderr.strip().splitlines()[-1:] or [f"it ended with exit code {ended.code} and no counters"]
    return f"ncu failed: {sanitise(last[0])}; run it by hand for details"


def read(launch: ProfiledLaunch, row: Mapping[str, float]) -> Counters:
    """Return the counters of one launch from ncu's metrics."""
    values: dict[str, float] = {"relaxations": float(launch.relaxations)}
    for metric in METRICS:
        value = next((row[name] for name in metric.names.split() if name in row), None)
        if value is not None:
            values[metric.key] = value
    seconds = values.get("seconds")
    for kind in ("load", "store"):
        if seconds and f"shared_{kind}_wavefronts" in values:
            values[f"shared_{kind}_bytes_per_second"] = values[f"shared_{kind}_wavefronts"] * WAVEFRONT / seconds
    if "dram_read_bytes" in values and "dram_write_bytes" in values:
        values["dram_bytes"] = values["dram_read_bytes"] + values["dram_write_bytes"]
    integers = values.get("integer_instructions")
    if integers is not None and launch.relaxations:
        values["integer_instructions_per_relaxation"] = integers / launch.relaxations
    if integers is not None and seconds:
        values["gops"] = integers / seconds / 1e9
    return {metric.key: values[metric.key] for metric in METRICS if 0 <= values.get(metric.key, -1) <= units.LARGEST}


class CounterProfile:
    """Profiles a finished run in a separate thread; `outcome` is None until the profile is complete."""

    def __init__(self, run: int, experiment: Settled, profile: Callable[[Settled, Event], Outcome] | None = None):
        self.run = run
        self.outcome: Outcome | None = None
        self._profile = profile or measure
        self._stop = Event()
        self._thread = Thread(target=self._measure, args=(experiment,), name="counters", daemon=True)
        self._thread.start()

    def events(self, t: float) -> list[events.Event]:
        """Return the outcome as events: the counters and a notice, or a notice with the reason for none."""
        if self.outcome is None or isinstance(self.outcome, str):
            return [events.Notice(t=t, level="warning", text=f"run {self.run} has no counters: {self.outcome}")]
        counted = [events.Counters(t=t, run=self.run, op=op, values=dict(values)) for op, values in self.outcome.items()]
        return [*counted, events.Notice(t=t, level="info", text=f"the counters of run {self.run} are ready")]

    def cancel(self) -> None:
        """Stop the profiler; the outcome reports this."""
        self._stop.set()

    def close(self, grace: float) -> None:
        self.cancel()
        self._thread.join(grace)

    def _measure(self, experiment: Settled) -> None:
        try:
            outcome = self._profile(experiment, self._stop)
        except Exception as error:  # no error may stop the dashboard
            outcome = f"the profiler could not be run: {error}"
        self.outcome = "the profiler was stopped" if self._stop.is_set() else outcome
