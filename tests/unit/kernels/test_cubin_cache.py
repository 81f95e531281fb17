"""The cache of compiled kernels: complete keys, one compiling process, own files only, bounded size."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import run_python

from fwtui_kernels.compiled import cubin_cache, locked_njit
from fwtui_kernels.compiled.cubin_cache import CompiledCode, NoKey, key, load, store

CODE = CompiledCode("entry", b"\x7fELF\0cubin")


def made(tile: Any, other: Any = None) -> Callable[[], Any]:
    return lambda: (tile, other)


def test_every_input_of_the_compiler_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    given = made(8), {"launch_bounds": (64, 1)}, ("array(int32, 2d, C)",), (9, 0)
    keys = [
        key(*given),
        key(lambda: 8, *given[1:]),
        *(key(made(cell), *given[1:]) for cell in (16, 8.0, np.int32, np.int16, np.float32(0.5), made(8), made(9))),
        key(given[0], {"launch_bounds": (64, 2)}, *given[2:]),
        key(*given[:2], ("array(int32, 2d, F)",), (9, 0)),
        key(*given[:3], (9, 1)),
    ]
    monkeypatch.setattr(cubin_cache, "compiler_versions", lambda: ("another version",))
    keys.append(key(*given))
    assert len({*keys}) == len(keys)
    with pytest.raises(NoKey, match="a closure holds a list"):
        key(made([8]), *given[1:])


def test_the_compiler_is_identified_by_its_packages() -> None:
    told = " ".join(cubin_cache.compiler_versions())
    assert f"numpy-{np.__version__}." in told and "numba-" in told and "pytest" not in told


@pytest.mark.parametrize("harm", ["cut", "changed", "renamed", "writable", "foreign", "a folder"])
def test_damaged_and_foreign_files_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str) -> None:
    place = cubin_cache.folder(str(tmp_path))
    store(place, "a", CODE)
    assert load(place, "a") == CODE and (place / "a").stat().st_mode & 0o777 == 0o600 and load(place, "b") is None
    data = (place / "a").read_bytes()
    with monkeypatch.context() as other:
        if harm in ("cut", "changed"):
            (place / "a").write_bytes(data[:-1] if harm == "cut" else data[:-1] + b"?")
        elif harm == "renamed":
            store(place, "b", CompiledCode("other", b""))
            os.replace(place / "b", place / "a")
        elif harm == "writable":
            (place / "a").chmod(0o622)
        elif harm == "foreign":
            own = os.getuid()
            other.setattr(os, "getuid", lambda: own + 1)
        else:
            (place / "a").unlink()
            (place / "a").mkdir()
        assert load(place, "a") is None
        store(place, "a", CODE)
    if harm == "a folder":
        assert [*place.iterdir()] == [place / "a"], "nothing is left of what could not be kept"
    else:
        assert load(place, "a") == CODE


def test_the_least_recently_used_code_is_removed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for age, name in enumerate("abc"):
        store(tmp_path, name, CODE)
        os.utime(tmp_path / name, (100 - age, 100 - age))
    assert load(tmp_path, "c") == CODE, "used now"
    store(tmp_path, "d", CODE, max_bytes=3 * (tmp_path / "a").stat().st_size)
    assert {file.name for file in tmp_path.iterdir()} == {"a", "c", "d"}
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert not cubin_cache.some()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not cubin_cache.some()
    place = cubin_cache.here()
    assert place is not None
    store(place, "a", CODE)
    assert cubin_cache.some()
    monkeypatch.setattr(cubin_cache, "SIMULATED", True)
    assert not cubin_cache.some()


SCRIPT = """
import json, os, sys
from fwtui.solver.compiled_code import compiled
from fwtui_kernels.compiled import cubin_cache
told = []
for damaged in [None, *sys.argv[1:]]:
    if damaged:
        os.truncate(damaged, 40)
    with compiled("cuda"):
        from fwtui.solver.graph_kernels import diagonal
        types = "array(int32, 2d, C)", "int32", "array(float64, 1d, C)"
        code = cubin_cache.found_or_compiled(diagonal, types, (9, 0))
    assert code.entry.encode() in code.cubin and not code.cooperative
    told.append(["numba" in sys.modules, len(code.cubin)])
print(json.dumps(told))
"""


def test_a_kernel_is_compiled_once_and_damage_is_mended(tmp_path: Path) -> None:
    pytest.importorskip("fwtui_kernels.compiled.compiler", reason="the CUDA compiler wheels are not installed")

    def found(*damaged: str) -> list[list[Any]]:
        return json.loads(run_python(SCRIPT, *damaged, XDG_CACHE_HOME=str(tmp_path), NUMBA_CACHE_DIR=""))

    ((compiling, size),) = found()
    (kept,) = tmp_path.rglob("loaded/*")
    code = kept.read_bytes()
    assert compiling and found(str(kept)) == [[False, size], [True, size]], "the next process loads it, and replaces damaged code"
    assert kept.read_bytes() == code


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
    printed = run_python("import runpy, sys; runpy.run_path(sys.argv[1])", str(program), NUMBA_CACHE_DIR=str(tmp_path))
    assert json.loads(printed) == [[0] * 5, ["hit", "miss", "miss"], ["hit", "hit"]]


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
    assert run_python(program, NUMBA_DISABLE_JIT="1") == "function\n"


def test_stopped_processes_and_folders_without_locks_block_nobody(tmp_path: Path) -> None:
    path, done = tmp_path / "code.lock", []
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDING, str(path)], stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None and holder.stdout.readline()
        for place in (path, tmp_path / "absent" / "code.lock"):
            with locked_njit.exclusive(place, 0.05):
                done.append(place)
        holder.communicate()
    assert len(done) == 2


UNIT = Path(__file__).resolve().parents[1]
# names the kernels whose launches look for other files than cached_cubins()
LAUNCHES = """
import json
import fake_cuda_core
fake_cuda_core.install()
fake_cuda_core.all_kernels_kept()
from fwtui_kernels import registry
from fwtui_kernels.compiled import cubin_cache
from fwtui_kernels.plan import Shape, Target
from fwtui_kernels.programs.cuda_program import cached_cubins

load, names, stream = cubin_cache.load, set(), fake_cuda_core.Stream()
cubin_cache.load = lambda place, name: (names.add(name), load(place, name))[1]
other, found = [], {}
for kernel in registry().values():
    if kernel.backend != "cuda":
        continue
    for dtype in kernel.dtypes:
        tile = kernel.tile_for(0) or 1
        shape = Shape(4 * tile if tile > 1 else 32, tile, dtype, options=tuple(sorted(kernel.defaults)))
        program = kernel.build(shape, Target("cuda", (9, 0), multiprocessors=132))
        plan = list(kernel.plan(shape, False))
        names.clear()
        cubins = len(list(cached_cubins(program, plan, (9, 0))))
        ahead = {*names}
        names.clear()
        buffers = program.allocate()
        for step in {step.op: step for step in plan}.values():
            program.launch(step, buffers, stream)
        found[kernel.id] = cubins
        if ahead != names:
            other.append([kernel.id, dtype, len(ahead), len(names)])
print(json.dumps([other, found]))
"""


def test_a_launch_looks_for_the_code_that_is_found_without_it(tmp_path: Path) -> None:
    path = os.pathsep.join((str(UNIT.parents[1]), str(UNIT.parents[1] / "kernels"), str(UNIT)))
    other, found = json.loads(run_python(LAUNCHES, NUMBA_CACHE_DIR=str(tmp_path), PYTHONPATH=path))
    assert other == [] and found["look-ahead"] == 4 and found["naive"] == 1
