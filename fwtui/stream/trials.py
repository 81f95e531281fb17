"""The requests and findings of a kernel test: one JSON object per line between two processes.

Everything here is data, so that code that shows or counts it needs nothing of what ran the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from fwtui.common import units
from fwtui.experiment.device import DeviceId
from fwtui.stream.listing import Listing
from fwtui_kernels.plan import Rect

# how a case ended: distances right or wrong, other ones each time; what the kernel does not take; and what ends a trial
RIGHT, WRONG, RACY, LEFT_OUT = "right", "wrong", "racy", "left out"
DOUBTFUL = "is_unreliable"  # something that may be a mistake and did no harm so far
BROKEN, HUNG, DIED = "broken", "hung", "died"
PRINTED = "printed"  # no outcome: what the kernel's file says meanwhile
FINE = (RIGHT, DOUBTFUL, LEFT_OUT, PRINTED)
REST = "rest"  # the phase that does most of the work, where there are several
NO_COMPILER = "there is no compiler for GPUs here"
LOADING, PLANNING, OVER = "loading", "plan", "over"  # cases without a graph; the last says that there are no more


class TrialRequest(Struct, frozen=True, kw_only=True):
    """Test a kernel. `path` is the file of a user kernel; `tile` 0 is the default tile."""

    kernel: str
    path: str = ""
    device: DeviceId = DeviceId()
    tile: int = 0
    options: dict[str, int] = {}
    sizes: tuple[int, ...] = ()  # graphs besides the small ones
    brief: bool = False  # only the smallest graphs, each once: for a tool that looks at every access


class CompileRequest(Struct, frozen=True, kw_only=True):
    """Compile a kernel for a compute capability; the other fields are those of a TrialRequest."""

    kernel: str
    capability: tuple[int, int]
    path: str = ""
    tile: int = 0
    options: dict[str, int] = {}
    listing: bool = False  # whether the instructions are told too


class OperationResources(Struct, frozen=True, kw_only=True):
    """The resources that the compiler assigned to one op, bytes per block or per thread, and the occupancy that they allow."""

    op: str
    threads: int
    registers: int
    shared_bytes: int
    spill_bytes: int
    blocks: int
    warps: int
    max_warps: int  # 0: not known for this compute capability
    limiters: tuple[str, ...] = ()
    phase: str = ""  # of the plan
    tile: int = 0  # that it was compiled for; 0: none
    itemsize: int = 0  # bytes of a distance
    listing: Listing | None = None  # if it was asked for
    rewrites: bool = False  # whether, of the rest, the loop that reads shared memory also writes to global memory


class Compiled(Struct, frozen=True):
    """The result of compiling: every op, or the error in the file, or the reason why nothing could be compiled here."""

    used: tuple[OperationResources, ...] = ()
    wrong: str = ""
    lacking: str = ""


class Where(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The wrong cells of a case, and the step after which the matrix first differs from what the plan gives.

    The first three numbers are of the result, all others of the matrix after that step, if one is known.
    """

    row: int  # the first wrong cell of the result
    column: int
    count: int  # wrong cells of the result
    got: str
    wanted: str
    n: int
    mask: bytes = b""  # the wrong cells, n x n bits row by row, packed by numpy.packbits
    step: int | None = None  # its index in the plan; None if no single step is known
    op: str = ""
    round: int = 0  # from 1
    phase: str = ""  # its title
    writes: tuple[Rect, ...] = ()  # all that the step writes
    rect: Rect | None = None  # that of them with the first wrong cell
    block: Rect | None = None  # the tile with that cell, where the kernel has tiles
    cause: str = ""  # what gives exactly these numbers, where something does

    def cells(self) -> Any:
        """The wrong cells as a NumPy array of n x n truth values."""
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
    seconds: float | None = None  # of one pass; None in the simulator, and where nothing ran to its end
    where: Where | None = None
    phases: tuple[str, ...] = ()  # of a plan, those that its steps have

    @property
    def fine(self) -> bool:
        return self.outcome in FINE


class Begun(Struct, frozen=True, tag="begun", tag_field="told"):
    """A case begins: if nothing more is heard, this is the one that hangs."""

    case: str


def verdict(findings: Iterable[Finding]) -> str:
    """Summarise a test: the first case that is not right, else the number of right cases."""
    findings = list(findings)
    for finding in findings:
        if not finding.fine:
            return finding.sentence
    right = [finding for finding in findings if finding.outcome == RIGHT and finding.n]
    if not right:
        whole = next((finding.sentence for finding in findings if finding.outcome == LEFT_OUT and not finding.n), "")
        return whole or "nothing was tried: the kernel takes none of the graphs"
    every = "all " * (len(right) > 1)
    return f"right in {every}{units.counted(len(right), 'case')}, up to n = {max(finding.n for finding in right)}"
