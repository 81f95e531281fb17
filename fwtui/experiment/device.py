"""Which device is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from fwtui.common.errors import Refused
from fwtui.common.text import shown


@dataclass(frozen=True, slots=True)
class DeviceId:
    """A GPU by its number in CUDA's order, Numba's simulator, or neither: then it is the first GPU where one is needed."""

    gpu: int | None = None
    simulator: bool = False

    @property
    def index(self) -> int:
        """The GPU's number; 0 where none was named."""
        return self.gpu or 0

    @classmethod
    def parse(cls, text: str) -> DeviceId:
        """From "auto", "simulator" or a GPU's number. Raises Refused for what names no device."""
        if text in ("auto", "simulator"):
            return cls(simulator=text == "simulator")
        number = gpu_number(text)
        if number is not None:
            return cls(gpu=number)
        raise Refused(f"device {shown(text)} is neither auto, simulator nor a GPU's number; `fwtui doctor` lists the GPUs")


def gpu_number(text: str) -> int | None:
    """The GPU's number that the text is, of up to four ASCII digits; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 4 else None
