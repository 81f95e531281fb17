"""Graphs laid out on the device: the same distances, to the bit, as with a layout on the host."""

import json
from typing import Any

import numpy as np
import pytest
from in_simulator import in_simulator
from scipy.sparse import coo_array, csc_array, csr_array

from fwtui.common.errors import Refused
from fwtui.graphs.adjacency import CsrRows
from fwtui.graphs.library_objects import lazy_of_object
from fwtui.solver.call import Clock
from fwtui.solver.solve import solve

VANISHING = "a nonzero weight would become 0 in float32, next to weights up to 1; choose float64"
SIMULATED = """
from simulated_solver import *

compiled_code.THREADS, compiled_code.BLOCKS, device_graph.DeviceGraph.piece_bytes = 4, 3, 32
told = {}
"""

SAME = (
    SIMULATED
    + """
looked, to_device = [], device_graph.to_device
launch = compiled_code.launch

def launched_alone(*given):
    assert compiled_code._one_at_a_time._is_owned(), "another thread may launch at the same time"
    launch(*given)

compiled_code.launch = launched_alone
fill = Adjacency.fill
Adjacency.fill = lambda self, matrix: looked.append(self.n) or fill(self, matrix)

def compare(name, graph, kernel="naive", **asked):
    looked.clear()
    device_graph.DeviceGraph.copying_threads = 8 if "dense" in name else 2  # if few, they copy the pieces
    paths = name in ("dense by columns", "rows", "arcs of both signs")
    first = answer(graph, Call(predecessors=paths, kernel=kernel, **asked), engine)
    assert not looked, f"{name}: the host laid it out"
    device_graph.to_device = lambda *given: None
    seen = graph if isinstance(graph, Adjacency) else graph.adjacency
    again = answer(seen, Call(predecessors=paths, kernel=kernel, **asked), engine)
    device_graph.to_device = to_device
    assert looked, name
    assert first.distances.dtype == again.distances.dtype, name
    assert (first.distances.view(np.int32) == again.distances.view(np.int32)).all(), name
    assert not paths or (first.predecessors == again.predecessors).all(), name
    assert (first.stats.edges, first.stats.exact) == (again.stats.edges, again.stats.exact), name
    stages = {"set-up", "compile", "copy in", "allocate", "prepare", "kernels", "copy out"}
    assert first.stats.device == "simulator" and stages == set(first.stats.seconds) - {"paths"}
    host = host_graph.HostGraph(seen, engine, seen.facts).reach(0)
    there = device_graph.to_device(graph, engine, Clock()).reach(0)
    assert host == there or name.startswith("dense") or not (host[1] or there[1]), (name, host, there)
    assert not host[1] or there[0] >= first.distances.max()
    told[name] = [first.stats.dtype, first.stats.proof, first.distances.dtype.name]

one = random_matrix(7, 1, 0.5, low=1)
compare("dense float64", lazy_of_object(one), kernel="katz-kider")
compare("dense by columns", lazy_of_object(np.asfortranarray(one.astype(np.float32))))
compare("dense whole", lazy_of_object(rng.integers(1, 250, (7, 7)).astype(np.uint8)))
compare("dense int64", lazy_of_object(rng.integers(10**6, 10**8, (7, 7))))
compare("dense with NaN and loops", lazy_of_object(np.where(one < np.inf, one + 3, np.nan)))
compare("dense quarters", lazy_of_object(one / 4), kernel="katz-kider")
compare("dense rounded", lazy_of_object(one / 3))
compare("dense negative", lazy_of_object(random_matrix(7, 2, 0.5, True)))
compare("dense alone", lazy_of_object(np.zeros((1, 1))))

def arcs(n, count, weights):
    sources, targets = rng.integers(0, n, (2, count))
    return Adjacency(n, arcs=Arcs(sources, targets, weights.astype(float)))

compare("arcs with parallel ones and loops", arcs(7, 200, rng.integers(0, 50, 200)))
compare("arcs of int32", arcs(7, 200, rng.integers(0, 50, 200) * 10**4))
compare("arcs in int16 of an odd side", arcs(7, 150, rng.integers(3, 50, 150)), kernel="auto", dtype="int16")
shared = arcs(8, 120, rng.integers(0, 30, 120))
lift = rng.integers(0, 20, 8)
weights = shared.arcs.weights + lift[shared.arcs.sources] - lift[shared.arcs.targets]
compare("arcs of both signs", Adjacency(8, shared.vertices, arcs=shared.arcs._replace(weights=weights)))
chain = Adjacency(12, arcs=Arcs(np.arange(12), np.roll(np.arange(12), -1), np.full(12, 1600.0)))
compare("arcs in a ring", chain)
order = rng.permutation(200)  # a round follows few of the arcs
long = Adjacency(200, arcs=Arcs(order, np.roll(order, -1), np.append(np.ones(199), 1000.0)))
ring = device_graph.to_device(long, engine, Clock())
told["long ring"] = [next(choices(ring.facts, dtype, ring.reach))[:2] for dtype in (None, "int16")]
# a loop that nobody follows counts in no bound, and need fit no type
ends = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 2, 2, 3])
loops = Adjacency(4, arcs=Arcs(*ends, np.array([1e14, 2, 3, 1e300, 4])))
compare("arcs and long loops", loops, dtype="int16")
sparse = csr_array(np.where(random_matrix(8, 1, 0.5) < np.inf, rng.integers(0, 30, (8, 8)), 0))
compare("rows", lazy_of_object(sparse))
odd = csr_array((np.array([2.0, np.inf, 3, np.nan]), ([0, 1, 1, 2], [1, 0, 2, 0])), shape=(3, 3))
compare("rows with infinity", lazy_of_object(odd), kernel="katz-kider")
print(json.dumps(told))
"""
)

