"""The device that computes."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr

from fwtui.common.errors import Refused
from fwtui.common.text import shown


class DeviceId(Struct, frozen=True, order=True):
    """One device of a machine; `auto` lets the program choose."""

    backend: str = "auto"  # | "cpu" | "cuda" | "simulator"
    index: int = 0  # of a GPU, in CUDA's order

    def __post_init__(self) -> None:
        if self.backend != "cuda":
            force_setattr(self, "index", 0)  # only GPUs are numbered

    def __str__(self) -> str:
        """The text that parses to it."""
        return str(self.index) if self.backend == "cuda" else self.backend

    @property
    def simulated(self) -> bool:
        return self.backend == "simulator"

    def on(self, backend: str) -> DeviceId:
        """This choice as a device of that backend: a GPU without a number is the first."""
        return DeviceId(backend, self.index)

    @classmethod
    def parse(cls, text: str, besides: str = "simulator") -> DeviceId:
        """From "auto", a GPU's number of up to four digits, or another known word. Raises Refused for anything else."""
        if text in ("auto", besides):
            return cls(text)
        if text.isascii() and text.isdecimal() and len(text) <= 4:
            return cls("cuda", int(text))
        raise Refused(f"device {shown(text)} is neither auto, {besides} nor a GPU's number; `fwtui doctor` lists the GPUs")


CPU, FIRST_GPU = DeviceId("cpu"), DeviceId("cuda")
