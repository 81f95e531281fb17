"""`solve` with CUDA kernels, also of arrays that are on a GPU: in the simulator, in a separate process."""

from itertools import product
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from in_simulator import in_simulator
from pretending import Pretend

import fwtui
from fwtui.common.errors import NoGpu, Refused
from fwtui.experiment.device import DeviceId
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import facts_of
from fwtui.solver import engine_choice, kernel_choice
from fwtui.solver.host_graph import HostGraph
from fwtui_kernels import registry

PRELUDE = """
from simulated_solver import *
from fwtui_kernels.paths.predecessors import BLOCK, device_bytes
from fwtui_kernels.programs.cuda_program import CudaProgram

def check(matrix, distances, before, near):
    assert np.allclose(distances, by_scipy(matrix), near, 0)
    check_paths(matrix, distances, before, near=2 * near)
"""
SIMULATED = """
CudaProgram._pad = lambda *given: sys.exit("there was a second, padded copy on the host")
on_the_host = paths.Paths.predecessors
found = []
paths.Paths.predecessors = lambda self: found.append(self.adjacency.n) or on_the_host(self)
for n, low, kernel, scale in (
    (5, 0, "auto", 1), (9, 0, "katz-kider", 1), (9, -2, "staged-load", 1), (9, -1, "naive", 1), (1, 1, "naive", 1),
    (9, 0, "naive", 1e-5 * np.pi),  # rounded
):
    matrix, told = random_matrix(n, n, 0.5, low < 0, scale, max(low, 0)), []
    result = driver.answer(of_object(matrix), Call(kernel=kernel, predecessors=True, report_progress=told.append), engine)
    check(matrix, result.distances, result.predecessors, 1e-14 * (scale != 1))
    stats = result.stats
    assert stats.device == "simulator" and (kernel == "auto" or stats.kernel == kernel)
    dtype = "float64" if scale != 1 else "int32" if low < 0 else "int16"
    assert stats.dtype == dtype and {"compile", "copy in", "kernels"} <= set(stats.seconds)
    assert told and told == sorted(told)
assert found == [9], "the kernel with its own order of tiles alone"
# arcs of length 0 are listed, each with its source and its int16 length, where there is room
n = 12
zeros = np.ma.array(np.zeros((n, n)))
arcs = (4 + 2) * n * (n - 1)
for free, sources in ((arcs, 128), (arcs - 1, None)):
    engine.free_bytes = lambda: costs.RESERVED_MEMORY + device_bytes(n, BLOCK) + free
    found.clear()
    result = driver.answer(of_object(zeros), Call(kernel="naive", predecessors=True), engine)
    assert found == ([] if sources else [n]), found
    assert ((result.predecessors >= 0) == ~np.eye(n, dtype=bool)).all()
del engine.free_bytes
try:
    driver.answer(of_object(np.array([[0, 1.0], [-2, 0]])), engine=engine)
except NegativeCycleError as error:
    print("cycle", error)
"""


def test_solve_uses_cuda_kernels() -> None:
    assert "the graph has a negative cycle" in in_simulator(PRELUDE + SIMULATED)