ELSEWHERE = (
    SIMULATED
    + """
def said(graph, **asked):
    try:
        return answer(graph, Call(**asked), engine).stats.proof
    except (ValueError, NegativeCycleError) as error:
        return f"{type(error).__name__}: {error}"

far = np.full((5, 5), np.inf)
far[np.arange(4), np.arange(1, 5)] = 5000
near = np.where(np.arange(5) < 4, far, np.inf)
loop = np.array([[0, 2, 5], [-1, 0, 1], [1, -3, 0.0]])
out = {
    "short": said(lazy_of_object(near), dtype="int16"),
    "long": said(lazy_of_object(far), dtype="int16"),
    "wider": answer(lazy_of_object(far), engine=engine).stats.dtype,
    "cycle": said(lazy_of_object(loop)),
    "loop": said(lazy_of_object(csr_array(np.diag([3.0, -2.0])))),
    "infinite": said(lazy_of_object(np.array([[0, -np.inf], [1, 0]]))),
    "zeros": said(lazy_of_object(np.zeros((3, 3)))),
    "vanishing": said(lazy_of_object(np.array([[0, 1], [1e-46, 0]])), dtype="float32"),
    "vanishing arc": said(lazy_of_object(csr_array(([1, 1e-46], ([0, 1], [1, 0])), shape=(2, 2))), dtype="float32"),
    "beyond": said(lazy_of_object(np.array([[0, 2**60], [1, 0]]))),
    "no vertex": said(lazy_of_object(csr_array((np.array([1.0, 2]), np.array([1, 7]), np.array([0, 1, 2, 2])), shape=(3, 3)))),
}
before = answer(lazy_of_object(far), engine=engine)
out["path"] = before.path(0, 4)
# where there is no room for the graph beside its distances, the host lays it out
engine.free_bytes = lambda: costs.RESERVED_MEMORY + (1 << 20)
# the arcs say the same as the matrix
host_graph.HostGraph.escaped = lambda *given: sys.exit("the host looked for it")
for dtype, proof in (("int16", "short"), ("int16", "long")):
    matrix = near if proof == "short" else far
    present = np.isfinite(matrix)
    out[f"{proof}, arcs"] = said(lazy_of_object(csr_array((matrix[present], np.nonzero(present)), shape=(5, 5))), dtype=dtype)
    out[f"{proof}, rows"] = said(lazy_of_object(matrix), dtype=dtype)
wide = np.full((40, 40), np.inf)
wide[np.arange(39), np.arange(1, 40)] = 450  # 38 of them are too long by far for 16 bits
out["two words of sources"] = said(lazy_of_object(wide), dtype="int16")
big = random_matrix(24, 1, 0.5)
assert device_graph.to_device(lazy_of_object(big), engine, Clock()) is not None
engine.free_bytes = lambda: costs.RESERVED_MEMORY + 24 * 24 * 8
assert device_graph.to_device(lazy_of_object(big), engine, Clock()) is None
here, there = answer(of_object(big), Call(device="cpu")), answer(lazy_of_object(big), engine=engine)
out["no room"] = bool((there.distances == here.distances).all())
print(json.dumps(out))
"""
)


KEPT = (
    SIMULATED
    + """
import gc

class Garbage(list): ...  # stands for a device array in a reference cycle

matrix = random_matrix(9, 2, 0.4, low=1)
given = [lazy_of_object(matrix * scale) for scale in (1, 2000, 1e7)]  # the last distances are wider than the kernel's
for graph, kernel, paths in (*[(it, "naive", False) for it in given], (given[0], "naive", True), (given[0], "katz-kider", False)):
    found = [answer(graph, Call(kernel=kernel, predecessors=paths, keep_on_device=keep), engine) for keep in (False, True)]
    host, there = ([result.distances, result.predecessors][: 1 + paths] for result in found)
    assert all(isinstance(array, np.ndarray) for array in host) and all(hasattr(array, "copy_to_host") for array in there)
    assert all(np.array_equal(one, other.copy_to_host()) for one, other in zip(host, there, strict=True))
garbage = Garbage()
garbage.append(garbage)
del garbage
for less in (0, 1):  # the graph and two matrices: enough after a collection, then never
    engine.free_bytes = lambda: costs.RESERVED_MEMORY + 1296 - less - any(isinstance(it, Garbage) for it in gc.get_objects())
    try:
        answer(given[0], Call(kernel="naive", keep_on_device=True), engine)
    except Refused as refusal:
        print(less, refusal)
"""
)


