"""Frames of a plan: every step once, in order and bounded; and the frame at a moment of a run."""

from typing import Any

import pytest
from builders import run_started
from msgspec.structs import replace

from fwtui.analysis.plan_frames import PlanFrames, Scene, frames_of, raced_scene, scene, slow_scene
from fwtui.experiment.experiment import Experiment, settle
from fwtui.stream import events
from fwtui.stream.run import Run, started
from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel, Rect, Shape

KATZ = settle(Experiment(kernel="katz-kider", n=256, tile=32))


def run_of(experiment: Experiment, n: int | None = None, **told: object) -> Run:
    """Return a planned, unfinished run of the experiment."""
    kernel = registry()[experiment.kernel]
    phases = tuple(events.PhaseName(key, words) for key, words in kernel.phases.items())
    begun = run_started(experiment, title=kernel.title, backend=kernel.backend, phases=phases)
    return replace(started(begun), n=n or experiment.n, **told)  # type: ignore[arg-type]


def developed(run: Run) -> PlanFrames:
    found = frames_of(run)
    assert found is not None and found.process()
    return found


def shape_of(kernel: Kernel, n: int) -> Shape:
    tile = kernel.default_tile if kernel.tiles else 1
    options = tuple(sorted((o.name, o.default) for o in kernel.options))
    return Shape(n, tile, kernel.dtypes[0], options=options)


@pytest.mark.parametrize("kernel", registry().values(), ids=registry())
def test_the_film_of_every_kernel_shows_its_plan_step_by_step(kernel: Kernel) -> None:
    shape = shape_of(kernel, 200)
    steps = list(kernel.plan(shape, True))
    made = PlanFrames.of(kernel, shape)
    while not made.process(7):
        pass
    assert len(made) == len(steps) and made.relaxations == sum(s.cost.relaxations for s in steps)
    done = 0
    for step in steps:
        frame = made.at(done)
        assert (frame.first, frame.phase, frame.weight) == (done, step.phase, step.cost.relaxations)
        assert frame.targets == tuple(w._replace(buffer=0) for w in step.writes if w.buffer < kernel.matrices)
        assert frame.targets
        assert not set(frame.sources) & set(frame.targets)
        done += step.cost.relaxations
        assert made.at(done - 1) == frame


TREE = ((70, 40, 20), (2, 2, -1))  # two halves and their separator


def sparse(sizes: tuple[int, ...], parents: tuple[int, ...], padded: int) -> Run:
    asked = settle(Experiment(kernel="sparse-cpu", n=130, tile=64))
    above = tuple(20 * (parent >= 0) for parent in parents)
    return run_of(asked, padded=padded, ordered=events.Ordered(t=2.0, run=1, sizes=sizes, parents=parents, above=above))


def test_copies_of_tiles_and_what_a_sparse_graph_leaves_out_are_not_in_the_film() -> None:
    made = developed(sparse(*TREE, 192))
    assert made.side == 192 and made.rounds == 4, "the leaves, the separator; the separator, the leaves"
    leaves = made.at(0)
    assert leaves.phase == "eliminate" and not any(Rect(64, 136, 134, 176).overlaps(cells) for cells in leaves.targets)
    assert made.at(made.relaxations).targets == (Rect(64, 64, 192, 192),)
    made = PlanFrames.of(registry()["register-tiled"], Shape(24, 8))
    assert made.process()
    pivot, panels = made.at(8**3 * 9), made.at(8**3 * 10)
    assert (pivot.phase, panels.phase) == ("pivot", "panels")
    assert pivot.targets == (Rect(8, 8, 16, 16),) and not pivot.sources
    assert set(panels.targets) == {Rect(8, 0, 16, 8), Rect(8, 16, 16, 24), Rect(0, 8, 8, 16), Rect(16, 8, 24, 16)}


def test_rounds_begin_at_the_first_phase() -> None:
    made = developed(run_of(KATZ))
    assert made.rounds == 8 and made.at(0).round == 1 and made.at(made.relaxations).round == 8
    assert [made.at(f).phase for f in (0, 32**3, 15 * 32**3)] == ["pivot", "panels", "rest"]
    assert made.heaviest(0).phase == "rest" and made.heaviest(0).round == 1
    naive = developed(run_of(settle(Experiment(kernel="naive", n=100))))
    frame = naive.at(41 * 100**2)
    assert naive.rounds == 100 and frame.targets == (Rect(0, 0, 100, 100),)
    assert frame.sources == (Rect(41, 0, 42, 100), Rect(0, 41, 100, 42)), "its row and column, for everybody"


