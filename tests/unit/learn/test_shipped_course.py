"""The shipped course and lectures: steps agree with their recordings, lectures with their texts."""

import gzip
import re
import shlex
import textwrap
from pathlib import Path

import pytest
from course_files import FIRST

from fwtui.__main__ import main
from fwtui.analysis.disturbances import disturbances
from fwtui.analysis.warps import loop_facts, main_samples
from fwtui.common import units
from fwtui.experiment.experiment import settle
from fwtui.learn.course import MAX_COLUMNS, TERM, load_course, step_named
from fwtui.learn.lessons import Lessons, lessons, session_path
from fwtui.learn.placeholders import FILLED, NAMED
from fwtui.learn.prompts import CHECKS
from fwtui.learn.questions import PANELS, cue_of
from fwtui.learn.stepping import MAX_N
from fwtui.sessions.folders import shipped_folder
from fwtui.sessions.library import load_model
from fwtui.sessions.reader import load
from fwtui.stream.events import Marker
from fwtui.tui.frame import places
from fwtui.tui.frame.glossary import GLOSSARY, names
from fwtui_kernels import registry
from fwtui_kernels.plan import ITEMSIZE

SHIPPED = shipped_folder()


@pytest.fixture(scope="module")
def shipped() -> Lessons:
    return lessons()


