"""The stages of a run, in their usual order: what each is called, and what may be computed from its time."""

from __future__ import annotations

from typing import NamedTuple


class Stage(NamedTuple):
    """One part of a run outside the timed passes, or the passes themselves."""

    key: str  # events.Stage.name
    doing: str  # while it goes on
    noun: str  # what a worker died during
    short: str  # before its time, in a list of many
    title: str = ""  # in a comparison of two runs; without one it is not compared
    copy: str = ""  # what it moves bytes between, on a GPU; "file": into the host's memory, on every machine
    passes: bool = False  # steps of the plan run in it
    told: bool = True  # whether a result says how long it took
    grows: bool = False  # with the matrix, by n^2
    outside: int = 0  # its place among what is told to be outside the clock, from 1


_ALL = (
    Stage("graph", "making the graph", "the making of the graph", "graph", "make graph", grows=True, outside=8),
    Stage("read", "reading the file", "the reading of the file", "file", "read file", copy="file", grows=True, outside=7),
    Stage("allocate", "allocating", "allocation", "allocate", grows=True, outside=5),
    Stage("compile", "compiling", "compilation", "compile", "compile", outside=6),
    Stage("load", "copying in", "the copy in", "load", "copy in", copy="h2d", grows=True, outside=1),
    Stage("reorder", "reordering", "reordering", "reorder", grows=True, outside=2),
    Stage("warm-up", "warming up", "warm-up", "warm-up", passes=True),
    Stage("clean", "clean passes", "the clean passes", "clean", passes=True, told=False),
    Stage("phases", "phase pass", "the phase pass", "phases", passes=True, told=False),
    Stage("reorder back", "reordering back", "reordering", "and back", outside=3),
    Stage("unload", "copying out", "the copy out", "unload", "copy out", copy="d2h", grows=True, outside=4),
    Stage("verify", "verifying", "verification", "verify", "verify", outside=9),
    Stage("answers", "summarising", "the summary", "answers", told=False),
)
STAGES = {stage.key: stage for stage in _ALL}
OUTSIDE = sorted((stage for stage in _ALL if stage.outside), key=lambda stage: stage.outside)


def doing(key: str) -> str:
    """What a run is at, for a person; a stage that a newer version told is called what it says."""
    return STAGES[key].doing if key in STAGES else key or "starting"


def during(key: str) -> str:
    """What a run was at when its process ended, to be said after that: ' during the clean passes'; nothing before the first."""
    return f" during {STAGES[key].noun if key in STAGES else key}" if key else ""


# how long a run goes on: a median is stable after so many clean passes and so much time; then at most so many phase passes,
# begun within so much time
ENOUGH_PASSES, ENOUGH_SECONDS = 10, 0.5
PHASE_PASSES, PHASE_SECONDS = 50, 0.5
