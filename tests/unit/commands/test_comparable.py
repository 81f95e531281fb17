"""Sessions loaded for comparisons: the same results in little memory."""

import tracemalloc
from pathlib import Path

import pytest
from builders import header, run_started, write_session

from fwtui.analysis.compare import ComparedRun, Comparison, compare
from fwtui.analysis.explanation import speedup_causes
from fwtui.commands.compare import load_comparable
from fwtui.experiment.experiment import Experiment
from fwtui.sessions.library import load_model, resolve
from fwtui.stream import events
from fwtui.stream.model import Model


def comparisons(model: Model) -> list[tuple[object, ...]]:
    """Compare each run with each of the first three."""
    found: list[Comparison] = []
    entrants = [ComparedRun(model, run, "s") for run in model.runs.values()]
    for baseline in entrants[:3]:
        found += [compare(entrant, baseline) for entrant in entrants]
    return [(*one[2:], one.entrant.device, speedup_causes(one)) for one in found]


@pytest.mark.parametrize("name", ["h200-champion", "lecture-tiles", "h200-two-gpus", "lecture-own-kernel"])
def test_comparisons_are_those_of_the_whole_session(name: str) -> None:
    (whole, complete), (small, same) = load_model(resolve(name)), load_comparable(resolve(name))
    assert comparisons(small) == comparisons(whole) and same == complete


def test_the_loaded_session_is_smaller_than_the_file(tmp_path: Path) -> None:
    told: list[events.Event] = [header()]
    ranks = tuple(events.RankOf(rank=rank, backend="cuda", gpu=rank) for rank in range(64))
    step = events.PlanStep(0, "all", 10, ((0, 0, 64, 64),) * 32, ((0, 0, 64, 64),) * 32)
    for run in range(80):
        t = float(run)
        told += [run_started(Experiment(n=64), run, t, backend="cuda", ranks=ranks)]
        told += [events.Plan(t=t, run=run, of=10, steps=(step,) * 10)]
        for number in range(10):
            values = {f"{run} {key}": key + 0.5 for key in range(16)}
            told += [events.Counters(t=t, run=run, op=f"{number}", values=values)]
            told += [events.Stage(t=t, run=run, name="clean", seconds=0.1), events.Sample(t=t, run=run, seconds=0.01, since=t)]
        if run % 2:  # the others do not finish
            told += [events.RunDone(t=t, run=run, outcome="done", median=0.01, count=200, passes=(0.01 + run * 1e-6,) * 200)]
    path = write_session(tmp_path / "s", told, closed=False)
    tracemalloc.start()
    model, _ = load_comparable(path)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(model.runs) == 80 and kept < path.stat().st_size / 2
    assert model.runs[1].passes == (0.01 + 1e-6,) * 200


def test_runs_in_mixed_order_are_those_of_the_whole_session(tmp_path: Path) -> None:
    mixed: list[events.Event] = [run_started(Experiment(n=64), run, run) for run in range(1, 4)]
    mixed += [events.Sample(t=4 + i, run=i % 4, seconds=0.01 * (i + 1), since=4 + i) for i in range(12)]
    mixed += [
        events.RunDone(t=20, run=2, outcome="done", median=0.01),
        events.Fault(t=21, source="worker", code="died", message="m", run=1),
    ]
    mixed += [run_started(Experiment(n=64), 3, 22), events.Sample(t=23, run=3, seconds=1.0, since=22)]
    write_session(tmp_path / "s", [header(), *mixed], closed=False)
    small, whole = load_comparable(tmp_path / "s")[0], load_model(tmp_path / "s")[0]
    assert small.runs == whole.runs and list(small.runs) == [1, 2, 3] and small.run == whole.run
