"""An experiment of a document as something to run: what, in which order, and within which time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fwtui.campaigns.reproduce.claim import Answer, Claim
from fwtui.campaigns.reproduce.results import Make, Results
from fwtui.experiment.experiment import Experiment

QUICK_SECONDS = 50.0
ALONE_SECONDS = 480.0  # of a full preset that has the machine to itself
Row = tuple[Claim, Answer]
BEGINS = "reproduce "  # a recording's title and the marker before the first run: this and the preset's name


class LeftOut(NamedTuple):
    """What could not be made ready to be run, and why."""

    what: str
    why: str


class Counted(NamedTuple):
    """A kernel whose hardware counters claims can use, and its size in vertices at most: a profiler repeats what it measures."""

    make: Make
    most: int


class Scale(NamedTuple):
    """How much to run."""

    gpu: bool
    quick: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A table or figure of the document with our numbers beside it."""

    title: str
    rows: Sequence[Sequence[str]]  # the first one is the head


@dataclass(frozen=True, slots=True)
class Preset:
    """One document.

    `runs` is asked for the next experiment when the last one is over, so it may look at the results; None means that there
    is none yet, and that it should be asked again in a moment.
    """

    name: str
    title: str
    claims: tuple[Claim, ...]
    runs: Callable[[Results, Scale], Iterator[Experiment | LeftOut | None]]
    seconds: float  # its share of the time of all presets together
    stages: tuple[str, ...] = ()  # parts outside the clock that the claims need in a recording
    stages_up_to: int = 65536  # vertices, beyond which no claim needs them
    occupancy: bool = False  # whether a claim needs the compiled kernels' resources
    telemetry: bool = True  # whether a claim needs what GPM says of long passes
    figures: Callable[[Results], Iterator[Figure]] = field(default=lambda results: iter(()))
    counted: tuple[Counted, ...] = ()

    def answered(self, results: Results) -> list[Row]:
        """Every claim with its answer; takes seconds where a claim is about compiled code."""
        return [(claim, claim.answer(results)) for claim in self.claims]

    def heading(self, scale: Scale) -> str:
        """What its recording is called, and the marker before its first run."""
        return f"{BEGINS}{self.name}{' --quick' if scale.quick else ''}"

    def limit(self, quick: bool, alone: bool) -> float:
        """Seconds within which the last run should have ended."""
        return QUICK_SECONDS if quick else ALONE_SECONDS if alone else self.seconds
