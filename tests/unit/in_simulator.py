"""Programs in the simulator, in separate processes: a process either simulates or compiles kernels.

The last two functions are for such programs.
"""

import atexit
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Timer
from typing import Any

from fwtui_kernels.plan import Kernel

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECONDS = 180


class _Child:
    """A process that answers requests line by line, with its errors."""

    def __init__(self, program: str):
        self._complaints = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 it lives as long as the child
        self._process = subprocess.Popen(
            _command(program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            cwd=ROOT,
            env=_environment(),
        )
        atexit.register(self._process.kill)

    def ask(self, lines: Sequence[str]) -> list[str]:
        """Return the answer to each line; raises AssertionError with the last output if the process ends or hangs."""
        assert self._process.stdin is not None and self._process.stdout is not None
        late = Timer(SECONDS, self._process.kill)
        late.start()
        try:
            told = []
            for line in lines:
                self._process.stdin.write(f"{line}\n")
                self._process.stdin.flush()
                told.append(self._process.stdout.readline())
                assert told[-1], "it ended"
            return told
        except (OSError, AssertionError):
            self._process.kill()
            self._process.wait()
            self._complaints.seek(0)
            raise AssertionError(self._complaints.read()[-3000:] or f"no answer within {SECONDS} s") from None
        finally:
            late.cancel()


_children: dict[str, _Child] = {}


def _command(program: str) -> list[str]:
    return [sys.executable, "-P", "-c", textwrap.dedent(program)]


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "FWTUI_SIMULATOR": "1",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "kernels", HERE, HERE / "solver", HERE.parent))),
    }


# runs each program in a fork of a process that has imported what all of them need
EACH_PROGRAM = """
import os, sys, tempfile, traceback
import rungs_in_simulator, simulated_solver
from in_simulator import tell

def ran(case):
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            code = 1
            try:
                exec(compile(case["program"], "<program>", "exec"), {"__name__": "__main__"})
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        errors.seek(0)
        return code, output.read(), errors.read()

tell(ran)
"""


def in_simulator(program: str) -> str:
    """Run the program in the simulator and return its output; it may import the modules of this folder."""
    ((code, output, errors),) = answers(EACH_PROGRAM, [{"program": textwrap.dedent(program)}])
    assert code == 0, errors[-3000:]
    return output


def answers(program: str, cases: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the answers of a program that ends with tell(); the process stays for later cases."""
    child = _children.pop(program, None) or _Child(program)
    told = child.ask([json.dumps(case) for case in cases])
    _children[program] = child  # not one that failed
    return [json.loads(line) for line in told]


RIGHT = "from in_simulator import tell; from rungs_in_simulator import verdicts; tell(verdicts)"


def all_right(cases: Sequence[dict[str, Any]]) -> list[bool]:
    """Return, for each case of rungs_in_simulator.verdicts(), True if all graphs are correct."""
    return [all(found) for found in answers(RIGHT, cases)]


def mutant(source: str, old: str, new: str, occurrence: int) -> str:
    """Return the source with one occurrence of `old` (0 is the first) replaced by `new`."""
    parts = source.split(old)
    assert len(parts) > occurrence + 1, f"the kernel's source no longer has {old!r} {occurrence + 1} times"
    return old.join(parts[: occurrence + 1]) + new + old.join(parts[occurrence + 1 :])


def mutant_file(folder: Path, number: int, rung: str, broken: str, old: str, new: str, occurrence: int) -> str:
    """Write a broken copy of a rung, or one that uses a broken copy of a file of kernels/parts."""
    text = Path(rung).read_text()
    if broken == rung:
        text = mutant(text, old, new, occurrence)
    else:
        part = f"part{number}_{folder.name}"  # a child that stays imports each name once
        (folder / f"{part}.py").write_text(mutant(Path(broken).read_text(), old, new, occurrence))
        imported = f"from fwtui_kernels.parts import {Path(broken).stem} as"
        assert imported in text, f"{rung} no longer says {imported!r}"
        text = text.replace(imported, f"import {part} as")
    path = folder / f"mutant{number}.py"
    path.write_text(text)
    return str(path)


def kernel_in(path: str) -> Kernel:
    """Load the kernel of a file, which may import files of its folder."""
    sys.path.append(str(Path(path).parent))
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[loaded.__name__] = loaded
    spec.loader.exec_module(loaded)
    return loaded.KERNEL


def tell(found: Callable[[dict[str, Any]], object]) -> None:
    """Answer every case on stdin with one line of JSON."""
    for line in sys.stdin:
        random.seed(1)  # whatever was asked before
        print(json.dumps(found(json.loads(line))), flush=True)
