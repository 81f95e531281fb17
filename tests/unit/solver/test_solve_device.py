"""`solve` with CUDA kernels: in Numba's simulator, in a process of its own, as numba chooses it when it is imported."""

from __future__ import annotations

import os

import pytest
from in_simulator import in_simulator
from pretending import Pretend

from fwtui.common.errors import NoGpu, Refused
from fwtui.experiment.device import DeviceId
from fwtui.solver import choose
from fwtui_kernels import registry

SIMULATED = """
import sys
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import NegativeCycleError, shortest_path
from fwtui.graphs.library_objects import of_object
from fwtui.engine.engine import HostEngine
from fwtui.solver import paths, choose
from fwtui.solver.driver import answer
from fwtui_kernels.programs.cuda_program import CudaProgram
from fwtui_kernels.compiled.device import SIM, cuda
from fwtui_kernels.plan import Target
from fwtui_kernels.paths.predecessors import BLOCK, device_bytes
assert SIM
engine = HostEngine(Target("simulator"), cuda.stream())
rng = np.random.default_rng(4)
CudaProgram._pad = lambda *given: sys.exit("there was a second, padded copy on the host")
on_the_host = paths.Paths.predecessors
found = []
paths.Paths.predecessors = lambda self: found.append(self.adjacency.n) or on_the_host(self)
for n, low, kernel, scale in (
    (5, 0, "auto", 1), (9, 0, "katz-kider", 1), (9, -2, "staged-load", 1), (9, -1, "naive", 1), (1, 1, "naive", 1),
    *((n, 0, "naive", 1e-5 * np.pi) for n in (7, 9, 13)),  # rounded
    (13, 0, "naive", 0),  # and with weights that are nothing beside others
):
    matrix = np.where(rng.random((n, n)) < 0.5, rng.integers(max(low, 0), 30, (n, n)) * scale, np.inf)
    if scale == 0:
        matrix = np.where(matrix < np.inf, 10.0 ** rng.uniform(-8, 0, (n, n)), np.inf).astype(np.float32).astype(float)
    lift = rng.integers(0, 20, n) * (low < 0)
    matrix += lift[:, None] - lift[None, :]
    np.fill_diagonal(matrix, 0)
    told = []
    result = answer(of_object(matrix), kernel=kernel, predecessors=True, engine=engine, tell=told.append)
    present = np.isfinite(matrix)
    explicit = csr_array((matrix[present], np.nonzero(present)), shape=(n, n))  # which keeps edges of weight 0
    expected, before = shortest_path(explicit, return_predecessors=True, method="FW")
    near = 1e-5 * (scale != 1)
    assert np.allclose(result.distances, expected, near, 0) and ((result.predecessors >= 0) == (before >= 0)).all()
    for i, j in zip(*np.nonzero(result.predecessors >= 0)):
        path = result.path(i, j)
        assert path[0] == i and path[-1] == j
        assert np.isclose(sum(matrix[u, v] for u, v in zip(path, path[1:])), expected[i, j], near, 0)
    stats = result.stats
    assert stats.device == "simulator" and (kernel == "auto" or stats.kernel == kernel)
    dtype = "float32" if scale != 1 else "int32" if low < 0 else "int16"
    assert stats.dtype == dtype and {"compile", "copy in", "kernels"} <= set(stats.seconds)
    assert told and told == sorted(told)
assert found == [9], "the kernel with its own order of tiles alone"
# arcs of length 0 are listed one by one, where there is room
n = 12
zeros = np.ma.array(np.zeros((n, n)))
arcs = 4 * n * (n - 1)
for free, sources in ((arcs, 128), (arcs - 1, None)):
    engine.free_bytes = lambda: choose.KEPT_FREE + device_bytes(n, BLOCK) + free
    found.clear()
    result = answer(of_object(zeros), kernel="naive", predecessors=True, engine=engine)
    assert found == ([] if sources else [n]), found
    assert ((result.predecessors >= 0) == ~np.eye(n, dtype=bool)).all()
del engine.free_bytes
try:
    answer(of_object(np.array([[0, 1.0], [-2, 0]])), engine=engine)
except NegativeCycleError as error:
    print("cycle", error)
"""