class TestChoice:
    def test_a_missing_gpu_fails_only_if_it_is_requested(self, pretend: Pretend) -> None:
        def none(gpu: DeviceId) -> None:
            raise RuntimeError("Error at driver init: \n\nno driver\nis here.\n:")

        pretend.driver(True, none)
        assert engine_choice.choose_engine(None, 5000) is engine_choice.CPU
        assert engine_choice.choose_engine("cpu", 5000) is engine_choice.CPU
        for asked, needed_by in ((0, ""), ("1", ""), (None, "a test")):
            with pytest.raises(NoGpu, match=r"cannot be used \(no driver is here\); run `fwtui doctor`"):
                engine_choice.choose_engine(asked, 5, needed_by)
        with pytest.raises(Refused, match="'cpu' does not suit a test; pass a CUDA device index"):
            engine_choice.choose_engine("cpu", 5, needed_by="a test")

    def test_small_graphs_are_solved_on_the_cpu(self, pretend: Pretend) -> None:
        pretend.driver(True, lambda gpu: pytest.fail("it was started"))
        assert engine_choice.choose_engine(None, engine_choice.MIN_ON_GPU - 1) is engine_choice.CPU
        pretend.driver(False)
        assert engine_choice.choose_engine(None, engine_choice.MIN_ON_GPU) is engine_choice.CPU

    def test_every_type_has_a_kernel(self) -> None:
        from fwtui.engine.engine import HostEngine
        from fwtui_kernels.plan import Target

        engine = HostEngine(Target("cuda", (9, 0), multiprocessors=132))
        for dtype, n in product(("int16", "int32", "float32"), (1, 500, 5000, 50000)):
            kernel, shape = kernel_choice.suited(None, n, dtype, True, engine)
            assert dtype in kernel.dtypes and kernel.refuses(shape) is None
        naive = registry()["naive"]
        assert kernel_choice.suited(naive, 50, "int32", True, engine)[0] is naive


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_graph_kernels_compile_for_real_gpus(every: bool) -> None:
    """Some functions are compiled once; all for every data type with -m slow."""
    import compiled_off_gpu  # noqa: F401  which skips this where there is no compiler
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
        cases += [(do.survey_arcs, (*arcs, int32, found)), (do.relax_arcs, (*arcs, found))]
        cases += [(do.rows_of, (vertex, int32, int32[::1]))]
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
    for function, signature in cases if every else [cases[at] for at in (0, 9, -4, -1)]:
        assert compiler.unlinked(function.py_func, signature, (9, 0))


# the file's own module global `cuda` is what the simulator swaps
RESIDENT = """
def ask(matrix, dtype=None, kernel=None):
    asked = Call(dtype, predecessors=True, kernel=kernel or "auto")
    return answer(cuda.to_device(matrix), asked, engine)

chain = np.full((5, 5), np.inf)
chain[np.arange(4), np.arange(1, 5)] = 2.0**24 + 1
for kernel, low, scale, dtype in (
    (None, 1, 1, "int16"),
    ("staged-load", -2, 1, "int32"),
    ("naive", 1, 0.1, "float64"),
):
    matrix = random_matrix(7, 4, 0.5, low < 0, scale, max(low, 0))
    matrix[0, 1] = np.nan
    result = ask(matrix, kernel=kernel)
    got = result.distances.copy_to_host()
    kept = "float64" if dtype == "float64" else "float32"
    assert (result.stats.dtype, got.dtype.name, result.stats.exact) == (dtype, kept, scale != 0.1)
    assert result.stats.edges == np.isfinite(matrix).sum() - 7
    check(np.where(np.isnan(matrix), np.inf, matrix), got, result.predecessors.copy_to_host(), 1e-14 * (scale == 0.1))
# where rounding hides the paths of two sources, the host searches for those alone
matrix = np.where(rng.random((9, 9)) < 0.5, rng.random((9, 9)), np.inf)
np.fill_diagonal(matrix, 0)
whole, mend, asked = device_predecessors.found_by, paths.Paths.by_dijkstra, []

def spoilt(search, *given):
    found = whole(search, *given)
    for source in (2, 7):
        found[source] = -5
    search.unfound = lambda: np.array([2, 7])
    return found

device_predecessors.found_by = spoilt
every = paths.Paths.predecessors
paths.Paths.predecessors = lambda *given: sys.exit("all paths were found again")
paths.Paths.by_dijkstra = lambda self, sources: asked.extend(sources.tolist()) or mend(self, sources)
for given in (matrix, np.asfortranarray(matrix), matrix.astype(np.float32)):
    result = ask(given, kernel="naive")
    assert hasattr(result.predecessors, "copy_to_host") and asked == [2, 7], asked
    check(matrix, result.distances.copy_to_host(), result.predecessors.copy_to_host(), 1e-6)
    asked.clear()
device_predecessors.found_by, paths.Paths.predecessors, paths.Paths.by_dijkstra = whole, every, mend
far = ask(chain)
assert far.distances.copy_to_host()[0, 4] == 4 * (2**24 + 1) and far.stats.dtype == "int32"
# its own graph kernels are compiled once, like the kernels; here each takes a thousand seconds
launch = compiled_code.launch

def slowly(*given):
    Clock.compiling += 1000
    launch(*given)

compiled_code.launch = slowly
result = ask(chain)
compiled_code.launch = launch
told = result.stats.seconds
assert set(told) == {"set-up", "compile", "allocate", "prepare", "kernels", "copy out", "paths"}, told
assert told["compile"] > 4000 and result.stats.total < told["compile"] + 1000, told
# what is no edge on the diagonal says that a zero is one
none = ask(np.where(np.eye(3) > 0, np.inf, 0.0))
assert none.stats.edges == 6 and (none.distances.copy_to_host() == 0).all()
# a cycle of weight 0 whose sum is rounded to less
back = np.array([[0, 0.1, np.inf], [np.inf, 0, 0.7], [-0.8, np.inf, 0]])
assert (ask(back, kernel="naive").distances.copy_to_host().diagonal() == 0).all()
back[2, 0] = -0.80001
loop = np.array([[0, 1], [1, -0.1]])
for matrix in (np.array([[0, 1.0], [-2, 0]]), np.array([[0, -1.3], [0.2, 0]]), np.asfortranarray(back), loop):
    try:
        ask(matrix, kernel="naive")
    except NegativeCycleError as error:
        print(error)
for matrix, dtype in ((np.ones((2, 3)), None), (np.ones((4, 3, 3)), None),
                      (np.zeros((2, 2)), None), (np.array([[0, -np.inf], [1, 0]]), None),
                      (chain, "int16"), (np.where(chain < np.inf, 9000, np.inf), "int16"), (chain, "int8"), (chain > 0, None),
                      (chain.astype(">f8"), None)):
    try:
        ask(matrix, dtype)
    except Refused as refusal:
        print(refusal)
"""


