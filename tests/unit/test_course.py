"""The course: every shipped step stands on its recording; broken files are refused in one sentence; answers come from runs."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from fwtui import units
from fwtui.__main__ import main
from fwtui.compare import Entrant
from fwtui.errors import Refused
from fwtui.events import FormLimit, Limits
from fwtui.learn import lessons as lessons_module
from fwtui.learn.attending import Attending
from fwtui.learn.course import MOST_AFTERWARDS, MOST_COLUMNS, MOST_LINES, course_folder, load_course, step_named
from fwtui.learn.lessons import Lessons, lessons, session_path
from fwtui.learn.placeholders import FILLED, fill, names
from fwtui.learn.questions import KINDS, parse_guess, verdict
from fwtui.model import Model
from fwtui.run import Run
from fwtui.sessions.folders import SUFFIX, shipped_folder
from fwtui.sessions.library import load_model
from kernels import registry

SHIPPED = shipped_folder()
BOTH = SHIPPED / f"h200-n4096-naive-blocked{SUFFIX}"
FIRST = """
title = "A thread for every pair"
kernel = "naive"
text = "One launch for each of {n} k: {time}."
[recorded]
session = "h200-n4096-naive-blocked"
launch = "graph"
[question]
kind = "peak"
"""
SECOND = """
title = "Tiles"
kernel = "katz-kider"
text = "Asks {tile} times less: {before.bandwidth} became {bandwidth}."
afterwards = "{speedup}, and {phase.rest} of it in the rest."
[recorded]
session = "h200-n4096-naive-blocked"
launch = "graph"
[question]
kind = "speedup"
"""


@pytest.fixture(scope="module")
def shipped() -> Lessons:
    return lessons()


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder of two steps beside a recording that has both."""
    (tmp_path / BOTH.name).symlink_to(BOTH)
    folder = tmp_path / "course"
    folder.mkdir()
    (folder / "01-naive.toml").write_text(FIRST)
    (folder / "02-tiles.toml").write_text(SECOND)
    return folder


