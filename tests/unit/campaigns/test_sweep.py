"""Sweeps: axes, their grid, and runs within a time limit."""

from typing import Any

import pytest
from builders import run_started
from made_sessions import Made

from fwtui.campaigns.sweep.axis import MAX_VALUES, SweepAxis, names, read_axis, value, varied
from fwtui.campaigns.sweep.findings import findings
from fwtui.campaigns.sweep.grid import Grid, KnownRuns, levels
from fwtui.campaigns.sweep.running import Sweep
from fwtui.commands.sweep import lines
from fwtui.common.errors import NoGpu, Refused
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment, Settled, as_it_ran, changed, identity, settle
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui_kernels import registry

CPU = settle(Experiment(kernel="tiled-cpu", n=256))


def axis(name: str, *values: str) -> SweepAxis:
    return SweepAxis(name, values)


class Session:
    """A live session without processes; a run takes n^3 over `rate` seconds of its clock."""

    def __init__(self, rate: float = 1e9):
        self.model = Model()
        self.clock = 0.0
        self.rate = rate
        self.started: list[Experiment] = []
        self.marks: list[str] = []
        self.outcome = "done"
        self._ends: float | None = None

    @property
    def busy(self) -> bool:
        return self._ends is not None

    def drain(self) -> int:
        return 0

    def settled(self, experiment: Experiment) -> Settled:
        return settle(experiment)

    def start(self, experiment: Settled) -> int:
        self.started.append(experiment)
        number = len(self.started)
        self._ends = self.clock + 2 * experiment.n**3 / self.rate
        self.model.apply(run_started(experiment, number, self.clock))
        return number

    def cancel(self) -> None:
        self._end("cancelled")

    def mark(self, text: str) -> None:
        self.marks.append(text)

    def go(self, seconds: float) -> None:
        self.clock += seconds
        if self._ends is not None and self.clock >= self._ends:
            self._end(self.outcome)

    def _end(self, outcome: str) -> None:
        number, n = len(self.started), self.started[-1].n
        self._ends = None
        self.model.apply(events.Verdict(t=self.clock, run=number, verdict="verified", how=""))
        self.model.apply(events.RunDone(t=self.clock, run=number, outcome=outcome, median=n**3 / self.rate, count=5))


def swept(session: Session, axes: list[SweepAxis], within: float = 1000.0) -> Sweep:
    return Sweep(session, Grid(CPU, axes, settle), within, clock=lambda: session.clock)


