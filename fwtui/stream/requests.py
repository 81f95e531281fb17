"""Requests of a parent to its children, one JSON object per line on stdin, and their answers that are not events."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from fwtui.experiment.experiment import Experiment, Settled
from fwtui.stream.events import Answers, Device, Event, GpuIndex, Limits, OfDevice, RunDone, RunId
from fwtui_kernels.plan import Shape


class Start(Struct, frozen=True, tag="start", tag_field="ask"):
    """Run this experiment; `file` in it and `own` are paths on this machine."""

    run: RunId
    experiment: Settled
    brief: bool = False  # no phase passes, and no warm-up unless something compiles
    own: str = ""  # the file of its kernel, if it is the user's own
    tell_source: bool = False  # of such a kernel


class Probe(OfDevice, frozen=True, tag="probe", tag_field="ask"):
    """Measure the limits of a backend's device."""

    backend: str  # "cpu" | "cuda"
    gpu: GpuIndex = 0


class Answer(Struct, frozen=True, tag="answer", tag_field="ask"):
    """Summarise the distances of a finished run; the checksum is that of its verdict."""

    run: RunId
    experiment: Settled
    checksum: str
    own: str = ""


class Cancel(Struct, frozen=True, tag="cancel", tag_field="ask"):
    """Stop that run before its next step."""

    run: RunId


class Prepare(Struct, frozen=True, tag="prepare", tag_field="ask"):
    """Import and open what a run on this device takes; nothing is answered."""

    backend: str
    gpu: GpuIndex = 0


class Order(Struct, frozen=True, tag="order", tag_field="ask"):
    """Have all ranks of a job do this (a method of fwtui.engine.ranks.Share); what it takes of a text and a shape."""

    name: str
    text: str | None = None
    shape: Shape | None = None

    @property
    def given(self) -> tuple[str | Shape, ...]:
        return tuple(given for given in (self.text, self.shape) if given is not None)


class Replies(Struct, frozen=True):
    """The answer to an order: what each rank returned, or why one refused."""

    values: list[Any]
    refusal: str = ""


Work = Start | Answer | Probe
Request = Work | Cancel | Prepare | Order


def last_word(request: Work, t: float, outcome: str, why: str) -> Event:
    """The last event of a request that was not completed."""
    match request:
        case Start(run=run):
            return RunDone(t=t, run=run, outcome=outcome, message=why)
        case Answer(run=run):
            return Answers(t=t, run=run, note=why)
        case Probe(backend=backend, gpu=gpu):
            return Limits(t=t, backend=backend, gpu=gpu, complete=True, note=why)


def encode(request: Request | Replies) -> bytes:
    return msgspec.json.encode(request) + b"\n"


def decode(line: bytes) -> Request:
    """Raises msgspec.MsgspecError; fed only by this program's own parent."""
    return msgspec.json.decode(line, type=Request)


def replies(line: bytes) -> Replies:
    return msgspec.json.decode(line, type=Replies)


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
    """Make this graph and save it there."""

    experiment: Experiment
    path: str


class StepRequest(Struct, frozen=True):
    """Run a kernel on these weights and stop after every step; None means no edge."""

    experiment: Experiment
    weights: tuple[tuple[float | None, ...], ...]
    own: str = ""  # as in Start


class DistancesAfter(Struct, frozen=True):
    """The distances after a step; None means no path."""

    step: int
    distances: tuple[tuple[float | None, ...], ...]
