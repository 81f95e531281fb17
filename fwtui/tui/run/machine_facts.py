"""The machine of a live session, below the form: processor, GPUs and measured peak rates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from textual.content import Content

from fwtui.analysis import limits
from fwtui.common import units
from fwtui.experiment.device import CPU, DeviceId
from fwtui.stream.event import Machine
from fwtui.stream.model import Model
from fwtui.tui.widgets.run_labels import describe_gpu
from fwtui.tui.widgets.text_panel import MUTED, TextPanel, hanging_indent, line
from fwtui_kernels.plan import Kernel

LABEL = 10  # cells
MAX_ROWS = 5  # maximum rows of a fact
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


class FactsSubject(NamedTuple):
    facts: Facts = ()
    kernel: Kernel | None = None  # the kernel of the form
    rows: int = 0  # available height


class MachineFacts(TextPanel[FactsSubject]):
    """A panel of the facts with their labels; below them the lesson about the form's kernel, as far as it fits."""

    DEFAULT_CSS = "MachineFacts { height: 1fr; margin-top: 1; }"

    def __init__(self) -> None:
        super().__init__(FactsSubject())
        self._known: tuple[object, ...] = ()  # the devices, limits and key of the facts that are shown

    def follow(self, model: Model, limits_key: str, kernel: Kernel) -> None:
        """Show the facts of the model's machine; they are collected only if they can have changed."""
        facts = self.subject.facts
        if (known := (model.devices, model.measured, limits_key)) != self._known:
            self._known, facts = known, facts_of(model, limits_key)
        self.show(FactsSubject(facts, kernel, self.size.height))

    def on_resize(self) -> None:
        self.show(self.subject._replace(rows=self.size.height))

    def draw(self, subject: FactsSubject, width: int) -> Sequence[Content]:
        rows = [line(("THIS MACHINE", f"bold {MUTED}"))] if subject.facts else []
        for label, text in subject.facts:
            rows += hanging_indent(label, LABEL, text.split(" · "), width, most=MAX_ROWS)
        if subject.kernel is not None:
            sentences, room = re.split(r"(?<=\.) ", subject.kernel.lesson), subject.rows - len(rows) - 2
            texts = (Content(" ".join(sentences[:count])).wrap(width) for count in range(len(sentences), 0, -1))
            lesson = next((text for text in texts if len(text) <= room), [])
            rows += [line(""), line((subject.kernel.title.upper(), f"bold {MUTED}")), *lesson] if lesson else []
        return rows
