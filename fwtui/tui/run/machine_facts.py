"""The machine of a live session, below the form: processor, GPUs and measured peak rates."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from fwtui.analysis import limits
from fwtui.common import units
from fwtui.experiment.device import CPU, DeviceId
from fwtui.stream.event import Machine
from fwtui.stream.model import Model
from fwtui.tui.widgets.run_labels import describe_gpu
from fwtui.tui.widgets.text_panel import MUTED, TextPanel, hanging_indent, line

LABEL = 10  # cells
MAX_ROWS = 5  # of a fact
Facts = tuple[tuple[str, str], ...]  # a label and a text each


def facts_of(model: Model, limits_key: str) -> Facts:
    """Collect the facts; `limits_key` is the key that measures peak rates."""
    machine = model.header.machine if model.header is not None else Machine()
    memory = units.memory(machine.memory_bytes) if machine.memory_bytes else ""
    cores = units.counted(machine.cores, "core") if machine.cores else ""
    facts = [("CPU", " · ".join(filter(None, (machine.cpu, cores, memory)))), ("peak rate", _peak_rate(model, CPU, limits_key))]
    for index, gpu in sorted(model.devices.items()):
        if gpu.present:
            facts += [(f"GPU {index}", describe_gpu(gpu)), ("peak rate", _peak_rate(model, index, limits_key))]
    return tuple(fact for fact in facts if fact[1])


def _peak_rate(model: Model, device: DeviceId, key: str) -> str:
    """Describe the measured peak rates of a device, by data type."""
    measured = model.measured.get(device) or limits.load(device)
    peaks = limits.describe_peaks(measured) if measured is not None else []
    return f"{' · '.join(peaks)} relax/s" if peaks else f"{key} measures it"


class MachineFacts(TextPanel[Facts]):
    """A panel of the facts with their labels."""

    DEFAULT_CSS = "MachineFacts { height: 1fr; margin-top: 1; }"

    def __init__(self) -> None:
        super().__init__(())
        self._known: tuple[object, ...] = ()  # the devices, limits and key of the facts that are shown

    def follow(self, model: Model, limits_key: str) -> None:
        """Show the facts of the model's machine; they are collected only if they can have changed."""
        if (known := (model.devices, model.measured, limits_key)) != self._known:
            self._known = known
            self.show(facts_of(model, limits_key))

    def draw(self, subject: Facts, width: int) -> Sequence[Content]:
        rows = [line(("THIS MACHINE", f"bold {MUTED}"))] if subject else []
        for label, text in subject:
            rows += hanging_indent(label, LABEL, text.split(" · "), width, most=MAX_ROWS)
        return rows
