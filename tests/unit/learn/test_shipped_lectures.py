"""The lectures that ship: what their texts make of their sessions, and what they ask."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pytest

from fwtui.__main__ import main
from fwtui.analysis.disturbances import disturbances
from fwtui.learn.cue import PANELS, cue_of
from fwtui.sessions.folders import shipped_folder
from fwtui.sessions.library import load_model
from fwtui.sessions.reader import load
from fwtui.stream.events import Marker

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
    assert {c.panel for c in cues} - {""} <= set(PANELS) and all(c.words and c.title for c in cues)
    assert {c.kind.name for c in cues if c.kind} == kinds
    assert any(c.asks and c.kind is None for c in cues)
    # what a marker says of its run is counted by the program, not by hand
    assert not any(character.isdigit() for c in cues for character in c.words)


@pytest.mark.parametrize(("text", "name"), [("own-kernel", "lecture-own-kernel"), ("sparse", "h200-sparse-grid")])
def test_a_shipped_lecture_is_what_its_text_makes_of_it(tmp_path: Path, text: str, name: str) -> None:
    notes_of_it = shipped_folder() / "lectures" / f"{text}.md"
    assert main(["mark", name, "--from", str(notes_of_it), "-o", str(tmp_path / "made.fwt.jsonl")]) == 0
    shipped = (shipped_folder() / f"{name}.fwt.jsonl.gz").read_bytes()
    assert (tmp_path / "made.fwt.jsonl").read_bytes() == gzip.decompress(shipped)


def test_the_lecture_about_a_kernel_of_ones_own_shows_six_versions_of_one_file() -> None:
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
