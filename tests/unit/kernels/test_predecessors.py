"""Predecessors on the GPU: every path in the simulator, searches that are broken on purpose, and their compiled code."""

from typing import Any

import pytest
from in_simulator import answers, in_simulator

from fwtui_kernels.paths import last_arcs, predecessors
from fwtui_kernels.paths.predecessors import BLOCK, MAX_SOURCES, device_bytes, padded, sources_for

HARNESS = """
from types import SimpleNamespace
import numpy as np
from in_simulator import tell
from path_checks import check_paths
from fwtui.solver.device_predecessors import terms_of
from fwtui_kernels.paths import last_arcs, predecessors
from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.plan import NO_EDGE

stream = cuda.stream()
def replaced(edits):
    for module in (last_arcs, predecessors):
        source = open(module.__file__).read()
        for where, old, new in edits:
            if where == module.__name__:
                assert old in source, old
                source = source.replace(old, new, 1)
        # few vertices to a chunk, so that there are several
        exec(compile(source.replace("CHUNK = 64", "CHUNK = 4"), module.__file__, "exec"), vars(module))

def walk(search, weights, lengths, at_once, near, hidden=()):
    n = len(weights)
    before = np.full((n, n), 12345, np.int32)
    for source in range(0, n, at_once or n):
        part = cuda.to_device(before[source : source + (at_once or n)])
        search.find(source, part)
        before[source : source + (at_once or n)] = part.copy_to_host()
    for row in hidden:
        lengths[row], before[row] = np.inf, -9999
    check_paths(weights, lengths, before, near=near)

def closed(weights):
    lengths = weights.copy()
    for k in range(len(weights)):
        lengths = np.minimum(lengths, lengths[:, k, None] + lengths[None, k])
    return lengths

def right(n, dtype, density=0.35, least=1, most=6, times=1, lift=0, at_once=None, seed=1):
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random((n, n)) < density, rng.integers(least, most, (n, n)) * times, np.inf)
    potential = rng.integers(0, lift + 1, n)
    weights += potential[:, None] - potential[None, :]
    np.fill_diagonal(weights, 0)
    lengths, no_edge = closed(weights), NO_EDGE[dtype]
    far = no_edge - (2 * lift * n if dtype != "float32" else 0)
    given, found = (cuda.to_device(np.where(np.isfinite(m), m, no_edge).astype(dtype)) for m in (weights, lengths))
    largest = float(np.abs(lengths[np.isfinite(lengths)]).max())
    terms = predecessors.Terms(n, largest, far, no_edge, lift > 0)
    walk(predecessors.Search(found, given, terms, stream), weights, lengths, at_once, 0)
    return True

def nearly_right(n, density=0.5, power=1, lowest=0, at_once=None, hide=False, beside=False, dtype="float32", ulps=0, seed=1):
    # sums that are rounded, of weights from 10^-lowest up, or that are a power of chance; to `hide` one is no sum;
    # `beside` one that is long, some that its rounding error hardly tells apart
    rng = np.random.default_rng(seed)
    some = 10 ** rng.uniform(-lowest, 0, (n, n)) if lowest else (1 - rng.random((n, n))) ** power
    number = np.dtype(dtype).type
    if ulps:  # many paths of nearly the least length
        some = 1 + rng.integers(0, ulps, (n, n)) * np.finfo(number).eps
    weights = np.where(rng.random((n, n)) < density, some, np.inf).astype(number)
    if beside:
        weights = weights * number(3e-5) + number(1.1e-5)
        weights[:, -1] = np.inf
        weights[0, -1] = 1
    np.fill_diagonal(weights, 0)
    lengths, hidden = closed(weights), []
    if hide:
        i, j = np.argwhere(np.isfinite(lengths) & np.isinf(weights))[0]
        lengths[i, j] *= number(0.999)
        hidden.append(i)
    largest = float(lengths[np.isfinite(lengths)].max())
    terms = terms_of(SimpleNamespace(n=n, nonnegative=True, exact_sums=False, drift=0), dtype, largest)
    assert terms.slack > 0
    search = predecessors.Search(*map(cuda.to_device, (lengths, weights)), terms, stream)
    walk(search, weights, lengths, at_once, (2 if ulps else 100) * np.finfo(number).eps, hidden)
    return search.unfound().tolist() == hidden

def right_of_all(case):
    edits, graphs = case.pop("edits", []), case.pop("graphs", 1)
    replaced(edits)
    kind = nearly_right if "power" in case or "lowest" in case else right
    try:
        return all(kind(seed=seed, **case) for seed in range(graphs))
    except (AssertionError, IndexError, ValueError):
        if not edits:
            raise
        return False

tell(right_of_all)
"""