class TestShipped:
    def test_every_step_stands_on_its_recording(self, shipped: Lessons) -> None:
        assert list(shipped.problems()) == []
        for step in shipped.course:
            cited = shipped.cited(step)
            assert cited.run.verified and cited.run.seconds and cited.run.experiment.kernel == step.written.kernel
            assert cited.path.parent == SHIPPED
            answer = shipped.answer(step)
            assert answer.words and (answer.right or answer.number)
            if answer.right:
                assert set(answer.right) <= {choice.key for choice in shipped.choices(step)}
                assert len(shipped.choices(step)) > 1

    def test_texts_fit_a_small_screen_and_have_no_numbers_of_their_own(self, shipped: Lessons) -> None:
        for step in shipped.course:
            for lines, most in ((shipped.text(step), MOST_LINES), (shipped.afterwards(step), MOST_AFTERWARDS)):
                wrapped = [row for part in lines for row in (textwrap.wrap(part, MOST_COLUMNS) or [""])]
                assert len(wrapped) <= most, step.name
                assert not re.search(r"[{}]", " ".join(lines)), "every placeholder is filled"
            written = step.written
            for text in (written.title, written.text, written.afterwards, step.ask):
                assert not re.search(r"\d", re.sub(r"\{[^}]*\}", "", text)), step.name

    def test_what_the_words_claim_holds_in_the_runs_they_cite(self, shipped: Lessons) -> None:
        runs = {step.name: shipped.cited(step).run for step in shipped.course}
        answers = {step.name: shipped.answer(step) for step in shipped.course}
        theory = {name: run.main_occupancy for name, run in runs.items()}

        def shared(name: str) -> int:
            told = theory[name]
            assert told is not None
            return told.shared_bytes

        def share(name: str, phase: str) -> float:
            return next(p.share for p in runs[name].phases if p.key == phase)

        naive, blocked = runs["naive"], runs["blocked"]
        assert naive.steps == naive.n, "one launch does one k"
        assert naive.device_bytes / blocked.device_bytes == pytest.approx(blocked.experiment.tile, rel=0.05), "tile times less"
        peak = shipped.answer(step_named(shipped.course, "memory")).number
        assert peak is not None and peak > 0.5 and blocked.bandwidth and naive.bandwidth
        memory = shipped.cited(step_named(shipped.course, "memory"))
        evidence = memory.entrant.model.evidence(memory.run)
        assert evidence is not None and evidence.dram_utilisation is not None, "GPM read it"
        assert evidence.dram_utilisation < peak * 0.6, "caches answered much"
        assert blocked.bandwidth < naive.bandwidth / 5, "memory is not what it waits for any more"
        assert share("phases", "pivot") > share("blocked", "pivot"), "the smaller the graph, the more the first two weigh"
        assert share("phases", "panels") > share("blocked", "panels")
        assert {runs[name].relaxations for name in ("blocked", "instructions", "registers", "layout")} == {blocked.relaxations}
        assert shared("instructions") * 2 == shared("registers") * 3, "two tiles instead of three"
        assert shared("slices") < shared("registers") and shared("slices") == shared("layout"), "it shrinks"
        assert answers["slices"].right == ("registers",)
        few, many = theory["arithmetic"], theory["layout"]
        assert few is not None and many is not None and few.warps < many.warps, "few warps fit"
        quicker = ("naive", "blocked", "cores", "instructions", "layout", "arithmetic", "look-ahead")
        assert all((answers[name].number or 0) > 1 for name in quicker)
        assert share("arithmetic", "pivot") > share("instructions", "pivot"), "the faster the rest, the more the pivot weighs"
        assert runs["limit"].n > runs["look-ahead"].n and (runs["limit"].rate or 0) > (runs["look-ahead"].rate or 0)
        assert 0.5 < (answers["limit"].number or 0) < 1

    def test_it_goes_up_the_ladder(self, shipped: Lessons) -> None:
        kernels = [step.written.kernel for step in shipped.course]
        assert kernels[0] == "serial" and kernels[-1] == "look-ahead"
        ladder = list(registry())
        gpu = [ladder.index(k) for k in kernels if registry()[k].backend == "cuda"]
        assert gpu == sorted(gpu), "no later rung before an earlier one"
        assert {step.kind.name for step in shipped.course} >= {"seconds", "speedup", "peak", "phase", "limiter"}

    def test_every_named_number_is_used_or_known(self, shipped: Lessons) -> None:
        texts = [t for s in shipped.course for t in (s.written.text, s.written.afterwards, s.ask)]
        used = {name for text in texts for name in names(text)}
        assert {"time", "rate", "n", "tile", "relaxations"} & used

    def test_the_list(self, shipped: Lessons, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["learn", "--list"]) == 0
        name, empty, *rows = capsys.readouterr().out.splitlines()
        first, *_, last = (shipped.cited(step).run.rate or 0.0 for step in shipped.course)
        assert name == f"From {first / 1e9:.2f} billion to {last / 1e12:.1f} trillion relaxations a second" and not empty
        assert len(rows) == 1 + len(shipped.course) and all(row.endswith("ready") for row in rows[1:])
        assert main(["learn", "no-such-step"]) == 2
        assert "there is no step 'no-such-step'" in capsys.readouterr().err

    def test_the_example_of_the_documentation_is_a_step(self, tmp_path: Path) -> None:
        (block,) = re.findall(r"```toml\n(.*?)```", (SHIPPED / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        (tmp_path / "01-naive.toml").write_text(FIRST)
        (tmp_path / "02-tiles.toml").write_text(block)
        assert load_course(tmp_path)[1].against == 0
        (line,) = re.findall(r"\nNames: (.*?);\n", (SHIPPED / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        assert set(re.findall(r"`([a-z.]+)`", line.partition("; each")[0])) == set(FILLED)


class TestLoading:
    def test_steps_are_in_order_with_what_they_are_compared_with(self, made: Path) -> None:
        first, second = load_course(made)
        assert (first.number, first.name, first.against) == (1, "naive", None)
        assert (second.number, second.name, second.against) == (2, "tiles", 0)
        assert step_named((first, second), " TILES ") is second and step_named((first, second), "1") is first

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ('title = "Tiles"', "title =", "is no TOML"),
            ('title = "Tiles"', 'titel = "Tiles"', "does not say what a step needs"),
            ('title = "Tiles"', "title = 3", "does not say what a step needs"),
            ('title = "Tiles"', 'title = " "', "has no title"),
            ('title = "Tiles"', 'title = "Ti\\u001b[31mles"', "has control or invisible characters"),
            ('kernel = "katz-kider"', 'kernel = "fast"', "which does not exist"),
            ('kind = "speedup"', 'kind = "why"', "which is no kind of question"),
            ('kind = "speedup"', 'kind = "speedup"\nagainst = "later"', "which is no step before it"),
            ("{tile} times", "32 times", "has a number or a brace of its own"),
            ("{tile} times", "{tile times", "has a number or a brace of its own"),
            ("{tile} times", "{tiles} times", "which stands for nothing"),
            ("[recorded]", "follow = 99\n[recorded]", "choose 1 to 24"),
            ("[recorded]", "[live]\nn = 0\n[recorded]", "which is outside 1 to"),
            ('session = "h200-n4096-naive-blocked"', "n = 3", "does not say what a step needs"),
        ],
    )
    def test_a_broken_file_is_refused_in_one_sentence(self, made: Path, old: str, new: str, words: str) -> None:
        assert SECOND.count(old) == 1
        (made / "02-tiles.toml").write_text(SECOND.replace(old, new))
        with pytest.raises(Refused) as refusal:
            load_course(made)
        sentence = str(refusal.value)
        assert sentence.startswith("02-tiles.toml") and words in sentence and "\n" not in sentence

    def test_broken_folders(self, made: Path, tmp_path: Path) -> None:
        for act, words in (
            (lambda: (made / "02-tiles.toml").write_bytes(b"\xff\xfe"), "is no TOML"),
            (lambda: (made / "02-tiles.toml").write_text("#" * 70_000), "is larger than 64 KiB"),
            (lambda: (made / "02-tiles.toml").write_text("a = " + "[" * 5000), "is no TOML"),
            (lambda: (made / "02-tiles.toml").rename(made / "tiles.toml"), "is no name of a step"),
            (lambda: (made / "tiles.toml").rename(made / "03-naive.toml"), "3-naive.toml has the name of an earlier step"),
            (lambda: [path.unlink() for path in made.iterdir()], "there are 0 steps"),
            (lambda: made.rmdir(), "cannot be read"),
        ):
            act()
            if words.startswith("3-"):
                (made / "03-naive.toml").write_text(FIRST)
            with pytest.raises(Refused, match=words):
                load_course(made)

    def test_the_first_step_has_nothing_to_be_faster_than(self, made: Path) -> None:
        (made / "01-naive.toml").write_text(FIRST.replace('"peak"', '"speedup"'))
        with pytest.raises(Refused, match="is the first step and asks for a speed-up"):
            load_course(made)


class TestRecorded:
    def test_the_numbers_are_the_runs(self, made: Path) -> None:
        both = lessons(made)
        first, second = both.course
        model, _ = load_model(BOTH)
        naive, blocked = model.runs[4], model.runs[8]  # launched as a graph
        assert both.cited(first).run == naive and both.cited(second).run == blocked
        assert naive.seconds and blocked.seconds and naive.bandwidth and model.gpu and model.gpu.peak_bytes_per_second
        assert both.text(first) == [f"One launch for each of 4,096 k: {units.duration(naive.seconds)}."]
        asks = f"{units.bandwidth(naive.bandwidth)} became {units.bandwidth(blocked.bandwidth)}"
        assert both.text(second) == [f"Asks 32 times less: {asks}."]
        rest = next(p.share for p in blocked.phases if p.key == "rest")
        ratio = naive.seconds / blocked.seconds
        assert both.afterwards(second) == [f"{units.digits(ratio)}x, and {units.percent(rest)} of it in the rest."]
        assert both.answer(second).number == ratio
        assert both.answer(first).number == naive.bandwidth / model.gpu.peak_bytes_per_second
        assert list(both.problems()) == []

    def test_what_a_step_lacks_is_said(self, made: Path) -> None:
        for old, new, words in (
            ('"h200-n4096-naive-blocked"', '"h200-n9"', "cites the session 'h200-n9', which is not here"),
            ('launch = "graph"', "n = 77", "cites a run of katz-kider that"),
            ("{tile} times", "{limit} times", "{limit} is not known of"),
            ("{tile} times", "{phase.base} times", "{phase.base} is not known of"),
            ('kind = "speedup"', 'kind = "limit"', "nobody measured the limit"),
            ("Asks {tile}", f"{'Asks and asks. ' * 60}", "10 are the most"),
        ):
            (made / "02-tiles.toml").write_text(SECOND.replace(old, new))
            ((step, sentence),) = lessons(made).problems()
            assert step.name == "tiles" and words in sentence and "\n" not in sentence

    def test_a_session_is_found_with_a_date_and_the_last_one_counts(self, tmp_path: Path) -> None:
        for name in ("20251120-120000-ladder", "20251121-120000-ladder", "other"):
            (tmp_path / f"{name}{SUFFIX}").touch()
        assert session_path(tmp_path, "ladder").name.startswith("20251121")
        (tmp_path / f"ladder-2026{SUFFIX}").touch()
        assert session_path(tmp_path, "ladder").name.startswith("ladder-2026")
        (tmp_path / f"ladder{SUFFIX}").touch()
        assert session_path(tmp_path, "ladder").name == f"ladder{SUFFIX}"
        with pytest.raises(Refused, match="'lad', which is not here"):
            session_path(tmp_path, "lad")

    def test_an_unverified_run_is_not_cited(self, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        model, _ = load_model(BOTH)
        model.runs = {i: replace(run, verdict=None) if i == 8 else run for i, run in model.runs.items()}
        monkeypatch.setattr(lessons_module, "_model", lambda path, changed: model)
        both = lessons(made)
        with pytest.raises(Refused, match="cites a run of katz-kider"):
            both.cited(both.course[1])


def entrant(model: Model, run: Run | int) -> Entrant:
    return Entrant(model, model.runs[run] if isinstance(run, int) else run)


class TestQuestions:
    @pytest.fixture(scope="class")
    def model(self) -> Model:
        return load_model(BOTH)[0]

    def test_the_longest_phase(self, model: Model) -> None:
        answer = KINDS["phase"].answer(entrant(model, 8), None)
        assert answer.right == ("rest",) and [p.key for p in answer.parts] == ["pivot", "panels", "rest"]
        assert [c.key for c in KINDS["phase"].choices(entrant(model, 8))] == ["pivot", "panels", "rest"]
        with pytest.raises(Refused, match="was not timed phase by phase"):
            KINDS["phase"].answer(entrant(model, 4), None)

    def test_the_limiting_resource_and_what_each_would_allow(self, model: Model) -> None:
        answer = KINDS["limiter"].answer(entrant(model, 8), None)
        assert answer.right == ("registers",) and "32 of 64 warps" in answer.words
        allowed = {part.key: part.amount for part in answer.parts}
        assert allowed["registers"] == 32 and allowed["warps"] == 64 and allowed["shared memory"] > 64
        assert KINDS["limiter"].answer(entrant(model, 4), None).right == ("warps",)
        told = model.runs[8].occupancies
        for occupancies in ((), tuple(msgspec.structs.replace(o, threads=0) for o in told)):
            with pytest.raises(Refused, match="does not say what limits"):
                KINDS["limiter"].answer(entrant(model, replace(model.runs[8], occupancies=occupancies)), None)

    def test_a_speed_up_needs_two_runs_of_one_n(self, model: Model) -> None:
        ask = KINDS["speedup"].answer
        found = ask(entrant(model, 4), entrant(model, 8)).number
        assert found is not None and found < 1, "slower is said as well"
        for before, words in ((None, "no run to compare"), (replace(model.runs[4], n=1024), "only times of one n compare")):
            with pytest.raises(Refused, match=words):
                ask(entrant(model, 8), entrant(model, before) if before is not None else None)
        done = model.runs[8].done
        assert done is not None
        never = msgspec.structs.replace(done, median=5e-324)
        with pytest.raises(Refused, match="has numbers that nothing can be compared with"):
            ask(entrant(model, replace(model.runs[8], done=never)), entrant(model, 4))
        with pytest.raises(Refused, match="has no time"):
            ask(entrant(model, 8), entrant(model, replace(model.runs[4], done=None, samples=())))

    def test_the_share_of_a_limit(self) -> None:
        model, _ = load_model(BOTH)
        with pytest.raises(Refused, match="nobody measured the limit"):
            KINDS["limit"].answer(entrant(model, 8), None)
        model.apply(Limits(t=9.0, backend="cuda", forms=(FormLimit("float32", 8e12),), complete=True))
        answer = KINDS["limit"].answer(entrant(model, 8), None)
        assert answer.number is not None and model.runs[8].rate is not None
        assert answer.number == pytest.approx(model.runs[8].rate / 8e12, rel=0.2)  # the clocks may differ

    @pytest.mark.parametrize(
        ("kind", "text", "value"),
        [
            ("seconds", "20", 20.0),
            ("seconds", "20 s", 20.0),
            ("seconds", "5ms", 0.005),
            ("seconds", "2 MIN", 120.0),
            ("speedup", "3", 3.0),
            ("speedup", "2.5x", 2.5),
            ("peak", "40 %", 0.4),
            ("limit", "7", 0.07),
        ],
    )
    def test_guesses(self, kind: str, text: str, value: float) -> None:
        assert parse_guess(KINDS[kind], text) == pytest.approx(value)

    @pytest.mark.parametrize("text", ["", "-3", "three", "3 apples", "1e9", "nan", "inf", "9" * 12, "٣", "3 %"])
    def test_what_is_no_guess_is_refused(self, text: str) -> None:
        with pytest.raises(Refused, match="is no guess here; give a number of times such as 3"):
            parse_guess(KINDS["speedup"], text)

    def test_how_near_it_came(self, model: Model) -> None:
        kind, phase = KINDS["speedup"], KINDS["phase"]
        answer = kind.answer(entrant(model, 8), entrant(model, 4))
        assert answer.number is not None
        assert verdict(kind, answer.number, answer) == "Close." == verdict(kind, answer.number * 1.2, answer)
        assert verdict(kind, answer.number * 3, answer) == "3.00 times too high."
        assert verdict(kind, answer.number / 2, answer) == "2.00 times too low."
        assert verdict(kind, 0.0, answer) == ""
        assert verdict(phase, "rest", phase.answer(entrant(model, 8), None)) == "Right."
        assert verdict(phase, "pivot", phase.answer(entrant(model, 8), None)) == "Not this one."

    def test_names_are_filled_or_refused(self, model: Model) -> None:
        run, before = entrant(model, 8), entrant(model, 4)
        filled = {name: fill(f"{{{name}}}", run, before) for name in FILLED if not name.startswith(("limit", "dram"))}
        assert filled["time"] == "83.3 ms" and filled["rate"] == "825 billion" and filled["relaxations"] == "68.7 billion"
        assert filled["matrix"] == "64.0 MiB" and filled["registers"] == "56" and filled["launches"] == "384"
        assert fill("{before.tile}", before, run) == "32"
        for text in ("{before.time}", "{speedup}", "{tile}"):
            with pytest.raises(Refused, match=r"is not known of|no run to compare"):
                fill(text, before, None)


class TestAttending:
    def test_a_guess_stands_beside_the_answer(self, made: Path) -> None:
        here = Attending(lessons(made))
        page = here.page(Model())
        assert (page.number, page.of, page.answer) == (1, 2, None) and page.text
        with pytest.raises(Refused):
            here.guess("much")
        assert not here.told
        here.guess("50 %")
        page = here.page(Model())
        assert page.guess == 0.5 and page.answer is not None and page.verdict.endswith("too low.")
        assert here.go(1) and not here.go(2) and not here.go(-1)
        here.guess("")
        page = here.page(Model())
        assert page.guess is None and page.answer is not None and not page.verdict and page.afterwards
        assert [rung.title for rung in page.climbed] == ["Naive", "Katz-Kider"]
        assert page.climbed[1].times == page.answer.number
        assert here.go(0) and here.page(Model()).guess == 0.5, "guesses are kept"

    def test_a_page_says_what_is_missing(self, made: Path) -> None:
        (made.parent / BOTH.name).unlink()
        page = Attending(lessons(made)).page(Model())
        assert page.title == "A thread for every pair" and "which is not here" in page.problem and not page.text

    def test_runs_of_this_machine_answer_too(self, made: Path) -> None:
        here = Attending(lessons(made))
        here.go(1)
        with pytest.raises(Refused, match="needs a GPU"):
            here.plan(gpu=False)
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

    def test_nothing_further_runs_after_one_that_failed(self, made: Path) -> None:
        here = Attending(lessons(made))
        here.go(1)
        here.plan(gpu=True)
        model, _ = load_model(BOTH)
        here.began(4)
        model.runs[4] = replace(model.runs[4], state="cancelled")
        assert here.next_run(model) is None and here.next_run(model) is None
        local = here.page(model).here
        assert local is not None and local.answer is None and "cancelled" in local.words


def test_the_course_is_beside_the_sessions() -> None:
    assert course_folder() == shipped_folder() / "course"
