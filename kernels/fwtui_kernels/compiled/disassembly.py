"""The instructions of a cubin with their source lines, from `nvdisasm` (NVIDIA, "CUDA Binary Utilities", section 3).

It is part of the CUDA toolkit and of the wheel nvidia-cuda-nvdisasm.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from fwtui_kernels.compiled.source_lines import NOWHERE, SourceLine, package_files, source_line

ABSENT = "nvdisasm is not installed; install the wheel nvidia-cuda-nvdisasm (part of fwtui[cu12] and [cu13]) or the CUDA toolkit"
SECONDS = 20.0
_SECTION = re.compile(r"\s*\.section\s+\.text\.(\S+?),")
_PLACE = re.compile(r'\s*//## File "([^"]+)", line (\d+)')
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.+?)\s*;")
_LABEL = re.compile(r"\s*(\.L_\w+):")


class MachineInstruction(NamedTuple):
    """A machine instruction (SASS)."""

    offset: int  # bytes from the start of the function
    text: str
    source: SourceLine
    target: int | None = None  # offset of the jump target


class Disassembler:
    """Disassembles cubins, each once. Raises FileNotFoundError without nvdisasm."""

    def __init__(self) -> None:
        from cuda import pathfinder  # may be missing on a machine without a GPU

        tool = pathfinder.find_nvidia_binary_utility("nvdisasm")
        if tool is None:
            raise FileNotFoundError(ABSENT)
        self._command = [tool, "-c", "-g", "/dev/stdin"]
        self._package = package_files()
        self._threads = ThreadPoolExecutor()
        self.reading = Lock()  # held by the thread that parses, because Python runs one thread at a time
        self._begun: dict[bytes, Future[dict[str, tuple[MachineInstruction, ...]]]] = {}

    def begin(self, cubin: bytes) -> None:
        """Start the disassembly for functions() in the background; the tool takes half a second."""
        if cubin not in self._begun:
            self._begun[cubin] = self._threads.submit(self._disassembled, cubin)

    def functions(self, cubin: bytes) -> dict[str, tuple[MachineInstruction, ...]]:
        """Return the instructions of each function by name.

        Raises OSError, subprocess.TimeoutExpired, or RuntimeError with the output of the tool.
        """
        self.begin(cubin)
        return self._begun[cubin].result()

    def _disassembled(self, cubin: bytes) -> dict[str, tuple[MachineInstruction, ...]]:
        with tempfile.TemporaryFile() as file:  # a pipe does not work, because the tool reads the file size
            file.write(cubin)
            file.seek(0)
            done = subprocess.run(self._command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
        with self.reading:
            listing = done.stdout.decode("utf-8", "replace")
            if done.returncode:
                raise RuntimeError(f"nvdisasm failed: {listing.strip()[:200]}")
            return {name: _read(lines, self._package) for name, lines in _sections(listing)}


def _sections(listing: str) -> Iterator[tuple[str, list[str]]]:
    name, lines = "", list[str]()
    for line in listing.splitlines():
        if match := _SECTION.match(line):
            if name:
                yield name, lines
            name, lines = match[1], []
        elif name:
            lines.append(line)
    if name:
        yield name, lines


def _read(lines: list[str], package: tuple[Path, ...]) -> tuple[MachineInstruction, ...]:
    instructions: list[tuple[int, str, SourceLine]] = []
    labels: dict[str, int] = {}
    pending: list[str] = []  # labels of the next instruction
    source = NOWHERE
    for line in lines:
        if place := _PLACE.match(line):
            source = source_line(place[1], int(place[2]), package)
        elif label := _LABEL.match(line):
            pending.append(label[1])
        elif match := _INSTRUCTION.match(line):
            offset = int(match[1], 16)
            labels.update(dict.fromkeys(pending, offset))
            pending.clear()
            instructions.append((offset, " ".join(match[2].split()), source))
    return tuple(MachineInstruction(offset, text, source, _target(text, labels)) for offset, text, source in instructions)


def _target(text: str, labels: dict[str, int]) -> int | None:
    match = re.search(r"\bBRA\b.*`\((\.L_\w+)\)", text)
    return labels.get(match[1]) if match else None
