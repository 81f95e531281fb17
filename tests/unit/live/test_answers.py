"""Answers from distances: against brute force, bounded, sent by the worker, requested later, exported and printed."""

import io
import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from builders import never, run_started
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from stand_ins import StubChild, answering

from fwtui.analysis import answers, export
from fwtui.analysis.answers import stated
from fwtui.analysis.report import result
from fwtui.commands.run import answer
from fwtui.common.errors import Corrupt, Refused
from fwtui.engine.engine import Cancelled, HostEngine
from fwtui.experiment.experiment import Experiment, kernel_named, settle
from fwtui.graphs.canonical import NO_PATH
from fwtui.graphs.summary import summarise
from fwtui.graphs.vertices import Vertices
from fwtui.live.protocols import finish
from fwtui.live.session import Live
from fwtui.measure import runner as worker_side
from fwtui.measure.run_context import RunContext
from fwtui.measure.runner import Runner
from fwtui.stream import codec, events, requests
from fwtui.stream.model import Model
from fwtui_kernels.plan import Target


def closed(n: int, seed: int, density: float, low: int = 1) -> np.ndarray:
    """Return integer distances of a random graph, +inf for no path."""
    rng = np.random.default_rng(seed)
    d = np.where(rng.random((n, n)) < density, rng.integers(low, 9, (n, n)).astype(float), np.inf)
    np.fill_diagonal(d, 0)
    for k in range(n):
        d = np.minimum(d, d[:, k, None] + d[k])
    return d


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(0, 10**6), st.sampled_from([0.0, 0.03, 0.1, 0.6]))
def test_every_number_is_what_brute_force_finds(n: int, seed: int, density: float) -> None:
    assert_summarised(closed(n, seed, density, low=0))


def test_answers_are_computed_in_several_blocks_of_rows() -> None:
    lines = np.abs(np.subtract.outer(np.arange(1200.0), np.arange(1200)))
    lines[:500, 500:] = lines[500:, :500] = np.inf
    assert_summarised(lines)


