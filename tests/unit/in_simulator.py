"""Programs in Numba's simulator, each in a process of its own: the simulator is chosen when numba is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECONDS = 180


def in_simulator(program: str, text: str = "") -> str:
    """What the program prints when it reads the text; it may import the modules beside this one."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(program)],
        input=text,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=ROOT,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": os.pathsep.join((str(ROOT), str(HERE)))},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def answers(program: str, cases: Sequence[dict[str, Any]]) -> list[Any]:
    """What a program that ends with late_threads.tell() says of each case."""
    told = [json.loads(line) for line in in_simulator(program, "".join(json.dumps(c) + "\n" for c in cases)).splitlines()]
    assert len(told) == len(cases)
    return told


def mutant(source: str, old: str, new: str, occurrence: int) -> str:
    """The source with one of the places that say `old` (0 is the first) saying `new`."""
    parts = source.split(old)
    assert len(parts) > occurrence + 1, f"the kernel's source no longer has {old!r} {occurrence + 1} times"
    return old.join(parts[: occurrence + 1]) + new + old.join(parts[occurrence + 1 :])
