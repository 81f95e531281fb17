"""The command line: one module per sub-command. Adding one is a file here and a line in COMMANDS."""

from __future__ import annotations

import argparse
from typing import Protocol


class Command(Protocol):
    """What a module of this package offers."""

    NAME: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def execute(self, given: argparse.Namespace) -> int:
        """Do it and return the exit code. Refused and NoGpu are reported by the caller."""
        ...


OK, WRONG, USAGE, NO_GPU, WORKER_DIED, NOT_RECORDED = range(6)
EXIT_CODES = (
    "exit codes: 0 ok, 1 wrong result or damaged file, 2 usage, 3 no GPU, 4 worker died, 5 recording incomplete, "
    "128+n ended by signal n"
)
COMMANDS = (
    *("dashboard", "run", "sweep", "compare", "solve", "learn", "replay", "list", "check", "export", "kernels"),
    *("merge", "trim", "mark", "reproduce", "bench", "tune", "counters", "graph", "docs", "doctor", "config", "render"),
)
