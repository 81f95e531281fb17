"""The prompts of the course's last step: the next change to your kernel, and the condition for the prompt after it.

The progress follows from the findings for the current version of the file, so that nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from fwtui.live.watch_events import CheckEnd, CheckStart, Report, WatchUpdate
from fwtui.stream.kernel_tests import PLANNING, RIGHT, Finding, OperationResources

PHASES = {"pivot", "panels", "rest"}
ALL_TILES = 3  # tiles in shared memory of a block that also has its results there


class Prompt(Struct, frozen=True, forbid_unknown_fields=True):
    say: str
    until: str  # one of CHECKS


class PromptEvidence(NamedTuple):
    """The findings for the current version of the file."""

    findings: Sequence[Finding] = ()
    used: Sequence[OperationResources] = ()

    @property
    def tested(self) -> bool:
        return any(finding.n for finding in self.findings)

    @property
    def rest(self) -> list[OperationResources]:
        """The operations that do most of the work."""
        return [used for used in self.used if used.phase == "rest"]


class PromptCheck(NamedTuple):
    condition: str
    holds: Callable[[PromptEvidence], bool]


def _registers(evidence: PromptEvidence) -> bool:
    def several_cells(used: OperationResources) -> bool:
        cells = used.tile**2
        few_shared = used.shared_bytes < ALL_TILES * cells * used.itemsize
        return cells >= 2 * used.threads and few_shared and not used.rewrites and not used.spill_bytes

    return any(map(several_cells, evidence.rest))


CHECKS: Mapping[str, PromptCheck] = {
    "right": PromptCheck("every graph comes out right", lambda evidence: evidence.tested),
    "tiles": PromptCheck("graphs are tested with a tile", lambda evidence: any(f.n and f.tile > 1 for f in evidence.findings)),
    "phases": PromptCheck(
        "the plan is sound and has the phases pivot, panels and rest",
        lambda evidence: any(f.case == PLANNING and f.outcome == RIGHT and set(f.phases) >= PHASES for f in evidence.findings),
    ),
    "shared": PromptCheck(
        "the compiler counts shared memory in the rest", lambda evidence: any(used.shared_bytes for used in evidence.rest)
    ),
    "registers": PromptCheck(
        "in the rest a thread has several cells, fewer than three tiles are shared, nothing spills, and global memory is written "
        "only after the last k",
        _registers,
    ),
}
COMPILED = ("shared", "registers")  # checks that need a compiler


class Reached(NamedTuple):
    """The progress of a file: the number of the next prompt, from 1; one more than the count if all are done."""

    number: int
    right: bool
    lacking: bool  # the next check needs a compiler, and none reported


def reached(prompts: Sequence[Prompt], evidence: PromptEvidence, right: bool) -> Reached | None:
    """Return the progress; None if no graph was tested. A file that is not right stays at its prompt."""
    if not evidence.tested:
        return None
    done = next((place for place, prompt in enumerate(prompts) if not CHECKS[prompt.until].holds(evidence)), len(prompts))
    if not right:
        return Reached(max(done, 1), False, False)
    lacking = done < len(prompts) and prompts[done].until in COMPILED and not evidence.used
    return Reached(done + 1, True, lacking)


class Prompted:
    """The current prompt, updated from the results of each save."""

    def __init__(self, prompts: Sequence[Prompt]):
        self.prompts = prompts
        self.place = Reached(1, True, False)
        self._findings: list[Finding] = []
        self._used: list[OperationResources] = []

    def update(self, update: WatchUpdate) -> None:
        match update:
            case CheckStart():
                self._findings, self._used = [], []
            case Report():
                self._findings += [update.finding] if update.finding is not None else []
                self._used += [update.used] if update.used is not None else []
            case CheckEnd(right=right):
                self.place = reached(self.prompts, PromptEvidence(self._findings, self._used), right) or self.place

    @property
    def head(self) -> str:
        """Prompt 3 of 5, or that all are done."""
        if self.place.number > len(self.prompts):
            return f"all {len(self.prompts)} prompts are done"
        return f"prompt {self.place.number} of {len(self.prompts)}"

    @property
    def text(self) -> str:
        """Return the current task and the condition for the next prompt."""
        number, right, lacking = self.place
        if number > len(self.prompts):
            return "compare your kernel with the fastest rung, and read its source."
        prompt = self.prompts[number - 1]
        needs = f"It is done when {CHECKS[prompt.until].condition}"
        needs += "." if prompt.until == "right" else ", and every graph comes out right."
        if not right:
            needs += " Not every graph comes out right yet."
        if lacking:
            needs += " This needs a compiler for GPUs, and none is installed."
        return f"{' '.join(prompt.say.split())} {needs}"
