"""What is said of a run of many graphs at once."""

from typing import Any

import pytest
from builders import occupancy, run_events
from msgspec.structs import replace

from fwtui.analysis.columns import COLUMNS, TableRow, baseline_run
from fwtui.analysis.compare import ComparedRun, compare
from fwtui.analysis.stack import in_words, pace, place
from fwtui.campaigns.sweep.axis import named, read_axis, value
from fwtui.campaigns.sweep.findings import findings
from fwtui.experiment.experiment import Experiment
from fwtui.stream import events
from fwtui.stream.model import Model

BLOCK = occupancy(t=0.0, op="close", registers=64, shared_bytes=1024, limiters=("registers",), source="driver")


def ran(*asked: tuple[dict[str, Any], float], backend: str = "cuda", block: events.Occupancy = BLOCK) -> Model:
    """Verified runs of these experiments with their seconds."""
    model = Model()
    for run, (fields, seconds) in enumerate(asked, 1):
        e = Experiment(**{"kernel": "stacked", "n": 64, **fields})
        used = [replace(block, run=run)] if backend == "cuda" else []
        model.apply_all(run_events(e, *used, run=run, backend=backend, passes=[seconds] * 20, checksum=f"{e.graphs:016x}"))
    return model


def test_the_pace_is_in_graphs_a_second_and_other_numbers_of_graphs_are_other_work() -> None:
    model = ran(({"graphs": 10_000}, 0.0008), ({"graphs": 10}, 0.0008), ({"graphs": 2, "n": 1}, 4.0), ({}, 0.1))
    many, few, slow, one = model.runs.values()
    assert pace(many) == "10,000 graphs of 64 vertices in 800 us: 12.5 million graphs a second"
    assert pace(few).endswith(": 12,500 graphs a second") and pace(slow) == "2 graphs of 1 vertex in 4.00 s: 0.50 graphs a second"
    assert in_words(one) == []
    assert many.rate == pytest.approx(10_000 * 64**3 / 0.0008)
    model = ran(({"graphs": 100}, 0.2), ({"graphs": 10}, 0.1), ({"graphs": 100}, 0.3))
    hundred, ten, again = (ComparedRun(model, run) for run in model.runs.values())
    found = compare(hundred, ten)
    assert found.why == "100 graphs of n = 64, not 10 graphs of n = 64, are other work; rates can be compared, times cannot"
    assert compare(hundred, again).why != found.why
    assert baseline_run(model, ten.run, "stacked") is ten.run
    assert COLUMNS["kernel"].text(TableRow(model, ten.run)) == "stacked x10"
    assert COLUMNS["asked"].text(TableRow(model, hundred.run)) == "stacked, 100 graphs"


def test_where_each_graph_is_depends_on_the_device() -> None:
    (run,) = ran(({"graphs": 100}, 1.0)).runs.values()
    assert place(run) == (
        "one block of 8 warps for each graph: its 16.0 KiB stay in registers, 16 cells a thread; "
        "a multiprocessor has 4 at once, and while one waits at its barrier the others work"
    )
    (run,) = ran(({"graphs": 100, "n": 40, "dtype": "int16"}, 1.0), block=replace(BLOCK, blocks=1)).runs.values()
    assert "its 3.12 KiB stay in registers, 16 cells a thread (39.1 % of them used" in place(run)
    assert place(run).endswith("a multiprocessor has one at once")
    (run,) = ran(({"graphs": 100, "kernel": "stacked-cpu"}, 1.0), backend="cpu").runs.values()
    assert place(run).startswith("one core for each graph")


def test_what_a_sweep_says_of_many_graphs() -> None:
    model = ran(*(({"graphs": graphs}, seconds) for graphs, seconds in ((1, 1.0), (10, 1.0), (100, 1.05), (1000, 10.0))))
    found = findings(model, list(model.runs.values()))
    (filling,) = found.filling
    assert filling.startswith("all: 100 graphs at once reach 95.2 % of the best rate, ") and "; 1 graph reaches " in filling
    assert found.best.startswith("Fastest at n = 64, 1,000 graphs: stacked")
    assert not findings(model, list(model.runs.values())[:2]).filling
    axis = read_axis("graphs", "100,1,10", ())
    assert axis.values == ("1", "10", "100") and named("graphs", "100") == "100 graphs"
    assert value(Experiment(kernel="stacked", graphs=10), "graphs") == "10"
    assert value(Experiment(kernel="naive"), "graphs") == ""
