"""What the parent may ask of a worker: one JSON object per line on its stdin."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from fwtui.experiment.experiment import Experiment
from fwtui.stream.events import RunId


class Start(Struct, frozen=True, tag="start", tag_field="ask"):
    """Run this experiment; `file` in it is a path on this machine."""

    run: RunId
    experiment: Experiment
    brief: bool = False  # no phase passes, and no warm-up of what compiles nothing


class Probe(Struct, frozen=True, tag="probe", tag_field="ask"):
    """Measure what a backend's device can do at most."""

    backend: str  # "cpu" | "cuda"
    device: int = 0  # of several GPUs


class Answer(Struct, frozen=True, tag="answer", tag_field="ask"):
    """Say what is worth knowing about the distances of a run that is over; the checksum is that of its verdict."""

    run: RunId
    experiment: Experiment
    checksum: str


class Cancel(Struct, frozen=True, tag="cancel", tag_field="ask"):
    """Stop that run before its next step."""

    run: RunId


Request = Start | Answer | Probe | Cancel
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Request)


def encode(request: Request) -> bytes:
    return _encoder.encode(request) + b"\n"


def decode(line: bytes) -> Request:
    """Raises msgspec.MsgspecError; only ever fed by this program's own parent."""
    return _decoder.decode(line)
