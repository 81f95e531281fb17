"""Estimated progress of a run that sends no events: one step of SciPy at n = 6000 takes minutes."""

import pytest
from builders import model_of, run_started

from fwtui.analysis.estimate import NEARLY, RATES, progress_now
from fwtui.experiment.experiment import Experiment
from fwtui.stream import events

N = 6000
PASS = N**3 / RATES["cpu"]


def at(t: float, *told: events.Event) -> events.Progress | None:
    """Return the progress of a run of SciPy at that time."""
    planned = events.Planned(t=1.0, run=1, n=N, padded=N, steps=1, relaxations=N**3, device_bytes=0)
    model = model_of([run_started(Experiment(kernel="scipy", n=N)), planned, *told, events.Notice(t=t, text="later")])
    return progress_now(model, model.runs[1])


def stage(name: str, t: float) -> events.Stage:
    return events.Stage(t=t, run=1, name=name)


def test_passes_are_estimated_from_their_beginning_and_from_the_others() -> None:
    found = [at(10.0 + share * PASS, stage("warm-up", 10.0)) for share in (0.05, 0.25, 0.5, 2.0)]
    assert [one and one.done for one in found] == pytest.approx([0.05, 0.25, 0.5, NEARLY])
    left = [one and one.left for one in found]
    assert left[0] and left[1] and left[0] >= 2.95 * PASS, "the warm-up, a clean pass and one by phase"
    assert left[1] - PASS / 4 == pytest.approx(left[2])
    assert at(10.5, stage("warm-up", 10.0)) is None, "a short pass needs none"
    told = events.Progress(t=300.0, run=1, stage="clean", done=0.2, left=400.0)
    fresh, later, late = (at(300.0 + seconds, stage("clean", 290.0), told) for seconds in (0.5, 100.0, 4000.0))
    assert fresh == told, "what it has just told stays"
    assert later is not None and (later.done, later.left) == pytest.approx((0.4, 300.0))
    assert late is not None and late.done == NEARLY and late.left is None
    samples = [events.Sample(t=500.0, run=1, seconds=200.0, since=300.0)]
    found = at(550.0, *samples, stage("phases", 500.0))
    assert found is not None and (found.done, found.left) == pytest.approx((0.25, 150.0))
    assert at(5.0, stage("verify", 4.0)) is None and at(5.0, stage("compile", 4.0)) is None
