"""Runs of user kernels: their events, and what is never recorded."""

import time
from pathlib import Path
from typing import Any

import pytest
from builders import forget_user_kernels, model_of, never
from own_files import written

from fwtui.analysis.plan_frames import PlanFrames, frames_of
from fwtui.common.errors import Refused
from fwtui.engine.engine import HostEngine
from fwtui.experiment.experiment import Experiment, changed, kernel_named, settle
from fwtui.measure import user_kernel_process
from fwtui.measure.run_context import RunContext
from fwtui.measure.runner import Runner
from fwtui.measure.user_kernel_process import KernelRequest, recorded_plan, register_here, reply_to
from fwtui.stream import codec, events
from fwtui_kernels.own import fingerprint
from fwtui_kernels.plan import Shape, Target


@pytest.fixture(autouse=True)
def _not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_kernel_process, "_loaded", {})


def ran(path: Path, **more: Any) -> list[events.Event]:
    """Return the recorded events of a run on seven vertices."""
    register_here("mine", str(path), "")
    said: list[events.Event] = []
    asked = settle(Experiment(kernel="mine", n=7, repeats=2, verify="full"))
    job = RunContext(1, asked, kernel_named("mine"), HostEngine(Target("cpu")), never, said.append, time.monotonic)
    Runner().run(job, **more)
    return [event for one in said if isinstance(event := codec.decode(codec.encode(one)[:-1]), events.Event)]


def test_a_run_is_verified_and_records_no_path(tmp_path: Path) -> None:
    said = ran(written(tmp_path))
    model = model_of(said)
    assert model.runs[1].verified and model.runs[1].experiment.code == fingerprint(tmp_path / "mine.py")
    assert str(tmp_path) not in repr(said) and not any(isinstance(event, events.Source) for event in said)


def test_the_film_of_its_plan_is_in_the_session(tmp_path: Path) -> None:
    model = model_of(ran(written(tmp_path)))
    of_plan = PlanFrames.of(kernel_named("mine"), Shape(7))
    forget_user_kernels()  # as in a replay
    film = frames_of(model.runs[1])
    assert film is not None and film.process() and of_plan.process()
    assert [film.at(done) for done in range(0, 343, 49)] == [of_plan.at(done) for done in range(0, 343, 49)]
    assert film.relaxations == 343 and film.rounds == 7
    told = ran(written(tmp_path))
    torn = model_of(events.Plan(t=0.0, run=1, of=8, steps=one.steps) if isinstance(one, events.Plan) else one for one in told)
    assert frames_of(torn.runs[1]) is None, "a part of a plan is no plan"


def test_a_long_plan_is_recorded_in_bounded_steps_with_all_its_work() -> None:
    kernel, shape = kernel_named("naive"), Shape(1200)
    parts = list(recorded_plan(kernel, shape))
    steps = [step for part in parts for step in part["steps"]]
    assert len(steps) == parts[0]["of"] <= 512 and all(len(part["steps"]) <= events.PLAN_STEPS for part in parts)
    assert sum(step.relaxations for step in steps) == 1200**3
    assert all(len(codec.encode(events.Plan(t=0.0, run=1, **part))) < codec.MAX_LINE for part in parts)


def test_the_source_is_recorded_only_on_request(tmp_path: Path) -> None:
    path = written(tmp_path, "mine.cu.py")
    (tmp_path / "mine.cu").write_text("\tint x;\n" * 500)
    parts = [event for event in ran(path, source=str(path)) if isinstance(event, events.Source)]
    assert [line for part in parts for line in part.lines if part.file == "mine.cu.py"] == path.read_text().splitlines()
    cuda = [part for part in parts if part.file == "mine.cu"]
    assert [part.first for part in cuda] == [1, 201, 401] and cuda[0].lines[0] == "    int x;"
    (tmp_path / "mine.cu").write_text("x" * 99 + "\n" + ("y" * 99 + "\n") * 3000)
    parts = [event for event in ran(path, source=str(path)) if isinstance(event, events.Source)]
    assert sum(len(line) for part in parts for line in part.lines) < user_kernel_process.MAX_SOURCE
    assert parts[-1].lines[-1] == "(the rest was not recorded)"


def test_a_run_is_verified_as_requested_and_errors_are_reported(tmp_path: Path) -> None:
    path = written(tmp_path)
    register_here("mine", str(path), fingerprint(path))
    asked = settle(Experiment(kernel="mine", n=7))
    path.write_text(path.read_text() + "# saved again\n")
    with pytest.raises(Refused, match=r"mine.py was changed after this run was requested; start the run again"):
        register_here("mine", str(path), asked.code)
    register_here("mine", str(path), settle(changed(asked, code="")).code)
    path = written(tmp_path, "mine.py", ("    n = shape.n\n", "    n = shape.n // abs(shape.n - 6)\n"))
    assert reply_to(KernelRequest(str(path), "mine")).wrong == ""
    answer = reply_to(KernelRequest(str(path), "mine", Shape(6)))
    assert answer.wrong == "mine.py:12: ZeroDivisionError: integer division or modulo by zero: n = shape.n // abs(shape.n - 6)"
