"""One matrix over two GPUs: right against SciPy for every type and sign, and nothing left when a rank is killed."""

import os
import signal
import time

import pytest
from processes import gone
from ranked_job import random_graphs, run_all

from fwtui.experiment.experiment import Experiment
from fwtui.live import ncu
from fwtui.live.session import Live
from fwtui.machine import hardware

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(len(hardware.gpus().gpus) < 2, reason="there are no two GPUs")]


@pytest.mark.parametrize(("tile", "count"), [(64, 70), (128, 30)])
def test_a_hundred_random_graphs_equal_scipy(tile: int, count: int) -> None:
    asked = [*random_graphs(tile, count - 4), *(Experiment(n=n, dtype="int32", negative=0.2) for n in (257, 500, 1000))]
    asked.append(Experiment(n=700, low=-5, high=10, density=0.5))
    runs = run_all("0,1", "distributed", asked, tile)
    told = [run.verdict.verdict if run.verdict is not None else run.done for run in runs]
    cyclic = [place for place, experiment in enumerate(asked) if experiment.low < 0]
    assert len(told) == count and [place for place, words in enumerate(told) if words == "negative cycle"] == cyclic
    assert [words for place, words in enumerate(told) if place not in cyclic and words != "verified"] == []


def test_a_killed_rank_is_named_and_the_next_run_is_right() -> None:
    live = Live(telemetry_hz=0)
    try:
        for seed in range(5):
            run = live.start(
                live.settled(Experiment(kernel="distributed", n=8192, dtype="int32", devices="0,1", verify="off", budget=60))
            )
            pids: tuple[int, ...] = ()
            while not pids:  # until its passes are timed
                live.drain()
                assert live.busy, live.model.fault
                if live.model.run is not None and live.model.run.id == run and live.model.run.samples:
                    pids = live.worker.child.pids  # type: ignore[union-attr]
                time.sleep(0.02)
            os.kill(pids[seed % 2], signal.SIGKILL)
            begin = time.monotonic()
            while live.busy:
                live.drain()
                time.sleep(0.02)
                assert time.monotonic() - begin < 10
            while not all(map(gone, pids)):  # a killed process leaves when the driver has freed its memory
                assert time.monotonic() - begin < 30
                time.sleep(0.02)
            fault = live.model.fault
            assert fault is not None and fault.run == run and f"rank {seed % 2}" in fault.message
        live.samples = "on"
        live.start(live.settled(Experiment(kernel="distributed", n=500, devices="0,1")))
        while live.busy:
            live.drain()
            time.sleep(0.02)
        assert live.model.run is not None and live.model.run.verified
        sampled = {one.op: one for one in live.model.run.warps}
        assert not ncu.permitted() or {"pivot", "row", "column", "rest"} == set(sampled)
        assert all(one.rank == 0 and one.unmapped == 0 for one in sampled.values())
    finally:
        live.close()
