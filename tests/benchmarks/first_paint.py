"""How long the dashboard takes from its command to its first whole frame: python tests/benchmarks/first_paint.py [RUNS].

Once as the environment has it, and once with Python's bytecode kept, as after an installation: where
PYTHONDONTWRITEBYTECODE is set, a checkout is compiled at every start. The goal is 0.7 s on two slow cores. A benchmark,
not a test: it asserts nothing.
"""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import sys
import tempfile
import termios
import time
from statistics import median

FOOTER = b"Quit"  # drawn last


def first_paint(arguments: list[str], kept: str = "") -> float:
    """Seconds until the footer of `fwtui ARGUMENTS` is on a 120x40 terminal; `kept` is a folder for bytecode."""
    begin = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        if kept:
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
            os.environ["PYTHONPYCACHEPREFIX"] = kept
        os.execv(sys.executable, [sys.executable, "-P", "-m", "fwtui", *arguments])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    seen = b""
    try:
        while FOOTER not in seen:
            seen += os.read(terminal, 65536)
        return time.monotonic() - begin
    finally:
        os.kill(child, signal.SIGTERM)
        try:
            while os.read(terminal, 65536):
                pass
        except OSError:
            pass
        os.close(terminal)
        os.waitpid(child, 0)


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        for words, kept in (("", ""), (", bytecode kept", folder)):
            seconds = [first_paint([], kept) for _ in range(runs + 1)][1:]
            spread = f"{min(seconds):.2f} to {max(seconds):.2f} s over {runs} runs{words}"
            print(f"first paint: median {median(seconds):.2f} s, {spread}")
