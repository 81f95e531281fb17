"""One matrix over several processes on the CPU: right against SciPy, and each rank's time told."""

import pytest
from ranked_job import random_graphs, run_all

from fwtui.experiment.experiment import Experiment
from fwtui.measure import rank


# the first job compiles for the next, which would compile in every rank
@pytest.mark.parametrize(("jobs", "graphs"), [((2,), 3), pytest.param((1, 2, 3, 4), 50, marks=pytest.mark.slow)], ids=str)
def test_random_graphs_are_right(jobs: tuple[int, ...], graphs: int) -> None:
    for ranks in jobs:
        *found, cyclic = run_all(",".join(["cpu"] * ranks), "distributed-cpu", list(random_graphs(ranks, graphs)), True, 32)
        assert [(run.id, run.verified) for run in found] == [(number, True) for number in range(graphs - 1)], ranks
        assert cyclic.verdict is not None and cyclic.verdict.verdict == "negative cycle" and cyclic.verdict.cycle


def test_each_ranks_phases_are_told_and_their_work_adds_up() -> None:
    (run,) = run_all("cpu,cpu", "distributed-cpu", [Experiment(n=100)], False, 32)
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


def test_an_error_of_mpi_waits_as_another_rank_may_have_died() -> None:
    slept: list[float] = []
    of_mpi = type("Exception", (Exception,), {"__module__": "mpi4py.MPI"})
    assert "MPI" in rank.rank_diagnosis(of_mpi("MPI_ERR_OTHER"), slept.append)[1] and slept == [rank.DEATH_SEEN]
    assert rank.rank_diagnosis(ValueError("a bug"), slept.append)[1].startswith("ValueError: a bug") and slept == [
        rank.DEATH_SEEN
    ]