def simulated(cases: list[dict[str, Any]]) -> list[bool]:
    """Return True for each case whose paths all exist, end, and have the length of their distance."""
    return answers(HARNESS, cases)


def test_all_paths_of_small_graphs() -> None:
    cases: list[dict[str, Any]] = [{"n": n, "dtype": "int32", "density": 0.5} for n in (1, 2, 8, 9)]
    cases += [
        {"n": 13, "dtype": "int32", "least": 0, "graphs": 3},
        {"n": 13, "dtype": "int32", "least": 0, "times": 60},
        {"n": 13, "dtype": "int16", "least": 0, "most": 3},
        {"n": 16, "dtype": "float32", "least": 0, "times": 0.25},
        {"n": 15, "dtype": "int32", "least": 0, "most": 2, "lift": 9, "at_once": 8},
        {"n": 12, "dtype": "float32", "lift": 3, "times": 0.5},
        # long ones
        {"n": 19, "dtype": "int32", "least": 0, "times": 5_000_000, "density": 0.2, "at_once": 10},
        {"n": 10, "dtype": "int32", "least": 0, "most": 1, "density": 0.2, "graphs": 2},
        {"n": 9, "dtype": "int32", "density": 0},
    ]
    assert simulated(cases) == [True] * len(cases)


ROUNDED: list[dict[str, Any]] = [
    {"n": 13, "power": 1, "graphs": 2},
    {"n": 19, "power": 3, "density": 0.15, "at_once": 10},
    {"n": 17, "power": 12, "density": 1},
    {"n": 12, "power": 2, "hide": True},
    {"n": 16, "power": 1, "beside": True, "density": 0.6},
    {"n": 16, "lowest": 10, "density": 0.2, "graphs": 3},
    {"n": 16, "lowest": 10, "density": 0.2, "dtype": "float64"},
    {"n": 16, "power": 1, "beside": True, "density": 0.6, "dtype": "float64"},
    {"n": 18, "power": 1, "ulps": 7, "density": 0.6},
]


def test_all_paths_of_rounded_weights() -> None:
    assert simulated(ROUNDED) == [True] * len(ROUNDED)


def test_sources_at_once() -> None:
    n = 20000
    assert sources_for(n, float("inf")) == MAX_SOURCES and sources_for(500, float("inf")) == padded(500) == 512
    least = device_bytes(n, BLOCK)
    assert sources_for(n, least) == BLOCK and sources_for(n, least - 1) is None
    some = sources_for(n, device_bytes(n, 5000))
    assert some is not None and 2500 <= some <= 5120 and some % BLOCK == 0


A, P = last_arcs.__name__, predecessors.__name__
MUTANTS: dict[str, tuple[str, str, str]] = {
    "weak arcs taken for strong ones": (A, "- low[j] <= bar", "- low[j] < bar"),
    "potentials forgotten": (P, "if terms.negative:", "if False:"),
    "not turned over": (A, "= staged[x * pitch + line]", "= staged[line * pitch + x]"),
    "spread from what is not known": (A, "reachable = v == i or before[row, v] >= 0", "reachable = True"),
    "no spread": (P, "if len(self._weak):", "if False:"),
    "lengths forgotten": (A, "number(f + length)", "f"),
    "one arc short": (A, "uint32(first[j + 1])", "uint32(max(first[j + 1] - 1, 0))"),
    "the sources of another block": (A, "(cuda.blockIdx.y * LANES + lane) * 4", "lane * 4"),
    "the wrong end of an arc": (A, "others[at] = v", "others[at] = j"),
    "the place in another chunk": (A, "first[j] + counts[cuda.blockIdx.y, j]", "first[j] + counts[0, j]"),
}  # fmt: skip


