"""NVIDIA Compute Sanitizer on a kernel: accesses out of bounds and shared-memory races, which correct distances may hide.

Options and output: Compute Sanitizer documentation, "Command Line Options", "Memcheck Tool" and "Racecheck Tool". Newer versions
call a place `relax(float *, int)+0x90 in mine.cu:13`, older ones `0x90 in /hw/mine.cu:13:relax(float *, int)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import NamedTuple

import msgspec

from fwtui.common.child_process import module_command
from fwtui.common.text import sanitise
from fwtui.live import ncu
from fwtui.stream.kernel_tests import BROKEN, LEFT_OUT, RIGHT, UNRELIABLE, Begun, Finding, KernelTestRequest

NAME = "compute-sanitizer"
PLACES = ("/usr/local/cuda*/bin/compute-sanitizer", "/opt/cuda/bin/compute-sanitizer")
ABSENT = f"{NAME} was not found, so races and accesses out of bounds are not checked; it comes with the CUDA toolkit"
SECONDS = 60.0  # limit of one check; a kernel runs up to a hundred times slower under the sanitizer
_PLACE = re.compile(
    r"(?:0x[0-9a-f]+ in (?P<old_file>[^:]+):(?P<old_line>\d+):(?P<old>.+)"
    r"|0x[0-9a-f]+ in (?P<oldest>.+)"
    r"|(?P<new>.+?)\+0x[0-9a-f]+(?: in (?P<file>.+):(?P<line>\d+))?)"
)
_INVALID = re.compile(
    r"^=+ Invalid __(?P<memory>\w+)__ (?P<access>\w+) of size (?P<size>\d+) bytes\n"
    r"=+ +at (?P<place>.+)\n"
    r"(?:=+ +by thread \((?P<thread>[\d,]+)\) in block \((?P<block>[\d,]+)\)\n)?"
    r"(?:=+ +A.* is (?P<how>.+))?",
    re.MULTILINE,
)
_RACE = re.compile(
    r"^=+ (?:Error|ERROR): Race reported between (?P<one>Read|Write) access at (?P<at>.+)\n"
    r"=+ +and (?P<other>Read|Write) access at (?P<other_place>.+?)(?: \[\d+ hazards?\])?$",
    re.MULTILINE,
)
_SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: ", re.MULTILINE)


class SanitizerTool(NamedTuple):
    """A tool of the sanitizer: its outcome, its parser, and the phrase for no finding."""

    outcome: str
    found: Callable[[str], str]
    none: str


def run_sanitizer(request: KernelTestRequest, stop: Event, seconds: float = SECONDS) -> Iterator[Finding]:
    """Yield the finding of each check of the smallest graphs, until another thread sets `stop`. Needs a GPU."""
    tool = ncu.installed(NAME, PLACES)
    if tool is None:
        yield Finding(case=NAME, outcome=LEFT_OUT, sentence=ABSENT)
        return
    brief_request = msgspec.structs.replace(request, sizes=(), brief=True)
    for name, check in CHECKS.items():
        finding = _checked(tool, name, check, brief_request, stop, seconds)
        if stop.is_set():
            return
        yield finding


def _checked(tool: str, name: str, check: SanitizerTool, request: KernelTestRequest, stop: Event, seconds: float) -> Finding:
    program = module_command("fwtui.measure.kernel_test_process")
    try:
        log, ended = ncu.run_tool([tool, "--tool", name, "--show-backtrace", "no"], program, stop, seconds, request)
    except OSError as error:
        return Finding(case=name, outcome=LEFT_OUT, sentence=sanitise(f"{name} was skipped: {error}"))
    if sentence := check.found(log):
        return Finding(case=name, outcome=check.outcome, sentence=sanitise(f"{NAME}: {sentence}"))
    if ended.code is None:
        return Finding(case=name, outcome=LEFT_OUT, sentence=f"{name} was skipped: {NAME} took more than {seconds:g} s")
    if not _SUMMARY.search(log):
        complaint = (log.strip().splitlines() or [ended.last_output])[-1].strip("= ")
        return Finding(case=name, outcome=LEFT_OUT, sentence=sanitise(f"{name} was skipped: {NAME} failed: {complaint}"))
    if not (most := _ran(ended.stdout)):
        return Finding(case=name, outcome=LEFT_OUT, sentence=f"{name} was skipped: the kernel did not run in {NAME}")
    return Finding(case=name, outcome=RIGHT, sentence=f"{NAME} finds {check.none}, up to n = {most}")


def _ran(stdout: bytes) -> int:
    """Return the number of vertices of the largest completed graph; 0 if there is none."""
    most = 0
    for line in stdout.splitlines():
        with suppress(msgspec.MsgspecError):
            answer = msgspec.json.decode(line, type=Finding | Begun)
            most = max(most, answer.n if isinstance(answer, Finding) and answer.outcome != LEFT_OUT else 0)
    return most


def invalid_access(log: str) -> str:
    """Describe memcheck's first access out of bounds; empty if there is none."""
    match = _INVALID.search(log)
    if match is None:
        return ""
    (function, line), how = _place(match["place"]), match["how"] or ""
    does = {"read": "reads", "write": "writes"}.get(match["access"], "accesses")
    where = "at a misaligned address" if "misaligned" in how else f"outside its {match['memory']} memory"
    by = f"thread ({match['thread']}) of block ({match['block']})" if match["thread"] else ""
    about = ", ".join(word for word in (line, by) if word)
    return f"{function} {does} {match['size']} bytes {where}{f' ({about})' if about else ''}"


def race(log: str) -> str:
    """Describe the first race in shared memory that racecheck reports as an error; empty if there is none."""
    match = _RACE.search(log)
    if match is None:
        return ""
    (function, *one), (_, *other) = _place(match["at"]), _place(match["other_place"])
    verbs = {"Read": "reads", "Write": "writes"}
    first, second = (f" ({line})" if line else "" for line in (*one, *other))
    places = f"one {verbs[match['one']]}{first} where another {verbs[match['other']]}{second}"
    harm = "harmless only if the write repeats the stored value"
    return f"threads of a block race in {function}: in shared memory {places}, and no barrier is between them; {harm}"


CHECKS: Mapping[str, SanitizerTool] = {
    "memcheck": SanitizerTool(BROKEN, invalid_access, "no access out of bounds"),
    # a write that repeats the stored value is a race too, as in many correct pivot phases
    "racecheck": SanitizerTool(UNRELIABLE, race, "no race in shared memory"),
}


def _place(text: str) -> tuple[str, str]:
    """Return the function, and its line if available: mine.py:12."""
    match = _PLACE.fullmatch(text.strip())
    if match is None:
        return _function(text), ""
    file, line = match["file"] or match["old_file"], match["line"] or match["old_line"]
    return _function(match["new"] or match["old"] or match["oldest"]), f"{Path(file).name}:{line}" if file else ""


def _function(name: str) -> str:
    """Return a function's name without its scope: relax, of own_mine::build::<locals>::relax[abi:v1](Array<float, 2, C>, int)."""
    bare = re.split(r"[\[(<]", name.replace("<locals>::", ""), maxsplit=1)[0]
    return re.sub(r"\$\d+$", "", bare.split("::")[-1].split(" ")[-1]) or "the kernel"
