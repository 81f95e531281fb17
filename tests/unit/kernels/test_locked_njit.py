"""One function compiled in several processes at once: by one of them for each type, and kept for all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from pretending import Pretend

from fwtui_kernels.compiled import locked_njit

ROOT = Path(__file__).resolve().parents[3]
HOLDING = (
    "import fcntl, sys; file = open(sys.argv[1], 'a'); fcntl.lockf(file, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
)
# three forks that begin together, two of them with the same type; then one more that finds what they have kept
TOGETHER = """
import json, os
import numpy as np
from fwtui_kernels.compiled.locked_njit import njit

def found(told, begin, number):
    if os.fork() == 0:
        os.read(begin, 1)

        @njit(cache=True)
        def total(values):
            sum = 0
            for value in values:
                sum += value
            return sum

        assert total(np.arange(4, dtype=number)) == 6
        os.write(told, b"hit " if total._cache_hits else b"miss ")
        os._exit(0)

told, tell = os.pipe()
held, begin = os.pipe()
for number in ("int32", "int32", "float32"):
    found(tell, held, number)
os.write(begin, b"   ")
codes = [os.wait()[1] for _ in range(3)]
first = os.read(told, 99).split()
for number in ("int32", "float32"):
    found(tell, held, number)
    os.write(begin, b" ")
    codes.append(os.wait()[1])
print(json.dumps([codes, sorted(map(bytes.decode, first)), os.read(told, 99).decode().split()]))
"""


def test_of_several_processes_one_compiles_and_no_code_gets_the_types_of_another(tmp_path: Path) -> None:
    program = tmp_path / "together.py"
    program.write_text(TOGETHER)
    done = subprocess.run(
        [sys.executable, "-P", str(program)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[0] * 5, ["hit", "miss", "miss"], ["hit", "hit"]], done.stderr


def test_a_constant_compiles_nothing_again() -> None:
    @locked_njit.njit(cache=True)
    def added(value, other):
        return value + other

    @locked_njit.njit(cache=True)
    def caller(value):
        return added(value, 0) + added(value, value) + added(1, 2)

    assert caller(5) == 5 + 10 + 3 and len(added.signatures) == 1


def test_a_kernel_can_be_stepped_through_in_a_debugger() -> None:
    program = "from fwtui_kernels.k10_serial import relax; print(type(relax).__name__)"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}
    assert subprocess.check_output([sys.executable, "-P", "-c", program], env=environment, text=True) == "function\n"


def test_a_process_that_is_stopped_and_a_folder_without_locks_hold_nobody_up(tmp_path: Path, pretend: Pretend) -> None:
    pretend.limits(locked_njit, LONGEST=0.05)
    path, done = tmp_path / "code.lock", []
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDING, str(path)], stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None and holder.stdout.readline()
        for place in (path, tmp_path / "absent" / "code.lock"):
            with locked_njit.alone(place):
                done.append(place)
        holder.communicate()
    assert len(done) == 2
