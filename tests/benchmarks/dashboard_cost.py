"""Slowdown of kernels by an open dashboard: python tests/benchmarks/dashboard_cost.py [KERNEL] [N] [PAIRS].

The same experiment in turns by `fwtui run` and by a dashboard on a 120x40 terminal, both recorded; the medians of their passes
are compared pair by pair. The goal is less than 1 % on an H200. A benchmark, not a test: it asserts nothing.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from pty_terminal import FWTUI, Terminal

from fwtui.experiment.experiment import Experiment
from fwtui.sessions.reader import load
from fwtui.stream.events import RunDone, RunStarted

LONGEST = 120.0  # seconds that a dashboard gets for one run


def headless(kernel: str, n: str, record: Path) -> tuple[float, Experiment]:
    """Return the median seconds of a repetition under `fwtui run`, and the experiment."""
    subprocess.run(
        [sys.executable, "-P", *FWTUI, "run", "-k", kernel, "-n", n, "--record", str(record)], check=True, capture_output=True
    )
    return seconds_in(record)


def in_dashboard(kernel: str, n: str, record: Path) -> tuple[float, Experiment]:
    """Return the median seconds of a repetition in a dashboard (key r), and the experiment."""
    terminal = Terminal((*FWTUI, "dashboard", "--record", str(record)), {"FWTUI_KERNEL": kernel, "FWTUI_N": n})
    begin = time.monotonic()
    terminal.rest(3.0)
    terminal.press(b"r")
    while time.monotonic() - begin < LONGEST and not (record.exists() and b'"kind":"rundone"' in record.read_bytes()):
        terminal.rest(0.1)
    terminal.close()
    return seconds_in(record)


def seconds_in(record: Path) -> tuple[float, Experiment]:
    told = [line.event for line in load(record).lines]
    (asked,) = (event.experiment for event in told if isinstance(event, RunStarted))
    (done,) = (event for event in told if isinstance(event, RunDone))
    assert done.median, f"{record}: {done}"
    return done.median, asked


if __name__ == "__main__":
    kernel, n, pairs = [*sys.argv[1:], *("tiled-cpu", "512", "5")[len(sys.argv) - 1 :]]
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(int(pairs)):
            alone, asked = headless(kernel, n, Path(folder, f"headless-{pair}.fwt.jsonl"))
            shown, same = in_dashboard(kernel, n, Path(folder, f"dashboard-{pair}.fwt.jsonl"))
            assert asked == same, f"{asked} is not {same}"
            ratios.append(shown / alone)
            print(
                f"{kernel} n {n}: headless {alone * 1e3:.4f} ms, dashboard {shown * 1e3:.4f} ms, {shown / alone - 1:+.2%}",
                flush=True,
            )
    print(f"median of {len(ratios)} pairs: {median(ratios) - 1:+.2%}")
