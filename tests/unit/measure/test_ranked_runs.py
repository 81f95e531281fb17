"""One matrix over several processes on the CPU: right against SciPy, and each rank's time told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random

import pytest

from fwtui.common.environment import worker_environment
from fwtui.experiment.experiment import Experiment, settle
from fwtui.live.rank_job import RankJob
from fwtui.stream import events, requests
from fwtui.stream.model import Model
from fwtui.stream.run import Run

GRAPHS = 50  # for each number of ranks
MANY = 600.0  # seconds that only a hang can exceed


def graphs(ranks: int) -> Iterator[Experiment]:
    """Of every type and sign, smaller and larger than a tile for each rank; the last one has a negative cycle."""
    random = Random(ranks)
    for _ in range(GRAPHS - 1):
        dtype = random.choice(("int16", "int32", "float32"))
        negative = random.choice((0.0, 0.2)) if dtype != "int16" else 0.0
        n, density = random.choice((1, 31, 32, 33, random.randint(2, 180))), random.choice((0.02, 0.1, 0.5))
        seed = random.randint(0, 10**6)
        yield Experiment(n=n, density=density, dtype=dtype, negative=negative, real=dtype == "float32", seed=seed)
    yield Experiment(n=70, low=-5, high=10, density=0.5)


def run_all(ranks: int, asked: list[Experiment], brief: bool) -> list[Run]:
    """The runs of one job."""
    devices = ",".join(["cpu"] * ranks)
    job = RankJob(devices, 60.0, time.monotonic(), worker_environment("real"))
    model, end = Model(), time.monotonic() + MANY
    try:
        for number, experiment in enumerate(asked):
            mine = {"kernel": "distributed-cpu", "tile": 32, "devices": devices, "repeats": 1, "verify": "full"}
            whole = settle(Experiment(**{f: getattr(experiment, f) for f in experiment.__struct_fields__} | mine))
            job.send(requests.encode(requests.Start(number, whole, brief=brief)))
        while sum(run.done is not None for run in model.runs.values()) < len(asked):
            assert time.monotonic() < end and not job.gone, job.last_words
            while job.lines:
                line = job.lines.popleft()
                assert not isinstance(line, Exception), line
                assert not isinstance(line.event, events.Fault), line.event
                model.apply(line.event)
            time.sleep(0.01)
    finally:
        job.close()
    return list(model.runs.values())


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_fifty_random_graphs_are_right(ranks: int) -> None:
    *found, cyclic = run_all(ranks, list(graphs(ranks)), brief=True)
    assert [(run.id, run.verified) for run in found] == [(number, True) for number in range(GRAPHS - 1)]
    assert cyclic.verdict is not None and cyclic.verdict.verdict == "negative cycle" and cyclic.verdict.cycle


def test_each_ranks_phases_are_told_and_their_work_adds_up() -> None:
    (run,) = run_all(2, [Experiment(n=100)], brief=False)
    assert [str(rank) for rank in run.ranks] == ["rank 0 (CPU)", "rank 1 (CPU)"]
    assert [told.rank for told in run.rank_phases] == [0, 1] and run.phase_pass is not None
    for part in run.phase_pass.parts:
        own = [p for told in run.rank_phases for p in told.parts if p.phase == part.phase]
        assert part.seconds == pytest.approx(sum(p.seconds for p in own) / 2)
        if part.phase == "broadcast":  # which all ranks launch together
            assert [p.launches for p in own] == [part.launches, part.launches] == [4, 4]
        else:
            assert (sum(p.launches for p in own), sum(p.relaxations for p in own)) == (part.launches, part.relaxations)
    assert run.phase_names[-1].key == "wait"
    assert {"pivot", "panels", "broadcast", "rest"} <= {part.phase for part in run.phase_pass.parts}
