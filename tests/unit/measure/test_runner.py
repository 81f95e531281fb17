"""Runs on the CPU: their events in order, and mistakes, cancellation and wrong results."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import after, model_of, never
from pretending import Pretend
from ranked_job import random_graphs, run_all
from scipy.sparse import csr_array
from scipy.sparse.csgraph import floyd_warshall

from fwtui.engine.engine import HostEngine
from fwtui.experiment.experiment import Experiment, kernel_named, settle
from fwtui.experiment.generate import generate
from fwtui.graphs.canonical import NO_PATH, fletcher64
from fwtui.measure import rank_worker
from fwtui.measure.run_context import RunContext
from fwtui.measure.runner import Runner
from fwtui.stream import events
from fwtui.stream.events import MAX_SAMPLES
from fwtui.stream.run import Run
from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel, Shape, Target
from fwtui_kernels.programs.cpu_program import CpuProgram


class Bench:
    """A runner on the host that stores its events."""

    def __init__(self) -> None:
        self.events: list[events.Event] = []
        self.engine = HostEngine(Target("cpu"))
        self.runner = Runner()
        self.now: Callable[[], float] = time.monotonic

    def run(self, check: Callable[[], None] = never, number: int = 1, instead: Kernel | None = None, **asked: Any) -> Any:
        """Run an experiment; `instead` is a kernel that replaces the requested one."""
        self.events.clear()
        experiment = settle(Experiment(**{"verify": "full", "repeats": 2, **asked}))
        kernel = instead or kernel_named(experiment.kernel)
        self.runner.run(RunContext(number, experiment, kernel, self.engine, check, self.events.append, self.now))
        model = model_of(self.events)
        return model.runs[number]


@pytest.fixture
def bench() -> Bench:
    return Bench()


STAGES = ["graph", "order", "allocate", "load", "compile", "warm-up", "clean", "unload", "verify", "phases"]


@pytest.mark.parametrize("kernel", [k for k in registry().values() if k.backend == "cpu"], ids=lambda k: k.id)
def test_a_run_sends_all_events_in_order(bench: Bench, kernel: Kernel) -> None:
    tile: dict[str, Any] = {"tile": 16} if kernel.tiles else {}
    run = bench.run(kernel=kernel.id, n=40, dtype="float32", **tile)
    assert run.state == "done" and run.verified is True
    kinds = [type(e).__name__ for e in bench.events if not isinstance(e, (events.Progress, events.Round))]
    stages = [s for s in STAGES if s not in {"compile" * (not kernel.compiles), "order" * (kernel.ordered is None)}]
    plan = list(kernel.plan(settle(Experiment(kernel=kernel.id, n=40, dtype="float32", **tile)).shape(40), False))
    expected = ["RunStarted"]
    for name in stages:
        inside = ["Sample", "Sample"] if name == "clean" else []
        inside += ["CpuLoop" for op in {step.op for step in plan} - {"broadcast"}] if name == "compile" else []
        planned = ["Planned"] if name == ("graph" if kernel.ordered is None else "order") else []
        after = {"graph": ["Graph"], "order": ["Ordered"], "verify": ["Verdict"], "phases": ["Phases"], "clean": ["CpuUse"]}
        behind = [*after.get(name, []), *planned]
        expected += ["Stage", *inside, "Stage", *behind]
    assert kinds == [*expected, "RunDone"]
    assert [e.name for e in bench.events if isinstance(e, events.Stage)] == [s for name in stages for s in (name, name)]
    times = [e.t for e in bench.events]
    assert times == sorted(times)
    assert all(getattr(e, "run", None) == 1 for e in bench.events)

    assert run.steps == len(plan) and run.relaxations == sum(s.cost.relaxations for s in plan)
    assert run.done.count == 2 and run.done.indicative
    assert run.cpu.each == pytest.approx(run.cpu.busy * run.done.median)  # of two passes, the middle is their mean
    assert run.done.median == pytest.approx(sum(s.seconds for s in run.samples) / 2)
    assert run.done.instrumentation == pytest.approx(run.instrumented_repetition.seconds - run.done.median)
    assert sum(p.relaxations for p in run.instrumented_repetition.parts) == run.relaxations
    planned = {step.phase for step in plan} - {"broadcast"}  # one process sends nothing
    assert [p.phase for p in run.instrumented_repetition.parts] == [phase for phase in kernel.phases if phase in planned]
    for sample in run.samples:
        assert sample.since + sample.seconds <= sample.t
    # the system counts a thread's processor time late, so that a run of some microseconds has no upper bound
    assert run.cpu.busy >= 0 and 100 < run.cpu.clock_mhz < 20_000
    for loop in run.loops:
        assert loop.item_bits == 32 and loop.relaxations % loop.lanes == 0
        assert loop.skipped > 1 if kernel.id == "serial" else loop.lanes > 1, "rows are relaxed as vectors"


def test_the_graph_is_recorded_and_its_checksum_is_scipys(bench: Bench) -> None:
    asked: dict[str, Any] = {"n": 50, "dtype": "int32", "density": 0.05}
    run = bench.run(kernel="tiled-cpu", tile=16, **asked)
    graph = generate(Experiment(**asked))
    assert (run.graph.vertices, run.graph.edges, run.graph.low, run.graph.high) == (50, graph.edges, graph.low, graph.high)
    assert "range proved" in run.graph.note
    assert run.verdict.checksum == bench.run(kernel="scipy", **asked).verdict.checksum == scipys(graph.matrix, graph.no_edge)
    assert bench.run(kernel="serial", **{**asked, "dtype": "float32"}).verdict.checksum == run.verdict.checksum
    assert bench.run(kernel="serial", **{**asked, "seed": 8}).verdict.checksum != run.verdict.checksum


def scipys(matrix: np.ndarray, no_edge: float) -> str:
    """Return the checksum of SciPy's canonical distances."""
    edge = (matrix != no_edge) & ~np.eye(len(matrix), dtype=bool)
    rows, columns = np.nonzero(edge)
    distances = floyd_warshall(csr_array((matrix[edge].astype(float), (rows, columns)), shape=matrix.shape))
    return fletcher64(np.where(np.isinf(distances), NO_PATH, distances).astype(np.int32))


