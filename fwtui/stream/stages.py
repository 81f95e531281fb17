"""The stages of a run in their order: their names, and the use of their times."""

from __future__ import annotations

from typing import NamedTuple


class StageRow(NamedTuple):
    """A stage of a run: setup, copies and verification, which are not timed, or the repetitions."""

    key: str  # events.Stage.name
    doing: str  # label while it runs
    noun: str  # noun for "the worker died during ..."
    short: str  # label of its time in a list
    title: str = ""  # label in a comparison of two runs; empty: not compared
    copy: str = ""  # the two ends of a transfer, on a GPU; "file": into the host's memory, on every machine
    passes: bool = False  # whether it runs steps of the plan
    in_results: bool = True  # results report its time
    grows: bool = False  # whether its time is proportional to n^2
    outside: int = 0  # position among the stages that are not timed, from 1; 0 for timed stages


_ALL = (
    StageRow("graph", "making the graph", "graph generation", "graph", "make graph", grows=True, outside=8),
    StageRow("read", "reading the file", "file reading", "file", "read file", copy="file", grows=True, outside=7),
    StageRow("allocate", "allocating", "allocation", "allocate", grows=True, outside=5),
    StageRow("order", "ordering the vertices", "the ordering", "order", "order", grows=True, outside=10),
    StageRow("compile", "compiling", "compilation", "compile", "compile", outside=6),
    StageRow("load", "copying in", "the copy in", "load", "copy in", copy="h2d", grows=True, outside=1),
    StageRow("reorder", "reordering", "reordering", "reorder", grows=True, outside=2),
    StageRow("warm-up", "warming up", "warm-up", "warm-up", passes=True),
    StageRow("clean", "timed repetitions", "the timed repetitions", "timed", passes=True, in_results=False),
    StageRow("phases", "instrumented repetition", "the instrumented repetition", "phases", passes=True, in_results=False),
    StageRow("reorder back", "reordering back", "reordering", "and back", outside=3),
    StageRow("unload", "copying out", "the copy out", "unload", "copy out", copy="d2h", grows=True, outside=4),
    StageRow("verify", "verifying", "verification", "verify", "verify", outside=9),
)
STAGES = {stage.key: stage for stage in _ALL}
OUTSIDE = sorted((stage for stage in _ALL if stage.outside), key=lambda stage: stage.outside)


def doing(key: str) -> str:
    """Return the label of a running stage; an unknown stage of a newer version keeps its key."""
    return STAGES[key].doing if key in STAGES else key or "starting"


def during(key: str) -> str:
    """Return the stage in which a process ended, as ' during the timed repetitions'; empty before the first stage."""
    return f" during {STAGES[key].noun if key in STAGES else key}" if key else ""


# the median counts as stable after this many timed repetitions and seconds; at most this many instrumented repetitions follow,
# started within this time
ENOUGH_PASSES, ENOUGH_SECONDS = 10, 0.5
PHASE_PASSES, PHASE_SECONDS = 50, 0.5
