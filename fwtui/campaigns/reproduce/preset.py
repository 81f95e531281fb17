"""A document's experiments as a preset: the runs, their order, and their time limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fwtui.campaigns.reproduce.claim import Claim, ClaimAnswer
from fwtui.campaigns.reproduce.results import Make, Results
from fwtui.experiment.experiment import Experiment

QUICK_SECONDS = 50.0
ALONE_SECONDS = 480.0  # of a full preset that runs alone
Row = tuple[Claim, ClaimAnswer]
BEGINS = "reproduce "  # a recording's title and the marker before the first run: this and the preset's name


class LeftOut(NamedTuple):
    """An experiment that could not be prepared, and why."""

    what: str
    why: str


class CountedKernel(NamedTuple):
    """A kernel whose counters claims can use, and its greatest n: a profiler repeats each launch."""

    make: Make
    most: int


class RunScale(NamedTuple):
    """The scale of the runs."""

    gpu: bool
    quick: bool = False


@dataclass(frozen=True, slots=True)
class DocumentFigure:
    """A table or figure of the document with our numbers beside it."""

    title: str
    rows: Sequence[Sequence[str]]  # the first row is the header


@dataclass(frozen=True, slots=True)
class Preset:
    """One document.

    `runs` yields the next experiment after the last one is over, so it may use the results; None means not ready yet: ask
    again later.
    """

    name: str
    title: str
    claims: tuple[Claim, ...]
    runs: Callable[[Results, RunScale], Iterator[Experiment | LeftOut | None]]
    seconds: float  # its share of the time for all presets together
    figures: Callable[[Results], Iterator[DocumentFigure]] = field(default=lambda results: iter(()))
    counted: tuple[CountedKernel, ...] = ()

    def answered(self, results: Results) -> list[Row]:
        """Every claim with its answer; takes seconds for claims about compiled code."""
        return [(claim, claim.answer(results)) for claim in self.claims]

    def heading(self, scale: RunScale) -> str:
        """The title of its recording and of the marker before its first run."""
        return f"{BEGINS}{self.name}{' --quick' if scale.quick else ''}"

    def limit(self, quick: bool, alone: bool) -> float:
        """Seconds within which the last run should have ended."""
        return QUICK_SECONDS if quick else ALONE_SECONDS if alone else self.seconds
