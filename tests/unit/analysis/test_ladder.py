"""Rungs of the ladder, and the selection for little room."""

from collections.abc import Sequence

import pytest
from builders import run_started
from msgspec.structs import replace

from fwtui.analysis.ladder import Rung, build_ladder, select_rungs
from fwtui.experiment.experiment import Experiment
from fwtui.stream import events
from fwtui.stream.run import Run, started


def ran(kernel: str, seconds: float | None, n: int = 512, checksum: str = "a", **more: str) -> Run:
    state = more.get("state", "done")
    asked = Experiment(kernel=kernel, n=n, dtype=more.get("dtype", "float32"))
    told = events.Verdict(t=1, run=1, verdict=more.get("verdict", "verified"), how="", checksum=checksum)
    done = events.RunDone(t=1, run=1, outcome=state, median=seconds, count=9)
    return replace(started(run_started(asked)), n=n, state=state, verdict=told, done=done)


def kernels(rungs: Sequence[Rung]) -> list[str]:
    return [rung.run.experiment.kernel for rung in rungs]


def test_steps_go_up_the_ladder_each_with_the_fastest_run_of_its_kernel() -> None:
    found = build_ladder(
        [ran("katz-kider", 0.5), ran("naive", 2.0), ran("serial", 8.0), ran("scipy", 9.0), ran("two-matrices", 2.0)]
    )
    assert kernels(found) == ["serial", "naive", "katz-kider"], "scipy is slower, two-matrices no faster than what is before it"
    assert [(rung.times, rung.gain) for rung in found] == [(0.25, 1.0), (1.0, 4.0), (4.0, 4.0)], "over Naive"
    found = build_ladder([ran("serial", 8.0), ran("naive", 4.0), ran("naive", 2.0), ran("naive", 3.0)])
    assert [rung.run.seconds for rung in found] == [8.0, 2.0]
    assert build_ladder([ran("gone", 8.0), ran("serial", None), ran("naive", 0.0)]) == ()


@pytest.mark.parametrize(
    "bad",
    [
        *({"verdict": "wrong"}, {"verdict": "unverified"}, {"state": "cancelled"}),
        *({"checksum": ""}, {"checksum": "b"}, {"n": 256}, {"dtype": "int16"}),
    ],
)
def test_only_finished_runs_with_the_same_answer_are_steps_together(bad: dict[str, str]) -> None:
    assert kernels(build_ladder([ran("serial", 8.0), ran("tiled-cpu", 4.0), ran("naive", 2.0, **bad)])) == ["serial", "tiled-cpu"]  # type: ignore[arg-type]


def test_the_ladder_is_of_the_graph_with_most_rungs() -> None:
    pair = [ran("serial", 8.0), ran("naive", 2.0)]
    larger = [ran("serial", 80.0, 1024, "b"), ran("naive", 20.0, 1024, "b")]
    assert build_ladder([*larger, *pair])[0].run.n == build_ladder([*pair, *larger])[0].run.n == 1024
    assert build_ladder([*pair, *larger, ran("katz-kider", 1.0)])[0].run.n == 512
    assert build_ladder([]) == ()
    names = ("serial", "tiled-cpu", "naive", "katz-kider", "look-ahead")
    found = build_ladder([ran(kernel, seconds) for kernel, seconds in zip(names, (100.0, 10.0, 9.0, 1.5, 1.4), strict=True)])
    assert select_rungs(found, 5) == found
    assert kernels(select_rungs(found, 4)) == ["serial", "naive", "katz-kider", "look-ahead"], "the kernels of the lectures stay"
    assert kernels(select_rungs(found, 3)) == ["serial", "katz-kider", "look-ahead"]
    for room in range(6):
        assert all(rung in found for rung in select_rungs(found, room)), "a hidden rung changes no number of the others"
    assert kernels(select_rungs(found, 0)) == ["serial", "look-ahead"], "the ends always stay"
    assert kernels(select_rungs(found, 3, marked=2)) == ["serial", "naive", "look-ahead"]
    assert select_rungs((), 3) == ()