class TestShipped:
    def test_every_step_agrees_with_its_recording(self, shipped: Lessons) -> None:
        for step in shipped.course:
            cited = shipped.cited(step)
            assert cited.run.verified and cited.run.seconds and cited.run.experiment.kernel == step.written.kernel
            assert session_path(SHIPPED, cited.session).is_file()
            answer = shipped.answer(step)
            assert answer.text and (answer.right or answer.number)
            if answer.right:
                assert set(answer.right) <= {choice.key for choice in shipped.choices(step)}
                assert len(shipped.choices(step)) > 1

    def test_texts_fit_and_have_no_numbers_and_runs_are_possible(self, shipped: Lessons) -> None:
        for step in shipped.course:
            written, live = step.written, step.written.live
            for text, most in ((written.text, 10), (written.afterwards, 4)):
                lines = [line for part in shipped.lines(step, text) for line in (textwrap.wrap(part, MAX_COLUMNS) or [""])]
                assert len(lines) <= most, step.name
            assert all(prompt.until in CHECKS for prompt in written.prompts)
            for text in (written.title, written.text, written.afterwards, step.ask, *(one.say for one in written.prompts)):
                plain = re.sub(rf"\b(?:{'|'.join(ITEMSIZE)})\b", "", NAMED.sub("", text))
                assert not re.search(r"[\d{}]", plain) and "*" not in TERM.sub("", text), step.name
            assert 1 <= written.follow <= MAX_N and (live is None or bool(live.kernels) or not (live.devices or live.kind))
            for experiment in live.experiments() if live is not None else ():
                settle(experiment)

    def test_claims_of_the_texts_hold_in_the_cited_runs(self, shipped: Lessons) -> None:
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
        evidence = memory.model.evidence(memory.run)
        assert evidence is not None and evidence.dram_utilisation is not None, "GPM read it"
        assert evidence.dram_utilisation < peak * 0.6, "caches answered much"
        assert blocked.bandwidth < naive.bandwidth / 3.5, "memory is not what it waits for any more"
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
        several = runs["several"]
        assert several.device_count == 2 and 1.5 < (answers["several"].number or 0) < 2, "most of two GPUs"
        assert share("several", "broadcast") + share("several", "wait") < 0.3, "there is enough to hide it"

    def test_the_step_about_sparse_graphs_compares_two_runs_on_one_grid(self, shipped: Lessons) -> None:
        step = step_named(shipped.course, "sparse")
        cited, before = shipped.cited(step), shipped.before(step)
        assert before is not None and before.run.experiment.kernel == "look-ahead" and before.model is cited.model
        assert before.run.experiment.graph == cited.run.experiment.graph and cited.run.experiment.kind == "grid"
        assert 0.5 < (cited.run.rate or 0) / (before.run.rate or 1) < 1, "each a little slower"
        fewer = before.run.needed / cited.run.needed
        assert f"{units.digits(fewer)}x fewer relaxations" in " ".join(shipped.lines(step, step.written.afterwards))
        assert [one.kind for one in shipped.here(step, gpu=False)] == ["grid", "grid"]

    def test_the_step_about_data_types_compares_four_runs_on_one_graph(self, shipped: Lessons) -> None:
        step = step_named(shipped.course, "types")
        runs = {dtype: shipped.same_graph(step, "look-ahead", dtype).run for dtype in ("int16", "int32", "float32", "float64")}
        assert shipped.cited(step).run is runs["float64"]
        assert [run.seconds for run in runs.values()] == sorted(run.seconds or 0.0 for run in runs.values())
        samples = {dtype: main_samples(run) for dtype, run in runs.items()}
        each = [loop_facts(sampled).each if sampled is not None else None for sampled in samples.values()]
        counts = [one for one in each if one is not None]
        assert counts == sorted(counts) and len(counts) == 4 and counts[0] < 1, "one instruction relaxes two packed values"
        assert [run.experiment.tile for run in runs.values()] == [128, 128, 128, 64]

    def test_the_course_goes_up_the_ladder_and_is_listed(self, shipped: Lessons, capsys: pytest.CaptureFixture[str]) -> None:
        kernels = [step.written.kernel for step in shipped.course]
        assert kernels[0] == "serial" and "look-ahead" in kernels
        ladder = list(registry())
        written = [step.written for step in shipped.course if not step.written.prompts]  # those are a goal, not a rung
        gpu = [ladder.index(step.kernel) for step in written if registry()[step.kernel].backend == "cuda"]
        assert gpu == sorted(gpu), "no later rung before an earlier one"
        assert {step.kind.name for step in shipped.course} >= {"seconds", "speedup", "peak", "phase", "limiter"}
        assert main(["learn", "--list", "blocked"]) == 2
        refusal = capsys.readouterr()
        assert not refusal.out and "--list prints all steps, not 'blocked'" in refusal.err
        assert main(["learn", "--list"]) == 0
        name, empty, *rows = capsys.readouterr().out.splitlines()
        rates = [shipped.cited(step).run.rate or 0.0 for step in shipped.course]
        said = f"From {rates[0] / 1e9:.2f} billion to {max(rates) / 1e12:.1f} trillion relaxations a second"
        assert name == said and not empty
        assert len(rows) == 1 + len(shipped.course) and all(
            shipped.title(step) in row for step, row in zip(shipped.course, rows[1:], strict=True)
        )
        assert main(["learn", "no-such-step"]) == 2
        assert "the course has no step 'no-such-step'" in capsys.readouterr().err

    def test_the_example_of_the_documentation_is_a_step(self, tmp_path: Path) -> None:
        (block,) = re.findall(r"```toml\n(.*?)```", (SHIPPED / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        (tmp_path / "01-naive.toml").write_text(FIRST)
        (tmp_path / "02-tiles.toml").write_text(block)
        assert load_course(tmp_path)[1].against == 0
        (line,) = re.findall(r"\nNames: (.*?); each", (SHIPPED / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        assert set(re.findall(r"`([a-z.]+)`", line)) == set(FILLED)


def test_the_glossary_explains_each_term_once() -> None:
    terms = [name for term, _ in GLOSSARY for name in names(term)]
    assert len(terms) == len(set(terms)) > 20
    for place in places.PLACES:
        for where in filter(None, (place.live, place.recorded)):
            assert not {name for word, _ in places.load(where).WORDS for name in names(word)} & set(terms), where


LECTURE = shipped_folder() / "lecture-tiles.fwt.jsonl.gz"


def test_the_shipped_lecture_is_made_as_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    readme = (shipped_folder() / "README.md").read_text()
    block = next(b for b in readme.split("```") if "--from" in b)
    commands = [shlex.split(line, comments=True) for line in block.strip().splitlines()]
    assert [words[:2] for words in commands] == [["fwtui", "mark"], ["fwtui", "mark"], ["fwtui", "replay"]]
    for words in commands[:2]:
        assert main(words[1:]) == 0
    assert "point: matrix" in Path("tiles.md").read_text()
    assert commands[2][2:] == ["talk.fwt.jsonl", "--present"] and load("talk.fwt.jsonl").complete
    made = tmp_path / "made.fwt.jsonl"
    notes_of_it = shipped_folder() / "lectures" / "tiles.md"
    assert main(["mark", "h200-n4096-naive-blocked", "--from", str(notes_of_it), "-o", str(made)]) == 0
    assert made.read_bytes() == Path("talk.fwt.jsonl").read_bytes() == gzip.decompress(LECTURE.read_bytes())


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("lecture-tiles", {"peak", "speedup", "phase", "limiter"}),
        ("lecture-own-kernel", {"speedup", "phase"}),
        ("h200-sparse-grid", {"speedup", "phase"}),
    ],
)
def test_a_shipped_lecture_points_and_asks(name: str, kinds: set[str]) -> None:
    lecture = load(shipped_folder() / f"{name}.fwt.jsonl.gz")
    cues = [cue_of(line.event) for line in lecture.lines if isinstance(line.event, Marker)]
    assert {c.panel for c in cues} - {""} <= set(PANELS) and all(c.body and c.title for c in cues)
    assert {c.kind.name for c in cues if c.kind} == kinds
    assert any(c.asks and c.kind is None for c in cues)
    # what a marker says of its run is counted by the program, not by hand
    assert not any(character.isdigit() for c in cues for character in c.body)


@pytest.mark.parametrize(("text", "name"), [("own-kernel", "lecture-own-kernel"), ("sparse", "h200-sparse-grid")])
def test_a_shipped_lecture_is_generated_by_its_text(tmp_path: Path, text: str, name: str) -> None:
    notes_of_it = shipped_folder() / "lectures" / f"{text}.md"
    assert main(["mark", name, "--from", str(notes_of_it), "-o", str(tmp_path / "made.fwt.jsonl")]) == 0
    shipped = (shipped_folder() / f"{name}.fwt.jsonl.gz").read_bytes()
    assert (tmp_path / "made.fwt.jsonl").read_bytes() == gzip.decompress(shipped)


def test_the_lecture_about_a_user_kernel_shows_six_versions_of_one_file() -> None:
    lecture = shipped_folder() / "lecture-own-kernel.fwt.jsonl.gz"
    model = load_model(lecture)[0]
    runs = list(model.runs.values())
    assert len({run.experiment.code for run in runs}) == 6 and {run.experiment.kernel for run in runs} == {"mine"}
    assert [run.verified for run in runs] == [True, True, False, True, True, True]
    first, rows, tiles, fours, last = (run.seconds or 0.0 for run in runs if run.verified)
    assert first > tiles > rows > fours > last, "tiles alone are no faster than row by row, as a card says"
    assert not any(disturbances(run, model.evidence(run)) for run in runs), "its cards say that nothing else was at work"
    sources = ["\n".join(part.lines) for run in runs for part in run.source]
    assert len(set(sources)) == 6 and all("KERNEL = own(" in text for text in sources)
    longest = [max(run.phases, key=lambda phase: phase.seconds).key for run in runs[3:5]]
    assert longest == ["rest", "panels"], "which the next version works on"
