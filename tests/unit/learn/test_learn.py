"""Step mode: traces against Floyd-Warshall, paths, positions, edits, sources."""

import itertools

import numpy as np
import pytest
from in_simulator import in_simulator
from path_checks import floyd_warshall
from processes import ROOT

from fwtui.common.errors import Refused
from fwtui.experiment.experiment import changed
from fwtui.experiment.generate import generate
from fwtui.learn.kernel_source import source
from fwtui.learn.stepping import (
    FIRST,
    MAX_WEIGHT,
    Stepping,
    Trace,
    generated,
    parse_weight,
    stepping,
)
from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel, Rect

KERNELS = list(registry().values())
INF = np.inf


def length(weights: np.ndarray, path: tuple[int, ...]) -> float:
    return sum(float(weights[i, j]) for i, j in itertools.pairwise(path))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.id)
@pytest.mark.parametrize("n", [1, 13])
def test_every_plan_ends_with_the_distances_and_paths_of_their_length(kernel: Kernel, n: int) -> None:
    s = stepping(changed(FIRST, kernel=kernel.id, n=n, seed=n))
    trace = s.trace
    np.testing.assert_array_equal(trace.distances[-1], floyd_warshall(s.weights))
    assert len(trace.distances) == len(trace.shortened) == len(trace.moments) + 1
    for position in (0, len(trace.moments) // 2, len(trace.moments)):
        for i in range(n):
            for j in range(n):
                path, distance = trace.path(position, i, j), trace.distances[position][i, j]
                assert bool(path) == np.isfinite(distance)
                if path:
                    assert (path[0], path[-1]) == (i, j) and length(s.weights, path) == distance


def test_changed_cells_are_the_written_ones() -> None:
    for kernel in ("naive", "katz-kider", "kleene"):
        trace = stepping(changed(FIRST, kernel=kernel, n=11, density=0.5)).trace
        shorter = 0
        for index, moment in enumerate(trace.moments):
            for i, j in np.argwhere(trace.distances[index + 1] < trace.distances[index]):
                assert any(r.top <= i < r.bottom and r.left <= j < r.right for r in moment.targets)
                cell = trace.relaxed(index, int(i), int(j))
                assert cell is not None and cell.new == cell.to_k + cell.from_k < cell.old
                shorter += 1
        assert shorter > 10


def test_positions_go_by_k_by_step_and_by_round_both_ways() -> None:
    s = stepping(changed(FIRST, n=8))  # two tiles: two rounds of three steps of four k
    trace = s.trace
    assert (len(trace.moments), trace.moments[-1].round, len(trace.plan)) == (24, 2, 6)
    assert [trace.next_of("step", p, 1) for p in (0, 1, 4, 23, 24)] == [4, 4, 8, 24, 24]
    assert [trace.next_of("step", p, -1) for p in (24, 4, 3, 0)] == [20, 0, 0, 0]
    assert [trace.next_of("round", p, 1) for p in (0, 12, 24)] == [12, 24, 24]
    assert [trace.next_of("round", p, -1) for p in (24, 12, 5)] == [12, 0, 0]
    s.go(99)
    assert s.position == 24
    s.go(-3)
    assert s.position == 0 and s.moment is None and s.cell is None and not s.changed.any()


def test_the_graph_is_the_one_that_runs_use_and_rectangles_are_without_the_padding() -> None:
    experiment = changed(FIRST, n=12, density=0.4, negative=0.2)
    matrix = generate(changed(experiment, kernel="serial", tile=0, dtype="float32")).matrix
    np.testing.assert_array_equal(generated(experiment), matrix.astype(np.float64))
    trace: Trace = stepping(changed(FIRST, kernel="katz-kider", n=5)).trace
    rects = [r for m in trace.moments for r in (*m.sources, *m.targets)]
    assert Rect(4, 4, 5, 5) in rects and all(r.bottom <= 5 and r.right <= 5 for r in rects)
    assert {m.k for m in trace.moments} == set(range(5))


class TestChanges:
    @pytest.fixture
    def s(self) -> Stepping:
        return stepping(changed(FIRST, kernel="naive", n=5, density=0.0))

    def test_an_edge_makes_a_path(self, s: Stepping) -> None:
        s.go(99)
        assert s.trace.path(s.position, 0, 2) == ()
        for (i, j), weight in {(0, 1): 3, (1, 2): 4}.items():
            s.mark(i, j)
            s.set_weight(weight)
        s.mark(0, 2)
        assert s.position == 5 and s.path == (0, 1, 2) and s.distances[0, 2] == 7 and s.edited
        s.go(1)
        assert s.path == () and s.cell is not None and s.cell.new == INF
        s.mark(0, 1)
        s.set_weight(INF)
        s.go(99)
        s.mark(0, 2)
        assert s.path == ()

    def test_a_negative_cycle_is_reported_and_no_path_follows_it(self, s: Stepping) -> None:
        for (i, j), weight in {(0, 1): -3, (1, 0): 1}.items():
            s.mark(i, j)
            s.set_weight(weight)
        s.go(99)
        assert s.negative_cycle
        for j in range(5):
            s.mark(0, j)
            assert s.path == ()

    def test_changes_keep_to_the_diagonal_the_size_and_whole_numbers(self, s: Stepping) -> None:
        s.mark(2, 2)
        with pytest.raises(Refused, match="off the diagonal"):
            s.set_weight(4)
        s.mark(4, 4)
        s.choose(n=3)
        assert (s.row, s.column) == (2, 2)
        assert [parse_weight(text) for text in ("7", " -4 ", "", "-", "inf")] == [7, -4, INF, INF, INF]
        for text in ("1.5", "x", "1e3", str(MAX_WEIGHT + 1), "9" * 30):
            with pytest.raises(Refused):
                parse_weight(text)
        for n in (0, 25, 1000):
            with pytest.raises(Refused, match=rf"{n}"):
                s.choose(n=n)
            assert s.trace.n == 3

    def test_another_kernel_keeps_the_graph_and_another_seed_does_not(self, s: Stepping) -> None:
        s.mark(0, 1)
        s.set_weight(9)
        edition = s.edition
        s.choose(kernel="katz-kider")
        assert s.weights[0, 1] == 9 and s.edited and s.edition == edition + 1 and s.trace.kernel.id == "katz-kider"
        s.choose(seed=8)
        assert s.weights[0, 1] == INF and not s.edited


@pytest.mark.parametrize("kernel", list(registry()))
def test_sources_are_the_kernels_own_files(kernel: str) -> None:
    for part in source(kernel):
        lines = (ROOT / ("kernels" if part.file.startswith("fwtui_kernels") else "") / part.file).read_text().split("\n")
        assert tuple(lines[part.first - 1 : part.first - 1 + len(part.lines)]) == part.lines
        assert all(part.first <= number < part.first + len(part.lines) for number in part.relaxing)
        assert part.own <= part.ops


PRINT_FUNCTIONS = """
    import functools, warnings
    warnings.simplefilter("ignore")
    from fwtui.learn.stepping import FIRST, stepping
    from fwtui.experiment.experiment import changed
    from fwtui_kernels import registry
    from dataclasses import replace
    from fwtui_kernels.plan import EVERY, Shape, Target

    for kernel in registry().values():
        if kernel.id != "scipy":
            trace = stepping(changed(FIRST, kernel=kernel.id, n=24)).trace
            backend = "simulator" if kernel.backend == "cuda" else "cpu"
            program = kernel.build(replace(trace.shape, ranks=1), Target(backend))  # of the first rank
            for op in {step.op for step in trace.plan if step.rank != EVERY}:
                function = program.ops[op]
                function = getattr(function, "function", function)
                function = function.func if isinstance(function, functools.partial) else function
                function = getattr(function, "py_func", function)
                print(kernel.id, op, function.__code__.co_firstlineno, function.__code__.co_filename)
"""


def test_the_highlighted_functions_are_those_that_the_program_launches() -> None:
    told = [line.split(maxsplit=3) for line in in_simulator(PRINT_FUNCTIONS).splitlines()]
    assert {kernel for kernel, *_ in told} == {kernel.id for kernel in KERNELS} - {"scipy"}
    for kernel, op, first, file in told:
        own = next((part for part in source(kernel, dense=True) if op in part.own), None)
        assert own is not None, (kernel, op)
        assert (file.endswith(own.file), own.first) == (True, int(first)), (kernel, op)
        assert any(part.relaxing for part in source(kernel, dense=True) if op in part.ops), "it relaxes"


@pytest.mark.parametrize(("kernel", "link"), [("distributed", "self._nccl.broadcast("), ("distributed-cpu", "Ibcast(")])
def test_a_row_is_sent_in_a_moment_of_its_own(kernel: str, link: str) -> None:
    s = stepping(changed(FIRST, kernel=kernel, n=13))
    trace = s.trace
    sent = [place for place, moment in enumerate(trace.moments) if moment.phase == "broadcast"]
    assert trace.shape.ranks == 2 and [trace.moments[place].k for place in sent] == [0, 8]
    for place, rows in zip(sent, (Rect(0, 0, 8, 13), Rect(8, 0, 13, 13)), strict=True):
        assert trace.moments[place].sources == (rows,) and not trace.moments[place].targets
        np.testing.assert_array_equal(trace.distances[place + 1], trace.distances[place])
    (code,) = (part for part in source(kernel) if "broadcast" in part.own)
    assert any(link in line for line in code.lines)
    s.choose(kernel="naive")
    assert s.trace.shape.ranks == 1 and not s.experiment.devices
