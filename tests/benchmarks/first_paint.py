"""Time from the command to the first complete frame: python tests/benchmarks/first_paint.py [RUNS]. The goal is 0.6 s.

Python's bytecode is cached, as after an installation. The processor time of the program hardly depends on other work.
"""

import sys
import tempfile
import time
from statistics import median

import psutil
from pty_terminal import FWTUI, Terminal

FOOTER = b"Quit"  # drawn last


def first_paint(folder: str) -> tuple[float, float]:
    """Return the seconds until a 120x40 terminal shows the footer, and the processor seconds; `folder` caches bytecode."""
    begin = time.monotonic()
    terminal = Terminal(FWTUI, {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder})
    try:
        assert terminal.rest(60.0, FOOTER) is not None, "the dashboard does not open"
        return time.monotonic() - begin, sum(psutil.Process(terminal.pid).cpu_times()[:2])
    finally:
        terminal.close()


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        seconds, processor = zip(*[first_paint(folder) for _ in range(runs + 1)][1:], strict=True)
    print(f"first paint: median {median(seconds):.2f} s of {runs}, processor time {median(processor):.2f} s")
