"""Time from the command to the first complete frame: python tests/benchmarks/first_paint.py [RUNS].

Once as the environment has it, and once with Python's bytecode kept, as after an installation: where
PYTHONDONTWRITEBYTECODE is set, a checkout is compiled at every start. The goal is 0.7 s on two slow cores. A benchmark,
not a test: it asserts nothing.
"""

import sys
import tempfile
import time
from statistics import median

from pty_terminal import FWTUI, Terminal

FOOTER = b"Quit"  # drawn last


def first_paint(arguments: list[str], kept: str = "") -> float:
    """Return the seconds until a 120x40 terminal shows the footer of `fwtui ARGUMENTS`; `kept` is a folder for bytecode."""
    begin = time.monotonic()
    terminal = Terminal((*FWTUI, *arguments), {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": kept} if kept else {})
    try:
        assert terminal.rest(60.0, FOOTER) is not None, "the dashboard does not open"
        return time.monotonic() - begin
    finally:
        terminal.close()


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        for words, kept in (("", ""), (", bytecode kept", folder)):
            seconds = [first_paint([], kept) for _ in range(runs + 1)][1:]
            spread = f"{min(seconds):.2f} to {max(seconds):.2f} s over {runs} runs{words}"
            print(f"first paint: median {median(seconds):.2f} s, {spread}")
