"""Lectures: what a marker's text asks for, where the player stands, and markers put into recorded sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwtui.__main__ import main
from fwtui.common.errors import Refused
from fwtui.learn.cue import PANELS, cue
from fwtui.learn.questions import KINDS
from fwtui.sessions.folders import shipped_folder
from fwtui.sessions.player import Player
from fwtui.sessions.reader import load
from fwtui.sessions.rewrite import Mark, mark
from fwtui.stream.events import Marker, RunDone, RunStarted

SESSION = Path(__file__).parents[2] / "recorded" / "h200-n4096-naive-blocked.fwt.jsonl"
LECTURE = shipped_folder() / "lecture-tiles.fwt.jsonl"


class TestCue:
    def test_words_alone_are_words(self) -> None:
        for text in (
            "tiles from here",
            "why?",
            "@nothing here",
            "?nokind what",
            "a @phases ?phase",
            "@phasesx y",
            "mail @ home",
            "",
        ):
            assert cue(text) == (text, "", False, None)

    def test_a_panel_and_words(self) -> None:
        assert cue("@matrix In tiles now.") == ("In tiles now.", "matrix", False, None)
        assert cue("@matrix") == ("", "matrix", False, None)
        assert cue("@matrix").directed and not cue("words").directed

    @pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
    def test_a_kind_by_its_name_and_by_its_words(self, kind) -> None:
        assert cue(f"@phases ?{kind.name} What now?") == ("What now?", "phases", True, kind)
        assert cue(f"?{kind.name}") == (kind.ask, "", True, kind)
        assert cue(f"@total ? {kind.ask.upper()}") == (kind.ask.upper(), "total", True, kind)

    def test_other_questions_have_no_answer_of_the_run(self) -> None:
        assert cue("@runs ? What would you try next?") == ("What would you try next?", "runs", True, None)
        assert cue("?") == ("", "", True, None)


class TestPlayer:
    def test_it_stands_at_a_marker_until_something_happens(self) -> None:
        player = Player(load(LECTURE).lines)
        places = [i for i, line in enumerate(player.lines) if isinstance(line.event, Marker)]
        assert player.marker is None
        for number, place in enumerate(places, 1):
            assert player.seek_marker(str(number)) and player.index == place + 1
            standing = player.marker
            assert standing is not None and standing[:2] == (number, len(places)) and standing[2] is player.lines[place].event
        player.seek_marker("4")
        player.step(1)
        assert player.marker is None

    def test_playing_stops_at_each_of_several_at_one_moment(self) -> None:
        player = Player(load(LECTURE).lines)
        player.stops = True
        numbers = []
        now = 0.0
        for _ in range(20):
            player.play()
            player.tick(now)
            now += 100.0
            player.tick(now)
            if player.marker is not None:
                numbers.append(player.marker[0])
            if player.at_end:
                break
        assert numbers[:8] == [1, 2, 3, 4, 5, 6, 7, 8]


class TestMark:
    def test_markers_go_where_they_are_wanted_and_all_else_stays(self, tmp_path: Path) -> None:
        out = tmp_path / "l.fwt.jsonl"
        wanted = [(Mark(run=4), "a"), (Mark(run=4, end=True), "b"), (Mark(run=4, end=True), "c"), (Mark(seconds=6.0), "d")]
        written = mark(SESSION, wanted, out, "a lecture")
        before, after = load(SESSION), load(out)
        assert written.complete and after.complete and after.header.title == "a lecture"
        lines = [line.event for line in after.lines]
        marked = {e.text: i for i, e in enumerate(lines) if isinstance(e, Marker)}
        assert isinstance(lines[marked["a"] - 1], RunStarted) and getattr(lines[marked["a"] - 1], "run", 0) == 4
        assert isinstance(lines[marked["b"] - 1], RunDone) and marked["c"] == marked["b"] + 1
        assert lines[marked["d"] - 1].t <= 6.0 < lines[marked["d"] + 1].t
        kept = [line.raw for line in after.lines[1:-1] if not isinstance(line.event, Marker)]
        assert kept == [line.raw for line in before.lines[1:-1]]

    @pytest.mark.parametrize(
        ("place", "words"),
        [
            (Mark(run=5), "run 5 does not begin in this session; its runs are 3, 4, 7, 8"),
            (Mark(run=5, end=True), "run 5 does not end in this session; its runs are 3, 4, 7, 8"),
            (Mark(seconds=99.0), "99 s is outside this session of 10.6204 s; choose a time in it"),
        ],
    )
    def test_places_that_are_not_there_are_refused(self, tmp_path: Path, place: Mark, words: str) -> None:
        with pytest.raises(Refused) as refusal:
            mark(SESSION, [(place, "x")], tmp_path / "l.fwt.jsonl")
        assert str(refusal.value) == words and not list(tmp_path.iterdir())

    def test_the_command(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = str(tmp_path / "l.fwt.jsonl")
        assert main(["mark", str(SESSION), "--at", "end 8", "@phases ?phase", "--at", "1.5", "so far", "-o", out]) == 0
        assert "2 markers more" in capsys.readouterr().err
        assert [e.event.text for e in load(out).lines if isinstance(e.event, Marker)] == ["so far", "@phases ?phase"]
        assert main(["mark", out, "--at", "2", "so far", "-o", str(tmp_path / "one.fwt.jsonl")]) == 0
        assert "1 marker more is in" in capsys.readouterr().err
        torn = tmp_path / "torn.fwt.jsonl"
        torn.write_bytes(SESSION.read_bytes()[:-200])
        assert main(["mark", str(torn), "--at", "1", "so far", "-o", str(tmp_path / "less.fwt.jsonl")]) == 1
        assert "what was lost in the source is missing here too" in capsys.readouterr().err, "a reason for the exit code"
        for place, words in (("run x", "w"), ("-1", "w"), ("1e3", "w"), ("end 8", " "), ("end 8", "w" * 201)):
            assert main(["mark", str(SESSION), "--at", place, words, "-o", str(tmp_path / "no")]) == 2
            assert capsys.readouterr().err.count("\n") == 1
        assert main(["mark", str(SESSION), "--at", "end 8", "x", "-o", out]) == 2, "nothing is overwritten"


def test_the_shipped_lecture_points_and_asks() -> None:
    cues = [cue(line.event.text) for line in load(LECTURE).lines if isinstance(line.event, Marker)]
    assert {c.panel for c in cues} - {""} <= set(PANELS) and all(c.words for c in cues)
    assert {c.kind.name for c in cues if c.kind} == {"peak", "speedup", "phase", "limiter"}
    assert any(c.asks and c.kind is None for c in cues)
    # what a marker says of its run is counted by the program, not by hand
    assert not any(character.isdigit() for c in cues for character in c.words)
