"""The device of a run, or the devices of its ranks: "0,1", "cpu,cpu"."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import force_setattr

from fwtui.common.errors import Refused
from fwtui.common.text import excerpt, quoted

ALL = "all"
MAX_DEVICES = 64  # devices of a run


class DeviceId(Struct, frozen=True, order=True):
    """A device of a machine; `auto` lets the program choose."""

    backend: str = "auto"  # | "cpu" | "cuda" | "simulator"
    index: int = 0  # CUDA device index

    def __post_init__(self) -> None:
        if self.backend != "cuda":
            force_setattr(self, "index", 0)  # only GPUs are numbered

    def __str__(self) -> str:
        """Return the text that parse() converts to this device."""
        return str(self.index) if self.backend == "cuda" else self.backend

    @property
    def noun(self) -> str:
        """Return the name of the device for a sentence: the CPU, GPU 1."""
        return f"GPU {self.index}" if self.backend == "cuda" else "the CPU"

    @property
    def simulated(self) -> bool:
        return self.backend == "simulator"

    def on(self, backend: str) -> DeviceId:
        """Return this choice as a device of a backend; a GPU without a number is the first."""
        return DeviceId(backend, self.index)

    @classmethod
    def parse(cls, text: str, besides: str = "simulator") -> DeviceId:
        """Parse "auto", a GPU index of up to four digits, or another known word. Raises Refused for anything else."""
        if text in ("auto", besides):
            return cls(text)
        if text.isascii() and text.isdecimal() and len(text) <= 4:
            return cls("cuda", int(text))
        raise Refused(f"device {quoted(text)} is neither auto, {besides} nor a GPU's number; `fwtui doctor` lists the GPUs")


CPU, FIRST_GPU = DeviceId("cpu"), DeviceId("cuda")


class RankDevice(NamedTuple):
    """The host and the GPU of a rank, which computes on cores if it has no GPU; hosts are numbered in an MPI program."""

    host: int
    gpu: int | None

    def __str__(self) -> str:
        device = "cpu" if self.gpu is None else str(self.gpu)
        return f"{self.host}:{device}" if self.host else device


def places(text: str) -> tuple[RankDevice, ...]:
    """Return the device of each rank; empty for no devices. Raises Refused for an invalid list."""
    if text in ("", ALL):
        return ()
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > MAX_DEVICES:
        raise Refused(f"{len(parts)} devices are more than {MAX_DEVICES}; pass fewer")
    rank_places = tuple(_place(part, text) for part in parts)
    if len({place.gpu is None for place in rank_places}) > 1:
        raise Refused(f"devices {excerpt(text)} mix GPUs and cpu; pass either GPUs like 0,1 or cpu,cpu")
    gpus = [place for place in rank_places if place.gpu is not None]
    twice = next((place for place in gpus if gpus.count(place) > 1), None)
    if twice is not None:
        raise Refused(f"devices {excerpt(text)} name GPU {twice} twice; pass each once")
    return rank_places


def _place(word: str, text: str) -> RankDevice:
    if word == "cpu":
        return RankDevice(0, None)
    if not (word.isascii() and word.isdecimal() and len(word) <= 4):
        what = f"{quoted(word)} in devices {excerpt(text)}" if word != text else f"devices {quoted(text)}"
        raise Refused(f"{what} is neither cpu nor a GPU's number; pass something like 0,1 or cpu,cpu, or all for all GPUs")
    return RankDevice(0, int(word))


def format_devices(all_places: tuple[RankDevice, ...]) -> str:
    """Return the text that places() converts to these devices."""
    return ",".join(map(str, all_places))
