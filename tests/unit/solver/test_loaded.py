"""`solve` without numba: what it launches is what numba would, and where something is missing numba answers, once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.csgraph import floyd_warshall

UNIT = Path(__file__).resolve().parents[1]

# solves with a driver that is not one, and tells every kernel that it launches and with which words
SOLVING = """
import json, sys
{with_numba}
import fake_driver
fake_driver.install()
fake_driver.all_kernels_kept()
from fwtui_kernels.compiled import cubin_cache
cubin_cache.without_numba = True
{instead}
import numpy as np
from scipy.sparse import csr_array
from fwtui.graphs.library_objects import lazy_of_object, of_object
from fwtui.solver.solve import answer

n = 200
dense = np.where(np.random.default_rng(1).random((n, n)) < 0.5, 3.0, np.inf)
sparse = csr_array(np.where(dense < np.inf, dense, 0))
forms = dense, np.asfortranarray(dense.astype(np.float32)), sparse, of_object(sparse)
for dtype, greatest, fraction in (("int16", 9, 0), ("int16", 100, 0), ("int32", 9, 0), ("float32", 9, 1), ("float32", 9, 2)):
    fake_driver.survey[1], fake_driver.survey[3] = greatest, fraction
    for form in forms:
        result = answer(lazy_of_object(form) if form is not forms[-1] else form, dtype=dtype, device="0", predecessors=True)
        assert result.stats.device == "cuda" and result.stats.kernel == "look-ahead" and result.predecessors.shape == (n, n)
launched = [
    [told["key"], told["name"], told["types"], grid, [w if abs(w) < 1 << 32 else 0 for w in words]]
    for told, grid, words in fake_driver.launched
]
print(json.dumps([any(m.partition(".")[0] in ("numba", "llvmlite") for m in sys.modules), launched]))
"""
WITH_NUMBA = """
import numba.cuda
import fwtui_kernels.compiled.rectangles
"""
# numba's dispatchers, of which each launch asks the types, the key and the words
INSTEAD = """
import ctypes
from types import SimpleNamespace
cubin_cache.without_numba = False
from fwtui_kernels.compiled import device, loaded
from numba.cuda.cudadrv.devicearray import DeviceNDArray
from numba.cuda.dispatcher import _Kernel
from numba.cuda.typing.typeof import typeof
cubin_cache.without_numba = True
numba_s = device.jit

def there(argument):
    if not isinstance(argument, loaded.Array):
        return argument
    data = SimpleNamespace(device_ctypes_pointer=ctypes.c_void_p(argument._address))
    return DeviceNDArray(argument.shape, argument.strides, argument.dtype, gpu_data=data)

class Kernel(loaded.Kernel):
    def __init__(self, dispatcher):
        super().__init__(dispatcher.py_func, {})
        self.dispatcher = dispatcher

    def __getitem__(self, configuration):
        launch = super().__getitem__(configuration)
        def compared(*given):
            launch(*given)
            told, _, words = fake_driver.launched[-1]
            arguments = [there(argument) for argument in given]
            types = [typeof(argument) for argument in arguments]
            prepared = []
            for kind, argument in zip(types, arguments):
                _Kernel._prepare_args(SimpleNamespace(extensions=[]), kind, argument, 0, [], prepared)
            for word, expected in zip(words, prepared, strict=True):
                if isinstance(expected, ctypes._SimpleCData):
                    word = type(expected).from_buffer_copy(ctypes.c_int64(word)).value
                    expected = expected.value
                assert word == expected, (told, words, prepared)
            told["key"], told["types"] = self.dispatcher._cache.key(types, (9, 0)), list(map(str, types))
        return compared

def jit(function=None, **options):
    if function is None:
        return lambda function: jit(function, **options)
    made = numba_s(function, **options)
    return made if options.get("device") else Kernel(made)

loaded.jit = device.cuda.jit
device.jit, device.cuda = jit, loaded
"""


def solving(folder: Path, with_numba: bool) -> tuple[bool, list[list[object]]]:
    script = SOLVING.format(with_numba=WITH_NUMBA * with_numba, instead=INSTEAD * with_numba)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "NUMBA_ENABLE_CUDASIM": "0", "PYTHONPATH": pythonpath()}
    done = subprocess.run([sys.executable, "-P", "-c", script], env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]
    return tuple(json.loads(done.stdout))


def pythonpath() -> str:
    return os.pathsep.join((str(UNIT.parents[1]), str(UNIT)))


def test_it_launches_what_numba_would(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    brought, launched = solving(tmp_path, False)
    assert not brought and len(launched) > 200
    names = {str(name) for _, name, *_ in launched}
    before, after = "survey_matrix survey_arcs outward inward relax_arcs rows_of enter clear lower lower_pairs", "look leave"
    assert names >= {*before.split(), "pivot", "panels", "rest", *after.split(), "trace", "follow", "spread", "settle", "unfound"}
    brought, by_numba = solving(tmp_path, True)
    assert brought and launched == by_numba


# the command's process on a machine that seems to have a GPU, until it begins anew
COMMAND = """
import os, runpy, sys
from pathlib import Path
from fwtui.common import environment
environment.cache_folder = lambda place=Path(os.environ["NUMBA_CACHE_DIR"]): place
if "FWTUI_SOLVE_SINCE" not in os.environ:
    import fake_driver
    fake_driver.install()
    from fwtui.machine import hardware
    from fwtui.solver import choose, starting
    hardware.driver_present = lambda: True
    starting._open_context = lambda gpu: None
    starting._ARRAYS, choose.WORTH = 1, 1
runpy.run_module("fwtui", run_name="__main__")
"""
# the same where kernels were kept for another machine with this home, and there is no driver
WITHOUT_DRIVER = """
import os, runpy, sys
from pathlib import Path
from fwtui.common import environment
environment.cache_folder = lambda place=Path(os.environ["NUMBA_CACHE_DIR"]): place
from fwtui.machine import hardware
from fwtui.solver import choose, starting
if "FWTUI_SOLVE_SINCE" in os.environ:
    print("it began again", file=sys.stderr)
def _open_context(gpu):
    raise OSError("libcuda.so.1: no such file")
hardware.driver_present = lambda: False
starting._open_context = _open_context
starting._ARRAYS, choose.WORTH = 1, 1
runpy.run_module("fwtui", run_name="__main__")
"""


def test_where_a_kernel_is_missing_numba_answers_once(tmp_path: Path) -> None:
    done = commanded(tmp_path, COMMAND)
    assert len(done.stderr.splitlines()) == 2 and done.stdout.count("diameter") == 1, done.stderr


def test_a_machine_without_a_driver_begins_once(tmp_path: Path) -> None:
    done = commanded(tmp_path, WITHOUT_DRIVER)
    assert len(done.stderr.splitlines()) == 2, done.stderr


def commanded(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """The command's process where another kernel is kept; its answer is right."""
    matrix = np.random.default_rng(1).integers(1, 9, (40, 40)).astype(np.float64)
    np.fill_diagonal(matrix, 0)
    np.save(folder / "graph.npy", matrix)
    (folder / "loaded").mkdir()
    (folder / "loaded" / "another").touch()
    words = ["solve", str(folder / "graph.npy"), "-o", str(folder / "out.npy"), "--summary"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *words],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder), "NUMBA_ENABLE_CUDASIM": "0", "PYTHONPATH": pythonpath()},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert (np.load(folder / "out.npy") == floyd_warshall(matrix)).all()
    return done
