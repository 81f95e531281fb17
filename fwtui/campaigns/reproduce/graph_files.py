"""Graphs written to files by a child process, for experiments that read them, while others have things to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fwtui.common.environment import worker_environment
from fwtui.common.text import clean
from fwtui.experiment.experiment import Experiment

MOST_SECONDS = 120.0


def written(graph: Experiment, path: Path) -> Iterator[str | None]:
    """None as long as the child writes the graph to the file, then once why it failed; empty where it did not."""
    command = [sys.executable, "-P", "-m", "fwtui.measure.graph_process", json.dumps(msgspec.to_builtins(graph)), str(path)]
    deadline = time.monotonic() + MOST_SECONDS
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **worker_environment("real")},
        )
    except OSError as error:
        yield f"its graph cannot be written: {error.strerror or error}"
        return
    try:
        while child.poll() is None:
            if time.monotonic() > deadline:
                yield f"its graph was not written within {MOST_SECONDS:.0f} s"
                return
            yield None
    finally:
        child.kill()
        said = child.communicate()[1].decode("utf-8", "replace").strip().splitlines()
    last = said[-1].removeprefix("fwtui: ") if said else f"exit code {child.returncode}"
    yield f"its graph was not written: {clean(last)}" if child.returncode else ""
