"""The requests and findings of a kernel test: one JSON object per line between two processes.

All types are plain data, so that code that shows or counts findings does not import the code that runs kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from fwtui.common import units
from fwtui.experiment.device import DeviceId
from fwtui.stream.listing import Listing
from fwtui_kernels.plan import Rect

# outcomes of a case: right, wrong or varying distances, and cases that the kernel does not accept
RIGHT, WRONG, RACY, LEFT_OUT = "right", "wrong", "racy", "left out"
UNRELIABLE = "unreliable"  # a possible mistake that has not changed any distance
BROKEN, TIMED_OUT, DIED = "broken", "hung", "died"
PRINTED = "printed"  # a line that the kernel's file printed during the test, no outcome
FINE = (RIGHT, UNRELIABLE, LEFT_OUT, PRINTED)
REST = "rest"  # key of the phase that does most of the work, if there are several
NO_COMPILER = "no GPU compiler is installed"
LOADING, PLANNING, OVER = "loading", "plan", "over"  # cases without a graph; OVER ends the test


class KernelTestRequest(Struct, frozen=True, kw_only=True):
    """Test a kernel. `path` is the file of a user kernel; `tile` 0 is the default tile."""

    kernel: str
    path: str = ""
    device: DeviceId = DeviceId()
    tile: int = 0
    sizes: tuple[int, ...] = ()  # graphs besides the small ones
    brief: bool = False  # only the smallest graphs, each once: for a tool that checks every memory access


class CompileRequest(Struct, frozen=True, kw_only=True):
    """Compile a kernel for a compute capability; the other fields are those of a KernelTestRequest."""

    kernel: str
    capability: tuple[int, int]
    path: str = ""
    tile: int = 0
    listing: bool = False  # include the instructions in the reply


class OperationResources(Struct, frozen=True, kw_only=True):
    """The resources that the compiler assigned to one op, bytes per block or per thread, and the occupancy that they allow."""

    op: str
    threads: int
    registers: int
    shared_bytes: int
    spill_bytes: int
    blocks: int
    warps: int
    max_warps: int  # 0: unknown for this compute capability
    limiters: tuple[str, ...] = ()
    phase: str = ""  # key of its phase in the plan
    tile: int = 0  # tile size that it was compiled for; 0: none
    itemsize: int = 0  # bytes of a distance
    listing: Listing | None = None  # if requested
    rewrites: bool = False  # whether the loop of phase REST that reads shared memory also writes global memory


class Compiled(Struct, frozen=True):
    """The result of compiling: every op, or the error in the file, or the reason why it cannot be compiled here."""

    used: tuple[OperationResources, ...] = ()
    wrong: str = ""
    lacking: str = ""


class Where(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The wrong cells of a case, and the first step after which the matrix differs from the result of the plan.

    The first three numbers are of the result, all others of the matrix after that step, if it is known.
    """

    row: int  # the first wrong cell of the result
    column: int
    count: int  # wrong cells of the result
    got: str
    wanted: str
    n: int
    mask: bytes = b""  # the wrong cells, n x n bits row by row, packed by numpy.packbits
    step: int | None = None  # index of the step in the plan; None if no single step was found
    op: str = ""
    round: int = 0  # counts from 1
    phase: str = ""  # title of the phase
    writes: tuple[Rect, ...] = ()  # all rectangles that the step writes
    rect: Rect | None = None  # the written rectangle with the first wrong cell
    block: Rect | None = None  # the tile with that cell, if the kernel has tiles
    cause: str = ""  # a mistake that gives exactly these numbers, if one was found

    def cells(self) -> Any:
        """Return the wrong cells as a NumPy array of n x n booleans."""
        import numpy as np

        return np.unpackbits(np.frombuffer(self.mask, np.uint8), count=self.n**2).reshape(self.n, self.n).astype(bool)


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="finding", tag_field="told"):
    """The result of one case."""

    case: str
    outcome: str
    sentence: str
    n: int = 0
    tile: int = 0
    dtype: str = ""
    seconds: float | None = None  # time of a repetition; None in the simulator, and if no repetition finished
    where: Where | None = None
    phases: tuple[str, ...] = ()  # phases of the steps of a plan

    @property
    def fine(self) -> bool:
        return self.outcome in FINE


class Begun(Struct, frozen=True, tag="begun", tag_field="told"):
    """The start of a case, of `count` graphs if it has one: if no finding follows, this case hangs."""

    case: str
    number: int = 0
    count: int = 0


def repeated(findings: Sequence[Finding]) -> list[Finding]:
    """Return the cases that are wrong or race after the first one, which are displayed only by their names."""
    return [finding for finding in [finding for finding in findings if finding.outcome in (WRONG, RACY)][1:] if finding.n]


def repeated_cases(findings: Sequence[Finding]) -> list[tuple[str, list[str]]]:
    """Count the cases that are wrong and those that race, each with the names of the repeated ones: 3 of 15 cases race."""
    parts, more = [], repeated(findings)
    tested = sum(1 for finding in findings if finding.n and finding.outcome in (RIGHT, WRONG, RACY))
    for outcome, verbs in ((WRONG, ("is wrong", "are wrong")), (RACY, ("races", "race"))):
        if cases := [finding.case for finding in more if finding.outcome == outcome]:
            count = sum(1 for finding in findings if finding.n and finding.outcome == outcome)
            parts.append((f"{count} of {units.counted(tested, 'case')} {verbs[count > 1]}", cases))
    return parts


def repeated_text(findings: Sequence[Finding]) -> str:
    """Count and name the repeated cases: 3 of 15 cases race, also n = 4, one block; n = 5; empty if there are none."""
    return "; ".join(f"{count}, also {'; '.join(cases)}" for count, cases in repeated_cases(findings))


def verdict(findings: Iterable[Finding]) -> str:
    """Summarise a test: the first case that is not right, else the number of right cases."""
    findings = list(findings)
    for finding in findings:
        if not finding.fine:
            return finding.sentence
    right = [finding for finding in findings if finding.outcome == RIGHT and finding.n]
    if not right:
        whole = next((finding.sentence for finding in findings if finding.outcome == LEFT_OUT and not finding.n), "")
        return whole or "nothing was tested: the kernel accepts none of the graphs"
    every = "all " * (len(right) > 1)
    return f"right in {every}{units.counted(len(right), 'case')}, up to n = {max(finding.n for finding in right)}"