ARCS = [(1, 2, 3), (2, 3, 4), (3, 1, 2), (4, 1, 9), (2, 5, 1), (5, 4, 2), (1, 4, 30)]


@pytest.mark.parametrize("kernel", ["serial", "tiled-cpu", "scipy"])
def test_a_graph_file_gives_scipys_distances(bench: Bench, tmp_path: Path, kernel: str) -> None:
    graph_file = tmp_path / "private.gr"
    graph_file.write_text(f"p sp 6 {len(ARCS)}\n" + "".join(f"a {a} {b} {w}\n" for a, b, w in ARCS))
    run = bench.run(kernel=kernel, file=str(graph_file), dtype="int32")
    assert run.verified is True and run.n == 6 and run.graph.edges == len(ARCS)
    assert (run.stages[0].name, run.stages[0].bytes) == ("read", graph_file.stat().st_size), "a stage of its own"
    matrix = np.full((6, 6), np.inf)
    for a, b, weight in ARCS:
        matrix[a - 1, b - 1] = weight
    assert run.verdict.checksum == scipys(matrix, np.inf)
    assert run.verdict.reachable == 4 * 5
    started = bench.events[0]
    assert isinstance(started, events.RunStarted)
    assert started.experiment.file == graph_file.name
    assert not any(str(graph_file.parent) in str(e) for e in bench.events), "a path tells of its owner"


