"""Made-up courses: numbers come from runs, guesses and prompts are stored."""

from pathlib import Path

import pytest
from course_files import BOTH, FIRST, SECOND
from msgspec.structs import replace

from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import settle
from fwtui.learn.course import load_course, prompts_of
from fwtui.learn.lessons import CourseProgress, Lessons
from fwtui.learn.prompts import CHECKS, Prompted, PromptEvidence, reached
from fwtui.live.watch_events import CheckEnd, CheckStart, Report
from fwtui.sessions.folders import shipped_folder
from fwtui.sessions.library import load_model
from fwtui.stream.kernel_tests import Finding, OperationResources
from fwtui.stream.model import Model


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Return a folder with two steps and their recording."""
    (tmp_path / BOTH.name).symlink_to(BOTH)
    folder = tmp_path / "course"
    folder.mkdir()
    (folder / "01-naive.toml").write_text(FIRST)
    (folder / "02-tiles.toml").write_text(SECOND)
    return folder


def course_in(folder: Path) -> Lessons:
    return Lessons(load_course(folder), folder.parent)


class TestRecorded:
    def test_the_numbers_are_the_runs(self, made: Path) -> None:
        both = course_in(made)
        first, second = both.course
        model, _ = load_model(BOTH)
        naive, blocked = model.runs[4], model.runs[8]  # launched as a graph
        assert both.cited(first).run == naive and both.cited(second).run == blocked
        assert naive.seconds and blocked.seconds and naive.bandwidth and model.gpu and model.gpu.peak_bytes_per_second
        assert both.lines(first, first.written.text) == [f"One launch for each of 4,096 k: {units.duration(naive.seconds)}."]
        asks = f"{units.bandwidth(naive.bandwidth)} became {units.bandwidth(blocked.bandwidth)}"
        assert both.lines(second, second.written.text) == [f"Asks 32 times less: {asks}."]
        rest = next(p.share for p in blocked.phases if p.key == "rest")
        ratio = naive.seconds / blocked.seconds
        after = f"{units.duration(blocked.seconds)}, and {units.percent(rest)} of it in the rest."
        assert both.lines(second, second.written.afterwards) == [after]
        assert both.answer(second).number == pytest.approx(ratio, rel=1e-3), "as the headline: of all passes"
        assert both.answer(first).number == naive.bandwidth / model.gpu.peak_bytes_per_second

    def test_a_text_names_the_runs_of_other_data_types(self, tmp_path: Path) -> None:
        step = FIRST.replace("naive", "look-ahead").replace("h200-n4096-look-ahead-blocked", "h200-champion")
        step = step.replace('launch = "graph"', 'n = 4096\ndtype = "int32"')
        (tmp_path / "01-types.toml").write_text(step.replace("{n} k: {time}", "{int16.bytes}, {bytes}; {int16.time}"))
        course = Lessons(load_course(tmp_path), shipped_folder())
        (only,) = course.course
        runs = {
            run.experiment.dtype: run
            for run in course.cited(only).model.runs.values()
            if run.n == 4096 and run.experiment.low >= 0
        }
        assert course.cited(only).run is runs["int32"]
        assert course.lines(only, only.written.text) == [f"One launch for each of 2, 4; {units.duration(runs['int16'].seconds)}."]
        assert [e.dtype for gpu in (True, False) for e in course.here(only, gpu)] == ["int32", "int32"]
        with pytest.raises(Refused, match="compares with a run of look-ahead in float64 that h200-champion does not have"):
            course.lines(only, "{float64.time}")

    def test_unverified_runs_are_not_cited_and_missing_parts_are_named(self, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for old, new, words in (
            ('"h200-n4096-naive-blocked"', '"h200-n9"', "h200-n9.fwt.jsonl.gz cannot be opened: "),
            ('launch = "graph"', "n = 77", "cites a run of katz-kider that"),
            ("{tile} times", "{limit} times", "{limit} is unknown for"),
            ("{tile} times", "{phase.base} times", "{phase.base} is unknown for"),
            ('kind = "speedup"', 'kind = "limit"', "the peak rate of the device of"),
        ):
            (made / "02-tiles.toml").write_text(SECOND.replace(old, new))
            here = CourseProgress(course_in(made))
            here.go(1)
            here.guess("")
            assert words in (sentence := here.page(Model()).problem) and "\n" not in sentence
        model, _ = load_model(BOTH)
        assert model.run is not None and model.run.id == 8
        model.runs[8] = replace(model.run, verdict=None)
        monkeypatch.setattr("fwtui.learn.lessons._model_of", lambda path: model)
        both = course_in(made)
        with pytest.raises(Refused, match="cites a run of katz-kider"):
            both.cited(both.course[1])

    def test_other_kernels_run_here_on_devices_that_most_machines_have(self, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        live = '[live]\nn = 64\nkernels = ["tiled-cpu", "distributed-cpu"]\ndevices = "cpu,cpu"\n'
        (made / "02-tiles.toml").write_text(SECOND.replace("[recorded]", f"{live}[recorded]"))
        both = course_in(made)
        monkeypatch.setattr("fwtui.machine.device_choice.mpiexec", lambda: "/usr/bin/mpiexec")
        for gpu in (True, False):
            runs = both.here(both.course[1], gpu)
            assert [(e.kernel, e.n, e.devices) for e in runs] == [("tiled-cpu", 64, ""), ("distributed-cpu", 64, "cpu,cpu")]

        def none() -> str:
            raise Refused("several devices need MPI, and mpi4py is not installed")

        monkeypatch.setattr("fwtui.machine.device_choice.mpiexec", none)
        with pytest.raises(Refused, match=r"need MPI, .*; or use the answer of the recorded run"):
            both.here(both.course[1], False)


class TestAttending:
    def test_a_page_names_missing_parts(self, made: Path) -> None:
        (made.parent / BOTH.name).unlink()
        page = CourseProgress(course_in(made)).page(Model())
        assert page.title == "A thread for every pair" and "cannot be opened" in page.problem and not page.text

    def test_runs_of_this_machine_answer_too(self, made: Path) -> None:
        here = CourseProgress(course_in(made))
        here.go(1)
        here.plan(gpu=True)
        model, _ = load_model(BOTH)
        asked = []
        for run in (4, 8):
            experiment = here.next_run(model)
            assert experiment is not None
            asked.append((experiment.kernel, experiment.n))
            here.began(run)
        assert asked == [("naive", 4096), ("katz-kider", 4096)], "what it is compared with comes first"
        assert here.next_run(model) is None
        local = here.page(model).here
        assert local is not None and local.answer is not None and local.n == 4096
        assert local.answer.number == here.lessons.answer(here.step).number

    def test_a_step_runs_alone_without_a_gpu_and_nothing_after_one_that_failed(self, made: Path) -> None:
        here = CourseProgress(course_in(made))
        here.go(1)
        here.plan(gpu=False)
        assert here.simulates(gpu=False) and not here.simulates(gpu=True)
        asked = here.next_run(Model())
        assert asked is not None and (asked.kernel, asked.n, asked.tile, asked.device) == ("katz-kider", 8, 4, "simulator")
        assert settle(asked, simulated=True).tile == 4
        here = CourseProgress(course_in(made))
        here.go(1)
        here.plan(gpu=True)
        model, _ = load_model(BOTH)
        here.began(4)
        model.runs[4] = replace(model.runs[4], state="cancelled")
        assert here.next_run(model) is None and here.next_run(model) is None
        local = here.page(model).here
        assert local is not None and local.answer is None and "cancelled" in local.reason


PROMPTS = prompts_of(load_course())
NAIVE = Finding(case="n = 5", outcome="right", sentence="", n=5)
TILED = replace(NAIVE, tile=4)
ONE_PHASE = Finding(case="plan", outcome="right", sentence="", phases=("all",))
THREE = replace(ONE_PHASE, phases=("pivot", "panels", "rest"))
REST = OperationResources(
    op="closing", phase="rest", tile=32, itemsize=4, threads=1024, registers=30, shared_bytes=0, spill_bytes=0, blocks=2,
    warps=64, max_warps=64,
)  # fmt: skip
SHARED = replace(REST, shared_bytes=3 * 4096)
OWN = replace(SHARED, threads=256, shared_bytes=2 * 4096)
STEPS = (
    PromptEvidence([ONE_PHASE, NAIVE]),
    PromptEvidence([ONE_PHASE, TILED]),
    PromptEvidence([THREE, TILED], [REST]),
    PromptEvidence([THREE, TILED], [SHARED]),
    PromptEvidence([THREE, TILED], [OWN]),
)


def test_each_prompt_is_done_by_its_change_and_not_before() -> None:
    assert [prompt.until for prompt in PROMPTS] == list(CHECKS) and len(PROMPTS) == len(STEPS) == 5
    for done, known in enumerate(STEPS, 1):
        assert [CHECKS[prompt.until].holds(known) for prompt in PROMPTS] == [place < done for place in range(5)]
        assert reached(PROMPTS, known, True) == (done + 1, True, False)
        assert reached(PROMPTS, known, False) == (done, False, False), "what is not right stays at what it is about"


@pytest.mark.parametrize(
    ("until", "known"),
    [
        ("right", PromptEvidence([ONE_PHASE])),
        ("tiles", PromptEvidence([replace(TILED, n=0)])),
        ("phases", PromptEvidence([replace(THREE, outcome="wrong"), TILED])),
        ("phases", PromptEvidence([replace(THREE, phases=("pivot", "rest")), TILED])),
        ("shared", PromptEvidence([THREE, TILED], [replace(SHARED, phase="pivot")])),
        ("registers", PromptEvidence([THREE, TILED], [replace(SHARED, threads=256)])),
        ("registers", PromptEvidence([THREE, TILED], [replace(OWN, threads=1024)])),
        ("registers", PromptEvidence([THREE, TILED], [replace(OWN, spill_bytes=8)])),
        ("registers", PromptEvidence([THREE, TILED], [replace(OWN, rewrites=True)])),
        ("registers", PromptEvidence([THREE, TILED], [replace(OWN, phase="pivot")])),
    ],
)
def test_a_similar_change_does_not_complete_a_prompt(until: str, known: PromptEvidence) -> None:
    assert not CHECKS[until].holds(known)


def test_the_loop_moves_the_prompts_both_ways() -> None:
    prompted = Prompted(PROMPTS)
    assert prompted.head == "prompt 1 of 5" and "Save the file" in prompted.text

    def saved(known: PromptEvidence, right: bool = True) -> str:
        prompted.update(CheckStart(1))
        for finding in known.findings:
            prompted.update(Report("case", "", finding))
        for used in known.used:
            prompted.update(Report("compiled", "", used=used))
        prompted.update(CheckEnd("", right, True, None))
        return prompted.head

    assert saved(STEPS[2]) == "prompt 4 of 5"
    assert saved(PromptEvidence(), right=False) == "prompt 4 of 5", "of a file that does not load nothing is known"
    assert saved(STEPS[3], right=False) == "prompt 4 of 5" and "Not every graph comes out right yet." in prompted.text
    assert saved(STEPS[4]) == "all 5 prompts are done" and "fastest rung" in prompted.text
    assert saved(STEPS[0]) == "prompt 2 of 5", "a version gone back to is what it is"
    assert saved(STEPS[2]._replace(used=[])) == "prompt 4 of 5" and "needs a compiler" in prompted.text