def test_long_plans_keep_few_frames_and_too_long_ones_are_never_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = registry()["katz-kider"]
    monkeypatch.setattr("fwtui.analysis.plan_frames.MAX_FRAMES", 10)
    made = PlanFrames.of(kernel, Shape(32 * 64, 32, options=(("threads", 256),)))
    assert made.process()
    assert len(made) <= 10 and made.rounds == 64 and made.relaxations == (32 * 64) ** 3
    rounds = [made.at(made.relaxations * i // 10).round for i in range(10)]
    assert rounds == sorted(rounds) and rounds[-1] > 50
    assert {made.at(made.relaxations * i // 10).phase for i in range(10)} == {"rest"}
    assert made.at(0).first == 0
    monkeypatch.setattr("fwtui.analysis.plan_frames.MAX_STEPS", 50)
    made = PlanFrames.of(registry()["naive"], shape_of(registry()["naive"], 60))
    assert not made.process() and not made.process()


def test_slow_motion_keeps_the_steps_of_some_rounds_in_order() -> None:
    made = developed(run_of(KATZ))
    slow = made.slowly()
    assert len(slow) == 24 and [frame.phase for frame in slow[:4]] == ["pivot", "panels", "rest", "pivot"]
    assert [frame.round for frame in made.slowly(3)] == [1, 1, 1, 4, 4, 4, 7, 7, 7]
    assert [frame.phase for frame in made.slowly(3, 2)] == ["pivot", "rest"] * 3
    run = run_of(KATZ, state="done")
    shown = [slow_scene(made, run, place) for place in range(25)]
    assert shown[0] == shown[24] and shown[0].captions[0] == "slow motion: round 1 of 8 · pivot"
    assert shown[1].captions[2] == "slow motion: 1/8 · panels"


Tree = tuple[tuple[int, ...], tuple[int, ...]]
FORGED: list[Tree] = [
    *(((), ()), ((70, 40), (2, 2, -1)), ((70, 40, 21), (2, 2, -1))),
    *(((70, 60, 0), (2, 2, -1)), ((70, 40, 20), (2, 0, -1))),
]
UNKNOWN: list[dict[str, Any]] = [{"kernel": "gone"}, {"tile": 5}, {"n": 2**40}, {"options": {"threads": 3}}, {"dtype": "complex"}]
WIDE = settle(Experiment(kernel="kleene", n=64, tile=4))


@pytest.mark.parametrize(
    "run",
    [
        *(sparse(*tree, 256) for tree in FORGED),
        *(replace(run_of(KATZ), experiment=replace(KATZ, **change), n=change.get("n", 256)) for change in UNKNOWN),
        run_of(WIDE, n=65536),  # more launches than it takes
    ],
)
def test_invalid_trees_and_unknown_plans_have_no_frames(run: Run) -> None:
    assert frames_of(run) is None and frames_of(run_of(WIDE)) is not None


def at(run: Run, now: float) -> Scene:
    return scene(developed(run), run, now)


def warm(done: float, t: float) -> dict[str, Any]:
    return {"stage": "warm-up", "stage_since": 10.0, "progress": events.Progress(t=t, run=1, stage="warm-up", done=done)}


def test_highlighted_tiles_follow_the_time_of_a_repetition() -> None:
    panels = at(run_of(KATZ, **warm((3 * 64 + 1) * 32**3 / 256**3, 13.0)), 13.0)  # three rounds in three seconds
    assert panels.captions[0] == "round 4 of 8 · panels" and panels.sources == (Rect(96, 96, 128, 128),)
    naive = settle(Experiment(kernel="naive", n=1000))
    seen = [at(run_of(naive, **warm(i / 100, 10.0 + i / 10)), 10.0 + i / 10).captions[0] for i in range(1, 100)]
    assert 19 <= len(dict.fromkeys(seen)) <= 21 and seen[0] == "round 1 of 1000 · all rounds"
    told = events.Progress(t=12.0, run=1, stage="clean", done=0.25)
    sample = events.Sample(t=11.0, run=1, seconds=0.001, since=10.9)
    quick = at(run_of(KATZ, stage="clean", stage_since=10.0, samples=(sample,), progress=told), 12.0)
    assert quick == Scene(256, ("timed repetitions:  25 % done", " 25 %"), filled=0.25)
    assert at(run_of(KATZ, stage="compile"), 5.0) == Scene(256, ("compiling",)), "other stages light nothing up"
    assert at(run_of(KATZ, stage="phases", stages=()), 5.0) == Scene(256, ("instrumented repetition",))
    sample = events.Sample(t=20.0, run=1, seconds=8.0, since=12.0)
    slow = at(run_of(KATZ, stage="clean", stage_since=10.0, samples=(sample,)), 22.5)
    assert slow.captions[0].startswith("about round 3 of 8 ·")
    late = at(run_of(KATZ, stage="clean", stage_since=10.0, samples=(sample,)), 99.0)
    assert late.captions[0].startswith("about round 8 of 8")


def test_a_finished_run_shows_the_last_of_its_work() -> None:
    done = at(run_of(KATZ, state="done"), 99.0)
    assert done.captions[0] == "finished: round 8 of 8 · remainder" and done.targets == (Rect(0, 0, 224, 224),)
    assert at(run_of(KATZ, state="cancelled"), 99.0) == Scene(256, ("cancelled",)), "nobody knows how far it came"
    many = run_of(settle(Experiment(kernel="naive", n=4096)), state="done")
    assert at(many, 0.0).captions[0].startswith("finished: round 4096 of 4096")


def test_a_race_shows_steps_if_they_are_slow_and_rounds_otherwise() -> None:
    run = run_of(KATZ)
    film = developed(run)
    slow = [raced_scene(film, run, share, 8.0) for share in (0.0, 0.5)]
    assert [shown.captions[0] for shown in slow] == ["round 1 of 8 · pivot", "round 5 of 8 · pivot"]
    quick = raced_scene(film, run, 0.5, 1.0)
    assert quick.captions[1] == "round 5 of 8" and quick.targets == film.heaviest(film.relaxations // 2).targets
    assert raced_scene(film, run, 1.0, 8.0) == Scene(256, ("finished",), filled=1.0)