def test_a_changed_file_is_read_again(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "g.gr"
    path.write_text("p sp 2 1\na 1 2 5\n")
    first = bench.run(kernel="serial", file=str(path))
    before = path.stat()
    path.write_text("p sp 2 1\na 1 2 7\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = bench.run(kernel="serial", file=str(path))
    assert first.verified and second.verified and first.verdict.checksum != second.verdict.checksum


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.gr", None, "cannot be read"),
        ("broken.gr", "p sp 2 1\na 1 x 5\n", "broken.gr"),
        ("huge.gr", "p sp 70000 1\n", "70,000"),
    ],
)
def test_a_bad_file_is_refused_within_the_run(bench: Bench, tmp_path: Path, name: str, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    run = bench.run(kernel="serial", file=str(tmp_path / name))
    assert run.state == "refused" and words in run.done.message and str(tmp_path) not in run.done.message
    assert isinstance(bench.events[-1], events.RunDone) and not run.samples and run.verdict is None
    assert bench.run(kernel="serial", n=8).state == "done", "the next run is not disturbed"


def test_a_run_that_does_not_fit_is_refused_before_it_allocates(bench: Bench, pretend: Pretend) -> None:
    pretend.free_memory(2**29)
    run = bench.run(kernel="serial", n=60000)
    assert run.state == "refused" and "n = 60000 float32 needs" in run.done.message and "choose n up to" in run.done.message
    assert not run.stages


def test_unsupported_sizes_signs_and_devices_are_refused(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "g.gr"
    path.write_text("p sp 3 1\na 1 2 5\n")
    picky = replace(registry()["serial"], refuses=lambda shape: "n = 3 is odd; choose an even one" if shape.n % 2 else None)
    assert bench.run(instead=picky, kernel="serial", file=str(path)).done.message == "n = 3 is odd; choose an even one"
    positive = replace(
        registry()["serial"],
        refuses=lambda shape: None if shape.nonnegative else "form 2 needs weights from 0 up; choose form 1",
        lacks=lambda shape, target: f"{target.backend} has no such form; choose another kernel" if shape.n == 9 else None,
    )
    for n, negative, words in (
        (9, 0.0, "cpu has no such form; choose another kernel"),
        (8, 0.4, "form 2 needs weights from 0 up; choose form 1"),
        (8, 0.0, ""),
    ):
        assert bench.run(instead=positive, kernel="serial", n=n, negative=negative).done.message == words


@pytest.mark.parametrize("count", [1, 30])
def test_cancelling_ends_the_run_between_steps(bench: Bench, count: int) -> None:
    run = bench.run(check=after(count), kernel="serial", n=20)
    assert run.state == "cancelled" and run.done.message == "cancelled"
    assert isinstance(bench.events[-1], events.RunDone)
    assert run.instrumented_repetition is None
    again = bench.run(kernel="serial", n=20)
    assert again.state == "done" and again.verified is True


def faulty(break_: Callable[[np.ndarray, int], None]) -> Kernel:
    """Return the triple loop with an error in each step."""

    def build(shape: Shape, target: Target) -> Any:
        def relax(distance: np.ndarray, k: int) -> None:
            np.minimum(distance, np.minimum(distance[:, k, None] + distance[None, k, :], 2**30 - 1), out=distance)
            break_(distance, k)

        return CpuProgram(shape, {"relax": relax})

    return replace(registry()["serial"], build=build)


def spoil(distance: np.ndarray, k: int) -> None:
    if k == 3:
        distance[2, 5] += 1


@pytest.mark.parametrize("how", ["full", "auto"])
def test_a_wrong_kernel_is_reported_as_wrong(bench: Bench, how: str) -> None:
    asked: dict[str, Any] = {"kernel": "serial", "n": 6, "density": 1.0, "verify": how, "dtype": "int32"}
    run = bench.run(instead=faulty(spoil), **asked)
    assert run.state == "done" and run.verified is False and run.wrong
    assert run.verdict.how.startswith("wrong at (2, 5)")
    assert bench.run(instead=faulty(lambda distance, k: None), **asked).verified is True


def test_unverified_runs_do_not_count_and_negative_edges_are_verified(bench: Bench) -> None:
    run = bench.run(kernel="serial", n=16, verify="off")
    assert run.verified is None and run.verdict.verdict == "unverified"
    for dtype in ("int32", "float32"):
        run = bench.run(kernel="tiled-cpu", n=40, tile=16, negative=0.3, density=0.1, dtype=dtype)
        assert run.verified is True and run.graph.low < 0


def test_many_repetitions_send_a_hundred_samples_and_rounds(bench: Bench) -> None:
    run = bench.run(kernel="serial", n=2, repeats=MAX_SAMPLES + 50)
    assert len(run.samples) == MAX_SAMPLES and run.done.count == MAX_SAMPLES + 50
    run = bench.run(kernel="tiled-cpu", n=64, tile=16)
    assert [r.index for r in run.rounds] == [0, 1, 2, 3]
    assert sum(sum(r.seconds) for r in run.rounds) == pytest.approx(run.instrumented_repetition.seconds)


def test_the_same_graph_is_not_made_twice(bench: Bench) -> None:
    for kernel, seed, dtype, first in (
        ("serial", 7, "float32", "graph"),
        ("tiled-cpu", 7, "float32", "allocate"),
        ("serial", 7, "float32", "allocate"),
        ("serial", 9, "float32", "graph"),
        ("serial", 9, "int32", "graph"),
    ):
        run = bench.run(n=20, kernel=kernel, seed=seed, dtype=dtype)
        assert run.verified is True and run.stages[0].name == first, "what was not generated takes no time"


def test_the_simulator_is_not_timed(bench: Bench) -> None:
    bench.engine = HostEngine(Target("simulator"))
    run = bench.run(kernel="serial", n=9)
    assert run.backend == "simulator" and run.verified is True
    assert run.samples == () and run.instrumented_repetition is None
    assert (run.done.median, run.done.spread, run.done.count, run.done.instrumentation) == (None, None, 0, None)


class Elsewhere(CpuProgram):
    """A program that copies and reorders its matrix, stores its calls, and has slow first copies by its clock."""

    in_parts = True
    repeatable = True
    reorders = True

    def __init__(self, shape: Shape, ops: Any, asked: list[str], clock: list[float]):
        super().__init__(shape, ops)
        self.asked, self.clock = asked, clock

    def said(self, word: str) -> None:
        self.asked.append(word)
        self.clock.append(self.clock[-1] + (0.02 if self.asked.count(word) == 1 else 0.001))

    def launch(self, step: Any, buffers: Any, stream: Any) -> None:
        self.clock.append(self.clock[-1] + 0.0001)
        super().launch(step, buffers, stream)

    def prepare(self, buffers: Any, stream: Any) -> None:
        self.said("prepare")

    def copy_in(self, matrix: Any, buffers: Any, stream: Any) -> None:
        self.said("in")
        super().load(matrix, buffers, stream)

    def pack(self, buffers: Any, stream: Any) -> None:
        self.said("pack")

    def unpack(self, buffers: Any, stream: Any) -> None:
        self.said("unpack")

    def copy_out(self, buffers: Any, stream: Any) -> Any:
        self.said("out")
        return super().unload(buffers, stream)


@pytest.mark.parametrize("repeatable", [True, False])
def test_copies_are_timed_several_times_and_reordering_apart(bench: Bench, repeatable: bool) -> None:
    asked, clock = list[str](), [0.0]

    def build(shape: Shape, target: Target) -> Any:
        program = Elsewhere(shape, registry()["serial"].build(shape, target).ops, asked, clock)  # type: ignore[attr-defined]
        program.repeatable = repeatable
        return program

    bench.now = lambda: clock[-1]
    run = bench.run(instead=replace(registry()["serial"], build=build), kernel="serial", n=20)
    names = [e.name for e in bench.events if isinstance(e, events.Stage) and e.seconds is not None]
    assert run.verified is True and names[0] == "graph"
    if not repeatable:  # the parts of what moves by itself cannot be told apart
        assert asked == ["prepare"] and names[1:4] == ["allocate", "compile", "load"]
        return
    assert asked == ["prepare", *["in"] * 5, "pack", "unpack", *["out"] * 5]
    assert ", ".join(names[1:]) == "allocate, compile, load, reorder, warm-up, clean, reorder back, unload, verify, phases"
    assert run.stage_seconds("load") == pytest.approx(0.001) == run.stage_seconds("unload"), "not the first one"


def test_a_kernels_other_tiles_have_to_agree(bench: Bench) -> None:
    for tile, words in ((16, "Dijkstra's"), (32, "same checksum as 1 other form of itself")):
        assert bench.run(kernel="tiled-cpu", n=60, tile=tile, verify="sample").verdict.how.endswith(words)


def assert_right(found: Sequence[Run]) -> None:
    """Check the runs of random graphs, of which the last has a negative cycle."""
    *right, cyclic = found
    assert [run.verified for run in right] == [True] * len(right)
    assert cyclic.verdict is not None and cyclic.verdict.verdict == "negative cycle" and cyclic.verdict.cycle


@pytest.mark.slow
def test_random_graphs_are_right() -> None:
    for ranks in (1, 2, 3, 4):  # the first job compiles for the next, which would compile in every rank
        assert_right(run_all(",".join(["cpu"] * ranks), "distributed-cpu", list(random_graphs(ranks, 50)), 32))


def test_each_ranks_phases_are_sent_and_their_work_adds_up() -> None:
    run, *others = run_all("cpu,cpu", "distributed-cpu", [Experiment(n=100), *random_graphs(2, 1)], 32)
    assert_right(others)
    assert [str(rank) for rank in run.ranks] == ["rank 0 (CPU)", "rank 1 (CPU)"]
    assert [told.rank for told in run.rank_phases] == [0, 1] and run.instrumented_repetition is not None
    for part in run.instrumented_repetition.parts:
        own = [p for told in run.rank_phases for p in told.parts if p.phase == part.phase]
        assert part.seconds == pytest.approx(sum(p.seconds for p in own) / 2)
        if part.phase == "broadcast":  # which all ranks launch together
            assert [p.launches for p in own] == [part.launches, part.launches] == [4, 4]
        else:
            assert (sum(p.launches for p in own), sum(p.relaxations for p in own)) == (part.launches, part.relaxations)
    assert run.phase_names[-1].key == "wait"
    assert {"pivot", "panels", "broadcast", "rest"} <= {part.phase for part in run.instrumented_repetition.parts}


def test_an_error_of_mpi_waits_as_another_rank_may_have_died() -> None:
    slept: list[float] = []
    of_mpi = type("Exception", (Exception,), {"__module__": "mpi4py.MPI"})
    assert "MPI" in rank_worker.rank_diagnosis(of_mpi("MPI_ERR_OTHER"), slept.append)[1] and slept == [rank_worker.DEATH_SEEN]
    assert rank_worker.rank_diagnosis(ValueError("a bug"), slept.append)[1].startswith("ValueError: a bug")
    assert slept == [rank_worker.DEATH_SEEN]
