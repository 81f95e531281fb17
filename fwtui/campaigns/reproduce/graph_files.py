"""Graphs written to files by a child process, for experiments that read them, while others have things to do."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fwtui.common.child_process import ChildProcess, python
from fwtui.common.environment import worker_environment
from fwtui.experiment.experiment import Experiment

MOST_SECONDS = 120.0


def written(graph: Experiment, path: Path) -> Iterator[str | None]:
    """None as long as the child writes the graph to the file, then once why it failed; empty where it did not."""
    command = python("fwtui.measure.graph_process", json.dumps(msgspec.to_builtins(graph)), str(path))
    deadline = time.monotonic() + MOST_SECONDS
    try:
        child = ChildProcess(command, worker_environment("real"))
    except OSError as error:
        yield f"its graph cannot be written: {error.strerror or error}"
        return
    try:
        while child.exit_code is None:
            if time.monotonic() > deadline:
                yield f"its graph was not written within {MOST_SECONDS:.0f} s"
                return
            yield None
    finally:
        child.kill()
        ended = child.finish(MOST_SECONDS)
    yield f"its graph was not written: {ended.last_words}" if ended.code else ""