def test_distances_stay_on_the_device_if_they_are_kept_there() -> None:
    assert in_simulator(KEPT).strip() == (
        "1 distances of 9 vertices on the GPU need 1.27 KiB of device memory, but only 1.26 KiB is free; "
        "omit keep, or choose a smaller graph"
    )


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"keep": "host"}, "pass 'device', or omit it"),
        ({"keep": "device", "sources": [0]}, "cannot be combined with sources"),
        ({"keep": "device", "kernel": "serial"}, "omit one of them"),
        ({"keep": "device", "device": "cpu"}, "keep='device'"),
    ],
)
def test_keeping_distances_needs_one_gpu_and_all_of_them(asked: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        solve(np.ones((3, 3)), **asked)


def test_the_same_answers_to_the_bit() -> None:
    told = json.loads(in_simulator(SAME))
    assert told["dense float64"][:2] == ["int16", "proved by (n-1) x greatest weight"]
    assert told["dense int64"] == ["int32", told["dense int64"][1], "float64"] and told["dense rounded"][0] == "float64"
    assert told["dense quarters"][0] == "float32" and told["dense negative"][0] == "int32"
    checked = ["int16", "checked afterwards"]
    assert told["long ring"] == [["int32", "proved by (n-1) x greatest weight"], checked], "int16 pays only for short searches"
    assert told["arcs in a ring"] == ["int32", "proved by (n-1) x greatest weight", "float32"]


def test_refusals_are_those_of_the_host() -> None:
    said = json.loads(in_simulator(ELSEWHERE))
    assert said["short"] == "checked afterwards" and said["long"].startswith("Refused: some distances overflow int16")
    assert said["wider"] == "int32"
    for kind in ("arcs", "rows"):
        assert said[f"short, {kind}"] == said["short"] and said[f"long, {kind}"] == said["long"]
    assert said["two words of sources"] == said["long"]
    assert said["cycle"].startswith("NegativeCycleError: the graph has a negative cycle: ")
    assert said["loop"] == "NegativeCycleError: the graph has a negative cycle: 1 -> 1"
    assert said["infinite"].startswith("Refused: -inf is not a weight")
    assert said["zeros"].startswith("Refused: zeros off the diagonal") and "numpy.ma.array" in said["zeros"]
    assert said["vanishing"] == said["vanishing arc"] == f"Refused: {VANISHING}"
    assert said["no vertex"].startswith("Refused: the sparse matrix has indices outside its shape")
    assert said["path"] == [0, 1, 2, 3, 4] and said["no room"] is True


def test_only_supported_arrays_and_sparse_rows_are_lazy() -> None:
    matrix = np.ones((4, 4))
    odd = [np.ma.array(matrix), matrix[:3], matrix > 0, np.ones((8, 8))[::2, ::2], matrix.astype("f2"), matrix.astype(">f8")]
    for graph in (*odd, matrix.tolist(), csc_array(matrix), csr_array(matrix[:3]), csr_array(matrix > 0)):
        assert lazy_of_object(graph) is None
    graph = lazy_of_object(coo_array((np.array([1.0, 2, 4]), (np.array([2, 0, 2]), np.array([1, 1, 1]))), shape=(3, 3)))
    assert graph is not None and isinstance(graph.parts, CsrRows)
    assert [part.tolist() for part in graph.parts] == [[0, 1, 1, 2], [1, 1], [2.0, 5.0]]
    assert graph.adjacency.arcs is not None and graph.adjacency.arcs.weights.tolist() == [2.0, 5.0]
    broken = csr_array(np.ones((3, 3)))
    broken.indptr = np.array([0, 7, 3, 9], broken.indptr.dtype)
    assert lazy_of_object(broken) is None
    graph = lazy_of_object(np.array([[0, -np.inf], [1, 0]]))
    assert graph is not None
    with pytest.raises(Refused, match="-inf is not a weight"):
        _ = graph.adjacency


def test_a_clock_has_no_gaps() -> None:
    clock = Clock(now=iter([10.0, 11.0, 15.0, 15.5]).__next__)
    clock.lap("set-up")
    clock.take("kernels", 3.5)
    clock.lap("copy in")
    assert clock.seconds == {"set-up": 1.0, "copy in": 0.5, "kernels": 3.5, "prepare": 0.5}
