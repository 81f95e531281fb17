"""Requests of a parent to its children, one JSON object per line on stdin, and their answers that are not events."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from fwtui.experiment.experiment import Experiment, Settled
from fwtui.stream.events import Device, Event, GpuIndex, Limits, OfDevice, RunDone, RunId


class RunRequest(Struct, frozen=True, tag="start", tag_field="ask"):
    """Run an experiment; `file` in it and `own` are paths on this machine."""

    run: RunId
    experiment: Settled
    own: str = ""  # file of a user kernel
    include_source: bool = False  # record the source of a user kernel


class ProbeRequest(OfDevice, frozen=True, tag="probe", tag_field="ask"):
    """Measure the limits of a backend's device."""

    backend: str  # "cpu" | "cuda"
    gpu: GpuIndex = 0


class SampleRequest(Struct, frozen=True, tag="sample", tag_field="ask"):
    """Sample the warps of a finished run's kernel (fwtui.measure.warp_sampling_process)."""

    run: RunId
    experiment: Settled
    own: str = ""
    vertices: int = 0  # vertices of the graph
    seconds: float = 0.0  # time of a repetition
    most_seconds: float = 0.0  # time limit of sampling; 0: none
    include_source: bool = False  # record the source of a user kernel
    ahead: bool = False  # the run is not finished: only prepare


class CancelRequest(Struct, frozen=True, tag="cancel", tag_field="ask"):
    """Stop a run before its next step."""

    run: RunId


class Reply(Struct, frozen=True):
    """The reply of one rank to an order (of fwtui.engine.distributed_engine), or the reason for a rejection."""

    value: Any = None
    refusal: str = ""


Work = RunRequest | ProbeRequest
Request = Work | CancelRequest


def last_word(request: Work, t: float, why: str) -> Event:
    """Return the last event of a request that failed."""
    match request:
        case RunRequest(run=run):
            return RunDone(t=t, run=run, outcome="failed", message=why)
        case ProbeRequest(backend=backend, gpu=gpu):
            return Limits(t=t, backend=backend, gpu=gpu, complete=True, note=why)


def decode(line: bytes) -> Request:
    """Decode a request. Raises msgspec.MsgspecError; only the parent process sends requests."""
    return msgspec.json.decode(line, type=Request)


class Hardware(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The GPUs that CUDA programs can use, in CUDA's order, or the reason for none: a sampler's reply to --probe."""

    gpus: tuple[Device, ...] = ()
    gpm: bool = False  # one of them has live occupancy and DRAM counters
    reason: str = ""


class ProfileRequest(Struct, frozen=True):
    """Launch each operation of a kernel once under a profiler."""

    experiment: Settled
    own: str = ""  # file of a user kernel


class ProfiledLaunch(Struct, frozen=True, tag="launch", tag_field="profiled"):
    """A launch of a profiled program, reported before it happens."""

    op: str
    relaxations: int


class SaveRequest(Struct, frozen=True):
    """Generate a graph and save it in a file."""

    experiment: Experiment
    path: str