def assert_summarised(d: np.ndarray) -> None:
    n = len(d)
    s = summarise(d.astype(np.float32), bins=7, rows=5, columns=6)
    again = summarise(np.where(np.isinf(d), NO_PATH, d).astype(np.int32), bins=7, rows=5, columns=6)
    for name in ("n", "pairs", "reachable", "components", "largest", "diameter", "farthest", "radius", "centre", "mean"):
        assert getattr(s, name) == getattr(again, name), name
    assert s.edges.tolist() == again.edges.tolist() and s.counts.tolist() == again.counts.tolist()
    assert np.array_equal(s.heat, again.heat)

    apart = d[~np.eye(n, dtype=bool)]
    known = apart[np.isfinite(apart)]
    assert s.reachable == len(known) and s.pairs == n * (n - 1)
    count, labels = connected_components(np.isfinite(d), directed=True, connection="strong")
    assert (s.components, s.largest) == (count, np.bincount(labels).max())
    eccentricity = [max((d[v, u] for u in range(n) if u != v), default=np.inf) for v in range(n)]
    assert s.radius == (min(eccentricity) if np.isfinite(min(eccentricity)) else None)
    assert s.centre == (tuple(v for v in range(n) if eccentricity[v] == s.radius) if s.radius is not None else ())
    if len(known):
        assert s.farthest is not None
        assert s.diameter == known.max() == d[s.farthest] and s.mean == pytest.approx(known.mean())
        expected = [((low <= known) & (known < high)).sum() for low, high in zip(s.edges[:-1], s.edges[1:], strict=True)]
        assert s.counts.tolist() == expected and sum(expected) == len(known) and len(expected) <= 7
    else:
        assert (s.diameter, s.farthest, s.mean, len(s.counts)) == (None, None, None, 0)
    tops = [row * n // min(n, 5) for row in range(min(n, 5) + 1)]
    lefts = [column * n // min(n, 6) for column in range(min(n, 6) + 1)]
    for row, column in np.ndindex(s.heat.shape):
        block = d[tops[row] : tops[row + 1], lefts[column] : lefts[column + 1]]
        there = block[np.isfinite(block)]
        assert s.heat[row, column] == pytest.approx(there.mean() if len(there) else np.inf)


def test_real_and_negative_distances() -> None:
    d = np.array([[0.0, -2.5, 1.0], [3.5, 0.0, 3.25], [np.inf, np.inf, 0.0]], dtype=np.float32)
    s = summarise(d, bins=4)
    assert (s.diameter, s.farthest, s.radius, s.centre) == (3.5, (1, 0), 1.0, (0,))
    assert s.edges.tolist() == [-2.5, -1.0, 0.5, 2.0, 3.5] and s.counts.tolist() == [1, 0, 1, 2], "the last edge is within"


def test_the_longest_event_fits_a_line_and_longer_ones_are_refused() -> None:
    n = 64
    rng = np.random.default_rng(0)
    d = -rng.random((n, n)) * 1e-5 - 1e-9
    np.fill_diagonal(d, 0)
    told = stated(summarise(d, events.BINS, events.CELLS, events.CELLS), Vertices([f"{'漢' * 60}{v}" for v in range(n)]))
    assert (len(told.heat), len(told.heat[0]), len(told.counts)) == (48, 48, 32)
    line = codec.encode(told)
    assert codec.decode(line[:-1]) == told and len(line) < codec.MAX_LINE // 2
    for changed in ({"heat": ((1.0,) * 49,)}, {"heat": ((),) * 49}, {"counts": (1,) * 33}, {"centre": ("a",) * 9}):
        with pytest.raises(Corrupt):
            codec.decode(codec.encode(msgspec.structs.replace(told, **changed))[:-1])


class Bench:
    """A runner on the host that stores its events and their model."""

    def __init__(self, tick: float = 1e-3) -> None:
        """`tick`: seconds that pass between two looks at the clock."""
        self.events: list[events.Event] = []
        self.model = Model()
        self.engine = HostEngine(Target("cpu"))
        self.runner, self._now = Runner(), count(0.0, tick).__next__
        self.asked: dict[int, Experiment] = {}

    def _take(self, event: events.Event) -> None:
        self.events.append(event)
        self.model.apply(codec.decode(codec.encode(event)[:-1]))

    def run(self, number: int, brief: bool = False, **asked: Any) -> events.Answers | None:
        usual = {"kernel": "serial", "n": 30, "repeats": 1, "dtype": "int32"}
        self.asked[number] = settle(Experiment(**{**usual, **asked}))
        self.runner.run(self.job(number), brief)
        return self.model.runs[number].summary

    def job(self, number: int, check: Callable[[], None] = never) -> RunContext:
        experiment = self.asked[number]
        return RunContext(number, experiment, kernel_named(experiment.kernel), self.engine, check, self._take, self._now)

    def ask(self, number: int) -> events.Answers:
        """Request the answers and return their only event."""
        before = len(self.events)
        verdict = self.model.runs[number].verdict
        assert verdict is not None
        self.runner.answer(self.job(number), verdict.checksum)
        (told,) = self.events[before:]
        assert isinstance(told, events.Answers)
        return told


@pytest.fixture
def bench() -> Bench:
    return Bench()


def numbers(told: events.Answers | None) -> Any:
    assert told is not None and not told.note
    return msgspec.structs.replace(told, t=0.0, run=0, seconds=None, solved=None)


def test_answers_of_small_graphs_follow_the_run(bench: Bench) -> None:
    told = bench.run(1)
    verdict = bench.model.runs[1].verdict
    assert told is not None and verdict is not None and told.checksum == verdict.checksum
    assert (told.vertices, told.reachable) == (30, verdict.reachable) and told.seconds is not None and told.solved is None
    assert bench.run(2, brief=True) is None, "not where times alone are wanted"
    assert bench.run(3, n=worker_side.ALWAYS + 1) is None
    assert bench.ask(3).vertices == worker_side.ALWAYS + 1 and bench.ask(3).solved is None, "the last run's distances are kept"


@pytest.mark.parametrize(
    "asked",
    [
        *({}, {"real": True, "dtype": "float32"}),
        pytest.param({"kernel": "tiled-cpu", "dtype": "float32", "tile": 16}, marks=pytest.mark.slow),
        pytest.param({"dtype": "int16"}, marks=pytest.mark.slow),
    ],
)
def test_answers_of_an_earlier_run_are_recomputed(bench: Bench, asked: dict[str, Any]) -> None:
    first = bench.run(1, **asked)
    bench.run(2, seed=8)
    stages = bench.model.runs[1].stages
    again = bench.ask(1)
    assert again.solved is not None and numbers(again) == numbers(first)
    assert bench.model.runs[1].stages == stages, "nothing of it is told as the run's own"
    assert bench.ask(1).solved is None, "they are kept now"


def test_answers_report_progress_and_can_be_cancelled() -> None:
    bench = Bench(tick=1.0)
    first = bench.run(1)
    bench.run(2, seed=8)
    before, ended = len(bench.events), bench.model.runs[1]
    verdict = ended.verdict
    assert verdict is not None
    at: list[int] = []

    def check() -> None:
        at.append(0)
        if len(at) > 20:
            assert bench.model.runs[1].progress is not None
            raise Cancelled

    bench.runner.answer(bench.job(1, check), verdict.checksum)
    *progress, told = bench.events[before:]
    shares = [event.done for event in progress if isinstance(event, events.Progress)]
    assert len(shares) == len(progress) > 3 and shares == sorted(set(shares)) and 0.3 < shares[-1] < 1
    assert all(isinstance(p, events.Progress) and p.stage == "answers" and p.left is not None for p in progress)
    assert isinstance(told, events.Answers) and told.note == "cancelled"
    run = bench.model.runs[1]
    assert (run.state, run.stage, run.stages, run.progress) == ("done", "", ended.stages, None)
    bench.runner.answer(bench.job(1), verdict.checksum)
    assert numbers(bench.model.runs[1].summary) == numbers(first), "and be asked for again"


def test_answers_of_a_changed_file_are_refused(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "g.gr"
    file.write_text("p sp 2 1\na 1 2 5\n")
    told = bench.run(1, file=str(file))
    assert told is not None and (told.diameter, told.farthest) == (5, ("1", "2")), "vertices are called as the file does"
    bench.run(2)
    file.write_text("p sp 2 1\na 1 2 6\n")
    assert "no longer those of run 1" in bench.ask(1).note
    file.unlink()
    bench.run(2)
    assert "g.gr cannot be read" in bench.ask(1).note


def test_runs_without_distances_have_no_answers(bench: Bench) -> None:
    cells = np.array([[0, 1], [-(2**31), 0]], dtype=np.int32)
    assert "are NaN" in worker_side.distance_summary(worker_side.Distances(1, cells, Vertices(range(2)), "x")).note
    assert (
        "are NaN" in worker_side.distance_summary(worker_side.Distances(1, np.full((2, 2), np.nan), Vertices(range(2)), "x")).note
    )
    beyond = np.array([[0, 1e20], [1, 0]], dtype=np.float32)
    assert "beyond 1e+15" in worker_side.distance_summary(worker_side.Distances(1, beyond, Vertices(range(2)), "x")).note
    assert bench.run(1, n=1) is not None and bench.model.runs[1].summary is not None


@pytest.fixture
def live_of() -> Iterator[Callable[..., Live]]:
    made: list[Live] = []

    def make(answer: Callable[[Any], list[events.Event]], **given: Any) -> Live:
        live = Live(telemetry_hz=0, child=answering(answer), **given)
        made.append(live)
        experiment = Experiment(kernel="serial", n=30)
        live.emit(run_started(experiment))
        live.emit(events.Verdict(t=1, run=1, verdict="verified", how="", checksum="abc"))
        live.experiments[1] = settle(experiment)
        return live

    yield make
    for live in made:
        live.close()


def test_a_live_session_is_busy_until_the_answers_arrive(live_of: Callable[..., Live]) -> None:
    asked: list[Any] = []

    def answer(request: Any) -> list[events.Event]:
        asked.append(request)
        return [events.Answers(t=3, run=1, vertices=30, checksum=request.checksum)]

    live = live_of(answer)
    with pytest.raises(Refused, match="run 1 has no distances yet; its answers are available when it ends"):
        live.answer(1)
    live.emit(events.RunDone(t=2, run=1, outcome="done"))
    live.answer(1)
    assert live.busy and isinstance(asked[0], requests.AnswerRequest) and asked[0].checksum == "abc"
    with pytest.raises(Refused, match="distances of run 1 are being summarised"):
        live.start(live.settled(Experiment(kernel="serial", n=4)))
    live.drain()
    told = live.model.runs[1].summary
    assert not live.busy and told is not None and told.vertices == 30


def test_cancel_and_a_worker_that_dies_end_the_waiting(live_of: Callable[..., Live]) -> None:
    live = live_of(lambda request: [], cancel_grace=0.0)
    live.emit(events.RunDone(t=2, run=1, outcome="done"))
    live.answer(1)
    live.cancel()
    worker: Any = live.worker.child
    assert isinstance(worker, StubChild) and isinstance(worker.asked[-1], requests.CancelRequest)
    assert live.busy, "between two steps"
    live.emit(events.Progress(t=3, run=1, stage="answers", done=0.5))
    live.drain()
    told = live.model.runs[1]
    assert not live.busy and told.answers is not None and told.answers.note == "cancelled" and told.progress is None
    assert live.model.fault is None, "it was meant"
    live.answer(1)
    worker = live.worker.child
    worker.exit_code = -9
    live.drain()
    assert not live.busy and live.model.fault is not None and "died" in live.model.fault.message
    told = live.model.runs[1]
    assert told.answers is not None and "the worker died" in told.answers.note


@pytest.mark.slow
def test_a_real_worker_stops_summarising_and_may_be_asked_again() -> None:
    live = Live(telemetry_hz=0)
    try:
        for n in (700, 12):
            live.start(live.settled(Experiment(kernel="serial", n=n, repeats=1, dtype="int32")), brief=True)
            finish(live)
        live.answer(1)
        live.cancel()
        finish(live)
        told = live.model.runs[1].summary
        assert told is not None and told.note == "cancelled" and live.model.fault is None
        live.answer(1)
        finish(live)
        told = live.model.runs[1].summary
        assert told is not None and told.vertices == 700 and told.solved is not None
    finally:
        live.close()


def test_wrong_huge_and_no_distances_are_refused(live_of: Callable[..., Live], capsys: pytest.CaptureFixture[str]) -> None:
    live = live_of(lambda request: [])
    live.emit(events.Verdict(t=1, run=1, verdict="negative cycle", how="", cycle=(0, 1)))
    live.emit(events.RunDone(t=2, run=1, outcome="done"))
    with pytest.raises(Refused, match=r"not valid \(negative cycle\)"):
        live.answer(1)
    live.emit(events.Verdict(t=1, run=1, verdict="verified", how="", checksum="abc"))
    live.emit(events.Planned(t=1, run=1, n=40000, padded=40000, steps=1, relaxations=1, device_bytes=1))
    with pytest.raises(Refused, match="40,000 vertices take too long"):
        live.answer(1)
    live = live_of(lambda request: [events.Answers(t=3, run=1, note="the file is gone")])
    live.emit(events.RunDone(t=2, run=1, outcome="done"))
    answer(live, 1)
    assert "run 1 has no distance summary: the file is gone" in capsys.readouterr().err
    live.emit(events.Answers(t=4, run=1, vertices=30))
    answer(live, 1)
    assert not capsys.readouterr().err


def test_answers_are_data_in_json_and_tables(bench: Bench, tmp_path: Path) -> None:
    told = bench.run(1)
    assert told is not None
    data = result(bench.model, bench.model.runs[1])["answers"]
    assert data["diameter"] == told.diameter and json.loads(json.dumps(data))["counts"] == list(told.counts)
    assert "heat" not in data
    (row,) = export.rows_of_runs(bench.model, "answers")
    assert row["diameter"] == told.diameter and row["farthest"] == " ".join(told.farthest) and "counts" not in row
    bins = export.rows_of_runs(bench.model, "histogram")
    assert [(b["low"], b["high"], b["pairs"]) for b in bins] == list(zip(told.edges, told.edges[1:], told.counts, strict=False))
    out = io.StringIO()
    export.write_csv(bins, out)
    assert out.getvalue().startswith("run,kernel,n,low,high,pairs\n")
    text = answers.lines(told, answers.facts(told, 5))
    assert text[0] == "vertices           30" and len(text) > len(told.counts) + len(told.heat)