MUTANTS_OF_ROUNDED: dict[str, tuple[str, str, str]] = {
    "roundings of the longest distance allowed to all": (A, "return number(cell + cell * slack)", "return number(cell + slack)"),
    "the first sum instead of the least": (A, "every = slack > 0 and", "every = slack < 0 and"),
    "weak arcs followed wherever they lead": (A, "distance[i, v] + lengths[arc] <= cell + cell * slack", "True"),
    "paths that do not end taken for whole": (A, "rows[i] = 1", "rows[i] = 0"),
}  # fmt: skip


FAR = """
from types import SimpleNamespace
import numpy as np
from fwtui_kernels.paths import last_arcs
n, pitch, asked = 140_001, 16384, []
last_arcs.cuda = SimpleNamespace(
    threadIdx=SimpleNamespace(x=0), blockIdx=SimpleNamespace(x=n - 1, y=0), jit=last_arcs.cuda.jit
)
last_arcs.load4 = lambda array, at: asked.append(int(at)) or (np.int32(0),) * 4
first = np.zeros(n + 1, np.int64)
first[n] = 1
before = np.full((4, n), -1, np.int32)
given = SimpleNamespace(shape=(n, pitch)), first, np.array([n - 2], np.int32), np.ones(1, np.int32), before
last_arcs.functions("int32").follow.py_func(*given, np.int32(0), np.int32(n), np.int32(7), np.int32(0))
assert asked == [(n - 1) * pitch, (n - 2) * pitch], asked
"""


def test_rows_beyond_two_to_the_31st_word_are_found() -> None:
    in_simulator(FAR)


SOME = {"n": 18, "dtype": "int32", "density": 0.3}
ZEROS = {"n": 9, "dtype": "int32", "least": 0, "most": 2, "density": 0.4, "graphs": 4}
LIFTED = {"n": 15, "dtype": "int32", "least": 0, "most": 2, "lift": 9, "at_once": 8}


@pytest.mark.parametrize(
    ("mutants", "bases"),
    [
        pytest.param(MUTANTS, [SOME, ZEROS, LIFTED], id="exact", marks=pytest.mark.slow),
        pytest.param(MUTANTS_OF_ROUNDED, [*ROUNDED[2:5], ROUNDED[-1]], id="rounded", marks=pytest.mark.slow),
    ],
)
def test_broken_searches_are_caught(mutants: dict[str, tuple[str, str, str]], bases: list[dict[str, Any]]) -> None:
    edits = [[], *([what] for what in mutants.values()), []]
    right = [all(simulated([{**base, "edits": edit} for base in bases])) for edit in edits]
    assert right[0] and right[-1]
    assert not [name for name, verdict in zip(mutants, right[1:-1], strict=True) if verdict]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "int16", "float32", "float64"])
def test_the_search_compiles_for_real_gpus(dtype: str) -> None:
    from compiled_off_gpu import compiled, instructions
    from numba import float32, float64, int16, int32, int64, uint8

    number = {"int32": int32, "int16": int16, "float32": float32, "float64": float64}[dtype]
    cells, words, line, low = number[:, ::1], int32[:, ::1], int32[::1], float64[::1]
    arcs, terms = (int64[::1], line, number[::1]), (int32, number, number, float64, int32)
    functions = last_arcs.functions(dtype)
    for function, signature in (
        (functions.lowest, (cells, low, int32, number)),
        (functions.count, (cells, cells, low, words, *terms)),
        (functions.start, (words, line, int32)),
        (functions.gather, (cells, cells, low, words, *arcs, *terms)),
        (functions.turn, (cells, int32, cells, int32, number, number)),
        (functions.begin, (cells, cells, words, int32, int32, number)),
        (functions.spread, (cells, *arcs, words, int32, int32, number, number)),
        (functions.unfound, (cells, words, int32, int32, number, uint8[::1])),
    ):
        assert compiled(function.py_func, signature, (9, 0)).spills == 0
    got = compiled(functions.follow.py_func, (cells, *arcs, words, int32, int32, number, number), (9, 0))
    assert got.spills == 0 and got.stack == 0 and got.registers <= 64, "enough blocks to wait for the cache"
    loads = {"int16": "LDG.E.64", "float64": "LDG.E.128"}.get(dtype, "LDG.E.128")
    assert instructions(got.cubin)[loads] >= 2, "the cells of a vertex, and those of each arc"
