"""Predecessors on the GPU: every path in the simulator, searches that are broken on purpose, and their compiled code."""

from typing import Any

import pytest
from in_simulator import answers, in_simulator

from fwtui_kernels.forms import FORMS
from fwtui_kernels.paths import few_arcs, predecessors, short_arcs, trace
from fwtui_kernels.paths.predecessors import (
    BLOCK,
    MIN_SHIFT,
    PAIRS,
    SINGLE,
    SOURCES,
    Terms,
    Way,
    device_bytes,
    padded,
    sources_for,
)

HARNESS = """
from types import SimpleNamespace
import numpy as np
from in_simulator import tell
from path_checks import check_paths
from fwtui.solver.device_predecessors import terms_of
from fwtui_kernels.forms import FORMS
from fwtui_kernels.paths import few_arcs, predecessors, short_arcs, trace
from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.plan import NO_EDGE

stream = cuda.stream()
FIRST_CHECK = "FIRST_CHECK = 512"

def replaced(edits):
    for module in (short_arcs, few_arcs, trace, predecessors):
        source = open(module.__file__).read()
        for where, old, new in edits:
            if where == module.__name__:
                assert old in source, old
                source = source.replace(old, new, 1)
        assert module is not short_arcs or FIRST_CHECK in source
        # a slab, so that blocks look more than once
        exec(compile(source.replace(FIRST_CHECK, "FIRST_CHECK = 8"), module.__file__, "exec"), vars(module))

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

def right(n, dtype, density=0.35, least=1, most=6, times=1, lift=0, at_once=None, few=False, seed=1):
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random((n, n)) < density, rng.integers(least, most, (n, n)) * times, np.inf)
    potential = rng.integers(0, lift + 1, n)
    weights += potential[:, None] - potential[None, :]
    np.fill_diagonal(weights, 0)
    lengths, no_edge = closed(weights), NO_EDGE[dtype]
    far = no_edge - (2 * lift * n if dtype != "float32" else 0)
    given, found = (cuda.to_device(np.where(np.isfinite(m), m, no_edge).astype(dtype)) for m in (weights, lengths))
    largest = float(np.abs(lengths[np.isfinite(lengths)]).max())
    terms = predecessors.Terms(n, 256 if dtype == "float32" else 1, largest, far, no_edge, lift > 0)
    walk(predecessors.Search(found, given, terms, None, stream, few), weights, lengths, at_once, 0)
    return True

def nearly_right(n, density=0.5, power=1, lowest=0, at_once=None, hide=False, beside=False, dtype="float32", seed=1):
    # sums that are rounded, of weights from 10^-lowest up, or that are a power of chance; to `hide` one is no sum;
    # `beside` one that is long, some that 21 bits of it hardly tell apart
    rng = np.random.default_rng(seed)
    some = 10 ** rng.uniform(-lowest, 0, (n, n)) if lowest else (1 - rng.random((n, n))) ** power
    number = np.dtype(dtype).type
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
    terms = terms_of(SimpleNamespace(n=n, nonnegative=True, exact_sums=False), dtype, largest)
    assert terms.slack > 0
    search = predecessors.Search(*map(cuda.to_device, (lengths, weights)), terms, None, stream)
    walk(search, weights, lengths, at_once, 100 * np.finfo(number).eps, hidden)
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
        # lengths that leave four bits for a vertex: two epochs
        {"n": 19, "dtype": "int32", "least": 0, "times": 5_000_000, "density": 0.2, "at_once": 10},
        {"n": 10, "dtype": "int32", "least": 0, "most": 1, "density": 0.2, "graphs": 2},
        {"n": 9, "dtype": "int32", "density": 0},
    ]
    # and the first ones arc by arc
    cases += [{**case, "few": True} for case in cases[:9]]
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
]


def test_all_paths_of_rounded_weights() -> None:
    assert simulated(ROUNDED) == [True] * len(ROUNDED)


def test_the_bits_that_are_left_for_a_vertex() -> None:
    def bits(largest: float, scale: int = 1, negative: bool = False, way: Way = SINGLE) -> int | None:
        return Terms(100, scale, largest, 1e9, 1e9, negative).shift(way)

    assert bits(100) == 20 and bits(2.0**26 - 3) == MIN_SHIFT and bits(2.0**26) is None
    assert bits(2.0**16 - 2, 256) == 6 and bits(2.0**23 - 1, negative=True) == 5, "whatever float32 holds exactly"
    assert bits(125, way=PAIRS) == 7 and bits(126, way=PAIRS) is None
    for way, word in ((SINGLE, 31), (PAIRS, 15)):
        for largest in (1, 7, 100, 2**20 - 2, 2**24):
            for negative in (False, True) if way is SINGLE else (False,):
                shift = bits(largest, negative=negative, way=way)
                if shift is not None:
                    low = -(largest << shift) if negative else 0
                    most = ((largest + 1) << shift) - 1  # of a key that is a length and a vertex
                    assert most < way.none + low and 2 * way.none < 2**word and 2 * most < 2**word
    terms = Terms(100, 1, 100, 1e9, 1e9, False)
    assert terms.way((9, 0)) is PAIRS and terms.way((8, 0)) is terms._replace(negative=True).way((9, 0)) is SINGLE


def test_sources_at_once() -> None:
    n = 20000
    assert sources_for(n, float("inf")) == SOURCES and sources_for(500, float("inf")) == padded(500) == 512
    least = device_bytes(n, BLOCK)
    assert sources_for(n, least) == BLOCK and sources_for(n, least - 1) is None
    some = sources_for(n, device_bytes(n, 5000))
    assert some is not None and 2500 <= some <= 5120 and some % BLOCK == 0


S, T, P = short_arcs.__name__, trace.__name__, predecessors.__name__
MUTANTS: dict[str, tuple[str, str, str]] = {
    "weak arcs taken for strong ones": (S, "+ low[v] - low[j] > bar:", "+ low[v] - low[j] >= bar:"),
    "a list without its last slab": (S, "lengths[block] = base", "lengths[block] = max(base - slab, 0)"),
    "a list filled up with a vertex": (S, "rest % slab] = side", "rest % slab] = 0"),
    "not turned over": (S, "= staged[x * pitch + line]", "= staged[line * pitch + x]"),
    "spread from what is not known": (S, "reachable = v == i or before[row, v] >= 0", "reachable = True"),
    "no spread": (P, "if self._weak is not None:", "if False:"),
    "the epoch forgotten": (T, "(epoch << shift) | ", ""),
    "what an epoch found carried over": (T, "best[i] = empty\n                for r", "pass\n                for r"),
    "no barrier before the copies": (T, "cuda.syncthreads()\n            coming", "coming"),
    "copies that nobody waits for": (T, "wait_copies(under_way)\n", "pass\n"),
    "stopped too early": (T, "if not cuda.syncthreads_or(missing):", "if True:"),
}  # fmt: skip


LIMIT, THEN = "most = cell + ", "slack\n                if v"
MUTANTS_OF_ROUNDED: dict[str, tuple[str, str, str]] = {
    "what the search found believed": (S, "if v < 0 or distance[i, v] + weights[v, j] > most:", "if v < 0:"),
    "roundings of the longest distance allowed to all": (S, f"{LIMIT}cell * {THEN}", LIMIT + THEN),
    "weak arcs followed wherever they lead": (S, "tight = via <= cell + cell * slack", "tight = True"),
    "no second look at what was found": (P, 'self._by_rows("settle", rows)(', "(lambda *given: None)("),
    "paths that do not end taken for whole": (S, "rows[i] = 1", "rows[i] = 0"),
}  # fmt: skip


F = few_arcs.__name__
MUTANTS_OF_FEW: dict[str, tuple[str, str, str]] = {
    "lengths forgotten": (F, "int32(f + length) == b", "f == b"),
    "one arc short": (F, "uint32(first[j + 1])", "uint32(max(first[j + 1] - 1, 0))"),
    "the sources of another block": (F, "(cuda.blockIdx.y * LANES + lane) * 4", "lane * 4"),
    "a vertex in the length": (F, "key >> shift << shift", "key"),
    "the wrong end of an arc": (F, "others[at] = v", "others[at] = j"),
}


FAR = """
from types import SimpleNamespace
import numpy as np
from fwtui_kernels.forms import FORMS
from fwtui_kernels.paths import few_arcs
follow = few_arcs.follow.py_func
n, pitch, asked = 140_001, 16384, []
few_arcs.cuda = SimpleNamespace(threadIdx=SimpleNamespace(x=0), blockIdx=SimpleNamespace(x=n - 1, y=0))
few_arcs.load4 = lambda array, at: asked.append(int(at)) or (0, 0, 0, 0)
first = np.zeros(n + 1, np.int64)
first[n] = 1
given = SimpleNamespace(shape=(n, pitch)), first, np.array([n - 2], np.int32), np.ones(1, np.int32), np.zeros((0, 0), np.int32)
follow(*given, np.int32(0), np.int32(n), np.int32(7))
assert asked == [(n - 1) * pitch, (n - 2) * pitch], asked
"""


def test_rows_beyond_two_to_the_31st_word_are_found() -> None:
    in_simulator(FAR)


ARC_BY_ARC = {"n": 18, "dtype": "int32", "density": 0.3, "few": True}
WIDE = {"n": 18, "dtype": "int32", "least": 0, "times": 4_000_000, "density": 0.3}
ZEROS = {"n": 9, "dtype": "int32", "least": 0, "most": 2, "density": 0.4, "graphs": 4}


@pytest.mark.parametrize(
    ("mutants", "bases"),
    [
        pytest.param(MUTANTS_OF_FEW, [ARC_BY_ARC], id="arc by arc"),
        pytest.param(MUTANTS, [WIDE, ZEROS], id="exact", marks=pytest.mark.slow),
        pytest.param(MUTANTS_OF_ROUNDED, ROUNDED[2:5], id="rounded", marks=pytest.mark.slow),
    ],
)
def test_broken_searches_are_caught(mutants: dict[str, tuple[str, str, str]], bases: list[dict[str, Any]]) -> None:
    edits = [[], *([what] for what in mutants.values()), []]
    right = [all(simulated([{**base, "edits": edit} for base in bases])) for edit in edits]
    assert right[0] and right[-1]
    assert not [name for name, verdict in zip(mutants, right[1:-1], strict=True) if verdict]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "rounded", "float32", "int16"])
@pytest.mark.parametrize(("way", "form", "expected"), [
    (SINGLE, "int32-mixed", {"VIADDMNMX": 344, "VIMNMX3": 84}),
    (PAIRS, "int16-mixed", {"VIADDMNMX.S16x2": 344, "VIMNMX3.U16x2": 84}),
], ids=["single", "pairs"])  # fmt: skip
def test_the_search_is_made_of_the_third_phase_s_instructions(way: Way, form: str, expected: dict[str, int], dtype: str) -> None:
    from compiled_off_gpu import compiled, instructions
    from numba import float32, int16, int32

    rounded = dtype == "rounded"
    number = {"int32": int32, "int16": int16}.get(dtype, float32)
    if rounded and way is PAIRS:
        pytest.skip("rounded lengths need all bits")
    search = trace.trace_of(way.cut, [f.key for f in FORMS].index(form), way.none, rounded)
    words, keys = int32[:, ::1], (int16 if way is PAIRS else int32)[:, ::1]
    cells, scale = number[:, ::1], float32 if rounded else int32
    signature = (words, keys, words, int32[::1], cells, cells, words, int32, int32, scale, int32, number, int32)
    got = compiled(search.py_func, signature, (9, 0), way.cut.bounds)
    assert got.spills == 0 and got.registers <= 128 and got.shared < 49152
    assert got.stack == 4 * way.cut.rows * way.cut.columns, "a copy of the results for the looks, and nothing else"
    found = instructions(got.cubin)
    assert {name: found[name] for name in expected} == expected
    assert found["LDS.128"] == 4 * 8 and found["LDGSTS.E.BYPASS.128"] >= 8 and not found["STS"]


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False])
def test_the_functions_around_the_search_compile_for_real_gpus(ends: bool) -> None:
    import compiled_off_gpu  # noqa: F401  which skips this where there is no compiler
    from numba import float32, int16, int32, int64, uint8

    from fwtui_kernels.compiled import compiler

    line, words = int32[::1], int32[:, ::1]
    for number, scale in ((float32, float32), (int16, int32)) if ends else ((int32, int32), (float32, int32)):
        functions = short_arcs.functions(BLOCK, SINGLE.cut.slab, scale is float32)
        cells = number[:, ::1]
        for function, signature in (
            (functions.lowest, (cells, line, int32, scale, number)),
            *(
                (
                    functions.sift,
                    (cells, cells, line, keys, uint8[:, ::1], line, int32, scale, *[int32] * 2, number, number, int32),
                )
                for keys in (words, int16[:, ::1])
            ),
            (functions.enlist, (uint8[:, ::1], words, line, int32)),
            (functions.weak_arcs, (cells, cells, line, int64[::1], line, line, int32, scale, number, number, int32)),
            (functions.turn, (cells, int32, words, int32, scale, *[int32] * 3, number)),
            (functions.begin, (cells, cells, words, int32, int32, number)),
            (functions.spread, (cells, words, int32, int64[::1], line, int32, scale, number, number)),
            (functions.settle, (cells, cells, words, words, int32, int32, int32, number, number)),
            (functions.unfound, (cells, words, int32, int32, number, uint8[::1])),
        ):
            assert compiler.unlinked(function.py_func, signature, (9, 0))


@pytest.mark.slow
def test_arc_after_arc_reads_four_sources_at_once() -> None:
    from compiled_off_gpu import compiled, instructions
    from numba import int16, int32, int64

    do, words, line = few_arcs, int32[:, ::1], int32[::1]
    for keys in (words, int16[:, ::1]):
        compiled(do.count.py_func, (keys, line, int32, int32), (9, 0))
        compiled(do.gather.py_func, (keys, int64[::1], *[line] * 3, *[int32] * 4), (9, 0))
    got = compiled(do.follow.py_func, (words, int64[::1], line, line, words, *[int32] * 3), (9, 0))
    assert got.spills == 0 and got.stack == 0 and got.registers <= 64, "enough blocks to wait for the cache"
    assert instructions(got.cubin)["LDG.E.128"] >= 2, "what is kept of a vertex, and what is read of each arc"
