"""Ranks that die, stop or fail: the error names rank and reason, nothing is left, and the next run is correct."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import pytest
from processes import gone
from test_worker_death import assert_replays_equal, drain_until, finished, stage, told_of

from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment, changed
from fwtui.live.mpi_job import MpiJob
from fwtui.live.session import Live

HERE = Path(__file__).parent
LONG = Experiment(kernel="distributed-cpu", n=600, repeats=1000, budget=600, dtype="int32", devices="cpu,cpu")
SHORT = changed(LONG, n=40, tile=32, repeats=1)
THREE = "cpu,cpu,cpu"


@pytest.fixture
def live() -> Iterator[Live]:
    session = Live(telemetry_hz=0)
    yield session
    session.close()


def ranks_of(live: Live) -> tuple[int, ...]:
    """Return the process ids of the ranks, once all have started."""
    job = live.worker.child
    assert isinstance(job, MpiJob)
    drain_until(live, lambda: job.pids)
    return job.pids


def assert_verifies(live: Live, devices: str) -> None:
    run = finished(live, changed(SHORT, devices=devices))
    assert run.state == "done" and run.verified is True, (run.state, live.model.fault)


@pytest.mark.slow
@pytest.mark.parametrize(("devices", "attempts"), [("cpu,cpu", 1), (THREE, 30)])
def test_a_rank_killed_at_random_moments(live: Live, tmp_path: Path, devices: str, attempts: int) -> None:
    path = tmp_path / "killed.fwt.jsonl"
    live.record(path=path)
    random = Random(attempts)
    for attempt in range(attempts):
        number = live.start(live.settled(changed(LONG, devices=devices)))
        pids = ranks_of(live)
        moment = time.monotonic() + random.random() / 2
        drain_until(live, lambda moment=moment: time.monotonic() >= moment)
        victim = random.randrange(len(pids))
        os.kill(pids[victim], signal.SIGKILL)
        drain_until(live, lambda number=number: told_of(live, number))
        fault = live.model.fault
        assert fault is not None and (fault.source, fault.code) == ("worker", "died")
        assert "the next run starts new ranks" in fault.message
        assert fault.message.startswith(f"rank {victim} (CPU) died (signal 9, killed)")
        drain_until(live, lambda pids=pids: all(map(gone, pids)))
        assert not live.busy
        if attempt % 3 == 0 or attempt == attempts - 1:
            assert_verifies(live, devices)
    before = ranks_of(live)
    assert_verifies(live, devices)
    assert ranks_of(live) == before, "the same devices have the same job"
    if attempts > 1:
        assert_verifies(live, "cpu,cpu")
        assert len(ranks_of(live)) == 2 and all(map(gone, before)), "others have one of their own"
        before = ranks_of(live)
    live.close()
    drain_until(live, lambda: all(map(gone, before)))
    assert_replays_equal(path, live)


@pytest.mark.parametrize("victim", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_a_rank_that_stops_is_named_and_the_job_is_ended(live: Live, monkeypatch: pytest.MonkeyPatch, victim: int) -> None:
    monkeypatch.setenv("FWTUI_RANK_TIMEOUT", "1")
    number = live.start(live.settled(LONG))
    drain_until(live, lambda: stage(live) == "clean")
    pids = ranks_of(live)
    os.kill(pids[victim], signal.SIGSTOP)
    drain_until(live, lambda: told_of(live, number))
    fault = live.model.fault
    assert fault is not None and fault.code == "hung"
    assert fault.message == f"rank {victim} (CPU) has not answered for 1 s; the next run starts new ranks"
    drain_until(live, lambda: not live.busy and all(map(gone, pids)))


@contextmanager
def job_with(**given: str) -> Iterator[Live]:
    """Return a session that starts its jobs with another command."""
    session = Live(telemetry_hz=0, job=partial(MpiJob, **given))
    try:
        yield session
    finally:
        session.close()


@pytest.mark.slow
def test_an_error_in_a_rank_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(HERE), os.environ.get("PYTHONPATH", ""))))
    with job_with(module="sick_rank") as live:
        run = finished(live, SHORT)
        assert run.state == "failed" and run.fault is not None
        assert run.fault.message.startswith("rank 1 (CPU): the host's memory is exhausted")
        assert "sick_rank.py" in run.fault.stderr
        assert [notice.text for notice in live.model.log if notice.level == "error"] == [run.fault.message]
        drain_until(live, lambda: live.worker.child is None)


ON_NODE_A = "mpiexec noticed that process rank 1 with PID 77 on node a exited on signal 11 (Segmentation fault)."
AS_ROOT = "mpiexec has detected an attempt to run as root."
IN_THE_PROXY = "[proxy:0@a] HYDU_sock_write (sock.c:250): write error (Broken pipe)"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('"$@" </dev/null & exec "$@"', "mpiexec started 1 of 2 processes as one job: it belongs to another MPI"),
        (f"echo ranks are ready; echo '{ON_NODE_A}' >&2; exit 139", "rank 1 (CPU) died (signal 11, segmentation fault); the "),
        (
            f"echo '{AS_ROOT}' >&2; echo ---- >&2; exit 1",
            "mpiexec of Open MPI does not start ranks as root; set OMPI_ALLOW_RUN_AS",
        ),
        (f"echo ranks $$ $$; echo is there; echo '{IN_THE_PROXY}' >&2; exit 255", "one of the ranks died; the next "),
    ],
    ids=["one job each", "what it says names the rank", "Open MPI as root", "it fails itself"],
)
def test_an_mpiexec_of_another_mpi_is_distinguished_from_a_missing_rank(tmp_path: Path, script: str, words: str) -> None:
    launcher = tmp_path / "mpiexec"
    launcher.write_text(f"#!/bin/sh\nshift 2\n{script}\n")
    launcher.chmod(0o755)
    with job_with(launcher=str(launcher)) as live:
        number = live.start(live.settled(SHORT))
        assert live.worker.child is not None
        alone = Path(f"/dev/shm/mpich_shm_{live.worker.child.pid:x}_0")  # of a process of MPICH that is a job of its own
        drain_until(live, lambda: not live.busy)
        assert live.model.fault is not None and live.model.fault.run == number
        assert live.model.fault.message.startswith(words)
        assert not alone.exists()


def test_an_mpiexec_that_cannot_start_leaves_no_pipe(tmp_path: Path) -> None:
    broken = tmp_path / "mpiexec"
    broken.write_bytes(b"no program")
    broken.chmod(0o755)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(Refused, match="the process mpiexec was not started: exec format error"):
        MpiJob("cpu,cpu", 60.0, 0.0, {}, str(broken))
    assert os.listdir("/proc/self/fd") == before
