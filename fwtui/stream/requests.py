"""Requests of a parent to its children, one JSON object per line on stdin, and their answers that are not events."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from fwtui.experiment.experiment import Experiment, Settled
from fwtui.stream.events import Answers, Device, Event, GpuIndex, Limits, OfDevice, RunDone, RunId, Sampled


class RunRequest(Struct, frozen=True, tag="start", tag_field="ask"):
    """Run an experiment; `file` in it and `own` are paths on this machine."""

    run: RunId
    experiment: Settled
    brief: bool = False  # no phase passes, and no warm-up unless something compiles
    own: str = ""  # the file of its kernel, if it is the user's own
    tell_source: bool = False  # of such a kernel


class ProbeRequest(OfDevice, frozen=True, tag="probe", tag_field="ask"):
    """Measure the limits of a backend's device."""

    backend: str  # "cpu" | "cuda"
    gpu: GpuIndex = 0


class AnswerRequest(Struct, frozen=True, tag="answer", tag_field="ask"):
    """Summarise the distances of a finished run; the checksum is that of its verdict."""

    run: RunId
    experiment: Settled
    checksum: str
    own: str = ""


class SampleRequest(Struct, frozen=True, tag="sample", tag_field="ask"):
    """Sample the warps of a finished run's kernel (fwtui.measure.warp_sampling_process)."""

    run: RunId
    experiment: Settled
    own: str = ""
    vertices: int = 0  # of its graph
    seconds: float = 0.0  # of one pass
    most_seconds: float = 0.0  # that sampling may take; 0: as long as it takes
    tell_source: bool = False  # of the user's own kernel
    ahead: bool = False  # the run is not finished: only get ready for it


class CancelRequest(Struct, frozen=True, tag="cancel", tag_field="ask"):
    """Stop a run before its next step."""

    run: RunId


class PrepareRequest(Struct, frozen=True, tag="prepare", tag_field="ask"):
    """Import the modules and open the device of a run; there is no answer."""

    backend: str
    gpu: GpuIndex = 0


class RankOrder(Struct, frozen=True, tag="order", tag_field="ask"):
    """Execute an order (of fwtui.engine.distributed_engine, as bytes) on all ranks of a job."""

    order: bytes


class Reply(Struct, frozen=True):
    """The reply of one rank to an order, or the reason for a rejection; a list of all ranks' replies answers a RankOrder."""

    value: Any = None
    refusal: str = ""


Work = RunRequest | AnswerRequest | ProbeRequest
Request = Work | CancelRequest | PrepareRequest | RankOrder


def last_word(request: Work | SampleRequest, t: float, outcome: str, why: str) -> Event:
    """The last event of a request that was not completed."""
    match request:
        case RunRequest(run=run):
            return RunDone(t=t, run=run, outcome=outcome, message=why)
        case AnswerRequest(run=run):
            return Answers(t=t, run=run, note=why)
        case SampleRequest(run=run):
            return Sampled(t=t, run=run, note=why)
        case ProbeRequest(backend=backend, gpu=gpu):
            return Limits(t=t, backend=backend, gpu=gpu, complete=True, note=why)


def encode(request: Request | list[Reply]) -> bytes:
    return msgspec.json.encode(request) + b"\n"


def decode(line: bytes) -> Request:
    """Decode a request. Raises msgspec.MsgspecError; only the parent process sends requests."""
    return msgspec.json.decode(line, type=Request)


def replies(line: bytes) -> list[Reply]:
    return msgspec.json.decode(line, type=list[Reply])


class Hardware(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The GPUs that CUDA programs can see here, in CUDA's order, or why there are none: a sampler's answer to --probe."""

    gpus: tuple[Device, ...] = ()
    gpm: bool = False  # one of them has live occupancy and DRAM counters
    reason: str = ""


class ProfileRequest(Struct, frozen=True):
    """Launch each operation of a kernel once under a profiler."""

    experiment: Settled
    own: str = ""  # as in Start


class ProfiledLaunch(Struct, frozen=True, tag="launch", tag_field="profiled"):
    """A profiled program's note of a launch, written before it."""

    op: str
    relaxations: int


class SaveRequest(Struct, frozen=True):
    """Generate a graph and save it in a file."""

    experiment: Experiment
    path: str


class StepRequest(Struct, frozen=True):
    """Run a kernel on a matrix of weights (None: no edge) and return the distances after every step."""

    experiment: Experiment
    weights: tuple[tuple[float | None, ...], ...]
    own: str = ""  # as in Start


class DistancesAfter(Struct, frozen=True):
    """The distances after a step; None means no path."""

    step: int
    distances: tuple[tuple[float | None, ...], ...]
