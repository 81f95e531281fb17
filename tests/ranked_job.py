"""Runs in one job of ranks, without a dashboard."""

import time
from collections.abc import Iterator, Sequence
from random import Random

from fwtui.common.environment import worker_environment
from fwtui.experiment.experiment import Experiment, changed, settle
from fwtui.live.mpi_job import MpiJob
from fwtui.stream import events, requests
from fwtui.stream.model import Model
from fwtui.stream.run import Run

MANY = 600.0  # seconds that only a hang can exceed


def random_graphs(seed: int, count: int) -> Iterator[Experiment]:
    """Return graphs of every type and sign, smaller and larger than a tile per rank; the last has a negative cycle."""
    random = Random(seed)
    for _ in range(count - 1):
        dtype = random.choice(("int16", "int32", "float32"))
        negative = random.choice((0.0, 0.2)) if dtype != "int16" else 0.0
        n, density = random.choice((1, 31, 32, 33, random.randint(2, 180))), random.choice((0.02, 0.1, 0.5))
        weights = {"negative": negative, "real": dtype == "float32", "seed": random.randint(0, 10**6)}
        yield Experiment(n=n, density=density, dtype=dtype, **weights)
    yield Experiment(n=70, low=-5, high=10, density=0.5)


def run_all(devices: str, kernel: str, asked: Sequence[Experiment], tile: int) -> list[Run]:
    """Run all experiments in one job on these devices and compare each cell with SciPy."""
    job = MpiJob(devices, 60.0, time.monotonic(), worker_environment("real"))
    model, end = Model(), time.monotonic() + MANY
    try:
        for number, experiment in enumerate(asked):
            whole = settle(changed(experiment, kernel=kernel, tile=tile, devices=devices, repeats=1, verify="full"))
            job.send(requests.RunRequest(number, whole))
        while sum(run.done is not None for run in model.runs.values()) < len(asked):
            assert time.monotonic() < end and not job.gone, job.last_output
            while job.lines:
                line = job.lines.popleft()
                assert not isinstance(line, Exception), line
                assert not isinstance(line.event, events.Fault), line.event
                model.apply(line.event)
            time.sleep(0.01)
    finally:
        job.close()
    return list(model.runs.values())
