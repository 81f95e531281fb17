"""The shipped course and lectures: steps agree with their recordings, lectures with their texts."""

import gzip
import re
import shlex
import textwrap
from pathlib import Path

import pytest
from course_files import FIRST

from fwtui.__main__ import main
from fwtui.experiment.experiment import settle
from fwtui.learn.course import MAX_COLUMNS, TERM, load_course
from fwtui.learn.lessons import Lessons, lessons, session_path
from fwtui.learn.placeholders import FILLED, NAMED
from fwtui.learn.prompts import CHECKS
from fwtui.learn.questions import PANELS, cue_of
from fwtui.learn.stepping import MAX_N
from fwtui.sessions.folders import shipped_folder
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

    def test_the_course_goes_up_the_ladder(self, shipped: Lessons, capsys: pytest.CaptureFixture[str]) -> None:
        kernels = [step.written.kernel for step in shipped.course]
        assert kernels[0] == "serial" and "look-ahead" in kernels
        ladder = list(registry())
        written = [step.written for step in shipped.course if not step.written.prompts]  # those are a goal, not a rung
        gpu = [ladder.index(step.kernel) for step in written if registry()[step.kernel].backend == "cuda"]
        assert gpu == sorted(gpu), "no later rung before an earlier one"
        assert {step.kind.name for step in shipped.course} >= {"seconds", "speedup", "peak", "phase", "limiter"}
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
    block = next(b for b in readme.split("```") if b.startswith("\nfwtui mark"))
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
