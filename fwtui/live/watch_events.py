"""The parts of the watch loop: detection of a save, compilation, and the lines that report on it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import NamedTuple

import msgspec

from fwtui.analysis.occupancy import TABLE
from fwtui.analysis.warps import derived, line_text, main_samples
from fwtui.common import units
from fwtui.common.child_process import ChildProcess, ModuleProcess
from fwtui.common.errors import Refused
from fwtui.common.small_file import file_version
from fwtui.common.text import quoted, sanitise
from fwtui.stream.kernel_tests import REST, Compiled, CompileRequest, Finding, OperationResources
from fwtui.stream.run import Run
from fwtui_kernels.own import files_of, source_of

POLL_SECONDS = 0.05  # seconds between two checks of the files
State = tuple[tuple[str | int, ...], ...]
SECONDS = 30.0  # limit of a compilation
# the kinds of report lines
COMPILED, DERIVED, PLAN, CASE, VERDICT = "compiled", "derived", "plan", "case", "verdict"
TIME, LINE, REASON, HINT, NOTE = "time", "line", "reason", "hint", "note"


class FileWatcher:
    """A kernel's file and those next to it; until the first wait() they count as changed."""

    def __init__(self, path: Path, sleep: Callable[[float], object] = time.sleep):
        self.path = path
        self._sleep = sleep
        self._taken: State = ()

    @property
    def changed(self) -> bool:
        """True if the files differ from those of the last wait(). False while the file is missing, as in many editors' saves."""
        state = self._state()
        return bool(state) and state != self._taken

    def wait(self, ended: Event) -> bool:
        """Wait until the files have changed and are stable; return False if `ended` is set first."""
        while not ended.is_set():
            state = self._state()
            self._sleep(POLL_SECONDS)
            # a file that is still being written differs at the next check
            if state and state != self._taken and state == self._state():
                self._taken = state
                return True
        return False

    def _state(self) -> State:
        try:
            return tuple((file.name, *file_version(file.stat())) for file in files_of(self.path))
        except OSError:
            return ()


class SaveEvent(Event):
    """An event that stops a check: the next save, an explicit stop, or the end of the program."""

    def __init__(self, watched: FileWatcher, ended: Event):
        super().__init__()
        self._watched, self._ended = watched, ended

    def is_set(self) -> bool:
        return super().is_set() or self._ended.is_set() or self._watched.changed


def compiler() -> ChildProcess:
    """Start a process that compiles one kernel when it gets a request. Raises OSError."""
    return ModuleProcess("fwtui.measure.compile_process")


def compile_kernel(
    request: CompileRequest, stop: Event | None = None, start: Callable[[], ChildProcess] = compiler
) -> Compiled | None:
    """Return the compiler's result; None if it did not answer, or if another thread sets `stop`."""
    try:
        return msgspec.json.decode(start().finish(SECONDS, request, stop).stdout, type=Compiled)
    except (OSError, msgspec.MsgspecError):
        return None


def architecture(capability: tuple[int, int]) -> str:
    """Return the compilers' name for it: sm_90."""
    return "sm_{}{}".format(*capability)


def parse_architecture(text: str) -> tuple[int, int]:
    """Return the compute capability of an architecture. Raises Refused for an unknown one."""
    match = re.fullmatch(r"(?:sm_?)?(\d{1,2})\.?(\d)a?", text)
    capability = (int(match[1]), int(match[2])) if match else (0, 0)
    if capability not in TABLE:
        names = ", ".join(map(architecture, TABLE))
        raise Refused(f"{quoted(text)} is not a supported GPU architecture; choose one of {names}")
    return capability


class Report(NamedTuple):
    """A report line and its data."""

    about: str
    sentence: str
    finding: Finding | None = None
    seconds: float | None = None  # seconds of one repetition at n
    right: bool | None = None  # None if the line has no outcome
    used: OperationResources | None = None  # compiled resources of an operation


class CheckStart(NamedTuple):
    """A check of a save begins; the reports on the previous save are complete."""

    number: int  # consecutive number of the check


class CheckEnd(NamedTuple):
    """The end of the reports on a save; a slow tool may still set `right` to False later."""

    verdict: str
    right: bool
    tested: bool  # True if the test of the kernel had an outcome
    seconds: float | None = None  # seconds of one repetition at n; None if it was not timed, or is not right


class Activity(NamedTuple):
    """The present work of a check, until the next update."""

    text: str


class Superseded(NamedTuple):
    """The file was saved again before the check was complete."""


WatchUpdate = Report | CheckStart | Activity | CheckEnd | Superseded


def hotspot(run: Run, path: Path) -> str | None:
    """Describe the line of the user's file with the most samples of the slowest phase; None if there is none."""
    samples = main_samples(run)
    listing = run.listing(samples.op) if samples is not None else None
    if samples is None or listing is None:
        return None
    line = next((line for line in listing.sampled if Path(line.file).stem == source_of(path).stem), None)
    return line_text(line, samples.samples) if line is not None else None


def compile_reports(compiled: Compiled | None, capability: tuple[int, int]) -> Iterator[Report]:
    """Yield the compiled resources of each operation."""
    arch = architecture(capability)
    if compiled is None or compiled.lacking:
        why = sanitise(compiled.lacking) if compiled is not None else "the compiler did not answer"
        yield Report(NOTE, f"not compiled for {arch}: {why}")
        return
    for used in compiled.used:
        yield Report(COMPILED, f"{arch}: {sanitise(used.op)}: {_used(used)}", used=used)


def derived_reports(compiled: Compiled | None, capability: tuple[int, int]) -> Iterator[Report]:
    """Yield conclusions from the instructions of the remainder phase; without this phase, of every operation."""
    used = compiled.used if compiled is not None else ()
    for one in [one for one in used if one.phase == REST] or used:
        if one.listing is not None and (text := derived(one.listing)):
            yield Report(DERIVED, f"{architecture(capability)}: {sanitise(one.op)}: {text}")


def _used(used: OperationResources) -> str:
    rows = [
        units.counted(used.registers, "register"),
        f"{units.memory(used.shared_bytes)} of shared memory" if used.shared_bytes else "no shared memory",
        f"{used.spill_bytes:,} bytes spilled" if used.spill_bytes else "no spills",
    ]
    if used.max_warps:
        limited = f" (limiter: {' and '.join(used.limiters)})" if used.limiters and used.warps < used.max_warps else ""
        rows.append(f"{used.warps} of {used.max_warps} warps{limited}")
    return ", ".join(rows)