def test_cuda_kernels_answer_too() -> None:
    assert "the graph has a negative cycle" in in_simulator(SIMULATED)


class TestChoice:
    def test_no_gpu_is_no_reason_to_fail_unless_one_is_asked_for(self, pretend: Pretend) -> None:
        def none(gpu: DeviceId) -> None:
            raise RuntimeError("Error at driver init: \n\nno driver\nis here.\n:")

        pretend.driver(True, none)
        assert choose.engine_for(None, 5000, needed=False) is choose.CPU
        assert choose.engine_for("cpu", 5000, needed=False) is choose.CPU
        for asked, needed in ((0, False), ("1", False), (None, True)):
            with pytest.raises(NoGpu, match=r"cannot be used \(no driver is here\); run `fwtui doctor`"):
                choose.engine_for(asked, 5, needed)
        with pytest.raises(Refused, match="'cpu' does not suit"):
            choose.engine_for("cpu", 5, needed=True)

    def test_small_graphs_stay_here(self, pretend: Pretend) -> None:
        pretend.driver(True, lambda gpu: pytest.fail("it was started"))
        assert choose.engine_for(None, choose.WORTH - 1, needed=False) is choose.CPU
        pretend.driver(False)
        assert choose.engine_for(None, choose.WORTH, needed=False) is choose.CPU

    def test_every_type_has_a_kernel(self) -> None:
        from fwtui.engine.engine import HostEngine
        from fwtui_kernels.plan import Target

        engine = HostEngine(Target("cuda", (9, 0), multiprocessors=132))
        for dtype in ("int16", "int32", "float32"):
            for n in (1, 500, 5000, 50000):
                kernel, shape = choose.suited(None, n, dtype, True, engine)
                assert dtype in kernel.dtypes and kernel.refuses(shape) is None
        naive = registry()["naive"]
        assert choose.suited(naive, 50, "int32", True, engine)[0] is naive


@pytest.mark.skipif(os.environ.get("NUMBA_ENABLE_CUDASIM") == "1", reason="the simulator compiles nothing")
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_runs_beside_the_kernels_compiles_for_real_gpus(every: bool) -> None:
    """Each function once; for every type it is given with -m slow."""
    pytest.importorskip("numba.cuda")
    from numba import float32, float64, int16, int32, int64, uint32

    from fwtui.solver import graph_kernels as do
    from fwtui_kernels.compiled import compiler

    found, words = float64[::1], (int16, int32, float32)
    cases = []
    for given in (float64[:, ::1], float32[::1, :], int64[:, :]):
        cases += [(function, (given, int32, found)) for function in (do.survey_matrix, do.outward, do.inward)]
    cases += [(do.enter, (float64[:, ::1], to[:, ::1], int32, float64)) for to in words]
    for vertex, weight in ((int32[::1], float32[::1]), (int64[::1], float64[::1])):
        arcs = (vertex, vertex, weight)
        cases += [
            (do.survey_arcs, (*arcs, int32, found)),
            (do.relax_arcs, (*arcs, found)),
            (do.rows_of, (vertex, int32, int32[::1])),
        ]
        cases += [
            (function, (*arcs, to[:, ::1])) for function, to in ((do.lower, int32), (do.lower, float32), (do.lower_pairs, int32))
        ]
    for raw in words:
        cases += [(do.clear, (raw[:, ::1], float64)), (do.diagonal, (raw[:, ::1], int32, found))]
        cases += [(do.leave, (raw[:, ::1], to[:, ::1], int32, int32, float64)) for to in (float32, float64)]
        cases.append((do.look, (raw[:, ::1], int32, float64, found)))
        cases.append((do.reached, (raw[:, ::1], int32, float64, uint32[:, ::1])))
    cases.append((do.escaped_matrix, (float64[:, ::1], uint32[:, ::1], found)))
    cases.append((do.escaped_arcs, (int32[::1], int32[::1], float64[::1], uint32[:, ::1], found)))
    for function, signature in cases if every else {id(case[0]): case for case in cases}.values():
        assert compiler.unlinked(function.py_func, signature, (9, 0))
