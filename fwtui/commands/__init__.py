"""The command line: one module per sub-command. Adding one is a file here and a line in COMMANDS."""

from __future__ import annotations

import argparse
from typing import Protocol


class Command(Protocol):
    """What a module of this package offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def execute(self, given: argparse.Namespace) -> int:
        """Do it and return the exit code. Refused and NoGpu are reported by the caller."""
        ...


OK, WRONG, USAGE, NO_GPU, WORKER_DIED, NOT_RECORDED = range(6)
EXIT_CODES = (
    "exit codes: 0 ok, 1 wrong result or damaged file, 2 usage, 3 no GPU, 4 worker died, 5 recording incomplete, "
    "128+n ended by signal n"
)
COMMANDS: dict[str, str] = {  # what each does, said here so that `fwtui --help` need not import them
    "dashboard": "open the dashboard (also without any command)",
    "run": "run experiments and print their results: a table on a terminal, JSON lines otherwise",
    "sweep": (
        "run every combination of several values within a time: how time grows with n, where which kernel wins, what is fastest"
    ),
    "compare": "compare recorded runs with a baseline: change per phase and in total, and whether it is more than chance",
    "solve": "shortest distances and paths of your own graph, saved, listed or summarised",
    "learn": (
        "the course, in the dashboard: step by step from one core to the fastest kernel, with questions that recorded runs answer"
    ),
    "replay": "replay a recorded session; without a terminal, or with --json or --table, print its results",
    "list": "list the shipped and your own recorded sessions",
    "check": "say whether a session file is whole and closed (0), or what is left of it (1)",
    "export": "write a session's runs, phases, telemetry ... as CSV, JSON lines, Markdown or Parquet",
    "kernels": "list every kernel with its tiles, types and options",
    "merge": "write several sessions of one machine after each other as a new one",
    "trim": "write a part of a session as a new one: a stretch of time, some runs, less telemetry, or no rounds",
    "mark": "write a session with further markers in it; sessions/README.md says how one points at a panel and asks a question",
    "reproduce": "run a document's experiments again and answer its claims: holds, refuted, or not testable here",
    "bench": (
        "the best kernels, this device's limit and the Python packages that are installed, side by side, verified, turn by turn"
    ),
    "tune": "measure kernels, tiles, options and launch modes on this device, and keep the fastest for the kernel `auto`",
    "counters": (
        "profile one launch of each operation of a kernel with NVIDIA Nsight Compute and print its hardware counters, no timings"
    ),
    "graph": "save a graph as `fwtui run` makes or reads it (.gr, .mtx, .npz, .dot), or print a small one",
    "docs": (
        "make the README's generated parts and pictures, the ladder from the newest shipped session titled "
        '"ladder ..."; and sessions/schema-v1.json from the types of events'
    ),
    "doctor": "say what is here, what is missing, and the exact command that fixes it; with --measure, what it can do at most",
    "config": "every setting, its value, and where that comes from: option, then environment, then file, then default",
    "render": "draw one moment of a recorded session as an SVG (or as text, where the file ends in .txt)",
}