def finished(sweep: Sweep, session: Session, step: float = 0.01, **given: float) -> Sweep:
    """Run the sweep from its start to its end."""
    sweep.start(**given)
    for _ in range(100_000):
        sweep.tick()
        if not sweep.going and not session.busy:
            return sweep
        session.go(step)
    raise AssertionError("the sweep goes on and on")


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("n", "64, 32,64", ("32", "64")),
        ("n", "100..900", ("100", "200", "400", "800")),
        ("n", "256..1024+256", ("256", "512", "768", "1024")),
        ("density", "50%,0.1", ("0.1", "0.5")),
        ("tile", "all", ("16", "32", "64", "128")),
        ("kernel", "naive,serial", ("serial", "naive")),
        ("threads", "256,64", ("64", "256")),
        ("dtype", "all", ("float32", "int32", "int16", "float64")),
        ("devices", "4,1,2", ("1", "2", "4")),
    ],
)
def test_axes_are_read_as_they_are_written(name: str, text: str, values: tuple[str, ...]) -> None:
    assert read_axis(name, text, [registry()["tiled-cpu"]]).values == values


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("n", "900..100", "is in descending order"),
        ("n", "1..65536+1", "use larger steps"),
        ("n", "x", "n 'x' is not an integer"),
        ("n", ",".join(map(str, range(1, MAX_VALUES + 2))), "pass fewer"),
        ("n", " , ", "has no values"),
        ("density", "all", "cannot be all; pass values"),
        ("threads", "7", "is not supported by any kernel"),
        ("kernel", "fastest", "there is no kernel"),
        ("seed", "1,2", "cannot be swept"),
        ("devices", "0,1", "devices 0: a sweep takes numbers of devices, 1 to 64, like 1,2,4"),
        ("devices", "cpu,cpu", "takes numbers of devices"),
        ("devices", "all", "cannot be all; pass values"),
    ],
)
def test_invalid_axes_are_refused_in_a_sentence(name: str, text: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        read_axis(name, text, [])


def test_axes_of_a_recording_are_those_that_differ_and_are_read_back() -> None:
    for kernel in registry().values():
        told = settle(Experiment(kernel=kernel.id, n=64, dtype=kernel.dtypes[0]))
        for name in names():
            text = value(told, name)
            assert text == "" or read_axis(name, text, [kernel]).values == (text,)
    experiments = [settle(Experiment(kernel="tiled-cpu", n=n, tile=t)) for n in (128, 64) for t in (16, 32)]
    assert varied([*experiments, settle(Experiment(kernel="serial", n=64))]) == (
        SweepAxis("kernel", ("serial", "tiled-cpu")),
        SweepAxis("n", ("64", "128")),
        SweepAxis("tile", ("16", "32")),
    )


def test_the_grid_gives_every_kernel_its_options_and_reasons_for_missing_ones() -> None:
    grid = Grid(CPU, [axis("kernel", "serial", "naive", "katz-kider"), axis("tile", "16", "64"), axis("threads", "64")], settle)
    naive, katz = grid.cells["naive", "64", "64"], grid.cells["katz-kider", "16", "64"]
    assert naive.experiment is not None and naive.experiment.tile == 0 and naive.experiment.options["threads"] == 64
    assert katz.experiment is not None and katz.experiment.tile == 16 and katz.experiment.launch == "graph"
    assert grid.cells["serial", "16", "64"].experiment == grid.cells["serial", "64", "64"].experiment
    assert "tile 64 is not supported by katz-kider" in grid.cells["katz-kider", "64", "64"].reason
    assert grid.title == "kernel serial,naive,katz-kider x tile 16,64 x threads 64"
    grid = Grid(CPU, [axis("devices", "1", "2")], settle)
    assert grid.cells["1",].experiment == CPU and "runs on one device" in grid.cells["2",].reason


def test_empty_and_too_large_grids_and_invalid_times_are_refused() -> None:
    with pytest.raises(Refused, match="tile 8 is not supported"):
        Grid(CPU, [axis("tile", "8")], settle)
    many = axis("n", *map(str, range(1, 101)))
    with pytest.raises(Refused, match="10000 cells"):
        Grid(CPU, [many, axis("density", *(f"0.{i:03}" for i in range(100)))], settle)
    with pytest.raises(Refused, match="nothing simulated is timed"):
        Grid(CPU, [axis("n", "8")], lambda e: as_it_ran(e, DeviceId("simulator")))

    def without_gpu(experiment: Experiment) -> Settled:
        raise NoGpu("naive needs a GPU")

    with pytest.raises(NoGpu):  # an exit code of its own
        Grid(CPU, [axis("n", "8")], without_gpu)
    for within in (0.0, float("nan"), 1e9):
        with pytest.raises(Refused, match="outside 1 to 86400"):
            swept(Session(), [axis("n", "32")], within)


def test_sizes_run_upwards_and_ends_before_what_is_between_them() -> None:
    assert levels(5) == [0, 2, 1, 2, 0] and levels(1) == [0] and levels(2) == [0, 0] and levels(0) == []
    grid = Grid(CPU, [axis("tile", "16", "32", "64"), axis("n", "64", "128")], settle)
    assert [cell.at for cell in grid.order] == [
        *(("16", "64"), ("64", "64"), ("16", "128"), ("64", "128")),
        *(("32", "64"), ("32", "128")),
    ]


def test_a_sweep_runs_everything_once_and_a_second_one_nothing() -> None:
    session = Session()
    axes = [axis("kernel", "serial", "tiled-cpu"), axis("n", "32", "64"), axis("tile", "16", "32")]
    sweep = finished(swept(session, axes), session)
    assert [(e.kernel, e.n, e.tile) for e in session.started] == [
        *(("serial", 32, 0), ("tiled-cpu", 32, 16), ("tiled-cpu", 32, 32)),
        *(("serial", 64, 0), ("tiled-cpu", 64, 16), ("tiled-cpu", 64, 32)),
    ]
    # serial has no tiles: its two cells of a size are one run
    assert sweep.done == len(sweep.grid.order) == len(session.started) == 6 and session.marks == [f"sweep {sweep.grid.title}"]
    finished(swept(session, [axis("n", "32", "64", "128"), axis("kernel", "serial")]), session)
    assert [(e.kernel, e.n) for e in session.started[6:]] == [("serial", 128)]


def test_a_kernel_without_tiles_is_left_out_once_and_a_run_that_dies_is_not_tried_for_ever() -> None:
    session = Session()
    session.outcome = "cancelled"
    sweep = finished(swept(session, [axis("n", "32", "64")]), session)
    assert len(session.started) == 2 and set(sweep.left_out.values()) == {"its run did not finish"}
    session = Session(rate=1e6)
    axes = [axis("kernel", "serial"), axis("n", "32", "512"), axis("tile", "16", "32")]
    sweep = finished(swept(session, axes, within=20.0), session)
    told = lines(sweep, findings(session.model, []))
    assert [line.split(":")[1] for line in told if line.startswith("skipped")] == [" n 512, tile 16"]
    assert sweep.done == 1 and len(sweep.left_out) == 1


class OnSeveral(Session):
    """A session with speedups of 1.6 on two devices and 2 on four; a quarter of each repetition is waiting."""

    def start(self, experiment: Settled) -> int:
        self.rate = 1e9 * {1: 1.0, 2: 1.6, 4: 2.0}[max(1, len(experiment.places))]
        return super().start(experiment)

    def _end(self, outcome: str) -> None:
        number, ranks = len(self.started), len(self.started[-1].places)
        if ranks:
            work = {"relaxations": 1, "device_bytes": 1}
            rest = events.Part(phase="rest", seconds=0.3, launches=1, **work)
            sent = events.Part(phase="broadcast", seconds=0.45, launches=1, link_bytes=10**6 * (ranks - 1), **work)
            wait = events.Part(phase="wait", seconds=0.25, launches=0, relaxations=0, device_bytes=0)
            self.model.apply(events.Phases(t=self.clock, run=number, seconds=1.0, parts=(rest, sent, wait)))
        super()._end(outcome)


def scaled(*sizes: str) -> tuple[OnSeveral, Sweep]:
    session, base = OnSeveral(), settle(Experiment(kernel="distributed-cpu"))
    axes = [axis("n", *sizes), axis("devices", "1", "2", "4")]
    return session, finished(Sweep(session, Grid(base, axes, settle), 1000.0, clock=lambda: session.clock), session)


def test_numbers_of_devices_are_swept_on_one_graph() -> None:
    session, sweep = scaled("512")
    assert [(e.n, e.devices) for e in session.started] == [(512, ""), (512, "cpu,cpu,cpu,cpu"), (512, "cpu,cpu")]
    found = findings(session.model, list(session.model.runs.values()))
    (one,) = found.scalings
    assert [(p.ranks, p.speedup, p.efficiency) for p in one.points] == [
        *((1, 1.0, 1.0), (2, pytest.approx(1.6), pytest.approx(0.8)), (4, pytest.approx(2.0), pytest.approx(0.5)))
    ]
    assert "n 512: 4 devices reach 2.00x the relaxations/s of 1, efficiency 50.0 %." in found.sentences()
    told = lines(sweep, found)
    assert told[0].split()[:5] == ["devices", "n", "median", "time", "rate"] and "efficiency" in told[0]
    row = next(line for line in told if line.startswith("      2"))
    assert "1.60x" in row and "80.0 %" in row and "25.0 %" in row and "11.9 MB/s" in row
    again = Sweep(session, sweep.grid, 1000.0, clock=lambda: session.clock)
    assert again.done == 3, "finished cells are not run again"


@pytest.mark.parametrize("odd", [{"dtype": "evil"}, {"tile": 7}, {"tile": -1}, {"kernel": "evil"}])
def test_runs_with_unsupported_settings_are_not_a_scaling(odd: dict[str, Any]) -> None:
    session = OnSeveral()
    for devices in ("", "cpu,cpu"):
        ran = changed(settle(Experiment(kernel="distributed-cpu", devices=devices)), **odd)
        session.start(as_it_ran(ran, DeviceId("cpu")))
        session.go(1000.0)
    assert findings(session.model, list(session.model.runs.values())).scalings == ()


def test_a_cancelled_sweep_continues() -> None:
    session = Session(rate=1e6)
    sweep = swept(session, [axis("n", "32", "64", "128")])
    sweep.start()
    while len(session.started) < 2:
        sweep.tick()
        session.go(0.01)
    sweep.cancel()
    assert not session.busy and not sweep.going
    spent = sweep.queue.spent
    session.go(100.0)
    sweep.tick()
    assert sweep.queue.spent == spent and len(session.started) == 2
    finished(sweep, session)
    assert [e.n for e in session.started] == [32, 64, 64, 128] and sweep.done == 3


def test_cells_beyond_the_time_limit_are_skipped_and_smaller_ones_run() -> None:
    session = Session(rate=1e6)
    grid = [axis("n", "32", "64", "512"), axis("tile", "16", "32", "64")]
    sweep = finished(swept(session, grid, within=20.0), session)
    assert {e.n for e in session.started} == {32, 64} and len(session.started) == 6
    assert set(sweep.left_out) == {sweep.grid.cells["512", tile].key for tile in ("16", "32", "64")}
    assert all("expected to take" in why and "are left" in why for why in sweep.left_out.values())
    assert sweep.queue.spent < 20
    finished(sweep, session, step=1.0, within=5000.0)
    assert sweep.done == 9 and not sweep.left_out


def test_slow_cells_get_enough_passes_for_a_verdict_where_their_share_of_the_time_allows_it() -> None:
    base = changed(CPU, budget=1.0)
    for asked, within, repeats in ((base, 1000.0, [0, 5]), (base, 5.0, [0, 0]), (changed(base, repeats=2), 1000.0, [2, 2])):
        session = Session(rate=2e7)  # 0.84 s of a pass at 256
        grid = Grid(asked, [axis("n", "32", "256")], settle)
        finished(Sweep(session, grid, within, clock=lambda session=session: session.clock), session)
        assert [e.repeats for e in session.started] == repeats


def test_the_best_known_run_of_a_cell_is_the_latest_that_is_done() -> None:
    made = Made(None)
    for seconds, outcome in ((1.0, "done"), (2.0, "done"), (3.0, "failed")):
        made.add(CPU, seconds, outcome=outcome)
    known = KnownRuns(made.model)
    found = known.run(identity(CPU))
    assert found is not None and found.id == 2
    other = settle(Experiment(kernel="serial", n=256))
    assert known.run(identity(other)) is None
    made.add(other, 1.0)
    assert known.run(identity(other)) is made.model.runs[4]
    del made.model.runs[4]
    made.model.current = 2
    assert known.run(identity(other)) is None and known.run(identity(CPU)) is found