class OnDevice:
    """The attribute by which an array on a GPU is recognized."""

    __cuda_array_interface__: dict[str, object] = {}


REFUSED = (
    *("of shape (2, 3) is not a graph", "of shape (4, 3, 3) is not a graph"),
    *("zeros off the diagonal may mean", "-inf is not a weight", "leaves no room in int16", "some distances overflow int16"),
    *("'int8' is not supported", "weights of type bool are not supported", "weights of type >f8 are not supported on a GPU"),
)


def test_arrays_on_the_device_stay_there() -> None:
    said = in_simulator(PRELUDE + RESIDENT).splitlines()
    cycles = [f"the graph has a negative cycle: {path}" for path in ("1 -> 0 -> 1", "1 -> 0 -> 1", "1 -> 2 -> 0 -> 1", "1 -> 1")]
    assert said[:4] == cycles and all(words in line for line, words in zip(said[4:], REFUSED, strict=True))


def test_arrays_on_the_device_have_no_length_and_no_cpu_kernel(pretend: Pretend) -> None:
    for device in ("0", 0):
        with pytest.raises(Refused, match=r"^kernel tiled-cpu runs on the CPU, which has no device 0; omit the device"):
            fwtui.solve([[0, 1], [1, 0]], kernel="tiled-cpu", device=device)
    with pytest.raises(Refused, match="runs on the CPU, and the array is on a GPU"):
        fwtui.solve(OnDevice(), kernel="serial")
    pretend.driver(True, Mock(side_effect=RuntimeError("no driver")))
    with pytest.raises(NoGpu, match="GPU 0 cannot be used"):
        fwtui.solve(OnDevice())


def test_an_array_is_read_on_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba.cuda")
    told: list[str] = []

    class Engine:
        ranks, target = (), SimpleNamespace(backend="cuda")

        def activate(self) -> None:
            told.append("this GPU, whichever was the last one")

    monkeypatch.setattr(engine_choice, "choose_engine", lambda *given, **named: Engine())
    monkeypatch.setattr("fwtui_kernels.compiled.device.cuda.as_cuda_array", lambda array: told.append("array"))
    there = HostGraph(Adjacency(0), engine_choice.CPU, facts_of(0, 0, 0, 0, 0))
    monkeypatch.setattr("fwtui.solver.device_graph.of_device_array", lambda *given: there)
    monkeypatch.setattr("fwtui.solver.driver.solve_in", lambda *given: told.append("answer") or True)
    fwtui.solve(OnDevice(), device=1)
    assert told == ["this GPU, whichever was the last one", "array", "answer"]
